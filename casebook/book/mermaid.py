"""Mermaid's JavaScript, taken from a wheel on PyPI so that no page fetches it from elsewhere."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from casebook import places
from casebook.errors import BookFailed

#: nicegui carries Mermaid as ECMAScript modules. Nothing else of the wheel is used or installed.
WHEEL = "nicegui==3.18.0"
INSIDE = Path("nicegui", "elements", "mermaid", "dist")
#: The modules export Mermaid by name; this one is what a page imports.
ENTRY = "index.js"


def ensure() -> Path:
    """The folder with Mermaid's modules; fetched once per pinned version. Raises BookFailed."""
    folder = places.LOCAL / "tools" / f"mermaid-from-{WHEEL.replace('==', '-')}"
    if (folder / ENTRY).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fetched = subprocess.run(
            [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--only-binary",
             ":all:", "--python", sys.executable, "--target", scratch, WHEEL],
            capture_output=True,
            text=True,
        )  # fmt: skip
        modules = Path(scratch, INSIDE)
        if fetched.returncode != 0 or not (modules / ENTRY).exists():
            reason = fetched.stderr.strip() or f"{WHEEL} holds no {INSIDE / ENTRY}"
            raise BookFailed(f"Mermaid's JavaScript could not be fetched from PyPI: {reason}")
        shutil.rmtree(folder, ignore_errors=True)
        modules.rename(folder)
    return folder


def copy_into(html: Path) -> None:
    """Put the modules where book/_static/diagrams.js imports them from."""
    ignored = shutil.ignore_patterns("*.map")
    shutil.copytree(ensure(), html / "_static" / "mermaid", ignore=ignored, dirs_exist_ok=True)
