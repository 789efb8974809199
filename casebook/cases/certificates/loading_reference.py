"""The reference machine's half of chapter 10: written by `make record`, read where a Python, a C
compiler, valgrind or Linux is missing (reference.kinds)."""

import json
from pathlib import Path

from casebook.cases.certificates import handshakes, instructions, loading, rwlocks


def record(folder: Path) -> Path:
    """Measure what has to stand in elsewhere, and write it to loading.json in a folder."""
    kept = {
        "loads": loading.record(),
        "locks": rwlocks.record(),
        "handshakes": handshakes.record(),
        "instructions": instructions.record(),
    }
    path = Path(folder) / "loading.json"
    lines = [
        f" {json.dumps(kind)}: [\n  "
        + ",\n  ".join(json.dumps(_rounded(row), allow_nan=False) for row in rows)
        + "\n ]"
        for kind, rows in kept.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return path


def _rounded(row: dict) -> dict:
    return {
        name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()
    }
