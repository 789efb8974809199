"""The workflows: what actionlint does not see of them, and what their steps rely on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from here import environment, needs, run

from casebook import places
from casebook.stacks import environments
from casebook.stacks.installation import Place

FOLDER = places.ROOT / ".github"
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))
KNOWN = yaml.safe_load((FOLDER / "inputs.yml").read_text())


def jobs_of(file: Path) -> dict[str, dict]:
    """The jobs of a workflow. One that calls another workflow has no steps of its own."""
    return {
        name: {"steps": []} | job for name, job in yaml.safe_load(file.read_text())["jobs"].items()
    }


def unknown_inputs(jobs: dict[str, dict]) -> list[str]:
    """What the steps of some jobs give to an action that it does not take."""
    steps = [step for job in jobs.values() for step in job["steps"] if "uses" in step]
    return [
        f"{step['uses']}: {name}"
        for step in steps
        for name in step.get("with", {})
        if name not in KNOWN[step["uses"]]
    ]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_each_action_is_given_what_it_takes(file: Path) -> None:
    assert unknown_inputs(jobs_of(file)) == []


def test_an_input_that_is_misspelt_is_found() -> None:
    """One that actionlint lets pass, since it does not know this release."""
    jobs = jobs_of(FOLDER / "workflows" / "publish.yml")
    [step] = [each for each in jobs["build"]["steps"] if "upload-pages" in each.get("uses", "")]
    step["with"]["include-hiden-files"] = step["with"].pop("include-hidden-files")
    [complaint] = unknown_inputs(jobs)
    assert complaint.startswith("actions/upload-pages-artifact@")
    assert complaint.endswith(": include-hiden-files")


def test_each_action_is_pinned_by_its_commit_and_says_its_release() -> None:
    """A tag can be moved; a commit cannot."""
    lines = [
        line.strip()
        for file in WORKFLOWS
        for line in file.read_text().splitlines()
        if re.match(r"\s*-?\s*uses:", line) and "./" not in line
    ]
    pinned = r"(- )?uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # (v\d+\.\d+\.\d+|of \w+ \d{4})"
    assert lines and [line for line in lines if not re.fullmatch(pinned, line)] == []


def test_the_list_has_no_action_that_nobody_uses() -> None:
    used = {
        step["uses"]
        for file in WORKFLOWS
        for job in jobs_of(file).values()
        for step in job["steps"]
        if "uses" in step
    }
    assert used == set(KNOWN)


#: What a job may do beside reading the repository: deploy the pages, push Binder's image, move a
#: tag, push the badge, make a release and state where it was made.
MAY = {
    ("release", "publish"): {"contents": "write", "id-token": "write", "attestations": "write"},
    ("publish", "deploy"): {"pages": "write", "id-token": "write"},
    ("binder", "image"): {"contents": "read", "packages": "write"},
    ("binder", "release"): {"contents": "write"},
    ("binder", "launch"): {"contents": "write"},
}


def test_each_job_may_write_what_it_has_to_and_no_more() -> None:
    found = {}
    for file in WORKFLOWS:
        told = yaml.safe_load(file.read_text())
        assert told["permissions"] in ({}, {"contents": "read"})
        for name, job in told["jobs"].items():
            found[file.stem, name] = job.get("permissions", told["permissions"])
    assert found == {each: {"contents": "read"} for each in found} | MAY


def test_each_command_of_make_is_a_target() -> None:
    for file in WORKFLOWS:
        words = "\n".join(
            step["run"] for job in jobs_of(file).values() for step in job["steps"] if "run" in step
        )
        called = [
            job["with"]["tests"] for job in jobs_of(file).values() if "tests" in job.get("with", {})
        ]
        for target in [*re.findall(r"\bmake ([\w./-]+)", words), *called]:
            done = run("make", "--dry-run", target)
            assert done.returncode == 0, (file.name, target, done.stderr)


# The words of a step, beside programs that stand for what is not here: GitHub's machine


def step_of(workflow: str, job: str, name: str) -> dict:
    steps = jobs_of(FOLDER / "workflows" / f"{workflow}.yml")[job]["steps"]
    [step] = [each for each in steps if each.get("name", "").startswith(name)]
    return step


def program(file: Path, script: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/bash\n{script}\n")
    file.chmod(0o755)


def words_of(step: dict, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run what a step says in a folder, as GitHub does, with its folder bin before the rest."""
    environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.defpath}"
    bash = shutil.which("bash")
    return run(bash, "-e", "-o", "pipefail", "-c", step["run"], cwd=folder, env=environ)


