"""What the workflow does with Binder's image: the tag that names it, a session and its badge.

git and Jupyter are the real ones. What Binder itself says is served here as its interface does.
"""

import contextlib
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import psutil
import pytest
from here import eventually, needs, run, serving

from casebook import places

SCRIPT = places.ROOT / ".ci" / "binder.py"
binder = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
IMAGE = f"ghcr.io/owner/book-binder@sha256:{'0123456789abcdef' * 4}"
CLAIM = """
from casebook.findings.claims import claim
claim("one", "It is {value}.", value=1, holds=True)
claim("two", "It is {value} too.", value=2, holds=HOLDS)
"""


def git(folder: Path, *arguments: object) -> str:
    who = ("-c", "user.name=one", "-c", "user.email=one@invalid")
    return run("git", *who, *arguments, cwd=folder, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a remote, with a binder/ of two files."""
    remote, folder = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", remote)
    git(tmp_path, "clone", "--quiet", remote, folder)
    for name in ("binder/postBuild", "binder/runtime.txt", "start.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


@needs("git")
def test_the_tag_is_this_commit_with_the_image_in_the_place_of_binder(checkout: Path) -> None:
    before = git(checkout, "rev-parse", "HEAD")
    for image in (IMAGE, IMAGE.replace("0123", "3210")):  # and it moves
        done = run(sys.executable, SCRIPT, "pin", image, cwd=checkout)
        assert done.returncode == 0, done.stderr
        git(checkout, "fetch", "--quiet", "--force", "origin", "refs/tags/release")
        listed = git(checkout, "ls-tree", "-r", "--name-only", "FETCH_HEAD").split()
        assert listed == ["binder/Dockerfile", "start.ipynb"]
        text = git(checkout, "show", "FETCH_HEAD:binder/Dockerfile")
        assert text.splitlines()[-1] == f"FROM {image}" and before in text
        assert git(checkout, "rev-parse", "FETCH_HEAD^") == before
    # What is checked out is as it was.
    assert git(checkout, "status", "--porcelain") == "" and (checkout / "binder/postBuild").exists()
    assert git(checkout, "rev-parse", "HEAD") == before


@needs("git")
@pytest.mark.parametrize("image", ["ghcr.io/owner/book:latest", "", f"{IMAGE}\nRUN rm", "@sha256:"])
def test_an_image_without_a_digest_is_refused(checkout: Path, image: str) -> None:
    done = run(sys.executable, SCRIPT, "pin", image, cwd=checkout)
    assert done.returncode == 1 and "names no image by its digest" in done.stderr
    assert git(checkout, "ls-remote", "origin") == ""


# A session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    """What Binder tells of a session: a Jupyter server with three notebooks."""
    folder = tmp_path_factory.mktemp("session")
    for name, holds in (("holds", "True"), ("otherwise", "False"), ("raises", "1 / 0")):
        cell = nbformat.v4.new_code_cell(f"HOLDS = {holds}\n{CLAIM}")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "jupyter_server", "--port=0", "--no-browser"]
    command += ["--IdentityProvider.token=secret", f"--ServerApp.root_dir={folder}"]
    command += ["--allow-root"] * (os.geteuid() == 0)
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environ = os.environ | own | {"PYTHONPATH": str(places.ROOT)}
    server = psutil.Popen(command, env=environ, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, cwd=folder)  # fmt: skip
    told = folder / "RUNTIME" / f"jpserver-{server.pid}.json"
    try:
        assert eventually(told.exists, seconds=240)
        assert eventually(lambda: told.read_text().endswith("}"), seconds=60)
        yield {"url": json.loads(told.read_text())["url"], "token": "secret"}
    finally:
        left = [server, *server.children(recursive=True)]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=20)


@contextlib.contextmanager
def hub(*phases: dict) -> Iterator[str]:
    """The address of a Binder that says this, as its interface does: an event for each."""

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/build/gh/owner/book/release"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for each in phases:
                self.wfile.write(b":keepalive\n\ndata: %s\n\n" % json.dumps(each).encode())

        def log_message(self, *_: object) -> None:
            pass

    with serving(Hub) as url:
        yield url


def words_of(badge: Path) -> str:
    return ElementTree.fromstring(badge.read_text()).attrib["aria-label"]


@pytest.mark.slow
def test_a_notebook_runs_there_and_the_badge_says_how_it_came_out(
    session: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binder.Session, "ask", _not_shut_down(binder.Session.ask))
    badge = tmp_path / "badge.svg"
    with hub({"phase": "launching", "message": "…"}, {"phase": "ready"} | session) as url:
        said = binder.launch("owner/book", "holds.ipynb", badge, url)
        assert re.fullmatch(r"starts in \d+ s, 2 of 2 findings hold", said)
        assert words_of(badge) == f"Binder: {said}"
        for name, why in (("otherwise", "1 of 2 findings hold"), ("raises", "ZeroDivisionError")):
            with pytest.raises(binder.Failed, match=why):
                binder.launch("owner/book", f"{name}.ipynb", badge, url)
            assert words_of(badge) == "Binder: does not work"


def _not_shut_down(ask):
    """The session of this file serves several: only what a launch ends with is left out."""

    def asked(self, method: str, path: str) -> dict:
        return {} if path == "api/shutdown" else ask(self, method, path)

    return asked


@pytest.mark.parametrize("phases, why", [
    (({"phase": "failed", "message": "Image\nnot found"},), "started nothing: Image not found"),
    (({"phase": "building", "message": "Step 1"},), "started nothing: Step 1"),
    (({"phase": "ready", "url": "http://127.0.0.1:9/", "token": "x"},), "refused"),
])  # fmt: skip
def test_what_does_not_start_is_said(phases: tuple, why: str, tmp_path: Path) -> None:
    badge = tmp_path / "badge.svg"
    with hub(*phases) as url:
        done = run(sys.executable, SCRIPT, "launch", "owner/book", "a.ipynb", badge, url)
    assert done.returncode == 1 and why in done.stderr and "Traceback" not in done.stderr
    assert words_of(badge) == "Binder: does not work"
