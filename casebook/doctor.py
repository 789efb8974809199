#!/usr/bin/env python
# ruff: noqa: B904, UP004, UP010, UP024, UP031, RUF005
"""Why is HTTPS slow in this program? Ask the program itself.

    python doctor.py [--json] [--url https://...] [-- module-or-script [arguments]]
    python doctor.py attach PID [--seconds 5] [--json]

Run it with the Python that runs your program, and name what does your program's imports:

    python doctor.py -- myproject.jobs
    python doctor.py -- report.py

A script is imported under another name than __main__: what it keeps behind
`if __name__ == "__main__":` is not done. In a worker that patches when it starts (gunicorn), call
`doctor.inside()` there.

It looks for three illnesses, by trying them out and not by version numbers: a TLS read that blocks
the event loop of gevent or eventlet; certificates that are loaded anew for each connection; and,
with --url alone, HTTP/1.1 where HTTP/2 was meant.

options:
  --json             one JSON object instead of the text
  --url URL          also ask this URL (HEAD, at most 20 requests, each announced): which HTTP?
  --share PERCENT    loads above this share of the processor time are an illness (default 67)
  --connections N    so many of a job of 100 requests open a connection (default 100, as with
                     requests.get; 1: one Session and one host)
  --patience N       how many seconds your imports may take (default 30)
  --seconds N        how long `attach` looks (default 5)

exit status:
  0  nothing found (there may be advice)
  1  a blocked event loop, or certificate loads above the stated share
  2  it could not tell, and says why

Nothing is sent but what --url asks for: the checks use a TLS server of the doctor's own on the
loopback interface, which ends with it. Nothing stays on disk. One file, the standard library only,
Python 2.7 to 3.14. The chapters that it names are those of the book that it comes from.
"""

from __future__ import division, print_function

import gc
import json
import linecache
import os
import re
import signal
import sys
import textwrap
import time
import warnings

# What is imported before gevent patches is one of the illnesses, so nothing is imported up here
# that brings in ssl, socket, select or threading before the program does.

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

#: Of the loads: requests in the job, and how often load and request are measured in turns.
JOB = 100
TURNS = 11

EXAMINED_WITHIN_S = 60
#: After so long, what is only nice to know is left out.
ENOUGH_S = 7.0
MOST_REQUESTS = 20

BLOCKED, FREE, UNPATCHED = "blocked", "free", "not patched"
CANNOT_TELL, DOES_NOT_APPLY = "cannot tell", "does not apply"
ABOVE, BELOW, STRADDLES = "above the share", "below the share", "on both sides of the share"
#: The exit status that goes with a verdict; with all others, 0.
STATUS = {BLOCKED: 1, ABOVE: 1, STRADDLES: 2, CANNOT_TELL: 2}

OWN_FILE = os.path.abspath(__file__).replace(".pyc", ".py").replace(".pyo", ".py")

clock = getattr(time, "perf_counter", time.time)
cpu_clock = getattr(time, "thread_time", None) or getattr(time, "process_time", None)
cpu_clock = cpu_clock or getattr(time, "clock", time.time)


class Trouble(Exception):
    """Why the doctor cannot tell; the text says what to do next."""


# ---------------------------------------------------------------------------------- the processes


def begin(*arguments, **streams):
    """Start this file again as a process of its own, with the options of this Python."""
    import subprocess

    options = getattr(subprocess, "_args_from_interpreter_flags", lambda: [])()
    environ = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable] + options + [OWN_FILE] + list(arguments)
    return subprocess.Popen(command, close_fds=True, env=environ, **streams)


def end_group(group):
    """End all that a process group still runs."""
    if group and hasattr(os, "killpg"):
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass


def examine_apart(spec):
    """Have the program examined in a process of its own: what was found. Raises Trouble.

    What is asked is the first line of a file beside the server's, what was found is the last.
    """
    server, address = start_server()
    program, path = None, os.path.join(os.path.dirname(address["ca"]), "said")
    try:
        with open(path, "w") as file:
            file.write(json.dumps(dict(spec, server=address, phase="start")) + "\n")
        program = begin("--examine", path)
        server.stdin.write(("%d\n" % program.pid).encode())  # should this process be killed
        server.stdin.flush()
        limit = clock() + spec["patience"] + EXAMINED_WITHIN_S + 5
        while clock() < limit and program.poll() is None:
            time.sleep(0.02)
        with open(path) as file:
            last = json.loads(file.readlines()[-1])
    finally:
        if program is not None:
            end_group(program.pid)
            if program.poll() is None:
                program.kill()
            program.wait()
        server.communicate(b"0\n")  # no group is left to be ended
    if "trouble" in last:
        raise Trouble(last["trouble"])
    if "phase" in last:
        name = spec["program"] or "the examination"
        raise Trouble(ended(name, last["phase"], program.returncode))
    return last


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


# ------------------------------------------------------------------------- the server of its own


def start_server():
    """The server in a process of its own, and its address as `serve` says it."""
    import subprocess

    process = begin("--serve", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise Trouble(
            "the doctor's own server did not start (its reason stands above): "
            "is this Python built with ssl and threads?"
        )
    return process, json.loads(line.decode("ascii"))


def serve():
    """A TLS server and a plain one, until standard input ends: then everything of it is gone.

    Says {"https": port, "http": port, "ca": path} on standard output. A number on a line of
    standard input is the process group of the examined program, which goes with it.
    """
    import shutil
    import tempfile

    for name in ("SIGINT", "SIGHUP"):  # whoever started this decides when it ends
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder, group = tempfile.mkdtemp(prefix="doctor-"), None
    try:
        ca, both = [os.path.join(folder, name) for name in ("ca.pem", "server.pem")]
        for path, text in ((ca, CERTIFICATE), (both, CERTIFICATE + KEY)):
            with open(path, "w") as file:
                file.write(text)
        print(json.dumps({"ca": ca, "https": listen(both), "http": listen(None)}))
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
        context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_SERVER", ssl.PROTOCOL_SSLv23))
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
            _, seconds, trial = self.path.split("/")
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


# ---------------------------------------------------------------------- the program, in its process


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
        end_after(EXAMINED_WITHIN_S)  # whatever happens to whoever started this
        answer(phase=phase)
        if os.getpid() == pid:
            answer(imported_s=imported_s, **look(spec["server"], spec, watch))
    except BaseException as error:
        answer(trouble=trouble_of(error, spec, phase))
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)  # no thread is waited for, and nothing is called that waits for the end


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


# ------------------------------------------------------------------- what the imports left behind


#: What a report names the provider of: (what, module, attribute).
PROVIDED = (
    ("socket.socket", "socket", "socket"),
    ("ssl.SSLContext", "ssl", "SSLContext"),
    ("urllib3's SSLContext", "urllib3.util.ssl_", "SSLContext"),
    ("select.poll", "select", "poll"),
    ("pyOpenSSL's Connection", "OpenSSL.SSL", "Connection"),
)


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
    return "site-packages" in path or "dist-packages" in path or path.startswith(library)


def is_installed(package):
    return any(os.path.isdir(os.path.join(folder or ".", package)) for folder in sys.path)


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


# ------------------------------------------------------------------------------------ the clients

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


# ------------------------------------------------------------------- 1. does a read block the loop?


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
    gaps = [later - before - BEAT_S for before, later in zip(beats, beats[1:])]  # noqa: B905, RUF007
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


# ------------------------------------------------------------- 2. what do certificate loads cost?


LOADS = ("load_verify_locations", "set_default_verify_paths")


class Watch(object):
    """Notes the processor milliseconds of each load of certificates, and where pyOpenSSL is
    injected, while in a `with` block.

    A profile function, so that nothing is replaced: to wrap a class of `ssl` one has to import it.
    Imports take about twice as long under it; a load, which is one call, does not.
    """

    def __init__(self):
        self.loads, self.injections, self._depth = [], [], 0

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


