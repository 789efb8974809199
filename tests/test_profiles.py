"""Lines of profiles from real stacks: who waits, how often, and for what."""

import pytest

from casebook import distance, profiles
from casebook.certificates import one_profile
from casebook.errors import UsageError
from casebook.measure import observe

STACK = "stage-2-injected-today"


@pytest.fixture(scope="module")
def injected():
    return observe(STACK, "profile", n=5, delay_s=0.1)


def test_one_wait_for_each_response_and_the_rest_in_handshakes(injected):
    (waits,) = profiles.waits({"": injected}).itertuples()
    assert waits.profile == "stage 2 injected, today"
    assert waits.responses == 5
    assert waits.all == waits.responses + waits.handshakes
    assert waits.all == profiles.calls_of(injected, "do_poll")


def test_recv_into_calls_itself_after_each_wait(injected):
    by = profiles.callers(injected, "recv_into", "contrib/pyopenssl.py")
    assert by.loc[by["by_itself"], "calls"].sum() == 5
    assert profiles.counts(profiles.line(injected, "recv_into", "contrib/pyopenssl.py")) == "10/5"


def test_a_line_that_is_not_there_or_not_the_only_one_is_refused(injected):
    with pytest.raises(UsageError, match="0 times"):
        profiles.line(injected, "no_such_function")
    with pytest.raises(UsageError, match="name a file"):
        profiles.line(injected, "send")
    with pytest.raises(UsageError, match="nobody calls"):
        profiles.callers(injected, "no_such_function")
    assert profiles.calls_of(injected, "no_such_function") == 0


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
    assert profiles.line(frame, "fetch", "clients.py")["calls"] == 6
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
    assert profiles.line(frame, "fetch", "clients.py")["pcalls"] < 6


def test_a_profile_without_threads_is_refused(injected):
    for read in (profiles.all_threads, profiles.one_stack):
        with pytest.raises(UsageError, match="client='threads'"):
            read(injected)


def test_one_profile_sees_one_thread_or_all_of_them_on_one_stack():
    frame = one_profile.by_python(n=6)
    assert len(frame) >= 1
    for row in frame.to_dict("records"):
        newer = tuple(map(int, row["python"].split(".")[:2])) >= (3, 12)
        assert row["calls"] == (6 if newer else 0) and row["refused"] == newer
        assert row["own_s"] == pytest.approx(row["wall_s"], rel=0.05)


def test_from_further_away_each_thread_waits_for_what_it_reads():
    far = {"latency_s": 0.02, "n": 4, "client": "threads", "trust": "bundle"}
    frame = profiles.all_threads(distance.observe("requests-2.34.2-today", "profile", **far))
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
