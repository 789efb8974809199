"""A waiter who does not block: meanwhile he sees to other tables."""

import gevent


def wait(cooking_s):
    """Come back then: meanwhile the event loop runs other greenlets."""
    gevent.sleep(cooking_s)
