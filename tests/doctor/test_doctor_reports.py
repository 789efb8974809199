"""The doctor on programs after public reports, each with its healthy twin: what is so decides."""

import ast
import base64
import hashlib
import json
import os
import signal
import subprocess
import sys

import certifi
import here
import pytest
import tls_doctor
from doctoring import (
    START,
    doctor,
    doctor_of_a_server,
    free_port,
    is_up,
    listening,
    postgres,
    redis,
)
from here import environment

from casebook import places, stacks


@pytest.fixture(scope="module")
def python():
    return environment("reports-today").python


def judged(report) -> tuple[str, str, int]:
    verdicts = report["verdicts"]
    return verdicts["event loop"], verdicts["certificate loads"], report["exit_status"]


def ids(report) -> list[str]:
    return [each["id"] for each in report["advice"]]


def tried(text, site, folder, python, *options, **more):
    (folder / "program.py").write_text(START + text)
    return doctor(site, folder, *options, "--", "program.py", python=python, **more)[0]


# ---------------------------------------------------------------------- a server whose loop is kept

LIFESPAN = """
import os
SITE, BUNDLE = os.environ["SITE"], os.environ["BUNDLE"]

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await work()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""
BLOCKS = """
import requests
async def work():
    requests.get(SITE + "/0.3")
"""
AWAITS = """
import ssl, httpx
context, clients = ssl.create_default_context(), []
async def work():
    clients[:] = clients or [httpx.AsyncClient(verify=context)]
    (await clients[0].get(SITE + "/0.3")).raise_for_status()
"""
IN_THREADS = """
import requests
def ask(): requests.get(SITE + "/0.3")
async def work():
    if "trio" in sys.modules:
        await trio.to_thread.run_sync(ask)
    else:
        await asyncio.to_thread(ask)
"""
UVICORN = ["uvicorn", "--port", "PORT", "app:app"]
SERVERS = {
    "uvicorn, uvloop": [*UVICORN, "--loop", "uvloop"],
    "uvicorn, asyncio": [*UVICORN, "--loop", "asyncio"],
    "hypercorn": ["hypercorn", "-b", "127.0.0.1:PORT", "app:app"],
    "hypercorn, trio": ["hypercorn", "-k", "trio", "-b", "127.0.0.1:PORT", "app:app"],
    "gunicorn": [
        "gunicorn", "-k", "uvicorn.workers.UvicornWorker", "-b", "127.0.0.1:PORT", "app:app",
    ],
    "granian": ["granian", "--interface", "asgi", "--port", "PORT", "app:app"],
    "gunicorn, gevent": ["gunicorn", "-k", "gevent", "-b", "127.0.0.1:PORT", "app:app"],
}  # fmt: skip


def served(name, text, site, folder, python, at_once=6):
    (folder / "app.py").write_text(LIFESPAN + text)
    port = free_port()
    command = [word.replace("PORT", str(port)) for word in SERVERS[name]]
    return doctor_of_a_server(site, folder, port, *command, at_once=at_once, python=python)


@pytest.mark.parametrize(
    "name",
    [
        "uvicorn, uvloop",
        *(pytest.param(name, marks=pytest.mark.slow) for name in [*SERVERS][1:-1]),
    ],
)
def test_a_server_whose_loop_is_kept_is_blocked_though_its_clients_wait_in_their_sockets(
    name, site, tmp_path, python
):
    report = served(name, BLOCKS, site, tmp_path, python)
    assert report["verdicts"]["event loop"] == "blocked"
    blocked = report["counts"]["blocked"]
    assert blocked["times"] >= 6 and blocked["waiting_s"] >= 5 * 0.3
    assert blocked["at"][0][0].startswith("app.py:") and "asyncio" in ids(report)


def test_whoever_comes_to_a_server_one_by_one_finds_it_blocked_too(site, tmp_path, python):
    report = served("uvicorn, uvloop", BLOCKS, site, tmp_path, python, at_once=1)
    assert report["verdicts"]["event loop"] == "blocked"


@pytest.mark.parametrize(
    "name", ["uvicorn, uvloop", pytest.param("granian", marks=pytest.mark.slow)]
)
def test_a_server_that_awaits_is_free(name, site, tmp_path, python):
    report = served(name, AWAITS, site, tmp_path, python)
    assert report["verdicts"]["event loop"] == "free" and report["counts"]["heartbeats"]
    assert report["counts"]["silent"]["waiting_s"] == 0 and "asyncio" not in ids(report)


SERVED_BY_GREENLETS = """
import os, requests
session = requests.Session()
def app(environ, start_response):
    session.get(os.environ["SITE"] + "/0.3").raise_for_status()
    start_response("200 OK", [])
    return [b"ok"]
"""


def test_a_worker_that_patches_after_its_parent_is_free(site, tmp_path):
    python = environment("gunicorn-gevent-today").python
    (tmp_path / "app.py").write_text(SERVED_BY_GREENLETS)
    port = free_port()
    command = [word.replace("PORT", str(port)) for word in SERVERS["gunicorn, gevent"]]
    report = doctor_of_a_server(site, tmp_path, port, *command, at_once=6, python=python)
    assert report["verdicts"]["event loop"] == "free" and not report["advice"]
    stalls = report["counts"]["stood"]
    assert stalls["in_greenlets"] and stalls["waits"] >= 2 and stalls["times"] == 0


CONNECTS_IN_C = """
import psycopg2
TARGET = "host=127.0.0.1 port=PORT user=u password=p dbname=d sslmode=verify-full"
async def work():
    psycopg2.connect(TARGET + " gssencmode=disable sslrootcert=" + BUNDLE).close()
"""


def test_a_server_that_connects_in_c_alone_is_reported_when_it_is_ended(site, tmp_path, python):
    """As servers are ended: by a signal, and no connection of its own was seen."""
    with listening(postgres, site[3]) as port:
        text = CONNECTS_IN_C.replace("PORT", str(port))
        report = served("uvicorn, uvloop", text, site, tmp_path, python, at_once=3)
    assert report["verdicts"]["event loop"] == "blocked" and report["counts"]["connections"] == 0
    assert report["counts"]["own_tls"] == ["psycopg2"] and ids(report) == ["asyncio"]


# --------------------------------------------------------------------------- TLS that nobody counts

CONNECT = """
import psycopg2
def connect():
    name = os.environ["PG"] + " user=u password=p dbname=d sslmode=verify-full gssencmode=disable"
    psycopg2.connect(name + " sslrootcert=" + BUNDLE).close()
"""
DRIVERS = {
    "gevent": """
