"""What each chapter costs, and how much time is left: a line per chapter, and a bar at a terminal.

What chapters took in the last build is in .casebook/costs.json, to tell the time left.
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator

from tqdm import tqdm

from casebook import places
from casebook.pages.contents import Book

#: What a chapter is expected to take before it was ever executed here, in seconds.
USUAL_S = 25.0


class Costs:
    """Tells the progress of a build; a context manager, of which threads may take chapters.

    names: of the chapters to execute; lanes: how many of them at a time.
    """

    def __init__(self, book: Book, names: list[str], lanes: int):
        self._file = book.root / places.LOCAL.name / "costs.json"
        try:
            self._known = {k: float(v) for k, v in json.loads(self._file.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            self._known = {}
        self._names, self._lanes, self._alone = names, lanes, threading.Lock()
        self._begun_s: dict[str, float] = {}  # of chapters that have begun: expected seconds done
        self._total = sum(map(self._expected_s, names))
        self._began, self._done_s = time.monotonic(), 0.0
        self._bar = tqdm(
            total=round(self._total), leave=False, disable=None, file=sys.stderr,
            bar_format="{desc} {percentage:3.0f}% |{bar:20}| {elapsed}, about {remaining} left",
        )  # fmt: skip

    def __enter__(self) -> "Costs":
        return self

    def __exit__(self, *exception) -> None:
        self._bar.close()

    @contextlib.contextmanager
    def chapter(self, name: str) -> Iterator["_Chapter"]:
        """While a chapter is executed. Prints what it cost at its end."""
        started, expected_s = time.monotonic(), self._expected_s(name)
        count = f"[{self._names.index(name) + 1}/{len(self._names)}]"
        with self._alone:
            done_s = self._done_s + sum(self._begun_s.values())
            pace = (started - self._began) / done_s if self._done_s else 1 / self._lanes
            left_s = (self._total - done_s) * pace
            self.tell(f"{count} {name}, about {left_s:.0f} s left in all")
        yield _Chapter(self, name, f"{count} {name.rpartition('/')[2]}", expected_s)
        seconds = time.monotonic() - started
        with self._alone:
            self._begun_s.pop(name, None)
            self._done_s += expected_s
            self._known[name] = round(seconds, 1)
            self.tell(f"{count} executed in {seconds:.1f} s")
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n")

    def describe(self, name: str, line: str, done_s: float) -> None:
        """Show a line at the bar, and how many expected seconds of a chapter are done."""
        with self._alone:
            self._begun_s[name] = done_s
            self._bar.set_description_str(line, refresh=False)
            done_s = self._done_s + sum(self._begun_s.values())
            self._bar.n = min(round(done_s), self._bar.total or 0)
            self._bar.refresh()

    def tell(self, line: str) -> None:
        """Print a line, above the bar."""
        tqdm.write(line, file=sys.stderr)
        sys.stderr.flush()

    def _expected_s(self, name: str) -> float:
        return self._known.get(name, USUAL_S)


class _Chapter:
    """The progress of one chapter."""

    def __init__(self, costs: Costs, name: str, title: str, expected_s: float):
        self._costs, self._name, self._title, self._expected_s = costs, name, title, expected_s
        self._cells, self._share = 0, 0.0

    def cell(self, of: int) -> None:
        """A code cell is done, one of so many."""
        self._cells += 1
        self._share = min(1.0, self._cells / of)
        self.say("")

    def say(self, line: str) -> None:
        """What the chapter's kernel says it is doing."""
        said = ": ".join(filter(None, (self._title, line)))
        self._costs.describe(self._name, said, self._share * self._expected_s)

    def tell(self, line: str) -> None:
        """Print a line that names the chapter."""
        self._costs.tell(f"{self._title}: {line}")

    def again(self, claims: list[dict]) -> None:
        """The chapter is executed once more because of these claims."""
        self._cells = 0
        names = ", ".join(claim["id"] for claim in claims)
        self.tell(f"came out otherwise, so it is measured once more: {names}")
