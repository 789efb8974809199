"""The doctor counts what programs do. The truth is a server's count, and the system's (strace)."""

import ast
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import certifi
import here
import jsonschema
import pytest
import tls_doctor
import trust_world
import trustme
from doctoring import START, Counting, doctor
from here import environment

from casebook import places
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.cases.patients import working
from casebook.pages import address, program
from casebook.stacks import interpreters

STRACE = shutil.which("strace")


def opens(site, folder, program, python=sys.executable) -> int:
    """How often a program opens the bundle, by the system's count."""
    environ = {"PATH": os.environ["PATH"]} | site[2]
    traced = [STRACE, "-f", "-e", "trace=open,openat", "-o", folder / "calls", python, program]
    assert here.run(*traced, env=environ, cwd=folder).returncode == 0
    return (folder / "calls").read_text().count(f'"{site[2]["BUNDLE"]}"')


#: Ill programs, each with its healthy twin.
ILL = {
    "requests.get": """
import requests
for _ in range(6): assert requests.get(SITE).ok
""",
    "requests in threads": """
import requests
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(3) as pool:
    assert all(pool.map(lambda _: requests.get(SITE).ok, range(6)))
""",
    "httpx.get": """
import httpx
for _ in range(6): httpx.get(SITE).raise_for_status()
""",
    "httpx, a client for each": """
import asyncio, httpx
async def one():
    async with httpx.AsyncClient() as client: (await client.get(SITE)).raise_for_status()
async def main(): await asyncio.gather(*[one() for _ in range(6)])
asyncio.run(main())
""",
    "urllib3, a pool for each": """
import urllib3
for _ in range(6): urllib3.PoolManager(ca_certs=BUNDLE).request("GET", SITE)
""",
    "http.client": """
import http.client
for _ in range(6):
    connection = http.client.HTTPSConnection(SITE[8:])
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
""",
    "tornado": """
import asyncio
from tornado.httpclient import AsyncHTTPClient
async def main():
    for _ in range(6): await AsyncHTTPClient().fetch(SITE, ca_certs=BUNDLE)
asyncio.run(main())
""",
    "ssl alone": """
import socket, ssl
for _ in range(6):
    context = ssl.create_default_context()
    place = SITE[8:].split(":")
    with socket.create_connection(place) as plain:
        context.wrap_socket(plain, server_hostname=place[0]).close()
""",
}
WELL = {
    "requests.get": """
import requests
session = requests.Session()
for _ in range(6): assert session.get(SITE).ok
""",
    "requests in threads": """
import requests
from concurrent.futures import ThreadPoolExecutor
session = requests.Session()
def fetch(page):  # the first two at once, so that there are two connections in each run
    return session.get(SITE + "/0.5" * (page < 2)).ok
with ThreadPoolExecutor(2) as pool:
    assert all(pool.map(fetch, range(30)))
""",
    "httpx.get": """
import httpx
with httpx.Client() as client:
    for _ in range(6): client.get(SITE).raise_for_status()
""",
    "httpx, a client for each": """
import asyncio, httpx
async def main():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*[client.get(SITE) for _ in range(6)])
asyncio.run(main())
""",
    "urllib3, a pool for each": """
import ssl, urllib3
pool = urllib3.PoolManager(ssl_context=ssl.create_default_context())
for _ in range(6): pool.request("GET", SITE, headers={"Connection": "close"})
""",
    "http.client": """
import http.client, ssl
context = ssl.create_default_context()
for _ in range(6):
    connection = http.client.HTTPSConnection(SITE[8:], context=context)
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
""",
    "tornado": """
import asyncio
from tornado.httpclient import AsyncHTTPClient
async def main():
    for _ in range(6): await AsyncHTTPClient().fetch(SITE)
asyncio.run(main())
""",
    "ssl alone": """
import socket, ssl
context = ssl.create_default_context()
for _ in range(6):
    place = SITE[8:].split(":")
    with socket.create_connection(place) as plain:
        context.wrap_socket(plain, server_hostname=place[0]).close()
""",
}


@pytest.mark.parametrize("name", ILL)
def test_an_ill_program_and_its_healthy_twin(name, site, tmp_path):
    for text, verdict, status in ((ILL[name], "repeated", 1), (WELL[name], "not repeated", 0)):
        program = tmp_path / "program.py"
        program.write_text(START + text)
        before = Counting.made
        report, _ = doctor(site, tmp_path, "--", program)
        counts = report["counts"]
        assert counts["handshakes"] == Counting.made - before
        if STRACE:
            assert counts["loads"] == opens(site, tmp_path, program)
        assert (report["verdicts"]["certificate loads"], report["exit_status"]) == (verdict, status)
        assert counts["needed"] == 1 and counts["load_ms"] > 0
        # One twin closes its connections by a header, which is no illness where they load nothing.
        advice = {each["id"] for each in report["advice"]} - {"connection-close"}
        assert bool(advice) == bool(status)


SERVICES = """
import httpx
names = "users", "books", "mail"
"""
DRIVER = """
import socket, ssl
class Connection:
    def __init__(self):
        place = SITE[8:].split(":")
        plain, context = socket.create_connection(place), ssl.create_default_context()
        self.file = context.wrap_socket(plain, server_hostname=place[0]).makefile("rwb")
    def ask(self):
        self.file.write(b"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n")
        self.file.flush()
        assert b" 200 " in self.file.readline()
        lines = list(iter(self.file.readline, b"\\r\\n"))
        self.file.read(sum(int(line[15:]) for line in lines if line.startswith(b"Content-Len")))
"""
#: With a context each that loads: connections that come and go, and such as are kept.
KEPT_OR_NOT = {
    "services": (
        SERVICES + "for _ in range(2):\n    for each in names:\n        httpx.get(SITE)",
        SERVICES + "clients = [httpx.Client() for each in names]\n"
        "for _ in range(8):\n    for client in clients: client.get(SITE)",
    ),
    "a driver of its own": (
        DRIVER + "for _ in range(6):\n    one = Connection()\n"
        "    for _ in range(3): one.ask()\n    del one",
        DRIVER + "pool = [Connection() for _ in range(3)]\n"
        "for _ in range(4):\n    for one in pool: one.ask()",
    ),
}


@pytest.mark.parametrize("name", KEPT_OR_NOT)
def test_a_load_for_each_connection_that_is_kept_is_no_illness(name, site, tmp_path):
    """Whatever the client is: nobody but ssl tells here what goes over a connection."""
    for text, loads, status in zip(KEPT_OR_NOT[name], (6, 3), (1, 0), strict=True):
        (tmp_path / "program.py").write_text(START + text)
        report, _ = doctor(site, tmp_path, "--", "program.py")
        [row] = report["counts"]["clients"]
        assert (row["loads"], row["requests"], report["exit_status"]) == (loads, None, status)
        assert row["exchanges"] >= row["connections"] * (1 if name == "services" else 3)
        assert bool(report["advice"]) == bool(status)


CURED = """
import sys
sys.path.insert(0, os.environ["CURE"])
import requests, shared_context
session = requests.Session()
session.mount("https://", shared_context.SharedContextAdapter())
for _ in range(6): assert session.get(SITE, headers={"Connection": "close"}).ok
"""


def test_the_cure_is_seen_to_cure(site, tmp_path, cure):
    (tmp_path / "program.py").write_text(START + CURED)
    report, _ = doctor(site, tmp_path, "--", "program.py", variables={"CURE": str(cure)})
    counts = report["counts"]
    assert (counts["loads"], counts["connections"], report["exit_status"]) == (1, 6, 0)


def test_the_advice_names_the_line_and_what_risks_nothing_comes_first(site, tmp_path):
    (tmp_path / "program.py").write_text(START + ILL["requests.get"])
    report, _ = doctor(site, tmp_path, "--", "program.py")
    ids = [each["id"] for each in report["advice"]]
    assert (ids[0], ids[-1]) == ("keep-one", "share-context")
    assert "from program.py:5" in report["advice"][0]["what"]
    assert report["advice"][0]["add"] == "session = requests.Session()"


@pytest.mark.parametrize("name", ILL)
def test_what_it_says_would_be_saved_was_tried(name, site, tmp_path):
    (tmp_path / "program.py").write_text(START + ILL[name])
    before = Counting.made
    report, done = doctor(site, tmp_path, "--", "program.py")
    assert report["ended"]["status"] == 0, done.stderr
    assert Counting.made - before == report["counts"]["connections"] == 6  # it ran once
    [tried] = report["tried"].values()
    assert (tried["connections"], tried["now"]["loads"]) == (6, 6)
    # It is tried with as many at once as there were, and each of three threads may come first.
    assert 1 <= tried["then"]["loads"] <= (3 if name == "requests in threads" else 1)
    assert tried["then"]["cpu_ms"] < tried["now"]["cpu_ms"]
    assert report["advice"][0]["saves"]


