"""What follows from rows and profiles that are written down here: no stack runs."""

import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook.cases.fetching import (
    explorer,
    modes,
    observations,
    processor_time,
    profiles,
    runs,
    trust,
    verdicts_under_load,
)
from casebook.cases.fetching.observations import Observation
from casebook.errors import UsageError
from casebook.laboratory import machine_files, reference
from casebook.places import PROBES

# ---------------------------------------------------------------- profiles


def line(place, calls, primitive, own_s, all_s, callers=()):
    """A line of a profile; callers: (place, calls, primitive calls, own time, time)."""
    file, at, function = place
    row = {"file": file, "line": at, "function": function, "nc": calls, "cc": primitive}
    called = [[*who, few, many, own, whole] for who, many, few, own, whole in callers]
    return row | {"tt": own_s, "ct": all_s, "callers": called}


def profile(*lines, source="live"):
    return Observation(
        stack="s", kind="profile", n=2, delay_s=0.1, python="3", steps="", measured_at="today",
        source=source, answer={"profile": list(lines), "wall_s": 1.0},
    )  # fmt: skip


WAIT = ("urllib3/util/wait.py", 10, "wait_for_read")
WRAP = ("urllib3/contrib/pyopenssl.py", 20, "wrap_socket")
RECV = ("urllib3/contrib/pyopenssl.py", 30, "recv_into")
OTHER = ("requests/other.py", 40, "recv_into")
POLL = ("~", 0, "<method 'poll' of 'select.poll' objects>")
MAKE = ("~", 0, "<built-in method select.poll>")
SEEN = profile(
    line(WAIT, 9, 9, 0.25, 3.0, [(WRAP, 4, 4, 0.1, 1.0), (RECV, 5, 5, 0.15, 2.0)]),
    line(RECV, 10, 5, 0.5, 2.5, [(("a.py", 1, "read"), 5, 5, 0.2, 2.5), (RECV, 5, 0, 0.3, 2.0)]),
    line(OTHER, 3, 1, 0.0, 0.0, [(OTHER, 2, 0, 0.0, 0.0)]),
    line(POLL, 9, 9, 2.75, 2.75),
    line(MAKE, 9, 9, 0.125, 0.125),
)


def test_waits_are_told_by_who_calls_and_times_by_their_column():
    assert profiles.waited(SEEN) == {
        "handshakes": 4,
        "responses": 5,
        "all": 9,
        "response_s": 2.0,  # the whole time of those calls, and not their own
        "again": 5,  # of pyOpenSSL's alone
        "poll_s": 2.75,  # and not what makes the object
        "all_s": 0.25 + 0.5 + 2.75 + 0.125,
    }
    [row] = profiles.waits({"this": SEEN}).to_dict("records")
    assert row == {"profile": "this", "handshakes": 4, "responses": 5, "all": 9, "source": "live"}


def test_callers_come_by_their_calls_and_say_whether_it_called_itself():
    frame = profiles.callers(SEEN, "recv_into", "contrib/pyopenssl.py")
    columns = ["caller", "calls", "cumtime_s", "by_itself"]
    assert frame[columns].to_numpy().tolist() == [
        ["read", 5, 2.5, False],
        ["recv_into", 5, 2.0, True],
    ]
    several = profiles.callers(SEEN, ["recv_into", "wait_for_read"])
    assert list(several["calls"]) == [5, 5, 5, 4, 2]


def test_calls_are_written_as_pstats_writes_them_and_added_up_by_name():
    assert profiles.counts(profiles.line(SEEN, "recv_into", "contrib")) == "10/5"
    assert profiles.counts(profiles.line(SEEN, "wait_for_read")) == "9"
    assert profiles.calls_of(SEEN, "recv_into") == 13
    assert profiles.calls_of(SEEN, "recv_into", "requests/") == 3


def test_profiles_side_by_side_are_those_with_the_largest_own_times_of_each():
    other = profile(
        line(WAIT, 1, 1, 0.5, 0.5),
        line(POLL, 2, 2, 0.0625, 0.0625),
        line(("~", 0, "<function 'poll' of 'x'>"), 3, 1, 0.0625, 0.0625),
        source="reference",
    )
    both = profiles.side_by_side({"one": SEEN, "two": other}, top=1)
    assert both["where"].tolist() == ["poll, built in", "urllib3/util/wait.py:10(wait_for_read)"]
    assert both["one, own time, s"].tolist() == [2.75, 0.25]
    assert both["two, own time, s"].tolist() == [0.125, 0.5]  # two built-ins of one bare name
    assert both["two, calls"].tolist() == ["5/3", "1"]
    assert set(both["source"]) == {"reference"}  # where one of them is
    three = profiles.side_by_side({"one": SEEN}, top=3)
    assert three["where"].tolist()[1:] == [
        f"{RECV[0]}:30(recv_into)",
        f"{WAIT[0]}:10(wait_for_read)",
    ]


