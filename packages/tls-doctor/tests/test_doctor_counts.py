"""What the doctor counts and concludes, from events that are written down here: nothing runs."""

import ast
import asyncio
import inspect
import os
import pathlib
import sys
import textwrap
import types

import pytest
from tls_doctor import (
    advice,
    blocking,
    events,
    heartbeat,
    judging,
    loads,
    probed,
    probes,
    state,
    tally,
)
from tls_doctor.basis import (
    BLOCKED,
    CANNOT_TELL,
    DOES_NOT_APPLY,
    FEW,
    FREE,
    HELD_UP,
    ONCE,
    ONE_FOR_EACH,
    REPEATED,
    UNPATCHED,
    UNSEEN,
)
from tls_doctor.examination import Examination
from tls_doctor.report import count_lines
from tls_doctor.tally import count_events
from tls_doctor.verdicts import (
    at_once,
    avoidable,
    growth,
    is_broken,
    is_kept,
    is_shared,
    limit_near,
    longest_queue,
    most_at_once,
    note_place,
    seconds,
    verdict_on,
    verdict_on_contexts,
    verdict_on_handshakes,
    verdict_on_loop,
    wanting,
)

PROGRAM = {"client": None, "through": None, "at": "program.py:1", "awaits": False}
REQUESTS = dict(PROGRAM, client="requests", through="requests")
HTTPX = dict(PROGRAM, client="httpx", through="httpx", at="program.py:2")


def event(what, pid=1, cpu=0, compiled=0, **values):
    return dict(values, **{"is": what, "pid": pid, "cpu": cpu, "compiled": compiled})


def load(c=1, who=REQUESTS, ms=10, trust="bundle", **values):
    usual = dict(since=0, t=0, kib=[0, 0], alive=1, loop=False, waiting=False, by="ssl", thread=1)
    return event("load", c=c, who=who, ms=ms, trust=trust, **dict(usual, **values))


def connection(h, c=1, who=REQUESTS, ok=True, end=True, ended=None, **values):
    """A handshake that began; one that ended, unless not `end`, with the values `ended`."""
    usual = dict(loop=False, http=True, since=None, t=0, thread=h, by="ssl", open=1, pid=1)
    values = dict(usual, **values)
    of = {"pid": values["pid"], "h": h, "t": values["t"], "ms": 0}
    last = [event("end", ok=ok, **dict(of, **(ended or {})))] if end else []
    return [event("begin", h=h, c=c, who=who, **values), *last]


def repeated(times, who=REQUESTS, first=1, **values):
    """So many connections, each with a context and a load of its own."""
    found = []
    for number in range(first, first + times):
        found.append(event("context", c=number, who=who, default=False))
        found += [load(number, who, **values), *connection(number, number, who)]
    return found


def its_row(counts, client="requests"):
    [row] = [row for row in counts["clients"] if row["client"] == client]
    return row


# ---------------------------------------------------------------- the table of events


