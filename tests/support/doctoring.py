"""The doctor's runs of programs: their reports, and servers that count what the programs do."""

import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import here

from casebook import places
from casebook.cases.certificates.hosts import Handler

#: The first lines of a program that is tried.
START = "import os\nSITE, BUNDLE = os.environ['SITE'], os.environ['BUNDLE']\n"


class Counting(Handler):
    """Answers after /SECONDS, or /close with the connection's end; counts connections in `made`."""

    made = 0

    def setup(self):
        type(self).made += 1
        super().setup()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0].strip("/")
        time.sleep(float(path) if path.replace(".", "").isdigit() else 0)
        self.answer({}, **({"Connection": "close"} if path == "close" else {}))


def doctor(site, folder, *command, python=sys.executable, **more):
    """The doctor's report of a run, and what it printed."""
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(folder)} | site[2]
    command = [python, places.DOCTOR, "run", "--json", *command]
    done = here.run(*command, env=environ | more.pop("variables", {}), cwd=folder, **more)
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["exit_status"] == done.returncode
    assert [path for path in folder.iterdir() if path.name.startswith("doctor-")] == []
    return report, done


def doctor_of_a_server(site, folder: Path, port: int, *command, at_once: int = 6, python) -> dict:
    """The report of a run of a server, which was asked by several at once, and then ended."""
    environ = {"PATH": f"{python.parent}:{os.environ['PATH']}", "TMPDIR": str(folder)} | site[2]
    ask = [python, places.DOCTOR, "run", "--json", "--", *map(str, command)]
    with open(folder / "words", "w") as words:
        running = subprocess.Popen(
            ask, env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=words, text=True
        )
    try:
        assert here.eventually(lambda: is_up(port), 120), (folder / "words").read_text()
        replies: list[int] = []
        url = f"http://127.0.0.1:{port}/"

        def get():
            replies.append(urllib.request.urlopen(url, timeout=120).status)

        threads = [threading.Thread(target=get) for _ in range(at_once)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert replies == [200] * at_once, (folder / "words").read_text()
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    report = json.loads(out)
    assert report["exit_status"] == running.returncode == 128 + signal.SIGTERM
    return report


def is_up(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def listening(answer, context: ssl.SSLContext) -> Iterator[int]:
    """The port of a server that has a function answer each connection, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def one(connection):
        with contextlib.suppress(OSError, struct.error), connection:
            answer(connection, context)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def postgres(connection, context, start_s: float = 0.3):
    """Start up as PostgreSQL does, over TLS, taking its time; and hear the end."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!I", len(body) + 4) + body

    while struct.unpack("!II", connection.recv(8, socket.MSG_WAITALL))[1] != 80877103:
        connection.sendall(b"N")  # no encryption but TLS
    connection.sendall(b"S")
    with context.wrap_socket(connection, server_side=True) as secure:
        file = secure.makefile("rb")
        file.read(struct.unpack("!I", file.read(4))[0] - 4)
        time.sleep(start_s)
        names = {"server_version": "15.0", "client_encoding": "UTF8", "DateStyle": "ISO, MDY"}
        names["standard_conforming_strings"] = "on"
        told = [f"{name}\0{value}\0".encode() for name, value in names.items()]
        reply = message(b"R", struct.pack("!I", 0)) + b"".join(message(b"S", each) for each in told)
        secure.sendall(reply + message(b"K", struct.pack("!II", 1, 1)) + message(b"Z", b"I"))
        file.read(1)


def redis(connection, context):
    """Answer as Redis does, with the same for every key."""
    with context.wrap_socket(connection, server_side=True) as secure:
        file = secure.makefile("rb")
        while line := file.readline():
            words = []
            for _ in range(int(line[1:])):
                words.append(file.read(int(file.readline()[1:])))
                file.read(2)
            replies = {b"GET": b"$2\r\nhi\r\n", b"HELLO": b"%1\r\n+proto\r\n:3\r\n"}
            secure.sendall(replies.get(words[0].upper(), b"+OK\r\n"))
