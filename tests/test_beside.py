"""What is measured alone, and what beside other measurements: real locks, held by threads."""

import threading

import pytest

from casebook.runs import beside

pytestmark = pytest.mark.usefixtures("locks_of_our_own")

LONG_S, SHORT_S = 30, 0.3


class Measuring:
    """A thread that measures until it may end; `begun` once it does, at once or later."""

    def __init__(self, how, at_once):
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._measure, args=[how])
        self._thread.start()
        assert self.begun.wait(LONG_S if at_once else SHORT_S) is at_once

    def _measure(self, how):
        with how():
            self.begun.set()
            self.may_end.wait(LONG_S)

    def end(self):
        assert self.begun.wait(LONG_S)
        self.may_end.set()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()


def test_what_counts_is_measured_side_by_side():
    first = Measuring(beside.others, at_once=True)
    second = Measuring(beside.others, at_once=True)
    first.end()
    second.end()


@pytest.mark.parametrize("how", [beside.others, beside.nothing])
@pytest.mark.parametrize("build", ["", "1"])
def test_nothing_is_measured_beside_a_clock_and_a_reader_is_told_but_no_page(
    build, how, monkeypatch, capsys
):
    monkeypatch.setenv("CASEBOOK_BUILD", build)
    alone = Measuring(beside.nothing, at_once=True)
    other = Measuring(how, at_once=False)
    alone.end()
    other.end()
    assert ("something else is being measured" in capsys.readouterr().err) == (not build)


def test_who_waits_to_be_alone_is_not_overtaken():
    first = Measuring(beside.others, at_once=True)
    alone = Measuring(beside.nothing, at_once=False)
    later = Measuring(beside.others, at_once=False)
    first.end()
    assert alone.begun.wait(LONG_S)
    assert not later.begun.wait(SHORT_S)
    alone.end()
    later.end()


def test_the_rounds_of_a_clock_do_not_wait_for_each_other():
    with beside.nothing(), beside.others(), beside.nothing():
        other = Measuring(beside.others, at_once=False)
    other.end()
