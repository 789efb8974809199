"""The patcher: teaches the standing waiter to circulate."""

from toy import circulating, standing

_original = standing.wait


def patch():
    """Make the name `standing.wait` stand for `circulating.wait`."""
    standing.wait = circulating.wait


def undo():
    """Make it stand for the original function again."""
    standing.wait = _original
