"""What is lent to whom, in this process.

The cure stands beside the requests of the tests' environment, against hosts in threads. The same is
tried beside every release by the scripts that test_shared_context_inside.py runs; here a fault is
found in a second.
"""

import contextlib
import errno
import os
import shutil
import ssl
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import requests
import trustme
from trust_runs import cure

from casebook.cases.certificates.hosts import Hosts

pytestmark = [
    pytest.mark.skipif(bool(cure.UNKNOWN), reason=cure.UNKNOWN),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]


@pytest.fixture(scope="module")
def hosts():
    with Hosts(2, proxies=1) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_yet(monkeypatch):
    """Nothing was loaded or lent before, and this shell trusts nobody else."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)
    cure._slots.clear()
    cure._counts.clear()
    yield
    cure._slots.clear()
    cure._counts.clear()


def get(hosts, host=0, adapter=None, **options):
    """Whose certificate a host was shown by a session of its own, with the cure."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("https://", adapter or cure.SharedContextAdapter())
        options = {"verify": str(hosts.ca_file), "timeout": 20} | options
        return session.get(hosts.urls[host], **options).json()["shown"]


def told():
    """(loads, connections that shared, those that did not by the reason why) since last asked."""
    found = cure.stats()
    cure._counts.clear()
    return found["loads"], found["shared"], found["own"]


def client(hosts, name, folder, apart=True):
    """A client's certificate and its key, in two files or in one."""
    together = Path(hosts.client_certificate(name))
    if not apart:
        return str(together)
    key, begins, certificates = together.read_text().partition("-----BEGIN CERTIFICATE-----")
    files = folder / f"{name}.crt", folder / f"{name}.key"
    for file, text in zip(files, (begins + certificates, key), strict=True):
        file.write_text(text)
    return tuple(map(str, files))


# ---------------------------------------------------------------- who shares


def test_connections_that_trust_the_same_file_share_one_load(hosts):
    assert [get(hosts, host) for host in (0, 1, 0)] == ["nobody"] * 3
    assert told() == (1, 3, {})
    assert cure.stats()["contexts"] == 1


def test_through_a_proxy_that_tunnels_too(hosts):
    proxies = {"https": hosts.proxies[0]}
    assert [get(hosts, host, proxies=proxies) for host in (0, 1)] == ["nobody"] * 2
    assert get(hosts) == "nobody"
    assert told() == (1, 3, {})


def test_what_was_loaded_beforehand_is_shared(hosts):
    cure.preload(str(hosts.ca_file))
    assert told() == (1, 0, {})
    assert get(hosts) == "nobody" and told() == (0, 1, {})


def test_another_file_is_another_load_also_with_the_same_in_it(hosts, tmp_path):
    copy = shutil.copy(hosts.ca_file, tmp_path / "copy.pem")
    assert {get(hosts), get(hosts, verify=str(copy))} == {"nobody"}
    assert told() == (2, 2, {})


