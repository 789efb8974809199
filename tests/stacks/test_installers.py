"""Whom uv and pip trust: an index on loopback, whose authority only this machine knows.

The machine's store of certificates is another one for the processes that are started here: they
have a mount namespace of their own, with a folder of the test in the place of /etc/ssl.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import trustme
from here import Quiet, environment, run, serving

from casebook import places
from casebook.stacks import installers

#: What uv says of an authority that is not in the store, and where there is no store.
UNKNOWN = "UnknownIssuer"
NO_STORE = "No CA certificates were loaded"
#: What pip says when it could not look.
NOTHING = "No matching distribution found for thing"
OUR_UV = [sys.executable, "-m", "casebook.stacks.installers", "uv"]
#: Before a command of pip: with the variables that tell it whom to trust.
TRUSTING = [sys.executable, "-c", """if True:
    import os, sys
    from casebook.stacks import installers
    os.execve(sys.argv[1], sys.argv[1:], installers.environ_of(os.environ))
    """]  # fmt: skip
#: Builds the package of a project of which the wheel is there.
BACKEND = """
import os, shutil
def build_editable(folder, *_):
    return os.path.basename(shutil.copy("casebook-1.0-py2.py3-none-any.whl", folder))
"""


@dataclass(frozen=True)
class Index:
    """A package index over HTTPS. Its authority is in `ca_file`, and in no store but ours."""

    url: str
    folder: Path
    ca_file: Path

    def offer(self, name: str, files: dict[str, str]) -> str:
        """Put a package there, and return its line in a lock."""
        page = self.folder / name
        page.mkdir()
        wheel = write_wheel(page, name, files)
        (page / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return f"{name}==1.0 \\\n    --hash=sha256:{digest}\n"


def write_wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    path, about = folder / f"{name}-1.0-py2.py3-none-any.whl", f"{name}-1.0.dist-info"
    tags = "Root-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n"
    files = files | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\n{tags}",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, content in files.items():
            wheel.writestr(inside, content)
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, tls) -> Iterator[Index]:
    folder, (context, ca_file) = tmp_path_factory.mktemp("index"), tls
    with serving(partial(Quiet, directory=str(folder)), context) as url:
        index = Index(url + "/", folder, ca_file)
        index.offer("thing", {"thing.py": ""})
        yield index


@dataclass(frozen=True)
class Machine:
    """A machine with a store of its own; see the fixture."""

    index: Index
    folder: Path

    def run(self, *command: object, cwd: Path = places.ROOT, **variables: str) -> str:
        """What the command says on its errors' side; "" when it succeeds. Nothing is inherited."""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.index.url,
            "PIP_RETRIES": "0",
            "UV_CACHE_DIR": str(self.folder / "cache"),
            "UV_DEFAULT_INDEX": self.index.url,
            "UV_NO_CONFIG": "1",
        }
        elsewhere = 'mount --bind "$0" /etc/ssl && exec "$@"'
        namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", elsewhere]
        done = run(*namespace, self.folder / "ssl", *command, env=environ | variables, cwd=cwd)
        assert done.returncode == 0 or done.stderr
        return "" if done.returncode == 0 else done.stderr

    def uv(self, *command: object, **variables: str) -> str:
        """What uv says, called by this command, when it installs `thing`."""
        install = ("pip", "install", "--no-cache", "--target", self.folder / "things", "thing")
        return self.run(*command, *install, **variables)

    def trusting(self, variable: str) -> dict[str, str]:
        """The variable, if there is one, that names the index's authority."""
        return {variable: str(self.index.ca_file)} if variable else {}


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path, index: Index) -> Machine:
    """A machine with the index's authority in its store, with another there, or without a store."""
    if not has_namespaces():
        pytest.skip("unshare(1) cannot give a process a mount namespace of its own here")
    certificates = tmp_path / "ssl" / "certs"
    certificates.mkdir(parents=True)
    if request.param == "authority":
        shutil.copy(index.ca_file, certificates / "ca-certificates.crt")
    elif request.param == "others":
        trustme.CA().cert_pem.write_to_path(str(certificates / "ca-certificates.crt"))
    return Machine(index, tmp_path)


def has_namespaces() -> bool:
    tried = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(tried).returncode == 0


with_store = pytest.mark.parametrize("machine", ["authority"], indirect=True)


