"""What changed upstream: verdicts about a package, asked of its newest release and pre-release.

    python -m casebook.upstream [FILE]

Prints a page in Markdown, or writes it to FILE. Leaves with 1 where a verdict has turned, so that
whoever runs it by night hears of it. Needs the network, for the packages alone.
"""

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from casebook import places
from casebook.errors import RunFailed
from casebook.stacks import commands, installers


@dataclass(frozen=True)
class Verdict:
    """What the book says of a package.

    says: the sentence. chapter: where. true_from: the first release of which it was true, and the
    newest of which it was when this was written, true_to. script: exits with 1 where it is true, 0
    where it is not, and its last line says in counts which.
    """

    package: str
    says: str
    chapter: str
    true_from: str
    true_to: str
    script: Path


VERDICTS = [
    Verdict(
        "truststore",
        "threads that share a context shake hands one at a time",
        "20_the_lock_around_the_handshake",
        "0.10.5",
        "0.10.5",
        places.ROOT / "upstream" / "truststore_lock.py",
    )
]


def ask(verdict: Verdict, *options: str) -> dict[str, str | bool]:
    """Install the newest release that options allow (of `uv pip install`) and run the script.

    Returns version, still (whether the sentence is still true) and counts, what the script said.
    Raises RunFailed where the release cannot be installed or the script says neither.
    """
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        made = installers.uv("venv", "--quiet", "--python", sys.executable, str(python.parents[1]))
        commands.output(made, "uv", 120, environ)
        wanted = ["--quiet", "--upgrade", "--python", str(python), *options, verdict.package]
        commands.output(installers.uv("pip", "install", *wanted), "uv", 300, environ)
        asking = f"import importlib.metadata as m; print(m.version({verdict.package!r}))"
        version = commands.output([python, "-c", asking], "Python", 60, environ).strip()
        done = commands.run([python, verdict.script], verdict.package, 120, environ)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RunFailed(
            f"{verdict.package} {version}: {verdict.script.name} decides nothing "
            f"({commands.last_line(done)})."
        )
    said = done.stdout.strip().splitlines()[-1]
    return {"version": version, "still": done.returncode == 1, "counts": said}


def page(found: list[tuple[Verdict, dict[str, str | bool]]]) -> str:
    """The page, in Markdown: a row for each verdict and release."""
    lines = [
        "# What changed upstream",
        "",
        "| package | the book says | true from | to | asked | says | chapter |",
        "|---|---|---|---|---|---|---|",
    ]
    for verdict, answer in found:
        now = "still true" if answer["still"] else f"**no longer true**, since {answer['version']}"
        lines.append(
            f"| {verdict.package} | {verdict.says} | {verdict.true_from} | {verdict.true_to} | "
            f"{answer['version']} | {now}: {answer['counts']} | {verdict.chapter} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Ask all verdicts of releases and pre-releases. Returns the exit code."""
    found = []
    for verdict in VERDICTS:
        for options in ([], ["--prerelease", "allow"]):
            answer = ask(verdict, *options)
            if (verdict, answer) not in found:
                found.append((verdict, answer))
    text = page(found)
    if arguments:
        Path(arguments[0]).write_text(text)
    else:
        print(text, end="")
    return 0 if all(answer["still"] for _, answer in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
