"""Reads a report of `doctor.py run --json`, for the page *Your program*.

A report is a stranger's text. What is taken out of it is numbers within bounds and short texts.
"""

import json
import math
from pathlib import Path
from typing import Any

from casebook import places
from casebook.errors import UsageError

#: Reports are some kilobytes. Numbers and texts of a report are cut at these.
MOST_BYTES, MOST, LONGEST, MOST_ROWS = 2_000_000, 10**9, 160, 12
#: What the doctor says of each thing to change; all but the first stand below it, with their names.
ADVISED = ("what", "remove", "add", "package", "saves")
#: What the doctor calls a client, and the book's programs with it.
CALLED = {"botocore": "boto3"}
#: Counts of a report, with what the page calls them.
COUNTED = {
    "connections": "TLS connections", "handshakes": "handshakes", "peak": "handshakes at once",
    "contexts": "contexts made", "loads": "certificate loads", "needed": "loads needed",
    "share": "share of the CPU that the other loads took, %", "alive": "contexts alive at once",
}  # fmt: skip
#: The questions whose verdicts are taken.
QUESTIONS = ("event loop", "handshakes", "loads on the loop", "certificate loads", "contexts")


def keep(root: Path, report: Path | None) -> None:
    """Keep a report of `doctor.py run --json` for this build; of none, forget the last one.

    Raises UsageError for what is no such report.
    """
    file = file_in(root)
    file.unlink(missing_ok=True)
    if report is not None:
        figures = _read(report)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures), encoding="utf-8")


def file_in(root: Path) -> Path:
    """Return where a report is kept for the book under `root`."""
    return root / places.LOCAL_NAME / "program.json"


def _read(path: Path) -> dict[str, Any]:
    """Read from a report what the page needs. Raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        report = json.loads(text)
        counts, verdicts = report["counts"], report["verdicts"]
        advice = [
            {name: _text(advice_row.get(name, ""), 3 * LONGEST) for name in ADVISED}
            for advice_row in report["advice"][:MOST_ROWS]
        ]
        return {
            "program": _text(report["program"]), "python": _text(report["python"]),
            "counts": {name: _number(counts[name]) for name in COUNTED},
            "clients": [
                CALLED.get(name, name)
                for client in counts.get("clients", [])[:MOST_ROWS]
                for name in (_text(client["client"]), _text(client.get("through")))
            ],
            "verdicts": {name: _text(verdicts.get(name, "")) for name in QUESTIONS},
            "advice": advice,
        }  # fmt: skip
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)[:LONGEST]
        raise UsageError(
            f"{path} is no report of a run ({reason}): write one with "
            "`python doctor.py run --json -- your_program.py > report.json`"
        ) from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a count is no number")
    if not 0 <= value <= MOST or not math.isfinite(value):
        raise ValueError(f"a count is not between 0 and {MOST:,}")
    return value


def _text(value: Any, longest: int = LONGEST) -> str:
    """Return a text on one line, without invisible characters, and not too long."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: 4 * longest])
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
