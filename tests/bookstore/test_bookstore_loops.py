"""The two loops, and what chapters print of the clients."""

import json
from dataclasses import asdict

import pytest
from bookstore_asking import IDS, book, over_http1

from casebook.cases.bookstore import hello, loops, readers, stock, timed_visits
from casebook.errors import UsageError


def test_one_loop_waits_for_the_slow_book_and_the_other_does_not() -> None:
    slow = timed_visits.one_slow(position=3, wait_s=0.6)
    seen = timed_visits.arrivals("two-loops", n=12, slow=slow, order=["asked", "completed"])
    late = seen[seen["book"].isin(slow)].set_index("order")["arrived"]
    assert late.to_dict() == {"asked": 3, "completed": 12}
    assert seen.groupby("order")["book"].nunique().tolist() == [12, 12]


def test_the_loops_are_shown_as_they_run_and_their_differences_stand_out() -> None:
    script = loops.SCRIPT.read_text()
    for loop in loops.LOOPS:
        assert loops.source(loop) in script
        assert loops.source(loop).startswith(f"def {loop}(")
    html = loops.side_by_side().data
    assert "<strong>        body = connection.response(stream)</strong>" in html
    assert "<strong>    for path in paths:</strong>" not in html
    assert "    for path in paths:" in html


@pytest.mark.parametrize("client", ["requests", "hyper"])
def test_the_place_of_a_client_is_its_visit(client: str) -> None:
    found = readers.place(client)
    first, last = found["lines"]
    code = found["path"].read_text().splitlines()[first - 1 : last]
    assert code[0] == "def visit(spec, shelf):"
    assert "shelf.put" in code[-1]


def test_recorded_visits_are_never_those_of_this_machine() -> None:
    found = timed_visits.from_reference("hyper", 3, n=200, engine="twisted-16.3")
    assert set(found["source"]) == {"reference"}
    assert list(found["repeat"]) == [1, 2, 3]
    with pytest.raises(UsageError):
        timed_visits.from_reference("hyper", 3, n=201, engine="twisted-16.3")


def test_no_distance_is_one_measurement_whichever_way_it_is_written() -> None:
    kinds = [asdict(*timed_visits.plan("bare-h2", 1, n=5, latency_s=zero)) for zero in (0, 0.0)]
    assert json.dumps(kinds[0]) == json.dumps(kinds[1])


def test_the_listed_bookstore_serves_books_and_knows_what_it_has_not() -> None:
    with hello.serve(script=hello.BOOKS) as site:
        seen = over_http1(site, book(IDS[4]), "/", book("1"))
    assert [status for _, status, _ in seen] == [200, 200, 404]
    assert [json.loads(body) for _, _, body in seen[:2]] == [stock.books()[IDS[4]], IDS]
