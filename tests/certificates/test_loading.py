"""Loads of certificates inside real stacks: counted, kept, and the same whoever measures."""

import subprocess
from dataclasses import asdict, replace

import pandas as pd
import pytest
from here import needs

from casebook import places, stacks
from casebook.cases.certificates import connection_costs, cores, counts, loading
from casebook.cases.certificates.loading import Task
from casebook.cases.fetching import trust
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.laboratory import scripts
from casebook.laboratory.decisions import ratio
from casebook.laboratory.rounds import until_decided
from casebook.stacks import environments

ALL = len(trust.certificates())
OLD = ("stage-1-py27", "stage-1-py37")


def test_every_load_is_counted_and_found_in_the_context():
    tasks = [Task(certificates=0, loads=3), Task(certificates=10, loads=4)]
    tasks += [Task(certificates=10, way="default", loads=2), Task(loads=4, threads=4)]
    tasks += [Task(loads=4, processes=2)]
    frame = loading.measure("stage-1-today", tasks, repeats=2)
    assert list(frame.columns) == loading.COLUMNS
    for _, rows in frame.groupby("repeat"):
        assert list(rows["contexts"]) == [3, 4, 2, 4, 4]
        assert list(rows["loads"].fillna(-1)) == [0, 4, 2, 4, -1]  # not known of processes
        assert list(rows["certificates"]) == [0, 10, 10, ALL, ALL]
        assert list(rows["way"]) == ["none", "file", "default", "file", "file"]
        assert list(rows["how"]) == ["one thread"] * 3 + ["4 threads", "2 processes"]
    assert (frame["cpu_ms"] > 0).all() and frame["cpu_ms"].iloc[-1] > 0.5
    assert frame["cpu_ms"].equals(frame["user_ms"] + frame["system_ms"])
    assert set(frame["source"]) == {"live"}


def test_each_stack_takes_the_tasks_that_are_its_own():
    tasks = {"openssl-3.0-today": [Task(loads=1), cores.COMPUTING], "openssl-4.0-today": [Task()]}
    frame = loading.measure(list(tasks), tasks, repeats=2)
    assert list(frame[frame["stack"] == "openssl-4.0-today"]["contexts"]) == [10, 10]
    computing = frame[frame["way"] == "compute"]
    assert list(computing["stack"]) == ["openssl-3.0-today"] * 2
    assert set(computing["certificates"]) == {0} and (computing["cpu_ms"] > 1).all()
    assert set(computing["how"]) == {"2 processes, computing"}


def test_what_asks_for_two_cores_is_not_decided_without_them():
    question = ratio("cpu_ms", "10 threads", "one thread", by="how", above=1.2)
    asked = cores.on_two_cores(question)
    hows = [("10 threads", 3.0), ("one thread", 1.0), ("2 processes, computing", 1.9)]
    rows = [(repeat, *each, 1.0) for repeat in range(1, 9) for each in hows]
    frame = pd.DataFrame(rows, columns=["repeat", "how", "cpu_ms", "wall_ms"])
    frame["way"] = frame["how"].str.contains("computing").map({True: "compute", False: "file"})
    assert asked.decide(frame).outcome == "holds" == question.decide(frame).outcome
    # A useless cure fails: what is asked has no part in the gate.
    same = frame.assign(cpu_ms=frame["cpu_ms"].replace(3.0, 1.0))
    assert asked.decide(same).outcome == "otherwise"
    # A round without a second core is left out, whatever it says of the rest.
    disturbed = frame.copy()
    disturbed.loc[disturbed["repeat"] == 3, "cpu_ms"] = 1.1
    assert (asked.decide(disturbed).rounds, asked.decide(disturbed).value) == (7, 3.0)
    alone = frame.assign(cpu_ms=frame["cpu_ms"].replace(1.9, 1.1))
    decided = asked.decide(alone)
    assert decided.outcome == "not-here" and "no second core was free" in decided.because


@pytest.mark.parametrize(("has", "busy_for", "rounds", "outcome"), [
    (2, 0, 8, "holds"), (2, 8, 16, "holds"), (2, 99, 32, "not-here"), (1, 99, 8, "not-here"),
])  # fmt: skip
def test_more_rounds_are_taken_where_a_second_core_was_only_busy(has, busy_for, rounds, outcome):
    asked = cores.on_two_cores(ratio("cpu_ms", "10 threads", "one thread", by="how", above=1.2))

    def measured(numbers: range) -> pd.DataFrame:
        rows = [
            (repeat, how, cpu_ms, 1.0, way, has)
            for repeat in numbers
            for how, cpu_ms, way in [
                ("10 threads", 3.0, "file"),
                ("one thread", 1.0, "file"),
                ("2 processes, computing", 1.0 if repeat <= busy_for else 1.9, "compute"),
            ]
        ]
        return pd.DataFrame(rows, columns=["repeat", "how", "cpu_ms", "wall_ms", "way", "cores"])

    taken = until_decided(measured, [asked])
    assert (taken["repeat"].max(), asked.decide(taken).outcome) == (rounds, outcome)


