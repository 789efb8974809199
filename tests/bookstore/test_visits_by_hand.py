"""What follows from visits that are written down here: no store serves, and no client runs."""

import contextlib
import json
from subprocess import CompletedProcess
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook.cases.bookstore import (
    calls,
    frames,
    quic,
    readers,
    stock,
    timed_visits,
    visiting,
    witnesses,
)
from casebook.cases.bookstore.line import feasibility, greetings, lines, wire
from casebook.cases.bookstore.line import visits as over
from casebook.cases.bookstore.visiting import Visit
from casebook.errors import RunFailed, UsageError, VisitFailed

IDS = stock.ids()

# ---------------------------------------------------------------- stores and how far away they are


def test_each_distance_has_a_relay_of_its_own_and_the_same_one_for_all_of_its_visits(monkeypatch):
    opened = []

    @contextlib.contextmanager
    def relay(url, latency_s):
        opened.append((url, latency_s))
        yield f"{url} from {latency_s}"

    monkeypatch.setattr(visiting.relay, "relay", relay)
    with visiting.Host(target=SimpleNamespace(url="store")) as host:
        urls = [host.url("twisted", ms) for ms in (0.0, 10.0, 35.0, 10.0)]
    assert urls == ["store", "store from 0.01", "store from 0.035", "store from 0.01"]
    assert opened == [("store", 0.01), ("store", 0.035)]


def test_each_engine_is_a_store_of_its_own_with_a_relay_of_its_own(monkeypatch):
    @contextlib.contextmanager
    def open_store(engine, delay_s, slow):
        yield SimpleNamespace(url=f"{engine} {delay_s} {slow}")

    @contextlib.contextmanager
    def relay(url, latency_s):
        yield f"{url} from {latency_s}"

    monkeypatch.setattr(visiting.relay, "relay", relay)
    monkeypatch.setattr(visiting.store, "open_store", open_store)
    with visiting.Host(0.5, {"1": 2.0}) as host:
        assert host.store("a") is host.store("a") is not host.store("b")
        assert host.url("a", 0.0) == "a 0.5 {'1': 2.0}"
        assert host.url("b", 20.0) == "b 0.5 {'1': 2.0} from 0.02"


# ---------------------------------------------------------------- one visit


def test_the_store_is_asked_for_what_it_used_and_counted_in_this_visit_alone(monkeypatch):
    used, asked = iter([5.25, 6.0]), []
    place = SimpleNamespace(
        url="store", reset=lambda: asked.append("reset"), cpu_s=lambda: next(used),
        counters=lambda: {"connections": 1, "peak_streams": 2},
    )  # fmt: skip

    def read(_manner, _place, ids, within_s, url, timeout_s):
        asked.append((ids, within_s, url, timeout_s))
        return answer_of()

    monkeypatch.setattr(visiting.readers, "read", read)
    monkeypatch.setattr(visiting, "check", lambda _visit, answer, n: asked.append(n))
    monkeypatch.setattr(visiting, "_figures", lambda *_: {"books": 2})
    with visiting.Host(target=place) as host:
        measured = host._measure(visit_of(delay_s=0.5), 20.0)
    assert measured == {
        "books": 2, "server_cpu_s": 0.75, "server_connections": 1, "server_streams_peak": 2
    }  # fmt: skip
    # 60 s, the patience, and three times 0.52 s for each of two books.
    assert asked == ["reset", (IDS[:2], pytest.approx(83.12), "store", 20.0), 2]


def visit_of(client="bare-h2", **how):
    usual = dict(engine="twisted", n=2, latency_ms=0.0, delay_s=0.0, slow="", at_once=2)
    return Visit(client=client, **usual | how)


def answer_of(**changed):
    """What a client says that brought two books."""
    books = stock.books()
    return dict(
        failure=None, protocol="h2", index=list(IDS), python="3.13",
        bodies={book: json.dumps(books[book]) for book in IDS[:2]}, opened=[2], arrivals=[],
        peak_in_flight=2, wall_s=2.0, user_s=0.5, sys_s=0.25, process_wall_s=4.0,
        process_user_s=0.75, process_sys_s=0.25,
    ) | changed  # fmt: skip


def refused(**changed):
    with pytest.raises(VisitFailed) as said:
        visiting.check(visit_of(), answer_of(**changed), 2)
    return str(said.value)


