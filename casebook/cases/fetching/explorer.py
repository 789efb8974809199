"""What the explorer of chapter 4 shows: which combinations there are, and a timeline of each.

A combination is a Python and what is installed and used on it. Each is looked at over HTTPS and
over plain HTTP, with several numbers of requests. A build measures some of these timelines
(`is_live`); the others come from the reference run, and all say which.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import pandas as pd

from casebook import stacks
from casebook.cases.fetching import analysis, modes, observations, phases, trust
from casebook.cases.fetching.bench import fetching
from casebook.cases.fetching.observations import Observation
from casebook.laboratory import measurements, recorded_rows
from casebook.laboratory.experiment import can_run
from casebook.laboratory.progress import Progress
from casebook.mistakes import for_readers
from casebook.words import REFERENCE, is_from_machine_file, join

PYTHONS = ("2.7", "3.7", "today")
SCHEMES = ("https", "http")
SIZES = (3, 10, 30)
#: What the server waits before each response, in both modes: a verdict needs no more.
DELAY_S = 0.1
#: What a quick build measures: one size, so that a first build stays short.
_QUICK_SIZES = (10,)
#: The sizes that the talk of 2019 shows; what it says of a stack it says of these.
PUBLISHED_SIZES = (3, 5, 10)

#: What can be installed and used, in the order in which it is ticked.
PARTS = ("pyopenssl", "injected", "gevent_openssl", "recv_into")


@dataclass(frozen=True)
class Combination:
    """A Python and what is installed and used on it.

    python: of PYTHONS; parts: of PARTS, in their order. stack: its name in env/stacks.toml;
    steps: taken in the place of the stack's own, if they are not empty.
    """

    python: str
    parts: tuple[str, ...]
    stack: str
    steps: tuple[str, ...] = ()

    def as_stack(self) -> stacks.Stack:
        """Return the stack as it is measured."""
        stack = stacks.get(self.stack)
        return dataclasses.replace(stack, steps=self.steps) if self.steps else stack


#: A combination, a scheme and a number of requests.
Choice = tuple[Combination, str, int]

#: The parts of stages 1 to 4 where nobody injects by hand.
_STAGES = ((), PARTS[:1], ("pyopenssl", "gevent_openssl"), ("pyopenssl", *PARTS[2:]))
#: Steps in which gevent_openssl is there and not used, as nobody injects.
_UNUSED = ("gevent_openssl", "grequests")

#: On the old Pythons requests injects pyOpenSSL on its own: nobody does it by hand.
COMBINATIONS = (
    *(Combination("2.7", parts, f"stage-{i}-py27") for i, parts in enumerate(_STAGES, 1)),
    *(Combination("3.7", parts, f"stage-{i}-py37") for i, parts in enumerate(_STAGES, 1)),
    Combination("today", (), "stage-1-today"),
    Combination("today", ("pyopenssl",), "stage-2-today"),
    Combination("today", ("pyopenssl", "injected"), "stage-2-injected-today"),
    Combination("today", _STAGES[2], "stage-3-today", _UNUSED),
    Combination("today", PARTS[:3], "stage-3-today"),
    Combination("today", _STAGES[3], "stage-4-today", _UNUSED),
    Combination("today", PARTS, "stage-4-today"),
)


@dataclass(frozen=True, kw_only=True)
class Timeline(Observation):
    """What became of the requests of one combination: the observed timeline of its stack."""

    combination: Combination
    scheme: str

    @property
    def version(self) -> str:
        """Return the exact version of the Python."""
        return self.python

    @property
    def wall_s(self) -> float:
        """Return the wall time of this run, with the instrument in it."""
        return round(self.answer["wall_s"], 4)

    @property
    def requests(self) -> list[phases.Row]:
        """Return the requests in the form of casebook.cases.fetching.phases, in ms."""
        return phases.of_requests(self.frame, 1)

    @property
    def heartbeats_ms(self) -> list[float]:
        """Return the moments at which the event loop beat."""
        return [round(1000 * moment_s, 1) for moment_s in self.heartbeats]

    @property
    def peak_waiting(self) -> int:
        """Return how many requests waited for their responses at the same time, at most."""
        return phases.most_waiting(self.frame)

    @property
    def verdict(self) -> str:
        """Return `serial` if no two requests waited at the same time, else `concurrent`.

        It is counted in the picture itself; no clock decides it.
        """
        return analysis.verdict_by_peak(self.peak_waiting)

    @property
    def published(self) -> str:
        """Return what the sources say of it, "fast" or "slow"; empty if they say nothing."""
        if self.scheme != "https" or self.n not in PUBLISHED_SIZES or self.combination.steps:
            return ""
        return stacks.get(self.stack).says.get("verdict", "")


def everything() -> list[Choice]:
    """Return all that the explorer can show: combination, scheme and number of requests."""
    return list(product(COMBINATIONS, SCHEMES, SIZES))


def is_live(n: int) -> bool:
    """Say whether a build measures such a timeline; in the full mode it measures all of them."""
    return modes.current() == modes.FULL or n in _QUICK_SIZES


def timelines() -> list[Timeline]:
    """Return what the explorer shows, measured now or recorded, in the order of `everything`.

    If a Python is missing, the recorded ones stand in; what was not recorded is measured if
    possible. Raises as runs.observe.
    """
    by_choice = {_choice(timeline): timeline for timeline in recorded()}
    available = {combination for combination in COMBINATIONS if can_run(combination.as_stack())}
    choices = everything()
    todo = [
        choice
        for choice in choices
        if choice[0] in available and (is_live(choice[2]) or choice not in by_choice)
    ]
    by_choice |= {_choice(timeline): timeline for timeline in measure(todo)}
    return [by_choice[choice] for choice in choices if choice in by_choice]


def _choice(timeline: Timeline) -> Choice:
    return timeline.combination, timeline.scheme, timeline.n


@for_readers
def table(timelines: Iterable[Timeline]) -> pd.DataFrame:
    """Return timelines as rows.

    Columns: combination ("2.7: pyopenssl"), python, parts, scheme, n, stack, wall_s,
    peak_waiting, verdict, published, version, source, measured_at.
    """
    columns = ["scheme", "n", "stack", "wall_s", "peak_waiting", "verdict"]
    columns += ["published", "version", "source", "measured_at"]
    rows = []
    for timeline in timelines:
        python, parts = (
            timeline.combination.python,
            " + ".join(timeline.combination.parts) or "nothing",
        )
        row = {"combination": f"{python}: {parts}", "python": python, "parts": parts}
        rows.append(row | {name: getattr(timeline, name) for name in columns})
    return pd.DataFrame(rows)


@for_readers
def overview(timelines: Iterable[Timeline]) -> pd.DataFrame:
    """Return a row for each combination and scheme.

    Columns python, parts, scheme, the wall time in seconds for each size ("n = 3", …; None if
    there is no timeline), now (which sizes were measured now, in words), published ("fast",
    "slow", or nothing).
    """
    rows, columns = [], ["python", "parts", "scheme"]
    for values, group in table(timelines).groupby(columns, sort=False):
        walls = group.set_index("n")["wall_s"]
        measured_sizes = group.loc[
            (group["source"] != REFERENCE) & (not is_from_machine_file()), "n"
        ]
        row = dict(zip(columns, values, strict=True)) | {f"n = {n}": walls.get(n) for n in SIZES}
        row["now"] = (
            "all" if len(measured_sizes) == len(group) else join(map(str, measured_sizes)) or "none"
        )
        rows.append(row | {"published": group["published"].max()})
    return pd.DataFrame(rows)


def recorded() -> list[Timeline]:
    """Return the reference machine's timelines of stacks and steps that are still combined."""
    combinations = {
        (combination.stack, " ".join(combination.as_stack().steps)): combination
        for combination in COMBINATIONS
    }
    match = {"kind": "timeline", "delay_s": DELAY_S, "trust": trust.AUTHORITY}
    rows = recorded_rows.of_reference(observations.OBSERVATIONS)
    for name, value in match.items():
        rows = rows[rows[name] == value] if len(rows) else rows
    timelines = []
    for row in rows.to_dict("records"):
        combination = combinations.get((row["stack"], row["steps"]))
        if combination and row["n"] in SIZES and row["client"] == combination.as_stack().client:
            fields = measurements.of_class(Observation, row)
            timelines.append(Timeline(**fields, combination=combination, scheme=row["scheme"]))
    return timelines


def measure(choices: list[Choice]) -> list[Timeline]:
    """Measure timelines now."""
    timelines = []
    with Progress(len(choices), "the explorer's timelines") as progress:
        for combination, scheme, n in choices:
            stack = combination.as_stack()
            parameters = {"n": n, "delay_s": DELAY_S, "trust": trust.AUTHORITY, "scheme": scheme}
            parameters |= {"client": stack.client, "gather": "timeline"}
            experiment = fetching(stack, stack.client, "timeline")
            observation = observations.from_measurement(
                experiment.first_answer([stack], parameters)
            )
            timelines.append(Timeline(**vars(observation), combination=combination, scheme=scheme))
            progress.step()
    return timelines
