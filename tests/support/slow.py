"""Which tests are slow: those that took LIMIT_S or longer when all of them ran last.

So are all that need a fixture whose set-up took SETUP_S or longer: the first of them would pay for
it. `make test-all` writes what each took to _build/tests.xml. `python tests/support/slow.py` makes
tests/slow.txt of it, by which `make test` leaves these tests to `make test-all`. The run has to be
a second one: in the first, tests also make the environments that they need.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).resolve().parents[1]
LIST = TESTS / "slow.txt"
REPORT = TESTS.parent / "_build" / "tests.xml"
LIMIT_S = 1.0
SETUP_S = 10.0
#: Under this name a test's report has the fixtures that were set up for it: "file::[fixture] s".
PROPERTY = "fixture"

HEAD = """\
# The tests that took {limit:g} s or longer when all ran last, on two cores, and in brackets the
# fixtures whose set-up took {setup:g} s: seconds, test or fixture. `make test` leaves the tests,
# and those that need such a fixture, to `make test-all`. Written by tests/support/slow.py.
"""


def read(path: Path = LIST) -> list[tuple[str, float]]:
    """Return the slow tests, each with its seconds; none if there is no list."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = (line.partition("\t") for line in lines if not line.startswith("#"))
    return [(test, float(seconds)) for seconds, _, test in rows]


def name_of(fixture: pytest.FixtureDef) -> str:
    """Return "tests/room/test_x.py::[fixture]", or "tests/room::[fixture]" for a conftest.py."""
    return f"{fixture.baseid}::[{fixture.argname}]"


def durations(report: Path) -> dict[str, float]:
    """Return what each test of a JUnit report took in s, and each fixture that was noted.

    What was set up for a test is not part of its own time.
    """
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        # The file as pytest names it: a module, and the classes in it.
        module, *classes = _split(case.get("classname", ""))
        took_s = float(case.get("time", 0))
        for value in case.iterfind(f"properties/property[@name='{PROPERTY}']"):
            fixture, setup_s = value.get("value", "").rsplit(maxsplit=1)
            seconds[fixture] = max(seconds.get(fixture, 0.0), float(setup_s))
            took_s -= float(setup_s)
        test = "::".join([module, *classes, case.get("name", "")])
        seconds[test] = max(seconds.get(test, 0.0), took_s)
    return seconds


def _split(classname: str) -> list[str]:
    """Split "tests.room.test_x.TestY" into the path of the file and the classes in it."""
    parts = classname.split(".")
    for length in range(len(parts), 0, -1):
        path = Path(*parts[:length]).with_suffix(".py")
        if (TESTS.parent / path).exists():
            return [path.as_posix(), *parts[length:]]
    return [classname]


def write(seconds: dict[str, float], path: Path = LIST) -> None:
    """Write the list of the slow tests among these."""
    rows = sorted((name, took) for name, took in seconds.items() if took >= limit(name))
    head = HEAD.format(limit=LIMIT_S, setup=SETUP_S)
    path.write_text(head + "".join(f"{took:.1f}\t{name}\n" for name, took in rows))


def limit(name: str) -> float:
    """Return from how many seconds on a test, or a fixture, is slow."""
    return SETUP_S if "::[" in name else LIMIT_S


def main(arguments: Iterable[str]) -> None:
    """Write the list from a report, or from the last one of `make test-all`."""
    report = Path(next(iter(arguments), REPORT))
    if not report.exists():
        sys.exit(f"there is no {report}: `make test-all` writes it")
    write(durations(report))


if __name__ == "__main__":
    main(sys.argv[1:])
