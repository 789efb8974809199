"""What the explorer of the preface shows: which combinations there are, and a timeline of each.

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
from casebook.cases.fetching.bench import Bench
from casebook.cases.fetching.observations import Observation
from casebook.laboratory import elsewhere, measurements
from casebook.laboratory.experiment import can_run
from casebook.laboratory.progress import Progress
from casebook.stacks import environments
from casebook.words import REFERENCE, is_of_file, join

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
    steps: taken in the place of the stack's own, where they are not empty.
    """

    python: str
    parts: tuple[str, ...]
    stack: str
    steps: tuple[str, ...] = ()

    def as_stack(self) -> stacks.Stack:
        """The stack as it is measured."""
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
        """The Python's, exactly."""
        return self.python

    @property
    def wall_s(self) -> float:
        """Of this run, with the instrument in it."""
        return round(self.answer["wall_s"], 4)

    @property
    def requests(self) -> list[phases.Row]:
        """As casebook.cases.fetching.phases has them, ms."""
        return phases.of_requests(self.frame, 1)

    @property
    def heartbeats_ms(self) -> list[float]:
        """When the event loop beat."""
        return [round(1000 * each, 1) for each in self.heartbeats]

    @property
    def most(self) -> int:
        """How many requests waited for their responses at the same time, at most."""
        return phases.most_waiting(self.frame)

    @property
    def verdict(self) -> str:
        """`serial` where no two requests waited at the same time, else `concurrent`.

        It is counted in the picture itself; no clock decides it.
        """
        return analysis.SERIAL if self.most <= 1 else analysis.CONCURRENT

    @property
    def published(self) -> str:
        """What the sources say of it, "fast" or "slow"; nothing where they say nothing."""
        if self.scheme != "https" or self.n not in PUBLISHED_SIZES or self.combination.steps:
            return ""
        return stacks.get(self.stack).says.get("verdict", "")


def everything() -> list[Choice]:
    """All that the explorer can show: combination, scheme and number of requests."""
    return list(product(COMBINATIONS, SCHEMES, SIZES))


def is_live(n: int) -> bool:
    """Whether a build measures such a timeline; in the full mode it measures all of them."""
    return modes.current() == modes.FULL or n in _QUICK_SIZES


def timelines() -> list[Timeline]:
    """What the explorer shows, measured now or recorded, in the order of `everything`.

    Where a Python is missing, the recorded ones stand in; what was not recorded is measured, where
    it can be. Raises as measure.observe.
    """
    shown = {_choice(each): each for each in recorded()}
    here = {each for each in COMBINATIONS if can_run(each.as_stack())}
    choices = everything()
    todo = [each for each in choices if each[0] in here and (is_live(each[2]) or each not in shown)]
    shown |= {_choice(each): each for each in measured(todo)}
    return [shown[each] for each in choices if each in shown]


def _choice(shown: Timeline) -> Choice:
    return shown.combination, shown.scheme, shown.n


def table(shown: Iterable[Timeline]) -> pd.DataFrame:
    """Timelines as rows: combination ("2.7: pyopenssl"), python, parts, scheme, n, stack, wall_s,
    most, verdict, published, version, source, measured_at."""
    columns = ["scheme", "n", "stack", "wall_s", "most", "verdict"]
    columns += ["published", "version", "source", "measured_at"]
    rows = []
    for each in shown:
        python, parts = each.combination.python, " + ".join(each.combination.parts) or "nothing"
        row = {"combination": f"{python}: {parts}", "python": python, "parts": parts}
        rows.append(row | {name: getattr(each, name) for name in columns})
    return pd.DataFrame(rows)


def overview(shown: Iterable[Timeline]) -> pd.DataFrame:
    """A row for each combination and scheme: python, parts, scheme, the wall time in seconds for
    each size ("n = 3", …; None where there is no timeline), now (which sizes were measured now,
    in words), published ("fast", "slow", or nothing)."""
    rows, which = [], ["python", "parts", "scheme"]
    for values, its in table(shown).groupby(which, sort=False):
        walls = its.set_index("n")["wall_s"]
        now = its.loc[(its["source"] != REFERENCE) & (not is_of_file()), "n"]
        row = dict(zip(which, values, strict=True)) | {f"n = {n}": walls.get(n) for n in SIZES}
        row["now"] = "all" if len(now) == len(its) else join(map(str, now)) or "none"
        rows.append(row | {"published": its["published"].max()})
    return pd.DataFrame(rows)


def recorded() -> list[Timeline]:
    """The timelines of the reference machine: of stacks and steps that are still combined."""
    known = {(each.stack, " ".join(each.as_stack().steps)): each for each in COMBINATIONS}
    shown = {"kind": "timeline", "delay_s": DELAY_S, "trust": trust.AUTHORITY}
    rows = elsewhere.of_reference(observations.OBSERVATIONS)
    for name, value in shown.items():
        rows = rows[rows[name] == value] if len(rows) else rows
    found = []
    for row in rows.to_dict("records"):
        which = known.get((row["stack"], row["steps"]))
        if which and row["n"] in SIZES and row["client"] == which.as_stack().client:
            its = measurements.of_class(Observation, row)
            found.append(Timeline(**its, combination=which, scheme=row["scheme"]))
    return found


def measured(choices: list[Choice]) -> list[Timeline]:
    """Timelines, measured now."""
    found = []
    with Progress(len(choices), "the explorer's timelines") as progress:
        for combination, scheme, n in choices:
            environment = environments.ensure(combination.as_stack())
            how = {"n": n, "delay_s": DELAY_S, "trust": trust.AUTHORITY}
            how["client"] = environment.stack.client
            seen = Bench(scheme).observation(environment, "timeline", **how)
            found.append(Timeline(**vars(seen), combination=combination, scheme=scheme))
            progress.step()
    return found