def test_a_visit_that_brought_all_is_one():
    visiting.check(visit_of(), answer_of(), 2)
    visiting.check(visit_of(), answer_of(index=IDS[::-1]), 2)  # the list has no order


def test_whatever_else_a_visit_brought_is_named():
    books = answer_of()["bodies"]
    assert "it spoke http/1.1, not h2" in refused(protocol="http/1.1")
    assert f"lacks 1 of 3,000, such as {IDS[5]}" in refused(index=[*IDS[:5], *IDS[6:]])
    assert "has what the stock has not: 1 of 3,000, such as 1" in refused(index=[*IDS, "1"])
    assert f"repeats 1 of 3,000, such as {IDS[7]}" in refused(index=[*IDS, IDS[7]])
    assert f"book {IDS[1]} is missing" in refused(bodies={IDS[0]: books[IDS[0]]})
    swapped = {IDS[0]: books[IDS[1]], IDS[1]: books[IDS[1]]}
    assert f"book {IDS[0]}: the body is not the one" in refused(bodies=swapped)
    more = books | {IDS[2]: json.dumps(stock.books()[IDS[2]])}
    assert "books that nobody asked for" in refused(bodies=more)


def test_a_failure_says_the_book_the_cause_and_who_waited():
    failure = dict(book=IDS[0], type="Timeout", message="no word", waiting=IDS[1:3], certain=False)
    assert f"book {IDS[0]}: Timeout: no word (2 more were waited for)" in refused(failure=failure)
    assert "waited for" not in refused(failure=failure | {"certain": True})
    assert "the list of books: Timeout" in refused(failure=failure | {"book": None})
    alone = failure | {"waiting": [], "book": IDS[2]}
    assert f"one at a time, it is book {IDS[2]}" in refused(failure=failure | {"alone": alone})
    assert "one at a time, all of them came" in refused(failure=failure | {"alone": None})


def test_figures_are_the_shares_of_one_processor_and_the_connections_beyond_those_planned(
    monkeypatch,
):
    environment = SimpleNamespace(versions={"h2": "4.3.0"})
    monkeypatch.setattr(visiting.environments, "ensure", lambda _stack: environment)
    found = visiting._figures(visit_of(), answer_of())
    assert (found["cpu_percent"], found["process_cpu_percent"]) == (37.5, 25.0)
    assert (found["books"], found["opened"], found["recovered"]) == (2, 1, "")
    assert (found["version"], found["library"]) == ("4.3.0", "h2")
    again = visiting._figures(visit_of(connections=2), answer_of(opened=[0, 7, 9]))
    assert again["recovered"] == "connection 3 (of 2 planned) after 9 books"
    assert visiting._figures(visit_of("pipes"), answer_of())["version"] == "3.13"


def test_the_processor_time_of_both_sides_is_the_sum_of_three():
    frame = pd.DataFrame({"user_s": [0.5, 2.0], "sys_s": [0.25, 0.0], "server_cpu_s": [0.125, 4.0]})
    assert list(timed_visits.cpu_of_both(frame)) == [0.875, 6.0]


def test_arrivals_are_left_out_of_long_visits_only():
    arrivals = [["1", 0.1]]
    kept = timed_visits.without_many_arrivals({"books": timed_visits.FEW, "arrivals": arrivals})
    assert kept["arrivals"] == arrivals
    long, short = ({"books": timed_visits.FEW + 1, "arrivals": its} for its in (arrivals, []))
    assert timed_visits.without_many_arrivals(long) == short
    # Older machine files have the fields of an answer beside those that say how it was made.
    assert timed_visits.without_many_arrivals({"answer": long, "key": "k"}) == {
        "answer": short,
        "key": "k",
    }
    assert timed_visits.without_many_arrivals({"n": 1}) == {"n": 1}


def test_when_each_book_was_read_has_its_place_in_the_list_and_among_those_read(monkeypatch):
    record = {"client": "x", "arrivals": [[IDS[2], 0.5], [IDS[0], 0.75]]}
    monkeypatch.setattr(timed_visits, "records", lambda *_, **__: [record])
    frame = timed_visits.arrivals("x")
    columns = ["book", "position", "arrived", "at_s"]
    assert frame[columns].to_numpy().tolist() == [[IDS[2], 3, 1, 0.5], [IDS[0], 1, 2, 0.75]]