def test_a_stranger_is_refused_before_and_after_a_load_of_the_right_file(hosts, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for _ in range(2):
        with pytest.raises(requests.exceptions.SSLError, match="certificate verify failed"):
            get(hosts, verify=str(other))
        assert get(hosts) == "nobody"
    assert told()[0] == 2


def test_who_does_not_verify_shares_with_nobody_who_does(hosts, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    assert get(hosts, verify=False) == "nobody"
    with pytest.raises(requests.exceptions.SSLError):
        get(hosts, verify=str(other))
    assert get(hosts, verify=False) == "nobody"
    verifies = {recipe.bundle: dict(recipe.settings)["verify_mode"] for recipe in cure._slots}
    assert verifies[None] == ssl.CERT_NONE and verifies[str(other)] == ssl.CERT_REQUIRED


# ---------------------------------------------------------------- files that change


def test_a_file_that_holds_something_else_now_is_loaded_again(hosts, tmp_path):
    bundle, other = tmp_path / "bundle.pem", tmp_path / "other.pem"
    shutil.copy(hosts.ca_file, bundle)
    trustme.CA().cert_pem.write_to_path(other)
    assert get(hosts, verify=str(bundle)) == "nobody"
    shutil.copy(other, bundle)
    with pytest.raises(requests.exceptions.SSLError):
        get(hosts, verify=str(bundle))
    shutil.copy(hosts.ca_file, bundle)
    assert get(hosts, verify=str(bundle)) == "nobody"
    assert told()[0] == 3
    os.utime(bundle, (1, 1))  # what it holds is the same
    assert get(hosts, verify=str(bundle)) == "nobody" and told() == (0, 1, {})


def test_a_file_that_is_gone_is_an_error_though_its_context_is_there(hosts, tmp_path):
    bundle = tmp_path / "bundle.pem"
    shutil.copy(hosts.ca_file, bundle)
    assert get(hosts, verify=str(bundle)) == "nobody"
    [recipe] = cure._slots
    bundle.unlink()
    with pytest.raises(FileNotFoundError):
        cure._lend(recipe, cure._makers())


def test_a_time_limit_in_the_middle_of_a_load_ends_the_connection(hosts, monkeypatch):
    """Somebody's function raised it, called by a signal, and no file is at fault."""

    def interrupt(*_):
        raise OSError(errno.ECANCELED, "it takes too long")

    read = cure._read
    monkeypatch.setattr(cure, "_read", interrupt)
    with pytest.raises(requests.exceptions.ConnectionError, match="it takes too long"):
        get(hosts)
    assert told() == (0, 0, {"its files cannot be loaded": 1})
    with pytest.raises(FileNotFoundError) as missing:
        read(cure._Recipe((), str(hosts.ca_file) + "-", (), (), None, ()))
    assert cure._is_raised_here(missing.value)


# ---------------------------------------------------------------- clients with certificates


def test_a_client_whose_certificate_and_key_are_two_files_is_shown_and_shares(hosts, tmp_path):
    alice, bob = (client(hosts, name, tmp_path) for name in ("alice", "bob"))
    shown = [get(hosts, host, cert=cert) for cert in (alice, bob) for host in (0, 1)]
    assert shown == ["alice", "alice", "bob", "bob"]
    assert told() == (2, 4, {})
    assert get(hosts) == "nobody" and told() == (1, 1, {})


def test_a_client_whose_certificate_and_key_are_one_file_too(hosts, tmp_path):
    one = client(hosts, "alice", tmp_path, apart=False)
    assert [get(hosts, cert=one) for _ in range(2)] == ["alice"] * 2
    assert told() == (1, 2, {})


def test_a_key_that_changes_beside_the_same_certificate_is_seen(hosts, tmp_path):
    alice, carol = (client(hosts, name, tmp_path) for name in ("alice", "carol"))
    assert get(hosts, cert=alice) == "alice"
    shutil.copy(carol[1], alice[1])  # which is not that of her certificate
    with pytest.raises(OSError, match=r"(?i)mismatch"):
        get(hosts, cert=alice)
    shutil.copy(carol[0], alice[0])
    assert get(hosts, cert=alice) == "carol"


def test_the_files_of_a_recipe_are_its_bundle_its_certificate_and_its_key():
    def recipe(bundle, *client):
        return cure._Recipe((), bundle, client, (), None, ())

    assert recipe("b").paths == ["b"]
    assert recipe("b", "c", "k").paths == ["b", "c", "k"]
    assert recipe("b", "c", None).paths == ["b", "c", "c"]
    assert recipe(None, "c", "k").paths == ["c", "k"]
    assert recipe(None).paths == []
    steps = [("load_verify_locations", "b", None, None), ("load_cert_chain", "c", "k")]
    assert recipe("b", "c", "k").steps == steps
    # Of a client's files nothing is kept but their digests.
    kept = cure._fingerprints(recipe("b", "c", "k"), [b"bundle", b"certificate", b"key"])
    assert kept[0] == b"bundle" and [len(each) for each in kept[1:]] == [32, 32]
    assert (
        len({*kept, *cure._fingerprints(recipe("b", "c", "k"), [b"bundle", b"certificate", b"k"])})
        == 4
    )
    assert not any(
        b"key" in each for each in cure._fingerprints(recipe(None, "c", "k"), [b"a", b"key"])
    )
    # Without a bundle, too, and where one file holds both.
    both = cure._fingerprints(recipe(None, "c", None), [b"a certificate and its key"] * 2)
    assert [len(each) for each in both] == [32, 32] and not any(b"key" in each for each in both)


def test_an_encrypted_key_is_left_to_requests(hosts, tmp_path, monkeypatch):
    cert, key = client(hosts, "alice", tmp_path)
    Path(key).write_bytes(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n")
    with pytest.raises(cure._OwnContext, match="its key is encrypted"):
        cure._make_sealed_context(
            recipe_of(hosts, cert, key), texts(hosts, cert, key), cure._makers()
        )
    # One whose text does not say it is refused when OpenSSL asks for the password.
    with pytest.raises(cure._OwnContext, match="its key is encrypted"):
        cure._refuse_password()
    # A key goes into memory, or nowhere.
    monkeypatch.setattr(cure, "_in_memory", None)
    with pytest.raises(cure._OwnContext, match="copied to a disk"):
        with cure._copies([b"bundle", b"-----BEGIN PRIVATE KEY-----"]):
            pass
    with cure._copies([b"bundle"]) as names:
        assert Path(next(names)).read_bytes() == b"bundle"


def recipe_of(hosts, *client):
    cure.preload(str(hosts.ca_file))
    [recipe] = [recipe for recipe in cure._slots if not recipe.client]
    return recipe._replace(client=client)


def texts(*files):
    first, *others = files
    return [Path(each).read_bytes() for each in (first.ca_file, *others)]


# ---------------------------------------------------------------- who does not share


@pytest.mark.parametrize("name", cure._SETTINGS)
def test_a_connection_that_was_told_more_makes_its_own_context(hosts, name):
    connection = cure._Connection("h", 1, cert_reqs="CERT_REQUIRED", ca_certs=str(hosts.ca_file))
    assert cure._stays_stock(connection) == ""
    setattr(connection, name, False)  # None alone is nothing
    assert cure._stays_stock(connection) == f"it was given {name}"


def test_who_trusts_the_system_makes_its_own_context_and_who_trusts_nobody_shares():
    trusting = cure._Connection("h", 1, cert_reqs="CERT_REQUIRED")
    assert cure._stays_stock(trusting) == "it trusts the system's certificates"
    assert cure._stays_stock(cure._Connection("h", 1, cert_reqs="CERT_NONE")) == ""
    given = cure._Connection("h", 1, ssl_context=ssl.create_default_context())
    assert cure._stays_stock(given) == "it was given ssl_context"


def test_where_a_proxy_forwards_the_connection_to_it_is_its_own(hosts):
    connection = cure._Connection("h", 1, cert_reqs="CERT_REQUIRED", ca_certs=str(hosts.ca_file))
    assert cure._stays_stock(connection) == ""
    connection.proxy = "https://127.0.0.1:2"
    assert cure._stays_stock(connection) == "its proxy forwards, and does not tunnel"
    connection.set_tunnel("h", 1)
    assert cure._stays_stock(connection) == ""


def test_what_a_connection_may_be_told_besides():
    told = {"ca_cert_dir", "ca_cert_data", "key_password", "assert_hostname", "assert_fingerprint"}
    assert told | {"ssl_version", "ssl_minimum_version", "ssl_maximum_version"} == {*cure._SETTINGS}


def test_a_folder_of_certificates_is_left_to_requests(hosts, tmp_path):
    shutil.copy(hosts.ca_file, tmp_path)
    with pytest.raises(requests.exceptions.SSLError):  # nobody has named its file by its hash
        get(hosts, verify=str(tmp_path))
    assert told() == (0, 0, {"it was given ca_cert_dir": 1})


class Without(cure.SharedContextAdapter):
    """An adapter that tells its connections something."""

    def __init__(self, **more):
        self.more = more
        super().__init__()

    def init_poolmanager(self, *args, **kwargs):
        super().init_poolmanager(*args, **kwargs, **self.more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"assert_hostname": False}, "it was given assert_hostname"),
        ({"assert_hostname": "localhost"}, "it was given assert_hostname"),
        ({"ssl_minimum_version": ssl.TLSVersion.TLSv1_3}, "it was given ssl_minimum_version"),
    ],
)
def test_an_adapter_that_asserts_something_gets_what_it_asserts(hosts, more, why):
    assert get(hosts) == "nobody" and told() == (1, 1, {})
    assert get(hosts, adapter=Without(**more)) == "nobody"
    assert told() == (0, 0, {why: 1})


