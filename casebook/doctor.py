#!/usr/bin/env python
# ruff: noqa: B904, UP004, UP010, UP024, UP031, RUF005, B905, UP028
# Made of the parts in the_doctor/ by `python -m casebook.the_doctor`: edit those.
"""Why is HTTPS slow in this program? Ask the program itself.

    python doctor.py run [options] -- your program and its arguments
    python doctor.py [options] -- module-or-script
    python doctor.py attach PID [--seconds 5] [--json]

Run it with the Python that runs your program. `run` starts the program as you would and counts what
it does: report.py, -m package, a console script, an archive (.pyz), package.module:function.

    python doctor.py run -- report.py --month 3
    python doctor.py run -- -m myproject.jobs

It looks for these illnesses: a TLS read that blocks the event loop (of gevent and eventlet, tried
out when the program has ended; of asyncio and trio, counted; of all of them, heard by a heartbeat
through the run, whatever waits: psycopg2, say, with TLS of its own); certificates that are loaded
again and again, where once is enough, or while an asyncio loop waits; handshakes of threads that
wait for each other; contexts that are kept by the dozen; and, with --url alone, HTTP/1.1 where
HTTP/2 was meant.

Without `run` the program is only imported: its `if __name__ == "__main__":` is not done. Then the
event loop is tried out all the same, and of the loads there is advice and no verdict. In a worker
that patches when it starts (gunicorn), call `doctor.inside()` there.

options:
  --json             one JSON object instead of the text, and nothing else on standard output
  --again            a run's program runs a second time, with what can be changed from outside, and
                     what was promised is laid beside what came out. (It sends again what it sends.)
  --github           annotations for GitHub's pages, beside the text
  --fail-on WHAT     what exits with 1: blocked, loads, loop-loads, handshakes, contexts, or several
                     with a comma (default: all)
  --share PERCENT    repeated loads above this share of the program's CPU are an illness (default
                     5). Its imports are part of that CPU; compiling its modules, which only a first
                     run does, is not (on Python 2.7 it is). Near the limit two runs may come out
                     otherwise, and the report says so
  --url URL          also ask this URL (HEAD, at most 20 requests, each announced): which HTTP?
  --patience N       end after so many seconds (default: 90; a run takes what it takes)
  --seconds N        how long `attach` looks (default 5): with what Python itself has from 3.14 on,
                     where the process runs the same Python as the doctor, else with py-spy
  --schema           the JSON schema of what --json prints
  --version

exit status:
  0  nothing found (there may be advice)
  1  one of the illnesses was found
  2  it could not tell, and says why: nothing was seen that it knows, or the program crashed
  130 (Ctrl-C), 143 or 129: a run was ended by this signal; what was counted so far is told

a report, without its first lines:

    2. What do certificate loads cost?  REPEATED
      10 loads for 10 connections; 1 needed. The others cost 162 ms of CPU, 37.2 % of the
        program's 435 ms. 10 handshakes, at most 1 under way at once, in 1 process; 10
        contexts made.
      requests: 10 loads, 10 connections, 10 contexts, at report.py:2

    What to change
      1. requests loaded 10 times for 10 connections, from report.py:2. requests.get makes a
         Session for each call; one that is kept, for many requests to few hosts, keeps its
         connections, and loads once for each.
         add:     session = requests.Session()
         saves:   tried here, against the doctor's own server: of 10 requests, 10 loads
                  and 212 ms of CPU; with it 1 load and 29 ms

    exit status 1

Nothing is sent but what --url asks for and what your program sends: the checks use a TLS server of
the doctor's own on the loopback interface, which ends with it. The program runs once, and
with --again twice. Nothing stays on disk. One file, the standard library only, Python 2.7 to 3.14.
"""

from __future__ import division, print_function

import os
import sys

if __name__ == "__main__" and sys.path and "__file__" in globals():
    # A json.py that lies beside this file is not the one that is meant.
    _here = os.path.dirname(os.path.abspath(__file__))
    if os.path.realpath(sys.path[0] or ".") == os.path.realpath(_here):
        sys.path[0] = os.path.dirname(os.__file__)

import atexit
import bisect
import errno
import gc
import itertools
import json
import linecache
import re
import signal
import textwrap
import time
import warnings
import weakref

# What is imported before gevent patches is one of the illnesses, so nothing is imported up here
# that brings in ssl, socket, select or threading before the program does.


# ------------------------------------------------------------------------------ what all parts use


#: For the doctor's own server on the loopback interface, until 2100. The key is public, as you can
#: see: it protects nothing, and nothing but the doctor ever trusts its certificate.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIICFTCCAbugAwIBAgIUN8fwXb6UWF2K4w6Yyjm3VPGQfBcwCgYIKoZIzj0EAwIw
NzE1MDMGA1UEAwwsZG9jdG9yLnB5IHRlc3QgY2VydGlmaWNhdGUsIHByb3RlY3Rz
IG5vdGhpbmcwIBcNMDAwMTAxMDAwMDAwWhgPMjEwMDAxMDEwMDAwMDBaMDcxNTAz
BgNVBAMMLGRvY3Rvci5weSB0ZXN0IGNlcnRpZmljYXRlLCBwcm90ZWN0cyBub3Ro
aW5nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWSzp8CExFyvIOQe3M11H5wSS
dqYJVbf48wi+Vo+cKKhdGOBC2K3KNxtMivU/qQQJ+Z0s8m8WM9fMB/Hw/ldsWKOB
ojCBnzASBgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIChDAdBgNVHSUE
FjAUBggrBgEFBQcDAQYIKwYBBQUHAwIwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/
AAABMB0GA1UdDgQWBBRt2avFty8F9/cScvPYqxEugHDmlTAfBgNVHSMEGDAWgBRt
2avFty8F9/cScvPYqxEugHDmlTAKBggqhkjOPQQDAgNIADBFAiEAittXGpAu/Doq
T5wJgkiIrGLhWdHg2swKao1Idc7fXu8CIFTzabATy83YtDE3YRm4MZQ9A7J2/lK2
jpo89qkmXUEr
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMuzyXz1vAzbD2YguE20tet9D+lEj1RBxJd87dL1kf9HoAoGCCqGSM49
AwEHoUQDQgAEWSzp8CExFyvIOQe3M11H5wSSdqYJVbf48wi+Vo+cKKhdGOBC2K3K
NxtMivU/qQQJ+Z0s8m8WM9fMB/Hw/ldsWA==
-----END EC PRIVATE KEY-----
"""

PY2 = sys.version_info[0] == 2
#: Python 2.7 finds addresses in certificates only with a package that may not be there.
HOST = "localhost" if PY2 else "127.0.0.1"

#: How long the doctor's server takes for an answer, trial by trial, until the verdict is clear.
DELAYS_S = (0.4, 0.4, 0.8, 1.6)
#: From one heartbeat to the next, when nothing blocks the loop.
BEAT_S = 0.01
#: Two requests that follow each other reach an effective concurrency (n x delay / wall) of at most
#: 1 on any machine, and two at once reach 2; noise only makes it smaller.
AT_ONCE_FROM = 1.5
ONE_BY_ONE_TO = 1.02
#: A heartbeat that misses this part of a delay stood still for the answer.
STOOD_STILL_FROM = 0.9
RAN_ON_TO = 0.5

#: How often a single load is timed.
TURNS = 11
#: After so long, what is only nice to know is left out.
ENOUGH_S = 7.0
MOST_REQUESTS = 20

BLOCKED, FREE, UNPATCHED = "blocked", "free", "not patched"
CANNOT_TELL, DOES_NOT_APPLY = "cannot tell", "does not apply"
VERSION = "1.2.0"

#: Of loads: the same certificates again and again; not so; imports alone cannot tell; and nothing
#: was seen that could load any.
REPEATED, ONCE, UNCOUNTED, UNSEEN = "repeated", "not repeated", "not counted", "nothing seen"
#: Of handshakes; of loads under a running asyncio loop; of contexts that are alive at once.
ONE_AT_A_TIME, NOT_IN_A_ROW = "one at a time", "at once"
HELD_UP = "held up"
ONE_FOR_EACH, FEW = "one for each client", "few"
#: What contexts that the program makes itself are called, where others are told by their client.
ITS_OWN = "the program's own contexts"
#: The exit status that goes with a verdict; with all others, 0.
STATUS = {BLOCKED: 1, REPEATED: 1, CANNOT_TELL: 2, UNSEEN: 2}
STATUS.update({ONE_AT_A_TIME: 1, HELD_UP: 1, ONE_FOR_EACH: 1})
#: So many loads that were not needed are an illness, if they take their share of the CPU.
TOO_MANY_FROM = 2
#: A loop that was kept from others for so long in all was blocked.
LOOP_BLOCKED_FROM_S = 0.1

#: Where the book is that the doctor comes from: as _config.yml has it, when this is built. Empty
#: while it is published nowhere.
ADDRESS = ""

#: What is imported by this name connects by TLS of its own, which neither ssl nor pyOpenSSL sees.
OWN_TLS = {
    "psycopg2": "psycopg2", "psycopg": "psycopg",
    "pycurl": "pycurl", "curl_cffi": "curl_cffi", "grpc": "grpc", "oracledb": "oracledb",
    "cx_Oracle": "cx_Oracle", "MySQLdb": "mysqlclient", "_mysql_connector": "mysql-connector",
    "mariadb": "mariadb", "pymssql": "pymssql", "pyodbc": "pyodbc", "ibm_db": "ibm_db",
    "confluent_kafka": "confluent-kafka", "couchbase": "couchbase", "pulsar": "pulsar-client",
    "aerospike": "aerospike", "pygit2": "pygit2", "temporalio": "temporalio", "primp": "primp",
    "rnet": "rnet", "pyreqwest": "pyreqwest", "tls_client": "tls_client", "obstore": "obstore",
    "deltalake": "deltalake", "M2Crypto": "M2Crypto", "aioquic": "aioquic",
    "glide": "glide", "adbc_driver_postgresql": "adbc_driver_postgresql",
}  # fmt: skip

#: Empty where this is read from standard input.
OWN_FILE = globals().get("__file__") or ""
OWN_FILE = OWN_FILE and os.path.abspath(OWN_FILE).replace(".pyc", ".py").replace(".pyo", ".py")

clock = getattr(time, "perf_counter", time.time)
cpu_clock = getattr(time, "thread_time", None) or getattr(time, "process_time", None)
cpu_clock = cpu_clock or getattr(time, "clock", time.time)


#: What `--fail-on` knows: the question whose worst answer it is.
FAILS = {
    "blocked": "event loop", "loads": "certificate loads", "loop-loads": "loads on the loop",
    "handshakes": "handshakes", "contexts": "contexts",
}  # fmt: skip


class Trouble(Exception):
    """Why the doctor cannot tell; the text says what to do next."""


#: Options that take a number: (kind, default, most); they begin above 0.
NUMBERS = {
    "share": (float, 5.0, 100),
    "seconds": (float, 5.0, 60),
    "patience": (int, None, 86400),
}


#: So long an examination may take where nobody says how long. A run takes what it takes.
PATIENCE_S = 90


def defaults():
    spec = {"program": None, "arguments": [], "json": False, "url": None, "attach": None}
    spec.update(run=False, module=False, python=None, github=False, fail_on=sorted(FAILS))
    spec.update(again=False, changes=[])
    return dict(spec, **dict((name, default) for name, (_, default, _) in NUMBERS.items()))


# ------------------------------------------------------------------------------------------- words


def short(path):
    """A file's name from site-packages, the standard library or the current folder on."""
    path, here = [readable(each).replace("\\", "/") for each in (path, os.getcwd())]
    path = re.sub(r"^.*/((site|dist)-packages|lib(64)?/python\d+\.\d+)/", "", path)
    return path[len(here) + 1 :] if path.startswith(here + "/") else path


def readable(value):
    """A value as text for a report, also where Python 2.7 has bytes, or text that it cannot say."""
    try:
        text = str(value)
    except Exception:
        text = repr(value)
    return text.decode("utf-8", "replace") if PY2 else text


def told(error):
    """An exception in one line: its kind, and what the innermost one says."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), getattr(error, "__cause__", None)]
        inside = [each for each in inside + list(error.args) if isinstance(each, Exception)]
        if not inside:
            break
        error = inside[0]
    text = " ".join(readable(error).split())
    return "%s: %s" % (type(error).__name__, text[:200]) if text else type(error).__name__


def span(pair, digits=1):
    return "%.*f to %.*f" % (digits, pair[0], digits, pair[1])


def wrapped(text, label="  "):
    """A text in lines: in a column beside its label, or a little deeper from the second line on."""
    return textwrap.fill(
        text, 88, initial_indent=label,
        subsequent_indent=" " * len(label) if label.strip() else label + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def say(text, stream=None):
    """One line for people; where the terminal cannot show a letter, in ASCII."""
    stream = stream or sys.stderr or sys.__stderr__
    try:
        stream.write(text + "\n")
    except UnicodeError:
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii") + "\n")
    stream.flush()


def several(number, thing):
    """A number of things: "1 load", "2 loads"."""
    return "%d %s%s" % (number, thing, "" if number == 1 else "s")


def times(number):
    return {1: "once", 2: "twice"}.get(number, "%d times" % number)


# ----------------------------------------------------------------------------------- the processes


def begin(*arguments, **streams):
    """Start this file again as a process of its own, with the options of this Python. environ: its
    environment, if not this one's. Raises Trouble where it cannot be started."""
    import subprocess

    check_start()
    options = getattr(subprocess, "_args_from_interpreter_flags", lambda: [])()
    environ = streams.pop("environ", None) or dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable] + options + [OWN_FILE] + list(arguments)
    return subprocess.Popen(command, close_fds=True, env=environ, **streams)


def check_start():
    """Raise Trouble where this process has no Python that could read this file."""
    python = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or "py" not in python:
        # A frozen program would start itself, and that would start itself.
        raise Trouble(
            "this process is no Python that could run the doctor a second time (%s), and it needs "
            "one for its server: run the program with a Python, and the doctor with the same"
            % ("it is frozen" if getattr(sys, "frozen", False) else python or "it has no name")
        )
    if not os.path.isfile(OWN_FILE):
        raise Trouble(
            "the doctor starts itself again from its file, and there is none: save it as "
            "doctor.py, and run `python doctor.py`"
        )


def end_group(group):
    """End all that a process group still runs; of a negative number, that one process."""
    try:
        if group and group < 0:
            os.kill(-group, signal.SIGTERM)
        elif group and hasattr(os, "killpg"):
            os.killpg(group, signal.SIGKILL)
    except OSError:
        pass


# --------------------------------------------------------------------------- the server of its own


def start_server():
    """The server in a process of its own, and its address as `serve` says it. Raises Trouble."""
    import subprocess

    process = begin("--serve", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise Trouble(
            "the doctor's own server did not start (its reason stands above): "
            "is this Python built with ssl and threads?"
        )
    address = json.loads(line.decode("ascii"))
    if "trouble" in address:
        process.communicate()
        raise Trouble(address["trouble"])
    return process, address


def needed(address):
    """The address of the server. Raises Trouble where it could not listen."""
    if address["https"] is None:
        raise Trouble(
            "the doctor cannot listen on 127.0.0.1 (%(why)s), and its trials need that: allow it, "
            "or count alone, with `doctor.py run -- ...`" % address
        )
    return address


def dismiss(server):
    """End the server of one's own, if it has not ended by itself."""
    try:
        server.communicate(b"0\n")  # no group is left to be ended
    except EnvironmentError:  # what could not be written to it before is tried again, in vain
        server.kill()
        server.wait()


def serve():
    """A TLS server and a plain one, until standard input ends: then everything of it is gone.

    Says {"https": port, "http": port, "ca": path} on standard output. A number on a line of
    standard input is the process group of the examined program, which goes with it.
    """
    import shutil
    import socket
    import tempfile

    # Whoever started this decides when it ends: it keeps what was counted when a signal goes to the
    # doctor's whole group, as from `timeout`.
    if hasattr(os, "setsid") and os.getpid() != os.getpgrp():
        os.setsid()
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        folder, group = tempfile.mkdtemp(prefix="doctor-"), None
    except EnvironmentError as error:
        text = "there is no folder for temporary files (%s): name one, as TMPDIR=/a/folder"
        print(json.dumps({"trouble": text % told(error)}))
        return 2
    try:
        ca, both = [os.path.join(folder, name) for name in ("ca.pem", "server.pem")]
        for path, text in ((ca, CERTIFICATE), (both, CERTIFICATE + KEY)):
            with open(path, "w") as file:
                file.write(text)
        address = {"folder": folder, "ca": ca, "https": None, "http": None}
        try:
            ports = {"https": listen(both), "http": listen(None)}
            for port in ports.values():  # one can listen where nobody can connect
                socket.create_connection(("127.0.0.1", port), 5).close()
            address.update(ports)
        except EnvironmentError as error:
            address["why"] = told(error)
        print(json.dumps(address))
        sys.stdout.flush()
        for line in iter(sys.stdin.readline, ""):
            group = int(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        end_group(group)
    os._exit(0)  # the threads that serve would be sorry to see their modules go


def listen(certificate_and_key):
    """Serve in threads, with TLS or (None) without: the port."""
    import ssl
    import threading

    Listener, Answers = server_classes()
    server = Listener(("127.0.0.1", 0), Answers)
    if certificate_and_key:
        context = own_context(ssl)(getattr(ssl, "PROTOCOL_TLS_SERVER", ssl.PROTOCOL_SSLv23))
        if PY2:
            context.set_ecdh_curve("prime256v1")
        context.load_cert_chain(certificate_and_key)
        if hasattr(context, "num_tickets"):
            context.num_tickets = 0  # each handshake is a full one
        # The handshake belongs into the thread of each connection.
        options = {"server_side": True, "do_handshake_on_connect": False}
        server.socket = context.wrap_socket(server.socket, **options)
    serving = threading.Thread(target=server.serve_forever)
    serving.daemon = True
    serving.start()
    return server.server_address[1]


def server_classes():
    """GET /SECONDS/TRIAL takes so long, and is told the most requests of that trial that the server
    had in hand at once. After a trial "last..." the connection is closed."""
    import threading

    try:
        from http.server import BaseHTTPRequestHandler
        from socketserver import ThreadingTCPServer
    except ImportError:
        from BaseHTTPServer import BaseHTTPRequestHandler
        from SocketServer import ThreadingTCPServer
    in_hand, lock = {}, threading.Lock()

    def count(trial, change):
        with lock:
            now, peak = in_hand.get(trial, (0, 0))
            in_hand[trial] = now + change, max(peak, now + change)
            return in_hand[trial][1]

    class Answers(BaseHTTPRequestHandler):
        protocol_version, timeout, wbufsize = "HTTP/1.1", 60, -1
        log_message = lambda *_: None  # noqa: E731

        def do_GET(self):
            _, seconds, trial = self.path.partition("?")[0].split("/")
            count(trial, +1)
            time.sleep(float(seconds))
            body = json.dumps({"trial": trial, "peak": count(trial, -1)}).encode("ascii")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close" if trial.startswith("last") else "keep-alive")
            self.end_headers()
            self.wfile.write(body)

    class Listener(ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 64
        handle_error = lambda *_: None  # noqa: E731  # the client went away, or does not trust us

    return Listener, Answers


class Server(object):
    """The doctor's server, as the examined process sees it."""

    def __init__(self, address):
        self.address, self.ca, self._trials = address, address["ca"], 0

    def url(self, scheme, delay_s, trial):
        return "%s://%s:%d/%s/%s" % (scheme, HOST, self.address[scheme], delay_s, trial)

    def new_trial(self):
        self._trials += 1  # others may use the same server: the number has to be nobody else's
        return "%d-%d" % (os.getpid(), self._trials)


# -------------------------------------------------------------------- what the imports left behind


#: What a report names the provider of: (what, module, attribute).
PROVIDED = (
    ("socket.socket", "socket", "socket"),
    ("ssl.SSLContext", "ssl", "SSLContext"),
    ("urllib3's SSLContext", "urllib3.util.ssl_", "SSLContext"),
    ("select.poll", "select", "poll"),
    ("pyOpenSSL's Connection", "OpenSSL.SSL", "Connection"),
)

#: Folders that were looked into -> what was installed there (`installed_in`).
INSTALLED = {}


def provides():
    rows = []
    for what, module, attribute in PROVIDED:
        if loaded(module):
            found = getattr(loaded(module), attribute, None)
            by = "nobody: it is gone" if found is None else provider(found)
            rows.append({"name": what, "by": by, "class": found and readable(found)})
    return rows


def provider(value):
    """Who made a class or function: gevent, eventlet, pyOpenSSL, the standard library, a module."""
    module = str(getattr(value, "__module__", "") or "")
    first = module.split(".")[0]
    if "contrib.pyopenssl" in module or first == "OpenSSL":
        return "pyOpenSSL"
    if first in ("ssl", "_ssl", "socket", "_socket", "select"):
        return "the standard library"
    return first or "unknown"


#: A module that is there already, or None. (A None in sys.modules forbids its import.)
loaded = sys.modules.get


def bring(module):
    """Import a library that the program has not; whether it is there."""
    try:
        __import__(module)
        return True
    except Exception:
        return False


def urllib3_module(name):
    return loaded("urllib3." + name) or loaded("requests.packages.urllib3." + name)


def injected():
    """Whether urllib3 makes its contexts with pyOpenSSL for everybody."""
    context = getattr(urllib3_module("util.ssl_"), "SSLContext", None)
    return str(getattr(context, "__module__", "")).endswith("contrib.pyopenssl")


def own_context(ssl):
    """The SSLContext that ssl itself makes: gevent's and truststore's, which may stand in its
    place (a .pth file injects truststore into every process), are made of it."""
    return [each for each in ssl.SSLContext.__mro__ if each.__module__ == "ssl"][-1]


def openssl():
    import ssl

    found = {"ssl": ssl.OPENSSL_VERSION, "pyOpenSSL": None}
    pyopenssl = loaded("OpenSSL.SSL")
    if pyopenssl:
        version = getattr(pyopenssl, "OpenSSL_version", None) or pyopenssl.SSLeay_version
        found["pyOpenSSL"] = version(0).decode("ascii")  # 0: SSLEAY_VERSION
    found["loads"] = found["pyOpenSSL"] if injected() else found["ssl"]
    return found


def is_library(path):
    library = os.path.dirname(os.path.abspath(os.__file__))
    return path.startswith(library) or is_package(path)


def is_package(path):
    """Whether a file was installed: into site-packages, or elsewhere (pip install --target) with
    what an installer leaves beside its package."""
    if "site-packages" in path or "dist-packages" in path:
        return True
    folder, name = os.path.split(os.path.splitext(path)[0])
    while name:
        if name.lower() in installed_in(folder):
            return True
        folder, name = os.path.split(folder)
    return False


def installed_in(folder):
    """The packages and modules that were installed into a folder, in small letters."""
    if folder not in INSTALLED:
        found = set()
        for name in folders_in(folder):
            if name.endswith(".dist-info"):
                found.add(name.partition("-")[0].lower())
                found.update(top_level(os.path.join(folder, name)))
        INSTALLED[folder] = found
    return INSTALLED[folder]


def folders_in(folder):
    try:
        return os.listdir(folder or ".")
    except (OSError, UnicodeError):  # such as one in an archive
        return []


def top_level(folder):
    """What a package says is imported of it (google-auth: google), in small letters."""
    try:
        with open(os.path.join(folder, "top_level.txt")) as file:
            return file.read().lower().split()
    except (IOError, OSError, UnicodeError):
        return []


def is_installed(package):
    return any(os.path.isdir(os.path.join(folder or ".", package)) for folder in sys.path)


# --------------------------------------------------------------------- the program, in its process


class TooLong(BaseException):
    pass


def end_after(seconds, error=None):
    """Have this process ended after so long, or an error raised in it, where there are alarms."""

    def stop(*_):
        raise error

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, stop if error else signal.SIG_DFL)
        signal.alarm(seconds)


def is_script(program):
    return program.endswith(".py") or os.path.isfile(program)


def import_program(program, arguments):
    """Import a module, or run a script under another name than __main__."""
    if PY2:  # whose command lines are bytes
        program, arguments = program.encode("utf-8"), [each.encode("utf-8") for each in arguments]
    sys.argv = [program] + list(arguments)
    path = os.path.abspath(program)
    if not (getattr(sys.flags, "isolated", 0) or getattr(sys.flags, "safe_path", 0)):
        sys.path[0] = os.path.dirname(path) if is_script(program) else os.getcwd()
    if not is_script(program):
        __import__(program.partition(":")[0])
        return
    module = type(sys)("__program__")
    module.__file__ = path
    sys.modules["__program__"] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", 0, True)
    exec(code, module.__dict__)


def trouble_of(error, spec, phase):
    """What the import of the program ended with, and what to do, in a sentence or two."""
    if phase == "examination":
        sys.__excepthook__(*sys.exc_info())
        return "the doctor stumbled itself: %s (its traceback stands above)" % told(error)
    name, place, trace = spec["program"], "", sys.exc_info()[2]
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path != OWN_FILE and not path.startswith("<"):
            place = ", at %s:%d" % (short(path), trace.tb_lineno)
        trace = trace.tb_next
    behind = 'behind `if __name__ == "__main__":`'
    if isinstance(error, TooLong):
        what = "was still in its imports after %d s%s" % (spec["patience"], place)
        to_do = "Name a module that only imports, or put the work %s" % behind
    elif isinstance(error, SystemExit):
        what = "called sys.exit(%r) in its imports%s, " % (error.code, place)
        what += "so its other imports were not seen"
        to_do = "Put that %s, or name a module that only imports" % behind
    else:
        python = os.path.basename(sys.executable or "python")
        start = name if is_script(name) else '-c "import %s"' % name.partition(":")[0]
        what = "crashed in its imports%s: %s" % (place, told(error))
        to_do = "Mend that first: `%s %s` has to get through" % (python, start)
    return "%s %s. %s." % (name, what, to_do)


# ------------------------------------------------------------------------------------- the clients


# A session of each kind: Kind(module, ca or None, ...). With ca, a path of certificates, it trusts
# these alone and goes past all proxies; without, it is as the library makes it.
# ask(url, method, ...): (status, body, class of the socket or None, HTTP version).


class Requests(object):
    """A session of requests or niquests; mount: what makes its adapter for https."""

    def __init__(self, module, ca=None, mount=None):
        known = getattr(module.Session.__init__, "__code__", None)
        # niquests would ask the authorities about each certificate, and nobody asked for that.
        quiet = "revocation_configuration" in getattr(known, "co_varnames", ())
        self.session = module.Session(**({"revocation_configuration": None} if quiet else {}))
        self.options = {"stream": True, "allow_redirects": False}
        if ca:
            self.session.trust_env, self.options["verify"] = False, ca
        self.close = self.session.close
        if mount:
            self.session.mount("https://", mount())
            # A program's adapter may have connections that it goes on using.
            self.close = lambda: None

    def ask(self, url, method="GET", **options):
        response = self.session.request(method, url, **dict(self.options, **options))
        kind = socket_of(response.raw)
        return response.status_code, response.content, kind, response.raw.version


class Urllib3(object):
    def __init__(self, module, ca=None):
        trust = {"cert_reqs": "CERT_REQUIRED", "ca_certs": ca} if ca else {}
        self.pool = module.PoolManager(**trust)
        self.close = self.pool.clear

    def ask(self, url, method="GET", **options):
        options.update(retries=False, redirect=False, preload_content=False)
        response = self.pool.request(method, url, **options)
        kind = socket_of(response)
        return response.status, response.read(), kind, response.version


class Httpx(object):
    def __init__(self, module, ca=None, **options):
        if ca:
            import ssl

            options.update(verify=ssl.create_default_context(cafile=ca), trust_env=False)
        self.client = module.Client(**options)
        self.close = self.client.close
        # The older ones follow redirects unless they are told otherwise.
        follows = hasattr(self.client, "follow_redirects")
        self.options = {} if follows else {"allow_redirects": False}

    def ask(self, url, method="GET", **options):
        response = self.client.request(method, url, **dict(self.options, **options))
        return response.status_code, response.content, None, response.http_version


class GeventHttpClient(object):
    """It knows HTTP/1.1 alone. factory: what makes its TLS contexts, where not its default."""

    def __init__(self, module, ca=None, factory=None):
        self.module, self.client, self.close = module, None, lambda: None
        self.trust = {"ssl_options": {"ca_certs": ca}, "ssl_context_factory": factory} if ca else {}

    def ask(self, url):
        if self.client is None:
            trust = self.trust if url.startswith("https") else {}
            self.client = self.module.HTTPClient.from_url(url, **trust)
            self.close = self.client.close
        response = self.client.get("/" + url.split("/", 3)[3])
        kind = class_of(getattr(response, "_sock", None))
        return response.status_code, response.read(), kind, "HTTP/1.1"


class HttpClient(object):
    """The standard library's http.client, or eventlet's copy of it, with the ssl that it holds."""

    def __init__(self, module, ca):
        self.module, self.ca, self.close = module, ca, lambda: None

    def ask(self, url):
        scheme, _, place, path = url.split("/", 3)
        if scheme == "https:":
            context = self.module.ssl.create_default_context(cafile=self.ca)
            connection = self.module.HTTPSConnection(place, context=context)
        else:
            connection = self.module.HTTPConnection(place)
        self.close = connection.close
        connection.request("GET", "/" + path)
        kind, response = class_of(connection.sock), connection.getresponse()
        return response.status, response.read(), kind, response.version


class Aiohttp(object):
    def __init__(self, module, ca=None):
        import asyncio

        loop = asyncio.new_event_loop()
        self.wait, self.end, self.module = loop.run_until_complete, loop.close, module
        self.session = module.ClientSession(loop=loop)

    def ask(self, url, method="GET", timeout=None):
        options = {"timeout": self.module.ClientTimeout(total=timeout)} if timeout else {}
        # As Python 2.7 has to be able to read it: without `async with` and `await`.
        response = self.wait(self.session.request(method, url, allow_redirects=False, **options))
        return response.status, self.wait(response.read()), None, "HTTP/%d.%d" % response.version

    def close(self):
        self.wait(self.session.close())
        self.end()


class Way(object):
    """A client, as the program has it. once: whether it has a `get` without a session; priced:
    whether a kept connection can be asked for; adapter: whether it goes through one of an own
    session of the program's."""

    once = priced = adapter = False

    def __init__(self, name, kind, module=None, options=(), **can):
        self.name, self.kind, self.module = name, kind, module or name
        self.options = dict(options)
        vars(self).update(can)

    def session(self, *ca):
        bring(self.module)
        return self.kind(sys.modules[self.module], *ca, **self.options)


#: Every client that the doctor knows, the likeliest first.
WAYS = (
    Way("requests", Requests, once=True, priced=True),
    Way("niquests", Requests, priced=True),
    Way("urllib3", Urllib3, priced=True),
    Way("httpx", Httpx, once=True),
    Way("geventhttpclient", GeventHttpClient),
    Way("aiohttp", Aiohttp),
)
STANDARD = Way("the standard library", HttpClient, "httplib" if PY2 else "http.client")
#: eventlet's urlopen goes through it, with nothing patched.
EVENTLETS = Way("eventlet's own http.client", HttpClient, "eventlet.green.http.client")


def topmost(names):
    """Names of clients, without urllib3 where requests or niquests stand on it."""
    on_it = {"requests", "niquests"} & set(names)
    return [name for name in names if name != "urllib3" or not on_it]


def class_of(value):
    """The name of a value's class with its module; None for None."""
    return value and "%s.%s" % (type(value).__module__, type(value).__name__)


def socket_of(response):
    """The name of the class of the socket below a urllib3 response; None where it is hidden."""
    connection = getattr(response, "_connection", None) or getattr(response, "connection", None)
    return class_of(getattr(connection, "sock", None))


def own_adapters():
    """Ways through the program's own https adapters, for each class that is not requests' own:
    of the sessions that are there now, and of a library that is imported for nothing else."""
    requests = loaded("requests")
    if not hasattr(requests, "Session"):
        return []
    stock, found, made = requests.adapters.HTTPAdapter, {}, []
    # One that sends in its own way might send elsewhere.
    sending = [name for name in dir(stock) if name == "send" or name.startswith("get_connection")]
    for each in gc.get_objects():
        if issubclass(type(each), requests.Session):  # isinstance would wake lazy objects up
            adapter = getattr(each, "adapters", {}).get("https://")
            kind = type(adapter)
            if kind is not stock and issubclass(kind, stock):
                if all(getattr(kind, name) == getattr(stock, name) for name in sending):
                    found.setdefault(kind, adapter)
    for kind, adapter in found.items():
        name = "requests with a session's %s" % kind.__name__
        its_own = {"mount": lambda adapter=adapter: adapter}
        made.append(Way(name, Requests, "requests", its_own, priced=True, adapter=True))
    x509 = getattr(loaded("requests_toolbelt.adapters.x509"), "X509Adapter", None)
    if x509 and x509 not in found:
        new = {"mount": lambda: x509(cert_bytes=CERTIFICATE.encode(), pk_bytes=KEY.encode())}
        made.append(Way("requests with requests_toolbelt's X509Adapter", Requests, "requests", new))
    return made[:3]


# ------------------------------------------------------------------ 1. does a read block the loop?


#: Event loops that patch, and the line that does it.
PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}


def find_loop():
    """(the module of the event loop that the program has, whether its sockets are the standard
    ones' stand-in); (None, False) where it has none."""
    provided = provider(getattr(loaded("socket"), "socket", None))
    here = [name for name in ("gevent", "eventlet") if loaded(name)]
    here.sort(key=lambda name: name != provided)  # who patched comes first
    return (loaded(here[0]), provided == here[0]) if here else (None, False)


def own_code_uses(package, program):
    """Whether a module of the program's own, and not only some library, holds a part of a package:
    a library may import gevent and leave it alone."""
    top = str(program).partition(".")[0]
    for name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None) or {}  # what stands there need not be a module
        path = names.get("__file__")
        if not hasattr(path, "lower") or OWN_FILE.startswith(os.path.splitext(path)[0] + "."):
            continue
        if is_library(path) and name.partition(".")[0] != top:
            continue
        for value in list(names.values()):
            origin = getattr(value, "__name__", None) if type(value) is type(sys) else None
            origin = origin or getattr(type(value), "__module__", None)
            holds = [origin, vars(value).get("__module__") if isinstance(value, type) else None]
            if any(str(each).partition(".")[0] == package for each in holds):
                return True
    return False


