"""Resolve the packages of env/stacks.toml and env/*.in into exact locks.

    python -m casebook.stacks.locks [NAME ...]

For the one who changes the table; readers never need it. Without arguments all locks are
resolved again, with the names of some only those (and "book" or "test").
"""

import os
import subprocess
import sys
import tempfile
import tomllib

from casebook import places
from casebook.stacks import TABLE, installers
from casebook.stacks.installation import REFUSED_BY_UV

#: The oldest interpreter that "today" may mean.
OLDEST_TODAY = "3.11"


def _compile(source: str, *options: str) -> str:
    """The text of an exact lock. No index address or path goes into it."""
    command = installers.uv("pip", "compile", "--quiet", "--no-header", *options, "-")
    environ = {k: v for k, v in os.environ.items() if k != "UV_CUSTOM_COMPILE_COMMAND"}
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, env=environ, cwd=places.ENV
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def _without_via(text: str) -> str:
    return "".join(line for line in text.splitlines(True) if not line.lstrip().startswith("#"))


def book() -> None:
    """env/book.in -> requirements.txt, for every platform and Python from 3.11 on."""
    text = _compile(
        (places.ENV / "book.in").read_text(), "--universal", "--python-version", OLDEST_TODAY
    )
    head = "# Resolved from env/book.in by `python -m casebook.stacks.locks book`; do not edit.\n"
    (places.ROOT / "requirements.txt").write_text(head + _without_via(text))


def test() -> None:
    """env/test.in -> env/test.lock, beside the packages of requirements.txt."""
    text = _compile(
        (places.ENV / "test.in").read_text(), "--universal", "--python-version", OLDEST_TODAY,
        "--constraints", "../requirements.txt",
    )  # fmt: skip
    head = "# Resolved from env/test.in by `python -m casebook.stacks.locks test`; do not edit.\n"
    (places.ENV / "test.lock").write_text(head + _without_via(text))


def stack_lock(name: str, table: dict) -> None:
    """[packages] of the table -> env/locks/<name>.txt."""
    pythons = {row["lock"]: row["python"] for row in table["stack"] if "lock" in row}
    for known, what in ((pythons, "row with this lock"), (table["packages"], "[packages] entry")):
        if name not in known:
            sys.exit(f"{name}: env/stacks.toml has no {what}; a name with dots needs quotes.")
    python, wanted = pythons[name], table["packages"][name]
    if python == "today":
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides:
            overrides.write("\n".join(table["overrides"].get(name, [])))
            overrides.flush()
            text = _compile(
                "\n".join(wanted), "--universal", "--python-version", OLDEST_TODAY,
                "--overrides", overrides.name,
            )  # fmt: skip
    else:
        held = table["constraints"].get(name) or table["constraints"][python]
        # What these need is named beside them in the table.
        unresolved = [pin for pin in wanted if pin in REFUSED_BY_UV]
        wanted = [pin for pin in wanted if pin not in REFUSED_BY_UV]
        # uv knows no Python 2.7: its packages are those of 3.7 and cryptography's two back-ports.
        backports = [pin for pin in held if pin.startswith(("enum34", "ipaddress"))]
        if any(pin.startswith("pyopenssl") for pin in wanted):
            wanted = wanted + backports
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
            constraints.write("\n".join(held))
            constraints.flush()
            text = _compile(
                "\n".join(wanted), "--python-version", "3.7", "--constraints", constraints.name
            )
        text += "".join(f"{pin}\n" for pin in unresolved)
    head = "# Resolved from env/stacks.toml by `python -m casebook.stacks.locks`; do not edit.\n"
    (places.ENV / "locks" / f"{name}.txt").write_text(head + _without_via(text))


def main(names: list[str]) -> None:
    """Resolve the locks with these names, or all."""
    table = tomllib.loads(TABLE.read_text())
    for name in names or ["book", "test", *table["packages"]]:
        print(name, file=sys.stderr)
        if name == "book":
            book()
        elif name == "test":
            test()
        else:
            stack_lock(name, table)


if __name__ == "__main__":
    main(sys.argv[1:])
