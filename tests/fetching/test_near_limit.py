"""The near-limit: a compiled client whose runs are evidence like all others."""

import json
import socket
import subprocess

import pytest
from here import needs

from casebook import places
from casebook.cases.fetching import near_limit, run_record, server, trust
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.laboratory import decisions
from casebook.laboratory.experiment import PROVENANCE, Measurement


def ask(lab: server.Server, **spec) -> dict:
    """The answer of the Go client to a spec, which trusts the authority of a lab server."""
    spec = {"url": lab.url, "n": 3, "delay_s": 0, "trusted": str(lab.ca_file), "bound_s": 30} | spec
    done = subprocess.run(
        [near_limit.build()], input=json.dumps(spec), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@needs("go")
def test_each_page_has_a_connection_of_its_own_and_all_share_one_load():
    [run] = near_limit.measure(30, delay_s=0.3).itertuples()
    assert (run.stack, run.client, run.ok, run.source) == ("go", "go", 30, "live")
    assert run.counters_connections == run.counters_handshakes == run.counters_requests == 30
    assert run.counters_load_verify_locations == run.counters_contexts == 1
    assert run.counters_peak_in_flight > 1 and run.verdict == "concurrent"
    assert run.wall_s > 0.3 and 0 < run.cpu_s <= run.process_cpu_s
    assert run.peak_rss_kib > 1024


@needs("go")
def test_a_stack_beside_it_is_measured_in_the_same_rounds():
    """In turns, so that a slow minute touches both, and each round has one of each."""
    times = decisions.ratio("wall_s", "cured-today", "go", above=0)
    frame = near_limit.measure(2, 0.01, beside=["cured-today"], until=times)
    assert list(frame["stack"]) == ["go", "cured-today", "cured-today", "go"] * 4
    assert list(frame["repeat"]) == [1 + number // 2 for number in range(16)]
    assert times.decide(frame).rounds == 8


@needs("go")
def test_is_built_once(capsys):
    first = near_limit.build()
    capsys.readouterr()
    assert near_limit.build() == first and not capsys.readouterr().err


@needs("go")
def test_what_it_cannot_fetch_is_named_and_it_waits_no_longer_than_it_is_told(https, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    missing = ask(https, url=f"{https.url}/nowhere")
    with pytest.raises(RunFailed, match=r"WrongStatus at page 0.*404"):
        run_record.check("go", 3, missing)
    with server.start() as stranger:
        distrusted = ask(https, trusted=str(stranger.ca_file))
    assert distrusted["failure"]["type"] == "x509.UnknownAuthorityError"
    assert all(response["status"] is None for response in distrusted["responses"])
    assert ask(https, trusted=str(empty))["failure"]["type"] == "CertificatesNotLoaded"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answer = ask(https, url=f"https://127.0.0.1:{silent.getsockname()[1]}", n=1, bound_s=0.5)
    assert answer["failure"]["page"] == 0 and answer["wall_s"] < 20
    well = ask(https)
    assert well["failure"] is None and well["versions"]["go"].startswith("go1")


def test_without_go_the_reference_machine_speaks_or_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not near_limit.is_here()
    frame = near_limit.measure([10])
    assert list(frame["source"]) == ["reference"] and list(frame["n"]) == [10]
    times = decisions.ratio("wall_s", "cured-today", "go", below=4)
    mixed = near_limit.measure(8, delay_s=0, beside=["cured-today"], until=times)
    assert set(mixed["stack"]) == {"go", "cured-today"}
    # Of the machine file that is most like this machine, the nearest size that it has.
    [size] = set(mixed.loc[mixed["stack"] == "go", "n"])
    [stand_in] = set(mixed.loc[mixed["stack"] == "go", "instead"])
    assert size != 8 and stand_in.endswith(f"n = {size} instead of 8")
    assert set(mixed.loc[mixed["stack"] != "go", "instead"]) == {""}
    assert times.decide(mixed).outcome == "not-here"  # of two machines
    monkeypatch.setattr(places, "DATA", tmp_path)
    with pytest.raises(MissingInterpreter, match="needs Go"):
        near_limit.measure(10)


def test_sizes_have_their_range():
    with pytest.raises(UsageError, match="n is 0"):
        near_limit.measure(0)


class Lab:
    """A server that counts what it is told to have counted."""

    url, ca_file = "https://127.0.0.1:1", "ca.pem"

    def __init__(self, **counted):
        self.counted = counted

    def reset(self):
        pass

    def counters(self):
        return self.counted


@pytest.mark.parametrize(
    ("connections", "requests", "is_one"),
    [(3, 3, True), (2, 3, False), (1, 3, False), (4, 3, False), (3, 2, False), (3, 4, False)],
)
def test_what_was_not_over_a_connection_each_is_no_near_limit(
    monkeypatch, connections, requests, is_one
):
    counted = {"connections": connections, "requests": requests, "handshakes": connections}
    pages = [{"page": page, "status": 200, "got_page": page} for page in range(3)]
    answer = dict(
        wall_s=0.5, user_s=0.25, sys_s=0.125, process_cpu_s=0.5, peak_rss_kib=9, responses=pages,
        failure=None, counters={}, versions={"go": "go1"},
    )  # fmt: skip
    monkeypatch.setattr(near_limit, "lab_server", lambda: Lab(**counted, peak_in_flight=3))
    monkeypatch.setattr(near_limit, "build", lambda: "program")
    monkeypatch.setattr(near_limit.trust, "of_name", lambda *_: trust.Trust(True, "bundle.pem"))
    monkeypatch.setattr(near_limit.commands, "output", lambda *_, **__: json.dumps(answer))
    asked = dict(n=3, delay_s=0.25, trust="bundle", client="go", scheme="https")
    if is_one:
        stored = near_limit._measure(asked)
        assert stored["counters"]["connections"] == 3
        made = dict.fromkeys(PROVENANCE, "")
        [run] = run_record.frame_of([Measurement((), asked, 1, stored, made)], "go").itertuples()
        assert (run.stack, run.client, run.scheme, run.ok) == ("go", "go", "https", 3)
        assert (run.cpu_s, run.effective_concurrency, run.verdict) == (0.375, 1.5, "concurrent")
    else:
        with pytest.raises(RunFailed, match=f"{requests} requests over {connections} connections"):
            near_limit._measure(asked)
