"""The fourth case's experiments: threads that share a context, and a lock around the handshake.

One direction inside: server, shared_contexts, and beside them crashes. What chapters use:
`measure`, `where_they_wait` and `after_patching` (of `shared_contexts`), and `crashes`.
"""

from casebook import face

__getattr__, __dir__ = face.attach_stub(__name__, __file__)
