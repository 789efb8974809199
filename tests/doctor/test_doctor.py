"""The doctor on real programs: what it says, what it answers with, and what it leaves behind."""

import contextlib
import dataclasses
import functools
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import here
import psutil
import pytest
import tls_doctor
from here import environment, eventually, python_in

from casebook import places
from casebook.cases import patients
from casebook.cases.bookstore.store import open_store
from casebook.cases.certificates.hosts import Handler
from casebook.cases.fetching import modes, runs, server
from casebook.stacks import environments, interpreters

INJECTED = """
import grequests
from urllib3.contrib import pyopenssl
pyopenssl.inject_into_urllib3()
"""


def run(*arguments, **more):
    """Run the doctor with the Python of these tests."""
    return here.run(sys.executable, places.DOCTOR, *arguments, **more)


def run_in(name: str, folder: Path, program: str, *arguments, **variables):
    """Run the doctor on the text of a program, in a stack's environment."""
    (folder / "program.py").write_text(program)
    command = [places.DOCTOR, *arguments, "--", folder / "program.py"]
    return python_in(name, *command, variables=variables, cwd=folder)


def report_of(name: str, folder: Path, program: str, *arguments, **variables) -> dict:
    done = run_in(name, folder, program, "--json", *arguments, **variables)
    report = json.loads(done.stdout)
    assert report["exit_status"] == done.returncode
    return report


@contextlib.contextmanager
def running_in(name: str, *command, **variables):
    """A process of a stack's Python, which is killed when the block ends."""
    place = environment(name)
    environ = environments.clean_environ(place) | variables
    command = [place.python, *command]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@functools.cache
def examined(name: str) -> dict:
    """The doctor's report of a patient."""
    patient = patients.all_patients()[name]
    environment(patient.stack)
    return patients.examine(patient)


def loop(report: dict) -> str:
    return report["verdicts"]["event loop"]


def maker_of_contexts(report: dict) -> str:
    return {row["name"]: row["by"] for row in report["provides"]}["urllib3's SSLContext"]


def test_when_its_own_server_ends_early_it_says_so(tmp_path):
    """Whoever it happens to: not silence and an exit status."""
    text, told = (
        places.DOCTOR.read_text(),
        "            group = int(pid) if kind == ENDS_GROUP else None",
    )
    (tmp_path / "program.py").write_text("import ssl\n")
    waits, ends = "        for line in iter(sys.stdin.readline", "        os._exit(3)\n"
    # Before it hears of the program, and as soon as it does: never by a clock.
    for place, change in ((waits, ends + waits), (told, "    " + ends)):
        assert text.count(place) == 1
        copy = tmp_path / "doctor.py"
        copy.write_text(text.replace(place, change))
        environ = os.environ | {"TMPDIR": str(tmp_path)}
        done = here.run(sys.executable, copy, "--", tmp_path / "program.py", env=environ)
        assert done.returncode == 2, done.stdout
        assert "the doctor's own server ended before" in done.stderr
        assert "exit status 3" in done.stderr and "Traceback" not in done.stderr
        assert not list(tmp_path.glob("doctor-*"))


# ------------------------------------------------------------------------------------- verdicts


VERDICTS = {
    "stage-1-py27": "free",
    "stage-2-py27": "blocked",
    "stage-3-py37": "blocked",
    "stage-1-today": "free",
    "stage-2-injected-today": "blocked",
    "patch-all-first-today": "free",
    "toolbelt-x509-today": "blocked",
    "geventhttpclient": "blocked",
    "requests-first-today": "cannot tell",
    "httpx-today": "does not apply",
    "eventlet-0.33.3-py37": "blocked",
    "eventlet-0.34.1-py37": "free",
}
STATUS = {"free": 0, "blocked": 1, "cannot tell": 2, "does not apply": 0}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_and_the_exit_status(name):
    report = examined(name)
    assert loop(report) == VERDICTS[name]
    assert report["exit_status"] == STATUS[VERDICTS[name]]


