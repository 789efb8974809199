"""The fourth case: threads that share a context, against a server that counts its handshakes."""

import re
import socket
import ssl
import threading
from types import SimpleNamespace

import pandas as pd
import pytest
from here import environment, python_in

from casebook import places
from casebook.cases import handshakes
from casebook.cases.handshakes import crashes, shared_contexts
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import scripts

NEWEST = "truststore-0.10.5-today"
CLIENTS = "truststore-in-clients-today"
QUICK = {"n": 5, "delay_s": 0.2}


def peaks(frame):
    assert (frame["handshakes"] == frame["n"]).all()
    return dict(zip(frame["way"], frame["peak_handshakes"], strict=True))


@pytest.mark.parametrize("release", ["0.10.3", "0.10.4"])
def test_older_releases_shake_hands_side_by_side(release):
    found = handshakes.measure(f"truststore-{release}-today", **QUICK).iloc[0]
    assert (found["truststore"], found["context"]) == (release, "truststore._api")
    assert found["verdict"] == "concurrent" and found["peak_handshakes"] > 2


def test_the_newest_shakes_one_hand_at_a_time_and_the_cause_can_be_taken_away():
    found = handshakes.measure(NEWEST, ["standard", "shared", "each"], **QUICK)
    assert list(found["verdict"]) == ["concurrent", "serial", "concurrent"]
    assert peaks(found)["shared"] == 1
    patched = handshakes.measure("truststore-let-go-today", **QUICK).iloc[0]
    assert (patched["truststore"], patched["verdict"]) == ("0.10.5", "concurrent")


def test_where_the_server_waits_before_its_reply_nothing_is_to_be_seen():
    found = handshakes.measure(NEWEST, ["standard", "shared"], waits_in="reply", **QUICK)
    # Whom a busy machine starts late is not in the server's hand with all the others.
    assert (found["peak_requests"] > 1).all() and "serial" not in set(found["verdict"])


def test_one_thread_shakes_hands_and_the_others_wait_for_its_lock():
    # In the middle of the second handshake, half a delay from either end of it.
    found = handshakes.where_they_wait(NEWEST, n=5, delay_s=2)
    held = found[found["function"] == "do_handshake"]
    waiting = found[found["text"] == "with self._ctx_lock:"]
    assert list(held["threads"]) == [1]
    assert held.iloc[0]["under"] == "wrap_socket: ssl_sock = self._ctx.wrap_socket("
    assert waiting["threads"].sum() == 3  # one is done
    assert set(waiting["module"]) == {"truststore._api"}


@pytest.mark.parametrize("way", ["urllib3-pool", "httpx2-client", "httpx-injected"])
def test_whoever_shares_a_context_has_it(way):
    assert peaks(handshakes.measure(CLIENTS, way, **QUICK)) == {way: 1}


@pytest.mark.parametrize("way", ["requests-injected", "httpx-default"])
def test_whoever_has_a_context_for_each_connection_or_the_standard_one_has_it_not(way):
    assert handshakes.measure(CLIENTS, way, **QUICK)["verdict"].tolist() == ["concurrent"]


@pytest.mark.parametrize("way", shared_contexts.TASKS)
def test_tasks_on_one_loop_share_a_context_and_do_not_wait(way):
    found = handshakes.measure_tasks(CLIENTS, way, n=5, delay_s=0.2).iloc[0]
    assert (found["truststore"], found["context"]) == ("0.10.5", "truststore._api")
    assert (found["handshakes"], found["verdict"]) == (5, "concurrent")


def test_a_task_that_gets_a_wrong_page_is_no_measurement(monkeypatch):
    wrong = [{"page": 0, "status": 200, "got_page": 1}]
    answer = {"failed": None, "pages": wrong}
    monkeypatch.setattr(shared_contexts, "_ask_probe", lambda *_asked: (answer, {}))
    with pytest.raises(RunFailed, match="page 0 came back"):
        handshakes.measure_tasks(CLIENTS, "asyncio-shared", n=2)
    with pytest.raises(UsageError, match="asyncio-shared"):
        handshakes.measure_tasks(CLIENTS, "shared")


