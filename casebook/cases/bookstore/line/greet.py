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
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---------------------------------------------------------------- the server


def serve(address, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    seen = {"connections": 0, "resumed": 0}

    def attend(plain):
        try:
            with context.wrap_socket(plain, server_side=True) as peer:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += peer.recv(4096) or b"\r\n\r\n"
                seen["connections"] += 1
                seen["resumed"] += peer.session_reused
                peer.sendall(_ANSWER)
        except OSError:
            pass  # the client misses its answer, and says so

    listening = socket.create_server((address, 0))
    listening.listen(100)
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=report, args=(seen,), daemon=True).start()
    while True:
        plain, _ = listening.accept()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=attend, args=(plain,), daemon=True).start()


def report(seen):
    """Says what was seen so far, whenever it is asked; ends with its owner."""
    for _ in sys.stdin:
        print(json.dumps(dict(seen, cpu_s=used_s())), flush=True)
    os._exit(0)


# ---------------------------------------------------------------- the clients


def call(asked):
    """Connections of one kind: their walls, how many were resumed, and the processor time."""
    visits = {"ssl": with_ssl, "requests": with_requests}[asked["client"]](asked)
    next(visits)
    before, walls_s, resumed = used_s(), [], []
    for _ in range(asked["n"]):
        began = time.perf_counter()
        resumed.append(next(visits))
        walls_s.append(round(time.perf_counter() - began, 6))
    cpu_s = (used_s() - before) / asked["n"]
    known = None if None in resumed else sum(resumed)
    return {"walls_s": walls_s, "resumed": known, "client_cpu_s": round(cpu_s, 6)}


def with_ssl(asked):
    """With Python's own ssl: a session is kept from one connection to the next, or not."""
    context = ssl.create_default_context(cafile=asked["ca_file"])
    context.minimum_version = context.maximum_version = _VERSIONS[asked["tls"]]
    session = None
    while True:
        plain = socket.create_connection((asked["host"], asked["port"]))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, server_hostname=asked["host"], session=session) as peer:
            peer.sendall(_ASKS)
            got = b""
            while not got.endswith(b"ok"):
                more = peer.recv(4096)
                if not more:
                    raise OSError("the answer was cut short")
                got += more
            if asked["resumes"]:
                session = peer.session
            yield peer.session_reused


def with_requests(asked):
    """With requests as it is: a session of requests, and one context for all its connections."""
    import requests

    with requests.Session() as session:
        session.verify = asked["ca_file"]
        while True:
            url = "https://{}:{}/".format(asked["host"], asked["port"])
            answer = session.get(url, headers={"Connection": "close"})
            if answer.text != "ok":
                raise OSError("another answer than the server gave")
            yield None  # requests does not say


def check(asked):
    """What a resumed connection leaves unchecked: whether each of some connections was let pass.

    another name: the server's certificate does not have the name that is asked for. never checked:
    it was made by a context that checked nothing, which has then been told to check. Each without
    a session of before, and with one. another context: one that did not make the session.
    """
    context, found = ssl.create_default_context(cafile=asked["ca_file"]), {}
    context.minimum_version = context.maximum_version = _VERSIONS[asked["tls"]]
    _, session = passes(asked, context)
    found["another name"], _ = passes(asked, context, "other.example")
    found["another name, resumed"], _ = passes(asked, context, "other.example", session)
    other = ssl.create_default_context(cafile=asked["ca_file"])
    found["another context, resumed"], _ = passes(asked, other, session=session)
    careless = ssl.create_default_context()  # it does not know who signed the certificate
    careless.minimum_version = careless.maximum_version = _VERSIONS[asked["tls"]]
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    _, session = passes(asked, careless)
    careless.verify_mode, careless.check_hostname = ssl.CERT_REQUIRED, True
    found["never checked"], _ = passes(asked, careless)
    found["never checked, resumed"], _ = passes(asked, careless, session=session)
    return found


def passes(asked, context, name="", session=None):
    """Whether a connection brought its answer, and its session."""
    with socket.create_connection((asked["host"], asked["port"])) as plain:
        try:
            with context.wrap_socket(
                plain, server_hostname=name or asked["host"], session=session
            ) as peer:
                peer.sendall(_ASKS)
                return peer.recv(4096).endswith(b"ok"), peer.session
        except (ssl.SSLError, ValueError):  # ValueError: the session is another context's
            return False, None


# ---------------------------------------------------------------- both, over a line


def answer(asked):
    from chains import SELF, certify
    from ends import ADDRESSES, Ends

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory(prefix="casebook-line-") as folder:
        shown, trusted = certify(folder, ADDRESSES["far"], asked.get("chain", SELF))
        with Ends(asked["way"]) as ends:
            command = [sys.executable, _HERE, "serve", ADDRESSES["far"], shown]
            server = ends.start("far", command, **pipes)
            port = int(server.stdout.readline())
            same = {"host": ADDRESSES["far"], "port": port, "ca_file": trusted}
            try:
                found = [
                    kind(ends, server, asked, dict(each, **same, n=asked["n"]))
                    for each in asked["kinds"]
                ]
                checks = {
                    tls: near(ends, "check", dict(same, tls=tls), asked)[0]
                    for tls in asked["checks"]
                }
            finally:
                server.kill()
                server.wait()
            return {"way": ends.way, "kinds": found, "checks": checks}


def kind(ends, server, asked, its):
    """Connections of one kind, and what the server and the line saw of them."""

    def ask():
        server.stdin.write("\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    before = ask()
    said, counts = near(ends, "call", its, asked)
    after = ask()
    made = after["connections"] - before["connections"]
    ways = (counts[way]["by_connection"] for way in ("there", "back"))
    sizes = [there["bytes"] + back["bytes"] for there, back in zip(*ways, strict=True)]
    counted = sizes[-its["n"] :]
    return dict(
        said, connections=made,
        server_resumed=after["resumed"] - before["resumed"],
        server_cpu_s=round((after["cpu_s"] - before["cpu_s"]) / made, 6),
        bytes=round(sum(counted) / len(counted)),
    )  # fmt: skip


def near(ends, what, its, asked):
    """What a client at the near end says, and what the line counted."""
    from wire import Wire

    far, pipes = {"latency_s": asked["latency_s"]}, {"stdin": subprocess.PIPE, "text": True}
    pipes.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Wire(ends.near, ends.far, far, far) as wire:
        client = ends.start("near", [sys.executable, _HERE, what], **pipes)
        said, complaint = client.communicate(json.dumps(its))
    if client.returncode:
        raise OSError((complaint.strip().splitlines() or ["the client said nothing"])[-1])
    wire.kept_up(asked["carries"])
    return json.loads(said), wire.counts()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    elif sys.argv[1:2] in (["call"], ["check"]):
        print(json.dumps({"call": call, "check": check}[sys.argv[1]](json.load(sys.stdin))))
    else:
        from ends import NoLine
        from wire import TooMuch

        try:
            print(json.dumps(answer(json.load(sys.stdin))))
        except (NoLine, TooMuch, OSError, ValueError) as error:
            print(json.dumps({"failed": str(error)}))
