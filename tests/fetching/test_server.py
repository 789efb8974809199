"""The lab server with real clients: curl, http.client, bare sockets, crowds of thousands."""

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import go_httpbin
import pytest
import requests
from here import alive, eventually, last_words, needs, run

from casebook import places
from casebook.cases.fetching import server
from casebook.cases.fetching.server.app import Epoch, Refusal
from casebook.errors import ServerFailed, UsageError

ROOT = places.ROOT
CROWD = ROOT / "tests" / "support" / "crowd.py"
CURL = ("curl", "-sSi", "--http1.1", "--path-as-is", "--noproxy", "*")
#: Serves in the foreground, and passes on questions about the counters.
SERVE = """
import json, signal, sys, threading
from casebook import server
signal.signal(signal.SIGHUP, signal.{})
def starting():
    lab = server.start({!r})
    def tell():
        for line in sys.stdin:
            print(json.dumps({{"number": int(line.split()[1]), **lab.counters()}}), flush=True)
    threading.Thread(target=tell, daemon=True).start()
    return lab
server.serve(starting)
"""
OWN = """
import json, os, time
from casebook import server
lab = server.start()
%s
print(json.dumps({"pid": lab.pid, "ca_file": str(lab.ca_file)}), flush=True)
time.sleep(600)
"""
#: Refused by go-httpbin too. (It takes "nan", "inf" and "1s", and rounds "-0.0001" to nothing.)
BAD_DELAYS = ["nonsense", "-1", "10.1", "1e9", "0x1", "1,5"]


@pytest.fixture
def lab(https):
    https.reset()
    return https


@pytest.fixture(scope="module", autouse=True)
def standing_still(request):
    """A server with a hundred clients that are connected and say nothing, and since when.

    It is begun before the first test of this file, for the one that asks for it.
    """
    name = test_clients_that_stood_still_for_two_minutes_are_served.__name__
    if not any(item.name == name for item in request.session.items):
        yield None
        return
    with server.start() as lab, contextlib.ExitStack() as opened:
        yield lab, [opened.enter_context(raw(lab)) for _ in range(100)], time.monotonic()


