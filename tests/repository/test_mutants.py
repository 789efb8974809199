"""The table of mutation testing names what there is; the night tries it (make mutants)."""

import ast
import tomllib
from typing import Any

import mutants
import pytest

from casebook import places

TABLE = tomllib.loads(mutants.TABLE.read_text(encoding="utf-8"))
#: The modules of all rooms, by the names in which survivors have them.
MODULES = {
    mutants.name_of(module): module
    for room in TABLE["rooms"].values()
    for module in room["modules"]
}


@pytest.mark.parametrize("room", TABLE["rooms"])
def test_the_modules_and_tests_of_a_room_are_there(room: str) -> None:
    files = (*TABLE["rooms"][room]["modules"], *TABLE["rooms"][room]["tests"])
    assert [name for name in files if not (places.ROOT / name).is_file()] == []


@pytest.mark.parametrize("survivor", TABLE["survivor"], ids=lambda each: each["function"])
def test_what_is_let_through_is_a_line_of_its_function(survivor: dict[str, Any]) -> None:
    module = next(name for name in MODULES if survivor["function"].startswith(f"{name}."))
    text = (places.ROOT / MODULES[module]).read_text(encoding="utf-8")
    own = survivor["function"].removeprefix(f"{module}.").rpartition(".")[2]
    functions = [
        ast.get_source_segment(text, node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == own
    ]
    assert any(
        survivor["text"] in " ".join(map(str.strip, code.splitlines())) for code in functions
    )
    assert survivor["text"] not in survivor["replacements"] and survivor["reason"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("casebook/findings/claims.py", "casebook.findings.claims"),
        ("packages/tls-doctor/src/tls_doctor/tally.py", "tls_doctor.tally"),
    ],
)
def test_a_module_has_the_name_by_which_it_is_imported(module: str, name: str) -> None:
    assert mutants.name_of(module) == name


def test_a_room_fails_below_its_least_and_for_what_the_table_does_not_say() -> None:
    known = mutants.Mutant("a.b.f", "return 1", "return 2")
    new = mutants.Mutant("a.b.g", "return 3", "return 4")
    others = mutants.Mutant("a.bc.f", "return 1", "return 2")  # of another room
    room = {"modules": ["a/b.py"], "least": 0.9}

    def said(score: float, survived: list[mutants.Mutant]) -> list[str]:
        return mutants.complaints("room", room, score, survived, [known, others])

    assert said(0.9, [known]) == []
    assert said(0.89, [known]) == ["room: 89.0% is less than 90%"]
    assert said(1.0, [known, new]) == ["room: a.b.g has a survivor"]
    assert said(1.0, []) == ["room: 'return 2' in a.b.f is noticed now: strike it out"]