def ask(way, server, scheme, delay_s, trial):
    """One request over a new connection: (the trial's peak in the server's hand, socket class).

    Raises Trouble for any answer but the right one: a failed request is no timing.
    """
    session = way.session(server.ca)
    try:
        status, body, kind, _ = session.ask(server.url(scheme, delay_s, trial))
    finally:
        session.close()
    answer = json.loads(body.decode("ascii")) if status == 200 else {}
    if answer.get("trial") != trial:
        raise Trouble("the doctor's server was asked, and something else answered (%s)" % status)
    return answer["peak"], kind


def one_trial(loop, way, server, scheme, delay_s, n):
    """n greenlets with a request each, and one whose heart beats as often as the event loop lets
    it: what happened, as a dictionary. longest_gap_s: by how much the worst beat came late."""
    trial, peaks, errors, beats = server.new_trial(), [], [], [clock()]

    def one():
        try:
            peaks.append(ask(way, server, scheme, delay_s, trial)[0])
        except Exception as error:
            errors.append(told(error))

    def beat():
        while len(peaks + errors) < n:
            loop.sleep(BEAT_S)
            beats.append(clock())

    loop.spawn(beat)
    for task in [loop.spawn(one) for _ in range(n)]:
        (task.join if loop.__name__ == "gevent" else task.wait)()
    beats.append(clock())
    wall_s = beats[-1] - beats[0]
    gaps = [later - before - BEAT_S for before, later in zip(beats, beats[1:])]  # noqa: RUF007
    return dict(
        requests=n, delay_s=delay_s, wall_s=round(wall_s, 4),
        effective_concurrency=round(n * delay_s / wall_s, 3),
        peak_in_flight=max(peaks + [0]), longest_gap_s=round(max(gaps + [0.0]), 4),
        error=errors[0] if errors else None,
    )  # fmt: skip


def verdict_of(trials):
    """BLOCKED, FREE, or None while the trials do not settle it."""
    if all(each["requests"] > 1 for each in trials):
        if any(each["effective_concurrency"] >= AT_ONCE_FROM for each in trials):
            return FREE  # no series of requests reaches that, whatever the machine is busy with
    elif any(each["longest_gap_s"] < RAN_ON_TO * each["delay_s"] for each in trials):
        return FREE
    stood_still = [
        each["peak_in_flight"] == 1
        and each["longest_gap_s"] >= STOOD_STILL_FROM * each["delay_s"]
        and (each["requests"] == 1 or each["effective_concurrency"] <= ONE_BY_ONE_TO)
        for each in trials
    ]
    return BLOCKED if len(trials) >= 2 and all(stood_still) else None


def try_out(loop, way, server, scheme, n=2):
    """Trials until they settle it: {"verdict": BLOCKED, FREE or CANNOT_TELL, "trials", "error"}."""
    trials, verdict, error = [], None, None
    for delay_s in DELAYS_S:
        trial = one_trial(loop, way, server, scheme, delay_s, n)
        error = trial["error"]
        if error and n > 1:
            # Some adapters cannot make two connections. One is enough for a heartbeat.
            alone = try_out(loop, way, server, scheme, 1)
            return dict(alone, error=alone["error"] and error)
        if error:
            break
        trials.append(trial)
        verdict = verdict_of(trials)
        if verdict:
            break
    return {"verdict": verdict or CANNOT_TELL, "trials": trials, "error": error}


def check_way(loop, patched, way, server, imported):
    """Does a TLS read of this client block the loop? With plain HTTP as the control."""
    row = {"client": way.name, "imported": imported, "socket": None, "https": None, "http": None}
    try:
        row["socket"] = ask(way, server, "https", 0, server.new_trial())[1]
        row["https"] = try_out(loop, way, server, "https")
        row["http"] = try_out(loop, way, server, "http")
    except Exception as error:
        return dict(row, verdict=CANNOT_TELL, error=told(error))
    secure, plain = row["https"]["verdict"], row["http"]["verdict"]
    row["error"] = row["https"]["error"] or row["http"]["error"]
    row["verdict"] = secure
    if secure == BLOCKED and plain != FREE:
        row["verdict"] = CANNOT_TELL if patched or plain != BLOCKED else UNPATCHED
    return row


def check_loop(loop, patched, server, imported, watch):
    """(way, row of `check_way`) for each client that the program imported; for a stand-in where it
    imported none."""
    known = [way for way in WAYS if way.kind is not Aiohttp]  # that has a loop of its own
    chosen = [way for way in known if way.module in topmost(imported)]
    if loaded(EVENTLETS.module):
        chosen.append(EVENTLETS)
    chosen = chosen[:3] + own_adapters()
    stand_ins = [way for way in known[:3] if not chosen and watch and bring(way.module)]
    ways = chosen or (stand_ins + [STANDARD])[:1]
    return [(way, check_way(loop, patched, way, server, bool(chosen))) for way in ways]


def try_cures(loop, way, server):
    """What frees the loop of a way that is blocked, tried in this very process, one after the
    other: rows of {"cure", "verdict", "wall_s"}. The process is not the same afterwards."""
    rows = []

    def note(cure, way=way):
        found = try_out(loop, way, server, "https")
        wall_s = min([each["wall_s"] for each in found["trials"]] or [None])
        rows.append({"cure": cure, "verdict": found["verdict"], "wall_s": wall_s})

    if injected():
        pyopenssl = urllib3_module("contrib.pyopenssl")
        pyopenssl.extract_from_urllib3()
        note("extract_from_urllib3()")
        pyopenssl.inject_into_urllib3()
    if way.name == "geventhttpclient":
        note("gevent's SSLContext", Way(way.name, way.kind, options={"factory": gevents_context}))
    elif loop.__name__ == "gevent":
        from gevent import monkey

        if not monkey.is_module_patched("select"):
            monkey.patch_select()
            note("patch_select()")
    return rows


def gevents_context(cafile=None):
    """A context of gevent's own class, whatever has been patched."""
    import gevent.ssl

    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile)
    return context


def is_trapped():
    """Whether google-auth's adapter for client certificates would inject later: it is made here."""
    adapter = getattr(loaded("google.auth.transport.requests"), "_MutualTlsAdapter", None)
    if adapter is None or injected():
        return False
    try:
        adapter(CERTIFICATE.encode(), KEY.encode())
    except Exception:
        return False
    return injected()


# -------------------------------------------------------------- 2. what do certificate loads cost?


LOADS = ("load_verify_locations", "set_default_verify_paths")


class Watch(object):
    """Notes the processor milliseconds of each load of certificates, and where pyOpenSSL is
    injected, while in a `with` block.

    A profile function, so that nothing is replaced: to wrap a class of `ssl` one has to import it.
    Imports take about twice as long under it; a load, which is one call, does not.
    """

    def __init__(self):
        self.loads, self.injections, self._depth = [], [], 0
        names = ("no_proxy", "NO_PROXY")
        self.environ = dict((name, os.environ[name]) for name in names if name in os.environ)

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._before)

    def _see(self, frame, event, arg):
        if event.startswith("c_"):
            name = getattr(arg, "__name__", None)
            is_load = name in LOADS
        else:
            name = frame.f_code.co_name
            # pyOpenSSL's are Python functions, and its default falls back to the other.
            is_load = name in LOADS and frame.f_globals.get("__name__") == "OpenSSL.SSL"
            if event == "call" and name == "inject_into_urllib3":
                self.injections.append(caller(frame.f_back))
        if is_load and event.endswith("call"):
            self._depth += 1
            if self._depth == 1:
                self._began = cpu_clock()
        elif is_load:
            self._depth -= 1
            if self._depth == 0:
                self.loads.append(1000 * (cpu_clock() - self._began))


def caller(frame):
    """{"file", "line", "text", "from"} of who calls; from: the program's own line above it."""
    path, line = frame.f_code.co_filename, frame.f_lineno
    who = {"file": short(path), "line": line, "from": None}
    who["text"] = readable(linecache.getline(path, line)).strip()
    while frame is not None and frame.f_code.co_filename != OWN_FILE:
        path = frame.f_code.co_filename
        if not path.startswith("<") and not is_library(path):
            who["from"] = "%s:%d" % (short(path), frame.f_lineno)
            break
        frame = frame.f_back
    return who


def loads_of(work):
    """(the processor milliseconds of each load, the error or None) of one piece of work."""
    error = None
    with Watch() as watch:
        try:
            work()
        except Exception as caught:
            error = caught
    return watch.loads, error


def count_loads(way, server):
    """How often certificates are loaded by three connections of one session, and by one call
    without a session: {"client", "by_connection", "made", "by_call", "error"}.

    The connections are made with the trust that the library has by default, so they end at the
    certificate of the doctor's server, after the loads. (One that does not verify gets an answer.)
    """
    row = {"client": way.name, "by_connection": [], "by_call": None, "error": None, "each_ms": []}
    url = server.url("https", 0, "last" + server.new_trial())
    with Watch() as watch:
        session = way.session()
    row["made"] = len(watch.loads)
    for _ in range(3):
        loads, error = loads_of(lambda: session.ask(url))
        row["by_connection"].append(len(loads))
        row["each_ms"] += [round(ms, 3) for ms in loads]
        if error and "certificate verify failed" not in told(error).lower():
            row["error"] = row["error"] or told(error)
    session.close()
    if way.once:
        row["by_call"] = len(loads_of(lambda: loaded(way.module).get(url))[0])
    return row


def check_loads(server, imported, watch, until):
    """One row of `count_loads` for each client that is here. What the program did not import comes
    last, in our own process alone, and if there is time."""
    rows, known = [], [way for way in own_adapters() if way.adapter]
    known += sorted(WAYS, key=lambda way: way.module not in imported)
    for way in known:
        its_own = way.module in imported
        if not its_own and (not watch or (imported and clock() > until)):
            continue
        with Watch() as importing:
            if not bring(way.module):
                continue
        try:
            row = count_loads(way, server)
        except Exception as error:
            row = {"client": way.name, "error": told(error), "by_call": None}
        row.update(imported=its_own, adapter=way.adapter, at_import=len(importing.loads))
        rows.append(row)
    return rows


def judged_rows(rows, program):
    """The rows of loads that count: of the clients that the program imported, or, where no program
    was named, of requests. A session's own adapter counts for requests as a whole."""
    own = [row for row in rows if row["imported"]]
    if not program:
        own = own or [row for row in rows if row["client"] == "requests"]
    own = [row for row in own if not (row["adapter"] and row["error"])]
    names = topmost([row["client"] for row in own])
    stock = "requests" if any(row["adapter"] for row in own) else None
    return [row for row in own if row["client"] in names and row["client"] != stock]


def bounds(values):
    """[least, most] without the very least and the very most: of eleven values those two have the
    median between them with a certainty of 98.8 %, whatever the noise looks like. Of fewer, all."""
    values = sorted(values)[1:-1] if len(values) >= TURNS else sorted(values)
    return [round(values[0], 2), round(values[-1], 2)]


def certificates_of_a_load():
    """How many there are where verify=True means a file; None where it means the system's."""
    try:
        variables = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if loaded("requests") else ()
        paths = [os.environ[name] for name in variables if os.environ.get(name)]
        known = [getattr(loaded(name), "certs", None) for name in ("requests", "niquests")]
        paths += [each.where() for each in known + [loaded("certifi")] if each]
        with open(paths[0], "rb") as file:
            return file.read().count(b"BEGIN CERTIFICATE")
    except Exception:
        return None


def cost_of_a_load(found, watch):
    """[least, most] milliseconds of one load, as the program or the clients here do it; if none of
    them does, into a new context of the standard library's."""
    import ssl

    spent = [ms for row in found["loads"] if row["imported"] for ms in row.get("each_ms", ())]
    spent = spent or (watch.loads if watch else [])
    spent = spent or [ms for row in found["loads"] for ms in row.get("each_ms", ())]
    spent = spent or loads_of(lambda: [ssl.create_default_context() for _ in range(TURNS)])[0]
    return bounds(spent) if spent else None


# ----------------------------------------------------- libraries between a program and its clients


#: Those that wrap a program's functions: none of them makes a client.
DECORATORS = frozenset(
    "pydantic wrapt tenacity functools decorator backoff retry retrying stamina cachetools "
    "typeguard beartype deprecated opentelemetry sentry_sdk ddtrace newrelic elasticapm".split()
)
#: What to keep of a library, and the keyword by which it takes a context or a client of one's own;
#: None: it takes neither.
LIBRARIES = {
    "openai": ("openai.OpenAI", "http_client"),
    "slack_sdk": ("slack_sdk.WebClient", "ssl"),
    "stripe": ("stripe.StripeClient", "http_client"),
    "boto3": ("boto3.client", None),
    "kubernetes": ("kubernetes.client.ApiClient", None),
    "redis": ("redis.Redis", None),
    "svix": ("svix.api.Svix", None),
    "websockets": ("websockets.sync.client.connect", "ssl"),
    "aiomqtt": ("aiomqtt.Client", "tls_context"),
    "aiohttp": ("aiohttp.TCPConnector", "ssl"),
    "httpx": ("httpx.Client", "verify"),
}


def is_decorator(package, codes):
    """Whether a package only wraps the program's functions: it is known for that, or all of its
    functions that were called take whatever they are given (*args, **kwargs)."""
    return package in DECORATORS or all(code.co_flags & 12 == 12 for code in codes)


def taken_by(library):
    """(how its client is kept, what is said of the context that it takes), of a library."""
    if library not in LIBRARIES:
        text = "Make one client of %s, and keep it; where it has none, see whether it takes one."
        return None, text % library
    maker, keyword = LIBRARIES[library]
    text = "Make one client of %s, and keep it" % library
    if keyword is None:
        return maker, text + " (it takes no context or client of yours)."
    return maker, text + " (it takes one of yours as %s=)." % keyword


# --------------------------------------------------- what a run did, from the events of its probes


#: So many requests, or exchanges, for each connection, and they are kept.
KEPT_FROM = 3
#: The loads of connections that are kept, in percent of the CPU.
KEPT_SHARE = 20
#: Loads hold a loop up that take so many milliseconds while others wait, and so many in a row.
HELD_UP_FROM_MS, HELD_UP_IN_A_ROW_FROM_MS = 20, 5
#: So many connections to one host that speaks HTTP/2 are too many: one would do.
TOO_MANY_H2_FROM = 3
#: So many times the limit, or as little of it, and a share is near it.
NEAR = 1.25
#: Fewer connections than these, when they are kept, are no illness: their loads do not grow.
KEPT_LOADS_FROM = 10
#: Handshakes wait for each other, where so many were wanted at once, never two were under way, and
#: they waited for one that was for so long in all.
WANTED_FROM = 3
WAITED_FROM_S = 0.2
#: So many contexts with the same certificates, alive at once in a process, are too many; so many
#: are, where each belongs to a connection that is kept, as requests has it.
CONTEXTS_FROM = 10
KEPT_CONTEXTS_FROM = 100


def counted(events):
    """The counts of a run, a dictionary, from what `Probes` noted, in the order of time.

    processes (that used TLS), cpu_ms (of all, from when their code begins, without compiled_ms, in
    which Python compiled modules: it does that once); contexts, loads, load_ms; needed: one load
    for each client, process and set of certificates; spare_ms: what the others took; connections
    (of clients that began a handshake), handshakes (that came through), failed, peak (handshakes
    under way at once in one process), under_loop (connections made under a running loop of asyncio
    or trio); blocked: of such loops, {"by" (asyncio or trio), "times", "s", "waiting_s" (while
    others waited), "clients", "at"}; silent: of all loops, {"by", "times", "s", "waiting_s" (while
    others waited), "clients", "at"} of turns that took long while their thread waited, whatever
    for; heartbeats: the loops that were looked at; own_tls: what was imported and brings TLS of its
    own; on_loop: of loads under such a loop, {"loads", "spare",
    "waiting" (while others waited), "ms", "held_ms" (of those), "longest_ms" (in a row), "at"};
    failures: [what a connection ended with, times]; handshake_ms (of CPU) and handshake_s (from
    begin to end) of those that ended; http2: rows of {"client", "host", "connections"}, where a
    host that speaks HTTP/2 was given several by one process; botocores: clients of botocore's;
    collected, dropped: contexts, and open connections, that were freed only when the doctor had
    Python collect; truststore: where it was injected; stood: of the loops of greenlets, {"fetched"
    (whether greenlets did, or the main program while some waited), "in_greenlets" (whether they
    did themselves), "waits" (that were long), "times" and "s" (through which the loop stood
    still), "clients", "at"}; sessions (of requests, that asked by HTTPS) and pools (of urllib3)
    that were made; open (connections at once, each process at its most); queue: of the handshakes
    of one context in one process, where they waited longest for each other from when their sockets
    were connected, {"by" (the module of its sockets' class), "wanted" and "peak" (at once),
    "handshakes", "waited_s" (while nothing was loaded into it), "behind_s" (of that, while one of
    another thread was under way)} or None; alive (contexts with the same certificates at once, in
    one process), context_mib (by which memory grew during loads); clients: a row of {"client",
    "through", "contexts", "default" (of these, made by create_default_context for the program's own
    code), "loads", "needed", "connections", "http" (whether the doctor knows the client of all
    these), "requests" (None where nobody tells), "exchanges" (of something sent and an answer, so
    many at least), "load_ms", "spare_ms", "kept", "alive", "at", "trusts", "by" (the modules of its
    contexts' classes), "awaits" (loads by clients of httpx that await), "full" (connections of
    urllib3's that were closed because their pool had no place for them), "evicted" (pools that were
    made again for a host, since their PoolManager keeps fewer than it has hosts), "size" and
    "wanted" (for each of the two, what such a pool or manager holds, and what was asked of it),
    "closed" (by "program" or "server": Connection: close), "closers" (how many of http.client's
    connections were ended so: each may connect again), "closed_at", "open", "peak" (handshakes at
    once) and "threads" (that made connections)} for each client and each library that called it,
    the one with the most loads first. kept: its connections are, for several requests each, or each
    beside the others.
    """
    rows, made, began, first, seen, spoken = {}, {}, {}, {}, set(), {}
    cpu, started, compiled, trial_ms, under_way, shaken, opened = {}, {}, {}, 0, {}, {}, {}
    loading, grown, programs, holding = {}, {}, set(), {}
    shaking, since_begun, multiplexed, latest = {}, {}, {}, {}
    unreached, reached = [], False
    total = dict(
        processes=0, cpu_ms=0, compiled_ms=0, contexts=0, loads=0, needed=0, load_ms=0, spare_ms=0,
        connections=0, handshakes=0, failed=0, peak=0, under_loop=0, injections=[],
        clients=[],
        blocked={"times": 0, "s": 0, "waiting_s": 0, "clients": [], "at": [], "by": "asyncio"},
        sessions=0, pools=0, uncounted=[], unprobed=[], alive=0, context_mib=0,
        stood=dict(fetched=False, in_greenlets=False, waits=0, times=0, s=0, clients=[], at=[]),
        on_loop={"loads": 0, "spare": 0, "waiting": 0, "ms": 0, "held_ms": 0,
                 "longest_ms": 0, "at": []},
        silent={"by": None, "times": 0, "s": 0, "waiting_s": 0, "clients": [], "at": []},
        heartbeats=[], own_tls=[], failures=[], truststore=[], handshake_ms=0, handshake_s=0,
        botocores=0, dropped=0, collected=0,
    )  # fmt: skip

    def row_of(who):
        key = who["client"], who["through"]
        if key not in rows:
            rows[key] = dict(
                client=key[0], through=key[1], contexts=0, default=0, loads=0, needed=0,
                connections=0, http=True, requests=None, exchanges=0, load_ms=0, spare_ms=0,
                alive=0, at=[], trusts=[], by=[], awaits=0, full=0, evicted=0, size={}, wanted={},
                open=0, threads=set(), peak=0, closed={}, closed_at=[], closers=set(),
            )  # fmt: skip
        return rows[key]

    for event in events:
        what, pid = event["is"], event["pid"]
        before, cpu[pid] = cpu.get(pid, 0), max(event["cpu"], cpu.get(pid, 0))
        begins, of = what in ("process", "start"), (pid, event.get("c"))
        known, compiled[pid] = compiled.get(pid, 0), event.get("compiled", 0)
        total["compiled_ms"] += 0 if begins else max(0, compiled[pid] - known)
        if begins:
            # Until here it was Python that began, and the doctor. (A program that another has taken
            # the place of had this process before.)
            started[pid] = started.get(pid, 0) + cpu[pid] - before
            programs.update([pid] if what == "start" else [])
        elif what == "trial":
            trial_ms += event["ms"]
        elif what == "context":
            made[of] = first[event["c"]] = event["who"]
            total["contexts"] += 1
            row = row_of(event["who"])
            row["contexts"] += 1
            row["default"] += event["default"]
        elif what == "load":
            made[of] = first[event["c"]] = event["who"]
            row, key = row_of(event["who"]), (pid, event["who"]["client"], event["trust"])
            for each in (row, total):
                each["loads"] += 1
                each["load_ms"] += event["ms"]
                each["needed"] += key not in seen
                each["spare_ms"] += event["ms"] if key in seen else 0
                each["alive"] = max(each["alive"], event["alive"])
            grown.setdefault(pid, []).append([event["since"], event["t"]] + event["kib"])
            loading.setdefault(of, []).append((event["since"], event["t"]))
            if event["loop"]:
                on_loop = total["on_loop"]
                on_loop["loads"] += 1
                on_loop["spare"] += key in seen
                on_loop["waiting"] += event["waiting"]
                on_loop["ms"] = round(on_loop["ms"] + event["ms"], 1)
                # Loads that follow each other hold the loop up as one.
                since, until = event["since"], event["t"]
                held = holding.get(pid)
                if held is None or since - held[1] > 0.001 * HELD_UP_IN_A_ROW_FROM_MS:
                    held = holding[pid] = [since, until]
                held[1] = until
                longest_ms = 1000 * (held[1] - held[0])
                if event["waiting"]:
                    on_loop["held_ms"] = round(on_loop["held_ms"] + event["ms"], 1)
                    on_loop["longest_ms"] = round(max(on_loop["longest_ms"], longest_ms), 1)
                note_place(on_loop["at"], event["who"]["at"])
            seen.add(key)
            row["awaits"] += bool(event["who"].get("awaits"))
            note_place(row["at"], event["who"]["at"])
            note_place(row["trusts"], event["trust"])
            note_place(row["by"], event["by"])
        elif what == "begin":
            # Made by a process that forked, or before anybody looked.
            who = made.get(of) or (of[1] and first.get(of[1])) or event["who"]
            began[pid, event["h"]] = {}
            total["connections"] += 1
            total["under_loop"] += bool(event["loop"])
            row = spoken[pid, event["h"]] = row_of(who)
            row["connections"] += 1
            latest[pid, event["who"]["client"]] = row
            row["http"] = row["http"] and event["http"]
            under_way[pid] = under_way.get(pid, 0) + 1
            total["peak"] = max(total["peak"], under_way[pid])
            opened[pid] = max(opened.get(pid, 0), event.get("open", 1))
            row["open"] = max(row["open"], event.get("open", 1))
            row["threads"].add(event.get("thread"))
            of_row = shaking.setdefault((pid, id(row)), set())
            of_row.add((pid, event["h"]))
            row["peak"] = max(row["peak"], len(of_row))
            since_begun[pid, event["h"]] = event["t"], of_row
            if event["since"] is not None:
                span = {name: event[name] for name in ("since", "t", "thread", "by")}
                began[pid, event["h"]] = dict(span, end=None)
                shaken.setdefault(of, []).append(began[pid, event["h"]])
        elif what == "end" and (pid, event["h"]) in began:
            began.pop((pid, event["h"]))["end"] = event["t"]
            total["handshakes" if event["ok"] else "failed"] += 1
            if not event["ok"]:
                note_place(total["failures"], event.get("why"))
            under_way[pid] -= 1
            begun, of_row = since_begun.pop((pid, event["h"]))
            of_row.discard((pid, event["h"]))
            total["handshake_ms"] += event.get("ms", 0)
            total["handshake_s"] += event["t"] - begun
            if event.get("alpn") == "h2" and event.get("host"):
                key = pid, spoken[pid, event["h"]]["client"], event["host"]
                multiplexed[key] = multiplexed.get(key, 0) + 1
        elif what == "exchange" and (pid, event["h"]) in spoken:
            spoken[pid, event["h"]]["exchanges"] += event["n"]
        elif what in ("full", "evicted"):
            row = row_of(made.get(of) or event["who"])
            row[what] += 1
            for name in ("size", "wanted"):
                row[name][what] = max(event[name], row[name].get(what, 0))
        elif what in ("session", "pool", "botocore"):
            total[what + "s"] += 1
        elif what == "request" and (of in made or event["c"] in first):
            row = row_of(made.get(of) or first[event["c"]])
            row["requests"] = 1 + (row["requests"] or 0)
        elif what == "block":
            blocked = total["blocked"]
            blocked["times"] += 1
            blocked["by"] = event["by"]
            blocked["s"] = round(blocked["s"] + event["s"], 4)
            blocked["waiting_s"] = round(blocked["waiting_s"] + event["waiting"] * event["s"], 4)
            note_place(blocked["clients"], event["who"]["client"])
            note_place(blocked["at"], event["who"]["at"])
        elif what == "silence":
            silent = total["silent"]
            silent["times"] += 1
            silent["by"] = event["by"]
            silent["s"] = round(silent["s"] + event["s"], 4)
            if event["waiting"]:
                silent["waiting_s"] = round(silent["waiting_s"] + event["s"], 4)
                note_place(silent["clients"], event["who"]["client"])
                note_place(silent["at"], event["who"]["at"])
        elif what == "closing":
            row = row_of(made.get(of) or event["who"])
            if not row["connections"]:  # its client got the program's own context
                row = latest.get((pid, event["who"]["client"]), row)
            row["closed"][event["by"]] = row["closed"].get(event["by"], 0) + 1
            note_place(row["closed_at"], event["who"]["at"])
            row["closers"].update([(pid, event["h"])] if event.get("h") else [])
        elif what == "collected":
            total["dropped"] += event["connections"]
            total["collected"] += event["contexts"]
        elif what == "failed":
            note_place(total["failures"], event["why"])
        elif what == "unreached":
            note_place(unreached, event["why"])
        elif what == "reached":
            reached = True
        elif what == "truststore":
            total["truststore"].append(event["where"])
        elif what == "heartbeat" and event["by"] not in total["heartbeats"]:
            total["heartbeats"].append(event["by"])
        elif what == "own tls" and event["name"] not in total["own_tls"]:
            total["own_tls"].append(event["name"])
        elif what == "greenlet":
            total["stood"]["fetched"] = True
            total["stood"]["in_greenlets"] |= event["itself"]
        elif what == "wait":
            stood = total["stood"]
            stood["waits"] += 1
            if event["stood"]:
                stood["times"] += 1
                stood["s"] = round(stood["s"] + event["s"], 4)
                note_place(stood["clients"], event["who"]["client"])
                note_place(stood["at"], event["who"]["at"])
        elif what == "injection":
            total["injections"].append(event["where"])
        elif what in ("uncounted", "unprobed"):
            total[what].append(event["why"])
    if not (reached or total["connections"]):  # else others than those that are counted were meant
        total["failures"] += unreached
    total["context_mib"] = sum(growth(spans) for spans in grown.values()) / 1024
    total["queue"], total["open"] = longest_queue(shaken, loading), sum(opened.values())
    total["processes"] = len(set(pid for pid, _ in made) | set(under_way) | programs)
    total["cpu_ms"] = sum(cpu[pid] - started.get(pid, 0) for pid in cpu) - trial_ms
    total["clients"] = sorted(rows.values(), key=lambda row: (-row["loads"], -row["connections"]))
    for each in total["clients"] + [total]:
        for name in ("load_ms", "spare_ms", "cpu_ms", "compiled_ms", "context_mib"):
            if name in each:
                each[name] = round(each[name], 1)
    whole_ms = max(total["cpu_ms"], total["spare_ms"], 0.1)
    total["share"] = round(100 * total["spare_ms"] / whole_ms, 1)
    total["handshake_ms"] = round(total["handshake_ms"], 1)
    total["handshake_s"] = round(total["handshake_s"], 3)
    most = {}  # another process has to connect for itself
    for (_, client, host), number in multiplexed.items():
        most[client, host] = max(number, most.get((client, host), 0))
    several = [(number,) + key for key, number in most.items() if number >= TOO_MANY_H2_FROM]
    total["http2"] = [
        {"client": client, "host": host, "connections": number}
        for number, client, host in sorted(several, key=lambda each: -each[0])
    ]
    for row in total["clients"]:
        row["threads"], row["closers"] = len(row["threads"]), len(row["closers"])
        row["kept"] = is_kept(row, total)
    ill = [row for row in total["clients"] if not row["kept"]]
    total["again"] = sum(row["loads"] - row["needed"] for row in ill)
    total["again_share"] = round(100 * sum(row["spare_ms"] for row in ill) / whole_ms, 1)
    return total


