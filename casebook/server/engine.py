"""What the process of a server knows of the server that it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """`pid` of the process that serves, the `port` it listens on, how to end it, and whether it
    has ended of itself."""

    pid: int
    port: int
    close: Callable[[], None]
    ended: Callable[[], bool] = lambda: False
