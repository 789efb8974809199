"""install(), what stats() and the log say, and what happens where urllib3 is not as it is known."""

import tarfile

import pytest
from here import python_in, run
from trust_runs import CURE, NEWEST, OLDEST, SSL_ERROR, environment, every_version, site_packages

from casebook import places
from casebook.stacks import installers

#: For an environment into which the distribution was installed.
OF_WHEEL = """
import sys
from pathlib import Path
import requests, requests_shared_context as installed
installed.install()
for _ in range(3):
    assert requests.get(sys.argv[1], verify=sys.argv[2]).status_code == 200
assert installed.stats()["shared"] == 3 and installed.stats()["loads"] == 1
assert installed.logger.name == "requests_shared_context"
place = Path(installed.__file__)
assert place.with_name("py.typed").exists()
assert place.read_bytes() == Path(sys.argv[3]).read_bytes()
[metadata] = place.parents[1].glob("requests_shared_context-*.dist-info/METADATA")
written = metadata.read_text().splitlines()
assert "Version: " + installed.__version__ in written and "Requires-Dist: requests>=2.21" in written
"""


@every_version
def test_install_covers_adapters_that_are_mounted_afterwards(ask, version):
    found = ask(version, "mounted")
    kinds = ["requests.get", "max_retries", "a class of one's own", "pickled"]
    for kind in kinds:
        assert found[f"before, {kind}"] == found[f"after, {kind}"] == 2, kind
    for when in ("installed", "again"):
        assert sum(found[f"{when}, {kind}"] for kind in kinds) == 1


@every_version
def test_stats_and_the_log_say_who_shares_and_why_others_do_not(ask, version):
    found = ask(version, "counted")
    assert found["stats"] == {
        "contexts": 3,
        "loads": 2,
        "shared": 4,
        "own": {
            "it was given ca_cert_dir": 1,
            "its files cannot be loaded": 1,
            "it was given assert_hostname": 1,
            "it was given ssl_context": 1,
        },
        "missing": [],
    }
    said = [words for level, words in found["log"] if level == "INFO"]
    assert len(said) == 1 and "its files cannot be loaded" in said[0]
    assert not [words for level, words in found["log"] if level == "WARNING"]


def test_an_error_that_was_not_expected_is_logged_and_leaves_requests_stock(ask):
    found = ask(NEWEST, "unexpected")
    assert found["came"] == [200, SSL_ERROR]
    assert found["stats"]["own"] == {"an unexpected error, see the log": 2}
    assert [level for level, _ in found["log"]] == ["WARNING"] * 2


@pytest.mark.parametrize("name", [
    "urllib3.util.ssl_:resolve_cert_reqs",
    "requests.adapters:HTTPAdapter.proxy_manager_for",
])  # fmt: skip
def test_where_a_name_is_gone_requests_stays_stock_and_says_so(ask, name):
    found = ask(NEWEST, "guarded", remove=name)
    assert found["came"] == [200, 200, SSL_ERROR, 200]
    assert found["loads"]["bundles"] == 4 and found["contexts"] == 0
    [[category, words]] = found["said"]
    gone = name.replace(":", ".").rpartition(".")[2]
    assert category == "RuntimeWarning" and gone in words and "no SSLContext is shared" in words
    assert [each.rpartition(".")[2] for each in found["stats"]["missing"]] == [gone]
    assert gone in found["refused"]


@every_version
def test_connections_that_change_their_context_get_their_own_and_the_log_says_so(ask, version):
    found = ask(version, "changing")
    assert found["came"] == [200, [200, 200, 200], 200]
    # The first of them connects again, with a context of its own; the others do so at once.
    assert found["connected"] == ["Changing"] * 4
    [warning] = found["warned"]
    assert "set_ciphers is refused" in warning
    assert found["stats"]["own"] == {"it changes its context": 3}
    assert found["stats"]["shared"] == 3 and found["stats"]["loads"] == 1


def test_httpx_and_urllib3_take_a_shared_context_too(ask):
    folder = site_packages("httpx-today")
    found = ask(NEWEST, "for_others", variables={"PYTHONPATH": str(folder)})
    assert found["httpx, valid"] == [200, 200]
    assert found["httpx, unknown issuer"] == ["refused", "refused"]
    assert found["urllib3, valid"] == 200 and found["urllib3, unknown issuer"] == "refused"
    assert found["loads"]["bundles"] == 2  # with HTTP/2 and without


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with what `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    # This run has its environment: make is not to make it again.
    done = run("make", "-o", ".venv/book.stamp", "dist", f"DIST={folder}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_distribution_works_when_it_is_installed(built, world, tmp_path, version):
    [wheel] = built.glob("*.whl")
    install = installers.uv("pip", "install", "--target", tmp_path, "--no-deps", "--offline")
    done = run(*install, "--python", environment(version).python, wheel)
    assert done.returncode == 0, done.stderr
    card = world.card()
    told = [card["urls"]["valid"], card["paths"]["file"], CURE]
    path = {"PYTHONPATH": str(tmp_path)}
    done = python_in(environment(version).stack.name, "-c", OF_WHEEL, *told, variables=path)
    assert done.returncode == 0, done.stderr


def test_the_source_distribution_holds_the_one_file_that_the_repository_has(built):
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        [name] = [each for each in archive.getnames() if each.endswith("/__init__.py")]
        assert archive.extractfile(name).read() == CURE.read_bytes()
    assert not list((places.ROOT / "distribution").rglob("*.py"))
