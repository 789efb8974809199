"""A prediction: entered before anything is measured, and kept beside the submission."""

import contextlib
import json
from pathlib import Path
from typing import Any

from casebook.laboratory import measurements


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
