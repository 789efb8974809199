"""The reference machine's half of chapter 10: written by `make record`, read where a Python, a C
compiler, valgrind or Linux is missing (reference.kinds)."""

import json
from pathlib import Path

from casebook.cases.certificates import counts, handshakes, loading
from casebook.words import REFERENCE


def record(folder: Path) -> Path:
    """Measure what has to stand in elsewhere, and write it to loading.json in a folder."""
    kinds = {"loads": loading.record(), "handshakes": handshakes.record()} | counts.record()
    written = [
        f" {json.dumps(kind)}: [\n  " + ",\n  ".join(map(_as_json, rows)) + "\n ]"
        for kind, rows in kinds.items()
    ]
    path = Path(folder) / "loading.json"
    path.write_text("{\n" + ",\n".join(written) + "\n}\n")
    return path


def _as_json(row: dict) -> str:
    rounded = {name: round(of, 4) if isinstance(of, float) else of for name, of in row.items()}
    return json.dumps(rounded | {"source": REFERENCE}, allow_nan=False)
