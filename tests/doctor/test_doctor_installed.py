"""The doctor as a distribution, beside other Pythons, and its plugin in another project's tests."""

import json
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import certifi
import here
import pytest
import tls_doctor

from casebook import places
from casebook.cases.certificates.hosts import Handler
from casebook.stacks import installers

PROGRAM = """
import os, requests
for _ in range(4): assert requests.get(os.environ["SITE"]).ok
"""
#: The tests of a project that keeps what it mended, and what becomes of each.
TESTS = """
import os, threading
import pytest, requests

SITE = os.environ["SITE"]

@pytest.fixture
def session():
    with requests.Session() as session:
        yield session

@pytest.mark.tls(loads=1, handshakes=1)
def test_kept(session):
    for _ in range(3): assert session.get(SITE).ok

@pytest.mark.tls(loads=1, handshakes=1)
def test_not_kept():
    for _ in range(3): assert requests.get(SITE).ok

@pytest.mark.tls(loads=0)
def test_that_fails_by_itself(session):
    assert not session.get(SITE).ok

def test_counted(tls, session):
    assert (tls.loads, tls.handshakes) == (0, 0)
    fetching = threading.Thread(target=session.get, args=[SITE])
    fetching.start()
    fetching.join()
    assert (tls.loads, tls.handshakes, tls.connections) == (1, 1, 1)

@pytest.fixture
def used(session):
    assert session.get(SITE).ok

def test_counted_without_fixtures(tls, used, session):
    assert (tls.loads, tls.handshakes) == (0, 0)
    assert session.get(SITE).ok
    assert (tls.loads, tls.handshakes) == (0, 0)

@pytest.mark.tls(loads=1)
def test_both(tls, session):
    assert session.get(SITE).ok
    assert tls.loads == 1

@pytest.mark.tls(loads=1)
class TestOfTwoMarks:
    @pytest.mark.tls(handshakes=5)
    def test_both_count(self):
        for _ in range(3): assert requests.get(SITE).ok

@pytest.mark.tls(weather=1)
def test_of_the_weather():
    pass
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with what `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    # This run has its environment: make is not to make it again.
    done = here.run("make", "-o", ".venv/book.stamp", "dist", f"DIST={folder}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module", params=["3.9", "3.13"])
def installed(request, built, tmp_path_factory):
    """The bin folder of an environment that has the wheel, requests and pytest."""
    python, folder = here.another_python(request.param), tmp_path_factory.mktemp("venv")
    [wheel] = built.glob("tls_doctor-*.whl")
    for command in (
        installers.uv("venv", "--clear", "--python", python, folder),
        installers.uv("pip", "install", "--python", folder, wheel, "requests", "pytest"),
    ):
        done = here.run(*command)
        assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def environ(tls, tmp_path_factory):
    """Environment variables with a SITE, and what makes clients trust it."""

    class Page(Handler):
        def do_GET(self):
            self.answer({})

    context, ca_file = tls
    bundle = tmp_path_factory.mktemp("trust") / "bundle.pem"
    bundle.write_bytes(Path(certifi.where()).read_bytes() + b"\n" + ca_file.read_bytes())
    with here.serving(Page, context) as url:
        yield {"PATH": os.defpath, "SITE": url, "REQUESTS_CA_BUNDLE": str(bundle)}


def test_the_command_counts_a_program(installed, environ, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [installed / "tls-doctor", "run", "--json", "--", "program.py"]
    done = here.run(*command, env=environ, cwd=tmp_path)
    report = json.loads(done.stdout)
    counts = report["counts"]
    assert (counts["loads"], counts["connections"], done.returncode) == (4, 4, 1)
    assert report["tried"]["requests"]["then"]["loads"] == 1
    done = here.run(installed / "python", "-m", "tls_doctor", "--version", env=environ)
    assert done.stdout.startswith(f"doctor {tls_doctor.basis.VERSION}, Python 3.")


def test_it_runs_the_program_with_the_python_that_is_named(built, environ, tmp_path):
    """As `uvx tls-doctor run -- python job.py` has to, whose own environment has no requests."""
    bare = tmp_path / "bare"
    assert here.run(*installers.uv("venv", bare)).returncode == 0
    [wheel] = built.glob("tls_doctor-*.whl")
    done = here.run(*installers.uv("pip", "install", "--python", bare, "--no-deps", wheel))
    assert done.returncode == 0, done.stderr
    (tmp_path / "program.py").write_text(PROGRAM)
    has_requests = places.ROOT / ".venv/bin/python"
    script = tmp_path / "fetch"
    script.write_text(f"#!{has_requests}\n{PROGRAM}")
    script.chmod(0o755)
    path = {"PATH": f"{has_requests.parent}:{os.defpath}"}
    for command in ([has_requests, "program.py"], ["python", "program.py"], ["./fetch"]):
        run = [bare / "bin/tls-doctor", "run", "--json", "--", *command]
        done = here.run(*run, env=environ | path, cwd=tmp_path)
        assert json.loads(done.stdout)["counts"]["loads"] == 4, done.stderr


def test_a_project_keeps_what_it_mended(installed, environ, tmp_path):
    (tmp_path / "test_pages.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    done = here.run(installed / "python", "-m", "pytest", "-rA", env=environ, cwd=tmp_path)
    passed = set(re.findall(r"(?m)^PASSED test_pages.py::(\w+)", done.stdout))
    assert passed == {"test_kept", "test_counted", "test_both", "test_counted_without_fixtures"}, (
        done.stdout
    )
    assert "TLS: 3 loads, 3 handshakes" in done.stdout and "at most loads=1" in done.stdout
    assert "requests loaded 3 times: test_pages.py:" in done.stdout
    assert "assert not True" in done.stdout  # its own reason, and not ours
    assert re.search(r"at most handshakes=5\s+at most loads=1", done.stdout)
    assert "mark.tls takes loads, handshakes" in done.stdout


def test_the_wheel_holds_the_one_file_and_the_source_distribution_what_it_is_made_of(built):
    [path] = built.glob("tls_doctor-*.whl")
    with zipfile.ZipFile(path) as archive:
        assert archive.read("tls_doctor/__init__.py") == places.DOCTOR.read_bytes()
        assert "tls_doctor/basis.py" not in archive.namelist()
    [path] = built.glob("tls_doctor-*.tar.gz")
    with tarfile.open(path) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {"single_file.py", "CHANGELOG.md", "src/tls_doctor/basis.py"} <= files


LOADING = """
import ssl
print("begun", flush=True)
while True: ssl.create_default_context()
"""


def test_from_3_14_on_attach_needs_no_py_spy():
    """Python's own reader, which works where the doctor is run by the Python of the process."""
    python = here.another_python("3.14")
    with subprocess.Popen([python, "-c", LOADING], stdout=subprocess.PIPE) as loading:
        try:
            assert loading.stdout.readline() == b"begun\n"
            attach = [places.DOCTOR, "attach", loading.pid, "--json", "--seconds", "1"]
            done = here.run(python, *attach, env={"PATH": "/nonexistent"})
            other = here.run(
                places.ROOT / ".venv/bin/python", *attach, env={"PATH": "/nonexistent"}
            )
        finally:
            loading.kill()
    report = json.loads(done.stdout)
    if "by" not in report:
        pytest.skip("this machine does not let one process read another")
    assert (report["by"], report["exit_status"], done.returncode) == ("Python 3.14", 2, 2)
    assert "no connection was seen to come through" in report["why"]  # it makes none
    assert report["seen"]["loading"] > report["looks"] / 2
    assert report["stack"][-1].startswith("ssl.py:")
    assert "py-spy is not here" in json.loads(other.stdout)["trouble"]
