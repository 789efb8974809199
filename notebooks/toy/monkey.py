"""The patcher: teaches the standing waiter to circulate."""

from toy import circulating, standing

_original = standing.wait


def patch():
    """From now on `standing.wait` is `circulating.wait`."""
    standing.wait = circulating.wait


def undo():
    """The name stands for the original function again."""
    standing.wait = _original
