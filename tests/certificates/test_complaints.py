"""Complaints about requests and its certificates: what is counted in a stack, and by our hosts."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from urllib.parse import urlsplit

import pytest
from here import eventually

from casebook import stacks
from casebook.cases.certificates import complaints
from casebook.cases.certificates.hosts import Hosts
from casebook.errors import RunFailed, UsageError
from casebook.laboratory import scripts
from casebook.places import PROBES
from casebook.stacks import environments

STOCK, OLD, CURED = "requests-2.34.2-today", "requests-2.32.4-today", "cured-today"


@pytest.mark.parametrize(
    "complaint, connections",
    [("first", 1), ("hosts", 10), ("names", 2), ("proxies", 9), ("dropped", 10)],
)
def test_stock_requests_loads_for_each_connection(complaint, connections):
    totals = complaints.totals(complaints.measure(complaint, [STOCK, OLD, CURED]))
    counted = totals[["stack", "loads_before", "connections", "loads"]].to_numpy().tolist()
    assert counted == [
        [STOCK, 0, connections, connections],
        [OLD, 1, connections, 0],
        [CURED, 0, connections, 1],
    ]


def test_a_connection_that_was_kept_loads_nothing():
    frame = complaints.measure("hosts", STOCK, size=10, rounds=2)
    rounds = frame[frame["step"] > 0].groupby("round")[["connections", "contexts", "loads"]].sum()
    assert rounds.loc[1].tolist() == [10, 10, 10]
    assert rounds.loc[2].tolist() == [0, 0, 0]
    # A Session keeps ten pools, so with an eleventh host each is made again in time.
    frame = complaints.measure("hosts", STOCK, size=11, rounds=2)
    assert complaints.totals(frame)["loads"].tolist() == [22]


def test_the_first_connection_bears_the_load_unless_the_import_does():
    frame = complaints.measure("first", [STOCK, OLD, CURED, "preloaded-today"], size=3)
    found = {name: part["loads"].tolist() for name, part in frame.groupby("stack")}
    assert found == {
        STOCK: [0, 1, 0, 0],
        OLD: [1, 0, 0, 0],
        CURED: [0, 1, 0, 0],
        "preloaded-today": [1, 0, 0, 0],
    }
    assert frame["what"].tolist()[:2] == ["import", "request 1"]
    assert (frame["cpu_s"] > 0).all() and (frame["source"] == "live").all()


@pytest.mark.parametrize("version", ["2.31.0", "2.32.2", "2.32.4", "2.32.5", "2.34.2", ""])
def test_a_client_certificate_leaks_as_long_as_there_was_one_context(version):
    name = f"requests-{version}-today" if version else CURED
    frame = complaints.measure("certificate", name)
    shown = dict(zip(frame["what"], frame["shown"], strict=True))
    assert shown["bob, before"] == "nobody"
    assert shown["alice"] == "alice"
    leaked = "alice" if version in ("2.32.2", "2.32.4") else "nobody"
    after = ("carol, after", "carol, elsewhere", "requests.get")
    assert [shown[what] for what in after] == [leaked] * 3


@pytest.mark.parametrize(
    "asked, said",
    [
        (dict(complaint="slow"), "there is no complaint 'slow'"),
        (dict(complaint="hosts", size=0), "the size is 0"),
        (dict(complaint="hosts", rounds=0), "the rounds are 0"),
        (dict(complaint="hosts", size=100, rounds=100), "at most 1000"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked, said):
    with pytest.raises(UsageError, match=said):
        complaints.measure(names=STOCK, **asked)


def test_a_host_that_is_not_there_makes_no_rows():
    with Hosts() as at:
        gone, bundle = at.urls[0], str(at.ca_file)
        spec = {"steps": ["requests"], "bundle": bundle, "asks": []}
        environment = environments.ensure(stacks.get(STOCK))
        assert (
            len(scripts.answer_of(environment, complaints.PROBE, spec, beside=[PROBES])["rows"])
            == 1
        )
        ask = {"what": "it", "url": gone, "session": None, "via": None, "cert": None, "drop": None}
        spec["asks"] = [ask]
        assert (
            len(scripts.answer_of(environment, complaints.PROBE, spec, beside=[PROBES])["rows"])
            == 2
        )
        spec["asks"] = [ask | {"url": "https://127.0.0.1:1"}]
        with pytest.raises(RunFailed, match="ConnectionError"):
            scripts.answer_of(environment, complaints.PROBE, spec, beside=[PROBES])
    with pytest.raises(OSError):
        socket.create_connection((urlsplit(gone).hostname, urlsplit(gone).port), timeout=5)


def connected(at: Hosts, cert: str | None = None) -> http.client.HTTPSConnection:
    """A connection of the standard library to the first host."""
    context = ssl.create_default_context(cafile=at.ca_file)
    if cert:
        context.load_cert_chain(cert)
    address = urlsplit(at.urls[0])
    return http.client.HTTPSConnection(address.hostname, address.port, timeout=10, context=context)


def shown_to(connection: http.client.HTTPSConnection) -> str:
    connection.request("GET", "/")
    return json.loads(connection.getresponse().read())["shown"]


def test_hosts_refuse_a_stranger_and_nothing_of_them_stays_behind():
    before = threading.active_count()
    with Hosts(1, proxies=1) as at, Hosts() as others:
        with contextlib.closing(connected(at, others.client_certificate("mallory"))) as stranger:
            with pytest.raises(OSError):
                shown_to(stranger)
        kept = connected(at)
        assert shown_to(kept) == "nobody"
    assert kept.sock.recv(1) == b""
    kept.close()
    assert eventually(lambda: threading.active_count() <= before)