AWAITING = """
import asyncio, HTTPX as httpx
async def main():
    for _ in range(6):
        async with httpx.AsyncClient() as client: (await client.get(SITE)).raise_for_status()
asyncio.run(main())
"""
ADDED = """
import asyncio, HTTPX as httpx
async def main():
    LINE
    for _ in range(6): (await client.get(SITE)).raise_for_status()
    await client.aclose()
asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_who_awaits_is_told_of_a_client_that_can_be_awaited(name, site, tmp_path):
    """The line that is advised is put into the program, and cures it."""
    python = environment("on-the-loop-today").python
    (tmp_path / "program.py").write_text(START + AWAITING.replace("HTTPX", name))
    report, _ = doctor(site, tmp_path, "--again", "--", "program.py", python=python)
    first = report["advice"][0]
    assert first["id"] == "keep-one"  # the program's own call, by the name that it gave the module
    assert first["add"] == "client = httpx.AsyncClient()  # once, before the work begins"
    assert f"{name}.get" not in first["what"]
    tried = report["tried"][name]
    assert (tried["now"]["loads"], tried["then"]["loads"]) == (6, 1)
    assert report["again"]["kept"] is True
    added = ADDED.replace("HTTPX", name).replace("LINE", first["add"])
    (tmp_path / "program.py").write_text(START + added)
    report, _ = doctor(site, tmp_path, "--", "program.py", python=python)
    assert (report["counts"]["loads"], report["exit_status"], report["advice"]) == (1, 0, [])


def test_who_has_clients_of_both_kinds_is_told_of_both(site, tmp_path):
    text = AWAITING.replace("HTTPX", "httpx") + ILL["httpx.get"]
    (tmp_path / "program.py").write_text(START + text)
    report, _ = doctor(site, tmp_path, "--", "program.py")
    assert report["counts"]["clients"][0]["awaits"] == 6 == report["counts"]["loads"] / 2
    names: dict = {}
    exec("import httpx\n" + report["advice"][0]["add"], names)
    kinds = [type(names[each]).__name__ for each in ("client", "awaiting")]
    assert kinds == ["Client", "AsyncClient"]


THROUGH = """
import openai
for _ in range(6):
    with openai.OpenAI(api_key="none", base_url=SITE) as service:
        service.get("/0", cast_to=object)
"""


def test_who_calls_a_client_through_a_library_is_told_to_keep_the_librarys(site, tmp_path):
    python = environment("libraries-today").python
    (tmp_path / "program.py").write_text(START + THROUGH)
    report, _ = doctor(site, tmp_path, "--", "program.py", python=python)
    first = report["advice"][0]
    own_call = (
        'client = openai.OpenAI(api_key="...", base_url=SITE)  # once, before the work begins'
    )
    assert (first["id"], first["add"]) == ("keep-one", own_call)
    assert "called by openai, from program.py:6" in first["what"]
    assert "Make one client of openai, and keep it" in first["what"]


def test_pips_truststore_is_not_what_the_program_calls(site, tmp_path):
    """With pip-system-certs it stands between every program and its contexts."""
    python = environment("pip-26.2-system-certs-today").python
    (tmp_path / "program.py").write_text(START + ILL["http.client"])
    report, _ = doctor(site, tmp_path, "--", "program.py", python=python)
    [row] = report["counts"]["clients"]
    assert (row["client"], row["through"], row["connections"]) == ("http.client", None, 6)
    assert report["exit_status"] == 1 and "called by" not in report["advice"][0]["what"]


def test_each_line_to_add_is_a_line_of_python():
    names = dict.fromkeys(("patch", "line"), "pass") | {"to_thread": "asyncio.to_thread"}
    lines = [add % names for _, _, _, add, _, _ in tls_doctor.advice.ADVICE.values()]
    for client in tls_doctor.clients.CLIENTS:
        lines += [client.keep[0]] if client.keep else []
        lines += [client.larger_pool % "size=3"] if client.larger_pool else []
        lines += [client.multiplexed] if client.multiplexed else []
    lines += tls_doctor.advice.IN_A_THREAD.values()
    assert len(lines) > 25
    for line in lines:
        compile(line, line, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


KEPT = """
import requests
session = requests.Session()
for _ in range(6): assert session.get(SITE, headers={"Connection": "close"}).ok
"""


def test_where_nothing_was_tried_nothing_is_promised(site, tmp_path):
    """A Session is kept here already, and the server closes its connections."""
    text = KEPT.replace('SITE, headers={"Connection": "close"}', 'SITE + "/close"')
    (tmp_path / "program.py").write_text(START + text)
    report, _ = doctor(site, tmp_path, "--", "program.py")
    assert report["exit_status"] == 1
    ids = {each["id"] for each in report["advice"]} | {"another-openssl"}
    assert ids == {"another-openssl", "share-context", "server-closes"}
    assert not any(each["saves"] for each in report["advice"])


THREADS = """
import requests, threading
session, at_once, replies = requests.Session(), threading.Barrier(6), []
session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=PLACES))
def fetch(headers={}):
    for _ in range(4):
        at_once.wait(60)
        replies.append(session.get(SITE + "/0.5", headers=headers))