def test_a_blocked_loop_is_told_by_counters_and_its_control_is_free():
    [row] = examined("stage-2-injected-today")["clients"]
    for trial in row["https"]["trials"]:
        assert trial["peak_in_flight"] == 1
        assert trial["effective_concurrency"] <= 1.02
        assert trial["longest_gap_s"] >= 0.9 * trial["delay_s"]
    assert row["http"]["verdict"] == "free"
    assert row["http"]["trials"][-1]["peak_in_flight"] == 2


def test_the_advice_names_the_line_that_injected_and_cures_that_were_tried():
    report = examined("stage-2-py27")
    [injection] = report["injections"]
    assert (injection["file"], injection["line"]) == ("requests/__init__.py", 96)
    assert {row["cure"]: row["verdict"] for row in report["cures"]} == {
        "extract_from_urllib3()": "free",
        "patch_select()": "free",
    }
    first = report["advice"][0]
    assert first["remove"] == "pyopenssl.inject_into_urllib3()"
    assert first["package"].startswith("requests 2.24") and "before" not in first["saves"]
    assert first["saves"] and first["chapter"].startswith("chapter 7, Cures")


def test_the_price_of_a_load_names_the_openssl_that_loads():
    """PyOpenSSL brings another than Python's, which the first line has."""
    for stack, is_another in (("stage-2-injected-today", True), ("stage-2-today", False)):
        report = examined(stack)
        openssl = report["openssl"]
        assert (openssl["loads"] != openssl["ssl"]) == is_another
        (priced,) = [line for line in tls_doctor.report.load_lines(report) if "ms CPU" in line]
        told = " ".join(priced.split())
        assert (f"(of {openssl['loads']}, which pyOpenSSL brings)" in told) == is_another


GEVENTS_WAIT = """
import gevent.socket, urllib3.util
def wait_for_read(sock, timeout=None):
    gevent.socket.wait_read(sock.fileno())
    return True
urllib3.util.wait_for_read = wait_for_read
"""
STANDARD_WAIT = """
import gevent.ssl, select
def wait(self, watcher, timeout_exc=None):
    select.select([self.fileno()], [], [])
gevent.ssl.SSLSocket._wait = wait
"""


def test_with_one_wait_exchanged_the_verdict_turns(tmp_path):
    mended = report_of("stage-2-today", tmp_path, INJECTED + GEVENTS_WAIT)
    spoilt = report_of("stage-1-today", tmp_path, "import grequests" + STANDARD_WAIT)
    assert (loop(mended), loop(spoilt)) == ("free", "blocked")
    # Nobody but the trial could know: the names are those of the ill and of the healthy stack.
    assert (maker_of_contexts(mended), maker_of_contexts(spoilt)) == ("pyOpenSSL", "gevent")


def test_a_library_that_imports_gevent_is_no_illness(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "monitoring.py").write_text("import gevent, gevent.pool\n")
    program = "import sys; sys.path.append({!r}); import monitoring, requests\n"
    report = report_of("stage-1-today", tmp_path, program.format(str(library)))
    assert (loop(report), report["exit_status"]) == ("cannot tell", 2)
    report = report_of("stage-1-today", tmp_path, "import gevent.pool, requests")
    assert loop(report) == "blocked"


def trial(effective, peak, gap, requests=2):
    return dict(
        requests=requests, delay_s=0.4, effective_concurrency=effective, peak_in_flight=peak,
        longest_gap_s=gap,
    )  # fmt: skip


def test_noise_can_delay_a_verdict_and_not_turn_it():
    stood_still = trial(0.97, 1, 0.82)
    assert tls_doctor.blocking.verdict_of([stood_still]) is None  # once is not enough
    assert tls_doctor.blocking.verdict_of([stood_still, stood_still]) == "blocked"
    slow_machine = trial(0.8, 2, 0.5)  # both requests were under way, however late
    assert tls_doctor.blocking.verdict_of([slow_machine, slow_machine]) is None
    assert tls_doctor.blocking.verdict_of([stood_still, slow_machine]) is None
    loads = [slow_machine, slow_machine, trial(1.6, 2, 0.1)]
    assert tls_doctor.blocking.verdict_of(loads) == "free"
    alone = trial(0.9, 1, 0.05, requests=1)
    assert tls_doctor.blocking.verdict_of([alone]) == "free"
    assert tls_doctor.blocking.verdict_of([trial(0.9, 1, 0.39, requests=1)] * 2) == "blocked"