def test_every_event_that_is_noted_stands_in_the_table_and_no_other():
    noted = set()
    for path in pathlib.Path(tally.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "note" and isinstance(node.args[0], ast.Constant):
                    noted.add(node.args[0].value)
    # The last is written in the place of an event, when there are too many.
    assert noted | {"exit", "uncounted"} == set(events.EVENTS)


@pytest.mark.parametrize("name", tally.Tally.HANDLERS)
def test_a_method_of_the_tally_reads_the_fields_of_its_event(name):
    fields = {*events.EVENTS[name][0].split(), "is", "pid"}
    source = inspect.getsource(tally.Tally.HANDLERS[name])
    function = ast.parse(textwrap.dedent(source)).body[0]
    assert function.name == "on_" + name.replace(" ", "_")
    read = {
        node.slice.value
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if ast.unparse(node.value) == "event"
    }
    assert read <= fields, read - fields


def test_a_record_has_its_own_fields_and_no_other():
    row = tally.ClientRow(client="requests", loads=3)
    assert (row.as_dict()["loads"], row.requests, row.at) == (3, None, [])
    assert tally.ClientRow().at is not tally.ClientRow().at
    for change in (lambda: setattr(row, "lodes", 1), lambda: tally.ClientRow(lodes=1)):
        with pytest.raises((AttributeError, TypeError), match="lodes"):
            change()
    counts = tally.Counts(clients=[row])
    assert counts.as_dict()["clients"] == [row.as_dict()]
    assert counts.as_dict()["on_loop"] == tally.LoopLoads().as_dict()


# ---------------------------------------------------------------- loads


def test_one_load_for_each_client_process_and_set_of_certificates_is_needed():
    counts = count_events(
        [
            load(1, ms=10),
            load(2, ms=20),  # the same again
            load(3, ms=40, trust="other"),
            load(4, ms=80, who=HTTPX),
            load(5, ms=160, pid=2),  # another process has to load for itself
            load(6, ms=320, pid=2),
            event("exit", cpu=2000),
            event("exit", pid=2, cpu=0),
        ]
    )
    assert (counts["loads"], counts["needed"], counts["load_ms"]) == (6, 4, 630)
    assert counts["spare_ms"] == 20 + 320
    assert counts["share"] == 17.0  # of 2,000 ms
    row = its_row(counts)
    assert (row["loads"], row["needed"], row["load_ms"], row["spare_ms"]) == (5, 3, 550, 340)
    assert row["at"] == [["program.py:1", 5]] and row["trusts"] == [["bundle", 4], ["other", 1]]
    assert row["by"] == [["ssl", 5]]
    assert its_row(counts, "httpx")["needed"] == 1


def test_who_shows_a_client_certificate_of_its_own_has_to_load_for_itself():
    """Twelve tenants with a certificate each, and one with none; then thirty of one tenant."""
    events = []
    for number in range(1, 13):
        events += [
            load(number, ms=7),
            event("identity", c=number, identity=f"tenant {number}", alive=1),
        ]
    counts = its_row(count_events([*events, load(13, ms=7)]))
    assert (counts["loads"], counts["needed"], counts["spare_ms"]) == (13, 13, 0)
    events = []
    for number in range(1, 31):
        events += [
            load(number, ms=7, loop=True),
            event("identity", c=number, identity="tenant", alive=number),
        ]
    counts = count_events(events)
    assert (counts["loads"], counts["needed"], counts["spare_ms"]) == (30, 1, 203)
    assert (counts["on_loop"]["spare"], counts["alive"]) == (29, 30)


def test_a_client_certificate_may_come_first_and_another_process_shows_its_own():
    first = [event("identity", c=1, identity="a", alive=0), load(1), load(2), load(3)]
    other = [event("identity", c=2, identity="a", alive=0, pid=2), load(2, pid=2), load(3, pid=2)]
    counts = its_row(count_events(first + other))
    assert (counts["loads"], counts["needed"]) == (5, 4)


def test_workers_that_load_once_each_are_healthy():
    events = []
    for pid in range(1, 9):
        events += [event("process", pid=pid), event("start", pid=pid)]
        events += [load(1, ms=50, pid=pid), *connection(1, 1, pid=pid)]
        events += [event("exit", pid=pid, cpu=60)]
    counts = count_events(events)
    assert (counts["loads"], counts["needed"], counts["again"], counts["spare_ms"]) == (8, 8, 0, 0)
    assert counts["processes"] == 8
    assert verdict_on(counts, 5.0) == ONCE


def test_the_share_is_of_the_programs_own_cpu_without_the_doctors_trials():
    events = [event("process", cpu=100), event("start", cpu=120), *repeated(3, ms=10)]
    events = [dict(each, cpu=max(each["cpu"], 120)) for each in events]
    counts = count_events([*events, event("trial", ms=30, cpu=350), event("exit", cpu=350)])
    assert counts["cpu_ms"] == 350 - 120 - 30
    assert (counts["spare_ms"], counts["share"], counts["again_share"]) == (20, 10.0, 10.0)
    # It is never more than all: a clock may say less than the loads took.
    short = count_events([*repeated(3, ms=10), event("exit", cpu=5)])
    assert short["share"] == 100.0
    # A program may take less than a millisecond, and the doctor may try several times.
    quick = [*repeated(2, ms=0.5), event("trial", ms=30), event("trial", ms=20)]
    assert count_events([*quick, event("exit", cpu=51)])["share"] == 50.0


def test_what_python_does_before_the_program_and_to_compile_is_not_the_programs():
    counts = count_events(
        [
            event("process", cpu=100, compiled=5),
            event("start", cpu=120, compiled=10),
            event("pool", cpu=130, compiled=30),
            event("forked", pid=2, cpu=0, compiled=7),
            event("pool", cpu=140, compiled=25),  # told late, by another thread
            event("exit", cpu=350, compiled=42),
        ]
    )
    assert (counts["cpu_ms"], counts["compiled_ms"]) == (350 - 120, 20 + 7 + 12)


def test_what_is_told_of_times_and_shares_is_rounded():
    counts = count_events(
        [
            load(1, ms=10.14, kib=[0, 1.14 * 1024], since=0, t=1),
            load(2, ms=20.14, loop=True, waiting=True, since=2, t=2.01214),
            *connection(1, ended={"ms": 2.14, "t": 1.00014}),
            event("pool", compiled=5.14),
            event("exit", cpu=400.14, compiled=5.14),
        ]
    )
    names = ("load_ms", "spare_ms", "cpu_ms", "compiled_ms", "context_mib", "handshake_ms")
    assert [counts[name] for name in names] == [30.3, 20.1, 400.1, 5.1, 1.1, 2.1]
    assert counts["handshake_s"] == 1.0
    assert counts["share"] == counts["again_share"] == 5.0  # 20.14 of 400.14: 5.03
    on_loop = counts["on_loop"]
    assert (on_loop["ms"], on_loop["held_ms"], on_loop["longest_ms"]) == (20.1, 20.1, 12.1)


def test_an_event_that_is_told_late_takes_no_processor_time_away():
    """Threads note at once, and the one that looked at the clock first may be the last."""
    first = [dict(each, cpu=300) for each in repeated(1, ms=10)]
    other = [event("exit", pid=2, cpu=50)]
    assert count_events([*first, event("exit", cpu=200), *other])["cpu_ms"] == 350
    assert count_events([*first, event("exit", cpu=400), *other])["cpu_ms"] == 450


def test_loads_of_connections_that_are_kept_are_not_counted_for_the_limit():
    """A session of requests that is kept loads for each of its connections, and no more ever."""
    kept = [event("session", c=None), *repeated(6, ms=100)]
    for number in range(1, 7):
        kept += [event("request", c=number) for _ in range(5)]
    ill = repeated(3, HTTPX, first=11, ms=7)
    counts = count_events([*kept, *ill, event("exit", cpu=1000)])
    assert its_row(counts)["kept"] and not its_row(counts, "httpx")["kept"]
    assert (counts["spare_ms"], counts["share"]) == (514, 51.4)
    assert (counts["again"], counts["again_share"]) == (2, 1.4)
    assert verdict_on(counts, 5.0) == ONCE and verdict_on(counts, 1.4) == REPEATED


@pytest.mark.parametrize(
    ("again", "again_share", "loads", "share", "verdict"),
    [
        (2, 5.0, 3, 5.0, REPEATED),
        (1, 90.0, 2, 90.0, ONCE),  # a single one more
        (2, 4.9, 3, 4.9, ONCE),
        (0, 0.0, 11, 20.0, REPEATED),  # ten that were kept, and a fifth of all CPU
        (0, 0.0, 10, 20.0, ONCE),
        (0, 0.0, 11, 19.9, ONCE),
    ],
)
def test_loads_are_an_illness_from_two_and_five_percent_on(
    again, again_share, loads, share, verdict
):
    counts = dict(
        again=again, again_share=again_share, loads=loads, needed=1, share=share, handshakes=1,
        clients=[], failures=[],
    )  # fmt: skip
    assert verdict_on(counts, 5.0) == verdict
    seen = dict(counts, handshakes=0)
    assert verdict_on(seen, 5.0) == (UNSEEN if verdict == ONCE else verdict)
    # Where none of the connections came through, there is no fault of loads.
    failures = [["refused", 1]]
    assert verdict_on(dict(seen, failures=failures), 5.0) == UNSEEN
    assert verdict_on(dict(counts, failures=failures), 5.0) == verdict


@pytest.mark.parametrize(
    ("client", "through", "kept", "needed", "verdict"),
    [
        ("botocore", None, True, 1, ONCE),  # ten of twenty: ten are left, of which one is needed
        ("botocore", None, True, 0, REPEATED),
        ("botocore", None, False, 1, REPEATED),
        ("requests", "requests", True, 1, REPEATED),
        # A library that takes no context has a kept client load for each of its connections.
        ("redis", "redis", True, 1, ONCE),
        ("redis", "redis", False, 1, REPEATED),
        ("urllib3", "kubernetes", True, 1, ONCE),
        ("httpx", "openai", True, 1, REPEATED),  # which takes a client
        ("a_library", "a_library", True, 1, REPEATED),
    ],
)
def test_loads_of_a_kept_client_that_has_to_load_are_none_that_anybody_could_save(
    client, through, kept, needed, verdict
):
    row = dict(client=client, through=through, kept=kept, loads=11, needed=1, spare_ms=200.0)
    counts = dict(
        again=0, again_share=0.0, loads=20, needed=needed, share=50.0, handshakes=20,
        clients=[row], failures=[], spare_ms=500.0,
    )  # fmt: skip
    assert verdict_on(counts, 5.0) == verdict


@pytest.mark.parametrize(
    ("share", "kept_ms", "verdict", "near"),
    [
        (50.0, 30.0, REPEATED, None),  # of 100 ms 30 are botocore's: 35 percent are left
        (30.0, 30.0, REPEATED, 20),  # 21
        (25.0, 30.0, ONCE, 20),  # 17.5
        (25.0, 0.0, REPEATED, None),
        (22.0, 30.0, ONCE, None),  # 15.4
    ],
)
def test_what_a_kept_client_of_botocore_takes_is_left_out_of_the_share(
    share, kept_ms, verdict, near
):
    row = dict(client="botocore", kept=True, loads=11, needed=1, spare_ms=kept_ms)
    counts = dict(
        again=0, again_share=0.0, loads=31, needed=1, share=share, spare_ms=100.0, handshakes=31,
        clients=[row], failures=[],
    )  # fmt: skip
    assert verdict_on(counts, 5.0) == verdict
    assert limit_near(counts, 5.0) == near
    # With ten loads fewer, none that could be saved are ten: no limit is near.
    fewer = dict(counts, loads=20)
    assert verdict_on(fewer, 5.0) == ONCE and limit_near(fewer, 5.0) is None
    # Of less than a millisecond, too, the part is what the clock says.
    short = dict(counts, spare_ms=0.5, clients=[dict(row, spare_ms=0.25)], share=40.0)
    assert avoidable(short) == (20, 20.0)
    # And where no connection came through, no other run is needed to tell.
    broken = dict(counts, failures=[["refused", 31]], handshakes=0)
    assert verdict_on(broken, 5.0) == UNSEEN and limit_near(broken, 5.0) is None


@pytest.mark.parametrize(
    ("again", "again_share", "avoidable_share", "near"),
    [
        # Within a quarter of the limit of 5 percent: from 4 to 6.25.
        (2, 4.1, 0, 5.0),
        (2, 6.2, 0, 5.0),
        (2, 4.0, 0, None),
        (2, 6.25, 0, None),
        (2, 50.0, 0, None),
        (1, 5.0, 0, None),  # a single one is none too many
        # Ten that could be saved, within a quarter of 20 percent: from 16 to 25.
        (0, 0.0, 16.1, 20),
        (0, 0.0, 24.9, 20),
        (0, 0.0, 16.0, None),
        (0, 0.0, 25.0, None),
        (2, 7.0, 20.0, None),  # it is ill by its other loads
    ],
)
def test_what_is_near_a_limit_may_come_out_otherwise_the_next_time(
    again, again_share, avoidable_share, near
):
    counts = dict(
        again=again, again_share=again_share, share=avoidable_share, loads=11, needed=1,
        clients=[], failures=[], spare_ms=100.0, handshakes=11,
    )  # fmt: skip
    assert limit_near(counts, 5.0) == near


# ---------------------------------------------------------------- connections


def test_handshakes_count_when_they_came_through_and_connections_when_they_began():
    counts = count_events([*connection(1), *connection(2, ok=False), *connection(3, end=False)])
    assert (counts["connections"], counts["handshakes"], counts["failed"]) == (3, 1, 1)
    assert its_row(counts)["connections"] == 3
    assert counts["under_loop"] == 0
    assert count_events(connection(1, loop=True) + connection(2))["under_loop"] == 1
    # An end of which no beginning was seen is nobody's.
    assert count_events([event("end", h=9, ok=True, t=1)])["handshakes"] == 0


def test_the_peak_is_of_one_process_and_open_connections_are_those_of_all():
    both = [*connection(1, end=False, open=3), *connection(2, end=False, open=2)]
    other = connection(1, pid=2, end=False, open=4)
    counts = count_events([*both, *other])
    assert (counts["peak"], counts["open"]) == (2, 3 + 4)
    assert count_events([*connection(1), *connection(2)])["peak"] == 1
    # Of those that have ended none counts on.
    assert count_events([*connection(1), *connection(2, end=False), *connection(3)])["peak"] == 2


def test_a_connection_belongs_to_who_made_its_context_also_in_a_child_of_a_fork():
    counts = count_events(
        [
            event("context", c=7, who=HTTPX, default=True),
            *connection(1, c=7, who=PROGRAM),
            *connection(2, c=7, who=PROGRAM, pid=2),
            *connection(3, c=8, who=PROGRAM, http=False),
            *connection(4, c=None, who=PROGRAM),
        ]
    )
    assert its_row(counts, "httpx")["connections"] == 2
    assert (its_row(counts, "httpx")["contexts"], its_row(counts, "httpx")["default"]) == (1, 1)
    assert its_row(counts, "httpx")["through"] == "httpx"
    own = its_row(counts, None)
    assert own["connections"] == 2 and not own["http"]
    assert its_row(counts, "httpx")["http"]
    # Of a context that was there before anybody looked, its load says whose it is.
    loaded = its_row(count_events([load(7), *connection(1, c=7, who=PROGRAM)]))
    assert loaded["connections"] == 1


def test_contexts_of_the_same_number_in_two_processes_are_two():
    """Each process numbers its own: a connection is its own context's, not the other's."""
    events = [event("context", c=1, who=REQUESTS, default=True)]
    events += [event("context", c=1, who=HTTPX, default=False, pid=2)]
    events += [*connection(1, c=1, who=PROGRAM), event("request", c=1)]
    counts = count_events(events)
    row, other = its_row(counts), its_row(counts, "httpx")
    assert (row["connections"], row["requests"]) == (1, 1)
    assert (other["connections"], other["requests"]) == (0, None)


def test_contexts_are_counted_for_who_made_them():
    through = dict(REQUESTS, through="a_library")
    events = [event("context", c=c, who=through, default=c == 1) for c in (1, 2, 3)]
    counts = count_events([*events, event("context", c=4, who=HTTPX, default=False)])
    row = its_row(counts)
    assert (counts["contexts"], row["contexts"], row["default"]) == (4, 3, 1)
    assert row["through"] == "a_library"


def test_what_came_most_often_is_told_first():
    """A library may load once where it is imported, and its clients where they are made."""
    first, later = [dict(HTTPX, at=f"program.py:{line}") for line in (1, 9)]
    events = [load(c=1, who=first, loop=True, trust="system", by="truststore")]
    for c in (2, 3):
        events.append(load(c=c, who=later, loop=True, trust="a.pem", by="ssl"))
    counts = count_events(events)
    row = its_row(counts, "httpx")
    assert row["at"] == counts["on_loop"]["at"] == [["program.py:9", 2], ["program.py:1", 1]]
    assert row["trusts"] == [["a.pem", 2], ["system", 1]]
    assert row["by"] == [["ssl", 2], ["truststore", 1]]


def test_rows_come_by_their_loads_and_then_by_their_connections():
    who = [dict(PROGRAM, client=name, through=name) for name in "abc"]
    few, many, most = who
    events = [*connection(1, c=1, who=few), *connection(2, c=2, who=many)]
    events += [*connection(3, c=2, who=many), load(3, who=most)]
    assert [row["client"] for row in count_events(events)["clients"]] == ["c", "b", "a"]


def test_clients_that_await_are_told_apart():
    awaits = [dict(HTTPX, awaits=value) for value in (True, True, False)]
    counts = count_events([load(c, who=who) for c, who in enumerate([*awaits, REQUESTS])])
    assert (its_row(counts, "httpx")["awaits"], its_row(counts)["awaits"]) == (2, 0)


def test_a_servers_handshakes_are_none_of_the_programs_connections():
    noted = []

    class Connection:
        def __init__(self, **its):
            vars(self).update(its)

        def do_handshake(self):
            return "done"

    watching = probes.Probes(noted.append)
    watching.handshakes(Connection)
    try:
        sslobj = types.SimpleNamespace(server_side=True)
        for server in (
            Connection(server_side=True),
            Connection(server_side=None, _sslobj=sslobj),
            Connection(get_state_string=lambda: b"before accept initialization"),
            Connection(get_state_string=lambda: b"TLSv1.3 Server hello"),
        ):
            assert server.do_handshake() == "done"
        assert noted == []
        for client in (
            Connection(server_side=False),
            Connection(get_state_string=lambda: b"before connect initialization"),
        ):
            assert client.do_handshake() == "done"
    finally:
        watching.remove()
    assert [each["is"] for each in noted] == ["begin", "end"] * 2
    counts = count_events(noted)
    assert (counts["connections"], counts["handshakes"]) == (2, 2)


@pytest.mark.parametrize(
    ("row", "total", "kept"),
    [
        # By requests: three for each connection.
        (dict(connections=2, requests=6), {}, True),
        (dict(connections=2, requests=5), {}, False),
        (dict(connections=0, requests=3), {}, True),
        # By exchanges, of HTTP alone unless all were open at once.
        (dict(connections=2, exchanges=6), {}, True),
        (dict(connections=2, exchanges=5), {}, False),
        (dict(connections=2, exchanges=6, http=False), {}, False),
        (dict(connections=2, exchanges=6, http=False), dict(open=2), True),
        # Where requests are told, exchanges do not count.
        (dict(connections=2, requests=4, exchanges=60), {}, False),
        # Connections beside each other of far fewer sessions or pools.
        (dict(connections=4), dict(open=4, sessions=2), True),
        (dict(connections=4), dict(open=3, sessions=2), False),
        (dict(connections=4), dict(open=4, sessions=3), False),
        (dict(connections=4), dict(open=4, sessions=0), False),
        # One for each thread of those that share two sessions, though they were closed.
        (dict(connections=4, threads=4), dict(open=0, sessions=2), True),
        (dict(connections=4, threads=3), dict(open=0, sessions=2), False),
        (dict(connections=4, client="urllib3"), dict(open=4, sessions=1), False),
        (dict(connections=4, client="urllib3"), dict(open=4, pools=2), True),
        (dict(connections=4, client="httpx"), dict(open=4, pools=1, sessions=1), False),
        (dict(connections=4, client="botocore"), dict(open=4, botocores=2), True),
        (dict(connections=4, client="botocore"), dict(open=4, botocores=3, sessions=1), False),
    ],
)
def test_connections_are_kept_by_what_was_asked_over_them(row, total, kept):
    row = dict(dict(client="requests", requests=None, exchanges=0, http=True, threads=1), **row)
    assert is_kept(row, dict(dict(open=0, sessions=0, pools=0, botocores=0), **total)) is kept


def test_what_was_closed_for_want_of_a_place_counts_from_twice_on_where_asked_again():
    row = dict(connections=4, requests=5, full=2, evicted=2)
    assert wanting(row) == ["evicted", "full"]
    assert wanting(dict(row, requests=4)) == ["evicted"]
    assert wanting(dict(row, requests=None)) == ["evicted"]
    assert wanting(dict(row, full=1, evicted=1)) == []
    assert wanting(dict(row, connections=0, requests=None, evicted=0)) == []
    counts = count_events(
        [
            event("context", c=1, who=REQUESTS, default=False),
            event("full", c=1, who=PROGRAM, size=10, wanted=12),
            event("full", c=1, who=PROGRAM, size=10, wanted=30),
            event("full", c=1, who=PROGRAM, size=10, wanted=20),
            event("full", c=None, who=REQUESTS, size=1, wanted=2),  # of a context that is unknown
            event("evicted", who=REQUESTS, size=5, wanted=7),
            event("evicted", who=REQUESTS, size=5, wanted=6),
        ]
    )
    row = its_row(counts)
    assert (row["full"], row["evicted"]) == (3 + 1, 2)
    assert (row["size"], row["wanted"]) == ({"full": 10, "evicted": 5}, {"full": 30, "evicted": 7})


def test_what_connections_end_with_is_counted_by_its_words():
    counts = count_events(
        [
            *connection(1, ok=False, ended={"why": "refused"}),
            *connection(2, ok=False, ended={"why": None}),  # a Ctrl-C
            event("failed", why="refused"),
            event("failed", why="no such host"),
            *connection(3, ended={"why": None}),
        ]
    )
    assert counts["failures"] == [["refused", 2], ["no such host", 1]]
    assert (counts["connections"], counts["handshakes"], counts["failed"]) == (3, 1, 2)
    assert not is_broken(counts)
    assert is_broken(dict(counts, handshakes=0))
    assert not is_broken(dict(counts, handshakes=0, failures=[]))  # nothing was tried
    # What failed at the end, and what was not even reached.
    both = [event("failed", why="refused"), event("unreached", why="no such host", port=443)]
    assert count_events(both)["failures"] == [["refused", 1], ["no such host", 1]]


def of_httpx(*events):
    """The counts of four loads of httpx, and of what its connections came to."""
    loads = [event("context", c=1, who=HTTPX, default=False), load(1, who=HTTPX)]
    loads += [load(c, who=HTTPX, ms=500) for c in (2, 3, 4)]
    return count_events([*loads, *events, event("exit", cpu=2000)])


def test_a_port_that_nobody_reached_is_told_where_no_connection_came_through():
    """Of names and addresses that are tried in turn, one is enough."""
    lost = [event("unreached", why="no such host", port=443)] * 2
    for more in ([], [event("reached", port=5432)]):  # a database, say
        counts = of_httpx(*lost, *more)
        assert counts["failures"] == [["no such host", 2]] and is_broken(counts)
        assert verdict_on(counts, 5.0) == UNSEEN
    counts = of_httpx(*lost, event("reached", port=443))  # without TLS
    assert counts["failures"] == [] and verdict_on(counts, 5.0) == REPEATED
    counts = of_httpx(*lost, *connection(1, 1, who=HTTPX))
    assert counts["failures"] == [] and verdict_on(counts, 5.0) == REPEATED


@pytest.mark.parametrize(
    "failing",
    [
        connection(1, 1, who=HTTPX, end=False),  # a client that awaits, whose time is over
        connection(1, 1, who=HTTPX, ok=False),  # gevent's time-out, which is no Exception
    ],
)
def test_a_handshake_without_an_end_did_not_come_through(failing):
    counts = of_httpx(*failing)
    assert counts["failures"] == [[tally.UNENDED, 1]]
    assert verdict_on(counts, 5.0) == UNSEEN
    healthy = of_httpx(*failing, *connection(2, 1, who=HTTPX))
    assert healthy["failures"] == [] and verdict_on(healthy, 5.0) == REPEATED


def test_a_connection_that_is_refused_after_its_handshake_did_not_come_through():
    """As a server does by TLS 1.3 that wants a certificate of its client."""
    refused = [*connection(1, 1, who=HTTPX), event("rejected", h=1, why="certificate required")]
    counts = of_httpx(*refused)
    assert (counts["handshakes"], counts["failed"]) == (0, 1)
    assert counts["failures"] == [["certificate required", 1]]
    assert verdict_on(counts, 5.0) == UNSEEN
    # One that was not counted, as its begin was not seen, takes none back.
    other = event("rejected", h=9, why="certificate required")
    assert of_httpx(*connection(1, 1, who=HTTPX), other)["handshakes"] == 1


class LoopThatConnects:
    """What uvloop and asyncio have: coroutines that connect, or do not."""

    async def create_connection(self, factory, host=None, port=None):
        await asyncio.sleep(0)
        if host == "refuses":
            raise ConnectionRefusedError(111, "refused")
        if host == "waits":
            await asyncio.sleep(60)
        return host

    async def getaddrinfo(self, host, port):
        if host != "known":
            raise OSError("no such host")
        return host


def test_who_is_reached_by_coroutines_is_noted():
    noted, watched = [], type("Loop", (LoopThatConnects,), {})
    watching = probes.Probes(noted.append)
    watching.reaches(watched, "create_connection", 3)
    watching.reaches(watched, "getaddrinfo", 2)
    loop = watched()

    async def connect(host, **port):
        return await asyncio.wait_for(loop.create_connection(None, host, **port), 0.1)

    def ended(kind, work):
        with pytest.raises(kind):
            asyncio.run(work)
        noted[-1].pop("cpu")
        return {name: noted[-1][name] for name in ("is", "port", "why") if name in noted[-1]}

    refused = {"is": "unreached", "port": 443, "why": "ConnectionRefusedError: [Errno 111] refused"}
    assert ended(ConnectionRefusedError, connect("refuses", port=443)) == refused
    given_up = dict(refused, why=probes.GIVEN_UP)
    assert ended(asyncio.TimeoutError, connect("waits", port=443)) == given_up
    unknown = {"is": "unreached", "port": 443, "why": "OSError: no such host"}
    assert ended(OSError, loop.getaddrinfo("unknown", 443)) == unknown
    assert asyncio.run(loop.getaddrinfo("known", 443)) == "known"
    assert len(noted) == 3  # who has an address is not reached yet
    assert asyncio.run(connect("answers", port=443)) == "answers"
    assert (noted[-1]["is"], noted[-1]["port"]) == ("reached", 443)
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(connect("refuses", port=443))
    assert asyncio.run(connect("answers")) == "answers"  # over a socket that was given
    assert len(noted) == 4


def test_a_proxy_that_refuses_is_told_by_what_its_client_raises():
    noted, module = [], types.ModuleType("httpcore._exceptions")
    module.ProxyError = type("ProxyError", (Exception,), {})
    probed.probe_proxy_errors(probes.Probes(noted.append), module)
    assert str(module.ProxyError("407 Proxy Authentication Required")).startswith("407")
    [each] = noted
    assert (each["is"], each["why"]) == ("failed", "ProxyError: 407 Proxy Authentication Required")


def test_the_function_of_a_tunnel_is_still_of_its_module():
    """requests-shared-context lends nothing to what runs another module's code."""
    noted, module, failure = [], types.ModuleType("http.client"), OSError("refused")
    exec("class HTTPConnection:\n    def _tunnel(self): raise self.error", vars(module))
    watching = probes.Probes(noted.append)
    watching.failing(module.HTTPConnection, "_tunnel")
    connection = module.HTTPConnection()
    connection.error = failure
    with pytest.raises(OSError, match="refused"):
        connection._tunnel()
    assert [(each["is"], each["why"]) for each in noted] == [("failed", "OSError: refused")]
    assert module.HTTPConnection._tunnel.__globals__ is vars(module)
    watching.remove()


def test_a_connection_without_a_socket_of_its_own_is_not_taken_for_open():
    """asyncio's: its transport closes it."""
    noted, kinds = probes.Probes(lambda _: None), [None, -1, 5]
    connections = [types.SimpleNamespace() for _ in kinds]
    for number, (one, descriptor) in enumerate(zip(connections, kinds, strict=True)):
        if descriptor is not None:
            one.fileno = lambda of=descriptor: of
        noted.open[number] = (lambda of=one: of), os.getpid()
    assert noted.still_open() == 1


@pytest.mark.parametrize(
    ("by", "own", "client", "words"),
    [
        (
            "gevent",
            ["pycurl"],
            None,
            "The program (in pycurl, which brings TLS of its own?) waited",
        ),
        ("gevent", ["pycurl"], None, "what waits in C no patch of gevent's reaches"),
        ("gevent", [], None, "The program waited"),
        ("gevent", ["grpc"], "requests", "requests waited"),
        ("gevent", [], "requests", "gevent has patched nothing there"),
        ("trio", ["pycurl", "grpc"], None, "(in pycurl or grpc, which brings TLS of its own?)"),
    ],
)
def test_what_waits_in_c_is_named_by_what_is_imported(by, own, client, words):
    silent = {"by": by, "waiting_s": 1.0, "at": [["program.py:5", 4]]}
    silent["clients"] = [[client, 4]] if client else []
    counts = {"blocked": {"waiting_s": 0}, "silent": silent, "own_tls": own}
    [row] = advice.advice_on_waits(Examination(counts=counts))
    assert words in row["what"] and "program.py:5" in row["what"]


@pytest.mark.parametrize(
    ("call", "trust", "line"),
    [
        ('httpx.get(url, verify="ca.pem", timeout=3)', "/etc/ca.pem", 'Client(verify="ca.pem")'),
        ("httpx.get(url, verify=make(1, 2))", "/etc/ca.pem", "Client(verify=make(1, 2))"),
        ("httpx.get(url)", "system", "Client()"),
        (
            "api.fetch(url)", "/etc/ca.pem",
            "Client(verify=ssl.create_default_context(cafile='/etc/ca.pem'))",
        ),
    ],
)  # fmt: skip
def test_a_client_of_httpx_that_is_kept_trusts_what_the_call_did(call, trust, line, tmp_path):
    (tmp_path / "program.py").write_text("\n" + call + "\n")
    row = {"client": "httpx", "through": "httpx", "awaits": 0, "loads": 9, "trusts": [[trust, 9]]}
    row["at"] = [[f"{tmp_path / 'program.py'}:2", 9]]
    assert advice.keep_one(row)[0] == "client = httpx." + line


@pytest.mark.parametrize(
    ("client", "text", "line", "words"),
    [
        (
            "made_up", "import made_up; db = made_up.Store('a', ca=path(1)).open()",
            "client = made_up.Store('a', ca=path(1))  # once, before the work begins",
            "see whether it takes a context",
        ),
        # No class of its own is called there.
        ("made_up", "store.tls_set(ca=Path(1))", "client = ...  # of made_up, made once", "see wh"),
        ("redis", "r = redis.Redis(host, ssl=True)", "client = redis.Redis(host, ssl=True)  # once",
            "it takes no context or client of yours"),
        ("redis", "r.get(Key('k'))", "client = redis.Redis(...)  # once", "it takes no context"),
        # `client` is a module there.
        ("kubernetes", "client.ApiClient(c)", "api_client = client.ApiClient(c)  # once", ""),
    ],
)  # fmt: skip
def test_of_a_library_the_programs_own_client_is_advised(client, text, line, words, tmp_path):
    (tmp_path / "one.py").write_text("\n" + text + "\n")
    row = {"client": client, "through": client, "awaits": 0, "loads": 4, "trusts": [["system", 4]]}
    add, what = advice.keep_one(dict(row, at=[[f"{tmp_path / 'one.py'}:2", 4]]))
    assert add.startswith(line) and words in what
    assert f"Make one client of {client}, and keep it" in what and "every connection" not in what


@pytest.mark.parametrize(
    ("python", "by", "line"),
    [
        ("3.8.18", "asyncio", "reply = await asyncio.get_event_loop().run_in_executor(None, "),
        ("3.9.1", "asyncio", "reply = await asyncio.to_thread("),
        ("3.13.0", "asyncio", "reply = await asyncio.to_thread("),
        ("3.8.18", "trio", "reply = await trio.to_thread.run_sync("),
        ("3.8.18", "twisted", "deferred = threads.deferToThread("),
        ("3.8.18", "gevent", "reply = gevent.get_hub().threadpool.apply("),
    ],
)
def test_a_wait_goes_into_a_thread_as_this_python_and_loop_have_it(python, by, line):
    silent = {"by": by, "waiting_s": 1.0, "at": [["program.py:5", 4]], "clients": []}
    counts = {"blocked": {"waiting_s": 0}, "silent": silent, "own_tls": []}
    [row] = advice.advice_on_waits(Examination(counts=counts, python=python))
    assert row["add"].startswith(line)


def test_short_waits_in_a_row_are_one(monkeypatch):
    watching, present = probes.Probes(lambda _: None), [0.0]
    monkeypatch.setattr(probes, "clock", lambda: present[0])

    def wait(after_ms, ms):
        """Wait so long after the last one; return the milliseconds that are told."""
        started = present[0] + after_ms / 1000
        present[0] = started + ms / 1000
        return round(1000 * watching.in_a_row(started, ms / 1000))

    present[0] = 10.0
    assert [wait(50, 12), wait(1, 12), wait(11, 12), wait(11, 12)] == [12, 24, 12, 24]
    # What was noted does not count again, nor what a longer pause parts from the next.
    assert [wait(50, 30), wait(1, 12), wait(13, 12), wait(1, 7), wait(1, 2)] == [30, 12, 12, 19, 21]


def test_whose_protocol_stands_on_asyncios_tls_is_told():
    class Tls:
        def __init__(self, module):
            kind = type("Protocol", (), {"__module__": module})
            self._app_protocol = kind()

        def shake(self, look):
            return look()

    def client():
        return probes.client_of_protocol(sys._getframe(1))

    assert Tls("aiohttp.client_proto").shake(client) == "aiohttp"
    assert Tls("websockets.client").shake(client) is None
    assert client() is None


def test_a_text_that_python_was_given_is_the_programs_own():
    watching = probes.Probes(lambda _: None)
    text = "origin = look()"
    look = lambda: watching.callers(sys._getframe(1))  # noqa: E731
    places = {}
    for name in ("__main__", "collections"):
        names = {"__name__": name, "look": look}
        exec(compile(text, "<string>", "exec"), names)
        places[name] = names["origin"]
    assert (places["__main__"]["client"], places["__main__"]["at"]) == (None, "<string>:1")
    assert places["collections"]["client"] == "collections"


def test_handshakes_are_timed_from_their_begin_to_their_end_whatever_comes_of_them():
    def shake(h, t, until, ms, ok=True):
        return connection(h, t=t, ok=ok, ended={"t": until, "ms": ms})

    counts = count_events([*shake(1, 1, 1.5, 2.0), *shake(2, 2, 2.25, 0.5, ok=False)])
    assert (counts["handshake_ms"], counts["handshake_s"]) == (2.5, 0.75)
    unended = count_events(connection(1, t=1, end=False))
    assert (unended["handshake_ms"], unended["handshake_s"]) == (0, 0)


def test_a_row_has_its_handshakes_at_once_and_its_threads():
    counts = count_events(
        [
            event("context", c=1, who=REQUESTS, default=False),
            event("context", c=2, who=HTTPX, default=False),
            *connection(1, end=False, open=4, thread=7),
            *connection(2, end=False, open=6, thread=7),
            *connection(3, c=2, who=HTTPX, open=3, thread=8),
            event("end", h=1, ok=True, t=1, ms=0),
            *connection(4, open=2, thread=9),
        ]
    )
    row, other = its_row(counts), its_row(counts, "httpx")
    assert (row["peak"], row["threads"], row["open"]) == (2, 2, 6)
    assert (other["peak"], other["threads"], other["open"]) == (1, 1, 3)
    # At once is in one process, as of all rows.
    workers = [each for pid in (1, 2, 3) for each in connection(1, pid=pid, end=False)]
    assert its_row(count_events(workers))["peak"] == count_events(workers)["peak"] == 1


@pytest.mark.parametrize(
    ("peak", "threads", "open_", "connections", "number"),
    [
        (0, 0, 0, 0, 1),
        (5, 1, 1, 9, 5),  # handshakes of tasks, in one thread
        (1, 8, 6, 9, 6),  # threads, six of whose connections were there at once
        (1, 8, 9, 7, 7),
        (1, 3, 9, 9, 3),
    ],
)
def test_as_many_were_under_way_as_handshakes_or_threads_tell(
    peak, threads, open_, connections, number
):
    row = dict(peak=peak, threads=threads, open=open_, connections=connections)
    assert at_once(row) == number


def to_http2(h, **values):
    return connection(h, who=HTTPX, ended={"alpn": "h2", "host": "one:443"}, **values)


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        (True, "client = httpx.AsyncClient(http2=True)"),
        (False, "client = httpx.Client(http2=True)"),
    ],
)
def test_the_line_for_http2_is_that_of_the_client_that_connects(loop, line):
    """Also if the program's own context is what it connects with, and as it waits."""
    of_program = [event("context", c=1, who=PROGRAM, default=True), load(who=PROGRAM)]
    run = [*of_program, *(each for h in range(1, 5) for each in to_http2(h, loop=loop))]
    [change] = judging.judge(examination_of(run), SPEC)["advice"]
    assert change["id"] == "one-connection" and change["add"].startswith(line)
    assert change["what"].startswith("httpx made 4 connections to one:443")