def test_another_name_than_the_certificates_is_refused(hosts):
    assert get(hosts) == "nobody"
    with pytest.raises(requests.exceptions.SSLError, match=r"doesn't match|not valid for"):
        get(hosts, adapter=Without(assert_hostname="somebody.example"))


def test_where_keys_are_logged_nothing_is_shared(hosts, monkeypatch, tmp_path):
    assert get(hosts) == "nobody" and told() == (1, 1, {})
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert get(hosts) == "nobody" and told() == (0, 0, {"SSLKEYLOGFILE is set": 1})
    assert (tmp_path / "keys").read_text()


def test_what_is_no_file_is_not_opened(tmp_path):
    """Nor is its writer woken, who waits for stock requests to read what it has to say."""
    os.mkfifo(tmp_path / "pipe")
    recipe = cure._Recipe((), str(tmp_path / "pipe"), (), (), None, ())
    opened, waits = threading.Event(), threading.Event()

    def write():
        waits.set()
        with open(tmp_path / "pipe", "wb"):
            opened.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert waits.wait(20)
        for _ in range(5):
            with pytest.raises(cure._OwnContext, match="no regular file"):
                cure._read(recipe)
            assert not opened.wait(0.05)
    finally:
        # A reader who does not wait for the writer, who may have gone.
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        writer.join(20)
        os.close(reader)
    assert opened.is_set()
    assert cure._read(recipe._replace(bundle=None)) == []


