"""Where things are. Each path is stated once."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENV = ROOT / "env"
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "_build"

#: What this machine made for itself: virtual environments, measured runs. Never committed.
LOCAL = (ROOT / ".casebook").resolve()
ENVIRONMENTS = LOCAL / "envs"
RUNS = LOCAL / "runs"
