"""What no chapter runs, to its end in its smallest size. What it finds is for quiet machines."""

import sys

import pytest
from here import run

pytestmark = pytest.mark.slow

SMALLEST = {
    "certificates.forks": ("context dropped, 4 threads", ["--children", "2"]),
    "verdicts_under_load": ("verdicts that differ", ["1", "2"]),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_runs_to_its_end(name):
    said, options = SMALLEST[name]
    done = run(sys.executable, "-m", f"casebook.cases.{name}", *options, timeout=600)
    # 1: a target was missed, which a busy machine may do.
    assert done.returncode in (0, 1), done.stderr[-2000:]
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
