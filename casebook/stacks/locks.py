"""Resolve the packages of env/stacks.toml and env/*.in into exact locks.

    python -m casebook.stacks.locks [--keep] [NAME ...]

For maintainers who change the table; readers never need it. Without arguments all locks are
resolved again, with the names of some only those (and "book" or "test"). With --keep they keep
their versions, and get the digests of files that came later, as a wheel for a new Python does.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from casebook import places, stacks
from casebook.errors import EnvironmentFailed
from casebook.stacks import Stack, installers

_HASHES = "--generate-hashes"
#: Files of env/ whose versions are chosen by hand, and the oldest Python that they are for.
_TOOLS = {"build": "3.7", "virtualenv": "3.11", "rattler": "3.11"}
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


def with_digests(lock_text: str, oldest: str) -> str:
    """Return a lock whose pins are each followed by the digests of all files of their release.

    lock_text: with digests or without; only these change. oldest: the first Python that it is for.
    """
    refused = stacks.table()["refused_by_uv"]
    lines = stacks.without_digests(lock_text).splitlines()
    pins = [line for line in lines if line and line[0] != "#" and line not in refused]
    options = ("--universal", "--python-version", oldest, "--no-deps", _HASHES, "--constraints")
    text = _resolve(pins, *options, limits=[])
    digests = dict(re.findall(r"(?m)^(\S+==\S+)(?: ;.*?)?((?: \\\n    --hash=\S+)+)$", text))
    digests |= {pin: f" \\\n    --hash={digest}" for pin, digest in refused.items()}
    if without := [pin for pin in pins if pin.partition(" ;")[0] not in digests]:
        sys.exit(f"{', '.join(without)}: this index has no digests. Take PyPI, or a mirror of it.")
    return "".join(f"{line}{digests.get(line.partition(' ;')[0], '')}\n" for line in lines)


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
        options = [_HASHES, "--output-file", str(lock), "--upgrade-package", package]
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


def main(arguments: list[str]) -> None:
    """Resolve the locks with these names, or all.

    "book" is requirements.txt, "test" what the tests need besides that; "build", "virtualenv" and
    "rattler" get digests alone; the others are in env/locks.
    """
    parser = argparse.ArgumentParser(prog="python -m casebook.stacks.locks")
    parser.add_argument("--keep", action="store_true", help="change digests alone, no version")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options, table = parser.parse_args(arguments), stacks.table()
    pythons = {row["lock"]: row["python"] for row in table["stack"] if "lock" in row}
    for name in options.names or ["book", "test", *_TOOLS, *table["packages"]]:
        print(name, file=sys.stderr)
        path, oldest = _file(name), _TOOLS.get(name, "3.11")
        if pythons.get(name, "today") != "today":
            oldest = "3.7"
        if is_kept := options.keep or name in _TOOLS:
            if not path.is_file():
                sys.exit(f"{name}: {path.name} is not there yet; without --keep it is written.")
        text = path.read_text() if is_kept else _resolved(name, table)
        path.write_text(with_digests(text, oldest))


def _file(name: str) -> Path:
    if name == "book":
        return places.ROOT / "requirements.txt"
    if name == "test":
        return places.ENV / "test.lock"
    return places.ENV / ("" if name in _TOOLS else "locks") / f"{name}.txt"


def _resolved(name: str, table: dict) -> str:
    """Return the text of a lock, without digests."""
    source, command = "env/stacks.toml", "casebook.stacks.locks"
    if name not in ("book", "test"):
        text = lock_of(name, table)
    else:
        source, command = f"env/{name}.in", f"casebook.stacks.locks {name}"
        constraints = _file("book").read_text().splitlines() if name == "test" else []
        requirements = (places.ROOT / source).read_text().splitlines()
        text = _resolve(requirements, *_FOR_TODAY, "--constraints", limits=constraints)
    return f"# Resolved from {source} by `python -m {command}`; do not edit.\n{text}"


if __name__ == "__main__":
    main(sys.argv[1:])
