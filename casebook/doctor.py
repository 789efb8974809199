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

import json
import os
import sys
import time

# Nothing else is imported up here. What is imported before gevent patches is one of the illnesses,
# so the doctor must not bring in ssl, socket, select or threading before the program does.

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
#: Clients of which a kept connection can be asked for.
PRICED = ("requests", "niquests", "urllib3")

EXAMINED_WITHIN_S = 60
#: After so long, what is only nice to know is left out.
ENOUGH_S = 7.0
MOST_REQUESTS = 20

BLOCKED, FREE, UNPATCHED = "blocked", "free", "not patched"
CANNOT_TELL, DOES_NOT_APPLY = "cannot tell", "does not apply"
ABOVE, BELOW, STRADDLES = "above the share", "below the share", "on both sides of the share"

clock = getattr(time, "perf_counter", time.time)
cpu_clock = getattr(time, "thread_time", None) or getattr(time, "process_time", None)
cpu_clock = cpu_clock or getattr(time, "clock", time.time)


class Trouble(Exception):
    """Why the doctor cannot tell; the text says what to do next."""


# ------------------------------------------------------------------------------------- the server


def serve():
    """A TLS server and a plain one, until standard input ends: then everything of it is gone.

    Says {"https": port, "http": port, "ca": path} on standard output. A number on a line of
    standard input is the process group of the examined program, which goes with it.
    """
    import shutil
    import signal
    import socket
    import ssl
    import tempfile
    import threading

    for name in ("SIGINT", "SIGHUP"):  # whoever started this decides when it ends
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder, group = tempfile.mkdtemp(prefix="doctor-"), None
    try:
        ca, both = os.path.join(folder, "ca.pem"), os.path.join(folder, "server.pem")
        for path, text in ((ca, CERTIFICATE), (both, CERTIFICATE + KEY)):
            with open(path, "w") as file:
                file.write(text)
        context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_SERVER", ssl.PROTOCOL_SSLv23))
        if PY2:
            context.set_ecdh_curve("prime256v1")
        context.load_cert_chain(both)
        if hasattr(context, "num_tickets"):
            context.num_tickets = 0  # each handshake is a full one
        in_hand, lock = {}, threading.Lock()
        said = {"ca": ca}
        for scheme, tls in (("https", context), ("http", None)):
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            said[scheme] = listener.getsockname()[1]
            accepting = threading.Thread(target=_accept, args=(listener, tls, in_hand, lock))
            accepting.daemon = True
            accepting.start()
        print(json.dumps(said))
        sys.stdout.flush()
        for line in iter(sys.stdin.readline, ""):
            group = int(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        end_group(group)


def _accept(listener, tls, in_hand, lock):
    import threading

    while True:
        connection, _ = listener.accept()
        answering = threading.Thread(target=_answer, args=(connection, tls, in_hand, lock))
        answering.daemon = True
        answering.start()


def _answer(connection, tls, in_hand, lock):
    """Answer the requests of one connection: GET /SECONDS/TRIAL takes so long, and is told the
    most requests of that trial that the server had in hand at once. After a trial "last..." the
    connection is closed."""
    try:
        connection.settimeout(60)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        stream = connection.makefile("rb")
        while True:
            line = stream.readline(65536).decode("ascii").split()
            if len(line) != 3:
                return
            while stream.readline(65536).strip():
                pass
            seconds, trial = line[1].strip("/").split("/")
            with lock:
                now, peak = in_hand.get(trial, (0, 0))
                in_hand[trial] = now + 1, max(peak, now + 1)
            time.sleep(float(seconds))
            with lock:
                now, peak = in_hand[trial]
                in_hand[trial] = now - 1, peak
            body = json.dumps({"trial": trial, "peak": peak})
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            last = trial.startswith("last")
            head = head % len(body) + ("Connection: close\r\n\r\n" if last else "\r\n")
            connection.sendall((head + body).encode("ascii"))
            if last:
                return
    except Exception:  # the client went away, or does not trust us: its right
        pass
    finally:
        try:
            connection.close()
        except Exception:
            pass


def own_file():
    path = os.path.abspath(__file__)
    return path[:-1] if path.endswith((".pyc", ".pyo")) else path


def begin(what):
    """Start this file again as a process of its own, with the options of this Python."""
    import subprocess

    options = getattr(subprocess, "_args_from_interpreter_flags", lambda: [])()
    pipe = subprocess.PIPE
    command = [sys.executable] + options + [own_file(), what]
    environ = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, close_fds=True, env=environ)


def start_server():
    """The server in a process of its own, and its address as `serve` says it."""
    process = begin("--serve")
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise Trouble(
            "the doctor's own server did not start (its reason stands above): "
            "is this Python built with ssl and threads?"
        )
    return process, json.loads(line.decode("ascii"))


def end_server(process):
    try:
        process.stdin.write(b"0\n")  # no group is left to be ended
        process.stdin.close()
    except (IOError, OSError):  # it has ended already
        pass
    process.wait()
    process.stdout.close()


def end_group(group):
    """End all that a process group still runs."""
    import signal

    if group and hasattr(os, "killpg"):
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass


# ------------------------------------------------------------------------------------ the clients


class Way(object):
    """A client, as the program has it.

    fetch(url, ca): (status, body, class of the socket or None) of a GET over a new connection.
    opener(): a function of a URL that opens one more connection of the same session, the way that
    the library does it unless it is told otherwise. once: as opener()(url), without a session.
    adapter: whether it goes through an adapter that a session of the program's has.
    """

    def __init__(self, name, module, fetch, opener=None, once=None, adapter=False):
        self.name, self.module, self.adapter = name, module, adapter
        self.fetch, self.opener, self.once = fetch, opener, once


def class_of(value):
    """The name of a value's class with its module; None for None."""
    return value and "%s.%s" % (type(value).__module__, type(value).__name__)


def socket_of(response):
    """The name of the class of the socket below a urllib3 response; None where it is hidden."""
    connection = getattr(response, "_connection", None) or getattr(response, "connection", None)
    return class_of(getattr(connection, "sock", None))


def of_requests(module, mount=None):
    """fetch for requests and for niquests; mount: what makes the adapter of each session."""

    def fetch(url, ca):
        session = sys.modules[module].Session()
        session.trust_env = False
        if mount:
            session.mount("https://", mount())
        try:
            response = session.get(url, verify=ca, stream=True)
            kind = socket_of(response.raw)
            return response.status_code, response.content, kind
        finally:
            if not mount:
                session.close()

    return fetch


def urllib3_fetch(url, ca):
    pool = sys.modules["urllib3"].PoolManager(cert_reqs="CERT_REQUIRED", ca_certs=ca)
    response = pool.request("GET", url, retries=False, preload_content=False)
    kind = socket_of(response)
    status, body = response.status, response.read()
    pool.clear()
    return status, body, kind


def urllib3_opener():
    pool = sys.modules["urllib3"].PoolManager()
    return lambda url: pool.request("GET", url, retries=False)


def httpx_fetch(url, ca):
    import ssl

    context = ssl.create_default_context(cafile=ca)
    with sys.modules["httpx"].Client(verify=context, trust_env=False) as client:
        response = client.get(url)
        return response.status_code, response.content, None


def of_geventhttpclient(factory=None):
    """fetch for geventhttpclient; factory: what makes its TLS contexts, where not its default."""

    def fetch(url, ca):
        Client = sys.modules["geventhttpclient"].HTTPClient
        options = {"ssl_options": {"ca_certs": ca}, "ssl_context_factory": factory}
        client = Client.from_url(url, **(options if url.startswith("https") else {}))
        try:
            response = client.get("/" + url.split("/", 3)[3])
            kind = class_of(getattr(response, "_sock", None))
            return response.status_code, response.read(), kind
        finally:
            client.close()

    return fetch


def gevents_context(cafile=None):
    """A context of gevent's own class, whatever has been patched."""
    import gevent.ssl

    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile)
    return context


def geventhttpclient_opener():
    made = []

    def open_one(url):
        if not made:
            made.append(sys.modules["geventhttpclient"].HTTPClient.from_url(url))
        return made[0].get("/" + url.split("/", 3)[3])

    return open_one


