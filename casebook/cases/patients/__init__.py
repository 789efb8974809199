"""The programs that the doctor is tried on: what it says of each, and what is measured.

    patients.table()    # all of them: some minutes
    patients.table(["locust", "stage-2-py27"])

A patient is a stack as the book measures it, or one of the scripts of this folder: the doctor
examines what its imports leave behind, and then it is run, ten pages at once, against a lab server
that counts.
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from casebook import clients, places, server, stacks, words
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.runs import analysis, measure, measurements, trust
from casebook.stacks import digests, environments, scripts

DOCTOR = places.DOCTOR
HERE = Path(__file__).parent

#: What the doctor says, in the words of a measurement.
MEANS = {"blocked": "serial", "free": "concurrent", "does not apply": "no event loop"}
#: Clients that fetch as the doctor does: their loads can be compared with what it counted.
COMPARABLE = ("grequests", "httpx", "aiohttp", "niquests")

#: Where it could not tell, and where there was no timing because responses failed.
CANNOT_TELL, FAILS = "cannot tell", "fails"
NO_LOOP = "no event loop"

PAGES, DELAY_S, REPEATS = 10, 0.2, 5
#: What `table` tells of each patient.
COLUMNS = (
    *("patient", "stack", "doctor", "measured", "wrong", "loads_doctor", "loads_measured"),
    *("share", "exit_status", "why", "source", "measured_at", "key"),
)
_WITHIN_S = 120.0


@dataclass(frozen=True)
class Patient:
    """A program to be examined and measured."""

    name: str
    stack: str
    #: The script of this folder that it is; empty: the steps of its stack.
    script: str = ""
    #: What the script is told in PATIENT.
    variant: str = ""
    #: What the steps are measured with; empty: nothing of the stack fetches.
    client: str = ""


#: Those that are no stack of the chapters.
OTHERS = (
    Patient("google-auth-2.55.2", "google-auth-2.55.2-today", client="grequests"),
    Patient("locust", "locust-today", "with_locust.py"),
    Patient("locust, FastHttpUser", "locust-today", "with_locust.py", "fast"),
    Patient("locust, injected", "locust-today", "with_locust.py", "injected"),
    Patient("gunicorn, gevent worker", "gunicorn-gevent-today", "with_gunicorn.py"),
    Patient("gunicorn, injected", "gunicorn-gevent-today", "with_gunicorn.py", "injected"),
    Patient("gunicorn, preloaded", "gunicorn-gevent-today", "with_gunicorn.py", "preloaded"),
    Patient("geventhttpclient", "geventhttpclient-today", "with_geventhttpclient.py"),
    Patient(
        "geventhttpclient, patched", "geventhttpclient-today", "with_geventhttpclient.py", "patched"
    ),
    Patient("eventlet", "eventlet-today", "with_eventlet.py"),
    Patient("eventlet, injected", "eventlet-today", "with_eventlet.py", "injected"),
    Patient("requests, nothing patched", "stage-1-today", "with_greenlets.py"),
    Patient("broken gevent", "broken-gevent-py37", "with_greenlets.py"),
)


def every() -> dict[str, Patient]:
    """All patients by name: every stack of the chapters, then OTHERS."""
    apart = {patient.stack for patient in OTHERS} - {"stage-1-today"}
    of_chapters = [
        Patient(stack.name, stack.name, client=stack.client)
        for stack in stacks.load().values()
        if stack.name not in apart
    ]
    return {patient.name: patient for patient in (*of_chapters, *OTHERS)}


def table(names: list[str] | None = None) -> pd.DataFrame:
    """What the doctor says of each patient, beside what is measured: one row each.

    names: of `every`; None: all that this machine can run. Columns: patient, stack, doctor and
    measured (serial, concurrent, no event loop; or "cannot tell" and "fails"), wrong ("miss",
    "false alarm" or ""), loads_doctor and loads_measured (of certificates, by ten connections;
    None where nobody counts), share (of the CPU, in percent, as text), exit_status, why (where
    the doctor could not tell).
    Raises UsageError for a name that is none.
    """
    known = every()
    for name in names or ():
        if name not in known:
            raise UsageError(f"there is no patient {name!r}; there are: {', '.join(known)}")
    rows = []
    for patient in [known[name] for name in names or known]:
        try:
            environments.ensure(stacks.get(patient.stack))
        except MissingInterpreter:
            if stacks.get(patient.stack).python in environments.required():
                raise
            continue
        rows.append(_stored_row_of(patient))
    return pd.DataFrame(rows)


def _stored_row_of(patient: Patient) -> dict:
    stack = stacks.get(patient.stack)
    key = digests.of(
        measurements.SCHEMA,
        [DOCTOR, HERE, places.PROBES, clients.FOLDER],
        server.MADE_OF,
        environments.fingerprint(stack),
        [*dataclasses.astuple(patient), *stack.steps, PAGES, DELAY_S],
    )
    row = measurements.stored_or_new(key, lambda: row_of(patient) | {"source": words.LIVE})
    return {name: row[name] for name in COLUMNS}


def row_of(patient: Patient) -> dict:
    """One row of `table`."""
    report = examine(patient)
    said = report.get("verdicts", {}).get("event loop", CANNOT_TELL)
    said, (measured, loads) = MEANS.get(said, said), measured_of(patient)
    counted, share = _loads_of(report)
    return {
        "patient": patient.name,
        "stack": patient.stack,
        "doctor": said,
        "measured": measured,
        "wrong": _wrong(said, measured),
        "loads_doctor": counted,
        "loads_measured": loads,
        "share": share,
        "exit_status": report["exit_status"],
        "why": _why(report),
    }


def _wrong(said: str, measured: str) -> str:
    if said in (measured, CANNOT_TELL):
        return ""
    return "false alarm" if said == "serial" else "miss"


def examine(patient: Patient, *options: str) -> dict:
    """The doctor's report of a patient (doctor.py --json), with options of its command line.

    gunicorn's worker is examined from inside. Raises RunFailed when there is no report.
    """
    stack = stacks.get(patient.stack)
    environment = environments.ensure(stack)
    if patient.script == "with_gunicorn.py":
        return _run(patient, str(DOCTOR))[0]["report"]
    command = [str(environment.python), str(DOCTOR), "--json", *options]
    if patient.script:
        command += ["--", str(HERE / patient.script)]
    elif stack.steps:
        command += ["--", str(HERE / "take_steps.py"), *stack.steps]
    elif patient.client == "eventlet":  # which is used by more than `import eventlet`
        command += ["--", str(clients.file_of(patient.client))]
    elif patient.client:
        command += ["--", patient.client.partition("-")[0]]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            env=environments.clean_environ(environment) | {"PATIENT": patient.variant},
            capture_output=True, text=True, timeout=_WITHIN_S, cwd=folder,
        )  # fmt: skip
    try:
        return json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["nothing on standard error"]
        raise RunFailed(f"the doctor gave no report of {patient.name}: {last[0]}") from None


def measured_of(patient: Patient) -> tuple[str, int | None]:
    """(verdict as measured, loads of certificates by ten connections) of a patient."""
    if not patient.script:
        return _measured_steps(patient)
    verdict = analysis.BETWEEN
    for _ in range(REPEATS):  # noise can hide concurrency, and cannot make it
        if verdict == analysis.BETWEEN:
            try:
                answer, counters = _run(patient)
            except RunFailed:
                return FAILS, None
            peak = counters["peak_in_flight"]
            verdict = analysis.verdict(PAGES, DELAY_S, answer["wall_s"], peak)
    return verdict, None


def _measured_steps(patient: Patient) -> tuple[str, int | None]:
    ask = {"n": PAGES, "client": patient.client}
    verdict, loads = NO_LOOP, None
    try:
        if patient.client in COMPARABLE:
            once = measure.measure(patient.stack, **ask, repeats=1, delay_s=0, trust=trust.BUNDLE)
            counted = once["counters_load_verify_locations"] + once["counters_default_loads"]
            loads = int(counted.iloc[0])
        if _has_loop(patient):
            verdict = analysis.verdict_of(measure.measure(patient.stack, **ask))
    except RunFailed:
        return FAILS, None
    return verdict, loads


def _has_loop(patient: Patient) -> bool:
    """Whether a patient's client brings an event loop that patches."""
    return patient.client in ("grequests", "eventlet")


