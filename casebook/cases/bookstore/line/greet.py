"""Handshakes over a line, whole and resumed: one JSON object in (standard input), one out.

In: {"way" (of ends.Ends), "carries" (as over.py has it), "latency_s", "n" (connections of each
kind), "chain" (of chains.CHAINS; SELF where nothing is said), "kinds": [{"client" ("ssl" or
"requests"), "tls" ("1.2" or "1.3"), "resumes"}], "checks": [tls]}.

Out: {"way", "kinds": [{"walls_s" (of each connection, from TCP's first packet to the answer),
"resumed" (of them, as the client saw it; for requests null), "server_resumed" (as the server did),
"bytes" (of IP packets, both directions, a connection), "client_cpu_s", "server_cpu_s" (a
connection)}], "checks": what `check` found, for each of "tls" that "checks" names}. Or {"failed":
what went wrong, in words}.

Each connection brings one small answer, over HTTP/1.1, and is closed. Each kind has made one
connection before, which does not count, and which those that resume can resume. The server is this
file too, and so are the clients.
"""

import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

_HERE = os.path.abspath(__file__)
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_ASKS = b"GET / HTTP/1.1\r\nHost: far\r\nConnection: close\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def used_s():
    """Return the CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---------------------------------------------------------------- the server


def serve(address, certificate):
    """Serve one small answer over each connection, for ever; print the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    tally = {"connections": 0, "resumed": 0}

    def attend(plain):
        try:
            with context.wrap_socket(plain, server_side=True) as peer:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += peer.recv(4096) or b"\r\n\r\n"
                tally["connections"] += 1
                tally["resumed"] += peer.session_reused
                peer.sendall(_ANSWER)
        except OSError:
            pass  # the client misses its answer, and says so

    listening = socket.create_server((address, 0))
    listening.listen(100)
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=report, args=(tally,), daemon=True).start()
    while True:
        plain, _ = listening.accept()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=attend, args=(plain,), daemon=True).start()


def report(tally):
    """Print the tally so far for each line of input; end with the owner."""
    for _ in sys.stdin:
        print(json.dumps(dict(tally, cpu_s=used_s())), flush=True)
    os._exit(0)


# ---------------------------------------------------------------- the clients


def call(parameters):
    """Connect n times in one way: their walls, how many were resumed, and the processor time."""
    visits = {"ssl": with_ssl, "requests": with_requests}[parameters["client"]](parameters)
    next(visits)
    cpu_before_s, walls_s, resumed = used_s(), [], []
    for _ in range(parameters["n"]):
        began = time.perf_counter()
        resumed.append(next(visits))
        walls_s.append(round(time.perf_counter() - began, 6))
    cpu_s = (used_s() - cpu_before_s) / parameters["n"]
    resumptions = None if None in resumed else sum(resumed)
    return {"walls_s": walls_s, "resumed": resumptions, "client_cpu_s": round(cpu_s, 6)}


def with_ssl(parameters):
    """Connect with Python's own ssl: a session is kept from one connection to the next, or not."""
    context = ssl.create_default_context(cafile=parameters["ca_file"])
    context.minimum_version = context.maximum_version = _VERSIONS[parameters["tls"]]
    session = None
    while True:
        plain = socket.create_connection((parameters["host"], parameters["port"]))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(
            plain, server_hostname=parameters["host"], session=session
        ) as peer:
            peer.sendall(_ASKS)
            reply = b""
            while not reply.endswith(b"ok"):
                chunk = peer.recv(4096)
                if not chunk:
                    raise OSError("the answer was cut short")
                reply += chunk
            if parameters["resumes"]:
                session = peer.session
            yield peer.session_reused


def with_requests(parameters):
    """Connect with requests as it is: one Session, and one context for all its connections."""
    import requests

    with requests.Session() as session:
        session.verify = parameters["ca_file"]
        while True:
            url = "https://{}:{}/".format(parameters["host"], parameters["port"])
            answer = session.get(url, headers={"Connection": "close"})
            if answer.text != "ok":
                raise OSError("another answer than the server gave")
            yield None  # requests does not say


