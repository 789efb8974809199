"""Python 2.7 and 3.7 from conda-forge, into .casebook/pythons, for machines that have none.

    python -m casebook stacks --get              what readers run (make pythons)
    python -m casebook.stacks.pythons [CHANNEL]  resolve the committed list again

What is installed is what a list names, each package with its sha256. A list that is committed,
env/pythons.lock, is preferred: then a channel cannot change what readers get. Where none is, the
packages are resolved from the channel's own index, over https, and the list is kept beside the
Pythons. `conda_forge.py` does both in a process of its own, with py-rattler, which nothing else
here needs.
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

#: The packages of each Python for each platform, with their sha256: as they are committed, and as
#: they were resolved here (in places.PYTHONS).
LIST = places.ENV / "pythons.lock"
RESOLVED = "resolved.lock"
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
    file = _list_for(missing, progress)
    packages = {version: _urls(file, version) for version in missing}
    _check_reachable(packages[missing[0]][0])
    if conda_platform() not in TRIED:
        progress(f"Nobody has told us yet that this works on {conda_platform()}: please do.")
    failures = []
    for version in missing:
        channel = urlsplit(packages[version][0]).hostname
        progress(f"getting Python {version}: {len(packages[version])} packages from {channel}")
        try:
            progress(f"Python {version} is there: {_install(version, file).path}")
        except EnvironmentFailed as error:
            failures.append(str(error))
    if failures:
        # What was resolved here may be why, and is resolved anew at the next try.
        if file != LIST:
            file.unlink(missing_ok=True)
        raise EnvironmentFailed("\n".join(failures))


def how_to_get(version: str) -> str:
    """Return the commands that bring a Python of this version, one or the other."""
    ours = ["make pythons"] if conda_platform() else []
    others = [f"pyenv install {interpreters.LAST_RELEASES.get(version, version)}"]
    return " or ".join(f"`{command}`" for command in ours + others)


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
    pronoun, owner = ("them", "their") if len(missing) > 1 else ("it", "its")
    return (
        f"Python {' and '.join(missing)} not found: {owner} cells show a recorded run "
        f"(`make pythons` brings {pronoun})"
    )


def conda_platform() -> str:
    """Return conda's name for this machine; "" if packages of 2019 do not run on it."""
    return PLATFORMS.get((platform.system(), platform.machine()), "")


def _list_for(versions: list[str], progress: Callable[[str], None]) -> Path:
    """Return the list that names the packages of these Pythons for this machine.

    It is the committed one, or one that is resolved now and kept.

    Raises EnvironmentFailed if there can be none.
    """
    if not conda_platform():
        raise EnvironmentFailed(
            f"packages of 2019 are ready-made for x86-64 processors only, and this machine is "
            f"{platform.machine()}: old Pythons would run nothing here. The book shows a recorded "
            "run in their place."
        )
    resolved = places.PYTHONS / RESOLVED
    for file in (LIST, resolved):
        if all(_urls(file, version) for version in versions):
            return file
    progress(
        f"env/{LIST.name} names no packages for {conda_platform()}: resolving them by the index "
        f"of {CHANNEL}, whose digests are kept in {_relative_to_root(resolved)}"
    )
    places.PYTHONS.mkdir(parents=True, exist_ok=True)
    _resolve(CHANNEL, resolved)
    if nowhere := [version for version in versions if not _urls(resolved, version)]:
        raise EnvironmentFailed(
            f"{CHANNEL} has no Python {' and '.join(nowhere)} for {conda_platform()}. "
            "The book can be built without."
        )
    return resolved


def _urls(file: Path, version: str) -> list[str]:
    """Return the URLs of a Python's packages for this machine, by a list; none if it has none."""
    if not file.is_file():
        return []
    environments = yaml.safe_load(file.read_text())["environments"]
    packages = environments.get(version, {"packages": {}})["packages"]
    return [package["conda"] for package in packages.get(conda_platform(), [])]


def _resolve(channel: str, file: Path) -> None:
    """Write the list of a channel's packages. Raises EnvironmentFailed, and leaves what was there.

    What the index says is believed, so it has to come over https, or from this machine itself.
    """
    address = urlsplit(channel)
    if address.scheme != "https" and address.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise EnvironmentFailed(
            f"{channel} is not https: on the way, anybody could change its index and its digests."
        )
    _check_reachable(channel)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        draft = Path(folder, file.name)
        reason = _with_rattler("resolve", draft, channel)
        if not draft.is_file():
            raise EnvironmentFailed(f"{channel} could not be resolved: {reason}.")
        text = "# Resolved by `python -m casebook.stacks.pythons`; do not edit.\n"
        draft.write_text(text + draft.read_text())
        draft.replace(file)


def _relative_to_root(path: Path) -> Path:
    """Return a path as one types it in the project's folder."""
    return path.relative_to(places.ROOT) if path.is_relative_to(places.ROOT) else path


def _check_reachable(url: str) -> None:
    """Raise EnvironmentFailed if nobody answers there: installers would try for a long time."""
    address, kind = urlsplit(url), ""
    proxy = getproxies().get(address.scheme, "")
    if proxy and not proxy_bypass(address.hostname or ""):
        address, kind = urlsplit(proxy if "://" in proxy else f"http://{proxy}"), "the proxy "
    port = address.port or {"http": 80, "https": 443}.get(address.scheme, 443)
    try:
        socket.create_connection((address.hostname, port), timeout=5).close()
    except OSError as error:
        raise EnvironmentFailed(
            f"{kind}{address.hostname} cannot be reached ({error.strerror or error}), so no Python "
            "comes from there now. The book can be built without."
        ) from None


def _install(version: str, file: Path) -> Interpreter:
    """Install one Python by a list, in place of what is left of it. Raises EnvironmentFailed."""
    folder = places.PYTHONS / version
    try:
        places.PYTHONS.mkdir(parents=True, exist_ok=True)
        with open(places.PYTHONS / f"{version}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if interpreter := interpreters.find(version):  # another process has been here
                return interpreter
            if folder.exists():
                shutil.rmtree(folder)
            reason = _with_rattler("install", file, version, conda_platform(), folder)
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
        command += ["--target", folder, "--require-hashes"]
        command += ["--requirements", str(places.ENV / "rattler.txt")]
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
    _resolve(arguments[0] if arguments else CHANNEL, LIST)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (EnvironmentFailed, UsageError) as failed:
        sys.exit(f"casebook: {failed}")
