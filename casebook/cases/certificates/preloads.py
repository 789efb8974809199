"""Small libraries in C that are loaded into a stack's process before the C library (LD_PRELOAD).

That needs Linux and a C compiler.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from casebook.stacks import digests


def compiled(source: Path, folder: Path) -> Path | None:
    """The library of one C file, compiled into a folder; None where that cannot be done."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if platform.system() != "Linux" or compiler is None:
        return None
    library = Path(folder) / f"{source.stem}.so"
    if library.exists():
        return library
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, env=os.environ, timeout=60)
    return None if done.returncode else library


def variables(library: Path) -> dict[str, str]:
    """The environment variables that load it first."""
    return {"LD_PRELOAD": str(library)}


def made_of(source: Path) -> dict[str, str]:
    """What a measurement with this library depends on, beside what it depends on without."""
    return {"preloaded": source.read_text(), "compiler": digests.tool("cc")}
