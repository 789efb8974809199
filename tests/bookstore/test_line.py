"""The line: that it carries packets as it says, counts what it drops, and leaves nothing behind.

Each test runs a script in a process of its own, since a line changes into its namespaces for good.
What is asked of clocks is asked with room for a machine that has much else to do.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import here
import pandas as pd
import pytest

from casebook.cases.bookstore import line
from casebook.cases.bookstore.line import ends, feasibility, lines, model, situations, visits, wire
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.laboratory import measurements, scripts

pytestmark = pytest.mark.skipif(
    bool(line.not_here()), reason="there can be no line between two network namespaces here"
)

#: At the far end: says what it gets, or as many bytes as it is asked for. TCP_INFO counts the
#: segments that it sent again (tcpi_total_retrans, linux/tcp.h).
FAR = """
import socket, struct, threading
def serve(peer):
    while asked := peer.recv(100):
        if asked.startswith(b"ping"):
            peer.sendall(asked)
        else:
            peer.sendall(bytes(int(asked)))
            peer.recv(100)
            peer.sendall(b"%09d" % struct.unpack_from("I", peer.getsockopt(6, 11, 256), 100))
            peer.sendall(peer.getsockopt(6, 13, 16)[:16].ljust(16, bytes(1)))
listening = socket.create_server(("10.99.0.2", 7000))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=listening.accept()[:1], daemon=True).start()
"""

#: At the near end: ten echoes, then a number of bytes; what it saw, and what TCP says of it.
NEAR = """
import json, socket, struct, sys, time
size = int(sys.argv[1])
peer = socket.create_connection(("10.99.0.2", 7000))
peer.setsockopt(6, 1, 1)
trips_s = []
for i in range(10):
    began = time.monotonic()
    peer.sendall(b"ping %d" % i)
    assert peer.recv(100) == b"ping %d" % i
    trips_s.append(time.monotonic() - began)
began, got = time.monotonic(), 0
peer.sendall(b"%d" % size)
while got < size:
    got += len(peer.recv(1 << 20))
took_s = time.monotonic() - began
rtt_us = struct.unpack_from("I", peer.getsockopt(6, 11, 256), 68)[0]
controls = [peer.getsockopt(6, 13, 16)]
peer.sendall(b"sent again?")
again = int(peer.recv(9, socket.MSG_WAITALL))
controls.append(peer.recv(16, socket.MSG_WAITALL))
near, far = (each.split(b"\\0")[0].decode() for each in controls)
congestion = near if near == far else near + " and " + far
print(json.dumps({"trips_s": trips_s, "got": got, "took_s": took_s, "rtt_s": rtt_us / 1e6,
    "again": again, "congestion": congestion}))
"""

#: Both, over a line.
OVER = """
import json, subprocess, sys
sys.path.insert(0, {folder!r})
from ends import Ends
from wire import TooMuchError, Wire
way, size, there, back, far, near, congestion, carries = json.load(sys.stdin)
with Ends(way, congestion) as ends:
    server = ends.start("far", [sys.executable, "-c", far], stdout=subprocess.PIPE)
    server.stdout.readline()
    with Wire(ends.near, ends.far, there, back) as wire:
        client = ends.start(
            "near", [sys.executable, "-c", near, str(size)], stdout=subprocess.PIPE
        )
        said, _ = client.communicate()
    try:
        kept = wire.kept_up(carries)
    except TooMuchError as error:
        kept = {{"too_much": str(error)}}
    server.kill()
    server.wait()
    print(json.dumps([json.loads(said), wire.counts(), wire.packets, kept, ends.way]))
