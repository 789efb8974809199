"""Digests: they change when, and only when, what Python would execute changes."""

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casebook.stacks import digests

CODE = '''"""What it is about."""
import json
from casebook.laboratory import runs


class Box:
    """Holds."""

    size = 3

    def take(self, n=1, *, fast=True):
        """Take."""
        # One by one.
        if n > 2 and fast:
            return [each + 1 for each in range(n)]
        return {"a": (n, None), "b": "text" "s"}


def main(box):
    try:
        return json.dumps(box.take(4))
    finally:
        box.size -= 1
'''


def digest(folder: Path, source: str) -> str:
    file = folder / "code.py"
    file.write_text(source, encoding="utf-8")
    return digests.digest(file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What it is about."""\n', ""),
        ('"""Holds."""', '"""Holds\n\n    much more."""'),
        ("        # One by one.\n", ""),
        ("size = 3", "size  =  3  # why"),
        ("[each + 1 for each in range(n)]", "[\n    each + 1 for each in range(n)\n]"),
        ('"text" "s"', "'texts'"),
        ("(n, None)", "((n), None)"),
        ("n > 2 and fast", "(n > 2) and (fast)"),
        ("import json\n", "import json\n\n\n"),
        ("casebook.laboratory import runs", "casebook.cases.somewhere import runs"),
        ("size = 3", "size = 0x3"),
        # They say what is wrong with an argument, and what a book keeps.
        ("def main(box)", "@for_readers\ndef main(box)"),
        ("class Box", "@for_readers\nclass Box"),
        ("def main(box)", "@not_a_measurement\ndef main(box)"),
    ],
)
def test_what_nobody_executes_changes_nothing(tmp_path, old, new):
    assert CODE.count(old) == 1
    assert digest(tmp_path, CODE.replace(old, new)) == digest(tmp_path, CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size = 3", "size = 4"),
        ("size = 3", "size = 3.0"),
        ("size = 3", "size = '3'"),
        ("size = 3", "sizes = 3"),
        ("n=1", "n=2"),
        ("n=1", "n"),
        ("fast=True", "fast=False"),
        ("fast=True", "fast=1"),
        ("n > 2", "n >= 2"),
        ("n > 2", "2 > n"),
        ("and fast", "or fast"),
        ("each + 1", "each - 1"),
        ("range(n)", "range(n, 1)"),
        ("self, n=1, *,", "self, n=1,"),
        ('"a": (n, None)', '"a": [n, None]'),
        ('"text" "s"', '("text", "s")'),
        ('{"a": (n, None), "b"', '{"b": (n, None), "a"'),
        ("size -= 1", "size = 1"),
        ("    finally:\n        box", "    except OSError:\n        box"),
        ("import json\n", "import json as js\n"),
        ("        return {", "        yield {"),
        ("return json", "return None and json"),
        ("def main(box):", "async def main(box):"),
        ("class Box:", "class Box(list):"),
        ("    size = 3\n", "    size = 3\n    more = 1\n"),
    ],
)
def test_what_python_executes_changes_the_digest(tmp_path, old, new):
    assert CODE.count(old) == 1
    assert digest(tmp_path, CODE.replace(old, new)) != digest(tmp_path, CODE)


def test_what_else_of_a_statement_is_executed(tmp_path):
    assert digest(tmp_path, "start(1)\n") != digest(tmp_path, "start(2)\n")
    assert digest(tmp_path, "start\n") != digest(tmp_path, "")
    assert digest(tmp_path, "1\n") != digest(tmp_path, "2\n") and digest(tmp_path, "'1'\n") == (
        digest(tmp_path, "'2'\n")
    )


def test_what_is_imported_from_elsewhere_counts(tmp_path):
    one = digest(tmp_path, "from requests import get\n")
    assert one != digest(tmp_path, "from niquests import get\n")
    assert one != digest(tmp_path, "from casebookish import get\n") != digest(tmp_path, "")
    assert digest(tmp_path, "import casebook\n") != digest(tmp_path, "")


def test_capitals_count(tmp_path):
    assert digest(tmp_path, "x = Session()\n") != digest(tmp_path, "x = session()\n")
    assert digest(tmp_path, "x = 'A'\n") != digest(tmp_path, "x = 'a'\n")


def test_two_files_with_the_same_content_are_two(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n")
    one, two = [tmp_path / "a.py"], [tmp_path / "a.py", tmp_path / "b.py"]
    assert digests.digest(one) != digests.digest(two)


def test_what_else_is_counted(tmp_path):
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1\n")
    (folder / "below" / "b.txt").write_text("one\n")
    first = digests.digest(folder)
    (folder / "notes.md").write_text("nobody executes this\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "c.py").write_text("y = 1\n")
    assert digests.digest(folder) == first
    assert digests.digest([folder / "a.py", folder / "below" / "b.txt"]) == first
    (folder / "below" / "b.txt").write_text("two\n")
    assert digests.digest(folder) != first
    assert digests.digest(folder, 1) != digests.digest(folder, 2) != digests.digest(folder)
    assert digests.digest({"a": 1, "b": 2}) == digests.digest({"b": 2, "a": 1})
    assert digests.digest([1, 2]) != digests.digest([2, 1])
    assert digests.digest("a", "b") != digests.digest("ab")


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(st.integers(-3, 3), st.booleans(), st.floats(0, 2), st.text("xy", max_size=2))
LINES = st.lists(
    st.one_of(
        st.builds("{} = {!r}".format, NAMES, VALUES),
        st.builds("{} = {} {} {!r}".format, NAMES, NAMES, st.sampled_from("+-*<"), VALUES),
        st.builds("def {}(x={!r}):\n    'Say.'\n    return x".format, NAMES, VALUES),
        st.builds("# {}".format, st.text("xy ", max_size=5)),
        st.builds("if {}:\n    {} = 1\nelse:\n    {} = 2".format, NAMES, NAMES, NAMES),
    ),
    max_size=4,
)


def executed(source: str) -> list[object]:
    """What Python makes of a source: the code, without docstrings and lines."""

    def of(code) -> tuple:
        consts = [of(each) if hasattr(each, "co_code") else (type(each), each)
                  for each in code.co_consts]  # fmt: skip
        return code.co_code, code.co_names, code.co_varnames, consts

    return [of(compile(source, "x", "exec", optimize=2, dont_inherit=True))]


@settings(max_examples=60, deadline=None)
@given(one=LINES, other=LINES)
def test_two_programs_have_one_digest_only_if_python_executes_the_same(one, other):
    first, second = "\n".join(one), "\n".join(other)
    same = digests._code(first.encode()) == digests._code(second.encode())
    if same:
        assert executed(first) == executed(second)
    tidy = ast.unparse(ast.parse(first))
    assert digests._code(tidy.encode()) == digests._code(first.encode())
    spaced = "\n\n# more\n".join(one) + "\n"
    assert digests._code(spaced.encode()) == digests._code(first.encode())