threads = [threading.Thread(target=fetch) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
assert [each.status_code for each in replies] == [200] * 24
"""
CLOSED = 'headers={"Connection": "close"}'


def test_a_pool_that_is_too_small_is_told_from_a_server_that_closes(site, tmp_path):
    """Six threads, four times each: a pool of two closes four connections each time."""

    def seen(text):
        (tmp_path / "program.py").write_text(START + text)
        before = Counting.made
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert report["counts"]["connections"] == Counting.made - before
        [row] = report["counts"]["clients"]
        return report, row

    report, row = seen(THREADS.replace("PLACES", "2"))
    assert (row["loads"], row["full"], row["evicted"]) == (18, 16, 0)
    assert (row["size"]["full"], row["wanted"]["full"]) == (2, 6)
    first = report["advice"][0]
    assert (first["id"], report["exit_status"]) == ("larger-pool", 1)
    assert first["add"].endswith("requests.adapters.HTTPAdapter(pool_maxsize=6))")
    assert set(report["tried"]) == {"larger-pool"} and first["saves"]
    tried = report["tried"]["larger-pool"]
    assert tried["then"]["loads"] <= 6 < tried["now"]["loads"] <= tried["connections"] == 24
    # With what it advises, and where a larger pool would keep nothing.
    report, row = seen(THREADS.replace("PLACES", "6"))
    assert (row["loads"], row["full"], report["exit_status"], report["advice"]) == (6, 0, 0, [])
    report, row = seen(THREADS.replace("PLACES", "2").replace("headers={}", CLOSED))
    assert (row["loads"], row["requests"], report["exit_status"]) == (24, 24, 1)
    saves = {each["id"]: each["saves"] for each in report["advice"]}
    assert "larger-pool" not in saves and saves.pop("connection-close")
    assert not any(saves.values())


def test_again_makes_the_pool_larger_and_promises_nothing_of_threads(site, tmp_path):
    (tmp_path / "program.py").write_text(START + THREADS.replace("PLACES", "2"))
    report, _ = doctor(site, tmp_path, "--again", "--", "program.py")
    # The adapter is the library's, so that its pool can be made larger from outside.
    again = report["again"]
    assert (again["changes"], again["loads"]) == (["larger-pool"], [18, 6])
    assert (again["promises"], again["kept"], again["why"]) == ([], None, None)


IN_TURNS = """
import requests, time
hosts, headers = [SITE, SITE.replace("127.0.0.1", "localhost")], {"Connection": CONNECTION}
session = requests.Session()
session.mount("https://", requests.adapters.HTTPAdapter(pool_connections=PLACES))
for number in range(12):
    assert session.get(hosts[number % 2], headers=headers).ok
    time.sleep(0.1)  # a server that closes has closed
"""


def test_more_hosts_than_a_session_keeps_are_named(tmp_path):
    authority = trustme.CA()
    context = trust_world.presenting(authority.issue_cert("127.0.0.1", "localhost"))
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(Path(certifi.where()).read_bytes() + b"\n" + authority.cert_pem.bytes())
    for connection, kept, loads, evicted, status in (
        ("keep-alive", 1, 12, 10, 1), ("keep-alive", 2, 2, 0, 0), ("close", 1, 12, 0, 1),
    ):  # fmt: skip
        text = IN_TURNS.replace("PLACES", str(kept)).replace("CONNECTION", repr(connection))
        (tmp_path / "program.py").write_text(START + text)
        with here.serving(Counting, context) as url:
            variables = {"REQUESTS_CA_BUNDLE": str(bundle), "BUNDLE": "", "SITE": url}
            report, _ = doctor((url, Counting, variables), tmp_path, "--", "program.py")
        [row] = report["counts"]["clients"]
        assert (row["loads"], row["evicted"], report["exit_status"]) == (loads, evicted, status)
        adds = [each["add"] for each in report["advice"] if each["id"] == "larger-pool"]
        line = 'session.mount("https://", requests.adapters.HTTPAdapter(pool_connections=2))'
        assert adds == ([line] if evicted else [])


POOLS = """
import threading, urllib3
pool, at_once = urllib3.PoolManager(ca_certs=BUNDLE{}), threading.Barrier(4)
def fetch():
    for _ in range(4):
        at_once.wait(60)
        assert pool.request("GET", SITE + "/0.3").status == 200
threads = [threading.Thread(target=fetch) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
"""


def test_a_pool_of_urllib3_has_a_place_for_one_connection(site, tmp_path):
    for places_in_it, loads, status in (("", 13, 1), (", maxsize=4", 4, 0)):
        (tmp_path / "program.py").write_text(START + POOLS.format(places_in_it))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert (report["counts"]["loads"], report["exit_status"]) == (loads, status)
        adds = [each["add"] for each in report["advice"] if each["id"] == "larger-pool"]
        assert [each.split("(")[1] for each in adds] == [
            "maxsize=4, ssl_context=ssl.create_default_context"
        ][:status]


TWENTY = """
import gc, httpx, ssl, weakref
clients = {}
most = 0
def count():
    gc.collect()
    return sum(isinstance(each, ssl.SSLContext) and each.cert_store_stats()["x509"] > 1
               for each in gc.get_objects())
for number in range(20):
    client = httpx.Client()
    client.get(SITE).raise_for_status()
    client.close()
    KEEP
    if COUNT: most = max(most, count())
if COUNT: print("alive", most)
"""


@pytest.mark.parametrize(("keep", "verdict"), [("clients = client", "few"),
                         ("clients[number] = client", "one for each client")])  # fmt: skip
def test_contexts_of_closed_clients_are_counted_once_they_are_freed(keep, verdict, site, tmp_path):
    """A client of httpx refers to itself, so that it lives until Python collects such things.

    Contexts are alive only where somebody keeps them. The truth is counted after a collection.
    """
    text = START + TWENTY.replace("KEEP", keep)
    truth = text.replace("COUNT", "True")
    done = here.run(sys.executable, "-c", truth, env=os.environ | site[2], cwd=tmp_path)
    alive = int(done.stdout.split()[-1])
    assert alive == (1 if verdict == "few" else 20)
    (tmp_path / "program.py").write_text(text.replace("COUNT", "False"))
    report, _ = doctor(site, tmp_path, "--fail-on", "contexts", "--", "program.py")
    assert report["counts"]["loads"] == 20
    assert (report["verdicts"]["contexts"], report["exit_status"]) == (verdict, verdict != "few")
    assert alive - 1 <= report["counts"]["alive"] <= max(alive, 9)  # below ten nobody looks
    assert [each["id"] for each in report["advice"]].count("share-contexts") == (verdict != "few")


TENANTS = """
import ssl, trustme, urllib.request
authority, clients = trustme.CA(), []
for number in range(12):
    if number == 0 or CERTIFICATES == "each":
        issued = authority.issue_cert("%d.example" % number)
    with issued.private_key_and_cert_chain_pem.tempfile() as path:  # written anew for each
        context = ssl.create_default_context()
        context.load_cert_chain(path)
    clients.append(context)
    urllib.request.urlopen(SITE, context=context).read()
"""


@pytest.mark.parametrize(
    ("certificates", "needed", "verdicts"),
    [("each", 12, ("not repeated", "few")), ("one", 1, ("repeated", "one for each client"))],
)
def test_tenants_with_a_certificate_each_need_a_context_each(
    certificates, needed, verdicts, site, tmp_path
):
    text = START + TENANTS.replace("CERTIFICATES", repr(certificates))
    (tmp_path / "program.py").write_text(text)
    report, _ = doctor(site, tmp_path, "--fail-on", "contexts,loads", "--", "program.py")
    counts = report["counts"]
    assert (counts["loads"], counts["needed"]) == (12, needed)
    found = report["verdicts"]
    assert (found["certificate loads"], found["contexts"]) == verdicts
    assert report["exit_status"] == (certificates == "one")


def test_a_program_that_collects_nothing_is_not_made_to(site, tmp_path):
    """Where it has said gc.disable(), what refers to itself is there to the end."""
    text = "import gc\ngc.disable()\n" + TWENTY.replace("KEEP", "pass").replace("COUNT", "False")
    (tmp_path / "program.py").write_text(START + text)
    report, _ = doctor(site, tmp_path, "--", "program.py")
    assert report["counts"]["alive"] == 20
    assert report["verdicts"]["contexts"] == "one for each client"


def test_memory_that_grew_during_loads_at_once_is_counted_once():
    growth = tls_doctor.verdicts.growth
    assert growth([(0, 1, 100, 300), (2, 3, 300, 400)]) == 300
    assert growth([(0, 2, 100, 400), (1, 3, 200, 500)]) == 400  # and not 600
    assert growth([(0, 1, 500, 200)]) == growth([]) == 0


# ------------------------------------------------------------------------- its share of which CPU


LONG_TO_COMPILE = "def work(): return [" + "f(1)(2)[3](4, 5), " * 60 + "]\n"


def test_the_first_run_which_compiles_comes_out_as_the_next_ones(site, tmp_path):
    (tmp_path / "models.py").write_text(LONG_TO_COMPILE * 5000)
    (tmp_path / "program.py").write_text(START + "import models" + ILL["requests.get"])
    first, _ = doctor(site, tmp_path, "--", "program.py")
    second, _ = doctor(site, tmp_path, "--", "program.py")
    counts = [each["counts"] for each in (first, second)]
    assert counts[0]["compiled_ms"] > 20 * counts[0]["spare_ms"] > 0 == counts[1]["compiled_ms"]
    assert [each["verdicts"]["certificate loads"] for each in (first, second)] == ["repeated"] * 2
    # So its loads, beside what it compiled, were no illness.
    assert 100 * counts[0]["spare_ms"] / counts[0]["compiled_ms"] < first["share_stated"]
    told = [tls_doctor.report.text_of(each, False) for each in (first, second)]
    assert ["Compiling its modules" in each for each in told] == [True, False]


def test_a_module_that_cannot_be_compiled_is_told_as_without_the_doctor(site, tmp_path):
    (tmp_path / "models.py").write_text("def work(:\n")
    (tmp_path / "program.py").write_text("import models\n")
    plain = here.run(sys.executable, "program.py", cwd=tmp_path)
    _, done = doctor(site, tmp_path, "--", "program.py")
    assert plain.returncode == 1 and "SyntaxError" in plain.stderr
    assert done.stderr.replace(str(tmp_path) + "/program", "program").endswith(
        plain.stderr.replace(str(tmp_path) + "/program", "program")
    )


def test_the_cpu_is_the_programs_from_where_its_code_begins():
    """Not Python's, nor the doctor's, which in a child has to be imported first."""
    events = [
        {"is": "process", "pid": 1, "cpu": 100, "compiled": 0},
        {"is": "start", "pid": 1, "cpu": 110, "compiled": 5},
        {"is": "process", "pid": 2, "cpu": 300, "compiled": 0},
        {"is": "exit", "pid": 2, "cpu": 307, "compiled": 40},
        {"is": "exit", "pid": 1, "cpu": 160, "compiled": 25},
    ]
    counts = tls_doctor.tally.count_events(events)
    assert (counts["cpu_ms"], counts["compiled_ms"], counts["processes"]) == (50 + 7, 60, 1)
    # The second program has taken the place of the first in its process.
    other = [each | {"pid": 1} for each in events[:2] + events[2:4]]
    assert tls_doctor.tally.count_events(other)["cpu_ms"] == 7
    other.insert(2, {"is": "context", "pid": 1, "cpu": 150, "compiled": 5, "c": 1, "default": False,
                     "who": {"client": None, "through": None, "at": None}})  # fmt: skip
    assert tls_doctor.tally.count_events(other)["cpu_ms"] == 40 + 7


@pytest.mark.parametrize("first", ["exchange", "begin"])
def test_where_there_are_more_events_than_are_counted_it_says_so_once(first, monkeypatch, tmp_path):
    monkeypatch.setattr(tls_doctor.running, "MOST_EVENTS", 2)
    write = tls_doctor.running.writer(str(tmp_path / "events"))
    kinds = ["process", "start", first, "begin", "end", "exit"]
    for what in kinds:
        write({"is": what, "pid": 1, "cpu": 0, "compiled": 0, "h": 1, "n": 1})
    kept = [each["is"] for each in tls_doctor.running.read_events(str(tmp_path / "events"))]
    told = ["exchange", "uncounted"] if first == "exchange" else ["uncounted"]
    assert kept == ["process", "start", *told, "exit"]


def test_a_share_that_is_about_at_the_limit_is_called_so():
    def near(again_share, again=3, share=5.0, loads=4, whole=0.0):
        counts = {"again": again, "again_share": again_share, "loads": loads, "needed": 1}
        counts |= {"handshakes": 1, "clients": [], "failures": []}
        return tls_doctor.verdicts.limit_near(counts | {"share": whole}, share)

    assert [near(each) for each in (3.9, 4.5, 5.0, 6.0, 6.4)] == [None, 5.0, 5.0, 5.0, None]
    assert near(5.0, again=1) is None and near(9.0, share=10.0) == 10.0
    kept = dict(again=0, loads=20)
    assert [near(0.0, whole=each, **kept) for each in (10.0, 19.0, 40.0)] == [None, 20, None]
    assert near(30.0, loads=20, whole=21.0) is None  # which is ill by the first limit


# --------------------------------------------------------------------- as its user would start it


@pytest.fixture
def package(tmp_path):
    """A package whose __main__ does the work, and a function in it."""
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg/__init__.py").write_text("")
    job = START + "import sys\ndef work():\n    import requests\n"
    job += "    for _ in range(4): assert requests.get(SITE).ok\n    print(sys.argv[1:])\n"
    (tmp_path / "mypkg/job.py").write_text(job)
    (tmp_path / "mypkg/__main__.py").write_text("from mypkg.job import work\nwork()\n")
    return tmp_path


def test_every_way_to_start_a_program(site, package):
    archive = package / "job.pyz"
    (package / "in_it").mkdir()
    shutil.copytree(package / "mypkg", package / "in_it/mypkg")
    zipapp.create_archive(package / "in_it", archive, main="mypkg.job:work")
    script = package / "bin" / "fetch-all"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom mypkg.job import work\nwork()\n")
    script.chmod(0o755)
    path = {"PATH": f"{script.parent}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
    for command in (
        ["-m", "mypkg", "a", "--b"], ["mypkg", "a", "--b"], ["mypkg.job:work", "a", "--b"],
        [archive, "a", "--b"], ["fetch-all", "a", "--b"], [script, "a", "--b"],
        ["python", "-m", "mypkg", "a", "--b"],
    ):  # fmt: skip
        report, done = doctor(site, package, "--", *command, variables=path)
        assert (report["counts"]["loads"], report["exit_status"]) == (4, 1), command
        assert "['a', '--b']" in done.stderr, command


def test_a_report_repeats_no_secret_of_the_command(site, tmp_path):
    (tmp_path / "program.py").write_text("import sys; print(sys.argv[1:])\n")
    report, done = doctor(site, tmp_path, "--", "program.py", "--token", "hunter2")
    assert report["program"] == "program.py --token ..."
    assert done.stderr.startswith("['--token', 'hunter2']")  # the program's own words


ODD = {
    "its own name": "assert __name__ == '__main__' and sys.modules['__main__'].work is work",
    "its exit status": "import atexit; atexit.register(print, 'at the end'); sys.exit('ended so')",
    "its json": "import json; assert json.mine",
    "its classes": "import pickle; assert pickle.loads(pickle.dumps(work)) is work",
}


def test_the_program_is_what_it_is_without_the_doctor(site, tmp_path):
    (tmp_path / "json.py").write_text("mine = True\n")
    for name, text in ODD.items():
        program = START + f"import sys, urllib3\ndef work(): pass\n{text}\n"
        (tmp_path / "program.py").write_text(program)
        report, done = doctor(site, tmp_path, "--", "program.py")
        assert report["ended"]["raised"] is None, (name, done.stderr)
        if "exit" in name:
            assert "ended so\n" in done.stderr and "at the end" in done.stderr


FORKS = """
import multiprocessing, sys
def work(_):
    import requests
    for _ in range(4): requests.get(SITE)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool: pool.map(work, range(2), 1)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_children_are_counted_too(how, site, tmp_path):
    (tmp_path / "program.py").write_text(START + FORKS)
    before = Counting.made
    report, _ = doctor(site, tmp_path, "--", "program.py", how)
    counts = report["counts"]
    assert counts["loads"] == counts["handshakes"] == Counting.made - before == 8
    assert report["exit_status"] == 1


# ---------------------------------------------------------------------------------- asyncio's loop


AT_ONCE = """
import asyncio, requests
session = requests.Session()
def fetch(): assert session.get(SITE + "/0.2").ok
async def one(): {}
async def main(): await asyncio.gather(*[one() for _ in range({})])
asyncio.run(main())
"""


def test_a_client_that_does_not_await_blocks_the_loop(site, tmp_path):
    def verdict(how, n):
        (tmp_path / "program.py").write_text(START + AT_ONCE.format(how, n))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        return report["verdicts"]["event loop"], report["exit_status"], report

    loop, status, report = verdict("fetch()", 5)
    assert (loop, status) == ("blocked", 1)
    assert report["counts"]["blocked"]["times"] >= 5  # and the handshake, on a slow machine
    assert report["advice"][0]["id"] == "asyncio" and "program.py:6" in report["advice"][0]["what"]
    assert verdict("await asyncio.to_thread(fetch)", 1)[0] == "does not apply"
    # Nobody waited for the loop, so nobody was kept from anything.
    assert verdict("fetch()", 1)[0] != "blocked"


GREENLETS = """
{}
import gevent, requests
session = requests.Session()
tasks = [gevent.spawn(session.get, SITE + "/0.4") for _ in range(2)]
gevent.joinall(tasks, raise_error=True)
for _ in range(40): session.get(SITE)
"""


def test_the_event_loop_is_tried_when_the_program_has_done_its_work(site, tmp_path):
    def verdict(patch):
        (tmp_path / "program.py").write_text(START + GREENLETS.format(patch))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert report["counts"]["handshakes"] in (1, 2)  # those of the trials are not the program's
        return report["verdicts"]["event loop"], report["exit_status"]

    assert verdict("from gevent import monkey; monkey.patch_all()") == ("free", 0)
    assert verdict("") == ("blocked", 1)


STANDARD = """
{}
import gevent, ssl, urllib.request
context = ssl.create_default_context()
def fetch(): assert urllib.request.urlopen(SITE + "/0.2", context=context).status == 200
gevent.joinall([gevent.spawn(fetch) for _ in range(3)], raise_error=True)
"""


def test_a_client_of_the_standard_library_blocks_greenlets_too(site, tmp_path):
    """What the trial tries is a stand-in then, so that what was seen while it ran decides."""
    for patch, verdict, status in (
        ("", "blocked", 1),
        ("from gevent import monkey; monkey.patch_all()", "free", 0),
    ):
        (tmp_path / "program.py").write_text(START + STANDARD.format(patch))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert (report["verdicts"]["event loop"], report["exit_status"]) == (verdict, status)
        assert [each["id"] for each in report["advice"]] == ["patch"][:status]


IN_A_FUNCTION = """
def main():
    {}
    import gevent, requests
    session = requests.Session()
    for _ in range(2):
        tasks = [gevent.spawn(session.get, SITE + "/0.2") for _ in range(3)]
        gevent.joinall(tasks, raise_error=True)
main()
"""


def test_greenlets_are_told_of_a_program_that_imports_gevent_in_a_function(site, tmp_path):
    """No module of the program's holds anything of gevent; its greenlets were seen at work."""
    for patch, verdict, status in (
        ("", "blocked", 1),
        ("from gevent import monkey; monkey.patch_all()", "free", 0),
    ):
        (tmp_path / "program.py").write_text(START + IN_A_FUNCTION.format(patch))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert (report["verdicts"]["event loop"], report["exit_status"]) == (verdict, status)
        assert report["loop"]["used"] is False and report["counts"]["stood"]["in_greenlets"]


def test_what_the_loop_of_greenlets_was_kept_from(site, tmp_path):
    def counted(patch):
        (tmp_path / "program.py").write_text(START + GREENLETS.format(patch))
        report, _ = doctor(site, tmp_path, "--", "program.py")
        return report["counts"]["stood"]

    kept = counted("")
    assert kept["fetched"] and kept["times"] == kept["waits"] >= 2 and kept["s"] >= 0.2
    assert kept["clients"][0][0] == "requests"
    ran_on = counted("from gevent import monkey; monkey.patch_all()")
    assert ran_on["waits"] >= 2 and ran_on["times"] == ran_on["s"] == 0


@contextlib.contextmanager
def a_busy_processor():
    """What this thread starts shares one processor with three programs that never wait."""
    before = os.sched_getaffinity(0)
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    busy = []
    try:
        os.sched_setaffinity(0, {min(before)})
        busy += [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
        yield
    finally:
        os.sched_setaffinity(0, before)
        for each in busy:
            each.kill()
            each.wait()


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="nobody tells it here")
def test_who_waits_for_a_processor_does_not_wait_for_a_reply(site, tmp_path):
    """The forty replies are there at once, and the program is not: its loop did not stand still."""
    (tmp_path / "program.py").write_text(
        START + GREENLETS.format("from gevent import monkey; monkey.patch_all()")
    )
    with a_busy_processor():
        report, _ = doctor(site, tmp_path, "--", "program.py")
    assert report["counts"]["stood"]["fetched"] and report["counts"]["stood"]["times"] == 0


IN_THREADS = """
import gevent, requests, threading
from gevent.threadpool import ThreadPool
session, at_once = requests.Session(), threading.Barrier(3)
def fetch(_):
    at_once.wait(60)
    return session.get(SITE + "/0.5").ok
assert ThreadPool(3).map(fetch, range(3)) == [True] * 3
"""
IN_TRIO = """
import trio, requests
session = requests.Session()
def fetch(): assert session.get(SITE + "/0.3").ok
async def one(): {}
async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(3): nursery.start_soon(one)
trio.run(main)
"""


def test_gevents_threads_block_nobody_and_a_session_that_they_share_is_kept(site, tmp_path):
    """Each thread has its connection, and each connection its load: no more come, however long."""
    (tmp_path / "program.py").write_text(START + IN_THREADS)
    report, _ = doctor(site, tmp_path, "--", "program.py")
    assert (report["counts"]["loads"], report["counts"]["open"]) == (3, 3)
    assert report["verdicts"]["event loop"] == "does not apply"
    assert (report["exit_status"], report["advice"]) == (0, [])


def test_trios_loop_is_blocked_as_asyncios_is(site, tmp_path):
    python = environment("libraries-today").python
    for how, verdict, status in (
        ("fetch()", "blocked", 1),
        ("await trio.to_thread.run_sync(fetch)", "does not apply", 0),
    ):
        (tmp_path / "program.py").write_text(START + IN_TRIO.format(how))
        report, _ = doctor(site, tmp_path, "--", "program.py", python=python)
        assert (report["verdicts"]["event loop"], report["exit_status"]) == (verdict, status), how
        assert [each["add"].split("(")[0] for each in report["advice"]] == (
            ["reply = await trio.to_thread.run_sync"] if status else []
        )


# ----------------------------------------------------------------------------- the program, again


@pytest.mark.parametrize("name", ["requests.get", "httpx.get", "urllib3, a pool for each",
                                  "http.client"])  # fmt: skip
def test_again_lays_what_was_promised_beside_what_came_out(name, site, tmp_path):
    (tmp_path / "program.py").write_text(START + ILL[name])
    before = Counting.made
    report, done = doctor(site, tmp_path, "--again", "--", "program.py")
    again, counts = report["again"], report["counts"]
    assert counts["connections"] < Counting.made - before <= 12  # it ran twice
    [row] = again["promises"]
    assert (again["kept"], again["why"], again["loads"]) == (True, None, [6, 1])
    assert (row["promised"], row["loads"]) == (1, 1)
    assert report["exit_status"] == 1  # of the program as it is
    assert "running the program again" in done.stderr
    jsonschema.validate(report, tls_doctor.schema.schema())


IN_OTHER_WAYS = """
import asyncio, ssl
import aiohttp, boto3, httplib2
from botocore.config import Config
from tornado.httpclient import AsyncHTTPClient
for _ in range(4):
    assert httplib2.Http(ca_certs=BUNDLE).request(SITE)[0].status == 200
    options = dict(verify=BUNDLE, aws_access_key_id="none", aws_secret_access_key="none")
    options.update(config=Config(retries={"total_max_attempts": 1}))
    service = boto3.client("s3", "us-east-1", endpoint_url=SITE, **options)
    try: service.list_buckets()
    except Exception: pass  # the answer is not one of theirs
async def main():
    for _ in range(4):
        await AsyncHTTPClient().fetch(SITE, ca_certs=BUNDLE)
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=BUNDLE))
        async with aiohttp.ClientSession(connector=connector) as session: await session.get(SITE)
asyncio.run(main())
"""


def test_again_does_it_for_each_client_or_says_that_it_promises_nothing(site, tmp_path):
    python = environment("libraries-today").python
    (tmp_path / "program.py").write_text(START + IN_OTHER_WAYS)
    report, _ = doctor(site, tmp_path, "--again", "--", "program.py", python=python)
    names = {"botocore", "httplib2", "tornado", "the program's own contexts"}
    assert {row["client"] for row in report["again"]["promises"]} == set(report["tried"]) == names
    for each in report["tried"].values():
        assert (each["connections"], each["now"]["loads"], each["then"]["loads"]) == (4, 4, 1)
    assert all(row["loads"] == row["promised"] == 1 for row in report["again"]["promises"])
    assert (report["again"]["kept"], report["again"]["left"]) == (True, [])


def test_again_frees_the_loop(site, tmp_path):
    (tmp_path / "program.py").write_text(START + GREENLETS.format(""))
    report, _ = doctor(site, tmp_path, "--again", "--", "program.py")
    assert report["again"]["changes"] == ["gevent"]
    assert report["again"]["event loop"] == ["blocked", "free"]


HALF = """
import requests, ssl
context = ssl.create_default_context()
class Adapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *args, **options):
        super().init_poolmanager(*args, ssl_context=context, **options)
for _ in range(6):
    session = requests.Session()
    session.mount("https://", Adapter())
    assert session.get(SITE).ok
"""


def test_a_promise_that_is_not_kept_is_told(site, tmp_path):
    """The program mounts an adapter of its own, which stays as it is."""
    (tmp_path / "program.py").write_text(START + HALF)
    report, _ = doctor(site, tmp_path, "--again", "--", "program.py")
    assert report["again"]["kept"] is False
    assert report["again"]["promises"][0]["loads"] > report["again"]["promises"][0]["promised"]


#: A driver that fills contexts by itself, which no line makes, from memory, which nobody can try.
FROM_MEMORY = DRIVER.replace(
    "ssl.create_default_context()",
    "ssl.SSLContext()\n        context.load_verify_locations(cadata=open(BUNDLE).read())",
)


def test_again_runs_nothing_where_there_is_nothing_to_apply(site, tmp_path):
    for text, why in (
        (WELL["requests.get"], "nothing is to be changed"),
        (FROM_MEMORY + "for _ in range(6): Connection().ask()\n", "cannot make this change"),
        (ILL["requests.get"] + "1 / 0\n", "did not come to a good end"),
    ):
        (tmp_path / "program.py").write_text(START + text)
        before = Counting.made
        report, _ = doctor(site, tmp_path, "--again", "--", "program.py")
        assert Counting.made - before == report["counts"]["connections"]  # once
        assert why in report["again"]["why"] and report["again"]["changes"] == []
        if "cannot" in why:
            assert "nothing is promised" in report["advice"][0]["what"] and report["tried"] == {}
    done = here.run(sys.executable, places.DOCTOR, "--again", "--", "requests")
    assert done.returncode == 2 and "doctor.py run --again" in done.stderr


# ------------------------------------------------------------------------- what it cannot tell


def test_what_it_has_not_seen_it_does_not_call_healthy(site, tmp_path):
    for text in ("", "import requests", "import requests\nrequests.get('https://127.0.0.1:9')"):
        (tmp_path / "program.py").write_text(text)
        report, _ = doctor(site, tmp_path, "--", "program.py")
        assert report["verdicts"]["certificate loads"] == "nothing seen"
        assert report["exit_status"] == 2 and "httpx" in report["known_to_the_doctor"]
    assert "Refused" in report["ended"]["raised"] and "program.py:2" in report["ended"]["raised"]
    for text, last in (("", "What to change cannot be told."), (WELL["http.client"], "Nothing to")):
        (tmp_path / "program.py").write_text(START + text)
        command = [sys.executable, places.DOCTOR, "run", "--", "program.py"]
        done = here.run(*command, env=os.environ | site[2], cwd=tmp_path)
        assert f"\n{last}" in done.stdout


def test_a_program_that_crashes_is_not_called_healthy(site, tmp_path):
    (tmp_path / "program.py").write_text(START + WELL["requests.get"] + "1 / 0\n")
    report, done = doctor(site, tmp_path, "--", "program.py")
    assert (report["verdicts"]["certificate loads"], report["exit_status"]) == ("not repeated", 2)
    assert report["ended"]["raised"] == "ZeroDivisionError: division by zero, at program.py:7"
    assert "ZeroDivisionError" in done.stderr and "doctor.py" not in done.stderr


#: Programs that come to no good end, and the exit status that they have without the doctor.
BAD_ENDS = {
    "def work(:\n    pass\n": 1,
    "def work(): return 1 / 0\nwork()\n": 1,
    "try:\n    {}[1]\nexcept KeyError:\n    raise ValueError('again')\n": 1,
    "import sys\nprint('said')\nsys.exit(3)\n": 3,
}


@pytest.mark.parametrize("version", ["2.7", "3.7", "3.11", "3.13", "3.14"])
def test_a_bad_end_is_told_as_without_the_doctor(version, site, tmp_path):
    python = interpreters.find(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    for text, status in BAD_ENDS.items():
        (tmp_path / "program.py").write_text(text)
        plain = here.run(python.path, "program.py", cwd=tmp_path)
        assert plain.returncode == status
        command = [python.path, places.DOCTOR, "run", "--json", "--", "program.py"]
        done = here.run(*command, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path)})
        report = json.loads(done.stdout)
        # No connection was seen, so it cannot tell, however the program ended.
        assert report["exit_status"] == done.returncode == 2
        # Until 3.9, Python names a script as the command line does, and the doctor whole.
        ours, theirs = [each.stderr.replace(f'"{tmp_path}/', '"') for each in (done, plain)]
        assert theirs in ours and ours.count("File ") == theirs.count("File ")
        assert "doctor.py" not in ours
        if "SyntaxError" in plain.stderr:
            assert "is no program of this Python (SyntaxError" in report["trouble"]
        elif status == 3:
            assert "said" in done.stderr and report["ended"]["status"] == 3
        else:
            assert plain.stderr.splitlines()[-1].split(":")[0] in report["ended"]["raised"]
        assert os.listdir(tmp_path) == ["program.py"]


def test_what_it_counted_is_there_when_the_program_is_killed(site, tmp_path):
    kills = "import signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "program.py").write_text(START + ILL["requests.get"] + kills)
    report, _ = doctor(site, tmp_path, "--", "program.py")
    assert (report["counts"]["loads"], report["exit_status"]) == (6, 1)


def test_patience_bounds_the_whole(site, tmp_path):
    (tmp_path / "program.py").write_text(  # six loads take a fraction of a second
        START + ILL["http.client"] + "import time\ntime.sleep(99)\n"
    )
    report, _ = doctor(site, tmp_path, "--patience", "6", "--", "program.py", timeout=60)
    assert (report["counts"]["loads"], report["exit_status"]) == (6, 1)
    assert "--patience" in report["ended"]["why"]


SLEEPS = """
import multiprocessing, sys, time
def child(_): time.sleep(99)
if __name__ == "__main__":
    print("pids", os.getpid(), file=sys.stderr, flush=True)
    process = multiprocessing.get_context("spawn").Process(target=child, args=[0])
    process.start()
    print("pids", process.pid, file=sys.stderr, flush=True)
    time.sleep(99)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_it_ends_the_program_too(number, site, tmp_path):
    (tmp_path / "program.py").write_text(START + SLEEPS)
    command = [sys.executable, places.DOCTOR, "run", "--json", "--", "program.py"]
    environ = os.environ | site[2] | {"TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    doctor = subprocess.Popen(
        command, stdout=pipe, stderr=pipe, env=environ, cwd=tmp_path, text=True
    )
    pids: list[int] = []
    while len(pids) < 2:
        line = doctor.stderr.readline()
        assert line, doctor.wait()
        pids += [int(line.split()[1])] if line.startswith("pids") else []
    counted = False
    while not counted:  # the child begins to count before it begins to work
        assert doctor.poll() is None
        events = "".join(path.read_text() for path in tmp_path.glob("doctor-*/events"))
        counted = f'"pid": {pids[1]}' in events
    os.kill(doctor.pid, number)
    if number == signal.SIGINT:  # as a terminal does, which tells all of them
        os.kill(pids[1], number)
    out, _ = doctor.communicate(timeout=100)
    report = json.loads(out)
    assert report["exit_status"] == doctor.returncode == 128 + number
    assert "nothing is left running" in report["trouble"]
    assert list(tmp_path.glob("doctor-*")) == []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            state = Path(f"/proc/{pid}/stat")  # a zombie has ended, and nobody has fetched it
            for _ in range(1000):
                if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                    break
                os.kill(pid, 0)
                time.sleep(0.02)
            else:
                pytest.fail(f"{pid} is still there")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_its_whole_group_leaves_nothing_and_loses_no_count(number, site, tmp_path):
    """As from `timeout`, or from a system that stops a service."""
    waits = "print('fetched', file=sys.stderr, flush=True)\nimport time\ntime.sleep(99)\n"
    (tmp_path / "program.py").write_text("import sys\n" + START + ILL["http.client"] + waits)
    run = subprocess.Popen(
        [sys.executable, places.DOCTOR, "run", "--json", "--", "program.py"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=os.environ | site[2] | {"TMPDIR": str(tmp_path)}, start_new_session=True,
    )  # fmt: skip
    assert any(line == "fetched\n" for line in run.stderr)
    os.killpg(run.pid, number)
    out, _ = run.communicate(timeout=100)
    if number == signal.SIGTERM:
        report = json.loads(out)
        assert (report["counts"]["loads"], report["exit_status"]) == (6, 128 + number)
    for _ in range(500):  # the server learns of the end of the killed one by its pipe
        if not list(tmp_path.glob("doctor-*")):
            break
        time.sleep(0.02)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]


STAYS = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that it has to be killed, and so have its own
STAY = [sys.executable, "-S", "-c", "import time; time.sleep(99)"]
child = subprocess.Popen(STAY)
parent = subprocess.Popen(["sh", "-c", 'sleep 99 & echo "pids $!" >&2; wait'])
daemon = subprocess.Popen(STAY, preexec_fn=os.setsid)
time.sleep(0.3)
sys.stderr.write("pids %d\\npids %d\\npids %d\\n" % (child.pid, parent.pid, daemon.pid))
sys.stderr.flush()
while True: time.sleep(9)
"""


def runs(pid: int) -> bool:
    """Whether a process has not ended; of one that nobody has fetched, a zombie, it has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("version", ["3", "2.7"])
def test_what_a_program_has_started_ends_with_it_but_not_a_daemon(version, number, tmp_path):
    """Also where the program is killed, or the doctor is: then nobody else is there who would."""
    python = sys.executable if version == "3" else environment("stage-1-py27").python
    (tmp_path / "program.py").write_text("import os\n" + STAYS)
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    command = [python, places.DOCTOR, "run", "--json", "--", "program.py"]
    doctor = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=tmp_path,
        text=True,
    )
    pids: list[int] = []
    while len(pids) < 4:
        line = doctor.stderr.readline()
        assert line, doctor.wait()
        pids += [int(line.split()[1])] if line.startswith("pids") else []
    *own, daemon = pids
    try:
        assert all(map(runs, pids))
        doctor.send_signal(number)
        if number == signal.SIGTERM:
            time.sleep(0.2)
            doctor.send_signal(number)  # who asks twice does not wait
        doctor.wait(60)
        doctor.stdout.close()
        doctor.stderr.close()
        assert here.eventually(lambda: not any(map(runs, own)), 30)
        assert runs(daemon)
    finally:
        for pid in filter(runs, pids):
            os.kill(pid, signal.SIGKILL)


RUNS_ON = """
import requests, subprocess, sys, time
session = requests.Session()
for _ in range(3): assert session.get(SITE).ok
def work():
    for _ in range(6): assert requests.get(SITE).ok
def detach():
    for number in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.setsid()
"""
#: What runs on: what is added to the program, loads that are counted, verdict, exit status.
LEFT = {
    "a daemon": (
        """
if os.fork() == 0:
    detach()
    if os.fork(): os._exit(0)
    with open("pid", "w") as file: file.write(str(os.getpid()))
    time.sleep(60)
    work()
    os._exit(0)
os.wait()
""",
        1, "cannot tell", 2,
    ),
    "a daemon that is soon done": (
        """
if os.fork() == 0:
    detach()
    time.sleep(0.2)
    work()
    os._exit(0)
""",
        7, "repeated", 1,
    ),
    "a Python": (
        """
code = "import time; open('pid', 'w').write(str(__import__('os').getpid())); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", code], preexec_fn=detach)
""",
        1, "cannot tell", 2,
    ),
    "no Python": (
        """
