"""What contexts weigh, by what malloc has handed out: the same on each run."""

import pytest
from here import environment

from casebook.cases.certificates import in_threads, weights
from casebook.errors import MissingInterpreter, RunFailed, UsageError

WHY = weights.without_malloc_figures()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY)


@pytest.fixture(scope="module")
def found():
    environment("stage-1-today")
    frame = weights.measure("stage-1-today", certificates=[0, 50, None], contexts=10, loads=5)
    return weights.per_context(frame).set_index("certificates").sort_index()


def test_a_context_weighs_what_its_certificates_weigh(found):
    empty, fifty, full = found["in_use"]
    of_one = (full - empty) / found.index[-1]
    assert 1 < of_one < 20
    assert fifty - empty == pytest.approx(50 * of_one, rel=0.2)
    assert full > 10 * empty


def test_openssl_gives_everything_back_to_malloc(found):
    assert (found["kept"].iloc[1:] < found["in_use"].iloc[1:] / 10).all()


def test_malloc_gives_it_back_to_the_system_when_it_is_asked(found):
    full = found.iloc[-1]
    assert full["rss_trimmed"] < full["rss"] / 2


def test_what_is_loaded_again_into_one_context_is_not_kept_again(found):
    full = found.iloc[-1]
    assert full["again"] < full["in_use"]


def test_two_sizes_agree():
    frame = weights.measure("stage-1-today", contexts=[7, 10], loads=0)
    seven, ten = weights.per_context(frame)["in_use"]
    assert seven == pytest.approx(ten, rel=0.05)


def test_a_context_of_python_2_weighs_as_much():
    environment("stage-1-py27")
    frame = weights.measure(["stage-1-py27", "stage-1-today"], contexts=10, loads=0)
    (old, today), kept = weights.per_context(frame)["in_use"], weights.per_context(frame)["kept"]
    assert 0.5 < old / today < 2  # each has an OpenSSL of its own
    assert (kept < min(old, today) / 10).all()


@pytest.mark.nightly
def test_a_thousand_weigh_a_thousand_times_what_one_of_twenty_does():
    made, short = weights.many("stage-1-today", 1000)
    twenty, thousand = made["in_use"]
    assert not short and thousand == pytest.approx(twenty, rel=0.05)


def test_where_memory_is_short_many_are_not_made_and_a_sentence_says_why(monkeypatch):
    monkeypatch.setattr(weights, "free_mib", lambda: 100.0)
    made, short = weights.many("stage-1-today", 1000)
    assert list(made["contexts"]) == [20]
    assert "more than half of the 100 MiB that are free" in short


def test_what_cannot_be_asked_is_said():
    with pytest.raises(UsageError):
        weights.measure("stage-1-today", contexts=0)


def test_elsewhere_than_on_linux_a_machine_that_was_asked_the_same_answers(monkeypatch):
    monkeypatch.setattr(weights.platform, "system", lambda: "Darwin")
    frame = weights.measure("stage-1-today", contexts=[20, 30])
    assert set(frame["source"]) == {"reference"} and frame["instead"].str.startswith("on ").all()
    twenty, thirty = weights.per_context(frame)["in_use"]
    assert twenty == pytest.approx(thirty, rel=0.05)
    with pytest.raises(MissingInterpreter, match=r"Linux alone.*asked the same"):
        weights.measure("stage-1-today", contexts=21)


def test_thirty_threads_keep_what_one_thread_and_one_arena_do_not():
    frame = in_threads.measure("stage-1-today").set_index("how")
    assert list(frame.index) == list(in_threads.WAYS) and (frame["peak"] == 1).all()
    kept, one = (
        frame["trimmed_kib"],
        weights.per_context(weights.measure("stage-1-today", contexts=10)),
    )
    assert kept["30 threads"] > 3 * one["in_use"].iloc[0]
    assert kept.drop("30 threads").max() < kept["30 threads"] / 3
    assert (frame["in_use_kib"].abs() < 1024).all()  # nothing of it is in use


def test_more_than_one_context_at_once_is_no_measurement():
    its = {"rss_kib": 1, "in_use_kib": 1.0}
    answer = {
        "openssl": "",
        "peak": 2,
        "steps": [its | {"what": step} for step in in_threads.STEPS],
    }
    with pytest.raises(RunFailed, match="2 contexts were alive at once"):
        in_threads._figures(in_threads.WAYS["30 threads"], answer)