from gevent import monkey; monkey.patch_all()
import gevent, requests
session = requests.Session()
def one(_):
    CALL
    assert session.get(SITE + "/0.1").ok
gevent.joinall([gevent.spawn(one, number) for number in range(3)], raise_error=True)
""",
    "asyncio": """
import asyncio, httpx
async def main():
    async with httpx.AsyncClient() as client:
        async def one():
            CALL
            (await client.get(SITE + "/0.1")).raise_for_status()
        await asyncio.gather(*[one() for _ in range(3)])
asyncio.run(main())
""",
    "trio": """
import trio, httpx
async def one(client):
    CALL
    (await client.get(SITE + "/0.1")).raise_for_status()
async def main():
    async with httpx.AsyncClient() as client, trio.open_nursery() as nursery:
        for _ in range(3): nursery.start_soon(one, client)
trio.run(main)
""",
}
#: What is advised, where the call stands.
APPLIED = {
    "gevent": "gevent.get_hub().threadpool.apply(connect)",
    "asyncio": "await asyncio.to_thread(connect)",
    "trio": "await trio.to_thread.run_sync(connect)",
}


@pytest.mark.parametrize("loop", DRIVERS)
def test_a_driver_with_tls_of_its_own_is_heard_by_the_loops_heartbeat(loop, site, tmp_path, python):
    with listening(postgres, site[3]) as port:
        variables = {"PG": f"host=127.0.0.1 port={port}"}
        for call, verdict, status in (("connect()", "blocked", 1), (APPLIED[loop], "free", 0)):
            text = DRIVERS[loop].replace("CALL", call)
            # gevent patches first.
            head, line, tail = text.partition("patch_all()\n")
            text = (head + line + CONNECT + tail) if line else CONNECT + text
            report = tried(text, site, tmp_path, python, variables=variables)
            assert (judged(report)[0], judged(report)[2]) == (verdict, status), call
            assert report["counts"]["own_tls"] == ["psycopg2"]
            silent = report["counts"]["silent"]
            assert (silent["waiting_s"] >= 0.5) == bool(status)
            if status:
                assert silent["by"] == loop
                assert "psycopg2" in [name for name, _ in silent["clients"]]
                [advice] = report["advice"]
                assert "psycopg2" in advice["what"] and "program.py:" in advice["what"]
                text = tls_doctor.report.text_of(report, False)
                assert "psycopg2: imported, and brings TLS of its own" in text


BY_A_SELECTOR = """
import asyncio, selectors, ssl, socket
def ask():
    '''As psycopg connects: it waits for its socket by a selector of its own.'''
    host, port = SITE[8:].split(":")
    connection = socket.create_connection((host, int(port)))
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        assert not selector.select(0.4)  # nobody begins but the client
    ssl.create_default_context().wrap_socket(connection, server_hostname=host).close()
async def main():
    beat = asyncio.ensure_future(beats())
    for _ in range(2):
        CALL
        await asyncio.sleep(0.02)
    beat.cancel()
async def beats():
    while True: await asyncio.sleep(0.01)
asyncio.run(main())
"""


def test_who_waits_by_a_selector_of_its_own_does_not_rest(site, tmp_path):
    for call, verdict, status in (("ask()", "blocked", 1), (APPLIED_TO_ASK, "does not apply", 0)):
        report = tried(BY_A_SELECTOR.replace("CALL", call), site, tmp_path, sys.executable)
        assert (judged(report)[0], judged(report)[2]) == (verdict, status), call
        silent = report["counts"]["silent"]
        assert (silent["waiting_s"] >= 0.5) == bool(status)
        if status:
            assert [place for place, _ in silent["at"]] == ["program.py:11"]
            assert "asyncio" in ids(report)


#: A driver that waits in C, for some milliseconds each time; and what computes in one place.
SHORT = """
import asyncio, json, select, time
text = json.dumps([{"number": str(number)} for number in range(8000)])
def wait(): select.select([], [], [], 0.012)
async def beats():
    while True: await asyncio.sleep(0.005)
async def main():
    beat = asyncio.ensure_future(beats())
    for _ in range(150):
        CALL
        await asyncio.sleep(0.001)
    beat.cancel()
LOOP
"""
SHORT_LOOPS = {
    "asyncio": "asyncio.run(main())",
    "uvloop": "import uvloop; uvloop.run(main())",
    "trio": """
import trio
async def tick():
    while True: await trio.sleep(0.005)
async def work():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        for _ in range(150):
            CALL
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
trio.run(work)
""",
}


@pytest.mark.parametrize("loop", SHORT_LOOPS)
def test_waits_of_some_milliseconds_that_follow_each_other_are_heard(loop, site, tmp_path, python):
    """Each in a turn of its own. What computes, as long, is no wait."""
    for call, is_ill in (("wait()", True), ("json.loads(text)", False)):
        text = SHORT.replace("LOOP", SHORT_LOOPS[loop]).replace("CALL", call)
        report = tried(text, site, tmp_path, python)
        silent = report["counts"]["silent"]
        assert (silent["waiting_s"] >= 0.3) == is_ill, call
        assert (judged(report)[0] == "blocked") == is_ill
        assert report["counts"]["heartbeats"] == ["trio" if loop == "trio" else "asyncio"]


def test_a_loop_that_idles_waits_for_nobody(site, tmp_path, python):
    """With a timer and a socket that serves, so that others could come."""
    for loop in ("asyncio.run", "uvloop.run"):
        text = """
import asyncio, uvloop, httpx
async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with httpx.AsyncClient() as client:
        for _ in range(3): (await client.get(SITE + "/0.3")).raise_for_status()
    server.close()
"""
        report = tried(text + f"{loop}(main())", site, tmp_path, python)
        assert judged(report) == ("free", "not repeated", 0), loop
        assert report["counts"]["silent"]["waiting_s"] == 0


APPLIED_TO_ASK = "await asyncio.to_thread(ask)"

REACTOR = """
import urllib.request
from twisted.internet import reactor, task, threads
beats = task.LoopingCall(lambda: None)
beats.start(0.02)
replies = []
def ask(): return urllib.request.urlopen(SITE + "/0.3").read()
def work():
    CALL
def done(reply):
    replies.append(reply)
    if len(replies) < 3: reactor.callLater(0.05, work)
    else: reactor.stop()
