"""What a client says first is read by its frames and datagrams, and nothing else is."""

from pathlib import Path

import pandas as pd
import pytest

from casebook import stacks
from casebook.cases.bookstore import abilities, frames, readers
from casebook.cases.fetching.server import certificates
from casebook.errors import RunFailed
from casebook.laboratory import scripts
from casebook.stacks import environments


def frame(kind: str, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((frames.TYPES.index(kind), flags))
    return head + stream.to_bytes(4, "big") + payload


def settings(name: int, value: int) -> bytes:
    return frame("SETTINGS", 0, name.to_bytes(2, "big") + value.to_bytes(4, "big"))


def more(stream: int, size: int) -> bytes:
    return frame("WINDOW_UPDATE", stream, size.to_bytes(4, "big"))


ASKS = frame("HEADERS", 1, b"..", 5)


@pytest.mark.parametrize(
    ("said", "stream", "connection"),
    [
        (settings(3, 100) + ASKS, 65_535, 65_535),
        (settings(4, 1_000) + ASKS, 1_000, 65_535),
        (settings(4, 1_000) + more(0, 5) + ASKS + more(1, 7), 1_007, 65_540),
        (settings(3, 100) + ASKS + more(3, 9), 65_535, 65_535),  # another stream's
        (settings(3, 100) + frame("SETTINGS", 0, b"", 1) + ASKS, 65_535, 65_535),
        (settings(3, 100) + ASKS + more(1, 1 << 20)[:-1], 65_535, 65_535),  # cut off
    ],
)
def test_windows_are_those_of_the_connection_and_of_the_first_stream(
    said: bytes, stream: int, connection: int
) -> None:
    opened = abilities.windows(frames.PREFACE + said)
    assert opened == {"stream_window": stream, "connection_window": connection}


def test_a_client_that_asks_for_nothing_is_no_answer() -> None:
    with pytest.raises(RunFailed, match="asked for nothing"):
        abilities.windows(frames.PREFACE + settings(3, 100))


@pytest.mark.parametrize("client", ["niquests", "httpx"])
def test_a_datagram_of_quic_is_seen_where_the_client_sends_one(client: str, tmp_path: Path) -> None:
    """The control: that of httpx comes to none is no blindness of the server's."""
    environment = environments.ensure(stacks.get(abilities.CLIENTS[client][0]))
    made = certificates.issue(tmp_path)
    with abilities._Greeted(made, readers.H1) as server:
        url = f"https://127.0.0.1:{server.port}/"
        asked = {"client": client, "url": url, "ca_file": made.ca_file, "times": 2}
        answer = scripts.answer_of(environment, abilities._SCRIPT, asked)
        assert answer["requests"] > 0
        assert (server.datagrams() > 0) is (client == "niquests")


@pytest.mark.parametrize(
    ("counted", "loads"),
    [((20, 0), 20.0), ((18, 2), 20.0), ((None, 3), 3.0), ((0, 0), 0.0), ((None, None), None)],
)
def test_loads_that_python_cannot_count_are_not_none(counted, loads, monkeypatch):
    """A client that brings its own TLS loads as often as it likes: the table says nothing."""
    names = ("counters_load_verify_locations", "counters_default_loads")
    run = pd.DataFrame([{"wall_s": 1.0, **dict(zip(names, counted, strict=True))}])
    monkeypatch.setattr(abilities, "measure", lambda *_, **__: run)
    monkeypatch.setattr(abilities, "_greeting", lambda *_: {"http2": False, "datagrams": 0})
    row = abilities._row("pycurl", "pycurl-today", "")
    assert pd.isna(row["loads"]) if loads is None else row["loads"] == loads
    assert row["connections"] == abilities.CONNECTIONS and row["http3"] is False
