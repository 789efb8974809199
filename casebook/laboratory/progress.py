"""Shows what is being measured or prepared, and how much of it is left.

In a terminal and in JupyterLab that is a bar of tqdm. While the book is built, a chapter's kernel
has no terminal: it writes one line into the file that CASEBOOK_PROGRESS names, which the build
shows beside the chapter's name.
"""

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

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
        shown = VARIABLE not in os.environ and ("ipykernel" in sys.modules or sys.stderr.isatty())
        self._bar = tqdm(total=total, desc=label, unit=unit, leave=False, disable=not shown)
        self._tell()

    def step(self) -> None:
        """Advance by one step."""
        self._done += 1
        self._bar.update()
        self._tell()

    def say(self, line: str) -> None:
        """Print a line above the bar, or on standard error if there is no bar."""
        tqdm.write(line, file=sys.stderr)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        tell_build("")

    def _tell(self) -> None:
        tell_build(f"{self._label} {self._done}/{self._total}")


def tell_changed(names: Iterable[str]) -> None:
    """Tell the build why something is measured again.

    Parameters:
        names: of what has changed since the last measurement.
    """
    if (file := os.environ.get(VARIABLE)) and (lines := "".join(f"{name}\n" for name in names)):
        with changes_file(Path(file)).open("a") as said:
            said.write(lines)


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