def standard_fetch(url, ca):
    import ssl

    if PY2:
        import httplib as client
    else:
        from http import client
    return http_client_fetch(client, ssl, url, ca)


def eventlets_fetch(url, ca):
    """By eventlet's copy of http.client, with a context of the ssl that it holds."""
    client = sys.modules["eventlet.green.http.client"]
    return http_client_fetch(client, client.ssl, url, ca)


def http_client_fetch(client, ssl, url, ca):
    scheme, _, place, path = url.split("/", 3)
    host, port = place.split(":")
    if scheme == "https:":
        context = ssl.create_default_context(cafile=ca)
        connection = client.HTTPSConnection(host, int(port), context=context)
    else:
        connection = client.HTTPConnection(host, int(port))
    try:
        connection.request("GET", "/" + path)
        kind = class_of(connection.sock)
        response = connection.getresponse()
        return response.status, response.read(), kind
    finally:
        connection.close()


#: For aiohttp, as text: Python 2.7 could not read it.
AIOHTTP = """
import asyncio, aiohttp

async def ask(method, url, times, note):
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            try:
                async with session.request(method, url, allow_redirects=False) as response:
                    note("HTTP/%d.%d" % response.version)
            except Exception as error:
                note(error)

def run(*arguments):
    asyncio.run(ask(*arguments))
"""


def ask_aiohttp(method, url, times, note):
    """So many requests of one session; note: called with each version, or each error."""
    names = {}
    exec(AIOHTTP, names)
    names["run"](method, url, times, note)


def ways():
    """Every client that the doctor knows, the likeliest first."""

    def of(module, made):
        return getattr(sys.modules[module], made)()

    return [
        Way(
            "requests", "requests", of_requests("requests"),
            lambda: of("requests", "Session").get,
            lambda url: sys.modules["requests"].get(url),
        ),
        Way(
            "niquests", "niquests", of_requests("niquests"),
            lambda: of("niquests", "Session").get,
        ),
        Way("urllib3", "urllib3", urllib3_fetch, urllib3_opener),
        Way(
            "httpx", "httpx", httpx_fetch, lambda: of("httpx", "Client").get,
            lambda url: sys.modules["httpx"].get(url),
        ),
        Way(
            "geventhttpclient", "geventhttpclient", of_geventhttpclient(),
            geventhttpclient_opener,
        ),
        Way("aiohttp", "aiohttp", None),
    ]  # fmt: skip


STANDARD = Way("the standard library", "http.client", standard_fetch)
#: eventlet's urlopen goes through it, with nothing patched.
EVENTLETS = Way("eventlet's own http.client", "eventlet.green.http.client", eventlets_fetch)


def own_adapters():
    """Ways through the program's own https adapters, for each class that is not requests' own:
    of the sessions that are there now, and of a library that is imported for nothing else."""
    requests = sys.modules.get("requests")
    if requests is None or not hasattr(requests, "Session"):
        return []
    import gc

    stock, found = requests.adapters.HTTPAdapter, {}
    # One that sends in its own way might send elsewhere.
    sending = [name for name in dir(stock) if name == "send" or name.startswith("get_connection")]
    for each in gc.get_objects():
        if issubclass(type(each), requests.Session):  # isinstance would wake lazy objects up
            adapter = getattr(each, "adapters", {}).get("https://")
            kind = type(adapter)
            if kind is not stock and issubclass(kind, stock):
                if all(getattr(kind, name) == getattr(stock, name) for name in sending):
                    found.setdefault(kind, adapter)
    made = []
    for kind, adapter in found.items():

        def its_own(adapter=adapter):
            return adapter

        def opener(adapter=adapter):
            session = requests.Session()
            session.mount("https://", adapter)
            return session.get

        name = "requests with a session's %s" % kind.__name__
        fetch = of_requests("requests", its_own)
        made.append(Way(name, "requests", fetch, opener, adapter=True))
    x509 = sys.modules.get("requests_toolbelt.adapters.x509")
    if x509 is not None and x509.X509Adapter not in found:
        bytes_ = dict(cert_bytes=CERTIFICATE.encode(), pk_bytes=KEY.encode())
        way = of_requests("requests", lambda: x509.X509Adapter(**bytes_))
        made.append(Way("requests with requests_toolbelt's X509Adapter", "requests", way))
    return made[:3]


# ------------------------------------------------------------------------------ the event loop


class Gevent(object):
    name = "gevent"

    def __init__(self):
        import gevent

        self.sleep, self.spawn, self.join = gevent.sleep, gevent.spawn, gevent.joinall


class Eventlet(object):
    name = "eventlet"

    def __init__(self):
        import eventlet

        self.sleep, self.spawn = eventlet.sleep, eventlet.spawn

    def join(self, tasks):
        for task in tasks:
            task.wait()


def find_loop():
    """(the event loop that the program has, whether its sockets are the standard ones' stand-in);
    (None, False) where it has none."""
    provided = provider(getattr(sys.modules.get("socket"), "socket", None))
    loaded = [kind for kind in (Gevent, Eventlet) if kind.name in sys.modules]
    loaded.sort(key=lambda kind: kind.name != provided)  # who patched comes first
    if not loaded:
        return None, False
    return loaded[0](), provided == loaded[0].name


def own_code_uses(package, program):
    """Whether a module of the program's own, and not only some library, holds a part of a package:
    a library may import gevent and leave it alone."""
    top = str(program).partition(".")[0]
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or own_file().startswith(os.path.splitext(path)[0] + "."):
            continue
        if is_library(path) and name.partition(".")[0] != top:
            continue
        for value in list(vars(module).values()):
            origin = getattr(value, "__name__", None) if type(value) is type(sys) else None
            origin = origin or getattr(type(value), "__module__", None)
            holds = [origin, vars(value).get("__module__") if isinstance(value, type) else None]
            if any(str(each).partition(".")[0] == package for each in holds):
                return True
    return False


class Heartbeat(object):
    """A greenlet that beats as often as the event loop lets it; longest_gap_s: by how much the
    worst beat came late."""

    def __init__(self, loop):
        self.longest_gap_s, self._last, self._on = 0.0, clock(), True
        self._sleep = loop.sleep
        loop.spawn(self._beat)

    def _beat(self):
        while self._on:
            self._sleep(BEAT_S)
            self._note()

    def _note(self):
        now = clock()
        self.longest_gap_s = max(self.longest_gap_s, now - self._last - BEAT_S)
        self._last = now

    def stop(self):
        self._note()
        self._on = False


class Server(object):
    """The doctor's server, as the examined process sees it."""

    def __init__(self, address):
        self.address, self.ca, self._trials = address, address["ca"], 0

    def url(self, scheme, delay_s, trial):
        return "%s://%s:%d/%s/%s" % (scheme, HOST, self.address[scheme], delay_s, trial)

    def new_trial(self):
        # Others may use the same server: the number has to be nobody else's.
        self._trials += 1
        return "%d-%d" % (os.getpid(), self._trials)


def ask(way, server, scheme, delay_s, trial):
    """One request over a new connection: (the trial's peak in the server's hand, socket class).

    Raises Trouble for any answer but the right one: a failed request is no timing.
    """
    status, body, kind = way.fetch(server.url(scheme, delay_s, trial), server.ca)
    answer = json.loads(body.decode("ascii")) if status == 200 else {}
    if answer.get("trial") != trial:
        raise Trouble("the doctor's server was asked, and something else answered (%s)" % status)
    return answer["peak"], kind


def one_trial(loop, way, server, scheme, delay_s, n):
    """n greenlets with a request each, and a heartbeat: what happened, as a dictionary."""
    trial, peaks, errors = server.new_trial(), [], []

    def one():
        try:
            peaks.append(ask(way, server, scheme, delay_s, trial)[0])
        except Exception as error:
            errors.append(told(error))

    heartbeat, start = Heartbeat(loop), clock()
    loop.join([loop.spawn(one) for _ in range(n)])
    wall_s = clock() - start
    heartbeat.stop()
    return {
        "requests": n,
        "delay_s": delay_s,
        "wall_s": round(wall_s, 4),
        "effective_concurrency": round(n * delay_s / wall_s, 3),
        "peak_in_flight": max(peaks) if peaks else 0,
        "longest_gap_s": round(heartbeat.longest_gap_s, 4),
        "error": errors[0] if errors else None,
    }


