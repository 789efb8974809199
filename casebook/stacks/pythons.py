"""Python 2.7 and 3.7 from conda-forge, into .casebook/pythons, for machines that have none.

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

#: conda's names of the platforms for which there are packages of 2019, by Python's names.
#: Apple's processors run those for Intel's through Rosetta.
PLATFORMS = {
    ("Linux", "x86_64"): "linux-64",
    ("Darwin", "x86_64"): "osx-64",
    ("Darwin", "arm64"): "osx-64",
}
#: The platforms on which a Python was installed in this way and ran a stack.
TRIED = ("linux-64",)

WITHIN_S = 900


def report(line: str) -> None:
    """Report progress, by default: one line on standard error."""
    print(line, file=sys.stderr, flush=True)


def get(progress: Callable[[str], None] = report) -> None:
    """Install each old Python that is missing here; a line of progress for each.

    Raises EnvironmentFailed, with one sentence for each that could not be installed.
    """
    missing = []
    for version in interpreters.LAST_RELEASES:
        if interpreter := interpreters.find(version):
            progress(f"Python {version} is there: {interpreter.path}")
        else:
            missing.append(version)
    if not missing:
        return
    packages = _packages(missing)
    _check_reachable(packages[missing[0]][0])
    if conda_platform() not in TRIED:
        progress(f"Nobody has told us yet that this works on {conda_platform()}: please do.")
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
    """Return the commands that bring a Python of this version, one or the other."""
    ours = ["make pythons"] if is_listed(version) else []
    alternatives = [
        f"pyenv install {interpreters.LAST_RELEASES.get(version, version)}",
        f"micromamba create -y -n py{version.replace('.', '')} -c conda-forge python={version}",
    ]
    return " or ".join(f"`{command}`" for command in ours + alternatives)


def offer() -> str:
    """Return a line for a reader who builds the book without an old Python.

    It is "" if none is missing, or if it could run nothing.
    """
    return offer_of(
        *(version for version in interpreters.LAST_RELEASES if not interpreters.find(version))
    )


def offer_of(*missing: str) -> str:
    """Return the same line for these missing Pythons."""
    if not missing or not conda_platform():
        return ""
    source = "`make pythons` brings" if is_listed(missing[0]) else "the README says what brings"
    pronoun, owner = ("them", "their") if len(missing) > 1 else ("it", "its")
    return (
        f"Python {' and '.join(missing)} not found: {owner} cells show a recorded run "
        f"({source} {pronoun})"
    )


def is_listed(version: str) -> bool:
    """Return whether this Python's packages for this machine are known."""
    return bool(_listed().get(version, {}).get(conda_platform()))


def conda_platform() -> str:
    """Return conda's name for this machine; "" if packages of 2019 do not run on it."""
    return PLATFORMS.get((platform.system(), platform.machine()), "")


def _listed() -> dict[str, dict[str, list[str]]]:
    """Return the URLs of packages, by version and platform."""
    if not LIST.is_file():
        return {}
    environments = yaml.safe_load(LIST.read_text())["environments"]
    return {
        version: {
            name: [package["conda"] for package in urls]
            for name, urls in environment["packages"].items()
        }
        for version, environment in environments.items()
    }


def _packages(versions: list[str]) -> dict[str, list[str]]:
    """Return the URLs of packages for this machine, by version.

    EnvironmentFailed if there are none.
    """
    machine = conda_platform()
    if not machine:
        raise EnvironmentFailed(
            f"packages of 2019 are ready-made for x86-64 processors only, and this machine is "
            f"{platform.machine()}: old Pythons would run nothing here. The book shows a recorded "
            "run in their place."
        )
    urls_listed = _listed()
    urls_by_version = {
        version: urls_listed.get(version, {}).get(machine, []) for version in versions
    }
    if nowhere := [version for version, urls in urls_by_version.items() if not urls]:
        raise EnvironmentFailed(
            f"nobody has listed the packages of Python {' and '.join(nowhere)} for {machine} yet "
            f"(env/{LIST.name}). Where conda-forge can be reached, `{_own_python()} -m "
            "casebook.stacks.pythons` lists them; then run the same command again. pyenv and conda "
            "have these Pythons too: the README says how. The book can be built without."
        )
    return urls_by_version


