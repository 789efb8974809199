"""What may be measured beside what.

A build executes several chapters at a time. What counts, and what tells concurrent from serial,
comes out the same beside other work (casebook/cases/verdicts_under_load.py): such measurements
are made side by side. What decides a finding on a clock is measured *alone*: no other process of
this checkout measures meanwhile.
"""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

from casebook import places

#: The kind of lock that is held here, if any.
_holds = ContextVar("_holds", default=0)


def others() -> contextlib.AbstractContextManager[None]:
    """While something is measured that others may be measured beside."""
    return _held(fcntl.LOCK_SH)


def nothing() -> contextlib.AbstractContextManager[None]:
    """While something is measured alone. What is measured within waits for nobody."""
    return _held(fcntl.LOCK_EX)


def is_alone() -> bool:
    """Whether what is measured here is measured alone."""
    return _holds.get() == fcntl.LOCK_EX


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
        try:
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
