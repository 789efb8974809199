"""Jobs that fetch six pages or more, ill ones and healthy twins: what the doctor counts, and the
truth.

    working.table()                     # all of them
    working.table(["requests, each"])

The doctor runs the job. Then it runs once more without the doctor, with the book's own counter of
loads and of handshakes under way at once, against a server that counts connections.
"""

import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import certifi
import pandas as pd

from casebook import places, stacks, words
from casebook.cases.fetching import server
from casebook.cases.fetching.server import relay
from casebook.cases.patients import recorded
from casebook.errors import NotInFile, RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.laboratory.experiment import can_run
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
AGAIN_COLUMNS = [
    *("job", "stack", "client", "loads_first", "promised", "loads_again"),
    *("cpu_ms_first", "cpu_ms_again", "kept", "source", "measured_at", "key"),
]
_WITHIN_S = 120.0


@dataclass(frozen=True)
class Job:
    """A function of a file in jobs/, the stack that has its library, and what is asked of it."""

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


def table(names: list[str] | None = None) -> pd.DataFrame:
    """What the doctor says of each job, beside what is measured: one row each.

    names: of JOBS; None: all that this machine can run. Columns: job, question, stack, doctor and
    measured (of the question's VERDICTS; the doctor's may be "cannot tell"), wrong ("miss", "false
    alarm" or ""), loads_doctor and loads_measured, connections_doctor and
    connections_measured (those of another run each), share_doctor (of the CPU, in percent, that
    loads took which were not needed), exit_status. Raises UsageError for a name that
    is none.
    """
    return _rows(_row, names, COLUMNS)


def again(names: list[str] | None = None) -> pd.DataFrame:
    """What `doctor.py run --again` promises of some ill jobs, and what came out when each ran a
    second time with the change: one row each.

    names: of JOBS; None: CHANGED. Columns: job, stack, client (whose loads were promised to be
    fewer), loads_first, promised (loads at most), loads_again, cpu_ms_first and cpu_ms_again (of
    the whole program), kept (whether the promise was), source. Raises UsageError for a name that is
    none.
    """
    return _rows(_row_again, names or CHANGED, AGAIN_COLUMNS)


def _rows(row: Callable[[Job], dict], names: list[str] | None, columns: list[str]) -> pd.DataFrame:
    """The rows of the jobs of these names (None: all) that this machine can run, without those that
    a machine's file does not know; it has to know one."""
    known = {job.name: job for job in JOBS}
    for name in names or ():
        if name not in known:
            raise UsageError(f"there is no job {name!r}; there are: {', '.join(known)}")
    rows, unknown = [], None
    for job in (known[name] for name in names or known):
        try:
            if can_run(stacks.get(job.stack)):
                rows.append(row(job))
        except NotInFile as error:
            unknown = error
    if unknown is not None and not rows:
        raise unknown
    return pd.DataFrame(rows, columns=columns)


def _row_again(job: Job) -> dict:
    """One row of `again`, stored or new."""
    of = stacks.get(job.stack), [*astuple(job), "again"]
    question = measurements.asked_of(_made_of(job)[0], *of)
    if found := recorded(job.name, BY_DAY, question):
        return found
    key = measurements.key_of(_made_of(job), *of)
    return measurements.stored_or_new(key, lambda: _measured_again(job))


def _measured_again(job: Job) -> dict:
    report, _ = _run(job, True, "--again")
    found = report["again"]
    if not found["promises"]:
        raise RunFailed(f"nothing was promised of {job.name}: {found['why']}")
    [promise] = found["promises"]
    return {
        "job": job.name, "stack": job.stack, "client": promise["client"],
        "loads_first": report["counts"]["loads"], "promised": promise["promised"],
        "loads_again": promise["loads"], "cpu_ms_first": round(found["cpu_ms"][0]),
        "cpu_ms_again": round(found["cpu_ms"][1]), "kept": found["kept"], "source": words.LIVE,
    }  # fmt: skip


