"""Python 2.7 and 3.7 got by the command that readers run, from a channel on this machine.

The channel is served over HTTP, as a digest is believed unseen over file://.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import conda_channel
import pytest
from here import run, serving

from casebook import cli, places, stacks
from casebook.errors import EnvironmentFailed
from casebook.stacks import environments, installers, interpreters, pythons

FAMILIES = tuple(interpreters.LAST_RELEASES)


@pytest.fixture(scope="module")
def channel_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("channel")


@pytest.fixture(scope="module")
def channel(channel_folder: Path) -> Iterator[str]:
    """The URL of a channel that has both Pythons."""
    with conda_channel.served(channel_folder) as url:
        yield url


@pytest.fixture(scope="module")
def listed(channel: str, tmp_path_factory) -> str:
    """The list of the channel's packages, made by the command that makes ours."""
    file = tmp_path_factory.mktemp("list") / "pythons.lock"
    conda_channel.resolve(channel, file)
    return file.read_text()


@pytest.fixture(scope="module")
def cache() -> str:
    """Where uv keeps packages: a home of its own would fetch each of them again."""
    return run(*installers.uv("cache", "dir")).stdout.strip()


@pytest.fixture
def machine(listed, cache, no_old_pythons, monkeypatch) -> Path:
    """A machine without old Pythons, and with that list."""
    monkeypatch.setenv("PATH", f"{no_old_pythons / 'bin'}{os.pathsep}{os.defpath}")
    monkeypatch.setenv("UV_CACHE_DIR", cache)
    monkeypatch.setattr(pythons, "LIST", no_old_pythons / "pythons.lock")
    pythons.LIST.write_text(listed)
    return no_old_pythons


def change(old: str, new: str) -> None:
    """Change the list."""
    changed = re.sub(old, new, pythons.LIST.read_text())
    assert changed != pythons.LIST.read_text()
    pythons.LIST.write_text(changed)


def failure() -> str:
    """Why nothing could be got: a line for each Python."""
    with pytest.raises(EnvironmentFailed) as error:
        pythons.get(lambda line: None)
    assert not list(places.PYTHONS.glob("*/bin")) if places.PYTHONS.exists() else True
    return str(error.value)


def test_the_list_says_what_each_platform_gets_and_its_digest(listed: str) -> None:
    packages = re.findall(r"- conda: (\S+)\n  sha256: [0-9a-f]{64}\n", listed)
    for platform in set(pythons.PLATFORMS.values()):
        for family in FAMILIES:
            assert [each for each in packages if f"/{platform}/python-{family}." in each]
    assert len(packages) == len(set(packages)) == len(re.findall(r"(?m)^- conda:", listed))


def test_our_own_list_is_as_the_command_writes_it() -> None:
    """If it is committed: whole, from conda-forge, each package with its digest.

    The README says what happens until then.
    """
    is_made = (places.ENV / "pythons.lock").exists()
    readme = (places.ROOT / "README.md").read_text()
    assert ("No list of these digests is committed yet" in readme) != is_made
    if not is_made:
        return
    text = (places.ENV / "pythons.lock").read_text()
    urls = re.findall(r"(?m)^- conda: (\S+)", text)
    assert all(url.startswith(f"{pythons.CHANNEL}/") for url in urls)
    assert len(re.findall(r"(?m)^  sha256: [0-9a-f]{64}$", text)) == len(urls)
    for family in FAMILIES:
        for platform in set(pythons.PLATFORMS.values()):
            assert any(f"/{platform}/python-{family}." in url for url in urls)


def test_both_are_got_found_and_run_a_stack(machine: Path, capsys, tmp_path, monkeypatch) -> None:
    assert "`make pythons` brings them" in pythons.offer() and "\n" not in pythons.offer()
    assert cli.main(["stacks", "--get"]) == 0
    said = capsys.readouterr().err
    for family in FAMILIES:
        assert f"getting Python {family}: 2 packages from 127.0.0.1" in said
        found = interpreters.find(family)
        assert found and found.path.is_relative_to(places.PYTHONS)
    assert pythons.offer() == ""
    assert not [path for path in places.PYTHONS.iterdir() if path.name.startswith("tmp")]
    # Once more: nothing is fetched, and the places are told.
    pythons.LIST.unlink()
    assert cli.main(["stacks", "--get"]) == 0
    assert "getting" not in capsys.readouterr().err

    # The slow stack of Python 2.7 comes out as published, live.
    monkeypatch.setattr(places, "ENVIRONMENTS", tmp_path / "envs")
    asked = ["measure", "stage-2-py27", "--n", "3", "--delay", "0.2", "--repeats", "1", "--json"]
    assert cli.main(asked) == 0
    [measured] = map(json.loads, capsys.readouterr().out.splitlines())
    assert measured["source"] == "live" and measured["verdict"] == "serial"


