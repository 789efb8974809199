"""The ways in which a store can serve, and which of them go together."""

from dataclasses import dataclass, field

from casebook.cases.bookstore import stock
from casebook.errors import UsageError
from casebook.server import MAX_DELAY_S

#: What serves: the stack whose environment it runs in, and the script.
ENGINES = {
    "twisted": ("twisted-today", "twisted_store.py"),
    "twisted-16.3": ("twisted-16.3-py37", "twisted_store.py"),
    "granian": ("granian-today", "granian_store.py"),
}

#: What a server can be made to lack, to see what happens: the package h2, the negotiation of the
#: protocol (ALPN), the names in its certificate (subjectAltName).
LACKS = ("", "h2", "alpn", "names")


@dataclass(frozen=True)
class Ways:
    """How a store serves; what `open_store` was told."""

    http1_only: bool = False
    delay_s: float = 0.0
    slow: dict[str, float] = field(default_factory=dict)
    lacks: str = ""
    goaway_after: int | None = None
    cut_short: tuple[str, ...] = ()


def check(engine: str, port: int, ways: Ways) -> None:
    """Raises UsageError for what no store can do."""
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}: choose {', '.join(ENGINES)}")
    if not 0 <= port <= 65535:
        raise UsageError(f"port {port} is out of range: choose 1 to 65535, or 0 for any free one")
    if ways.lacks not in LACKS:
        raise UsageError(f"a store cannot lack {ways.lacks!r}: choose {', '.join(LACKS[1:])}")
    for seconds in [ways.delay_s, *ways.slow.values()]:
        if not 0 <= seconds <= MAX_DELAY_S:
            raise UsageError(f"the delay is {seconds:g} s; choose 0 to {MAX_DELAY_S:g}")
    unknown = {*ways.slow, *ways.cut_short} - {*stock.ids()}
    if unknown:
        raise UsageError(f"there is no book {min(unknown)!r} in the stock")
    if ways.goaway_after is not None and ways.goaway_after < 1:
        raise UsageError(f"goaway_after is {ways.goaway_after}; choose 1 or more")
    only_twisted = ways.lacks in ("h2", "alpn") or ways.goaway_after or ways.cut_short
    if engine == "granian" and only_twisted:
        raise UsageError("Granian cannot be made to fail so: choose twisted or twisted-16.3")
