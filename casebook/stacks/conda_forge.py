"""Resolve and install conda's packages. Runs apart, with py-rattler in it and nothing of the book.

    conda_forge.py resolve LIST CHANNEL     which packages Python 2.7 and 3.7 are, by platform
    conda_forge.py install LIST 2.7 linux-64 FOLDER      one of them into a folder

`pythons.py` beside it calls both. It ignores the exit status: a few of py-rattler's
processes crash when all is done. So the file DONE is written at the very end.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from rattler import (
    BuildString,
    Channel,
    Client,
    Config,
    Gateway,
    GenericVirtualPackage,
    LockChannel,
    LockFile,
    LockPlatform,
    PackageName,
    Subdir,
    Version,
    install,
    solve,
)

#: conda's names of the platforms, and the oldest system that packages may require on each.
PLATFORMS = {
    "linux-64": {"__unix": "0", "__linux": "3.10", "__glibc": "2.17"},
    "osx-64": {"__unix": "0", "__osx": "11.0"},
}
VERSIONS = ("2.7", "3.7")

#: A file in the folder of a Python: all of its packages are there.
DONE = "done"

#: A private authority is in the system's store, or SSL_CERT_FILE names it.
CONFIG = 'tls-root-certs = "system"'


async def _resolve(file: Path, channel: str) -> None:
    platforms = {name: LockPlatform(name) for name in PLATFORMS}
    lock = LockFile(list(platforms.values()))
    with tempfile.TemporaryDirectory() as cache:
        gateway = Gateway(cache_dir=cache, client=Client.from_config(Config.from_toml(CONFIG)))
        for version in VERSIONS:
            lock.set_channels(version, [LockChannel(channel)])
            for name, system in PLATFORMS.items():
                virtual = [
                    GenericVirtualPackage(PackageName(key), Version(number), BuildString("0"))
                    for key, number in system.items()
                ]
                records = await solve(
                    [Channel(channel)], [f"python {version}.*"], gateway=gateway,
                    platforms=[Subdir(name), Subdir("noarch")], virtual_packages=virtual,
                )  # fmt: skip
                for record in sorted(records, key=lambda record: record.file_name):
                    if not record.sha256:
                        sys.exit(f"{record.url} has no sha256")
                    lock.add_conda_package(version, platforms[name], record)
    lock.to_path(file)


async def _install(file: Path, version: str, platform: str, folder: Path) -> None:
    environment = LockFile.from_path(file).environment(version)
    chosen = next(candidate for candidate in environment.platforms() if candidate.name == platform)
    records = environment.conda_repodata_records_for_platform(chosen)
    # Packages are hard links into the cache: they stay when it is gone.
    with tempfile.TemporaryDirectory(dir=folder.parent) as cache:
        await install(
            records, folder, cache_dir=Path(cache), platform=Subdir(platform), show_progress=False,
            config=Config.from_toml(CONFIG),
        )  # fmt: skip
    (folder / DONE).touch()


if __name__ == "__main__":
    task, file, *rest = sys.argv[1:]
    if task == "resolve":
        asyncio.run(_resolve(Path(file), rest[0]))
    else:
        asyncio.run(_install(Path(file), rest[0], rest[1], Path(rest[2])))