def test_a_wrong_digest_is_refused(machine: Path) -> None:
    change(r"sha256: \S{8}", "sha256: 00000000")
    lines = failure().splitlines()
    assert len(lines) == 2
    assert all("could not be installed: hash mismatch" in line for line in lines)


def test_a_broken_download_is_a_sentence_and_the_next_try_makes_it_good(machine: Path) -> None:
    whole = pythons.LIST.read_text()
    change(r"(conda: http://[^/]+)/", r"\1/broken/")
    assert failure().count("could not be installed") == 2
    pythons.LIST.write_text(whole)
    pythons.get(lambda line: None)
    assert interpreters.find("2.7")


def test_what_an_interrupted_installation_left_is_no_python(machine: Path) -> None:
    pythons.get(lambda line: None)
    whole = places.PYTHONS / "2.7" / interpreters.WHOLE
    whole.unlink()
    interpreters.FOUND.clear()
    assert interpreters.find("2.7") is None and interpreters.find("3.7")
    pythons.get(lambda line: None)
    assert interpreters.find("2.7")


def test_a_process_that_dies_after_its_work_has_done_it(machine: Path, monkeypatch) -> None:
    """As py-rattler's do now and then; and one that dies before has not."""
    script = Path(pythons.__file__).with_name("conda_forge.py").read_text()
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n"
    monkeypatch.setattr(pythons, "__file__", str(machine / "pythons.py"))
    (machine / "conda_forge.py").write_text(crash + script)
    assert "could not be installed: it ended by signal 11" in failure()
    (machine / "conda_forge.py").write_text(script + "    " + crash)
    pythons.get(lambda line: None)
    assert all(interpreters.find(family) for family in FAMILIES)


def test_without_a_list_they_are_resolved_by_the_channels_index(
    machine: Path, channel: str, monkeypatch, capsys
) -> None:
    """On a clone in which nobody has committed a list, or not for this kind of machine."""
    monkeypatch.setattr(pythons, "CHANNEL", channel)
    change("(?m)^      linux-64:", "      linux-32:")
    assert "`make pythons` brings them" in pythons.offer()
    assert cli.main(["stacks", "--get"]) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("env/pythons.lock names no packages for linux-64: resolving them by")
    assert all(interpreters.find(family) for family in FAMILIES)
    # The list is kept beside the Pythons, and is the one of the command for a committed one.
    kept = places.PYTHONS / pythons.RESOLVED
    pythons.LIST.unlink()
    pythons.main([channel])
    assert kept.read_text() == pythons.LIST.read_text()
    # The next time nobody is asked for an index.
    pythons.LIST.unlink()
    monkeypatch.setattr(pythons, "CHANNEL", "https://channel.invalid")
    shutil.rmtree(places.PYTHONS / "2.7")
    interpreters.FOUND.clear()
    pythons.get(lambda line: None)
    assert interpreters.find("2.7")


def test_a_committed_list_is_preferred(machine: Path, monkeypatch) -> None:
    monkeypatch.setattr(pythons, "CHANNEL", "https://channel.invalid")
    places.PYTHONS.mkdir(parents=True)
    (places.PYTHONS / pythons.RESOLVED).write_text(
        pythons.LIST.read_text().replace("127.0.0.1", "resolved.invalid")
    )
    lines: list[str] = []
    pythons.get(lines.append)
    assert not any("resolv" in line for line in lines) and interpreters.find("2.7")


@pytest.mark.parametrize(
    ("channel_url", "sentence"),
    [
        ("http://channel.invalid/main", "http://channel.invalid/main is not https: on the way"),
        ("https://channel.invalid/main", "channel.invalid cannot be reached"),
        ("{channel}/nowhere", "/nowhere could not be resolved: "),
    ],
)
def test_an_index_that_cannot_be_believed_or_had(
    machine: Path, channel: str, channel_url: str, sentence: str, monkeypatch
) -> None:
    pythons.LIST.unlink()
    monkeypatch.setattr(pythons, "CHANNEL", channel_url.format(channel=channel))
    line = failure()
    assert sentence in line and "\n" not in line
    assert list(places.PYTHONS.iterdir()) == []


