"""The laboratory on many machines: each worker of a Dask cluster measures on itself.

    python -m casebook cluster scheduler                     # on this machine, for this machine
    python -m casebook cluster worker tcp://127.0.0.1:8786   # in the checkout of each machine
    python -m casebook measure stage-1-today --on tcp://127.0.0.1:8786

A worker runs the commands of its own checkout, in processes of their own, against servers of its
own, and one at a time on a machine. What it sends back is text, or a machine file.

Whoever reaches a scheduler can run code on all its machines. So everything listens on the loopback,
unless both sides show each other certificates (mutual TLS): then, and only then, at an address.
"""

import base64
import binascii
import ipaddress
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from casebook import places, stacks
from casebook.cases.many.jobs import STACK
from casebook.errors import RunFailed, ServerFailed, UsageError
from casebook.laboratory import machine_files, measurements
from casebook.stacks import environments

_PROBE = Path(__file__).parent / "probes" / "on_workers.py"

#: Dask serves some pages about itself, without encryption: nowhere but on the loopback.
_QUIET = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")

#: Seconds to wait for a scheduler.
WAIT_S = 20.0


@dataclass(frozen=True)
class Keys:
    """Three PEM files: the authority that all machines trust, and what this one shows of itself."""

    ca: Path
    cert: Path
    key: Path


def keys_of(ca: Path | None, cert: Path | None, key: Path | None) -> Keys | None:
    """Return the files, or None if there are none. Raises UsageError if one is missing."""
    paths = [path for path in (ca, cert, key) if path]
    if not paths:
        return None
    if ca is None or cert is None or key is None:
        raise UsageError("--tls-ca, --tls-cert and --tls-key come together: both sides show theirs")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path} is no file: name a PEM file")
    return Keys(ca.absolute(), cert.absolute(), key.absolute())