# ---------------------------------------------------------------------------------------- loads


def test_loads_are_counted_as_the_book_counts_them():
    def loads(name):
        return next(row["by_connection"] for row in examined(name)["loads"] if row["imported"])

    assert loads("stage-1-today") == [1, 1, 1]
    assert examined("stage-1-today")["loads_at_import"] == 0
    assert loads("requests-2.32.4-today") == [0, 0, 0]
    assert examined("requests-2.32.4-today")["loads_at_import"] == 1
    assert loads("cured-today") == [1, 0, 0]
    assert loads("half-cured-today") == [1, 1, 1]


def test_of_imports_alone_loads_are_advice_and_the_exit_status_says_nothing_of_them(tmp_path):
    report = report_of("stage-1-today", tmp_path, "import requests")
    assert report["verdicts"] == {
        "event loop": "does not apply",
        "certificate loads": "not counted",
    }
    assert report["exit_status"] == 0
    assert [each["id"] for each in report["advice"]] == ["run-it"]
    assert "doctor.py run -- " in report["advice"][0]["what"]


def test_what_it_does_not_know_it_does_not_call_healthy(tmp_path):
    report = report_of("stage-1-today", tmp_path, "import ssl")
    assert (report["verdicts"]["certificate loads"], report["exit_status"]) == ("nothing seen", 2)
    assert {"requests", "httpx", "urlopen", "tornado"} <= set(report["known_to_the_doctor"])


MOUNTED = """
import sys
sys.path.insert(0, {folder!r})
import requests, shared_context
session = requests.Session()
session.mount("https://", shared_context.SharedContextAdapter())
"""


def test_a_session_with_the_cure_is_no_illness(tmp_path):
    program = MOUNTED.format(folder=str(places.DOCTOR.parent))
    report = report_of("stage-1-today", tmp_path, program)
    counted = {row["client"]: row["by_connection"] for row in report["loads"]}
    assert counted["requests"] == [1, 1, 1]
    assert counted["requests with a session's SharedContextAdapter"] == [1, 0, 0]
    assert report["exit_status"] == 0


def test_where_truststore_stands_in_from_the_start_its_own_server_serves_all_the_same(tmp_path):
    """pip-system-certs puts truststore into every process.

    pip's truststore looks for the certificate of the other end, which a socket that listens has
    not.
    """
    report = report_of("pip-26.2-system-certs-today", tmp_path, "import httpx")
    assert {row["name"]: row["by"] for row in report["provides"]}["ssl.SSLContext"] == "pip"
    assert (loop(report), report["exit_status"]) == ("does not apply", 0)
    [row] = report["loads"]
    assert row["imported"] and row["error"] is None and row["by_connection"] == [1, 1, 1]


# ------------------------------------------------------------------------------ programs that fail


BROKEN = {
    "import requestz": "crashed in its imports, at program.py:1: ModuleNotFoundError",
    "import sys\nsys.exit('usage: program FILE')": "called sys.exit('usage: program FILE')",
    "import os\nos._exit(3)": "ended itself in its imports (exit status 3",
    "import os\nos.kill(os.getpid(), 11)": "was killed by signal 11 in its imports",
    "name = input()": "EOFError",
    "import time\ntime.sleep(600)": "was still in its imports after 4 s, at program.py:2",
}


