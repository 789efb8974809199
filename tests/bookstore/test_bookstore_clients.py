"""The clients of the bookstore and its independent witnesses, against real stores."""

import json
from dataclasses import replace

import pytest
from bookstore_asking import IDS, needs

from casebook import stacks
from casebook.cases.bookstore import readers, stock, store, timed_visits, visiting, witnesses
from casebook.cases.bookstore.visiting import VISITED
from casebook.errors import MissingInterpreter, UsageError, VisitFailed
from casebook.laboratory import machine_files, reference
from casebook.laboratory.decisions import LOOKS, ratio
from casebook.stacks import environments

N = 120  # more than one chunk of 100
HERE = [
    name
    for name in readers.READERS
    if environments.find_interpreter(stacks.get(readers.get(name).stack).python)
]
FROM_2016 = [name for name in readers.READERS if "py37" in readers.get(name).stack]


@pytest.fixture(scope="module")
def frame(shop):
    """One visit of each client that can run here."""
    return timed_visits.visit(HERE, n=N, repeats=1, target=shop).set_index("client")


def test_only_clients_of_missing_pythons_are_left_out():
    missing = set(readers.READERS) - set(HERE)
    assert missing <= set(FROM_2016)
    assert not missing or "3.7" not in environments.required()


@pytest.mark.parametrize("client", HERE)
def test_a_client_brings_every_book_over_its_protocol(frame, client):
    row, reader = frame.loc[client], readers.get(client)
    assert (row["books"], row["protocol"], row["recovered"]) == (N, reader.protocol, "")
    assert row["opened"] == row["server_connections"]
    if reader.protocol == "h2":
        assert row["opened"] == 1
        assert row["peak_in_flight"] == reader.many
    else:
        assert row["server_streams_peak"] == 1
        assert row["opened"] <= reader.many
        assert row["peak_in_flight"] <= reader.many


@pytest.mark.parametrize("client", HERE)
def test_the_figures_are_those_of_the_article(frame, client):
    row = frame.loc[client]
    share = 100 * (row["process_user_s"] + row["process_sys_s"]) / row["process_wall_s"]
    assert row["process_cpu_percent"] == pytest.approx(share, abs=0.1)
    for figure in ("wall_s", "user_s"):  # with imports, as `time` measures
        assert row[f"process_{figure}"] > row[figure] > 0
    assert row["server_cpu_s"] > 0


def test_all_of_the_books_and_the_list(shop):
    timed_visits.visit("pipes", repeats=1, target=shop)  # refused unless all are as in the stock
    assert shop.counters()["requests"] == 3001


def test_not_one_book_may_be_missing_or_another(shop):
    pipes = readers.manner("pipes")
    answer = readers.read(pipes, shop, IDS[:6])
    visiting.check(pipes, answer, 6)
    for change, said in (
        (lambda bodies: bodies.pop(IDS[3]), f"book {IDS[3]} is missing"),
        (lambda bodies: bodies.update({IDS[3]: bodies[IDS[4]]}), f"book {IDS[3]}: the body is not"),
        (lambda bodies: bodies.update({IDS[9]: "{}"}), "books that nobody asked for"),
    ):
        changed = answer | {"bodies": dict(answer["bodies"])}
        change(changed["bodies"])
        with pytest.raises(VisitFailed, match=said):
            visiting.check(pipes, changed, 6)
    for index, said in (
        (IDS[1:], f"lacks 1 of 3,000, such as {IDS[0]}"),
        ([*IDS, "1"], "has what the stock has not: 1 of 3,000, such as 1"),
        ([*IDS, IDS[5]], f"repeats 1 of 3,000, such as {IDS[5]}"),
    ):
        with pytest.raises(VisitFailed, match=said):
            visiting.check(pipes, answer | {"index": index}, 6)
    with pytest.raises(VisitFailed, match=r"spoke h2, not http/1\.1"):
        visiting.check(pipes, answer | {"protocol": "h2"}, 6)


