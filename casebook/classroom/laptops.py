"""Thirty laptops without a good network: one archive to copy, which needs none.

    python -m casebook laptops class.tar.gz        # here, where `ready` has made the environments
    sudo tar -xzf class.tar.gz -C /                # on each laptop
    sudo chown -R "$USER" FOLDER                   # it belongs to the student

Environments do not move. So the archive has this folder at the same place, and each Python that
does not belong to the system.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from casebook import places
from casebook.errors import CasebookError, UsageError
from casebook.stacks import interpreters

#: What no laptop needs: history, stored measurements, what tests and builds keep beside the pages.
LEFT_OUT = (".git", ".casebook/runs", ".casebook/uv-cache", "_build/executed", "_build/ipython",
            "_build/teacher", "_build/teacher.zip", ".pytest_cache", ".ruff_cache", ".mypy_cache",
            "__pycache__")  # fmt: skip
_SYSTEM = (Path("/usr"), Path("/bin"), Path("/opt/hostedtoolcache"))


def prefixes() -> tuple[list[Path], list[Path]]:
    """Return the folders of the Pythons that the environments were made with.

    First those to take along, then those that each laptop must have from its system.
    """
    folders = {Path(sys.base_prefix).resolve()}
    for version in interpreters.LAST_RELEASES:
        if python := interpreters.find(version):
            folders.add(python.path.resolve().parent.parent)
    outside = sorted(folder for folder in folders if not folder.is_relative_to(places.ROOT))
    carried = [
        folder
        for folder in outside
        if not any(folder == system or system in folder.parents for system in _SYSTEM)
    ]
    return carried, [folder for folder in outside if folder not in carried]


def pack(file: Path) -> str:
    """Write the archive.

    Returns what it holds and how to unpack it. Raises UsageError if it is there already, has no
    folder or would hold itself, and CasebookError if tar or gzip is missing, or fails.
    """
    if missing := [name for name in ("tar", "gzip") if not shutil.which(name)]:
        raise CasebookError(
            f"the archive is made by tar and gzip; install {' and '.join(missing)} and try again"
        )
    if file.exists():
        raise UsageError(f"{file} is there already: choose another name, or remove it")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent} to write into")
    if file.absolute().is_relative_to(places.ROOT):
        raise UsageError(f"{file} would be in the folder that it holds: write it elsewhere")
    carried, of_system = prefixes()
    folders = [places.ROOT, *carried]
    places.PYTHONS.mkdir(parents=True, exist_ok=True)
    (places.PYTHONS / interpreters.BROUGHT).write_text("".join(f"{prefix}\n" for prefix in carried))
    if not places.LOCAL.is_relative_to(places.ROOT):
        folders.append(places.LOCAL)
    local = [places.LOCAL / "runs", places.LOCAL / "uv-cache"]
    excludes = [f"--exclude={_inside(places.ROOT / name)}" for name in LEFT_OUT[:-1]]
    excludes += [f"--exclude={_inside(path)}" for path in local] + ["--exclude=__pycache__"]
    # With times to the nanosecond: an environment is believed as long as no file has changed.
    command = ["tar", "--format=posix", "--use-compress-program=gzip -1", "-C", "/"]
    command += ["-cf", str(file.absolute())]
    process = subprocess.run(
        [*command, *excludes, *map(_inside, folders)], capture_output=True, text=True
    )
    if process.returncode:
        file.unlink(missing_ok=True)
        problem = process.stderr.strip().partition("\n")[0] or "failed"
        advice = "" if "changed as we read" not in problem else (
            ". Something writes into it: close JupyterLab, let builds end, and try again"
        )  # fmt: skip
        raise CasebookError(f"tar: {problem.removeprefix('tar: ')}{advice}")
    needs = f" Each laptop needs the Python in {of_system[0]}, as here." if of_system else ""
    return (
        f"{file}: {file.stat().st_size / 1e9:.1f} GB, with {', '.join(map(str, folders))}."
        f"{needs} On each laptop, of the same system and processor:\n"
        f"    sudo tar -xzf {file.name} -C /\n"
        f'    sudo chown -R "$USER" {places.ROOT}\n'
        f"    cd {places.ROOT} && make lab"
    )


def _inside(path: Path) -> str:
    """Return a path as it is called below /."""
    return str(path).lstrip("/")
