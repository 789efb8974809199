"""Shows what is being measured or prepared, and how much of it is left.

In a terminal and in JupyterLab that is a bar of tqdm, which goes when all is done. While the book
is built, a chapter's kernel has no terminal: it writes one line into the file that
CASEBOOK_PROGRESS names, which the build shows beside the chapter's name.
"""

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from IPython import get_ipython
from IPython.display import DisplayHandle, display
from tqdm import tqdm

VARIABLE = "CASEBOOK_PROGRESS"


class Progress:
    """A progress bar; a context manager.

    Parameters:
        total: the number of steps.
        label: what is done, in words.
        unit: what a step is called.
    """

    def __init__(self, total: int, label: str, unit: str = "run"):
        self._label, self._total, self._done = label, total, 0
        in_notebook = hasattr(get_ipython(), "kernel")
        is_shown = VARIABLE not in os.environ and (in_notebook or sys.stderr.isatty())
        # A notebook's bar has a place of its own: none is drawn below another.
        self._place = _Place() if is_shown and in_notebook else None
        options = {"file": self._place, "position": 0} if self._place else {}
        self._bar = tqdm(
            total=total, desc=label, unit=unit, leave=False, disable=not is_shown, **options
        )
        self._show()

    def step(self, count: int = 1) -> None:
        """Advance by one step, or by `count` steps."""
        self._done += count
        self._bar.update(count)
        self._show()

    def reach(self, steps: int) -> None:
        """Advance to a number of steps in all; never back, and never beyond the last."""
        if (advance := min(steps, self._total) - self._done) > 0:
            self.step(advance)

    def describe(self, line: str) -> None:
        """Show on the bar what is done just now; without a bar, on standard error."""
        if self._bar.disable:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.set_description(line)

    def print_line(self, line: str) -> None:
        """Print a line above the bar, or on standard error if there is no bar."""
        tqdm.write(line, file=sys.stderr)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        if self._place:
            self._place.leave()
        tell_build("")

    def _show(self) -> None:
        tell_build(f"{self._label} {self._done}/{self._total}")


class _Place:
    """A place in a cell's output for a line that changes; what tqdm takes as its file.

    On standard error JupyterLab keeps the line when tqdm has emptied it: a strip of red. A place
    that was left is taken again by the next bar of the same cell, since JupyterLab folds a cell's
    outputs away where there are many.
    """

    encoding = "utf-8"  # tqdm draws its bar of smoother characters then

    #: The cell that was executed last, by its number, and the places in it that were left.
    _free: ClassVar[tuple[int, list[DisplayHandle]]] = (0, [])

    def __init__(self) -> None:
        cell = get_ipython().execution_count
        if self._free[0] != cell:
            _Place._free = (cell, [])
        free = self._free[1]
        self._shown = free.pop() if free else display({}, raw=True, display_id=True)

    def leave(self) -> None:
        """Free the place for the next bar of the cell."""
        self._free[1].append(self._shown)

    def write(self, text: str) -> None:
        """Show a line in the place of the one before; nothing in place of an empty one."""
        line = text.strip()
        self._shown.update({"text/plain": line} if line else {}, raw=True)

    def flush(self) -> None:
        """Do nothing: what is written is shown."""


def tell_changed(names: Iterable[str]) -> None:
    """Tell the build why something is measured again.

    Parameters:
        names: of what has changed since the last measurement.
    """
    if (file := os.environ.get(VARIABLE)) and (lines := "".join(f"{name}\n" for name in names)):
        with changes_file(Path(file)).open("a") as changes:
            changes.write(lines)


def changes_file(progress: Path) -> Path:
    """Return the file in which a kernel notes what has changed, beside that of its progress."""
    return progress.with_name(f"{progress.name}-changed")


def tell_build(line: str) -> None:
    """Show a line beside the chapter that is being built. Outside a build, do nothing."""
    file = os.environ.get(VARIABLE)
    if file:
        draft = Path(f"{file}.{os.getpid()}.{threading.get_ident()}")  # two may measure at once
        draft.write_text(line)
        draft.replace(file)