def test_a_plan_has_each_kind_once_a_round_and_milliseconds_each_way():
    planned = timed_visits.plan(
        ["bare-h2", "pipes:6"], 2, n=3, latency_s=[0, 0.0205], slow={"10": 0.5}, delay_s=0.25
    )
    assert len(planned) == 8 and {each.repeat for each in planned} == {1, 2}
    assert {each.latency_ms for each in planned} == {0.0, 20.5}
    assert {(each.slow, each.delay_s) for each in planned} == {("10: 0.5 s", 0.25)}
    both = {each.client: each for each in planned}
    assert (both["bare-h2"].at_once, both["bare-h2"].connections) == (100, 1)
    assert (both["pipes"].at_once, both["pipes"].connections) == (1, 6)


# ---------------------------------------------------------------- clients


@pytest.mark.parametrize(
    ("asked", "order", "at_once", "connections", "read", "label"),
    [
        ("aiohttp", None, 1, 6, "completed", "aiohttp, 6 connections"),
        ("aiohttp:100", "asked", 1, 100, "asked", "aiohttp, 100 connections"),
        ("pipes:1", None, 1, 1, "asked", "http.client, 1 connection"),
        ("httpx-h2", None, 1, 1, "asked", "httpx, HTTP/2, one at a time"),
        ("httpx-h2:100", None, 100, 1, "completed", "httpx, HTTP/2, 100 at once"),
        ("bare-h2", "chunks", 100, 1, "chunks", "bare h2, 100 at once"),
        ("hyper", None, 100, 1, "asked", "hyper, Python 3.7, 100 at once"),
        ("requests", None, 1, 1, "asked", "requests"),
        ("bare-h3:7", None, 7, 1, "completed", "bare h3, 7 at once"),
    ],
)
def test_a_number_is_of_connections_or_of_streams(asked, order, at_once, connections, read, label):
    how = readers.manner(asked, order)
    assert (how.at_once, how.connections, how.order) == (at_once, connections, read)
    assert how.label == label


@pytest.mark.parametrize(
    ("asked", "order", "said"),
    [
        ("requests:2", None, "connections is 2; choose 1 to 1$"),
        ("httpx-h2:1001", None, "at_once is 1,001; choose 1 to 1,000$"),
        ("aiohttp:0", None, "connections is 0"),
        ("aiohttp:1001", None, "choose 1 to 1,000"),
        ("pipes:", None, "whole number"),
        ("hyper", "completed", "reads in the order asked"),
        ("aiohttp", "chunks", "completed or asked"),
    ],
)
def test_what_a_client_cannot_do_is_refused(asked, order, said):
    with pytest.raises(UsageError, match=said):
        readers.manner(asked, order)


@pytest.mark.parametrize(
    ("at_once", "certain", "waiting", "asks"),
    [(100, False, IDS[1:3], 2), (100, True, IDS[1:3], 1), (1, False, IDS[1:3], 1),
     (100, False, [], 1)],
)  # fmt: skip
def test_books_that_failed_together_are_asked_for_alone(
    monkeypatch, at_once, certain, waiting, asks
):
    failure = {"book": IDS[0], "waiting": list(waiting), "certain": certain}
    heard = []

    def ask(_environment, _script, spec, **_):
        heard.append(spec)
        return {"failure": dict(failure)}

    monkeypatch.setattr(readers.environments, "ensure", lambda _stack: None)
    monkeypatch.setattr(readers.scripts, "answer_of", ask)
    how = readers.Manner(client="bare-h2", at_once=at_once)
    answer = readers.read(how, SimpleNamespace(url="u", ca_file="c"), IDS[:3])
    assert len(heard) == asks and ("alone" in answer["failure"]) == (asks == 2)
    assert heard[0]["ids"] == IDS[:3] and heard[0]["at_once"] == at_once
    if asks == 2:
        assert (heard[1]["ids"], heard[1]["at_once"]) == (list(IDS[:3]), 1)


# ---------------------------------------------------------------- frames


def frame_of(kind, flags, payload, stream=0):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def setting(number, value):
    return number.to_bytes(2, "big") + value.to_bytes(4, "big")


def test_a_frame_is_of_the_moment_of_its_last_byte_since_the_first_of_all():
    ping = frame_of(6, 0, b"12345678")
    chunks = [
        (5.0, "client", frames.PREFACE[:9]),
        (5.25, "client", frames.PREFACE[9:] + ping[:4]),
        (5.5, "server", ping),
        (6.0, "client", ping[4:] + ping),
    ]
    seen = frames.parse(chunks)
    assert list(seen["sender"]) == ["server", "client", "client"]
    assert list(seen["t_s"]) == [0.5, 1.0, 1.0] and set(seen["type"]) == {"PING"}


