"""What a client of the bookstore calls for one book."""

import pytest

from casebook.cases.bookstore import calls
from casebook.errors import UsageError


def test_calls_are_those_of_one_book_and_the_same_every_time():
    frames = [calls.per_book(["bare-h2:1"], few=few, many=few + 10) for few in (5, 20)]
    sums = [frame.groupby("kind")["calls"].sum() for frame in frames]
    assert set(sums[0].index) == {"http", "around", "ours"}
    # A stream's number grows with each book, and some of its bytes with it.
    assert sums[0].to_dict() == pytest.approx(sums[1].to_dict(), rel=0.1)
    packages = frames[0].set_index("package")["calls"]
    assert packages["h2"] > packages["hpack"] > 1


def test_the_library_around_http_is_told_apart():
    frame = calls.per_book(["requests"], few=2, many=6).set_index("package")
    kinds = frame["kind"].to_dict()
    assert (kinds["requests"], kinds["email"], kinds["json"]) == ("around", "http", "ours")
    assert frame.loc["requests", "calls"] > 100
    assert frame.loc["json", "calls"] < 20


def test_an_unknown_client_is_refused():
    with pytest.raises(UsageError, match="the client is 'a browser'"):
        calls.per_book(["a browser"])


@pytest.mark.parametrize(("few", "many"), [(0, 5), (5, 5), (5, 3001)])
def test_numbers_that_leave_no_difference_are_refused(few, many):
    with pytest.raises(UsageError, match=rf"few is {few}, many is {many}; choose 1 to 3000"):
        calls.per_book(["requests"], few, many)