def check(parameters):
    """Check what a resumed connection leaves unchecked: which of some connections are let pass.

    another name: the server's certificate does not have the name that is asked for. never checked:
    it was made by a context that checked nothing, which has then been told to check. Each without
    a session of before, and with one. another context: one that did not make the session.
    """
    context, outcomes = ssl.create_default_context(cafile=parameters["ca_file"]), {}
    context.minimum_version = context.maximum_version = _VERSIONS[parameters["tls"]]
    _, session = passes(parameters, context)
    outcomes["another name"], _ = passes(parameters, context, "other.example")
    outcomes["another name, resumed"], _ = passes(parameters, context, "other.example", session)
    other_context = ssl.create_default_context(cafile=parameters["ca_file"])
    outcomes["another context, resumed"], _ = passes(parameters, other_context, session=session)
    careless = ssl.create_default_context()  # it does not know who signed the certificate
    careless.minimum_version = careless.maximum_version = _VERSIONS[parameters["tls"]]
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    _, session = passes(parameters, careless)
    careless.verify_mode, careless.check_hostname = ssl.CERT_REQUIRED, True
    outcomes["never checked"], _ = passes(parameters, careless)
    outcomes["never checked, resumed"], _ = passes(parameters, careless, session=session)
    return outcomes


def passes(parameters, context, name="", session=None):
    """Return whether a connection brought its answer, and its session."""
    with socket.create_connection((parameters["host"], parameters["port"])) as plain:
        try:
            with context.wrap_socket(
                plain, server_hostname=name or parameters["host"], session=session
            ) as peer:
                peer.sendall(_ASKS)
                return peer.recv(4096).endswith(b"ok"), peer.session
        except (ssl.SSLError, ValueError):  # ValueError: the session is another context's
            return False, None


# ---------------------------------------------------------------- both, over a line


def answer(parameters):
    """Open the line and the server, and make the connections of all kinds."""
    from chains import SELF, certify
    from ends import ADDRESSES, Ends

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory(prefix="casebook-line-") as folder:
        chain_file, trusted_file = certify(folder, ADDRESSES["far"], parameters.get("chain", SELF))
        with Ends(parameters["way"]) as line:
            command = [sys.executable, _HERE, "serve", ADDRESSES["far"], chain_file]
            server = line.start("far", command, **pipes)
            port = int(server.stdout.readline())
            target = {"host": ADDRESSES["far"], "port": port, "ca_file": trusted_file}
            try:
                figures = [
                    kind(line, server, parameters, dict(settings, **target, n=parameters["n"]))
                    for settings in parameters["kinds"]
                ]
                checks = {
                    tls: near(line, "check", dict(target, tls=tls), parameters)[0]
                    for tls in parameters["checks"]
                }
            finally:
                server.kill()
                server.wait()
            return {"way": line.way, "kinds": figures, "checks": checks}


def kind(line, server, parameters, settings):
    """Make connections of one kind, and return what the server and the line saw of them."""

    def query():
        server.stdin.write("\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    first = query()
    reply, counts = near(line, "call", settings, parameters)
    last = query()
    connections = last["connections"] - first["connections"]
    by_direction = (counts[direction]["by_connection"] for direction in ("there", "back"))
    sizes = [
        sent["bytes"] + received["bytes"] for sent, received in zip(*by_direction, strict=True)
    ]
    timed_sizes = sizes[-settings["n"] :]
    return dict(
        reply, connections=connections,
        server_resumed=last["resumed"] - first["resumed"],
        server_cpu_s=round((last["cpu_s"] - first["cpu_s"]) / connections, 6),
        bytes=round(sum(timed_sizes) / len(timed_sizes)),
    )  # fmt: skip


def near(line, role, settings, parameters):
    """Run a client at the near end; return what it says, and what the line counted."""
    from wire import Wire

    far, pipes = {"latency_s": parameters["latency_s"]}, {"stdin": subprocess.PIPE, "text": True}
    pipes.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Wire(line.near, line.far, far, far) as wire:
        client = line.start("near", [sys.executable, _HERE, role], **pipes)
        output, complaint = client.communicate(json.dumps(settings))
    if client.returncode:
        raise OSError((complaint.strip().splitlines() or ["the client said nothing"])[-1])
    wire.kept_up(parameters["carries"])
    return json.loads(output), wire.counts()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    elif sys.argv[1:2] in (["call"], ["check"]):
        print(json.dumps({"call": call, "check": check}[sys.argv[1]](json.load(sys.stdin))))
    else:
        from ends import NoLineError
        from wire import TooMuchError

        try:
            print(json.dumps(answer(json.load(sys.stdin))))
        except (NoLineError, TooMuchError, OSError, ValueError) as error:
            print(json.dumps({"failed": str(error)}))
