"""The bookstore over HTTP/3: the store and its clients, and visits over a real line.

What is asked of the line skips where there can be none; the store and the clients are tried on
loopback everywhere.
"""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import here
import pytest

from casebook import places
from casebook.cases.bookstore import line, opening, quic, readers, stock
from casebook.cases.bookstore.line import chains, ends, lines, wire
from casebook.cases.fetching.server.process import end, first_line
from casebook.errors import MissingInterpreter, RunFailed, UsageError

over_a_line = pytest.mark.skipif(
    bool(line.not_here()), reason="there can be no line between two network namespaces here"
)
WAYS = ["pipes:6", "bare-h2", "bare-h3"]


@contextlib.contextmanager
def on_loopback(**options):
    """A store of HTTP/3: what a client has to know of it, and a function that asks it."""
    here.environment(quic.STACK)
    options = {"interface": "127.0.0.1", "port": 0, "delay_s": 0, "slow": {}} | options
    with opening.serving(quic.STACK, "quic_store.py", tickets="", **options) as (process, made):
        port = first_line(process)["port"]

        def ask(what):
            process.stdin.write(what.encode() + b" 1\n")
            return json.loads(process.stdout.readline())

        place = SimpleNamespace(url=f"https://127.0.0.1:{port}", ca_file=made.ca_file)
        try:
            yield place, ask, process
        finally:
            end(process)


@pytest.mark.parametrize("client", readers.OVER_QUIC)
def test_a_client_brings_every_book_over_http3(client):
    ids = stock.ids()[:120]
    with on_loopback() as (place, ask, _):
        answer = readers.read(readers.manner(client), place, ids)
        counted = ask("counters")
    assert answer["failure"] is None and answer["protocol"] == "h3"
    books = stock.books()
    assert {book: json.loads(body) for book, body in answer["bodies"].items()} == {
        book: books[book] for book in ids
    }
    assert sorted(answer["index"]) == sorted(books)
    assert counted["protocols"] == {"HTTP/3": 121} and counted["requests"] == 121
    assert counted["connections"] == counted["handshakes"] == 1


def test_a_slow_book_holds_up_nobody_else():
    ids = stock.ids()[:20]
    with on_loopback(slow={ids[3]: 0.5}) as (place, _, _):
        answer = readers.read(readers.manner("bare-h3"), place, ids)
    assert answer["failure"] is None
    assert answer["arrivals"][-1][0] == ids[3] and answer["arrivals"][-1][1] >= 0.5


def test_a_book_that_is_not_there_is_an_error_with_its_name():
    with on_loopback() as (place, _, _):
        answer = readers.read(readers.manner("bare-h3:1"), place, ["no-such-book"])
    failure = answer["failure"]
    assert failure["book"] == "no-such-book" and failure["message"] == "status 404"


def test_nobody_there_is_an_error_and_no_waiting_for_ever():
    with on_loopback() as (place, _, process):
        process.kill()
        process.wait()
        answer = readers.read(readers.manner("bare-h3"), place, stock.ids()[:1], timeout_s=2.0)
    assert answer["failure"] and not answer["bodies"]


def test_a_certificate_of_another_is_refused():
    with on_loopback() as (place, ask, _), on_loopback() as (other, _, _):
        wrong = SimpleNamespace(url=place.url, ca_file=other.ca_file)
        answer = readers.read(readers.manner("bare-h3"), wrong, stock.ids()[:1], timeout_s=5.0)
        assert answer["failure"] and not answer["bodies"]
        assert ask("counters")["requests"] == 0


def test_the_store_ends_with_its_owner():
    with on_loopback() as (place, _, process):
        process.stdin.close()
        assert here.eventually(lambda: process.poll() is not None)
        assert here.eventually(lambda: not place.ca_file.parent.exists())


@over_a_line
def test_the_same_books_come_over_three_protocols_on_one_line():
    here.environment(quic.STACK)
    frame = quic.visit(WAYS, n=20, latency_s=0.01)
    assert list(frame.columns) == quic.COLUMNS
    assert list(frame["protocol"]) == ["http/1.1", "h2", "h3"]
    assert list(frame["opened"]) == [6, 1, 1]
    assert set(frame["dropped"]) == {0} and frame["did_not_wait"].isna().all()
    assert (frame["round_trips"] >= 4).all() and (frame["half_s"] <= frame["wall_s"]).all()
    assert (frame["cpu_s"] > 0).all() and (frame["server_cpu_s"] > 0).all()
    assert set(frame["source"]) == {"live"} and set(frame["way"]) <= set(ends.DEVICES)


@over_a_line
def test_a_lost_datagram_holds_up_its_own_streams_and_a_lost_packet_of_tcp_all():
    here.environment(quic.STACK)
    frame = quic.visit(["bare-h2", "bare-h3"], n=60, latency_s=0.2, lose=quic.loss(30))
    assert set(frame["dropped"]) == {1}
    had = frame.set_index("protocol")["did_not_wait"]
    assert had["h2"] == 0 and 30 <= had["h3"] < 60


