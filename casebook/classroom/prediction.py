"""How each lab begins: does the file run, and what does it predict, before anything is measured?"""

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

from casebook import places
from casebook.classroom import room
from casebook.classroom.grade_report import Report
from casebook.classroom.grader_runs import OWN
from casebook.laboratory import measurements


def entered(
    stack: str,
    stack_here: str,
    file: Path,
    report: Report,
    points: int,
    names: tuple[str, ...],
    **options: Any,
) -> tuple[dict[str, Any], str] | None:
    """Run a file for the first time.

    Returns its names, and its prediction in words, "" if none was entered.

    stack: that of the lab; stack_here: the one that it runs in here; points: of the lab; names: of
    constants, PREDICTION among them; options: of room.run. Returns None, and the report says why,
    if there is nothing to go on with.
    """
    first = room.run(stack_here, file, [], names=names, **options)
    if stack_here == OWN and first.error.startswith(("ModuleNotFoundError", "ImportError")):
        report.leave(f"the file runs ({first.error})", points, stack)
        return None
    if first.stopped or first.error:
        report.stopped = first.stopped
        message = first.error or first.stopped
        report.add("the file runs", False, points, message, "Mend that first.")
        return None
    guess = remember(file, first.names["PREDICTION"])
    if guess is None and _is_unanswered(file, report.lab):
        report.add("a prediction is entered", False, points, "nothing was measured", ENTER)
        return None
    return first.names, f"you said {guess['prediction']!r} on {guess['at']}" if guess else ""


def grade(report: Report, guess: str, truth: str, machine: str = "") -> None:
    """Add the item of the prediction: its point for having been entered, right or wrong.

    guess: of `entered`; truth: what came out, kept from those who predicted nothing; machine: where
    it was measured, empty for here.
    """
    label = "a prediction is entered"
    if guess:
        message = f"{guess}; {truth}. It costs nothing to have been wrong."
        report.add(label, True, 1, message, "", machine)
    else:
        report.add(label, False, 1, "none was entered; all else is graded", ENTER)


#: The hint if no prediction was entered.
ENTER = "Enter PREDICTION before anything is measured: you can only do it once."


def _is_unanswered(file: Path, lab: str) -> bool:
    """Check whether a file has no function, or is as it was handed out.

    Comments and the file's docstring do not count: in nbgrader's notebook it is another one.
    """
    handed_out = places.ROOT / "classroom" / "labs" / lab / "answer.py"
    trees = [ast.parse(path.read_bytes()) for path in (file, handed_out)]
    for tree in trees:
        tree.body = tree.body[ast.get_docstring(tree) is not None :]
    has_code = any(isinstance(node, ast.FunctionDef) for node in ast.walk(trees[0]))
    return not has_code or ast.dump(trees[0]) == ast.dump(trees[1])


def remember(submission: Path, entered: Any) -> dict[str, Any] | None:
    """Return the first prediction that was graded with this file: {"prediction", "at"}.

    None if none was ever entered. It is stored beside the file, as NAME.prediction.json, and never
    changed.
    """
    path = submission.with_suffix(".prediction.json")
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {"prediction": stored["prediction"], "at": str(stored["at"])}
    if entered is None:
        return None
    first = {"prediction": entered, "at": measurements.utc_now()}
    with contextlib.suppress(OSError):  # handed in, and in a folder that may only be read
        path.write_text(json.dumps(first) + "\n", encoding="utf-8")
    return first