# ---------------------------------------------------------------- what was recorded


def test_what_was_observed_in_another_way_does_not_stand_in(monkeypatch, tmp_path):
    monkeypatch.setattr(machine_files, "folder", lambda: tmp_path)
    rows = [{"page": 0, "event": "wait", "start_s": 0.0, "end_s": 1.0}]
    asked = dict(kind="timeline", steps=["grequests"], n=3, delay_s=0.1)
    how = dict(client="loop", scheme="http", trust="bundle")
    seen = dict(
        stack="stage-1-today", python="3.11", measured_at="2026-01-01T00:00:00Z", source="live",
        kind="timeline", steps="grequests", n=3, delay_s=0.1, answer={"timeline": rows},
    )  # fmt: skip
    parameters = dict(n=3, delay_s=0.1, client="loop", trust="bundle", gather="timeline")
    answer = seen | {"asked": ["fetch", ["stage-1-today", "grequests"], parameters, "http"]}
    machine = machine_files.Machine(reference.NAME, {"cores": 2}, [answer])
    machine_files.save(machine, reference.file())
    found = observations.recorded("stage-1-today", **asked | how)
    assert found.answer["timeline"] == rows and found.instead == ""
    for otherwise in (
        {"client": "requests"},
        {"scheme": "https"},
        {"trust": "authority"},
        {"steps": ["patch_all"]},
        {"kind": "profile"},
    ):
        assert observations.recorded("stage-1-today", **asked | how | otherwise) is None, otherwise
    assert observations.recorded("stage-2-today", **asked | how) is None


# ---------------------------------------------------------------- processor time


def test_the_parts_of_a_fetch_are_shares_of_their_own_program(monkeypatch):
    programs = pd.DataFrame(
        {
            "stack": ["stock", "cured"],
            "n": [100, 50],
            "parts": [
                {"load": 0.3, "handshake": 0.1, "requests": 0.1},
                {"shared_context": 0.05, "http": 0.15},
            ],
        }
    )
    monkeypatch.setattr(processor_time, "_programs", lambda *_, **__: programs.copy())
    frame = processor_time.by_part(["stock", "cured"]).set_index(["stack", "part"])
    assert frame.loc[("stock", "the certificates"), "share"] == pytest.approx(0.6)
    assert frame.loc[("stock", "the certificates"), "cpu_ms"] == pytest.approx(3.0)
    assert frame.loc[("stock", "requests"), "cpu_ms"] == pytest.approx(1.0)
    assert frame.loc[("cured", "the adapter"), "share"] == pytest.approx(0.25)
    assert frame.loc[("cured", "http.client"), "cpu_ms"] == pytest.approx(3.0)
    assert frame.loc[("stock", "the adapter"), "share"] == 0


def stack_of(*modules, innermost="read"):
    """Frames, the innermost first, of functions of these modules."""
    frame = None
    for module in reversed(modules):
        code = SimpleNamespace(co_name=innermost)
        frame = SimpleNamespace(f_code=code, f_globals={"__name__": module}, f_back=frame)
    return frame