def verdict_of(trials):
    """BLOCKED, FREE, or None while the trials do not settle it."""
    if all(each["requests"] > 1 for each in trials):
        at_once = [each["effective_concurrency"] >= AT_ONCE_FROM for each in trials]
        if any(at_once):
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
    trials = []
    for delay_s in DELAYS_S:
        trial = one_trial(loop, way, server, scheme, delay_s, n)
        if trial["error"]:
            if n == 1:
                return {"verdict": CANNOT_TELL, "trials": trials, "error": trial["error"]}
            # Some adapters cannot make two connections. One is enough for a heartbeat.
            alone = try_out(loop, way, server, scheme, 1)
            return dict(alone, error=alone["error"] and trial["error"])
        trials.append(trial)
        verdict = verdict_of(trials)
        if verdict:
            return {"verdict": verdict, "trials": trials, "error": None}
    return {"verdict": CANNOT_TELL, "trials": trials, "error": None}


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
    if secure == BLOCKED and plain != FREE:
        row["verdict"] = CANNOT_TELL if patched or plain != BLOCKED else UNPATCHED
    else:
        row["verdict"] = secure
    return row


def check_loop(loop, patched, server, imported):
    """One row of `check_way` for each client that the program imported; for one of its stand-ins
    where it imported none."""
    known = [way for way in ways() if way.fetch]
    chosen = [way for way in known if way.module in imported]
    if EVENTLETS.module in sys.modules:
        chosen.append(EVENTLETS)
    if any(way.name in ("requests", "niquests") for way in chosen):
        chosen = [way for way in chosen if way.name != "urllib3"]  # it is below them
    rows = [check_way(loop, patched, way, server, True) for way in chosen[:3] + own_adapters()]
    if not rows:
        stand_ins = [way for way in known[:3] if bring(way.module)]
        rows = [check_way(loop, patched, (stand_ins + [STANDARD])[0], server, False)]
    return rows


def try_cures(loop, way, server):
    """What frees the loop of a way that is blocked, tried in this very process, one after the
    other: rows of {"cure", "verdict", "wall_s"}. The process is not the same afterwards."""
    rows = []

    def note(cure, way=way):
        found = try_out(loop, way, server, "https")
        walls = [each["wall_s"] for each in found["trials"]]
        rows.append(
            {"cure": cure, "verdict": found["verdict"], "wall_s": min(walls) if walls else None}
        )

    if injected():
        pyopenssl = urllib3_module("contrib.pyopenssl")
        pyopenssl.extract_from_urllib3()
        note("extract_from_urllib3()")
        pyopenssl.inject_into_urllib3()
    if way.name == "geventhttpclient":
        fetch = of_geventhttpclient(gevents_context)
        note("gevent's SSLContext", Way(way.name, way.module, fetch))
    elif loop.name == "gevent":
        from gevent import monkey

        if not monkey.is_module_patched("select"):
            monkey.patch_select()
            note("patch_select()")
    return rows


def check_traps(server):
    """Libraries that would inject later, by what one of their objects does: a list of texts."""
    google = sys.modules.get("google.auth.transport.requests")
    adapter = getattr(google, "_MutualTlsAdapter", None)
    if adapter is None or injected():
        return []
    try:
        adapter(CERTIFICATE.encode(), KEY.encode())
    except Exception:
        return []
    return ["google-auth's adapter for client certificates"] if injected() else []


# ------------------------------------------------------------------------------------- the loads


LOADS = ("load_verify_locations", "set_default_verify_paths")


class Watch(object):
    """Counts loads of certificates, with their processor seconds, and sees pyOpenSSL being
    injected, while in a `with` block.

    A profile function, so that nothing is replaced: to wrap a class of `ssl` one has to import it.
    Imports take about twice as long under it; a load, which is one call, does not.
    """

    def __init__(self):
        self.loads, self.injections, self.seconds = [], [], 0.0

    def __enter__(self):
        self._before, self._began, self._frames = sys.getprofile(), 0.0, []
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._before)

    def _see(self, frame, event, arg):
        if event == "c_call":
            if getattr(arg, "__name__", None) in LOADS:
                self._begin(arg.__name__)
        elif event == "call":
            name = frame.f_code.co_name
            if name in LOADS and frame.f_globals.get("__name__") == "OpenSSL.SSL":
                # pyOpenSSL's are Python functions, and its default falls back to the other.
                if not self._frames:
                    self._frames.append(frame)
                    self._begin(name)
            elif name == "inject_into_urllib3":
                self.injections.append(caller(frame.f_back))
        elif event == "return":
            if self._frames and self._frames[0] is frame:
                self._frames.pop()
                self._end()
        elif getattr(arg, "__name__", None) in LOADS:  # c_return, c_exception
            self._end()

    def _begin(self, name):
        self.loads.append(name)
        self._began = cpu_clock()

    def _end(self):
        self.seconds += cpu_clock() - self._began


def caller(frame):
    """{"file", "line", "text", "from"} of who calls; from: the program's own line above it."""
    import linecache

    path, line = frame.f_code.co_filename, frame.f_lineno
    who = {"file": short(path), "line": line, "from": None}
    who["text"] = linecache.getline(path, line).strip()
    while frame is not None and frame.f_code.co_filename != own_file():
        path = frame.f_code.co_filename
        if not path.startswith("<") and not is_library(path):
            who["from"] = "%s:%d" % (short(path), frame.f_lineno)
            break
        frame = frame.f_back
    return who


def count_loads(way, server):
    """How often certificates are loaded by three connections of one session, and by one call
    without a session: {"client", "by_connection", "made", "by_call", "error"}.

    The connections are made with the trust that the library has by default, so they end at the
    certificate of the doctor's server, after the loads.
    """
    row = {"client": way.name, "made": 0, "by_connection": [], "by_call": None}
    row["error"] = None
    # A library that does not verify by default gets an answer, and must not keep its connection.
    url, seen = server.url("https", 0, "last" + server.new_trial()), []

    def note(error):
        if isinstance(error, Exception) and "certificate verify failed" not in told(error).lower():
            row["error"] = row["error"] or told(error)
        row["by_connection"].append(len(watch.loads) - len(seen))
        seen.extend(watch.loads[len(seen) :])

    def attempt(open_one):
        try:
            open_one(url)
        except Exception as error:
            return error

    with Watch() as watch:
        if way.name == "aiohttp":
            ask_aiohttp("GET", url, 3, note)
        else:
            open_one = way.opener()
            row["made"] = len(watch.loads)
            seen.extend(watch.loads)
            for _ in range(3):
                note(attempt(open_one))
        if way.once:
            before = len(watch.loads)
            attempt(way.once)
            row["by_call"] = len(watch.loads) - before
    return row


def job_loads(row, connections):
    """The loads of a job that opens so many connections, by what was counted."""
    first, later = row["by_connection"][0], row["by_connection"][1:]
    return row["made"] + first + (connections - 1) * sum(later) / len(later)


def bundle():
    """The file or folder that verify=True means here, or None: the system's default."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if "requests" in sys.modules and os.environ.get(name):
            return os.environ[name]
    for name in ("requests", "niquests"):
        certs = getattr(sys.modules.get(name), "certs", None)
        if certs is not None:
            return certs.where()
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def cost_of_a_load():
    """[least, most] milliseconds of one load into a new context of the class that the program
    uses; None where the program's contexts fail."""
    import ssl

    try:
        create = getattr(urllib3_module("util.ssl_"), "create_urllib3_context", None)
        protocol = getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23)
        create, path = create or (lambda: ssl.SSLContext(protocol)), bundle()
        spent = []
        for _ in range(TURNS):
            context, started = create(), cpu_clock()
            if path is None:
                context.set_default_verify_paths()
            elif os.path.isdir(path):
                context.load_verify_locations(capath=path)
            else:
                context.load_verify_locations(cafile=path)
            spent.append(1000 * (cpu_clock() - started))
        return bounds(spent)
    except Exception:
        return None


def bundle_size():
    path = bundle()
    if path is None or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read().count(b"BEGIN CERTIFICATE")