@over_a_line
def test_what_is_lost_of_the_list_holds_up_all_books_over_any_protocol():
    here.environment(quic.STACK)
    frame = quic.visit(WAYS, n=20, latency_s=0.02, lose=quic.loss(-50))
    assert set(frame["dropped"]) == {1} and set(frame["did_not_wait"]) == {0}


@over_a_line
def test_books_are_rows_in_the_order_of_their_coming():
    here.environment(quic.STACK)
    rows = quic.arrivals("bare-h3", n=15, latency_s=0.01)
    assert list(rows["arrived"]) == list(range(1, 16)) and rows["at_s"].is_monotonic_increasing
    assert set(rows["book"]) == set(stock.ids()[:15]) and not rows["slow"].any()


@over_a_line
def test_a_session_is_taken_up_and_a_request_is_early_where_it_is_told_to():
    here.environment(quic.STACK)
    frame = quic.sessions(latency_s=0.05)
    assert list(frame.columns) == quic.SESSION_COLUMNS
    seen = frame.set_index("step")
    assert seen["resumed"].to_dict() == {"fresh": 0, "resumed": 1, "early": 1}
    assert seen["early"].to_dict() == {"fresh": 0, "resumed": 0, "early": 1}
    # An early answer can be there after one round trip, and no other.
    assert 1 <= seen.loc["early", "round_trips"]
    assert (seen.loc[["fresh", "resumed"], "round_trips"] >= 2).all()
    assert seen.loc["early", "bytes_back"] < seen.loc["fresh", "bytes_back"]


@over_a_line
def test_what_a_library_does_by_itself_is_counted_by_the_store():
    here.environment(quic.STACK)
    frame = quic.sessions(["curl", "niquests"], latency_s=0.02)
    assert list(frame["client"]) == ["curl"] * 3 + ["niquests"] * 3
    counted = frame.groupby("client")[["resumed", "early"]].max().to_dict("index")
    assert counted == {
        "curl": {"resumed": 2, "early": 0}, "niquests": {"resumed": 0, "early": 0}
    }  # fmt: skip


@over_a_line
def test_a_copy_of_an_early_request_is_answered_unless_tickets_are_good_for_once():
    here.environment(quic.STACK)
    frame = quic.replayed(["again", "once"], latency_s=0.01)
    assert list(frame.columns) == quic.REPLAY_COLUMNS
    assert list(frame["wanted"]) == [2, 2] and list(frame["answered"]) == [3, 2]
    assert set(frame["early"]) == {1} and (frame["datagrams"] >= 1).all()


#: At the far end: sends what it gets back, and a word before it is asked.
FAR = """
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("10.99.0.2", 7000))
print("ready", flush=True)
own.sendto(b"to one who has gone", ("10.99.0.1", 6999))
while True:
    data, peer = own.recvfrom(2000)
    own.sendto(data, peer)
"""

#: At the near end: twenty datagrams, numbered, and which of them come back.
NEAR = """
import json, socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.settimeout(1)
for number in range(20):
    own.sendto(b"%04d" % number * 250, ("10.99.0.2", 7000))
came = []
try:
    while len(came) < 20:
        came.append(int(own.recv(2000)[:4]))
except TimeoutError:
    pass
print(json.dumps(came))
"""

OVER = """
import json, subprocess, sys
sys.path.insert(0, {folder!r})
from ends import Ends
from wire import Wire
back, far, near = json.load(sys.stdin)
with Ends() as ends:
    with Wire(ends.near, ends.far, {{}}, back) as wire:
        server = ends.start("far", [sys.executable, "-c", far], stdout=subprocess.PIPE)
        server.stdout.readline()
        client = ends.start("near", [sys.executable, "-c", near], stdout=subprocess.PIPE)
        said, _ = client.communicate()
    server.kill()
    server.wait()
    print(json.dumps([json.loads(said), wire.counts(), wire.packets]))
"""


@over_a_line
@pytest.mark.parametrize(
    "lose, missing",
    [
        ({}, []),
        ({"connection": 0, "byte": 5_500}, [5]),
        ({"connection": 0, "byte": 5_500, "count": 3}, [5, 6, 7]),
        ({"connection": 1, "byte": 5_500}, []),
    ],
    ids=["none", "one", "burst", "another connection"],
)
def test_the_line_carries_datagrams_and_loses_those_that_are_named(lose, missing):
    code = OVER.format(folder=str(Path(ends.__file__).parent))
    asked = json.dumps([{"latency_s": 0.002, "lose": lose}, FAR, NEAR])
    done = here.run(sys.executable, "-c", code, input=asked)
    assert done.returncode == 0, done.stderr
    came, counts, packets = json.loads(done.stdout)
    assert came == [number for number in range(20) if number not in missing]
    # What a store says to one who has gone is carried, and belongs to no connection.
    assert [each["connection"] for each in packets if each["bytes"] == 19] == [None]
    back = [each for each in packets if each["direction"] == wire.BACK and each["bytes"] == 1000]
    assert [each["seq"] for each in back] == list(range(0, 20_000, 1000))
    assert {each["connection"] for each in back} == {0}
    assert counts["back"]["dropped"] == len(missing) and counts["there"]["dropped"] == 0


