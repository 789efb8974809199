"""Resolve the packages of env/stacks.toml and env/*.in into exact locks.

    python -m casebook.stacks.locks [NAME ...]

For maintainers who change the table; readers never need it. Without arguments all locks are
resolved again, with the names of some only those (and "book" or "test").
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from casebook import places, stacks
from casebook.errors import EnvironmentFailed
from casebook.stacks import Stack, installers

#: For what readers and tests install. The locks of stacks have none: they are part of what a stored
#: run is known by.
_HASHES = "--generate-hashes"
#: For every platform and every Python that "today" may mean, from the oldest on.
_FOR_TODAY = ("--universal", "--python-version", "3.11")


def _resolve(requirements: list[str], *options: str, limits: list[str]) -> str:
    """Return the text of an exact lock. No index address or path goes into it.

    limits: the lines of the file that the last of the options names.
    """
    command = installers.uv("pip", "compile", "--quiet", "--no-header", "--no-annotate", *options)
    environ = {k: v for k, v in os.environ.items() if k != "UV_CUSTOM_COMPILE_COMMAND"}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(limits))
        file.flush()
        process = subprocess.run(
            [*command, file.name, "-"], input="\n".join(requirements), capture_output=True,
            text=True, env=environ, cwd=places.ENV,
        )  # fmt: skip
    if process.returncode:
        sys.exit(process.stderr)
    return process.stdout


def lock_of(name: str, table: dict) -> str:
    """Return the text of a lock, from [packages] of the table. Exits with a message if none."""
    pythons = {row["lock"]: row["python"] for row in table["stack"] if "lock" in row}
    for rows, kind in ((pythons, "row with this lock"), (table["packages"], "[packages] entry")):
        if name not in rows:
            sys.exit(f"{name}: env/stacks.toml has no {kind}; a name with dots needs quotes.")
    python, requirements = pythons[name], table["packages"][name]
    if loose := [pin for pin in requirements if "==" not in pin]:
        sys.exit(f"{name}: {', '.join(loose)} has no exact version in env/stacks.toml. "
                 f"Say which, as in {loose[0]}==1.0.")  # fmt: skip
    if python == "today":
        return _resolve(
            requirements, *_FOR_TODAY, "--overrides", limits=table["overrides"].get(name, [])
        )
    constraints = table["constraints"].get(name) or table["constraints"][python]
    # The table names their requirements beside them.
    unresolved = [pin for pin in requirements if pin in table["refused_by_uv"]]
    requirements = [pin for pin in requirements if pin not in table["refused_by_uv"]]
    # uv knows no Python 2.7: its packages are those of 3.7 and cryptography's two back-ports.
    if any(pin.startswith("pyopenssl") for pin in requirements):
        requirements += [pin for pin in constraints if pin.startswith(("enum34", "ipaddress"))]
    text = _resolve(requirements, "--python-version", "3.7", "--constraints", limits=constraints)
    return text + "".join(f"{pin}\n" for pin in unresolved)


def with_release(stack: Stack, package: str, release: str = "", prerelease: bool = False) -> str:
    """Return a lock like a stack's of "today", in which one package is the newest that is allowed.

    release: such as "==2.0.7" or ">2,<3"; empty, any. All else stays as it is, as far as it is
    compatible with that release. Raises EnvironmentFailed if there is none.
    """
    table = stacks.table()
    packages = {re.split("[=<>~!]", pin)[0] for pin in table["packages"][stack.lock]} - {package}
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "lock.txt")
        lock.write_text(stack.lock_file.read_text())  # the pins there are kept if possible
        options = ["--output-file", str(lock), "--upgrade-package", package]
        options += ["--prerelease", "allow"] if prerelease else []
        try:
            _resolve(
                [*sorted(packages), package + release], *_FOR_TODAY, *options, "--overrides",
                limits=table["overrides"].get(stack.lock, []),
            )  # fmt: skip
        except SystemExit as failed:
            reason = " ".join(str(failed).split())
            raise EnvironmentFailed(
                f"there is no {package}{release} to install: {reason}"
            ) from None
        return lock.read_text()


def main(names: list[str]) -> None:
    """Resolve the locks with these names, or all.

    "book" is requirements.txt, "test" what the tests need besides that; the others are in
    env/locks.
    """
    table = stacks.table()
    book = places.ROOT / "requirements.txt"
    for name in names or ["book", "test", *table["packages"]]:
        print(name, file=sys.stderr)
        if name in ("book", "test"):
            source, command = f"env/{name}.in", f"casebook.stacks.locks {name}"
            path = {"book": book, "test": places.ENV / "test.lock"}[name]
            constraints = book.read_text().splitlines() if name == "test" else []
            requirements = (places.ROOT / source).read_text().splitlines()
            text = _resolve(requirements, _HASHES, *_FOR_TODAY, "--constraints", limits=constraints)
        else:
            source, command = "env/stacks.toml", "casebook.stacks.locks"
            path, text = places.ENV / "locks" / f"{name}.txt", lock_of(name, table)
        path.write_text(f"# Resolved from {source} by `python -m {command}`; do not edit.\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
