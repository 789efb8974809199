"""The frames of a few requests over HTTP/2, in both directions, as the client saw them pass.

    with open_store() as store:
        seen = capture(store, "/book?id=10003")

A frame is a head of nine bytes and a payload; types and flags are those of RFC 9113, sections 4.1
and 6.
"""

import struct
from collections.abc import Iterable, Sequence

import pandas as pd

from casebook.cases.bookstore import readers
from casebook.errors import UsageError, VisitFailed
from casebook.runs import measurements
from casebook.words import LIVE

#: The columns of `capture`.
COLUMNS = [
    *("t_s", "sender", "type", "stream", "flags", "length", "payload"),
    *("source", "measured_at"),
]

#: What a client sends before its first frame (RFC 9113, section 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: Types by number, from 0.
TYPES = (
    *("DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING"),
    *("GOAWAY", "WINDOW_UPDATE", "CONTINUATION"),
)

#: Settings by number, from 1: RFC 9113, section 6.5.2, and RFC 8441, section 3.
SETTINGS = (
    *("HEADER_TABLE_SIZE", "ENABLE_PUSH", "MAX_CONCURRENT_STREAMS", "INITIAL_WINDOW_SIZE"),
    *("MAX_FRAME_SIZE", "MAX_HEADER_LIST_SIZE", "SETTING_7", "ENABLE_CONNECT_PROTOCOL"),
)

_LONGEST_S = 60
_HEAD = 9
_END_HEADERS = {0x4: "END_HEADERS"}
_FLAGS = {
    "DATA": {0x1: "END_STREAM", 0x8: "PADDED"},
    "HEADERS": {0x1: "END_STREAM", 0x8: "PADDED", 0x20: "PRIORITY"} | _END_HEADERS,
    "SETTINGS": {0x1: "ACK"},
    "PING": {0x1: "ACK"},
    "PUSH_PROMISE": {0x8: "PADDED"} | _END_HEADERS,
    "CONTINUATION": _END_HEADERS,
}


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
    if not paths or not 1 <= at_once <= readers.MOST_AT_ONCE:
        raise UsageError(
            f"{len(paths)} paths, {at_once} at once; choose at least one path, and 1 to "
            f"{readers.MOST_AT_ONCE} at once"
        )
    script = readers.SCRIPTS / "capture_frames.py"
    answer = readers.ask(
        script, "h2-today", store, _LONGEST_S, store.url, paths=paths, at_once=at_once
    )
    if answer["failure"]:
        raise VisitFailed(f"{store.url}: {answer['failure']}. Nothing was recorded.")
    for reply in answer["replies"]:
        if reply["status"] != 200:
            raise VisitFailed(f"{reply['path']}: status {reply['status']}. Nothing was recorded.")
    found = parse(answer["chunks"])
    return found.assign(source=LIVE, measured_at=measurements.now())[COLUMNS]


def parse(chunks: Sequence) -> pd.DataFrame:
    """The frames in chunks of bytes, [seconds, "client" or "server", hexadecimal], in order of
    their last bytes; the client's begin with PREFACE."""
    left, rows = {"client": b"", "server": b""}, []
    for t_s, sender, data in chunks:
        # Of a part of the preface no frame can be made, which would have five million bytes.
        left[sender] = (left[sender] + bytes.fromhex(data)).removeprefix(PREFACE)
        while len(left[sender]) >= (end := _HEAD + int.from_bytes(left[sender][:3])):
            rows.append({"t_s": t_s, "sender": sender} | _frame(left[sender][:end]))
            left[sender] = left[sender][end:]
    return pd.DataFrame(rows, columns=COLUMNS[:7])


def settings(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """What the first SETTINGS of each sender say: sender -> name -> value."""
    found: dict[str, dict[str, int]] = {}
    names = dict(enumerate(SETTINGS, 1))
    chosen = frame[(frame["type"] == "SETTINGS") & ~frame["flags"].str.contains("ACK")]
    for row in chosen.itertuples():
        pairs = struct.iter_unpack(">HI", row.payload)
        said = {names.get(number, f"SETTING_{number}"): value for number, value in pairs}
        found.setdefault(row.sender, said)
    return found


def _frame(whole: bytes) -> dict:
    kind, bits = whole[3], whole[4]
    name = TYPES[kind] if kind < len(TYPES) else f"TYPE_{kind}"
    flags = [flag for bit, flag in _FLAGS.get(name, {}).items() if bits & bit]
    return {
        "type": name,
        # The first bit is reserved.
        "stream": int.from_bytes(whole[5:9], "big") & 0x7FFFFFFF,
        "flags": "|".join(flags),
        "length": len(whole) - _HEAD,
        "payload": whole[_HEAD:],
    }