with open("pid", "w") as file:
    file.write(str(subprocess.Popen(["sleep", "60"], preexec_fn=detach).pid))
""",
        1, "not repeated", 0,
    ),
    "a child that is waited for": (
        """
if os.fork() == 0:
    work()
    os._exit(0)
os.wait()
""",
        7, "repeated", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", ["3", "2.7"])
@pytest.mark.parametrize("what", LEFT)
def test_what_runs_on_without_the_program_gives_no_all_clear(what, version, site, tmp_path):
    """It is counted, if it soon ends; else nobody can tell what it does, if it is a Python."""
    python = sys.executable if version == "3" else environment("stage-1-py27").python
    text, loads, verdict, status = LEFT[what]
    (tmp_path / "program.py").write_text(START + RUNS_ON + text)
    try:
        report, _ = doctor(site, tmp_path, "--", "program.py", python=python)
        assert report["counts"]["loads"] == loads
        assert (report["verdicts"]["certificate loads"], report["exit_status"]) == (verdict, status)
        assert report["counts"]["left"] == (verdict == "cannot tell")
        told = "1 process that the program has started ran on" in tls_doctor.report.text_of(
            report, False
        ).replace("\n    ", " ")
        assert told == (verdict == "cannot tell")
        assert (tmp_path / "pid").exists() == ("soon" not in what and "child" not in what)
    finally:
        for path in tmp_path.glob("pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("command", [["no_such_program"], ["ls"], ["no such thing"]])
def test_what_cannot_be_run_is_told_in_a_sentence(command, site, tmp_path):
    report, done = doctor(site, tmp_path, "--", *command)
    assert report["exit_status"] == 2 and "Traceback" not in done.stderr


def test_it_counts_in_python_2_too(site, tmp_path):
    python = environment("stage-1-py27").python
    for text, status in ((ILL["requests.get"], 1), (WELL["requests.get"], 0)):
        program = tmp_path / "program.py"
        program.write_text(START + text)
        before = Counting.made
        report, _ = doctor(site, tmp_path, "--", program, python=python)
        counts = report["counts"]
        assert counts["handshakes"] == Counting.made - before
        if STRACE:
            assert counts["loads"] == opens(site, tmp_path, program, python)
        assert report["exit_status"] == status
        assert not any(each["id"] == "share-context" for each in report["advice"])


# ------------------------------------------------------------------------------- what machines read


def test_the_json_is_what_its_schema_says(site, tmp_path):
    schema = json.loads(here.run(sys.executable, places.DOCTOR, "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    (tmp_path / "program.py").write_text(START + ILL["httpx.get"])
    (tmp_path / "broken.py").write_text("import no_such_module")
    commands = [["--json", "--", name] for name in ("program.py", "broken.py")]
    for command in commands + [["run", *each] for each in commands]:
        environ = os.environ | site[2]
        done = here.run(sys.executable, places.DOCTOR, *command, env=environ, cwd=tmp_path)
        report = json.loads(done.stdout)
        jsonschema.validate(report, schema)
        assert report["version"] == tls_doctor.basis.VERSION
        # As strict as can be: with a name left out it is no report.
        for name in ("exit_status", "version"):
            less = {key: report[key] for key in report if key != name}
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(less, schema)


def test_what_it_fails_on_and_what_github_shows(site, tmp_path):
    (tmp_path / "program.py").write_text(START + ILL["httpx.get"])
    report, done = doctor(site, tmp_path, "--github", "--fail-on", "blocked", "--", "program.py")
    assert (report["verdicts"]["certificate loads"], report["exit_status"]) == ("repeated", 0)
    assert "::notice file=program.py,line=5,title=tls-doctor keep-one::" in done.stderr
    report, done = doctor(site, tmp_path, "--github", "--fail-on", "loads", "--", "program.py")
    assert report["exit_status"] == 1
    assert "::error file=program.py,line=5,title=tls-doctor keep-one::" in done.stderr
    done = here.run(sys.executable, places.DOCTOR, "--fail-on", "weather", "--", "program.py")
    assert (done.returncode, done.stdout) == (
        2,
        "",
    ) and "blocked, contexts, handshakes, loads" in done.stderr


def test_the_address_in_it_is_the_books():
    assert tls_doctor.basis.ADDRESS == address.of_repository()
    for number, (file, title) in tls_doctor.advice.CHAPTERS.items():
        assert file.startswith(f"{number:02}_")
        text = (places.NOTEBOOKS / f"{file}.ipynb").read_text()
        assert f'"# {title}' in text
    numbers = {row[1] for row in tls_doctor.advice.ADVICE.values()}
    sights = {row[1] for row in tls_doctor.attaching.SIGHTS}
    assert numbers | sights == {*tls_doctor.advice.CHAPTERS}
    assert {row[2] for row in program.MATTERS} <= numbers


# --------------------------------------------------------------------- where it cannot do its work


def told(done) -> str:
    """What the doctor says where it cannot: one sentence, and the exit status 2."""
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_read_from_standard_input_it_says_what_to_do():
    for arguments in ([], ["run", "--", "program.py"]):
        done = here.run(sys.executable, "-", *arguments, input=places.DOCTOR.read_text())
        assert "save it as doctor.py" in told(done)


@here.needs("unshare")
def test_where_nobody_can_connect_it_says_so_and_a_run_still_counts(site, tmp_path):
    (tmp_path / "program.py").write_text("import requests")
    alone = ["unshare", "-Urn", sys.executable, places.DOCTOR]
    if here.run("unshare", "-Urn", "true").returncode:
        pytest.skip("this machine gives nobody a network of its own")
    done = here.run(*alone, "--", tmp_path / "program.py")
    assert "cannot listen on 127.0.0.1" in told(done) and "doctor.py run" in done.stderr
    done = here.run(*alone, "run", "--json", "--", tmp_path / "program.py")
    assert json.loads(done.stdout)["verdicts"]["certificate loads"] == "nothing seen"


def test_without_a_folder_for_temporary_files_it_says_so(tmp_path):
    code = "import sys, tempfile\ndef none(*_, **__): raise OSError(30, 'Read-only file system')\n"
    (tmp_path / "sitecustomize.py").write_text(code + "tempfile.mkdtemp = none\n")
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = here.run(sys.executable, places.DOCTOR, env=environ)
    assert "TMPDIR=/a/folder" in told(done)


def test_a_json_beside_it_is_not_taken_for_pythons_own(tmp_path):
    shutil.copy(places.DOCTOR, tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('mine')")
    (tmp_path / "program.py").write_text("import requests")
    done = here.run(sys.executable, "doctor.py", "--json", "--", "program.py", cwd=tmp_path)
    assert json.loads(done.stdout)["exit_status"] == 0, done.stderr


INSIDE = """
import sys, threading, os
sys.path.insert(0, {folder!r})
import requests, doctor
{odd}
seen, done = set(), []
def look():
    while not done: seen.add(os.environ.get("no_proxy"))
