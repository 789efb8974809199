"""Mutation testing of what is pure: a score for each room of tests/mutants.toml, and its survivors.

    python tests/support/mutants.py [ROOM ...]

mutmut does it, in a copy of the files: for each small change of a function it runs the room's
tests, one of which has to fail. A change that none notices is a survivor; those that are let
through are listed in tests/mutants.toml, each with its reason. A room with a `least` fails below
it, for a survivor that is not listed, and for one that is listed and noticed now; of a room
without, the score is only told.
"""

import re
import shutil
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

#: What mutmut says of a change that a test noticed. The last also of one that took all its memory
#: or its time, and was killed.
NOTICED = {"killed", "timeout", "segfault"}

#: mutmut passes over what is decorated. What chapters call is tried without the check of its
#: arguments, which has tests of its own.
CHECKED = r"^@for_readers\n"

#: mutmut lets a change run for fifteen times its tests and a second, which ends what runs for ever.
SETTINGS = """
[tool.mutmut]
source_paths = {sources}
only_mutate = {modules}
also_copy = {beside}
pytest_add_cli_args = [
    "-n", "0", "-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception",
    "--hypothesis-seed=0",
]
pytest_add_cli_args_test_selection = {tests}
use_git_change_detection = false
track_dependencies = false
timeout_multiplier = 15.0
timeout_constant = 1.0
"""

#: Prints what some changes, named in its arguments, take and put.
SHOW = """
import sys
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
for name in sys.argv[1:]:
    print(f"## {name}")
    print(get_diff_for_mutant(name, path=find_mutant(name).path))
"""


@dataclass(frozen=True)
class Mutant:
    """A change that was tried: in which function, and the lines that it takes and puts."""

    function: str
    text: str
    replacement: str


def _path_of(module: str) -> str:
    """Return where mutmut has to find a module: that of a package under src/, where it looks."""
    return re.sub("^packages/[^/]+/src/", "src/", module)


def name_of(module: str) -> str:
    """Return the name by which a module of the table is imported."""
    return _path_of(module).removeprefix("src/").removesuffix(".py").replace("/", ".")


def prepare(folder: Path, room: dict[str, Any]) -> None:
    """Make a copy of the files one in which mutmut can try a room."""
    project = folder / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    for package in sorted({m.partition("/src/")[0] for m in room["modules"] if "/src/" in m}):
        shutil.copytree(folder / package / "src", folder / "src", dirs_exist_ok=True)
        text = text.replace(f'"{package}/src"', '"src"')
    modules = [_path_of(module) for module in room["modules"]]
    for module in modules:
        code = (folder / module).read_text(encoding="utf-8")
        (folder / module).write_text(re.sub(CHECKED, "", code, flags=re.M), encoding="utf-8")
    sources = sorted({module.partition("/")[0] for module in modules})
    kept = {path.name for path in folder.iterdir()} - {*sources, ".git", places.LOCAL_NAME}
    settings = SETTINGS.format(
        sources=sources, modules=modules, beside=sorted(kept), tests=room["tests"]
    )
    project.write_text(text + settings, encoding="utf-8")


def outcomes(folder: Path, *names: str) -> dict[str, str]:
    """Try all changes, or those of these names. Returns what mutmut says of each, by its name."""
    done = _mutmut(folder, "run", "--max-children", "2", *names)
    found = dict(re.findall(r"^\s+(\S+): (.+)$", _mutmut(folder, "results", "--all", "1"), re.M))
    if not found or "not checked" in found.values():
        sys.exit(f"mutmut did not come to its end: {done[-3000:]}")
    return found


def mutants(folder: Path, names: list[str]) -> list[Mutant]:
    """Look changes up by their names."""
    if not names:
        return []
    shown = _python(folder, "-c", SHOW, *names)
    return [_mutant(*text.split("\n", 1)) for text in re.split("^## ", shown, flags=re.M)[1:]]


def _mutant(name: str, difference: str) -> Mutant:
    lines = difference.splitlines()
    before = [line[1:].strip() for line in lines if re.match(r"-(?!--)", line)]
    after = [line[1:].strip() for line in lines if re.match(r"\+(?!\+\+)", line)]
    module, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
    function = re.sub("^x_|^xǁ", "", function).replace("ǁ", ".")
    return Mutant(f"{module}.{function}", " ".join(before), " ".join(after))


def _mutmut(folder: Path, *arguments: str) -> str:
    return _python(folder, "-m", "mutmut", *arguments)


def _python(folder: Path, *arguments: str) -> str:
    """Return what a Python prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


def tried(name: str, room: dict[str, Any], known: list[Mutant]) -> tuple[float, list[Mutant]]:
    """Try a room, and say how it came out. Returns its score, and the survivors."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = copy_to(Path(temporary) / "book")
        prepare(folder, room)
        found = outcomes(folder)
        survived = mutants(folder, [name for name in found if found[name] not in NOTICED])
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
    modules = tuple(f"{name_of(module)}." for module in room["modules"])
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
    known = [
        Mutant(each["function"], each["text"], replacement)
        for each in table.get("survivor", ())
        for replacement in each["replacements"]
    ]
    wrong = []
    for name, room in rooms.items():
        score, survived = tried(name, room, known)
        if "least" in room:
            wrong += complaints(name, room, score, survived, known)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
