"""A channel of conda packages on this machine, made of the old Pythons that are installed here."""

import contextlib
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from here import Quiet, serving

from casebook.stacks import environments, interpreters, pythons

#: What a Python runs without. Left out, a package is made in two seconds.
LEFT_OUT = ("__pycache__", "test", "tests", "idlelib", "site-packages", "lib2to3", "ensurepip")


class Channel(Quiet):
    """Serves a channel. Below /broken/, packages end before their end."""

    def do_GET(self) -> None:
        broken = self.path.startswith("/broken/")
        self.path = self.path.removeprefix("/broken")
        if not (broken and self.path.endswith(".bz2")):
            super().do_GET()
            return
        content = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.close_connection = True


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a channel that has both Pythons, written into an empty folder.

    Skips where one of them is missing and may be.
    """
    found = {each: interpreters.find(each) for each in interpreters.LAST_RELEASES}
    if missing := [each for each, place in found.items() if not place]:
        if environments.required().intersection(missing):
            pytest.fail(f"CASEBOOK_REQUIRE asks for Python {missing}")
        pytest.skip(f"no Python {' and '.join(missing)} here to make packages of")
    write(folder, {each: place.path for each, place in found.items()})
    with serving(partial(Channel, directory=str(folder))) as url:
        yield url


def resolve(channel: str, file: Path) -> None:
    """Write the list of the channel's packages, by the command that makes ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pythons, "LIST", file)
        pythons.main([channel])


def write(folder: Path, pythons: dict[str, Path]) -> None:
    """Write the channel.

    pythons: such as {"2.7": an interpreter}; each becomes a package, which needs a second one, as
    those of conda-forge do.
    """
    for subdir in ("linux-64", "osx-64", "noarch"):
        (folder / subdir).mkdir(parents=True)
    records = {"linux-64": {}, "osx-64": {}, "noarch": {}}
    name, record = _package(folder, "noarch", "authorities", "1.0", [], {"ssl/readme": b"none"})
    records["noarch"][name] = record
    for family, python in pythons.items():
        files, version = _files(python)
        name, record = _package(folder, "linux-64", "python", version, ["authorities"], files)
        records["linux-64"][name] = record
        # Nothing that runs: it is resolved only.
        name, record = _package(folder, "osx-64", "python", f"{family}.1", ["authorities"], {})
        records["osx-64"][name] = record
    for subdir, packages in records.items():
        index = {"info": {"subdir": subdir}, "packages": packages, "packages.conda": {}}
        (folder / subdir / "repodata.json").write_text(json.dumps(index | {"repodata_version": 1}))


def _files(python: Path) -> tuple[dict[str, Path], str]:
    """What is installed with an interpreter, by its name in the package; and its version."""
    ask = "import sys; print(sys.prefix); print('%d.%d.%d' % sys.version_info[:3])"
    said = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout
    prefix, version = said.split()
    family = version.rpartition(".")[0]
    inside = [
        Path(prefix, "bin", f"python{family}"),
        # Its own library, and where conda made this Python, OpenSSL and the rest.
        *Path(prefix, "lib").glob("lib*.so*"),
        *Path(prefix, "lib", f"python{family}").rglob("*"),
    ]
    names = {str(path.relative_to(prefix)): path for path in inside if path.is_file()}
    return {
        name: path
        for name, path in names.items()
        if not set(LEFT_OUT).intersection(Path(name).parts) and path.suffix not in (".a", ".pyc")
    }, version


def _package(
    folder: Path, subdir: str, name: str, version: str, depends: list[str], files: dict
) -> tuple[str, dict]:
    """Write one package; its file name, and what the channel's index says of it."""
    record = {"name": name, "version": version, "build": "0", "build_number": 0, "subdir": subdir,
              "depends": depends, "timestamp": 1_600_000_000_000}  # fmt: skip
    record |= {"noarch": "generic"} if subdir == "noarch" else {}
    paths, file = [], folder / subdir / f"{name}-{version}-0.tar.bz2"
    with tarfile.open(file, "w:bz2", compresslevel=1) as archive:

        def add(inside: str, content: bytes, mode: int = 0o644) -> None:
            member = tarfile.TarInfo(inside)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))

        for inside, source in files.items():
            is_file = isinstance(source, Path)
            content = source.read_bytes() if is_file else source
            add(inside, content, source.stat().st_mode & 0o777 if is_file else 0o644)
            paths.append({"_path": inside, "path_type": "hardlink", "size_in_bytes": len(content),
                          "sha256": hashlib.sha256(content).hexdigest()})  # fmt: skip
        add("info/index.json", json.dumps(record).encode())
        add("info/files", "\n".join(files).encode())
        add("info/paths.json", json.dumps({"paths": paths, "paths_version": 1}).encode())
    content = file.read_bytes()
    digests = {kind: hashlib.new(kind, content).hexdigest() for kind in ("sha256", "md5")}
    return file.name, record | digests | {"size": len(content)}
