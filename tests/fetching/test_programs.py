"""A few lines of a reader's own, run inside a stack."""

import pytest

from casebook.cases.fetching import programs
from casebook.errors import RunFailed, UsageError

STACK = "stage-1-today"


def test_code_finds_clients_and_steps_and_nothing_of_this_process_gets_in():
    code = "import sys, grequests_map, steps; print(sys.argv[1:], 'pytest' in sys.modules)"
    assert programs.run(STACK, code, "a", "b") == "['a', 'b'] False\n"


@pytest.mark.parametrize("scheme, handshakes", [("https", 2), ("http", 0)])
def test_code_that_fetches_is_counted(scheme, handshakes):
    code = (
        "import sys, loop; url = sys.argv[1] + '/delay/0?page=%s' % sys.argv[3]\n"
        "print([r.json()['args'] for r in loop.fetch([url] * 2, sys.argv[2] or True)])"
    )
    said, counted = programs.fetch(STACK, code, "7", scheme=scheme)
    assert said == "[{'page': ['7']}, {'page': ['7']}]\n"
    assert (counted["requests"], counted["handshakes"]) == (2, handshakes)


def test_code_that_fails_is_named_with_its_last_line():
    with pytest.raises(RunFailed, match=r"stage-1-today: .*exited with code 1 \(KeyError: 'no'\)"):
        programs.run(STACK, "{}['no']")
    with pytest.raises(UsageError):
        programs.run("no-such-stack", "pass")


def test_code_that_does_not_end_is_ended():
    with pytest.raises(RunFailed, match="did not end"):
        programs.run(STACK, "import time; time.sleep(30)", within_s=0.5)
