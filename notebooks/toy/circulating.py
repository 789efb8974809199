"""A waiter who does not block: he sees to other tables meanwhile."""

import gevent


def wait(cooking_s):
    """Let the event loop run other greenlets, then come back."""
    gevent.sleep(cooking_s)
