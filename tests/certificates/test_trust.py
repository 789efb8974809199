"""What clients are told to trust, and what that makes them load: counted in real runs."""

import ssl

import pytest

from casebook import stacks
from casebook.cases.fetching import trust
from casebook.cases.fetching.runs import measure
from casebook.errors import UsageError

NEWEST, CURED = "requests-2.34.2-today", "cured-today"
N = 6


def test_a_full_bundle_holds_certifis_certificates_and_the_authoritys(https, tmp_path):
    everything = trust.certificates()
    assert len(everything) > 100
    path = trust.full_bundle(https.ca_file, tmp_path)
    loaded = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loaded.load_verify_locations(path)
    assert loaded.cert_store_stats()["x509"] == 1 + len(everything)
    assert path.read_text().endswith(https.ca_file.read_text())


@pytest.mark.parametrize("name", trust.NAMES)
def test_each_way_to_trust_loads_what_it_says(name):
    frame = measure([NEWEST], n=N, delay_s=0, repeats=1, client="threads", trust=name)
    [run] = frame.to_dict("records")
    bundles = N if name in ("authority", "bundle", "path") else 0
    assert run["counters_load_verify_locations"] == bundles
    assert run["counters_default_loads"] == (0 if bundles else N)
    assert run["counters_contexts"] == run["counters_handshakes"] == run["ok"] == N
    assert run["trust"] == name


def test_loads_at_import_are_told_apart_from_those_of_the_fetch():
    names = ["requests-2.32.4-today", "preloaded-today", CURED, "half-cured-today"]
    frame = measure(names, n=N, delay_s=0, repeats=1, client="threads", trust="bundle")
    found = frame.set_index("stack")
    before, during = found["counters_loads_before"], found["counters_load_verify_locations"]
    assert list(before[names]) == [1, 1, 0, 1]
    assert list(during[names]) == [0, 0, 1, N]
    assert (found["process_cpu_s"] > found["cpu_s"]).all()


def test_a_greenlet_run_cannot_tell_what_imports_loaded_and_says_nothing():
    frame = measure([CURED], n=N, delay_s=0, repeats=1, trust="bundle")
    assert frame["counters_loads_before"].isna().all()
    assert list(frame["counters_load_verify_locations"]) == [1]


def test_an_environment_of_another_experiment_fetches_nothing():
    other = next(stack.name for stack in stacks.load().values() if not stack.client)
    with pytest.raises(UsageError, match="another experiment"):
        measure([other], n=1)