def test_what_awaits_is_gathered_with_await():
    """As niquests, whose answers come over one connection if all are asked for first."""
    who = {"client": "niquests", "through": "niquests", "at": "program.py:1"}
    ended = {"alpn": "h2", "host": "one:443"}
    run = [each for h in range(4) for each in connection(h, who=who, ended=ended, loop=True)]
    [change] = judging.judge(examination_of(run), SPEC)["advice"]
    assert change["add"].startswith("session = niquests.AsyncSession(multiplexed=True)")
    assert change["add"].endswith("await session.gather()")


def test_three_connections_to_a_host_that_speaks_http2_are_too_many():
    two = [*to_http2(1), *to_http2(2)]
    others = [
        *connection(3, who=HTTPX, ended={"alpn": "http/1.1", "host": "one:443"}),
        *connection(4, who=HTTPX, ended={"alpn": "h2", "host": "two:443"}),
        *connection(5, who=HTTPX, ended={"alpn": "h2", "host": None}),
        *connection(6, who=REQUESTS, ended={"alpn": "h2", "host": "one:443"}),
    ]
    assert count_events([*two, *others])["http2"] == []
    row = {"client": "httpx", "host": "one:443", "connections": 3, "awaits": False}
    assert count_events([*two, *to_http2(7), *others])["http2"] == [row]
    # Each process has to connect for itself.
    workers = [each for pid in (1, 2, 3) for each in to_http2(1, pid=pid)]
    assert count_events([*two, *workers[2:]])["http2"] == []
    assert count_events([*two, *to_http2(7), *workers[2:]])["http2"] == [row]
    # The host with the most of them is told first.
    to_two = [connection(h, ended={"alpn": "h2", "host": "two:443"}) for h in range(20, 24)]
    counts = count_events([*two, *to_http2(7), *(each for one in to_two for each in one)])
    assert [(row["host"], row["connections"]) for row in counts["http2"]] == [
        ("two:443", 4), ("one:443", 3),
    ]  # fmt: skip


