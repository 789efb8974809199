"""Lines of profiles from real stacks: who waits, how often, and for what."""

import pytest

from casebook import distance, profiles
from casebook.bench import lab_server
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


@pytest.mark.parametrize(("tls", "handshakes"), [("1.2", 10), ("1.3", 5)])
def test_from_further_away_each_round_trip_of_a_handshake_is_a_wait(tls, handshakes):
    seen = distance.profile(STACK, tls, latency_s=0.02, n=5)
    (waits,) = profiles.waits({"": seen}).itertuples()
    assert (waits.handshakes, waits.responses) == (handshakes, 5)


def test_a_version_of_tls_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match=r"TLS '1\.1'"):
        distance.profile(STACK, "1.1")


def test_a_relay_ends_with_its_block():
    import socket

    with lab_server("http") as lab, distance.relay(lab.url, 0.01) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /get HTTP/1.0\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