reactor.callLater(0.05, work)
reactor.run()
assert len(replies) == 3
"""


def test_twisteds_reactor_is_blocked_as_the_other_loops_are(site, tmp_path):
    """And with what is advised it is not."""
    python = environment("twisted-today").python
    applied = "deferred = threads.deferToThread(ask); deferred.addCallback(done)"
    for call, verdict in (("done(ask())", "blocked"), (applied, "does not apply")):
        report = tried(REACTOR.replace("CALL", call), site, tmp_path, python)
        assert report["verdicts"]["event loop"] == verdict, call
        assert report["counts"]["heartbeats"] == ["twisted"]
        silent = report["counts"]["silent"]
        assert (silent["waiting_s"] >= 0.5) == (verdict == "blocked")
        if verdict == "blocked":
            [advice] = [each for each in report["advice"] if each["id"] == "asyncio"]
            assert advice["add"].startswith("deferred = threads.deferToThread(")
            assert "the running twisted loop, called at program.py:9," in advice["what"]


def test_psycogreen_gives_the_wait_to_the_loop(site, tmp_path, python):
    """As it is advised."""
    patched = "    import psycogreen.gevent; psycogreen.gevent.patch_psycopg()\n"
    head, _, tail = DRIVERS["gevent"].replace("CALL", "connect()").partition("patch_all()\n")
    text = head + "patch_all()\nif True:\n" + patched + CONNECT + tail
    with listening(postgres, site[3]) as port:
        variables = {"PG": f"host=127.0.0.1 port={port}"}
        report = tried(text, site, tmp_path, python, variables=variables)
    assert judged(report) == ("free", "not repeated", 0)


def test_free_is_said_of_what_was_looked_at_alone(tmp_path, python):
    """Imports alone: the trial is of requests, and nobody has looked at psycopg2."""
    text = "from gevent import monkey; monkey.patch_all()\nimport gevent, requests\n"
    for more, verdict, status in (("", "free", 0), ("import psycopg2\n", "cannot tell", 2)):
        (tmp_path / "program.py").write_text(text + more)
        done = here.run(python, places.DOCTOR, "--json", "--", "program.py", cwd=tmp_path)
        report = json.loads(done.stdout)
        assert (report["verdicts"]["event loop"], report["exit_status"]) == (verdict, status)
        assert report["own_tls"] == (["psycopg2"] if more else [])


LOOKED_AT = """
import io, json, sys
sys.path.insert(0, DOCTOR)
import doctor
out = io.StringIO()
def look():
    report = doctor.inside(out)
    found = [report["verdicts"]["event loop"], report["exit_status"], report["unwatched"]]
    print(json.dumps([*found, " ".join(out.getvalue().split())]))
"""
RUNNING = {
    "asyncio": "import asyncio\nasync def main(): look()\nasyncio.run(main())\n",
    "asyncio, in another thread": """
import asyncio, threading
loop, begun = asyncio.new_event_loop(), threading.Event()
loop.call_soon(begun.set)
threading.Thread(target=loop.run_forever, daemon=True).start()
begun.wait(60)
look()
""",
    "uvloop": """
import uvloop
async def main(): look()
uvloop.new_event_loop().run_until_complete(main())
""",
    "trio": "import trio\nasync def main(): look()\ntrio.run(main)\n",
}


@pytest.mark.parametrize("driver", ["", "import psycopg2\n"])
@pytest.mark.parametrize("loop", [*RUNNING, "none"])
def test_from_inside_nobody_watches_a_loop_that_awaits(loop, driver, tmp_path, python):
    """Neither free nor "does not apply" is said of it, whatever was imported beside."""
    text = "import requests\n" + driver + LOOKED_AT + RUNNING.get(loop, "look()\n")
    (tmp_path / "program.py").write_text(text.replace("DOCTOR", repr(str(places.DOCTOR.parent))))
    done = here.run(python, "program.py", cwd=tmp_path)
    verdict, status, unwatched, said = json.loads(done.stdout)
    if loop == "none":
        assert (verdict, status, unwatched) == ("does not apply", 0, [])
    else:
        name = "trio" if loop == "trio" else "asyncio"
        assert (verdict, status, unwatched) == ("cannot tell", 2, [name])
        assert f"{name}: every client that does not await blocks its loop" in said
        assert "doctor.py run -- ..." in said and "Nothing to change" not in said
    assert ("psycopg2: imported, and brings TLS of its own" in said) == bool(driver)


AT_THE_START = """
import json, sys
sys.path.insert(0, DOCTOR)
def post_worker_init(worker):
    import doctor, io
    report = doctor.inside(io.StringIO())
    words = [report["verdicts"]["event loop"], report["exit_status"], report["unwatched"]]
    open("words", "w").write(json.dumps(words))
    worker.alive = False
    import os; os.kill(os.getppid(), 15)
"""


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ("uvicorn.workers.UvicornWorker", ["cannot tell", 2, ["asyncio"]]),
        ("sync", ["does not apply", 0, []]),
    ],
)
def test_from_inside_a_loop_that_begins_later_has_no_all_clear(worker, words, tmp_path, python):
    """Gunicorn calls post_worker_init before its worker's loop runs."""
    configuration = AT_THE_START.replace("DOCTOR", repr(str(places.DOCTOR.parent)))
    (tmp_path / "gunicorn.conf.py").write_text(configuration)
    (tmp_path / "app.py").write_text("import requests\ndef app(*_): pass\n")
    command = ["-m", "gunicorn", "-k", worker, "-b", f"127.0.0.1:{free_port()}", "app:app"]
    done = here.run(python, *command, cwd=tmp_path, timeout=120)
    assert json.loads((tmp_path / "words").read_text()) == words, done.stderr


def test_from_inside_nobody_watches_twisteds_reactor(tmp_path):
    text = (
        LOOKED_AT
        + """
from twisted.internet import reactor
reactor.callLater(0, look)
reactor.callLater(0.1, reactor.stop)
reactor.run()
"""
    )
    (tmp_path / "program.py").write_text(text.replace("DOCTOR", repr(str(places.DOCTOR.parent))))
    done = here.run(environment("twisted-today").python, "program.py", cwd=tmp_path)
    assert json.loads(done.stdout)[:3] == ["cannot tell", 2, ["twisted"]]