def is_kept(row, total):
    """Whether the connections of a row of `counted` are kept."""
    beside = row["connections"] <= total["open"]  # each was made beside the others
    # Threads that share a client have one each: one that finds no place in its pool is closed.
    if is_shared(row, total) and (beside or row["connections"] <= row["threads"]):
        return True
    several = KEPT_FROM * max(row["connections"], 1)
    if row["requests"]:
        return row["requests"] >= several
    # A visit to a mailbox takes several exchanges, too, so of what is no HTTP they do not suffice.
    return row["exchanges"] >= several and (row["http"] or beside)


def at_once(row):
    """How many requests of a row of `counted` were under way at once, as far as their handshakes
    tell: those, or the threads whose connections were open beside each other."""
    return max(1, row["peak"], min(row["threads"], row["open"], row["connections"]))


def wanting(row):
    """Of what the connections of a row of `counted` were closed for want: of "full" (places in a
    pool) and of "evicted" (pools), those that happened again and again."""
    # Where no connection had a second request, a server closes them, or nobody asked again.
    again = (row["requests"] or 0) > row["connections"]
    those = ["evicted", "full"] if again else ["evicted"]
    return [what for what in those if row[what] >= TOO_MANY_FROM]


def is_shared(row, total):
    """Whether connections of requests, urllib3 or botocore are those of far fewer sessions, pools
    or clients."""
    made = {
        "requests": total["sessions"], "urllib3": total["pools"], "botocore": total["botocores"]
    }.get(row["client"], 0)  # fmt: skip
    return 0 < 2 * made <= row["connections"]


def growth(spans):
    """By how many KiB the memory of a process grew in some spans of time, of [from, to, KiB before,
    KiB after]. What happens in several that overlap is one growth."""
    grown, until, before, after = 0, None, 0, 0
    for begin, end, least, most in sorted(spans):
        if until is None or begin > until:
            grown += max(0, after - before)
            until, before, after = end, least, most
        until, after = max(until, end), max(after, most)
    return grown + max(0, after - before)


def longest_queue(handshakes, loads):
    """Where handshakes waited longest for another of the same context, of
    {(process, context): [{"since", "t", "end", "thread", "by"}, ...]} and the spans of time in
    which it was loaded, {(process, context): [(from, to), ...]}: what `counted` has as "queue";
    None where there is none."""
    found = []
    for of, those in handshakes.items():
        those = sorted((each for each in those if each["end"]), key=lambda each: each["t"])
        wanted = most_at_once([(each["since"], each["end"]) for each in those])
        waited_s, behind_s, of_loads = 0, 0, sorted(loads.get(of, []))
        for number, each in enumerate(those):
            wait = each["since"], each["t"]
            last = bisect.bisect(of_loads, wait[1:])
            near = [load for load in of_loads[max(0, last - 200) : last] if load[1] > wait[0]]
            waited_s += seconds(wait, near)
            for other in those[max(0, number - 200) : number]:
                if other["thread"] != each["thread"]:
                    both = max(other["t"], wait[0]), min(other["end"], wait[1])
                    behind_s += seconds(both, near)
        found.append(dict(
            by=those[-1]["by"] if those else None, wanted=wanted, handshakes=len(those),
            peak=most_at_once([(each["t"], each["end"]) for each in those]),
            waited_s=round(waited_s, 3), behind_s=round(behind_s, 3),
        ))  # fmt: skip
    return max(found, key=lambda each: each["behind_s"]) if found else None


def seconds(span, loads):
    """How long a span of time is without the loads in it; those that overlap count twice."""
    begin, end = span
    inside = [min(end, to) - max(begin, since) for since, to in loads]
    return max(0, end - begin - sum(each for each in inside if each > 0))


def most_at_once(spans):
    """How many of some spans of time there were at once."""
    most = now = 0
    for _, step in sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans]):
        now += step
        most = max(most, now)
    return most


def note_place(places, place):
    """Count a place in a list of [place, times], which stays short."""
    for each in places:
        if each[0] == place:
            each[1] += 1
            return
    if place is not None and len(places) < 20:
        places.append([place, 1])


def verdict_on(counts, share):
    """REPEATED, ONCE or UNSEEN. share: above this part of the CPU, in percent, repeated loads are
    an illness.

    Where connections are kept there are no more loads than connections, however long the program
    runs: those have to take more.
    """
    if is_broken(counts):
        return UNSEEN
    again, again_share = avoidable(counts)
    if counts["again"] >= TOO_MANY_FROM and counts["again_share"] >= share:
        return REPEATED
    if again >= KEPT_LOADS_FROM and again_share >= KEPT_SHARE:
        return REPEATED
    return ONCE if counts["handshakes"] else UNSEEN


def avoidable(counts):
    """(how many loads were not needed, what they took of the CPU in percent), without those of
    clients of botocore that are kept: nobody can have them load less."""
    kept = [row for row in counts["clients"] if row["client"] == "botocore" and row["kept"]]
    loads = counts["loads"] - counts["needed"] - sum(row["loads"] - row["needed"] for row in kept)
    part = sum(row["spare_ms"] for row in kept) / max(counts["spare_ms"], 0.1) if kept else 0
    return loads, counts["share"] * (1 - part)


def is_broken(counts):
    """Whether none of a program's connections came through: then it has no fault of loads."""
    return bool(counts["failures"]) and not counts["handshakes"]


def limit_near(counts, share):
    """The limit of `verdict_on`, in percent, that this run came near; None where it came near none.
    What a run takes varies by some percent of itself, so that the next one may come out otherwise.
    """
    if is_broken(counts):
        return None
    of_again = counts["again"] >= TOO_MANY_FROM and counts["again_share"]
    if of_again and share / NEAR < of_again < share * NEAR:
        return share
    again, again_share = avoidable(counts)
    several = again >= KEPT_LOADS_FROM and of_again < share
    if several and KEPT_SHARE / NEAR < again_share < KEPT_SHARE * NEAR:
        return KEPT_SHARE
    return None


def verdict_on_handshakes(counts):
    """ONE_AT_A_TIME, NOT_IN_A_ROW, or DOES_NOT_APPLY where no two were under way or wanted."""
    queue = counts["queue"]
    if queue and queue["peak"] == 1 and queue["wanted"] >= WANTED_FROM:
        behind_s = queue["behind_s"]
        # Who waits more for something else, an answer of a proxy, say, or a processor, is not ill.
        if behind_s >= WAITED_FROM_S and behind_s >= queue["waited_s"] / 2:
            return ONE_AT_A_TIME
    return NOT_IN_A_ROW if counts["peak"] > 1 else DOES_NOT_APPLY


def verdict_on_loop(counts):
    """Of loads on an asyncio loop: HELD_UP, FREE, or DOES_NOT_APPLY where none ran."""
    on_loop = counts["on_loop"]
    in_a_row = on_loop["longest_ms"] >= HELD_UP_IN_A_ROW_FROM_MS
    long = on_loop["held_ms"] >= HELD_UP_FROM_MS and in_a_row
    if on_loop["spare"] >= TOO_MANY_FROM and long:
        return HELD_UP
    return FREE if counts["under_loop"] or on_loop["loads"] else DOES_NOT_APPLY


def verdict_on_contexts(counts):
    """ONE_FOR_EACH, FEW, or DOES_NOT_APPLY where no context has loaded anything."""
    for row in counts["clients"]:
        # Others could have one for all.
        of_connections = row["requests"] and (row["kept"] or is_shared(row, counts))
        if row["alive"] >= (KEPT_CONTEXTS_FROM if of_connections else CONTEXTS_FROM):
            return ONE_FOR_EACH
    return FEW if counts["loads"] else DOES_NOT_APPLY


# ----------------------- the heartbeat: how long an event loop stands still while the program runs


#: As they are before anybody patches.
sleep = time.sleep
#: What waits for so long in one turn of a loop is noted; a silence that goes on, each second.
SILENT_FROM_S = 0.05
NOTED_EACH_S = 1.0
#: From a look that comes later than so many beats no more is taken for a silence: perhaps the whole
#: process was stopped.
LATE_BEATS = 50
#: Of so many threads each is asked how long it wanted a processor.
MOST_THREADS = 64
#: Where the threads of loops are when nothing is to be done: (the end of a file's name, function).
RESTS = (
    ("/selectors.py", "select"), ("/windows_events.py", "_poll"), ("/gevent/hub.py", "run"),
    ("/eventlet/hubs/poll.py", "do_poll"), ("/eventlet/hubs/epolls.py", "do_poll"),
    ("/eventlet/hubs/poll.py", "wait"), ("/eventlet/hubs/selects.py", "wait"),
    ("/eventlet/hubs/hub.py", "run"),
)  # fmt: skip


class Turns(object):
    """A loop that counts its turns as it takes them."""

    def __init__(self, by, waits):
        self.by, self.waits, self.turns = by, waits, 0

    def turn(self):
        return self.turns


class Beats(object):
    """A loop that hides its turns: it is asked to count one, again and again.

    ask: has the loop call a function, from another thread.
    """

    def __init__(self, by, waits, ask):
        self.by, self.waits, self.ask = by, waits, ask
        self.turns, self.wanted = 0, 0

    def turn(self):
        if self.turns == self.wanted:
            self.wanted += 1
            try:
                self.ask(self.beat)
            except Exception:  # it is being closed
                self.turns = self.wanted
                raise
        return self.turns

    def beat(self):
        self.turns = self.wanted


class Greenlets(object):
    """The loop of a hub of gevent's."""

    by = "gevent"

    def __init__(self, hub):
        self.hub = weakref.ref(hub)

    def turn(self):
        return self.hub().loop.iteration

    def waits(self):
        loop = self.hub().loop
        return loop.activecnt > 0 or bool(getattr(loop, "_callbacks", None))


class Silence(object):
    """One turn of a loop, and what its thread did meanwhile."""

    def __init__(self, turn, times):
        self.turn, self.times, self.s, self.waiting, self.places = turn, times, 0.0, False, {}
        self.last, self.pending = times, 0.0


class Heartbeat(object):
    """Looks from a thread of its own at the loops that run in this process, and notes each turn of
    one that took long while its thread waited: for a socket that nobody awaits, say.

    probes: what notes it, and tells who called. It begins with the first loop, and ends when none
    runs, or when the process forks.
    """

    def __init__(self, probes):
        self.probes, self.loops, self.silences = probes, {}, {}
        self.looking, self.stop, self.used_ms, self.noted = None, False, 0.0, set()
        threads = sys.modules.get("_thread") or sys.modules.get("thread")
        self.begin, self.ident = threads.start_new_thread, threads.get_ident
        self.number_of = getattr(threads, "get_native_id", None)
        self.main, self.numbers = self.ident(), {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.pause, after_in_parent=self.look_on, after_in_child=self.look_on
            )

    def watch(self, loop):
        """Look at a loop that runs in this thread, from now on; returns what does it no more."""
        if not self.probes.active:
            return lambda: None
        thread = self.ident()
        before = self.loops.get(thread)
        number = os.getpid() if thread == self.main else None
        self.numbers[thread] = self.number_of() if self.number_of else number
        self.loops[thread] = loop
        if (os.getpid(), loop.by) not in self.noted:
            self.noted.add((os.getpid(), loop.by))
            self.probes.note("heartbeat", by=loop.by)
        self.look_on()

        def leave():
            self.silences.pop(thread, None)
            if before is not None:
                self.loops[thread] = before
            else:
                self.loops.pop(thread, None)

        return leave

    def look_on(self):
        """Look, where there is anything to look at and nobody does."""
        if self.looking not in (None, os.getpid()):  # the thread has stayed with the parent
            self.looking, self.main = None, self.ident()
            self.silences.clear()
            if self.number_of:
                self.numbers = {self.main: self.number_of()}
        if self.loops and self.looking is None and self.probes.active:
            self.looking, self.stop = os.getpid(), False
            try:
                self.begin(self.look, ())
            except Exception:  # no thread is to be had
                self.looking = None

    def pause(self):
        """Look no more, so that this process has no thread that it would not have without."""
        self.stop, until = True, clock() + 1
        while self.looking == os.getpid() and clock() < until:
            sleep(BEAT_S / 10)

    def look(self):
        before, thread_ms = clock(), getattr(time, "thread_time", None)
        idle = 0
        try:
            while not self.stop and idle < 100:
                sleep(BEAT_S)
                now = clock()
                step, before = min(now - before, LATE_BEATS * BEAT_S), now
                idle = 0 if self.loops else idle + 1
                if not self.probes.active:
                    continue
                for thread, loop in list(self.loops.items()):
                    try:
                        self.see(thread, loop, step)
                    except Exception:  # a loop that ends meanwhile
                        self.silences.pop(thread, None)
                if thread_ms:
                    self.used_ms = 1000 * thread_ms()
        finally:
            self.looking = None

    def see(self, thread, loop, step):
        frame = sys._current_frames().get(thread)
        if frame is None:  # the thread has ended, and left its hub
            self.loops.pop(thread, None)
        if frame is None or is_resting(frame):
            self.end(thread, loop)
            return
        turn, silence = loop.turn(), self.silences.get(thread)
        if silence is None or silence.turn != turn:
            self.end(thread, loop)
            self.silences[thread] = Silence(turn, self.times(thread))
            return
        silence.pending += step
        if self.wants_processor(thread):  # and nobody tells yet since when
            return
        silence.s, silence.pending = silence.s + silence.pending, 0.0
        silence.last = self.times(thread)
        if silence.s >= SILENT_FROM_S / 2:
            place = frame.f_code, frame.f_lasti
            known = silence.places.get(place)
            if known is None:
                importing = is_importing(frame)
                known = silence.places[place] = [0.0, importing, self.probes.callers(frame)]
            known[0] += step
            silence.waiting = silence.waiting or loop.waits()
        if silence.s >= NOTED_EACH_S:
            self.end(thread, loop)

    def end(self, thread, loop):
        """Note a silence that is over, if it was one."""
        silence = self.silences.pop(thread, None)
        if silence is None or not silence.places or silence.s < SILENT_FROM_S:
            return
        used, others = used_between(silence.times, silence.last)
        if others > silence.s / 2:  # whoever wants Python's lock waits for those that compute
            return
        _, importing, who = max(silence.places.values(), key=lambda each: each[0])
        waited_s = silence.s - used
        if waited_s >= SILENT_FROM_S and not importing:
            values = dict(s=round(waited_s, 4), waiting=silence.waiting, who=who)
            self.probes.note("silence", by=loop.by, **values)

    def wants_processor(self, thread):
        """Whether a thread has a processor or waits for one; False where nobody tells."""
        try:
            return b") R " in read("/proc/self/task/%d/stat" % self.numbers[thread])
        except Exception:
            return False

    def times(self, thread):
        """(seconds in which a thread had a processor or wanted one, the same of all others but
        this, the processor seconds of the process); None for the first two where nobody tells."""
        process = sum(os.times()[:2])
        try:
            number = str(self.numbers[thread])
            own = str(self.number_of()) if self.number_of else None
            names = os.listdir("/proc/self/task")
            of, others = seconds_of(number), 0.0
            if len(names) > MOST_THREADS:
                return of, None, process
            for name in names:
                if name not in (number, own):
                    others += seconds_of(name)
            return of, others, process
        except Exception:
            return None, None, process


