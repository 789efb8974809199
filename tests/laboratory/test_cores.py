"""How many cores are ours: real control groups, and what the kernel writes of them."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from here import run

from casebook.laboratory import conditions

ASK = "from casebook.laboratory import conditions; print(conditions._cores())"
#: The two ways in which Linux mounts control groups, and the file of each that holds a quota.
PLACES = (
    (Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us", "50000"),
    (Path("/sys/fs/cgroup"), "cpu.max", "50000 100000"),
)


@pytest.fixture
def half_a_core() -> Iterator[Path]:
    """A control group, made by the kernel, that may use half a core."""
    for root, name, quota in PLACES:
        group = root / f"casebook-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            try:
                (group / name).write_text(quota)
                (group / "deeper").mkdir()
                yield group
                return
            finally:
                for each in (group / "deeper", group):
                    with suppress(OSError):
                        each.rmdir()
    pytest.skip("no control group can be made here: that takes rights")


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_quota_counts_also_one_further_out(half_a_core: Path, inside: str) -> None:
    joins = 'echo $$ > "$0" && exec "$@"'
    procs = half_a_core / inside / "cgroup.procs"
    told = run("sh", "-c", joins, procs, sys.executable, "-c", ASK)
    assert told.stdout == "0.5\n", told.stderr


def test_affinity_counts_where_it_is_less() -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    one = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {ASK}"
    assert 0 < float(run(sys.executable, "-c", one).stdout) <= 1
    assert 0 < conditions._cores() <= (os.cpu_count() or 1)


MOUNTED = {
    "two": "30 23 0:26 {root} {folder} rw,relatime - cgroup2 cgroup2 rw,nsdelegate",
    "one": "31 23 0:27 {root} {folder} rw shared:9 - cgroup cgroup rw,cpu,cpuacct",
}
OF = {"two": "0::{path}", "one": "4:memory:/elsewhere\n3:cpu,cpuacct:{path}"}


@pytest.mark.parametrize(
    ("version", "root", "path", "files", "cores"),
    [
        ("two", "/", "/pod/box", {"pod/box/cpu.max": "100000 100000"}, [1.0]),
        ("two", "/", "/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, [1.5]),
        ("two", "/", "/", {}, []),
        # What a container sees: its own group is the root of all that is mounted.
        ("one", "/docker/1f", "/docker/1f", {"cpu.cfs_quota_us": "200000"}, [2.0]),
        ("one", "/docker/1f", "/docker/1f", {"cpu.cfs_quota_us": "-1"}, []),
        ("one", "/", "/gone", {}, []),
    ],
)  # fmt: skip
def test_both_interfaces_are_read_as_the_kernel_writes_them(
    tmp_path: Path, version: str, root: str, path: str, files: dict[str, str], cores: list[float]
) -> None:
    proc, folder = tmp_path / "proc", tmp_path / "groups"
    proc.mkdir()
    mount = MOUNTED[version].format(root=root, folder=folder)
    (proc / "mountinfo").write_text(f"22 1 8:1 / / rw - ext4 /dev/root rw\n{mount}\n")
    (proc / "cgroup").write_text(OF[version].format(path=path) + "\n")
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        if version == "one":
            file.with_name("cpu.cfs_period_us").write_text("100000\n")
    assert list(conditions._quotas(proc)) == cores


def test_elsewhere_there_are_no_control_groups(tmp_path: Path) -> None:
    assert list(conditions._quotas(tmp_path)) == []


@pytest.mark.parametrize(
    ("loads", "cores", "wanted"),
    [
        ([5, 5, 1], [2, 2, 2], "2.5"),
        ([4, 4, 9], [2, 2, 2], ""),  # as much as its own chapters may make
        ([5, 5, 5], [4, 4, 4], ""),
        ([1, 9], [1, 1], "5.0"),
        ([math.nan, math.nan], [2, 2], ""),  # a machine that does not say
    ],
)
def test_other_work_is_told_by_the_load_of_most_runs(
    loads: list[float], cores: list[int], wanted: str
) -> None:
    reason = conditions.other_work(pd.DataFrame({"load_1min": loads, "cores": cores}))
    assert reason == (
        f"the machine had other work: {wanted} processes a core wanted the processor"
        if wanted
        else ""
    )
