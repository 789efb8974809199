"""A waiter who blocks: he stands at the hatch until the dish is ready."""

import time


def wait(cooking_s):
    """Stand still: nothing else in this thread happens meanwhile."""
    time.sleep(cooking_s)
