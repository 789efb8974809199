"""The model with losses that are chosen by hand: one book over one connection, in round trips."""

from itertools import chain, repeat

import pytest

from casebook.cases.bookstore.line import model

LOST, CAME = 0.0, 1.0
#: The packets in their order: TCP's handshake, TLS's, ten and nine of the list, and the book.
TCP, TLS, LIST = 0, 1, 2


@pytest.mark.parametrize(
    ("lost", "seconds"),
    [
        ([], 5),  # TCP, TLS, two flights of the list, the book
        ([TCP], 5 + 1),  # the timer of a handshake
        ([TCP, TCP + 1], 5 + 1 + 2),  # which doubles
        # With others behind it: it comes in the next flight. Half as many may leave: 5, 5 of 6.
        ([LIST], 5 + 1),
        ([LIST + 8], 5 + 1),
        # The last of several takes a round trip more.
        ([LIST + 9], 5 + 1 + 1),
        # One that was alone, a timer more.
        ([LIST + 19], 5 + 1 + model.SHORTEST_S),
        ([LIST + 19, LIST + 20], 5 + 2 * (1 + model.SHORTEST_S)),
    ],
)
def test_what_a_lost_packet_costs(monkeypatch, lost, seconds):
    drawn = chain((LOST if place in lost else CAME for place in range(40)), repeat(CAME))
    monkeypatch.setattr(model, "_lot", lambda _seed: drawn)
    assert model.seconds("one connection", 1, 109, 1.0, loss=0.5) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("n", "trips"),
    [
        (1, 4 + 1),  # TCP, TLS, two flights of the list; and the books, of 186 bytes each
        (100, 4 + 1),
        (101, 4 + 2),  # 14 packets, and the last book waits for a stream
        (200, 4 + 2),
        (201, 4 + 3),
        (500, 4 + 5),  # 65 packets leave as 19, 38 and 8; and five times a hundred streams
    ],
)
def test_a_hundred_streams_at_a_time(n, trips):
    assert model.round_trips("streams, wide window", n, 109) == trips


def test_after_a_loss_one_packet_more_leaves_in_each_round_trip(monkeypatch):
    monkeypatch.setattr(model, "_lot", lambda _seed: chain([CAME, CAME, LOST], repeat(CAME)))
    body = 30 * model.PACKET - model.AROUND
    # The list has left six that may: the book's thirty leave as 6, 7, 8 and 9.
    assert model.seconds("one connection", 1, body, 1.0, loss=0.5) == pytest.approx(2 + 3 + 4)
