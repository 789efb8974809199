"""Which measurements may run at the same time.

A build executes several chapters at a time. A measurement that counts something, or that tells
concurrent from serial, gives the same result beside other work (fetching/verdicts_under_load.py),
so such measurements share the machine. A measurement that decides a finding on a clock has it
exclusively: no other process of this checkout measures meanwhile. The other threads of its own
process belong to it: they do not wait, and the machine stays reserved until they are done.

Both are one lock on a file, shared or exclusive, in the folder that this checkout keeps to itself.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

from casebook import build, places, spans
from casebook.laboratory import progress
from casebook.stacks import environments

#: The kind of lock that this context holds: fcntl.LOCK_SH, fcntl.LOCK_EX, or 0 for none.
_holds = ContextVar("_holds", default=0)


class _Alone:
    """What this process knows of the exclusive lock.

    holds: whether it has it. guests: how many of its other threads measure under it.
    """

    changed = threading.Condition()
    holds = False
    guests = 0


def shared() -> contextlib.AbstractContextManager[None]:
    """Measure while others may measure, too (a context manager)."""
    return _share()


def exclusive() -> contextlib.AbstractContextManager[None]:
    """Measure while nobody else does (a context manager). What is measured inside does not wait."""
    return _hold(fcntl.LOCK_EX)


def is_alone() -> bool:
    """Check whether the caller runs inside an exclusive measurement."""
    return _holds.get() == fcntl.LOCK_EX


@contextlib.contextmanager
def _share() -> Iterator[None]:
    with _Alone.changed:
        is_guest = _Alone.holds and not _holds.get()
        _Alone.guests += is_guest
    if not is_guest:
        with _hold(fcntl.LOCK_SH):
            yield
        return
    # A lock of a file is one of the process: to wait for it here would be to wait for ourselves.
    token = _holds.set(fcntl.LOCK_SH)
    try:
        yield
    finally:
        _holds.reset(token)
        with _Alone.changed:
            _Alone.guests -= 1
            _Alone.changed.notify_all()


@contextlib.contextmanager
def _reserve_machine() -> Iterator[None]:
    """Hold the lock exclusively for this process until its last guest has ended."""
    with _Alone.changed:
        _Alone.holds = True
    try:
        yield
    finally:
        with _Alone.changed:
            _Alone.holds = False
            _Alone.changed.wait_for(lambda: not _Alone.guests)


@contextlib.contextmanager
def _hold(kind: int) -> Iterator[None]:
    if _holds.get():
        yield
        return
    places.LOCAL.mkdir(parents=True, exist_ok=True)
    with open(places.LOCAL / "measuring.lock", "a+") as lock:
        # A process that waits for the exclusive lock lets nobody else past. Otherwise it would
        # wait as long as others go on measuring.
        with (
            spans.span(spans.WAIT),
            open(places.LOCAL / "turnstile.lock", "w") as turnstile,
        ):
            _acquire(turnstile, fcntl.LOCK_EX)
            _acquire(lock, kind)
        if kind == fcntl.LOCK_EX:
            lock.truncate(0)
            lock.write(os.environ.get("CASEBOOK_CHAPTER", ""))
            lock.flush()
        token = _holds.set(kind)
        try:
            if kind == fcntl.LOCK_EX:
                with _reserve_machine(), spans.span(spans.CLOCK):
                    yield
            else:
                yield
        finally:
            _holds.reset(token)


def _acquire(lock: TextIO, kind: int) -> None:
    """Take a lock. If it has to wait, tell the reader of the cell, or the build, why."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if not build.in_build():
            environments.report("waiting: something else is being measured here")
        progress.tell_build(f"waits{_exclusive_chapter()}")
        fcntl.flock(lock, kind)


def _exclusive_chapter() -> str:
    """Say which chapter measures alone, or did so last."""
    with contextlib.suppress(OSError):
        if chapter := (places.LOCAL / "measuring.lock").read_text():
            return f", measuring alone: {chapter}"
    return ""