def test_the_default_bundle_held_the_gil_once_and_a_file_never_did():
    frame = loading.measure([*OLD, "stage-1-today"], loading.WATCHED)
    beats = frame.groupby(["stack", "way"])["beats"].median()
    for stack in OLD:
        assert beats[stack, "default"] < 5 < beats[stack, "file"]
    assert min(beats["stage-1-today"]) > 5


def test_each_openssl_is_its_stacks_own():
    names = [f"openssl-{version}-today" for version in loading.OPENSSLS]
    frame = loading.measure(names, [Task(loads=1), Task(loads=1, way="default")], repeats=2)
    assert (frame["certificates"] == ALL).all() and set(frame["source"]) == {"live"}
    named = "openssl-" + frame["openssl"].str.extract(r"OpenSSL (\S+)")[0]
    for name, of in zip(frame["stack"], named, strict=True):
        assert of.startswith(name.removesuffix("-today"))


@needs("cc")
def test_3_0_takes_more_locks_than_any_other():
    names = [f"openssl-{version}-today" for version in loading.OPENSSLS]
    frame = loading.measure(names, loading.COUNTED, repeats=2)
    assert set(frame["source"]) == {"live"}
    locks = frame.groupby("stack")["locks"].agg(["min", "max"])
    most, others = locks.loc["openssl-3.0-today"], locks.drop("openssl-3.0-today")
    assert most["min"] > 5 * others["max"].max()
    assert most["max"] / most["min"] < 1.02


#: Two counters that only a writer may see apart, eight threads that take the lock in turns.
_EXCLUDES = """
#include <pthread.h>
#include <sched.h>
#ifdef NO_LOCK
#define pthread_rwlock_wrlock(lock)
#define pthread_rwlock_rdlock(lock)
#define pthread_rwlock_unlock(lock)
#endif
static pthread_rwlock_t lock;
static volatile long one, two, seen_apart;
static void *work(void *number)
{
    for (int i = 0; i < 4000; i++)
        if (i % 8 == (long)number) {
            pthread_rwlock_wrlock(&lock);
            one++;
            sched_yield();
            two++;
            pthread_rwlock_unlock(&lock);
        } else {
            pthread_rwlock_rdlock(&lock);
            pthread_rwlock_rdlock(&lock); /* a reader may come twice, a writer waiting or not */
            if (one != two)
                seen_apart++;
            pthread_rwlock_unlock(&lock);
            pthread_rwlock_unlock(&lock);
        }
    return 0;
}
int main(void)
{
    pthread_t threads[8];
    pthread_rwlock_init(&lock, 0);
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    return seen_apart || one != 8 * 500 || two != one;
}
"""


@needs("cc")
def test_locks_whose_readers_are_apart_still_exclude_a_writer(tmp_path):
    apart = loading.compiled(loading.APART, tmp_path)
    source, program = tmp_path / "excludes.c", tmp_path / "excludes"
    source.write_text(_EXCLUDES)
    # Without a lock the program notices.
    for further, variables, left_with in ([], apart, 0), (["-DNO_LOCK"], {}, 1):
        command = ["cc", "-O2", "-pthread", *further, "-o", program, source]
        subprocess.run(command, check=True, timeout=60)
        assert subprocess.run([program], env=variables, timeout=60).returncode == left_with


@needs("cc")
def test_with_locks_apart_the_certificates_are_loaded_all_the_same():
    tasks = [replace(loading.TEN_APART, loads=20), Task(loads=1)]
    frame = loading.measure("openssl-3.0-today", tasks)
    assert sorted(frame["how"]) == ["10 threads, locks apart", "one thread"]
    assert set(frame["certificates"]) == {ALL} and set(frame["source"]) == {"live"}
    # The C library's locks are not taken in that process: nothing is left to be counted.
    assert frame["key"].nunique() == 2


@needs("valgrind")
def test_the_instructions_of_a_load_are_those_that_another_machine_counted(monkeypatch):
    """Within some percent: of the certificates, a few may be others by now."""
    [theirs] = counts.instructions("openssl-4.0-today")["instructions"]
    monkeypatch.setenv("CASEBOOK_MODE", "full")
    [row] = counts.instructions("openssl-4.0-today").to_dict("records")
    assert row["source"] == "live" and row["release"].startswith("OpenSSL 4.0")
    assert 0.95 < row["instructions"] / theirs < 1.05


