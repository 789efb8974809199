"""Whole processes: what their clocks see, and what a fetch spends processor time on."""

import subprocess
import sys

import pytest

from casebook import level
from casebook.cases.fetching import processor_time
from casebook.errors import RunFailed
from casebook.stacks import interpreters

STOCK, PRELOADED, CURED = "requests-2.34.2-today", "requests-2.32.4-today", "cured-today"


def test_loads_of_imports_are_seen_and_the_whole_takes_more_than_the_fetch():
    frame = processor_time.of_programs([STOCK, PRELOADED, CURED], n=4).set_index("stack")
    assert dict(frame["loads"]) == {STOCK: 4, PRELOADED: 1, CURED: 1}
    assert dict(frame["loads_before"]) == {STOCK: 0, PRELOADED: 1, CURED: 0}
    assert (frame["cpu_s"] > frame["fetch_cpu_s"]).all()
    assert (frame["wall_s"] > 0).all() and set(frame["source"]) == {"live"}


def test_the_parts_are_all_of_a_fetch_and_the_load_is_told_apart():
    frame = processor_time.by_part([STOCK, CURED], n=30, repeats=2)
    for _, parts in frame.groupby(["stack", "repeat"]):
        assert parts["share"].sum() == pytest.approx(1)
        assert parts["part"].is_unique and (parts["cpu_ms"] >= 0).all()
        assert {"requests", "urllib3", "gevent", "the handshake"} <= set(parts["part"])
    share = frame[frame["stack"] == STOCK].groupby("part")["share"].median()
    assert share["the certificates"] > share.drop("the certificates").max()
    assert share.get("the adapter", 0) == 0


def test_a_wrong_answer_is_no_measurement(monkeypatch):
    answer = {"ok": 1, "parts": None, "fetch_cpu_s": 1.0, "cpu_s": 1.0, "loads": 0}
    monkeypatch.setattr(processor_time.scripts, "answer_of", lambda *_, **__: answer)
    with pytest.raises(RunFailed, match="1 of 2 responses"):
        processor_time.of_programs([STOCK], n=2)


def test_where_a_stack_cannot_run_all_rounds_are_those_of_a_machine_that_took_them(monkeypatch):
    """Eight were taken there; what comes out otherwise would take eight more."""
    monkeypatch.setattr(interpreters, "find", lambda version: None)
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    asked = level("share", "the adapter", by="part", below=0.0001)
    frame = processor_time.by_part([CURED], n=100, until=asked)
    assert set(frame["source"]) == {"reference"} and frame["instead"].nunique() == 1
    assert asked.decide(frame).outcome == "otherwise" and asked.decide(frame).rounds == 8


def test_time_is_charged_to_who_works():
    """Two modules, of which one works three times as long as the other."""
    script = f"""
import sys, time, types
sys.path.insert(0, {str(processor_time.PROBE.parent)!r})
import whole_program
code = '''
import time
def work(s):
    until = time.process_time() + s
    while time.process_time() < until:
        pass
'''
for name in ("requests", "urllib3"):
    module = types.ModuleType(name)
    exec(code, module.__dict__)
    globals()[name] = module
whole_program.start_looking()
for _ in range(20):
    requests.work(0.015)
    urllib3.work(0.005)
whole_program.stop_looking()
spent = whole_program.spent
print(spent["requests"] / spent["urllib3"], spent["requests"] + spent["urllib3"])
"""
    said = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    ratio, together = map(float, said.split())
    assert 2.4 < ratio < 3.6 and 0.38 < together < 0.44


def test_a_look_within_a_look_charges_nothing():
    """An alarm at one line of the handler, at each in turn.

    All that is charged is what went by, and none of it is negative.
    """
    script = f"""
import signal, sys
sys.path.insert(0, {str(processor_time.PROBE.parent)!r})
import whole_program
began = whole_program.last = whole_program.time.process_time()
signal.signal(signal.SIGALRM, whole_program.charge)
charges, alarms = [], 0
def at_line(number):
    lines = 0
    def each(frame, event, _):
        global alarms
        nonlocal lines
        if frame.f_code is not whole_program.charge.__code__:
            return None
        lines += event == "line"
        if event == "line" and lines == number:
            alarms += 1
            signal.raise_signal(signal.SIGALRM)
        return each
    return each
for number in range(1, 20):
    sys.settrace(at_line(number))
    signal.raise_signal(signal.SIGALRM)
    sys.settrace(None)
    charges.append(sum(whole_program.spent.values()))
steps = [after - before for before, after in zip([0, *charges], charges)]
print(alarms, min(steps), charges[-1], whole_program.last - began)
"""
    said = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    alarms, least, charged, went_by = map(float, said.split())
    assert 3 < alarms < 19 and least >= 0
    assert charged == pytest.approx(went_by) and charged > 0
