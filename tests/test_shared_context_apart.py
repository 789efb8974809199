"""What the cure keeps apart: who verifies and who does not, whose certificate, which process."""

import ssl

from here import run
from trust_runs import NEWEST, OLDEST, PRELOADED, SSL_ERROR, environment, every_version

from casebook.stacks import installers


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
    leaks = version in PRELOADED
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
def test_clients_with_the_same_certificate_share_and_a_new_one_is_seen(ask, version, world):
    server = world.server_for_clients()
    certs = [world.client_certificate(name) for name in ("alice", "bob")]
    found = ask(version, "same_client", url=server.url, certs=certs)
    assert found["shown"] == ["alice"] * 5 + ["bob"] * 5 + ["alice"] * 5
    assert found["before"] == {"bundles": 2, "defaults": 0, "client certificates": 2}
    assert found["alice's file replaced by bob's"] == "bob"
    assert found["loads"] == {"bundles": 1, "defaults": 0, "client certificates": 1}


@every_version
def test_a_forked_child_keeps_contexts_that_no_other_thread_could_hold(ask, version, world):
    asked = {"url": world.server_for_clients().url, "cert": world.client_certificate("alice")}
    found = ask(version, "fork", **asked)
    # What came, loads without and with a client certificate, shared connections in this process.
    came = [200, 200, SSL_ERROR, 200, 200]
    assert found["alone"] == [came, 0, 1, 5]
    assert found["beside a thread"] == [came, 1, 1, 5]
    assert found["parent"] == [200, 200]
    assert found["loads"]["bundles"] == 0


@every_version
def test_a_context_for_others_compares_host_names(ask, version):
    found = ask(version, "names")
    assert (found["valid"], found["wrong host"]) == ("accepted", "refused")
    assert found["came"] == [200]
    # urllib3 before 2 compares names itself, so its connections need a context of another kind.
    assert found["loads"] == (2 if version < "2.30" else 1)


def test_under_pyopenssl_others_get_no_context_since_it_compares_no_names(ask):
    found = ask("stage-2-injected-today", "names", inject=True)
    assert "cannot compare host names" in found["refused"]


def test_a_limit_that_a_connection_sets_late_is_kept(ask):
    found = ask(NEWEST, "late")
    assert found["stock"] == found["cured"] == ["TLSv1.2"] * 2
    # The first connects again, with a context of its own; the second does so at once.
    assert found["own"] == {"it was given ssl_maximum_version": 1, "it changes its context": 1}


def test_a_manager_that_allows_a_proxy_another_name_keeps_doing_so(ask, world):
    proxy = world.proxy_of_another_name().url
    allowed = ask(NEWEST, "proxy_asserting", proxy=proxy, asserted=False)
    assert allowed["stock"] == allowed["cured"] == [200, []]
    # The control: with no such word the same proxy is refused.
    refused = ask(NEWEST, "proxy_asserting", proxy=proxy, asserted=None)
    assert refused["stock"] == refused["cured"] != [200, []]


@every_version
def test_functions_that_a_program_replaced_are_called_as_ever(ask, version):
    found = ask(version, "replaced_functions")
    for name, (stock, cured) in found["called"].items():
        assert cured == stock, name
    used = [calls for [_, calls], _ in found["called"].values()]
    assert used == [3, 0, 3, 0]  # connections use the names that urllib3.connection imported
    assert found["own"] == {f"{name} was replaced": 3 for name in found["called"]}


def test_a_later_sslkeylogfile_is_written_to_as_ever(ask):
    found = ask(NEWEST, "key_log")
    assert found["cured"] == found["stock"]
    before, meanwhile, after = found["cured"]
    assert before == 0 < meanwhile == after


def test_other_ciphers_in_urllib3s_variable_make_another_context(ask, world):
    asked = {"url": world.server_for_clients(tls=ssl.TLSVersion.TLSv1_2).url}
    found = ask(OLDEST, "ciphers", cert=world.client_certificate("alice"), **asked)["found"]
    assert found[0] == found[1] and found[2] == found[3]
    assert "GCM" in found[1] and "CHACHA20" in found[3]


def test_a_requests_that_is_too_old_is_refused(cure, tmp_path):
    run(*installers.uv("pip", "install", "--target", tmp_path, "--no-deps"), "requests==2.20.1")
    path = {"PYTHONPATH": f"{tmp_path}:{cure}"}
    command = [environment("2.24.0").python, "-W", "ignore", "-c", "import shared_context"]
    done = run(*command, env=path)
    [*_, last] = done.stderr.splitlines()
    assert last.startswith("ImportError: shared_context needs requests 2.21 or newer")
    assert "2.20.1" in last and "pip install" in last