def curl(lab: server.Server, path: str, *options: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and body, as curl gets them in one new connection."""
    trust = ["--cacert", str(lab.ca_file)] if lab.ca_file else []
    done = run(*CURL, *trust, *options, lab.url + path, text=False, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in rest)
    return int(first.split()[1]), headers, body


def crowd(lab: server.Server, n: int, path: str) -> dict:
    asked = [lab.url, lab.ca_file or "-", n, path]
    return json.loads(run(sys.executable, CROWD, *asked, check=True).stdout)


def raw(lab: server.Server) -> socket.socket:
    address = urlsplit(lab.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def shaken(sock: socket.socket, lab: server.Server, name: str = "localhost") -> ssl.SSLSocket:
    """A socket after its TLS handshake with a server of that name, of the lab's authority."""
    context = ssl.create_default_context(cafile=lab.ca_file)
    return context.wrap_socket(sock, server_hostname=name)


@contextlib.contextmanager
def one_connection(lab: server.Server):
    """ask(path), one after the other on one connection."""
    context = ssl.create_default_context(cafile=lab.ca_file)
    client = http.client.HTTPSConnection(urlsplit(lab.url).netloc, context=context)

    def ask(path: str) -> None:
        client.request("GET", path)
        client.getresponse().read()

    with contextlib.closing(client):
        yield ask


def counted(lab: server.Server) -> tuple[int, int, int, int]:
    """Connections, handshakes, requests, and the most requests at once."""
    seen = lab.counters()
    return tuple(seen[n] for n in ("connections", "handshakes", "requests", "peak_in_flight"))


# The endpoints


@needs("curl")
def test_get_echoes_as_httpbin_does(lab):
    status, headers, body = curl(lab, "/get?a=1&a=2&empty=&text=x%20y", "-H", "X-Probe: 7")
    assert status == 200
    assert headers["content-type"] == "application/json; charset=utf-8"
    content = json.loads(body)
    assert content["args"] == {"a": ["1", "2"], "empty": [""], "text": ["x y"]}
    assert content["headers"]["X-Probe"] == ["7"]
    assert content["url"] == f"{lab.url}/get?a=1&a=2&empty=&text=x%20y"
    assert (content["method"], content["origin"]) == ("GET", "127.0.0.1")


@needs("curl")
@pytest.mark.parametrize("seconds", ["0", "0.05", "1e-2", ".02", "0."])
def test_delay_takes_fractions_and_echoes_its_arguments(lab, seconds):
    status, _, body = curl(lab, f"/delay/{seconds}?page=3")
    assert (status, json.loads(body)["args"]) == (200, {"page": ["3"]})


REFUSED = [
    ("GET", f"/delay/{seconds}", 400, "invalid delay: ")
    for seconds in [*BAD_DELAYS, *"-0.0001 nan inf 1_0 %201 %EF%BC%91 1s 1e .".split()]
]
REFUSED += [("GET", "/delay/11", 400, "invalid delay: 11 s is longer than 10 s")]
REFUSED += [
    ("GET", path, 404, f"no such page: {path}")
    for path in ["/", "/nothing", "/delay", "/delay/", "/delay/0/1", "/get/1"]
]
REFUSED += [
    ("POST", "/get", 405, "POST is not for this page, GET, HEAD is"),
    ("PUT", "/delay/0", 405, "PUT is not for this page, GET, HEAD is"),
]


@needs("curl")
@pytest.mark.parametrize(("method", "path", "status", "detail"), REFUSED)
def test_a_refusal_says_why(lab, method, path, status, detail):
    came, headers, body = curl(lab, path, "-X", method)
    content = json.loads(body)
    assert list(content) == ["status_code", "error", "detail"]
    assert content["status_code"] == came == status
    assert content["detail"].startswith(detail)
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert status != 405 or f", {headers['allow']} is" in detail.lower()


@needs("curl")
@pytest.mark.parametrize("path", ["/get", "/nothing"])
def test_a_reply_that_ends_its_connection_says_so(lab, path):
    _, ending, _ = curl(lab, path, "-H", "Connection: close")
    _, keeping, _ = curl(lab, path)
    assert ending["connection"] == "close"
    assert "connection" not in keeping


def test_no_pool_sends_a_request_into_the_end_of_a_connection(lab):
    """Without that header a pool keeps the connection; a tenth of what it asks next is lost."""
    with requests.Session() as session:
        session.headers["Connection"] = "close"
        for page in range(100):
            assert session.get(f"{lab.url}/get?page={page}", verify=str(lab.ca_file)).ok
    assert counted(lab) == (100, 100, 100, 1)


@needs("curl")
def test_head_has_the_headers_alone(lab):
    status, headers, body = curl(lab, "/get", "--head")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


# Certificates and addresses


def test_the_certificate_names_address_and_host(lab):
    for name in ("127.0.0.1", "localhost"):
        with shaken(raw(lab), lab, name) as tls:
            names = tls.getpeercert()["subjectAltName"]
            assert "ECDSA" in tls.cipher()[0] or tls.version() == "TLSv1.3"
    assert sorted(names) == [("DNS", "localhost"), ("IP Address", "127.0.0.1")]
    assert lab.ca_file.parent.stat().st_mode & 0o077 == 0


def test_each_run_has_its_own_authority(lab):
    with server.start() as other, raw(other) as sock:
        assert other.url != lab.url
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(sock, lab)


def test_it_listens_on_one_address_only(lab):
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", urlsplit(lab.url).port), timeout=2)


def test_plain_http_twin(http):
    assert http.url.startswith("http://127.0.0.1:")
    assert http.ca_file is None
    http.reset()
    assert crowd(http, 3, "/delay/0")["ok"] == 3
    assert counted(http)[:3] == (3, 0, 3)


@needs("curl")
def test_the_owners_environment_does_not_matter(monkeypatch):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, "/nonexistent")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    with server.start() as lab:
        assert curl(lab, "/get")[0] == 200
        assert lab.counters()["requests"] == 1


# Counters


@needs("curl")
def test_serial_clients_are_never_two_at_once(lab):
    for page in range(12):
        assert curl(lab, f"/delay/0.01?page={page}")[0] == 200
    assert lab.counters() == {
        "connections": 12,
        "handshakes": 12,
        "requests": 12,
        "peak_in_flight": 1,
        "protocols": {"HTTP/1.1": 12},
    }


def test_a_fast_serial_client_on_one_connection(lab):
    with one_connection(lab) as ask:
        for _ in range(300):
            ask("/delay/0")
    assert counted(lab) == (1, 1, 300, 1)


def test_concurrent_clients_are_all_seen_at_once(lab):
    assert crowd(lab, 25, "/delay/2")["ok"] == 25
    assert counted(lab) == (25, 25, 25, 25)


def test_connections_without_handshake_and_handshakes_without_request(lab):
    with raw(lab), raw(lab), shaken(raw(lab), lab):
        assert counted(lab) == (3, 1, 0, 0)


@needs("curl")
def test_old_protocols_and_refusals_are_counted_too(lab):
    curl(lab, "/get", "--http1.0")
    curl(lab, "/nothing")
    assert lab.counters()["protocols"] == {"HTTP/1.0": 1, "HTTP/1.1": 1}


