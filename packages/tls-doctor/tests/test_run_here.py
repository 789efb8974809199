"""The single file runs a program beside a server of these tests, with this Python alone."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trustme

BUILDER = Path(__file__).resolve().parents[1] / "single_file.py"

PROGRAM = """
import os, ssl, urllib.request

def get(context):
    with urllib.request.urlopen(os.environ["SITE"], context=context) as reply:
        assert reply.read() == b"page"

def new_context():
    return ssl.create_default_context(cafile=os.environ["BUNDLE"])
"""
#: Six connections: a context for each, or one for all.
ILL = PROGRAM + "for _ in range(6): get(new_context())\n"
HEALTHY = PROGRAM + "context = new_context()\nfor _ in range(6): get(context)\n"


class Page(http.server.BaseHTTPRequestHandler):
    """Answers each request with one page, and counts connections."""

    connections = 0

    def setup(self):
        type(self).connections += 1
        super().setup()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_):
        pass


#: Threads that make their context at the same moment: the one that all use from then on, or one
#: for each of them. (Of so many certificates that one load is still under way when others begin.)
AT_THE_SAME_MOMENT = """
import functools, os, ssl, sys, threading, urllib.request
with open("many.pem", "w") as file:
    file.write(4 * open(os.environ["BUNDLE"]).read())
together, local = threading.Barrier(6), threading.local()

def new_context():
    together.wait()
    return ssl.create_default_context(cafile="many.pem")

shared = functools.lru_cache(new_context)

def own():
    local.context = vars(local).get("context") or new_context()
    return local.context

def work():
    for _ in range(3):
        context = own() if sys.argv[1] == "own" else shared()
        urllib.request.urlopen(os.environ["SITE"], context=context).read()

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
#: A library that is installed and that the doctor does not know, with functions that connect for
#: each call: by a context that may be given, by an object of a class, and by neither.
POSTLING = """
import os, ssl, urllib.request
class Post:
    def __init__(self, context=None):
        self.context = context or ssl.create_default_context(cafile=os.environ["BUNDLE"])
    def send(self): return urllib.request.urlopen(os.environ["SITE"], context=self.context).read()
def send(message, cafile=None, tls_context=None): return Post(tls_context).send()
def post(message): return Post().send()
class Api:
    def __getattr__(self, name):
        def ask(**more): return self.fetch()
        return ask
    def fetch(self): return urllib.request.build_opener().open(os.environ["SITE"]).read()
def dial(message, **more):
    context = ssl.create_default_context(cafile=os.environ["BUNDLE"])
    return urllib.request.urlopen(os.environ["SITE"], context=context).read()
"""
CALLS = "import os, ssl, postling\nBUNDLE = os.environ['BUNDLE']\nfor _ in range(4): %s\n"
#: By the call: the end of the line to add, and the program with it.
ADDED = {
    "postling.send(1, cafile=BUNDLE)": (
        "once; then postling.send(1, tls_context=context)",
        "import os, ssl, postling\n%s\nfor _ in range(4): %s\n",
    ),
    "postling.post(1)": (
        "client = postling.Post(...)  # once, before the work begins",
        "import postling\nclient = postling.Post()\nfor _ in range(4): client.send()\n",
    ),
    # Whatever is kept, an opener makes a context of its own.
    "postling.Api().mail(to=1)": (
        "ssl._create_default_https_context = lambda: context  # once, before the work begins",
        "import ssl, postling\nLINE\nfor _ in range(4): postling.Api().mail(to=1)\n",
    ),
    "postling.dial(1)": ("", None),
}
#: Six attempts, each with a context of its own, none of which comes through: a name that nobody
#: has, a port where nobody listens, an authority that is not trusted, a server that never answers,
#: one that resets each connection in the place of an answer, and a proxy that refuses.
FAILING = """
import asyncio, http.server, os, socket, ssl, sys, threading, urllib.request
how, with_await = sys.argv[1:]
silent = socket.create_server(("127.0.0.1", 0))
port = silent.getsockname()[1]
if how == "refused":
    silent.close()
site = "127.0.0.1", int(os.environ["SITE"].rpartition(":")[2])
address = {"unknown": ("nobody.invalid", port), "untrusted": site}
address["reset"] = "127.0.0.1", int(os.environ["RESETS"])
address = address.get(how, ("127.0.0.1", port))
class Refuses(http.server.BaseHTTPRequestHandler):
    def do_CONNECT(self):
        self.send_error(407)
if how == "proxy":
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    os.environ["https_proxy"] = "http://127.0.0.1:%d" % proxy.server_port

def new_context():
    other = ssl.create_default_context(cafile=os.environ["BUNDLE"])
    return ssl.create_default_context(cafile=os.environ["OTHERS"]) if how == "untrusted" else other

def get():
    url = "https://%s:%d" % address
    wait_s = 0.2 if how == "silent" else 30
    urllib.request.urlopen(url, context=new_context(), timeout=wait_s)

async def aget():
    wait_s = 0.2 if how == "silent" else 30
    connecting = asyncio.open_connection(*address, ssl=new_context())
    reader, writer = await asyncio.wait_for(connecting, wait_s)
    writer.write(b"GET /")
    await reader.readexactly(1)

for _ in range(6):
    try:
        asyncio.run(aget()) if with_await == "await" else get()
    except OSError as error:
        continue
    except asyncio.TimeoutError:
        continue
    raise AssertionError("it came through")
"""
REASONS = {
    "unknown": "gaierror", "refused": "ConnectionRefusedError",
    "untrusted": "CERTIFICATE_VERIFY_FAILED", "silent": "handshake", "proxy": "407",
    "reset": ("ConnectionResetError", "without an answer"),
}  # fmt: skip


