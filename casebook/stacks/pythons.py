"""Python 2.7 and 3.7 from conda-forge, into .casebook/pythons, for whoever has none.

    python -m casebook stacks --get              what readers run (make pythons)
    python -m casebook.stacks.pythons [CHANNEL]  resolve the list of packages again

What is installed is what the list names, with its sha256: env/pythons.lock. `conda_forge.py`
does it in a process of its own, with py-rattler, which nothing else here needs.
"""

import fcntl
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from casebook import places
from casebook.errors import EnvironmentFailed, UsageError
from casebook.stacks import commands, installers, interpreters
from casebook.stacks.interpreters import Interpreter

#: The packages of each Python for each platform, with their sha256.
LIST = places.ENV / "pythons.lock"
CHANNEL = "https://conda.anaconda.org/conda-forge"

#: What conda calls the machines for which there are packages of 2019, by what Python calls them.
#: Apple's processors run those for Intel's through Rosetta.
PLATFORMS = {
    ("Linux", "x86_64"): "linux-64",
    ("Darwin", "x86_64"): "osx-64",
    ("Darwin", "arm64"): "osx-64",
}
#: Where a Python was installed in this way and ran a stack.
TRIED = ("linux-64",)

WITHIN_S = 900


def say(line: str) -> None:
    """The default progress: one line on standard error."""
    print(line, file=sys.stderr, flush=True)


def get(progress: Callable[[str], None] = say) -> None:
    """Install each old Python that cannot be found here; a line of progress for each.

    Raises EnvironmentFailed, with one sentence for each that could not be had.
    """
    missing = []
    for version in interpreters.LAST_RELEASES:
        if found := interpreters.find(version):
            progress(f"Python {version} is there: {found.path}")
        else:
            missing.append(version)
    if not missing:
        return
    packages = _packages(missing)
    _check_reachable(packages[missing[0]][0])
    if here() not in TRIED:
        progress(f"Nobody has told us yet that this works on {here()}: please do.")
    failures = []
    for version in missing:
        channel = urlsplit(packages[version][0]).hostname
        progress(f"getting Python {version}: {len(packages[version])} packages from {channel}")
        try:
            progress(f"Python {version} is there: {_install(version).path}")
        except EnvironmentFailed as error:
            failures.append(str(error))
    if failures:
        raise EnvironmentFailed("\n".join(failures))


def how_to_get(version: str) -> str:
    """The commands that bring a Python of this version, one or the other."""
    ours = ["make pythons"] if is_listed(version) else []
    others = [
        f"pyenv install {interpreters.LAST_RELEASES.get(version, version)}",
        f"micromamba create -y -n py{version.replace('.', '')} -c conda-forge python={version}",
    ]
    return " or ".join(f"`{command}`" for command in ours + others)


def offer() -> str:
    """One line for whoever builds the book without an old Python; empty where none is missing, or
    where it could run nothing."""
    return offer_of(*(each for each in interpreters.LAST_RELEASES if not interpreters.find(each)))


def offer_of(*missing: str) -> str:
    """The same for whoever lacks these."""
    if not missing or not here():
        return ""
    brings = "`make pythons` brings" if is_listed(missing[0]) else "the README says what brings"
    it, its = ("them", "their") if len(missing) > 1 else ("it", "its")
    return (
        f"Python {' and '.join(missing)} not found: {its} cells show a recorded run ({brings} {it})"
    )


def is_listed(version: str) -> bool:
    """Whether this Python's packages for this machine are known."""
    return bool(_listed().get(version, {}).get(here()))


def here() -> str:
    """What conda calls this machine; empty where packages of 2019 do not run."""
    return PLATFORMS.get((platform.system(), platform.machine()), "")


def _listed() -> dict[str, dict[str, list[str]]]:
    """The URLs of packages, by version and platform."""
    if not LIST.is_file():
        return {}
    environments = yaml.safe_load(LIST.read_text())["environments"]
    return {
        version: {name: [each["conda"] for each in urls] for name, urls in told["packages"].items()}
        for version, told in environments.items()
    }


