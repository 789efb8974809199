"""The workflows: what actionlint does not see of them, and what their steps rely on."""

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
    return yaml.safe_load(file.read_text())["jobs"]


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
    assert unknown_inputs(jobs) == ["actions/upload-pages-artifact@v5: include-hiden-files"]


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
#: tag, push the badge.
MAY = {
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
        for target in re.findall(r"\bmake ([\w./-]+)", words):
            done = run("make", "--dry-run", target)
            assert done.returncode == 0, (file.name, target, done.stderr)


@needs("bash")
@pytest.mark.parametrize("machine", ["", "data/machines/a machine.jsonl.xz"])
def test_the_book_is_made_of_the_machine_file_that_is_named(machine: str, tmp_path: Path) -> None:
    """The step's own words, with a make that says what it was given."""
    jobs = jobs_of(FOLDER / "workflows" / "publish.yml")
    [step] = [each for each in jobs["build"]["steps"] if each.get("name") == "The book"]
    (tmp_path / "make").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "make").chmod(0o755)
    environ = {"PATH": str(tmp_path), "MACHINE": machine}
    done = run(shutil.which("bash"), "-e", "-c", step["run"], env=environ)
    assert done.stdout.splitlines() == ["book", *([f"MACHINE={machine}"] if machine else [])]


@needs("tar")
def test_an_environment_out_of_a_cache_is_believed(tmp_path: Path, monkeypatch) -> None:
    """actions/cache keeps folders as `tar --posix` does, times with all their digits: what comes
    back in the same place needs not be made again."""
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
    files = [path for folder in (".ci", "binder") for path in (places.ROOT / folder).iterdir()]
    shells = {path for path in files if re.match(rb"#!/bin/(ba)?sh\n", path.read_bytes())}
    assert {places.ROOT / name for name in scripts} == shells
    done = run(Path(sys.executable).with_name("shellcheck"), *shells)
    assert done.returncode == 0, done.stdout


@needs("actionlint")
def test_the_workflows_pass_actionlint() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = run("actionlint", "-shellcheck", shellcheck, *WORKFLOWS)
    assert done.returncode == 0, done.stdout
