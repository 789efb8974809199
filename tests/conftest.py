"""What the whole suite shares."""

import cProfile
import json
import os
import shutil
import signal
import ssl
import time
from collections import Counter
from pathlib import Path

import pytest
import slow
import trust_world
import trustme
from here import environment, serving
from playwright.sync_api import sync_playwright
from trust_runs import CURE

from casebook import cli, places
from casebook.cases.bookstore.store import ENGINES, open_store
from casebook.cases.certificates.hosts import Handler
from casebook.cases.fetching import server
from casebook.stacks import environments, interpreters

# make, which may have started the suite, hands its own options and variables down in these; a make
# that a test runs is a reader's, who has set none.
for inherited in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS"):
    os.environ.pop(inherited, None)

cli.skip_grammars()  # in each worker

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: How Chromium may be called.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: No page of ours needs them, and Chromium would talk to its maker without.
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and begin with the files that take longest: the workers end together."""
    seconds = dict(slow.read())
    files: Counter[str] = Counter()
    for name, took_s in seconds.items():
        files[file_of(name)] += took_s
    for item in items:
        if {item.nodeid, *map(slow.name_of, fixtures_of(item))} & seconds.keys():
            item.add_marker("slow")
    items.sort(key=lambda item: -files[file_of(item.nodeid)])


def file_of(name: str) -> str:
    """Return the file of a test or a fixture, "tests/room/test_x.py"."""
    return name.partition("::")[0]


def fixtures_of(item: pytest.Item) -> list[pytest.FixtureDef]:
    """Return the fixtures that a test needs, each in the form that it gets."""
    return [forms[-1] for forms in item._fixtureinfo.name2fixturedefs.values()]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Note what it took to set up what tests share, for tests/support/slow.py."""
    started = time.perf_counter()
    value = yield
    took_s = time.perf_counter() - started
    if fixturedef.scope != "function" and took_s >= slow.LIMIT_S:
        note = (slow.PROPERTY, f"{slow.name_of(fixturedef)} {took_s:.1f}")
        request._pyfuncitem.user_properties.append(note)
    return value


@pytest.fixture(scope="session")
def https():
    """A lab server for all tests that reset its counters themselves, or need none."""
    with server.start() as lab:
        yield lab


@pytest.fixture(scope="session")
def http():
    """The same over plain HTTP."""
    with server.start("http") as lab:
        yield lab


@pytest.fixture(scope="session")
def shop():
    """A bookstore on Twisted, for tests that reset its counters themselves, or need none."""
    with open_store() as running:
        yield running


@pytest.fixture(params=ENGINES, scope="module")
def engine(request):
    """An engine of the bookstore, its environment made; skipped where that cannot be."""
    environment(ENGINES[request.param][0])
    return request.param


class Wrong(Handler):
    """Right answers, except for page 1.

    It is not found at /a, gets page 7's answer at /b, and nothing but a closed connection at /c.
    """

    def do_GET(self):
        page = int(self.path.rpartition("=")[2])
        place = self.path[:2] if page == 1 else ""
        self.close_connection = True
        if place != "/c":
            args = {"page": "7" if place == "/b" else str(page)}
            self.answer({"args": args}, 404 if place == "/a" else 200, Connection="close")


@pytest.fixture(scope="session")
def wrong():
    """The URL of a server with wrong responses."""
    with serving(Wrong) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium: the machine's own, or the one that Playwright has."""
    with sync_playwright() as playwright:
        executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
        if executable is None and not Path(playwright.chromium.executable_path).exists():
            if "chromium" in environments.required():
                pytest.fail("CASEBOOK_REQUIRE asks for chromium, which is not on the PATH")
            pytest.skip("no Chromium here: install it, or run `playwright install chromium`")
        running = playwright.chromium.launch(executable_path=executable, args=list(QUIET))
        yield running
        running.close()


@pytest.fixture(scope="session")
def tls(tmp_path_factory) -> tuple[ssl.SSLContext, Path]:
    """A server's context, and the file of its authority, which is in no store."""
    authority, ca_file = trustme.CA(), tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    return trust_world.presenting(authority.issue_cert("127.0.0.1")), ca_file


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Servers of every kind of trustworthiness: what tests/cure/trust_world.py tells of them."""
    with trust_world.world(tmp_path_factory.mktemp("world")) as told:
        yield told


@pytest.fixture(scope="session")
def cure(tmp_path_factory) -> Path:
    """A folder with nothing but a copy of shared_context.py, as one would take it."""
    folder = tmp_path_factory.mktemp("cure")
    shutil.copy(CURE, folder)
    return folder


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A recorded profile, of json's encoder."""
    path = tmp_path / "stage-9.prof"
    profiler = cProfile.Profile()
    profiler.runcall(json.dumps, [list(range(500))] * 200, indent=1)
    profiler.dump_stats(path)
    return path


@pytest.fixture
def locks_of_our_own(monkeypatch, tmp_path):
    """What measures elsewhere in this checkout is not waited for."""
    monkeypatch.setattr(places, "LOCAL", tmp_path)


@pytest.fixture
def no_old_pythons(monkeypatch, tmp_path):
    """A machine on which only the Python that runs this can be found, and none is required.

    Its home is this empty folder, and all that is on its PATH will be in `bin` there.
    """
    names = ("PYENV_ROOT", "MAMBA_ROOT_PREFIX", "CONDA_PREFIX", "CONDA_EXE", "CASEBOOK_REQUIRE")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setattr(interpreters, "SYSTEM_CONDA", ())
    monkeypatch.setattr(interpreters, "FOUND", {})
    monkeypatch.setattr(places, "PYTHONS", tmp_path / "pythons")
    return tmp_path
