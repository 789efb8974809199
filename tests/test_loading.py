"""Loads of certificates inside real stacks: counted, kept, and the same whoever measures."""

import json
import subprocess
import sys

import pytest

from casebook import answers, environments, places, reference, stacks, trust
from casebook.certificates import handshakes, loading, rwlocks
from casebook.certificates.loading import Task
from casebook.errors import RunFailed, UsageError

ALL = len(trust.certificates())
OLD = ("stage-1-py27", "stage-1-py37")


def test_every_load_is_counted_and_found_in_the_context():
    tasks = [Task(certificates=0, loads=3), Task(certificates=10, loads=4)]
    tasks += [Task(certificates=10, way="default", loads=2), Task(loads=4, threads=4)]
    frame = loading.measure("stage-1-today", tasks, repeats=2)
    assert list(frame.columns) == loading.COLUMNS
    for _, rows in frame.groupby("repeat"):
        assert list(rows["contexts"]) == [3, 4, 2, 4]
        assert list(rows["loads"]) == [0, 4, 2, 4]
        assert list(rows["certificates"]) == [0, 10, 10, ALL]
        assert list(rows["way"]) == ["none", "file", "default", "file"]
        assert list(rows["how"]) == ["one thread"] * 3 + ["4 threads"]
    assert set(frame["source"]) == {"live"}


def test_processes_load_beside_each_other_and_their_time_is_counted():
    frame = loading.measure("stage-1-today", Task(loads=4, processes=2), repeats=1)
    assert list(frame["how"]) == ["2 processes"] and frame["loads"].isna().all()
    assert (frame["cpu_ms"] > 0.5).all()


@pytest.mark.parametrize("version", loading.OPENSSLS)
def test_each_openssl_is_the_one_that_its_stack_is_named_for(version):
    tasks = [Task(loads=1), Task(loads=1, way="default")]
    frame = loading.measure(f"openssl-{version}-today", tasks, repeats=1)
    assert frame["openssl"].str.startswith(f"OpenSSL {version}").all()
    assert (frame["certificates"] == ALL).all()


def test_the_default_bundle_held_the_gil_once_and_a_file_never_did():
    frame = loading.measure([*OLD, "stage-1-today"], loading.WATCHED, repeats=1)
    beats = frame.groupby(["stack", "way"])["beats"].median()
    for stack in OLD:
        assert beats[stack, "default"] < 0.2 * beats[stack, "file"]
    assert min(beats["stage-1-today"]) > 5


def test_openssl_3_0_takes_more_locks_than_any_other_and_always_as_many():
    names = [f"openssl-{version}-today" for version in loading.OPENSSLS]
    locks = rwlocks.count(names).set_index("stack")["locks"]
    assert locks.idxmax() == "openssl-3.0-today"
    assert locks["openssl-3.0-today"] > 5 * locks.drop("openssl-3.0-today").max()
    again = rwlocks.count("openssl-3.0-today")["locks"].iloc[0]
    assert abs(again / locks["openssl-3.0-today"] - 1) < 0.02


def test_without_a_compiler_the_recorded_locks_are_given_and_say_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    frame = rwlocks.count(["openssl-1.1.1-today", "openssl-3.0-today"])
    assert list(frame["source"]) == ["reference"] * 2
    assert frame["locks"].iloc[0] * 50 < frame["locks"].iloc[1]
    with pytest.raises(RunFailed, match=r"stage-1-today: .*C compiler.*has no count"):
        rwlocks.count("stage-1-today")


def test_truststore_loads_at_each_handshake_and_the_standard_library_once():
    frame = handshakes.measure(n=3, repeats=1).set_index("context")
    assert list(frame.loc["ssl", ["loads_before", "loads"]]) == [1, 0]
    assert list(frame.loc["truststore", ["loads_before", "loads"]]) == [0, 3]
    assert set(frame["handshakes"]) == {3}


def test_tasks_out_of_range_are_refused_by_name():
    for task, said in (
        (Task(way="zip"), "choose one of: file, default"),
        (Task(certificates=ALL + 1), f"certifi has {ALL}"),
        (Task(loads=10, threads=3), "cannot be shared evenly by 3"),
        (Task(loads=4, threads=2, processes=2), "one of the two"),
        (Task(loads=0), "1 to 10000 loads"),
    ):
        with pytest.raises(UsageError, match=said):
            loading.measure("stage-1-today", task)
    with pytest.raises(UsageError, match="choose: ssl, truststore"):
        handshakes.measure(["gnutls"])


def test_a_load_that_fails_is_no_measurement(tmp_path):
    environment = environments.ensure(stacks.get("stage-1-today"))
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    task = {"way": "file", "bundle": str(empty), "loads": 4, "threads": 2, "processes": 1}
    spec = {"library": "ssl", "nowhere": "nothing", "tasks": [task | {"watched": False}]}
    with pytest.raises(RunFailed, match="no certificate or crl found"):
        answers.ask(environment, "loading.py", spec)


def test_a_build_takes_what_was_measured_and_a_reader_measures_anew(monkeypatch):
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    task = Task(certificates=1, loads=1)
    first, second = (loading.measure("stage-1-today", task, repeats=1) for _ in range(2))
    assert first.equals(second)
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert not first.equals(loading.measure("stage-1-today", task, repeats=1))


def test_what_stands_in_for_an_old_python_is_recorded():
    for name, tasks in loading.RECORDED:
        for task in tasks:
            rows = loading.recorded(name, [task])
            assert rows and {row["source"] for row in rows} == {"reference"}
        assert loading.recorded(name, [Task(threads=30, loads=30)]) == []
    text = (places.DATA / "reference" / "loading.json").read_text()
    assert str(places.ROOT) not in text and "/home/" not in text
    assert set(reference.kinds("handshakes")["context"]) == set(handshakes.CONTEXTS)


def test_without_python_3_7_its_rows_are_the_reference_machines(tmp_path):
    script = """
import json, sys
from casebook.certificates import loading
frame = loading.measure(["stage-1-py37", "stage-1-today"], loading.WATCHED, repeats=1)
print(json.dumps(frame.groupby("stack")["source"].unique().map(list).to_dict()))
try:
    loading.measure("stage-1-py37", loading.Task())
except loading.MissingInterpreter as error:
    print(json.dumps(str(error)))
"""
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, cwd=places.ROOT,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sources, error = map(json.loads, done.stdout.splitlines())
    assert sources == {"stage-1-py37": ["reference"], "stage-1-today": ["live"]}
    assert "needs Python 3.7" in error