def test_more_than_twisted_allows(shop):
    asked = {"n": 250, "repeats": 1, "target": shop}
    frame = timed_visits.visit(["bare-h2:250", "httpx-h2:250"], **asked)
    assert set(frame["books"]) == {250}
    assert frame["server_streams_peak"].max() <= shop.max_streams == 100
    if "hyper" in HERE:
        with pytest.raises(VisitFailed, match=rf"book {IDS[100]}: TooManyStreamsError"):
            timed_visits.visit("hyper:250", **asked)


def test_several_connections():
    with store.open_store(delay_s=0.1) as slow_store:
        clients = ["aiohttp:4", "pipes:4", "httpx-h1:4"]
        frame = timed_visits.visit(clients, n=12, repeats=1, target=slow_store)
    assert list(frame["server_connections"]) == [4, 4, 4]
    assert set(frame["server_streams_peak"]) == {1}


@pytest.fixture(scope="module")
def slow_arrivals():
    """arrivals(client, **how): when each of 30 books came, of which the tenth waits for 1 s."""
    with store.open_store(slow=timed_visits.one_slow(10, 1.0)) as slow_store:

        def arrivals(client, **how):
            frame = timed_visits.arrivals(client, n=30, target=slow_store, **how)
            assert sorted(frame["book"]) == IDS[:30]
            return frame

        yield arrivals


@pytest.mark.parametrize("client", ["bare-h2:30", "bare-h2:12", "httpx-h2:30", "pipes:2"])
def test_as_completed_the_slow_book_is_the_last(slow_arrivals, client):
    frame = slow_arrivals(client, order="completed")
    assert frame["position"].iloc[-1] == 10


@pytest.mark.parametrize(
    "client", ["bare-h2:30", "httpx-h2:30", "hyper:30", "niquests:30", "pipes:1"]
)
def test_in_the_order_asked_the_slow_book_holds_up_all_after_it(slow_arrivals, client):
    if client.partition(":")[0] not in HERE:
        pytest.skip("no Python 3.7 here")
    frame = slow_arrivals(client, order="asked")
    assert list(frame["position"]) == list(range(1, 31))
    assert (frame["at_s"].iloc[9:] >= 1.0).all()


def test_in_chunks_the_next_one_waits_for_all_of_the_last(slow_arrivals):
    """The slow tenth is in the first chunk: within it, it is the last, and nothing overtakes it."""
    frame = slow_arrivals("bare-h2:12", order="chunks")
    assert sorted(frame["position"].iloc[:12]) == list(range(1, 13))
    assert frame["position"].iloc[11] == 10
    assert (frame["at_s"].iloc[11:] >= 1.0).all()


def test_several_orders_are_visited_in_turns(shop):
    asked = {"n": 4, "order": ["asked", "chunks"], "repeats": 2, "target": shop}
    frame = timed_visits.visit("bare-h2:2", **asked)
    assert list(frame["order"]) == ["asked", "chunks", "chunks", "asked"]


def test_what_is_recorded_has_the_rounds_of_a_look():
    """Without a Python 3.7 the recorded rounds have to decide: those of 200 books."""
    short = [asked for asked in timed_visits.visits_to_record() if asked.get("n") == 200]
    assert {asked.get("engine", "twisted") for asked in short} == {"twisted", "twisted-16.3"}
    assert all(asked["repeats"] >= min(LOOKS) for asked in short)
    for asked in timed_visits.visits_to_record():
        for client in [asked["clients"]] if isinstance(asked["clients"], str) else asked["clients"]:
            assert client.partition(":")[0] in FROM_2016


def test_each_round_trip_takes_twice_the_latency(shop):
    """TLS, the list and five books: seven of them.

    Other work can only make a visit longer, so one of a few has to come close; with twice the
    latency it would take fourteen.
    """
    of_line_s, walls = 2 * 0.05, []
    while not walls or (min(walls) > 10 * of_line_s and len(walls) < 10):
        frame = timed_visits.visit("pipes:1", n=5, latency_s=0.05, repeats=1, target=shop)
        walls.append(frame["wall_s"].item())
        assert walls[-1] >= 7 * of_line_s
    assert min(walls) <= 10 * of_line_s


