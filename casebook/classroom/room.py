"""The examination room: a submission in a process of its own, stopped when it does not end.

    outcome = run(stack, file, [job, …], names=["PREDICTION"])

What can be stopped is stopped with a sentence: it hangs, starts processes, fills memory, prints
megabytes, reads the checks, writes outside of its folder. NOT_STOPPED says what is not.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casebook import places, stacks
from casebook.cases.fetching import clients
from casebook.errors import RunFailed
from casebook.stacks import environments

#: Seconds after which a submission is ended; the most memory that it may ask for, in bytes; the
#: most that it may print or tell, in bytes.
WITHIN_S, MEMORY, OUTPUT = 60.0, 1 << 30, 1 << 20

NOT_STOPPED = (
    "This is no security boundary. A submission runs as you do, with your files and your network: "
    "code that goes round Python (ctypes, a compiled module), opens your own files to read, or "
    "writes into the counters of its own process on purpose is not stopped. Read what gets full "
    "points in a suspicious way, and grade strangers' files as a user who owns nothing."
)

_INSIDE = Path(__file__).with_name("inside.py")
#: What is not for students to read while they are graded; a machine file that answers beside.
FORBIDDEN = [
    *(Path(__file__).parent, places.ROOT / "classroom" / "machines"),
    *(places.ROOT / "tests", places.BUILD / "teacher"),
]


@dataclass
class Outcome:
    """What came of a submission's run.

    answers: one for each job, as `inside.do` says, or {"error"} for those that were not reached.
    names: the constants that were asked for. loads: of certificates, told as they happened; reads:
    how often Python itself opened the bundle. took: books with their bodies, as they were taken.
    stopped: why it was ended, in words, or "". error: why the file itself does not run, or "".
    printed: what it printed on either stream, cut.
    """

    answers: list[dict[str, Any]] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    loads: int = 0
    reads: int = 0
    took: list[tuple[str, str]] = field(default_factory=list)
    stopped: str = ""
    error: str = ""
    printed: str = ""


@dataclass(frozen=True)
class Setting:
    """What a submission finds around it.

    countable: loads are counted (not with gevent). steps: of the probes. program: a file that runs
    first, and to whose names the submission's are added. with_siblings: the Python files beside the
    submission can be imported. bundle: what verify=True trusts. variables: further environment
    variables.
    """

    countable: bool = True
    steps: tuple[str, ...] = ()
    program: Path | None = None
    with_siblings: bool = False
    bundle: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)


PLAIN, NOT_COUNTABLE = Setting(), Setting(countable=False)


def run(
    stack: str,
    file: Path | None,
    jobs: list[dict[str, Any]],
    setting: Setting = PLAIN,
    *,
    names: tuple[str, ...] = (),
    observer: Callable[[Outcome], object] = lambda _: None,
) -> Outcome:
    """Run a submission in a stack's environment, and do the jobs.

    file: what was handed in; None for a run of the grader's own. jobs: see `inside.do`. names: of
    constants to bring. observer: called with the outcome so far, several times a second. Raises
    MissingInterpreter, and RunFailed if a run of the grader's own fails.
    """
    environment = environments.ensure(stacks.get(stack))
    with tempfile.TemporaryDirectory(prefix="casebook-room-") as home:
        folder = Path(home)
        copy = None
        if file:  # under a name that says nothing of where it came from
            copy = folder / "answer.py"
            copy.write_bytes(file.read_bytes())
            for sibling in file.parent.glob("*.py") if setting.with_siblings else ():
                (folder / sibling.name).write_bytes(sibling.read_bytes())
        environ = environments.clean_environ(environment) | {
            "HOME": home, "TMPDIR": home, "MALLOC_ARENA_MAX": "2",
        }  # fmt: skip
        parameters = {
            "file": copy, "memory": MEMORY if sys.platform == "linux" else None,
            "probes": places.PROBES, "clients": clients.FOLDER, "forbidden": FORBIDDEN,
            "names": names, "countable": setting.countable, "before": setting.steps,
            "program": setting.program, "bundle": setting.bundle, "do": jobs,
        }  # fmt: skip
        outcome = _run(
            environment.python, parameters, environ | setting.variables, folder, observer
        )
    if not (outcome.stopped or outcome.error) and outcome.names.keys() != {*names}:
        outcome.error = "it ended before it could be asked for anything"
    del outcome.answers[len(jobs) :]  # what it said in our place
    missing = outcome.stopped or outcome.error or "it ended before this was asked"
    outcome.answers += [{"error": missing}] * (len(jobs) - len(outcome.answers))
    if not file and (bad := [answer for answer in outcome.answers if "error" in answer]):
        raise RunFailed(f"the grader's own run in {stack} failed ({bad[0]['error']}). Try again.")
    return outcome


def _run(
    python: Path,
    parameters: dict[str, Any],
    environ: dict[str, str],
    folder: Path,
    observer: Callable[[Outcome], object],
) -> Outcome:
    outcome, reading, telling = Outcome(), *os.pipe()
    process = subprocess.Popen(
        [python, "-s", _INSIDE], env=environ, cwd=folder, pass_fds=[telling],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        os.close(telling)
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(
                json.dumps(parameters | {"tell": telling}, default=os.fspath).encode()
            )
            process.stdin.close()
        _listen(process, reading, outcome, observer)
    finally:
        _end(process)
        os.close(reading)
    if "MemoryError" in outcome.error + outcome.printed + json.dumps(outcome.answers):
        outcome.stopped = outcome.stopped or f"it fills the memory ({MEMORY >> 30} GiB is allowed)"
    return outcome


def _listen(
    process: subprocess.Popen[bytes],
    reading: int,
    outcome: Outcome,
    observer: Callable[[Outcome], object],
) -> None:
    """Read what the process sends into `outcome`, until it ends or has to be ended.

    `outcome` says why, and what it printed.
    """
    assert process.stdout and process.stderr
    out, err = process.stdout.fileno(), process.stderr.fileno()
    buffers, sizes = {reading: b"", out: b"", err: b""}, {reading: 0, out: 0, err: 0}
    deadline = time.monotonic() + WITHIN_S
    with selectors.DefaultSelector() as selector:
        for descriptor in buffers:
            selector.register(descriptor, selectors.EVENT_READ)
        # A child that was left behind may hold the pipes: the process itself says when it is over.
        while selector.get_map() and not outcome.stopped:
            remaining_s = deadline - time.monotonic()
            # Asked before the pipes are: what it wrote until it was over is read.
            is_over = process.poll() is not None
            ready = selector.select(max(min(remaining_s, 0.2), 0))
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fd)
                buffers[key.fd] += data
                sizes[key.fd] += len(data)
                if sizes[key.fd] > OUTPUT:
                    outcome.stopped = f"it prints more than {OUTPUT >> 20} MB"
            *lines, buffers[reading] = buffers[reading].split(b"\n")
            for line in lines:
                _receive(line, outcome)
            observer(outcome)
            if remaining_s <= 0:
                outcome.stopped = f"it did not end within {WITHIN_S:g} s"
            if is_over and not ready:
                break
    _receive(buffers[reading], outcome)
    outcome.printed = (buffers[out] + buffers[err]).decode("utf-8", "replace")[-2000:]


def _receive(line: bytes, outcome: Outcome) -> None:
    # What the submission wrote there by itself may be anything.
    with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
        _add(json.loads(line), outcome)


def _add(line: Any, outcome: Outcome) -> None:
    if not isinstance(line, dict):
        return
    if "loads" in line:
        outcome.loads += 1
    if "reads" in line:
        outcome.reads += 1
    if "took" in line:
        book, body = map(str, line["took"])
        outcome.took.append((book, body))
    if "names" in line:
        outcome.names = dict(line["names"])
        outcome.error = str(line.get("error", ""))
    if "answer" in line:
        answer = line["answer"]
        outcome.answers.append(answer if _is_answer(answer) else {"error": "that is no answer"})
    if "stopped" in line:
        outcome.stopped = str(line["stopped"])


def _is_answer(answer: Any) -> bool:
    """Check whether this is an answer of `inside.do`."""
    if not isinstance(answer, dict) or not isinstance(answer.get("error", ""), str):
        return False
    replies = answer.get("answers", [])
    return isinstance(replies, list) and all(map(_is_reply, replies))


def _is_reply(reply: Any) -> bool:
    """Check whether this is a reply of `inside.of_reply`."""
    kinds = {"status": int, "body": str, "error": str, "kind": str}
    return (
        isinstance(reply, dict)
        and all(isinstance(value, kinds.get(name, object)) for name, value in reply.items())
        and ({"status", "body"} <= reply.keys() or {"error", "kind"} <= reply.keys())
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group of processes. When this returns, it is gone."""
    for _ in range(100):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            break
        if process.poll() is not None:
            time.sleep(0.01)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            assert pipe
            pipe.close()
