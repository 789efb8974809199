"""The frames of a few requests over HTTP/2, in both directions, as the client saw them pass.

    with open_store() as store:
        seen = capture(store, "/book?id=10003")

A frame is a head of nine bytes and a payload; types and flags are those of RFC 9113, sections 4.1
and 6.
"""

import ssl
import time
from collections.abc import Iterable, Sequence

import pandas as pd
from h2.settings import SettingCodes
from hyperframe.frame import Frame, SettingsFrame

from casebook.cases.bookstore import readers
from casebook.cases.bookstore.clients import bare_h2
from casebook.errors import UsageError, VisitFailed
from casebook.laboratory import measurements
from casebook.mistakes import check_range, for_readers
from casebook.words import LIVE

#: The columns of `capture`.
COLUMNS = [
    *("t_s", "sender", "type", "stream", "flags", "length", "payload"),
    *("source", "measured_at"),
]

#: What a client sends before its first frame (RFC 9113, section 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: Types by number, from 0, as the RFC writes them; hyperframe has classes.
TYPES = (
    *("DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING"),
    *("GOAWAY", "WINDOW_UPDATE", "CONTINUATION"),
)

_PATIENCE_S = 15
_HEAD = 9


@for_readers
def capture(store, paths: str | Iterable[str], at_once: int = 100) -> pd.DataFrame:
    """Ask for paths over one HTTP/2 connection: one row a frame, columns COLUMNS.

    store: anything with `url` and `ca_file`. at_once: how many requests may be open at a time (1:
    one after the other). t_s: seconds since the client's first byte, at the client's end, of the
    frame's last byte; sender: "client" or "server"; stream: 0 for the connection; flags: text,
    with | between them; length: bytes of the payload; payload: those bytes. The client's preface
    is no frame, and not among them.

    Raises UsageError, and VisitFailed when the server speaks no HTTP/2 or does not answer.
    """
    paths = [paths] if isinstance(paths, str) else list(paths)
    for path in paths:
        if not path.startswith("/"):
            raise UsageError(f"{path!r} is no path: it must begin with /")
    if not paths:
        raise UsageError("there are no paths; choose at least one")
    check_range("at_once", at_once, 1, readers.MOST_AT_ONCE)
    try:
        replies, chunks = _overheard(store, paths, at_once)
    except bare_h2.LOST as error:
        problem = f"{type(error).__name__}: {error}"
        raise VisitFailed(f"{store.url}: {problem}. Nothing was recorded.") from error
    for reply in replies:
        if (status := reply.headers[":status"]) != "200":
            raise VisitFailed(f"{reply.path}: status {status}. Nothing was recorded.")
    frame = parse(chunks)
    return frame.assign(source=LIVE, measured_at=measurements.utc_now())[COLUMNS]


class _Tap:
    """A socket that keeps what goes through it, as `parse` takes it. What TLS adds is not in it."""

    def __init__(self, socket: ssl.SSLSocket):
        self.socket = socket
        self.chunks: list[tuple[float, str, bytes]] = []

    def sendall(self, data: bytes) -> None:
        self.chunks.append((time.perf_counter(), "client", data))
        self.socket.sendall(data)

    def recv(self, size: int) -> bytes:
        data = self.socket.recv(size)
        self.chunks.append((time.perf_counter(), "server", data))
        return data


def _overheard(store, paths: list[str], at_once: int) -> tuple[list[bare_h2.Reply], list]:
    """Return the replies to some requests, and the chunks of bytes that went either way."""
    context = ssl.create_default_context(cafile=store.ca_file)
    client = bare_h2.Connection(store.url, context, _PATIENCE_S)
    with client.socket:
        tap = client.socket = _Tap(client.socket)
        client.settle()
        replies = list(client.fetch(paths, at_once))
        client.h2.close_connection()  # with a GOAWAY, as RFC 9113, 6.8 wants it
        tap.sendall(client.h2.data_to_send())
    return replies, tap.chunks


def parse(chunks: Sequence) -> pd.DataFrame:
    """Return the frames in chunks of bytes, (seconds, "client" or "server", bytes).

    They are in the order of their last bytes; the client's begin with PREFACE.
    """
    unread, rows = {"client": b"", "server": b""}, []
    for at_s, sender, data in chunks:
        t_s = round(at_s - chunks[0][0], 6)
        # Of a part of the preface no frame can be made, which would have five million bytes.
        unread[sender] = (unread[sender] + data).removeprefix(PREFACE)
        while len(unread[sender]) >= (end := _HEAD + int.from_bytes(unread[sender][:3])):
            rows.append({"t_s": t_s, "sender": sender} | _frame(unread[sender][:end]))
            unread[sender] = unread[sender][end:]
    return pd.DataFrame(rows, columns=COLUMNS[:7])


@for_readers
def settings(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return what the first SETTINGS of each sender say: sender -> name -> value."""
    by_sender: dict[str, dict[str, int]] = {}
    names = {code.value: code.name for code in SettingCodes}
    chosen = frame[(frame["type"] == "SETTINGS") & ~frame["flags"].str.contains("ACK")]
    for row in chosen.drop_duplicates("sender").itertuples():
        settings_frame = SettingsFrame()
        settings_frame.parse_body(memoryview(row.payload))
        by_sender[row.sender] = {
            names.get(number, f"SETTING_{number}"): value
            for number, value in settings_frame.settings.items()
        }
    return by_sender


def _frame(raw_frame: bytes) -> dict:
    frame, length = Frame.parse_frame_header(memoryview(raw_frame[:_HEAD]))
    kind = raw_frame[3]
    return {
        "type": TYPES[kind] if kind < len(TYPES) else f"TYPE_{kind}",
        "stream": frame.stream_id,
        "flags": "|".join(flag for flag, _ in frame.defined_flags if flag in frame.flags),
        "length": length,
        "payload": raw_frame[_HEAD:],
    }
