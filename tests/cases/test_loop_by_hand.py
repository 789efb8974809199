"""What a loop's beats and threads' handshakes come to, with answers that are written down here."""

from pathlib import Path

import pytest

from casebook.cases.fetching import server
from casebook.cases.handshakes import shared_contexts
from casebook.cases.loop import client_tasks
from casebook.errors import RunFailed

ANSWER = {
    "failed": None,
    "pages": [{"page": 0, "status": 200, "got_page": 0}],
    "beats_s": [-0.5, -0.125, 0.125, 0.1875, 0.6875, 0.75],
    "wall_s": 0.5,
    "at_import": 1,
    "loads": [
        {"on_loop": True, "start_s": 0.25, "end_s": 0.5},
        {"on_loop": False, "start_s": 0.3, "end_s": 0.4},
    ],
    "openssl": "o",
}
ASKED = {"way": "httpx-each", "n": 1}


def test_the_longest_stall_ends_after_the_tasks_began_and_beats_count_until_all_is_fetched():
    row = client_tasks._figures(ASKED, ANSWER)
    assert row["stall_ms"] == 500  # from 0.1875 to 0.6875; the one before all began does not count
    assert row["beats"] == 2
    assert (row["loads"], row["on_loop"], row["at_import"]) == (2, 1, 1)
    began = client_tasks._figures(ASKED, ANSWER | {"beats_s": [-0.5, 0.25, 0.375]})
    assert began["stall_ms"] == 750  # one that began before, and lasted into the work


def test_a_count_is_made_again_where_the_server_or_what_is_trusted_has_changed():
    depends_on = client_tasks._CLIENTS.depends_on
    assert {Path(client_tasks.__file__), *server.DEPENDENCIES} <= {*depends_on}


def test_moments_are_loads_and_beats():
    rows = client_tasks._moments(ASKED, ANSWER)
    assert [row["what"] for row in rows] == ["load"] * 2 + ["beat"] * 6
    assert {row["start_s"] - row["end_s"] for row in rows if row["what"] == "beat"} == {0}


@pytest.mark.parametrize(
    "wrong", [{"status": 503}, {"got_page": 1}, {"got_page": None, "status": None}]
)
def test_a_wrong_page_is_no_measurement(wrong):
    pages = [ANSWER["pages"][0] | wrong]
    with pytest.raises(RunFailed, match="page 0 came as"):
        client_tasks._figures(ASKED, ANSWER | {"pages": pages})
    with pytest.raises(RunFailed, match="page 0 came back as"):
        shared_contexts._check_pages("s", ANSWER | {"pages": pages})
    failed = {"page": 3, "type": "Timeout", "message": "late"}
    with pytest.raises(RunFailed, match="page 3 failed with Timeout: late"):
        client_tasks._figures(ASKED, ANSWER | {"failed": failed})


@pytest.mark.parametrize(
    ("n", "peak", "verdict"),
    [
        (8, 0, "serial"),
        (8, 1, "serial"),
        (8, 2, "between"),
        (8, 4, "between"),
        (8, 5, "concurrent"),
        (2, 2, "concurrent"),
        (2, 1, "serial"),
        (1, 1, "between"),
    ],
)
def test_threads_are_judged_by_the_most_at_once(n, peak, verdict):
    assert shared_contexts.verdict_of_handshakes(n, peak) == verdict


def test_the_peak_is_that_of_where_the_server_waits():
    answer = dict(
        handshakes=8, peak_handshakes=1, peak_requests=8, wall_s=1.0, truststore=None, context=None,
        openssl="o",
    )  # fmt: skip
    verdicts = [
        shared_contexts._figures({"way": "shared", "n": 8, "waits_in": place}, answer)["verdict"]
        for place in (shared_contexts.IN_HANDSHAKE, shared_contexts.BEFORE_REPLY)
    ]
    assert verdicts == ["serial", "concurrent"]


def test_a_place_is_the_innermost_line_and_the_first_of_truststore_above_it():
    calls = [
        ["__main__", "work", 1, "get()"],
        ["truststore._api", "wrap_socket", 2, "with self._lock:"],
        ["truststore._api", "inner", 3, "more"],
        ["ssl", "do_handshake", 4, "self._sslobj.do_handshake()"],
    ]
    assert dict(shared_contexts._place(calls)) == {
        "module": "ssl", "function": "do_handshake", "line": 4,
        "text": "self._sslobj.do_handshake()", "under": "wrap_socket: with self._lock:",
    }  # fmt: skip
    assert dict(shared_contexts._place(calls[:2]))["under"] == ""