def read(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.read(handle, 1000)
    finally:
        os.close(handle)


def seconds_of(number):
    """How long a thread of this process has had a processor, or wanted one. Linux tells."""
    ran, queued = read("/proc/self/task/%s/schedstat" % number).split()[:2]
    return (int(ran) + int(queued)) / 1e9


def used_between(before, after):
    """(seconds in which the thread ran or wanted to, the same of all others) between two of
    `Heartbeat.times`. Where nobody tells, whatever the process used was the thread's."""
    process = after[2] - before[2]
    if before[0] is None or after[0] is None:
        return process, 0.0
    used = after[0] - before[0]
    if before[1] is None or after[1] is None:
        return used, max(0.0, process - used)
    return used, max(0.0, after[1] - before[1])  # a thread that has ended takes its own with it


def is_resting(frame):
    path, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
    return any(name == function and path.endswith(file) for file, function in RESTS)


def is_importing(frame):
    """Whether a module is being imported: what that waits for is a disk."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


# --------------------------------------------- what the program does in `ssl`, noted while it runs


#: The clients that the doctor knows, as their packages are called.
KNOWN = {
    "requests": "requests", "niquests": "niquests", "urllib3": "urllib3",
    "urllib3_future": "niquests", "httpx": "httpx", "httpcore": "httpx", "httpx2": "httpx2",
    "httpcore2": "httpx2", "aiohttp": "aiohttp", "botocore": "botocore", "httplib2": "httplib2",
    "tornado": "tornado", "geventhttpclient": "geventhttpclient", "http": "http.client",
    "httplib": "http.client", "urllib": "urlopen", "urllib2": "urlopen",
}  # fmt: skip
#: Between a client and what it calls stand these.
BETWEEN = (
    "ssl socket contextlib functools threading concurrent asyncio anyio sniffio gevent eventlet "
    "greenlet truststore OpenSSL shared_context requests_shared_context weakref _weakrefset".split()
)
#: It is there in pip, too, and pip-system-certs has every program use that.
VENDORED = "._vendor.truststore"
#: Stands in for a function of Python's that compiles modules. It goes by the name of that one's
#: file, so that Python leaves it out of the traceback of a module that cannot be compiled.
COMPILING = """
def timed(loader, *args, **kwargs):
    started = thread_ms()
    try:
        return function(loader, *args, **kwargs)
    finally:
        note(thread_ms() - started)
"""
#: What a socket says that does not wait until it is connected.
UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, errno.EISCONN, 10035)
#: A wait that is shorter harms nobody.
BLOCKS_FROM_S = 0.02
#: A context that says how it is set takes no time, unless it waits.
ASKED_FROM_S = 0.002


class Probes(object):
    """Everything that is noted of one process, and of those that it forks.

    note: what is given each event.
    """

    def __init__(self, note):
        self.give, self.numbers, self.count = note, {}, itertools.count(1)
        self.under_way, self.busy, self.files, self.active = {}, set(), {}, True
        self.undo, self.held, self.kinds = [], {}, set()
        self.connected, self.asked, self.open = {}, {}, {}
        self.turns, self.fetches, self.changes, self.talks = {}, 0, {}, {}
        self.begun_last, self.closes = {}, {}  # by thread; by connection
        self.tasks = weakref.WeakKeyDictionary()
        self.collected, self.in_use, self.lock = {}, weakref.WeakKeyDictionary(), make_lock()
        threads = sys.modules.get("_thread")  # which Python 2.7 has not, and counts no turns
        self.thread = threads.get_ident if threads else ident  # as it is before anybody patches
        self.compiled = {}
        self.heartbeat, self.watched, self.answered_in = Heartbeat(self), {}, set()

    # ------------------------------------------------------------------ what is noted, and of what

    def note(self, what, **values):
        try:
            pid = os.getpid()
            compiled = self.compiled.get(pid, 0)
            own = self.heartbeat.used_ms if self.heartbeat.looking == pid else 0
            values.update(cpu=process_ms() - compiled - own, compiled=compiled)
            self.give(dict(values, **{"is": what, "pid": pid}))
        except Exception:  # a full disk, an interpreter that ends: no business of the program's
            pass

    def known(self, thing):
        """The number of a context or connection; None where it has none yet."""
        kept = self.numbers.get(id(thing))
        return kept[1] if kept is not None and kept[0]() is thing else None

    def number(self, thing):
        """A number that no other context or connection of this process has had."""
        if self.known(thing) is not None:
            return self.known(thing)
        number = next(self.count)  # which no two threads get at once
        try:
            self.numbers[id(thing)] = weakref.ref(thing), number
        except TypeError:
            self.numbers[id(thing)] = (lambda: thing), number
        return number

    def callers(self, frame):
        """{"client", "through", "at", "awaits"} of a call: the client that made it, the library
        that the program's own code called, and the line of the program's own code; None for what
        nobody can tell; and whether it is a client of httpx that awaits."""
        client, first, through, at, depth = None, None, None, None, 0
        inner, awaits, called = True, False, []
        while frame is not None and depth < 200:
            depth += 1
            of, code, name = frame, frame.f_code, str(frame.f_globals.get("__name__") or "")
            frame_line, frame, path = frame.f_lineno, frame.f_back, code.co_filename
            package = "truststore" if VENDORED in name else name.partition(".")[0]
            if path == OWN_FILE or path.startswith("<frozen"):
                continue
            if inner and package in KNOWN:
                client = KNOWN[package]
                if package in ("httpx", "httpx2") and code.co_name == "__init__":
                    awaits = awaits or hasattr(type(of.f_locals.get("self")), "aclose")
            elif inner and client and package not in BETWEEN:
                inner = False
            if path not in self.files:
                library = path.startswith("<") or is_library(path) or package in BETWEEN
                self.files[path] = library, is_package(path)
            library, packages = self.files[path]
            if library:
                if package == "asyncio" and code.co_name == "_run" and running_loop():
                    at = self.line_of_task()  # what is below only runs the loop
                    break
                if package not in BETWEEN:
                    first = first or package
                    if packages and (not called or called[-1][0] != package):
                        called.append((package, []))
                    if packages:
                        called[-1][1].append(code)
                continue
            at = "%s:%d" % (short(path), frame_line)
            break
        packages = [package for package, codes in called if not is_decorator(package, codes)]
        packages = packages or [package for package, _ in called]
        through = packages[-1] if packages else None
        return {"client": client or first, "through": through, "at": at, "awaits": awaits}

    # -------------------------------------------------------------------------- contexts and loads

    def contexts(self, kind):
        """Note the contexts of a class that are made, but for servers."""
        make, probes = kind.__new__, self

        def __new__(cls, *args, **kwargs):
            context = make(cls, *args, **kwargs)
            protocol = kwargs.get("protocol", args[0] if args else None)
            if probes.active and getattr(protocol, "name", "") != "PROTOCOL_TLS_SERVER":
                probes.locks(cls, kind)
                caller = sys._getframe(1)
                values = dict(c=probes.number(context), who=probes.callers(caller))
                probes.note("context", default=is_default(caller), **values)
            return context

        self.put(kind, "__new__", staticmethod(__new__))

    def locks(self, cls, kind):
        """Note when a class of contexts lets a thread wait that only asks how it is set: urllib3
        asks before it connects, and truststore 0.10.5 answers when no handshake is under way."""
        for each in set(cls.__mro__) - self.kinds:
            self.kinds.add(each)
            for name in ("verify_mode", "check_hostname"):
                own = vars(each).get(name)
                if issubclass(each, kind) and each is not kind and isinstance(own, property):
                    asking = property(self.asking(own.fget), self.asking(own.fset))
                    self.put(each, name, asking)

    def asking(self, function):
        probes = self

        def ask(*args):
            started = clock()
            try:
                return function(*args)
            finally:
                if probes.active and clock() - started >= ASKED_FROM_S:
                    probes.asked.setdefault(ident(), started)

        return function and named(ask, function)

    def loads(self, kind):
        """Note the certificates that are loaded into contexts of a class. load_default_certs is
        Python code that ends in one of these two."""
        for name in ("load_verify_locations", "set_default_verify_paths"):
            self.put(kind, name, self.loading(name, getattr(kind, name)))

    def loading(self, name, function):
        probes = self

        def load(context, *args, **kwargs):
            thread = "load", ident()
            if not probes.active or thread in probes.busy:
                return function(context, *args, **kwargs)
            probes.busy.add(thread)
            started, since, kib, ok = thread_ms(), clock(), [resident_kib()], False
            try:
                done = function(context, *args, **kwargs)
                ok = True
                return done
            finally:
                t, ms, kib = clock(), thread_ms() - started, kib + [resident_kib()]
                probes.busy.discard(thread)
                if ok:
                    spent = {"ms": round(ms, 3), "kib": kib, "since": since, "t": t}
                    probes.loaded(context, name, args, kwargs, spent, sys._getframe(1))

        return named(load, function)

    def loaded(self, context, name, args, kwargs, spent, frame):
        trust, loop = trust_of(name, args, kwargs), running_loop()
        try:
            held = context.cert_store_stats()["x509"]
        except Exception:
            held = None
        # A folder is read later, one file at a time, and a place where nothing is costs nothing.
        if held == 0 or (held is None and spent["ms"] < 0.5) or trust is None:
            return
        values = dict(trust=trust, who=self.callers(frame), alive=self.hold(context, trust))
        values.update(loop=loop is not None, waiting=bool(loop) and others_wait(loop))
        # truststore's loads in a handshake go into a context of ssl that it keeps for itself.
        name = str(frame.f_globals.get("__name__") or "")
        of_truststore = name.startswith("truststore") or VENDORED in name
        values.update(by="truststore" if of_truststore else type(context).__module__)
        self.note("load", c=self.number(context), **dict(values, **spent))

    def hold(self, context, trust):
        """How many contexts with these certificates are in use now, with this one: at most, while
        Python frees them by itself; where it has to be told to, at least."""
        held, number = self.held.setdefault(trust, {}), self.number(context)
        try:
            held[number] = weakref.ref(context, lambda _: held.pop(number, None))
        except TypeError:
            return len(held)
        alive, look_at = self.collected.get(trust, (None, CONTEXTS_FROM))
        if len(held) >= look_at and gc.isenabled():
            alive = self.freed(held, alive)
            in_use = len(held) if alive is None else alive
            self.collected[trust] = alive, max(CONTEXTS_FROM, in_use + max(5, in_use // 4))
        return len(held) if alive is None else min(alive, len(held))

    def freed(self, held, before):
        """How many of the contexts that are held are in use; None where Python has freed all others
        by itself, now as before.

        A client that is closed may refer to itself, and to its context, and is there until Python
        collects such things, which it does when it likes. So that is done here, but not often: each
        time that there are a quarter more contexts.
        """
        several, started, before_it = len(held), thread_ms(), self.still_open()
        gc.collect()
        self.note("trial", ms=round(thread_ms() - started, 3))
        left = before_it - self.still_open()
        self.note("collected", contexts=several - len(held), connections=max(0, left))
        return None if before is None and len(held) == several else len(held)

    # --------------------------------------------------------------------------------- handshakes

    def handshakes(self, kind):
        """Note the handshakes of a class of connections; only those of clients."""
        function, probes = kind.do_handshake, self

        def do_handshake(connection, *args, **kwargs):
            if not probes.active or is_server(connection):
                return function(connection, *args, **kwargs)
            number, started = probes.begun(connection), thread_ms()
            try:
                done = function(connection, *args, **kwargs)
            except Exception as error:
                probes.spent(number, started)
                if not type(error).__name__.startswith(("SSLWant", "Want")):
                    probes.ended(connection, number, False, told(error))
                raise
            except BaseException:  # a greenlet's time-out, or the user's Ctrl-C
                probes.ended(connection, number, False)
                raise
            probes.spent(number, started)
            probes.ended(connection, number, True)
            return done

        self.put(kind, "do_handshake", named(do_handshake, function))

    def begun(self, connection):
        number = self.number(connection)
        if number not in self.under_way:
            context = getattr(connection, "context", None)
            if context is None and hasattr(connection, "get_context"):
                context = connection.get_context()
            self.under_way[number] = 0
            self.begun_last[ident()] = number
            who = self.callers(sys._getframe(2))
            since = [
                self.connected.pop(descriptor(connection), None),
                self.asked.pop(ident(), None),
            ]
            since = min([each for each in since if each is not None] or [None])
            values = dict(c=None if context is None else self.number(context), who=who)
            values.update(loop=running_loop() is not None, since=since, t=clock())
            values.update(thread=ident(), by=type(connection).__module__)
            values.update(http=who["client"] in KNOWN.values())
            self.note("begin", h=number, open=self.opened(connection, number), **values)
        return number

    def opened(self, connection, number):
        """How many connections of clients are open in this process now, with this one."""
        try:
            self.open[number] = weakref.ref(connection), os.getpid()
        except TypeError:
            return 1
        for each, (alive, pid) in list(self.open.items()):
            there = alive()
            if there is None or pid != os.getpid() or descriptor(there) == -1:
                self.open.pop(each, None)
        return len(self.open)

    def spent(self, number, started):
        """Add what a part of a handshake took of the processor."""
        if number in self.under_way:
            self.under_way[number] += thread_ms() - started

    def still_open(self):
        """How many connections of clients are open in this process, of those that have a socket of
        their own: an event loop's have none, and their loop closes them."""
        alive = [alive() for alive, pid in list(self.open.values()) if pid == os.getpid()]
        return len([each for each in alive if descriptor(each) not in (None, -1)])

    def ended(self, connection, number, ok, why=None):
        values = dict(ok=ok, why=why, ms=round(self.under_way.pop(number, None) or 0, 3))
        if ok:
            values.update(protocol_of(connection))
        self.note("end", h=number, t=clock(), **values)
        if ok and len(self.numbers) > 10000:
            gone = [each for each, (alive, _) in list(self.numbers.items()) if alive() is None]
            for each in gone:
                self.talks.pop(self.numbers.pop(each, (None, None))[1], None)

    def failing(self, kind, name):
        """Note what a function of a class ends with that makes a connection, if it makes none and
        no handshake has told why."""
        function, probes = getattr(kind, name), self

        def connect(connection, *args, **kwargs):
            began = probes.begun_last.get(ident())
            try:
                return function(connection, *args, **kwargs)
            except Exception as error:
                if probes.active and began == probes.begun_last.get(ident()):
                    probes.note("failed", why=told(error))
                raise

        self.put(kind, name, named(connect, function))

    def exchanges(self, kind, *sending):
        """Note how often something was sent and answered over the connections of a class, whose
        functions that send are named: a connection that is kept has many of these."""
        for name in sending:
            self.put(kind, name, self.talking(getattr(kind, name), self.sent))
        self.put(kind, "read", self.talking(kind.read, self.answered))

    def talking(self, function, note):
        probes = self

        def talk(connection, *args, **kwargs):
            done = function(connection, *args, **kwargs)
            number = probes.known(connection) if done and probes.active else None
            if number is not None:
                try:
                    note(number, connection)
                except Exception:  # one that another thread has closed
                    pass
            return done

        return named(talk, function)

    def sent(self, number, connection):
        talk = self.talks.get(number)
        if talk is None:
            h2 = connection.selected_alpn_protocol() == "h2"  # which answers what nobody has asked
            talk = self.talks[number] = {"answered": not h2, "number": 0, "told": 0}
        if talk["answered"]:
            talk["answered"], talk["number"] = False, talk["number"] + 1
            more = talk["number"] - talk["told"]
            if talk["number"] <= KEPT_FROM or more >= talk["told"]:  # few lines, for many
                talk["told"] = talk["number"]
                self.note("exchange", h=number, n=more)

    def answered(self, number, connection):
        if self.talks.get(number, {}).get("number"):
            self.talks[number]["answered"] = True

    def connects(self, kind):
        """Note when the sockets of a class were connected: from then on they want a handshake."""
        function, probes = kind.connect, self

        def connect(connection, *args, **kwargs):
            done = function(connection, *args, **kwargs)
            if probes.active:
                probes.connected[descriptor(connection)] = clock()
            return done

        self.put(kind, "connect", named(connect, function))
        self.reaches(kind, "connect")

    def reaches(self, owner, name):
        """Note what a function ends with that looks for a host or connects to it; and, the first
        time, that one connected, or was answered."""
        function, probes = getattr(owner, name), self

        def reach(*args, **kwargs):
            try:
                done = function(*args, **kwargs)
            except Exception as error:
                if getattr(error, "errno", None) not in UNDER_WAY:
                    probes.unreached(error)
                raise
            if name != "getaddrinfo":
                probes.reached()
            return done

        self.put(owner, name, named(reach, function))

    def unreached(self, error):
        if self.active and os.getpid() not in self.answered_in:
            self.note("unreached", why=told(error))

    def reached(self):
        if self.active and os.getpid() not in self.answered_in:
            self.answered_in.add(os.getpid())
            self.note("reached")

    # ------------------------------------------------------------------- waits under a running loop

    def waits(self, kind, name):
        """Note how long a function that waits kept a running asyncio loop from everything else."""
        function, probes = getattr(kind, name), self

        def wait(*args, **kwargs):
            loop, turns, thread = running_loop(), probes.turns_of_greenlets(), current()
            if (loop is None and turns is None) or not probes.active or thread in probes.busy:
                return function(*args, **kwargs)
            allowed = getattr(args[0], "gettimeout", None)
            if allowed and allowed() == 0:  # it asks, and does not wait
                return function(*args, **kwargs)
            probes.busy.add(thread)
            fetches = greenlets_wait() if loop is None and probes.fetches < 2 else 0
            if fetches > probes.fetches:
                probes.fetches = fetches
                probes.note("greenlet", itself=fetches == 2)
            # In this order, so that a pause between the two looks is never taken for a wait.
            busy_ms, started = thread_ms() + queued_ms(), clock()
            try:
                return function(*args, **kwargs)
            finally:
                waited_s = clock() - started - (thread_ms() + queued_ms() - busy_ms) / 1000
                probes.busy.discard(thread)
                # Of greenlets: the loop has taken no turn meanwhile.
                stood = loop is not None or turns == probes.turns_of_greenlets()
                if waited_s >= BLOCKS_FROM_S:
                    who = probes.callers(sys._getframe(1))
                    if loop is not None:
                        others = others_wait(loop)
                        kind = type(loop).__module__.partition(".")[0]
                        values = dict(s=round(waited_s, 4), waiting=others, who=who)
                        probes.note("block", by="trio" if kind == "trio" else "asyncio", **values)
                    else:
                        probes.note("wait", s=round(waited_s, 4), stood=stood, who=who)

        self.put(kind, name, named(wait, function))

    def turns_of_greenlets(self):
        """How many turns the loop of gevent or eventlet has taken in this thread; None where there
        is none, or where what asks is the loop itself."""
        hub_of = getattr(sys.modules.get("gevent._hub_local"), "get_hub_if_exists", None)
        hub = hub_of and hub_of()
        if hub is not None and hub.loop is not None:
            return None if current_greenlet() is hub else hub.loop.iteration
        return self.turns.get(self.thread())

    def count_turns(self, kind):
        """Count the turns that a class of eventlet's hubs takes."""
        function, probes = kind.fire_timers, self

        def fire_timers(hub, *args, **kwargs):
            probes.turns[probes.thread()] = probes.turns.get(probes.thread(), 0) + 1
            return function(hub, *args, **kwargs)

        self.put(kind, "fire_timers", named(fire_timers, function))

    # ------------------------------------------------------------------------------- loops that run

    def runs(self, kind, name="run_forever", turns=False):
        """Look at the loops of a class of asyncio's, or of one like it, while they run. turns:
        whether they are counted as the loop takes them."""
        function, probes = getattr(kind, name), self

        def run_forever(loop, *args, **kwargs):
            waits = lambda: others_wait(loop)  # noqa: E731
            watched = Beats("asyncio", waits, loop.call_soon_threadsafe)
            if turns:
                watched = probes.watched[id(loop)] = Turns("asyncio", waits)
            leave = probes.heartbeat.watch(watched)
            try:
                return function(loop, *args, **kwargs)
            finally:
                leave()
                probes.watched.pop(id(loop), None)

        self.put(kind, name, named(run_forever, function))

    def makes_tasks(self, kind):
        """Remember the line of the program that has the loops of a class make a task: a library's
        task has none of its own."""
        function, probes = kind.create_task, self

        def create_task(loop, *args, **kwargs):
            task = function(loop, *args, **kwargs)
            try:
                probes.tasks[task] = probes.line_of(sys._getframe(1))
            except Exception:  # a task of another kind
                pass
            return task

        self.put(kind, "create_task", named(create_task, function))

    def line_of(self, frame):
        """The line of the program's own code that called; that of the task that did, if none."""
        while frame is not None:
            path, code = frame.f_code.co_filename, frame.f_code
            if path not in self.files:
                name = str(frame.f_globals.get("__name__") or "").partition(".")[0]
                library = path.startswith("<") or is_library(path) or name in BETWEEN
                self.files[path] = library, is_package(path)
            if not self.files[path][0] and path != OWN_FILE:
                return "%s:%d" % (short(path), frame.f_lineno)
            if code.co_name == "_run" and path.replace("\\", "/").endswith("/asyncio/events.py"):
                return self.line_of_task()
            frame = frame.f_back
        return None

    def line_of_task(self):
        """The line that made asyncio's task that runs in this thread; None in a callback."""
        try:
            task = sys.modules["asyncio"].current_task()
        except RuntimeError:  # no loop runs here
            task = None
        return None if task is None else self.tasks.get(task)

    def takes_turns(self, kind):
        """Count the turns that the loops of a class of asyncio's take."""
        function, probes = kind._run_once, self

        def _run_once(loop):
            watched = probes.watched.get(id(loop))
            if watched is not None:
                watched.turns += 1
            return function(loop)

        self.put(kind, "_run_once", named(_run_once, function))

    # ------------------------------------------------------------------------------ urllib3's pools

    def pools(self, kind):
        """Note when a pool of HTTPS connections has no place for one that comes back."""
        take, give, probes = kind._get_conn, kind._put_conn, self

        def used(pool, change):
            with probes.lock:
                now, most = probes.in_use.get(pool, (0, 0))
                probes.in_use[pool] = now + change, max(most, now + change)
                return probes.in_use[pool][1]

        def _get_conn(pool, *args, **kwargs):
            connection = take(pool, *args, **kwargs)
            used(pool, 1)
            return connection

        def _put_conn(pool, connection):
            wanted, places = used(pool, -1), getattr(pool, "pool", None)  # None: the pool is closed
            before = getattr(connection, "sock", None)
            done = give(pool, connection)
            after = getattr(connection, "sock", None)
            there = places is not None and before is not None and pool.scheme == "https"
            if there and after is None and probes.active:
                context = getattr(before, "context", None)
                values = dict(c=None if context is None else probes.number(context))
                values.update(who=probes.callers(sys._getframe(1)), size=places.maxsize)
                probes.note("full", wanted=wanted, **values)
            return done

        self.put(kind, "_get_conn", named(_get_conn, take))
        self.put(kind, "_put_conn", named(_put_conn, give))

    def hosts(self, kind):
        """Note when a PoolManager makes a pool for a host once more, because it had to give up the
        one that it had, with a connection that was open."""
        make, probes, known = kind._new_pool, self, weakref.WeakKeyDictionary()

        def _new_pool(manager, scheme, host, port, *args, **kwargs):
            if scheme == "https" and probes.active:
                hosts, size = known.setdefault(manager, {}), getattr(manager.pools, "_maxsize", 0)
                if hosts.get((host, port)):
                    who = probes.callers(sys._getframe(1))
                    probes.note("evicted", who=who, size=size, wanted=len(hosts))
                hosts[host, port] = False  # whether its pool had to go
                if size and len(manager.pools) >= size:
                    oldest = next(iter(manager.pools._container.values()))
                    hosts[oldest.host, oldest.port] = is_open(oldest)
            return make(manager, scheme, host, port, *args, **kwargs)

        self.put(kind, "_new_pool", named(_new_pool, make))

    # --------------------------------------------------------------------- the compiling of modules

    def compiles(self, kind, name):
        """Count the time that a function takes which compiles modules for a class of loaders, or
        keeps what came out, in `compiled`, by process.

        Python does that once: with it, a program's first run would be another than the next ones.
        """

        def note(ms):
            pid = os.getpid()
            self.compiled[pid] = self.compiled.get(pid, 0) + ms

        found = {"function": getattr(kind, name), "note": note, "thread_ms": thread_ms}
        exec(compile(COMPILING, "<frozen importlib._bootstrap_external>", "exec"), found)
        self.put(kind, name, named(found["timed"], found["function"]))

    # ------------------------------------------------------------------------ when they are put in

    def put(self, kind, name, value):
        own = vars(kind).get(name)
        setattr(kind, name, value)
        self.undo.append((kind, name, own))

    def remove(self):
        """Take all probes out again, and note nothing more."""
        self.active, self.heartbeat.stop = False, True
        for kind, name, own in reversed(self.undo):
            if own is None:
                delattr(kind, name)
            else:
                setattr(kind, name, own)
        sys.meta_path[:] = [each for each in sys.meta_path if each is not self]
        self.undo = []

    def install(self):
        """Put the probes into what is imported already, and into the rest when it comes."""
        loaders = sys.modules.get("_frozen_importlib_external")  # Python 2.7 has none
        if loaders is not None:
            self.compiles(loaders.SourceLoader, "source_to_code")
            self.compiles(loaders.SourceFileLoader, "set_data")
        for name in set(PROBED) | set(self.changes):
            if sys.modules.get(name) is not None:
                self.probe(name, sys.modules[name])
        sys.meta_path.insert(0, self)
        return self

    def probe(self, name, module):
        try:
            if name in PROBED:
                PROBED[name](self, module)
            if name in self.changes:
                self.changes[name](module)
        except Exception as error:  # a module that only has the name of the one that is meant
            self.note("unprobed", module=name, why=readable(error))

    def find_spec(self, name, path=None, target=None):
        """The spec of a module that is to be probed once it is imported; of others, none."""
        if name not in PROBED and name not in self.changes:
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            self.watch(spec.loader, name)
            return spec
        return None

    def watch(self, loader, name):
        """Have a module probed when its loader has executed it."""
        execute = getattr(loader, "exec_module", None)

        def exec_module(module):
            execute(module)
            if module.__name__ == name:
                self.probe(name, module)

        if execute is not None:
            try:
                loader.exec_module = exec_module
            except AttributeError:
                pass

    if PY2:

        def find_module(self, name, path=None):
            known = name in PROBED or name in self.changes
            return self if known and ("import", name) not in self.busy else None

        def load_module(self, name):
            self.busy.add(("import", name))
            try:
                __import__(name)
            finally:
                self.busy.discard(("import", name))
            self.probe(name, sys.modules[name])
            return sys.modules[name]


class counting(object):
    """Counts what happens in this process in a `with` block, in all its threads: `counts`, as
    `counted` has them, and loads, handshakes, connections and contexts by their names."""

    def __enter__(self):
        self._events = []
        self._probes = Probes(self._events.append)
        self._probes.note("start")
        self._probes.install()
        return self

    def __exit__(self, *_):
        self._probes.note("exit")
        self._probes.remove()

    def from_now_on(self):
        """Forget what was counted so far."""
        del self._events[:]
        self._probes.note("start")

    @property
    def counts(self):
        return counted(list(self._events))

    def __getattr__(self, name):
        if name in ("loads", "handshakes", "connections", "contexts"):
            return self.counts[name]
        raise AttributeError(name)


def probe_ssl(probes, ssl):
    kind = own_context(ssl)
    probes.contexts(kind)
    # Not a client's own function: the cure lends no context where urllib3's are not as they were.
    probes.failing(kind, "wrap_socket")
    probes.loads(kind)
    if hasattr(ssl, "SSLObject"):
        probes.handshakes(ssl.SSLObject)
    if not hasattr(ssl, "SSLObject") or sys.version_info >= (3, 7):  # else through SSLObject too
        probes.handshakes(ssl.SSLSocket)
    if not PY2:
        probes.exchanges(ssl.SSLSocket, "send", "write")
        probes.exchanges(ssl.SSLObject, "write")
        probes.waits(ssl.SSLSocket, "read")
        probes.waits(ssl.SSLSocket, "do_handshake")


def probe_socket(probes, socket):
    kind = socket.socket
    if kind.__module__ == "socket":
        probes.connects(kind)
        probes.reaches(socket, "getaddrinfo")


def probe_gevent(probes, module):
    kind = getattr(module, "SSLSocket", None)
    if kind is not None and "do_handshake" in vars(kind) and kind.__module__ == module.__name__:
        if PY2 or sys.version_info >= (3, 7):
            probes.handshakes(kind)


def probe_gevents_sockets(probes, module):
    probes.reaches(module.socket, "connect")
    probes.reaches(module, "getaddrinfo")


def probe_selectors(probes, module):
    """The connections of asyncio's own loops, which are there a turn later."""
    kind = module.BaseSelectorEventLoop
    function = kind._sock_connect_cb

    def _sock_connect_cb(loop, future, *args):
        before = future.done()
        done = function(loop, future, *args)
        if future.done() and not before and not future.cancelled():
            error = getattr(future, "_exception", None)  # to ask for it would be to handle it
            if error is None:
                probes.reached()
            else:
                probes.unreached(error)
        return done

    probes.put(kind, "_sock_connect_cb", named(_sock_connect_cb, function))


def probe_pyopenssl(probes, module):
    make, kind = module.Context.__init__, module.Context

    def __init__(context, *args, **kwargs):
        make(context, *args, **kwargs)
        if probes.active:
            who = probes.callers(sys._getframe(1))
            probes.note("context", c=probes.number(context), who=who, default=False)

    probes.put(kind, "__init__", __init__)
    probes.loads(kind)
    probes.handshakes(module.Connection)


def probe_sessions(probes, module):
    choose = module.Session.get_adapter

    def get_adapter(session, url):
        first = url[:6].lower() == "https:" and probes.known(session) is None
        if first and probes.active:
            probes.number(session)
            probes.note("session")
        return choose(session, url)

    probes.put(module.Session, "get_adapter", named(get_adapter, choose))


def probe_pools(probes, module):
    make = module.PoolManager.__init__

    def __init__(pool, *args, **kwargs):
        make(pool, *args, **kwargs)
        if probes.active and probes.callers(sys._getframe(1))["client"] in (None, "urllib3"):
            probes.note("pool")

    probes.put(module.PoolManager, "__init__", named(__init__, make))
    probes.hosts(module.PoolManager)


def probe_truststore(probes, module):
    inject = module.inject_into_ssl

    def inject_into_ssl():
        probes.note("truststore", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_ssl = named(inject_into_ssl, inject)


def probe_botocore(probes, module):
    make = module.URLLib3Session.__init__

    def __init__(session, *args, **kwargs):
        make(session, *args, **kwargs)
        if probes.active:
            probes.note("botocore")

    probes.put(module.URLLib3Session, "__init__", named(__init__, make))


def probe_pool(probes, module):
    probes.pools(module.HTTPConnectionPool)


def probe_loop(probes, module):
    probes.note("loop", name=module.__name__.partition(".")[0])
    kind = getattr(module, "Hub", None)
    if kind is not None and module.__name__ == "gevent.hub":
        make = kind.__init__

        def __init__(hub, *args, **kwargs):
            make(hub, *args, **kwargs)
            probes.heartbeat.watch(Greenlets(hub))  # which stays for as long as its thread

        probes.put(kind, "__init__", named(__init__, make))


def probe_asyncio(probes, module):
    probes.runs(module.BaseEventLoop, turns=True)
    probes.takes_turns(module.BaseEventLoop)
    probes.makes_tasks(module.BaseEventLoop)


def probe_uvloop(probes, module):
    probes.runs(module.Loop)
    probes.makes_tasks(module.Loop)


def probe_trio(probes, module):
    """Its loop is asked to count, while it runs in the thread that made its runner."""
    make, run, leaving = module.setup_runner, module.run, {}

    def setup_runner(*args, **kwargs):
        runner = make(*args, **kwargs)
        waits = lambda: others_wait(runner)  # noqa: E731
        beats = Beats("trio", waits, runner.entry_queue.run_sync_soon)
        leaving[ident()] = probes.heartbeat.watch(beats)
        return runner

    def run_to_the_end(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        finally:
            leaving.pop(ident(), lambda: None)()

    module.setup_runner = named(setup_runner, make)
    module.run = named(run_to_the_end, run)


def probe_eventlet(probes, module):
    probes.count_turns(module.BaseHub)
    make = module.BaseHub.__init__

    def __init__(hub, *args, **kwargs):
        make(hub, *args, **kwargs)
        thread = probes.thread()
        waits = lambda: bool(hub.timers or hub.next_timers or any(hub.listeners.values()))  # noqa: E731
        turns = Turns("eventlet", waits)
        turns.turn = lambda: probes.turns.get(thread)
        probes.heartbeat.watch(turns)

    probes.put(module.BaseHub, "__init__", named(__init__, make))


def probe_h11(probes, module):
    """The headers of httpx."""
    send, receive = module.Connection.send, module.Connection.next_event

    def noted(connection, event, name, by):
        if type(event).__name__ == name and connection.our_role is module.CLIENT and probes.active:
            if any(says_close(header, [value]) for header, value in event.headers):
                probes.note("closing", c=None, by=by, who=probes.callers(sys._getframe(2)))
                return True
        return False

    def send_noted(connection, event):
        probes.closes[id(connection)] = noted(connection, event, "Request", "program")
        return send(connection, event)

    def next_event(connection):
        event = receive(connection)
        if not probes.closes.get(id(connection)):
            noted(connection, event, "Response", "server")
        return event

    probes.put(module.Connection, "send", named(send_noted, send))
    probes.put(module.Connection, "next_event", named(next_event, receive))


def says_close(header, values):
    texts = [each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in values]
    header = header.decode("latin-1") if isinstance(header, bytes) else str(header)
    return header.lower() == "connection" and any("close" in each.lower() for each in texts)


def probe_own_tls(probes, module):
    probes.note("own tls", name=OWN_TLS[module.__name__])


def probe_injection(probes, module):
    inject = module.inject_into_urllib3

    def inject_into_urllib3():
        probes.note("injection", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_urllib3 = named(inject_into_urllib3, inject)


def probe_http(probes, module):
    answered = module.HTTPConnection.getresponse

    def getresponse(connection, *args, **kwargs):
        # Before the answer: with it goes the connection that is not kept.
        context = getattr(getattr(connection, "sock", None), "context", None)
        there = context is not None and probes.active
        number = probes.number(context) if there else None
        if there:
            probes.note("request", c=number)
        by = "program" if probes.closes.pop(id(connection), None) else "server"
        reply = answered(connection, *args, **kwargs)
        if there and (by == "program" or getattr(reply, "will_close", False)):
            who = probes.callers(sys._getframe(1))
            if who["client"] != "urlopen":  # which always asks for it
                probes.note("closing", c=number, by=by, who=who, h=probes.number(connection))
        return reply

    probes.put(module.HTTPConnection, "getresponse", named(getresponse, answered))
    put = module.HTTPConnection.putheader

    def putheader(connection, header, *values):
        if says_close(header, values):
            probes.closes[id(connection)] = True
        return put(connection, header, *values)

    probes.put(module.HTTPConnection, "putheader", named(putheader, put))
    if not PY2:
        probes.waits(module.HTTPConnection, "getresponse")


#: What is probed, and how.
PROBED = {
    "ssl": probe_ssl, "socket": probe_socket, "OpenSSL.SSL": probe_pyopenssl,
    "gevent.socket": probe_gevents_sockets, "asyncio.selector_events": probe_selectors,
    "http.client": probe_http, "httplib": probe_http,
    "gevent.ssl": probe_gevent, "gevent._ssl3": probe_gevent, "gevent._sslgte279": probe_gevent,
    "requests.sessions": probe_sessions, "urllib3.poolmanager": probe_pools,
    "urllib3.connectionpool": probe_pool,
    "truststore._api": probe_truststore, "h11._connection": probe_h11,
    "botocore.httpsession": probe_botocore,
    "gevent.hub": probe_loop, "eventlet.hubs": probe_loop,
    "asyncio.base_events": probe_asyncio, "uvloop": probe_uvloop, "trio._core._run": probe_trio,
    "eventlet.hubs.hub": probe_eventlet,
    "urllib3.contrib.pyopenssl": probe_injection,
    "requests.packages.urllib3.contrib.pyopenssl": probe_injection,
}  # fmt: skip
PROBED.update(dict.fromkeys(OWN_TLS, probe_own_tls))


def named(wrapper, function):
    """The wrapper, with the name and the text of what it stands for."""
    for name in ("__name__", "__doc__", "__qualname__", "__module__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    return wrapper


def trust_of(name, args, kwargs):
    """What is loaded, so that the same is told from another: a file's path, "system", or a digest
    of what was given in memory. None for a folder alone, which is read later."""
    if name == "set_default_verify_paths":
        return "system"
    values = dict(kwargs)
    for key, value in zip(("cafile", "capath", "cadata"), args):
        values[key] = value
    if values.get("cafile"):
        path = values["cafile"]
        path = path.decode("utf-8", "replace") if hasattr(path, "decode") else path
        return os.path.realpath(str(path))
    if values.get("cadata"):
        return "data %x" % (hash(values["cadata"]) & 0xFFFFFFFF)
    return None


def is_default(caller):
    """Whether a context is made by create_default_context, called by the program's own code."""
    made = caller.f_code.co_name == "create_default_context" and caller.f_back
    return bool(made) and not is_library(made.f_code.co_filename)


def protocol_of(connection):
    """{"alpn", "host"} of a connection, as far as it tells."""
    try:
        host = getattr(connection, "server_hostname", None)
        peer = getattr(connection, "getpeername", lambda: None)()
        host = "%s:%d" % (host or peer[0], peer[1]) if peer else host
        return {"alpn": connection.selected_alpn_protocol(), "host": host and readable(host)}
    except Exception:  # pyOpenSSL's, or one that is closed
        return {"alpn": None, "host": None}


def is_open(pool):
    """Whether a pool of urllib3's keeps a connection that the server has not closed."""
    dropped = sys.modules["urllib3.util.connection"].is_connection_dropped
    kept = [each for each in list(pool.pool.queue) if getattr(each, "sock", None) is not None]
    return any(not dropped(each) for each in kept)


def is_server(connection):
    side = getattr(connection, "server_side", None)
    if side is None and hasattr(connection, "_sslobj"):
        side = getattr(connection._sslobj, "server_side", False)
    if side is None:  # pyOpenSSL tells by its state
        state = getattr(connection, "get_state_string", lambda: b"")()
        side = b"accept" in state.lower() or b"server" in state.lower()
    return bool(side)


def running_loop():
    """The loop of asyncio that runs in this thread, or trio's; None where there is none."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    trio = getattr(sys.modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
    return (running and running()) or getattr(trio, "runner", None)


def others_wait(loop):
    """Whether anything else waits for a loop now: a callback, a timer that is due, or a socket (of
    trio, a task or a timer), or whether it serves: then others come, if not now. Of a loop that
    does not tell: whether a socket that is watched waits, or there are other tasks than one and its
    awaiter."""
    try:
        if hasattr(loop, "deadlines"):
            due = loop.deadlines.next_deadline() <= loop.clock.current_time()
            due = due or any(task._next_send_fn is not None for task in loop.tasks)
        else:
            timers = loop._scheduled
            due = bool(timers) and timers[0].when() <= loop.time()
            due = bool(loop._ready) or due or bool(loop._selector.select(0))
        return due or "listening" in watched_sockets()
    except Exception:
        all_tasks = getattr(sys.modules["asyncio"], "all_tasks", None)
        return bool(watched_sockets()) or (bool(all_tasks) and len(all_tasks(loop)) > 2)


def watched_sockets():
    """What the sockets do that this process's loops watch: a set of "listening" (they serve) and
    "waiting" (there is something to read). Linux tells; elsewhere it is empty."""
    found, kind, select = set(), sys.modules.get("_socket"), sys.modules.get("select")
    try:
        watched = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + name).endswith("[eventpoll]"):
                    with open("/proc/self/fdinfo/" + name) as lines:
                        told = [line.split() for line in lines if line.startswith("tfd:")]
                    watched.update(int(each[1]) for each in told if int(each[3], 16) & 1)
            except EnvironmentError:  # one that is closed meanwhile
                pass
        for number in watched:
            try:
                copy = kind.socket(fileno=os.dup(number))
            except EnvironmentError:  # no socket
                continue
            try:
                if copy.getsockopt(kind.SOL_SOCKET, kind.SO_ACCEPTCONN):
                    found.add("listening")
                elif copy.family != getattr(kind, "AF_UNIX", None):  # a loop's own pair
                    found.update(["waiting"] if select.select([copy], [], [], 0)[0] else [])
            except Exception:  # a number that is too large
                pass
            finally:
                copy.close()
    except Exception:  # another system
        pass
    return found


def descriptor(connection):
    try:
        return connection.fileno()
    except Exception:  # one without a socket of its own, or a closed one
        return None


def resident_kib():
    """The memory that this process holds; where nobody tells at once, the most that it has held."""
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        finally:
            os.close(handle)
    except Exception:
        return most_kib()


def queued_ms():
    """The milliseconds through which this thread could run and had no processor: on a busy machine
    that is no wait for an answer. Linux tells; elsewhere 0."""
    try:
        handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) / 1e6
        finally:
            os.close(handle)
    except Exception:
        return 0


def current_greenlet():
    now = getattr(sys.modules.get("greenlet"), "getcurrent", None)
    return now and now()


def greenlets_wait():
    """2 where a greenlet asks, 1 where the main program does while greenlets of the same thread
    wait, else 0."""
    now = current_greenlet()
    if getattr(now, "parent", None) is not None:
        return 2
    hub_of = getattr(sys.modules.get("gevent._hub_local"), "get_hub_if_exists", None)
    hub = hub_of and hub_of()
    return int(hub is not None and hub.loop is not None and hub.loop.activecnt > 0)


def current():
    """What tells this greenlet, or this thread where there are none, from others."""
    return "wait", ident(), id(current_greenlet())


def make_lock():
    """A lock that no patch of the program's replaces. (To import threading would be too early.)"""
    try:
        import _thread
    except ImportError:  # as Python 2.7 calls it
        import thread as _thread
    return _thread.allocate_lock()


def ident():
    thread = sys.modules.get("_thread") or sys.modules.get("thread")
    return thread.get_ident()


def make_clocks():
    """(the most KiB that this process has held, its processor milliseconds, those of this thread),
    as functions."""
    try:
        import resource
    except ImportError:
        resource = None

    def most():
        if resource is None:
            return 0
        return resource.getrusage(0).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

    def process():
        if resource is None:
            return 1000 * sum(os.times()[:2])
        used = resource.getrusage(0)
        return 1000 * (used.ru_utime + used.ru_stime)

    if hasattr(time, "thread_time"):
        return most, process, lambda: 1000 * time.thread_time()

    def thread():
        try:
            used = resource.getrusage(1)  # RUSAGE_THREAD, which has no name in old Pythons
        except Exception:
            return process()
        return 1000 * (used.ru_utime + used.ru_stime)

    return most, process, thread


most_kib, process_ms, thread_ms = make_clocks()


# ---------------------------------------------------------------------------------- 3. which http?


HTTP_NAMES = {10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2", 30: "HTTP/3"}


def check_http(url, imported):
    """Which HTTP each client speaks with a URL: two announced HEADs each, none redirected. What is
    said of the URL is without its password. Without a URL, nobody is asked."""
    found = {"url": None, "offers": None, "clients": [], "requests": 0}
    if not url:
        return found
    host, port, secret = parts_of(url)
    found["url"] = public = url.replace(secret, "", 1)
    if url.startswith("https://"):
        say("connecting to %s: which protocols does it offer? (no request)" % host)
        found["offers"] = offered(host, port)
    names = imported or set(way.module for way in WAYS if bring(way.module))
    speakers = [way for way in WAYS if way.module in topmost(names)]
    speakers = [way for way in speakers if way.kind is not GeventHttpClient]  # HTTP/1.1 alone
    if "httpx" in names and bring("h2"):
        speakers.append(Way("httpx with http2=True", Httpx, "httpx", {"http2": True}))
    for speaker in speakers:
        row = {"client": speaker.name, "version": None, "ms": [], "error": None}
        found["clients"].append(row)
        try:
            session = speaker.session()
            for _ in range(2):
                found["requests"] += 1
                numbers = (public, speaker.name, found["requests"], MOST_REQUESTS)
                say("asking %s with %s (request %d of at most %d)" % numbers)
                start = clock()
                version = session.ask(url, "HEAD", timeout=5)[3]
                row["version"] = HTTP_NAMES.get(version, str(version))
                row["ms"].append(round(1000 * (clock() - start), 1))
            session.close()
        except Exception as error:
            row["error"] = told(error).replace(secret or "\0", "")
    return found


def parts_of(url):
    """(host, port, "user:password@" or "")"""
    try:
        from urllib.parse import urlsplit
    except ImportError:
        from urlparse import urlsplit
    parts = urlsplit(url)
    secret, at, _ = parts.netloc.rpartition("@")
    return parts.hostname, parts.port or 443, secret + at


def offered(host, port):
    """The protocol that a server chooses when h2 and http/1.1 are offered to it; None: unknown.

    Its certificate is not looked at: nothing is sent after the handshake.
    """
    import socket
    import ssl

    try:
        context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        plain = socket.create_connection((host, port), 5)
        try:
            tls = context.wrap_socket(plain, server_hostname=host)
            return tls.selected_alpn_protocol() or "http/1.1"
        finally:
            plain.close()
    except Exception:
        return None


# ---------------------------------------------------------------------------------- what to change


CHAPTERS = {
    2: ("02_all_at_once", "All at once"),
    3: ("03_monkeys", "Monkeys"), 7: ("07_cures", "Cures"),
    8: ("08_still_out_there", "Is it still out there?"),
    10: ("10_what_one_load_costs", "What one load costs"),
    11: ("11_a_time_machine", "A time machine"), 12: ("12_the_cure", "The cure"),
    17: ("17_distance", "Distance"),
    21: ("21_the_lock_around_the_handshake", "The lock around the handshake"),
    22: ("22_the_loop_that_loads", "The loop that loads"),
    23: ("23_the_memory_that_nobody_frees", "The memory that nobody frees"),
}  # fmt: skip
#: What has a function wait in a real thread, by loop.
IN_A_THREAD = {
    "gevent": "reply = gevent.get_hub().threadpool.apply(function, arguments)",
    "eventlet": "reply = eventlet.tpool.execute(function, *arguments)",
}
#: What puts truststore's contexts in the place of ssl's.
INJECTS = "truststore.inject_into_ssl()  # or pip-system-certs, which does it for all programs"
#: What to change: (case, chapter that explains it, line to remove, line to add, package to get,
#: sentence).
ADVICE = {
    "patch": (1, 3, "", "%(patch)s", "",
        "%(loop)s is loaded and has patched no sockets: every greenlet that fetches with "
        "%(client)s blocks the loop, over HTTP too. (If a worker patches later, call "
        "doctor.inside() there.)"),
    "patch-first": (1, 3, "", "%(patch)s", "",
        "Every TLS connection of %(client)s ends in an error: ssl was imported before %(loop)s "
        "patched it, or was not patched along with socket. The whole patch has to come first."),
    "injected": (1, 7, "%(text)s", "", "%(package)s",
        "%(by)s, and urllib3 then waits where the loop cannot see it.%(without)s"),
    "through-pyopenssl": (1, 8, "", "", "",
        "%(client)s connects through pyOpenSSL, and urllib3 then waits where the loop cannot see "
        "it: all greenlets stand still."),
    "standard-socket": (1, 3, "", "", "",
        "%(client)s reads from an %(socket)s of the standard library, because %(loop)s has not "
        "patched ssl."),
    "gevents-context": (1, 7, "",
        "HTTPClient(..., ssl_context_factory=...)  # one that makes a gevent.ssl.SSLContext", "",
        "geventhttpclient takes the context that it is given, and one of gevent's own class lets "
        "the loop run on. (gevent.ssl.create_default_context makes a standard one.)"),
    "patch-select": (1, 7, "", "gevent.monkey.patch_select()", "",
        "Called after your imports, this gives the wait to the loop. Threads stay threads."),
    "patch-everything": (1, 7, "", "%(patch)s", "",
        "Or %(loop)s patches everything, in the program's first line, before all other imports. "
        "(Not tried here: in this process it would come too late.)"),
    "trap": (1, 8, "", "", "%(package)s",
        "google-auth's adapter for client certificates injects pyOpenSSL for the whole process. "
        "The doctor made one to see it."),
    "asyncio": (1, 2, "", "reply = await %(to_thread)s(...)  # or a client that awaits", "",
        "%(clients)s waited in the thread of the running %(by)s loop, %(places)s, and nothing "
        "else could run meanwhile."),
    "psycogreen": (1, 3, "", "psycogreen.gevent.patch_psycopg()", "psycogreen",
        "psycopg2 waited in C, %(places)s, and no greenlet ran meanwhile: it connects by a TLS of "
        "its own, which no patch of gevent's reaches. psycogreen has it wait where the loop sees "
        "it."),
    "in-a-thread": (1, 3, "", "%(line)s", "",
        "%(clients)s waited, %(places)s, and no greenlet ran meanwhile: %(why)s."),
    "not-together": (1, 3, "%(remove)s", "", "",
        "truststore's injection and %(loop)s do not go together, in either order: one's sockets "
        "are given to the other's contexts. On Linux, ssl.create_default_context() trusts what the "
        "system trusts without it."),
    "connection-close": (2, 11, '"Connection": "close"  # of the headers', "", "",
        "%(client)s sends Connection: close%(where)s, and each reply to it ends its connection: "
        "%(connections)s, a handshake for each (%(ms).0f ms of CPU, %(s).2f s in all), %(loads)s. "
        "Without that header a Session or a client keeps them%(keep)s."),
    "server-closes": (2, 11, "", "", "",
        "The server ends each connection of %(client)s with its reply (Connection: close): "
        "%(connections)s, a handshake for each (%(ms).0f ms of CPU, %(s).2f s in all), %(loads)s. "
        "No client can keep them. If the server is yours, let it keep connections (keep-alive)."),
    "one-connection": (3, 17, "", "%(line)s", "",
        "%(client)s made %(connections)d connections to %(host)s, which speaks HTTP/2: one would "
        "do for all that is asked at once."),
    "lock": (4, 21, "%(remove)s", "%(line)s", "",
        "%(wanted)d handshakes were wanted at once, and never two were under way: a lock is held "
        "through each handshake (the context's sockets are those of %(by)s), so they waited "
        "%(behind_s).2f s for each other.%(whose)s"),
    "loop-loads": (4, 22, "", "%(line)s", "",
        "%(loads)s of certificates happened in the thread of the running asyncio loop%(where)s: "
        "for %(ms).0f ms of CPU nothing else could run. Make one client or one context before the "
        "work begins, and hand it to all."),
    "share-contexts": (4, 23, "", "%(line)s", "",
        "%(alive)d contexts with the same certificates were alive at once, made by %(client)s"
        "%(where)s. While they were loaded, memory grew by %(mib).0f MiB. One context serves all "
        "clients."),
    "keep-one": (2, 12, "", "%(line)s", "", "%(client)s loaded %(loads)s%(where)s. %(sentence)s"),
    "loads-late": (2, 10, "%(remove)s", "%(line)s", "",
        "%(client)s loaded %(loads)s%(where)s. A context of truststore%(instead)s loads the "
        "system's certificates once more in each handshake, whoever shares it. On Linux, one that "
        "ssl.create_default_context() makes%(once)s trusts what the system trusts, too, and loads "
        "once."),
    "larger-pool": (2, 12, "", "%(line)s", "",
        "%(client)s loaded %(loads)s%(where)s. %(sentence)s"),
    "another-openssl": (2, 10, "", "", "a Python with another OpenSSL",
        "Of the six releases that the book measured, a load takes longest with OpenSSL 3.0; with "
        "1.1.1 and 4.0 it takes a fraction of that."),
    "share-context": (2, 12, "", "%(line)s", "",
        "If all else leaves new connections, the book's shared_context.py lends them one context "
        "(when not to use it stands beside it)."),
    "run-it": (2, 12, "", "", "",
        "In a trial, %(clients)s loaded the certificates anew for each connection. What that costs "
        "your program, if anything, is told by a run: doctor.py run -- %(program)s"),
    "http2": (3, 17, "", "", "httpx[http2] or niquests",
        "%(url)s offers HTTP/2, and %(client)s speaks %(version)s. At a distance, many requests at "
        "once over one connection pay; next door, with Python's h2, they cost more."),
}  # fmt: skip
_URLOPEN = "urllib2" if PY2 else "urllib.request"
#: What makes a client load once, and risks nothing: (line, sentence).
KEEP = {
    "requests": ("session = requests.Session()",
        "requests.get makes a Session for each call; one that is kept, for many requests to few "
        "hosts, keeps its connections, and loads once for each."),
    "niquests": ("session = niquests.Session()",
        "A Session that is kept keeps its connections, and (in 3.21) loads once for all of them."),
    "urllib3": ("pool = urllib3.PoolManager(ssl_context=ssl.create_default_context())",
        "One pool that is kept keeps its connections, and with a context of your own it loads "
        "once, whatever it connects to."),
    "httpx": ("client = httpx.Client()",
        "httpx.get, and each new client, loads anew; a client that is kept loads once, whatever it "
        "connects to."),
    "httpx2": ("client = httpx2.Client()",
        "Each new client loads anew; one that is kept loads once, whatever it connects to."),
    "aiohttp": ("session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))",
        "One context, made once by ssl.create_default_context(), serves all sessions."),
    "botocore": ("client = boto3.client(...)",
        "One client for all threads (it may be shared) keeps its connections, ten of them unless "
        "it is told to keep more. botocore loads once for each new one."),
    "http.client": ("HTTPSConnection(host, context=context)",
        "Without a context each HTTPSConnection makes its own: make one, by "
        "context = ssl.create_default_context(), and give it to all."),
    "urlopen": (_URLOPEN + ".urlopen(url, context=context)",
        "Without a context each call makes its own: make one, by "
        "context = ssl.create_default_context(), and give it to all."),
    "httplib2": ("http = httplib2.Http()",
        "One Http for each thread, kept, keeps its connections; each new one loads anew."),
    "tornado": ("HTTPRequest(url, ssl_options=context)",
        "ca_certs loads anew for each connection; one ssl.SSLContext for all loads once."),
    "twisted": ("agent = Agent(reactor, pool=HTTPConnectionPool(reactor))",
        "An Agent that is kept, and has a pool, keeps its connections; each new one loads anew."),
}  # fmt: skip
#: What keeps connections that were closed for want of a place: (line, for which options).
LARGER = {
    "requests": 'session.mount("https://", requests.adapters.HTTPAdapter(%s))',
    "urllib3": "pool = urllib3.PoolManager(%s, ssl_context=ssl.create_default_context())",
    "botocore": "client = boto3.client(..., config=Config(%s))",
}
#: How each of them calls the size of a pool, and of a manager of pools.
OPTIONS = {
    "requests": {"full": "pool_maxsize", "evicted": "pool_connections"},
    "urllib3": {"full": "maxsize", "evicted": "num_pools"},
    "botocore": {"full": "max_pool_connections"},
}
_WANTING = {
    "full": "%(wanted)d connections to one host were in use at once, and its pool keeps %(size)d: "
    "%(times)d were closed after their reply, and made anew. A place for each thread keeps them.",
    "evicted": "It was asked for %(wanted)d hosts and keeps connections to %(size)d: for %(times)d "
    "of its requests the host's connections had been closed to make room.",
}
#: What has one connection carry all that is asked of a host by HTTP/2.
MULTIPLEXED = {
    "niquests": "session = niquests.Session(multiplexed=True)",
    "httpx": "client = httpx.AsyncClient(http2=True)",
    "httpx2": "client = httpx2.AsyncClient(http2=True)",
}
#: The calls of a program that make what is to be kept, by client; None: a context.
MAKERS = {
    "httpx": "Client AsyncClient", "httpx2": "Client AsyncClient", "requests": "Session",
    "niquests": "Session AsyncSession", "urllib3": "PoolManager ProxyManager", "httplib2": "Http",
    "botocore": "client resource", None: "create_default_context",
}  # fmt: skip
#: Functions that make a client of httpx for one request.
CALLS = "get post put patch delete head options request stream".split()
_OTHERS = ("context = ssl.create_default_context()",
    "Make one context, and give it to every connection.")  # fmt: skip
#: Where loads are no illness, those that take less are no advice.
WORTH_FROM_MS = 20
#: Another OpenSSL is advised for so many loads of so many milliseconds.
DEAR_LOADS_FROM, DEAR_FROM_MS = 5, 3
NO_FEWER = (
    " That saves no load here: tried with %d at once, as in the run, each connection loads by "
    "itself. What it saves is memory, and what comes after."
)
EACH_ONCE = ", where it is kept for many requests: here each connection is made for one"
#: The package to upgrade when one of its files injects pyOpenSSL.
UPGRADES = {
    "requests/": "requests 2.24 or newer, which leaves pyOpenSSL alone",
    "google/auth/": "google-auth 2.55.2 or newer, which leaves pyOpenSSL alone",
}
#: What connections fail with when ssl was imported before, or patched without, the rest.
LATE_PATCH = ("recursion", "_wrap_socket() argument")


def chapter(number):
    """Where a chapter is to be read."""
    file, title = CHAPTERS[number]
    if not ADDRESS:
        return "chapter %d, %s, of The curious case of slow HTTPS in Python" % (number, title)
    return "chapter %d, %s: %s/blob/main/notebooks/%s.ipynb" % (number, title, ADDRESS, file)


def advise(name, saves="", **values):
    """One thing to change: what ADVICE has of that name, with these values in it."""
    case, number, remove, add, package, what = ADVICE[name]
    texts = {"what": what % values, "remove": remove % values, "add": add % values}
    texts.update(id=name, case=case, package=package % values, saves=saves)
    return dict(texts, chapter=chapter(number))


def advice_on_loop(found):
    advice, of_block = [], []
    for row in found["clients"]:
        loop, error = found["loop"]["name"], readable(row["error"]).lower()
        names = dict(row, loop=loop, patch=PATCHES[loop])
        if row["verdict"] == UNPATCHED:
            advice.append(advise("patch", **names))
        elif row["verdict"] == CANNOT_TELL and any(sign in error for sign in LATE_PATCH):
            advice.append(advise("patch-first", **names))
        elif row["verdict"] == BLOCKED and row["imported"]:
            of_block = of_block or advice_on_block(found, names)
    trap = [advise("trap", package=UPGRADES["google/auth/"])] if found["trap"] else []
    return advice + of_block + trap


def advice_on_block(found, names):
    """names: the row of the client that is blocked, and what sentences say of its loop."""
    advice, saves, socket = [], {}, str(names["socket"])
    for each in found["cures"]:
        if each["verdict"] == FREE:
            numbers = (DELAYS_S[0], names["https"]["trials"][0]["wall_s"], each["wall_s"])
            text = "two requests that take %.1f s each: %.2f s now, %.2f s with it"
            saves[each["cure"]] = text % numbers
    providers = dict((each["name"], each["by"]) for each in found["provides"])
    if providers.get("urllib3's SSLContext") == "pyOpenSSL":
        cure = "extract_from_urllib3()"
        by = found["injections"][-1] if found["injections"] else {"file": "", "text": ""}
        names.update(by, by=injected_by(by))
        packages = [UPGRADES[place] for place in UPGRADES if by["file"].startswith(place)]
        names["package"] = "".join(packages)
        names["without"] = " Without that call the loop runs on." if cure in saves else ""
        advice.append(advise("injected", saves.get(cure, ""), **names))
    elif "pyopenssl" in socket.lower():
        advice.append(advise("through-pyopenssl", **names))
    elif socket.startswith("ssl."):
        advice.append(advise("standard-socket", **names))
    known = (("gevent's SSLContext", "gevents-context"), ("patch_select()", "patch-select"))
    for cure, name in known:
        if cure in saves:
            advice.append(advise(name, saves[cure]))
    return advice + [advise("patch-everything", **names)]


def injected_by(injection):
    """Who injected pyOpenSSL, as the beginning of a sentence."""
    what = "pyOpenSSL was injected into urllib3"
    if injection["file"]:
        where = "%(file)s:%(line)s" % injection
        what += " by " + where
        if injection["from"] and not where.endswith(injection["from"]):
            what += ", called from %(from)s" % injection
    return what


def advice_on_waits(found):
    """What waits ask for that stop a loop: of clients that do not await, and of anything else."""
    counts = found["counts"]
    blocked = counts["blocked"]
    if blocked["waiting_s"] < LOOP_BLOCKED_FROM_S:
        blocked = counts["silent"]
    names = [name for name, _ in blocked["clients"]]
    clients, why = " and ".join(names) or "The program", "%s has patched nothing there"
    if blocked is counts["silent"] and not names and counts["own_tls"]:  # C has no frame to name
        clients += " (in %s, which brings TLS of its own?)" % " or ".join(counts["own_tls"])
        why = "what waits in C no patch of %s's reaches"
    places = ", ".join(place for place, _ in blocked["at"][:3]) or "in code that cannot be named"
    names = dict(by=blocked["by"], clients=clients, places="called at " + places)
    names["why"] = why % blocked["by"]
    if blocked["by"] == "gevent" and "psycopg2" in clients:
        return [advise("psycogreen", **names)]
    if blocked["by"] in PATCHES:
        line = IN_A_THREAD[blocked["by"]]
        return [advise("in-a-thread", line=line, **names)]
    known = {"trio": "trio.to_thread.run_sync"}
    return [advise("asyncio", to_thread=known.get(blocked["by"], "asyncio.to_thread"), **names)]


def advice_on_failures(found):
    """What goes with connections none of which came through, where it is known."""
    loop, counts = found["loop"], found.get("counts") or {}
    # Whoever came second stands in ssl; urllib3 may have kept the first.
    left = any("truststore" in str(each["class"]) for each in found["provides"])
    if loop and loop["patched"] and (counts.get("truststore") or left):
        return [advise("not-together", loop=loop["name"], remove=INJECTS)]
    return []


_OF_TRUSTSTORE = (
    " truststore 0.10.5 does that. 0.10.4 does not, but can kill a process in which threads share "
    "the context of a client that awaits. Where you need what the system trusts, give each thread "
    "a client and a context of its own (each handshake then still loads); asyncio's tasks do not "
    "wait for it."
)


def of_lock(found, by):
    """Whose lock it is that handshakes wait for, and what to change, for sockets of a module."""
    names = {"remove": ""}
    if "truststore" in by:
        names["whose"] = _OF_TRUSTSTORE
        if is_injected(found):  # and ssl.create_default_context() makes truststore's, too
            names.update(remove=INJECTS, line="")
    elif by == "ssl":
        names["whose"] = " ssl holds none: it is the program's own, or that of a class of its own."
        names["line"] = (
            "context.wrap_socket(..., do_handshake_on_connect=False)  # do_handshake() comes "
            "later, without the lock"
        )
    return names


def is_injected(found):
    """Whether truststore, or the copy of it in pip, is in the place of ssl's contexts."""
    return any(
        each["name"] == "ssl.SSLContext" and "truststore" in str(each["class"])
        for each in found["provides"]
    )


def advice_on_others(found, verdicts):
    """What the illnesses of the fourth case ask for."""
    counts, advice = found["counts"], []
    line = "context = ssl.create_default_context()  # once, for all clients"
    if verdicts["handshakes"] == ONE_AT_A_TIME:
        names = dict(counts["queue"], line=line, whose="")
        names.update(of_lock(found, names["by"]))
        advice.append(advise("lock", **names))
    if verdicts["loads on the loop"] == HELD_UP:
        names = dict(
            counts["on_loop"], line=line, loads=several(counts["on_loop"]["loads"], "load")
        )
        first = names["at"][0][0] if names["at"] else None
        for row in counts["clients"]:
            if row["at"] and row["at"][0][0] == first:
                names["line"] = line_of_context(line, row)
        advice.append(advise("loop-loads", where=place_in(names["at"]), **names))
    if verdicts["contexts"] == ONE_FOR_EACH:
        row = max(counts["clients"], key=lambda each: each["alive"])
        names = dict(row, line=line, where=place_in(row["at"]), mib=counts["context_mib"])
        names["client"] = row["client"] or "the program"
        name = library_between(row) or {"botocore": "boto3"}.get(row["client"], row["client"])
        maker, keyword = LIBRARIES.get(name, (None, None))
        names["line"] = line_of_context(line, row)
        if maker and keyword is None:
            names["line"] = "client = %s(...)  # once, for all" % maker
        advice.append(advise("share-contexts", **names))
    return advice


def place_in(places):
    """The first of some places, as the end of a sentence."""
    return ", at %s" % places[0][0] if places else ""


def advice_on_counts(found, verdict):
    """What a run's loads ask for: first what risks nothing."""
    rows = [row for row in found["counts"]["clients"] if row["loads"] > row["needed"] + 1]
    if verdict != REPEATED:
        rows = [row for row in rows if not row["kept"] and row["spare_ms"] >= WORTH_FROM_MS]
    injected = is_injected(found)
    for each in advice_on_closings(found):
        yield each
    for row in rows:
        larger, keep = larger_pool(row), keep_one(row)
        if row["client"] in ("requests", "botocore") and is_shared(row, found["counts"]):
            keep = None  # one Session for many connections: it is kept
        if row["client"] != "requests" and larger:
            keep = None
        through = library_between(row)
        where = ", called by %s" % through if through else ""
        where += ", from %s" % row["at"][0][0] if row["at"] else ""
        loads = "%s for %s" % (times(row["loads"]), several(row["connections"], "connection"))
        names = dict(row, where=where, loads=loads)
        names["client"] = row["client"] or "The program"
        by_truststore = any("truststore" in by for by, _ in row["by"])
        nothing_to_keep = row["contexts"] <= row["needed"] or not (keep or larger)
        if injected and nothing_to_keep:
            names.update(remove=INJECTS, line="", instead=", in the place of ssl.SSLContext,")
            yield advise("loads-late", once=", without the injection,", **names)
            continue
        if by_truststore and not injected:  # a client that is kept would load as often
            line = "context = ssl.create_default_context()  # on Linux; once, for all"
            yield advise("loads-late", line=line, remove="", instead="", once="", **names)
            continue
        for name, told in ("keep-one", keep), ("larger-pool", larger):
            if told is None:
                continue
            line, sentence = told
            if injected:
                sentence += " (truststore loads the system's once more in each handshake.)"
            tried = found.get("tried", {}).get(trial_of(name, row))
            if verdict == REPEATED and not tried:
                sentence += " What that saves could not be tried, so nothing is promised."
            saves = saves_of(tried) if tried else ""
            if tried and tried["then"]["loads"] >= tried["now"]["loads"]:
                sentence, saves = sentence + NO_FEWER % tried["at_once"], ""
            yield advise(name, saves, **dict(names, line=line, sentence=sentence))
    for each in found["counts"]["http2"]:
        line = MULTIPLEXED.get(each["client"], "")
        yield advise("one-connection", **dict(each, line=line, client=each["client"] or "A client"))
    # pyOpenSSL brings another OpenSSL than Python's.
    dear = [row for row in rows if row["loads"] >= DEAR_LOADS_FROM]
    dear = [row for row in dear if row["load_ms"] >= DEAR_FROM_MS * row["loads"]]
    bys = [by for row in dear for by, _ in row["by"]]
    names = set("pyOpenSSL" if by.startswith("OpenSSL") else "ssl" for by in bys)
    if any(" 3.0." in str(found["openssl"].get(name)) for name in names):
        yield advise("another-openssl")
    python = tuple(int(part) for part in found["python"].split(".")[:2])
    if any(row["client"] == "requests" for row in rows) and python >= (3, 7) and not injected:
        cure = 'session.mount("https://", shared_context.SharedContextAdapter())'
        yield advise("share-context", line=cure)


def keep_one(row):
    """(line, sentence) of what makes the client of a row of `counted` load once: the program's own
    call where its line has one, with its arguments."""
    line, sentence = KEEP.get(row["client"], _OTHERS)
    both = row["awaits"] and row["awaits"] < row["loads"]
    line, own = with_trust(line, row), None if both else own_call(row)
    if row["awaits"]:
        awaiting = line.replace(".Client()", ".AsyncClient()")
        line = "%s; %s" % (line, awaiting.replace("client", "awaiting", 1)) if both else awaiting
        sentence = sentence if both else KEEP["httpx2"][1]  # nothing is said of httpx.get
    library = library_between(row) or (row["client"] if row["client"] not in KEEP else None)
    if library:
        maker, told = taken_by(library)
        if maker and LIBRARIES[library][1] is None:
            return "client = %s(...)  # once" % maker, told
        sentence = told + " " + sentence
        return ("client = %s(...)  # once" % maker if maker else line), sentence
    if own:
        line = "%s = %s" % (line.partition(" = ")[0] if " = " in line else "context", own)
        return line + "  # once, before the work begins", sentence
    if not both and line.endswith("Client()"):
        line = line[:-1] + verify_of(row) + ")"
    return line, sentence


def verify_of(row):
    """The argument by which a client of httpx takes what httpx.get was given; "" for none."""
    place = row["at"][0][0] if row["at"] else None
    call = (place and call_at(place, CALLS)) or ""
    own = re.search(r"\bverify=([^,()]+|[^,()]*\([^()]*\))(?=[,)])", call)
    if own:
        return own.group()
    context = with_trust("ssl.create_default_context()", row)
    return "verify=" + context if "cafile" in context else ""


def own_call(row):
    """The program's own call that made what is to be kept, as it stands there; None where the line
    that is named has none, or takes what only a pool of one's own could hold."""
    if not row["at"]:
        return None
    call = call_at(row["at"][0][0], MAKERS.get(row["client"], "").split())
    if call and row["client"] == "urllib3" and "ssl_context" not in call:
        call, number = re.subn(r"\bca_certs=([^,()]+|[^,()]*\([^()]*\))", CAFILE % r"\1", call)
        if not number:
            call = call.replace("(", "(" + CAFILE.replace("cafile=%s", "") + ", ", 1)
            call = call.replace(", )", ")")
    return call


def line_of_context(line, row):
    """The line that makes one context: the program's own call, or one with its certificates."""
    own = own_call(row) if row["client"] is None else None
    return "context = %s  # once, for all clients" % own if own else with_trust(line, row)


CAFILE = "ssl_context=ssl.create_default_context(cafile=%s)"


def call_at(place, names):
    """The text of a call of one of some functions on a line of a program, "file.py:3", with its
    arguments, in one line; None where there is none, or it cannot be told."""
    path, _, number = place.rpartition(":")
    lines = linecache.getlines(path)[int(number) - 1 : int(number) + 20]
    text = "".join(lines)
    first = len(lines[0]) if lines else 0
    for found in re.finditer(r"[A-Za-z_][\w.]*(?=\()", text):
        if found.start() >= first or found.group().rpartition(".")[2] not in names:
            continue
        depth, quote = 0, None
        for end in range(found.end(), len(text)):
            letter = text[end]
            if quote:
                quote = None if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            elif letter == "#":
                break
            depth += 0 if quote else (letter in "([{") - (letter in ")]}")
            if depth == 0 and not quote:
                return " ".join(text[found.start() : end + 1].split())
    return None


def with_trust(text, row):
    """A line that makes a context with the certificates that the program names, if it does."""
    trust = row["trusts"][0][0] if row["trusts"] else None
    default = trust in (None, "system") or trust.startswith("data ") or "certifi" in trust
    named = [os.environ.get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
    default = default or trust in [os.path.realpath(each) for each in named if each]
    default = default or os.path.basename(trust) in ("ca-certificates.crt", "cert.pem")
    if default:
        return text
    context = "ssl.create_default_context(cafile=%r)" % str(trust)
    return text.replace("ssl.create_default_context()", context)


def advice_on_closings(found):
    """What connections ask for that are ended with each reply."""
    counts = found["counts"]
    for row in counts["clients"]:
        by = max(row["closed"], key=row["closed"].get) if row["closed"] else None
        if by is None or row["closed"][by] < TOO_MANY_FROM or row["connections"] < TOO_MANY_FROM:
            continue
        share = row["connections"] / max(counts["connections"], 1)
        names = dict(
            client=row["client"] or "The program", where=place_in(row["closed_at"]),
            connections=several(row["connections"], "connection"),
            loads=several(row["loads"], "load"), ms=share * counts["handshake_ms"],
            s=share * counts["handshake_s"], keep=EACH_ONCE if is_made_anew(row) else "",
        )  # fmt: skip
        tried = found.get("tried", {}).get("connection-close")
        saves = saves_of(tried) if tried and by == "program" else ""
        yield advise("connection-close" if by == "program" else "server-closes", saves, **names)


def is_made_anew(row):
    """Whether each connection of a row of `counted` that asked for its end was made for that."""
    return 0 < row["closers"] == row["closed"].get("program")


def library_between(row):
    """The library that called the client of a row of `counted`; None where the program did."""
    return row["through"] if row["through"] != row["client"] else None


def trial_of(name, row):
    """What `try_changes` calls the trial of a change; None where it has none."""
    if name == "larger-pool":
        return {"requests": name, "urllib3": "urllib3"}.get(row["client"])
    return row["client"] or ITS_OWN


def larger_pool(row):
    """(line, sentence) of what would have kept connections that were closed for want of a place, of
    a row of `counted`; None where none were."""
    options = OPTIONS.get(row["client"], {})
    why = [what for what in wanting(row) if what in options]
    if not why:
        return None
    line = ", ".join("%s=%d" % (options[what], row["wanted"][what]) for what in why)
    told = [_WANTING[what] % dict(
        wanted=row["wanted"][what], size=row["size"][what], times=row[what]
    ) for what in why]  # fmt: skip
    return LARGER[row["client"]] % line, " ".join(told)


def saves_of(tried):
    """What was seen to be saved, in words."""
    numbers = (requests_of(tried), several(tried["now"]["loads"], "load"), tried["now"]["cpu_ms"])
    numbers += (several(tried["then"]["loads"], "load"), tried["then"]["cpu_ms"])
    text = "tried here, against the doctor's own server: of %s, %s and %.0f ms of CPU; "
    if tried["with"] == "http.client":
        text = text.replace("tried here", "tried here with http.client")
    return (text + "with it %s and %.0f ms") % numbers


def requests_of(tried):
    text = several(tried["connections"], "request")
    return text + (", %d at once" % tried["at_once"] if tried["at_once"] > 1 else "")


def advice_on_trials(found):
    """What trials ask for where nobody has seen the program at work."""
    again = [row for row in judged_rows(found["loads"], found["program"]) if not row["error"]]
    again = [row["client"] for row in again if sum(row["by_connection"]) >= 3 or row["by_call"]]
    if again:
        clients = " and ".join(again)
        return [advise("run-it", clients=clients, program=found["program"] or "your_program.py")]
    return []


def advice_on_http(found):
    http = found["http"]
    old = [row for row in http["clients"] if str(row["version"]).startswith("HTTP/1")]
    if http["offers"] != "h2" or not old or old[0]["error"]:
        return []
    ms = old[0]["ms"][1]
    saves = "one by one, %d requests of %.0f ms take %.1f s; at once they wait for each other less"
    return [advise("http2", saves % (100, ms, 100 * ms / 1000), **dict(old[0], url=http["url"]))]


# ----------------------------------------------------------------------------------------- judging


#: What is advised first.
RISKS_NOTHING = ("connection-close", "keep-one", "larger-pool")


def judge(found, spec):
    """Add verdicts, advice, the exit status and what it rests on to what was found.

    Only a run has "counts"; without, the loads are advice, and the exit status says nothing of
    them.
    """
    counts = found.get("counts")
    if counts:
        found = dict(found, clients=[seen_at_work(row, counts) for row in found["clients"]])
    advice = advice_on_loop(found)
    found = dict(found, known_to_the_doctor=sorted(set(KNOWN.values())))
    own_tls = counts["own_tls"] if counts else found["own_tls"]
    if counts:
        loop = worst([judge_loop(found), judge_greenlets(found), judge_asyncio(found)])
        loads = verdict_on(counts, spec["share"])
        if judge_asyncio(found) == BLOCKED:
            advice += advice_on_waits(found)
        others = {
            "loads on the loop": verdict_on_loop(counts), "contexts": verdict_on_contexts(counts),
            "handshakes": verdict_on_handshakes(counts),
        }  # fmt: skip
        if is_broken(counts):
            others = dict.fromkeys(others, DOES_NOT_APPLY)
            more = advice_on_failures(found)
        else:
            more = advice_on_others(found, others) + list(advice_on_counts(found, loads))
        # What risks nothing comes first.
        advice += sorted(more, key=lambda each: each["id"] not in RISKS_NOTHING)
    else:
        loop, loads = judge_loop(found), UNCOUNTED if found["known"] else UNSEEN
        advice += advice_on_trials(found)
        failed = [row for row in found["clients"] if row["verdict"] == CANNOT_TELL and row["error"]]
        if failed and not advice:
            advice = advice_on_failures(found)
    if loop == FREE and own_tls and not (counts and counts["heartbeats"]):
        loop = CANNOT_TELL  # what was tried is the clients that the doctor knows
    verdicts = {"event loop": loop, "certificate loads": loads}
    if counts:
        verdicts.update(others)
    told = [STATUS.get(verdicts.get(FAILS[name]), 0) for name in spec["fail_on"]]
    if counts and found["ended"]["raised"]:
        told.append(2)
    status = 1 if 1 in told else max(told)
    if counts and found["ended"]["signal"]:
        status = 128 + found["ended"]["signal"]
    return dict(
        found, verdicts=verdicts, advice=advice + advice_on_http(found),
        share_stated=spec["share"], exit_status=status,
    )  # fmt: skip


def seen_at_work(row, counts):
    """A row of `check_way` after a run: where nothing is patched, and its connections were all
    made by threads, there were no greenlets to wait for them. Where it ended before its first one,
    nobody knows whether it would have patched before."""
    if row["verdict"] != UNPATCHED or counts["stood"]["fetched"]:
        return row
    if counts["connections"]:
        return row if PY2 else dict(row, verdict=DOES_NOT_APPLY)
    return dict(row, verdict=CANNOT_TELL, error="no connection was made before the program ended")


def judge_loop(found):
    if found.get("untried"):
        return CANNOT_TELL
    verdicts = [row["verdict"] for row in found["clients"]]
    if verdicts and not found["clients"][0]["imported"]:
        # A stand-in for a client that may come later: nothing of the program's was seen to block.
        stands_for = {UNPATCHED: DOES_NOT_APPLY, BLOCKED: CANNOT_TELL}
    else:
        # With nothing patched, greenlets that fetch block the loop; whether there are any is told
        # by who imported gevent: the program, or a library that may leave it alone.
        used = found["loop"] and found["loop"]["used"]
        stands_for = {UNPATCHED: BLOCKED if used else CANNOT_TELL}
    return worst([stands_for.get(verdict, verdict) for verdict in verdicts])


def judge_greenlets(found):
    """BLOCKED where the loop of greenlets was seen to stand still through their replies, in a
    program that uses it, whatever client asked. (A program may import it in a function, where
    nothing but its greenlets tells.)"""
    stood, loop = found["counts"]["stood"], found["loop"]
    used = loop and (loop["used"] or stood["in_greenlets"])
    seen = stood["fetched"] and used and not loop["patched"]
    if seen and stood["times"] >= 2 and stood["s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return DOES_NOT_APPLY


def judge_asyncio(found):
    """BLOCKED where clients that do not await, or anything else that the heartbeat saw, kept others
    waiting for a loop; FREE where connections were made under one and did not."""
    counts, loop = found["counts"], found["loop"]
    if counts["blocked"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    # A library may import gevent, and leave it alone.
    of_greenlets = counts["silent"]["by"] in PATCHES
    used = not of_greenlets or (loop and (loop["used"] or loop["patched"]))
    if used and counts["silent"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return FREE if counts["under_loop"] else DOES_NOT_APPLY


def worst(verdicts):
    order = (BLOCKED, REPEATED, CANNOT_TELL, UNSEEN, FREE, ONCE, UNCOUNTED, DOES_NOT_APPLY)
    return min(verdicts or [DOES_NOT_APPLY], key=order.index)


# -------------------------------------------------------------------------------------- the report


ILL = (BLOCKED, REPEATED, HELD_UP, ONE_AT_A_TIME, ONE_FOR_EACH)
WELL = (FREE, ONCE, NOT_IN_A_ROW)
#: So many contexts that were freed by a collection alone are told.
DROPPED_FROM = 5
#: What is asked of a run beside the first two.
QUESTIONS = {
    "loads on the loop": "Do certificate loads hold up the event loop?",
    "handshakes": "Do handshakes wait for each other?",
    "contexts": "How many contexts are alive at once?",
}


def asked(report):
    """Those of QUESTIONS that apply."""
    told = report["verdicts"]
    return [each for each in QUESTIONS if told.get(each, DOES_NOT_APPLY) != DOES_NOT_APPLY]


def other_lines(about, counts):
    on_loop, queue = counts["on_loop"], counts["queue"]
    if about == "loads on the loop":
        text = "%s under a running asyncio loop, %.0f ms of CPU; after %d of them others waited"
        yield wrapped(text % (several(on_loop["loads"], "load"), on_loop["ms"], on_loop["waiting"]))
    elif about == "contexts":
        text = "at most %d with the same certificates; memory grew by %.1f MiB during %s"
        yield wrapped(
            text % (counts["alive"], counts["context_mib"], several(counts["loads"], "load"))
        )
    else:
        yield wrapped("at most %d under way at once" % counts["peak"])
        if queue:
            text = "of one context (sockets of %(by)s): at most %(wanted)d wanted at once, "
            text += "%(peak)d under way at once; they waited %(behind_s).2f s for each other"
            yield wrapped(text % queue)


def text_of(report, colour):
    """The report as people read it."""

    def bold(text, code=1):
        return "\033[%sm%s\033[0m" % (code, text) if colour else text

    def question(text, about):
        verdict = report["verdicts"][about]
        code = 31 if verdict in ILL else 32 if verdict in WELL else 33
        return "%s  %s" % (bold(text), bold(verdict.upper(), "1;%d" % code))

    program = report["program"] or "nothing (no program was named)"
    if report["program"] and "imported_s" in report:
        program += ", imported in %.1f s" % report["imported_s"]
    how = "run" if "counts" in report else "examined"
    examined = (report["python"], report["openssl"]["ssl"], how, program)
    providers = ["  %(name)-24s %(by)s" % row for row in report["provides"]]
    injections = [wrapped(injected_by(each) + ".") for each in report["injections"]]
    raised, early = report.get("ended", {}).get("raised"), []
    if raised and not report["counts"]["handshakes"]:
        text = "It ended before its first connection: %s. Mend that first."
        early = [bold(wrapped(text % raised, "")), ""]
    told = set(report["verdicts"].values())
    untold = report["exit_status"] == 2 or told & {CANNOT_TELL, UNSEEN}
    to_change = "What to change cannot be told." if untold else "Nothing to change."
    to_change = "What to change" if report["advice"] else to_change
    again = [report["again"]] if "again" in report else []
    others = [
        (
            question("%d. %s" % (number, QUESTIONS[about]), about),
            other_lines(about, report["counts"]),
        )
        for number, about in enumerate(asked(report), 3)
    ]
    parts = (
        [
            ("Python %s, %s\n%s: %s\n" % examined, early + providers + injections),
            (
                question("1. Does a TLS read block the event loop?", "event loop"),
                loop_lines(report),
            ),
            (
                question("2. What do certificate loads cost?", "certificate loads"),
                load_lines(report),
            ),
        ]
        + others
        + [
            (bold("%d. Which HTTP?" % (3 + len(others))), http_lines(report["http"])),
            (bold(to_change), advice_lines(report["advice"])),
        ]
        + [(bold("Again, with the change"), again_lines(each)) for each in again]
        + [
            ("exit status %d" % report["exit_status"], []),
        ]
    )
    return "\n\n".join("\n".join([head] + list(lines)) for head, lines in parts) + "\n"


NO_LOOP = (
    "There is neither gevent nor eventlet in this process: a blocking read stops its own thread "
    "only. (Under asyncio every client without await blocks the loop, by design.) What can apply "
    "are the loads, below."
)
TRIAL = (
    "%(requests)d requests of %(delay_s).1f s in %(wall_s).2f s (effective concurrency "
    "%(effective_concurrency).2f), at most %(peak_in_flight)d at once; the heartbeat missed "
    "%(longest_gap_s).2f s"
)


def loop_lines(report):
    counts = report.get("counts")
    if counts and (counts["under_loop"] or counts["blocked"]["times"]):
        for line in asyncio_lines(counts):
            yield line
    elif counts and counts["stood"]["waits"]:
        for line in greenlet_lines(counts["stood"]):
            yield line
    elif counts and counts["heartbeats"]:
        pass  # told below
    elif report["loop"] is None:
        text = NO_LOOP
        if not report["program"]:
            text += " To see your program, name what does its imports: doctor.py -- module"
            if report["loops_installed"]:
                text += " (%s is installed here)" % " and ".join(report["loops_installed"])
        yield wrapped(text)
    for row in report["clients"]:
        why = " (%s)" % row["error"] if row["error"] else ""
        yield wrapped("%s: %s%s" % (row["client"], row["verdict"], why))
        for scheme in ("https", "http"):
            for each in (row[scheme] or {}).get("trials", []):
                yield wrapped(TRIAL % each, "    %-6s" % scheme)
    for row in report["cures"]:
        if row["wall_s"] is not None:
            yield wrapped("tried here: %(cure)s, %(verdict)s in %(wall_s).2f s" % row)
    if report.get("untried"):
        text = "%s was loaded, and could not be tried: %s. In a worker, call doctor.inside()."
        yield wrapped(text % (report["loop"]["name"], report["untried"]))
    elif report["loop"] and report["verdicts"]["event loop"] == DOES_NOT_APPLY:
        text = "%s has patched nothing here." % report["loop"]["name"]
        if counts and counts["connections"]:
            text += " No greenlet waited for a client: the connections were made in threads."
        yield wrapped(text)
    if counts:
        for line in silence_lines(counts):
            yield line
    names = ", ".join(counts["own_tls"] if counts else report["own_tls"])
    if names:
        text = "%s: imported, and brings TLS of its own: its loads and handshakes are not counted. "
        if counts and counts["heartbeats"]:
            text += "A loop that it keeps waiting is seen by the heartbeat."
        elif not counts:
            text += "Whether it blocks the loop is told by a run alone: doctor.py run -- ..."
        yield wrapped(text % names)


def silence_lines(counts):
    """What the heartbeat saw of a loop, whatever kept it."""
    silent = counts["silent"]
    for by in counts["heartbeats"]:
        if by != silent["by"]:
            yield wrapped("%s: its heartbeat was looked at through the run, and never stopped" % by)
    told = [place for place, _ in counts["blocked"]["at"]]
    if silent["times"] and not all(place in told for place, _ in silent["at"]):
        text = "%s: its heartbeat stopped %s while its thread waited, %.2f s in all, and others "
        text += "waited for %.2f s of that"
        numbers = silent["by"], times(silent["times"]), silent["s"], silent["waiting_s"]
        yield wrapped(text % numbers)
        for place, number in silent["at"][:5]:
            yield wrapped("%s, %s" % (place, times(number)), "    ")


def asyncio_lines(counts):
    blocked = counts["blocked"]
    by, connections = blocked["by"], several(counts["under_loop"], "connection")
    yield wrapped("%s: %s made under a running loop" % (by, connections))
    if blocked["times"]:
        text = by + ": its loop was blocked %s by a client that does not await, for %.2f s, and "
        text += "others waited for %.2f s of that"
        yield wrapped(text % (times(blocked["times"]), blocked["s"], blocked["waiting_s"]))
        for place, number in blocked["at"][:5]:
            yield wrapped("%s, %s" % (place, times(number)), "    ")


def greenlet_lines(stood):
    """What the loop of a program's greenlets was kept from while the program ran."""
    waits = several(stood["waits"], "wait")
    if not stood["times"]:
        yield wrapped("While the program ran, its loop went on through %s for replies." % waits)
        return
    clients = " and ".join(name or "a client" for name, _ in stood["clients"])
    text = "While the program ran, its loop stood still through %d of %s for replies, %.2f s in "
    text += "all, in %s"
    yield wrapped(text % (stood["times"], waits, stood["s"], clients))
    for place, number in stood["at"][:5]:
        yield wrapped("%s, %s" % (place, times(number)), "    ")


def count_lines(report):
    """What a run counted, as lines."""
    counts = report["counts"]
    if counts["failures"] and not counts["handshakes"]:
        why = ["%s (%s)" % (each, times(number)) for each, number in counts["failures"][:3]]
        text = "No connection came through, so nothing can be told of loads. What they ended with: "
        yield wrapped(text + ", ".join(why))
    elif counts["connections"] == 0 and counts["loads"]:
        yield wrapped(
            "No TLS connection was made through ssl or pyOpenSSL: what was loaded served none. "
            "(Plain HTTP needs no context.)"
        )
    elif counts["connections"] == 0:
        yield wrapped(
            "No TLS connection was made through ssl or pyOpenSSL, so there is nothing to tell. The "
            "doctor knows %s; what brings its own TLS (pycurl, grpc) it cannot see."
            % ", ".join(report["known_to_the_doctor"])
        )
    elif counts["failed"] and counts["handshakes"]:
        why = ["%s (%s)" % (each, times(number)) for each, number in counts["failures"][:3]]
        text = "%d of %s did not come through: " % (
            counts["failed"], several(counts["connections"], "connection"))  # fmt: skip
        yield wrapped(text + (", ".join(why) or "nobody tells why"))
    elif counts["handshakes"] == 0:
        yield wrapped("None of %s came through." % several(counts["connections"], "handshake"))
    numbers = several(counts["loads"], "load"), several(counts["connections"], "connection")
    text = "%s for %s; %d needed. " % (numbers + (min(counts["needed"], counts["connections"]),))
    if counts["loads"] > counts["needed"]:
        text += "The others cost %.0f ms of CPU, %.1f %% of the program's %.0f ms. " % (
            counts["spare_ms"], counts["share"], counts["cpu_ms"])  # fmt: skip
        if counts["compiled_ms"] >= 0.5:
            text += "(Compiling its modules, which Python does once, took %.0f ms more.) " % (
                counts["compiled_ms"])  # fmt: skip
    text += "%s, at most %d under way at once, in %s; %s made." % (
        several(counts["handshakes"], "handshake"), counts["peak"],
        several(counts["processes"], "process").replace("processs", "processes"),
        several(counts["contexts"], "context"),
    )  # fmt: skip
    if counts["handshakes"]:
        numbers = counts["handshake_ms"], counts["handshake_s"]
        text += " The handshakes took %.0f ms of CPU and %.2f s from begin to end." % numbers
    yield wrapped(text)
    if counts["dropped"] or counts["collected"] >= DROPPED_FROM:
        text = "To count what is in use, the doctor had Python collect what refers to itself: that "
        text += "alone freed %s and closed %s, of clients that the program had dropped."
        numbers = several(counts["collected"], "context"), counts["dropped"]
        yield wrapped(text % (numbers[0], several(numbers[1], "open connection")))
    limit = limit_near(counts, report["share_stated"])
    if limit is not None:
        text = "That is about at the limit of %g %%: another run may come out otherwise."
        text += " --share moves it." if limit == report["share_stated"] else ""
        yield wrapped(text % limit)
    for row in counts["clients"]:
        name = row["client"] or "the program"
        if row["through"] not in (None, row["client"]):
            name += " (for %s)" % row["through"]
        numbers = [several(row[key + "s"], key) for key in ("load", "connection", "context")]
        text = "%s: %s, %s, %s" % tuple([name] + numbers)
        text += ", at %s" % row["at"][0][0] if row["at"] else ""
        yield wrapped(text)
    ended = report["ended"]
    if ended["raised"] or ended["why"] or ended["status"]:
        why = ended["raised"] or ended["why"] or "exit status %s" % ended["status"]
        yield wrapped("The program ended early or badly (%s): so far is what was counted." % why)
    for why in counts["uncounted"] + counts["unprobed"]:
        yield wrapped("Not all was counted: %s" % why)


def load_lines(report):
    if "counts" in report:
        for line in count_lines(report):
            yield line
        return
    size = report["certificates"]
    if report["verdicts"]["certificate loads"] == UNSEEN:
        known = ", ".join(report["known_to_the_doctor"])
        yield wrapped("None of the clients is imported that the doctor knows: %s." % known)
    else:
        text = "Imports alone tell nothing of it: doctor.py run -- ... counts, in your program."
        yield wrapped(text)
    if report["load_ms"]:
        of = "%d certificates" % size if size else "the default certificates"
        own, other = report["openssl"]["ssl"], report["openssl"].get("loads")
        which = " (of %s, which pyOpenSSL brings)" % other if other not in (None, own) else ""
        yield wrapped("one load of %s takes %s ms CPU%s" % (of, span(report["load_ms"]), which))
    if report["loads_at_import"]:
        yield wrapped("loads while the program was imported: %d" % report["loads_at_import"])
    for row in report["loads"]:
        name = row["client"] + ("" if row["imported"] else " (installed, not imported)")
        if row["error"]:
            yield wrapped("%s: not counted (%s)" % (name, row["error"]))
            continue
        counts = ", ".join(str(each) for each in row["by_connection"])
        text = "tried: %s, loads by three connections of one session: %s" % (name, counts)
        text += "; when it is made: %(made)d" % row if row["made"] else ""
        text += "; when %(client)s is imported: %(at_import)d" % row if row["at_import"] else ""
        text += "; by one %(client)s.get: %(by_call)d" % row if row["by_call"] is not None else ""
        yield wrapped(text)


def http_lines(http):
    if http["url"] is None:
        yield wrapped("not asked: --url https://... asks a server of yours")
    elif not http["clients"]:
        yield wrapped("no client that can be asked is imported")
    if http["offers"]:
        yield wrapped("the server chooses %s where both are offered" % http["offers"])
    for row in http["clients"]:
        text = "%(client)s: %(error)s" % row
        if not row["error"]:
            text = "%(client)s speaks %(version)s; " % row
            text += "first request %.0f ms, second %.0f ms" % tuple(row["ms"])
        yield wrapped(text)


def advice_lines(advice):
    for number, each in enumerate(advice, 1):
        yield wrapped(each["what"], "  %d. " % number)
        for name in ("remove", "add", "package", "saves", "chapter"):
            if each[name]:
                yield wrapped(each[name], "     %-8s " % (name + ":"))


def annotations(report):
    """What GitHub shows beside the lines of a program, one for each thing to change."""
    if "trouble" in report:
        yield "::warning title=tls-doctor::%s" % escaped(report["trouble"])
        return
    level = "error" if report["exit_status"] == 1 else "notice"
    for each in report.get("advice", ()):
        place = re.search(r"([^ ,]+\.py):(\d+)", each["what"])
        where = "file=%s,line=%s," % place.groups() if place else ""
        text = each["what"] + (" Add: " + each["add"] if each["add"] else "")
        text += " Remove: " + each["remove"] if each["remove"] else ""
        yield "::%s %stitle=tls-doctor %s::%s" % (level, where, each["id"], escaped(text))


def escaped(text):
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# ------------------------------------------------------------------------------- a running process


#: Where the standard library waits for a reply or a handshake.
READS = ("read", "recv", "recv_into", "readinto", "do_handshake")
WAIT = "in urllib3's own wait for pyOpenSSL"
#: What a look at a running process can find: (what, chapter, in words).
SIGHTS = (
    ("blocked", 7, "a greenlet " + WAIT + ", and the loop with it: %d looks"),
    ("perhaps blocked", 7, "the main program " + WAIT + ": %d looks. If greenlets run beside it, "
     "they stand still"),
    ("not patched", 3, "a greenlet in a read of the standard library's, and the loop with it: %d "
     "looks"),
    ("kept", 2, "the thread of a loop in one and the same call, and the loop with it: %d looks"),
    ("loading", 12, "a load of certificates: %d looks"),
)  # fmt: skip


#: Where the thread of a loop is (the end of a file's name) while the loop is entered and runs.
LOOPS = ("/asyncio/base_events.py", "/asyncio/runners.py", "/uvloop/__init__.py",
         "/trio/_core/_run.py")  # fmt: skip
#: Of the looks that found the process at work, so many percent in a load are too many. (A look is
#: no share of the CPU: of few looks only much can be told.)
LOADING_FROM = 20
#: So many looks that fail one after the other, and there is no looking at this process.
IN_A_ROW = 10


def attach(pid, seconds, share):
    """Where a running process stands, read from outside: a dictionary with the looks, how many of
    them found a greenlet blocked or a load under way, the stack that shows it, what read it ("by"),
    and the exit status."""
    if is_gone(pid):
        raise Trouble("there is no process %d" % pid)
    stacks, by = reader(pid)
    looks, busy, loop, until = [], 0, None, clock() + seconds
    failed, why, stood = 0, None, set()
    while clock() < until:
        started = clock()
        try:
            threads = stacks()
        except Trouble as trouble:  # perhaps because the process ran on while it was read
            failed, why = failed + 1, trouble
            if failed == IN_A_ROW:
                raise
            time.sleep(0.1)
            continue
        if threads is None:
            break  # it has ended meanwhile
        failed, loop = 0, loop or has_gevent(pid)  # which may be imported later
        look = dict((kind_of(each, loop), each["frames"]) for each in threads)
        waiting = dict((stack_of(each), each) for each in threads if keeps_loop(each, loop))
        look.update(("kept", waiting[stack]["frames"]) for stack in waiting if stack in stood)
        stood = set(waiting)
        looks.append(look)
        busy += any(each.get("active") for each in threads)
        time.sleep(max(0, 0.1 - (clock() - started)))
    if not looks:
        raise why or Trouble("process %d ended before anything was seen of it" % pid)
    seen = dict((what, sum(what in look for look in looks)) for what, _, _ in SIGHTS)
    status = 2 if seen["perhaps blocked"] >= 2 else 0
    loading = 100.0 * seen["loading"] / max(busy, seen["loading"], 1)
    if max(seen["blocked"], seen["not patched"], seen["kept"]) >= 2 or (
        seen["loading"] >= 3 and loading > max(share, LOADING_FROM)
    ):
        status = 1  # one look alone may have met a wait of a millisecond
    shown = [look[what] for what, _, _ in SIGHTS for look in looks if what in look] or [[]]
    stack = ["%s:%d (%s)" % (short(it["filename"]), it["line"], it["name"]) for it in shown[0]]
    return dict(
        pid=pid, by=by, gevent=loop, looks=len(looks), busy=busy, seen=seen, share_stated=share,
        stack=stack[::-1], exit_status=status,
    )  # fmt: skip


def is_gone(pid):
    """Whether a process has ended; also one whose end nobody has taken note of (a zombie)."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == 3
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(") ")[2].startswith(("Z", "X"))
    except EnvironmentError:  # another system, or it is gone by now
        return os.path.isdir("/proc/self") and not os.path.isdir("/proc/%d" % pid)


def reader(pid):
    """(a function that tells the threads of a process, what it reads them with): Python itself,
    from 3.14 on, where the process runs the same; else py-spy. Raises Trouble where there is none.

    It tells each thread's "frames", innermost first, and whether it is "active"; None for a process
    that is gone. Nothing is executed in the process: what sys.remote_exec sends would have to wait
    until a thread that is blocked runs on.
    """
    itself = own_reader(pid)
    if itself is not None:
        return (lambda: own_stacks_of(itself, pid)), "Python %d.%d" % sys.version_info[:2]
    program = find_py_spy()
    if program is not None:
        return (lambda: stacks_of(program, pid)), "py-spy"
    raise Trouble(
        "py-spy is not here. `pip install py-spy`, then run this again, or look yourself: `py-spy "
        "dump --pid %d`, a few times. (From 3.14 on the doctor needs no py-spy, where it is run by "
        "the Python of the process, and may read it)" % pid
    )


def own_reader(pid):
    """What Python reads the stacks of a process with, tried; None where it cannot."""
    try:
        os.listdir("/proc/%d/task" % pid)  # which tells what is active
        from _remote_debugging import RemoteUnwinder

        unwinder = RemoteUnwinder(pid, all_threads=True)
        return unwinder if own_stacks_of(unwinder, pid) else None
    except Exception:  # another version, no permission, or not what it was in 3.14
        return None


def own_stacks_of(unwinder, pid):
    for _ in range(5):
        try:
            traces = unwinder.get_stack_trace()
            break
        except (RuntimeError, OSError, UnicodeDecodeError) as error:  # it ran on while it was read
            if is_gone(pid):
                return None
            why = told(error)
    else:
        raise Trouble("Python cannot read process %d (%s)" % (pid, why))
    return [
        {
            "active": is_active(pid, each.thread_id),
            "frames": [
                {"filename": frame.filename, "line": frame.lineno, "name": frame.funcname}
                for frame in each.frame_info
            ],
        }
        for each in traces
    ]


def is_active(pid, thread):
    """Whether a thread runs, or would if it had a processor."""
    try:
        with open("/proc/%d/task/%d/stat" % (pid, thread)) as file:
            return file.read().rpartition(") ")[2].startswith("R")
    except EnvironmentError:  # it has ended
        return False


def find_py_spy():
    folders = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    folders += os.environ.get("PATH", "").split(os.pathsep)
    paths = [os.path.join(folder, name) for folder in folders for name in ("py-spy", "py-spy.exe")]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def stacks_of(program, pid):
    import subprocess

    command = [program, "dump", "--json", "--full-filenames", "--pid", str(pid)]
    pipe = subprocess.PIPE
    looking = subprocess.Popen(command, stdout=pipe, stderr=pipe)
    out, said = looking.communicate()
    if looking.returncode == 0:
        return json.loads(out.decode("utf-8"))
    if is_gone(pid):
        return None
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if "rror:" in line]
    raise Trouble(
        "py-spy cannot read process %d (%s). It may need root: `sudo %s dump --pid %d`"
        % (pid, "; ".join(lines)[:200] or "it gave no reason", program, pid)
    )


def has_gevent(pid):
    """Whether a process has loaded gevent's compiled files; None where nobody can see."""
    try:
        with open("/proc/%d/maps" % pid) as maps:
            return "/gevent/" in maps.read()
    except (IOError, OSError):
        return None


def kind_of(thread, loop):
    """What a thread's stack (its "frames", innermost first) is caught at, as in SIGHTS, or None.

    A greenlet's stack begins with its own function. One that begins with a module is the main
    program, and no greenlet perhaps; one that begins in `threading` blocks its own thread only.
    """
    frames = thread["frames"]
    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files:
        return None
    line = readable(linecache.getline(frames[0]["filename"], frames[0]["line"]))
    if any(name in line for name in LOADS) or "load_default_certs" in line:
        return "loading"
    reads = (
        frames[0]["name"].rpartition(".")[2] in READS
        and is_standard(files[0])
        and not thread.get("active")
    )
    if reads and in_greenlet(frames, files, loop):
        return "not patched"
    waits = files[0].endswith("urllib3/util/wait.py")
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    below = any(name.endswith("urllib3/contrib/pyopenssl.py") for name in files)
    if not (waits and below) or in_thread or loop is False:
        return None
    return "blocked" if loop and frames[-1]["name"] != "<module>" else "perhaps blocked"


def stack_of(thread):
    return tuple((each["filename"], each["line"], each["name"]) for each in thread["frames"])


def keeps_loop(thread, loop):
    """Whether a thread waits, and has a loop of asyncio, trio or greenlets wait with it."""
    frames = thread["frames"]
    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files or thread.get("active"):
        return False
    name = frames[0]["name"].rpartition(".")[2]
    resting = any(files[0].endswith(file) and name == function for file, function in RESTS)
    if resting or files[0].endswith(LOOPS):
        return False
    return any(file.endswith(LOOPS) for file in files) or in_greenlet(frames, files, loop)


def in_greenlet(frames, files, loop):
    """Whether a stack is that of a greenlet: eventlet's begin in its own files, gevent's, which are
    compiled there, with the function that was spawned."""
    if "/eventlet/" in files[-1]:
        return True
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    begins = frames[-1]["name"] == "<module>"
    return bool(loop) and not in_thread and not begins


def is_standard(path):
    """Whether a file is the standard library's ssl.py or socket.py, and none of a package."""
    packages = ("site-packages", "dist-packages", "/gevent/", "/eventlet/")
    ours = path.endswith(("/ssl.py", "/socket.py"))
    return ours and not any(each in path for each in packages)


def attach_text(found):
    loaded = {True: "loaded", False: "not loaded", None: "nobody can see whether it is loaded"}
    lines = ["process %(pid)d, %(looks)d looks, by %(by)s" % found]
    lines.append("  gevent: %s" % loaded[found["gevent"]])
    for what, _, words in SIGHTS:
        if found["seen"][what] or what != "perhaps blocked":
            lines.append(wrapped(words % found["seen"][what]))
    if found["stack"]:
        lines.append("  the stack that shows it, the innermost call last:")
        lines += ["    " + line for line in found["stack"]]
    numbers = set(number for what, number, _ in SIGHTS if found["seen"][what])
    lines += ["  " + chapter(number) for number in sorted(numbers)]
    return "\n".join(lines + ["exit status %d" % found["exit_status"]]) + "\n"


# --------------------------------------------------------------------------------- the examination


def examine_apart(spec):
    """Have the program examined in a process of its own: what was found. Raises Trouble.

    What is asked is the first line of a file beside the server's, what was found is the last.
    """
    import shutil

    server, address = start_server()
    program, path = None, os.path.join(os.path.dirname(address["ca"]), "said")
    patience = spec["patience"] or PATIENCE_S
    try:
        needed(address)
        spec = dict(spec, patience=patience)
        with open(path, "w") as file:
            file.write(json.dumps(dict(spec, server=address, phase="start")) + "\n")
        program = begin("--examine", path)
        server.stdin.write(("%d\n" % program.pid).encode())  # should this process be killed
        server.stdin.flush()
        limit = clock() + patience + 1
        while clock() < limit and program.poll() is None and server.poll() is None:
            time.sleep(0.02)
        with open(path) as file:
            last = json.loads(file.readlines()[-1])
        if server.poll() is not None:
            raise Trouble(SERVER_GONE % server.returncode)
    except EnvironmentError as error:
        # Without the server its pipe is closed, and its folder may be gone.
        if error.errno != 32 and server.poll() is None:
            raise
        raise Trouble(SERVER_GONE % server.wait())
    finally:
        if program is not None:
            end_group(program.pid)
            if program.poll() is None:
                program.kill()
            program.wait()
        dismiss(server)
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)  # also of a server that was killed
    if "trouble" in last:
        raise Trouble(last["trouble"])
    if "phase" in last:
        name = spec["program"] or "the examination"
        raise Trouble(ended(name, last["phase"], program.returncode))
    return last


SERVER_GONE = (
    "the doctor's own server ended before the examination did (exit status %d), so there is "
    "nothing to tell: run it again"
)


def ended(name, phase, status):
    """Why a process that gave no answer ended, as far as its status tells."""
    where = {"start": "before its imports", "imports": "in its imports"}
    where = where.get(phase, "while it was examined")
    if status in (-9, -14):
        return "%s gave no answer %s in time, and was ended" % (name, where)
    if status < 0:
        return (
            "%s was killed by signal %d %s. A package with compiled code is likely not made for "
            "the others here (gevent and greenlet have to fit): reinstall it. `python -X "
            "faulthandler` shows which."
        ) % (name, -status, where)
    text = "%s ended itself %s (exit status %d, without an exception)."
    return (text + " Name a module that only imports.") % (name, where, status)


def look(address, spec, watch=None):
    """Examine this process: what was found, as a dictionary that `judge` reads.

    watch: what saw the program's imports, in a process that is ours: cures may be tried there,
    libraries imported that the program has not, and loads counted, by sessions as the library
    makes them. The loopback server is none of a proxy's business, so there are no proxies for them,
    and no warnings. In a process that is not ours nothing of that is done, and nothing changed.
    """
    started, imported, known = clock(), imported_ways(), known_clients()
    server, until = Server(address), clock() + ENOUGH_S
    if watch:
        os.environ.update(dict.fromkeys(("no_proxy", "NO_PROXY"), "*"))
    with warnings.catch_warnings() if watch else nothing():
        if watch:
            warnings.simplefilter("ignore")
        found, blocked = try_loop(server, spec, watch, imported, False)
        found["loads"] = check_loads(server, imported, watch, until) if watch else []
        found["load_ms"] = cost_of_a_load(found, watch) if watch else None
        found["certificates"] = certificates_of_a_load()
        if watch and blocked:
            found["cures"] = try_cures(loaded(found["loop"]["name"]), blocked, server)
        if watch and found["loop"]:
            found["trap"] = is_trapped()
    if watch:
        for name in ("no_proxy", "NO_PROXY"):
            os.environ.pop(name, None)
        os.environ.update(watch.environ)
    found["http"] = check_http(spec["url"], imported)
    return dict(found, known=known, examined_s=round(clock() - started, 2))


class nothing(object):
    """A `with` block that does nothing."""

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def imported_ways():
    return set(way.module for way in WAYS if loaded(way.module))


def known_clients():
    """The names of the clients that the doctor knows and that are imported."""
    names = ("http.client", "httplib", "eventlet.green.http.client")
    found = set(KNOWN[name] for name in KNOWN if loaded(name) and name not in ("http", "urllib"))
    found |= set("http.client" for name in names if loaded(name))
    return sorted(found | set("urlopen" for name in ("urllib.request", "urllib2") if loaded(name)))


def try_loop(server, spec, watch, imported, over):
    """(what is found of the event loop, the way that is blocked or None). over: the program has
    done its work, and nothing but cures is of interest."""
    loop, patched = find_loop()
    found = dict(
        program=spec["program"], python=sys.version.split()[0], openssl=openssl(),
        provides=provides(), injections=watch.injections if watch else [],
        loads_at_import=watch and len(watch.loads),
        loops_installed=[name for name in PATCHES if is_installed(name)],
        loop=None, cures=[], trap=False,
        own_tls=sorted(set(OWN_TLS[name] for name in OWN_TLS if loaded(name))),
    )  # fmt: skip
    by_loop = []
    if loop:
        used = own_code_uses(loop.__name__, spec["program"])
        found["loop"] = {"name": loop.__name__, "patched": patched, "used": used}
        by_loop = check_loop(loop, patched, server, imported, watch)
    found["clients"] = [row for _, row in by_loop]
    blocked = [way for way, row in by_loop if row["verdict"] == BLOCKED]
    if over and blocked:
        found["cures"] = try_cures(loop, blocked[0], server)
    return found, blocked[0] if blocked else None


def look_after(spec):
    """What the program has left behind at its end, in its own process, for `judge`."""
    if find_loop()[0] and spec["server"]["https"] is None:
        raise Trouble("the doctor cannot listen on 127.0.0.1, which its trials need")
    found = try_loop(Server(spec["server"]), spec, None, imported_ways(), True)[0]
    for name in ("program", "injections"):  # which the run itself knows better
        del found[name]
    return dict(found, known=known_clients(), certificates=certificates_of_a_load())


def examine(path):
    """The process of the examined program: reads what is asked, and writes lines of JSON after it,
    the last of them what was found; then this ends, whatever the program has left running in it."""
    with open(path) as file:
        spec = json.loads(file.readline())
    out, pid = open(path, "a"), os.getpid()
    os.dup2(2, 1)  # what the program prints is no part of the report
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if hasattr(os, "setsid"):
        os.setsid()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    watch, started, phase = Watch(), clock(), "imports"

    def answer(**what):
        if os.getpid() == pid:  # a child that the program forked has nothing to say
            out.write(json.dumps(what) + "\n")
            out.flush()

    try:
        answer(phase=phase)
        end_after(spec["patience"], TooLong)
        if spec["program"]:
            with watch:
                import_program(spec["program"], spec["arguments"])
        imported_s, phase = round(clock() - started, 2), "examination"
        # Whatever happens to whoever started this.
        end_after(max(1, int(spec["patience"] - (clock() - started))))
        answer(phase=phase)
        if os.getpid() == pid:
            answer(imported_s=imported_s, **look(spec["server"], spec, watch))
    except BaseException as error:
        answer(trouble=trouble_of(error, spec, phase))
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)  # no thread is waited for, and nothing is called that waits for the end


def inside(stream=None, **options):
    """Examine the process that calls this, as it is now, and print the report; returns it.

    For programs that patch when they start and not when they are imported: in gunicorn, call it in
    post_worker_init of the configuration file. Nothing is changed, and no cure is tried out.
    options: url. Blocks for some seconds. Where it cannot look it says why, in a report that has
    "trouble" and the exit status 2.
    """
    spec = dict(defaults(), program="this process", **options)
    try:
        server, address = start_server()
        try:
            report = judge(look(needed(address), spec), spec)
        finally:
            dismiss(server)
    except Trouble as trouble:
        text = trouble.args[0]
        verdicts = dict.fromkeys(("event loop", "certificate loads"), CANNOT_TELL)
        say("doctor: %s." % text, stream)
        return {"trouble": text, "verdicts": verdicts, "exit_status": 2}
    say(text_of(report, False), stream)
    return report


# -------------------- what a change saves: the counted connections, made again with and without it


#: So many connections at most are made again, and how long that may take.
MOST_AGAIN = 50
TRIED_WITHIN_S = 120
#: Where they ask at once, each answer takes so long, and they ask so often at most; so many do.
AT_ONCE_S, MOST_ROUNDS, MOST_AT_ONCE = 0.2, 4, 50


def closing_requests(url, trust):
    session = loaded("requests").Session()
    return lambda: session.get(url, headers={"Connection": "close"}).content


def each_requests(url, trust):
    return lambda: loaded("requests").get(url).content


def kept_requests(url, trust):
    session = loaded("requests").Session()
    return lambda: session.get(url).content


def with_places(url, size):
    """A Session whose pool has places for so many connections."""
    requests = loaded("requests")
    session = requests.Session()
    session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=size))
    return lambda: session.get(url).content


def in_threads(ask, wanted):
    """A function that has so many threads ask at once: the answers."""
    import threading

    answers = []

    def ask_all():
        del answers[:]
        threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(wanted)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if len(answers) < wanted:
            raise ValueError("not every thread got its answer")
        return answers

    return ask_all


def each_niquests(url, trust):
    quiet = {"revocation_configuration": None}
    return lambda: loaded("niquests").Session(**quiet).get(url, verify=trust).content


def kept_niquests(url, trust):
    session = loaded("niquests").Session(revocation_configuration=None)
    return lambda: session.get(url, verify=trust).content


def clients_of(httpx):
    """As CHANGES has them, of httpx or httpx2."""

    def each(url, trust):
        return lambda: loaded(httpx).get(url).content

    def kept(url, trust):
        client = loaded(httpx).Client()
        return lambda: client.get(url).content

    return httpx, each, kept


def awaiting_clients_of(httpx):
    """The same with clients that await, so many at once. (As Python 2.7 has to be able to read
    it.)"""

    def each(url, trust, wanted):
        wait = waiting()

        def ask():
            clients = [loaded(httpx).AsyncClient() for _ in range(wanted)]
            try:
                return [reply.content for reply in wait(gathered([c.get(url) for c in clients]))]
            finally:
                wait(gathered([client.aclose() for client in clients]))

        return ask

    def kept(url, trust, wanted):
        wait, client = waiting(), loaded(httpx).AsyncClient()

        def ask():
            replies = wait(gathered([client.get(url) for _ in range(wanted)]))
            return [reply.content for reply in replies]

        return ask

    return httpx, each, kept


def gathered(those):
    """What waits for all of some that can be awaited."""
    import asyncio

    class All(object):
        def __await__(self):
            return asyncio.gather(*those).__await__()

    return asyncio.wait_for(All(), None)


def waiting():
    """A function that waits for what can be awaited, on a loop of its own."""
    import asyncio

    return asyncio.new_event_loop().run_until_complete


def each_urllib3(url, trust):
    options = {"cert_reqs": "CERT_REQUIRED", "ca_certs": trust}
    return lambda: loaded("urllib3").PoolManager(**options).request("GET", url).data


def kept_urllib3(url, trust):
    import ssl

    pool = loaded("urllib3").PoolManager(ssl_context=ssl.create_default_context(cafile=trust))
    return lambda: pool.request("GET", url).data


def each_httplib2(url, trust):
    return lambda: loaded("httplib2").Http(ca_certs=trust).request(url)[1]


def kept_httplib2(url, trust):
    http = loaded("httplib2").Http(ca_certs=trust)
    return lambda: http.request(url)[1]


def with_http_client(url, **options):
    client = loaded("httplib" if PY2 else "http.client")
    _, _, place, path = url.split("/", 3)

    def ask():
        connection = client.HTTPSConnection(place, **options)
        try:
            connection.request("GET", "/" + path)
            return connection.getresponse().read()
        finally:
            connection.close()

    return ask


def each_http_client(url, trust):
    return with_http_client(url)


def each_urlopen(url, trust):
    return lambda: loaded("urllib2" if PY2 else "urllib.request").urlopen(url).read()


def kept_urlopen(url, trust):
    import ssl

    context, module = ssl.create_default_context(), loaded("urllib2" if PY2 else "urllib.request")
    return lambda: module.urlopen(url, context=context).read()


def each_tornado(url, trust):
    return with_tornado(url, ca_certs=trust)


def kept_tornado(url, trust):
    import ssl

    return with_tornado(url, ssl_options=ssl.create_default_context(cafile=trust))


def with_tornado(url, **options):
    import asyncio

    loop, client = asyncio.new_event_loop(), loaded("tornado.httpclient").AsyncHTTPClient
    # As Python 2.7 has to be able to read it: without `async def`.
    asyncio.set_event_loop(loop)
    return lambda: loop.run_until_complete(fetched(client, url, options)).body


def fetched(client, url, options):
    return client().fetch(url, **options)


def botocores(url, trust, clients={}):  # noqa: B006
    """One client that is kept: where the server closes each connection, it loads for each. (To make
    a client takes longer than a load, so it is made once, and priced in neither.)"""
    place, folder, name = url.rsplit("/", 2)
    if place not in clients:
        config = loaded("botocore.config").Config(
            signature_version=loaded("botocore").UNSIGNED, s3={"addressing_style": "path"}
        )
        options = dict(endpoint_url=place, region_name="us-east-1", verify=trust, config=config)
        clients[place] = loaded("botocore.session").get_session().create_client("s3", **options)
    clients[place].close()  # what it kept before; it goes on
    return lambda: clients[place].get_object(Bucket=folder, Key=name)["Body"].read()


def each_context(url, trust):
    import ssl

    return lambda: with_http_client(url, context=ssl.create_default_context(cafile=trust))()


def one_context(url, trust):
    import ssl

    return with_http_client(url, context=ssl.create_default_context(cafile=trust))


HTTP_CLIENT = "httplib" if PY2 else "http.client"
#: Of each client: (its module, as the program does it, with the change).
CHANGES = {
    "requests": ("requests", each_requests, kept_requests),
    "niquests": ("niquests", each_niquests, kept_niquests),
    "httpx": clients_of("httpx"),
    "httpx2": clients_of("httpx2"),
    "urllib3": ("urllib3", each_urllib3, kept_urllib3),
    "httplib2": ("httplib2", each_httplib2, kept_httplib2),
    "tornado": ("tornado.httpclient", each_tornado, kept_tornado),
    "botocore": ("botocore.session", botocores, botocores),
    "http.client": (HTTP_CLIENT, each_http_client, one_context),
    "urlopen": ("urllib2" if PY2 else "urllib.request", each_urlopen, kept_urlopen),
    "connection-close": ("requests", closing_requests, kept_requests),
}
#: Of those that await.
AWAITING = {"httpx": awaiting_clients_of("httpx"), "httpx2": awaiting_clients_of("httpx2")}
#: Of all others, whose contexts are those of `ssl`: a context for each connection, and one for all.
CONTEXTS = (HTTP_CLIENT, each_context, one_context)


def try_changes(found, address):
    """{client: what the change was seen to save} for each client that repeats its loads; for
    contexts that the program makes itself, under ITS_OWN.

    A value: {"connections", "at_once" (as many as in the run), "now": {"loads", "cpu_ms"}, "then":
    the same, "with" (the client that made them: another where the doctor does not know the
    program's)}. Left out is whatever could not be tried.
    """
    tried, late = {}, any(each["by"] == "truststore" for each in found["provides"])
    for row in found["counts"]["clients"]:
        client = row["client"] or ITS_OWN
        n = min(MOST_AGAIN, row["connections"] or row["loads"])  # none, over plain HTTP
        again = row["loads"] - row["needed"] >= 2 and n >= 2
        shared = client in ("requests", "botocore") and is_shared(row, found["counts"])
        kept = row["kept"] or shared
        known = client in CHANGES or [each for each, _ in row["by"]] == ["ssl"]
        spec = {"trust": row["trusts"][0][0] if row["trusts"] else None, "address": address}
        spec.update(late=late, awaits=2 * row["awaits"] > row["loads"])
        spec.update(wanted=min(at_once(row), MOST_AT_ONCE))
        if client == "requests" and row["closed"].get("program", 0) >= 2:
            try_one(tried, dict(spec, client="connection-close", rounds=n, wanted=1))
        if again and known and not kept and client not in tried:
            try_one(tried, dict(spec, client=client, rounds=n))
        wanted = row["wanted"].get("full", 0)
        if again and client == "requests" and "full" in wanting(row) and wanted <= MOST_AGAIN:
            spec = dict(spec, wanted=wanted, size=row["size"]["full"])
            rounds = max(2, min(MOST_ROUNDS, MOST_AGAIN // wanted))
            try_one(tried, dict(spec, client="larger-pool", rounds=rounds))
    return tried


def try_one(tried, spec):
    """Add to what was tried what came of one trial, if it came to something."""
    import time

    path = os.path.join(spec["address"]["folder"], "trial")
    with open(path, "w") as file:
        file.write(json.dumps(spec))
    environ, until = dict(os.environ, no_proxy="*", NO_PROXY="*"), clock() + TRIED_WITHIN_S
    with open(os.devnull, "w") as nowhere:
        process = begin("--try", path, environ=environ, stdout=nowhere, stderr=nowhere)
    while process.poll() is None and clock() < until:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
    if process.wait() == 0:
        with open(path) as file:
            tried[spec["client"]] = json.loads(file.read())


def try_change(path):
    """The process of one trial: the exit status, 0 where it came to something."""
    with open(path) as file:
        spec = json.loads(file.read())
    events = []
    probes = Probes(events.append).install()
    known, wanted = AWAITING if spec["awaits"] else CHANGES, spec["wanted"]
    module, each, kept = known.get(spec["client"], CONTEXTS)
    kinds, rounds = ("last", "kept"), spec["rounds"]
    if spec["client"] == "larger-pool":
        module, kinds = "requests", ("kept", "kept")
        each = lambda url, _: with_places(url, spec["size"])  # noqa: E731
        kept = lambda url, _: with_places(url, wanted)  # noqa: E731
    elif wanted > 1:
        rounds = max(1, min(MOST_ROUNDS, rounds // wanted))
    trust = bundle(spec["trust"], spec["address"]["folder"])
    if trust is None or not bring(module):
        return 1
    if spec["late"] and bring("truststore"):  # as in the program
        loaded("truststore").inject_into_ssl()
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        os.environ[name] = trust
    answer_s = AT_ONCE_S if wanted > 1 else 0
    url = "https://%s:%d/%s/last" % (HOST, spec["address"]["https"], answer_s)
    found = {"connections": rounds * wanted, "at_once": wanted, "with": spec["client"]}
    if spec["client"] not in CHANGES and module == HTTP_CLIENT:
        found["with"] = "http.client"
    # The first of each is not counted: it brings what is imported late.
    for name, make, kind in zip(("", "", "now", "then"), (each, kept) * 2, kinds * 2):
        del events[:]
        before = process_ms()
        if spec["awaits"] and known is AWAITING and spec["client"] in AWAITING:
            ask = make(url.replace("last", kind), trust, wanted)
        else:
            ask = make(url.replace("last", kind), trust)
            ask = in_threads(ask, wanted) if wanted > 1 else ask
        for _ in range(rounds if name else 1):
            answers = ask()
            answers = answers if isinstance(answers, list) else [answers]
            if any(json.loads(told.decode("ascii"))["trial"] != kind for told in answers):
                return 1
        loads = sum(event["is"] == "load" for event in events)
        found[name] = {"loads": loads, "cpu_ms": round(process_ms() - before, 1)}
    probes.remove()
    del found[""]
    if found["then"]["loads"] >= found["now"]["loads"] and (
        wanted == 1 or spec["client"] in ("larger-pool", "connection-close")
    ):
        return 1
    with open(path, "w") as file:
        file.write(json.dumps(found))
    return 0


def bundle(trust, folder):
    """A file of the certificates that the program loaded, and the doctor's; None where unknown."""
    if trust == "system":
        import ssl

        paths = ssl.get_default_verify_paths()
        trust = paths.cafile or paths.openssl_cafile
    if not trust or trust.startswith("data ") or not os.path.isfile(trust):
        return None
    path = os.path.join(folder, "bundle.pem")
    with open(trust, "rb") as known, open(path, "wb") as file:
        file.write(known.read() + b"\n" + CERTIFICATE.encode("ascii"))
    return path


# -------------------------------------------------------------- the program again, with the change


#: More than a program has threads, or hosts.
PLACES = 1000

# What is applied stands in for a line of the program: it does what the line would do, from outside.


def keep_connections(module):
    """Sessions of requests share one pool of connections, as one that is kept would have it. An
    adapter of the program's own stays as it is."""
    adapter, kept = module.HTTPAdapter, {}
    make, leave = adapter.init_poolmanager, adapter.close

    def init_poolmanager(self, *args, **kwargs):
        make(self, *args, **kwargs)
        if type(self) is adapter:
            key = os.getpid(), args, tuple(sorted(kwargs.items()))  # no child takes ours
            self.poolmanager = kept.setdefault(key, self.poolmanager)

    def close(self):
        if type(self) is not adapter:
            leave(self)

    adapter.init_poolmanager, adapter.close = init_poolmanager, close


def keep_all_connections(module):
    """Pools of requests have a place for every connection, as a larger one would have, and keep
    those to every host. An adapter of the program's own stays as it is."""
    adapter = module.HTTPAdapter
    make = adapter.init_poolmanager

    def init_poolmanager(self, connections, maxsize, block=False, **options):
        if type(self) is adapter and not block:
            connections, maxsize = max(connections, PLACES), max(maxsize, PLACES)
        make(self, connections, maxsize, block=block, **options)

    adapter.init_poolmanager = init_poolmanager


def one_of_each(function):
    """A function that makes a context once for each set of arguments and each process."""
    made, lock = {}, {}

    def make(*args, **kwargs):
        import threading  # not before the program has the chance to patch it

        key = os.getpid(), args, tuple(sorted(kwargs.items()))
        try:
            hash(key)
        except TypeError:  # what cannot be compared
            return function(*args, **kwargs)
        with lock.setdefault(os.getpid(), threading.Lock()):
            if key not in made:
                made[key] = function(*args, **kwargs)
            return made[key]

    return make


def one_context_of_httpx(module):
    module.create_ssl_context = one_of_each(module.create_ssl_context)


def one_context_of_ssl(module):
    module._create_default_https_context = one_of_each(module._create_default_https_context)


def one_context_of_httplib2(module):
    module._build_ssl_context = one_of_each(module._build_ssl_context)


def one_context_of_tornado(module):
    """Requests that name the same certificates get one context."""
    kind, made = module._HTTPConnection, {}
    make = kind._get_ssl_options

    def _get_ssl_options(self, scheme):
        asked = self.request
        if scheme != "https" or asked.ssl_options is not None:
            return make(self, scheme)
        key = os.getpid(), asked.validate_cert, asked.ca_certs, asked.client_cert, asked.client_key
        if key not in made:
            made[key] = make(self, scheme)
        return made[key]

    kind._get_ssl_options = _get_ssl_options


def one_client_of_botocore(module):
    """Clients with the same settings share one pool of connections, as one that is kept has it."""
    kind, kept = module.URLLib3Session, {}
    make = kind.__init__

    def __init__(self, *args, **kwargs):
        make(self, *args, **kwargs)
        key = os.getpid(), repr(args), repr(sorted(kwargs.items()))
        self._manager = kept.setdefault(key, self._manager)

    kind.__init__, kind.close = __init__, lambda self: None


def one_context_of_a_line(module):
    """Each line of the program that makes contexts makes one, for the same arguments."""
    make, lines = module.create_default_context, {}

    def create_default_context(*args, **kwargs):
        caller = sys._getframe(1)
        if is_library(caller.f_code.co_filename):
            return make(*args, **kwargs)
        line = caller.f_code, caller.f_lineno
        return lines.setdefault(line, one_of_each(make))(*args, **kwargs)

    module.create_default_context = create_default_context


def one_context_of_pools(module):
    """Pools that the program makes by itself get one context for each file of certificates."""
    import ssl

    context = one_of_each(ssl.create_default_context)
    needs = "ssl_context cert_file ca_cert_dir ca_cert_data ssl_version".split()
    verifies = (None, ssl.CERT_REQUIRED, "CERT_REQUIRED", "REQUIRED")

    def with_context(kind):
        make = kind.__init__

        def __init__(self, *args, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            plain = options.get("cert_reqs") in verifies and not any(map(options.get, needs))
            if caller not in ("requests", "urllib3") and plain:
                options["ssl_context"] = context(cafile=options.pop("ca_certs", None))
            make(self, *args, **options)

        kind.__init__ = __init__

    with_context(module.PoolManager)
    with_context(module.HTTPSConnectionPool)


def no_injection(module):
    module.inject_into_urllib3 = lambda: None


def no_closing(module):
    """Requests go without the header that has their connection closed."""
    kind = module.HTTPConnection
    put = kind.putheader

    def putheader(connection, header, *values):
        return None if says_close(header, values) else put(connection, header, *values)

    kind.putheader = putheader


#: What can be applied: its module, when that has been imported.
APPLIED = {
    "requests": {"requests.adapters": keep_connections},
    "larger-pool": {"requests.adapters": keep_all_connections},
    "connection-close": {"http.client": no_closing, "httplib": no_closing},
    "httpx": {"httpx._config": one_context_of_httpx},
    "httpx2": {"httpx2._config": one_context_of_httpx},
    "httplib2": {"httplib2": one_context_of_httplib2},
    "tornado": {"tornado.simple_httpclient": one_context_of_tornado},
    "botocore": {"botocore.httpsession": one_client_of_botocore},
    ITS_OWN: {"ssl": one_context_of_a_line},
    "http.client": {"ssl": one_context_of_ssl},
    "urlopen": {"ssl": one_context_of_ssl},
    "urllib3": {"urllib3.poolmanager": one_context_of_pools},
    "injected": {
        "urllib3.contrib.pyopenssl": no_injection,
        "requests.packages.urllib3.contrib.pyopenssl": no_injection,
    },
}


def to_apply(changes):
    """{module: function that changes it} of the names of some changes."""
    found = {}
    for name in changes:
        for module, change in APPLIED.get(name, {}).items():
            found.setdefault(module, []).append(change)

    def all_of(those):
        return lambda module: [change(module) for change in those]

    return dict((module, all_of(those)) for module, those in found.items())


def apply_first(changes):
    """Do what has to come before the program: a loop's patch."""
    for name in changes:
        if name in PATCHES:
            exec(PATCHES[name], {})


def changes_in(report):
    """The names of the changes that a report asks for and that can be applied: clients, "injected",
    and loops that are to patch."""
    ids = [each["id"] for each in report["advice"]]
    changes = [name for name in ill_clients(report) if name in APPLIED]
    if any(each["id"] == "larger-pool" and "requests" in each["add"] for each in report["advice"]):
        changes.append("larger-pool")
    if "connection-close" in ids and any(
        row["closed"].get("program") and row["client"] in ("requests", "urllib3")
        for row in report["counts"]["clients"]
    ):
        changes.append("connection-close")
    if "injected" in ids:
        changes.append("injected")
    elif report["loop"] and {"patch", "patch-first", "patch-everything"} & set(ids):
        changes.append(report["loop"]["name"])
    return sorted(set(changes))


def ill_clients(report):
    """The clients whose loads are to be changed, as `try_changes` calls them."""
    if "keep-one" not in [each["id"] for each in report["advice"]]:
        return []
    counts = report["counts"]
    rows = [row for row in counts["clients"] if not row["kept"]]
    rows = [row for row in rows if row["loads"] > row["needed"] + 1]
    # A Session that is shared is kept already.
    rows = [row for row in rows if row["client"] != "requests" or not is_shared(row, counts)]
    return [row["client"] or its_own(row) for row in rows]


def its_own(row):
    """What contexts are called that no client makes: those that the program's own lines make, by
    create_default_context, can be made once from outside."""
    return ITS_OWN if row["default"] == row["contexts"] else "the program's other contexts"


def run_again(report, run):
    """What came out when the program ran again with what its report asks for, beside what was
    promised: {"changes", "left" (clients that cannot be changed from outside), "why" (nothing ran,
    or None), "loads", "cpu_ms" and "event loop" (before, and now), "promises": rows of {"client",
    "promised", "loads"}, "kept" (None: none was made)}.

    run: a function of the changes that makes the second report.
    """
    found, changes = {"changes": [], "why": None, "promises": [], "kept": None}, changes_in(report)
    found["left"] = sorted(set(ill_clients(report)) - set(changes))
    ended = report["ended"]
    if ended["why"] or ended["raised"] or ended["status"]:
        return dict(found, why="it did not come to a good end the first time")
    if not changes:
        asked = "keep-one" in [each["id"] for each in report["advice"]]
        why = "the doctor cannot make this change from outside: make it, and run the doctor again"
        return dict(found, why=why if asked or report["advice"] else "nothing is to be changed")
    say("running the program again, with the change (%s)" % ", ".join(changes))
    second = run(changes)
    for name in ("loads", "cpu_ms"):
        found[name] = [report["counts"][name], second["counts"][name]]
    found["event loop"] = [each["verdicts"]["event loop"] for each in (report, second)]
    before, now = by_client(report), by_client(second)
    # The context of urllib3's pools is made for them, as by the program.
    own = max(0, now.get(ITS_OWN, (0, 0))[0] - before.get(ITS_OWN, (0, 0))[0])
    for client, tried in sorted(report.get("tried", {}).items()):
        # How many threads ask at once may be another number the next time.
        if client in changes and client != "larger-pool":
            of = "requests" if client == "connection-close" else client
            loads, needed = now.get(of, (0, 0))
            loads += own if client == "urllib3" else 0
            promised = max(tried["then"]["loads"], needed)
            row = {"client": client, "promised": promised, "loads": loads}
            found["promises"].append(row)
    if found["promises"]:
        found["kept"] = all(row["loads"] <= row["promised"] for row in found["promises"])
    good = not (second["ended"]["raised"] or second["ended"]["why"] or second["ended"]["status"])
    why = None if good else "with the change it did not come to a good end"
    return dict(found, changes=changes, why=why)


def by_client(report):
    """{client, or ITS_OWN: (loads, needed)} of a run."""
    found = {}
    for row in report["counts"]["clients"]:
        name = row["client"] or ITS_OWN
        loads, needed = found.get(name, (0, 0))
        found[name] = loads + row["loads"], needed + row["needed"]
    return found


def again_lines(again):
    if again["left"] and again["changes"]:
        text = "%s: cannot be changed from outside, so nothing is promised."
        yield wrapped(text % ", ".join(again["left"]))
    if not again["changes"]:
        yield wrapped("The program was not run again: %s." % again["why"])
        return
    yield wrapped("applied from outside: %s" % ", ".join(again["changes"]))
    if again["why"]:
        yield wrapped("But %s." % again["why"])
    numbers = [several(each, "load") for each in again["loads"]]
    yield wrapped("%s before, %s now" % tuple(numbers))
    yield wrapped("%.0f ms of CPU before, %.0f ms now" % tuple(again["cpu_ms"]))
    if again["event loop"][0] != DOES_NOT_APPLY:
        yield wrapped("event loop: %s before, %s now" % tuple(again["event loop"]))
    for row in again["promises"]:
        text = "%(client)s: at most %(promised)d promised, and %(loads)d came out"
        yield wrapped(text % row)
    if again["kept"] is not None:
        yield wrapped("The promise was %skept." % ("" if again["kept"] else "not "))


# ---------------------------------------- a run: the program as its user starts it, and its counts


#: After so many events of one process nothing more is written.
MOST_EVENTS = 400000
UNCOUNTED_FROM_HERE = "after %d events nothing more was counted" % MOST_EVENTS
#: Events without which there is nothing to tell of a program that was interrupted.
TELLS = ("begin", "load", "silence", "failed", "unreached", "own tls")
#: What a program that is asked to end is given for it; by Ctrl-C, which a server takes as a request
#: to finish what it does, it is given longer.
ENDS_WITHIN_S, ENDS_AFTER_INT_WITHIN_S = 5, 30
#: The modules that the doctor has imported before the program: one of that name beside the program
#: is meant by its imports, as it would be without the doctor.
OWN_IMPORTS = (
    "atexit bisect gc getopt json linecache re resource signal textwrap warnings weakref".split()
)

#: What every Python that the program starts reads first.
SITE = """\
import sys
this = sys.modules.pop("sitecustomize")
sys.path[:] = [each for each in sys.path if each != {folder!r}]
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = this
sys.path.insert(0, {folder!r})
try:
    import tls_doctor_in_child
    tls_doctor_in_child.count_here({events!r}, {changes!r})
except Exception:
    pass
finally:
    sys.path.remove({folder!r})
"""


def run_apart(spec):
    """Run the program in a process of its own, as its user would: what was found. Raises Trouble.
    With "changes" in what is asked, these are applied to it, as `again` has them.

    What it prints goes to standard error: standard output is the report's.
    """
    server, address = start_server()
    folder, program = address["folder"], None
    asked, before = hear()  # before there is a program that could be left behind
    events = os.path.join(folder, "events")
    try:
        path = os.path.join(folder, "spec")
        with open(path, "w") as file:
            children = in_children(folder, events, [str(each) for each in spec["changes"]])
            file.write(json.dumps(dict(spec, server=address, events=events, children=children)))
        environ = dict(os.environ)
        program = begin("--run", path, environ=environ, stdout=2)
        server.stdin.write(("-%d\n" % program.pid).encode())  # should this process be killed
        server.stdin.flush()
        ended, number = wait_for(program, spec["patience"], asked)
        hear_no_more(before)
        last = read_events(events)
        if ended:
            end_those(set(event["pid"] for event in last) - set([program.pid]))
        if number and not any(event["is"] in TELLS for event in last):
            raise Trouble(INTERRUPTED, 128 + number)
        found = found_in(last, spec, program.returncode, ended)
        found["ended"]["signal"] = number
        wanted = address["https"] and not spec["changes"]
        if wanted and verdict_on(found["counts"], spec["share"]) == REPEATED:
            found["tried"] = try_changes(found, address)
        return found
    finally:
        hear_no_more(before)
        if program is not None and program.poll() is None:
            program.kill()
            program.wait()
        dismiss(server)
        import shutil

        for _ in range(100):  # what was ended just now may write for another moment
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):
                break
            time.sleep(0.02)


def in_children(folder, events, changes):
    """Make what has the Pythons counted that the program starts: the PYTHONPATH that does it."""
    import shutil

    place = os.path.join(folder, "children")
    os.mkdir(place)
    with open(os.path.join(place, "sitecustomize.py"), "w") as file:
        file.write(SITE.format(folder=place, events=events, changes=changes))
    shutil.copy(OWN_FILE, os.path.join(place, "tls_doctor_in_child.py"))
    return os.pathsep.join([place] + [each for each in [os.environ.get("PYTHONPATH")] if each])


INTERRUPTED = "interrupted before a TLS connection was made; nothing is left running"


def end_those(pids):
    """End the processes that a program has left, which was not let come to its end."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            pass
    until = clock() + 2  # they write at their end, into a folder that goes next
    while hasattr(os, "killpg") and any(map(is_there, pids)) and clock() < until:
        time.sleep(0.02)


def is_there(pid):
    """Check whether a process has not ended."""
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False


def hear():
    """Note the signals that would end the doctor. Returns the list of those that came, and the
    handlers that were there before."""
    asked = []
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    numbers = [each for each in numbers if each and signal.getsignal(each) != signal.SIG_IGN]
    hears = lambda number, _: asked.append(number)  # noqa: E731
    return asked, [(number, signal.signal(number, hears)) for number in numbers]


def hear_no_more(handlers):
    for number, handler in handlers:
        signal.signal(number, handler)


def wait_for(program, patience, asked):
    """Wait until the program has ended; whoever ends the doctor, ends it, and whoever asks twice,
    at once. asked: see `hear`. Returns why it ended before its time, or None, and the number of the
    signal, or None."""
    limit = clock() + patience if patience else None
    why, kill_at, told = None, None, 0
    while program.poll() is None:
        for number in asked[told:]:
            told += 1
            if number != signal.SIGINT or not os.isatty(0):  # the terminal has told both of us
                program.send_signal(number)
        if asked:
            by_key = asked[0] == signal.SIGINT
            kill_at = kill_at or clock() + (ENDS_AFTER_INT_WITHIN_S if by_key else ENDS_WITHIN_S)
            if len(asked) > 1:
                program.kill()
        if limit and clock() > limit and kill_at is None:
            why, kill_at = "ended after %d s, as --patience says" % patience, limit + 2
            program.terminate()
        if kill_at and clock() > kill_at:
            program.kill()
        time.sleep(0.01)
    return "interrupted" if asked else why, int(asked[0]) if asked else None


def read_events(path):
    """The events that were written, without one that was cut off."""
    events = []
    try:
        with open(path, "rb") as file:
            for line in file:
                try:
                    events.append(json.loads(line.decode("utf-8")))
                except ValueError:
                    pass
    except EnvironmentError:
        pass
    return events


def found_in(events, spec, status, why):
    """What `judge` reads, of a run that has ended with a status, or because of something (why)."""
    found = dict(
        program=" ".join([spec["program"]] + spec["arguments"]), python=None, openssl=None,
        provides=[], injections=[], loads_at_import=None, loops_installed=[], loop=None,
        clients=[], cures=[], trap=False, loads=[], load_ms=None, certificates=None, own_tls=[],
        http={"url": None, "offers": None, "clients": [], "requests": 0},
    )  # fmt: skip
    tried = False
    for event in events:
        if event["is"] == "trouble":
            raise Trouble(event["why"])
        if event["is"] == "found":
            found.update(event["found"])
            tried = True
    counts = counted(events)
    raised = [event["why"] for event in events if event["is"] == "raised"]
    found["injections"] = counts.pop("injections")
    found["ended"] = {"status": status, "why": why, "raised": raised[0] if raised else None}
    loops = sorted(set(event["name"] for event in events if event["is"] == "loop"))
    untried = [event["why"] for event in events if event["is"] == "untried"]
    if loops and not found["loop"]:
        # It is in a process that ended too early, or in a child.
        why = "it is in a process that the program started" if tried else "the program was ended"
        found["loop"] = {"name": loops[0], "patched": None, "used": True}
        found["untried"] = untried[0] if untried else why
    if found["python"] is None:
        found.update(python=sys.version.split()[0], openssl={"ssl": "", "loads": ""})
    return dict(found, counts=counts)


# In the process of the program, and in those that it starts.


def writer(path):
    """A function that writes events as lines to a file that others write to as well."""
    kept, names = {}, {"open": os.open, "write": os.write, "stat": os.fstat}

    def opened():
        handle = names["open"](path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        state = names["stat"](handle)
        kept.update(handle=handle, identity=(state.st_dev, state.st_ino), written=0)

    def write(event):
        kept["written"] += 1
        if kept["written"] > MOST_EVENTS and event["is"] in ("context", "load", "begin", "end"):
            if "told" in kept:
                return
            kept["told"] = True
            event = dict((name, event[name]) for name in ("pid", "cpu", "compiled"))
            event.update({"is": "uncounted", "why": UNCOUNTED_FROM_HERE})
        try:  # a daemon closes all its files, and another may have this number now
            state = names["stat"](kept["handle"])
            same = (state.st_dev, state.st_ino) == kept["identity"]
        except OSError:
            same = False
        if not same:
            opened()
        names["write"](kept["handle"], (json.dumps(event) + "\n").encode("utf-8"))

    opened()
    return write


def count_here(path, changes=()):
    """Count in this process from now on, with these changes: its probes."""
    probes = Probes(writer(path))
    probes.changes = to_apply(changes)
    atexit.register(probes.note, "exit")
    probes.note("process")
    leave = os._exit

    def _exit(status):
        probes.note("exit")
        leave(status)

    os._exit = _exit
    return probes.install()


def run_program(path):
    """The process of the program: run it, and then look at its event loop, if it has one."""
    with open(path) as file:
        spec = json.loads(file.read())
    probes, pid = count_here(spec["events"], spec["changes"]), os.getpid()
    status = 0
    try:
        run = prepared(spec)
    except Trouble as trouble:
        probes.note("trouble", why=trouble.args[0])
        return 2
    os.environ["PYTHONPATH"] = str(spec["children"])
    probes.note("start")
    try:
        apply_first(spec["changes"])
        run()
    except SystemExit as error:
        status = error.code
    except BaseException as error:
        kind, value, trace = sys.exc_info()
        while trace is not None and trace.tb_next and is_ours(trace):
            trace = trace.tb_next
        inner = error
        while isinstance(getattr(inner, "exceptions", None), tuple):  # a group tells who waited
            inner = inner.exceptions[0]
        of = trace if inner is error else inner.__traceback__
        probes.note("raised", why="%s, at %s" % (told(inner), place_of(of)))
        if not PY2:
            value = value.with_traceback(trace)
        sys.excepthook(kind, value, trace)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    if os.getpid() != pid:  # a child that the program forked has nothing to say
        return status
    before = process_ms()
    try:
        probes.active = False
        probes.note("found", found=look_after(spec))
    except BaseException as error:
        probes.note("untried", why=told(error))
    probes.active = True
    probes.note("trial", ms=process_ms() - before)
    return status


def is_ours(trace):
    path = trace.tb_frame.f_code.co_filename
    return path == OWN_FILE or path.startswith("<frozen") or os.path.basename(path) == "runpy.py"


def place_of(trace):
    """The innermost line of the program's own code; where there is none, of any."""
    places, own = [""], []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith("<") and path != OWN_FILE:
            (places if is_library(path) else own).append("%s:%d" % (short(path), trace.tb_lineno))
        trace = trace.tb_next
    return (own or places)[-1]


def prepared(spec):
    """A function that runs the program as Python would; sys.argv and sys.path are ready for it.

    Raises Trouble for what cannot be run.
    """
    name, arguments = spec["program"], list(spec["arguments"])
    if PY2:  # whose command lines are bytes
        name, arguments = name.encode("utf-8"), [each.encode("utf-8") for each in arguments]
    path = name if os.path.exists(name) else None
    if path is None and not spec["module"] and os.sep not in name:
        path = console_script(name)
    folder = os.getcwd()
    if path is not None and not spec["module"]:
        path = os.path.abspath(path)
        whole = os.path.isdir(path) or is_archive(path)
        folder = path if whole else os.path.dirname(os.path.realpath(path))
    if not (getattr(sys.flags, "isolated", 0) or getattr(sys.flags, "safe_path", 0)):
        sys.path[0] = folder
    elif folder == path:
        sys.path.insert(0, folder)
    for each in OWN_IMPORTS:
        if os.path.exists(os.path.join(folder, each + ".py")):
            sys.modules.pop(each, None)
    kept.append(sys.modules["__main__"])
    main = type(sys)("__main__")
    main.__builtins__ = kept[0].__builtins__
    main.__spec__ = main.__loader__ = None
    if spec["module"] or path is None:
        sys.argv = [name] + arguments
        return module_run(name, main, spec["module"])
    sys.argv = [name if path == os.path.abspath(name) else path] + arguments
    if folder == path:
        sys.modules["__main__"] = main
        return lambda: run_as_main("__main__", False)
    try:
        with open(path, "rb") as file:
            text = file.read()
        code = compile(text, path, "exec", 0, True)
    except (SyntaxError, ValueError, TypeError) as error:
        if isinstance(error, SyntaxError):
            error.__traceback__ = None  # of the line, and not of the doctor, as Python tells it
            sys.excepthook(type(error), error, None)
        raise Trouble("%s is no program of this Python (%s)" % (short(path), told(error)))
    main.__file__ = path
    sys.modules["__main__"] = main

    def run():
        exec(code, main.__dict__)

    return run


#: So that Python 2.7 does not empty what the doctor's functions need.
kept = []


def module_run(name, main, is_module):
    """A function that runs a module as `python -m` does, or calls `package.module:function`."""
    module, colon, function = name.partition(":")
    if not re_name(module) or (colon and not re_name(function)):
        raise Trouble(
            "there is no program %r: name a script, a console script, -m and a module, or "
            "package.module:function (of standard input: /dev/stdin)" % readable(name)
        )
    if not colon:
        sys.modules["__main__"] = main
        return lambda: run_as_main(module, True)

    def call():
        __import__(module)
        value = sys.modules[module]
        for each in function.split("."):
            value = getattr(value, each)
        value = value()
        if hasattr(value, "__await__"):
            import asyncio

            value = asyncio.run(value)
        if isinstance(value, int):  # as a console script ends
            sys.exit(value)

    sys.modules["__main__"] = main
    return call


def re_name(text):
    import re

    return re.match(r"[^\W\d]\w*(\.[^\W\d]\w*)*$", text)


def run_as_main(module, alter):
    import runpy

    try:
        runpy._run_module_as_main(module, alter)
    except TypeError:
        if hasattr(runpy, "_run_module_as_main"):
            raise
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def is_archive(path):
    """Whether a file is a zip archive, as Python runs them."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 66000))
            return b"PK\x05\x06" in file.read() and not path.endswith(".py")
    except EnvironmentError:
        return False


def console_script(name):
    """The path of a command that is written in Python; None where there is no such command."""
    places = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    places += os.environ.get("PATH", "").split(os.pathsep)
    for place in places:
        path = os.path.join(place, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            with open(path, "rb") as file:
                begins = file.read(300)
            if begins.startswith(b"#!") and b"python" in begins:
                return path
            if not begins.startswith(b"#!"):
                raise Trouble(
                    "%s is no Python program, and the doctor counts in Python alone: name the "
                    "script itself" % readable(path)
                )
    return None


# ------------------------------------------------------------------------------ what --json prints


#: Numbers of `counted`.
COUNTS = (
    "processes contexts sessions pools open loads needed connections handshakes failed peak "
    "under_loop again cpu_ms compiled_ms load_ms spare_ms share again_share alive context_mib"
).split()


def schema():
    """The JSON schema (2020-12) of a report. Names and ids stay; new ones may come."""
    number, text, either = {"type": "number"}, {"type": "string"}, {"type": ["string", "null"]}

    def thing(required, **properties):
        return {"type": "object", "required": sorted(required), "properties": properties}

    def rows(row):
        return {"type": "array", "items": row}

    loop = {"enum": [BLOCKED, FREE, CANNOT_TELL, DOES_NOT_APPLY]}
    loads = {"enum": [REPEATED, ONCE, UNCOUNTED, UNSEEN, CANNOT_TELL]}
    verdicts = {
        "event loop": loop, "certificate loads": loads,  # those below, of a run alone
        "loads on the loop": {"enum": [HELD_UP, FREE, DOES_NOT_APPLY]},
        "handshakes": {"enum": [ONE_AT_A_TIME, NOT_IN_A_ROW, DOES_NOT_APPLY]},
        "contexts": {"enum": [ONE_FOR_EACH, FEW, DOES_NOT_APPLY]},
    }  # fmt: skip
    advice = thing(
        ["id", "case", "what", "remove", "add", "package", "saves", "chapter"],
        id={"enum": sorted(ADVICE)}, case={"enum": [1, 2, 3, 4]}, what=text, remove=text, add=text,
        package=text, saves=text, chapter=text,
    )  # fmt: skip
    blocked = thing(["times", "s", "waiting_s"], times=number, s=number, waiting_s=number)
    stood = thing(["fetched", "waits", "times", "s"], fetched={"type": "boolean"}, waits=number,
                  times=number, s=number, in_greenlets={"type": "boolean"})  # fmt: skip
    names = ("contexts", "loads", "needed", "connections", "load_ms", "spare_ms")
    client = thing(
        ["client", "through", "kept", "requests"] + list(names), client=either, through=either,
        kept={"type": "boolean"}, requests={"type": ["number", "null"]},
        **dict.fromkeys(names, number)
    )  # fmt: skip
    counts = dict(dict.fromkeys(COUNTS, number), blocked=blocked, stood=stood, clients=rows(client))
    ended = thing(["status", "why", "raised", "signal"], why=either, raised=either)
    trouble = thing(["trouble", "exit_status", "version"], trouble=text, version=text)
    looked = thing(["pid", "looks", "seen", "exit_status"], pid=number, looks=number)
    two = {"type": "array", "minItems": 2, "maxItems": 2}
    promise = thing(["client", "promised", "loads"], client=text, promised=number, loads=number)
    again = thing(
        ["changes", "left", "why", "promises", "kept"], changes=rows(text), left=rows(text),
        why=either, promises=rows(promise), kept={"type": ["boolean", "null"]}, loads=two,
        cpu_ms=two,
    )  # fmt: skip
    report = thing(
        ["verdicts", "advice", "exit_status", "version", "program", "python", "openssl"],
        verdicts=thing(
            ["event loop", "certificate loads"],
            **verdicts
        ),
        advice=rows(advice), program=either, python=text, version=text, ended=ended,
        counts=thing(COUNTS + ["blocked", "stood", "clients"], **counts),
        exit_status={"enum": [0, 1, 2, 129, 130, 143]}, again=again,
    )  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": (ADDRESS or "urn:tls-doctor") + "/doctor-report.json",
        "title": "What doctor.py --json prints",
        "anyOf": [report, trouble, looked],
    }


# -------------------------------------------------------------------------------- the command line


def parse(arguments):
    """The command line as a dictionary like `defaults`. Raises Trouble."""
    import getopt

    spec, own = defaults(), list(arguments)
    if "--" in own:
        own, program = own[: own.index("--")], own[own.index("--") + 1 :]
        if not program:
            raise Trouble("after -- comes a module or a script")
        if own[:1] == ["run"]:
            spec["run"], own = True, own[1:]
            spec["python"], program = without_python(program)
            if program[0] == "-m":
                spec["module"], program = True, program[1:]
        if not program:
            raise Trouble("after -m comes a module")
        spec["program"], spec["arguments"] = program[0], program[1:]
    if own[:1] == ["run"]:
        raise Trouble("run needs a program: doctor.py run -- program.py arguments")
    if own[:1] == ["attach"]:
        if not "".join(own[1:2]).isdigit():
            raise Trouble("attach needs the number of a process: doctor.py attach PID")
        spec["attach"], own = int(own[1]), own[2:]
    try:
        names = ["json", "github", "again", "url=", "fail-on="] + [name + "=" for name in NUMBERS]
        given, rest = getopt.getopt(own, "", names)
    except getopt.GetoptError as error:
        raise Trouble(str(error))
    if rest:
        raise Trouble("%r is not known; a program is named after --" % rest[0])
    for option, text in given:
        name, wants = option[2:], "an address that begins with https://"
        try:
            if name in NUMBERS:
                kind, _, most = NUMBERS[name]
                wants = "a number above 0, up to %d" % most
                value = 0 < kind(text) <= most and kind(text)
            elif name == "fail-on":
                wants = "what exits with 1: " + ", ".join(sorted(FAILS))
                name, value = "fail_on", text.split(",")
                value = set(value) <= set(FAILS) and value
            else:
                value = name in ("json", "github", "again") or (
                    text.startswith(("https://", "http://")) and parts_of(text)[0] and text
                )
        except ValueError:
            value = None
        if not value:
            raise Trouble("%s takes %s" % (option, wants))
        spec[name] = value
    if spec["again"] and not spec["run"]:
        raise Trouble("--again is for a run: doctor.py run --again -- program.py")
    return spec


def without_python(program):
    """(the path of the Python at the beginning of a command line or None, the rest of it)"""
    if len(program) < 2 or not re.match(r"python[0-9.]*$", os.path.basename(program[0])):
        return None, program
    paths = [program[0]]
    if not os.path.dirname(program[0]):
        folders = os.environ.get("PATH", "").split(os.pathsep)
        paths = [os.path.join(folder, program[0]) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), None), program[1:]


def other_python(spec):
    """The Python that runs the program of a run, where that is another than this one, or None: the
    one that is named, or that of a console script."""
    python = spec["python"]
    if python is None and not spec["module"]:
        try:
            path = spec["program"] if os.path.isfile(spec["program"]) else None
            with open(path or console_script(spec["program"]) or os.devnull, "rb") as file:
                line = file.readline(300)
        except (EnvironmentError, Trouble):
            return None
        found = re.match(b"#! *(/[^ ]*python[0-9.]*) *\n", line)
        python = found.group(1).decode("utf-8") if found else None
    here = sys.executable or ""
    if not python or not os.access(python, os.X_OK):
        return None
    places = [os.path.abspath(os.path.dirname(each)) for each in (python, here)]
    same = places[0] == places[1] and os.path.realpath(python) == os.path.realpath(here)
    return None if same else python


def main(arguments):
    sys.dont_write_bytecode = True
    if arguments[:1] == ["--serve"]:
        return serve()
    if arguments[:1] == ["--examine"]:
        examine(arguments[1])
    if arguments[:1] == ["--try"]:
        return try_change(arguments[1])
    if arguments[:1] == ["--run"]:
        sys.dont_write_bytecode = False
        return run_program(arguments[1])
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if arguments[:1] == ["--version"]:
        print("doctor %s, Python %s" % (VERSION, sys.version.split()[0]))
        return 0
    if arguments[:1] == ["--schema"]:
        print(json.dumps(schema(), indent=1, sort_keys=True))
        return 0
    spec, chosen = None, arguments[:1] == ["--chosen"]
    try:
        spec = parse(arguments[1:] if chosen else arguments)
        if spec["run"] and not chosen and other_python(spec):
            sys.stdout.flush()
            python = other_python(spec)
            os.execv(python, [python, OWN_FILE, "--chosen"] + list(arguments))
        if spec["attach"] is None:
            report = judge((run_apart if spec["run"] else examine_apart)(spec), spec)
            if spec["again"]:
                run = lambda changes: judge(run_apart(dict(spec, changes=changes)), spec)  # noqa: E731
                report["again"] = run_again(report, run)
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
            text = text_of(report, sys.stdout.isatty() and not plain)
        else:
            report = attach(spec["attach"], spec["seconds"], spec["share"])
            text = attach_text(report)
    except (Trouble, KeyboardInterrupt) as trouble:
        text = trouble.args[0] if trouble.args else "interrupted; nothing is left running"
        text += "" if spec else ". --help says more"
        status = trouble.args[1] if len(trouble.args) > 1 else 2
        spec, report = spec or defaults(), {"trouble": text, "exit_status": status}
    if spec["github"]:
        for line in annotations(report):
            say(line, sys.stderr if spec["json"] else sys.stdout)
    if spec["json"]:
        print(json.dumps(dict(report, version=VERSION), sort_keys=True))
    elif "trouble" in report:
        say("doctor: %s." % text.rstrip("."))
    else:
        say(text, sys.stdout)
    return report["exit_status"]


def start():
    """Run the command line of this process: its exit status."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except (IOError, OSError) as error:
        if error.errno != 32:
            raise
        status = 2  # whoever was to read it has left, as in `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


if __name__ == "__main__":
    sys.exit(start())