def test_settings_are_the_first_of_each_sender_and_no_acknowledgement():
    first = setting(3, 100) + setting(4, 65_535) + setting(0x99, 7)
    chunks = [
        (0.0, "client", frames.PREFACE + frame_of(4, 1, b"") + frame_of(4, 0, setting(2, 0))),
        (0.1, "server", frame_of(4, 0, first) + frame_of(4, 0, setting(3, 5))),
    ]
    assert frames.settings(frames.parse(chunks)) == {
        "client": {"ENABLE_PUSH": 0},
        "server": {
            "MAX_CONCURRENT_STREAMS": 100, "INITIAL_WINDOW_SIZE": 65_535, "SETTING_153": 7,
        },
    }  # fmt: skip


# ---------------------------------------------------------------- over a line


def packet(at_s, seq, size=100, **more):
    row = dict(t_s=at_s, direction=wire.BACK, connection=0, seq=seq, bytes=size)
    return row | dict(is_again=False, dropped=False) | more


LOST = packet(1.0, 100, dropped=True)


def test_a_repair_takes_from_the_loss_to_the_packet_that_has_its_first_byte():
    seen = [
        packet(0.5, 0),
        packet(0.75, 5, dropped=True, direction=wire.THERE),
        LOST,
        packet(1.125, 0, connection=1),
        packet(1.25, 200),
        packet(1.5, 300),
        packet(1.625, 200, is_again=True),
        packet(1.75, 100, is_again=True, dropped=True),  # and the repair is lost, too
        packet(2.0, 50, size=200, is_again=True),
        packet(2.5, 400),
    ]
    assert over._repair(seen) == {"repair_ms": 1000.0, "behind": 2, "next_ms": 250.0}


def test_without_a_loss_or_a_repair_there_is_nothing_to_tell():
    assert over._repair([packet(0.5, 0), packet(0.75, 100)]) == {}
    assert over._repair([LOST, packet(1.5, 200)]) == {}
    assert over._repair([packet(1.0, 100, size=0, dropped=True), packet(2.0, 100)]) == {}
    # Nothing new between them: nobody could miss it sooner.
    assert over._repair([LOST, packet(1.25, 100)]) == {"repair_ms": 250.0, "behind": 0}


#: A round trip of a quarter of a second.
FAR = lines.Line(latency_s=0.125)


def kind_of(client, n, **conditions):
    """One kind of visit over a line."""
    return lines.Kind(lines.Line(**conditions), n, readers.manner(client))


def test_half_of_the_books_is_the_middle_one_and_those_that_did_not_wait_came_before_a_repair():
    answer = dict(
        wall_s=0.875, server_cpu_s=0.5, user_s=0.25, sys_s=0.125, late_ms=1, most_late_ms=2,
        tries=1, server={"connections": 2}, lost_at_s=0.25,
        arrivals=[["d", 0.75], ["a", 0.3], ["b", 0.5], ["c", 0.625]],
        counts={"there": {"packets": 3, "bytes": 300, "dropped": 0},
                "back": {"packets": 4, "bytes": 4000, "dropped": 1}},
    )  # fmt: skip
    kind = kind_of("pipes:6", 4, latency_s=0.125, lose={"behind_books": 3})
    row = quic._row(kind, answer)
    assert row["half_s"] == 0.5  # two of four are in
    assert row["did_not_wait"] == 2  # until 0.25 + 3 * 0.125
    assert (row["cpu_s"], row["server_cpu_s"], row["round_trips"]) == (0.375, 0.5, 3.5)
    assert (row["packets"], row["bytes"], row["dropped"], row["opened"]) == (7, 4300, 1, 2)
    assert (row["latency_ms"], row["lose"], row["connections"]) == (125.0, '{"behind_books": 3}', 6)
    five = answer | {"arrivals": [*answer["arrivals"], ["e", 1.0]], "lost_at_s": None}
    calm = quic._row(kind_of("pipes:6", 5, latency_s=0.125), five)
    assert calm["half_s"] == 0.625 and "did_not_wait" not in calm and calm["lose"] == ""


