"""What each chapter costs, and how much time is left: a line per chapter, and a bar at a terminal.

What chapters took in the last build is in .casebook/costs.json, to tell the time left.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator

from tqdm import tqdm

from casebook import places
from casebook.pages.contents import Book

#: What a chapter is expected to take before it was ever executed here, in seconds.
USUAL_S = 25.0


class Costs:
    """Tells the progress of a build; a context manager. names: of the chapters to execute."""

    def __init__(self, book: Book, names: list[str]):
        self._file = book.root / places.LOCAL.name / "costs.json"
        try:
            self._known = {k: float(v) for k, v in json.loads(self._file.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            self._known = {}
        self._names = names
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
        pace = (started - self._began) / self._done_s if self._done_s else 1
        left_s = (self._total - self._done_s) * pace
        count = f"[{self._names.index(name) + 1}/{len(self._names)}]"
        self.tell(f"{count} {name}, about {left_s:.0f} s left in all")
        yield _Chapter(self, f"{count} {name.rpartition('/')[2]}", expected_s)
        seconds = time.monotonic() - started
        self._done_s += expected_s
        self._known[name] = round(seconds, 1)
        self.tell(f"      executed in {seconds:.1f} s")
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n")

    def describe(self, line: str, done_s: float) -> None:
        """Show a line at the bar, and how many expected seconds of a chapter are done."""
        self._bar.set_description_str(line, refresh=False)
        self._bar.n = min(round(self._done_s + done_s), self._bar.total or 0)
        self._bar.refresh()

    def tell(self, line: str) -> None:
        """Print a line, above the bar."""
        tqdm.write(line, file=sys.stderr)
        sys.stderr.flush()

    def _expected_s(self, name: str) -> float:
        return self._known.get(name, USUAL_S)


class _Chapter:
    """The progress of one chapter."""

    def __init__(self, costs: Costs, title: str, expected_s: float):
        self._costs, self._title, self._expected_s = costs, title, expected_s
        self._cells, self._share = 0, 0.0

    def cell(self, of: int) -> None:
        """A code cell is done, one of so many."""
        self._cells += 1
        self._share = min(1.0, self._cells / of)
        self.say("")

    def say(self, line: str) -> None:
        """What the chapter's kernel says it is doing."""
        said = ": ".join(filter(None, (self._title, line)))
        self._costs.describe(said, self._share * self._expected_s)

    def again(self, claims: list[dict]) -> None:
        """The chapter is executed once more because of these claims."""
        self._cells = 0
        names = ", ".join(claim["id"] for claim in claims)
        self._costs.tell(f"      came out otherwise, so it is measured once more: {names}")
