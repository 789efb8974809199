"""How long each chapter takes and on what, and how much time is left.

A line per chapter, and a bar at a terminal.

What chapters took in the last build here is kept in .casebook/timing.json. A machine file brings
what they took there; scaled by how fast this machine is, that is the first estimate of a new one.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from tqdm import tqdm

from casebook import places, spans
from casebook.laboratory import machine_files
from casebook.laboratory.conditions import unit_ms
from casebook.pages.contents import Book

#: A build that takes more than this many times what is expected has grown.
MOST_GROWTH = 1.25
#: The estimate trusts what was known before like an observation of this share of the whole build.
TRUST = 0.25


@dataclass(frozen=True)
class ChapterTime:
    """What a chapter took, in seconds: five parts of its wall time, and what it computed.

    kernel_s: until its first cell ran, and after its last; environment_s: making environments;
    wait_s: waiting for the clock; clock_s: holding it, alone; counting_s: measuring beside others;
    drawing_s: everything else. cpu_s: processor time of its kernel and of what that waited for.
    """

    kernel_s: float = 0
    environment_s: float = 0
    wait_s: float = 0
    clock_s: float = 0
    counting_s: float = 0
    drawing_s: float = 0
    cpu_s: float = 0

    @property
    def other_s(self) -> float:
        """Return the wall time in which others may hold the clock, without waiting for it."""
        return self.kernel_s + self.environment_s + self.counting_s + self.drawing_s

    @property
    def measuring_s(self) -> float:
        """Return the wall time of measurements, alone and beside others."""
        return self.clock_s + self.counting_s

    @property
    def wall_s(self) -> float:
        """Return the whole wall time."""
        return self.other_s + self.wait_s + self.clock_s

    def scaled(self, ratio: float) -> "ChapterTime":
        """Return the time on a machine whose processor takes `ratio` times as long for the same.

        Only what was computed gets longer, and not what was waited for.
        """
        own_s = self.other_s + self.clock_s
        share = min(1.0, self.cpu_s / own_s) if own_s else 1.0
        factor = 1 + share * (ratio - 1)
        return ChapterTime(**{name: value * factor for name, value in asdict(self).items()})


#: What a chapter is expected to take about which nothing is known.
USUAL = ChapterTime(kernel_s=5, counting_s=15, drawing_s=5, cpu_s=15)
#: The same if it measures nothing, since a machine file answers.
USUAL_OF_FILE = ChapterTime(kernel_s=2, drawing_s=4, cpu_s=3)


def chapter_time(notes: Path, wall_s: float) -> ChapterTime:
    """Add up the spans that a chapter's kernel has noted (casebook/spans.py).

    Parameters:
        notes: the file, which may be missing.
        wall_s: what the chapter took in all.
    """
    rows = _rows(notes)

    def total(kind: str, unit: str = "wall_s", outside: Iterable[str] = ()) -> float:
        return sum(
            row[unit]
            for row in rows
            if row["kind"] == kind and not {*outside, kind} & {*row["within"]}
        )

    cells_s = total(spans.CELL)
    wait_s = total(spans.WAIT)
    clock_s = total(spans.CLOCK)
    environment_s = total(spans.ENVIRONMENT, outside=(spans.CLOCK, spans.MEASUREMENT))
    counting_s = total(spans.MEASUREMENT, outside=(spans.CLOCK,))
    inside_s = wait_s + clock_s + environment_s + counting_s
    parts: dict[str, float] = {
        "kernel_s": wall_s - cells_s, "environment_s": environment_s, "wait_s": wait_s,
        "clock_s": clock_s, "counting_s": counting_s, "drawing_s": cells_s - inside_s,
        "cpu_s": total(spans.CELL, "cpu_s"),
    }  # fmt: skip
    return ChapterTime(**{name: round(max(0.0, value), 2) for name, value in parts.items()})


def measurement_times(notes: Path) -> dict[str, tuple[int, float, float]]:
    """Add up a chapter's measurements by what was measured: (how many, wall_s, cpu_s)."""
    times: dict[str, tuple[int, float, float]] = {}
    for row in _rows(notes):
        if row["kind"] == spans.MEASUREMENT and spans.MEASUREMENT not in row["within"]:
            count, wall_s, cpu_s = times.get(row["label"], (0, 0.0, 0.0))
            times[row["label"]] = (count + 1, wall_s + row["wall_s"], cpu_s + row["cpu_s"])
    return times