@pytest.mark.parametrize("program", BROKEN)
def test_a_program_that_does_not_get_through_its_imports(program, tmp_path):
    (tmp_path / "program.py").write_text(program)
    patience = "4" if "sleep" in program else "60"  # a busy machine takes its time to import
    done = run("--json", "--patience", patience, "--", "program.py", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["exit_status"] == done.returncode == 2
    assert BROKEN[program] in answer["trouble"]
    assert "Traceback" not in done.stderr


ODD = {
    "a forbidden import": "sys.modules['gevent'] = None",
    "no class": "import functools, socket\nsocket.socket = functools.partial(socket.socket)",
    "no module": "sys.modules['lazy'] = type('', (), {'__getattr__': lambda *_: 1 / 0})()",
    "no standard error": "sys.stderr = None",
    "two processes": "import os\nos.fork()",
}


@pytest.mark.parametrize("odd", ODD)
def test_a_program_that_leaves_something_odd_behind_is_examined(odd, tmp_path):
    program = f"import sys, requests\n{ODD[odd]}\n"
    report = report_of("stage-1-today", tmp_path, program)
    assert (loop(report), report["exit_status"]) == ("does not apply", 0)


def test_where_the_certificates_are_not_to_be_read_it_says_so(tmp_path):
    missing = {"REQUESTS_CA_BUNDLE": str(tmp_path / "missing")}
    report = report_of("stage-1-today", tmp_path, "import requests", **missing)
    assert (report["verdicts"]["certificate loads"], report["exit_status"]) == ("not counted", 0)
    assert report["certificates"] is None
    assert "missing" in next(row["error"] for row in report["loads"] if row["client"] == "requests")


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-today"])
def test_letters_beyond_ascii(name, tmp_path):
    program = "# coding: utf-8\nraise ValueError({}'schön')".format("u" if "27" in name else "")
    (tmp_path / "käse.py").write_text(program)
    done = python_in(name, places.DOCTOR, "--", "käse.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr
    assert "crashed in its imports" in done.stderr and "ValueError" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--jason"], ["module"], ["--"], ["--share", "0"], ["--url", "https://x:y"], ["attach"]],
)
def test_a_command_line_that_makes_no_sense(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("doctor: ") and "--help" in done.stderr


# --------------------------------------------------------------------------------- how it behaves


@pytest.mark.parametrize("version", ["2.7", "3.7", "today"])
def test_it_is_one_file_for_every_python(version, tmp_path):
    python = interpreters.find(version)
    if python is None and version not in environments.required():
        pytest.skip(f"no Python {version} here")
    copy = tmp_path / "carried away.py"
    shutil.copy(places.DOCTOR, copy)
    environ = {"PATH": os.defpath, "TMPDIR": str(tmp_path)}
    done = here.run(python.path, copy, "--json", cwd=tmp_path, env=environ)
    report = json.loads(done.stdout)
    assert report["program"] is None and loop(report) == "does not apply"
    assert (report["clients"], report["exit_status"], done.returncode) == ([], 2, 2)
    assert os.listdir(tmp_path) == ["carried away.py"]


EARLY = """
import sys
print(sorted({"ssl", "socket", "select", "threading", "subprocess", "signal"} & set(sys.modules)))
sys.exit()
"""


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-today"])
def test_the_program_finds_nothing_imported_that_gevent_has_to_patch(name, tmp_path):
    (tmp_path / "early.py").write_text(EARLY)
    alone = python_in(name, "early.py", cwd=tmp_path)
    examined = python_in(name, places.DOCTOR, "--", "early.py", cwd=tmp_path)
    told = [line for line in examined.stderr.splitlines() if line.startswith("[")]
    assert set(eval(told[0])) - set(eval(alone.stdout)) <= {"signal"}


def processes(word: str) -> list[str]:
    """The command lines of running processes that hold a word."""
    lines = (each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"]))
    return [" ".join(line) for line in lines if any(word in part for part in line)]


BUSY = """
import subprocess, sys, threading, time
import neighbour, requests
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}])
threading.Thread(target=time.sleep, args=(600,)).start()
print("what the program prints")
"""


@pytest.fixture
def busy(tmp_path):
    """A program that leaves a thread and a process running: (its folder, TMPDIR, a mark)."""
    folder, scratch = tmp_path / "program", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    mark = f"left-by-{tmp_path.name}-{os.getpid()}"
    (folder / "neighbour.py").write_text("")
    (folder / "program.py").write_text(BUSY.format(mark=mark))
    (folder / "doctor.py").write_text(places.DOCTOR.read_text())
    return folder, scratch, mark


def test_nothing_stays_on_disk_or_running(busy):
    folder, scratch, mark = busy
    before = sorted(path.name for path in folder.iterdir())
    command = ["doctor.py", "--json", "--", "program.py"]
    variables = {"TMPDIR": str(scratch)}
    done = python_in("stage-1-today", *command, variables=variables, cwd=folder)
    assert json.loads(done.stdout)["program"] == "program.py"  # and nothing of the program's words
    assert "what the program prints" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    assert list(scratch.iterdir()) == []
    assert processes(mark) == processes(str(folder)) == []


def test_nothing_stays_when_the_doctor_is_killed(busy):
    folder, scratch, mark = busy
    command = [folder / "doctor.py", "--", folder / "program.py"]
    with running_in("stage-1-today", *command, TMPDIR=str(scratch)):
        assert eventually(lambda: processes(mark)), "the program was never there"
        assert list(scratch.iterdir())
    assert eventually(lambda: not processes(mark) and not processes(str(folder)))
    assert eventually(lambda: not list(scratch.iterdir()))


AUDIT = """
import sys
def note(event, arguments):
    if event == "socket.connect":
        print("CONNECT", arguments[1][0], file=sys.stderr)
    elif event == "socket.sendto":
        print("CONNECT", arguments[1], file=sys.stderr)
sys.addaudithook(note)
import grequests
"""


def test_it_connects_to_its_own_server_only(tmp_path):
    variables = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://192.0.2.1:9")
    done = run_in("stage-1-today", tmp_path, AUDIT, **variables)
    connects = [line for line in done.stderr.splitlines() if line.startswith("CONNECT")]
    assert len(connects) > 10
    assert set(connects) == {"CONNECT 127.0.0.1"}
    assert done.returncode == 0, done.stdout


def test_the_text_has_colours_on_a_terminal_only():
    command = [sys.executable, "-S", places.DOCTOR]  # without packages it is quick

    def said(**variables):
        main, secondary = pty.openpty()
        environ = {"PATH": os.defpath} | variables
        subprocess.run(command, stdout=secondary, stderr=subprocess.DEVNULL, env=environ)
        text = os.read(main, 4096)  # a terminal keeps so much
        os.close(main)
        os.close(secondary)
        assert b"exit status 2" in text
        return text

    assert b"\033[1" in said(TERM="xterm")
    assert b"\033[" not in said(TERM="xterm", NO_COLOR="1")
    done = here.run(*command, env={"TERM": "xterm"})
    assert "exit status 2" in done.stdout and "\033[" not in done.stdout


INSIDE = """
from gevent import monkey
monkey.patch_all(thread=False, select=False)
import json, select, sys
import requests, urllib3
from urllib3.contrib import pyopenssl
pyopenssl.inject_into_urllib3()
sys.path.insert(0, sys.argv[1])
import doctor
report = doctor.inside(sys.stderr)
print(json.dumps([report["verdicts"], report["exit_status"], report["cures"],
                  select.poll.__module__, urllib3.util.ssl_.SSLContext.__module__,
                  "geventhttpclient" in sys.modules]))
"""


def test_a_running_program_is_examined_from_inside_and_not_changed(tmp_path):
    variables = {"TMPDIR": str(tmp_path)}
    folder = places.DOCTOR.parent
    done = python_in("locust-today", "-c", INSIDE, folder, variables=variables)
    verdicts, status, cures, poll, context, is_brought = json.loads(done.stdout)
    assert (verdicts["event loop"], status) == ("blocked", 1)
    assert (cures, poll, context) == ([], "select", "urllib3.contrib.pyopenssl")
    assert not is_brought  # it is installed there, and not imported
    assert "BLOCKED" in done.stderr and list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------- --url


@pytest.mark.parametrize(
    ("name", "client"),
    [("stage-1-today", "requests"), ("stage-1-today", "urllib3"), ("httpx-today", "httpx"),
     ("aiohttp-today", "aiohttp"), ("niquests-today", "niquests")],
)  # fmt: skip
def test_a_url_is_asked_as_often_as_announced_and_no_redirect_followed(name, client, tls, tmp_path):
    asked, (context, ca_file) = [], tls

    class Redirecting(Handler):
        def do_HEAD(self):
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

    trusted = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(ca_file))
    with here.serving(Redirecting, context) as url:
        arguments = ("--json", "--url", f"{url}/")
        done = run_in(name, tmp_path, f"import {client}", *arguments, **trusted)
    http = json.loads(done.stdout)["http"]
    announced = [line for line in done.stderr.splitlines() if line.startswith("asking ")]
    assert set(asked) == {"/"}
    assert len(asked) == len(announced) == http["requests"] == 2 * len(http["clients"])
    row = http["clients"][0]
    assert (row["client"], row["version"], row["error"]) == (client, "HTTP/1.1", None)


def test_a_password_in_a_url_is_not_repeated(tmp_path):
    url = "https://reader:s3cret@127.0.0.1:9/"
    done = run_in("stage-1-today", tmp_path, "import requests", "--json", "--url", url)
    assert json.loads(done.stdout)["http"]["url"] == "https://127.0.0.1:9/"
    assert "s3cret" not in done.stdout + done.stderr and "asking https://127" in done.stderr


def test_a_server_that_never_answers_costs_some_seconds_and_not_the_report(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        report = report_of("aiohttp-today", tmp_path, "import aiohttp", "--url", url)
    [row] = report["http"]["clients"]
    assert (row["client"], row["version"], report["http"]["requests"]) == ("aiohttp", None, 1)
    assert "Timeout" in row["error"] and report["examined_s"] < 30


def test_it_sees_which_http_is_spoken(tmp_path):
    with open_store() as store:
        trusted = {"SSL_CERT_FILE": str(store.ca_file)}
        report = report_of("httpx-today", tmp_path, "import httpx", "--url", store.url, **trusted)
    spoken = {row["client"]: row["version"] for row in report["http"]["clients"]}
    assert report["http"]["offers"] == "h2"
    assert spoken == {"httpx": "HTTP/1.1", "httpx with http2=True": "HTTP/2"}
    assert report["http"]["requests"] <= tls_doctor.basis.MOST_REQUESTS
    assert (report["exit_status"], report["advice"][-1]["case"]) == (0, 3)


# ---------------------------------------------------------------------------------------- attach


FETCHING = """
import sys
sys.path.insert(0, sys.argv[1])
import steps
for name in sys.argv[3].split(","):
    steps.take(name)
import grequests
while True:
    asked = [grequests.get(sys.argv[2] + str(page), verify=False) for page in range(5)]
    assert [reply.status_code for reply in grequests.map(asked)] == [200] * 5
    print("fetched", flush=True)
"""


def attached(name: str, url: str, **variables):
    """The doctor attached to a running program of a stack that fetches again and again."""
    steps = ",".join(environment(name).stack.steps)
    command = ["-W", "ignore", "-c", FETCHING, places.PROBES, url, steps]
    with running_in(name, *command) as running:
        assert running.stdout.readline() == "fetched\n"
        arguments = ["attach", running.pid, "--seconds", "1.5", "--json"]
        return run(*arguments, env={"PATH": os.defpath} | variables)


def test_a_running_process_is_seen_to_stand_in_the_wait():
    spy = {"PATH": str(environment("py-spy-today").python.parent)}
    with server.start() as lab:
        ill = attached("stage-2-injected-today", f"{lab.url}/delay/0.2?page=", **spy)
        well = attached("stage-1-today", f"{lab.url}/delay/0.2?page=", **spy)
    report = json.loads(ill.stdout)
    if "may need root" in report.get("trouble", ""):
        pytest.skip("this machine does not let one process read another")
    assert (ill.returncode, report["gevent"]) == (1, True)
    assert report["seen"]["blocked"] > report["looks"] / 2
    assert any(line.startswith("urllib3/contrib/pyopenssl.py") for line in report["stack"])
    report = json.loads(well.stdout)
    assert report["seen"]["blocked"] == report["seen"]["perhaps blocked"] == 0


UNPATCHED = """
import sys, {loop}
{patch}
import requests
def fetch(_): assert requests.get(sys.argv[1], verify=False).ok
while True:
    {fetch}
    print("fetched", flush=True)
"""
IN_LOOPS = {
    "stage-1-today": {
        "loop": "gevent, gevent.pool, gevent.monkey",
        "fetch": "gevent.pool.Pool(3).map(fetch, range(3))",
        "patch": "gevent.monkey.patch_all()",
    },
    "eventlet-today": {
        "loop": "eventlet",
        "fetch": "list(eventlet.GreenPool(3).imap(fetch, range(3)))",
        "patch": "eventlet.monkey_patch()",
    },
}


@pytest.mark.parametrize("name", IN_LOOPS)
def test_a_running_process_that_has_patched_nothing_is_seen(name):
    spy = {"PATH": f"{environment('py-spy-today').python.parent}:{os.defpath}"}
    seen = {}
    with server.start() as lab:
        for patch in ("", IN_LOOPS[name]["patch"]):
            program = UNPATCHED.format(**IN_LOOPS[name] | {"patch": patch})
            command = ["-W", "ignore", "-c", program, f"{lab.url}/delay/0.5"]
            with running_in(name, *command) as running:
                assert running.stdout.readline() == "fetched\n"
                options = ["--seconds", "1.5", "--json"]
                done = run("attach", running.pid, *options, env=spy)
            report = json.loads(done.stdout)
            if "may need root" in report.get("trouble", ""):
                pytest.skip("this machine does not let one process read another")
            seen[patch] = report["seen"]["not patched"], report["looks"], done.returncode
    (blocked, looks, status), (patched, _, _) = seen.values()
    assert blocked > looks / 4 and status == 1  # it also loads certificates
    assert patched <= 1  # one look alone may have met a read of a millisecond


#: Every second time it fails, as it does where a process runs on while it is read.
SOMETIMES = """\
#!/bin/sh
echo >> {counts}
[ $(($(wc -l < {counts}) % 2)) = 0 ] && exec {spy} "$@"
echo "Error: Bad address (os error 14)" >&2
exit 1
"""


def test_a_look_that_fails_for_a_passing_reason_is_tried_again(tmp_path):
    spy, counts = environment("py-spy-today").python.parent / "py-spy", tmp_path / "counts"
    (tmp_path / "py-spy").write_text(SOMETIMES.format(spy=spy, counts=counts))
    (tmp_path / "py-spy").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.defpath}"}
    with running_in("stage-1-today", "-c", "import time; time.sleep(60)") as running:
        done = run("attach", running.pid, "--seconds", "2", "--json", env=environ)
    report = json.loads(done.stdout)
    if "may need root" in report.get("trouble", "") and "Bad address" not in report["trouble"]:
        pytest.skip("this machine does not let one process read another")
    failed = counts.read_text().count("\n") - report["looks"]
    assert done.returncode == 2 and "no client" in report["why"]  # it sleeps
    assert 0 < failed and 0 < report["looks"]
    # One that fails each time is told, and looks that were never made are no healthy ones.
    (tmp_path / "py-spy").write_text("#!/bin/sh\necho 'Error: Bad address' >&2\nexit 1\n")
    for seconds in ("0.2", "5"):
        done = run("attach", os.getpid(), "--seconds", seconds, env=environ)
        assert done.returncode == 2 and "(Error: Bad address)" in done.stderr


def test_a_process_that_ends_while_it_is_looked_at_is_told_as_far_as_it_was_seen():
    """Nobody has taken note of its end: its number is still there."""
    spy = {"PATH": f"{environment('py-spy-today').python.parent}:{os.defpath}"}
    with running_in("stage-1-today", "-c", "import time; time.sleep(3)") as running:
        done = run("attach", running.pid, "--seconds", "30", "--json", env=spy)
        report = json.loads(done.stdout)
        if "may need root" in report.get("trouble", ""):
            pytest.skip("this machine does not let one process read another")
        assert done.returncode == 2 and 0 < report["looks"] < 100
        assert running.returncode is None
        done = run("attach", running.pid, env=spy)
        assert done.returncode == 2 and f"there is no process {running.pid}" in done.stderr


WITH_A_WORKER = """
import os, sys, time
worker = os.fork()
if worker:
    print(worker, flush=True)
    os.waitpid(worker, 0)
import asyncio, requests
async def endpoint(): requests.get(sys.argv[1], verify=False)
async def main():
    while True: await endpoint()
asyncio.run(main())
"""


def test_a_parent_has_no_all_clear_and_names_its_worker_whose_loop_is_kept():
    """As with gunicorn, whose number in its file is the parent's."""
    spy = {"PATH": f"{environment('py-spy-today').python.parent}:{os.defpath}"}
    with server.start() as lab:
        command = ["-W", "ignore", "-c", WITH_A_WORKER, f"{lab.url}/delay/0.5"]
        with running_in("stage-1-today", *command) as running:
            worker = int(running.stdout.readline())
            reports = []
            for pid in (running.pid, worker):
                done = run("attach", pid, "--seconds", "2", "--json", env=spy)
                reports.append(json.loads(done.stdout))
            os.kill(worker, signal.SIGKILL)
    if any("may need root" in report.get("trouble", "") for report in reports):
        pytest.skip("this machine does not let one process read another")
    parent, child = reports
    assert (parent["exit_status"], parent["children"]) == (2, [worker])
    assert f"attach {worker}" in parent["why"]
    assert (child["exit_status"], child["why"]) == (1, None)
    advice = child["advice"][0]  # it also loads, as often as it was seen to
    assert advice["id"] == "asyncio" and "requests waited" in advice["what"]


def test_without_py_spy_the_command_is_named():
    done = run("attach", os.getpid(), env={"PATH": "/nonexistent"})
    assert done.returncode == 2
    assert f"py-spy dump --pid {os.getpid()}" in done.stderr


# ------------------------------------------------------------------------------------- all of them


def test_what_a_measurement_leaves_undecided_is_measured_with_a_longer_delay(monkeypatch):
    """Else what a busy machine hides would be called a miss of the doctor's."""
    mode = dataclasses.replace(modes.current(), delay_s=0.01, repeats=1)  # which tells nothing
    monkeypatch.setattr(modes, "current", lambda: mode)
    environment("stage-1-today")
    undecided = runs.measure("stage-1-today", n=patients.PAGES, client="grequests")
    assert set(undecided["verdict"]) == {"between"}
    assert patients.measured_of(patients.all_patients()["stage-1-today"])[0] == "concurrent"


def test_a_preloaded_cure_is_measured_by_a_counter_that_was_there_before_it():
    environment("preloaded-today")
    assert patients.measured_of(patients.all_patients()["preloaded-today"]) == ("concurrent", 0)


@pytest.mark.nightly
@pytest.mark.timeout(2400)  # seven minutes on a quiet machine
def test_no_false_alarm_and_no_miss_in_any_stack_of_the_book():
    table = patients.table()
    assert len(table) > 60
    assert table[table["wrong"] != ""].empty, table.to_string()
    untold = table[table["doctor"] == "cannot tell"]
    columns = ["patient", "stack", "measured", "exit_status", "why"]
    assert set(untold["measured"]) == {"fails"}, untold[columns].to_string()
    assert len(untold) <= len(table) / 10
    both = table.dropna(subset=["loads_doctor", "loads_measured"])
    different = both[both["loads_doctor"] != both["loads_measured"]]
    assert len(both) > 30 and different.empty, different.to_string()
