"""The programs that the doctor is tried on: what it says of each, and what is measured.

    patients.table()    # all of them: some minutes
    patients.table(["locust", "stage-2-py27"])

A patient is a stack as the book measures it, or one of the scripts of this folder: the doctor
examines what its imports leave behind, and then it is run, ten pages at once, against a lab server
that counts.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.build import in_build
from casebook.cases.fetching import analysis, clients, modes, runs, server, trust
from casebook.errors import RunFailed
from casebook.laboratory import scripts
from casebook.laboratory.experiment import Experiment, Parameters, can_run
from casebook.mistakes import check_choices, for_readers
from casebook.stacks import commands, environments

HERE = Path(__file__).parent

#: The doctor could not tell; or nothing was measured: there was no timing because responses failed,
#: or nothing that could be blocked.
CANNOT_TELL, FAILS, NO_LOOP = "cannot tell", "fails", "no event loop"
#: What the doctor says, in the words of a measurement.
MEANS = {"blocked": "serial", "free": "concurrent", "does not apply": NO_LOOP}
#: Clients that fetch as the doctor does: their loads can be compared with what it counted.
COMPARABLE = ("grequests", "httpx", "aiohttp", "niquests")

PAGES, DELAY_S = 10, 0.2
#: With a delay that long, what a busy machine adds to each page weighs little.
LONG_DELAY_S = 2.0
#: What `table` tells of each patient.
_FIGURES = (
    *("patient", "doctor", "measured", "wrong", "loads_doctor", "loads_measured"),
    *("exit_status", "why", "report"),
)
COLUMNS = ["patient", "stack", *_FIGURES[1:], "source", "measured_at", "key"]
_WITHIN_S = 120.0


@dataclass(frozen=True)
class Patient:
    """A program to be examined and measured.

    script: the one of this folder that it is; empty: the steps of its stack. variant: what the
    script is told in PATIENT. client: what the steps are measured with; empty: nothing of the
    stack fetches.
    """

    name: str
    stack: str
    script: str = ""
    variant: str = ""
    client: str = ""


_GUNICORN = ("gunicorn-gevent-today", "with_gunicorn.py")
_LOCUST = ("locust-today", "with_locust.py")
_GEVENTHTTPCLIENT = ("geventhttpclient-today", "with_geventhttpclient.py")

#: Those that are no stack of the chapters.
OTHERS = (
    Patient("google-auth-2.55.2", "google-auth-2.55.2-today", client="grequests"),
    Patient("locust", *_LOCUST),
    Patient("locust, FastHttpUser", *_LOCUST, "fast"),
    Patient("locust, injected", *_LOCUST, "injected"),
    Patient("gunicorn, gevent worker", *_GUNICORN),
    Patient("gunicorn, injected", *_GUNICORN, "injected"),
    Patient("gunicorn, preloaded", *_GUNICORN, "preloaded"),
    Patient("geventhttpclient", *_GEVENTHTTPCLIENT),
    Patient("geventhttpclient, patched", *_GEVENTHTTPCLIENT, "patched"),
    Patient("eventlet", "eventlet-today", "with_eventlet.py"),
    Patient("eventlet, injected", "eventlet-today", "with_eventlet.py", "injected"),
    Patient("requests, nothing patched", "stage-1-today", "with_greenlets.py"),
    Patient("broken gevent", "broken-gevent-py37", "with_greenlets.py"),
)


#: The patients that the chapter examines.
EXAMINED = (
    "google-auth-2.55.1-today", "google-auth-2.55.2", "toolbelt-x509-today", "locust",
    "gunicorn, gevent worker", "niquests-today", "httpx-today", "geventhttpclient",
    "geventhttpclient, patched", "eventlet-0.33.3-py37", "requests, nothing patched",
    "broken gevent",
)  # fmt: skip
#: The patient of the chapter's exercise.
IN_EXERCISE = "locust, injected"
#: The patients that a quick build examines itself; of the others it shows what another machine
#: recorded.
BY_DAY = ("google-auth-2.55.1-today", "google-auth-2.55.2", "requests, nothing patched")


def is_spared(name: str, by_day: tuple[str, ...]) -> bool:
    """Check whether a build shows what another machine recorded of a program.

    A quick build examines a few only, since each takes seconds. A reader's cell examines any.

    name: of the program. by_day: those that are examined in any case.
    """
    is_quick = in_build() and modes.current() is modes.QUICK
    return name not in by_day and is_quick and not environments.is_another_machine()


def all_patients() -> dict[str, Patient]:
    """Return all patients by name: every stack of the chapters, then OTHERS."""
    own_stacks = {patient.stack for patient in OTHERS} - {"stage-1-today"} | {"libraries-today"}
    of_chapters = [
        Patient(stack.name, stack.name, client=stack.client)
        for stack in stacks.load().values()
        if stack.name not in own_stacks
    ]
    return {patient.name: patient for patient in (*of_chapters, *OTHERS)}


@for_readers
def table(names: list[str] | None = None) -> pd.DataFrame:
    """Show what the doctor says of each patient, beside what is measured: one row each.

    names: of `all_patients`; None: all that this machine can run. Columns: patient, stack, doctor
    and measured (serial, concurrent, no event loop; or "cannot tell" and "fails"), wrong ("miss",
    "false alarm" or ""), loads_doctor and loads_measured (of certificates, by ten connections;
    None if nobody counts), exit_status, why (if the doctor could not tell), report (as doctor.py
    --json has it). Raises UsageError for an unknown name.
    """
    patients = all_patients()
    chosen = [patients[name] for name in check_choices("names", "the patient", names, patients)]
    rows = [_row(patient) for patient in chosen if can_run(stacks.get(patient.stack))]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(patient: Patient) -> dict:
    """Return one row of `table`, stored, new or recorded."""
    experiment = Experiment(
        places.DOCTOR,
        _figures,
        depends_on=(HERE, places.PROBES, clients.FOLDER, *server.DEPENDENCIES, trust.dependency()),
        ask=lambda *_: _measure_row(patient),
        spares=lambda _: is_spared(patient.name, BY_DAY),
        form=_question_parts,
    )
    measurement = experiment.first_answer([stacks.get(patient.stack)], asdict(patient))
    [row] = experiment.rows(measurement)
    return row


def _question_parts(
    targets: Sequence[Any],
    parameters: dict[str, Any],
    repeat: Any,  # noqa: ARG001 - as an Experiment calls its form
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    return *targets, list(parameters.values()), PAGES, DELAY_S, LONG_DELAY_S


def _figures(
    parameters: Parameters,  # noqa: ARG001 - as an Experiment calls it
    answer: dict[str, Any],
) -> dict[str, Any]:
    return {name: answer[name] for name in (*_FIGURES, "stack")}


def _measure_row(patient: Patient) -> dict:
    report = examine(patient)
    diagnosis = report.get("verdicts", {}).get("event loop", CANNOT_TELL)
    verdict, (truth, loads) = MEANS.get(diagnosis, diagnosis), measured_of(patient)
    wrong = "false alarm" if verdict == analysis.SERIAL else "miss"
    loads_doctor = _loads_of(report)
    return {
        "patient": patient.name, "stack": patient.stack, "doctor": verdict, "measured": truth,
        "wrong": "" if verdict in (truth, CANNOT_TELL) else wrong,
        "loads_doctor": loads_doctor, "loads_measured": loads,
        "exit_status": report["exit_status"], "why": _reason(report),
        "report": json.loads(json.dumps(report).replace(f"{HERE}{os.sep}", "")),
    }  # fmt: skip


def examine(patient: Patient, *options: str) -> dict:
    """Return the doctor's report of a patient, as doctor.py --json has it.

    options: further ones of the doctor's command line.

    gunicorn's worker is examined from inside. Raises RunFailed if there is no report.
    """
    stack = stacks.get(patient.stack)
    environment = environments.ensure(stack)
    program: list[str] = []
    if patient.script == "with_gunicorn.py":
        return _run(patient, places.DOCTOR)[0]["report"]
    if patient.script:
        program = ["--", str(HERE / patient.script)]
    elif stack.steps:
        program = ["--", str(HERE / "take_steps.py"), *stack.steps]
    elif patient.client == "eventlet":  # which is used by more than `import eventlet`
        program = ["--", str(clients.file_of(patient.client))]
    elif patient.client:
        program = ["--", patient.client.partition("-")[0]]
    with tempfile.TemporaryDirectory() as folder:
        process = commands.run(
            [environment.python, places.DOCTOR, "--json", *options, *program],
            f"the doctor of {patient.name}", _WITHIN_S,
            environments.clean_environ(environment) | {"PATIENT": patient.variant},
            folder=Path(folder),
        )  # fmt: skip
    try:
        return json.loads(process.stdout)
    except ValueError:
        last = commands.last_line(process)
        raise RunFailed(f"the doctor gave no report of {patient.name}: {last}") from None


@for_readers
def measured_of(patient: Patient) -> tuple[str, int | None]:
    """Measure a patient: return the verdict, and the loads of certificates by ten connections."""
    try:
        return _measure_script(patient) if patient.script else _measure_steps(patient)
    except RunFailed:
        return FAILS, None


def _measure_script(patient: Patient) -> tuple[str, None]:
    for delay_s in (DELAY_S, LONG_DELAY_S):  # noise can hide concurrency, and cannot make it
        answer, counters = _run(patient, delay_s=delay_s)
        peak = counters["peak_in_flight"]
        verdict = analysis.verdict(PAGES, delay_s, answer["wall_s"], peak)
        if verdict != analysis.BETWEEN:
            break
    return verdict, None


def _measure_steps(patient: Patient) -> tuple[str, int | None]:
    parameters = {"n": PAGES, "client": patient.client}
    verdict, loads = NO_LOOP, None
    if patient.client in COMPARABLE:
        countable = parameters
        if "preload" in stacks.get(patient.stack).steps:
            # With greenlets the counter comes after the steps: the cure sees that ssl is not as it
            # was when it preloaded, and loads once more.
            countable = parameters | {"client": "threads"}
        measured = runs.measure(
            patient.stack, **countable, repeats=1, delay_s=0, trust=trust.BUNDLE
        )
        both = measured["counters_load_verify_locations"] + measured["counters_default_loads"]
        loads = int(both.iloc[0])
    if patient.client in ("grequests", "eventlet"):  # which bring an event loop that patches
        for delay_s in (None, LONG_DELAY_S):  # noise can hide concurrency, and cannot make it
            verdict = analysis.verdict_of(
                runs.measure(patient.stack, **parameters, delay_s=delay_s)
            )
            if verdict != analysis.BETWEEN:
                break
    return verdict, loads


def _run(
    patient: Patient, doctor: Path | None = None, delay_s: float = DELAY_S
) -> tuple[dict, dict]:
    """Run a script of this folder against a lab server.

    Returns its answer and the server's counters.
    """
    environment = environments.ensure(stacks.get(patient.stack))
    with server.start() as lab:
        spec = {"url": lab.url, "ca_file": lab.ca_file, "n": PAGES, "delay_s": delay_s}
        answer = scripts.answer_of(
            environment, HERE / patient.script, spec | {"doctor": doctor}, _WITHIN_S,
            called=patient.name, variables={"PATIENT": patient.variant},
        )  # fmt: skip
        return answer, lab.counters() or {}


def _loads_of(report: dict) -> int | None:
    """Return the loads by ten connections of the first client that the program imported."""
    for row in report.get("loads", []):
        if row["imported"] and not row["error"]:
            first, *later = row["by_connection"]
            return row["made"] + first + 9 * sum(later) // len(later)
    return None


def _reason(report: dict) -> str:
    if "trouble" in report:
        return report["trouble"].replace(f"{HERE}{os.sep}", "")
    if CANNOT_TELL not in report["verdicts"].values():
        return ""
    errors = [row["error"] for row in report["clients"] + report["loads"] if row["error"]]
    return (errors or [row["what"] for row in report["advice"]])[0]
