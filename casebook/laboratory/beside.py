"""What may be measured beside what.

A build executes several chapters at a time. What counts, and what tells concurrent from serial,
comes out the same beside other work (fetching/verdicts_under_load.py): such measurements
are made side by side. What decides a finding on a clock is measured *alone*: no other process of
this checkout measures meanwhile. The other threads of a process that measures alone are part of
what it measures: they wait for nobody, and it stays alone until they are done.
"""

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

from casebook import places

#: The kind of lock that is held here, if any.
_holds = ContextVar("_holds", default=0)


class _Alone:
    """Whether this process measures alone, and how many of its other threads measure with it."""

    changed = threading.Condition()
    holds = False
    guests = 0


def others() -> contextlib.AbstractContextManager[None]:
    """While something is measured that others may be measured beside."""
    return _others()


def nothing() -> contextlib.AbstractContextManager[None]:
    """While something is measured alone. What is measured within waits for nobody."""
    return _held(fcntl.LOCK_EX)


def is_alone() -> bool:
    """Whether what is measured here is measured alone."""
    return _holds.get() == fcntl.LOCK_EX


@contextlib.contextmanager
def _others() -> Iterator[None]:
    with _Alone.changed:
        is_guest = _Alone.holds and not _holds.get()
        _Alone.guests += is_guest
    if not is_guest:
        with _held(fcntl.LOCK_SH):
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
def _alone_here() -> Iterator[None]:
    """While this process measures alone; ends when the threads that measure with it have."""
    with _Alone.changed:
        _Alone.holds = True
    try:
        yield
    finally:
        with _Alone.changed:
            _Alone.holds = False
            _Alone.changed.wait_for(lambda: not _Alone.guests)


@contextlib.contextmanager
def _held(kind: int) -> Iterator[None]:
    if _holds.get():
        yield
        return
    places.LOCAL.mkdir(parents=True, exist_ok=True)
    with open(places.LOCAL / "measuring.lock", "w") as lock:
        # Who waits to be alone lets nobody else past: otherwise it would wait as long as others
        # go on measuring.
        with open(places.LOCAL / "turnstile.lock", "w") as turnstile:
            _taken(turnstile, fcntl.LOCK_EX)
            _taken(lock, kind)
        token = _holds.set(kind)
        is_alone = kind == fcntl.LOCK_EX
        try:
            with _alone_here() if is_alone else contextlib.nullcontext():
                yield
        finally:
            _holds.reset(token)


def _taken(lock: TextIO, kind: int) -> None:
    """Take a lock. A reader whose cell has to wait is told why; a page says nothing of it."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if os.environ.get("CASEBOOK_BUILD") != "1":
            print("waiting: something else is being measured here", file=sys.stderr, flush=True)
        fcntl.flock(lock, kind)
