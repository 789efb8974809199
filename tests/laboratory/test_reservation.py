"""What is measured alone, and what beside other measurements.

The locks are real, held by threads of this process and by another one.
"""

import subprocess
import sys
import threading

import pytest

from casebook import places
from casebook.laboratory import reservation, rounds

pytestmark = pytest.mark.usefixtures("locks_of_our_own")

LONG_S, SHORT_S = 30, 0.3


class Measuring:
    """A thread that measures until it may end; `begun` once it does, at once or later."""

    def __init__(self, how=reservation.shared, at_once=True):
        self.ready, self.begun, self.may_end = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._measure, args=[how])
        self._thread.start()
        assert self.ready.wait(LONG_S)
        assert self.begun.wait(LONG_S if at_once else SHORT_S) is at_once

    def _measure(self, how):
        self.ready.set()
        with how():
            self.begun.set()
            self.may_end.wait(LONG_S)

    def end(self):
        assert self.begun.wait(LONG_S)
        self.may_end.set()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()


CODE = """
import sys
from pathlib import Path
from casebook import places
places.LOCAL = Path(sys.argv[1])
from casebook.laboratory import reservation
print("ready", flush=True)
with getattr(reservation, sys.argv[2])():
    print("begun", flush=True)
    sys.stdin.readline()
"""


class Process(Measuring):
    """The same in a process of its own."""

    def _measure(self, how):
        command = [sys.executable, "-c", CODE, places.LOCAL, how.__name__]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=places.ROOT) as process:
            assert process.stdout.readline() == b"ready\n"
            self.ready.set()
            assert process.stdout.readline() == b"begun\n"
            self.begun.set()
            self.may_end.wait(LONG_S)
            process.communicate(b"\n", LONG_S)


def test_what_counts_is_measured_side_by_side():
    first = Measuring(reservation.shared, at_once=True)
    second = Measuring(reservation.shared, at_once=True)
    first.end()
    second.end()


@pytest.mark.parametrize("how", [reservation.shared, reservation.exclusive])
@pytest.mark.parametrize("build", ["", "1"])
def test_nothing_is_measured_beside_a_clock_and_a_reader_is_told_but_no_page(
    build, how, monkeypatch, capsys
):
    monkeypatch.setenv("CASEBOOK_BUILD", build)
    alone = Process(reservation.exclusive, at_once=True)
    other = Measuring(how, at_once=False)
    alone.end()
    other.end()
    assert ("something else is being measured" in capsys.readouterr().err) == (not build)


def test_who_waits_to_be_alone_is_not_overtaken():
    first = Measuring(reservation.shared, at_once=True)
    alone = Measuring(reservation.exclusive, at_once=False)
    later = Measuring(reservation.shared, at_once=False)
    first.end()
    assert alone.begun.wait(LONG_S)
    assert not later.begun.wait(SHORT_S)
    alone.end()
    later.end()


def test_the_rounds_of_a_clock_do_not_wait_for_each_other():
    with reservation.exclusive(), reservation.shared(), reservation.exclusive():
        other = Process(reservation.shared, at_once=False)
    other.end()


def test_a_thread_of_what_is_alone_does_not_wait_for_it():
    with reservation.exclusive():
        first = Measuring(reservation.shared, at_once=True)
        first.end()
    # It is still alone until the last of its threads is done.
    ended = threading.Event()

    def alone_with_a_guest():
        with reservation.exclusive():
            guests.append(Measuring(reservation.shared, at_once=True))
        ended.set()

    guests: list[Measuring] = []
    thread = threading.Thread(target=alone_with_a_guest)
    thread.start()
    assert not ended.wait(SHORT_S)
    other = Process(at_once=False)
    guests[0].end()
    assert ended.wait(LONG_S)
    thread.join(LONG_S)
    other.end()


def test_rounds_side_by_side_run_so_many_at_a_time_and_keep_their_order():
    together, least = threading.Barrier(3), []

    def measure(repeat):
        together.wait(LONG_S)  # breaks unless three are here at the same time
        with reservation.shared():
            least.append(repeat)
        return 10 * repeat

    assert rounds.side_by_side(measure, range(4, 10), 3) == [40, 50, 60, 70, 80, 90]
    assert sorted(least) == [4, 5, 6, 7, 8, 9]


def test_one_at_a_time_is_in_this_very_thread():
    seen = rounds.side_by_side(lambda repeat: (repeat, threading.get_ident()), 2, 1)
    assert seen == [(1, threading.get_ident()), (2, threading.get_ident())]


def test_rounds_side_by_side_do_not_wait_for_who_waits_to_be_alone():
    """They have the lock of the thread that takes them, and none of their own."""
    others: list[Measuring] = []
    together = threading.Barrier(2, lambda: others.append(Measuring(reservation.exclusive, False)))

    def measure(repeat):
        if repeat < 3:
            together.wait(LONG_S)
        with reservation.shared():
            return reservation.is_alone()

    assert rounds.side_by_side(measure, 4, 2) == [False] * 4
    others[0].end()
    with reservation.exclusive():
        assert rounds.side_by_side(lambda _: reservation.is_alone(), 2, 2) == [True, True]


def test_the_first_round_that_failed_is_what_is_raised_and_no_more_begin():
    begun = []

    def measure(repeat):
        begun.append(repeat)
        raise ValueError(repeat)

    with pytest.raises(ValueError, match="1"):
        rounds.side_by_side(measure, 40, 2)
    assert len(begun) < 40


def test_the_chapter_that_measures_alone_is_named_and_no_earlier_one(monkeypatch):
    for chapter in ("15_thousands", "07_cures"):
        monkeypatch.setenv("CASEBOOK_CHAPTER", chapter)
        with reservation.exclusive():
            assert reservation._exclusive_chapter() == f", measuring alone: {chapter}"
