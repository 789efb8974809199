"""What clients of Python can do today: one table, from which sentences about them are made.

    frame = abilities()

What a client says first is read by a server of our own: which protocols it offers, how wide it
opens the windows of HTTP/2, and whether it comes back over QUIC when it is told that it may
(Alt-Svc, RFC 7838). Whether it speaks HTTP/3 when told so, and sends a request early, are the
visits of quic.py; how often it loads certificates, those of chapter 15.
"""

import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from casebook.cases.bookstore import frames, quic
from casebook.cases.bookstore.readers import H1, H2, SCRIPTS
from casebook.cases.fetching.runs import measure
from casebook.cases.fetching.server import certificates
from casebook.errors import RunFailed
from casebook.laboratory import scripts
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.stacks.environments import Environment

#: The clients, each with the stack that has it, and its name in quic.LIBRARIES where it has one.
#: h2 is no client, but what httpx speaks HTTP/2 with; by itself it shows what the protocol begins
#: with.
CLIENTS = {
    "requests": ("requests-2.34.2-today", ""),
    "httpx": ("httpx-today", ""),
    "aiohttp": ("aiohttp-today", ""),
    "niquests": ("niquests-today", "niquests"),
    "pycurl": ("pycurl-today", "pycurl"),
    "curl_cffi": ("curl-cffi-today", "curl"),
    "h2": ("h2-today", ""),
}

COLUMNS = [
    *("client", "release", "http2", "stream_window", "connection_window"),
    *("quic_by_itself", "http3", "resumed", "early", "loads", "connections"),
]

#: HTTP/2's own window, of a stream and of a connection (RFC 9113, section 6.9.2).
OWN_WINDOW = 65_535
#: Connections of the run that counts loads.
CONNECTIONS = 20

_SETTINGS, _WINDOW_UPDATE, _HEADERS = map(
    frames.TYPES.index, ("SETTINGS", "WINDOW_UPDATE", "HEADERS")
)
_INITIAL_WINDOW_SIZE = 4
#: Seconds without a further frame after which a greeting is over.
_QUIET_S, _LONGEST_S = 1.5, 15.0


def abilities(clients: Iterable[str] = tuple(CLIENTS)) -> pd.DataFrame:
    """Ask clients, of CLIENTS, what they can do: one row a client, columns COLUMNS.

    http2: whether it offers it and speaks it when the server takes it. stream_window and
    connection_window: bytes that a server may send ahead of acknowledgements (missing without
    HTTP/2). quic_by_itself: whether it sends QUIC once Alt-Svc says that it may. http3: that, or
    when told so. resumed, early: of two connections after the first, over QUIC, how many took up
    the session, and with how many the request left early (missing without HTTP/3). loads: of
    certificates for this number of connections, as Python counts them (missing where TLS is not
    Python's). Raises what Experiment.measure raises.
    """
    rows = [_row(client, *CLIENTS[client]) for client in clients]
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def _row(client: str, stack: str, over_quic: str) -> dict[str, Any]:
    row = {"client": client, **_greeting(client, stack, H2)}
    if client == "h2":
        return row
    row["quic_by_itself"] = row["http3"] = bool(_greeting(client, stack, H1)["datagrams"])
    if over_quic:
        steps = quic.sessions(over_quic)  # RunFailed where a book comes over another protocol
        row |= {"http3": True, **{name: int(steps[name].max()) for name in ("resumed", "early")}}
    run = measure(stack, n=CONNECTIONS, delay_s=0.1, trust="bundle", repeats=1)
    loads = run.filter(like="_load").iloc[0].astype(float).sum(min_count=1)
    return row | {"loads": loads, "connections": CONNECTIONS}


def _greeting(client: str, stack: str, protocol: str) -> dict[str, Any]:
    parameter_sets = [{"client": client, "protocol": protocol}]
    return _GREETING.measure(stack, parameter_sets).iloc[0].to_dict()


