"""The recorder of HTTP/2's frames and the smallest site, against real servers."""

import json
from pathlib import Path

import pytest
from bookstore_asking import IDS, book, over_http1
from here import alive, environment, eventually, last_words

from casebook.cases.bookstore import frames, hello, stock, store
from casebook.errors import ServerFailed, UsageError, VisitFailed

OF_BOTH = pytest.mark.parametrize("stack", ["twisted-today", "twisted-16.3-py37"])


def paths(count):
    return list(map(book, IDS[:count]))


def head(length, kind, flags, stream):
    return length.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")


# ---------------------------------------------------------------- bytes and frames


def test_frames_are_found_however_the_bytes_are_cut():
    client = frames.PREFACE + head(0, 4, 0, 0) + head(3, 1, 0x5, 1) + b"abc"
    server = head(2, 0, 0x1, 1) + b"de" + head(0, 200, 0, 0x80000003)
    whole = frames.parse([[0.0, "client", client], [1.0, "server", server]])
    told = list(whole[["sender", "type", "stream", "flags", "length"]].itertuples(index=False))
    assert told == [
        ("client", "SETTINGS", 0, "", 0),
        ("client", "HEADERS", 1, "END_STREAM|END_HEADERS", 3),
        ("server", "DATA", 1, "END_STREAM", 2),
        ("server", "TYPE_200", 3, "", 0),  # a type that nobody knows; a reserved bit that is set
    ]
    assert list(whole["payload"]) == [b"", b"abc", b"de", b""]
    cut = [[0.0, "client", bytes([byte])] for byte in client]
    cut += [[1.0, "server", bytes([byte])] for byte in server]
    assert frames.parse(cut).equals(whole)


def test_a_frame_that_is_not_whole_is_not_there():
    part = frames.PREFACE + head(3, 1, 0, 1) + b"ab"
    assert frames.parse([[0.0, "client", part]]).empty


# ---------------------------------------------------------------- recordings


@pytest.mark.parametrize("engine", ["twisted", "granian"])
def test_one_book_is_on_one_stream_and_whole(engine):
    with store.open_store(engine) as server:
        seen = frames.capture(server, paths(1))
        told = frames.settings(seen)
    assert list(seen.columns) == frames.COLUMNS
    assert set(seen.groupby("sender")["type"].first()) == {"SETTINGS"}
    assert told["server"]["MAX_CONCURRENT_STREAMS"] == server.max_streams
    stream = seen[seen["stream"] == 1]
    assert set(seen["stream"]) == {0, 1}
    assert list(stream.loc[stream["sender"] == "client", "type"]) == ["HEADERS"]
    assert "END_STREAM" in stream.iloc[0]["flags"] and "END_STREAM" in stream.iloc[-1]["flags"]
    body = b"".join(stream.loc[stream["type"] == "DATA", "payload"])
    assert json.loads(body) == stock.books()[IDS[0]]
    assert seen["t_s"].is_monotonic_increasing
    assert seen.iloc[-1][["sender", "type"]].tolist() == ["client", "GOAWAY"]


def test_at_once_says_whether_requests_wait_for_responses(shop):
    for at_once, waits in ((1, True), (3, False)):
        seen = frames.capture(shop, paths(3), at_once)
        asked = seen[(seen["sender"] == "client") & (seen["type"] == "HEADERS")]
        assert list(asked["stream"]) == [1, 3, 5]
        answered = seen[(seen["sender"] == "server") & (seen["stream"] > 0)]
        assert bool(answered.index[0] < asked.index[-1]) is waits


@pytest.mark.parametrize(
    ("asked", "at_once"), [([], 1), (["book"], 1), (["/"], 0), (["/"], 100_000)]
)
def test_what_cannot_be_asked_is_refused(shop, asked, at_once):
    with pytest.raises(UsageError):
        frames.capture(shop, asked, at_once)


def test_a_page_that_is_missing_is_no_recording(shop):
    with pytest.raises(VisitFailed, match="404"):
        frames.capture(shop, "/book?id=0")


# ---------------------------------------------------------------- the smallest site


def test_the_script_says_nothing_of_protocols():
    assert "http/" not in hello.SCRIPT.read_text().lower()


@OF_BOTH
def test_the_site_speaks_both_protocols_and_says_so(stack):
    environment(stack)
    with hello.serve(stack) as site:
        assert not frames.capture(site, "/").empty
        assert over_http1(site, "/") == [["/", 200, "Hello!"]]
        lines = site.log(2)
    assert '"GET / HTTP/2" 200' in lines[-2]
    assert '"GET / HTTP/1.1" 200' in lines[-1]
    assert not site.ca_file.parent.exists()


@OF_BOTH
def test_without_h2_the_site_falls_back_without_a_word(stack):
    environment(stack)
    with hello.serve(stack, without="h2") as site:
        before = site.log()
        with pytest.raises(VisitFailed, match=r"chose http/1\.1"):
            frames.capture(site, "/")
        assert over_http1(site, "/") == [["/", 200, "Hello!"]]
        assert '"GET / HTTP/1.1" 200' in site.log(1)[-1]
    assert not [line for line in before if "h2" in line.lower()]


def test_a_site_that_cannot_start_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ServerFailed, match="twisted"):
        hello.serve(without="twisted.web")
    assert list(tmp_path.iterdir()) == []


def test_the_site_ends_with_its_owner():
    """An owner that is killed takes it along, and its files."""
    environment("twisted-today")
    code = "import time; from casebook.cases.bookstore import hello; site = hello.serve(); "
    code += "print(site.pid, site.ca_file.parent, flush=True); time.sleep(60)"
    pid, folder = last_words(code).split()
    assert eventually(lambda: not alive(int(pid)) and not Path(folder).exists())
