"""The table of stacks, and the locks that belong to it."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from casebook import colours, places, stacks, words
from casebook.cases.bookstore.store import ENGINES
from casebook.cases.fetching import clients
from casebook.cases.fetching.probes import steps
from casebook.errors import UsageError
from casebook.findings import published
from casebook.laboratory import machine_files, measurements
from casebook.stacks import environments, locks

TABLE = tomllib.loads(stacks.TABLE.read_text())
BOOK, TEST = places.ROOT / "requirements.txt", places.ENV / "test.lock"
LOCKS = sorted((places.ENV / "locks").glob("*.txt"))
TOOLS = [places.ENV / f"{name}.txt" for name in locks._TOOLS]
STACKS = list(stacks.load().values())
PUBLISHED = published.load().set_index("id").to_dict("index")


def test_the_stages_of_2019_are_there_with_the_authors_pins():
    authors = {"urllib3": "1.24.1", "requests": "2.21.0", "gevent": "1.4.0", "grequests": "0.3.0"}
    added = [{}, {"pyopenssl": "19.0.0"}, {"gevent-openssl": "1.2"}, {}]
    for python in ("27", "37"):
        wanted = dict(authors)
        for number, more in enumerate(added, start=1):
            wanted |= more
            packages = stacks.get(f"stage-{number}-py{python}").packages
            assert wanted.items() <= packages.items()
            assert ("pyopenssl" in packages) == (number > 1)
            assert ("gevent-openssl" in packages) == (number > 2)


def test_only_stage_4_and_a_truststore_are_patched():
    patched = [stack.name for stack in STACKS if stack.patch]
    stage_4 = ["stage-4-py27", "stage-4-py37", "stage-4-today"]
    assert patched == [*stage_4, "truststore-let-go-today"]
    assert all((places.ENV / "patches" / stacks.get(name).patch).is_file() for name in patched)


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.name)
def test_each_stack_is_complete(stack):
    assert bool(stack.lock) == (stack.python != "here")
    assert not set(stack.steps) - set(steps.STEPS), f"no such steps; there are {[*steps.STEPS]}"
    assert stack.client in ("", *clients.files())
    assert stack.colour in ("", *colours.COLOURS)
    assert stack.steps or stack.client not in ("grequests", "requests", "threads")
    assert stack.about.endswith(".") and stack.about.count(". ") == 0
    if stack.says:
        row = PUBLISHED[stack.says["id"]]
        assert (row["metric"], row["value"]) == ("verdict", stack.says["verdict"])
        assert row["python"] == stack.python and row["system"].split()[0] in stack.name


ROW = '[[stack]]\nname = "mine"\npython = "today"\nabout = "Mine."\n'


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (ROW + ROW, "two rows with the name mine"),
        (ROW.replace("today", "3.12"), "mine: Python '3.12'; choose one of: 2.7, 3.7, today, here"),
        (ROW + 'colours = "red"\n', "toml, mine: .* unexpected keyword argument 'colours'"),
        (ROW.replace("about", "#"), "toml, mine: .* missing .* 'about'"),
        (ROW + "steps = [\n", "env/stacks.toml: .*end of document"),
    ],
)
def test_a_table_that_is_none_is_refused(table, said, tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "TABLE", tmp_path / "stacks.toml")
    stacks.TABLE.write_text(table)
    with pytest.raises(UsageError, match=said):
        stacks.load.__wrapped__()


def texts_in_cells() -> set[str]:
    """The texts in the code of the chapters, such as "stage-1-today" and "stage-{number}-today"."""
    paths = [places.ROOT / "start.ipynb", *places.NOTEBOOKS.glob("*.ipynb")]
    cells = [cell for path in paths for cell in nbformat.read(path, as_version=4).cells]
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return set(re.findall(r'"([^"\n]+)"', code))


def texts_in(asked: Any) -> Iterator[str]:
    """The texts in what a machine was asked, whatever its shape."""
    if isinstance(asked, str):
        yield asked
    elif isinstance(asked, list | dict):
        for each in asked.values() if isinstance(asked, dict) else asked:
            yield from texts_in(each)


def test_what_chapters_ask_for_is_made_first_and_nothing_else() -> None:
    """What they ask for is what their cells name, and what machines were asked when they ran."""
    files = (places.DATA / "machines").glob(f"*{machine_files.SUFFIX}")
    answers = [answer for file in files for answer in machine_files.read(file).answers]
    texts = texts_in_cells() | {*texts_in([answer.get("asked") for answer in answers])}
    texts |= {stack for engine, (stack, _) in ENGINES.items() if engine in texts}
    first = {stack.name for stack in stacks.of_chapters()}
    others = {stack.name for stack in STACKS} - first
    assert others and not others & texts, others & texts
    # A cell may name one in parts, and begins with a word: "aiobotocore-{number}today".
    parts = [re.split(r"\{.*?\}", text) for text in texts if re.match(r"\w{3}[^{]*\{", text)]
    composed = [".*".join(map(re.escape, each)) for each in parts]
    unasked = first - texts
    assert all(any(re.fullmatch(each, name) for each in composed) for name in unasked), unasked
    assert len(unasked) < 5  # the others are named whole


def test_each_published_verdict_has_its_stack():
    said = {id for id, row in PUBLISHED.items() if row["metric"] == "verdict"}
    # Stage 0 is one stack here: the reader's own Python, which is neither of the two.
    assert {stack.says["id"] for stack in STACKS if stack.says} == said - {"stage0-27", "stage0-37"}


@pytest.mark.parametrize("lock", [*LOCKS, BOOK, TEST], ids=lambda lock: lock.stem)
def test_each_lock_holds_exact_versions_and_no_address(lock):
    text = lock.read_text()
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line) for line in lines_of(lock))
    assert "://" not in text and "/tmp" not in text
    assert "--" not in re.sub(r"(?m)^    --hash=sha256:[0-9a-f]{64}( \\)?$", "", text)


@pytest.mark.parametrize("lock", [*LOCKS, BOOK, TEST, *TOOLS], ids=lambda lock: lock.stem)
def test_what_is_installed_comes_with_digests(lock):
    """Each pin goes on in the next line, and that is a digest."""
    lines = lock.read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if "==" in line]
    assert len(pins) == len(lines_of(lock)) > 0
    for number in pins:
        assert lines[number].endswith(" \\") and "--hash=sha256:" in lines[number + 1]


def test_digests_change_no_pin_marker_or_comment(monkeypatch):
    """What was measured stays valid when a release gets another file, as for a new Python."""
    monkeypatch.setattr(locks, "_resolve", lambda *_, limits: RESOLVED)
    monkeypatch.setattr(stacks, "table", lambda: {"refused_by_uv": {"old==1": "sha256:0e"}})
    lock = "# Mine.\nidna==3 ; extra == 'x' \\\n    --hash=sha256:00\nsix==1.17.0\nold==1\n"
    text = locks.with_digests(lock, "3.7")
    assert stacks.without_digests(text) == stacks.without_digests(lock)
    assert stacks.without_digests(lock) == "# Mine.\nidna==3 ; extra == 'x'\nsix==1.17.0\nold==1\n"
    digests = "idna==3 ; extra == 'x' a1 b2 six==1.17.0 c3 old==1 0e"
    assert re.sub(r"\s+(\\\s+--hash=sha256:)?", " ", text).strip() == f"# Mine. {digests}"


def test_an_index_without_digests_makes_no_lock(monkeypatch):
    monkeypatch.setattr(locks, "_resolve", lambda *_, limits: "six==1.17.0\n")
    with pytest.raises(SystemExit, match=r"six==1.17.0: this index has no digests"):
        locks.with_digests("six==1.17.0\n", "3.7")


def test_versions_are_kept_on_request_and_digests_are_new(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "ENV", tmp_path)
    monkeypatch.setattr(
        locks, "_resolve", lambda *_, limits: "h2==4.4.1 \\\n    --hash=sha256:0b\n"
    )
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks" / "h2-today.txt"
    lock.write_text("# Mine.\nh2==4.4.1 \\\n    --hash=sha256:0a\n")
    locks.main(["--keep", "h2-today"])
    assert lock.read_text() == "# Mine.\nh2==4.4.1 \\\n    --hash=sha256:0b\n"
    with pytest.raises(SystemExit, match=r"none: none.txt is not there yet; without --keep"):
        locks.main(["--keep", "none"])


#: What uv says, with markers of its own.
RESOLVED = """\
idna==3 ; python_version < '4' and extra == 'x' \\
    --hash=sha256:a1 \\
    --hash=sha256:b2