@pytest.mark.parametrize(
    ("machine", "variable", "said"),
    [
        ("authority", "", ""),
        ("others", "", UNKNOWN),
        ("others", "SSL_CERT_FILE", ""),
        ("none", "", UNKNOWN),  # uv keeps to what it has built in
        ("none", "SSL_CERT_FILE", ""),
    ],
    indirect=["machine"],
)
def test_our_uv_trusts_the_store_and_whom_a_variable_names(machine, variable, said) -> None:
    answer = machine.uv(*OUR_UV, **machine.trusting(variable))
    assert said in answer and NO_STORE not in answer
    assert (answer == "") == (said == "") == (machine.folder / "things" / "thing.py").exists()


@with_store
def test_whoever_decides_otherwise_is_heard(machine: Machine) -> None:
    assert UNKNOWN in machine.uv(*OUR_UV, UV_SYSTEM_CERTS="false")


@pytest.mark.parametrize(
    ("machine", "options", "said"),
    [("authority", [], UNKNOWN), ("none", ["--system-certs"], NO_STORE)],
    indirect=["machine"],
)
def test_uv_alone_does_not(machine: Machine, options: list[str], said: str) -> None:
    assert said in machine.uv(installers.uv()[0], *options)


@pytest.mark.parametrize(
    ("machine", "variable"),
    [("authority", "")]
    + [("others", name) for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")],
    indirect=["machine"],
)
def test_so_does_the_pip_of_python_2_7(machine: Machine, variable: str) -> None:
    python = environment("stage-1-py27").python
    pip = [python, "-m", "pip", "download", "thing", "--no-cache-dir", "--dest", machine.folder]
    assert NOTHING in machine.run(*(TRUSTING if variable else []), *pip)
    assert machine.run(*TRUSTING, *pip, **machine.trusting(variable)) == ""
    assert list(machine.folder.glob("thing-*.whl"))


@with_store
def test_the_makefile_sets_up_behind_such_a_proxy(machine: Machine) -> None:
    """With our Makefile, the real pip and the real uv, and packages of the test.

    Each must have the digest of its lock.
    """
    root = machine.folder / "project"
    (root / "env").mkdir(parents=True)
    shutil.copy(places.ROOT / "Makefile", root)
    shutil.copytree(places.PACKAGE, root / "casebook", ignore=shutil.ignore_patterns("*.pyc"))
    [uv, *_] = installers.uv()
    finds = f"def find_uv_bin():\n    return {uv!r}\n"
    locked_uv = machine.index.offer("uv", {"uv/__init__.py": finds})
    locked_late = machine.index.offer("late", {"late.py": ""})
    locked_other = machine.index.offer("other", {"other.py": ""})
    write_wheel(root, "casebook", {"casebook_is_here.py": ""})
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(
        '[project]\nname = "casebook"\nversion = "1.0"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    locked = {
        root / "requirements.txt": [locked_uv, locked_other],
        root / "env/test.lock": [locked_late],
    }
    for file, lines in locked.items():
        file.write_text("".join(lines))
    make = ("make", f"PYTHON={Path(sys.executable).resolve()}", ".venv/tests.stamp")
    for line in (locked_uv, locked_other, locked_late):
        [file] = [file for file, lines in locked.items() if line in lines]
        right = file.read_text()
        file.write_text(right.replace(line, re.sub("sha256:.{8}", "sha256:00000000", line)))
        assert re.search("(?i)hash", machine.run(*make, cwd=root))
        file.write_text(right)
    assert machine.run(*make, cwd=root) == ""
    [packages] = (root / ".venv").glob("lib/python*/site-packages")
    for name in ("other.py", "uv/__init__.py", "casebook_is_here.py", "late.py"):
        assert (packages / name).exists()


def test_nobody_calls_uv_but_through_here() -> None:
    calls = re.compile(r"find_uv_bin|bin/uv\b|\(BIN\)/uv\b|-m uv\b|[\"']-m[\"'], [\"']uv[\"']")
    files = [places.ROOT / "Makefile", places.ROOT / "binder" / "postBuild"]
    files += [places.ROOT / ".ci" / "run"]
    for folder in ("casebook", "tests"):
        files += (places.ROOT / folder).rglob("*.py")
    mine = {Path(installers.__file__), Path(__file__)}
    assert [
        path.name for path in files if path not in mine and calls.search(path.read_text())
    ] == []
