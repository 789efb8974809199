"""Mutation testing of what is pure: a score for each room of tests/mutants.toml, and its survivors.

    python tests/support/mutants.py [ROOM ...]

mutmut does it, in a copy of the files: for each small change of a function it runs the room's
tests, one of which has to fail. A change that none notices is a survivor; those that are let
through are listed in tests/mutants.toml, each with its reason. A room with a `least` fails below
it, for a survivor that is not listed, and for one that is listed and noticed now; of a room
without, the score is only told.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copies import copy_to

from casebook import places

TABLE = places.ROOT / "tests" / "mutants.toml"

#: What mutmut says of a change that a test noticed.
NOTICED = {"killed", "timeout"}

SETTINGS = """
[tool.mutmut]
source_paths = {sources}
only_mutate = {modules}
also_copy = {beside}
pytest_add_cli_args = ["-n", "0", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
pytest_add_cli_args_test_selection = {tests}
use_git_change_detection = false
track_dependencies = false
timeout_constant = 60.0
"""


@dataclass(frozen=True)
class Mutant:
    """A change that was tried: in which function, and the lines that it takes and puts."""

    function: str
    text: str
    replacement: str


def _source_of(module: str) -> str:
    """Return the folder from which a module is imported, as mutmut wants it."""
    return module.partition("/src/")[0] + "/src" if "/src/" in module else "casebook"


def outcomes(folder: Path, room: dict[str, Any]) -> dict[str, str]:
    """Try all changes of a room in a copy. Returns what mutmut says of each, by its name."""
    modules, tests = room["modules"], room["tests"]
    sources = sorted({_source_of(module) for module in modules})
    beside = {path.name for path in folder.iterdir()} - {
        "casebook",
        "packages",
        ".git",
        ".casebook",
    }
    beside |= {"casebook", *(str(path.relative_to(folder)) for path in folder.glob("packages/*/*"))}
    beside = sorted(beside - {*sources})
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(SETTINGS.format(sources=sources, modules=modules, beside=beside, tests=tests))
    done = _mutmut(folder, "run", "--max-children", "2")
    found = dict(re.findall(r"^\s+(\S+): (.+)$", _mutmut(folder, "results", "--all", "1"), re.M))
    if not found or set(found.values()) <= {"not checked"}:
        sys.exit(f"mutmut tried nothing: {done[-3000:]}")
    return found


def mutant(folder: Path, name: str) -> Mutant:
    """Look up a change by its name."""
    lines = _mutmut(folder, "show", name).splitlines()
    before = [line[1:].strip() for line in lines if re.match(r"-(?!--)", line)]
    after = [line[1:].strip() for line in lines if re.match(r"\+(?!\+\+)", line)]
    module, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
    function = re.sub("^x_|^xǁ", "", function).replace("ǁ", ".")
    return Mutant(f"{module}.{function}", " ".join(before), " ".join(after))


def _mutmut(folder: Path, *arguments: str) -> str:
    """What mutmut prints."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def tried(name: str, room: dict[str, Any], known: list[Mutant]) -> tuple[float, list[Mutant]]:
    """Try a room, and say how it came out. Returns its score, and the survivors."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = copy_to(Path(temporary) / "book")
        found = outcomes(folder, room)
        survived = [mutant(folder, each) for each in found if found[each] not in NOTICED]
    score = 1 - len(survived) / len(found)
    print(f"{name}: {score:.1%} of {len(found)} changes were noticed", flush=True)
    for each in survived:
        mark = "let through" if each in known else "SURVIVED"
        print(f"  {mark}: {each.function}\n    - {each.text}\n    + {each.replacement}", flush=True)
    return score, survived


def complaints(
    name: str, room: dict[str, Any], score: float, survived: list[Mutant], known: list[Mutant]
) -> list[str]:
    """What is not as the table says."""
    modules = tuple(path.removesuffix(".py").replace("/", ".") for path in room["modules"])
    ours = [each for each in known if each.function.startswith(modules)]
    wrong = [f"{name}: {each.function} has a survivor" for each in survived if each not in known]
    wrong += [f"{name}: {each.replacement!r} in {each.function} is noticed now: strike it out"
              for each in ours if each not in survived]  # fmt: skip
    if score < room["least"]:
        wrong.append(f"{name}: {score:.1%} is less than {room['least']:.0%}")
    return wrong


def main(names: list[str]) -> int:
    """Try these rooms, or all."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    rooms = {name: room for name, room in table["rooms"].items() if name in names or not names}
    known = [Mutant(each["function"], each["text"], each["replacement"])
             for each in table.get("survivor", ())]  # fmt: skip
    wrong = []
    for name, room in rooms.items():
        score, survived = tried(name, room, known)
        if "least" in room:
            wrong += complaints(name, room, score, survived, known)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