def to_one_host(number, who=HTTPX, first=1, exchanges=1, open_=1, pid=1, host="one:443"):
    """So many connections to a host, of a context that the program made."""
    found = [event("context", c=1, who=PROGRAM, default=True, pid=pid)]
    for h in range(first, first + number):
        ended = {"alpn": None, "host": host, "ms": 2, "t": 0.25}
        found += connection(h, who=who, open=open_, pid=pid, ended=ended)
        found += [event("exchange", h=h, n=1, pid=pid)] * exchanges
    return found


@pytest.mark.parametrize(
    ("events", "number"),
    [
        (to_one_host(10), 10),
        (to_one_host(9), 0),
        (to_one_host(10, exchanges=2), 10),
        (to_one_host(10, exchanges=0), 0),  # nobody tells
        (to_one_host(10, exchanges=3), 0),  # those are kept
        (to_one_host(10, exchanges=3) + to_one_host(12, first=11), 12),
        (to_one_host(10, open_=5), 10),
        (to_one_host(10, open_=6), 0),  # many were needed at once
        (to_one_host(1, open_=6) + to_one_host(10, first=2), 0),  # so they were before
        (to_one_host(10, PROGRAM), 0),  # nobody knows whether that could keep them
        (to_one_host(10, dict(PROGRAM, client="urlopen")), 0),  # which cannot
        (to_one_host(9) + to_one_host(9, first=10, host="two:443"), 0),
        (to_one_host(9) + to_one_host(9, pid=2), 0),  # each process has to connect for itself
    ],
)
def test_connections_made_anew_one_after_the_other_are_told(events, number):
    counts = count_events(events)
    row = {"client": "httpx", "host": "one:443", "connections": number}
    assert counts["unkept"] == ([row] if number else [])
    report = judging.judge(examination_of(events), SPEC)
    assert report["exit_status"] == 0  # it is advice, and no illness
    assert [each["id"] for each in report["advice"]] == ["keep-connections"] * bool(number)
    for each in report["advice"]:
        assert f"httpx made {number} connections to one:443" in each["what"]
        # The handshakes' cost is that of these connections.
        assert f"({2 * number} ms of CPU, {0.25 * number:.2f} s in all)" in each["what"]


