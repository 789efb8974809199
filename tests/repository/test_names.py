"""Names say what a thing is: few are a pronoun, a participle, an adverb or a preposition alone.

An indicator, not a law: a name that is written only to satisfy it says no more than before.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from casebook import places

#: Words that name nothing by themselves, by what they are.
PRONOUNS = (
    "each every its their whose who what which other others another one some none any such same"
)
PARTICIPLES = (
    "found asked said told heard seen shown known made kept given taken called counted measured "
    "drawn written wanted needed meant left lost gone stood held begun ended done"
)
VERBS = (
    "came come went grew put got had has hears say says tell tells ask asks give gives take takes "
    "make makes look looks begins ends goes bring brings"
)
ADVERBS = (
    "why how when where so own more most less few here there then now before after along away "
    "still again once alike alone together whole apart usual dear"
)
PREPOSITIONS = "of at by since until within without against beside"
HOLLOW = {*f"{PRONOUNS} {PARTICIPLES} {VERBS} {ADVERBS} {PREPOSITIONS} way ways".split()}
#: What Python and its conventions call so.
CONVENTION = {"self", "cls", "_", "args", "kwargs", "__all__"}

#: The most that may be hollow, of all names of a kind.
LIMITS = {"binding": 0.02, "function": 0.01}


def names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a module binds (variables and parameters) and the functions that it defines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield "binding", name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "function", name


def is_hollow(name: str) -> bool:
    """Return whether a name is one of these words alone."""
    return name.strip("_") in HOLLOW


def sources() -> list[Path]:
    """Return the hand-written modules of the book and of the products, without their tests."""
    return [
        path
        for folder in (places.PACKAGE, places.ROOT / "packages")
        for path in folder.rglob("*.py")
        if not any(
            part.startswith((".", "test")) for part in path.relative_to(places.ROOT).parts
        )
    ]  # fmt: skip


@pytest.mark.parametrize("kind", LIMITS)
def test_names_are_nouns_and_verbs(kind: str) -> None:
    every_name = [
        (name, path.relative_to(places.ROOT).as_posix())
        for path in sources()
        for kind_of_name, name in names(ast.parse(path.read_text(encoding="utf-8")))
        if kind_of_name == kind and name not in CONVENTION
    ]
    hollow = [(name, path) for name, path in every_name if is_hollow(name)]
    assert len(every_name) > 1000
    share = len(hollow) / len(every_name)
    most = Counter(f"{name} in {path}" for name, path in hollow).most_common(40)
    assert share <= LIMITS[kind], f"{share:.1%} of {kind} names: " + "; ".join(
        f"{place} ({count})" for place, count in most
    )


def test_what_is_counted() -> None:
    module = ast.parse(
        "for each in rows: total = said = 1\n"
        "def seen(frame, *args, way=None): return [found for found in frame]\n"
        "class Told:\n    async def rows_of(self, _by): self.made = 1\n"
    )
    counted = [(kind, name) for kind, name in names(module) if name not in CONVENTION]
    assert Counter(counted) == Counter(
        [
            ("binding", "each"), ("binding", "total"), ("binding", "said"), ("binding", "frame"),
            ("binding", "way"), ("binding", "found"), ("binding", "_by"),
            ("function", "seen"), ("function", "rows_of"),
        ]
    )  # fmt: skip
    assert [name for _, name in counted if not is_hollow(name)] == [
        "rows_of", "total", "frame"
    ]  # fmt: skip