def _rows(notes: Path) -> list[dict]:
    try:
        return [json.loads(line) for line in notes.read_text().splitlines()]
    except (OSError, ValueError):
        return []


def read(book: Book, source: str = "") -> dict[str, ChapterTime]:
    """Return what each chapter took when it was executed here last, by its file's stem.

    source: see Timing.
    """
    return _read(book, source, "chapters")


def read_measured(book: Book) -> dict[str, ChapterTime]:
    """Return what each chapter took here when it measured most, by its file's stem.

    A later build takes from the store what has not changed, and says nothing of a first one.
    """
    return _read(book, "", "measured")


def _read(book: Book, source: str, kind: str) -> dict[str, ChapterTime]:
    try:
        return from_json(json.loads(_file_of(book, source).read_text())[kind])
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def from_json(chapters: Mapping[str, Mapping[str, float]]) -> dict[str, ChapterTime]:
    """Return the times of chapters from their fields; a chapter without all of them is left out."""
    names = {field.name for field in fields(ChapterTime)}
    return {
        stem: ChapterTime(**{name: float(values[name]) for name in names})
        for stem, values in chapters.items()
        if names <= values.keys()
    }


def _file_of(book: Book, source: str) -> Path:
    return book.root / places.LOCAL_NAME / f"timing{source}.json"


def left_s(times: Iterable[ChapterTime], lanes: int) -> float:
    """Return how long chapters take together.

    While one holds the clock, the others mostly wait; what else they do, they do side by side.
    Seven builds took between 1.02 and 1.06 times as long as this says of what they noted.
    """
    times = list(times)
    if not times:
        return 0.0
    clock_s = sum(chapter.clock_s for chapter in times)
    other_s = sum(chapter.other_s for chapter in times)
    longest_s = max(chapter.clock_s + chapter.other_s for chapter in times)
    return max(clock_s + other_s / lanes, longest_s)


class Timing:
    """Tells the progress of a build; a context manager, of which threads may take chapters.

    Parameters:
        book: whose chapters are executed.
        names: of the chapters to execute.
        lanes: how many of them at a time.
        source: what else they are made of than this machine's measurements.
        expected: what chapters may take that were never executed here.
    """

    def __init__(
        self,
        book: Book,
        names: list[str],
        lanes: int,
        source: str = "",
        expected: Mapping[str, ChapterTime] | None = None,
    ):
        self._file, self._known = _file_of(book, source), read(book, source)
        self._measured = _read(book, source, "measured")
        self._measurements: dict[str, dict[str, tuple[int, float, float]]] = {}
        former = {**(expected or {}), **self._known}
        usual = USUAL_OF_FILE if source else USUAL
        self._expected = {name: former.get(name, usual) for name in names}
        self._share = dict.fromkeys(names, 0.0)
        self._began, self._lanes = time.monotonic(), lanes
        self._total_s = left_s(self._expected.values(), lanes)
        self._bar = tqdm(
            total=max(1, int(sum(self._expected_s(name) for name in names))),
            bar_format="{desc} {percentage:3.0f}% |{bar:20}| {elapsed}{postfix}",
            leave=False,
            disable=None,
            file=sys.stderr,
        )

    def __enter__(self) -> "Timing":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        summary: dict[str, Any] = {}
        summary["chapters"] = {name: asdict(time) for name, time in sorted(self._known.items())}
        summary["measured"] = {
            name: asdict(max(time, self._measured.get(name, time), key=attrgetter("measuring_s")))
            for name, time in sorted(self._known.items())
        }
        if self._measurements:
            summary["measurements"] = self._measurements
            summary["wall_s"] = round(time.monotonic() - self._began, 1)
        self._file.write_text(json.dumps(summary, indent=1) + "\n")

    @contextlib.contextmanager
    def chapter(self, name: str, notes: Path) -> Iterator[None]:
        """Time a chapter while it is executed; print the time left, and at its end its own.

        Parameters:
            name: its file's stem.
            notes: where its kernel notes its spans.
        """
        began = time.monotonic()
        self.print_line(name, f"{duration(self.estimate_s())} left in all")
        yield
        took = chapter_time(notes, time.monotonic() - began)
        self._known[name], self._measurements[name] = took, measurement_times(notes)
        self.show(name, 1.0, "executed")
        self.print_line(name, f"executed in {took.wall_s:.0f} s")

    def estimate_s(self) -> float:
        """Estimate the seconds that are left, from what was expected and how fast it goes."""
        remaining = [_part(time, 1 - self._share[name]) for name, time in self._expected.items()]
        remaining_s = left_s(remaining, self._lanes)
        done_s = self._total_s - remaining_s
        trust_s = TRUST * self._total_s
        pace = (time.monotonic() - self._began + trust_s) / (done_s + trust_s) if trust_s else 1.0
        return remaining_s * pace

    def show(self, name: str, share: float, line: str) -> None:
        """Show what a chapter is doing at the bar, and the share of it that is done."""
        self._share[name] = share
        done_s = sum(self._share[chapter] * self._expected_s(chapter) for chapter in self._expected)
        self._bar.set_description_str(self._titled(name, line), refresh=False)
        self._bar.set_postfix_str(f"{duration(self.estimate_s())} left", refresh=False)
        self._bar.n = int(done_s)
        self._bar.refresh()

    def print_line(self, name: str, line: str) -> None:
        """Print a line about a chapter, above the bar."""
        tqdm.write(self._titled(name, line), file=sys.stderr)

    def _expected_s(self, name: str) -> float:
        return self._expected[name].clock_s + self._expected[name].other_s

    def _titled(self, name: str, line: str) -> str:
        number = [*self._expected].index(name) + 1
        return f"[{number}/{len(self._expected)}] {name}{': ' * bool(line)}{line}"


