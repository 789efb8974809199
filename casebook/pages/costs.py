"""What each chapter costs, and how much time is left: a line per chapter, and a bar at a terminal.

What chapters took in the last build is in .casebook/costs.json, to tell the time left.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from casebook import places
from casebook.pages.contents import Book

#: What a chapter is expected to take before it was ever executed here, in seconds.
USUAL_S = 25.0


def took_s(book: Book, of: str = "") -> dict[str, float]:
    """Seconds that each chapter took when it was executed here last, by its file's stem.

    of: see Costs.
    """
    try:
        found = json.loads(_file_of(book, of).read_text()).items()
        return {name: float(seconds) for name, seconds in found}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _file_of(book: Book, of: str) -> Path:
    return book.root / places.LOCAL_NAME / f"costs{of}.json"


class Costs:
    """Tells the progress of a build; a context manager, of which threads may take chapters.

    names: of the chapters to execute; lanes: how many of them at a time. of: what else they are
    made of than this machine's measurements.
    """

    def __init__(self, book: Book, names: list[str], lanes: int, of: str = ""):
        self._file, self._took_s = _file_of(book, of), took_s(book, of)
        self._expected_s = {name: self._took_s.get(name, USUAL_S) for name in names}
        self._done_s = dict.fromkeys(names, 0.0)  # of the expected ones
        self._began, self._lanes = time.monotonic(), lanes
        self._bar = tqdm(
            total=round(sum(self._expected_s.values())),
            bar_format="{desc} {percentage:3.0f}% |{bar:20}| {elapsed}, about {remaining} left",
            leave=False,
            disable=None,
            file=sys.stderr,
        )

    def __enter__(self) -> "Costs":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._took_s, indent=1, sort_keys=True) + "\n")

    @contextlib.contextmanager
    def chapter(self, name: str) -> Iterator[None]:
        """While a chapter is executed. Tells the time left at its beginning, its own at its end."""
        began, done_s = time.monotonic(), sum(self._done_s.values())
        pace = (began - self._began) / done_s if done_s else 1 / self._lanes
        left_s = (sum(self._expected_s.values()) - done_s) * pace
        self.tell(name, f"about {left_s:.0f} s left in all")
        yield
        self.show(name, 1.0, "executed")
        self._took_s[name] = round(time.monotonic() - began, 1)
        self.tell(name, f"executed in {self._took_s[name]} s")

    def show(self, name: str, share: float, line: str) -> None:
        """Show what a chapter is doing at the bar, and the share of it that is done."""
        self._done_s[name] = share * self._expected_s[name]
        self._bar.set_description_str(self._titled(name, line), refresh=False)
        self._bar.n = round(sum(self._done_s.values()))
        self._bar.refresh()

    def tell(self, name: str, line: str) -> None:
        """Print a line about a chapter, above the bar."""
        tqdm.write(self._titled(name, line), file=sys.stderr)

    def _titled(self, name: str, line: str) -> str:
        number = [*self._expected_s].index(name) + 1
        return f"[{number}/{len(self._expected_s)}] {name}{': ' * bool(line)}{line}"