looking = threading.Thread(target=look)
looking.start()
report = doctor.inside()
done.append(1)
looking.join()
print(sorted(seen, key=str), report["exit_status"], len(threading.enumerate()))
"""


def test_inside_changes_nothing_and_a_frozen_program_is_not_started_again():
    def said(odd=""):
        code = INSIDE.format(folder=str(places.DOCTOR.parent), odd=odd)
        environ = {name: os.environ[name] for name in os.environ if name != "no_proxy"}
        return here.run(sys.executable, "-c", code, env=environ, timeout=60)

    assert said().stdout == "[None] 0 1\n"
    for odd in ("sys.frozen = True", "sys.executable = '/usr/sbin/uwsgi'", "sys.executable = ''"):
        done = said(odd)
        assert done.stdout == "[None] 2 1\n"
        assert "no Python that could run the doctor" in done.stderr


# ------------------------------------------------------------------------------ the book's patients


def test_a_job_and_its_twin_come_out_as_they_are_measured():
    environment("stage-1-today")
    jobs = working.table(["requests, each", "requests, one for threads"])
    assert list(jobs["doctor"]) == list(jobs["measured"]) == ["repeated", "not repeated"]
    assert list(jobs["exit_status"]) == [1, 0]
    told = jobs.assign(wrong=["miss", ""], doctor=["not repeated", "cannot tell"])
    assert working.accuracy(told, told).drop(columns="question").iloc[0].to_dict() == {
        "programs": 2, "right": 0, "miss": 1, "false alarm": 0, "cannot tell": 1,
    }  # fmt: skip


#: The jobs of greenlets and of trio, and whether one reply keeps all others waiting.
ON_A_LOOP = {
    "gevent, not patched": "blocked", "gevent, patched": "free", "gevent's threads": "free",
    "gevent, urlopen": "blocked", "gevent, urlopen, patched": "free",
    "trio, on the loop": "blocked", "trio, in threads": "free",
}  # fmt: skip


@pytest.mark.slow
def test_jobs_on_a_loop_are_told_from_jobs_beside_it():
    jobs = working.table([job.name for job in working.JOBS if job.question == working.LOOP])
    assert dict(zip(jobs["job"], jobs["doctor"], strict=True)) == ON_A_LOOP
    assert list(jobs["measured"]) == list(jobs["doctor"]) and set(jobs["wrong"]) == {""}
    told = working.accuracy(jobs.head(0), jobs).set_index("question")
    n = len(ON_A_LOOP)
    assert told.loc["event loop", ["programs", "right"]].to_list() == [n, n]


@pytest.mark.slow
def test_the_fourth_cases_illnesses_are_named_and_not_in_their_twins():
    """On counts alone: loads on the loop, handshakes under way at once, contexts alive at once."""
    apart = (working.LOADS, working.LOOP)
    names = [job.name for job in working.JOBS if job.question not in apart]
    jobs = working.table(names).set_index("job")
    assert len(jobs) == len(names) == 8
    assert set(jobs["wrong"]) == {""} and "cannot tell" not in set(jobs["doctor"])
    ill = [working.VERDICTS[each][0] for each in jobs["question"]]
    assert list(jobs["doctor"] == ill) == [True, False] * 4
    # The last one loads again and again, which is another illness.
    assert list(jobs["exit_status"]) == [1, 0] * 3 + [1, 1]


def test_handshakes_that_wait_for_each_other_are_told_by_their_times():
    who = {"client": None, "through": None, "at": None}

    def verdict(*spans, loads=(), pid=1):
        load = {"is": "load", "c": 1, "who": who, "trust": "x", "by": "x", "alive": 1}
        load |= {"ms": 9, "kib": [0, 0], "loop": False, "thread": 0}
        events = [(t, load | {"since": since, "t": t}) for since, t in loads]
        for thread, (since, begin, end) in enumerate(spans):
            begun = dict(h=thread, c=1, who=who, loop=False, since=since, t=begin)
            begun |= {"thread": thread, "by": "x", "http": False, "open": 1}
            events.append((begin, {"is": "begin"} | begun))
            events.append((end, {"is": "end", "h": thread, "ok": True, "t": end, "ms": 1}))
        common = {"pid": pid, "cpu": 0, "compiled": 0}
        events = [each | common for _, each in sorted(events, key=lambda it: it[0])]
        return tls_doctor.verdicts.verdict_on_handshakes(tls_doctor.tally.count_events(events))

    assert verdict((0, 0, 1), (0, 1, 2), (0, 2, 3)) == "one at a time"
    assert verdict((0, 0, 1), (0, 0.1, 1), (0, 0.2, 1)) == "at once"
    # One after the other, because nobody wanted more; and too short to matter.
    assert verdict((0, 0, 1), (1, 1, 2), (2, 2, 3)) == "does not apply"
    assert verdict((0, 0, 0.01), (0, 0.01, 0.02), (0, 0.02, 0.03)) == "does not apply"
    # They waited for something else, which nobody knows.
    assert verdict((0, 1, 1.1), (0, 2, 2.1), (0, 3, 3.1)) == "does not apply"
    # A lock that is held while certificates are loaded, and not through the handshake: while one
    # shakes hands, the next one loads. And one that is held through both.
    spans = (0, 1, 1.3), (0, 2, 2.3), (0, 3, 3.3)
    assert verdict(*spans, loads=[(0, 1), (1, 2), (2, 3)]) == "does not apply"
    assert verdict(*spans, loads=[(0, 1), (1.3, 2), (2.3, 3)]) == "one at a time"


LOCKED = """
import os, ssl, threading
try:
    from urllib2 import urlopen
