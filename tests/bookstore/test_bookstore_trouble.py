"""Every client of the bookstore against a server that misbehaves: bookstore_trouble.py.

Whatever goes wrong, a client either brings every book (and says if it had to connect again), or
the visit ends with an error that names the book and the cause.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest
from bookstore_trouble import BOOK, STREAMS, bookstore

from casebook.cases.bookstore import readers, timed_visits
from casebook.cases.fetching.server import certificates
from casebook.errors import MissingInterpreter, VisitFailed
from casebook.stacks import environments

N, AT_ONCE, CONNECTIONS = 12, 6, 3
CLIENTS = [name for name in readers.READERS if not name.startswith("requests-2")]

WHOLE, AGAIN = "every book", "every book, and it had to connect again"
#: Some recover, some do not, and some now and then: whole, or the error names a book and a cause.
EITHER = r"book \d{5}: \w+: .{10,}"

#: What becomes of a visit, whichever client it is: one of these, or an error that says so.
OF_ALL = {
    "none": WHOLE,
    "hangs-up": r"book \d{5}: \w+: ",
    "cut-short": rf"book {BOOK}: \w+: .*(bytes|eof)",
    "half": rf"book {BOOK}: JSONDecodeError: ",
    "reset": rf"book {BOOK}: \w+: .*(reset|closed|eof|Remote end|disconnected)",
    "wrong-body": rf"book {BOOK}: the body is not the one in the stock",
    "missing": rf"book {BOOK}: WrongStatus: status 404",
    "short-list": rf"the list of books lacks 1 of 3,000, such as {BOOK}",
    "stall": rf"book {BOOK}: Stalled: no book arrived for 2 s",
    "stalled-list": r"the list of books: Stalled: no book arrived for 2 s",
    "nonsense": rf"book {BOOK}: \w+: ",
    "other-protocol": r"the list of books: WrongProtocol: the server answers http/1.1 where h2",
    "goaway": EITHER,
    "refused": EITHER,
    "few-streams": EITHER,
}
#: Of some it is known what they do where others do otherwise.
OF_ONE = {
    ("bare-h2", "goaway"): AGAIN,
    ("bare-h2", "refused"): AGAIN,
    # Nobody is left to ask again: a book is named, and not the list.
    ("bare-h2", "leaves"): r"bare-h2: book \d{5}: \w+: ",
    ("bare-h2", "few-streams"): WHOLE,
    # It asks at once, and waits for no SETTINGS; hyper does wait.
    ("bare-h2", "shy"): WHOLE,
    ("hyper", "shy"): r"the list of books: (Stalled|timeout): ",
    ("httpx-h2", "few-streams"): WHOLE,
    ("niquests", "few-streams"): WHOLE,
    ("hyper", "few-streams"): r"book \d{5}: TooManyStreamsError: Max outbound streams is 2",
    # libcurl ends the whole connection, and with it whichever book is first.
    ("pycurl-h2", "cut-short"): r"book \d{5}: error: .*invalid frame",
    # It asks again over a new connection by itself, and says nothing of it.
    ("pycurl-h1", "goaway"): EITHER,
    ("hyper", "goaway"): r"book \d{5}: (HungUp: the server ended|.*(reset|eof|pipe))",
}
ONLY_H2 = ("other-protocol", "refused", "few-streams")

#: What the shelf, the patience and the comparison with the stock see, which all clients share:
#: asked of one client of each protocol.
SHARED = ("half", "wrong-body", "short-list", "stalled-list")
ONE_EACH = ("bare-h2", "pipes")

CASES = [
    (client, trouble)
    for trouble in OF_ALL
    for client in (ONE_EACH if trouble in SHARED else CLIENTS)
    if readers.get(client).protocol == "h2" or trouble not in ONLY_H2
]
CASES.append(("bare-h2", "leaves"))  # once: no server is left for a second client
CASES += [(client, "shy") for client in ("bare-h2", "hyper")]


@pytest.fixture(scope="module")
def outcome(shop, tmp_path_factory):
    """A function of client and trouble: the frame of one visit, or its VisitFailed.

    All visits are made here, some at a time, since most of them wait. None goes on beside a test:
    pytest changes os.environ between tests, which a visit reads.
    """
    made = certificates.issue(tmp_path_factory.mktemp("trouble"))
    with ExitStack() as stack, ThreadPoolExecutor(max_workers=6) as pool:
        targets = {}
        for trouble in (*OF_ALL, "leaves", "shy"):
            url = stack.enter_context(bookstore(trouble, made))
            targets[trouble] = replace(shop, url=url, ca_file=made.ca_file)
        visited = pool.map(lambda case: _visit(*case, targets[case[1]]), CASES)
        came = dict(zip(CASES, visited, strict=True))

    def outcome(client, trouble):
        if came[client, trouble] is None:
            pytest.skip(f"{client} needs a Python that is not on this machine")
        return came[client, trouble]

    return outcome


def _visit(client, trouble, target):
    reader = readers.get(client)
    many = min(reader.most, AT_ONCE if reader.protocol == "h2" else CONNECTIONS)
    patience_s = 2.0 if "stall" in trouble or trouble == "shy" else 20.0
    try:
        return timed_visits.visit(
            f"{client}:{many}", n=N, repeats=1, target=target, patience_s=patience_s
        )
    except VisitFailed as error:
        return error
    except MissingInterpreter:
        assert "3.7" not in environments.required()
        return None


def becomes(client, trouble):
    if (client, trouble) in OF_ONE:
        return OF_ONE[client, trouble]
    if trouble == "goaway" and readers.get(client).protocol == "http/1.1":
        return AGAIN
    return OF_ALL[trouble]


@pytest.mark.parametrize(("client", "trouble"), CASES)
def test_a_visit_is_whole_or_its_error_names_the_book_and_the_cause(outcome, client, trouble):
    got, wanted = outcome(client, trouble), becomes(client, trouble)
    if isinstance(got, VisitFailed):
        assert re.search(wanted, str(got)), got
        return
    assert wanted in (WHOLE, AGAIN, EITHER), got[["client", "books", "recovered"]]
    assert got["books"].item() == N
    recovered = re.match(
        r"connection \d \(of \d planned\) after \d+ books", got["recovered"].item()
    )
    assert bool(recovered) == (got["opened"].item() > got["connections"].item())
    assert wanted == EITHER or bool(recovered) == (wanted == AGAIN)


def test_the_bare_client_has_no_more_open_than_allowed(outcome):
    assert outcome("bare-h2", "few-streams")["peak_in_flight"].item() == STREAMS
    assert outcome("bare-h2", "none")["peak_in_flight"].item() == AT_ONCE