def checked(address: str, keys: Keys | None) -> None:
    """Raise UsageError unless an address is one that may be spoken to, or listened at.

    Over tcp on the loopback, or anywhere over tls with keys.
    """
    parts = urlsplit(address)
    try:
        has_port = parts.port is not None
    except ValueError:
        has_port = False
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not has_port:
        raise UsageError(f"a scheduler's address is like tcp://127.0.0.1:8786, not {address!r}")
    if (parts.scheme == "tls") != (keys is not None):
        raise UsageError(
            "tls:// and the three options --tls-ca, --tls-cert, --tls-key belong together"
        )
    if keys is None and not _is_loopback(parts.hostname):
        raise UsageError(
            f"{parts.hostname} is not this machine's loopback, and anyone who reaches a scheduler "
            "can run code: use tls://, with --tls-ca, --tls-cert and --tls-key"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def scheduler(host: str, port: int, keys: Keys | None) -> int:
    """Run a scheduler until it is ended; its exit code. Raises UsageError."""
    checked(f"{'tls' if keys else 'tcp'}://{_in_url(host)}:{port}", keys)
    return _run("scheduler", "--host", host, "--port", str(port), *_options(keys), *_QUIET)


def worker(address: str, keys: Keys | None, host: str = "127.0.0.1") -> int:
    """Run a worker for this checkout until it is ended; its exit code. Raises UsageError.

    host: the address of this machine at which the others reach it.
    """
    checked(address, keys)
    checked(f"{'tls' if keys else 'tcp'}://{_in_url(host)}:0", keys)
    options: tuple[str, ...] = ("--host", host, "--nthreads", "1", "--no-nanny", *_QUIET)
    with tempfile.TemporaryDirectory(prefix="casebook-") as scratch:
        options += ("--local-directory", scratch)
        return _run("worker", address, *options, *_options(keys))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _options(keys: Keys | None) -> tuple[str, ...]:
    if keys is None:
        return ()
    names = {"ca-file": keys.ca, "cert": keys.cert, "key": keys.key}
    return tuple(str(part) for name, path in names.items() for part in (f"--tls-{name}", path))


def _run(role: str, *arguments: str) -> int:
    environment = environments.ensure(stacks.get(STACK))
    # A worker's measurements run in its checkout, as if somebody had typed them there.
    variables = {"CASEBOOK_ROOT": str(places.ROOT), "CASEBOOK_PYTHON": sys.executable}
    command = [str(environment.python), "-m", f"distributed.cli.dask_{role}", *arguments]
    with subprocess.Popen(command, env=os.environ | variables) as running:
        try:
            return running.wait()
        except BaseException:
            running.terminate()
            raise


@dataclass(frozen=True)
class Answer:
    """What a worker sent back.

    worker: its name; command: what it was asked; out: what that printed; failed: why there is
    nothing, or nothing; file: of a command that writes one.
    """

    worker: str
    command: list[str]
    out: str = ""
    failed: str = ""
    file: bytes | None = None


def run_on_workers(
    address: str, keys: Keys | None, commands: Iterable[list[str]], *, each_machine: bool = False,
    file: bool = False,
) -> Iterator[Answer]:  # fmt: skip
    """Have every worker run these commands of casebook, and yield what comes, as it comes.

    each_machine: one worker of each machine. file: the commands write a file, at FILE. A worker
    that dies, or whose checkout is another commit's, gives an answer that says so. Raises
    UsageError for an address that may not be spoken to, ServerFailed where no scheduler or worker
    answers.
    """
    checked(address, keys)
    environment = environments.ensure(stacks.get(STACK))
    spec = {
        "address": address, "keys": keys and asdict(keys), "code": measurements.code(),
        "file": file, "commands": list(commands), "each_machine": each_machine,
        "wait_s": WAIT_S,
    }  # fmt: skip
    with subprocess.Popen(
        [environment.python, _PROBE], env=environments.clean_environ(environment), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as running:  # fmt: skip
        try:
            assert running.stdin and running.stdout
            running.stdin.write(json.dumps(spec, default=os.fspath))
            running.stdin.close()
            for line in running.stdout:
                message = json.loads(line)
                if "error" in message:
                    raise ServerFailed(
                        f"{message['error']}. Is it running, and reached as it listens (tcp or "
                        "tls)? `python -m casebook cluster scheduler` starts one."
                    )
                yield _answer(message)
        except BaseException:
            running.kill()
            raise
    if running.returncode:
        raise ServerFailed(
            f"asking {address} ended with exit code {running.returncode}. Try again."
        )


def _answer(message: dict[str, Any]) -> Answer:
    name, command = message["worker"], message["command"]
    if "failed" in message:
        return Answer(name, command, failed=message["failed"])
    if message["code"] != measurements.code():
        theirs = message["code"].partition(" ")[0] or "none that says its commit"
        ours = measurements.code().partition(" ")[0]
        reason = (
            f"its checkout is {theirs}, and here is {ours}, or files differ: nothing was measured"
        )
        return Answer(name, command, failed=reason)
    if message["status"]:
        return Answer(
            name, command, message["out"], message["said"] or f"exit code {message['status']}"
        )
    try:
        packed = base64.b64decode(message["file"], validate=True) if message["file"] else None
    except (binascii.Error, TypeError):
        return Answer(name, command, failed="its file came damaged")
    return Answer(name, command, message["out"], file=packed)


def save(address: str, keys: Keys | None, path: Path) -> Iterator[tuple[str, Path | None, str]]:
    """Save what each machine measured in its builds, beside `path`: NAME-1.jsonl.xz and so on.

    Yields (worker, the file or None, what it is or why there is none). A file is written whole or
    not at all, once it has been read as a stranger's. Raises as `run_on_workers`.
    """
    number = 0
    for answer in run_on_workers(
        address, keys, [["machine", "save", "FILE"]], each_machine=True, file=True
    ):
        if answer.failed or answer.file is None:
            yield answer.worker, None, answer.failed or "it sent no file"
            continue
        number += 1
        target = path.with_name(
            f"{path.name.removesuffix(machine_files.SUFFIX)}-{number}{machine_files.SUFFIX}"
        )
        draft = target.with_name(f".{target.name}.{os.getpid()}.part")
        draft.write_bytes(answer.file)
        try:
            label = machine_files.read(draft).label
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        yield answer.worker, target, label


def all_came(failed: Iterable[str]) -> None:
    """Raise RunFailed where something did not come, and say what."""
    if failures := list(failed):
        raise RunFailed(f"{'; '.join(failures)}. What came in is above.")
