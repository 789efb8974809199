"""Clients that an event loop makes, and the certificates that they load while everybody waits.

What chapters use: `measure`, `timeline` and WAYS (of `client_tasks`).
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
