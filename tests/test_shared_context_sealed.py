"""What someone who gets hold of a shared context can change: nothing, or he goes round the seal."""

import pytest
from trust_runs import NEWEST, SSL_ERROR, every_version, site_packages

INJECTED = "stage-2-injected-today"


def nothing_is_changed(found: dict) -> None:
    assert len(found["came"]) > 15, found["came"]
    for change, (error, of_attributes, words) in found["came"].items():
        assert error == "SharedContextError" and of_attributes, change
        assert "is shared with other connections" in words and "verify=, cert=" in words, change
    assert found["after"] == [200, SSL_ERROR]
    assert found["still shared"] and found["loads"] == 1


@every_version
@pytest.mark.parametrize("gevent", [False, True], ids=["ssl", "gevent"])
def test_a_responses_socket_carries_a_context_that_refuses_to_change(ask, version, world, gevent):
    found = ask(version, "sealed", gevent=gevent, cert=world.client_certificate("alice"))
    nothing_is_changed(found)
    assert found["is an SSLContext"]


def test_under_pyopenssl_neither_context_can_be_changed(ask, world):
    found = ask(INJECTED, "sealed", inject=True, cert=world.client_certificate("alice"))
    assert {"set_verify", "get_cert_store", "pyOpenSSL's load_verify_locations"} < set(
        found["came"]
    )
    found["came"] = {
        change: came
        for change, came in found["came"].items()
        if "has no attribute" not in came[-1]  # what pyOpenSSL does not know
    }
    nothing_is_changed(found)


@every_version
def test_a_context_that_was_changed_all_the_same_is_left_to_who_did_it(ask, version):
    found = ask(version, "round_the_seal")
    assert found["after"] == [200, SSL_ERROR]
    assert found["mode"] == 0 and not found["again"]
    assert found["loads"]["bundles"] == 2


def test_truststores_contexts_are_not_shared(ask):
    found = ask(NEWEST, "unknown_context", truststore=str(site_packages("truststore-today")))
    assert found["kind"] == "truststore"
    assert found["came"] == [200, 200, 200, SSL_ERROR]
    [(why, connections)] = found["stats"]["own"].items()
    assert why == "truststore._api.SSLContext is not known to be safe to share"
    assert connections == 4 and found["stats"]["shared"] == 0