def kept_session(way, server):
    """A function that asks once more over a connection that is open already."""
    if way.module in ("requests", "niquests"):
        session = sys.modules[way.module].Session()
        session.trust_env = False
        return lambda: session.get(server.url("https", 0, "kept"), verify=server.ca).content
    pool = sys.modules["urllib3"].PoolManager(cert_reqs="CERT_REQUIRED", ca_certs=server.ca)
    return lambda: pool.request("GET", server.url("https", 0, "kept"), retries=False).data


def cpu_of(work):
    """Processor seconds of one piece of work."""
    start = cpu_clock()
    work()
    return cpu_clock() - start


def loads_of(work):
    """(loads, their processor seconds) of one piece of work, which may fail after them."""
    with Watch() as watch:
        try:
            work()
        except Exception:
            pass
    return len(watch.loads), watch.seconds


def price(row, way, server, connections):
    """What the loads of a row cost in a job of JOB requests. Adds to it connections, load_ms,
    spared_ms (by loading once), job_ms and share (percent), each as `bounds` of TURNS.

    The loads are those of connections with the library's own trust, the rest is that of requests
    that trust the doctor's certificate, less the loads in them. All are measured in turns, so that
    a slow moment of the machine touches all alike.
    """
    open_one, kept = way.opener(), kept_session(way, server)
    url, trial = server.url("https", 0, "last" + server.new_trial()), server.new_trial()
    kept()
    loads, parts = row["job_loads"], []

    def once():
        ask(way, server, "https", 0, trial)

    for _ in range(TURNS):
        number, spent = loads_of(lambda: open_one(url))
        new = max(0, cpu_of(once) - loads_of(once)[1])
        parts.append((spent / number, connections * new + (JOB - connections) * cpu_of(kept)))
    row["connections"] = connections
    row["load_ms"] = bounds([1000 * one for one, _ in parts])
    row["spared_ms"] = bounds([1000 * (loads - 1) * one for one, _ in parts])
    row["job_ms"] = bounds([1000 * (loads * one + rest) for one, rest in parts])
    row["share"] = bounds([100 * loads * one / (loads * one + rest) for one, rest in parts])


def bounds(values):
    """[least, most] without the very least and the very most: of eleven values those two have the
    median between them with a certainty of 98.8 %, whatever the noise looks like."""
    values = sorted(values)[1:-1]
    return [round(values[0], 2), round(values[-1], 2)]


def check_loads(server, imported, spec, late):
    """One row of `count_loads` for each client that is here, with its price where it counts. What
    the program did not import comes last, and only while there is time."""
    rows = []
    known = [way for way in own_adapters() if way.adapter]
    known += sorted(ways(), key=lambda way: way.module not in imported)
    for way in known:
        its_own = way.module in imported
        if not its_own and late():
            continue
        with Watch() as watch:
            if not bring(way.module):
                continue
        try:
            row = count_loads(way, server)
            row["job_loads"] = job_loads(row, spec["connections"])
        except Exception as error:
            row = {"client": way.name, "error": told(error), "by_call": None}
        row.update(imported=its_own, adapter=way.adapter, at_import=len(watch.loads))
        rows.append(row)
    by_name = dict((way.name, way) for way in known)
    for row in judged_rows(rows, spec["program"]):
        way = by_name[row["client"]]
        if not row["error"] and row["job_loads"] > 1 and way.module in PRICED:
            try:
                price(row, way, server, spec["connections"])
            except Exception as error:
                row["error"] = told(error)
    return rows


def judged_rows(rows, program):
    """The rows of loads that count: of the clients that the program imported, or, where no program
    was named, of requests. A session's own adapter counts for requests as a whole, and urllib3
    where neither requests nor niquests is above it."""
    own = [row for row in rows if row["imported"]]
    if not program:
        own = own or [row for row in rows if row["client"] == "requests"]
    own = [row for row in own if not (row["adapter"] and row["error"])]
    left_out = []
    if any(row["client"] in ("requests", "niquests") for row in own):
        left_out.append("urllib3")
    if any(row["adapter"] for row in own):
        left_out.append("requests")
    return [row for row in own if row["client"] not in left_out]


# ------------------------------------------------------------------------------------ the version


def check_http(url, imported):
    """Which HTTP each client speaks with a URL: two announced HEADs each, none redirected."""
    found = {"url": url, "offers": None, "clients": [], "requests": 0}
    if url.startswith("https://"):
        say("connecting to %s: which protocols does it offer? (no request)" % url.split("/")[2])
        found["offers"] = offered(url)
    names = imported or set(way.module for way in ways() if bring(way.module))
    if names & set(("requests", "niquests")):
        names = names - set(("urllib3",))
    for way in ways():
        for name, head in heads(way) if way.module in names else ():
            row = {"client": name, "version": None, "ms": [], "error": None}
            found["clients"].append(row)
            try:
                for _ in range(2):
                    found["requests"] += 1
                    numbers = (url, name, found["requests"], MOST_REQUESTS)
                    say("asking %s with %s (request %d of at most %d)" % numbers)
                    start = clock()
                    row["version"] = head(url)
                    row["ms"].append(round(1000 * (clock() - start), 1))
            except Exception as error:
                row["error"] = told(error)
    return found


def heads(way):
    """(name, function of a URL that sends one HEAD and returns the HTTP version), one or two."""
    library = sys.modules[way.module]

    def of_number(number):
        return "HTTP/" + {10: "1.0", 11: "1.1", 20: "2", 30: "3"}.get(number, str(number))

    if way.name in ("requests", "niquests"):
        session = library.Session()

        def head(url):
            raw = session.head(url, allow_redirects=False, timeout=5).raw
            return of_number(raw.version)

    elif way.name == "urllib3":
        pool = library.PoolManager()

        def head(url):
            response = pool.request("HEAD", url, retries=False, redirect=False, timeout=5)
            return of_number(response.version)

    elif way.name == "httpx":
        both = [("httpx", library.Client(timeout=5))]
        if bring("h2"):
            both.append(("httpx with http2=True", library.Client(timeout=5, http2=True)))
        return [(name, lambda url, c=client: c.head(url).http_version) for name, client in both]
    elif way.name == "aiohttp":

        def head(url):
            said = []
            ask_aiohttp("HEAD", url, 1, said.append)
            if isinstance(said[0], Exception):
                raise said[0]
            return said[0]

    else:
        return []  # geventhttpclient knows HTTP/1.1 alone
    return [(way.name, head)]


def offered(url):
    """The protocol that a server chooses when h2 and http/1.1 are offered to it; None: unknown.

    Its certificate is not looked at: nothing is sent after the handshake.
    """
    import socket
    import ssl

    name, _, port = url.split("/")[2].rpartition("@")[2].partition(":")
    try:
        context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        plain = socket.create_connection((name, int(port or 443)), 5)
        try:
            tls = context.wrap_socket(plain, server_hostname=name)
            return tls.selected_alpn_protocol() or "http/1.1"
        finally:
            plain.close()
    except Exception:
        return None


# ---------------------------------------------------------------------------- looking at a process


def urllib3_module(name):
    for parent in ("urllib3.", "requests.packages.urllib3."):
        if parent + name in sys.modules:
            return sys.modules[parent + name]
    return None


def injected():
    """Whether urllib3 makes its contexts with pyOpenSSL for everybody."""
    context = getattr(urllib3_module("util.ssl_"), "SSLContext", None)
    return str(getattr(context, "__module__", "")).endswith("contrib.pyopenssl")


#: What a report names the provider of: (what, module, attribute).
PROVIDED = (
    ("socket.socket", "socket", "socket"),
    ("ssl.SSLContext", "ssl", "SSLContext"),
    ("urllib3's SSLContext", "urllib3.util.ssl_", "SSLContext"),
    ("select.poll", "select", "poll"),
    ("pyOpenSSL's Connection", "OpenSSL.SSL", "Connection"),
)


def provider(value):
    """Who made a class or function: gevent, eventlet, pyOpenSSL, the standard library, a module."""
    module = str(getattr(value, "__module__", "") or "")
    first = module.split(".")[0]
    if "contrib.pyopenssl" in module or first == "OpenSSL":
        return "pyOpenSSL"
    if first in ("ssl", "_ssl", "socket", "_socket", "select"):
        return "the standard library"
    return first or "unknown"


