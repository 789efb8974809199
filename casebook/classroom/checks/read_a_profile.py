"""Read a profile: two dumps and no code. Who waits, who computes, and how often?"""

import pstats
import re
import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from casebook import places, stacks
from casebook.cases.fetching import observations
from casebook.classroom import prediction, room
from casebook.classroom.bench import Bench
from casebook.classroom.report import Report
from casebook.classroom.witness import World
from casebook.errors import RunFailed

LAB = "read-a-profile"
STACK, INJECTED = "stage-1-today", "stage-2-injected-today"
STACKS = (STACK, INJECTED)
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
WAY_A = Way("pyOpenSSL's wait", INJECTED, "grequests.map", False, 0.1)
WAY_B = Way("loads of a bundle", STACK, "a plain loop", True, 0.0)
WAY_C = Way("a plain loop", STACK, "a plain loop", False, 0.1)
WAY_D = Way("loads, in a greenlet each", STACK, "grequests.map", True, 0.0)


#: How many pages a new dump of each kind may have.
SIZES = {WAY_A: range(5, 14), WAY_B: range(8, 17), WAY_C: range(4, 13), WAY_D: range(6, 15)}


@dataclass(frozen=True)
class Seen:
    """A profile: its lines, and the processor's share of its time. machine: where it was made;
    empty: here, now."""

    n: int
    answer: dict[str, Any]
    cpu_share: float
    machine: str = ""


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


def asked(bench: Bench, way: Way, n: int | None = None) -> Seen:
    """A profile of the bench's. n: pages; None: as many as are drawn by lot."""
    names = list(dict.fromkeys([way.stack, STACK]))
    if n is None:
        drawn = partial(secrets.choice, SIZES[way])
        n = bench.draw(names, drawn, lambda its: int(its["n"]), way=way.what)

    def measure() -> dict[str, Any]:
        seen = observed(way, n)
        return {"n": seen.n, "cpu_share": seen.cpu_share, **seen.answer}

    return Seen(**bench.ask(names, {"way": way.what, "n": n}, measure, _as_seen))


def _as_seen(found: dict[str, Any]) -> dict[str, Any]:
    """A profile's raw answer, of whatever machine. Raises what is wrong with one that is none."""
    seen = Seen(int(found["n"]), {"profile": found["profile"]}, float(found["cpu_share"]))
    kind(longest(seen.answer["profile"]))
    observations.as_stats(SimpleNamespace(answer=seen.answer))  # type: ignore[arg-type]
    return vars(seen)


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


def grade(file: Path, report: Report, bench: Bench) -> None:
    """Add to the report what was found of a submission."""
    within = bench.room(STACK)
    entered = prediction.entered(STACK, within, file, report, 17, NAMES, countable=False)
    if entered is None:
        return
    names, guess = entered
    made = [(way, asked(bench, way)) for way in SIZES]
    share = {way: seen.cpu_share for way, seen in made}
    machine = next((seen.machine for _, seen in made if seen.machine), "")
    # What a line does is the same on a busy machine; what share of the time it takes is not.
    does = [kind(longest(rows_of(HANDED_OUT / name))) for name in ("a.prof", "b.prof")]
    truth = f"the line with the most own time {does[0]} in a.prof, and {does[1]} in b.prof"
    prediction.give(report, guess, truth, machine)
    _dumps(within, file, made, report)
    for which, way, hint in (
        ("FASTER_PROCESSOR", WAY_B, "What does a processor do while a thread waits for a socket?"),
        ("FREE_LOOP", WAY_A, "What could the loop have done in that time, and did not?"),
    ):
        most = max((WAY_A, WAY_B), key=lambda each: share[each] * (1 if way is WAY_B else -1))
        wanted = "b.prof" if most is WAY_B else "a.prof"
        report.give(
            f"{which}: which of the two gains", names[which] in (wanted, wanted[0]), 2,
            f"you said {names[which]!r}", hint, machine,
        )  # fmt: skip


def record(bench: Bench) -> None:
    """Ask all that may be asked of any submission, of some sizes."""
    for way, sizes in SIZES.items():
        for n in sizes[::4]:
            asked(bench, way, n)


def _dumps(within: str, file: Path, made: list[tuple[Way, Seen]], report: Report) -> None:
    with World() as world:
        shown: list[tuple[str, Path, dict[str, Any], str]] = []
        for name in ("a.prof", "b.prof"):
            path = HANDED_OUT / name
            shown.append((f"{name}, as handed out", path, longest(rows_of(path)), ""))
        for way, seen in made:
            path = world.folder / f"{secrets.token_hex(4)}.prof"
            dump(seen, path)
            what = f"a new dump: {way.what}, {seen.n} pages"
            shown.append((what, path, longest(seen.answer["profile"]), seen.machine))
        jobs = [
            {"function": "read", "how": "call", "args": [str(path)]} for _, path, *_ in shown
        ]  # fmt: skip
        outcome = room.run(within, file, jobs, countable=False)
    report.stopped = report.stopped or outcome.stopped
    for (what, _, line, machine), answer in zip(shown, outcome.answers, strict=True):
        wanted = [kind(line), line["function"], line["nc"]]
        value = answer.get("value")
        if value is None:  # nothing was said, so nothing is told
            found = answer.get("error") or "you say None"
            report.give(what, False, 2, found, "Which line has the most time of its own?", machine)
            continue
        parts = value if isinstance(value, list) and len(value) == len(PARTS) else [None] * 3
        wrong = [of for of, got, right in zip(PARTS, parts, wanted, strict=True) if got != right]
        found = f"{wrong[0]} is wrong: " if wrong else ""
        found += f"you say {value!r}; the line is {line['file']}:{line['line']}"
        found += f"({line['function']}), called {line['nc']} times, and it {wanted[0]}"
        hint = PARTS[wrong[0]] if wrong else ""
        report.give(what, max(0, 2 - len(wrong)), 2, found, hint, machine)


#: The parts of an answer, in their order, and where to look when one is wrong.
PARTS = {
    "what it does": "Does that function wait for somebody, or does it work?",
    "the function": "The largest own time, not the largest cumulative time.",
    "the count": "Calls, not primitive calls: of 12/3 it is the first.",
}
