"""The rooms of the house: data goes one way, and the laboratory knows no case."""

import ast
import json
import re
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from here import run

from casebook import colours, places

#: The rooms in the order of the data. A room imports from those above it, and from itself.
ROOMS = ("stacks", "laboratory", "cases", "findings", "charts", "pages", "classroom")
#: The cases. All may import from `fetching`, which has the clients and the server.
CASES = {path.parent.name for path in places.PACKAGE.glob("cases/*/__init__.py")}
#: The modules at the root that every room may import.
ROOT = {"errors", "places", "words", "colours", "build", "mistakes", "spans", "face"}
#: What no room of the laboratory may name.
OF_A_CASE = re.compile(
    r"\b(grequests|requests\.|urllib3|gevent|httpx|aiohttp|https?\b(?!://)|certificates?\b|certifi\b|TLS)",
    re.IGNORECASE,
)


def modules() -> list[Path]:
    """The modules of the package; not what runs inside stacks."""
    apart = {"probes", "serving"}
    return [path for path in sorted(places.PACKAGE.rglob("*.py")) if not apart & set(path.parts)]


def imported(path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere in it, with their dots."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module or ""} | {f"{node.module}.{each.name}" for each in node.names}
    return {each for each in found if each.startswith("casebook.")}


def room(dotted: str) -> str:
    return dotted.split(".")[1]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(places.ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_one_way(path):
    own = name_of(path)
    its = room(own) if "." in own else ""
    if its not in ROOMS:  # the face and the command line, which nobody imports, and what all may
        return
    for other in imported(path):
        assert room(other) not in ("cli",), f"{own} imports {other}"
        if room(other) in ROOMS:
            assert ROOMS.index(room(other)) <= ROOMS.index(its), f"{own} imports {other}"


def test_no_room_goes_round_in_a_circle():
    graph = defaultdict(set)
    for path in modules():
        own = name_of(path)
        for other in imported(path):
            if "." in own and room(other) != room(own) and room(own) in (*ROOMS, *ROOT):
                graph[room(own)].add(room(other))
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError


def test_a_case_imports_from_its_own_folder_and_the_first():
    """So that a case can be taken away. What all record together stands beside them."""
    assert {"fetching", "certificates", "bookstore"} <= CASES
    for path in modules():
        parts = path.relative_to(places.PACKAGE).parts
        if parts[0] != "cases" or len(parts) < 3:
            continue
        others = {
            each.split(".")[2] for each in imported(path) if each.startswith("casebook.cases.")
        }
        others &= CASES
        assert others <= {parts[1], "fetching"}, f"{name_of(path)} imports from {others}"


@pytest.mark.parametrize("path", sorted((places.PACKAGE / "laboratory").glob("*.py")), ids=name_of)
def test_the_laboratory_names_no_client_no_https_and_no_certificate(path):
    found = OF_A_CASE.findall(path.read_text())
    assert not found


@pytest.mark.parametrize("name", sorted(ROOT))
def test_what_all_may_import_names_no_client_no_https_and_no_certificate(name):
    """Apart from the names of the palette's own colours, which are CSS variables on every page."""
    text = (places.PACKAGE / name).with_suffix(".py").read_text()
    for colour in colours.COLOURS:
        text = text.replace(f'"{colour}": ("#', "")
    assert not OF_A_CASE.findall(text)


#: What makes a key, and what asks the store for an answer, or gives it one.
MAKES_KEYS = {"key_of", "stored_or_new", "Key"}


def called(source: str) -> set[str]:
    """The names of the functions that a source calls, without the modules before their dots."""
    functions = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {getattr(each, "attr", getattr(each, "id", "")) for each in functions}


def test_only_an_experiment_makes_keys_and_asks_the_store():
    """One way to measure: a case says what is asked, and the laboratory what was answered."""
    makers = {
        name_of(path): made for path in modules() if (made := called(path.read_text()) & MAKES_KEYS)
    }
    assert makers.pop("casebook.laboratory.experiment") == {"key_of", "stored_or_new"}
    # The store itself, which has the type; it is asked by nobody in its own module.
    assert makers.pop("casebook.laboratory.measurements") == {"Key"}
    # Keys of another kind: of a function in a profile, of a timeline on a page.
    assert not {name: made for name, made in makers.items() if made != {"key_of"}}
    others = {"casebook.charts.explorer_form"}
    assert makers.keys() <= others


def test_chapters_import_from_the_face_the_cases_and_little_else():
    """As CONTRIBUTING.md says it."""
    cases = "|".join(["reference_run", *CASES])
    allowed = rf"casebook|casebook\.errors|casebook\.cases(\.({cases}))?"
    wrong = [
        f"{path.stem}: {line}"
        for path in sorted(places.NOTEBOOKS.glob("*.ipynb"))
        for cell in json.loads(path.read_text())["cells"]
        for line in cell["source"]
        if (found := re.match(r"\s*(?:from|import) (casebook[\w.]*)", line))
        and cell["cell_type"] == "code"
        and not re.fullmatch(allowed, found[1])
    ]
    assert wrong == []


def test_no_two_probes_share_a_stem():
    """A question begins with its probe's stem and its folder's name, which most cases share."""
    stems = [probe.stem for probe in places.PACKAGE.rglob("probes/*.py")]
    assert len(stems) > 20 and len(stems) == len(set(stems))


def test_a_planted_key_is_found():
    source = "from casebook.laboratory import measurements as m\nm.stored_or_new(m.key_of([]), f)"
    assert called(source) & MAKES_KEYS == {"key_of", "stored_or_new"}
    assert not called("# m.key_of([])\nkey_of = 'm.key_of([])'")


#: A case of its own: two parsers, one of which may read from a mapped file.
PARSERS = """
from casebook import colours, words

words.call("parser", {"stdlib": "json", "c": "orjson"})
words.call("size", {}, "{:,} numbers")
words.head({"took_ms": "parsing, ms"})
words.call(words.RUN, {("", "mapped"): "{}, memory-mapped"})
words.LIBRARIES.update(("json", "orjson"))
colours.choose("parser", {"stdlib": "plum", "c": "stage-4"})
colours.choose("client", {"pull": "olive"})
"""

#: Prints what a chart makes of its rows, and what comes of a second case that says otherwise.
SHOWS = """
import sys
import pandas as pd
import casebook.cases
casebook.cases.__path__.append(sys.argv[1])
from casebook import charts, colours, errors, words
from casebook.cases import parsers
from casebook.charts import series
rows = pd.DataFrame({"stack": "json-today", "parser": ["c", "stdlib"], "size": 1000, "took_ms": 2})
for part in series.groups(series.usable(rows, "took_ms"), ["parser", "size"]):
    print(part.label, part.colour, sep=": ")
print(words.capital(charts.dots(rows, "took_ms", "parser", title="orjson and json").alt))
print(words.stack_label("json-today", "mapped"), words.stack_label("json-today", "pull"), sep="; ")
for part in series.groups(series.usable(rows.assign(client="pull"), "took_ms"), "client"):
    print(part.label, part.colour, sep=": ")
for say, *what in (
    (words.call, "parser", {"c": "C"}), (words.call, "size", {}, "{} long"),
    (words.head, {"took_ms": "time, ms"}), (words.head, {"wall_s": "time, s"}),
    (colours.choose, "parser", {"c": "plum"}), (colours.choose, "size", {1: "red"}),
):
    try:
        say(*what)
    except errors.UsageError as error:
        print(error)
"""


def test_a_case_brings_its_own_words_and_colours(tmp_path):
    (tmp_path / "parsers").mkdir()
    (tmp_path / "parsers" / "__init__.py").write_text(PARSERS)
    done = run(sys.executable, "-c", SHOWS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "orjson, 1,000 numbers: stage-4",
        "json, 1,000 numbers: plum",
        "orjson and json. Parsing: orjson 2.00 ms; json 2.00 ms.",
        "json, today, memory-mapped; pull",
        "pull: olive",
        "parser 'c' is 'orjson' already, and cannot be 'C'",
        "a number in 'size' is '{:,} numbers' already, and cannot be '{} long'",
        "the heading of 'took_ms' is 'parsing, ms' already, and cannot be 'time, ms'",
        "the heading of 'wall_s' is 'wall time, s' already, and cannot be 'time, s'",
        "the colour of parser 'c' is 'stage-4' already, and cannot be 'plum'",
        f"there is no colour 'red'; choose one of: {', '.join(colours.COLOURS)}",
    ]


FACES = sorted(path.with_suffix("") for path in places.PACKAGE.rglob("__init__.pyi"))

#: Prints what a face offers, what had to be loaded for its import alone, and loads each name.
LOADS = """
import importlib, sys
face = importlib.import_module(sys.argv[1])
heavy = {"pandas", "matplotlib", "IPython"} & set(sys.modules)
print(*dir(face), "|", *heavy, "|", *(name for name in dir(face) if getattr(face, name) is None))
"""


@pytest.mark.parametrize("path", FACES, ids=lambda path: path.parent.name)
def test_a_face_offers_what_its_stub_says_and_loads_it_when_it_is_used(path):
    stub = ast.parse(path.with_suffix(".pyi").read_text())
    named = [alias for node in stub.body for alias in node.names]
    assert [each.name for each in named] == [each.asname for each in named]  # or none is offered
    done = run(sys.executable, "-c", LOADS, name_of(path.with_suffix(".py")))
    assert done.returncode == 0, done.stderr
    offered, heavy, empty = (part.split() for part in done.stdout.split("|"))
    assert offered == sorted(each.name for each in named) and not heavy and not empty


def test_each_name_of_the_face_is_described():
    described = (places.PACKAGE / "__init__.py").read_text()
    named = ast.parse((places.PACKAGE / "__init__.pyi").read_text()).body
    for name in (alias.name for node in named for alias in node.names):
        assert re.search(rf"^(\w+, )*{name}\b", described, re.MULTILINE), name


def test_a_planted_import_upwards_is_found(tmp_path):
    (tmp_path / "x.py").write_text("def f():\n    from casebook.pages import build\n")
    assert imported(tmp_path / "x.py") == {"casebook.pages", "casebook.pages.build"}


def test_no_two_modules_have_one_name_and_different_meanings() -> None:
    """A command is named after the module that it calls; a probe, after the one that asks it."""
    paths = defaultdict(list)
    for path in places.PACKAGE.rglob("*.py"):
        is_a_pair = {"cli", "probes", "clients", "jobs"} & set(path.parts)
        if not (is_a_pair or path.name.startswith("__")):
            paths[path.name].append(path.relative_to(places.PACKAGE).as_posix())
    twice = {name: found for name, found in paths.items() if len(found) > 1}
    # Each case says what its columns are called; each server ends with the process that began it.
    assert twice.keys() == {"names.py", "owner.py"}, twice
