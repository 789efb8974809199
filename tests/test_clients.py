"""The clients inside their environments: that they run by themselves, what they fetch, what they
load, whom they trust, and that no failure of theirs passes for a timing."""

import json
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trustme

from casebook import clients, server, stacks
from casebook.runs.bench import PROBES, ask_probe
from casebook.runs.measure import measure
from casebook.stacks import environments

N = 8
#: Contexts and certificate loads in the fetch, and the loads before it.
OF_PYTHON = {
    "httpx-today": (1, 1, 0),
    "httpx-each-today": (N, N, 0),
    "aiohttp-today": (0, 0, 2),
    "niquests-today": (1, 1, 0),
    "urllib3-shared-today": (1, 1, 0),
}
NOT_OF_PYTHON = ("pycurl-today", "curl-cffi-today")
ALL = (*OF_PYTHON, *NOT_OF_PYTHON)
COUNTED = ["counters_contexts", "loads", "counters_loads_before"]


@pytest.fixture(scope="module")
def https():
    with server.start() as lab:
        yield lab


def ask(name, lab, n=3, **further):
    """What the probe answers in a stack; `client=`: who fetches in place of the stack's own."""
    environment = environments.ensure(stacks.get(name))
    return ask_probe(environment, lab, n, 0, **{"verify": str(lab.ca_file)} | further)[0]


def fetched(**asked):
    frame = measure(ALL, n=N, repeats=1, **asked)
    loads = frame["counters_load_verify_locations"] + frame["counters_default_loads"]
    return frame.assign(loads=loads).set_index("stack")


def stack_of(client):
    """A stack that has what a client imports: its own, else one with gevent and requests."""
    own = [name for name, stack in stacks.load().items() if stack.client == client]
    return "stage-1-today" if client == "grequests" or not own else own[-1]


