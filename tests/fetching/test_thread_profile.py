"""How a recording of threads is read, on calls made up for it."""

import sys
import threading

import pytest

from casebook.places import PROBES

sys.path.insert(0, str(PROBES))
import thread_profile

sys.path.remove(str(PROBES))

IN, OUT = True, False


@pytest.mark.parametrize(
    ("threads", "own", "callers", "mixed"),
    [
        pytest.param(
            [[(0, 0, IN, "a"), (1, 1, IN, "b"), (3, 2, OUT, "b"), (4, 3, OUT, "a")]],
            {"a": [1, 1, 2, 4, 2], "b": [1, 1, 2, 2, 1]},
            {"b": {"a": [1, 1, 2, 2]}},
            {"a": [1, 1, 2, 4], "b": [1, 1, 2, 2]},
            id="a call in a call",
        ),
        pytest.param(
            [[(0, 0, IN, "a"), (1, 1, IN, "a"), (2, 2, OUT, "a"), (5, 3, OUT, "a")]],
            {"a": [1, 2, 5, 5, 3]},
            {"a": {"a": [0, 1, 1, 0]}},
            {"a": [1, 2, 5, 5]},
            id="a function that calls itself",
        ),
        # Four and five seconds in their threads, two of the processor. On one stack: as if one
        # had called the other, and six seconds by the clock.
        pytest.param(
            [[(0, 0, IN, "a"), (4, 1, OUT, "a")], [(1, 0, IN, "a"), (6, 1, OUT, "a")]],
            {"a": [2, 2, 9, 9, 2]},
            {},
            {"a": [1, 2, 6, 6]},
            id="threads that overlap look like a call inside a call",
        ),
        # The return of a is booked on b's stack frame, and the other way round.
        pytest.param(
            [[(0, 0, IN, "a"), (2, 1, OUT, "a")], [(1, 0, IN, "b"), (9, 1, OUT, "b")]],
            {"a": [1, 1, 2, 2, 1], "b": [1, 1, 8, 8, 1]},
            {},
            {"a": [1, 1, 1, 1], "b": [1, 1, 8, 9]},
            id="what returns first closes what began last",
        ),
        pytest.param(
            [[(0, 0, OUT, "c"), (1, 1, IN, "a"), (2, 2, OUT, "a")]],
            {"a": [1, 1, 1, 1, 1]},
            {},
            {"a": [1, 1, 1, 1], "c": [0, 0, 0, 0]},
            id="a return without a call is left out",
        ),
    ],
)
def test_a_recording_is_read_in_two_ways(threads, own, callers, mixed, monkeypatch):
    monkeypatch.setattr(thread_profile, "key_of", lambda name: name)
    assert thread_profile.each_its_own(threads) == (own, callers)
    assert thread_profile.as_one_stack(threads) == mixed


def test_names_are_those_of_cprofile():
    assert thread_profile.key_of(len) == ("~", 0, "<built-in method builtins.len>")
    append = [].append
    assert thread_profile.key_of(append)[2] == "<method 'append' of 'list' objects>"
    lock = threading.Lock()
    assert thread_profile.key_of(lock.acquire)[2].endswith("'_thread.lock' objects>")
    code = thread_profile.add.__code__
    where = thread_profile.short(code.co_filename), code.co_firstlineno
    assert thread_profile.key_of(code) == (*where, "add")