@pytest.fixture(scope="module")
def doctor(tmp_path_factory):
    """The single file, made from the modules beside these tests."""
    file = tmp_path_factory.mktemp("made") / "doctor.py"
    subprocess.run([sys.executable, BUILDER, file], check=True)
    return file


def resetting(listener, context):
    """Shake hands with each client, and reset its connection when it has sent something."""
    with contextlib.suppress(OSError):
        while True:
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(1)
                at_once = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)


@pytest.fixture
def site(tmp_path):
    """The variables that the programs read: a server's address, and whom to trust."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "bundle.pem"
    # As many certificates as real bundles have, so that a load takes time.
    authorities = [authority, *(trustme.CA(organization_name=str(n)) for n in range(150))]
    bundle.write_bytes(b"".join(known.cert_pem.bytes() for known in authorities))
    others = tmp_path / "others.pem"
    others.write_bytes(b"".join(known.cert_pem.bytes() for known in authorities[1:]))
    Page.connections = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=resetting, args=(listener, context), daemon=True).start()
        yield {
            "SITE": f"https://127.0.0.1:{server.server_port}", "BUNDLE": str(bundle),
            "OTHERS": str(others), "RESETS": str(listener.getsockname()[1]),
        }  # fmt: skip
        server.shutdown()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize(("program", "loads"), [(ILL, 6), (HEALTHY, 1)])
def test_what_a_program_did_is_counted(doctor, site, tmp_path, program, loads):
    (tmp_path / "program.py").write_text(program)
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **site}
    process = subprocess.run(
        [sys.executable, doctor, "run", "--json", "--", "program.py"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    report = json.loads(process.stdout)
    counts = report["counts"]
    assert (counts["connections"], counts["handshakes"], counts["loads"]) == (6, 6, loads)
    assert Page.connections == 6
    assert report["exit_status"] == process.returncode
    assert (process.returncode == 1) == (loads == 6), process.stderr
    assert not list(tmp_path.glob("doctor-*"))


@pytest.mark.parametrize("call", ADDED)
def test_a_function_of_an_unknown_library_is_given_what_it_takes(doctor, site, tmp_path, call):
    """What is advised is put into the program, and cures it."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "postling.py").write_text(POSTLING)
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **site}
    environ["SSL_CERT_FILE"] = site["BUNDLE"]

    def report_of(text):
        (tmp_path / "program.py").write_text(text)
        process = subprocess.run(
            [sys.executable, doctor, "run", "--json", "--", "program.py"], cwd=tmp_path,
            env={**environ, "PYTHONPATH": str(library)}, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        return json.loads(process.stdout)

    report, (line, cured) = report_of(CALLS % call), ADDED[call]
    assert (report["counts"]["loads"], report["exit_status"]) == (4, 1)
    first = report["advice"][0]
    assert first["add"].endswith(line) and bool(first["add"]) == bool(line)
    if not line:
        assert "postling.dial loads for each call, and takes neither" in first["what"]
        return
    context, _, then = first["add"].partition("  # once; then ")
    report = report_of(cured % (context, then) if then else cured.replace("LINE", context))
    assert (report["counts"]["loads"], report["exit_status"], report["advice"]) == (1, 0, [])


@pytest.mark.parametrize(("how", "status"), [("shared", 0), ("own", 1)])
def test_threads_that_race_for_their_first_load_do_not_repeat_it(
    doctor, site, tmp_path, how, status
):
    (tmp_path / "program.py").write_text(AT_THE_SAME_MOMENT)
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **site}
    process = subprocess.run(
        [sys.executable, doctor, "run", "--json", "--", "program.py", how],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    report = json.loads(process.stdout)
    counts = report["counts"]
    assert (counts["loads"], counts["connections"]) == (6, 18) == (6, Page.connections)
    assert (process.returncode, bool(report["advice"])) == (status, bool(status)), process.stderr
    assert (counts["raced"], counts["needed"]) == ((0, 1) if status else (5, 6))


@pytest.mark.parametrize(
    ("how", "with_await"),
    [
        *((how, "") for how in REASONS),
        *((how, "await") for how in ("refused", "untrusted", "silent", "reset")),
    ],
)
def test_loads_are_no_fault_of_a_program_none_of_whose_connections_work(
    doctor, site, tmp_path, how, with_await
):
    (tmp_path / "program.py").write_text(FAILING)
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **site}
    process = subprocess.run(
        [sys.executable, doctor, "run", "--again", "--json", "--", "program.py", how, with_await],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    report = json.loads(process.stdout)
    assert (process.returncode, report["counts"]["loads"] >= 6) == (2, True), process.stderr
    assert report["verdicts"]["certificate loads"] == "nothing seen"
    reasons = REASONS[how] if isinstance(REASONS[how], tuple) else (REASONS[how],)
    [(why, _)] = report["counts"]["failures"]
    assert any(reason in why for reason in reasons)
    assert {each["id"] for each in report["advice"]} <= {"untrusted"}
    assert report["again"]["changes"] == []


def test_the_sources_say_that_they_are_no_single_file(tmp_path):
    sources = BUILDER.parent / "src"
    for words in (["run", "--", "program.py"], ["--help"], ["attach", str(os.getpid())]):
        process = subprocess.run(
            [sys.executable, "-m", "tls_doctor", *words],
            cwd=sources, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert (process.returncode, process.stdout) == (2, "")
        assert "run doctor.py" in process.stderr


def test_a_program_that_fails_keeps_its_own_error(doctor, site, tmp_path):
    (tmp_path / "program.py").write_text("raise LookupError('of the program')\n")
    process = subprocess.run(
        [sys.executable, doctor, "run", "--", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert process.returncode == 2
    assert "LookupError: of the program" in process.stderr + process.stdout