def test_the_lot_is_drawn_anew_in_each_round_and_for_each_direction():
    line = lines.Line(lose={"share": 0.01})
    kind = lines.Kind(line, 3, readers.manner("bare-h3"))
    seeds = set()
    for repeat in (1, 2):
        visit = quic._visit(kind, repeat, "twisted")
        seeds |= {visit["there"]["lose"]["seed"], visit["back"]["lose"]["seed"]}
    assert len(seeds) == 4


def test_the_packet_is_named_by_where_the_book_is():
    six, streams = readers.manner("pipes:6"), readers.manner("bare-h3")
    bytes_ = [quic._byte(streams, books, "twisted") for books in (0, 30, 31)]
    assert bytes_ == sorted(set(bytes_))
    of_ten = quic._byte(six, 60, "twisted") - quic._byte(six, 0, "twisted")
    assert of_ten == 10 * quic._SENT["twisted", readers.H1][1]


@over_a_line
def test_granian_serves_over_the_line_as_well():
    here.environment(quic.STACK)
    [row] = quic.visit("bare-h2", n=60, lose=quic.loss(30), engine="granian").to_dict("records")
    assert row["protocol"] == "h2" and row["engine"] == "granian" and row["dropped"] == 1
    assert row["label"] == "bare h2, 100 at once, Granian"
    assert 0 < row["did_not_wait"] < 60


@over_a_line
def test_pycurl_sends_early_what_it_is_told_to_whatever_it_is():
    here.environment(quic.STACK)
    found = quic.sessions(["pycurl", quic.POSTING])
    assert set(found["early"]) == {1} and set(found["resumed"]) == {1}


@over_a_line
def test_a_server_stops_at_three_times_what_it_got():
    here.environment(quic.STACK)
    found = quic.sessions("aioquic", chain=list(chains.CHAINS))
    first = found[found["step"] == "fresh"].set_index("chain")
    assert (first["begins_back"] <= 3 * first["begins_there"]).all()
    longest = first.loc["RSA, two intermediates"]
    assert longest["begins_back"] > 2.9 * longest["begins_there"]
    assert first.loc[chains.SELF, "begins_back"] < 2 * first.loc[chains.SELF, "begins_there"]


@pytest.mark.parametrize(
    "odd",
    [
        dict(clients="requests"), dict(clients="bare-h3", n=0),
        dict(clients="bare-h3", latency_s=3), dict(clients="curl-h3", n=10**6),
        dict(clients="bare-h2", engine="twisted-16.3"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(odd):
    with pytest.raises(UsageError, match="choose"):
        quic.visit(**odd)


def test_sessions_that_cannot_be_had_are_refused():
    for asked in (
        lambda: quic.sessions("requests"),
        lambda: quic.sessions(latency_s=0),
        lambda: quic.replayed("never"),
    ):
        with pytest.raises(UsageError, match="choose"):
            asked()


def test_a_wrong_answer_is_no_measurement():
    step = {"step": "fresh", "wall_s": 1.0, "body": json.dumps({"title": "another"})}
    with pytest.raises(RunFailed, match="came as another"):
        quic._session_figures({}, {"way": "tun", "visits": [{"steps": [step]}]})
    with pytest.raises(RunFailed, match="came as another"):
        quic._session_figures({}, {"way": "tun", "visits": [{"steps": []}]})
    with pytest.raises(RunFailed, match="too narrow"):
        quic._session_figures({}, {"failed": "too narrow"})


def test_where_there_is_no_line_and_nothing_recorded_it_says_so(monkeypatch):
    lacking = replace(quic._OVER, lacks=lambda: "there can be no line here")
    monkeypatch.setattr(quic, "_OVER", lacking)
    with pytest.raises(MissingInterpreter, match="there can be no line here"):
        quic.visit("bare-h3", n=7, latency_s=0.123)


@over_a_line
def test_a_visit_killed_in_the_middle_leaves_no_store_and_no_file(tmp_path):
    python = here.environment(quic.STACK).python
    far = {"latency_s": 0.3}
    asked = {"script": "with_aioquic", "protocol": "h3", "at_once": 1, "connections": 1, "n": 200}
    asked |= {"order": "completed", "records": False, "there": far, "back": far}
    asked = {"way": "", "congestion": "reno", "least_bytes": 0, "carries": 1e9, "visits": [asked]}
    with subprocess.Popen(
        [python, Path(ends.__file__).with_name("over_quic.py")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=places.ROOT,
    ) as visiting:  # fmt: skip
        visiting.stdin.write(json.dumps(asked).encode())
        visiting.stdin.close()
        assert here.eventually(lambda: len(list(tmp_path.glob("*/store.pem"))) == 2)
        assert here.eventually(lambda: len(_children(visiting.pid)) == 3)
        pids = _children(visiting.pid)
        visiting.kill()
    assert here.eventually(lambda: not any(map(here.alive, pids)))
    assert here.eventually(lambda: not list(tmp_path.iterdir()))


def _children(pid):
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