def _packages(versions: list[str]) -> dict[str, list[str]]:
    """The URLs of packages for this machine, by version. EnvironmentFailed where there are none."""
    machine = here()
    if not machine:
        raise EnvironmentFailed(
            f"packages of 2019 are ready-made for x86-64 processors only, and this machine is "
            f"{platform.machine()}: old Pythons would run nothing here. The book shows a recorded "
            "run in their place."
        )
    listed = _listed()
    found = {version: listed.get(version, {}).get(machine, []) for version in versions}
    if nowhere := [version for version, urls in found.items() if not urls]:
        raise EnvironmentFailed(
            f"nobody has listed the packages of Python {' and '.join(nowhere)} for {machine} yet "
            f"(env/{LIST.name}). Where conda-forge can be reached, `{_own_python()} -m "
            "casebook.stacks.pythons` lists them; then run the same command again. pyenv and conda "
            "have these Pythons too: the README says how. The book can be built without."
        )
    return found


def _own_python() -> Path:
    """The Python that runs this, as one types it in the project's folder."""
    own = Path(sys.executable)
    return own.relative_to(places.ROOT) if own.is_relative_to(places.ROOT) else own


def _check_reachable(url: str) -> None:
    """Raise EnvironmentFailed when nobody answers there: installers would try for a long time."""
    asked = urlsplit(url)
    proxy = getproxies().get(asked.scheme, "")
    if proxy and not proxy_bypass(asked.hostname or ""):
        asked = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    port = asked.port or {"http": 80, "https": 443}.get(asked.scheme, 443)
    try:
        socket.create_connection((asked.hostname, port), timeout=5).close()
    except OSError as error:
        raise EnvironmentFailed(
            f"{asked.hostname} cannot be reached ({error.strerror or error}), so no Python comes "
            "from there now. The book can be built without."
        ) from None


def _install(version: str) -> Interpreter:
    """Install one Python in place of whatever is left of it. Raises EnvironmentFailed."""
    folder = places.PYTHONS / version
    try:
        places.PYTHONS.mkdir(parents=True, exist_ok=True)
        with open(places.PYTHONS / f"{version}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if found := interpreters.find(version):  # another process has been here
                return found
            if folder.exists():
                shutil.rmtree(folder)
            said = _with_rattler("install", LIST, version, here(), folder)
    except OSError as error:
        raise EnvironmentFailed(
            f"Python {version} could not be installed: {error.strerror} ({error.filename})."
        ) from None
    # Judged by what is there, whatever the exit status: see conda_forge.py.
    found = interpreters.find(version)
    if found is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise EnvironmentFailed(
            f"Python {version} could not be installed: {said or 'it is there and does not run'}. "
            f"Try again, or {how_to_get(version).removeprefix('`make pythons` or ')} brings one."
        )
    return found


def _with_rattler(*arguments: object) -> str:
    """Run conda_forge.py; what it said last. Raises EnvironmentFailed where it cannot run."""
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        command = installers.uv("pip", "install", "--quiet", "--python", sys.executable)
        command += ["--target", folder, "--requirements", str(places.ENV / "rattler.txt")]
        how: dict = {"failed": EnvironmentFailed}
        environ = installers.environ_of(os.environ)
        done = commands.run(command, "uv", WITHIN_S, environ, **how)
        if done.returncode:
            raise EnvironmentFailed(f"py-rattler cannot be had: {_reason(done)}.")
        # -P: beside the script lie modules that are called as some of Python's own.
        script = Path(__file__).with_name("conda_forge.py")
        command = [sys.executable, "-P", str(script), *map(str, arguments)]
        environ = os.environ | {"PYTHONPATH": folder}
        return _reason(commands.run(command, "py-rattler", WITHIN_S, environ, **how))


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a program failed: the signal that ended it, or the last of its lines, the first cause."""
    if done.returncode < 0:
        return f"it ended by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines()
    return lines[-1].strip().removeprefix("Caused by: ").rstrip(".") if lines else ""


def main(arguments: list[str]) -> None:
    """Write the list, from a channel of conda packages."""
    if len(arguments) > 1:
        raise UsageError("give one channel, or none: conda-forge is asked then")
    channel = arguments[0] if arguments else CHANNEL
    _check_reachable(channel)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, LIST.name)
        said = _with_rattler("resolve", fresh, channel)
        if not fresh.is_file():
            raise EnvironmentFailed(f"{channel} could not be resolved: {said}.")
        LIST.write_text(
            "# Resolved by `python -m casebook.stacks.pythons`; do not edit.\n" + fresh.read_text()
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (EnvironmentFailed, UsageError) as failed:
        sys.exit(f"casebook: {failed}")
