"""Decorators between a program and its clients."""

from __future__ import division, print_function

#: Those that wrap a program's functions: none of them makes a client.
DECORATORS = frozenset(
    "pydantic wrapt tenacity functools decorator backoff retry retrying stamina cachetools "
    "typeguard beartype deprecated opentelemetry sentry_sdk ddtrace newrelic elasticapm".split()
)


def is_decorator(package, codes):
    """Return whether a package only wraps the program's functions.

    It is known for that, or all of its functions that were called take whatever they are given
    (*args, **kwargs).
    """
    return package in DECORATORS or all(code.co_flags & 12 == 12 for code in codes)
