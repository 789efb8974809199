"""Interpreters that are really run, and real environments, in a folder of the test's own."""

import hashlib
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from here import environment, python_in
from packaging.markers import default_environment
from packaging.requirements import Requirement

from casebook import places, stacks
from casebook.errors import EnvironmentFailed, MissingInterpreter
from casebook.stacks import environments, installation, interpreters

STAGE_1 = stacks.get("stage-1-today")
REQUESTS = STAGE_1.packages["requests"]
HERE = Path(sys.executable).resolve()
FAMILY = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty folder of environments and a table and locks that may be changed."""
    monkeypatch.setattr(places, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.setattr(places, "ENV", tmp_path / "env")
    shutil.copytree(stacks.TABLE.parent, tmp_path / "env")
    return tmp_path


def make(stack=STAGE_1) -> list[str]:
    """The progress lines of ensuring a stack."""
    lines = []
    environments.ensure(stack, lines.append)
    return lines


def change(file: str, old: str, new: str) -> None:
    """Change a file of the test's own table, locks and patches."""
    path = places.ENV / file
    changed = re.sub(old, new, path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)


def state(stack=STAGE_1) -> str:
    return environments.status(stack)["state"]


def test_what_another_process_has_made_meanwhile_is_not_made_again(tmp_path, monkeypatch):
    """Whoever waited for the lock looks again."""
    monkeypatch.setattr(places, "ENVIRONMENTS", tmp_path)
    states = ["missing", "ready"]
    place = SimpleNamespace(
        name="stage-1", python=tmp_path / "python", state=lambda: states.pop(0),
        stamp=lambda: {"versions": {"requests": "2"}},
        interpreter=SimpleNamespace(version="3.13.5"),
    )  # fmt: skip
    monkeypatch.setattr(environments, "_place", lambda _: place)
    monkeypatch.setattr(installation, "failure", lambda _: "")
    monkeypatch.setattr(installation, "build", lambda *_: pytest.fail("it is made again"))
    assert make() == [] and states == []


# Interpreters


@pytest.mark.parametrize(
    ("kind", "family", "wanted", "is_taken"),
    [
        ("CPython", "2.7", "2.7", True),
        ("CPython", "3.11", "2.7", False),  # a name proves nothing
        ("PyPy", "2.7", "2.7", False),
        ("CPython", "3.11", "", True),
        ("PyPy", "3.11", "", False),
    ],
)
def test_a_python_is_what_it_says_when_it_is_run(kind, family, wanted, is_taken, monkeypatch):
    told = [kind, f"{family}.9", family, "/behind/the/shim", "OpenSSL 3.0.19", "x86_64"]
    ran = SimpleNamespace(stdout=json.dumps(told))
    monkeypatch.setattr(interpreters.commands, "run", lambda *_: ran)
    found = interpreters.examine(Path("/shims/python2.7"), wanted)
    there = interpreters.Interpreter(
        Path("/behind/the/shim"), f"{family}.9", "OpenSSL 3.0.19", "x86_64"
    )
    assert found == (there if is_taken else None)


