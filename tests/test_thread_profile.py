"""How a recording of threads is read, on calls made up for it."""

import sys
from unittest import mock

from casebook.places import PROBES

sys.path.insert(0, str(PROBES))
import thread_profile

sys.path.remove(str(PROBES))

IN, OUT = True, False
A, B, C = (("file", 1, name) for name in "abc")


def read(*threads):
    with mock.patch.object(thread_profile, "key_of", lambda name: ("file", 1, name)):
        own, callers = thread_profile.each_its_own(threads)
        return own, callers, thread_profile.as_one_stack(threads)


def test_a_call_in_a_call():
    own, callers, mixed = read(
        [(0, 0, IN, "a"), (1, 1, IN, "b"), (3, 2, OUT, "b"), (4, 3, OUT, "a")]
    )
    assert own[A] == [1, 1, 2, 4, 2] and own[B] == [1, 1, 2, 2, 1]
    assert callers[B] == {A: [1, 1, 2, 2]} and A not in callers
    assert mixed[A] == [1, 1, 2, 4]


def test_a_function_that_calls_itself():
    own, callers, mixed = read(
        [(0, 0, IN, "a"), (1, 1, IN, "a"), (2, 2, OUT, "a"), (5, 3, OUT, "a")]
    )
    assert own[A] == [1, 2, 5, 5, 3]
    assert callers[A] == {A: [0, 1, 1, 0]}
    assert mixed[A] == [1, 2, 5, 5]


def test_two_threads_that_overlap_look_like_a_call_inside_a_call():
    own, callers, mixed = read(
        [(0, 0, IN, "a"), (4, 1, OUT, "a")],
        [(1, 0, IN, "a"), (6, 1, OUT, "a")],
    )
    # Four and five seconds in their threads, two of the processor.
    assert own[A] == [2, 2, 9, 9, 2] and not callers
    # On one stack: as if one had called the other, and six seconds by the clock.
    assert mixed[A] == [1, 2, 6, 6]


def test_what_returns_first_closes_what_began_last():
    own, _, mixed = read(
        [(0, 0, IN, "a"), (2, 1, OUT, "a")],
        [(1, 0, IN, "b"), (9, 1, OUT, "b")],
    )
    assert own[A][2] == 2 and own[B][2] == 8
    # The return of a is booked on b's stack frame, and the other way round.
    assert mixed[A][2] == 1 and mixed[B][2] == 8


def test_a_return_without_a_call_is_left_out():
    own, _, mixed = read([(0, 0, OUT, "c"), (1, 1, IN, "a"), (2, 2, OUT, "a")])
    assert C not in own and mixed[C][1] == 0
    assert own[A][1] == 1


def test_names_are_those_of_cprofile():
    import threading

    assert thread_profile.key_of(len) == ("~", 0, "<built-in method builtins.len>")
    append = [].append
    assert thread_profile.key_of(append)[2] == "<method 'append' of 'list' objects>"
    lock = threading.Lock()
    assert thread_profile.key_of(lock.acquire)[2].endswith("'_thread.lock' objects>")
    code = read.__code__
    where = thread_profile.short(code.co_filename), code.co_firstlineno
    assert thread_profile.key_of(code) == (*where, "read")