six==1.17.0 \\
    --hash=sha256:c3
"""


def lines_of(path: Path) -> list[str]:
    """The lines of a list of packages, without comments and digests."""
    lines = path.read_text().splitlines()
    return [line.removesuffix(" \\") for line in lines if line and line[0] not in "# "]


def test_the_tests_lock_agrees_with_the_books():
    book, test = ({line.split(" ;")[0] for line in lines_of(lock)} for lock in (BOOK, TEST))
    names = {pin.split("==")[0] for pin in book}
    shared = {pin for pin in test if pin.split("==")[0] in names}
    assert len(shared) > 5 and shared <= book


@pytest.mark.parametrize(("name", "lock"), [("book", BOOK), ("test", TEST)])
def test_what_is_wanted_is_locked(name, lock):
    locked = stacks.pins(lock.read_text())
    for line in lines_of(places.ENV / f"{name}.in"):
        assert re.split("[<>=]", line)[0].lower() in locked


def test_each_lock_comes_from_the_table_and_each_stack_has_one():
    assert {lock.stem for lock in LOCKS} == set(TABLE["packages"])
    assert {stack.lock for stack in STACKS if stack.lock} == set(TABLE["packages"])
    for lock in LOCKS:
        packages = stacks.pins(lock.read_text())
        for pin in TABLE["packages"][lock.stem]:
            name, version = pin.split("==")
            name = name.partition("[")[0]  # an extra names further packages
            assert packages[name] == version


def test_a_stack_without_its_lock_says_what_writes_it():
    new = replace(stacks.get("stage-1-today"), name="new-today", lock="new-1.0-today")
    with pytest.raises(UsageError, match=r"`python -m casebook.stacks.locks new-1.0-today`"):
        environments.ensure(new)
    state = environments.status(new)  # and no list of stacks is stopped by it
    assert (state["state"], state["packages"]) == ("no lock", {})


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"stack": [], "packages": {}}, "row with this lock"),
        ({"stack": [{"lock": "new-1.0", "python": "today"}], "packages": {"new-1": {}}}, ".pack"),
    ],
)
def test_a_lock_that_the_table_does_not_have_is_refused(table, what):
    with pytest.raises(SystemExit, match=rf"new-1.0: .* no {what}"):
        locks.lock_of("new-1.0", table)


def test_a_package_without_its_exact_version_is_refused_before_anything_is_resolved():
    row = {"lock": "new", "python": "today"}
    with pytest.raises(SystemExit, match=r"new: orjson, six has no exact version .* orjson==1\.0"):
        locks.lock_of("new", {"stack": [row], "packages": {"new": ["orjson", "six", "idna==3"]}})


@pytest.mark.parametrize(
    ("lock", "requirements", "limits", "text"),
    [
        ("of-its-own", ["a==1"], ["six==3"], "resolved\n"),  # in place of its Python's
        ("of-37", ["a==1"], ["six==2"], "resolved\n"),
        # What uv refuses is added; and what only Python 2.7 needs, with cryptography.
        ("of-27", ["pyopenssl==1", "enum34==1", "ipaddress==1"],
         ["six==1", "enum34==1", "ipaddress==1"], "resolved\nold==1\n"),
        ("of-today", ["a==1"], ["greenlet==3"], "resolved\n"),
        ("without-limits", ["a==1"], [], "resolved\n"),
    ],
)  # fmt: skip
def test_a_lock_is_resolved_within_what_the_table_says_of_it_or_of_its_python(
    lock, requirements, limits, text, monkeypatch
):
    pythons = {
        "of-its-own": "3.7", "of-37": "3.7", "of-27": "2.7", "of-today": "today",
        "without-limits": "today",
    }  # fmt: skip
    table = {
        "stack": [{"lock": name, "python": python} for name, python in pythons.items()],
        "packages": {name: ["a==1"] for name in pythons} | {"of-27": ["pyopenssl==1", "old==1"]},
        "constraints": {
            "2.7": ["six==1", "enum34==1", "ipaddress==1"], "3.7": ["six==2"],
            "of-its-own": ["six==3"],
        },
        "overrides": {"of-today": ["greenlet==3"]}, "refused_by_uv": {"old==1": "sha256:0e"},
    }  # fmt: skip
    asked = []

    def resolve(*given, **named):
        asked.append((*given, named))
        return "resolved\n"

    monkeypatch.setattr(locks, "_resolve", resolve)
    assert locks.lock_of(lock, table) == text
    options = (
        ("--universal", "--python-version", "3.11", "--overrides") if pythons[lock] == "today"
        else ("--python-version", "3.7", "--constraints")
    )  # fmt: skip
    assert asked == [(requirements, *options, {"limits": limits})]


def test_stacks_of_one_python_differ_in_what_they_are_about_only():
    old, new = (stacks.get(f"requests-{version}-py37").packages for version in ("2.23", "2.24"))
    assert {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)} == {
        "requests"
    }


def test_an_unknown_stack_is_refused_with_near_names():
    with pytest.raises(UsageError, match=r"did you mean .*stage-2-py27") as error:
        stacks.get("stage-2-py26")
    assert error.value.exit_code == 2
    with pytest.raises(UsageError, match="`casebook stacks` lists them all"):
        stacks.get("nonsense")
    with pytest.raises(UsageError, match="no stack ''"):
        stacks.get("")


def test_a_label_says_the_python_or_not_and_is_the_same_on_all_pythons():
    labels = defaultdict(set)
    for stack in STACKS:
        assert "{" not in stack.label.replace("{}", "", 1), stack.name
        labels[words.split_stack(stack.name)[0]] |= {stack.label} - {""}
    assert all(len(each) <= 1 for each in labels.values())
    assert words.stack_label("stage-2-py37") == "+ pyOpenSSL, Python 3.7"  # the row of 2.7 has it


def test_no_answer_loses_its_place_when_a_label_or_a_colour_changes():
    stack = stacks.get("stage-0")
    other = replace(stack, label="something else", colour="plum")
    first, second = (measurements.key_of([Path(__file__)], each) for each in (stack, other))
    assert (first, first.question, first.depends_on) == (second, second.question, second.depends_on)
    assert first != measurements.key_of([Path(__file__)], replace(stack, steps=()))


def test_a_stack_is_frozen_and_hashable():
    assert len({*STACKS, *STACKS}) == len(STACKS)
    with pytest.raises(AttributeError):
        STACKS[0].name = "other"
