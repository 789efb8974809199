"""The second case's experiments: what loading certificates costs, and what became of a cure.

What chapters use: Task (of `loading`), COMPUTING and on_two_cores (of `cores`), Hosts (of `hosts`),
and the modules complaints, counts, handshakes, loading and weights.
"""

from casebook import face

_MODULES = ("complaints", "counts", "handshakes", "loading", "weights")

__getattr__, __dir__ = face.of(
    __name__,
    dict.fromkeys(_MODULES, f"{__name__}.")
    | {"Task": f"{__name__}.loading", "Hosts": f"{__name__}.hosts"}
    | dict.fromkeys(("COMPUTING", "on_two_cores"), f"{__name__}.cores"),
)
