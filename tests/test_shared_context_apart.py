"""What the cure keeps apart: who verifies and who does not, whose certificate, which process."""

import ssl
import subprocess

import pytest
from trust_runs import VERSIONS, environment
from uv import find_uv_bin

from casebook import shared_context

every_version = pytest.mark.parametrize("version", VERSIONS)
SSL_ERROR = "requests.exceptions.SSLError"


@every_version
def test_verifying_and_not_verifying_never_share(ask, version):
    found = ask(version, "apart")
    assert found["verified"] == [SSL_ERROR] * 50
    assert found["unverified"] == [200] * 50
    assert found["again"] == SSL_ERROR
    required, none = int(ssl.CERT_REQUIRED), int(ssl.CERT_NONE)
    assert found["contexts"] == [[none, none], [required, required]]


@every_version
def test_one_session_that_verifies_now_and_then(ask, version):
    found = ask(version, "in_one_session")
    assert found["cured"] == found["stock"]
    # Before 2.32, stock requests goes on over the connection that it did not verify
    # (CVE-2024-35195), and the cure for contexts is none for that.
    second = found["cured"][1][0]
    assert second == (200 if version < "2.32" else SSL_ERROR)


@every_version
def test_a_client_certificate_never_enters_a_shared_context(ask, version, world):
    server = world.server_for_clients()
    certs = [world.client_certificate(name) for name in ("alice", "bob")]
    found = ask(version, "client_certificates", url=server.url, certs=certs)
    assert found["cured"] == [["alice"], ["bob"]]
    assert found["cured without"] is None
    # The control: requests 2.32.2 and 2.32.4 show a session's certificate for another session.
    leaks = version in ("2.32.2", "2.32.4")
    assert (found["stock without"] is not None) == leaks
    if not leaks:
        assert found["stock"] == [["alice"], ["bob"]]


@every_version
def test_sessions_can_be_pickled_and_copied(ask, version):
    found = ask(version, "copies")
    assert found["first"] == [200, []]
    assert found["came"] == [[[200, []], SSL_ERROR]] * 3
    assert found["kept"] == [["yes", "SharedContextAdapter"]] * 3
    assert found["loads"]["bundles"] == 0


@every_version
def test_a_forked_child_has_contexts_of_its_own(ask, version):
    found = ask(version, "fork")
    assert found["status"] == 0
    assert found["child"] == repr([[200, 200, SSL_ERROR], 1])
    assert found["parent"] == 200 and found["loads"]["bundles"] == 1


def test_a_requests_that_is_too_old_is_refused(cure, tmp_path):
    place = environment("2.24.0")
    install = [find_uv_bin(), "pip", "install", "--target", tmp_path, "--no-deps"]
    subprocess.run([*install, "requests==2.20.1"], check=True, capture_output=True)
    done = subprocess.run(
        [place.python, "-W", "ignore", "-c", "import shared_context"],
        env={"PYTHONPATH": f"{tmp_path}:{cure}"}, capture_output=True, text=True,
    )  # fmt: skip
    [*_, last] = done.stderr.splitlines()
    assert last.startswith("ImportError: shared_context needs requests 2.21 or newer")
    assert "2.20.1" in last and "pip install" in last


# The seal, on the requests that the book itself runs on


@pytest.fixture
def sealed(world):
    return shared_context._Sealed(ssl.CERT_REQUIRED, world.card()["paths"]["file"], ("http/1.1",))


@pytest.mark.parametrize("name", [
    "load_cert_chain", "load_verify_locations", "load_default_certs", "set_ciphers",
    "set_default_verify_paths", "set_ecdh_curve", "set_servername_callback",
])  # fmt: skip
def test_nothing_can_be_loaded_into_a_shared_context(sealed, name):
    assert hasattr(ssl.SSLContext, name)
    with pytest.raises(AttributeError, match=f"shared, and so has no {name}"):
        getattr(sealed, name)


@pytest.mark.parametrize("name, other", [
    ("verify_mode", ssl.CERT_NONE), ("check_hostname", False), ("verify_flags", 0),
    ("minimum_version", ssl.TLSVersion.TLSv1), ("options", 0), ("post_handshake_auth", False),
])  # fmt: skip
def test_a_shared_context_keeps_its_values(sealed, name, other):
    before = getattr(sealed, name)
    setattr(sealed, name, before)
    with pytest.raises(AttributeError, match=f"shared: {name} cannot become"):
        setattr(sealed, name, other)
    assert getattr(sealed, name) == before


def test_a_shared_context_keeps_its_protocols(sealed):
    sealed.set_alpn_protocols(["http/1.1"])
    with pytest.raises(AttributeError, match="its ALPN"):
        sealed.set_alpn_protocols(["h2"])
