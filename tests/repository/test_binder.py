"""What Binder makes of this repository.

It renders the Dockerfile as repo2docker does, and does our part of it without Docker.

Docker's own instructions are few here, so that a folder, a virtual environment and bash stand in:
RUN is run, COPY copies, ENV counts. The image's operating system and its Python are this machine's.
"""

import json
import os
import re
import shutil
import string
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import conda_channel
import pytest
from here import needs, run

from casebook import places, stacks
from casebook.stacks import installers

#: What is no part of the repository: made here, or git's.
OURS = shutil.ignore_patterns(
    ".git", ".venv", ".casebook", "_build", "__pycache__", "*.egg-info", ".*_cache",
)  # fmt: skip
#: What the scripts of the image use of its system.
TOOLS = ("bash", "chmod", "dirname", "env", "mktemp", "realpath", "rm", "timeout")


def checkout(folder: Path) -> Path:
    """A copy of the repository in a folder, links as links."""
    return shutil.copytree(places.ROOT, folder / "repository", ignore=OURS, symlinks=True)


def rendered(repository: Path) -> list[tuple[str, str]]:
    """The instructions of the repository's Dockerfile, such as ("RUN", "./binder/postBuild")."""
    said = run(sys.executable, "-m", "repo2docker", "--no-build", "--debug", ".", cwd=repository)
    assert said.returncode == 0, said.stderr
    text = said.stdout + said.stderr
    text = re.sub(r"(?m)^\s*(#.*)?\n", "", text[text.index("\nFROM ") :]).replace("\\\n", " ")
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    return [(name, rest) for name, rest in lines]


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory) -> list[tuple[str, str]]:
    return rendered(checkout(tmp_path_factory.mktemp("binder")))


class Image:
    """What the instructions of a Dockerfile make in a folder, from the repository on.

    Before that, Binder makes a conda environment, whose place an empty virtual environment of this
    Python takes; with it the name of the home and a path on which only a few tools are.
    """

    def __init__(self, folder: Path, context: Path) -> None:
        self.context, self.home = context, folder / "home"
        prefix, tools = folder / "notebook", folder / "bin"
        self.home.mkdir()
        tools.mkdir()
        for tool in TOOLS:
            (tools / tool).symlink_to(shutil.which(tool))
        venv.create(prefix, with_pip=True)
        self.python = prefix / "bin" / "python"
        led_astray = ("PYENV_ROOT", "VIRTUAL_ENV", "PYTHONPATH", "CASEBOOK_REQUIRE")
        kept = {key: value for key, value in os.environ.items() if key not in led_astray}
        self.environ = kept | {
            "HOME": str(self.home), "REPO_DIR": str(self.home), "NB_USER": "here",
            "NB_PYTHON_PREFIX": str(prefix), "KERNEL_PYTHON_PREFIX": str(prefix),
            "PATH": f"{prefix / 'bin'}:{tools}",
        }  # fmt: skip

    def take(self, name: str, rest: str) -> str:
        """Take one instruction: what it printed. subprocess.CalledProcessError where it fails."""
        if name == "RUN":
            done = run("bash", "-c", rest, cwd=self.home, env=self.environ, timeout=1500)
            assert done.returncode == 0, f"{rest}\n{done.stdout}{done.stderr}"
            return done.stdout + done.stderr
        if name == "ENV":
            key, value = string.Template(rest).safe_substitute(self.environ).split("=", 1)
            self.environ[key] = value
        if name == "COPY":
            source, target = string.Template(rest).safe_substitute(self.environ).split()[-2:]
            self._copy(self.context / source.removeprefix("src/"), Path(target))
        return ""

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        """Copy as COPY does: what is named is followed where it is a link.

        Links in a folder stay links, also where a file is in their place.
        """
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            return
        for path in source.rglob("*"):
            there = target / path.relative_to(source)
            if path.is_symlink():
                there.unlink(missing_ok=True)
                there.symlink_to(path.readlink())
            elif path.is_dir():
                there.mkdir(exist_ok=True)
            else:
                shutil.copy(path, there)


