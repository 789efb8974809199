"""What is measured alone, and what beside other measurements: real locks, held by threads."""

import threading

import pytest

from casebook import places
from casebook.runs import beside

LONG_S, SHORT_S = 30, 0.3


@pytest.fixture(autouse=True)
def _locks_of_our_own(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "LOCAL", tmp_path)


class Measuring:
    """A thread that measures until it may end; `begun` once it does."""

    def __init__(self, how):
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._measure, args=[how])
        self._thread.start()

    def _measure(self, how):
        with how():
            self.begun.set()
            self.may_end.wait(LONG_S)

    def end(self):
        self.may_end.set()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()


def test_what_counts_is_measured_side_by_side():
    first, second = Measuring(beside.others), Measuring(beside.others)
    assert first.begun.wait(LONG_S) and second.begun.wait(LONG_S)
    first.end()
    second.end()


@pytest.mark.parametrize("how", [beside.others, beside.nothing])
def test_nothing_is_measured_beside_a_clock(how):
    alone = Measuring(beside.nothing)
    assert alone.begun.wait(LONG_S)
    other = Measuring(how)
    assert not other.begun.wait(SHORT_S)
    alone.end()
    assert other.begun.wait(LONG_S)
    other.end()


def test_who_waits_to_be_alone_is_not_overtaken():
    first = Measuring(beside.others)
    assert first.begun.wait(LONG_S)
    alone = Measuring(beside.nothing)
    assert not alone.begun.wait(SHORT_S)
    later = Measuring(beside.others)
    assert not later.begun.wait(SHORT_S)
    first.end()
    assert alone.begun.wait(LONG_S)
    assert not later.begun.wait(SHORT_S)
    alone.end()
    assert later.begun.wait(LONG_S)
    later.end()


def test_the_rounds_of_a_clock_do_not_wait_for_each_other():
    with beside.nothing(), beside.others(), beside.nothing():
        other = Measuring(beside.others)
        assert not other.begun.wait(SHORT_S)
    assert other.begun.wait(LONG_S)
    other.end()
