"""Each benchmark runs to its end in its smallest size. What it finds is for quiet machines."""

import subprocess
import sys

import pytest

from casebook import places
from casebook.stacks import environments

pytestmark = pytest.mark.slow

SMALLEST = {
    "probe_overhead": ("wall of probe / bare", ["stage-1-today", "--n", "3", "--delay", "0.1",
                                                "--pairs", "3"]),
    "server_against_go_httpbin": ("p99_late_s", ["20", "2"]),
    "shared_context": ("loads of a process, cured", ["--repeats", "1"]),
    "thousands": ("cured over near-limit", ["--sizes", "30", "--repeats", "1", "--stock", "0"]),
    "verdicts_under_load": ("verdicts that differ", ["1", "2"]),
}  # fmt: skip
NEEDS = {"server_against_go_httpbin": "go-httpbin"}


def test_every_benchmark_is_here():
    folder = places.ROOT / "benchmarks"
    # The others are parts of these: what runs in a process of its own, and a line to print.
    parts = {"bare_fetch", "crowd", "many_threads", "ratios"}
    assert {path.stem for path in folder.glob("*.py")} == set(SMALLEST) | parts


@pytest.mark.parametrize("name", SMALLEST)
def test_runs_to_its_end(name):
    needed = NEEDS.get(name)
    if needed and needed not in environments.required():
        pytest.skip(f"{needed} is not required here (CASEBOOK_REQUIRE)")
    said, options = SMALLEST[name]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *options],
        cwd=places.ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    # 1: a target was missed, which a busy machine may do.
    assert done.returncode in (0, 1), done.stderr[-2000:]
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
