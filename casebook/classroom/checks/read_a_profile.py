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
from casebook.classroom.grade_report import Report
from casebook.classroom.grader_runs import GraderRuns
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
    """How a dump is made.

    what: in the words of the report; function: of `inside.STOCK`; loads: whether each connection
    loads a full bundle.
    """

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
    """A profile: its lines, and the processor's share of its time.

    machine: where it was made; empty: here, now.
    """

    n: int
    answer: dict[str, Any]
    cpu_share: float
    machine: str = ""


def observed(recipe: Way, n: int) -> Seen:
    """Make a profile of n pages, now."""
    with World() as world:
        url = world.site("right").url
        requests = [{"url": f"{url}/delay/{recipe.delay_s}?page={page}"} for page in range(n)]
        verify = True if recipe.loads else str(world.folder / "authority.pem")
        job = {"function": recipe.function, "how": "profile", "asks": requests, "verify": verify}
        steps = stacks.get(recipe.stack).steps if recipe.function == "grequests.map" else ()
        setting = room.Setting(countable=False, steps=steps, bundle=world.bundle)
        outcome = room.run(recipe.stack, None, [job], setting)
        (answer,) = outcome.answers
        if any(reply.get("status") != 200 for reply in answer["answers"]):
            raise RunFailed(f"{recipe.what}: a page did not come. Try again.")
    return Seen(n, {"profile": answer["value"]}, answer["cpu_s"] / answer["wall_s"])


def profile_of(grader_runs: GraderRuns, recipe: Way, n: int | None = None) -> Seen:
    """Return a profile of the grader's own. n: pages; None: as many as are drawn at random."""
    names = list(dict.fromkeys([recipe.stack, STACK]))
    if n is None:
        draw_size = partial(secrets.choice, SIZES[recipe])
        n = grader_runs.draw(
            names, draw_size, lambda parameters: int(parameters["n"]), way=recipe.what
        )

    def measure() -> dict[str, Any]:
        profile = observed(recipe, n)
        return {"n": profile.n, "cpu_share": profile.cpu_share, **profile.answer}

    return Seen(**grader_runs.answer(names, {"way": recipe.what, "n": n}, measure, _as_seen))


def _as_seen(answer: dict[str, Any]) -> dict[str, Any]:
    """Check the raw answer of a profile from any machine, and return its values.

    Raises what is wrong with it.
    """
    profile = Seen(int(answer["n"]), {"profile": answer["profile"]}, float(answer["cpu_share"]))
    kind(longest(profile.answer["profile"]))
    observations.as_stats(SimpleNamespace(answer=profile.answer))  # type: ignore[arg-type]
    return vars(profile)


def kind(line: dict[str, Any]) -> str:
    """Return what the line of a function does: "waits" or "computes"."""
    return "waits" if _WAITING.search(line["function"]) else "computes"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a dump: function, file, line, nc (calls), tt (own time, in seconds)."""
    lines: dict[tuple[str, int, str], tuple] = vars(pstats.Stats(str(path)))["stats"]
    return [
        {"file": file, "line": line, "function": function, "nc": calls, "tt": own_s}
        for (file, line, function), (_, calls, own_s, *_) in lines.items()
    ]


def longest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the line with the largest own time."""
    return max(rows, key=lambda row: row["tt"])


def hand_out() -> None:
    """Make the two dumps that are handed out."""
    for name, recipe, n in (("a", WAY_A, 12), ("b", WAY_B, 17)):
        dump(observed(recipe, n), HANDED_OUT / f"{name}.prof")


def dump(profile: Seen, path: Path) -> None:
    """Write a profile as a dump that pstats reads."""
    observations.dump_profile(SimpleNamespace(answer=profile.answer), path)  # type: ignore[arg-type]


