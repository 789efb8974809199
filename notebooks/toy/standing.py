"""A waiter who blocks: he stands at the hatch until the dish is ready."""

import time


def wait(cooking_s):
    """Block: nothing else in this thread runs in the meantime."""
    time.sleep(cooking_s)