def test_a_request_that_is_refused_is_in_flight_no_more():
    epoch = Epoch()
    for _ in range(3):
        with pytest.raises(Refusal, match="no such page"), epoch.request("HTTP/1.1"):
            raise Refusal(404, "no such page")
    with epoch.request("HTTP/1.0"), epoch.request("HTTP/1.1"):
        assert epoch.in_flight == 2
    assert epoch.in_flight == 0
    assert epoch.report() == {
        "connections": 0, "handshakes": 0, "requests": 5, "peak_in_flight": 2,
        "protocols": {"HTTP/1.1": 4, "HTTP/1.0": 1},
    }  # fmt: skip


def test_reading_the_counters_is_not_counted(lab):
    for _ in range(3):
        assert counted(lab) == (0, 0, 0, 0)
    assert lab.counters()["protocols"] == {}


@needs("curl")
def test_reset_is_exact_while_a_request_is_in_flight(lab):
    slow = threading.Thread(target=curl, args=(lab, "/delay/1"))
    slow.start()
    assert eventually(lambda: lab.counters()["requests"] == 1)
    lab.reset()
    assert counted(lab) == (0, 0, 0, 0)
    curl(lab, "/get")  # beside the old one
    slow.join()
    curl(lab, "/get")  # after it
    assert counted(lab) == (2, 2, 2, 1)


def test_a_connection_that_outlives_a_reset_is_not_made_again(lab):
    with one_connection(lab) as ask:
        ask("/get")
        lab.reset()
        ask("/get")
        assert counted(lab)[:3] == (0, 0, 1)


# Crowds, and clients without manners


def test_three_thousand_connections_at_once(lab):
    seen = crowd(lab, 3_000, "/delay/1")
    assert (seen["ok"], seen["failures"]) == (3_000, {})
    assert lab.counters()["connections"] == 3_000


def test_with_too_few_files_it_says_so_and_serves_all_the_same():
    with foreground("https", files=200) as (lab, _):
        assert crowd(lab, 300, "/delay/0.5")["ok"] == 300
        assert lab.counters()["connections"] == 300
        assert "at most 180 connections are served at once" in ended(lab)


def test_rude_clients_leave_no_noise():
    with foreground("https") as (lab, _):
        raw(lab).close()  # hangs up before its handshake
        with raw(lab) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")  # plain HTTP
            with contextlib.suppress(ConnectionResetError):
                sock.recv(1000)
        with raw(lab) as sock, pytest.raises(ssl.SSLError):  # trusts somebody else
            ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")
        with raw(lab) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # resets
        with shaken(raw(lab), lab) as tls:
            tls.sendall(b"GET /delay/0.2 HTTP/1.1\r\n\r\n")  # does not stay for the answer
        with shaken(raw(lab), lab) as tls:
            tls.sendall(b"not HTTP at all\r\n\r\n")
            assert tls.recv(1000).startswith(b"HTTP/1.1 400")
        time.sleep(0.4)
        assert lab.counters()["connections"] == 6
        ended(lab)


# Life and death