def grade(file: Path, report: Report, grader_runs: GraderRuns) -> None:
    """Add what was found of a submission to the report."""
    stack_here = grader_runs.room(STACK)
    entered = prediction.entered(
        STACK, stack_here, file, report, 17, NAMES, setting=room.NOT_COUNTABLE
    )
    if entered is None:
        return
    names, guess = entered
    profiles = [(recipe, profile_of(grader_runs, recipe)) for recipe in SIZES]
    share = {recipe: profile.cpu_share for recipe, profile in profiles}
    machine = next((profile.machine for _, profile in profiles if profile.machine), "")
    # What a line does is the same on a busy machine; what share of the time it takes is not.
    does = [kind(longest(rows_of(HANDED_OUT / name))) for name in ("a.prof", "b.prof")]
    truth = f"the line with the most own time {does[0]} in a.prof, and {does[1]} in b.prof"
    if None in (names["FASTER_PROCESSOR"], names["FREE_LOOP"]):  # it is their answer, too
        truth = "how it came out stands here once FASTER_PROCESSOR and FREE_LOOP are answered"
    prediction.grade(report, guess, truth, machine)
    _grade_dumps(stack_here, file, profiles, report)
    for constant, recipe, hint in (
        ("FASTER_PROCESSOR", WAY_B, "What does a processor do while a thread waits for a socket?"),
        ("FREE_LOOP", WAY_A, "What could the loop have done in that time, and did not?"),
    ):
        gainer = max(
            (WAY_A, WAY_B), key=lambda candidate: share[candidate] * (1 if recipe is WAY_B else -1)
        )
        right = "b.prof" if gainer is WAY_B else "a.prof"
        report.add(
            f"{constant}: which of the two gains", names[constant] in (right, right[0]), 2,
            f"you said {names[constant]!r}", hint, machine,
        )  # fmt: skip


def record(grader_runs: GraderRuns) -> None:
    """Make all runs that any submission may need, for some sizes."""
    for recipe, sizes in SIZES.items():
        for n in sizes[::4]:
            profile_of(grader_runs, recipe, n)


def _grade_dumps(
    stack_here: str, file: Path, profiles: list[tuple[Way, Seen]], report: Report
) -> None:
    with World() as world:
        dumps: list[tuple[str, Path, dict[str, Any], str]] = []
        for name in ("a.prof", "b.prof"):
            path = HANDED_OUT / name
            dumps.append((f"{name}, as handed out", path, longest(rows_of(path)), ""))
        for recipe, profile in profiles:
            path = world.folder / f"{secrets.token_hex(4)}.prof"
            dump(profile, path)
            label = f"a new dump: {recipe.what}, {profile.n} pages"
            dumps.append((label, path, longest(profile.answer["profile"]), profile.machine))
        jobs = [
            {"function": "read", "how": "call", "args": [str(path)]} for _, path, *_ in dumps
        ]  # fmt: skip
        outcome = room.run(stack_here, file, jobs, room.NOT_COUNTABLE)
    report.stopped = report.stopped or outcome.stopped
    for (label, _, line, machine), answer in zip(dumps, outcome.answers, strict=True):
        truth = [kind(line), line["function"], line["nc"]]
        value = answer.get("value")
        if value is None:  # nothing was said, so nothing is told
            message = answer.get("error") or "you say None"
            report.add(
                label, False, 2, message, "Which line has the most time of its own?", machine
            )
            continue
        parts = value if isinstance(value, list) and len(value) == len(PARTS) else [None] * 3
        wrong = [
            part for part, stated, right in zip(PARTS, parts, truth, strict=True) if stated != right
        ]
        message = f"{wrong[0]} is wrong: " if wrong else ""
        message += f"you say {value!r}; the line is {line['file']}:{line['line']}"
        message += f"({line['function']}), called {line['nc']} times, and it {truth[0]}"
        hint = PARTS[wrong[0]] if wrong else ""
        report.add(label, max(0, 2 - len(wrong)), 2, message, hint, machine)


#: The parts of an answer, in their order, and where to look when one is wrong.
PARTS = {
    "what it does": "Does that function wait for somebody, or does it work?",
    "the function": "The largest own time, not the largest cumulative time.",
    "the count": "Calls, not primitive calls: of 12/3 it is the first.",
}