def test_another_pip_is_another_truststore_for_pip_system_certs():
    stacks = ["pip-26.2-system-certs-today", "pip-26.3-system-certs-today"]
    found = handshakes.measure(stacks, "httpx-default", **QUICK)
    assert list(found["truststore"]) == ["0.10.4 of pip", "0.10.5 of pip"]
    assert list(found["verdict"]) == ["concurrent", "serial"]


def test_patched_first_by_gevent_the_standard_contexts_work_and_truststores_do_not():
    found = handshakes.after_patching(CLIENTS, ["standard", "shared", "urllib3-pool"], n=2)
    assert list(found["good"]) == [2, 0, 0]
    assert list(found["error"]) == ["", "TypeError", "RecursionError"]


def test_deaths_are_counted_stack_by_stack_and_signals_named_once():
    ends = {"b": ["SIGSEGV", "", "SIGSEGV", "SIGABRT"], "a": ["", "", ""]}
    processes = pd.DataFrame(
        [
            {"stack": stack, "repeat": repeat, "signal": signal, "openssl": "3.0", "source": "live"}
            for stack, signals in ends.items()
            for repeat, signal in enumerate(signals, 1)
        ]
    )
    assert handshakes.crashes.count_deaths(processes).to_dict("records") == [
        {"stack": "b", "processes": 4, "died": 3, "signals": "SIGABRT, SIGSEGV", "openssl": "3.0",
         "source": "live"},
        {"stack": "a", "processes": 3, "died": 0, "signals": "", "openssl": "3.0",
         "source": "live"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("signals", "rounds"),
    [
        (["SIGSEGV", "SIGABRT", "SIGSEGV", "SIGSEGV", "SIGSEGV"], 4),
        (["SIGSEGV", "", "SIGSEGV", "", "SIGSEGV", "SIGSEGV", "SIGSEGV"], 6),
        ([""] * 30, 20),
        (["SIGSEGV", ""], 2),  # another machine, which took no further rounds
    ],
)
def test_rounds_are_taken_until_four_have_died(monkeypatch, signals, rounds):
    """Three deaths might be chance: one build in 27 would have all of them on one stack."""

    def measure(names, questions, rounds):
        rows = [{"stack": names[0], "signal": signals[i - 1]} for i in rounds if i <= len(signals)]
        return pd.DataFrame([*rows, *({"stack": names[1], "signal": ""} for _ in rows)])

    monkeypatch.setattr(crashes, "_CRASHES", SimpleNamespace(measure=measure))
    processes = crashes.measure(["risky", "safe"])
    assert len(processes) == 2 * rounds
    assert (processes["signal"] != "").sum() == len([name for name in signals[:rounds] if name])


@pytest.mark.nightly
def test_the_lock_is_for_something():
    names = ["truststore-0.10.4-today", NEWEST, "truststore-let-go-today"]
    found = crashes.count_deaths(crashes.measure(names)).set_index("stack")
    assert found.loc[names[0], "died"] == crashes.DEATHS  # nearly every process does
    assert list(found.loc[names[1:], "died"]) == [0, 0]
    assert set(found["signals"].str.split(", ").sum()) <= {"", "SIGSEGV", "SIGABRT"}


@pytest.mark.parametrize("stack", [NEWEST, "truststore-let-go-today"])
@pytest.mark.parametrize("way", ["shared", "each"])
def test_a_strangers_certificate_is_refused(stack, way):
    """The patch lets go of a lock, not of the check."""
    with SlowToShakeHands() as known, SlowToShakeHands() as stranger:
        spec = {"way": way, "url": stranger.url, "n": 4, "look_after_s": None}
        trusts = {"SSL_CERT_FILE": str(known.ca_file), "SSL_CERT_DIR": str(known.folder)}
        beside = [places.PROBES]
        answer = scripts.answer_of(
            environment(stack), shared_contexts.PROBE, spec, variables=trusts, beside=beside
        )
        with pytest.raises(RunFailed, match="SSLCertVerificationError"):
            shared_contexts._check_pages(stack, answer)
        assert stranger.counters()["requests"] == 0


#: What `wrap_socket` has to do beside handing over a connection, with and without the patch.
MANNERS = """
import socket, ssl, sys, truststore
host, port = sys.argv[1], int(sys.argv[2])
context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

later = context.wrap_socket(socket.create_connection((host, port)), server_hostname=host,
                            do_handshake_on_connect=False)
assert later.version() is None
later.do_handshake()
assert later.version()

unconnected = context.wrap_socket(socket.socket(), server_hostname=host)
unconnected.connect((host, port))
assert unconnected.version()

impatient = socket.create_connection((host, port))
impatient.setblocking(False)
try:
    context.wrap_socket(impatient, server_hostname=host)
except ValueError as error:
    assert "non-blocking" in str(error), error
else:
    raise AssertionError("a handshake on a socket that does not block")

for wrong in ("localhost", "example.org"):
    plain = socket.create_connection((host, port))
    try:
        context.wrap_socket(plain, server_hostname=wrong)
    except ssl.SSLCertVerificationError:
        assert plain.fileno() == -1
    else:
        raise AssertionError(wrong)
print("well-mannered")
"""


@pytest.mark.parametrize("stack", [NEWEST, "truststore-let-go-today"])
def test_the_patched_wrap_socket_behaves_as_before(stack):
    with SlowToShakeHands() as server:
        host, port = server.server_address
        trusts = {"SSL_CERT_FILE": str(server.ca_file), "SSL_CERT_DIR": str(server.folder)}
        said = python_in(stack, "-c", MANNERS, host, port, variables=trusts)
    assert (said.stdout, said.stderr) == ("well-mannered\n", "")


UPSTREAM = places.ROOT / "upstream"
RELEASES = {"0.10.3": 8, "0.10.4": 8, "0.10.5": 1}


@pytest.mark.parametrize("release", RELEASES)
def test_the_reproducer_says_in_counts_which_release_is_serial(release):
    reproducer = UPSTREAM / "truststore_lock.py"
    assert len(reproducer.read_text().splitlines()) == 30  # as its issue asks
    said = python_in(f"truststore-{release}-today", reproducer)
    standard, its = said.stdout.splitlines()
    assert standard == "ssl: 8 of 8 handshakes under way at once"
    most = RELEASES[release]
    assert its == f"truststore {release}: {most} of 8 handshakes under way at once"
    assert said.returncode == (most == 1) and not said.stderr


#: Which the text for upstream imports at the top of its file.
BEFORE_THE_TEST = "import contextlib, socket, ssl, threading, truststore\n"


@pytest.mark.parametrize(("stack", "passes"), [(NEWEST, False), ("truststore-let-go-today", True)])
def test_the_test_for_upstream_fails_before_the_patch_and_passes_after_it(stack, passes):
    text = (UPSTREAM / "truststore.md").read_text()
    code = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    called = re.search(r"^def (test_\w+)", code, re.M)[1]
    said = python_in(stack, "-c", f"{BEFORE_THE_TEST}{code}\n{called}()")
    assert (said.returncode == 0) == passes, said.stderr
    assert passes or "AssertionError" in said.stderr


def test_the_server_counts_what_it_has_in_hand():
    with SlowToShakeHands(handshake_s=0.3) as server:
        assert server.counters()["peak_handshakes"] == 0
        context = ssl.create_default_context(cafile=str(server.ca_file))

        def shake():
            with socket.create_connection(server.server_address) as plain:
                context.wrap_socket(plain, server_hostname=server.server_address[0]).close()

        shake()
        shake()
        one_by_one = server.counters()
        server.reset()
        both = [threading.Thread(target=shake) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert (one_by_one["handshakes"], one_by_one["peak_handshakes"]) == (2, 1)
        assert (server.counters()["handshakes"], server.counters()["peak_handshakes"]) == (2, 2)


def test_who_only_connects_is_no_handshake():
    with SlowToShakeHands() as server:
        socket.create_connection(server.server_address).close()
        assert server.counters()["handshakes"] == 0


@pytest.mark.parametrize(
    "wrong", [{"ways": "sharde"}, {"n": 0}, {"delay_s": 0}, {"waits_in": "bed"}], ids=str
)
def test_what_cannot_be_asked_is_said(wrong):
    with pytest.raises(UsageError):
        handshakes.measure(NEWEST, **wrong)


def test_verdicts_by_the_servers_count():
    peaks = [(8, 1), (8, 4), (8, 5), (1, 1)]
    assert [handshakes.verdict_of_handshakes(n, peak) for n, peak in peaks] == [
        "serial",
        "between",
        "concurrent",
        "between",
    ]
