"""Lines of profiles from real stacks: who waits, how often, and for what."""

import pandas as pd
import pytest

from casebook.cases.fetching import cprofile, distance, profiles
from casebook.cases.fetching.runs import observe
from casebook.errors import UsageError
from casebook.laboratory.decisions import level

STACK = "stage-2-injected-today"


@pytest.fixture(scope="module")
def injected():
    return observe(STACK, "profile", n=5, delay_s=0.1)


def test_one_wait_for_each_response_after_which_recv_into_calls_itself(injected):
    waited = profiles.waited(injected)
    assert waited["responses"] == waited["again"] == 5
    assert waited["all"] == 5 + waited["handshakes"] == profiles.calls_of(injected, "do_poll")
    assert profiles.counts(profiles.line(injected, "recv_into", "contrib/pyopenssl.py")) == "10/5"


def test_waits_are_told_round_by_round_in_turns():
    some = level("poll_s", where={"delay_s": 0.1}, above=0)
    frame = profiles.in_rounds(STACK, profiles.waited, 3, [0.05, 0.1], until=[some], looks=(2,))
    turns = frame[["repeat", "delay_s"]].to_numpy().tolist()
    assert turns == [[1, 0.05], [1, 0.1], [2, 0.1], [2, 0.05]]
    assert frame["key"].nunique() == 4
    # A process that is paused for longer than the delay has nothing left to wait for.
    assert frame["responses"].between(1, 3).all()
    assert (frame["again"] == frame["responses"]).all()
    for part in ("poll_s", "response_s"):
        assert (0 < frame[part]).all() and (frame[part] <= frame["all_s"]).all()


def test_two_profiles_stand_side_by_side(injected):
    plain = observe(STACK, "profile", n=5, delay_s=0.1, scheme="http")
    both = profiles.side_by_side({"https": injected, "http": plain}, top=2)
    poll = both.iloc[0]
    assert poll["where"] == "poll, built in"
    assert poll["https, own time, s"] > 0.4 and pd.isna(poll["http, own time, s"])
    assert poll["https, calls"] != "–" == poll["http, calls"]
    assert 3 <= len(both) <= 4
    caller = f"wait.py:{profiles.line(injected, 'do_poll')['line']}(do_poll)"
    again = profiles.side_by_side({"": injected}, only=[caller, "poll, built in"])
    assert list(again["where"]) == ["poll, built in", f"urllib3/util/{caller}"]


@pytest.mark.parametrize(
    "ask, said",
    [
        (lambda seen: profiles.line(seen, "no_such_function"), "0 times"),
        (lambda seen: profiles.line(seen, "send"), "name a file"),
        (lambda seen: profiles.callers(seen, "no_such_function"), "nobody calls"),
        (lambda seen: profiles.side_by_side({"": seen}, only=["no_such"]), "no_such"),
        (profiles.all_threads, "client='threads'"),
        (profiles.one_stack, "client='threads'"),
    ],
)
def test_what_is_not_in_a_profile_or_not_alone_is_refused(injected, ask, said):
    assert profiles.calls_of(injected, "no_such_function") == 0
    with pytest.raises(UsageError, match=said):
        ask(injected)


@pytest.fixture(scope="module")
def threads():
    asked = {"n": 6, "delay_s": 0, "client": "threads", "trust": "bundle"}
    return observe("requests-2.34.2-today", "profile", **asked)


LOAD = "<method 'load_verify_locations' of '_ssl._SSLContext' objects>"


def test_all_threads_are_recorded_each_on_its_own_stack(threads):
    frame = profiles.all_threads(threads)
    load = profiles.line(frame, LOAD)
    assert load["calls"] == load["pcalls"] == 6 and load.name == 0
    assert load["cumtime_s"] == load["tottime_s"] >= 0.9 * load["cpu_s"] > 0
    assert profiles.line(frame, "get", "threads.py")["calls"] == 6
    # Somebody loads: urllib3, through the probe's counter.
    assert profiles.callers(threads, LOAD)["calls"].sum() == 6
    # Each thread was there for a part of the time at most.
    assert frame["tottime_s"].sum() <= (1 + 6) * threads.answer["wall_s"]


def test_on_one_stack_own_times_add_up_to_the_clock(threads):
    frame = profiles.one_stack(threads)
    assert frame["tottime_s"].sum() == pytest.approx(threads.answer["wall_s"], rel=0.02)
    assert set(frame["function"]) == set(profiles.all_threads(threads)["function"])
    assert profiles.line(frame, LOAD)["calls"] == 6
    # Threads that overlap look like calls from inside one another.
    assert profiles.line(frame, "get", "threads.py")["pcalls"] < 6


def test_one_profile_sees_one_thread_or_all_of_them_on_one_stack():
    frame = cprofile.by_python(n=6)
    assert len(frame) >= 1
    for row in frame.to_dict("records"):
        newer = tuple(map(int, row["python"].split(".")[:2])) >= (3, 12)
        assert row["calls"] == (6 if newer else 0) and row["refused"] == newer


def test_one_profile_of_two_threads_books_time_to_the_one_that_returns_first():
    frame = cprofile.overlaps(until=level(lambda one: one["own_s"] / one["wall_s"], above=0.9))
    if frame.empty:
        pytest.skip("no Python here is 3.12 or newer")
    assert list(frame["repeat"]) == list(range(1, len(frame) + 1))
    # Both wait 0.05 s, and what one is given the other lacks.
    assert (frame["first_s"] > frame["second_s"]).mean() > 0.5
    together = frame["own_s"] / frame["wall_s"]
    assert together.between(0.95, 1.05).all() and (frame["wall_s"] >= 0.06).all()


def test_threads_are_recorded_in_rounds():
    def loads(seen):
        return {"loads": profiles.line(profiles.all_threads(seen), LOAD)["calls"]}

    asked = {"n": 3, "client": "threads", "trust": "bundle"}
    assert list(profiles.in_rounds("requests-2.34.2-today", loads, **asked)["loads"]) == [3]


def test_from_further_away_each_thread_waits_for_what_it_reads():
    far = {"latency_s": 0.02, "n": 4, "client": "threads", "trust": "bundle"}
    frame = profiles.all_threads(distance.profile("requests-2.34.2-today", **far))
    read = profiles.line(frame, "<method 'read' of '_ssl._SSLSocket' objects>")
    assert read["tottime_s"] > 4 * 2 * 0.02 > read["cpu_s"]
    assert profiles.line(frame, LOAD)["calls"] == 4


@pytest.mark.parametrize(("tls", "handshakes"), [("1.2", 10), ("1.3", 5)])
def test_from_further_away_each_round_trip_of_a_handshake_is_a_wait(tls, handshakes):
    seen = distance.profile(STACK, tls, latency_s=0.02, n=5)
    (waits,) = profiles.waits({"": seen}).itertuples()
    assert (waits.handshakes, waits.responses) == (handshakes, 5)


def test_a_version_of_tls_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match=r"TLS '1\.1'"):
        distance.profile(STACK, "1.1")