def _own_python() -> Path:
    """Return the Python that runs this, as one types it in the project's folder."""
    executable = Path(sys.executable)
    return (
        executable.relative_to(places.ROOT)
        if executable.is_relative_to(places.ROOT)
        else executable
    )


def _check_reachable(url: str) -> None:
    """Raise EnvironmentFailed if nobody answers there: installers would try for a long time."""
    address = urlsplit(url)
    proxy = getproxies().get(address.scheme, "")
    if proxy and not proxy_bypass(address.hostname or ""):
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    port = address.port or {"http": 80, "https": 443}.get(address.scheme, 443)
    try:
        socket.create_connection((address.hostname, port), timeout=5).close()
    except OSError as error:
        raise EnvironmentFailed(
            f"{address.hostname} cannot be reached ({error.strerror or error}), so no Python comes "
            "from there now. The book can be built without."
        ) from None


def _install(version: str) -> Interpreter:
    """Install one Python in place of whatever is left of it. Raises EnvironmentFailed."""
    folder = places.PYTHONS / version
    try:
        places.PYTHONS.mkdir(parents=True, exist_ok=True)
        with open(places.PYTHONS / f"{version}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if interpreter := interpreters.find(version):  # another process has been here
                return interpreter
            if folder.exists():
                shutil.rmtree(folder)
            reason = _with_rattler("install", LIST, version, conda_platform(), folder)
    except OSError as error:
        raise EnvironmentFailed(
            f"Python {version} could not be installed: {error.strerror} ({error.filename})."
        ) from None
    # Judged by what is there, whatever the exit status: see conda_forge.py.
    interpreter = interpreters.find(version)
    if interpreter is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise EnvironmentFailed(
            f"Python {version} could not be installed: {reason or 'it is there and does not run'}. "
            f"Try again, or {how_to_get(version).removeprefix('`make pythons` or ')} brings one."
        )
    return interpreter


def _with_rattler(*arguments: object) -> str:
    """Run conda_forge.py and return its last reason. Raises EnvironmentFailed if it cannot run."""
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        command = installers.uv("pip", "install", "--quiet", "--python", sys.executable)
        command += ["--target", folder, "--requirements", str(places.ENV / "rattler.txt")]
        options: dict = {"failed": EnvironmentFailed}
        environ = installers.environ_of(os.environ)
        process = commands.run(command, "uv", WITHIN_S, environ, **options)
        if process.returncode:
            raise EnvironmentFailed(f"py-rattler cannot be had: {_reason(process)}.")
        # -P: modules beside the script have the names of some of Python's own.
        script = Path(__file__).with_name("conda_forge.py")
        command = [sys.executable, "-P", str(script), *map(str, arguments)]
        environ = os.environ | {"PYTHONPATH": folder}
        return _reason(commands.run(command, "py-rattler", WITHIN_S, environ, **options))


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    """Return why a program failed: the signal that ended it, or its last line, the first cause."""
    if process.returncode < 0:
        return f"it ended by signal {-process.returncode}"
    lines = process.stderr.strip().splitlines()
    return lines[-1].strip().removeprefix("Caused by: ").rstrip(".") if lines else ""


def main(arguments: list[str]) -> None:
    """Write the list, from a channel of conda packages."""
    if len(arguments) > 1:
        raise UsageError("give one channel, or none: conda-forge is asked then")
    channel = arguments[0] if arguments else CHANNEL
    _check_reachable(channel)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, LIST.name)
        reason = _with_rattler("resolve", fresh, channel)
        if not fresh.is_file():
            raise EnvironmentFailed(f"{channel} could not be resolved: {reason}.")
        LIST.write_text(
            "# Resolved by `python -m casebook.stacks.pythons`; do not edit.\n" + fresh.read_text()
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (EnvironmentFailed, UsageError) as failed:
        sys.exit(f"casebook: {failed}")
