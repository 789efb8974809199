"""What the kernel of a build does otherwise than a reader's.

In a build stored measurements count, and what a statement of a notebook sees of the machine is kept
for the machine file (pages/statements.py): one that starts a process, or opens a connection. Some
of our functions do so only to find their way about, such as one that looks for a Python. They say
so themselves, with `@not_a_measurement`.
"""

import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: The variable that says so: "1" in a build.
VARIABLE = "CASEBOOK_BUILD"

#: Whether the running code is within a function that is not a measurement.
_exploring = ContextVar("exploring", default=False)


def in_build() -> bool:
    """Return whether this is the kernel of a build, and not a reader's."""
    return os.environ.get(VARIABLE) == "1"


def not_a_measurement(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose processes and connections measure nothing that a book keeps.

    It only finds out what there is on this machine, or sets it up. Not for a generator.
    """

    @wraps(function)
    def explore(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _exploring.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _exploring.reset(token)

    return explore


def is_exploring() -> bool:
    """Return whether the running code, in this thread, is within such a function."""
    return _exploring.get()