@pytest.mark.parametrize(
    ("imports", "verdict", "status"),
    [
        ("import asyncio, httpx", "does not apply", 0),
        ("import asyncio, httpx, psycopg2", "cannot tell", 2),
        ("import trio, httpx, psycopg2", "cannot tell", 2),
        ("import requests, psycopg2", "does not apply", 0),  # in threads, nothing waits for it
    ],
)
def test_imports_alone_give_no_all_clear_to_a_loop_beside_tls_that_nobody_sees(
    imports, verdict, status, tmp_path, python
):
    (tmp_path / "program.py").write_text(imports)
    done = here.run(python, places.DOCTOR, "--json", "--", "program.py", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert (report["verdicts"]["event loop"], report["exit_status"]) == (verdict, status)


COMPUTES = """
import asyncio, threading, httpx
done = []
def compute():
    while not done: sum(number * number for number in range(1000))
async def main():
    for _ in range(3): threading.Thread(target=compute, daemon=True).start()
    async with httpx.AsyncClient() as client:
        for _ in range(3): await asyncio.gather(*[client.get(SITE + "/0.1") for _ in range(6)])
    done.append(1)
asyncio.run(main())
"""


def test_who_waits_for_threads_that_compute_is_not_silent(site, tmp_path, python):
    report = tried(COMPUTES, site, tmp_path, python)
    assert judged(report) == ("free", "not repeated", 0)


FORKS = """
import asyncio, os, warnings
warnings.simplefilter("error")
async def main():
    await asyncio.sleep(0.1)
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
    await asyncio.sleep(0.1)
asyncio.run(main())
"""


def test_a_program_that_forks_has_no_thread_more_than_without_the_doctor(site, tmp_path):
    """Python warns of a fork in a process with threads."""
    report = tried(FORKS, site, tmp_path, sys.executable)
    assert report["ended"]["raised"] is None and report["counts"]["heartbeats"] == ["asyncio"]


# ------------------------------------------------------------------------------- falsely accused


SMALL = """
import asyncio, ssl
async def one():
    context = ssl.create_default_context(cafile=os.environ["AUTHORITY"])
    host, port = SITE[8:].split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    writer.write(b"GET /0.1 HTTP/1.1\\r\\nHost: here\\r\\nConnection: close\\r\\n\\r\\n")
    await reader.read()
    writer.close()
async def main(): await asyncio.gather(*[one() for _ in range(4)])
asyncio.run(main())
"""


def test_loads_of_a_small_authority_hold_up_nobody(site, tmp_path):
    variables = {"AUTHORITY": str(site[4])}
    report = tried(SMALL, site, tmp_path, sys.executable, variables=variables)
    assert report["counts"]["on_loop"]["waiting"] >= 3 <= report["counts"]["on_loop"]["spare"]
    assert report["verdicts"]["loads on the loop"] == "free"
    assert (judged(report), report["advice"]) == (("free", "not repeated", 0), [])
    large = SMALL.replace('os.environ["AUTHORITY"]', "BUNDLE")
    report = tried(large, site, tmp_path, sys.executable)
    assert report["verdicts"]["loads on the loop"] == "held up" and report["exit_status"] == 1


@pytest.mark.parametrize("end", ["import a_package_that_is_missing", "raise SystemExit(3)"])
def test_what_ends_before_it_patches_cannot_be_told(end, site, tmp_path, python):
    text = f"""
import gevent, requests
{end}
from gevent import monkey; monkey.patch_all()
requests.get(SITE)
"""
    report = tried(text, site, tmp_path, python)
    assert judged(report) == ("cannot tell", "nothing seen", 2) and report["advice"] == []
    text = " ".join(tls_doctor.report.text_of(report, False).split())
    if "import" in end:
        first = "It ended before its first connection: ModuleNotFoundError"
        assert text.index(first) < text.index("1. Does") and "program.py:5. Fix" in text


# ------------------------------------------------------------------------------ the wrong way


INJECTED = "import truststore; truststore.inject_into_ssl()\n"
PATCHED = "from gevent import monkey; monkey.patch_all()\n"
ASK = """
import gevent, requests
def ask(): return requests.get(SITE + "/0.1").ok
tasks = [gevent.spawn(ask) for _ in range(4)]
gevent.joinall(tasks)
assert not any(each.successful() for each in tasks) or all(each.value for each in tasks)
"""


@pytest.mark.parametrize("first", [INJECTED + PATCHED, PATCHED + INJECTED])
def test_truststore_and_gevent_do_not_go_together_in_either_order(first, site, tmp_path, python):
    report = tried(first + ASK, site, tmp_path, python)
    assert report["counts"]["handshakes"] == 0 and report["counts"]["failures"]
    assert (judged(report)[1:], ids(report)) == (("nothing seen", 2), ["not-together"])
    assert report["advice"][0]["remove"].startswith("truststore.inject_into_ssl()")
    report = tried(PATCHED + ASK, site, tmp_path, python)  # as advised
    assert report["counts"]["handshakes"] == 4 and judged(report)[0] != "blocked"


@pytest.mark.parametrize(
    ("text", "is_told"),
    [("import a_package_that_is_missing", True), ("raise ImportError('no gate')", False)],
)
def test_who_runs_it_with_a_python_without_its_packages_is_told_to_name_its_own(
    text, is_told, site, tmp_path
):
    """As whoever starts it by uvx, in an environment where nothing else is."""
    report = tried(text, site, tmp_path, sys.executable)
    said = " ".join(tls_doctor.report.text_of(report, False).split())
    assert "It ended before its first connection: " in said and report["exit_status"] == 2
    assert ("run -- path/to/venv/bin/python" in said) == is_told


def test_none_of_whose_connections_work_has_no_fault_of_loads(site, tmp_path):
    """It does not trust the server."""
    text = """
import requests
for _ in range(4):
    try: requests.get(SITE, verify=True)
    except requests.exceptions.SSLError: pass
"""
    for bundle in ("", certifi.where()):
        variables = {"REQUESTS_CA_BUNDLE": bundle, "SSL_CERT_FILE": ""}
        report = tried(text, site, tmp_path, sys.executable, variables=variables)
        assert report["counts"]["loads"] == 4 and judged(report)[1:] == ("nothing seen", 2)
        said = " ".join(tls_doctor.report.text_of(report, False).split())
        assert "certificate verify failed" in said
        assert ids(report) == ["untrusted"] and "cacert.pem). Trust the one" in said


REACHES_NOBODY = """
import asyncio, ssl
async def one():
    try: await asyncio.open_connection("HOST", 9, ssl=ssl.create_default_context())
    except OSError: pass
async def main(): await asyncio.gather(*[one() for _ in range(4)])
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("host", "why"), [("127.0.0.1", "ConnectionRefusedError"), ("nobody.invalid", "gaierror")]
)
def test_who_reaches_nobody_has_no_fault_of_loads(host, why, site, tmp_path):
    report = tried(REACHES_NOBODY.replace("HOST", host), site, tmp_path, sys.executable)
    assert report["counts"]["loads"] == 4 and judged(report)[1:] == ("nothing seen", 2)
    assert report["advice"] == [] and why in tls_doctor.report.text_of(report, False)


def test_some_that_do_not_come_through_are_told(site, tmp_path):
    text = """
import requests
for verify in (BUNDLE, True):
    try: requests.get(SITE, verify=verify)
    except requests.exceptions.SSLError: pass
"""
    variables = {"REQUESTS_CA_BUNDLE": "", "SSL_CERT_FILE": ""}
    report = tried(text, site, tmp_path, sys.executable, variables=variables)
    assert (report["counts"]["handshakes"], judged(report)[1:]) == (1, ("not repeated", 0))
    lines = " ".join(tls_doctor.report.text_of(report, False).split())
    assert "1 of 2 connections did not come through: SSLCertVerificationError" in lines


FAILS_IN_A_GROUP = """
import asyncio, ssl
async def one(): ssl.create_default_context(cafile="missing.pem")
async def main():
    async with asyncio.TaskGroup() as group: group.create_task(one())
asyncio.run(main())
"""


def test_an_error_is_named_with_the_programs_own_line(site, tmp_path):
    """Not the group's that waited for it, and not the doctor's, through which a load goes."""
    report = tried(FAILS_IN_A_GROUP, site, tmp_path, sys.executable)
    raised = report["ended"]["raised"]
    assert raised.startswith("FileNotFoundError") and raised.endswith("at program.py:5")


OPENERS = """
import ssl, urllib.request
def opener():
    context = ssl.create_default_context(
        cafile=BUNDLE,
    )
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
for _ in range(8): opener().open(SITE).read()
"""


def test_the_programs_own_call_is_made_once_with_its_arguments(site, tmp_path):
    """And it can be applied as it stands: the server is trusted by this bundle alone."""
    alone = {"SSL_CERT_FILE": ""}
    report = tried(OPENERS, site, tmp_path, sys.executable, variables=alone)
    first = report["advice"][0]
    call = "context = ssl.create_default_context( cafile=BUNDLE, )"
    assert first["add"].startswith(call) and "from program.py:6" in first["what"]
    text = OPENERS.replace("    context = ssl.create_default_context(\n", "    taken = (\n")
    text = text.replace("cafile=BUNDLE,", "None")
    text = text.replace("def opener", first["add"] + "\ndef opener")
    report = tried(text, site, tmp_path, sys.executable, variables=alone)
    assert (report["counts"]["loads"], report["counts"]["handshakes"]) == (1, 8)
    assert report["exit_status"] == 0


@pytest.mark.parametrize(
    ("text", "names", "call"),
    [
        ("x = httpx.Client(verify=context, headers={'a': ')'})", "Client", "keep"),
        ("with httpx.AsyncClient() as client: pass", "Client AsyncClient", "httpx.AsyncClient()"),
        ("requests.get(url)", "Session", None),
        ("x = Client(  # what it is\n    1)", "Client", None),
    ],
)
def test_a_call_is_found_as_it_stands(text, names, call, tmp_path):
    (tmp_path / "one.py").write_text("\n" + text + "\n")
    call = "httpx.Client(verify=context, headers={'a': ')'})" if call == "keep" else call
    assert tls_doctor.advice.call_at(f"{tmp_path / 'one.py'}:2", names.split()) == call


def test_plain_http_has_one_text(site, tmp_path, python):
    text = """
import httpx, ssl
for _ in range(5):
    httpx.Client(verify=ssl.create_default_context()).close()
"""
    report = tried(text, site, tmp_path, python)
    lines = " ".join(" ".join(tls_doctor.report.count_lines(report)).split())
    assert judged(report)[1:] == ("repeated", 1) and "what was loaded served none" in lines
    assert "nothing to tell" not in lines and report["advice"][0]["add"].startswith("context = ")


CLOSING = """
import requests
session = requests.Session()
for _ in range(8): assert session.get(SITE, headers=HEADERS).ok
"""


def test_a_header_that_closes_is_named_and_without_it_there_is_one_of_each(site, tmp_path):
    text = CLOSING.replace("HEADERS", '{"Connection": "close"}')
    report = tried(text, site, tmp_path, sys.executable, "--again")
    first = report["advice"][0]
    assert first["id"] == "connection-close" and "at program.py:6" in first["what"]
    assert "keep-one" not in ids(report) and first["saves"]
    assert (report["tried"]["connection-close"]["then"]["loads"], report["exit_status"]) == (1, 1)
    assert report["counts"]["handshake_ms"] > 0 and report["counts"]["handshakes"] == 8
    again = report["again"]
    assert (again["changes"], again["loads"], again["kept"]) == (["connection-close"], [8, 1], True)
    report = tried(CLOSING.replace("HEADERS", "{}"), site, tmp_path, sys.executable)
    counts = report["counts"]
    assert (counts["loads"], counts["handshakes"], report["exit_status"]) == (1, 1, 0)


def test_a_header_of_httpx_and_a_server_that_closes(site, tmp_path, python):
    text = """
import httpx
client = httpx.Client(headers={"Connection": "close"})
for _ in range(5): client.get(SITE).raise_for_status()
"""
    report = tried(text, site, tmp_path, python)
    assert (ids(report), report["counts"]["handshakes"]) == (["connection-close"], 5)
    text = text.replace('headers={"Connection": "close"}', "").replace(
        "get(SITE", 'get(SITE + "/close"'
    )
    report = tried(text, site, tmp_path, python)
    assert (ids(report), report["counts"]["handshakes"]) == (["server-closes"], 5)


#: How a client is made, and what of it keeps no connection; each with one context, loaded once.
ANEW = {
    "a session of aiohttp for each request": """
import asyncio, ssl, aiohttp
context = ssl.create_default_context()
def make(): return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
async def get(session):
    async with session.get(SITE) as reply: await reply.read()
async def ill():
    for _ in range(12):
        async with make() as session: await get(session)
async def well():
    async with make() as session:
        for _ in range(12): await get(session)
asyncio.run(WAY())
""",
    "a connector of aiohttp's that closes": """
import asyncio, ssl, aiohttp
context = ssl.create_default_context()
async def main():
    connector = aiohttp.TCPConnector(ssl=context, force_close="WAY" == "ill")
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(12):
            async with session.get(SITE) as reply: await reply.read()
asyncio.run(main())
""",
    "limits of httpx that keep nothing": """
import httpx, ssl
limits = httpx.Limits(max_keepalive_connections=0) if "WAY" == "ill" else httpx.Limits()
with httpx.Client(verify=ssl.create_default_context(), limits=limits) as client:
    for _ in range(12): client.get(SITE).raise_for_status()
""",
}


@pytest.mark.parametrize("name", ANEW)
def test_connections_that_are_made_anew_though_they_load_once_are_told(name, site, tmp_path):
    python = environment("libraries-today").python
    for way, number in (("ill", 12), ("well", 1)):
        report = tried(ANEW[name].replace("WAY", way), site, tmp_path, python)
        assert report["counts"]["handshakes"] == number, way
        assert judged(report)[1:] == ("not repeated", 0)
        assert ids(report) == ["keep-connections"] * (way == "ill")
        for advice in report["advice"]:
            client = "httpx" if "httpx" in name else "aiohttp"
            assert advice["what"].startswith(f"{client} made 12 connections to 127.0.0.1")


BOTO = """
import os, threading
os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
os.environ.update(AWS_EC2_METADATA_DISABLED="true")
import boto3
def make():
    options = {"region_name": "eu-west-1", "endpoint_url": SITE, "verify": BUNDLE}
    return boto3.session.Session().client("dynamodb", **options)
one, kept, gate = make(), [], threading.Barrier(12)
def work():
    client = CLIENT
    gate.wait(60)
    try: client.list_tables()
    except Exception: pass  # the answer is not one of theirs
    kept.append(client)
threads = [threading.Thread(target=work) for _ in range(12)]
for each in threads: each.start()
for each in threads: each.join()
"""


def test_what_is_promised_was_tried_with_as_many_at_once(site, tmp_path, python):
    report = tried(BOTO.replace("CLIENT", "make()"), site, tmp_path, python)
    [row] = [row for row in report["counts"]["clients"] if row["loads"]]
    assert row["client"] == "botocore" and row["loads"] == row["connections"] >= 12
    told = report["tried"]["botocore"]
    assert told["at_once"] >= 10 and told["then"]["loads"] >= 10
    [first] = [each for each in report["advice"] if each["id"] == "keep-one"]
    assert not first["saves"] and "saves no load here" in first["what"]
    [weight] = [each for each in report["advice"] if each["id"] == "share-contexts"]
    assert weight["add"].startswith("client = boto3.client(...)")  # which takes no context
    report = tried(BOTO.replace("CLIENT", "one"), site, tmp_path, python)
    assert report["exit_status"] == 0 and "keep-one" not in ids(report)


KUBERNETES = """
from kubernetes import client
def namespaces():
    settings = client.Configuration()
    settings.host, settings.ssl_ca_cert = SITE, BUNDLE
    try: client.CoreV1Api(client.ApiClient(settings)).list_namespace()
    except Exception: pass  # the answer is not one of theirs
for _ in range(6): namespaces()
"""


def test_the_library_is_the_one_whose_code_makes_the_client(site, tmp_path, python):
    report = tried(KUBERNETES, site, tmp_path, python)
    [row] = report["counts"]["clients"]
    assert (row["client"], row["through"], row["loads"]) == ("urllib3", "kubernetes", 6)
    assert "Make one client of kubernetes" in report["advice"][0]["what"]
    call = "api_client = client.ApiClient(settings)  # once"  # `client` is a module there
    assert report["advice"][0]["add"].startswith(call)


def test_a_decorator_is_no_library_between(site, tmp_path, python):
    text = """
import requests, tenacity
@tenacity.retry(stop=tenacity.stop_after_attempt(2))
def get(): assert requests.get(SITE).ok
for _ in range(5): get()
"""
    report = tried(text, site, tmp_path, python)
    [row] = report["counts"]["clients"]
    assert (row["client"], row["through"]) == ("requests", "requests")
    assert "called by" not in report["advice"][0]["what"]


REDIS = """
import redis
def make():
    options = {"port": int(os.environ["PORT"]), "ssl": True, "ssl_ca_certs": BUNDLE}
    return redis.Redis("127.0.0.1", **options)
one = make()
for _ in range(6): MAKE.get("key")
"""
#: A kept client whose twelve connections are there at once: redis loads twice for each.
REDIS_AT_ONCE = (
    REDIS.partition("for _")[0]
    + """
clients = [one.client() for _ in range(12)]
for client in clients:
    for _ in range(4): client.get("key")
"""
)


def test_redis_takes_no_context_and_its_client_is_kept(site, tmp_path, python):
    with listening(redis, site[3]) as port:
        for make, loads, status in (("make()", "repeated", 1), ("one", "not repeated", 0)):
            text, variables = REDIS.replace("MAKE", make), {"PORT": str(port)}
            report = tried(text, site, tmp_path, python, variables=variables)
            assert judged(report)[1:] == (loads, status)
            if status:
                first = report["advice"][0]
                assert first["add"].startswith('client = redis.Redis("127.0.0.1", **options)  #')
                assert "it takes no context" in first["what"]
        report = tried(REDIS_AT_ONCE, site, tmp_path, python, variables=variables)
        assert (report["counts"]["connections"], report["counts"]["loads"] >= 12) == (12, True)
        assert judged(report)[1:] == ("not repeated", 0) and not report["advice"]
        assert report["verdicts"]["contexts"] == "few"


KEYWORDS = """
import importlib, inspect, sys
path, keyword = sys.argv[1:]
for depth in range(1, path.count(".") + 1):  # the longest that is a module
    try: value = importlib.import_module(path.rsplit(".", depth)[0])
    except ImportError: continue
    for name in path.rsplit(".", depth)[1:]: value = getattr(value, name)
    break
names = set(inspect.signature(value).parameters)
print(keyword in names, bool(names & {"ssl_context", "context", "http_client", "verify", "client"}))
"""


@pytest.mark.parametrize(
    "library", [client.name for client in tls_doctor.clients.CLIENTS if client.constructor]
)
def test_what_is_said_to_take_a_context_does(library):
    client = tls_doctor.clients.client_named(library)
    maker, keyword = client.constructor, client.keyword
    name, kept = library.replace("_", "-"), ("reports-today", "libraries-today")
    stack = next((stack for stack in kept if name in stacks.get(stack).packages), "")
    stack = kept[0] if library in sys.stdlib_module_names else stack
    assert stack, f"name {name} under [packages] of reports-today in env/stacks.toml: this asks it"
    done = here.run(environment(stack).python, "-c", KEYWORDS, maker, keyword or "none")
    assert done.stdout.split() == [str(keyword is not None), done.stdout.split()[1]], done.stderr
    if keyword is None and library != "boto3":  # whose names are in the service's own signature
        assert done.stdout.split() == ["False", "False"]


#: As elastic_transport does it: it loads, and urllib3 loads the same again.
STANDS_IN = {
    "elastic_transport": """
import ssl, urllib3
class Node:
    def __init__(self, host, port, ca_certs):
        context = ssl.create_default_context(cafile=ca_certs)
        more = {"ssl_context": context, "cert_reqs": "CERT_REQUIRED", "ca_certs": ca_certs}
        self.pool = urllib3.HTTPSConnectionPool(host, port, **more)
""",
    "elasticsearch": """
import elastic_transport
class Elasticsearch:
    def __init__(self, url, ca_certs):
        host, port = url[8:].split(":")
        self.node = elastic_transport.Node(host, int(port), ca_certs)
    def search(self): assert self.node.pool.request("GET", "/").status == 200
""",
}
SEARCHES = """
from elasticsearch import Elasticsearch
def search():
    client = Elasticsearch(SITE, ca_certs=BUNDLE)
    client.search()
for _ in range(6): search()
"""


def test_a_library_that_loads_twice_for_each_client_has_one_advice(site, tmp_path, python):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name, text in STANDS_IN.items():
        (folder / f"{name}.py").write_text(text)
    report = tried(SEARCHES, site, tmp_path, python, variables={"PYTHONPATH": str(folder)})
    assert judged(report)[1:] == ("repeated", 1) and report["counts"]["loads"] == 12
    [first] = [each for each in report["advice"] if each["id"] == "keep-one"]
    call = "client = Elasticsearch(SITE, ca_certs=BUNDLE)"
    assert first["add"] == call + "  # once, before the work begins"
    assert "loaded 12 times for 6 connections, called by elasticsearch" in first["what"]
    assert "of 6 requests, 12 loads" in first["saves"] and "with it 2 loads" in first["saves"]
    text = SEARCHES.replace("    " + call + "\n", "").replace("def search", call + "\ndef search")
    report = tried(text, site, tmp_path, python, variables={"PYTHONPATH": str(folder)})
    assert judged(report)[1:] == ("not repeated", 0) and report["advice"] == []


IN_A_BUCKET = """
import asyncio, contextlib
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
KEYS = {"config": AioConfig(retries={"max_attempts": 0})}
KEYS |= {"region_name": "eu-west-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
async def one(client):
    with contextlib.suppress(Exception):  # the answer is not one of theirs
        await client.list_buckets()
async def main():
    session = get_session()
    for _ in range(6):
        async with session.create_client("s3", endpoint_url=SITE, verify=BUNDLE, **KEYS) as client:
            await one(client)
asyncio.run(main())
"""


@pytest.mark.parametrize("stack", ["aiobotocore-today", "aiobotocore-3.7.0-today"])
def test_the_call_by_which_a_session_makes_its_client_is_named(stack, site, tmp_path):
    """Also where it loads in a thread, as of 3.8."""
    python = environment(stack).python
    report = tried(IN_A_BUCKET, site, tmp_path, python)
    assert judged(report)[1:] == ("repeated", 1)
    [first] = [each for each in report["advice"] if each["id"] == "keep-one"]
    call = 'session.create_client("s3", endpoint_url=SITE, verify=BUNDLE, **KEYS)'
    assert first["add"] == f"async with {call} as client: ...  # once, around all the work"
    assert "from program.py:11." in first["what"]
    head, _, _ = IN_A_BUCKET.partition("    for _")
    kept = f"    async with {call} as client:\n        for _ in range(6): await one(client)\n"
    report = tried(head + kept + "asyncio.run(main())\n", site, tmp_path, python)
    assert judged(report)[1:] == ("not repeated", 0) and report["advice"] == []


AGENTS = """
from twisted.internet import defer, task
from twisted.web.client import Agent, HTTPConnectionPool, readBody
URL = SITE.encode() + b"/"
@defer.inlineCallbacks
def main(reactor):
    POOL
    for _ in range(6):
        reply = yield Agent(reactorMORE).request(b"GET", URL)
        yield readBody(reply)
task.react(main)
"""


def test_agents_of_twisted_that_share_a_pool_connect_once(site, tmp_path):
    python = environment("twisted-today").python
    text = AGENTS.replace("POOL", "pass").replace("MORE", "")
    report = tried(text, site, tmp_path, python)
    assert report["counts"]["connections"] == report["counts"]["loads"] == 6
    [first] = [each for each in report["advice"] if each["id"] == "keep-one"]
    assert "A pool that is kept, and given to each Agent" in first["what"]
    text = AGENTS.replace("POOL", first["add"]).replace("MORE", ", pool=pool")
    report = tried(text, site, tmp_path, python)
    assert report["counts"]["connections"] == report["counts"]["loads"] == 1
    assert judged(report)[1:] == ("not repeated", 0) and report["advice"] == []


IN_AN_EXECUTOR = {
    "map": "list(pool.map(requests.get, [SITE] * 6))",
    "submit": "[each.result() for each in [pool.submit(requests.get, SITE) for _ in range(6)]]",
    "run_in_executor": """
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    for _ in range(6): await loop.run_in_executor(pool, requests.get, SITE)
asyncio.run(main())""",
    "to_thread": """
import asyncio
async def main():
    for _ in range(6): await asyncio.to_thread(requests.get, SITE)
asyncio.run(main())""",
}


@pytest.mark.parametrize("how", IN_AN_EXECUTOR)
def test_the_line_is_named_that_gave_it_to_a_thread(how, site, tmp_path):
    text = "import requests\nfrom concurrent.futures import ThreadPoolExecutor\n"
    text += "pool = ThreadPoolExecutor(2)\n" + IN_AN_EXECUTOR[how]
    report = tried(text, site, tmp_path, sys.executable)
    line = 1 + (START + text).splitlines().index(
        next(each for each in (START + text).splitlines() if "requests.get" in each)
    )
    assert report["counts"]["clients"][0]["at"] == [[f"program.py:{line}", 6]]


def websocket(connection, context):
    """Shake hands as a WebSocket does, and close."""
    with context.wrap_socket(connection, server_side=True) as secure:
        file, key = secure.makefile("rb"), b""
        while line := file.readline().strip():
            name, _, value = line.partition(b": ")
            key = value if name.lower() == b"sec-websocket-key" else key
        accepted = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        secure.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n")
        secure.sendall(b"Connection: Upgrade\r\nSec-WebSocket-Accept: ")
        secure.sendall(base64.b64encode(accepted) + b"\r\n\r\n")
        secure.sendall(b"\x88\x02\x03\xe8")
        file.read(8)  # the same from the client, masked


SAYS = """
import asyncio, ssl, websockets
URL = "wss://127.0.0.1:" + os.environ["PORT"]
ONCE
async def say():
    async with websockets.connect(URL, open_timeout=30) as socket:
        await socket.wait_closed()
async def main():
    for _ in range(6): await say()
asyncio.run(main())
"""


def test_each_connection_of_websockets_is_given_one_context(site, tmp_path, python):
    """And who awaits them one after the other keeps nobody waiting."""
    call = "websockets.connect(URL, open_timeout=30"
    with listening(websocket, site[3]) as port:
        variables = {"PORT": str(port)}
        text = SAYS.replace("ONCE", "")
        report = tried(text, site, tmp_path, python, variables=variables)
        assert judged(report)[1:] == ("repeated", 1)
        assert report["verdicts"]["loads on the loop"] == "free"
        assert report["counts"]["on_loop"]["waiting"] == 0
        [first] = [each for each in report["advice"] if each["id"] == "keep-one"]
        assert "takes a context of yours as ssl=" in first["what"]
        once, _, then = first["add"].partition("  # once; then ")
        assert then == call + ", ssl=context)"
        text = SAYS.replace("ONCE", once).replace(call + ")", then)
        report = tried(text, site, tmp_path, python, variables=variables)
        assert judged(report)[1:] == ("not repeated", 0)
        assert (report["counts"]["loads"], report["counts"]["connections"]) == (1, 6)


# --------------------------------------------------------------------- HTTP/2, and what is dropped


def test_several_connections_to_a_host_that_speaks_http2_are_named():
    who = {"client": "niquests", "through": None, "at": "program.py:3"}

    def counted(alpn, number):
        events = [{"is": "process"}]
        for h in range(number):
            begun = {"h": h, "c": 1, "who": who, "loop": False, "since": None, "t": h, "thread": 1}
            events.append({"is": "begin", "by": "ssl", "http": True, "open": 1} | begun)
            ended = {"h": h, "ok": True, "t": h + 0.5, "ms": 1, "alpn": alpn, "host": "localhost:1"}
            events.append({"is": "end"} | ended)
        common = {"pid": 1, "cpu": 0, "compiled": 0}
        return tls_doctor.tally.count_events([each | common for each in events])

    row = {"client": "niquests", "host": "localhost:1", "connections": 5, "awaits": False}
    assert counted("h2", 5)["http2"] == [row]
    assert counted("http/1.1", 5)["http2"] == counted("h2", 2)["http2"] == []


COUNTING_APP = """
clients = set()
async def app(scope, receive, send):
    if scope["type"] == "http":
        clients.add((tuple(scope["client"]), scope["http_version"]))
        with open("clients", "w") as file: file.write(repr(sorted(clients)))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
"""
OVER_HTTP2 = {
    "a session for each": """
for n in range(5):
    session = niquests.Session()
    kept.append(session)
    replies.append(session.get(URL, verify=CA))
""",
    "as advised": """
session = niquests.Session(multiplexed=True)
for n in range(5): replies.append(session.get(URL, verify=CA))
session.gather()
""",
}


@pytest.mark.slow
def test_niquests_and_a_server_of_http2_agree_on_the_connections(site, tmp_path, python):
    """By Hypercorn, whose HTTP/2 is h2's: it counts the connections itself."""
    (tmp_path / "app.py").write_text(COUNTING_APP)
    for name in ("CERTIFICATE", "KEY"):
        (tmp_path / name).write_text(getattr(tls_doctor.basis, name))
    port, client = free_port(), environment("niquests-today").python
    command = [python.parent / "hypercorn", "-b", f"127.0.0.1:{port}", "app:app"]
    command += ["--certfile", "CERTIFICATE", "--keyfile", "KEY"]
    with open(tmp_path / "words", "w") as words:
        server = subprocess.Popen(
            command, cwd=tmp_path, stdout=words, stderr=words, start_new_session=True
        )
    try:
        assert here.eventually(lambda: is_up(port), 120), (tmp_path / "words").read_text()
        for (way, text), number in zip(OVER_HTTP2.items(), (5, 1), strict=True):
            start = f"import niquests\nURL, CA = 'https://127.0.0.1:{port}/', 'CERTIFICATE'\n"
            start += "kept, replies = [], []\n"
            end = "assert {each.http_version for each in replies} == {20}\n"
            report = tried(start + text + end, site, tmp_path, client)
            assert report["ended"]["raised"] is None, way
            assert report["counts"]["handshakes"] == number, way
            assert ids(report) == (["one-connection"] if number > 1 else [])
            for each in report["advice"]:
                assert each["add"].startswith("session = niquests.Session(multiplexed=True)")
                assert f"5 connections to 127.0.0.1:{port}, which speaks HTTP/2" in each["what"]
        connections = ast.literal_eval((tmp_path / "clients").read_text())
        assert len(connections) == 5 + 1 and {version for _, version in connections} == {"2"}
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # with its worker, which does not end by itself
        server.wait()
    assert here.eventually(lambda: not running_in(server.pid), 30)


def running_in(session: int) -> list[int]:
    running = tls_doctor.processes.running_processes()
    return [pid for pid in running if tls_doctor.processes.session_of(pid) == session]


FROM_INSIDE = """
import io
sys.path.insert(0, DOCTOR)
import doctor
report = doctor.inside(io.StringIO())
print(json.dumps([report["exit_status"], [each["id"] for each in report["advice"]]]))
"""


@pytest.mark.parametrize(
    ("first", "status", "advice"),
    [
        (PATCHED, 0, []),
        (INJECTED + PATCHED, 2, ["not-together"]),
    ],
)
def test_from_inside_too_truststore_and_gevent_do_not_go_together(
    first, status, advice, tmp_path, python
):
    text = first + "import json, sys, gevent, requests\n" + FROM_INSIDE
    (tmp_path / "program.py").write_text(text.replace("DOCTOR", repr(str(places.DOCTOR.parent))))
    done = here.run(python, "program.py", cwd=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == [status, advice], done.stderr


DROPPED = """
import gc, http.client, ssl
gc.set_threshold(100000)  # some Pythons collect more often, and left nothing to the doctor
class Client:
    def __init__(self):
        self.itself, host = self, SITE[8:]
        self.connection = http.client.HTTPSConnection(host, context=ssl.create_default_context())
        self.connection.request("GET", "/")
        self.connection.getresponse().read()
        CLOSE
for _ in range(14): Client()
"""


@pytest.mark.parametrize("close", ["", "self.connection.close()"])
def test_what_only_its_own_collection_freed_is_told(close, site, tmp_path):
    report = tried(DROPPED.replace("CLOSE", close), site, tmp_path, sys.executable)
    counts = report["counts"]
    assert counts["collected"] >= 8
    assert (counts["dropped"] >= 8) == (close == "") and bool(counts["dropped"]) == (close == "")
    assert "alone freed" in tls_doctor.report.text_of(report, False)