@pytest.mark.parametrize(
    ("client", "engine", "books", "byte"),
    [
        ("pipes:6", "twisted", 60, 28_300 + 268 * 10),
        ("pipes:6", "twisted", 63, 28_300 + 268 * 63 // 6),
        ("bare-h2", "twisted", 30, 28_140 + 186 * 30),
        ("bare-h2", "granian", 30, 28_071 + 157 * 30),
        ("bare-h3", "twisted", 30, 29_320 + 132 * 30),
        ("bare-h2", "twisted", -10, 28_140 - 186 * 10),
    ],
)
def test_the_byte_of_a_book_is_behind_the_list_and_the_books_of_its_connection(
    client, engine, books, byte
):
    assert quic._byte(readers.manner(client), books, engine) == byte


def test_of_a_pair_whose_bytes_nobody_counted_no_packet_can_be_named():
    with pytest.raises(UsageError, match="from granian is not known"):
        quic._byte(readers.manner("pipes:6"), 30, "granian")


def test_a_share_is_lost_in_both_directions_and_one_packet_only_on_the_way_back():
    kind = kind_of("bare-h2:5", 3, lose={"share": 0.02}, window_bytes=1 << 20)
    by_lot = quic._visit(kind, 4, "twisted")
    assert by_lot["back"]["lose"] == {"share": 0.02, "seed": 8}
    assert by_lot["there"]["lose"] == {"share": 0.02, "seed": 9}
    kind = kind_of("bare-h2:5", 3, lose=quic.loss(30), window_bytes=1 << 20)
    named = quic._visit(kind, 4, "twisted")
    assert named["there"]["lose"] == {}
    assert named["back"]["lose"] == {"connection": 0, "byte": 28_140 + 186 * 30, "count": 1}
    assert (named["at_once"], named["n"], named["window_bytes"]) == (5, 3, 1 << 20)


def test_a_session_says_what_its_own_connection_carried():
    visit = {"script": "sessions", "steps": ["fresh", "early"]}
    steps = [
        {"step": "fresh", "wall_s": 0.5, "resumed": False, "early": False},
        {"step": "early", "wall_s": 0.25, "resumed": True, "early": True},
    ]
    carried = [{"there": 10, "back": 20}, {"there": 30, "back": 40}]
    answer = {"steps": steps, "connections": carried, "server": {"resumed": 7, "early": 8}}
    rows = list(quic._session_rows({"visits": [visit], "answers": [answer]}, FAR, "ecdsa"))
    told = [
        (row["step"], row["round_trips"], row["bytes_there"], row["bytes_back"]) for row in rows
    ]
    assert told == [("fresh", 2.0, 10, 20), ("early", 1.0, 30, 40)]
    assert [(row["resumed"], row["early"]) for row in rows] == [(0, 0), (1, 1)]
    # A library does not say it of each: it is what the store counted of all.
    library = {"script": "connects", "library": "curl", "times": 3}
    answer["steps"] = [{"step": "fresh", "wall_s": 0.5}]
    [row] = quic._session_rows({"visits": [library], "answers": [answer]}, FAR, "ecdsa")
    assert (row["client"], row["resumed"], row["early"]) == ("curl", 7, 8)


def test_an_early_request_that_is_sent_again_is_one_that_the_client_did_not_make(monkeypatch):
    steps = [{"step": "fresh"}, {"step": "early"}, {"step": "replayed", "datagrams": 3}]
    answer = {"server": {"requests": 3, "early": 2}, "steps": steps}
    monkeypatch.setattr(
        quic, "_session_round", lambda *_: [{"tickets": "again", "answers": [answer]}]
    )
    [row] = quic.replayed("again").to_dict("records")
    assert (row["wanted"], row["answered"], row["early"], row["datagrams"]) == (2, 3, 2, 3)


# ---------------------------------------------------------------- what carries packets


def tcp(seq, data=b"", flags=0, ports=(1000, 443)):
    head = bytes([0x45]) + bytes(8) + b"\x06" + bytes(10)
    near, far = (port.to_bytes(2, "big") for port in ports)
    return (
        head
        + near
        + far
        + seq.to_bytes(4, "big")
        + bytes(4)
        + bytes([0x50, flags])
        + bytes(6)
        + data
    )


class Carried:
    """A direction of a line whose packets, clock and other end are ours."""

    def __init__(self, monkeypatch, name=wire.THERE, **asked):
        self.now, self.packets, self.came = 100.0, [], []
        monkeypatch.setattr(wire.time, "monotonic", lambda: self.now)
        end = SimpleNamespace(
            read=lambda: self.packets.pop(0) if self.packets else None,
            write=lambda packet: self.came.append((round(self.now - 100, 6), packet)),
            fileno=lambda: 0,
            dropped=lambda: 0,
        )
        self.line = wire.Wire(end, end, asked, asked)
        [self.way] = [way for way in self.line._ways if way.name == name]

    def send(self, *packets, at_s=0.0):
        self.now, self.packets = 100 + at_s, list(packets)
        self.way.receive()
        return self

    def until(self, *moments):
        for at_s in moments:
            self.now = 100 + at_s
            self.way.pass_on()
        return [at_s for at_s, _ in self.came]


def test_a_packet_is_passed_on_when_its_latency_is_over(monkeypatch):
    carried = Carried(monkeypatch, latency_s=0.25)
    carried.send(tcp(1)).send(tcp(2), at_s=0.1)
    assert carried.until(0.249, 0.25, 0.349, 0.36) == [0.25, 0.36]
    assert carried.way.late_s == pytest.approx([0.0, 0.01])


def test_with_a_bandwidth_packets_take_their_time_one_after_the_other(monkeypatch):
    carried = Carried(monkeypatch, mbit=0.008, latency_s=0.5)  # a thousand bytes a second
    packets = [tcp(1, bytes(460)), tcp(2, bytes(210))]  # of 500 and of 250 bytes
    carried.send(*packets)
    assert carried.until(0.99, 1.0, 1.24, 1.25) == [1.0, 1.25]
    assert not carried.way.counts()["dropped"]


def test_with_a_bandwidth_packets_are_lost_by_lot_as_without(monkeypatch):
    carried = Carried(monkeypatch, mbit=0.008, lose={"each": 2})
    carried.send(*(tcp(number, bytes(10)) for number in range(1, 5)))
    counts = carried.way.counts()
    assert (counts["dropped"], counts["queue_dropped"]) == (2, 0)
    assert len(carried.until(9)) == 2


def test_a_full_queue_drops_what_comes_and_counts_it_apart(monkeypatch):
    carried = Carried(monkeypatch, mbit=0.008, queue=750)
    carried.send(*(tcp(number, bytes(460)) for number in range(1, 4)))  # the second waits 0.5 s
    counts = carried.way.counts()
    assert (counts["packets"], counts["dropped"], counts["queue_dropped"]) == (3, 2, 2)
    assert [seen["dropped"] for seen in carried.line.packets] == [False, True, True]
    carried.send(tcp(9, bytes(460)), at_s=0.5)
    assert carried.way.counts()["dropped"] == 2  # there is room again


def test_a_packet_says_where_its_data_is_and_whether_it_came_before(monkeypatch):
    carried = Carried(monkeypatch)
    syn = tcp(5000, flags=0x02)
    carried.send(
        syn, tcp(5001, b"12345"), tcp(5006, b"678"), tcp(5001, b"12345678"), tcp(5004, b"45678+"),
        tcp(5010), tcp(1, b"x", ports=(7, 443)),
    )  # fmt: skip
    told = [
        (seen["connection"], seen["seq"], seen["bytes"], seen["is_again"])
        for seen in carried.line.packets
    ]
    assert told == [
        (0, None, 0, False),
        (0, 0, 5, False),
        (0, 5, 3, False),
        (0, 0, 8, True),  # all of it was there
        (0, 3, 6, False),  # one byte of it was not
        (0, 9, 0, False),
        (None, 0, 1, False),  # it began before
    ]
    [counts] = carried.way.counts()["by_connection"]
    assert (counts["packets"], counts["again"]) == (6, 1)


def test_what_is_to_be_lost_is_chosen_by_number_or_by_its_byte():
    third = wire._losing({"each": 3})
    assert [third({}) for _ in range(7)] == [False, False, True, False, False, True, False]
    named = wire._losing({"connection": 1, "byte": 150, "count": 2})

    def seen(seq, size=100, connection=1):
        return named({"connection": connection, "seq": seq, "bytes": size})

    assert not seen(0) and not seen(50) and not seen(200, connection=0)  # it ends with byte 149
    assert not seen(100, size=0)
    assert [seen(100), seen(300), seen(400)] == [True, True, False]  # a burst of two, once
    assert not wire._losing({})({})


# ---------------------------------------------------------------- floods, greetings and witnesses


def test_what_a_line_carries_is_what_it_takes_for_a_packet(monkeypatch):
    floods = [
        dict(packets=1000, took_s=0.5, bytes=1_000_000, line_cpu_s=cpu_s, busiest=9, lost=0)
        for cpu_s in (0.01, 0.02, 0.5)
    ]
    frame = pd.DataFrame([{"took": "tun", "floods": floods, "source": "live"}])
    fake = SimpleNamespace(measure=lambda *_: frame)
    monkeypatch.setattr(feasibility, "_FLOOD", fake)
    rows = feasibility.flood()
    assert list(rows["line_us"]) == [10, 20, 500] and list(rows["repeat"]) == [1, 2, 3]
    assert list(rows["line_busy"]) == pytest.approx([0.02, 0.04, 1.0])
    assert set(rows["packets_s"]) == {2000} and set(rows["mbit"]) == {16}
    assert feasibility.line_capacity.__wrapped__() == {"carries": 50_000}  # by the median


def test_a_greeting_takes_the_median_in_round_trips_of_the_line(monkeypatch):
    figures = dict.fromkeys(greetings._FIGURES, 0)
    answers = [figures | {"walls_s": [0.05, 0.9, 0.03]} for _ in greetings.KINDS]
    frame = pd.DataFrame([{"answers": answers, "found": {}, "repeat": 1}])
    monkeypatch.setattr(greetings, "_GREET", SimpleNamespace(measure=lambda *_, **__: frame))
    rows = greetings.greet(latency_s=0.01, n=3)
    assert set(rows["wall_s"]) == {0.05} and set(rows["round_trips"]) == {2.5}
    assert dict(zip(rows["kind"], rows["model"], strict=True)) == {
        "TLS 1.2": 4, "TLS 1.2, resumed": 3, "TLS 1.3": 3, "TLS 1.3, resumed": 3, "requests": 3,
    }  # fmt: skip
    assert set(rows["latency_ms"]) == {10}


def test_calls_for_a_book_are_what_more_books_add(monkeypatch):
    counted = {10: {"h2": 100, "start": 50}, 30: {"h2": 700, "start": 50, "json": 40}}
    monkeypatch.setattr(calls, "_count_calls", lambda _how, _place, n: counted[n])
    rows = calls._rows("bare-h2", None, 10, 30)
    assert {row["package"]: (row["kind"], row["calls"]) for row in rows} == {
        "h2": ("http", 30), "start": ("around", 0), "json": ("ours", 2),
    }  # fmt: skip


H2LOAD = """
finished in 12.50{unit}, 240.00 req/s, 1.00KB/s
requests: 3 total, 3 started, 3 done, {whole} succeeded, 0 failed, 0 errored, 0 timeout
status codes: {good} 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 1.02KB (1045) total, 90B (90) headers (space savings 80.00%), 327B (327) data
Application protocol: {spoken}
"""


def h2load(monkeypatch, protocol="h2", **said):
    said = {"unit": "ms", "whole": 3, "good": 3, "spoken": protocol} | said
    done = CompletedProcess([], 0, H2LOAD.format(**said), "")
    monkeypatch.setattr(witnesses, "find", lambda name: name)
    monkeypatch.setattr(witnesses, "_run", lambda *_: done)
    return witnesses.h2load(SimpleNamespace(url="https://store"), 3, protocol)


def test_h2load_says_books_bytes_of_bodies_and_seconds(monkeypatch):
    assert h2load(monkeypatch) == {
        "protocol": "h2", "books": 3, "body_bytes": 327, "wall_s": 0.0125,
    }  # fmt: skip
    walls = [h2load(monkeypatch, "http/1.1", unit=unit)["wall_s"] for unit in ("us", "s")]
    assert walls == [1.3e-05, 12.5]
    for wrong in ({"good": 2}, {"whole": 2}, {"spoken": "http/1.1"}):
        with pytest.raises(VisitFailed, match=r"of 3 books over"):
            h2load(monkeypatch, **wrong)


def test_a_flood_of_which_bytes_are_missing_is_no_measurement():
    asked = {"bytes": 10, "times": 2}
    floods = [{"bytes": 10}, {"bytes": 10}]
    assert feasibility._figures(asked, {"way": "tun", "floods": floods})["took"] == "tun"
    for wrong in (floods[:1], [{"bytes": 10}, {"bytes": 9}]):
        with pytest.raises(RunFailed, match="not all bytes came"):
            feasibility._figures(asked, {"way": "tun", "floods": wrong})
