"""The clients inside their environments.

They run by themselves; what they fetch, what they load and whom they trust is tried, and no failure
of theirs passes for a timing.
"""

import re

import pytest
import trustme
from here import environment, python_in

from casebook import stacks
from casebook.cases.fetching import clients, run_record
from casebook.cases.fetching.bench import ask_probe
from casebook.cases.fetching.runs import measure
from casebook.errors import RunFailed, UsageError
from casebook.places import PROBES

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


def ask(name, lab, n=3, **further):
    """What the probe answers in a stack; `client=`: who fetches in place of the stack's own."""
    return ask_probe(environment(name), lab, n, 0, **{"verify": str(lab.ca_file)} | further)[0]


def fetched(n=N, **asked):
    frame = measure(ALL, n=n, repeats=1, **asked)
    loads = frame["counters_load_verify_locations"] + frame["counters_default_loads"]
    return frame.assign(loads=loads).set_index("stack")


def stack_of(client):
    """A stack that has what a client imports: its own, else one with gevent and requests."""
    own = [name for name, stack in stacks.load().items() if stack.client == client]
    return "stage-1-today" if client == "grequests" or not own else own[-1]


#: Each client in a stack that has what it imports, and some in Python 2.7 too.
EVERYWHERE = [(stack_of(client), client) for client in clients.files()]
EVERYWHERE += [("stage-1-py27", "requests"), ("stage-1-py27", "grequests")]
EVERYWHERE += [("stage-2-py27", "grequests")]
everywhere = pytest.mark.parametrize(
    ("stack", "client"),
    [
        pytest.param(*each, id=f"{each[0]}-{clients.file_of(each[1]).stem}-{each[1]}")
        for each in EVERYWHERE
    ],
)


@everywhere
def test_each_runs_by_itself(stack, client, https):
    https.reset()
    script = clients.file_of(client)
    said = python_in(stack, script, https.url, "2", https.ca_file)
    assert said.returncode == 0, said.stderr
    assert said.stdout, f"{script.name} does nothing when it is run by itself"
    assert https.counters()["requests"] == 2
    assert re.fullmatch(r"\d+\.\d\d s", said.stdout.splitlines()[-1])


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


def test_verify_off_accepts_and_loads_nothing_where_no_default_is_asked_for():
    frame = fetched(n=60, delay_s=0, trust="off-hidden")
    for each in ("ok", "counters_handshakes", "counters_connections"):
        assert (frame[each] == 60).all()  # without delay no connection is used twice either
    loads = frame.loc[list(OF_PYTHON), "loads"].astype(int)
    # niquests' urllib3 asks for the defaults, as urllib3 does for requests.
    assert dict(loads) == dict.fromkeys(OF_PYTHON, 0) | {"niquests-today": 1}


def test_over_plain_http_httpx_alone_makes_contexts():
    frame = fetched(delay_s=0, scheme="http")
    assert (frame["counters_handshakes"] == 0).all()
    contexts = frame.loc[list(OF_PYTHON), "counters_contexts"].astype(int)
    wanted = dict.fromkeys(OF_PYTHON, 0) | {"httpx-today": 1, "httpx-each-today": N}
    assert dict(contexts) == wanted


@everywhere
def test_a_server_of_another_authority_is_refused(stack, client, https, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for told in ({"verify": str(other)}, {"verify": True, "bundle": str(other)}):
        failure = ask(stack, https, client=client, **told)["failure"]
        assert failure, f"{client} accepts a stranger's certificate: does it pass `verify` on?"
        assert failure["page"] == 0
        assert re.search("verify failed|unable to get local issuer", failure["message"])
        assert str(tmp_path) not in failure["message"]
        assert "Max retries" not in failure["message"]  # what wraps the cause


@everywhere
def test_a_wrong_response_is_named_and_so_is_none(stack, client, https, wrong):
    def answer(place):
        return ask(stack, https, client=client, url=wrong + place)

    # What of the standard library fetches raises an exception.
    with pytest.raises(RunFailed, match=r"page 1(: HTTP Error| came back as status) 404"):
        run_record.check(stack, 3, answer("/a"))
    with pytest.raises(RunFailed, match="page 1 came back as status 200, page 7"):
        run_record.check(stack, 3, answer("/b"))
    none = answer("/c")
    assert none["failure"]["page"] == 1
    failed = {"page": 1, "status": None, "got_page": None}
    others = [{"page": page, "status": 200, "got_page": page} for page in (0, 2)]
    # A loop that raises at page 1 has nothing of the others.
    assert none["responses"] in ([others[0], failed, others[1]], [failed])


def test_pycurl_says_how_many_it_can_wait_for(https):
    failure = ask("pycurl-today", https, n=1001)["failure"]
    assert failure["page"] is None
    assert failure["message"].endswith("choose n up to 1000")


@pytest.mark.parametrize("name", ["stage-1-today", "httpx-today"])
def test_nothing_is_left_beside_the_probes(name, https):
    before = sorted(PROBES.rglob("*"))
    answer = ask(name, https, variables={"PYTHONDONTWRITEBYTECODE": ""})
    assert answer["failure"] is None
    assert sorted([*PROBES.rglob("*"), *clients.FOLDER.glob("*.pyc")]) == before


@pytest.fixture
def own_clients(monkeypatch, tmp_path):
    """own_clients(name=docstring, ...): a folder with these clients alone."""

    def written(**docstrings):
        loop = clients.file_of("loop").read_text()
        for stem, said in docstrings.items():
            text = loop.replace('"""requests: a', f'"""{said}')
            (tmp_path / f"{stem}.py").write_text(text)
        monkeypatch.setattr(clients, "FOLDER", tmp_path)
        clients.files.cache_clear()

    yield written
    monkeypatch.undo()
    clients.files.cache_clear()


@pytest.mark.parametrize(
    ("stem", "said", "name"),
    [
        ("mine", "Note: a", "mine"),  # just a word
        ("mine", "A loop", "mine"),
        ("mine_each", "mine-each: a", "mine-each"),  # its file's, written otherwise
        ("mine_each", "mine: a", "mine"),
        ("mine", "requests: a", "requests"),  # a module that it imports
    ],
)
def test_only_a_name_before_a_colon_is_one(own_clients, stem, said, name):
    own_clients(**{stem: said})
    assert list(clients.files()) == [name]


def test_two_clients_of_one_name_are_both_named(own_clients):
    own_clients(loop="requests: a", mine="requests: a")
    with pytest.raises(UsageError, match=r"two clients.*'requests'.*loop\.py and mine\.py"):
        clients.name_of("requests")