def ours(dockerfile: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The instructions that are about the repository, from the first file of it to the start."""
    first = next(
        i for i, (name, rest) in enumerate(dockerfile) if name == "COPY" and "src/" in rest
    )
    last = next(i for i, (name, _) in enumerate(dockerfile) if name == "ENTRYPOINT")
    return [each for each in dockerfile[first:last] if " src/" in each[1] or each[0] == "RUN"]


def test_a_commit_leaves_the_layer_of_packages_as_it_is(dockerfile) -> None:
    """Packages are installed before anything but their list is there.

    Then comes the rest, of which nothing but postBuild is run.
    """
    [listed, packages, everything, *rest] = ours(dockerfile)
    assert re.search(r" src/(binder/requirements.txt) \$\{REPO_DIR\}/\1$", listed[1])
    assert packages[1].endswith('pip install --no-cache-dir -r "binder/requirements.txt"')
    assert everything[1].endswith(" src/ ${REPO_DIR}/")
    assert rest == [("RUN", "chmod +x binder/postBuild"), ("RUN", "./binder/postBuild")]


def test_binder_uses_the_python_of_runtime_txt(dockerfile) -> None:
    version = (places.ROOT / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    slug = version.replace(".", "-2e")
    assert any(f"py-2d{slug}-2d" in rest for name, rest in dockerfile if name == "COPY")
    assert (3, 11) <= tuple(map(int, version.split("."))) < (3, 14)


def test_the_packages_are_those_of_the_book() -> None:
    """The packages are those of the book, whatever the index of packages is.

    repo2docker waits for the whole repository where one of them is local.
    """
    listed = places.ROOT / "binder" / "requirements.txt"
    assert listed.readlink() == Path("../requirements.txt")
    assert listed.read_text() == (places.ROOT / "requirements.txt").read_text()


def test_nothing_else_leads_binder_elsewhere() -> None:
    for name in (".binder", "binder/environment.yml", "binder/Dockerfile", "binder/Pipfile"):
        assert not (places.ROOT / name).exists()


#: In Docker's place: it builds nothing, keeps what it is given, and has no image yet.
NO_DOCKER = """#!/bin/sh
case "$1 $2" in
"buildx build")
    printf '%s\\n' "$@" > "{kept}/arguments"
    for context; do :; done
    cp -R "$context" "{kept}/context";;