@pytest.mark.parametrize("engine", ["twisted-16.3", "granian"], indirect=True)
def test_other_servers_of_the_same_books(engine):
    clients = [name for name in ("hyper", "bare-h2", "aiohttp") if name in HERE]
    frame = timed_visits.visit(clients, n=N, engine=engine, repeats=1)
    assert set(frame["engine"]) == {engine}
    assert set(frame["books"]) == {N}


def test_a_server_of_http1_is_no_store_of_a_multiplexing_client():
    with store.open_store(http1_only=True) as old:
        for client in ("bare-h2", "httpx-h2", "niquests"):
            with pytest.raises(VisitFailed, match=r"answers http/1.1 where h2 was asked for"):
                timed_visits.visit(client, n=3, repeats=1, target=old)
        assert timed_visits.visit("aiohttp", n=3, repeats=1, target=old)["books"].item() == 3


def test_a_number_after_the_name_is_what_the_protocol_has_many_of(shop):
    clients = ["pipes:2", "bare-h2:3", "bare-h2:1"]
    frame = timed_visits.visit(clients, n=[5, 20], repeats=2, target=shop)
    assert list(frame["label"][:3]) == [
        *("http.client, 2 connections", "bare h2, 3 at once", "bare h2, one at a time"),
    ]
    assert frame.groupby("label")["n"].apply(sorted).tolist() == [[5, 5, 20, 20]] * 3
    assert list(frame["connections"][:3]) == [2, 1, 1]
    assert list(frame["at_once"][:3]) == [1, 3, 1]
    assert (frame["server_streams_peak"] <= frame["at_once"]).all()
    many = frame[frame["at_once"] > 1]
    assert set(many["server_connections"]) == {1} and many["server_streams_peak"].max() > 1


@pytest.mark.parametrize(
    ("client", "asked", "said"),
    [
        ("bare-h2:many", {}, "a whole number"),
        ("requests:2", {}, "connections is 2; choose 1 to 1$"),
        ("wget", {}, "client is 'wget'"),
        ("pipes:0", {}, "connections is 0"),
        ("hyper", {"order": "completed"}, "reads in the order asked"),
        ("pipes", {"order": "chunks"}, "reads in the order completed or asked"),
        ("pipes", {"n": 3_001}, "n is 3,001; choose 1 to 3,000"),
        ("pipes", {"n": 0}, "n is 0"),
        ("pipes", {"latency_s": 2}, "latency is 2 s"),
        ("pipes", {"repeats": 0}, "repeats is 0"),
        ("pipes", {"engine": "nginx"}, "unknown engine 'nginx'"),
    ],
)
def test_what_cannot_be_asked_for(client, asked, said):
    with pytest.raises(UsageError, match=said):
        timed_visits.visit(client, **asked)


def test_in_a_build_a_visit_is_made_once(monkeypatch):
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    first = timed_visits.visit("pipes", n=4, repeats=1)
    assert timed_visits.visit("pipes", n=4, repeats=1).equals(first)
    assert timed_visits.visit("pipes", n=5, repeats=1)["books"].item() == 5
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert not timed_visits.visit("pipes", n=4, repeats=1).equals(first)