@pytest.mark.parametrize("client", clients.files())
def test_each_runs_by_itself(client, https):
    environment = environments.ensure(stacks.get(stack_of(client)))
    https.reset()
    said = subprocess.run(
        [environment.python, clients.file_of(client), https.url, "2", https.ca_file],
        env=environments.clean_environ(environment), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert https.counters()["requests"] == 2
    assert re.fullmatch(r"[12]\.\d\d s", said.stdout.splitlines()[-1])


def test_a_new_client_is_one_file(monkeypatch, tmp_path):
    """Found by its presence, imported after the steps, and asked for by its name."""
    own = clients.file_of("loop").read_text().replace("import requests", "import requests as mine")
    own = own.replace('"""requests: a', '"""A').replace("requests.get(url", "mine.get(url")
    (tmp_path / "mine.py").write_text(own)
    monkeypatch.setattr(clients, "FOLDER", tmp_path)
    clients.files.cache_clear()
    try:
        assert list(clients.files()) == ["mine"]
        frame = measure("stage-1-today", n=3, delay_s=0, client="mine", repeats=1)
    finally:
        clients.files.cache_clear()
    assert frame["client"].tolist() == ["mine"]
    assert frame["counters_load_verify_locations"].tolist() == [3]


def test_a_client_may_be_called_as_its_file(https):
    frame = measure("stage-1-today", n=2, delay_s=0, client="loop", repeats=1)
    assert frame["client"].tolist() == ["requests"]


def test_a_session_keeps_its_connection():
    frame = measure("stage-1-today", n=3, delay_s=0, client="session", repeats=1)
    counted = frame[["counters_connections", "counters_requests", "counters_contexts"]]
    assert counted.values.tolist() == [[1, 3, 1]]


def test_a_loop_that_raises_names_the_page_at_which_it_was(https, wrong):
    answer = ask("stage-1-today", https, client="requests", url=wrong + "/c")
    assert answer["failure"]["page"] == 1
    assert answer["responses"] == [{"page": 1, "status": None, "got_page": None}]


def test_all_at_once_each_on_a_connection_of_its_own():
    frame = fetched(delay_s=0.3, trust="bundle")
    assert (frame["ok"] == N).all()
    assert (frame["counters_handshakes"] == N).all()
    assert (frame["counters_connections"] == N).all()
    assert (frame["counters_peak_in_flight"] > 1).all()
    counted = frame.loc[list(OF_PYTHON), COUNTED].astype(int)
    assert {name: tuple(row) for name, *row in counted.itertuples()} == OF_PYTHON
    # Nothing can be told of TLS that is not Python's, and nothing is said.
    assert frame.loc[list(NOT_OF_PYTHON), COUNTED].isna().all(axis=None)


def test_without_delay_no_connection_is_used_twice_either():
    frame = fetched(delay_s=0, trust="path")
    assert (frame["counters_handshakes"] == N).all()
    assert (frame["counters_connections"] == N).all()


def test_verify_off_accepts_and_loads_nothing_where_no_default_is_asked_for():
    frame = fetched(delay_s=0, trust="off-hidden")
    assert (frame["ok"] == N).all()
    loads = frame.loc[list(OF_PYTHON), "loads"].astype(int)
    # niquests' urllib3 asks for the defaults, as urllib3 does for requests.
    assert dict(loads) == dict.fromkeys(OF_PYTHON, 0) | {"niquests-today": 1}


def test_over_plain_http_httpx_alone_makes_contexts():
    frame = fetched(delay_s=0, scheme="http")
    assert (frame["counters_handshakes"] == 0).all()
    contexts = frame.loc[list(OF_PYTHON), "counters_contexts"].astype(int)
    wanted = dict.fromkeys(OF_PYTHON, 0) | {"httpx-today": 1, "httpx-each-today": N}
    assert dict(contexts) == wanted


@pytest.mark.parametrize("client", clients.files())
def test_a_server_of_another_authority_is_refused(client, https, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for told in ({"verify": str(other)}, {"verify": True, "bundle": str(other)}):
        failure = ask(stack_of(client), https, client=client, **told)["failure"]
        assert failure["page"] == 0
        assert "certificate" in failure["message"].lower()
        assert str(tmp_path) not in failure["message"]


class Wrong(BaseHTTPRequestHandler):
    """Right answers, except: page 1 is not found at /a, gets page 7's answer at /b, and nothing
    but a closed connection at /c."""

    def do_GET(self):
        page = int(self.path.rpartition("=")[2])
        place = self.path[:2] if page == 1 else ""
        if place == "/c":
            self.close_connection = True
            return
        body = json.dumps({"args": {"page": "7" if place == "/b" else str(page)}}).encode()
        self.send_response(404 if place == "/a" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def wrong(https):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wrong)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("client", clients.files())
def test_a_wrong_response_is_named_and_so_is_none(client, https, wrong):
    def answer(place):
        return ask(stack_of(client), https, client=client, url=wrong + place)

    status = answer("/a")["failure"]
    # What of the standard library fetches raises it.
    assert (status["page"], status["type"] in ("WrongStatus", "HTTPError")) == (1, True)
    page = answer("/b")["failure"]
    assert page == {"page": 1, "type": "WrongPage", "message": "asked for page 1, got 7"}
    none = answer("/c")
    assert none["failure"]["page"] == 1
    # A loop that raises at page 1 has nothing of the others.
    seen = [each["status"] for each in none["responses"]]
    assert seen in ([200, None, 200], [None])


def test_pycurl_says_how_many_it_can_wait_for(https):
    failure = ask("pycurl-today", https, n=1001)["failure"]
    assert failure["page"] is None
    assert failure["message"].endswith("choose n up to 1000")


def test_a_client_of_today_leaves_nothing_beside_the_probes(https):
    before = sorted(PROBES.rglob("*"))
    answer = ask("httpx-today", https, variables={"PYTHONDONTWRITEBYTECODE": ""})
    assert answer["failure"] is None
    assert sorted(PROBES.rglob("*")) == before
