"""As threads_shake_hands.py, with everything patched by gevent before anything else is imported.

So the threads are greenlets.
"""

import gevent.monkey

gevent.monkey.patch_all()

import answering  # noqa: E402
import threads_shake_hands  # noqa: E402

if __name__ == "__main__":
    answering.answer(threads_shake_hands.run)