@needs("bash")
@pytest.mark.parametrize("machine", ["", "data/machines/a machine.jsonl.xz"])
def test_the_book_is_made_of_the_machine_file_that_is_named(machine: str, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "make", 'printf "%s\\n" "$@"')
    done = words_of(step_of("publish", "build", "The book"), tmp_path, MACHINE=machine)
    assert done.stdout.splitlines() == ["book", *([f"MACHINE={machine}"] if machine else [])]


@needs("bash")
@pytest.mark.parametrize("address", ["", "https://github.com/owner/book"])
def test_without_an_address_publishing_ends_before_the_build(address: str, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "make", "true")
    program(
        tmp_path / ".venv" / "bin" / "python",
        '[ "$*" = "-m casebook.pages.address" ] && echo "$ADDRESS"',
    )
    done = words_of(step_of("publish", "build", "The address"), tmp_path, ADDRESS=address)
    assert (
        (done.returncode == 0) == bool(address) == ("::error file=_config.yml" not in done.stdout)
    )
    jobs = jobs_of(FOLDER / "workflows" / "publish.yml")
    steps = [each.get("name") for each in jobs["build"]["steps"]]
    assert steps.index("The address") < steps.index("Python 2.7 and 3.7") < steps.index("The book")


#: Docker, where whoever has signed in is shown what is public and what is not.
DOCKER = """
config=$HOME/.docker
if [ "$1" = --config ]; then config=$2; shift 2; fi
case "$1 $2" in
    "image inspect") echo ghcr.io/owner/book-binder@sha256:0123 ;;
    "manifest inspect") [ -n "$PUBLIC" ] || [ -e "$config/config.json" ] ;;
esac
"""


@needs("bash")
@pytest.mark.parametrize("public", ["", "yes"])
def test_an_image_that_needs_a_password_goes_no_further(public: str, tmp_path: Path) -> None:
    """Also where this machine has signed in, as the one that has just pushed the image."""
    program(tmp_path / "bin" / "docker", DOCKER)
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").touch()
    told = tmp_path / "output"
    told.touch()
    done = words_of(step_of("binder", "image", "Its digest"), tmp_path, HOME=str(tmp_path),
                    PUBLIC=public, GITHUB_OUTPUT=str(told), IMAGE="x")  # fmt: skip
    image = "image=ghcr.io/owner/book-binder@sha256:0123"
    assert told.read_text().split() == ([image] if public else [])
    assert (done.returncode == 0) == bool(public) == ("has to be public" not in done.stdout)


def test_no_password_goes_into_the_image() -> None:
    """Checkout leaves one in .git, and the image has the whole folder."""
    [step] = [each for each in jobs_of(FOLDER / "workflows" / "binder.yml")["image"]["steps"]
              if each.get("uses", "").startswith("actions/checkout@")]  # fmt: skip
    assert step["with"]["persist-credentials"] is False


@needs("tar")
def test_an_environment_out_of_a_cache_is_believed(tmp_path: Path, monkeypatch) -> None:
    """actions/cache keeps folders as `tar --posix` does, times with all their digits.

    What comes back in the same place needs not be made again.
    """
    if "GNU" not in run("tar", "--version").stdout:
        pytest.skip("this machine's tar(1) cannot say --posix")
    monkeypatch.setattr(places, "ENVIRONMENTS", tmp_path / "envs")
    made = environment("stage-1-today")
    interpreter = environments.interpreters.find("today")
    assert interpreter is not None
    tar = ["tar", "--posix", "-C", tmp_path, "-f", tmp_path / "cache.tar"]
    subprocess.run([*tar, "-c", "envs"], check=True)
    shutil.rmtree(places.ENVIRONMENTS)
    assert Place(made.stack, interpreter).state() == "missing"
    subprocess.run([*tar, "-x"], check=True)
    assert Place(made.stack, interpreter).state() == "ready"


# Linted where the linters are


def test_the_scripts_pass_shellcheck() -> None:
    scripts = re.findall(r"shellcheck (.*) &&", (places.ROOT / "Makefile").read_text())[0].split()
    files = [path for folder in (".ci", "binder") for path in (places.ROOT / folder).glob("[!_]*")]
    shells = {path for path in files if re.match(rb"#!/bin/(ba)?sh\n", path.read_bytes())}
    assert {places.ROOT / name for name in scripts} == shells
    done = run(Path(sys.executable).with_name("shellcheck"), *shells)
    assert done.returncode == 0, done.stdout


@needs("actionlint")
def test_the_workflows_pass_actionlint() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = run("actionlint", "-shellcheck", shellcheck, *WORKFLOWS)
    assert done.returncode == 0, done.stdout