def test_a_pipe_that_takes_a_files_place_holds_nobody_up(tmp_path, monkeypatch):
    """Between the look and the opening; its writer never comes."""
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)
    a_file = os.stat(__file__)
    looking = SimpleNamespace(**{**vars(os), "stat": lambda _: a_file})
    monkeypatch.setattr(cure, "os", looking)

    def read():
        with contextlib.suppress(cure._OwnContext):
            cure._read(cure._Recipe((), str(pipe), (), (), None, ()))
        said.append("back")

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(20)
    if reader.is_alive():  # a writer that says nothing
        os.close(os.open(pipe, os.O_WRONLY))
        reader.join()
        pytest.fail("it waited for a writer")
    assert said == ["back"]


def test_files_that_were_read_are_closed_again(hosts):
    for _ in range(3):
        assert get(hosts) == "nobody"
    assert str(hosts.ca_file) not in [file.path for file in psutil.Process().open_files()]


def test_a_connection_that_connects_again_borrows_again(hosts, tmp_path):
    """It keeps nothing of its first loan: its file may trust somebody else by now."""
    bundle = str(shutil.copy(hosts.ca_file, tmp_path / "bundle.pem"))
    adapter = cure.SharedContextAdapter()
    with requests.Session() as session:
        session.trust_env = False
        session.mount("https://", adapter)

        def again():
            answer = session.get(hosts.urls[0], verify=bundle, timeout=20)
            [pool] = adapter.poolmanager.pools._container.values()
            connection = pool._get_conn()
            connection.close()  # as when a server has ended it
            pool._put_conn(connection)
            assert connection.ssl_context is None
            return answer.json()["shown"]

        assert [again(), again()] == ["nobody"] * 2 and told() == (1, 2, {})
        trustme.CA().cert_pem.write_to_path(bundle)
        with pytest.raises(requests.exceptions.SSLError, match="certificate verify failed"):
            again()


def test_what_is_taken_back_is_shared_no_more(hosts, monkeypatch):
    for name in ("__init__", "__setstate__", "proxy_manager_for"):
        # As it is now, once the test is over.
        monkeypatch.setattr(cure._HTTPAdapter, name, vars(cure._HTTPAdapter)[name])
    monkeypatch.setattr(cure, "_installed", False)
    cure.install()
    made_before = requests.adapters.HTTPAdapter()
    assert get(hosts, adapter=made_before) == "nobody" and told() == (1, 1, {})
    cure.uninstall()
    assert get(hosts, adapter=requests.adapters.HTTPAdapter()) == "nobody"
    assert told() == (0, 0, {})


def test_an_adapter_that_was_made_before_stays_stock_through_a_proxy_too(monkeypatch):
    for name in ("__init__", "__setstate__", "proxy_manager_for"):
        monkeypatch.setattr(cure._HTTPAdapter, name, vars(cure._HTTPAdapter)[name])
    monkeypatch.setattr(cure, "_installed", False)
    made_before = requests.adapters.HTTPAdapter()
    cure.install()
    for adapter, shares in ((made_before, False), (requests.adapters.HTTPAdapter(), True)):
        through = adapter.proxy_manager_for("http://127.0.0.1:9")
        for manager in (adapter.poolmanager, through):
            assert isinstance(manager.pool_classes_by_scheme, cure._PoolClasses) is shares


