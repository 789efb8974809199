"""Handshakes over a line: who resumed, what it left out, and what is refused."""

import here
import pytest

from casebook.cases.bookstore import line
from casebook.cases.bookstore.line import greetings, visits
from casebook.errors import RunFailed, UsageError

pytestmark = pytest.mark.skipif(
    bool(line.not_here()), reason="there can be no line between two network namespaces here"
)


def test_each_kind_connects_as_it_says():
    here.environment(visits.WITH_LIBRARIES)
    rows = line.greet(latency_s=0.002, n=3).set_index("kind")
    assert list(rows.index) == list(greetings.KINDS)
    resumed = {kind: 3 if "resumed" in kind else 0 for kind in greetings.KINDS}
    assert dict(rows["server_resumed"]) == resumed
    assert dict(rows["resumed"].dropna()) == {k: n for k, n in resumed.items() if k != "requests"}
    for version in ("TLS 1.2", "TLS 1.3"):
        assert 0 < rows.loc[f"{version}, resumed", "bytes"] < rows.loc[version, "bytes"]
    assert (rows[["client_cpu_s", "server_cpu_s", "wall_s"]] > 0).all(axis=None)
    assert (rows["round_trips"] >= rows["model"]).all()  # nothing is faster than the line


def test_a_resumed_connection_checks_nothing_and_a_whole_one_does():
    here.environment(visits.WITH_LIBRARIES)
    found = line.unchecked()
    assert set(found["tls"]) == {"1.2", "1.3"} and len(found) == 10
    passed = found[found["passes"]].groupby("connection").size()
    assert dict(passed) == {"another name, resumed": 2, "never checked, resumed": 2}


def test_what_is_no_measurement_is_refused():
    asked, few = {"n": 3}, {"connections": 3, "walls_s": [1, 1, 1]}
    with pytest.raises(RunFailed, match="3 connections in the place of 4"):
        greetings._figures(asked, {"kinds": [few], "checks": {}})
    with pytest.raises(RunFailed, match="cut short"):
        greetings._figures(asked, {"failed": "the answer was cut short"})
    with pytest.raises(UsageError, match="choose"):
        line.greet(latency_s=0)
