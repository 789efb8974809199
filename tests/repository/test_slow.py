"""The list of slow tests, by which `make test` ends in minutes."""

import ast
import functools
from pathlib import Path

import slow

from casebook import places

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.repository.test_slow" name="test_a[one.two]" time="0.99"/>
<testcase classname="tests.repository.test_slow" name="test_b[x/y::z]" time="1.0"/>
<testcase classname="tests.repository.test_slow.TestC" name="test_d" time="31.26"/>
<testcase classname="tests.repository.test_slow.TestC" name="test_d" time="0.01"/>
<testcase classname="tests.repository.test_slow" name="test_e" time="20.4"><properties>
<property name="fixture" value="tests/repository/test_slow.py::[dear] 10.0"/>
<property name="fixture" value="tests/repository::[cheap] 9.5"/>
</properties></testcase>
</testsuite></testsuites>
"""


def test_the_list_is_made_of_what_each_test_took(tmp_path: Path) -> None:
    report, path = tmp_path / "tests.xml", tmp_path / "slow.txt"
    report.write_text(REPORT)
    slow.write(slow.durations(report), path)
    file = "tests/repository/test_slow.py"
    assert slow.read(path) == [
        (f"{file}::TestC::test_d", 31.3),
        (f"{file}::[dear]", 10.0),
        (f"{file}::test_b[x/y::z]", 1.0),
    ]
    assert slow.read(tmp_path / "none.txt") == []


def test_each_line_names_a_test_that_exists() -> None:
    """A test that was renamed would run in `make test` again, with nobody to notice."""
    rows, missing = slow.read(), []
    for test, seconds in rows:
        assert seconds >= slow.limit(test)
        place, _, fixture = test.partition("::[")
        file, *_, name = test.partition("[")[0].split("::")
        path = places.ROOT / (place if fixture else file)
        path = path / "conftest.py" if path.is_dir() else path
        if not path.exists() or (fixture.removesuffix("]") or name) not in _functions(path):
            missing.append(test)
    assert rows and not missing


@functools.cache
def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