except ImportError:
    from urllib.request import urlopen

class Careful(ssl.SSLContext):
    lock = threading.Lock()
    def wrap_socket(self, *args, **how):
        with self.lock:
            self.load_default_certs()
            {}
        return super(Careful, self).wrap_socket(*args, **how)

context = Careful(ssl.PROTOCOL_SSLv23)
context.verify_mode = ssl.CERT_REQUIRED
get = lambda: urlopen(os.environ["SITE"], context=context).read()
threads = [threading.Thread(target=get) for _ in range(5)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["stage-1-py27", "stage-1-today"])
@pytest.mark.parametrize(
    ("last", "said"),
    [("return super(Careful, self).wrap_socket(*args, **how)", "one at a time"), ("", "at once")],
)
def test_a_programs_own_lock_is_named_where_it_is_held_through_the_handshake(
    last, said, stack, tmp_path
):
    with SlowToShakeHands(handshake_s=1.0) as server:
        names = {"SITE": server.url, "SSL_CERT_FILE": str(server.ca_file)}
        (tmp_path / "program.py").write_text(LOCKED.format(last))
        python = environment(stack).python
        report, _ = doctor((None, None, names), tmp_path, "--", "program.py", python=python)
        assert server.counters()["handshakes"] == report["counts"]["handshakes"] == 5
        assert (server.counters()["peak_handshakes"] == 1) == (said == "one at a time")
    assert report["verdicts"]["handshakes"] == said
    assert report["counts"]["queue"]["wanted"] >= 3
    adds = [each["add"] for each in report["advice"] if each["id"] == "lock"]
    assert len(adds) == (said == "one at a time")
    assert all("do_handshake_on_connect=False" in each for each in adds)