def test_a_shared_context_offers_the_protocols_that_stock_requests_offers(hosts):
    cure.preload(str(hosts.ca_file))
    [slot] = cure._slots.values()
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        slot.lent[1].wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    said = hello.read()
    assert cure._alpn() and all(name.encode() in said for name in cure._alpn())


# ---------------------------------------------------------------- what is kept


def test_so_many_contexts_are_kept_and_the_one_used_last_stays(hosts, tmp_path, monkeypatch):
    monkeypatch.setattr(cure, "KEPT", 2)
    first, second, third = (
        str(shutil.copy(hosts.ca_file, tmp_path / f"{number}.pem")) for number in range(3)
    )
    loads = []
    for bundle in (first, second, first, third, first, second):
        cure.preload(bundle)
        loads.append(told()[0])
    assert loads == [1, 1, 0, 1, 0, 1]
    assert cure.stats()["contexts"] == 2


def test_a_context_that_somebody_changed_is_not_lent_again(hosts):
    cure.preload(str(hosts.ca_file))
    [slot] = cure._slots.values()
    lent = slot.lent[1]
    flags = lent.verify_flags | ssl.VERIFY_CRL_CHECK_LEAF
    ssl.SSLContext.verify_flags.__set__(lent, flags)  # past the seal
    cure.preload(str(hosts.ca_file))
    assert slot.lent[1] is not lent
    assert get(hosts) == "nobody" and told() == (2, 1, {})


@pytest.mark.parametrize(
    ("steps", "shared", "own"),
    [
        (("verify_mode", "load", "alpn"), 1, 0),
        (("verify_mode", "load"), 0, 1),  # the last one is left out
        (("verify_mode", "load", "alpn", "alpn"), 0, 1),
        (("load", "verify_mode", "alpn"), 0, 1),
        (("verify_mode", "alpn", "load"), 0, 1),
    ],
)
def test_what_is_lent_was_set_up_by_the_same_steps_in_the_same_order(hosts, steps, shared, own):
    bundle = str(hosts.ca_file)
    connection = cure._Connection("h", 1, cert_reqs="CERT_REQUIRED", ca_certs=bundle)
    loan = connection.ssl_context = cure._Loan(connection)
    do = {
        "verify_mode": lambda: setattr(loan, "verify_mode", ssl.CERT_REQUIRED),
        "load": lambda: loan.load_verify_locations(bundle, None, None),
        "alpn": lambda: loan.set_alpn_protocols(list(cure._alpn())),
    }
    for step in steps:
        do[step]()
    context = loan._decided()
    reasons = told()[2]
    assert reasons == {"its context was set up in another way": 1} if own else reasons == {}
    assert context.verify_mode == ssl.CERT_REQUIRED and context.cert_store_stats()["x509"] == 1
    assert type(context).__name__.startswith("Shared") is bool(shared)


def test_a_context_whose_makers_changed_meanwhile_is_lent_to_nobody(hosts, monkeypatch):
    """One that has begun with the old ones is not that of a recipe of either."""
    make = cure._make_sealed_context

    def make_and_patch(*parts):
        context = make(*parts)
        monkeypatch.setattr(cure._ssl, "a_name_that_a_tool_adds", 1, raising=False)
        return context

    monkeypatch.setattr(cure, "_make_sealed_context", make_and_patch)
    with pytest.raises(RuntimeError, match="what makes contexts changes meanwhile"):
        cure.preload(str(hosts.ca_file))
    assert cure.stats()["contexts"] == 0
    monkeypatch.setattr(cure, "_make_sealed_context", make)
    assert get(hosts) == "nobody" and told() == (2, 1, {})


def test_a_context_is_made_by_what_was_looked_at_whatever_is_in_its_place(hosts, monkeypatch):
    cure.preload(str(hosts.ca_file))
    [recipe] = cure._slots
    makers = cure._makers()
    monkeypatch.setattr(cure._connection, "create_urllib3_context", pytest.fail)
    context = cure._make_sealed_context(recipe, [Path(hosts.ca_file).read_bytes()], makers)
    assert context.verify_mode == ssl.CERT_REQUIRED and context.cert_store_stats()["x509"] == 1