def script(path: Path, text: str = f'exec "{HERE}" "$@"') -> None:
    """A command; by default it is the Python that runs this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("place", [
    "bin/python{}",
    "bin/python",
    ".pyenv/versions/{}.7/bin/python{}",
    "micromamba/envs/case/bin/python{}",
    "miniforge3/bin/python{}",
    "uv/cpython-{}.7-linux/bin/python{}",
    "conda/bin/python{}",
    "listed/bin/python{}",
    ".pyenv/shims/python{}",
])  # fmt: skip
def test_an_interpreter_is_found_where_it_may_be(no_old_pythons, monkeypatch, place):
    monkeypatch.setenv("CONDA_PREFIX", str(no_old_pythons / "conda"))
    (no_old_pythons / ".conda").mkdir()
    listed = no_old_pythons / ".conda" / "environments.txt"
    listed.write_text(f"/nowhere\n{no_old_pythons / 'listed'}\n")
    assert interpreters.find(FAMILY) is None
    script(no_old_pythons / place.format(FAMILY, FAMILY))
    found = interpreters.find(FAMILY)
    assert found.path == HERE
    assert found.version.startswith(FAMILY + ".") and "OpenSSL" in found.openssl


def test_a_candidate_that_fails_is_passed_over(no_old_pythons):
    name = f"python{FAMILY}"
    script(no_old_pythons / "bin" / name, "echo 'pyenv: command not found' >&2; exit 127")
    script(no_old_pythons / ".pyenv/versions" / f"{FAMILY}.99" / "bin" / name, "exit 0")
    script(no_old_pythons / ".pyenv/versions" / f"{FAMILY}.98" / "bin" / name, "echo nonsense")
    assert environments.find_interpreter(FAMILY) is None
    script(no_old_pythons / ".pyenv/versions" / f"{FAMILY}.3" / "bin" / name)
    assert environments.find_interpreter(FAMILY) == HERE


def test_a_python_of_another_version_does_not_count(no_old_pythons):
    script(no_old_pythons / "bin" / "python2.7")
    script(no_old_pythons / "bin" / "python")
    assert environments.find_interpreter("2.7") is None


def test_today_and_here_are_this_python():
    assert environments.find_interpreter("here") == Path(sys.executable)
    assert environments.find_interpreter("today") == HERE


@pytest.mark.parametrize(
    "version, command", [("2.7", "pyenv install 2.7.18"), ("3.7", "pyenv install 3.7.17")]
)
def test_a_missing_interpreter_is_said_with_what_brings_it(no_old_pythons, version, command):
    stack = stacks.get(f"stage-1-py{version.replace('.', '')}")
    with pytest.raises(MissingInterpreter, match=f"needs Python {version}") as error:
        environments.ensure(stack)
    assert "\n" not in str(error.value)
    assert command in str(error.value)
    assert state(stack) == "no interpreter"
    assert environments.status(stack)["interpreter"] is None


def test_what_is_missing_is_left_out_unless_it_is_required(no_old_pythons, monkeypatch):
    assert environments.required() == set()
    wanted = [stacks.get(name) for name in ("stage-1-py27", "stage-2-py27", "stage-0")]
    lines = []
    assert list(environments.ensure_all(wanted, lines.append)) == ["stage-0"]
    assert len(lines) == 1 and "2.7" in lines[0]
    monkeypatch.setenv("CASEBOOK_REQUIRE", "go-httpbin, 2.7")
    assert environments.required() == {"go-httpbin", "2.7"}
    with pytest.raises(MissingInterpreter):
        environments.ensure_all(wanted)


# Environments


def test_an_environment_is_made_once_with_one_line(own):
    assert state() == "missing"
    [line] = make()
    assert line.startswith(f"making environment stage-1-today-py{FAMILY.replace('.', '')}: ")
    assert state() == "ready"
    assert make() == []

    made = environments.ensure(STAGE_1)
    assert made.versions.items() <= STAGE_1.packages.items()
    assert made.versions["requests"] == REQUESTS
    code = "import grequests, requests, sys; print(requests.__version__, sys.prefix)"
    version, prefix = python_in(STAGE_1.name, "-c", code, check=True).stdout.split()
    assert version == REQUESTS and Path(prefix) == made.python.parent.parent


def test_an_environment_is_made_again_when_it_cannot_be_believed(own):
    make()
    folder = next(path for path in places.ENVIRONMENTS.iterdir() if path.is_dir())

    digest = "946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3"
    pin = rf"idna==3.10 \\\n    --hash=sha256:{digest} \\"
    change("locks/stage-1-today.txt", r"idna==.*", pin)
    assert state() == "stale"
    assert len(make()) == 1
    assert environments.ensure(STAGE_1).versions["idna"] == "3.10"

    left = folder / "left-over"
    left.touch()
    (folder / installation.STAMP).unlink()
    assert state() == "half-made"
    assert len(make()) == 1
    assert state() == "ready" and not left.exists()

    (folder / "bin" / "python").unlink()
    assert state() == "stale"
    (folder / installation.STAMP).write_text("{")
    assert state() == "half-made"


def test_no_file_is_shared_and_one_that_changed_is_noticed_and_named(own, monkeypatch):
    """Appending an authority to certifi's bundle elsewhere changes nothing here.

    If it is done here, it is found out.
    """
    monkeypatch.setattr(installation, "CHECK_AGAIN_S", 0.0)
    make()
    folder = next(path for path in places.ENVIRONMENTS.iterdir() if path.is_dir())
    files = [path for path in folder.glob("lib/**/*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 100 and {path.stat().st_nlink for path in files} == {1}

    (folder / "lib" / "new.pyc").touch()
    assert state() == "ready"
    bundle, gone = (
        next(folder.glob("lib/*/*/certifi/cacert.pem")),
        next(folder.rglob("idna/core.py")),
    )
    before = bundle.read_text()
    with bundle.open("a") as file:
        file.write("# ours\n")
    gone.unlink()
    assert state() == "changed"
    [line] = make()
    for path in (bundle, gone):
        assert path.relative_to(folder).as_posix() in line
    assert "changed since it was made" in line
    assert state() == "ready" and bundle.read_text() == before and gone.exists()


def test_an_environment_that_pip_makes_shares_no_file():
    place = environment("stage-1-py27")
    files = [path for path in place.python.parent.parent.glob("lib/**/*") if path.is_file()]
    assert {path.stat().st_nlink for path in files if not path.is_symlink()} == {1}


def test_a_changed_patch_is_another_environment_and_none_where_it_does_not_apply(own):
    stage_4 = stacks.get("stage-4-today")
    before = environments.fingerprint(stage_4)
    change(f"patches/{stage_4.patch}", "self.__iowait", "self.__wait")
    assert environments.fingerprint(stage_4) != before
    with pytest.raises(EnvironmentFailed, match="does not apply to"):
        make(stage_4)
    assert state(stage_4) == "missing"


@pytest.mark.parametrize("python", ["today", "3.7", "2.7"])
def test_a_failed_installation_says_why_and_leaves_nothing(own, python):
    name = {"today": "stage-1-today"}.get(python, f"stage-1-py{python.replace('.', '')}")
    stack = stacks.get(name)
    if not environments.find_interpreter(python) and python not in environments.required():
        pytest.skip(f"no Python {python} here")
    change(f"locks/{name}.txt", "certifi==", "certifi==9")
    with pytest.raises(EnvironmentFailed, match=f"{name} could not be made") as error:
        make(stack)
    assert "certifi==9" in str(error.value) and "UV_DEFAULT_INDEX" in str(error.value)
    assert state(stack) == "missing"


@pytest.mark.parametrize("name", ["stage-1-today", "stage-1-py27"])
def test_a_package_with_another_digest_is_refused(own, name):
    """By uv, and by pip; both take it with its own, on which the key does not depend."""
    stack, about = stacks.get(name), "thing-1.0.dist-info"
    if not environments.find_interpreter(stack.python):
        pytest.skip(f"no Python {stack.python} here")
    wheel = own / "thing-1.0-py2.py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        tags = "Root-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n"
        made.writestr("thing.py", "")
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        made.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\n{tags}")
        made.writestr(f"{about}/RECORD", "")

    def lock(digest: str) -> None:
        lines = f"--no-index\n--find-links {own}\nthing==1.0 \\\n    --hash=sha256:{digest}\n"
        stack.lock_file.write_text(lines)

    lock("0" * 64)
    before = environments.fingerprint(stack)
    with pytest.raises(EnvironmentFailed, match="not the one whose digest is in the lock") as error:
        make(stack)
    assert "PyPI's files: set UV_DEFAULT_INDEX and PIP_INDEX_URL" in str(error.value)
    assert state(stack) == "missing"
    lock(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert environments.ensure(stack, retry=True).versions == {"thing": "1.0"}
    assert environments.fingerprint(stack) == before


def test_a_tool_with_another_digest_is_refused(own):
    stack = stacks.get("stage-1-py27")
    if not environments.find_interpreter(stack.python):
        pytest.skip(f"no Python {stack.python} here")
    change("virtualenv.txt", r"sha256:\S{8}", "sha256:00000000")
    with pytest.raises(EnvironmentFailed, match="not the one whose digest is in the lock"):
        make(stack)
    assert state(stack) == "missing"


PROCESS = """
import sys
from pathlib import Path
from types import SimpleNamespace
from casebook import places, stacks
from casebook.stacks import environments
places.ENVIRONMENTS = Path(sys.argv[1])
print(environments.ensure(stacks.get("stage-1-today")).versions["requests"])
"""


def ensuring(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, folder], cwd=places.ROOT, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_at_once_make_it_once(own):
    processes = [ensuring(places.ENVIRONMENTS) for _ in range(3)]
    answers = [process.communicate(timeout=120) for process in processes]
    assert [out for out, _ in answers] == [f"{REQUESTS}\n"] * 3
    said = "".join(err for _, err in answers)
    assert said.count("making environment") == 1


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_killed_maker_leaves_nothing_that_is_believed(own, kill):
    process = ensuring(places.ENVIRONMENTS)
    while not list(places.ENVIRONMENTS.glob("*/pyvenv.cfg")):
        assert process.poll() is None
        time.sleep(0.005)
    kill(process.pid, signal.SIGKILL)
    process.wait()
    assert state() == "half-made"
    # Killed alone, it left an installer that still writes: the next maker waits for that.
    again = ensuring(places.ENVIRONMENTS)
    assert again.communicate(timeout=120)[0] == f"{REQUESTS}\n"
    assert state() == "ready"


def test_several_are_made_and_one_failure_is_reported_after_the_others(own):
    change("locks/stage-2-today.txt", "certifi==", "certifi==9")
    names = ["stage-2-today", "extract-today", "stage-1-today", "requests-first-today", "stage-0"]
    wanted = [stacks.get(name) for name in names]
    lines = []
    with pytest.raises(EnvironmentFailed, match="certifi==9"):
        environments.ensure_all(wanted, lines.append)
    assert state() == "ready"
    made = environments.ensure_all([s for s in wanted if s.lock != "stage-2-today"], lines.append)
    assert set(made) == {"stage-1-today", "requests-first-today", "stage-0"}
    assert made["stage-1-today"].python == made["requests-first-today"].python
    assert len([line for line in lines if "stage-1" in line]) == 1


def test_status_tells_all_and_makes_nothing(own):
    fields = "name python interpreter state environment packages steps patch says about executable"
    for stack in stacks.load().values():
        row = json.loads(json.dumps(environments.status(stack)))
        assert list(row) == fields.split()
        assert row["state"] in ("missing", "no interpreter", "ready")
        assert (row["state"] == "ready") == (stack.name == "stage-0")
        assert row["packages"], stack.name
    assert not places.ENVIRONMENTS.exists()


@pytest.mark.parametrize("lock", sorted({stack.lock for stack in stacks.load().values()}))
def test_each_environment_holds_its_lock(lock):
    stack = next(stack for stack in stacks.load().values() if stack.lock == lock)
    place = environment(stack.name)
    if stack.name == "stage-0":
        assert place.python == Path(sys.executable)
        assert place.versions["grequests"]
        return
    assert place.versions.items() <= stack.packages.items()
    # A lock is for all platforms and Pythons: what it wants here, its markers say.
    here = default_environment() | {
        "python_version": ".".join(place.python_version.split(".")[:2]),
        "python_full_version": place.python_version,
    }
    lines = stacks.without_digests(stack.lock_file.read_text()).splitlines()
    pinned = [Requirement(line.split(" #")[0]) for line in lines if "==" in line.split("#")[0]]
    wanted = {pin.name for pin in pinned if not pin.marker or pin.marker.evaluate(here)}
    assert wanted - set(place.versions) <= {"pip", "setuptools"}


def test_a_stack_runs_in_declared_variables_only(monkeypatch):
    made = environment(STAGE_1.name)  # while this shell can reach packages
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
                 "HTTPS_PROXY", "https_proxy", "PYTHONPATH", "GEVENT_LOOP"):  # fmt: skip
        monkeypatch.setenv(name, "/nonexistent")
    declared = environments.clean_environ(made)
    monkeypatch.setenv("PATH", f"/nonexistent/bin{os.pathsep}{os.environ['PATH']}")
    assert environments.clean_environ(made) == declared
    names = "PATH HOME LANG TZ PYTHONHASHSEED PYTHONIOENCODING PYTHONNOUSERSITE"
    assert set(declared) == {*names.split(), "PYTHONDONTWRITEBYTECODE"}
    assert "nonexistent" not in str(declared)
    assert declared["HOME"] == str(made.python.parent.parent)
    own = environments.clean_environ(environments.ensure(stacks.get("stage-0")))
    assert own["HOME"] == os.path.expanduser("~") and "SSL_CERT_FILE" not in own


def test_an_installer_is_led_into_no_other_environment(tmp_path, monkeypatch):
    """What a reader set to reach packages stays; what would put them elsewhere does not."""
    elsewhere = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
                 "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY", "PIP_ONLY_BINARY"}  # fmt: skip
    mirrors = {"UV_DEFAULT_INDEX", "PIP_INDEX_URL", "HTTPS_PROXY"}
    for name in elsewhere | mirrors | {"PIP_USER"}:
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    place = SimpleNamespace(log=tmp_path / "log", stack=STAGE_1)
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    with open(tmp_path / "lock", "w") as lock:
        installation._run(place, lock.fileno(), HERE, "-c", code)
        with pytest.raises(EnvironmentFailed, match=r"\(exit code 3\):\n"):
            installation._run(place, lock.fileno(), HERE, "-c", "raise SystemExit(3)")
    given = json.loads(place.log.read_text())
    assert elsewhere & given.keys() == set() and mirrors <= given.keys()
    assert given["PIP_USER"] == "0"


def test_environments_that_lie_behind_a_link_keep_their_place(tmp_path):
    """A copy of the files borrows them (tests/support/copies.py), and must not make them anew."""
    (tmp_path / "book" / "casebook").mkdir(parents=True)
    shutil.copy(places.PACKAGE / "places.py", tmp_path / "book" / "casebook")
    local = tmp_path / "book" / places.LOCAL_NAME
    local.mkdir()
    for name in ("envs", "pythons"):
        (tmp_path / "lent" / name).mkdir(parents=True)
        (local / name).symlink_to(tmp_path / "lent" / name)
    copied = runpy.run_path(str(tmp_path / "book" / "casebook" / "places.py"))
    assert copied["RUNS"] == local / "runs"
    assert copied["ENVIRONMENTS"] == tmp_path / "lent" / "envs"
    assert copied["PYTHONS"] == tmp_path / "lent" / "pythons"


def test_a_removal_that_is_interrupted_leaves_no_environment(tmp_path, monkeypatch):
    (tmp_path / installation.STAMP).write_text("{}")

    def interrupted(_folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        installation._remove(tmp_path)
    assert not (tmp_path / installation.STAMP).exists()


def test_of_several_releases_of_a_python_the_newest_is_looked_at_first(tmp_path):
    folders = [tmp_path / name / "bin" for name in ("3.7.9", "3.7.17", "3.7.2", "3.7.16-dev")]
    newest = [folder.parent.name for folder in interpreters._newest_first(folders)]
    assert newest == ["3.7.17", "3.7.16-dev", "3.7.9", "3.7.2"]


def test_what_the_tests_bring_changes_nothing_of_the_readers_own_environment(monkeypatch):
    """Else the first `make test` would have the story measured again."""
    place, there = environments._place(stacks.get("stage-0")), {"requests": "2.34.2"}
    monkeypatch.setattr(installation, "installed", lambda _: there)
    alone = place.contents()
    there |= {"pytest": "9.0", "hypothesis": "6.0"}
    assert place.contents() == alone
    there["pyopenssl"] = "25.0"
    assert place.contents() != alone
    tests = installation.of_the_tests()
    assert {"pytest", "ruff", "mypy"} <= tests
    assert tests.isdisjoint({"requests", "urllib3", "gevent", "pyopenssl", "truststore", "certifi"})


def test_a_wheel_that_was_built_makes_no_chapter_stale(monkeypatch, tmp_path):
    """Its build leaves metadata beside the product's sources, which are on the tests' path."""
    product, elsewhere = tmp_path / "packages" / "product" / "src", tmp_path / "site"
    for folder, name in ((product, "product"), (elsewhere, "other")):
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", [str(product), str(elsewhere)])
    assert installation.installed(None) == {"other": "1.0"}
