"""The model with losses that are chosen by hand: one book over one connection, in round trips."""

from itertools import chain, islice, repeat

import pytest

from casebook.cases.bookstore.line import model

#: Of a half that is lost: a lot below it, and the first that is not.
LOST, CAME = 0.0, 0.5
#: The packets in their order: TCP's handshake, TLS's, ten and nine of the list, and the book.
TCP, TLS, LIST = 0, 1, 2


@pytest.mark.parametrize(
    ("lost", "seconds"),
    [
        ([], 5),  # TCP, TLS, two flights of the list, the book
        ([TCP], 5 + 1),  # the timer of a handshake
        ([TCP, TCP + 1], 5 + 1 + 2),  # which doubles
        ([TCP, TCP + 1, TCP + 2], 5 + 1 + 2 + 4),
        # With others behind it: it comes in the next flight. Half as many may leave: 5, 5 of 6.
        ([LIST], 5 + 1),
        ([LIST + 8], 5 + 1),
        # The last of several takes a round trip more.
        ([LIST + 9], 5 + 1 + 1),
        # The last of all in a flight, a timer more; and then one packet leaves at a time.
        ([LIST + 18], 5 + 1 + 1 + model.SHORTEST_S),
        ([LIST + 17, LIST + 18], 5 + 1 + 2 + model.SHORTEST_S),
        # Two losses halve it twice, and two are the least: 10, 5, and then 2, 3 and 1.
        ([LIST, LIST + 10], 5 + 3),
        # One of TLS is alone, too: a timer, and it is sent again. Then the list leaves as 2, 4, 5,
        # 6 and 2.
        ([TLS], 1 + (1 + model.SHORTEST_S + 1) + 5 + 1),
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


# The list has left six that may: the book's thirty leave as 6, 7, 8 and 9.
@pytest.mark.parametrize(("packets", "trips"), [(30, 4), (31, 5)])
def test_after_a_loss_one_packet_more_leaves_in_each_round_trip(monkeypatch, packets, trips):
    monkeypatch.setattr(model, "_lot", lambda _seed: chain([CAME, CAME, LOST], repeat(CAME)))
    body = packets * model.PACKET - model.AROUND
    assert model.seconds("one connection", 1, body, 1.0, loss=0.5) == pytest.approx(2 + 3 + trips)


@pytest.mark.parametrize(
    ("way", "n", "body", "trips"),
    [
        # The list has left twenty that may: what is around a book is the 21st packet.
        ("one connection", 1, 20 * model.PACKET - model.AROUND, 4 + 1),
        ("one connection", 1, 20 * model.PACKET - model.AROUND + 1, 4 + 2),
        # At 4, the list is in; one connection fetches two books, until five more are open at 6,
        # and eleven books are left for six.
        ("six connections", 13, 109, 6 + 2),
        # Here twelve more are.
        ("a connection for each", 13, 109, 6 + 1),
        # Of 65,535 bytes 45 packets leave: 20, 40, four times 45, and one.
        ("streams, own window", 241, model.PACKET - model.AROUND, 4 + 7),
    ],
)
def test_what_each_way_takes_if_nothing_is_lost(way, n, body, trips):
    assert model.round_trips(way, n, body) == trips
    assert model.seconds(way, n, body, 0.1) == pytest.approx(trips / 10)


def test_a_whole_handshake_of_tls_1_2_takes_a_round_trip_more():
    assert model.round_trips("one connection", 1, 109, tls=2) == 6


# The first three of mulberry32, in 32 bits, as its JavaScript draws them.
@pytest.mark.parametrize(
    ("seed", "lots"),
    [
        (0, [1144304738, 1416247, 958946056]),
        (1, [1541420728, 454851044, 2900350524]),
        (5, [3848879566, 2197442470, 1480620112]),
    ],
)
def test_the_lots_are_those_of_mulberry32(seed, lots):
    assert [lot * 2**32 for lot in islice(model._lot(seed), 3)] == lots


def test_a_seed_decides_what_is_lost_and_is_0_if_not_told():
    walls = [model.seconds("one connection", 13, 27_000, 0.1, 0.05, seed) for seed in range(3)]
    assert model.seconds("one connection", 13, 27_000, 0.1, 0.05) == walls[0] != walls[1]
    assert walls[1] != walls[2]


def test_a_spread_is_the_median_of_the_lots_and_the_middle_eight_tenths(monkeypatch):
    def seconds(*settings):
        asked.append(settings[:-1])
        return (7 * settings[-1]) % 40

    asked = []
    monkeypatch.setattr(model, "seconds", seconds)
    assert model.spread("six connections", 13, 109, 0.1, 0.01) == (19, 3, 35)
    assert asked == 40 * [("six connections", 13, 109, 0.1, 0.01)]
    assert model.spread("six connections", 13, 109, 0.1) == (0, 0, 0)
