"""The laboratory on many machines: three workers, one that dies, keys, and what is refused."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from here import environment, eventually, run

from casebook import places
from casebook.cases.many import cluster, jobs
from casebook.errors import ServerFailed, UsageError

CASEBOOK = (sys.executable, "-m", "casebook")
MEASURE = ("measure", "stage-1-today", "--n", "10", "--delay", "0.1", "--json")


@contextlib.contextmanager
def casebook(*arguments: object, log: Path, **more) -> Iterator[subprocess.Popen]:
    """A command of casebook that runs until the block ends; what it says goes to a file."""
    with log.open("w") as said:
        command = [*CASEBOOK, *map(str, arguments)]
        how = {"cwd": places.ROOT, "stdout": said, "stderr": said, "start_new_session": True} | more
        with subprocess.Popen(command, **how) as running:
            try:
                yield running
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, 9)


@contextlib.contextmanager
def dask_cluster(
    folder: Path, workers: int, *keys: object, scheme: str = "tcp", **more
) -> Iterator:
    """A scheduler and workers on the loopback: its address, and the workers' processes."""
    environment(jobs.STACK)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, log = f"{scheme}://127.0.0.1:{port}", folder / "scheduler.log"
    with contextlib.ExitStack() as running:
        enter = running.enter_context
        enter(casebook("cluster", "scheduler", "--port", port, *keys, log=log))
        assert eventually(lambda: "Scheduler at" in log.read_text(), 120), log.read_text()
        those = [
            enter(casebook("cluster", "worker", address, *keys, log=folder / f"{n}.log", **more))
            for n in range(workers)
        ]
        assert eventually(lambda: log.read_text().count("Register worker") >= workers, 240)
        yield address, those


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("three"), 3) as (address, _):
        yield address


@pytest.mark.slow
def test_three_workers_give_the_verdict_of_one_machine_and_name_what_cannot_run(three):
    environment("stage-1-today")
    asked = ("measure", "no-such-stack", *MEASURE[1:], "--on", three)
    done = run(*CASEBOOK, *asked, timeout=600)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows, done.stderr
    alone = [json.loads(line) for line in run(*CASEBOOK, *MEASURE).stdout.splitlines()]
    assert len({row["worker"] for row in rows}) == 3 and len(rows) == 3 * len(alone)
    peaks = [row["counters"]["peak_in_flight"] for row in (*rows, *alone)]
    assert min(peaks) > 1  # concurrent, here and there
    assert done.returncode == 1 and done.stderr.count("no-such-stack") >= 3


@pytest.mark.slow
def test_each_machine_sends_its_file_once_whole_or_not_at_all(three, tmp_path):
    answers = list(cluster.save(three, None, tmp_path / "ours.jsonl.xz"))
    assert len(answers) == 1  # three workers, one machine
    (_, file, said) = answers[0]
    if file is None:  # a checkout that has measured nothing yet
        assert "measured nothing yet" in said and not list(tmp_path.iterdir())
    else:
        assert [file] == list(tmp_path.iterdir()) and file.name == "ours-1.jsonl.xz"


@pytest.mark.slow
def test_a_worker_that_dies_is_named_and_what_the_other_measured_is_kept(tmp_path):
    with dask_cluster(tmp_path, 2) as (address, those):
        found = []
        # The machine's lock lets one measure at a time, so that nobody is done when one is killed.
        commands = [["measure", "stage-1-today", "--n", "3", "--delay", "2", "--json"]]
        for answer in cluster.run_on_workers(address, None, [["stacks"], *commands]):
            found.append(answer)
            if len(found) == 1:
                os.killpg(those[0].pid, 9)
        failed = [each.failed for each in found if each.failed]
        assert len(found) == 4
        assert failed and all("died before it had answered" in each for each in failed)
        assert [each for each in found if each.command == commands[0] and each.out]


@pytest.mark.slow
def test_a_measurement_of_another_checkout_is_refused(tmp_path):
    other = tmp_path / "other"
    left = shutil.ignore_patterns(".venv", ".casebook", ".git", "_build", "notebooks", "data")
    shutil.copytree(places.ROOT, other, ignore=left)
    (other / ".casebook").symlink_to(places.LOCAL)
    (other / "casebook" / "words.py").open("a").write("OTHERWISE = 1\n")
    more = {"cwd": other, "env": os.environ | {"PYTHONPATH": str(other)}}
    with dask_cluster(tmp_path, 1, **more) as (address, _):
        [answer] = cluster.run_on_workers(address, None, [["stacks"]])
        assert "nothing was measured" in answer.failed and not answer.out


def keys(folder: Path) -> cluster.Keys:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    made = cluster.Keys(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    authority.cert_pem.write_to_path(made.ca)
    issued.private_key_pem.write_to_path(made.key)
    made.cert.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    return made


@pytest.mark.slow
def test_over_tls_both_sides_show_their_certificates(tmp_path):
    ours, strangers = keys(tmp_path), tmp_path / "stranger"
    strangers.mkdir()
    options = ("--tls-ca", ours.ca, "--tls-cert", ours.cert, "--tls-key", ours.key)
    with dask_cluster(tmp_path, 1, *options, scheme="tls") as (address, _):
        [answer] = cluster.run_on_workers(address, ours, [["stacks"]])
        assert "stage-1-today" in answer.out and not answer.failed
        for others, where in ((keys(strangers), address), (None, address.replace("tls", "tcp"))):
            with pytest.raises(ServerFailed, match="no scheduler answers"):
                list(cluster.run_on_workers(where, others, [["stacks"]]))


def test_nobody_answers():
    environment(jobs.STACK)
    done = run(*CASEBOOK, *MEASURE, "--on", "tcp://127.0.0.1:9")
    assert done.returncode == 1 and not done.stdout
    assert "no scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert "cluster scheduler" in done.stderr


ANY = cluster.Keys(Path("ca"), Path("cert"), Path("key"))


@pytest.mark.parametrize(
    "address, with_keys, why",
    [
        ("tcp://192.0.2.1:8786", None, "anyone who reaches a scheduler can run code"),
        ("tcp://0.0.0.0:8786", None, "loopback"),
        ("tcp://localhost.example.org:8786", None, "loopback"),
        ("tls://192.0.2.1:8786", None, "belong together"),
        ("tcp://127.0.0.1:8786", ANY, "belong together"),
        ("http://127.0.0.1:8786", None, "like tcp://"),
        ("tcp://127.0.0.1", None, "like tcp://"),
    ],
)
def test_what_is_refused_before_anything_is_sent(address, with_keys, why):
    with pytest.raises(UsageError, match=why):
        list(cluster.run_on_workers(address, with_keys, [["stacks"]]))


def test_nothing_listens_to_the_world_without_keys(tmp_path):
    for what in (("scheduler", "--host", "0.0.0.0"), ("worker", "tcp://10.0.0.1:8786")):
        done = run(*CASEBOOK, "cluster", *what)
        assert done.returncode == 2 and "loopback" in done.stderr
    one = tmp_path / "ca.pem"
    one.touch()
    done = run(*CASEBOOK, "cluster", "scheduler", "--tls-ca", one)
    assert done.returncode == 2 and "come together" in done.stderr