def test_time_is_charged_to_the_innermost_package(monkeypatch):
    monkeypatch.syspath_prepend(str(PROBES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import whole_program

    part = whole_program.part_of
    assert part(stack_of("ssl", "urllib3.connection", "requests.api", "__main__")) == "urllib3"
    assert part(stack_of("http.client", "urllib3.connection", "requests.api")) == "http"
    assert part(stack_of("gevent._socket3", "urllib3.util", "grequests")) == "gevent"
    assert part(stack_of("counting", "urllib3.util.ssl_", "shared_context")) == "load"
    shaking = stack_of("ssl", "shared_context", innermost="do_handshake")
    assert part(shaking) == "handshake"
    assert part(stack_of("json", "__main__")) == part(None) == "others"


# ---------------------------------------------------------------- trust and the explorer


@pytest.mark.parametrize(
    ("name", "verify", "has_bundle", "system"),
    [
        ("authority", "ca.pem", False, None),
        ("bundle", True, True, "full-bundle.pem"),
        ("path", "full-bundle.pem", True, "full-bundle.pem"),
        ("off", False, True, "full-bundle.pem"),
        ("off-hidden", False, True, "nothing"),
    ],
)
def test_each_trust_is_as_its_table_says(tmp_path, name, verify, has_bundle, system):
    authority = tmp_path / "ca.pem"
    authority.write_text("-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n")
    told = trust.of_name(name, authority, tmp_path)
    named = Path(told.verify).name if isinstance(told.verify, str) else told.verify
    assert named == verify and bool(told.bundle) == has_bundle
    if system is None:
        assert told.variables == {}
        return
    assert Path(told.variables["SSL_CERT_FILE"]).name == system
    assert not Path(told.variables["SSL_CERT_DIR"]).exists()
    assert Path(told.bundle).read_text() == "".join(trust.certificates()) + authority.read_text()
    with pytest.raises(UsageError, match="https"):
        trust.of_name(name, None, tmp_path)


def test_a_timeline_is_serial_by_its_own_waits_and_published_for_some_sizes_only():
    def shown(rows, n=10, scheme="https", combination=explorer.COMBINATIONS[1]):
        rows = [{"page": p, "event": "wait", "start_s": a, "end_s": b} for p, a, b in rows]
        return explorer.Timeline(
            stack=combination.stack, kind="timeline", n=n, delay_s=0.1, python="3", steps="",
            measured_at="", source="live", answer={"timeline": rows, "wall_s": 1.23456},
            combination=combination, scheme=scheme,
        )  # fmt: skip

    one_by_one, together = [(0, 0, 1), (1, 1, 2)], [(0, 0, 1), (1, 0.5, 2)]
    assert [shown(each).verdict for each in (one_by_one, together)] == ["serial", "concurrent"]
    assert (shown(together).peak_waiting, shown(together).wall_s) == (2, 1.2346)
    assert shown(together).published == "slow"  # stage 2 on Python 2.7
    assert [shown(together, n=n).published for n in (3, 5, 30)] == ["slow", "slow", ""]
    assert shown(together, scheme="http").published == ""
    # Nobody said anything of the same stack after other steps.
    other = explorer.Combination("2.7", ("pyopenssl",), "stage-2-py27", ("grequests",))
    assert shown(together, combination=other).published == ""


def test_a_reader_who_asks_for_a_size_gets_that_size_alone():
    mode = modes.Mode("own", 0.5, ns=(3, 6), ns_if_concurrent=(8,), repeats=2, crowd_ns=())
    usual = runs._Plan.from_parameters(mode, n=None, delay_s=None, repeats=None)
    assert (usual.sizes, [*usual.further_sizes]) == ([3, 6], [8])
    assert (usual.delay_s, usual.repeats) == (0.5, range(1, 3))
    asked = runs._Plan.from_parameters(mode, n=3, delay_s=0, repeats=1)
    assert (asked.sizes, [*asked.further_sizes]) == ([3], [])
    assert (asked.delay_s, asked.repeats) == (0, range(1, 2))


# ---------------------------------------------------------------- verdicts under load


def test_each_stack_runs_as_often_as_it_is_told_beside_busy_cores_and_without(monkeypatch):
    """In turns; and more often at the quick delay, where a busy core may hide a verdict."""
    asked, busy = [], []

    @contextlib.contextmanager
    def nobody(*values):
        busy.extend(values)
        yield "lab"

    def measure_runs(stacks, lab, *, n, delay_s, repeats, client):
        asked.append((busy[-1], *repeats, delay_s))
        assert ([*stacks], lab, n, client) == (
            ["stage-2-py37", "stage-1-py37"],
            "lab",
            10,
            "grequests",
        )
        return [*stacks]

    monkeypatch.setattr(verdicts_under_load, "busy_cores", nobody)
    monkeypatch.setattr(verdicts_under_load.server, "start", nobody)
    monkeypatch.setattr(verdicts_under_load, "measure_runs", measure_runs)
    frame_of = lambda stacks: pd.DataFrame({"stack": stacks})  # noqa: E731
    monkeypatch.setattr(verdicts_under_load.run_record, "frame", frame_of)
    frame = verdicts_under_load.measure(runs_per_cell=2, tried=4)
    turns = [(1, 0.05), (1, 0.1), (1, 0.2), (2, 0.2), (2, 0.1), (2, 0.05)]
    assert asked == [
        *((False, *turn) for turn in turns), *((True, *turn) for turn in turns),
        (True, 3, 0.1), (True, 4, 0.1),
    ]  # fmt: skip
    assert frame["known"].tolist() == ["serial", "concurrent"] * 14
    assert frame["busy"].tolist() == [False] * 12 + [True] * 16


def test_every_core_is_kept_busy_and_left_alone_afterwards(monkeypatch):
    monkeypatch.setattr(verdicts_under_load.os, "cpu_count", lambda: 3)
    made = []

    class Hog:
        def __init__(self, command):
            self.command, self.killed = command, False
            made.append(self)

        def kill(self):
            self.killed = True

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *_: None  # noqa: E731

    monkeypatch.setattr(verdicts_under_load.subprocess, "Popen", Hog)
    with verdicts_under_load.busy_cores(False):
        assert made == []
    with verdicts_under_load.busy_cores(True):
        assert [hog.killed for hog in made] == [False] * 3
    assert [hog.killed for hog in made] == [True] * 3