def test_the_host_that_was_met_anew_most_often_is_told_first():
    events = to_one_host(10, host="b") + to_one_host(10, first=20, host="a")
    events += to_one_host(11, first=40, host="c")
    assert [row["host"] for row in count_events(events)["unkept"]] == ["c", "a", "b"]


def test_connections_made_anew_are_told_once():
    """Not beside loads, headers or HTTP/2, which say as much."""
    ill = [*to_one_host(12), *repeated(12, HTTPX, first=20, ms=50), event("exit", cpu=900)]
    report = judging.judge(examination_of(ill), SPEC)
    assert "keep-one" in [each["id"] for each in report["advice"]]
    closed = [*to_one_host(12), *[closing("program", who=HTTPX)] * 3]
    of_http2 = [each | {"alpn": "h2"} if each["is"] == "end" else each for each in to_one_host(12)]
    for run, name in ((closed, "connection-close"), (of_http2, "one-connection")):
        report = judging.judge(examination_of(run), SPEC)
        assert [each["id"] for each in report["advice"]] == [name]


def closing(by, who=REQUESTS, c=1, pid=1, h=None):
    return event("closing", by=by, who=who, c=c, pid=pid, h=h)


def test_replies_that_end_their_connection_are_counted_by_who_wanted_it():
    events = [event("context", c=1, who=HTTPX, default=True), *connection(1, who=PROGRAM)]
    events += [closing("program"), closing("program"), closing("server", who=HTTPX, c=None)]
    row = its_row(count_events(events), "httpx")
    assert row["closed"] == {"program": 2, "server": 1}
    assert row["closed_at"] == [["program.py:1", 2], ["program.py:2", 1]]
    assert row["closers"] == 0  # nobody tells
    ended = [closing("program", h=h) for h in (1, 1, 2)] + [closing("program", h=1, pid=2)]
    assert its_row(count_events([*connection(1), *ended]))["closers"] == 3
    # A client that got a context of the program's own: its connections are the context's.
    own = [event("context", c=1, who=PROGRAM, default=True), *connection(1, who=HTTPX)]
    counts = count_events([*own, closing("server", who=HTTPX, c=None)])
    assert its_row(counts, None)["closed"] == {"server": 1}
    assert its_row(counts, "httpx")["closed"] == {}
    # Of plain HTTP, whoever else has connections: h11 does not tell which it is.
    counts = count_events([*connection(1), closing("program", who=HTTPX, c=None)])
    assert its_row(counts)["closed"] == {} and not its_row(counts, "httpx")["connections"]


@pytest.mark.parametrize(
    ("closed", "connections", "closers", "name"),
    [
        ({"program": 2}, 2, 0, "connection-close"),
        ({"program": 2}, 2, 1, "connection-close"),
        ({"program": 2}, 2, 2, "connection-close"),
        ({"program": 2, "server": 3}, 5, 5, "server-closes"),
        ({"program": 3, "server": 2}, 5, 1, "connection-close"),
        ({"program": 1}, 2, 1, None),
        ({"program": 2}, 1, 1, None),
        ({}, 5, 0, None),
    ],
)
def test_connections_that_end_with_each_reply_are_advised_on_from_two_on(
    closed, connections, closers, name
):
    row = dict(
        client="requests", closed=closed, closed_at=[["program.py:1", 9]], loads=3,
        connections=connections, closers=closers,
    )  # fmt: skip
    counts = dict(clients=[row], connections=2 * connections, handshake_ms=40.0, handshake_s=0.5)
    found = list(advice.advice_on_closings(Examination(counts=counts)))
    assert [each["id"] for each in found] == [name] * (name is not None)
    for each in found:  # half of all connections, and so of their cost
        assert "20 ms of CPU, 0.25 s in all" in each["what"] and "3 loads" in each["what"]
        # Without the header, too, each would be made anew.
        assert ("made for one" in each["what"]) == (closers == closed.get("program"))


def test_requests_and_exchanges_go_to_the_client_of_their_connection():
    counts = count_events(
        [
            event("request", c=9),  # of a context that nobody saw
            event("context", c=1, who=HTTPX, default=False),
            *connection(1, c=1, who=PROGRAM),
            event("request", c=1),
            event("request", c=1),
            event("request", c=1, pid=2),  # made before a fork
            event("exchange", h=1, n=5),
            event("exchange", h=2, n=50),
        ]
    )
    row = its_row(counts, "httpx")
    assert (row["requests"], row["exchanges"]) == (3, 5)


# ---------------------------------------------------------------- loops, memory and queues


def test_loads_on_a_loop_count_and_those_that_were_not_needed_while_others_waited():
    on = dict(loop=True, waiting=True)
    counts = count_events(
        [
            load(1, ms=8, since=1.000, t=1.010, **on),
            load(2, ms=7, since=1.013, t=1.021, **on),  # 3 ms later: they held it up as one
            load(3, ms=100, since=2.000, t=2.100, loop=True),  # nobody waited
            load(4, ms=1000, since=3.000, t=4.000),  # on no loop
            load(5, ms=6, since=5.000, t=5.007, **on),
        ]
    )
    loop = counts["on_loop"]
    assert (loop["loads"], loop["spare"], loop["waiting"], loop["ms"]) == (4, 3, 3, 121)
    assert (loop["held_ms"], loop["longest_ms"]) == (8 + 7 + 6, 21)
    assert loop["at"] == [["program.py:1", 4]]
    assert verdict_on_loop(counts) == HELD_UP


@pytest.mark.parametrize(
    ("second", "longest_ms"),
    [
        (dict(since=0.014, t=0.020), 20),  # 4 ms later: no break
        (dict(since=0.016, t=0.022), 10),  # 6 ms later: the first was the longest
        (dict(since=0.030, t=0.045), 15),  # the second is
        (dict(since=0.011, t=0.024, pid=2), 13),  # another process's
        (dict(since=0.011, t=0.024, waiting=False), 10),  # nobody waited for that one
    ],
)
def test_loads_hold_a_loop_up_as_one_where_they_follow_each_other(second, longest_ms):
    first = dict(since=0.000, t=0.010, loop=True, waiting=True)
    on_loop = count_events([load(1, **first), load(2, **dict(first, **second))])["on_loop"]
    assert on_loop["longest_ms"] == longest_ms
    # Who comes meanwhile has waited for all that was in a row.
    late = [load(1, **dict(first, waiting=False)), load(2, **dict(first, since=0.011, t=0.012))]
    assert count_events(late)["on_loop"]["longest_ms"] == 12


@pytest.mark.parametrize(
    ("spare", "held_ms", "longest_ms", "loads", "under_loop", "verdict"),
    [
        (2, 20, 5, 3, 0, HELD_UP),
        (1, 90, 90, 2, 0, FREE),
        (2, 19.9, 19.9, 3, 0, FREE),  # not for long
        (2, 90, 4.9, 30, 0, FREE),  # each for a moment, with turns between them
        (2, 0, 0, 3, 0, FREE),  # nobody waited
        (0, 0, 0, 0, 1, FREE),
        (0, 0, 0, 0, 0, DOES_NOT_APPLY),
    ],
)
def test_a_loop_is_held_up_by_two_loads_too_many_while_others_wait(
    spare, held_ms, longest_ms, loads, under_loop, verdict
):
    on_loop = dict(spare=spare, held_ms=held_ms, longest_ms=longest_ms, loads=loads)
    assert verdict_on_loop({"on_loop": on_loop, "under_loop": under_loop}) == verdict


@pytest.mark.parametrize(
    ("client", "exchanges", "verdict"),
    [
        ("redis", 9, FREE),  # its client is kept, and takes no context
        ("redis", 1, HELD_UP),  # a client for each command
        ("httpx", 9, HELD_UP),  # it could have had one
    ],
)
def test_what_a_kept_client_has_to_load_holds_up_nobody(client, exchanges, verdict):
    who = dict(PROGRAM, client=client, through=client)
    events = repeated(4, who, ms=30, loop=True, waiting=True, t=0.03)
    for h in range(1, 5):
        events += [event("exchange", h=h, n=exchanges)]
    assert verdict_on_loop(count_events(events)) == verdict


def test_blocks_of_a_loop_count_for_those_who_waited():
    def block(s, waiting):
        return event("block", s=s, waiting=waiting, who=REQUESTS, by="trio")

    blocked = count_events([block(0.50004, True), block(2.0, False)])["blocked"]
    assert (blocked["times"], blocked["s"], blocked["waiting_s"]) == (2, 2.5, 0.5)
    assert blocked["at"] == [["program.py:1", 2]]
    assert (blocked["by"], blocked["clients"]) == ("trio", [["requests", 2]])


def test_silences_of_a_loop_count_for_those_who_waited():
    def silence(s, waiting, who):
        return event("silence", s=s, waiting=waiting, who=who, by="gevent")

    events = [silence(0.25004, True, HTTPX), silence(0.5, True, HTTPX)]
    events += [silence(2.0, False, REQUESTS)]
    silent = count_events(events)["silent"]
    assert (silent["times"], silent["s"], silent["waiting_s"]) == (3, 2.75, 0.75)
    assert (silent["by"], silent["clients"]) == ("gevent", [["httpx", 2]])
    assert silent["at"] == [["program.py:2", 2]]


USED = {"used": True, "patched": False}
PATCHED = {"used": False, "patched": True}
LEFT_ALONE = {"used": False, "patched": False}


@pytest.mark.parametrize(
    ("blocked_s", "by", "silent_s", "loop", "verdict"),
    [
        (0.1, None, 0, None, BLOCKED),
        (0.09, "asyncio", 0.09, None, DOES_NOT_APPLY),
        (0, "asyncio", 0.1, None, BLOCKED),
        (0, "trio", 0.1, LEFT_ALONE, BLOCKED),
        # Of gevent, where the program uses it: a library may import it, and leave it alone.
        (0, "gevent", 0.1, None, DOES_NOT_APPLY),
        (0, "gevent", 0.1, LEFT_ALONE, DOES_NOT_APPLY),
        (0, "gevent", 0.1, USED, BLOCKED),
        (0, "eventlet", 0.1, PATCHED, BLOCKED),
        (0, "eventlet", 0.09, PATCHED, DOES_NOT_APPLY),
    ],
)
def test_a_loop_is_blocked_that_was_kept_from_others_for_long(
    blocked_s, by, silent_s, loop, verdict
):
    counts = {"blocked": {"waiting_s": blocked_s}, "silent": {"by": by, "waiting_s": silent_s}}
    assert (
        judging.judge_asyncio(Examination(counts=dict(counts, under_loop=0), loop=loop)) == verdict
    )
    under = FREE if verdict == DOES_NOT_APPLY else verdict
    assert judging.judge_asyncio(Examination(counts=dict(counts, under_loop=1), loop=loop)) == under