def test_a_lent_context_refuses_whatever_would_change_it(hosts):
    cure.preload(str(hosts.ca_file))
    [slot] = cure._slots.values()
    context = slot.lent[1]
    before = cure._settings_of(context)
    for change in (
        lambda: context.load_verify_locations(str(hosts.ca_file)),
        lambda: context.load_default_certs(),
        lambda: context.load_cert_chain("cert"),
        lambda: context.set_default_verify_paths(),
        lambda: context.set_ciphers("ALL"),
        lambda: context.set_alpn_protocols(["h2"]),
        lambda: setattr(context, "verify_mode", ssl.CERT_NONE),
        lambda: setattr(context, "check_hostname", False),
        lambda: setattr(context, "minimum_version", ssl.TLSVersion.TLSv1),
        lambda: setattr(context, "options", 0),
        lambda: setattr(context, "anything", 1),
        lambda: delattr(context, "options"),
        lambda: context.wrap_socket(None, session="a session"),
        lambda: context.wrap_bio(None, None, False, None, "a session"),
    ):
        with pytest.raises(cure.SharedContextError, match="is refused"):
            change()
    assert cure._settings_of(context) == before and isinstance(context, ssl.SSLContext)
    assert context.cert_store_stats()["x509"] == 1


# ---------------------------------------------------------------- forks


@pytest.fixture
def state(monkeypatch):
    """What a fork changes in a child, put back."""
    for name in ("_slots", "_guard", "_single_threaded", "_process"):
        monkeypatch.setattr(cure, name, getattr(cure, name))
    monkeypatch.setattr(cure, "_left_by_parent", [])


def test_a_child_of_a_single_thread_keeps_bundles_and_no_client(
    hosts, tmp_path, state, monkeypatch
):
    assert get(hosts) == "nobody" and get(hosts, cert=client(hosts, "alice", tmp_path)) == "alice"
    assert cure.stats()["contexts"] == 2
    parents = cure._slots
    monkeypatch.setattr(cure, "_single_threaded", True)
    cure._in_child()
    [(recipe, slot)] = cure._slots.items()
    assert not recipe.client and slot is not parents[recipe] and slot.lent is parents[recipe].lent
    assert cure._left_by_parent == [] and cure.stats()["loads"] == 0 and not cure._single_threaded
    assert get(hosts) == "nobody" and told() == (0, 1, {})


def test_a_child_of_several_threads_keeps_nothing_and_frees_nothing(hosts, state, monkeypatch):
    cure.preload(str(hosts.ca_file))
    parents = cure._slots
    monkeypatch.setattr(cure, "_single_threaded", False)
    cure._in_child()
    assert cure._slots == {} and cure._left_by_parent == [parents]
    assert get(hosts) == "nobody" and told() == (1, 1, {})


def test_a_fork_is_of_a_single_thread_where_no_other_runs(state, monkeypatch):
    for threads, alone in (({1: None}, True), ({1: None, 2: None}, False)):
        monkeypatch.setattr(cure.sys, "_current_frames", lambda threads=threads: threads)
        cure._before_fork()
        assert cure._single_threaded is alone
    cure._single_threaded = True
    cure._in_parent()
    assert not cure._single_threaded


def test_a_fork_of_which_python_was_not_told_is_seen_when_something_is_lent(hosts, state):
    cure.preload(str(hosts.ca_file))
    cure._process = -1  # as in a child
    cure.preload(str(hosts.ca_file))
    assert cure._process == os.getpid() and told()[0] == 1


# ---------------------------------------------------------------- releases


@pytest.mark.parametrize(
    ("of_requests", "of_urllib3", "is_known"),
    [
        ("2.34.2", "2.8.0", True),
        ("2.34.2", "2.8.1", False),
        ("2.34.3", "2.8.0", False),
        ("2.20.0", "1.24", False),
        ("2.32.0", "2.2.1", False),  # withdrawn
        # What requests itself accepts.
        ("2.21.0", "1.24.3", True),
        ("2.21.0", "1.25.2", False),
        ("2.22.0", "1.25.2", True),
        ("2.24.0", "1.25.11", True),
        ("2.24.0", "1.26.0", False),
        ("2.25.0", "1.26.0", True),
        ("2.29.0", "1.26.20", True),
        ("2.29.0", "2.0.2", False),
        ("2.30.0", "2.0.2", True),
        ("2.31.0", "1.25.11", True),
        # From 2.32 on with urllib3 1.26 and newer alone.
        ("2.32.2", "1.25.11", False),
        ("2.32.2", "1.26.0", True),
    ],
)
def test_releases_that_were_tried_together_are_known_and_no_others(
    of_requests, of_urllib3, is_known
):
    assert cure.is_tested(of_requests, of_urllib3) is is_known
