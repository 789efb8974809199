"""What the cure loads: each bundle once, however many connections, threads, hosts and proxies."""

import shutil
import zipfile
from pathlib import Path

from trust_runs import NEWEST, PRELOADED, every_version, site_packages
from trust_world import Server

NOTHING = {"bundles": 0, "defaults": 0, "client certificates": 0}
ONE = NOTHING | {"bundles": 1}


@every_version
def test_thirty_threads_load_once(ask, version):
    loads = ask(version, "threads", n=30, kinds=["stock", "cured"])
    assert loads["cured True"] == loads["cured file"] == ONE
    assert loads["cured False"] == NOTHING
    # The control: what stock requests of this version does.
    assert loads["stock True"]["bundles"] == (0 if version in PRELOADED else 30)
    assert loads["stock file"]["bundles"] == 30
    # Each of these versions' urllib3 loads what nobody will look at.
    assert loads["stock False"]["defaults"] == 30


@every_version
def test_a_hundred_threads_race_for_the_first_request_and_one_loads(ask, version):
    loads = ask(version, "threads", n=100, kinds=["cured"])
    assert loads["cured True"] == ONE


@every_version
def test_ten_hosts_share(ask, version, world):
    context = world.servers["valid"].context
    servers = [world.servers["valid"]] + [
        world.enter_context(Server(world.servers["valid"].RequestHandlerClass, context))
        for _ in range(9)
    ]
    found = ask(version, "hosts", urls=[server.url for server in servers])
    assert found["came"] == [200] * 310
    assert found["loads"] == ONE


@every_version
def test_proxies_share(ask, version):
    found = ask(version, "proxies")
    assert found["http proxy"] == {"came": [200, []], "loads": ONE}
    if version in ("2.21.0", "2.23.0", "2.24.0"):
        return  # urllib3 before 1.26 cannot speak TLS with a proxy
    if version in PRELOADED:
        # These trust the system's certificates for the proxy itself, and those are not shared.
        assert found["https proxy"]["loads"] == ONE | {"defaults": 30}
        assert found["https proxy"]["came"] != [200, []]
    else:
        assert found["https proxy"] == {"came": [200, []], "loads": ONE}


@every_version
def test_dropped_connections_do_not_load_again(ask, version):
    assert ask(version, "dropped") == {"came": [200] * 10, "loads": ONE}


@every_version
def test_a_changed_bundle_is_picked_up(ask, version):
    found = ask(version, "replaced")
    for new, stock, cured, again in found["came"]:
        assert stock == cured == again, new
    good = [outcomes == [200, []] for _, outcomes, _, _ in found["came"]]
    assert good == [True, False, True, False, True, False, True]
    assert found["loads"] == ONE


@every_version
def test_a_bundle_can_be_loaded_beforehand(ask, version):
    found = ask(version, "preload")
    assert found["came"] == [200] * 30
    assert found["before"] == NOTHING | {"bundles": 2}
    assert found["loads"] == ONE  # the corrupt one
    assert found["refused"] == ["FileNotFoundError", "SSLError"]


def test_only_so_many_contexts_are_kept_and_the_least_recently_used_goes_first(ask):
    found = ask(NEWEST, "bounded")
    made, most = found["at most"] + 8, found["at most"]
    assert sorted(found["kept"]) == [0, *range(made - most + 1, made)]
    assert found["loads"]["bundles"] == made


@every_version
def test_greenlets_share(ask, version):
    found = ask(version, "greenlets", gevent=True)
    assert found["came"] == [200] * 30 and found["bad"] == [None]
    assert found["loads"] == ONE
    assert found["class"].startswith("gevent.")


@every_version
def test_certifi_in_a_zip_archive(ask, version, world, tmp_path):
    shutil.copytree(site_packages(version) / "certifi", tmp_path / "certifi")
    shutil.copy(world.folder / "certifi", tmp_path / "certifi" / "cacert.pem")
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        for path in sorted((tmp_path / "certifi").glob("*.*")):
            archive.write(path, Path("certifi") / path.name)
    # The archive's file is unpacked into the temporary folder, under a fixed name.
    variables = {"TMPDIR": str(tmp_path)}
    found = ask(version, "zipped", zip=str(tmp_path / "packages.zip"), variables=variables)
    assert found["from"].startswith(str(tmp_path / "packages.zip"))
    assert found["came"][:-1] == [200] * 10 and found["came"][-1] != 200
    assert found["loads"] == ONE
