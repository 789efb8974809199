"""Read a profile: two dumps and no code. Who waits, who computes, and how often?"""

import pstats
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from casebook import places, stacks
from casebook.cases.fetching import observations
from casebook.classroom import prediction, room
from casebook.classroom.report import Report
from casebook.classroom.witness import World
from casebook.errors import RunFailed

LAB = "read-a-profile"
STACK = "stage-1-today"
NAMES = ("PREDICTION", "FASTER_PROCESSOR", "FREE_LOOP")
HANDED_OUT = places.ROOT / "classroom" / "labs" / LAB

#: Functions of the system that wait for somebody, as profiles name them.
_WAITING = re.compile(r"\b(e?poll|select|recv(_into)?|read|sleep|acquire|wait|switch)\b")


@dataclass(frozen=True)
class Way:
    """How a dump is made. what: in the words of the report; function: of `inside.STOCK`; loads:
    whether each connection loads a full bundle."""

    what: str
    stack: str
    function: str
    loads: bool
    delay_s: float


#: What the two dumps that are handed out are, by their names; the others are of these kinds.
WAY_A = Way("pyOpenSSL's wait", "stage-2-injected-today", "grequests.map", False, 0.1)
WAY_B = Way("loads of a bundle", STACK, "a plain loop", True, 0.0)
WAY_C = Way("a plain loop", STACK, "a plain loop", False, 0.1)
WAY_D = Way("loads, in a greenlet each", STACK, "grequests.map", True, 0.0)


@dataclass(frozen=True)
class Seen:
    """A profile that was made now: its lines, and the processor's share of its time."""

    n: int
    answer: dict[str, Any]
    cpu_share: float


def observed(way: Way, n: int) -> Seen:
    """A profile of n pages, made now."""
    with World() as world:
        url = world.site("right").url
        asks = [{"url": f"{url}/delay/{way.delay_s}?page={page}"} for page in range(n)]
        verify = True if way.loads else str(world.folder / "authority.pem")
        job = {"function": way.function, "how": "profile", "asks": asks, "verify": verify}
        outcome = room.run(
            way.stack, None, [job], countable=False, before=stacks.get(way.stack).steps
            if way.function == "grequests.map" else (), bundle=world.bundle,
        )  # fmt: skip
        (answer,) = outcome.answers
        if any(each.get("status") != 200 for each in answer["answers"]):
            raise RunFailed(f"{way.what}: a page did not come. Try again.")
    return Seen(n, {"profile": answer["value"]}, answer["cpu_s"] / answer["wall_s"])


def kind(line: dict[str, Any]) -> str:
    """What the line of a function does: "waits" or "computes"."""
    return "waits" if _WAITING.search(line["function"]) else "computes"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a dump: function, file, line, nc (calls), tt (own time, in seconds)."""
    lines: dict[tuple[str, int, str], tuple] = vars(pstats.Stats(str(path)))["stats"]
    return [
        {"file": file, "line": line, "function": function, "nc": calls, "tt": own_s}
        for (file, line, function), (_, calls, own_s, *_) in lines.items()
    ]


def longest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The line with the largest own time."""
    return max(rows, key=lambda row: row["tt"])


def hand_out() -> None:
    """Make the two dumps that are handed out."""
    for name, way, n in (("a", WAY_A, 12), ("b", WAY_B, 17)):
        dump(observed(way, n), HANDED_OUT / f"{name}.prof")


def dump(seen: Seen, path: Path) -> None:
    """Write a profile as a dump that pstats reads."""
    observations.dump_profile(SimpleNamespace(answer=seen.answer), path)  # type: ignore[arg-type]


def grade(file: Path, report: Report) -> None:
    """Add to the report what was found of a submission."""
    first = room.run(STACK, file, [], names=NAMES, countable=False)
    if first.stopped or first.error:
        report.stopped = first.stopped
        report.give("the file runs", False, 17, first.error or first.stopped, "Mend that first.")
        return
    guess = prediction.kept(file, first.names["PREDICTION"])
    if guess is None:
        report.give(
            "a prediction is entered", False, 17, "nothing was measured",
            "Enter PREDICTION before anything is measured: you can only do it once.",
        )  # fmt: skip
        return
    ways = [(WAY_A, 5), (WAY_B, 8), (WAY_C, 4), (WAY_D, 6)]
    made = [(way, observed(way, least + secrets.randbelow(9))) for way, least in ways]
    share = {way: seen.cpu_share for way, seen in made}
    report.give(
        "a prediction is entered", True, 1,
        f"you said {guess['prediction']!r} on {guess['at']}; a run like that of a.prof computes "
        f"{share[WAY_A]:.0%} of its time, one like that of b.prof {share[WAY_B]:.0%}. It costs "
        "nothing to have been wrong.", "",
    )  # fmt: skip
    _dumps(file, made, report)
    for names, way, hint in (
        ("FASTER_PROCESSOR", WAY_B, "What does a processor do while a thread waits for a socket?"),
        ("FREE_LOOP", WAY_A, "What could the loop have done in that time, and did not?"),
    ):
        most = max((WAY_A, WAY_B), key=lambda each: share[each] * (1 if way is WAY_B else -1))
        wanted = "b.prof" if most is WAY_B else "a.prof"
        report.give(
            f"{names}: which of the two gains", first.names[names] in (wanted, wanted[0]), 2,
            f"you said {first.names[names]!r}", hint,
        )  # fmt: skip


def _dumps(file: Path, made: list[tuple[Way, Seen]], report: Report) -> None:
    with World() as world:
        shown: list[tuple[str, Path, dict[str, Any]]] = []
        for name in ("a.prof", "b.prof"):
            path = HANDED_OUT / name
            shown.append((f"{name}, as handed out", path, longest(rows_of(path))))
        for way, seen in made:
            path = world.folder / f"{secrets.token_hex(4)}.prof"
            dump(seen, path)
            what = f"a new dump: {way.what}, {seen.n} pages"
            shown.append((what, path, longest(seen.answer["profile"])))
        jobs = [
            {"function": "read", "how": "call", "args": [str(path)]} for _, path, _ in shown
        ]  # fmt: skip
        outcome = room.run(STACK, file, jobs, countable=False)
    report.stopped = report.stopped or outcome.stopped
    for (what, _, line), answer in zip(shown, outcome.answers, strict=True):
        line |= {"kind": kind(line)}
        where = "{file}:{line}({function}), called {nc} times, and it {kind}".format(**line)
        value = answer.get("value")
        parts = list(value) if isinstance(value, list) else []
        right = len(parts) == 3 and parts[0] == line["kind"] and parts[1] == line["function"]
        right = right and parts[2] == line["nc"]
        report.give(
            what, right, 2, answer.get("error")
            or f"you say {value!r}; the line is {where}",
            "The largest own time, not the largest cumulative one; calls, not primitive calls; and "
            "does that function wait for somebody, or does it work?",
        )  # fmt: skip
