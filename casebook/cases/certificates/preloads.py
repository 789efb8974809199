"""Small libraries in C that are loaded into a stack's process before the C library (LD_PRELOAD).

That needs Linux and a C compiler.
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from casebook.stacks import digests


@dataclass(frozen=True)
class Preload:
    """variables: the environment variables that load a library first. made_of: what a measurement
    with it depends on, beside what it depends on without."""

    variables: dict[str, str] = field(default_factory=dict)
    made_of: dict[str, str] = field(default_factory=dict)


NOTHING = Preload()


def compiled(source: Path, folder: Path) -> Preload | None:
    """The library of one C file, compiled into a folder; None where that cannot be done."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if platform.system() != "Linux" or compiler is None:
        return None
    library = Path(folder) / f"{source.stem}.so"
    if not library.exists():
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        if subprocess.run(command, capture_output=True, env=os.environ, timeout=60).returncode:
            return None
    made_of = {"preloaded": source.read_text(), "compiler": digests.tool("cc")}
    return Preload({"LD_PRELOAD": str(library)}, made_of)