def _run(patient: Patient, doctor: str | None = None) -> tuple[dict, dict]:
    """Run a script of this folder against a lab server: its answer, and the server's counters."""
    with server.start() as lab:
        spec = {"url": lab.url, "ca_file": lab.ca_file, "n": PAGES, "delay_s": DELAY_S}
        answer = scripts.ask(
            environments.ensure(stacks.get(patient.stack)), HERE / patient.script,
            spec | {"doctor": doctor}, _WITHIN_S,
            called=patient.name, variables={"PATIENT": patient.variant},
        )  # fmt: skip
        return answer, lab.counters()


def _loads_of(report: dict) -> tuple[int | None, str]:
    """The loads by ten connections of the first client that the program imported, and their share
    of the processor time, as text."""
    for row in report.get("loads", []):
        if row["imported"] and not row["error"]:
            first, *later = row["by_connection"]
            share = "–".join(f"{bound:.0f}" for bound in row.get("share") or [])
            return row["made"] + first + 9 * sum(later) // len(later), share
    return None, ""


def _why(report: dict) -> str:
    if "trouble" in report:
        return report["trouble"].replace(f"{HERE}{os.sep}", "")
    if CANNOT_TELL not in report["verdicts"].values():
        return ""
    errors = [row["error"] for row in report["clients"] + report["loads"] if row["error"]]
    return (errors or [row["what"] for row in report["advice"]])[0]


if __name__ == "__main__":
    print(table(sys.argv[1:] or None).drop(columns="why").to_string(), os.linesep)