def test_in_the_quick_mode_recorded_instructions_are_given_and_say_so():
    frame = counts.instructions()
    assert set(frame["source"]) == {"reference"}
    assert list(frame["stack"]) == list(counts.RECORDED)


def test_truststore_loads_at_each_handshake_and_the_standard_library_once():
    frame = connection_costs.measure(n=[2, 3]).set_index(["context", "n"])
    for n in (2, 3):
        assert list(frame.loc[("ssl", n), ["loads_before", "loads"]]) == [1, 0]
        assert list(frame.loc[("truststore", n), ["loads_before", "loads"]]) == [0, n]
        assert set(frame.xs(n, level="n")["handshakes"]) == {n}


@pytest.mark.parametrize(
    "asked, said",
    [
        (dict(way="zip"), "choose one of: file, default"),
        (dict(preload="zip"), "choose locks_apart or rwlocks"),
        (dict(certificates=ALL + 1), f"choose 0 to {ALL}"),
        (dict(loads=10, threads=3), "cannot be shared evenly by 3"),
        (dict(loads=4, threads=2, processes=2), "one of the two"),
        (dict(loads=0), "loads is 0; choose 1 to 10,000"),
    ],
)
def test_tasks_out_of_range_are_refused_by_name(asked, said):
    with pytest.raises(UsageError, match=said):
        Task(**asked)


@pytest.mark.parametrize(
    "ask", [connection_costs.measure, lambda n: loading.measure("stage-1-today", Task(), n)]
)
def test_repeats_out_of_range_are_refused(ask):
    with pytest.raises(UsageError, match="choose 1 to 1,000"):
        ask(0)


def test_a_load_that_fails_is_no_measurement(tmp_path):
    environment = environments.ensure(stacks.get("stage-1-today"))
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    task = {"way": "file", "bundle": str(empty), "loads": 4, "threads": 2, "processes": 1}
    spec = {"library": "ssl", "nowhere": "nothing", "tasks": [task | {"watched": False}]}
    with pytest.raises(RunFailed, match="no certificate or crl found"):
        scripts.answer_of(environment, loading._PROBE, spec, beside=[places.PROBES])


def test_a_context_that_has_not_all_certificates_is_no_measurement(tmp_path):
    environment = environments.ensure(stacks.get("stage-1-today"))
    task = asdict(Task(certificates=3, loads=1)) | {"bundle": Task(certificates=2).bundle(tmp_path)}
    spec = {"library": "ssl", "nowhere": "nothing", "tasks": [task | {"holds": 3}]}
    with pytest.raises(RunFailed, match="2 certificates were loaded, not 3"):
        scripts.answer_of(environment, loading._PROBE, spec, beside=[places.PROBES])


def test_a_build_takes_what_was_measured_and_a_reader_measures_anew(monkeypatch):
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    task = Task(certificates=1, loads=1)
    first, second = (loading.measure("stage-1-today", task) for _ in range(2))
    assert first.equals(second)
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert not first.equals(loading.measure("stage-1-today", task))


def test_what_cannot_be_measured_here_is_the_reference_machines(no_old_pythons, monkeypatch):
    """Without old Pythons, without a C compiler, and elsewhere than on Linux."""
    tasks = loading.RECORDED | {"stage-1-today": loading.WATCHED}
    frame = loading.measure(list(tasks), tasks)
    sources = frame.groupby("stack")["source"].unique().map(list).to_dict()
    assert sources == {name: ["reference"] for name in loading.RECORDED} | {
        "stage-1-today": ["live"]
    }
    assert len(frame) == sum(map(len, tasks.values()))
    locks = frame[frame["preload"] == loading.COUNTER].set_index("stack")["locks"]
    assert locks["openssl-1.1.1-today"] * 50 < locks["openssl-3.0-today"]
    with pytest.raises(MissingInterpreter, match=r"needs Python 3\.7"):
        loading.measure("stage-1-py37", Task())
    with pytest.raises(MissingInterpreter, match=r"stage-1-today: .*C compiler.*asked the same"):
        loading.measure("stage-1-today", loading.COUNTED)
    monkeypatch.setattr(connection_costs.platform, "system", lambda: "Darwin")
    shared = connection_costs.measure(n=20, repeats=1)
    assert shared["context"].tolist() == list(connection_costs.CONTEXTS)
    assert set(shared["source"]) == {"reference"} and set(shared["instead"]) == {""}
    with pytest.raises(MissingInterpreter, match=r"Linux alone.*asked the same"):
        connection_costs.measure(n=4)
