"""Jobs that fetch six pages or more, ill ones and healthy twins.

What the doctor counts, and the truth:

    working.table()                     # all of them
    working.table(["requests, each"])

The doctor runs the job. Then it runs once more without the doctor, with the book's own counter of
loads and of handshakes under way at once, against a server that counts connections.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import certifi
import pandas as pd

from casebook import places, stacks, words
from casebook.cases.fetching import server
from casebook.cases.fetching.server import relay
from casebook.cases.patients import is_spared
from casebook.errors import NotInFile, RunFailed
from casebook.laboratory import measurements
from casebook.laboratory.experiment import Experiment, can_run
from casebook.mistakes import check_choices, for_readers
from casebook.stacks import commands, digests, environments

HERE = Path(__file__).parent
COUNTER = HERE / "counted_job.py"

CANNOT_TELL = "cannot tell"
#: What a job is asked, and the doctor's verdicts: on an ill one, on a healthy one.
LOADS, ON_LOOP, LOOP = "certificate loads", "loads on the loop", "event loop"
HANDSHAKES, CONTEXTS = "handshakes", "contexts"
VERDICTS = {
    LOADS: ("repeated", "not repeated"),
    LOOP: ("blocked", "free"),
    ON_LOOP: ("held up", "free"),
    HANDSHAKES: ("one at a time", "at once"),
    CONTEXTS: ("one for each client", "few"),
}
#: A job fetches six pages or more. What it loads more often than this it loads again and again:
#: imports may load once or twice for themselves, and two threads have two connections.
LOADED_ONCE_TO = 3
#: How far away the server is where handshakes are the question: each way, in seconds.
LATENCY_S = 0.05
COLUMNS = [
    *("job", "question", "stack", "doctor", "measured", "wrong", "loads_doctor", "loads_measured"),
    *("connections_doctor", "connections_measured", "share_doctor", "exit_status"),
    *("source", "measured_at", "key"),
]
PROMISE_COLUMNS = [
    *("job", "stack", "client", "loads_first", "promised", "loads_again"),
    *("cpu_ms_first", "cpu_ms_again", "kept", "source", "measured_at", "key"),
]
#: What is stored of a job, beside its name: for `table`, and for `promises`.
_FIGURES = {(): COLUMNS[1:12], ("again",): PROMISE_COLUMNS[1:9]}
_WITHIN_S = 120.0


@dataclass(frozen=True)
class Job:
    """A job of a file in jobs/, the stack that has its library, and what is asked of it.

    function: what the file's JOBS, and the machine files, call its function.
    """

    name: str
    stack: str
    file: str
    function: str
    question: str = LOADS


_LOCK = ("truststore-in-clients-today", "with_truststore.py")
_MANY = ("httpx-today", "with_many_clients.py")

JOBS = (
    Job("requests, each", "stage-1-today", "with_requests.py", "each"),
    Job("requests, kept", "stage-1-today", "with_requests.py", "kept"),
    Job("requests, threads", "stage-1-today", "with_requests.py", "in_threads"),
    Job("requests, one for threads", "stage-1-today", "with_requests.py", "shared_by_threads"),
    Job("requests, one at once", "stage-1-today", "with_requests.py", "at_once"),
    Job("requests, half a cure", "stage-1-today", "with_requests.py", "half_a_cure"),
    Job("urllib3, each", "stage-1-today", "with_urllib3.py", "each"),
    Job("urllib3, one context", "stage-1-today", "with_urllib3.py", "own_context"),
    Job("httpx, each", "httpx-today", "with_httpx.py", "each"),
    Job("httpx, kept", "httpx-today", "with_httpx.py", "kept"),
    Job("httpx, async each", "httpx-today", "with_httpx.py", "each_async"),
    Job("httpx, async kept", "httpx-today", "with_httpx.py", "kept_async"),
    Job("aiohttp, each", "aiohttp-today", "with_aiohttp.py", "each"),
    Job("aiohttp, kept", "aiohttp-today", "with_aiohttp.py", "kept"),
    Job("http.client, each", "stage-1-today", "with_http_client.py", "each"),
    Job("http.client, one context", "stage-1-today", "with_http_client.py", "own_context"),
    Job("urlopen, one context", "stage-1-today", "with_http_client.py", "urlopen_own_context"),
    Job("httplib2, each", "libraries-today", "with_httplib2.py", "each"),
    Job("httplib2, kept", "libraries-today", "with_httplib2.py", "kept"),
    Job("tornado, each", "libraries-today", "with_tornado.py", "each"),
    Job("tornado, kept", "libraries-today", "with_tornado.py", "kept"),
    Job("boto3, each", "libraries-today", "with_boto3.py", "each"),
    Job("boto3, kept", "libraries-today", "with_boto3.py", "kept"),
    Job("openai, each", "libraries-today", "with_openai.py", "each"),
    Job("openai, kept", "libraries-today", "with_openai.py", "kept"),
    Job("asyncio's streams, each", "stage-1-today", "with_streams.py", "each"),
    Job("asyncio's streams, one context", "stage-1-today", "with_streams.py", "own_context"),
    Job("three services, each", "httpx-today", "with_services.py", "each"),
    Job("three services, kept", "httpx-today", "with_services.py", "kept"),
    Job("a driver, each", "stage-1-today", "with_a_driver.py", "each"),
    Job("a driver, three kept", "stage-1-today", "with_a_driver.py", "kept"),
    Job("stripe", "libraries-today", "with_stripe.py", "kept"),
    Job("gevent, not patched", "stage-1-today", "with_gevent.py", "unpatched", LOOP),
    Job("gevent, patched", "stage-1-today", "with_gevent.py", "patched", LOOP),
    Job("gevent's threads", "stage-1-today", "with_gevent.py", "in_threads", LOOP),
    Job("gevent, urlopen", "stage-1-today", "with_gevent_alone.py", "unpatched", LOOP),
    Job("gevent, urlopen, patched", "stage-1-today", "with_gevent_alone.py", "patched", LOOP),
    Job("trio, on the loop", "libraries-today", "with_trio.py", "on_the_loop", LOOP),
    Job("trio, in threads", "libraries-today", "with_trio.py", "in_threads", LOOP),
    Job("httpx on a loop, each", "httpx-today", "with_httpx.py", "each_async", ON_LOOP),
    Job("httpx on a loop, kept", "httpx-today", "with_httpx.py", "kept_async", ON_LOOP),
    Job("threads, truststore", *_LOCK, "with_the_lock", HANDSHAKES),
    Job("threads, no truststore", *_LOCK, "without_a_lock", HANDSHAKES),
    Job("twelve clients", *_MANY, "a_context_each", CONTEXTS),
    Job("twelve clients, one context", *_MANY, "one_context", CONTEXTS),
    Job("clients closed and kept", *_MANY, "closed_and_kept", CONTEXTS),
    Job("clients closed and dropped", *_MANY, "closed_and_dropped", CONTEXTS),
)  # fmt: skip

#: The jobs that a quick build measures itself: one ill and one healthy of each kind.
BY_DAY = (
    "requests, each", "requests, kept", "gevent, not patched", "gevent, patched",
    "httpx on a loop, each", "httpx on a loop, kept", "threads, truststore",
    "threads, no truststore", "twelve clients", "twelve clients, one context",
)  # fmt: skip

#: An ill job with each of the clients that the doctor can change from outside.
CHANGED = [
    f"{name}, each"
    for name in ("requests", "httpx", "urllib3", "httplib2", "tornado", "boto3", "a driver")
]


@for_readers
def table(names: list[str] | None = None) -> pd.DataFrame:
    """Show what the doctor says of each job, beside what is measured: one row each.

    names: of JOBS; None: all that this machine can run. Columns: job, question, stack, doctor and
    measured (of the question's VERDICTS; the doctor's may be "cannot tell"), wrong ("miss", "false
    alarm" or ""), loads_doctor and loads_measured, connections_doctor and connections_measured
    (each of another run), share_doctor (of the CPU, in percent, that needless loads took),
    exit_status. Raises UsageError for an unknown name.
    """
    return _rows(_row, names, COLUMNS)


@for_readers
def promises(names: list[str] | None = None) -> pd.DataFrame:
    """Show what `doctor.py run --again` promises of some ill jobs, and what came of it.

    Each ran a second time, with the change: one row each.

    names: of JOBS; None: CHANGED. Columns: job, stack, client (whose loads were promised to be
    fewer), loads_first, promised (loads at most), loads_again, cpu_ms_first and cpu_ms_again (of
    the whole program), kept (whether the promise was), source. Raises UsageError for an unknown
    name.
    """
    return _rows(_promise_row, CHANGED if names is None else names, PROMISE_COLUMNS)


def _rows(row: Callable[[Job], dict], names: list[str] | None, columns: list[str]) -> pd.DataFrame:
    """Return the rows of the jobs of these names (None: all) that this machine can run.

    Jobs that a machine's file does not know are left out; it has to know one.
    """
    jobs = {job.name: job for job in JOBS}
    rows, unknown = [], None
    for job in (jobs[name] for name in check_choices("names", "the job", names, jobs)):
        try:
            if can_run(stacks.get(job.stack)):
                rows.append(row(job))
        except NotInFile as error:
            unknown = error
    if unknown is not None and not rows:
        raise unknown
    return pd.DataFrame(rows, columns=columns)


def _promise_row(job: Job) -> dict:
    """Return one row of `promises`, stored, new or recorded."""
    return _answered(job, _measure_again, "again")


def _answered(job: Job, measure: Callable[[Job], dict], *which: str) -> dict:
    """Return what is measured of a job as a row, stored, new or recorded.

    which: is part of the question, where it is not that of `table`.
    """
    experiment = Experiment(
        places.DOCTOR,
        lambda _, answer: {name: answer[name] for name in ("job", *_FIGURES[which])},
        depends_on=(HERE / "jobs" / job.file, COUNTER, *server.DEPENDENCIES),
        ask=lambda *_: measure(job),
        spares=lambda _: is_spared(job.name, BY_DAY),
        form=_question_parts,
    )
    parameters = {"job": [*astuple(job), *which]}
    [row] = experiment.rows(experiment.first_answer([stacks.get(job.stack)], parameters))
    return row


def _question_parts(
    targets: Sequence[Any],
    parameters: dict[str, Any],
    repeat: Any,  # noqa: ARG001 - as an Experiment calls its form
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    return *targets, parameters["job"]


def _measure_again(job: Job) -> dict:
    report, _ = _run(job, True, "--again")
    outcome = report["again"]
    if not outcome["promises"]:
        raise RunFailed(f"nothing was promised of {job.name}: {outcome['why']}")
    [promise] = outcome["promises"]
    return {
        "job": job.name, "stack": job.stack, "client": promise["client"],
        "loads_first": report["counts"]["loads"], "promised": promise["promised"],
        "loads_again": promise["loads"], "cpu_ms_first": round(outcome["cpu_ms"][0]),
        "cpu_ms_again": round(outcome["cpu_ms"][1]), "kept": outcome["kept"],
    }  # fmt: skip


def rows_of(answers: Iterable[dict]) -> pd.DataFrame:
    """Return the rows of `table` among the answers of a machine; nothing is measured for it."""
    by_question = {
        digests.digest(answer["asked"]): answer
        for answer in answers
        if "asked" in answer and measurements.FAILED not in answer
    }
    rows = []
    for job in JOBS:
        question = measurements.question_of(
            places.DOCTOR, stacks.get(job.stack), list(astuple(job))
        )
        if stored := by_question.get(digests.digest(question)):
            rows.append({"source": words.LIVE} | stored | measurements.answer_in(stored))
    return pd.DataFrame(rows, columns=COLUMNS)


@for_readers
def accuracy(loops: pd.DataFrame, loads: pd.DataFrame) -> pd.DataFrame:
    """Count how often verdicts are right, of `patients.table` and of `table`.

    Columns question, programs, right, miss, false alarm, cannot tell.
    """
    rows = []
    by_question = {question: loads[loads["question"] == question] for question in VERDICTS}
    by_question[LOOP] = (
        pd.concat([loops, by_question[LOOP]]) if not by_question[LOOP].empty else loops
    )
    for question in (
        LOOP,
        *(verdict_question for verdict_question in VERDICTS if verdict_question != LOOP),
    ):
        programs = by_question[question]
        if programs.empty:
            continue
        unknown = programs["doctor"] == CANNOT_TELL
        wrong = programs["wrong"].value_counts()
        rows.append({
            "question": question, "programs": len(programs),
            "right": int(((programs["wrong"] == "") & ~unknown).sum()),
            "miss": int(wrong.get("miss", 0)), "false alarm": int(wrong.get("false alarm", 0)),
            "cannot tell": int(unknown.sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _row(job: Job) -> dict:
    """Return one row of `table`, stored, new or recorded."""
    return _answered(job, _measure_row)


def _measure_row(job: Job) -> dict:
    report, _ = _run(job, True)
    counts, counters = _run(job, False)
    ill, well = VERDICTS[job.question]
    diagnosis = report["verdicts"][job.question]
    # It does not apply where there was no greenlet, or no loop.
    diagnosis = well if diagnosis == "does not apply" else diagnosis
    diagnosis = diagnosis if diagnosis in (ill, well) else CANNOT_TELL
    is_ill = counts["loads"] > LOADED_ONCE_TO
    if job.question == HANDSHAKES:
        is_ill = counts["peak"] == 1
    elif job.question == CONTEXTS:
        is_ill = counts["alive"] > LOADED_ONCE_TO
    elif job.question == LOOP:
        is_ill = counters["peak_in_flight"] == 1
    truth = ill if is_ill else well
    wrong = "false alarm" if diagnosis == ill else "miss"
    return {
        "job": job.name, "question": job.question, "stack": job.stack,
        "doctor": diagnosis, "measured": truth,
        "wrong": "" if diagnosis in (truth, CANNOT_TELL) else wrong,
        "loads_doctor": report["counts"]["loads"], "loads_measured": counts["loads"],
        "connections_doctor": report["counts"]["handshakes"],
        "connections_measured": counters["handshakes"],
        "share_doctor": report["counts"]["share"],
        "exit_status": report["exit_status"],
    }  # fmt: skip


def _run(job: Job, examined: bool, *options: str) -> tuple[dict, dict]:
    """Run a job; return the doctor's report or the job's own counts, and what the server counted.

    examined: by the doctor, with these options. Else the job's counts are {"loads": N, "peak": N}
    and what else it prints.
    """
    environment = environments.ensure(stacks.get(job.stack))
    path = HERE / "jobs" / job.file
    command = [environment.python, COUNTER, path]
    if examined:
        command = [environment.python, places.DOCTOR, "run", "--json", *options, "--", path]
    latency_s = LATENCY_S if job.question == HANDSHAKES else 0
    with (
        server.start() as lab,
        relay.relay(lab.url, latency_s) as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        bundle = Path(folder) / "bundle.pem"
        bundle.write_text(Path(certifi.where()).read_text() + "\n" + Path(lab.ca_file).read_text())
        names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE")
        environ = environments.clean_environ(environment) | dict.fromkeys(names, str(bundle))
        environ |= {"SITE": f"{url}/get", "JOB": job.function, "PYTHONDONTWRITEBYTECODE": "1"}
        process = commands.run(command, job.name, _WITHIN_S, environ, folder=Path(folder))
        counters = lab.counters() or {}
    try:
        lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
        report = {name: value for content in lines for name, value in content.items()}
        if examined:
            report["verdicts"]
        return report, counters
    except (ValueError, KeyError):
        raise RunFailed(f"{job.name} came to nothing: {commands.last_line(process)}") from None