def _part(time: ChapterTime, share: float) -> ChapterTime:
    return ChapterTime(**{name: value * share for name, value in asdict(time).items()})


def on_this_machine(machine: machine_files.Machine) -> dict[str, ChapterTime]:
    """Return what the chapters may take here, by what they took on another machine.

    It is scaled by how long both need for the same unit of work.
    """
    units = machine.about.get("unit_ms", [])
    ratio = unit_ms() / units[1] if len(units) == 3 and units[1] > 0 else 1.0
    return {stem: time.scaled(ratio) for stem, time in from_json(machine.chapters).items()}


def growth(actual: Mapping[str, ChapterTime], expected: Mapping[str, ChapterTime]) -> float | None:
    """Return how many times as long the chapters took as expected.

    They are those that both have; None if there are none.
    """
    common = actual.keys() & expected.keys()
    if not common:
        return None
    took_s, expected_s = (
        sum(times[stem].clock_s + times[stem].other_s for stem in common)
        for times in (actual, expected)
    )
    return took_s / expected_s if expected_s else None


def duration(seconds: float) -> str:
    """Return a duration in words: "about 40 s", "about 7 min"."""
    if seconds < 90:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    return f"about {round(seconds / 60)} min"


def table(book: Book) -> str:
    """Return where the time of the last measuring build went, as text, in seconds.

    A row per chapter, the longest first, then a row per measurement.

    Raises FileNotFoundError if none was measured here.
    """
    summary = json.loads(_file_of(book, "").read_text())
    chapters = from_json(summary["chapters"])
    names = [field.name for field in fields(ChapterTime)]
    heads = ["wall", *(name.removesuffix("_s") for name in names)]
    lines = [f"{'chapter':<34}" + "".join(f"{head:>12}" for head in heads)]
    totals = ChapterTime(**{n: sum(getattr(t, n) for t in chapters.values()) for n in names})
    rows = sorted(chapters.items(), key=lambda row: -row[1].wall_s)
    for stem, took in [*rows, ("all", totals)]:
        numbers = [took.wall_s, *(getattr(took, name) for name in names)]
        lines.append(f"{stem:<34}" + "".join(f"{number:>12.0f}" for number in numbers))
    lines.append(f"\n{'chapter, measurement':<60}{'count':>8}{'wall':>10}{'cpu':>10}")
    parts = [
        (f"{stem}, {label}", *numbers)
        for stem, of_chapter in summary.get("measurements", {}).items()
        for label, numbers in of_chapter.items()
    ]
    for label, count, wall_s, cpu_s in sorted(parts, key=lambda row: -row[2]):
        lines.append(f"{label:<60}{count:>8}{wall_s:>10.0f}{cpu_s:>10.0f}")
    if "wall_s" in summary:
        lines.append(f"\nexecuted in {summary['wall_s']:.0f} s")
    return "\n".join(lines)