def test_without_python_37_recorded_visits_stand_in_and_say_so(tmp_path, monkeypatch, request):
    with store.open_store() as running:
        asked = {"clients": "pipes:1", "n": 4, "repeats": 2, "target": running}
        planned = timed_visits.plan("hyper", n=4, repeats=2)
        questions = [
            VISITED.question([stacks.get(visit.reader.stack)], visit.parameters, visit.repeat)
            for visit in planned
        ]
        records = [
            record | {"asked": question, "client": "hyper", "at_once": 100, "order": "asked"}
            for record, question in zip(timed_visits.records(**asked), questions, strict=True)
        ]
    monkeypatch.setattr(machine_files, "folder", lambda: tmp_path)
    machine_files.save(
        machine_files.Machine(reference.NAME, {"cores": 2}, records), reference.file()
    )
    request.getfixturevalue("no_old_pythons")
    frame = timed_visits.visit(["hyper", "pipes"], n=4, repeats=2)
    assert list(frame["client"] + " " + frame["source"]) == [
        *("hyper reference", "pipes live", "pipes live", "hyper reference"),
    ]
    assert set(frame["recovered"]) == {""}
    arrived = timed_visits.arrivals("hyper", n=4)
    assert list(arrived["book"]) == IDS[:4]
    assert set(arrived["source"]) == {"reference"}
    with pytest.raises(MissingInterpreter, match=r"hyper-py37 needs Python 3.7"):
        timed_visits.visit("hyper", n=5, repeats=1)
    monkeypatch.setenv("CASEBOOK_REQUIRE", "3.7")
    with pytest.raises(MissingInterpreter, match=r"hyper-py37 needs Python 3.7"):
        timed_visits.visit("hyper", n=4, repeats=1)


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
def test_h2load_gets_the_same_bytes(shop, protocol):
    needs("h2load")
    seen = witnesses.h2load(shop, protocol=protocol)
    assert (seen["protocol"], seen["books"]) == (protocol, 3000)
    assert seen["body_bytes"] == sum(len(json.dumps(book)) for book in stock.books().values())


def test_h2load_takes_its_rounds_in_turns_and_says_what_the_server_used():
    needs("h2load")
    more = ratio("server_cpu_s", "h2", "http/1.1", by="protocol", above=0.1)
    frame = witnesses.h2load_visits(n=30, until=more, looks=(8,))
    assert list(frame["protocol"][:4]) == ["http/1.1", "h2", "h2", "http/1.1"]
    assert sorted(frame["repeat"]) == sorted([*range(1, 9)] * 2)
    assert (frame["server_cpu_s"] > 0).all() and set(frame["books"]) == {30}
    assert frame["key"].nunique() == 16
    assert more.decide(frame).outcome == "holds"


def test_h2load_does_not_take_one_protocol_for_the_other():
    needs("h2load")
    with store.open_store(http1_only=True) as old:
        with pytest.raises(VisitFailed, match=r"5 of 5 books over http/1.1, where h2 was"):
            witnesses.h2load(old, n=5)
    with pytest.raises(VisitFailed, match="h2load: 0 of 5 books"):
        witnesses.h2load(old, n=5)  # it has ended


def test_h2load_counts_only_responses_of_status_200(https):
    """The lab server has no books."""
    needs("h2load")
    with pytest.raises(VisitFailed, match=r"h2load: 0 of 3 books over http/1\.1"):
        witnesses.h2load(https, n=3, protocol="http/1.1")


def test_curl_shows_a_missing_book_and_what_it_says_itself(shop):
    needs("curl")
    seen = witnesses.curl(shop, "/book?id=1")
    assert seen["status"] == 404
    assert any("ALPN" in line for line in seen["said"])


def test_curl_trusts_nobody_else(shop):
    needs("curl")
    with store.open_store() as other, pytest.raises(VisitFailed, match=r"curl: /: .*certificate"):
        witnesses.curl(replace(shop, ca_file=other.ca_file))


def test_an_absent_witness_is_none_unless_it_is_required(shop, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    assert witnesses.h2load(shop) is None
    assert witnesses.h2load_visits(n=5).empty
    assert witnesses.curl(shop) is None
    monkeypatch.setenv("CASEBOOK_REQUIRE", "h2load,curl")
    for witness in (witnesses.h2load, witnesses.curl):
        with pytest.raises(VisitFailed, match="apt-get install"):
            witness(shop)