@contextlib.contextmanager
def foreground(scheme: str, files: int | None = None, hangup: str = "SIG_DFL"):
    """`serve` as the process of a server, and the line that it printed. `files`: all it may open.

    `hangup`: what it finds set for SIGHUP, however these tests were started.
    """
    limit = f"ulimit -n {files}; " if files else ""
    serve = SERVE.format(hangup, scheme)
    with subprocess.Popen(
        ["sh", "-c", limit + 'exec "$0" -c "$1"', sys.executable, serve],
        cwd=ROOT,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            ready = json.loads(process.stdout.readline())
            yield server.Server(ready["url"], ready["ca_file"], process), ready
        finally:
            process.kill()


def ended(lab: server.Server, number: int = signal.SIGTERM) -> str:
    """End a server in the foreground: what it said on standard error, in our words alone."""
    lab.process.send_signal(number)
    rest, said = lab.process.communicate(timeout=30)
    assert (lab.process.returncode, rest) == (0, b"")
    said = said.decode()
    assert [line for line in said.splitlines() if not line.startswith("casebook: ")] == []
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_stop_it_leaves_nothing(number):
    with foreground("https") as (lab, ready):
        assert list(ready) == ["url", "ca_file", "pid"]
        folder = Path(ready["ca_file"]).parent
        assert folder.exists()
        ended(lab, number)
    assert eventually(lambda: not alive(ready["pid"]))
    assert not folder.exists()


def test_under_nohup_it_outlives_its_terminal():
    with foreground("http", hangup="SIG_IGN") as (lab, ready):
        assert (ready["url"].partition("127.0.0.1:")[0], ready["ca_file"]) == ("http://", None)
        lab.process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            lab.process.wait(0.5)
        assert lab.counters()["requests"] == 0
        ended(lab)


@pytest.mark.parametrize("forks", ["", "os.fork() or time.sleep(40) or os._exit(0)"])
def test_it_dies_with_an_owner_who_is_killed(forks):
    """Also while a child that the owner forked lives and holds the pipe."""
    ready = json.loads(last_words(OWN % forks))
    folder = Path(ready["ca_file"]).parent
    assert eventually(lambda: not alive(ready["pid"]) and not folder.exists())


def test_a_killed_server_is_cleaned_up_and_said():
    with server.start() as lab:
        os.kill(lab.pid, signal.SIGKILL)
        lab.wait()
        with pytest.raises(ServerFailed, match=r"has ended|does not answer"):
            lab.counters()
    assert not lab.ca_file.parent.exists()
    lab.stop()  # again: harmless


def test_a_port_in_use_is_said():
    with server.start(scheme="http") as lab, pytest.raises(ServerFailed, match="in use"):
        server.start(scheme="http", port=urlsplit(lab.url).port)


@pytest.mark.parametrize("wrong", [{"scheme": "gopher"}, {"port": 65536}, {"port": -1}])
def test_what_it_does_not_know_is_refused(wrong):
    with pytest.raises(UsageError):
        server.start(**wrong)


@needs("curl")
def test_somebody_elses_server_is_not_counted_and_not_stopped(lab):
    with server.Server(lab.url, lab.ca_file) as seen:
        assert (seen.counters(), seen.reset(), seen.pid) == (None, None, None)
    assert curl(lab, "/get")[0] == 200
    assert lab.counters()["requests"] == 1


# Beside the original


@pytest.fixture(scope="module")
def both():
    required = "go-httpbin" in os.environ.get("CASEBOOK_REQUIRE", "").split(",")
    if go_httpbin.find() is None and not required:
        pytest.skip(f"go-httpbin is not installed: {go_httpbin.INSTALL}")
    with server.start() as lab, go_httpbin.running() as original:
        yield lab, original


def content(running: server.Server, path: str) -> dict:
    """The JSON of a page, without the port and the order in which two servers must differ."""
    status, _, body = curl(running, path)
    assert status == 200
    return json.loads(body.decode().replace(running.url.rsplit(":", 1)[1], "PORT"))


@needs("curl")
@pytest.mark.parametrize(
    "path", ["/get", "/get?a=1&a=2&b=", "/delay/0.01?page=3&text=x%20y", "/delay/0"]
)
def test_the_same_content_as_go_httpbin(both, path):
    lab, original = both
    assert content(lab, path) == content(original, path)


@needs("curl")
@pytest.mark.parametrize(
    "path", [*(f"/delay/{seconds}" for seconds in BAD_DELAYS), "/nothing", "/delay", "/delay/"]
)
def test_the_same_status_as_go_httpbin(both, path):
    lab, original = both
    assert curl(lab, path)[0] == curl(original, path)[0]


@needs("curl")
def test_the_same_errors_as_go_httpbin(both):
    lab, original = both
    ours, theirs = (json.loads(curl(each, "/delay/nonsense")[2]) for each in (lab, original))
    assert {**ours, "detail": ""} == {**theirs, "detail": ""}


@pytest.mark.nightly  # it compares clocks, which a machine that does something else disturbs
def test_it_keeps_up_with_go_httpbin(both):
    """A thousand clients at once, in turns: the whole crowd, and its slowest hundredth."""
    seen = [[crowd(each, 1000, "/delay/1") for each in both] for _ in range(5)]
    assert {one["ok"] for pair in seen for one in pair} == {1000}

    def median_ratio(quantity):
        ours, theirs = (statistics.median(map(quantity, each)) for each in zip(*seen, strict=True))
        return ours / theirs

    assert median_ratio(lambda one: one["wall_s"]) < 1.3
    assert median_ratio(lambda one: statistics.quantiles(one["done_s"], n=100)[98]) < 1.3


@pytest.mark.nightly
def test_clients_that_stood_still_for_two_minutes_are_served(standing_still):
    """The other tests of this file pass meanwhile."""
    lab, sockets, since = standing_still
    time.sleep(max(0.0, since + 120 - time.monotonic()))
    for page, sock in enumerate(sockets):
        with shaken(sock, lab) as tls:
            client = http.client.HTTPConnection("127.0.0.1")
            client.sock = tls
            client.request("GET", f"/delay/0.001?page={page}")
            response = client.getresponse()
            assert (response.status, json.load(response)["args"]) == (200, {"page": [str(page)]})
    assert counted(lab) == (100, 100, 100, 1)