"""


def over(size, there, back, way="", congestion=ends.CONGESTION, carries=1e9):
    """What the client saw, the counts, the packets, how the line kept up, and the way."""
    code = OVER.format(folder=str(Path(ends.__file__).parent))
    done = here.run(
        sys.executable, "-c", code,
        input=json.dumps([way, size, there, back, FAR, NEAR, congestion, carries]),
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


FAR_AWAY = {"latency_s": 0.05}


def can(way):
    return here.run(sys.executable, ends.__file__, way).returncode == 0


@pytest.mark.parametrize("way", ends.DEVICES)
def test_a_round_trip_takes_as_long_as_it_says(way):
    if not can(way):
        pytest.skip("there can be no line between two network namespaces here")
    seen, counts, _, _, took = over(100_000, FAR_AWAY, FAR_AWAY, way)
    assert took == way and seen["congestion"] == ends.CONGESTION
    assert 0.1 <= min(seen["trips_s"]) < 0.2  # the fastest: others may have waited for us
    assert 0.1 <= seen["rtt_s"] < 1
    assert seen["got"] == 100_000
    assert counts["there"]["dropped"] == counts["back"]["dropped"] == 0


@pytest.mark.parametrize("congestion", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize("way", ends.DEVICES)
def test_both_ends_have_the_control_that_is_asked_for(way, congestion):
    """Also one that a namespace may not have as its default, such as cubic on some machines."""
    if not can(way):
        pytest.skip("there can be no line between two network namespaces here")
    if here.run(sys.executable, ends.__file__, way, congestion).returncode:
        pytest.skip(f"a line here cannot have {congestion}")
    seen, _, _, _, _ = over(50_000, {"latency_s": 0.01}, {"latency_s": 0.01}, way, congestion)
    assert seen["congestion"] == congestion and seen["got"] == 50_000


def test_the_two_directions_are_apart():
    seen, _, packets, _, _ = over(1, {"latency_s": 0.2}, {"latency_s": 0.01})
    assert 0.21 <= min(seen["trips_s"]) < 0.35
    ping, pong = (
        next(each for each in packets if each["direction"] == way and each["bytes"])
        for way in (wire.THERE, wire.BACK)
    )
    assert pong["t_s"] - ping["t_s"] >= 0.2 and ping["seq"] == pong["seq"] == 0


def test_the_first_flight_is_ten_segments():
    """RFC 6928. What leaves within half of a round trip waited for no acknowledgement."""
    seen, _, packets, _, _ = over(60_000, {"latency_s": 0.3}, {"latency_s": 0.3})
    data = [each for each in packets if each["direction"] == wire.BACK and each["bytes"] > 1000]
    flight = [each for each in data if each["t_s"] < data[0]["t_s"] + 0.3]
    # Ten echoes went before, which opened the window by a little.
    assert 10 <= len(flight) <= 22 and len(data) >= 41 and seen["again"] == 0


def test_a_bulk_transfer_takes_what_the_bandwidth_says():
    slow = {"latency_s": 0.005, "mbit": 8, "queue": 2_000_000}
    seen, counts, _, _, _ = over(1_000_000, slow, slow)
    assert 1.0 <= seen["took_s"] < 8  # a million bytes, a million bytes a second
    assert counts["back"]["bytes"] >= 1_000_000 and counts["back"]["dropped"] == 0


def test_a_full_queue_drops_and_says_so():
    narrow = {"latency_s": 0.005, "mbit": 8, "queue": 15_000}
    seen, counts, packets, _, _ = over(1_000_000, {"latency_s": 0.005}, narrow)
    back = counts["back"]
    assert seen["got"] == 1_000_000
    assert back["queue_dropped"] == back["dropped"] > 0
    assert sum(each["dropped"] for each in packets) == back["dropped"]
    assert back["again"] >= back["dropped"] and counts["there"]["dropped"] == 0


def test_one_named_segment_is_lost_once_and_comes_again():
    named = {**FAR_AWAY, "lose": {"connection": 0, "byte": 50_000}}
    seen, counts, packets, _, _ = over(200_000, FAR_AWAY, named)
    assert seen["got"] == 200_000
    assert counts["back"]["dropped"] == 1
    [lost] = [each for each in packets if each["dropped"]]
    assert lost["seq"] <= 50_000 < lost["seq"] + lost["bytes"]
    [repair, *_] = [each for each in packets if each["seq"] == lost["seq"] and each["is_again"]]
    assert repair["t_s"] - lost["t_s"] >= 0.1  # nobody can know of it sooner
    assert seen["again"] >= 1 and counts["back"]["again"] == seen["again"]  # TCP counts the same
    assert counts["back"]["by_connection"] == [
        {name: counts["back"][name] for name in ("packets", "bytes", "dropped", "again")}
    ]


@pytest.mark.parametrize(
    "lose, fits",
    [
        ({"connection": 0, "byte": 50_000, "count": 5}, lambda dropped, _packets: dropped == 5),
        ({"connection": 1, "byte": 50_000}, lambda dropped, _packets: dropped == 0),
        ({"each": 50}, lambda dropped, packets: dropped == packets // 50),
        ({"share": 0.05, "seed": 3}, lambda dropped, packets: 0 < dropped < packets / 4),
        ({}, lambda dropped, _packets: dropped == 0),
    ],
    ids=["burst", "another connection", "each 50th", "by lot", "none"],
)
def test_what_is_to_be_lost_is_lost(lose, fits):
    near_by = {"latency_s": 0.002}
    seen, counts, _, _, _ = over(300_000, near_by, {**near_by, "lose": lose})
    assert seen["got"] == 300_000
    assert fits(counts["back"]["dropped"], counts["back"]["packets"])
    assert bool(seen["again"]) >= bool(counts["back"]["dropped"]) or "share" in lose


def test_the_lot_is_the_same_with_the_same_seed():
    drawn = [wire._losing({"share": 0.1, "seed": 5}) for _ in range(2)]
    assert [drawn[0]({}) for _ in range(500)] == [drawn[1]({}) for _ in range(500)]


def test_it_says_when_it_cannot_keep_up():
    class End:
        def dropped(self):
            return 0

        def fileno(self):
            return 0

    tried = wire.Wire(End(), End(), {"latency_s": 0.01}, {})
    tried._ways[0].late_s += [0.001, 0.003, 0.5]
    tried.windows.update({7: 500, 8: 400})
    late = {"late_ms": 3.0, "most_late_ms": 500.0}
    assert tried.kept_up(20_000) == {**late, "busiest": 10_000}
    with pytest.raises(
        wire.TooMuchError, match=r"10,000 a second; it carries 19,999 here, and 50%"
    ):
        tried.kept_up(19_999)
    tried._ways[0].late_s += [0.1, 0.1, 0.1]
    with pytest.raises(wire.TooMuchError, match="half of the packets were more than"):
        tried.kept_up(20_000)


def test_what_the_line_carries_is_measured_and_a_run_beyond_it_is_refused():
    """The same ten million bytes, without a limit and at 20 Mbit/s."""
    here.environment(visits.STACK)
    floods = line.flood()
    assert list(floods.columns) == feasibility.COLUMNS and len(floods) == feasibility.TIMES
    assert not floods["lost"].any() and set(floods["source"]) == {"live"}
    # As many packets as the bytes need, and half as many acknowledgements of them at most.
    of_a_packet = 1e6 / 8 * floods["mbit"] / floods["packets_s"]
    assert of_a_packet.between(1448 / 2.1, 1448).all()
    carries = feasibility.line_capacity()["carries"]
    # Once at least of some times, whatever else this machine does.
    tried = (over(feasibility.BYTES, {}, {}, carries=carries)[3] for _ in range(8))
    refused = next((each["too_much"] for each in tried if "too_much" in each), "")
    assert "packets came at" in refused
    slow = {"latency_s": 0.005, "mbit": 20, "queue": 2_000_000}
    _, counts, _, kept, _ = over(feasibility.BYTES // 10, slow, slow, carries=carries)
    assert 0 < kept["busiest"] < wire.SHARE * carries and not counts["back"]["dropped"]


def test_a_visit_that_the_line_cannot_keep_up_with_is_no_timing(monkeypatch):
    """As on a line that carries ten packets a second; nothing is stored of it."""
    here.environment(visits.STACK)
    stored = []
    monkeypatch.setattr(visits.feasibility.measurements, "save", lambda *each: stored.append(each))
    narrow = replace(visits._OVER, tells=lambda: {"carries": 10})
    monkeypatch.setattr(visits, "_OVER", narrow)
    with pytest.raises(visits.TooMuch, match=r"not keep up, 3 times.*it carries 10 here"):
        line.visit("bare-h2", n=2, latency_s=0.002)
    assert [value for _, value, *_ in stored if measurements.FAILED not in value] == []


@pytest.mark.parametrize("odd", [{"latency_s": 2}, {"mbit": 5_000}, {"latency_s": -1}])
def test_what_it_cannot_carry_is_refused(odd):
    with pytest.raises(ValueError, match="choose"):
        wire._Direction(wire.BACK, None, None, odd, 0, None)


#: A line with a process at each end, which says who it is and waits. A shell's background (`&`)
#: leaves SIGINT ignored, and the test wants it heard.
WAITS = """
import signal, subprocess, sys, time
sys.path.insert(0, {folder!r})
from ends import Ends
from wire import Wire
signal.signal(signal.SIGINT, signal.default_int_handler)
with Ends() as ends:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    both = [ends.start(end, sleeps) for end in ("near", "far")]
    with Wire(ends.near, ends.far, {{}}, {{}}):
        print(*(each.pid for each in both), flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle_it_leaves_nothing(sent):
    code = textwrap.dedent(WAITS).format(folder=str(Path(ends.__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as line_process:
        pids = [int(pid) for pid in line_process.stdout.readline().split()]
        spaces = {os.readlink(f"/proc/{pid}/ns/net") for pid in pids}
        assert len(pids) == len(spaces) == 2 and os.readlink("/proc/self/ns/net") not in spaces
        line_process.send_signal(sent)
    assert here.eventually(lambda: not any(map(here.alive, pids)))
    # A namespace lives in its processes, and the devices in their namespace.
    assert not spaces & set(_namespaces())


def test_a_visit_killed_in_the_middle_leaves_no_store_and_no_file(tmp_path):
    python = here.environment(visits.STACK).python
    asked = {"script": "pipes", "protocol": "http/1.1", "at_once": 1, "connections": 1, "n": 200}
    asked |= {
        "order": "completed",
        "records": False,
        "there": {"latency_s": 0.3},
        "back": {"latency_s": 0.3},
    }
    asked = {"way": "", "congestion": "reno", "least_bytes": 0, "carries": 1e9, "visits": [asked]}
    before = set(_namespaces())
    with subprocess.Popen(
        [python, Path(ends.__file__).with_name("over.py")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as visiting:  # fmt: skip
        visiting.stdin.write(json.dumps(asked).encode())
        visiting.stdin.close()
        assert here.eventually(lambda: list(tmp_path.glob("*/store.pem")))
        assert here.eventually(lambda: len(_children(visiting.pid)) == 2)
        pids = _children(visiting.pid)
        visiting.kill()
    assert here.eventually(lambda: not any(map(here.alive, pids)))
    assert here.eventually(lambda: not list(tmp_path.iterdir()))
    assert here.eventually(lambda: not {_namespace(pid) for pid in pids} - before - {None})


def _children(pid):
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def _namespaces():
    return {_namespace(path.name) for path in Path("/proc").glob("[0-9]*")} - {None}


def test_books_come_over_it_and_the_lost_one_is_counted():
    here.environment(visits.STACK)
    byte = 30_000
    frame = line.visit(["pipes:6", "bare-h2"], n=40, latency_s=0.01, lose=[{}, line.loss(byte)])
    assert list(frame.columns) == visits.COLUMNS and len(frame) == 4
    assert list(frame["dropped"]) == [0, 0, 1, 1]
    assert list(frame["opened"]) == [6, 1, 6, 1]
    lost = frame[frame["dropped"] == 1]
    assert (lost["again"] >= 1).all()
    assert (lost["repair_ms"] >= 20).all() and frame["repair_ms"].count() == 2
    # From the packet behind it the server learns of the loss, and not before.
    heard_ms = lost.set_index("client")["repair_ms"] - lost.set_index("client")["next_ms"]
    assert heard_ms["bare-h2"] >= 18 and heard_ms.isna()["pipes"]
    # The streams go on behind the gap; a connection of HTTP/1.1 waits for its answer.
    assert dict(zip(lost["client"], lost["behind"] > 0, strict=True)) == {
        "pipes": False, "bare-h2": True
    }  # fmt: skip
    assert set(frame["source"]) == {"live"} and set(frame["way"]) <= set(ends.DEVICES)


def test_packets_of_a_visit_are_rows():
    here.environment(visits.STACK)
    rows = line.packets("bare-h2", n=3, latency_s=0.01)
    assert set(visits.PACKET_COLUMNS) <= set(rows)
    assert rows["t_s"].iloc[0] == 0 and rows["t_s"].is_monotonic_increasing
    sent = rows[(rows["direction"] == wire.BACK) & ~rows["is_again"]]
    assert sent["bytes"].sum() > 27_000  # the list of books at least
    assert set(rows["connection"]) == {0}


def test_a_small_book_comes_to_the_bytes_that_the_model_says():
    here.environment(visits.STACK)
    sent = []
    for n in (13, 60):
        rows = line.packets("bare-h2", n=n, latency_s=0.004)
        sent.append(rows.loc[(rows["direction"] == wire.BACK) & ~rows["is_again"], "bytes"].sum())
    assert abs((sent[1] - sent[0]) / 47 - (situations.SMALL + model.AROUND)) < 5


def of_control(together, alone=(10.0,) * 8):
    """What the control came to: round trips of eight visits, alone and beside others."""
    both = [("alone", alone), ("together", together)]
    return pd.DataFrame(
        {"control": name, "repeat": number, "round_trips": trips}
        for name, several in both
        for number, trips in enumerate(several, 1)
    )


@pytest.mark.parametrize(
    ("together", "lines"),
    [
        ([10.2] * 8, visits.LINES),
        ([9.0] * 8, visits.LINES),  # alone, something else came between
        ([12.0] * 8, 1),
        ([10.2] * 7 + [12.0], 1),  # undecided
    ],
)
def test_lines_are_had_together_where_the_control_takes_as_long_as_alone(
    together, lines, monkeypatch
):
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    monkeypatch.setattr(visits, "runnable", list)
    monkeypatch.setattr(visits, "control", lambda: of_control(together))
    assert visits.lines_at_once.__wrapped__() == lines


def test_without_a_control_there_is_one_line_at_a_time(monkeypatch):
    def fails():
        raise RunFailed("the line could not keep up")

    monkeypatch.setattr(visits, "control", lambda: of_control([10.0] * 8))
    monkeypatch.setattr(visits, "runnable", list)
    monkeypatch.delenv("CASEBOOK_BUILD", raising=False)
    assert visits.lines_at_once.__wrapped__() == 1
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    assert visits.lines_at_once.__wrapped__() == visits.LINES
    monkeypatch.setattr(visits, "control", fails)
    assert visits.lines_at_once.__wrapped__() == 1


def test_the_control_compares_each_visit_alone_with_the_same_on_several_lines(monkeypatch):
    """With one line, that takes twice as long as the others when they are made together."""

    def measure(_, asked, repeats):
        [asked], [line_] = asked, repeats
        longer = 2 if asked["control"] == "together" and line_ == 1 else 1
        walls = [longer * 0.07 * number for number in range(1, 9)]
        return pd.DataFrame([{"answers": [{"wall_s": wall_s} for wall_s in walls]}])

    monkeypatch.setattr(visits, "_OVER", SimpleNamespace(measure=measure))
    rows = visits.control()
    assert list(rows["control"]) == ["alone"] * 8 + ["together"] * 8
    trips = rows["round_trips"].round(6)
    assert list(trips) == [1, 2, 3, 4, 5, 6, 7, 8] * 2  # the median of the lines


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        ((["pipes:13", "bare-h2"], 13, [0.035, 0.07], 27_000), True),
        ((["pipes:13"], 13, [0.004, 0.035], 27_000), False),  # near by, computing counts
        ((["pipes:13"], 13, 0.035, 77_000), False),
        ((["bare-h2"], 200, 0.035, 0), False),
        ((["bare-h2", "httpx-h2:100"], 13, 0.035, 0), False),
    ],
)
def test_only_visits_that_wait_as_much_as_the_control_are_made_together(asked, waits):
    clients, n, latency_s, body_bytes = asked
    kinds = lines.kinds(clients, n, (*visits.BARE, *visits.LIBRARIES), latency_s=latency_s)
    assert visits._waits(kinds, body_bytes) is waits


def test_visits_on_lines_of_their_own_are_made_at_the_same_time(monkeypatch):
    here.environment(visits.STACK)
    feasibility.line_capacity()
    together, run = threading.Barrier(3), scripts.answer_of

    def ask(*asked, **more):
        together.wait(120)  # breaks unless three are here at the same time
        return run(*asked, **more)

    monkeypatch.setattr(scripts, "answer_of", ask)
    monkeypatch.setattr(visits, "lines_at_once", lambda: 3)
    lose = {"share": 0.05}
    frame = line.visit(["pipes:2", "bare-h2"], n=5, latency_s=0.035, lose=lose, repeats=3)
    assert list(frame["repeat"]) == [1, 1, 2, 2, 3, 3]
    assert list(frame["opened"]) == [2, 1, 1, 2, 2, 1]
    assert (frame["round_trips"] >= 4).all()


def test_what_cannot_be_asked_is_refused():
    for odd in (
        dict(clients="hyper"), dict(clients="bare-h2", n=0),
        dict(clients="bare-h2", latency_s=3), dict(clients="bare-h2", mbit=1e4),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="choose"):
            line.visit(**odd)


def test_each_round_draws_a_lot_of_its_own_that_is_the_same_for_its_ways():
    assert visits._with_seed({"share": 0.02}, 3) == {"share": 0.02, "seed": 3}
    assert visits._with_seed({"share": 0.02, "seed": 7}, 3)["seed"] == 7
    assert visits._with_seed({"connection": 0, "byte": 5}, 3) == {"connection": 0, "byte": 5}


#: What is dropped of a thousand packets, by the lots of a build.
DRAWS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import over, wire
back = {"lose": json.loads(sys.argv[3])}
[visit] = over.with_lots({"lots": int(sys.argv[2]), "visits": [{"there": {}, "back": back}]})
loses = wire._losing(visit["back"]["lose"])
print([i for i in range(1000) if loses({})])
"""


def test_another_build_draws_other_lots_and_the_same_seed_the_same():
    lose = {"share": 0.02, "seed": 1}
    folder = str(Path(ends.__file__).parent)

    def dropped(lots, **more):
        how = [sys.executable, "-c", DRAWS, folder, str(lots), json.dumps(lose | more)]
        return json.loads(subprocess.check_output(how, text=True))

    first = dropped(5)
    assert 0 < len(first) < 60 and dropped(5) == first
    assert dropped(6) != first and dropped(5, seed=2) != first


@pytest.fixture
def visitor(monkeypatch):
    """The script that makes the visits."""
    monkeypatch.syspath_prepend(str(Path(ends.__file__).parent))
    return importlib.import_module("over")


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (1, 2), (2, 3), (3, None)])
def test_a_visit_that_the_line_could_not_carry_leaves_nothing_to_the_next(
    visitor, monkeypatch, failures, tries
):
    asked, cpu_s = [], iter((1.0, 1.25, 2.0, 2.5, 4.0, 5.0))

    def query(request):
        asked.append(request)
        return {"cpu_s": next(cpu_s)} if request == "cpu" else {}

    class Wire:
        made = 0

        def __init__(self, *_):
            Wire.made += 1

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda *_: None  # noqa: E731

        def kept_up(self, carries):
            if Wire.made <= failures:
                raise visitor.TooMuchError("much")
            return {"late_ms": carries}

    monkeypatch.setattr(visitor, "Wire", Wire)
    process = SimpleNamespace(communicate=lambda _: (b'{"failure": null, "n": 1}', b""))
    near = SimpleNamespace(near=1, far=2, start=lambda *_, **__: process)
    ask = (near, query, {"there": {}, "back": {}}, "visit.py", {}, 7)
    if tries is None:
        with pytest.raises(visitor.VisitError, match="could not keep up, 3 times: much"):
            visitor.carried(*ask)
    else:
        reply, _, quality, used_s = visitor.carried(*ask)
        assert reply["n"] == 1 and quality == {"late_ms": 7, "tries": tries}
        assert used_s == {1: 0.25, 2: 0.5, 3: 1.0}[tries]  # of the one that counts
    assert asked == ["reset", "cpu", "cpu"] * (tries or 3)


def test_lots_are_drawn_for_either_direction_and_for_nothing_else(visitor):
    share, byte = {"share": 0.1, "seed": 3}, {"byte": 5}
    near = {"there": {"lose": share}, "back": {"lose": byte}}
    far = {"there": {}, "back": {"lose": share, "latency_s": 1}}
    asked = {"lots": 7, "visits": [near, far]}
    drawn = {"share": 0.1, "seed": "7/3"}
    assert visitor.with_lots(asked) == [
        {"there": {"lose": drawn}, "back": {"lose": byte}},
        {"there": {}, "back": {"lose": drawn, "latency_s": 1}},
    ]
    assert share["seed"] == 3  # what was asked stays as it was


def test_only_what_is_lost_by_lot_depends_on_the_seed():
    way = {"latency_s": 0.01}
    for lose, is_drawn in (({"share": 0.02}, True), ({"byte": 5}, False), ({}, False)):
        asked = {"visits": [{"there": way, "back": way | {"lose": lose}}]}
        assert visits.is_random(asked) is is_drawn
    assert not visits.is_random({"visits": [{"there": way, "back": way}]})


def test_a_library_visits_over_it():
    here.environment(visits.WITH_LIBRARIES)
    frame = line.visit(["httpx-h2:100", "aiohttp:6", "requests"], n=7, latency_s=0.002)
    assert set(frame["stack"]) == {visits.WITH_LIBRARIES}
    assert list(frame["opened"]) == [1, 6, 1] and (frame["packets"] > 20).all()


def test_a_control_that_the_kernel_lacks_is_named():
    here.environment(visits.STACK)
    asked = {"n": 2, "latency_s": 0.002}
    frame, missing = visits.with_controls(["reno", "nobodys"], "bare-h2", **asked)
    assert set(frame["congestion"]) == {"reno"} and missing == ["nobodys"]


def test_a_wrong_answer_is_no_measurement():
    asked = {"least_bytes": 0, "visits": [{"n": 1, "protocol": "h2"}]}
    seen = {"list_digest": "", "books_digest": "", "body_bytes": 1, "protocol": "h2"}
    with pytest.raises(RunFailed, match="came as others"):
        visits.figures_of(asked, {"way": "tun", "visits": [seen]})
    with pytest.raises(RunFailed, match="too narrow"):
        visits.figures_of(asked, {"failed": "too narrow"})


def test_where_there_is_no_line_it_says_what_is_missing(monkeypatch):
    refused = subprocess.CompletedProcess([], 1, "", "no network\n")
    monkeypatch.setattr(feasibility.subprocess, "run", lambda *_, **__: refused)
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    assert line.not_here.__wrapped__().endswith("no network")
    monkeypatch.setenv("CASEBOOK_REQUIRE", "line")
    with pytest.raises(MissingInterpreter, match="asks for a line"):
        line.not_here.__wrapped__()