def count_loads(way, server, connections):
    """How often certificates are loaded by three connections of one session, and by one call
    without a session: {"client", "by_connection", "made", "by_call", "error"}, and from that the
    loads of a job that opens so many connections, "job_loads".

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
    first, second, third = row["by_connection"]
    row["job_loads"] = row["made"] + first + (connections - 1) * (second + third) / 2
    return row


def check_loads(server, imported, spec, watch, until):
    """One row of `count_loads` for each client that is here, with its price where it counts. What
    the program did not import comes last, in our own process alone, and if there is time."""
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
            row = count_loads(way, server, spec["connections"])
        except Exception as error:
            row = {"client": way.name, "error": told(error), "by_call": None}
        row.update(imported=its_own, adapter=way.adapter, at_import=len(importing.loads))
        rows.append(row)
    by_name = dict((way.name, way) for way in known)
    for row in judged_rows(rows, spec["program"]):
        if not row["error"] and row["job_loads"] > 1 and by_name[row["client"]].priced:
            try:
                price(row, by_name[row["client"]], server, spec["connections"])
            except Exception as error:
                row["error"] = told(error)
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


def price(row, way, server, connections):
    """What the loads of a row cost in a job of JOB requests. Adds to it connections, load_ms,
    spared_ms (by loading once), job_ms and share (percent), each as `bounds` of TURNS.

    The loads are those of connections with the library's own trust, the rest is that of requests
    that trust the doctor's certificate, less the loads in them. All are measured in turns, so that
    a slow moment of the machine touches all alike.
    """
    session, kept, trial = way.session(), way.session(server.ca), server.new_trial()
    url, again = [server.url("https", 0, path) for path in ("last" + trial, "kept")]
    loads, parts = row["job_loads"], []
    kept.ask(again)
    for _ in range(TURNS):
        spent = loads_of(lambda: session.ask(url))[0]
        new = cpu_ms_of(lambda: ask(way, server, "https", 0, trial))
        new -= sum(loads_of(lambda: ask(way, server, "https", 0, trial))[0])
        kept_ms = (JOB - connections) * cpu_ms_of(lambda: kept.ask(again))
        parts.append((sum(spent) / len(spent), connections * max(0, new) + kept_ms))
    session.close()
    kept.close()
    row["connections"] = connections
    row["load_ms"] = bounds([one for one, _ in parts])
    row["spared_ms"] = bounds([(loads - 1) * one for one, _ in parts])
    row["job_ms"] = bounds([loads * one + rest for one, rest in parts])
    row["share"] = bounds([100 * loads * one / (loads * one + rest) for one, rest in parts])


def cpu_ms_of(work):
    start = cpu_clock()
    work()
    return 1000 * (cpu_clock() - start)


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

    for row in found["loads"]:
        if row.get("load_ms"):
            return row["load_ms"]
    spent = [ms for row in found["loads"] if row["imported"] for ms in row.get("each_ms", ())]
    spent = spent or (watch.loads if watch else [])
    spent = spent or [ms for row in found["loads"] for ms in row.get("each_ms", ())]
    spent = spent or loads_of(lambda: [ssl.create_default_context() for _ in range(TURNS)])[0]
    return bounds(spent) if spent else None


# ---------------------------------------------------------------------------------- 3. which HTTP?


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


# ---------------------------------------------------------------------------------- the examination


def look(address, spec, watch=None):
    """Examine this process: what was found, as a dictionary that `judge` reads.

    The loopback server is none of a proxy's business, and the doctor has to ask without verifying,
    so there are no proxies and no warnings meanwhile. watch: what saw the program's imports, in a
    process that is ours: cures may be tried there, and libraries imported that the program has not.
    """
    started, imported = clock(), set(way.module for way in WAYS if loaded(way.module))
    names = ("no_proxy", "NO_PROXY")
    kept = dict((name, os.environ.pop(name)) for name in names if name in os.environ)
    os.environ.update(dict.fromkeys(names, "*"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = try_all(Server(address), spec, watch, imported)
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(kept)
    found["http"] = check_http(spec["url"], imported)
    return dict(found, examined_s=round(clock() - started, 2))


def try_all(server, spec, watch, imported):
    """What `look` finds, but for the URL."""
    until = clock() + ENOUGH_S
    loop, patched = find_loop()
    found = dict(
        program=spec["program"], python=sys.version.split()[0], openssl=openssl(),
        provides=provides(), injections=watch.injections if watch else [],
        loads_at_import=watch and len(watch.loads),
        loops_installed=[name for name in PATCHES if is_installed(name)],
        loop=None, cures=[], trap=False,
    )  # fmt: skip
    by_loop = []
    if loop:
        used = own_code_uses(loop.__name__, spec["program"])
        found["loop"] = {"name": loop.__name__, "patched": patched, "used": used}
        by_loop = check_loop(loop, patched, server, imported, watch)
    found["clients"] = [row for _, row in by_loop]
    found["loads"] = check_loads(server, imported, spec, watch, until)
    found["load_ms"] = cost_of_a_load(found, watch)
    found["certificates"] = certificates_of_a_load()
    blocked = [way for way, row in by_loop if row["verdict"] == BLOCKED]
    if watch and blocked:
        found["cures"] = try_cures(loop, blocked[0], server)
    if watch and loop:
        found["trap"] = is_trapped()
    return found


def inside(stream=None, **options):
    """Examine the process that calls this, as it is now, and print the report; returns it.

    For programs that patch when they start and not when they are imported: in gunicorn, call it in
    post_worker_init of the configuration file. Nothing is changed, and no cure is tried out.
    options: url, share, connections. Blocks for some seconds.
    """
    spec = dict(defaults(), program="this process", **options)
    server, address = start_server()
    try:
        report = judge(look(address, spec), spec)
    finally:
        server.communicate(b"0\n")  # no group is left to be ended
    say(text_of(report, False), stream)
    return report


# -------------------------------------------------------------------------------------- judging


def judge(found, spec):
    """Add verdicts, advice and the exit status to what was found."""
    loop, loads = judge_loop(found), judge_loads(found, spec["share"])
    advice = advice_on_loop(found) + list(advice_on_loads(found, loads)) + advice_on_http(found)
    return dict(
        found, verdicts={"event loop": loop, "certificate loads": loads}, advice=advice,
        share_stated=spec["share"], connections=spec["connections"],
        exit_status=STATUS.get(worst([loop, loads]), 0),
    )  # fmt: skip


def judge_loop(found):
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


def judge_loads(found, share):
    verdicts = []
    for row in judged_rows(found["loads"], found["program"]):
        least, most = row.get("share", (0, 0))
        known = ABOVE if least > share else BELOW if most < share else STRADDLES
        verdicts.append(CANNOT_TELL if row["error"] else known)
    return worst(verdicts)


def worst(verdicts):
    order = (BLOCKED, ABOVE, STRADDLES, CANNOT_TELL, FREE, BELOW, DOES_NOT_APPLY)
    return min(verdicts or [DOES_NOT_APPLY], key=order.index)


CHAPTERS = {
    3: "chapter 3, Monkeys", 7: "chapter 7, Cures", 8: "chapter 8, Is it still out there?",
    10: "chapter 10, What one load costs", 12: "chapter 12, The cure", 17: "chapter 17, Distance",
}  # fmt: skip
#: What to change: (case, chapter that explains it, line to write, package to get, sentence).
ADVICE = {
    "patch": (1, 3, "%(patch)s", "",
        "%(loop)s is loaded and has patched no sockets: every greenlet that fetches with "
        "%(client)s blocks the loop, over HTTP too. (If a worker patches later, call "
        "doctor.inside() there.)"),
    "patch first": (1, 3, "%(patch)s", "",
        "Every TLS connection of %(client)s ends in an error: ssl was imported before %(loop)s "
        "patched it, or was not patched along with socket. The whole patch has to come first."),
    "injected": (1, 7, "%(text)s", "%(package)s",
        "%(by)s, and urllib3 then waits where the loop cannot see it.%(without)s"),
    "through pyOpenSSL": (1, 8, "", "",
        "%(client)s connects through pyOpenSSL, and urllib3 then waits where the loop cannot see "
        "it: all greenlets stand still."),
    "standard socket": (1, 3, "", "",
        "%(client)s reads from an %(socket)s of the standard library, because %(loop)s has not "
        "patched ssl."),
    "gevent's SSLContext": (1, 7,
        "HTTPClient(..., ssl_context_factory=...), which makes a gevent.ssl.SSLContext", "",
        "geventhttpclient takes the context that it is given, and one of gevent's own class lets "
        "the loop run on. (gevent.ssl.create_default_context makes a standard one.)"),
    "patch_select()": (1, 7, "gevent.monkey.patch_select()", "",
        "Called after your imports, this gives the wait to the loop. Threads stay threads."),
    "patch everything": (1, 7, "%(patch)s", "",
        "Or %(loop)s patches everything, in the program's first line, before all other imports. "
        "(Not tried here: in this process it would come too late.)"),
    "trap": (1, 8, "", "%(package)s",
        "google-auth's adapter for client certificates injects pyOpenSSL for the whole process. "
        "The doctor made one to see it."),
    "load once": (2, 12, "%(line)s", "",
        "%(client)s loads the certificates anew for each connection. %(sentence)s"),
    "keep a session": (2, 12, "session = requests.Session()", "",
        "A Session that is kept, for many requests to few hosts, keeps its connections. "
        "--connections 1 shows what is left."),
    "another OpenSSL": (2, 10, "", "a Python with another OpenSSL",
        "A load takes longest with OpenSSL 3.0; older and newer ones take a fraction of it."),
    "keep a client": (2, 12, "client = httpx.Client()", "",
        "httpx.get loads for each call; an httpx.Client that is kept loads once."),
    "HTTP/2": (3, 17, "", "httpx[http2] or niquests",
        "%(url)s offers HTTP/2, and %(client)s speaks %(version)s. HTTP/2 pays at a distance, "
        "when many requests are under way at once."),
}  # fmt: skip
#: Where a client loads again and again: (sentence, line).
LOAD_ONCE = {
    "requests": ("One context for all connections (the book's shared_context.py) loads once.",
                 "import shared_context; shared_context.install()"),
    "urllib3": ("A context of your own, given to the pool, loads once.",
                "urllib3.PoolManager(ssl_context=ssl.create_default_context())"),
}  # fmt: skip
#: The package to upgrade when one of its files injects pyOpenSSL.
UPGRADES = {
    "requests/": "requests 2.24 or newer, which leaves pyOpenSSL alone",
    "google/auth/": "google-auth 2.55.2 or newer, which leaves pyOpenSSL alone",
}
#: Below this part of a job, in percent, loads are not worth a line of advice.
WORTH_ADVICE_FROM = 10
#: What connections fail with when ssl was imported before, or patched without, the rest.
LATE_PATCH = ("recursion", "_wrap_socket() argument")


def advise(name, saves="", **values):
    """One thing to change: what ADVICE has of that name, with these values in it."""
    case, chapter, line, package, what = ADVICE[name]
    texts = {"what": what % values, "line": line % values, "package": package % values}
    return dict(texts, case=case, chapter=CHAPTERS[chapter], saves=saves)


def advice_on_loop(found):
    advice, of_block = [], []
    for row in found["clients"]:
        loop, error = found["loop"]["name"], readable(row["error"]).lower()
        names = dict(row, loop=loop, patch=PATCHES[loop])
        if row["verdict"] == UNPATCHED:
            advice.append(advise("patch", **names))
        elif row["verdict"] == CANNOT_TELL and any(sign in error for sign in LATE_PATCH):
            advice.append(advise("patch first", **names))
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
        advice.append(advise("through pyOpenSSL", **names))
    elif socket.startswith("ssl."):
        advice.append(advise("standard socket", **names))
    for cure in ("gevent's SSLContext", "patch_select()"):
        if cure in saves:
            advice.append(advise(cure, saves[cure]))
    return advice + [advise("patch everything", **names)]


def injected_by(injection):
    """Who injected pyOpenSSL, as the beginning of a sentence."""
    what = "pyOpenSSL was injected into urllib3"
    if injection["file"]:
        where = "%(file)s:%(line)s" % injection
        what += " by " + where
        if injection["from"] and not where.endswith(injection["from"]):
            what += ", called from %(from)s" % injection
    return what


def advice_on_loads(found, verdict):
    for row in judged_rows(found["loads"], found["program"]):
        if row.get("share", [0, 0])[1] < WORTH_ADVICE_FROM:
            continue
        sentence, line = LOAD_ONCE.get(row["client"], ("", ""))
        if any(each["by"] == "truststore" for each in found["provides"]):
            # It loads in the handshake, whatever is shared.
            sentence, line = "truststore loads the system's once more in each handshake.", ""
        spared_s, job_s = [[ms / 1000 for ms in row[name]] for name in ("spared_ms", "job_ms")]
        numbers = (span(spared_s, 2), span(job_s, 2), JOB, row["connections"])
        saves = "%s s of the %s s CPU of %d requests over %d connections" % numbers
        yield advise("load once", saves, **dict(row, sentence=sentence, line=line))
        if row["client"] == "requests" and row["connections"] > 1:
            yield advise("keep a session")
    if verdict == ABOVE and " 3.0." in found["openssl"]["loads"]:
        yield advise("another OpenSSL")
    for row in found["loads"]:
        if row["imported"] and row["client"] == "httpx" and row.get("by_call"):
            yield advise("keep a client")


def advice_on_http(found):
    http = found["http"]
    old = [row for row in http["clients"] if str(row["version"]).startswith("HTTP/1")]
    if http["offers"] != "h2" or not old or old[0]["error"]:
        return []
    ms = old[0]["ms"][1]
    saves = "one by one, %d requests of %.0f ms take %.1f s; at once they wait for each other less"
    return [advise("HTTP/2", saves % (JOB, ms, JOB * ms / 1000), **dict(old[0], url=http["url"]))]


# ------------------------------------------------------------------------------------ the report


def text_of(report, colour):
    """The report as people read it."""

    def bold(text, code=1):
        return "\033[%sm%s\033[0m" % (code, text) if colour else text

    def question(text, about):
        verdict = report["verdicts"][about]
        code = {BLOCKED: 31, ABOVE: 31, FREE: 32, BELOW: 32}.get(verdict, 33)
        return "%s  %s" % (bold(text), bold(verdict.upper(), "1;%d" % code))

    program = report["program"] or "nothing (no program was named)"
    if report["program"] and "imported_s" in report:
        program += ", imported in %.1f s" % report["imported_s"]
    examined = (report["python"], report["openssl"]["ssl"], program)
    providers = ["  %(name)-24s %(by)s" % row for row in report["provides"]]
    injections = [wrapped(injected_by(each) + ".") for each in report["injections"]]
    to_change = "What to change" if report["advice"] else "Nothing to change."
    parts = [
        ("Python %s, %s\nexamined: %s\n" % examined, providers + injections),
        (question("1. Does a TLS read block the event loop?", "event loop"), loop_lines(report)),
        (question("2. What do certificate loads cost?", "certificate loads"), load_lines(report)),
        (bold("3. Which HTTP?"), http_lines(report["http"])),
        (bold(to_change), advice_lines(report["advice"])),
        ("exit status %d" % report["exit_status"], []),
    ]
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
    if report["loop"] is None:
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
    if report["loop"] and report["verdicts"]["event loop"] == DOES_NOT_APPLY:
        yield wrapped("%s has patched nothing here." % report["loop"]["name"])


def load_lines(report):
    size, stated = report["certificates"], report["share_stated"]
    if report["load_ms"]:
        of = "%d certificates" % size if size else "the default certificates"
        yield wrapped("one load of %s takes %s ms CPU" % (of, span(report["load_ms"])))
    if report["loads_at_import"]:
        yield wrapped("loads while the program was imported: %d" % report["loads_at_import"])
    for row in report["loads"]:
        name = row["client"] + ("" if row["imported"] else " (installed, not imported)")
        if row["error"]:
            yield wrapped("%s: not counted (%s)" % (name, row["error"]))
            continue
        counts = ", ".join(str(each) for each in row["by_connection"])
        text = "%s: %s loads by the connections of one session" % (name, counts)
        text += ", %(made)d when it is made" % row if row["made"] else ""
        text += ", %(at_import)d when %(client)s is imported" % row if row["at_import"] else ""
        text += "; %(by_call)d by one %(client)s.get" % row if row["by_call"] is not None else ""
        yield wrapped(text)
        if row.get("share"):
            numbers = (span(row["share"], 0), JOB, report["connections"], stated)
            text = "%s %% of the CPU of %d requests over %d connections are loads "
            yield wrapped((text + "(stated share: %g %%)") % numbers, "    ")


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
        for name in ("line", "package", "saves", "chapter"):
            if each[name]:
                yield wrapped(each[name], "     %-8s " % name)


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


# ------------------------------------------------------------------------------- a running process


WAIT = "in urllib3's own wait for pyOpenSSL"
#: What a look at a running process can find: (what, chapter, in words).
SIGHTS = (
    ("blocked", 7, "a greenlet " + WAIT + ", and the loop with it: %d looks"),
    ("perhaps blocked", 7, "the main program " + WAIT + ": %d looks. If greenlets run beside it, "
     "they stand still"),
    ("loading", 12, "a load of certificates: %d looks"),
)  # fmt: skip


def attach(pid, seconds, share):
    """Where a running process stands, by py-spy: a dictionary with the looks, how many of them
    found a greenlet blocked or a load under way, the stack that shows it, and the exit status."""
    program = find_py_spy()
    if program is None:
        raise Trouble(
            "py-spy is not here. `pip install py-spy`, then run this again, or look yourself: "
            "`py-spy dump --pid %d`, a few times" % pid
        )
    looks, loop, until = [], has_gevent(pid), clock() + seconds
    while clock() < until:
        started, threads = clock(), stacks_of(program, pid)
        if threads is None and looks:
            break  # it has ended meanwhile
        if threads is None:
            raise Trouble("there is no process %d" % pid)
        looks.append(dict((kind_of(frames, loop), frames) for frames in threads))
        time.sleep(max(0, 0.1 - (clock() - started)))
    seen = dict((what, sum(what in look for look in looks)) for what, _, _ in SIGHTS)
    status = 2 if seen["perhaps blocked"] >= 2 else 0
    if seen["blocked"] >= 2 or 100.0 * seen["loading"] / len(looks) > share:
        status = 1  # one look alone may have met a wait of a millisecond
    shown = [look[what] for what, _, _ in SIGHTS for look in looks if what in look] or [[]]
    stack = ["%s:%d (%s)" % (short(it["filename"]), it["line"], it["name"]) for it in shown[0]]
    return dict(
        pid=pid, gevent=loop, looks=len(looks), seen=seen, share_stated=share,
        stack=stack[::-1], exit_status=status,
    )  # fmt: skip


def find_py_spy():
    folders = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    folders += os.environ.get("PATH", "").split(os.pathsep)
    paths = [os.path.join(folder, name) for folder in folders for name in ("py-spy", "py-spy.exe")]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def stacks_of(program, pid):
    """The frames of each thread, innermost first; None for a process that is gone."""
    import subprocess

    command = [program, "dump", "--json", "--full-filenames", "--pid", str(pid)]
    pipe = subprocess.PIPE
    looking = subprocess.Popen(command, stdout=pipe, stderr=pipe)
    out, said = looking.communicate()
    if looking.returncode == 0:
        return [each["frames"] for each in json.loads(out.decode("utf-8"))]
    try:
        os.kill(pid, 0)
    except OSError as error:
        if error.errno == 3:
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


def kind_of(frames, loop):
    """What a stack (innermost first) is caught at, as in SIGHTS, or None.

    A greenlet's stack begins with its own function. One that begins with a module is the main
    program, and no greenlet perhaps; one that begins in `threading` blocks its own thread only.
    """
    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files:
        return None
    line = readable(linecache.getline(frames[0]["filename"], frames[0]["line"]))
    if any(name in line for name in LOADS) or "load_default_certs" in line:
        return "loading"
    waits = files[0].endswith("urllib3/util/wait.py")
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    below = any(name.endswith("urllib3/contrib/pyopenssl.py") for name in files)
    if not (waits and below) or in_thread or loop is False:
        return None
    return "blocked" if loop and frames[-1]["name"] != "<module>" else "perhaps blocked"


def attach_text(found):
    loaded = {True: "loaded", False: "not loaded", None: "nobody can see whether it is loaded"}
    lines = ["process %d, %d looks" % (found["pid"], found["looks"])]
    lines.append("  gevent: %s" % loaded[found["gevent"]])
    for what, _, words in SIGHTS:
        if found["seen"][what] or what != "perhaps blocked":
            lines.append(wrapped(words % found["seen"][what]))
    if found["stack"]:
        lines.append("  the stack that shows it, the innermost call last:")
        lines += ["    " + line for line in found["stack"]]
    chapters = set(chapter for what, chapter, _ in SIGHTS if found["seen"][what])
    lines += ["  " + CHAPTERS[chapter] for chapter in sorted(chapters)]
    return "\n".join(lines + ["exit status %d" % found["exit_status"]]) + "\n"


# -------------------------------------------------------------------------------- the command line


#: Options that take a number: (kind, default, most); they begin above 0.
NUMBERS = {
    "share": (float, 67.0, 100),
    "connections": (int, JOB, JOB),
    "seconds": (float, 5.0, 60),
    "patience": (int, 30, 600),
}


def defaults():
    spec = {"program": None, "arguments": [], "json": False, "url": None, "attach": None}
    return dict(spec, **dict((name, default) for name, (_, default, _) in NUMBERS.items()))


def parse(arguments):
    """The command line as a dictionary like `defaults`. Raises Trouble."""
    import getopt

    spec, own = defaults(), list(arguments)
    if "--" in own:
        own, program = own[: own.index("--")], own[own.index("--") + 1 :]
        if not program:
            raise Trouble("after -- comes a module or a script")
        spec["program"], spec["arguments"] = program[0], program[1:]
    if own[:1] == ["attach"]:
        if not "".join(own[1:2]).isdigit():
            raise Trouble("attach needs the number of a process: doctor.py attach PID")
        spec["attach"], own = int(own[1]), own[2:]
    try:
        given, rest = getopt.getopt(own, "", ["json", "url="] + [name + "=" for name in NUMBERS])
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
            else:
                value = name == "json" or (
                    text.startswith(("https://", "http://")) and parts_of(text)[0] and text
                )
        except ValueError:
            value = None
        if not value:
            raise Trouble("%s takes %s" % (option, wants))
        spec[name] = value
    return spec


def main(arguments):
    sys.dont_write_bytecode = True
    if arguments[:1] == ["--serve"]:
        serve()
    if arguments[:1] == ["--examine"]:
        examine(arguments[1])
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    spec = None
    try:
        spec = parse(arguments)
        if spec["attach"] is None:
            report = judge(examine_apart(spec), spec)
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
            text = text_of(report, sys.stdout.isatty() and not plain)
        else:
            report = attach(spec["attach"], spec["seconds"], spec["share"])
            text = attach_text(report)
    except (Trouble, KeyboardInterrupt) as trouble:
        text = trouble.args[0] if trouble.args else "interrupted; nothing is left running"
        text += "" if spec else ". --help says more"
        spec, report = spec or defaults(), {"trouble": text, "exit_status": 2}
    if spec["json"]:
        print(json.dumps(report, sort_keys=True))
    elif "trouble" in report:
        say("doctor: %s." % text.rstrip("."))
    else:
        say(text, sys.stdout)
    return report["exit_status"]


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except (IOError, OSError) as error:
        if error.errno != 32:
            raise
        status = 2  # whoever was to read it has left, as in `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)