OF_TRUSTSTORE = """
import os, ssl, threading
import httpx, truststore

client = httpx.Client(verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
threads = [threading.Thread(target=client.get, args=[os.environ["SITE"]]) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.slow
def test_a_client_that_is_kept_is_no_advice_where_truststore_loads_in_each_handshake(tmp_path):
    (tmp_path / "program.py").write_text(OF_TRUSTSTORE)
    python = environment("truststore-in-clients-today").python
    with SlowToShakeHands(handshake_s=0.3) as server:
        bundle = tmp_path / "bundle.pem"
        bundle.write_text(Path(certifi.where()).read_text() + server.ca_file.read_text())
        names = {"SITE": server.url, "SSL_CERT_FILE": str(bundle)}
        report, _ = doctor((None, None, names), tmp_path, "--", "program.py", python=python)
    advice = {each["id"]: each for each in report["advice"]}
    advice.pop("another-openssl", None)  # as this Python's is, or is not
    assert advice.pop("server-closes")  # which the slow server does
    assert set(advice) == {"lock", "loads-late"} and report["counts"]["loads"] >= 6
    for each in advice.values():  # and they do not contradict each other
        assert each["add"].startswith("context = ssl.create_default_context()")
        assert not each["remove"]


VENDORED = """
import os
import requests

