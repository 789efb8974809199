"""Copies of this repository's files, in which a fault can be tried."""

import shutil
import subprocess
from pathlib import Path

from casebook import places


def copy_to(folder: Path) -> Path:
    """Copy what is in the repository or will be; the copy has the environments of this one."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=places.ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (places.ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(places.ROOT / name, folder / name)
    local = folder / places.LOCAL_NAME
    local.mkdir()
    for made in (places.ENVIRONMENTS, places.PYTHONS):
        if made.is_dir():
            (local / made.name).symlink_to(made)
    return folder