def test_waits_of_greenlets_count_as_standing_still_where_the_loop_did():
    def wait(s, stood):
        return event("wait", s=s, stood=stood, who=REQUESTS)

    greenlets = [event("greenlet", itself=False), event("greenlet", itself=True)]
    waits = [wait(0.25004, True), wait(0.25, True), wait(3.0, False)]
    stood = count_events([*greenlets, *waits])["stood"]
    assert (stood["waits"], stood["times"], stood["s"]) == (3, 2, 0.5)
    assert (stood["clients"], stood["at"]) == ([["requests", 2]], [["program.py:1", 2]])
    assert stood["fetched"] and stood["in_greenlets"]
    assert count_events(greenlets[::-1])["stood"]["in_greenlets"]
    assert not count_events([greenlets[0]])["stood"]["in_greenlets"]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, BLOCKED),
        ({"times": 1}, DOES_NOT_APPLY),
        ({"s": 0.09}, DOES_NOT_APPLY),
        ({"fetched": False}, DOES_NOT_APPLY),
        ({"patched": True}, DOES_NOT_APPLY),
        ({"used": False}, DOES_NOT_APPLY),
        ({"used": False, "in_greenlets": True}, BLOCKED),
        ({"times": 0, "in_greenlets": True}, FREE),
        ({"times": 0, "in_greenlets": True, "waits": 1}, DOES_NOT_APPLY),
        ({"times": 0}, DOES_NOT_APPLY),
        ({"times": 1, "in_greenlets": True}, DOES_NOT_APPLY),
    ],
)
def test_greenlets_block_each_other_where_the_loop_stood_twice(changed, verdict):
    its = dict(dict(waits=2, times=2, s=0.1, fetched=True, in_greenlets=False), **changed)
    loop = {"used": changed.get("used", True), "patched": changed.get("patched", False)}
    assert judging.judge_greenlets(Examination(counts={"stood": its}, loop=loop)) == verdict


def test_contexts_alive_at_once_are_the_most_and_memory_is_that_of_all_processes():
    counts = count_events(
        [
            load(1, alive=3, kib=[1024, 3072], since=0, t=1),
            load(2, alive=2, kib=[3072, 4096], since=2, t=3),
            load(1, alive=1, kib=[0, 1024000], since=0, t=1, pid=2),
        ]
    )
    assert (counts["alive"], its_row(counts)["alive"]) == (3, 3)
    assert counts["context_mib"] == 2 + 1 + 1000


@pytest.mark.parametrize(
    ("spans", "kib"),
    [
        ([], 0),
        ([[0, 1, 0, 10], [2, 3, 10, 30], [4, 5, 30, 60]], 60),
        ([[0, 2, 100, 300], [1, 3, 150, 400]], 300),  # at once: one growth
        ([[0, 9, 100, 300], [1, 2, 100, 200], [5, 6, 200, 250]], 200),  # within the first
        ([[0, 1, 300, 100], [2, 3, 100, 150]], 50),  # what was freed is no growth
        ([[0, 1, 300, 100]], 0),
    ],
)
def test_memory_grows_once_where_several_load_at_once(spans, kib):
    assert growth(spans) == growth(spans[::-1]) == kib


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (dict(alive=10, requests=None, kept=False), ONE_FOR_EACH),
        (dict(alive=9, requests=None, kept=False), FEW),
        # With a connection of requests that is kept: as many are usual.
        (dict(alive=99, requests=7, kept=True), FEW),
        (dict(alive=100, requests=7, kept=True), ONE_FOR_EACH),
        (dict(alive=10, requests=None, kept=True), ONE_FOR_EACH),
        # Threads that make a client each, once: it depends on what the loads take.
        (dict(alive=10, requests=None, kept=True, share=20), ONE_FOR_EACH),
        (dict(alive=99, requests=None, kept=True, share=19.9), FEW),
        (dict(alive=100, requests=None, kept=True, share=19.9), ONE_FOR_EACH),
        (dict(alive=10, requests=None, kept=False, share=19.9), ONE_FOR_EACH),
        (dict(alive=99, requests=7, kept=False, connections=2), FEW),  # of one session
        (dict(alive=10, requests=7, kept=False, connections=1), ONE_FOR_EACH),
        # Of a library that takes no context, each connection has one.
        (dict(client="redis", through="redis", alive=99, requests=None, kept=True), FEW),
        (dict(client="redis", through="redis", alive=100, requests=None, kept=True), ONE_FOR_EACH),
        (dict(client="redis", through="redis", alive=10, requests=None, kept=False), ONE_FOR_EACH),
    ],
)
def test_contexts_are_too_many_from_ten_on(row, verdict):
    row = dict(dict(client="requests", connections=1, share=50), **row)
    counts = {"clients": [row], "loads": 10, "sessions": 1, "pools": 0, "botocores": 0}
    counts["share"] = row.pop("share")
    assert verdict_on_contexts(counts) == verdict
    assert verdict_on_contexts(dict(counts, clients=[], loads=0)) == DOES_NOT_APPLY


def test_sessions_are_shared_where_there_are_twice_as_many_connections():
    total = {"sessions": 2, "pools": 3, "botocores": 4}
    assert is_shared({"client": "requests", "connections": 4}, total)
    assert not is_shared({"client": "requests", "connections": 3}, total)
    assert is_shared({"client": "urllib3", "connections": 6}, total)
    assert not is_shared({"client": "urllib3", "connections": 5}, total)
    assert is_shared({"client": "botocore", "connections": 8}, total)
    assert not is_shared({"client": "botocore", "connections": 7}, total)
    assert not is_shared({"client": "httpx", "connections": 50}, total)
    made = ["session"] * 2 + ["pool"] * 4 + ["botocore"] * 3
    counts = count_events([event(what) for what in made])
    assert (counts["sessions"], counts["pools"], counts["botocores"]) == (2, 4, 3)


def test_what_only_the_doctors_own_collection_freed_is_added_up():
    several = [event("collected", contexts=8, connections=3)] * 2
    counts = count_events([*several, event("collected", contexts=1, connections=0)])
    assert (counts["collected"], counts["dropped"]) == (17, 6)


def test_loops_and_what_brings_tls_of_its_own_are_named_once():
    events = [event("heartbeat", by=by) for by in ("trio", "asyncio", "trio")]
    events += [event("own tls", name=name) for name in ("grpc", "pycurl", "grpc")]
    counts = count_events([*events, event("truststore", where={"line": 3})])
    assert (counts["heartbeats"], counts["own_tls"]) == (["trio", "asyncio"], ["grpc", "pycurl"])
    assert counts["truststore"] == [{"line": 3}]


def test_what_was_not_seen_is_told_with_its_reason():
    events = [event("uncounted", why="too many"), event("unprobed", module="m", why="no such name")]
    counts = count_events([*events, event("injection", where={"line": 5})])
    assert (counts["uncounted"], counts["unprobed"]) == (["too many"], ["no such name"])
    assert counts["injections"] == [{"line": 5}]


def test_the_most_at_once_ends_what_ends_before_it_begins_the_next():
    assert most_at_once([]) == 0
    assert most_at_once([(0, 1), (1, 2), (2, 3)]) == 1
    assert most_at_once([(0, 2), (1, 3), (1.5, 1.75), (2, 4)]) == 3
    assert most_at_once([(0, 1), (1, 3), (2, 4)]) == 2


def test_a_wait_is_counted_without_the_loads_in_it():
    assert seconds((1, 5), []) == 4
    assert seconds((1, 5), [(0, 2), (3, 4), (4.5, 9), (6, 7)]) == 4 - 1 - 1 - 0.5
    assert seconds((1, 2), [(0, 3), (0, 3)]) == 0


def test_a_queue_is_of_other_threads_and_of_one_context():
    def shake(thread, since, t, end):
        return dict(thread=thread, since=since, t=t, end=end, by="truststore")

    three = [shake(1, 0, 0, 1), shake(2, 0, 1, 2), shake(3, 0, 2, 3)]
    queue = longest_queue({(1, 1): three, (1, 2): [shake(9, 0, 0, 9)]}, {})
    assert queue == dict(
        by="truststore", wanted=3, handshakes=3, peak=1, waited_s=3, behind_s=3
    )  # fmt: skip
    same = [dict(each, thread=1) for each in three]  # a thread does not wait for itself
    assert longest_queue({(1, 1): same}, {})["behind_s"] == 0
    part = longest_queue({(1, 1): three}, {(1, 1): [(0.5, 1.0)]})
    assert (part["waited_s"], part["behind_s"]) == (2, 2)  # each waited for half a second of it
    assert longest_queue({}, {}) is None
    unfinished = longest_queue({(1, 1): [dict(three[0], end=None)]}, {})
    assert (unfinished["handshakes"], unfinished["by"]) == (0, None)
    short = [shake(1, 0, 0, 0.12345), shake(2, 0, 0.12345, 0.5)]
    queue = longest_queue({(1, 1): short}, {})
    assert queue["waited_s"] == queue["behind_s"] == 0.123