"image inspect") exit 1;;
esac
"""


@needs("git")
def test_the_command_of_the_instructors_page_gives_docker_this_repository_alone(tmp_path) -> None:
    """Also where a lesson was prepared before, with gigabytes that an image makes for itself."""
    repository = checkout(tmp_path)
    committed = {path.relative_to(repository) for path in repository.rglob("*") if path.is_file()}
    for name in (".venv/bin/python", ".casebook/envs/a/x", "_build/html/index.html",
                 "casebook/__pycache__/cli.pyc", "tests/.pytest_cache/x",
                 "casebook.egg-info/PKG-INFO"):  # fmt: skip
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).touch()
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(NO_DOCKER.format(kept=tmp_path))
    docker.chmod(0o755)
    page = (places.ROOT / "book" / "instructors.md").read_text()
    [command] = re.findall(r"(?m)^ *repo2docker (.*)$", page)
    environ = os.environ | {"PATH": f"{docker.parent}:{os.environ['PATH']}"}
    done = run(sys.executable, "-m", "repo2docker", *command.split(), cwd=repository, env=environ)
    assert done.returncode == 0, done.stderr
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("--tag") + 1] == "slow-https"
    assert "NB_UID=1000" in arguments and "NB_USER=jovyan" in arguments
    source = tmp_path / "context" / "src"
    context = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    assert context == committed


# postBuild


@pytest.fixture(scope="module")
def channel(tmp_path_factory) -> Iterator[str]:
    with conda_channel.served(tmp_path_factory.mktemp("channel")) as url:
        yield url


#: A stack that is left out of the image, and made there when it is asked for.
FOR_TESTS = "py-spy-today"


@pytest.fixture
def image(tmp_path) -> Image:
    """An image right before postBuild.

    Its packages are those of the Python that runs this, and it keeps three environments of all: for
    Python 3.7, for 2.7, and for the image's own; and one that no chapter asks for.
    """
    context = checkout(tmp_path)
    table = context / "env" / "stacks.toml"
    head, *rows = table.read_text().split("\n[[stack]]")
    few = rf'name = "(stage-0|stage-1-(py27|py37|today)|{FOR_TESTS})"'
    kept = [each for each in rows if re.search(few, each)]
    assert len(kept) == 5
    table.write_text("\n[[stack]]".join([head, *kept]))
    made = Image(tmp_path, context)
    made.take("COPY", "src/ ${REPO_DIR}/")
    site = next(made.python.parents[1].glob("lib/python*/site-packages"))
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "book.pth").write_text(packages)
    # Packages that this machine has fetched before need not come again.
    made.environ["UV_CACHE_DIR"] = run(*installers.uv("cache", "dir")).stdout.strip()
    return made


def states(image: Image) -> dict[str, str]:
    """The state of each stack, by its name."""
    told = json.loads(image.take("RUN", "python -m casebook stacks --json"))
    return {each["name"]: each["state"] for each in told}


POST_BUILD = ("RUN", "./binder/postBuild")


@needs("bash")
@needs("timeout")
def test_old_pythons_come_by_their_list_and_the_environments_of_chapters_are_made(
    image, channel
) -> None:
    conda_channel.resolve(channel, image.home / "env" / "pythons.lock")
    said = image.take(*POST_BUILD)
    assert "getting Python 2.7: 2 packages from 127.0.0.1" in said
    assert "is made without" not in said, said
    made = states(image)
    assert made.pop(FOR_TESTS) == "missing" and set(made.values()) == {"ready"}
    asks = f"from casebook import stacks; stacks.ensure(stacks.get({FOR_TESTS!r}))"
    image.take("RUN", f'python -c "{asks}"')
    assert set(states(image).values()) == {"ready"}
    # The package is the repository itself: what a reader changes there counts.
    where = "import casebook; print(casebook.__file__)"
    answer = run(image.python, "-c", where, cwd="/", env=image.environ)
    assert Path(answer.stdout.strip()).parent == image.home / "casebook"
    # JupyterLab reads its settings where they have been put.
    reads = "from jupyter_core.paths import jupyter_config_path; print(*jupyter_config_path())"
    folders = run(image.python, "-c", reads, cwd="/", env=image.environ).stdout.split()
    settings = [Path(each) / "jupyter_server_config.py" for each in folders]
    ours = (image.home / "jupyter_server_config.py").read_text()
    assert ours in [each.read_text() for each in settings if each.exists()]
    # Nothing is kept that is needed no more.
    assert not list((image.home / ".casebook" / "pythons").glob("tmp*"))
    assert not (image.home / ".cache").exists()


@pytest.mark.nightly
@pytest.mark.breadth
@needs("bash")
@needs("timeout")
def test_a_python_and_an_environment_that_cannot_be_had_are_named_and_the_image_is_made(
    image, channel
) -> None:
    listed = image.home / "env" / "pythons.lock"
    conda_channel.resolve(channel, listed)
    text = listed.read_text()
    wrong = re.sub(r"(python-2\.7\S+\n  sha256: )\S{8}", r"\g<1>00000000", text)
    assert wrong != text
    listed.write_text(wrong)
    none = f"requests==0.0.0.1 --hash=sha256:{'0' * 64}\n"
    (image.home / "env" / "locks" / "stage-1-py37.txt").write_text(none)
    said = image.take(*POST_BUILD)
    assert "casebook: Python 2.7 could not be installed: hash mismatch" in said
    assert "the image is made without what failed (python -m casebook stacks --get)" in said
    assert "stage-1-py27 needs Python 2.7" in said
    assert "casebook: the environment of stage-1-py37 could not be made (exit code 1)" in said
    assert "the image is made without what failed (python -m casebook stacks --make)" in said
    assert states(image) == {
        "stage-0": "ready", "stage-1-today": "ready", FOR_TESTS: "missing",
        "stage-1-py27": "no interpreter", "stage-1-py37": "missing",
    }  # fmt: skip


@needs("bash")
@needs("timeout")
def test_a_build_in_which_nothing_ends_makes_the_image_all_the_same(image) -> None:
    """Each step has a limit: here it is none but half a second."""
    limit = Path(image.environ["PATH"].split(":")[1]) / "timeout"
    real = limit.readlink()
    limit.unlink()
    limit.write_text(f'#!/bin/bash\nexec {real} "$1" 0.5 "${{@:3}}"\n')
    limit.chmod(0o755)
    said = image.take(*POST_BUILD)
    assert said.count("the image is made without what failed (python -m casebook") == 2
    assert states(image)["stage-1-today"] in ("missing", "half-made")
    limit.unlink()
    limit.symlink_to(real)
    # What was left half-made is made when it is needed.
    image.take("RUN", "python -m casebook stacks --make")
    assert states(image)["stage-1-today"] == "ready"


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@needs("bash")
@needs("timeout")
def test_the_whole_build_as_far_as_it_goes_without_docker(tmp_path, dockerfile, channel) -> None:
    """All packages by pip, and all environments; a chapter's stack runs in it as one measures."""
    context = checkout(tmp_path)
    conda_channel.resolve(channel, context / "env" / "pythons.lock")
    image = Image(tmp_path, context)
    said = "".join(image.take(*each) for each in ours(dockerfile))
    assert "is made without" not in said, said
    asked = {stack.name for stack in stacks.of_chapters()}
    of_others = set(stacks.load()) - asked
    assert states(image) == dict.fromkeys(asked, "ready") | dict.fromkeys(of_others, "missing")
    measured = image.take(
        "RUN", "python -m casebook measure stage-2-py27 --n 3 --delay 0.2 --repeats 1 --json"
    )
    assert '"verdict": "serial"' in measured and '"source": "live"' in measured
