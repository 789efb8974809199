"""A process that ends with its owner, who holds the other end of its standard input."""

import os
import select
import threading
from collections.abc import Callable

_CHECK_S = 1.0


def follow(end: Callable[[], None]) -> None:
    """Call `end`, in a thread of its own, when the process that started this one is gone.

    Nobody writes to standard input, so readable means ended. While a child that the owner forked
    still holds the pipe, the kernel's word on our parent is sure.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and not select.select([0], [], [], _CHECK_S)[0]:
            pass
        end()

    threading.Thread(target=watch, daemon=True).start()