for _ in range(5):
    requests.get(os.environ["SITE"])
"""


def test_packages_that_were_installed_beside_the_program_are_known_as_packages(site, tmp_path):
    """Pip install --target, as for a function of a cloud: the line to change is the program's."""
    packages = environment("stage-1-today").python.parent.parent
    (found,) = packages.glob("lib/python3*/site-packages")
    for each in found.iterdir():
        if each.name.startswith(("requests", "urllib3", "certifi", "idna", "charset_normalizer")):
            copy = shutil.copytree if each.is_dir() else shutil.copy
            copy(each, tmp_path / each.name)
    (tmp_path / "program.py").write_text(VENDORED)
    report, _ = doctor(site, tmp_path, "--", "program.py", python=sys.executable)
    (row,) = report["counts"]["clients"]
    assert (row["client"], row["through"], row["loads"]) == ("requests", "requests", 5)
    assert row["at"] == [["program.py:6", 5]]


INJECTED = """
import os, threading
{}
import httpx

client = httpx.Client()
threads = [threading.Thread(target=client.get, args=[os.environ["SITE"]]) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("injects", [True, False])
def test_where_truststore_is_injected_a_context_of_ssl_is_no_advice(injects, tmp_path):
    """ssl.create_default_context() makes truststore's then, and a client that is kept loads too."""
    inject = "import truststore; truststore.inject_into_ssl()" if injects else ""
    (tmp_path / "program.py").write_text(INJECTED.format(inject))
    python = environment("truststore-in-clients-today").python
    with SlowToShakeHands(handshake_s=0.3) as server:
        bundle = tmp_path / "bundle.pem"
        bundle.write_text(Path(certifi.where()).read_text() + server.ca_file.read_text())
        names = {"SITE": server.url, "SSL_CERT_FILE": str(bundle)}
        report, _ = doctor((None, None, names), tmp_path, "--", "program.py", python=python)
        assert server.counters()["handshakes"] == 6
    advice = {each["id"]: each for each in report["advice"]}
    advice.pop("another-openssl", None)  # as this Python's is, or is not
    assert advice.pop("server-closes")  # which the slow server does
    assert set(advice) == ({"lock", "loads-late"} if injects else set())
    assert (report["exit_status"], report["counts"]["loads"]) == ((1, 7) if injects else (0, 1))
    for each in advice.values():
        assert each["remove"].startswith("truststore.inject_into_ssl()") and not each["add"]


@pytest.mark.nightly
def test_no_job_is_misjudged_and_all_loads_are_counted():
    jobs = working.table()
    assert len(jobs) == len(working.JOBS)
    assert set(jobs["wrong"]) == {""} and "cannot tell" not in set(jobs["doctor"])
    assert (jobs["loads_doctor"] == jobs["loads_measured"]).all(), jobs.to_string()
    assert (jobs["connections_doctor"] == jobs["connections_measured"]).all(), jobs.to_string()