def in_a_queue(c=1, pid=1):
    """Three threads that shake hands with one context, one second each, all wanted from 0 on."""
    spans = [(7, 0, 1), (8, 1, 2), (9, 2, 3)]
    values = dict(c=c, pid=pid, since=0, by="truststore")
    return [
        each
        for number, (thread, begin, end) in enumerate(spans)
        for each in connection(
            10 * c + number, t=begin, thread=thread, ended={"t": end}, **values
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("beside", "waited_s"),
    [
        ([], 3),
        # What is loaded into this context is no wait of its handshakes, as that into another is.
        ([load(1, since=0.5, t=1)], 2),
        ([load(2, since=0, t=3)], 3),
        # Another context, or another process, has a queue of its own.
        (connection(90, c=2, since=0, t=0, ended={"t": 9}), 3),
        (connection(90, pid=2, since=0, t=0, ended={"t": 9}), 3),
        # Who did not wait, or has not ended, is not in it.
        (connection(90, since=None, t=0, ended={"t": 9}), 3),
        (connection(90, since=0, t=0, end=False), 3),
    ],
)
def test_a_run_in_which_handshakes_waited_for_each_other_is_ill(beside, waited_s):
    counts = count_events([*beside, *in_a_queue()])
    assert counts["queue"] == dict(
        by="truststore", wanted=3, handshakes=3, peak=1, waited_s=waited_s, behind_s=waited_s
    )
    assert verdict_on_handshakes(counts) == "one at a time"


@pytest.mark.parametrize(
    ("changed", "peak", "is_ill"),
    [
        ({}, 1, True),
        ({"peak": 2}, 2, False),
        ({"wanted": 2}, 1, False),
        ({"behind_s": 0.19, "waited_s": 0.19}, 1, False),
        ({"behind_s": 0.2, "waited_s": 0.4}, 1, True),
        ({"behind_s": 0.2, "waited_s": 0.41}, 1, False),  # it waited more for something else
    ],
)
def test_handshakes_are_one_at_a_time_where_three_waited(changed, peak, is_ill):
    queue = dict(dict(peak=1, wanted=3, behind_s=0.2, waited_s=0.2), **changed)
    verdict = verdict_on_handshakes({"queue": queue, "peak": peak})
    assert (verdict == "one at a time") is is_ill
    if not is_ill:
        assert verdict == ("at once" if peak > 1 else "does not apply")
    assert verdict_on_handshakes({"queue": None, "peak": 1}) == "does not apply"


def test_places_are_counted_up_to_twenty_of_them():
    places = []
    for number in [*range(25), 0, None]:
        note_place(places, number)
    assert len(places) == 20 and places[0] == [0, 2] and places[1] == [1, 1]


# ---------------------------------------------------------------- judging


def examination_of(events, **changed):
    """What a run found, for `judge`: no loop, and no advice to be tried."""
    usual = dict(
        known=["requests"], program="p.py", http={"clients": [], "offers": None}, openssl={},
        python="3.13.0", counts=count_events(events),
        ended={"raised": None, "signal": None, "status": 0, "why": None},
    )  # fmt: skip
    return Examination(**dict(usual, **changed))


SPEC = {"share": 5.0, "fail_on": ["blocked", "contexts", "handshakes", "loads", "loop-loads"]}
ILL = [*repeated(3, HTTPX, ms=100), event("exit", cpu=400)]
WELL = [load(), *connection(1), event("exit", cpu=400)]


@pytest.mark.parametrize(
    ("events", "ended", "spec", "status"),
    [
        (ILL, {}, {}, 1),
        (WELL, {}, {}, 0),
        ([], {}, {}, 2),  # nothing was seen
        (ILL, {}, {"fail_on": ["blocked", "contexts"]}, 0),
        (ILL, {}, {"share": 60.0}, 0),
        (WELL, {"raised": "KeyError"}, {}, 2),
        (ILL, {"raised": "KeyError"}, {}, 1),
        (ILL, {"signal": 15}, {}, 143),
        # One that was killed is no healthy one; but it may end with a status of its own.
        (WELL, {"status": -9}, {}, 2),
        (ILL, {"status": -9}, {}, 1),
        (WELL, {"status": 3}, {}, 0),
        (WELL, {"status": None}, {}, 0),
        (WELL, {"status": -15, "why": "ended after 5 s, as --patience says"}, {}, 0),
        (WELL, {"status": -15, "why": "interrupted", "signal": 15}, {}, 143),
    ],
)
def test_the_exit_status_is_that_of_the_worst_that_was_asked_for(events, ended, spec, status):
    usual = {"raised": None, "signal": None, "status": 0, "why": None}
    found = examination_of(events, ended=dict(usual, **ended))
    report = judging.judge(found, dict(SPEC, **spec))
    assert report["exit_status"] == status
    assert report["share_stated"] == spec.get("share", 5.0)
    verdict = report["verdicts"]["certificate loads"]
    told = {str(ILL): REPEATED, str(WELL): ONCE, "[]": UNSEEN}[str(events)]
    assert verdict == (ONCE if spec.get("share") else told)


def test_of_a_program_whose_every_connection_failed_nothing_else_is_concluded():
    failing = [*repeated(9, HTTPX, ms=100, loop=True, waiting=True, t=1, alive=50)]
    broken = [
        dict(each, ok=False, why="refused") if each["is"] == "end" else each for each in failing
    ]
    ill = judging.judge(examination_of([*failing, event("exit", cpu=900)]), SPEC)
    assert ill["verdicts"]["certificate loads"] == REPEATED and ill["exit_status"] == 1
    assert ill["verdicts"]["loads on the loop"] == HELD_UP
    assert ill["verdicts"]["contexts"] == ONE_FOR_EACH
    report = judging.judge(examination_of([*broken, event("exit", cpu=900)]), SPEC)
    assert report["verdicts"]["certificate loads"] == UNSEEN and report["exit_status"] == 2
    assert {
        report["verdicts"][each] for each in ("loads on the loop", "contexts", "handshakes")
    } == {DOES_NOT_APPLY}
    assert report["advice"] == []


@pytest.mark.parametrize(
    ("patched", "injected", "advised"),
    [(True, True, ["not-together"]), (True, False, []), (False, True, [])],
)
def test_a_patch_and_truststore_are_named_where_every_connection_failed(patched, injected, advised):
    events = connection(1, ok=False, ended={"why": "recursion"})
    events += [event("truststore", where={})] if injected else []
    loop = {"used": True, "patched": patched, "name": "gevent"}
    report = judging.judge(examination_of(events, loop=loop), SPEC)
    assert [each["id"] for each in report["advice"]] == advised
    well = judging.judge(examination_of([*events, *connection(2)], loop=loop), SPEC)
    assert well["advice"] == []


def test_a_loop_is_free_beside_tls_of_its_own_only_where_its_heartbeat_was_heard():
    under, own = connection(1, loop=True), event("own tls", name="grpc")
    heard = event("heartbeat", by="asyncio")

    def told(*events):
        return judging.judge(examination_of(events), SPEC)["verdicts"]["event loop"]

    assert told(*under) == told(*under, own, heard) == FREE
    assert told(*under, own) == CANNOT_TELL
    # One that was not asked about at all, or is blocked, stays so.
    assert told(own) == DOES_NOT_APPLY
    block = event("block", s=1.0, waiting=True, who=REQUESTS, by="asyncio")
    assert told(*under, own, block) == BLOCKED


@pytest.mark.parametrize(
    ("frames", "rests"),
    [
        ([("/lib/selectors.py", "select"), ("/lib/asyncio/base_events.py", "_run_once")], True),
        ([("C:\\lib\\selectors.py", "select"), ("base_events.py", "_run_once")], True),
        # A driver waits by a selector of its own, in the thread of the loop.
        ([("/lib/selectors.py", "select"), ("/site/psycopg/waiting.py", "wait_conn")], False),
        ([("/lib/selectors.py", "select")], False),
        ([("/lib/selectors.py", "register"), ("base_events.py", "_run_once")], False),
        ([("/site/gevent/hub.py", "run")], True),
        ([("/site/twisted/internet/epollreactor.py", "doPoll"), ("base.py", "mainLoop")], True),
        ([("/site/mine/epollreactor.py", "doPoll"), ("base.py", "mainLoop")], False),
    ],
)
def test_a_loop_rests_where_it_waits_for_its_own_sockets(frames, rests):
    assert heartbeat.is_resting(frames) is rests


class Watched:
    """A loop and its heartbeat, a look each 10 ms; what was noted of it."""

    def __init__(self, monkeypatch):
        self.noted, self.turn_now, self.used_s, self.passed_s = [], 0, 0.0, 0.0
        note = lambda _, **values: self.noted.append(values)  # noqa: E731
        stack = types.SimpleNamespace(active=True, note=note, callers=lambda _: PROGRAM)
        self.beats = heartbeat.Heartbeat(stack)
        self.beats.wants_processor = lambda _: False
        self.beats.times = lambda _: (self.used_s, 0.0, self.used_s)
        self.loop = types.SimpleNamespace(name="asyncio", waits=lambda: True)
        self.loop.turn = lambda: self.turn_now
        self.frames = {}
        frames = types.SimpleNamespace(_current_frames=lambda: self.frames)
        monkeypatch.setattr(heartbeat, "sys", frames)

    def look(self, turn, place, used_s=0.0):
        path = "/lib/selectors.py" if place == "select" else "program.py"
        code = compile("", path, "exec").replace(co_name=place)
        turn_of_loop = compile("", "/lib/asyncio/base_events.py", "exec").replace(
            co_name="_run_once"
        )
        back = types.SimpleNamespace(f_code=turn_of_loop, f_back=None)
        self.frames[1] = types.SimpleNamespace(f_code=code, f_lasti=7, f_back=back)
        self.turn_now = turn
        self.used_s += used_s
        self.beats.see(1, self.loop, 0.01)


@pytest.mark.parametrize(
    ("looks", "silences_ms"),
    [
        ([(1, "ask")] * 9, [80]),
        ([(1, "ask")] * 5, []),  # too short: 40 ms
        ([(1, "ask"), (1, "answer")] * 5, [90]),  # one turn, whatever it does
        ([(turn, "ask") for turn in range(9)], [80]),  # in that place again, turn by turn
        ([(turn, f"ask {turn}") for turn in range(9)], []),
        ([(turn, "select" if turn % 4 == 3 else "ask") for turn in range(16)], []),  # it rests
        ([(turn, "ask", 0.006) for turn in range(20)], []),  # it computes there
        ([(turn, "ask", 0.004) for turn in range(20)], [114]),
        ([(1, "ask", 0.004) for _ in range(20)], [114]),
        ([(1, "ask", 0.006) for _ in range(20)], [76]),  # in one turn it waits nevertheless
    ],
)
def test_a_silence_is_a_turn_or_several_that_wait_in_one_place(looks, silences_ms, monkeypatch):
    watched = Watched(monkeypatch)
    for look in looks:
        watched.look(*look)
    watched.beats.end(1, watched.loop)
    assert [round(1000 * noted["s"]) for noted in watched.noted] == silences_ms
    assert all(noted["waiting"] and noted["who"] == PROGRAM for noted in watched.noted)


def test_a_silence_that_goes_on_to_the_end_of_its_loop_is_noted(monkeypatch):
    watched = Watched(monkeypatch)
    watched.beats.begin = lambda *_: None
    watched.beats.ident = lambda: 1
    leave = watched.beats.watch(watched.loop)
    for _ in range(9):
        watched.look(1, "ask")
    assert [each for each in watched.noted if "s" in each] == []
    leave()
    assert [each["s"] for each in watched.noted if "s" in each] == [0.08]


def test_tasks_that_do_not_wait_for_the_one_that_runs_are_beside_it():
    told = {}

    async def run(name):
        await asyncio.sleep(0)
        told[name] = len(state.tasks_beside(asyncio.get_running_loop()))

    async def alone():
        await run("alone")
        await asyncio.create_task(run("awaited"))
        await asyncio.gather(run("gathered"))
        other = asyncio.create_task(asyncio.sleep(60))
        await asyncio.create_task(run("beside another"))
        other.cancel()
        await asyncio.gather(run("two"), asyncio.sleep(0.01))

    asyncio.run(alone())
    assert told == {"alone": 0, "awaited": 0, "gathered": 0, "beside another": 1, "two": 1}


def test_a_reactor_is_waited_for_by_calls_that_are_due_and_by_other_threads(monkeypatch):
    monkeypatch.setattr(state, "watched_sockets", set)

    def waits(*due_at, threads=()):
        timers = [types.SimpleNamespace(getTime=lambda at=at: at) for at in due_at]
        reactor = types.SimpleNamespace(seconds=lambda: 5, threadCallQueue=list(threads))
        reactor._pendingTimedCalls, reactor._newTimedCalls = timers[:1], timers[1:]
        return state.reactor_waits(reactor)

    assert not waits() and not waits(6, 7)
    assert waits(5) and waits(6, 4) and waits(threads=["call"])
    monkeypatch.setattr(state, "watched_sockets", lambda: {"listening"})
    assert waits()


def test_without_a_run_a_loop_that_awaits_has_no_all_clear():
    def told(**found):
        http = {"offers": None, "clients": []}
        report = judging.judge(Examination(known=["requests"], http=http, **found), SPEC)
        return report["verdicts"]["event loop"], report["exit_status"]

    def tried(verdict):
        row = {"client": "requests", "verdict": verdict, "imported": True, "error": None,
               "https": None, "http": None}  # fmt: skip
        return {"loop": {"name": "gevent", "patched": True, "used": True}, "clients": [row]}

    assert told() == (DOES_NOT_APPLY, 0) and told(unwatched=["asyncio"]) == (CANNOT_TELL, 2)
    assert told(own_tls=["psycopg2"]) == (DOES_NOT_APPLY, 0)
    assert told(**tried(FREE)) == (FREE, 0)
    assert told(**tried(FREE), unwatched=["trio"]) == (CANNOT_TELL, 2)
    assert told(**tried(FREE), own_tls=["psycopg2"]) == (CANNOT_TELL, 2)


GEVENT = {"name": "gevent", "patched": False, "used": True}


def its_client(verdict, error=""):
    return {"client": "requests", "verdict": verdict, "imported": True, "error": error}


def test_a_client_that_no_greenlet_waited_for_blocks_no_loop():
    """Threads made all connections, though the program uses gevent as well."""
    found = examination_of(WELL, loop=GEVENT, clients=[its_client(UNPATCHED)])
    report = judging.judge(found, SPEC)
    assert (report["verdicts"]["event loop"], report["exit_status"]) == (DOES_NOT_APPLY, 0)
    assert report["clients"] == [its_client(DOES_NOT_APPLY)] and report["advice"] == []


def test_what_blocks_greenlets_is_advised_on_by_what_was_tried_and_by_what_was_heard():
    events = [*WELL, event("greenlet", itself=True)]
    events += [event("silence", s=1.0, waiting=True, who=HTTPX, by="gevent")]
    found = examination_of(events, loop=GEVENT, clients=[its_client(UNPATCHED)])
    report = judging.judge(found, SPEC)
    assert report["verdicts"]["event loop"] == BLOCKED
    assert [each["id"] for each in report["advice"]] == ["patch", "in-a-thread"]


@pytest.mark.parametrize(
    ("changed", "advised"),
    [
        ({"clients": [its_client(CANNOT_TELL, "it broke")]}, ["not-together"]),
        ({"clients": [its_client(CANNOT_TELL, "it broke")], "provides": []}, []),
        ({"clients": [its_client(CANNOT_TELL)]}, []),  # nothing failed
        ({"clients": [its_client(FREE, "it broke")]}, []),
        ({"clients": [its_client(CANNOT_TELL, "RecursionError: recursion")]}, ["patch-first"]),
        ({"clients": [its_client(UNPATCHED)]}, ["patch", "run-it"]),
        ({}, ["run-it"]),
    ],
)
def test_without_a_run_it_is_the_trials_that_are_advised_on(changed, advised):
    row = {"client": "requests", "imported": True, "adapter": False, "error": None,
           "by_connection": [1, 1, 1], "by_call": False}  # fmt: skip
    usual = dict(
        known=["requests"], http={"clients": [], "offers": None}, loop=dict(GEVENT, patched=True),
        provides=[{"class": "truststore.SSLContext"}], loads=[row] if "run-it" in advised else [],
    )  # fmt: skip
    found = Examination(**dict(usual, **changed))
    assert [each["id"] for each in judging.judge(found, SPEC)["advice"]] == advised


def test_a_program_without_a_client_that_the_doctor_knows_has_no_all_clear():
    http = {"clients": [], "offers": None}
    report = judging.judge(Examination(known=[], http=http), SPEC)
    assert (report["verdicts"]["certificate loads"], report["exit_status"]) == (UNSEEN, 2)
    assert {"requests", "httpx", "aiohttp"} < set(report["known_to_the_doctor"])


@pytest.mark.parametrize(
    ("events", "loop", "loads", "status"),
    [
        (connection(1, loop=True), CANNOT_TELL, CANNOT_TELL, 2),
        (WELL, DOES_NOT_APPLY, CANNOT_TELL, 2),
        (ILL, DOES_NOT_APPLY, REPEATED, 1),
    ],
)
@pytest.mark.parametrize("unseen", [{"left": 1}, {"uncounted": ["after 400,000 events"]}])
def test_of_what_nobody_saw_to_its_end_there_is_no_all_clear(unseen, events, loop, loads, status):
    found = examination_of(events)
    found.counts.update(unseen)
    report = judging.judge(found, SPEC)
    verdicts = report["verdicts"]
    assert (verdicts["event loop"], verdicts["certificate loads"]) == (loop, loads)
    assert report["exit_status"] == status


@pytest.mark.parametrize(
    ("blocked_s", "silent_s", "names"),
    [
        (0.2, 0, "requests waited"),
        (0.2, 3.0, "requests waited"),  # which the heartbeat has heard, too
        (0.09, 3.0, "httpx waited"),
    ],
)
def test_what_blocked_a_loop_is_what_is_named(blocked_s, silent_s, names):
    values = dict(waiting=True, by="asyncio")
    events = [event("block", s=blocked_s, who=REQUESTS, **values)]
    events += [event("silence", s=silent_s, who=HTTPX, **values)] if silent_s else []
    report = judging.judge(examination_of([*events, *connection(1)]), SPEC)
    [only] = report["advice"]
    assert only["id"] == "asyncio" and only["what"].startswith(names)


def test_what_risks_nothing_is_advised_first():
    events = [*repeated(5, HTTPX, ms=100, loop=True, waiting=True, t=1), event("exit", cpu=400)]
    events += [closing("program", who=HTTPX)] * 2
    report = judging.judge(examination_of(events), SPEC)
    assert [each["id"] for each in report["advice"]] == [
        "connection-close",
        "keep-one",
        "loop-loads",
    ]


def test_repeated_loads_are_advised_on_however_short_they_are():
    """Two of 5 ms are half of what a program took that runs for 20."""
    short = [*repeated(3, HTTPX, ms=5), event("exit", cpu=20)]
    report = judging.judge(examination_of(short), SPEC)
    assert report["verdicts"]["certificate loads"] == REPEATED
    assert [each["id"] for each in report["advice"]] == ["keep-one"]


@pytest.mark.parametrize(("status", "words"), [(-9, "killed by signal 9"), (3, "exit status 3")])
def test_how_a_program_ended_is_told(status, words):
    ended = {"raised": None, "signal": None, "why": None, "status": status}
    told = judging.judge(examination_of(ILL, ended=ended), SPEC)
    assert any(words in line.replace("\n    ", " ") for line in count_lines(told))


def test_the_worst_verdict_is_the_one_that_is_told():
    worst = judging.worst
    assert worst([]) == DOES_NOT_APPLY
    assert worst([FREE, BLOCKED, CANNOT_TELL]) == BLOCKED
    assert worst([FREE, CANNOT_TELL]) == CANNOT_TELL
    assert worst([DOES_NOT_APPLY, FREE]) == FREE


@pytest.mark.parametrize(
    ("verdict", "imported", "used", "told"),
    [
        (BLOCKED, True, True, BLOCKED),
        (UNPATCHED, True, True, BLOCKED),
        (UNPATCHED, True, False, CANNOT_TELL),
        (UNPATCHED, False, True, DOES_NOT_APPLY),  # of a stand-in
        (BLOCKED, False, True, CANNOT_TELL),
        (FREE, False, True, FREE),
    ],
)
def test_a_loop_is_judged_by_its_clients_and_by_who_uses_it(verdict, imported, used, told):
    clients = [{"verdict": verdict, "imported": imported}]
    examination = Examination(clients=clients, loop={"used": used})
    assert judging.judge_loop(examination) == told
    examination.untried = "why"
    assert judging.judge_loop(examination) == CANNOT_TELL
    # A program that was ended, as servers are: what its greenlets did has the say.
    ran_on = {"in_greenlets": True, "waits": 2, "times": 0}
    for changed, of_run in (({}, DOES_NOT_APPLY), ({"times": 1}, CANNOT_TELL)):
        examination.counts = {"stood": dict(ran_on, **changed)}
        assert judging.judge_loop(examination) == of_run
    assert judging.judge_loop(Examination()) == DOES_NOT_APPLY


def test_greenlets_that_waited_elsewhere_do_not_use_what_is_unpatched_here():
    stalls = {"fetched": True, "in_greenlets": True, "waits": 2, "times": 0}
    row = {"client": "requests", "verdict": UNPATCHED, "error": None}
    seen = judging.seen_at_work(row, {"connections": 3, "stood": stalls})
    assert seen == dict(row, verdict=DOES_NOT_APPLY, error=seen["error"])
    assert "in this process" in seen["error"]
    for changed in ({"in_greenlets": False}, {"waits": 1}, {"times": 1}):
        counts = {"connections": 3, "stood": dict(stalls, **changed)}
        assert judging.seen_at_work(row, counts) == row
    for verdict in (BLOCKED, FREE):
        row = {"verdict": verdict}
        assert judging.seen_at_work(row, {"connections": 3, "stood": stalls}) == row


def test_threads_that_fetched_are_no_greenlets_that_wait(monkeypatch):
    nobody = {"fetched": False, "in_greenlets": False, "waits": 0, "times": 0}
    counts = {"connections": 3, "stood": nobody}
    none = dict(counts, connections=0)
    row = {"client": "requests", "verdict": UNPATCHED, "error": None}
    assert judging.seen_at_work(row, counts) == dict(row, verdict=DOES_NOT_APPLY)
    # Nobody knows whether it would have patched before its first connection.
    early = judging.seen_at_work(row, none)
    assert early == dict(row, verdict=CANNOT_TELL, error=early["error"])
    assert "no connection was made" in early["error"]
    fetched = {"stood": dict(nobody, fetched=True)}
    for greenlets in (dict(counts, **fetched), dict(none, **fetched)):
        assert judging.seen_at_work(row, greenlets) == row
    for verdict in (BLOCKED, FREE):
        assert judging.seen_at_work({"verdict": verdict}, counts) == {"verdict": verdict}
        assert judging.seen_at_work({"verdict": verdict}, none) == {"verdict": verdict}
    # Python 2.7 does not say which threads are greenlets.
    monkeypatch.setattr(judging, "PY2", True)
    assert judging.seen_at_work(row, counts) == row


def trial(effective, peak, gap, requests=2, delay_s=0.4):
    return dict(
        requests=requests, delay_s=delay_s, effective_concurrency=effective, peak_in_flight=peak,
        longest_gap_s=gap,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("trials", "verdict"),
    [
        ([trial(1.5, 2, 0)], FREE),
        ([trial(1.49, 2, 0)], None),
        ([trial(1.02, 1, 0.37)] * 2, BLOCKED),
        ([trial(1.02, 1, 0.37)], None),  # one is not enough
        ([trial(1.03, 1, 0.4)] * 2, None),
        ([trial(1.0, 2, 0.4)] * 2, None),
        ([trial(1.0, 1, 0.35)] * 2, None),
        ([trial(1.0, 1, 0.4), trial(1.5, 2, 0.0)], FREE),
        ([trial(1.0, 1, 0.19, requests=1)], FREE),
        ([trial(1.0, 1, 0.2, requests=1)], None),
        ([trial(9.0, 1, 0.4, requests=1)] * 2, BLOCKED),
    ],
)
def test_trials_settle_whether_a_read_blocks_at_their_limits(trials, verdict):
    assert blocking.verdict_of(trials) == verdict


def test_bounds_leave_out_the_least_and_the_most_of_eleven():
    assert loads.bounds([5, 1, 9]) == [1, 9]
    assert loads.bounds(range(11)) == [1, 9]
    assert loads.bounds(range(10)) == [0, 9]


def test_rows_of_loads_count_for_clients_of_the_program_alone():
    def row(client, imported=True, adapter=False, error=None):
        return dict(client=client, imported=imported, adapter=adapter, error=error)

    def judged(*rows, program="p"):
        return [each["client"] for each in loads.judged_rows(rows, program)]

    assert judged(row("requests"), row("urllib3"), row("httpx", imported=False)) == ["requests"]
    assert judged(row("urllib3"), row("httpx")) == ["urllib3", "httpx"]
    assert judged(row("requests"), row("its adapter", adapter=True)) == ["its adapter"]
    assert judged(row("requests"), row("its adapter", adapter=True, error="e")) == ["requests"]
    alone = row("requests", imported=False), row("httpx", imported=False)
    assert judged(*alone) == [] and judged(*alone, program=None) == ["requests"]