class _Greeted:
    """A server on a free port of 127.0.0.1 that takes one protocol, and notes what it is told.

    Over HTTP/2 it reads the greeting and the first request, and hangs up. Over HTTP/1.1 it answers,
    and says that it speaks HTTP/3 on the same port, where datagrams are counted.
    """

    def __init__(self, files: certificates.Certificates, protocol: str) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.chain_file, files.key_file)
        self.context.set_alpn_protocols([protocol])
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.setblocking(False)
        self.chosen: str | None = None
        self.greeting = b""
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "_Greeted":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.tcp.shutdown(socket.SHUT_RDWR)
        self.thread.join(_LONGEST_S)
        self.tcp.close()
        self.udp.close()

    def datagrams(self) -> int:
        """Count the datagrams so far that begin as QUIC does, with a long header (RFC 9000)."""
        count = 0
        while True:
            try:
                count += self.udp.recv(65_535)[0] >> 6 == 0b11
            except BlockingIOError:
                return count

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:  # closed
                return
            connection.settimeout(_LONGEST_S)
            try:
                with self.context.wrap_socket(connection, server_side=True) as link:
                    self.chosen = link.selected_alpn_protocol()
                    if self.chosen == H2:
                        self._greet(link)
                    else:
                        self._answer(link)
            except OSError:  # it went away
                continue

    def _greet(self, link: ssl.SSLSocket) -> None:
        link.sendall(bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0)))
        link.settimeout(_QUIET_S)
        greeting = b""
        while part := _received(link):
            greeting += part
        self.greeting = self.greeting or greeting

    def _answer(self, link: ssl.SSLSocket) -> None:
        head = f'HTTP/1.1 200 OK\r\nAlt-Svc: h3=":{self.port}"\r\nContent-Length: 2\r\n\r\n{{}}'
        unread = b""
        while part := link.recv(65_536):
            unread += part
            while b"\r\n\r\n" in unread:
                unread = unread.partition(b"\r\n\r\n")[2]
                link.sendall(head.encode())


def _received(link: ssl.SSLSocket) -> bytes:
    try:
        return link.recv(65_536)
    except TimeoutError:
        return b""


def windows(greeting: bytes) -> dict[str, int]:
    """Measure how wide a client opens the windows of a connection and of its first stream.

    greeting: all that it sent, preface and frames. Raises RunFailed if it asked for nothing.
    """
    stream = connection = OWN_WINDOW
    first, rest = None, greeting.removeprefix(frames.PREFACE)
    updates: list[tuple[int, int]] = []
    while len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
        length, kind = int.from_bytes(rest[:3], "big"), rest[3]
        number = int.from_bytes(rest[5:9], "big") & 0x7FFFFFFF
        is_reply = kind == _SETTINGS and rest[4] & 1
        payload, rest = rest[9 : 9 + length], rest[9 + length :]
        if kind == _SETTINGS and not is_reply:
            stream = dict(struct.iter_unpack("!HI", payload)).get(_INITIAL_WINDOW_SIZE, stream)
        elif kind == _WINDOW_UPDATE:
            updates.append((number, int.from_bytes(payload, "big") & 0x7FFFFFFF))
        elif kind == _HEADERS and first is None:
            first = number
    if first is None:
        raise RunFailed("over HTTP/2: the client asked for nothing. Nothing was recorded.")
    return {
        "stream_window": stream + sum(size for number, size in updates if number == first),
        "connection_window": connection + sum(size for number, size in updates if number == 0),
    }


def _greet_once(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        files = certificates.issue(Path(folder))
        with _Greeted(files, parameters["protocol"]) as server:
            url = f"https://127.0.0.1:{server.port}/"
            spec = {
                "client": parameters["client"],
                "url": url,
                "ca_file": files.ca_file,
                "times": 3,
            }
            answer = scripts.answer_of(environment, _SCRIPT, spec, within_s=120)
            observations = {"chosen": server.chosen, "datagrams": server.datagrams()}
        return answer | observations | {"greeting": server.greeting.hex()}


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    greeting, is_h2 = bytes.fromhex(answer["greeting"]), answer["chosen"] == H2
    if not is_h2 and not answer["requests"] and not answer["datagrams"]:
        raise RunFailed(f"{parameters['client']}: {answer['failure']}. Nothing was recorded.")
    figures = {"release": answer["release"], "http2": is_h2, "datagrams": answer["datagrams"]}
    return figures | (windows(greeting) if is_h2 else {})


_SCRIPT = SCRIPTS / "greets.py"
_GREETING = Experiment(_SCRIPT, _figures, depends_on=(Path(__file__),), ask=_greet_once)