def measured(answers: Iterable[dict]) -> pd.DataFrame:
    """The rows of `table` among the answers of a machine; nothing is measured for it."""
    known = {digests.of(each["asked"]): each for each in answers if "asked" in each}
    found = [known.get(digests.of(_asked(job))) for job in JOBS]
    rows = [row for row in found if row and measurements.FAILED not in row]
    return pd.DataFrame(rows, columns=COLUMNS)


def accuracy(loops: pd.DataFrame, loads: pd.DataFrame) -> pd.DataFrame:
    """How often verdicts are right, of `patients.table` and of `table`: question, programs, right,
    miss, false alarm, cannot tell."""
    rows = []
    asked = {question: loads[loads["question"] == question] for question in VERDICTS}
    asked[LOOP] = pd.concat([loops, asked[LOOP]]) if not asked[LOOP].empty else loops
    for question in (LOOP, *(each for each in VERDICTS if each != LOOP)):
        told = asked[question]
        if told.empty:
            continue
        unknown = told["doctor"] == CANNOT_TELL
        wrong = told["wrong"].value_counts()
        rows.append({
            "question": question, "programs": len(told),
            "right": int(((told["wrong"] == "") & ~unknown).sum()),
            "miss": int(wrong.get("miss", 0)), "false alarm": int(wrong.get("false alarm", 0)),
            "cannot tell": int(unknown.sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _row(job: Job) -> dict:
    """One row of `table`, stored or new."""
    if found := recorded(job.name, BY_DAY, _asked(job)):
        return found
    return measurements.stored_or_new(_key_of(job), lambda: _measured_row(job))


def _key_of(job: Job) -> str:
    return measurements.key_of(_made_of(job), stacks.get(job.stack), list(astuple(job)))


def _asked(job: Job) -> list:
    """The question of `_key_of` alone."""
    first, *_ = _made_of(job)
    return measurements.asked_of(first, stacks.get(job.stack), list(astuple(job)))


def _made_of(job: Job) -> list[Path]:
    return [places.DOCTOR, HERE / "jobs" / job.file, COUNTER, *server.MADE_OF]


def _measured_row(job: Job) -> dict:
    report, _ = _run(job, True)
    found, counters = _run(job, False)
    ill, well = VERDICTS[job.question]
    said = report["verdicts"][job.question]
    said = well if said == "does not apply" else said  # there was no greenlet, or no loop
    said = said if said in (ill, well) else CANNOT_TELL
    is_ill = found["loads"] > LOADED_ONCE_TO
    if job.question == HANDSHAKES:
        is_ill = found["peak"] == 1
    elif job.question == CONTEXTS:
        is_ill = found["alive"] > LOADED_ONCE_TO
    elif job.question == LOOP:
        is_ill = counters["peak_in_flight"] == 1
    measured = ill if is_ill else well
    wrong = "false alarm" if said == ill else "miss"
    return {
        "job": job.name, "question": job.question, "stack": job.stack,
        "doctor": said, "measured": measured,
        "wrong": "" if said in (measured, CANNOT_TELL) else wrong,
        "loads_doctor": report["counts"]["loads"], "loads_measured": found["loads"],
        "connections_doctor": report["counts"]["handshakes"],
        "connections_measured": counters["handshakes"],
        "share_doctor": report["counts"]["share"],
        "exit_status": report["exit_status"], "source": words.LIVE,
    }  # fmt: skip


def _run(job: Job, examined: bool, *options: str) -> tuple[dict, dict]:
    """The doctor's report (with these options), or {"loads": N, "peak": N} and what else the job
    tells; and what the server counted."""
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
        done = commands.run(command, job.name, _WITHIN_S, environ, folder=Path(folder))
        counters = lab.counters() or {}
    try:
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = {name: value for each in told for name, value in each.items()}
        if examined:
            found["verdicts"]
        return found, counters
    except (ValueError, KeyError):
        raise RunFailed(f"{job.name} came to nothing: {commands.last_line(done)}") from None
