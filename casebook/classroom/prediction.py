"""How each lab begins: does the file run, and what does it predict, before anything is measured?"""

import contextlib
import json
from pathlib import Path
from typing import Any

from casebook.classroom import room
from casebook.classroom.bench import OWN
from casebook.classroom.report import Report
from casebook.laboratory import measurements


def entered(
    stack: str, within: str, file: Path, report: Report, of: int, names: tuple[str, ...], **how: Any
) -> tuple[dict[str, Any], str] | None:
    """Run a file for the first time: its names, and its prediction in words.

    stack: that of the lab; within: the one that it runs in here; of: the points of the lab; names:
    of constants, PREDICTION among them; how: of room.run. None, and the report says why, where
    there is nothing to go on with.
    """
    first = room.run(within, file, [], names=names, **how)
    if within == OWN and first.error.startswith(("ModuleNotFoundError", "ImportError")):
        report.leave(f"the file runs ({first.error})", of, stack)
        return None
    if first.stopped or first.error:
        report.stopped = first.stopped
        said = first.error or first.stopped
        report.give("the file runs", False, of, said, "Mend that first.")
        return None
    guess = kept(file, first.names["PREDICTION"])
    if guess is None:
        report.give(
            "a prediction is entered", False, of, "nothing was measured",
            "Enter PREDICTION before anything is measured: you can only do it once.",
        )  # fmt: skip
        return None
    return first.names, f"you said {guess['prediction']!r} on {guess['at']}"


def kept(submission: Path, entered: Any) -> dict[str, Any] | None:
    """The first prediction that was graded with this file: {"prediction", "at"}; None where none
    was ever entered. It stands beside the file, as NAME.prediction.json, and is not changed again.
    """
    path = submission.with_suffix(".prediction.json")
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"prediction": found["prediction"], "at": str(found["at"])}
    if entered is None:
        return None
    first = {"prediction": entered, "at": measurements.now()}
    with contextlib.suppress(OSError):  # handed in, and in a folder that may only be read
        path.write_text(json.dumps(first) + "\n", encoding="utf-8")
    return first
