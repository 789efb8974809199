"""The near-limit: the same pages, fetched by a client that costs next to nothing.

What Python takes longer than this is Python's; what this takes longer than one delay is the
machine's and the server's. Where `go` is on the PATH it is near_limit.go (standard library only,
built here, every response checked); else h2load (casebook/h2load.py).
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, server, stacks
from casebook.cases import h2load
from casebook.errors import EnvironmentFailed, MissingInterpreter, RunFailed
from casebook.runs import decisions, measurements, modes, reference, run_record, trust
from casebook.runs.bench import Bench
from casebook.runs.decisions import Question
from casebook.runs.measure import check_parameters, in_turns, rounds
from casebook.runs.measure import measure as measure_stacks
from casebook.runs.run_record import Run
from casebook.stacks import digests, environments

GO, H2LOAD = "go", h2load.NAME
#: What a run of either is called in the columns `stack` and `client`.
KINDS = (GO, H2LOAD)

SOURCE = Path(__file__).with_suffix(".go")
#: No module is needed, none may be fetched, and no other Go than the one that is here.
_OFFLINE = {
    "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GO111MODULE": "auto",
    "GOWORK": "off", "CGO_ENABLED": "0",
}  # fmt: skip
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "GOROOT", "GOCACHE", "XDG_CACHE_HOME")
_BUILT_WITHIN_S = 600
_WITHOUT_GO = "Mend it, or take it off the PATH: h2load or the reference run stands in for it."

_NEITHER = "the near-limit needs Go (https://go.dev/dl/) or h2load (Debian: nghttp2-client)."


def kind() -> str:
    """Which near-limit this machine has: one of KINDS, or empty. Nothing is built."""
    return next((name for name in KINDS if shutil.which(name)), "")


def build(progress: Callable[[str], None] = environments.say) -> Path:
    """The Go client's program, built now if this source has not been built by this Go yet.

    progress: gets one line when it is built. Raises MissingInterpreter where there is no `go`,
    EnvironmentFailed with the compiler's words when it cannot be built.
    """
    if shutil.which(GO) is None:
        raise MissingInterpreter(_NEITHER)
    key = digests.of(SOURCE, _go("version"))
    program = places.LOCAL / "near_limit" / key / "near_limit"
    if not program.exists():
        progress("building casebook/cases/near_limit.go")
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            draft = Path(folder) / "near_limit"
            _go("build", "-trimpath", "-o", str(draft), str(SOURCE))
            draft.replace(program)
    return program


def measure(
    n: int | Iterable[int] | None = None,
    delay_s: float = 1.0,
    repeats: int | range = 1,
    scheme: str = "https",
    trusted: str = trust.BUNDLE,
    beside: Iterable[str] = (),
    until: Question | Iterable[Question] = (),
    looks: Iterable[int] = decisions.LOOKS,
) -> pd.DataFrame:
    """Measure the near-limit: one row a run, columns run_record.FRAME_COLUMNS and `instead`, stack
    and client `go` or `h2load`. The Go client loads its certificates once, like the cure.

    n: sizes, by default the mode's crowd_ns. trusted: of casebook/runs/trust.py, over https.
    beside: stacks that are measured in the same rounds, in turns with it. until, looks: what is to
    be decided, as for measure.measure. Where there is neither program its rows are the reference
    machine's. Raises as measure.measure.
    """
    sizes = [n] if isinstance(n, int) else list(n or modes.current().crowd_ns)
    questions = [until] if isinstance(until, Question) else list(until)
    told: dict[str, Any] = {"delay_s": delay_s, "scheme": scheme}
    if questions:
        return decisions.until_decided(
            lambda chosen: measure(sizes, repeats=chosen, trusted=trusted, beside=beside, **told),
            questions,
            looks,
        )
    if kind():
        found = measure_runs(sizes, repeats=repeats, trusted=trusted, beside=beside, **told)
        return run_record.frame(found).assign(instead="")
    rows = recorded(sizes, scheme)
    if rows.empty:
        raise MissingInterpreter(_NEITHER)
    rows = rows if 1 in rounds(repeats) else rows.iloc[:0]  # it was recorded once
    if not beside:
        return rows
    others = measure_stacks(beside, sizes, repeats=repeats, trust=trusted, **told)
    return pd.concat([rows, others], ignore_index=True)


def recorded(ns: Iterable[int], scheme: str = "https") -> pd.DataFrame:
    """The reference machine's runs of a near-limit at these sizes, or at the nearest where none
    of them was recorded: columns run_record.FRAME_COLUMNS, and `instead`."""
    known = reference.runs()
    known = known[known["stack"].isin(KINDS)]
    return reference.stand_in(known, {"scheme": scheme}, {"n": list(ns)})


def measure_runs(
    ns: Iterable[int],
    delay_s: float = 1.0,
    repeats: int | range = 1,
    scheme: str = "https",
    trusted: str = trust.BUNDLE,
    beside: Iterable[str] = (),
) -> list[Run]:
    """As `measure`, here and now, without a fallback. Raises RunFailed when a response is wrong
    or was not over a connection of its own."""
    ns = list(ns)
    trusted = trusted if scheme == "https" else trust.AUTHORITY
    check_parameters(ns, delay_s, len(rounds(repeats)), None, scheme, trusted)
    if not kind():
        raise MissingInterpreter(_NEITHER)
    ask = _ask_go if kind() == GO else _ask_h2load
    told = {"delay_s": delay_s, "trust": trusted}
    ready = [environments.ensure(stacks.get(name)) for name in beside]
    found = []
    with Bench(scheme) as bench:
        for repeat, (n, stack) in in_turns(product(ns, [None, *ready]), repeats):
            asked = {"n": n} | told
            if stack is None:
                run = _stored_or_new(bench, ask, asked | {"scheme": scheme, "repeat": repeat})
            else:
                run = bench.run(stack, repeat, client=stack.stack.client, **asked)
            found.append(run)
    return found


def _stored_or_new(bench: Bench, ask: Callable, asked: dict) -> Run:
    key = digests.of(
        measurements.SCHEMA,
        build().parent.name if ask is _ask_go else h2load.version(),
        digests.files(trust, h2load),
        Path(__file__),
        server.MADE_OF,
        asked,
    )
    taken = measurements.stored_or_new(key, lambda: asdict(_measured(bench, ask, asked)))
    return run_record.from_stored(taken)


def _measured(bench: Bench, ask: Callable, asked: dict) -> Run:
    n, target = asked["n"], bench.lab()
    with tempfile.TemporaryDirectory() as folder:
        told = trust.of_name(asked["trust"], target.ca_file, Path(folder))
        target.reset()
        answer = ask(target, told, n, asked["delay_s"])
        seen = target.counters() or {}
    name = answer.pop("name")
    run = run_record.from_answer(answer, seen, stack=name, client=name, **asked)
    if (seen["connections"], seen["requests"]) != (n, n):
        raise RunFailed(
            f"{name}: {seen['requests']} requests over {seen['connections']} connections reached "
            f"the server, and not {n} over as many. Nothing was recorded."
        )
    return run


def _ask_go(target, told: trust.Trust, n: int, delay_s: float) -> dict:
    bound_s = _bound_s(n, delay_s)
    file = told.bundle if told.verify is True else told.verify
    over_tls = target.ca_file is not None
    spec = {
        "url": target.url, "n": n, "delay_s": delay_s, "bound_s": bound_s,
        "trusted": file if over_tls and file else "", "verify": bool(told.verify),
    }  # fmt: skip
    # No variables: neither proxies nor certificates of this shell.
    done = _said([build()], {}, json.dumps(spec), bound_s + 10)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise RunFailed(f"near_limit.go: {last[0]}. Nothing was recorded.")
    answer = json.loads(done.stdout)
    versions = {GO: answer.pop("version")}
    return answer | {"name": GO, "python": "", "openssl": None, "versions": versions}


def _ask_h2load(target, told: trust.Trust, n: int, delay_s: float) -> dict:
    url = f"{target.url}/delay/{delay_s}?page=0"
    return h2load.fetch(url, n, _bound_s(n, delay_s)) | {"name": H2LOAD}


def _bound_s(n: int, delay_s: float) -> float:
    """Generous: all at once is one delay and some milliseconds of handshake for each."""
    return 60 + delay_s + 0.05 * n


def _go(*arguments: str) -> str:
    """What the go tool says. Raises EnvironmentFailed with its last line when it fails."""
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _OFFLINE
    try:
        done = _said([shutil.which(GO), *arguments], environ, "", _BUILT_WITHIN_S)
    except OSError as error:
        raise EnvironmentFailed(f"go does not run: {error}. {_WITHOUT_GO}") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentFailed(f"`go {arguments[0]}` failed: {last[0]}. {_WITHOUT_GO}")
    return done.stdout


def _said(command: list, environ: dict, told: str, within_s: float) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(
            command, input=told, env=environ, capture_output=True, text=True, cwd=places.ROOT,
            timeout=within_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        name = Path(command[0]).name
        raise RunFailed(f"{name} did not end within {within_s:.0f} s. Try again.") from None
