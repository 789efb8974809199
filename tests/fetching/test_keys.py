"""What the name of a stored run depends on: each thing that was asked, and all that is executed.

Nothing is run: the key is caught where the store would be asked for it.
"""

import dataclasses
from types import SimpleNamespace

import pytest

from casebook import stacks
from casebook.cases.fetching import bench, near_limit, processor_time, run_record, server, trust
from casebook.laboratory import measurements
from casebook.stacks import digests, environments

RUN = {"n": 3, "delay_s": 0.1, "client": "grequests", "trust": "authority", "scheme": "https"}
STORED = dict(
    python="3", wall_s=1.0, user_s=0.1, sys_s=0.1, process_cpu_s=0.3, peak_rss_kib=1, ok=3,
    counters={}, versions={}, measured_at="",
)  # fmt: skip


@pytest.fixture
def keys(monkeypatch):
    """The keys that the store was asked for; environments need not exist."""
    found = []

    def stored(key, measure):
        found.append(key)
        return {"answer": STORED}

    monkeypatch.setattr(measurements, "stored_or_new", stored)
    monkeypatch.setattr(environments, "fingerprint", lambda stack: f"of {stack.lock}")
    monkeypatch.setattr(environments, "ensure", lambda stack, *_: SimpleNamespace(stack=stack))
    monkeypatch.setattr(digests, "tool", lambda name: f"{name} 1.0")
    return found


def key_of(keys, stack="stage-1-today", repeat=1, gather="", **changed):
    its = stack if isinstance(stack, stacks.Stack) else stacks.get(stack)
    asked = RUN | ({"gather": gather} if gather else {}) | changed
    bench.fetching(its, asked["client"], gather).answer([its], asked, repeat)
    return keys[-1]


@pytest.mark.parametrize(
    "changed",
    [
        {"scheme": "http"},
        {"n": 4},
        {"delay_s": 0.2},
        {"client": "requests"},
        {"trust": "bundle"},
        {"repeat": 2},
        {"stack": "stage-2-today"},
        {"stack": dataclasses.replace(stacks.get("stage-1-today"), steps=("patch_all",))},
    ],
)
def test_whatever_is_asked_otherwise_is_another_run(keys, changed):
    usual, other = key_of(keys), key_of(keys, **changed)
    assert other != usual and other.question_digest != usual.question_digest
    assert key_of(keys) == usual  # and the same is the same


def test_a_run_depends_on_its_own_client_the_server_and_the_cure_where_it_has_it(keys):
    def depends_on(**changed):
        return set(key_of(keys, **changed).depends_on)

    plain = depends_on()
    always = {"fetch.py", "bench.py", "steps.py", "grequests_map.py", "lab.py", "app.py"}
    assert always <= {name.rpartition("/")[2] for name in plain}
    assert {"certifi's certificates", "the environment of stage-1-today"} <= plain
    assert not [name for name in plain if name.endswith(("shared_context.py", "threads.py"))]
    # No instrument is in a run without one.
    instruments = ("profiling.py", "timeline.py", "calltrace.py", "probes/turns.py")
    assert not [name for name in plain if name.endswith(instruments)]
    assert [name for name in depends_on(client="threads") if name.endswith("clients/threads.py")]
    for cured in ("cured-today", "preloaded-today"):
        assert "shared_context.py" in depends_on(stack=cured)


@pytest.mark.parametrize("columns", ["COUNTERS", "STORED"])
def test_a_run_of_which_more_is_stored_is_another_with_the_same_question(
    keys, monkeypatch, columns
):
    usual, observed = key_of(keys), key_of(keys, gather="turns")
    monkeypatch.setattr(run_record, columns, (*getattr(run_record, columns), "retries"))
    other = key_of(keys)
    assert other != usual and other.question == usual.question
    changed = {
        name for name in other.depends_on if other.depends_on[name] != usual.depends_on[name]
    }
    assert changed == {"what is stored of a run"}
    assert key_of(keys, gather="turns") == observed  # which is stored whole


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("profile", "profiling.py"),
        ("profile", "thread_profile.py"),
        ("trace", "calltrace.py"),
        ("timeline", "timeline.py"),
        ("turns", "probes/turns.py"),
    ],
)
def test_an_observation_depends_on_its_own_instrument(keys, kind, file):
    for each in (kind, "provenance"):
        key_of(keys, gather=each)
    own, other = keys
    assert [name for name in own.depends_on if name.endswith(file)]
    assert not [name for name in other.depends_on if name.endswith(file)]
    # Which instrument it is is part of what was asked.
    assert own.question_digest != other.question_digest


def test_what_another_server_answered_is_not_stored(keys, monkeypatch):
    monkeypatch.setattr(measurements, "new", lambda measure: {"answer": STORED})
    lab = server.Server("https://127.0.0.1:1", None, None)
    stack = stacks.get("stage-1-today")
    asked = bench.fetching(stack, "grequests", target=lab).first_answer([stack], RUN)
    assert asked.answer == STORED and not keys


def test_a_run_of_the_near_limit_depends_on_its_source_and_of_this_go(keys, monkeypatch):
    def key(**changed):
        repeat = changed.pop("repeat", 1)
        near_limit._experiment().answer([], RUN | {"trust": "bundle"} | changed, repeat)
        return keys[-1]

    usual = key()
    assert {"near_limit.go", "go", "certifi's certificates"} <= {
        name.rpartition("/")[2] for name in usual.depends_on
    }
    others = [key(n=4), key(delay_s=0.2), key(repeat=2)]
    monkeypatch.setattr(digests, "tool", lambda name: f"{name} 2.0")
    assert len({usual, *others, key()}) == 5


def test_a_whole_program_depends_on_the_cure_only_where_it_has_it():
    stock, cured = (
        processor_time._experiment_of("threads", name)
        for name in ("requests-2.34.2-today", "cured-today")
    )
    files = [{getattr(each, "name", "") for each in one.depends_on} for one in (stock, cured)]
    assert "threads.py" in files[0] and "lab.py" in files[0]
    assert files[1] - files[0] == {"shared_context.py"}
    assert trust.dependency() in stock.depends_on
