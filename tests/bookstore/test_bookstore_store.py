"""The store on each of its servers: what it answers, and the ways in which it fails."""

import contextlib
import json
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from bookstore_asking import IDS, book, connection, needs, over_http1, over_http2, trusting
from h2 import events

from casebook.cases.bookstore import stock, witnesses
from casebook.cases.bookstore.clients import bare_h2
from casebook.cases.bookstore.store import fingerprint, open_store
from casebook.errors import ServerFailed, UsageError

MISSING = [
    "/book", "/book?id=", "/book?id=1", "/book?id=10007&id=10014", "/book?id=%FF",
    "/book?id=%C3%A9", "/book?id=010007", "/book?id=+10007", "/book?ID=10007", "/book?id[]=10007",
    "/book/10007", "/books", "/book?id=10007%00",
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(engine):
    with open_store(engine) as store:
        yield store


@pytest.fixture
def store(shared):
    shared.reset()
    return shared


# What it serves


def test_every_book_over_both_protocols(store):
    books = {book(number): each for number, each in stock.books().items()}
    for over in (over_http2, over_http1):
        answers = over(store, *books)
        assert {path: status for path, status, _ in answers} == dict.fromkeys(books, 200)
        assert {path: json.loads(body) for path, _, body in answers} == books
    counters = store.counters()
    assert counters["protocols"] == {"HTTP/2": 3_000, "HTTP/1.1": 3_000}
    assert (counters["requests"], counters["connections"]) == (6_000, 2)


def test_the_list_of_ids(store):
    ((_, status, body),) = over_http2(store, "/")
    assert (status, json.loads(body)) == (200, IDS)
    assert over_http1(store, "/") == [["/", 200, body]]


def test_what_is_not_there_is_404_and_nothing_breaks(store):
    for over in (over_http2, over_http1):
        seen = {path: status for path, status, _ in over(store, *MISSING, book(IDS[0]))}
        assert seen == dict.fromkeys(MISSING, 404) | {book(IDS[0]): 200}


def test_curl_agrees(store):
    needs("curl")
    for http1_only, protocol in ((False, "h2"), (True, "http/1.1")):
        seen = witnesses.curl(store, book(IDS[7]), http1_only=http1_only)
        assert (seen["protocol"], seen["status"]) == (protocol, 200)
        assert json.loads(seen["body"]) == stock.books()[IDS[7]]


def test_it_says_what_it_is(store, engine):
    assert (store.protocol, store.engine) == ("h2", engine)
    assert store.max_streams == (200 if engine == "granian" else 100)
    with contextlib.closing(connection(store)) as client:
        client.connect()
        assert store.tls == client.sock.version()
    assert store.tls == "TLSv1.3" or engine == "twisted-16.3"


def test_its_cpu_grows_with_what_it_serves(store):
    before = store.cpu_s()
    assert store.cpu_s() - before < 0.05
    over_http1(store, *map(book, IDS[:1_000]))
    assert store.cpu_s() - before > 0.01


def test_a_crowd_of_connections(store):
    with ThreadPoolExecutor(50) as pool:
        seen = list(pool.map(lambda number: over_http1(store, book(number)), IDS[:300]))
    assert [status for ((_, status, _),) in seen] == [200] * 300
    assert store.counters()["connections"] == 300


# Delays, and one protocol


def test_all_streams_of_a_connection_wait_together(engine):
    with open_store(engine, delay_s=0.5) as store:
        start = time.monotonic()
        seen = over_http2(store, *map(book, IDS[:100]))
        took = time.monotonic() - start
        assert [status for _, status, _ in seen] == [200] * 100
        assert 0.5 <= took < 25  # one after the other they would take 50 s
        assert store.counters()["peak_streams"] == 100


def test_one_slow_book_is_the_last_and_holds_up_nobody(engine):
    with open_store(engine, slow={IDS[3]: 1.0}) as store:
        seen = over_http2(store, *map(book, IDS[:50]))
    assert seen[-1][:2] == [book(IDS[3]), 200]
    assert {path for path, _, _ in seen} == set(map(book, IDS[:50]))


@pytest.mark.parametrize("engine", ["twisted", "twisted-16.3"], indirect=True)
def test_a_book_that_is_held_back_comes_when_it_is_let_go(engine, tmp_path):
    others = tmp_path / "books.json"
    others.write_text(json.dumps({number: {"word": number} for number in IDS[:4]}))
    with open_store(engine, slow={IDS[1]: None}, books=others) as store:
        client = bare_h2.Connection(store.url, trusting(store), 20)
        with client.socket:
            client.settle()
            replies = client.fetch(map(book, IDS[:3]))
            assert {next(replies).path, next(replies).path} == {book(IDS[0]), book(IDS[2])}
            store.let_go()
            [last] = replies
            assert (last.path, json.loads(last.body)) == (book(IDS[1]), {"word": IDS[1]})
        assert over_http1(store, book(IDS[1]))[0][1] == 200  # it is held no more


def test_without_http2_nobody_gets_it(engine):
    with open_store(engine, http1_only=True) as store:
        assert (store.protocol, store.max_streams) == ("http/1.1", None)
        with pytest.raises(bare_h2.Broken, match=r"the server chose http/1\.1"):
            over_http2(store, "/")
        over_http1(store, "/")
        assert store.counters()["protocols"] == {"HTTP/1.1": 1}


# Servers that do not keep the promise


@pytest.mark.parametrize("engine", ["twisted", "twisted-16.3"], indirect=True)
@pytest.mark.parametrize(
    ("lacks", "said"), [("h2", r"negotiates http/1\.1 .*twisted\[http2\]"), ("alpn", "ALPN")]
)
def test_a_silent_fallback_is_refused_and_nothing_is_left(
    engine, lacks, said, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ServerFailed, match=said):
        open_store(engine, lacks=lacks)
    assert list(tmp_path.iterdir()) == []
    with open_store(engine, lacks=lacks, refuse=False) as store:  # as it would have been
        assert store.protocol == "http/1.1"
        with pytest.raises(bare_h2.Broken, match=r"the server chose (no protocol|http/1\.1)"):
            over_http2(store, "/")
        assert over_http1(store, book(IDS[0]))[0][1] == 200
    with open_store(engine, lacks=lacks, http1_only=True) as store:  # nothing else was promised
        assert store.protocol == "http/1.1"


def test_a_certificate_without_names_is_for_nobody(engine):
    with open_store(engine, lacks="names") as store:
        with pytest.raises(ssl.SSLCertVerificationError, match=r"127\.0\.0\.1"):
            over_http1(store, "/")
        context = trusting(store)
        context.check_hostname = False  # the one thing that is wrong with it
        client = connection(store, context)
        client.request("GET", "/")
        assert client.getresponse().status == 200
        client.close()


def test_more_streams_than_allowed_are_never_answered(engine):
    """Twisted ends the whole connection, and answers no book; Granian refuses what is too much."""
    with open_store(engine, delay_s=0.5) as store:
        allowed = store.max_streams
        paths = list(map(book, IDS[: allowed + 20]))
        answered, refused, goaway = rush(store, paths)
    if engine == "granian":
        assert goaway is None
        assert sorted(answered) == paths[:allowed]
        assert sorted(refused) == paths[allowed:]
    else:
        assert (answered, goaway) == ([], (1, 2 * allowed - 1))


def rush(store, paths):
    """Ask for all paths without waiting to hear how many are allowed.

    Returns those that were answered, those that were refused (their streams were reset), and error
    code and last stream of a GOAWAY, if any.
    """
    answered, refused = [], []
    client = bare_h2.Connection(store.url, trusting(store), 10)
    with client.socket:
        client.h2.initiate_connection()
        for path in paths:
            client.request(path)
        while client.open:
            for event in client.exchange():
                if isinstance(event, events.ConnectionTerminated):
                    return answered, refused, (event.error_code, event.last_stream_id)
                if isinstance(event, events.StreamEnded):
                    answered.append(client.open.pop(event.stream_id).path)
                elif isinstance(event, events.StreamReset):
                    refused.append(client.open.pop(event.stream_id).path)
    return answered, refused, None


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "nginx"},
        {"delay_s": -1},
        {"delay_s": float("nan")},
        {"slow": {"1": 1}},
        {"slow": {IDS[0]: 11}},
        {"port": -1},
        {"lacks": "shelves"},
        {"engine": "granian", "lacks": "h2"},
        {"engine": "granian", "slow": {IDS[0]: None}},
    ],
)
def test_what_it_does_not_know_is_refused(wrong):
    with pytest.raises(UsageError):
        open_store(**wrong)


def test_two_servers_are_two_fingerprints_and_one_stays_the_same():
    assert fingerprint("twisted") == fingerprint("twisted")
    assert fingerprint("twisted") != fingerprint("granian")


def test_a_store_of_other_books_is_another_one(monkeypatch, tmp_path):
    usual = fingerprint("twisted")
    monkeypatch.setattr(stock, "FILE", tmp_path / "books.json")
    for text in ("{}", '{"10003": {}}'):
        stock.FILE.write_text(text)
        other = fingerprint("twisted")
        assert other != usual
        usual = other
