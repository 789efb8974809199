"""The fourth case's experiments: threads that share a context, and a lock around the handshake.

One direction inside: server, threads, and beside them crashes. What chapters use: `measure`,
`where_they_wait` and `after_patching` (of `threads`), and `crashes`.
"""

from casebook import face

_THREADS = ("measure", "where_they_wait", "after_patching", "WAYS", "verdict")

__getattr__, __dir__ = face.of(
    __name__,
    dict.fromkeys(("server", "threads", "crashes"), f"{__name__}.")
    | dict.fromkeys(_THREADS, f"{__name__}.threads"),
)