@pytest.mark.parametrize("lie", ["the digest of another file", "no digest"])
def test_an_index_that_lies(
    machine: Path, channel: str, channel_folder: Path, lie: str, monkeypatch, tmp_path
) -> None:
    """Its digest is not that of the package, or it gives none. The next try does not believe it."""
    folder = shutil.copytree(channel_folder, tmp_path / "channel")
    index = folder / "linux-64" / "repodata.json"
    packages = json.loads(index.read_text())
    for record in packages["packages"].values():
        digests = {kind: record.pop(kind) for kind in ("sha256", "md5")}
        if lie != "no digest":
            record["sha256"] = digests["sha256"][::-1]
    index.write_text(json.dumps(packages))
    pythons.LIST.unlink()
    with serving(partial(conda_channel.Channel, directory=str(folder))) as url:
        monkeypatch.setattr(pythons, "CHANNEL", url)
        line = failure()
    wanted = "has no sha256" if lie == "no digest" else "could not be installed: hash mismatch"
    assert wanted in line
    monkeypatch.setattr(pythons, "CHANNEL", channel)
    pythons.get(lambda line: None)
    assert all(interpreters.find(family) for family in FAMILIES)


def test_a_proxy_that_is_not_there_is_named(machine: Path, monkeypatch) -> None:
    pythons.LIST.unlink()
    monkeypatch.setattr(pythons, "CHANNEL", "https://channel.invalid/main")
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    assert failure().startswith("the proxy proxy.invalid cannot be reached")


@pytest.mark.parametrize("processor", ["aarch64", "ppc64le"])
def test_where_they_would_run_nothing_none_is_got(machine: Path, monkeypatch, processor) -> None:
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert f"x86-64 processors only, and this machine is {processor}" in failure()
    assert pythons.offer() == ""


def test_apples_processors_get_those_for_intels_and_hear_that_nobody_tried(
    machine: Path, monkeypatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert pythons.conda_platform() == "osx-64"
    said: list[str] = []
    with pytest.raises(EnvironmentFailed):  # what the channel has for it is empty
        pythons.get(said.append)
    assert said[0] == "Nobody has told us yet that this works on osx-64: please do."


GET = """
import sys
from pathlib import Path
from casebook import cli, places
from casebook.stacks import interpreters, pythons
pythons.LIST = Path(sys.argv[1])
places.PYTHONS = Path(sys.argv[2])
interpreters.SYSTEM_CONDA = ()
sys.exit(cli.main(["stacks", "--get"]))
"""


def test_without_a_network_a_sentence_comes_at_once(machine: Path) -> None:
    """In a network namespace in which there is nothing, not even loopback.

    Whoever tries again and again, as installers do, is not asked: uv would not end within this
    limit.
    """
    if not shutil.which("unshare") or run("unshare", "-Urn", "true").returncode:
        pytest.skip("unshare(1) cannot give a process a network of its own here")
    change("http://127.0.0.1:[0-9]+", "https://conda.anaconda.org/conda-forge")
    command = ["unshare", "-Urn", sys.executable, "-c", GET, pythons.LIST, places.PYTHONS]
    unreachable = run(*command, timeout=20)
    assert unreachable.returncode == 1
    [line] = unreachable.stderr.splitlines()
    assert line.startswith("casebook: conda.anaconda.org cannot be reached (")
    assert line.endswith("The book can be built without.")


def test_a_proxy_is_asked_in_the_place_of_the_channel(machine: Path, monkeypatch) -> None:
    change("http://127.0.0.1:[0-9]+", "http://channel.invalid")
    assert failure().startswith("channel.invalid cannot be reached")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    assert failure().startswith("the proxy proxy.invalid cannot be reached")


# What messages advise


def test_the_command_of_the_advice_is_a_target_of_make(machine: Path) -> None:
    assert pythons.how_to_get("2.7") == "`make pythons` or `pyenv install 2.7.18`"
    done = run("make", "--dry-run", "pythons", env=os.environ | {"PATH": os.defpath})
    assert done.returncode == 0 and "casebook stacks --get" in done.stdout


@pytest.mark.parametrize("family", FAMILIES)
def test_pyenv_knows_what_we_advise(family: str) -> None:
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        pytest.skip("no pyenv here")
    [release] = re.findall(r"`pyenv install (\S+)`", pythons.how_to_get(family))
    assert release in run(pyenv, "install", "--list").stdout.split()


@pytest.mark.parametrize("family", FAMILIES)
def test_uv_is_advised_for_no_python_that_it_does_not_have(family: str) -> None:
    advised = "uv python install" in pythons.how_to_get(family)
    known = run(*installers.uv("python", "list", "--all-versions", "--only-downloads")).stdout
    assert advised == bool(re.search(rf"\bcpython-{family}\.\d", known))
    assert re.search(r"\bcpython-3\.1\d\.", known)


def test_the_environments_say_how_to_get_one(machine: Path) -> None:
    with pytest.raises(environments.MissingInterpreter) as error:
        environments.ensure(stacks.get("stage-1-py27"))
    assert "`make pythons` or" in str(error.value)
