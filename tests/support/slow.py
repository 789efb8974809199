"""Which tests are slow: those that took LIMIT_S or longer when all of them ran last.

`make test-all` writes what each took to _build/tests.xml. `python tests/support/slow.py` makes
tests/slow.txt of it, by which `make test` leaves these tests to `make test-all`.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parents[1]
LIST = TESTS / "slow.txt"
REPORT = TESTS.parent / "_build" / "tests.xml"
LIMIT_S = 2.0

HEAD = """\
# The tests that took {limit:g} s or longer when all ran last, on two cores: seconds, test.
# `make test` leaves them to `make test-all`. Written by tests/support/slow.py.
"""


def read(path: Path = LIST) -> list[tuple[str, float]]:
    """Return the slow tests, each with its seconds; none if there is no list."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = (line.partition("\t") for line in lines if not line.startswith("#"))
    return [(test, float(seconds)) for seconds, _, test in rows]


def durations(report: Path) -> dict[str, float]:
    """Return what each test of a JUnit report took in s, with what was set up for it first."""
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        # The file as pytest names it: a module, and the classes in it.
        module, *classes = _split(case.get("classname", ""))
        test = "::".join([module, *classes, case.get("name", "")])
        seconds[test] = max(seconds.get(test, 0.0), float(case.get("time", 0)))
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
    rows = sorted((test, took) for test, took in seconds.items() if took >= LIMIT_S)
    path.write_text(
        HEAD.format(limit=LIMIT_S) + "".join(f"{took:.1f}\t{test}\n" for test, took in rows)
    )


def main(arguments: Iterable[str]) -> None:
    """Write the list from a report, or from the last one of `make test-all`."""
    report = Path(next(iter(arguments), REPORT))
    if not report.exists():
        sys.exit(f"there is no {report}: `make test-all` writes it")
    write(durations(report))


if __name__ == "__main__":
    main(sys.argv[1:])
