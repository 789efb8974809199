"""A few lines of a reader's own, run inside a stack."""

import pytest

from casebook.cases import programs
from casebook.errors import RunFailed, UsageError

STACK = "stage-1-today"


def test_code_runs_in_the_stack_and_nothing_of_this_process_gets_in():
    said = programs.run(STACK, "import sys; print(sys.argv[1:], 'pytest' in sys.modules)", "a", "b")
    assert said == "['a', 'b'] False\n"


def test_code_finds_the_clients_and_the_steps():
    said = programs.run(STACK, "import grequests_map, steps; print(steps.take.__name__)")
    assert said == "take\n"


def test_code_that_fetches_is_counted():
    code = (
        "import sys, loop; url = sys.argv[1] + '/delay/0?page=%s' % sys.argv[3]\n"
        "print([r.json()['args'] for r in loop.fetch([url] * 2, sys.argv[2])])"
    )
    said, counted = programs.fetch(STACK, code, "7")
    assert said == "[{'page': ['7']}, {'page': ['7']}]\n"
    assert (counted["requests"], counted["handshakes"]) == (2, 2)


def test_over_plain_http_there_is_no_ca_file():
    said, counted = programs.fetch(STACK, "import sys; print(sys.argv[1:])", scheme="http")
    assert said.startswith("['http://127.0.0.1:") and said.endswith(", '']\n")
    assert counted["connections"] == 0


def test_code_that_fails_is_named_with_its_last_line():
    with pytest.raises(RunFailed, match=r"stage-1-today: .*exit code 1 \(KeyError: 'no'\)"):
        programs.run(STACK, "{}['no']")
    with pytest.raises(UsageError):
        programs.run("no-such-stack", "pass")


def test_code_that_does_not_end_is_ended():
    with pytest.raises(RunFailed, match="did not end"):
        programs.run(STACK, "import time; time.sleep(30)", within_s=0.5)