def provides():
    rows = []
    for what, module, attribute in PROVIDED:
        if module not in sys.modules:
            continue
        found = getattr(sys.modules[module], attribute, None)
        rows.append(
            {"name": what, "by": "nobody: it is gone" if found is None else provider(found)}
        )
        rows[-1]["class"] = found and "%s.%s" % (found.__module__, found.__name__)
    return rows


def is_library(path):
    library = os.path.dirname(os.path.abspath(os.__file__))
    return "site-packages" in path or "dist-packages" in path or path.startswith(library)


def short(path):
    """A file's name from site-packages, the standard library or the current folder on."""
    import re

    path = path.replace("\\", "/")
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2]
    here = os.getcwd().replace("\\", "/") + "/"
    if path.startswith(here):
        return path[len(here) :]
    return re.sub(r"^.*/lib(64)?/python\d+\.\d+/", "", path)


def told(error):
    """An exception in one line: its kind, and what the innermost one says."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), getattr(error, "__cause__", None)]
        inside = [each for each in inside + list(error.args) if isinstance(each, Exception)]
        if not inside:
            break
        error = inside[0]
    text = " ".join(str(error).split())
    return "%s: %s" % (type(error).__name__, text[:200]) if text else type(error).__name__


def bring(module):
    """Import a library that the program has not; whether it is there."""
    try:
        __import__(module)
        return True
    except Exception:
        return False


def is_installed(package):
    """Whether a package is there to be imported; it is not."""
    return any(os.path.isdir(os.path.join(folder or ".", package)) for folder in sys.path)


def openssl():
    import ssl

    found = {"ssl": ssl.OPENSSL_VERSION, "pyOpenSSL": None}
    pyopenssl = sys.modules.get("OpenSSL.SSL")
    if pyopenssl is not None:
        found["pyOpenSSL"] = pyopenssl.SSLeay_version(pyopenssl.SSLEAY_VERSION).decode("ascii")
    found["loads"] = found["pyOpenSSL"] if injected() else found["ssl"]
    return found


def look(address, spec, watch=None, may_change=False):
    """Examine this process: what was found, as a dictionary that `judge` reads.

    watch: what saw the program's imports, if anything did. may_change: cures may be tried here.
    """
    import warnings

    started = clock()
    server = Server(address)
    imported = set(way.module for way in ways() if way.module in sys.modules)
    loop, patched = find_loop()
    found = {
        "program": spec["program"],
        "python": sys.version.split()[0],
        "openssl": openssl(),
        "provides": provides(),
        "injections": watch.injections if watch else [],
        "loads_at_import": len(watch.loads) if watch else None,
        "loop": None,
        "loops_installed": [name for name in PATCH_FIRST if is_installed(name)],
        "clients": [],
        "cures": [],
        "traps": [],
        "http": None,
    }
    if loop:
        used = own_code_uses(loop.name, spec["program"])
        found["loop"] = {"name": loop.name, "patched": patched, "used": used}
    kept = dict((name, os.environ.get(name)) for name in ("no_proxy", "NO_PROXY"))
    os.environ.update(dict.fromkeys(kept, "*"))  # the loopback server is nobody's proxy's business
    warnings_before = warnings.filters[:]
    warnings.simplefilter("ignore")  # of what the doctor does: it has to ask without verifying
    try:
        if loop:
            found["clients"] = check_loop(loop, patched, server, imported)
        found["loads"] = check_loads(
            server, imported, spec, lambda: bool(imported) and clock() - started > ENOUGH_S
        )
        priced = [row["load_ms"] for row in found["loads"] if row.get("load_ms")]
        found["load_ms"] = priced[0] if priced else cost_of_a_load()
        found["certificates"] = bundle_size()
        if may_change:
            blocked = [row["client"] for row in found["clients"] if row["verdict"] == BLOCKED]
            own = dict((way.name, way) for way in ways() + own_adapters() + [STANDARD, EVENTLETS])
            if blocked:
                found["cures"] = try_cures(loop, own[blocked[0]], server)
            if loop:
                found["traps"] = check_traps(server)
    finally:
        warnings.filters[:] = warnings_before
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    if spec["url"]:
        found["http"] = check_http(spec["url"], imported)
    found["examined_s"] = round(clock() - started, 2)
    return found


def examine():
    """The process of the examined program: a line of JSON in, lines of JSON out, the last of them
    what was found; then this ends, whatever the program has left running in it."""
    import signal

    spec = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    if PY2 and os.name == "posix":
        import fcntl

        fcntl.fcntl(out, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    os.dup2(2, 1)  # what the program prints must not stand between our lines
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if hasattr(os, "setsid"):
        os.setsid()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    def answer(what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    answer({"phase": "imports"})
    watch = Watch()
    started = clock()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(spec["patience"])
    try:
        if spec["program"]:
            with watch:
                import_program(spec["program"], spec["arguments"])
    except BaseException as error:
        answer({"trouble": trouble_of(error, spec)})
        leave(out)
    imported_s = round(clock() - started, 2)
    if hasattr(signal, "SIGALRM"):  # whatever happens to whoever started this, it ends
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(EXAMINED_WITHIN_S)
    answer({"phase": "examination"})
    try:
        answer(dict(look(spec["server"], spec, watch, True), imported_s=imported_s))
    except BaseException as error:
        import traceback

        traceback.print_exc()
        answer({"trouble": "the doctor stumbled itself: %s (its traceback stands above)" % error})
    leave(out)


def leave(out):
    """End at once: no thread is waited for, and nothing is called that waits for the end."""
    for stream in (out, sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(0)


class TooLong(BaseException):
    pass


def too_long(signum, frame):
    raise TooLong()


def is_script(program):
    return program.endswith(".py") or os.path.isfile(program)


def import_program(program, arguments):
    """Import a module, or run a script under another name than __main__."""
    sys.argv = [program] + list(arguments)
    if not is_script(program):
        sys.path[0] = os.getcwd()
        __import__(program.partition(":")[0])
        return
    path = os.path.abspath(program)
    sys.path[0] = os.path.dirname(path)
    module = type(sys)("__program__")
    module.__file__ = path
    sys.modules["__program__"] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", 0, True)
    exec(code, module.__dict__)


def trouble_of(error, spec):
    """What the import of the program ended with, and what to do, in a sentence or two."""
    place = ""
    trace = sys.exc_info()[2]
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path != own_file() and not path.startswith("<"):
            place = ", at %s:%d" % (short(path), trace.tb_lineno)
        trace = trace.tb_next
    name = spec["program"]
    if isinstance(error, TooLong):
        return (
            "%s was still in its imports after %d s%s. Name a module that only imports, or put "
            'the work behind `if __name__ == "__main__":`.' % (name, spec["patience"], place)
        )
    if isinstance(error, SystemExit):
        return (
            "%s called sys.exit(%r) in its imports%s, so its other imports were not seen. Put "
            'that behind `if __name__ == "__main__":`, or name a module that only imports.'
            % (name, error.code, place)
        )
    return "%s crashed in its imports%s: %s. Mend that first: `%s %s` has to get through." % (
        name,
        place,
        told(error),
        os.path.basename(sys.executable or "python"),
        start_of(name),
    )


def start_of(program):
    return program if is_script(program) else '-c "import %s"' % program.partition(":")[0]


# -------------------------------------------------------------------------------------- judging


CHAPTERS = {
    3: "chapter 3, Monkeys",
    7: "chapter 7, Cures",
    8: "chapter 8, Is it still out there?",
    10: "chapter 10, What one load costs",
    12: "chapter 12, The cure",
    17: "chapter 17, Distance",
}
PATCH_FIRST = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}
#: Below this part of a job, in percent, loads are not worth a line of advice.
WORTH_ADVICE_FROM = 10
#: What connections fail with when ssl was imported before, or patched without, the rest.
LATE_PATCH = ("recursion", "_wrap_socket() argument")


def judge(found, spec):
    """Add verdicts, advice and the exit status to what was found."""
    loop, loads = judge_loop(found), judge_loads(found, spec["share"])
    status = 0
    if CANNOT_TELL in (loop, loads) or loads == STRADDLES:
        status = 2
    if loop == BLOCKED or loads == ABOVE:
        status = 1
    return dict(
        found,
        verdicts={"event loop": loop, "certificate loads": loads},
        advice=advice_on_loop(found, loop) + advice_on_loads(found, loads) + advice_on_http(found),
        share_stated=spec["share"],
        connections=spec["connections"],
        exit_status=status,
    )


def judge_loop(found):
    if found["loop"] is None:
        return DOES_NOT_APPLY
    verdicts = [row["verdict"] for row in found["clients"]]
    if not found["clients"][0]["imported"]:
        # A stand-in for a client that may come later: nothing of the program's was seen to block.
        stands_for = {UNPATCHED: DOES_NOT_APPLY, BLOCKED: CANNOT_TELL}
        return stands_for.get(verdicts[0], verdicts[0])
    # With nothing patched, greenlets that fetch block the loop; whether there are any is told by
    # who imported gevent: the program, or a library that may leave it alone.
    unpatched = BLOCKED if found["loop"]["used"] else CANNOT_TELL
    verdicts = [unpatched if verdict == UNPATCHED else verdict for verdict in verdicts]
    for verdict in (BLOCKED, CANNOT_TELL):
        if verdict in verdicts:
            return verdict
    return FREE


def judge_loads(found, share):
    verdicts = []
    for row in judged_rows(found["loads"], found["program"]):
        if row["error"]:
            verdicts.append(CANNOT_TELL)
        elif "share" not in row:
            verdicts.append(BELOW)
        else:
            least, most = row["share"]
            verdicts.append(ABOVE if least > share else BELOW if most < share else STRADDLES)
    for verdict in (ABOVE, STRADDLES, CANNOT_TELL, BELOW):
        if verdict in verdicts:
            return verdict
    return DOES_NOT_APPLY


def advise(case, chapter, what, line="", package="", saves=""):
    """One thing to change; chapter: the number of the one that explains it."""
    return {
        "case": case,
        "what": what,
        "line": line,
        "package": package,
        "saves": saves,
        "chapter": CHAPTERS[chapter],
    }


def advice_on_loop(found, verdict):
    advice = []
    for row in found["clients"]:
        loop, client, error = found["loop"]["name"], row["client"], str(row["error"]).lower()
        if row["verdict"] == UNPATCHED:
            what = (
                "%s is loaded and has patched no sockets: every greenlet that fetches with %s "
                "blocks the loop, over HTTP too. (If a worker patches later, call doctor.inside() "
                "there.)" % (loop, client)
            )
            advice.append(advise(1, 3, what, PATCH_FIRST[loop]))
        elif row["verdict"] == CANNOT_TELL and any(sign in error for sign in LATE_PATCH):
            what = (
                "Every TLS connection of %s ends in an error: ssl was imported before %s patched "
                "it, or was not patched along with socket. The whole patch has to come first."
                % (client, loop)
            )
            advice.append(advise(1, 3, what, PATCH_FIRST[loop]))
    blocked = [row for row in found["clients"] if row["verdict"] == BLOCKED]
    if verdict == BLOCKED and blocked:
        advice += advice_on_block(found, blocked[0])
    for trap in found["traps"]:
        what = "%s injects pyOpenSSL for the whole process. The doctor made one to see it." % trap
        advice.append(advise(1, 8, what, "", upgrade("google/auth/")))
    return advice


def advice_on_block(found, row):
    loop, socket, advice = found["loop"]["name"], str(row["socket"]), []
    freed = dict((each["cure"], each) for each in found["cures"] if each["verdict"] == FREE)
    blocked_s = row["https"]["trials"][0]["wall_s"]

    def saves(cure):
        if cure not in freed:
            return ""
        numbers = (DELAYS_S[0], blocked_s, freed[cure]["wall_s"])
        return "two requests that take %.1f s each: %.2f s now, %.2f s with it" % numbers

    context = [each for each in found["provides"] if each["name"] == "urllib3's SSLContext"]
    if context and context[0]["by"] == "pyOpenSSL":
        by = found["injections"][-1] if found["injections"] else {"file": "", "text": ""}
        what = "%s, and urllib3 then waits where the loop cannot see it." % injected_by(by)
        if "extract_from_urllib3()" in freed:
            what += " Without that call the loop runs on."
        saved = saves("extract_from_urllib3()")
        advice.append(advise(1, 7, what, by["text"], upgrade(by["file"]), saved))
    elif "pyopenssl" in socket.lower():
        what = "%s connects through pyOpenSSL, and urllib3 then waits where the loop cannot see it"
        advice.append(advise(1, 8, (what + ": all greenlets stand still.") % row["client"]))
    elif socket.startswith("ssl."):
        what = "%s reads from an %s of the standard library, because %s has not patched ssl."
        advice.append(advise(1, 3, what % (row["client"], socket, loop)))
    if "gevent's SSLContext" in freed:
        what = (
            "geventhttpclient takes the context that it is given, and one of gevent's own class "
            "lets the loop run on. (gevent.ssl.create_default_context makes a standard one.)"
        )
        line = "HTTPClient(..., ssl_context_factory=...), which makes a gevent.ssl.SSLContext"
        advice.append(advise(1, 7, what, line, "", saves("gevent's SSLContext")))
    if "patch_select()" in freed:
        what = "Called after your imports, this gives the wait to the loop. Threads stay threads."
        line = "gevent.monkey.patch_select()"
        advice.append(advise(1, 7, what, line, "", saves("patch_select()")))
    what = (
        "Or %s patches everything, in the program's first line, before all other imports. (Not "
        "tried here: in this process it would come too late.)" % loop
    )
    advice.append(advise(1, 7, what, PATCH_FIRST[loop]))
    return advice


def injected_by(injection):
    """Who injected pyOpenSSL, as the beginning of a sentence."""
    if not injection["file"]:
        return "pyOpenSSL was injected into urllib3"
    where = "%s:%s" % (injection["file"], injection["line"])
    what = "pyOpenSSL was injected into urllib3 by %s" % where
    if injection["from"] and not where.endswith(injection["from"]):
        what += ", called from %s" % injection["from"]
    return what


def upgrade(file):
    """The package to upgrade when one of its files injects pyOpenSSL."""
    if file.startswith("requests/"):
        return "requests 2.24 or newer, which leaves pyOpenSSL alone"
    if file.startswith("google/auth/"):
        return "google-auth 2.55.2 or newer, which leaves pyOpenSSL alone"
    return ""


#: What to write where a client loads again and again: (sentence, line).
LOAD_ONCE = {
    "requests": (
        "One context for all connections (the book's shared_context.py) loads once.",
        "import shared_context; shared_context.install()",
    ),
    "urllib3": (
        "A context of your own, given to the pool, loads once.",
        "urllib3.PoolManager(ssl_context=ssl.create_default_context())",
    ),
}


def advice_on_loads(found, verdict):
    advice = []
    for row in judged_rows(found["loads"], found["program"]):
        if row.get("share", [0, 0])[1] < WORTH_ADVICE_FROM:
            continue
        sentence, line = LOAD_ONCE.get(row["client"], ("", ""))
        what = "%s loads the certificates anew for each connection. " % row["client"]
        saves = "%s s of the %s s CPU of %d requests over %d connections" % (
            span([each / 1000 for each in row["spared_ms"]], 2),
            span([each / 1000 for each in row["job_ms"]], 2),
            JOB,
            row["connections"],
        )
        if any(each["by"] == "truststore" for each in found["provides"]):
            # It loads in the handshake, whatever is shared.
            sentence, line = "truststore loads the system's once more in each handshake.", ""
        advice.append(advise(2, 12, what + sentence, line, "", saves))
        if row["client"] == "requests" and row["connections"] > 1:
            what = "A Session that is kept, for many requests to few hosts, keeps its connections."
            what += " --connections 1 shows what is left."
            advice.append(advise(2, 12, what, "session = requests.Session()"))
    if verdict == ABOVE and " 3.0." in found["openssl"]["loads"]:
        what = "A load takes longest with OpenSSL 3.0; older and newer ones take a fraction of it."
        advice.append(advise(2, 10, what, "", "a Python with another OpenSSL"))
    for row in found["loads"]:
        if row["imported"] and row["client"] == "httpx" and row.get("by_call"):
            what = "httpx.get loads for each call; an httpx.Client that is kept loads once."
            advice.append(advise(2, 12, what, "client = httpx.Client()"))
    return advice


def advice_on_http(found):
    http = found["http"] or {"offers": None, "clients": []}
    old = [row for row in http["clients"] if str(row["version"]).startswith("HTTP/1")]
    if http["offers"] != "h2" or not old or old[0]["error"]:
        return []
    what = (
        "%s offers HTTP/2, and %s speaks %s. HTTP/2 pays at a distance, when many requests are "
        "under way at once." % (http["url"], old[0]["client"], old[0]["version"])
    )
    ms = old[0]["ms"][1]
    saves = "one by one, %d requests of %.0f ms take %.1f s; at once they wait for each other less"
    saves = saves % (JOB, ms, JOB * ms / 1000)
    return [advise(3, 17, what, "", "httpx[http2] or niquests", saves)]


# ------------------------------------------------------------------------------------ the report


def text_of(report, colour):
    """The report as people read it."""

    def paint(code, text):
        return "\033[%sm%s\033[0m" % (code, text) if colour else text

    def mark(verdict):
        code = {BLOCKED: 31, ABOVE: 31, FREE: 32, BELOW: 32}.get(verdict, 33)
        return paint("1;%d" % code, verdict.upper())

    lines = []
    program = report.get("program") or "nothing (no program was named)"
    if report.get("imported_s") is not None and report.get("program"):
        program += ", imported in %.1f s" % report["imported_s"]
    lines.append("Python %s, %s" % (report["python"], report["openssl"]["ssl"]))
    lines.append("examined: %s" % program)
    lines.append("")
    for row in report["provides"]:
        lines.append("  %-24s %s" % (row["name"], row["by"]))
    for each in report["injections"]:
        lines += wrapped(injected_by(each) + ".")
    lines.append("")
    verdict = report["verdicts"]["event loop"]
    lines.append("%s  %s" % (paint(1, "1. Does a TLS read block the event loop?"), mark(verdict)))
    lines += loop_lines(report, verdict)
    lines.append("")
    verdict = report["verdicts"]["certificate loads"]
    lines.append("%s  %s" % (paint(1, "2. What do certificate loads cost?"), mark(verdict)))
    lines += load_lines(report)
    lines.append("")
    lines.append(paint(1, "3. Which HTTP?"))
    lines += http_lines(report)
    lines.append("")
    lines.append(paint(1, "What to change" if report["advice"] else "Nothing to change."))
    for number, each in enumerate(report["advice"], 1):
        lines += wrapped("%d. %s" % (number, each["what"]), "  ", "     ")
        for name in ("line", "package", "saves", "chapter"):
            if each[name]:
                lines += wrapped("%-8s %s" % (name, each[name]), "     ", " " * 14)
    lines.append("")
    lines.append("exit status %d" % report["exit_status"])
    return "\n".join(lines) + "\n"


def loop_lines(report, verdict):
    if report["loop"] is None:
        text = (
            "There is neither gevent nor eventlet in this process: a blocking read stops its own "
            "thread only. (Under asyncio every client without await blocks the loop, by design.) "
            "What can apply are the loads, below."
        )
        if not report["program"]:
            text += " To see your program, name what does its imports: doctor.py -- module"
            if report["loops_installed"]:
                text += " (%s is installed here)" % " and ".join(report["loops_installed"])
        return wrapped(text)
    lines = []
    for row in report["clients"]:
        text = "%s: %s" % (row["client"], row["verdict"])
        if row["error"]:
            text += " (%s)" % row["error"]
        lines += wrapped(text)
        for scheme in ("https", "http"):
            for each in (row[scheme] or {}).get("trials", []):
                lines += wrapped(
                    "%-5s %d requests of %.1f s in %.2f s (effective concurrency %.2f), at most "
                    "%d at once; the heartbeat missed %.2f s"
                    % (
                        scheme, each["requests"], each["delay_s"], each["wall_s"],
                        each["effective_concurrency"], each["peak_in_flight"],
                        each["longest_gap_s"],
                    ),
                    "    ", "          ",
                )  # fmt: skip
    for row in report["cures"]:
        if row["wall_s"] is not None:
            lines += wrapped("tried here: %(cure)s, %(verdict)s in %(wall_s).2f s" % row)
    if verdict == DOES_NOT_APPLY:
        lines += wrapped("%s has patched nothing here." % report["loop"]["name"])
    return lines


def load_lines(report):
    lines = []
    if report["load_ms"]:
        size = report["certificates"]
        of = "%d certificates" % size if size else "the default certificates"
        lines += wrapped("one load of %s takes %s ms CPU" % (of, span(report["load_ms"])))
    if report["loads_at_import"]:
        lines += wrapped("loads while the program was imported: %d" % report["loads_at_import"])
    for row in report["loads"]:
        name = row["client"] + ("" if row["imported"] else " (installed, not imported)")
        if row.get("error"):
            lines += wrapped("%s: not counted (%s)" % (name, row["error"]))
            continue
        counts = ", ".join(str(each) for each in row["by_connection"])
        text = "%s: %s loads by the connections of one session" % (name, counts)
        if row["made"]:
            text += ", %d when it is made" % row["made"]
        if row["at_import"]:
            text += ", %d when %s is imported" % (row["at_import"], row["client"])
        if row["by_call"] is not None:
            text += "; %d by one %s.get" % (row["by_call"], row["client"])
        lines += wrapped(text)
        if row.get("share"):
            lines += wrapped(
                "%s %% of the CPU of %d requests over %d connections are loads (stated share: "
                "%g %%)"
                % (span(row["share"], 0), JOB, report["connections"], report["share_stated"]),
                "    ",
            )
            if row["share"][0] <= report["share_stated"] <= row["share"][1]:
                lines += wrapped(
                    "that is on both sides of the stated share: it cannot tell", "    "
                )
    return lines


def http_lines(report):
    http = report["http"]
    if http is None:
        return wrapped("not asked: --url https://... asks a server of yours")
    lines = []
    if http["offers"]:
        lines += wrapped("the server chooses %s where both are offered" % http["offers"])
    for row in http["clients"]:
        if row["error"]:
            lines += wrapped("%s: %s" % (row["client"], row["error"]))
        else:
            both = (row["client"], row["version"], row["ms"][0], row["ms"][1])
            lines += wrapped("%s speaks %s; first request %.0f ms, second %.0f ms" % both)
    return lines or wrapped("no client that can be asked is imported")


def span(pair, digits=1):
    return "%.*f to %.*f" % (digits, pair[0], digits, pair[1])


def wrapped(text, first="  ", later=None):
    import textwrap

    later = first + "  " if later is None else later
    return textwrap.wrap(
        text, 88, initial_indent=first, subsequent_indent=later,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def say(text, stream=None):
    """One line for people; where the terminal cannot show a letter, in ASCII."""
    stream = stream or sys.stderr
    try:
        stream.write(text + "\n")
    except UnicodeError:
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii") + "\n")
    stream.flush()


def has_colours(stream):
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not plain


# ------------------------------------------------------------------------------- a running process


def attach(pid, seconds, share):
    """Where a running process stands, by py-spy: a dictionary with the looks, how many of them
    found a greenlet blocked or a load under way, the stack that shows it, and the exit status."""
    program = find_py_spy()
    if program is None:
        raise Trouble(
            "py-spy is not here. `pip install py-spy`, then run this again, or look yourself: "
            "`py-spy dump --pid %d`, a few times" % pid
        )
    seen = {"blocked": 0, "perhaps blocked": 0, "loading": 0}
    shows = {"blocked": None, "perhaps blocked": None, "loading": None}
    looks, loop, until = 0, has_gevent(pid), clock() + seconds
    while clock() < until:
        started = clock()
        threads = stacks_of(program, pid)
        if threads is None and looks:
            break  # it has ended meanwhile
        if threads is None:
            raise Trouble("there is no process %d" % pid)
        looks += 1
        kinds = [(kind_of(frames, loop), frames) for frames in threads]
        for kind in seen:
            stacks = [frames for found, frames in kinds if found == kind]
            seen[kind] += bool(stacks)
            shows[kind] = shows[kind] or (stacks and [frame_line(each) for each in stacks[0]])
        time.sleep(max(0, 0.1 - (clock() - started)))
    status = 0
    if seen["perhaps blocked"] >= 2:
        status = 2
    if seen["blocked"] >= 2 or 100.0 * seen["loading"] / looks > share:
        status = 1  # one look alone may have met a wait of a millisecond
    stack = shows["blocked"] or shows["perhaps blocked"] or shows["loading"]
    return {
        "pid": pid,
        "gevent": loop,
        "looks": looks,
        "seen": seen,
        "share_stated": share,
        "stack": stack and stack[::-1],
        "exit_status": status,
    }


def find_py_spy():
    places = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    places += os.environ.get("PATH", "").split(os.pathsep)
    for folder in places:
        for name in ("py-spy", "py-spy.exe"):
            if os.access(os.path.join(folder, name), os.X_OK):
                return os.path.join(folder, name)
    return None


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
    """What a stack (innermost first) is caught at: a key of `seen` in `attach`, or None.

    A greenlet's stack begins with its own function. One that begins with a module is the main
    program, and no greenlet perhaps; one that begins in `threading` blocks its own thread only.
    """
    import linecache

    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files:
        return None
    line = linecache.getline(frames[0]["filename"], frames[0]["line"])
    if any(name in line for name in LOADS) or "load_default_certs" in line:
        return "loading"
    waits = files[0].endswith("urllib3/util/wait.py")
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    below = any(name.endswith("urllib3/contrib/pyopenssl.py") for name in files)
    if not (waits and below) or in_thread or loop is False:
        return None
    return "blocked" if loop and frames[-1]["name"] != "<module>" else "perhaps blocked"


def frame_line(frame):
    return "%s:%d (%s)" % (short(frame["filename"]), frame["line"], frame["name"])


def attach_text(found):
    seen, looks = found["seen"], found["looks"]
    lines = ["process %d, %d looks" % (found["pid"], looks)]
    told = {True: "loaded", False: "not loaded", None: "nobody can see whether it is loaded"}
    lines.append("  gevent: %s" % told[found["gevent"]])
    wait = "in urllib3's own wait for pyOpenSSL"
    lines += wrapped("a greenlet %s, and the loop with it: %d looks" % (wait, seen["blocked"]))
    if seen["perhaps blocked"]:
        text = "the main program %s: %d looks. If greenlets run beside it, they stand still"
        lines += wrapped(text % (wait, seen["perhaps blocked"]))
    lines += wrapped("a load of certificates: %d looks" % seen["loading"])
    if found["stack"]:
        lines.append("  the stack that shows it, the innermost call last:")
        lines += ["    " + line for line in found["stack"]]
    if seen["blocked"] or seen["perhaps blocked"]:
        lines.append("  %s" % CHAPTERS[7])
    if seen["loading"]:
        lines.append("  %s" % CHAPTERS[12])
    lines.append("exit status %d" % found["exit_status"])
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------------------- the command line


def defaults():
    return {
        "program": None, "arguments": [], "json": False, "url": None, "share": 67.0,
        "connections": JOB, "attach": None, "seconds": 5.0,
        "patience": 30,
    }  # fmt: skip


class Usage(Exception):
    """A command line that makes no sense."""


def parse(arguments):
    """The command line as a dictionary like `defaults`. Raises Usage."""
    spec, rest = defaults(), list(arguments)
    values = {"--url": str, "--share": float, "--connections": int, "--seconds": float}
    values["--patience"] = int
    if rest[:1] == ["attach"]:
        if len(rest) < 2 or not rest[1].isdigit():
            raise Usage("attach needs the number of a process: doctor.py attach PID")
        spec["attach"] = int(rest[1])
        rest = rest[2:]
    while rest:
        word = rest.pop(0)
        if word == "--":
            if not rest:
                raise Usage("after -- comes a module or a script")
            spec["program"], spec["arguments"] = rest[0], rest[1:]
            break
        name, equals, value = word.partition("=")
        if word == "--json":
            spec["json"] = True
        elif name in values:
            if not equals:
                if not rest:
                    raise Usage("%s needs a value" % name)
                value = rest.pop(0)
            try:
                spec[name[2:]] = values[name](value)
            except ValueError:
                raise Usage("%s takes a number, and this is %r" % (name, value))
        else:
            raise Usage("%r is not known; a program is named after --" % word)
    if spec["url"] and not spec["url"].startswith(("https://", "http://")):
        raise Usage("--url takes an address that begins with https://")
    if not 0 < spec["share"] <= 100:
        raise Usage("--share takes more than 0 and up to 100 percent")
    if not 1 <= spec["connections"] <= JOB:
        raise Usage("--connections takes 1 to %d" % JOB)
    if not (0 < spec["seconds"] <= 60 and 0 < spec["patience"] <= 600):
        raise Usage("--seconds takes up to 60, and --patience up to 600")
    return spec


def examine_apart(spec):
    """Have the program examined in a process of its own: what was found. Raises Trouble."""
    import threading

    server, address = start_server()
    program = None
    lines = []
    try:
        program = begin("--examine")
        server.stdin.write(("%d\n" % program.pid).encode())  # should this process be killed
        server.stdin.flush()
        try:
            program.stdin.write((json.dumps(dict(spec, server=address)) + "\n").encode())
            program.stdin.close()
        except (IOError, OSError):  # it has ended already, and its status tells why
            pass

        def read():
            for line in iter(program.stdout.readline, b""):
                lines.append(json.loads(line.decode("ascii")))

        reading = threading.Thread(target=read)
        reading.daemon = True
        reading.start()
        limit = clock() + spec["patience"] + EXAMINED_WITHIN_S + 5
        while clock() < limit and program.poll() is None:
            if lines and "phase" not in lines[-1]:
                break
            reading.join(0.02)
        reading.join(0.5)
    finally:
        if program is not None:
            end_group(program.pid)
            if program.poll() is None:
                program.kill()
            program.wait()
        end_server(server)
    last = lines[-1] if lines else {"phase": "start"}
    if "trouble" in last:
        raise Trouble(last["trouble"])
    if "phase" in last:
        raise Trouble(
            ended(spec["program"] or "the examination", last["phase"], program.returncode)
        )
    return last


def ended(name, phase, status):
    """Why a process that gave no answer ended, as far as its status tells."""
    where = {"start": "before its imports", "imports": "in its imports"}
    where = where.get(phase, "while it was examined")
    if status < 0:
        if status == -9 or status == -14:
            return "%s gave no answer %s in time, and was ended" % (name, where)
        return (
            "%s was killed by signal %d %s. A package with compiled code is likely not made for "
            "the others here (gevent and greenlet have to fit): reinstall it. `python -X "
            "faulthandler` shows which." % (name, -status, where)
        )
    return (
        "%s ended itself %s (exit status %d, without an exception). Name a module that only "
        "imports." % (name, where, status)
    )


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
        end_server(server)
    say(text_of(report, False), stream)
    return report


def main(arguments):
    sys.dont_write_bytecode = True
    if arguments[:1] == ["--serve"]:
        serve()
        return 0
    if arguments[:1] == ["--examine"]:
        examine()
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    try:
        spec = parse(arguments)
    except Usage as error:
        say("doctor: %s. --help says more." % error)
        return 2
    try:
        if spec["attach"] is not None:
            report = attach(spec["attach"], spec["seconds"], spec["share"])
        else:
            report = judge(examine_apart(spec), spec)
    except Trouble as trouble:
        if spec["json"]:
            print(json.dumps({"trouble": str(trouble), "exit_status": 2}, sort_keys=True))
        else:
            say("doctor: %s." % str(trouble).rstrip("."))
        return 2
    except KeyboardInterrupt:
        say("doctor: interrupted; nothing is left running.")
        return 2
    if spec["json"]:
        print(json.dumps(report, sort_keys=True))
    elif spec["attach"] is not None:
        say(attach_text(report), sys.stdout)
    else:
        say(text_of(report, has_colours(sys.stdout)), sys.stdout)
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
