"""A whodunit: a program for each student, with one culprit or none, and a class that is marked.

    new("alice", into, secret)             # her folder: case.md, program/
    run(folder, "pages", n=10)             # a run of her program, kept under its id
    answer(folder, "injected", [id, id])   # her accusation and its evidence
    mark(folder, secret)                   # all answers below a folder

The culprit follows from the name and a secret that the teacher keeps. Evidence is runs: each is
made again, with a program that is built anew, and has to show the same.
"""

import hashlib
import hmac
import json
import secrets
from collections import Counter
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from casebook import words
from casebook.cases.bookstore import stock, store
from casebook.cases.fetching import analysis
from casebook.cases.handshakes.server import SlowToShakeHands
from casebook.classroom import room
from casebook.classroom.witness import PATIENCE_S, World
from casebook.errors import UsageError
from casebook.laboratory.progress import Progress

STACK = "whodunit-today"
_MYSTERY = Path(__file__).with_name("mystery")
_WITH_MODULES = room.Setting(with_siblings=True)
#: How long a page or a book takes, in seconds.
_DELAY_S = 0.1
#: How long the server of the notices takes to shake hands, in seconds.
_HANDSHAKE_S = 0.3
#: The fewest pages that show something, and the most of a run.
FEWEST, MOST = 3, 40
#: The most runs of an answer, and how often each is made again until it shows the same: a machine
#: that grades a class may have come between.
MOST_RUNS, TRIES = 10, 3
_TWICE = "this case was handed in more than once"

#: Who may have done it, and in which words.
CULPRITS = {
    "injected": "pyOpenSSL was put into urllib3, and blocks the event loop",
    "late": "the monkey patch comes too late, only once the pages are in",
    "order": "the imports are in the wrong order: requests before the monkey patch",
    "session": "the ledger makes a session for each request",
    "loads": "the ledger loads its certificates again for each request",
    "http1": "HTTP/1.1 is spoken where HTTP/2 was meant",
    "lock": "a lock is held through each handshake, and threads share it",
    "none": "nobody: the program is all right",
}
DEPARTMENTS = ("pages", "ledger", "shelf", "notices")

#: How a user tells it. A case without a culprit has one of these complaints, too.
_COMPLAINTS = {
    "pages": "The pages of the night used to be there in a blink. Now I can fetch a coffee first.",
    "order": "The pages of the night are quicker than ever, and the report is full of nonsense.",
    "ledger": "The ledger is complete, but the machine is at it far longer than last month.",
    "shelf": "The books come. They promised me they would come all at once, and I do not see it.",
    "notices": "All notices arrive. They drop in one by one, and nobody touched the program.",
}
_TOLD = {
    "injected": "pages", "late": "pages", "order": "order", "http1": "shelf", "lock": "notices",
}  # fmt: skip

#: What goes into the templates: healthy, and what each culprit changes.
_HEALTHY = {
    "imports": "import startup  # isort: skip\nimport accounts\nimport report",
    "channel": "transport.AuthorizedSession",
    "late": "",
    "session": "self._session",
    "look": "",
    "transport": "transport = httpx.AsyncHTTPTransport(verify=trusted, retries=1, http2=True)",
    "truststore": "from pip._vendor import truststore",  # 0.10.4, which holds no such lock
}
_CHANGES = {
    "injected": {"channel": "transport._MutualTlsAdapter(*certificate())"},
    "late": {
        "imports": "import accounts\nimport report",
        "late": "import startup  # noqa: F401\n\n    ",
    },
    "order": {"imports": "import accounts\nimport startup  # isort: skip\nimport report"},
    "session": {"session": "requests.Session()"},
    "loads": {"look": "self.look()\n        "},
    "http1": {"transport": "transport = httpx.AsyncHTTPTransport(verify=trusted, retries=1)"},
    "lock": {"truststore": "import truststore"},
}


@dataclass(frozen=True)
class Run:
    """What a run of a department showed.

    came: pages that were right; peak_in_flight (of requests; of the notices over HTTPS, of
    handshakes) and connections: as the server counted; loads: of certificates, None if they cannot
    be told; protocols: requests by version of HTTP, of the shelf.
    """

    department: str
    scheme: str
    n: int
    came: int
    peak_in_flight: int | None
    connections: int
    loads: int | None
    protocols: dict[str, int]

    @property
    def id(self) -> str:
        """Return a digest of all its fields."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def kind(self) -> str:
        """Return what was run: "pages over https"."""
        return f"{self.department} over {self.scheme}"

    @property
    def shows(self) -> str:
        """Return what the run shows, in words that are the same when it is made again."""
        over = f"{self.kind}: "
        if self.came < self.n:
            return over + "not every page comes"
        if self.n < FEWEST:
            return over + "too few pages to show anything"
        if self.department in ("pages", "notices"):
            assert self.peak_in_flight is not None
            return over + analysis.verdict_by_peak(self.peak_in_flight)
        if self.department == "shelf":
            return over + " and ".join(sorted(self.protocols))
        connections = "a connection for each" if self.connections >= self.n else "one connection"
        loads = "a load for each" if (self.loads or 0) >= self.n else "few loads"
        return over + f"{connections}, {loads}"


#: What the evidence has to show, all of it.
_SHOWN_BY = {
    "injected": {"pages over https: serial", "pages over http: concurrent"},
    "late": {"pages over https: serial", "pages over http: serial"},
    "order": {"pages over https: not every page comes", "pages over http: concurrent"},
    "session": {"ledger over https: a connection for each, a load for each"},
    "loads": {"ledger over https: one connection, a load for each"},
    "http1": {"shelf over https: HTTP/1.1"},
    "lock": {"notices over https: serial", "notices over http: concurrent"},
    "none": {
        "pages over https: concurrent", "ledger over https: one connection, few loads",
        "shelf over https: HTTP/2", "notices over https: concurrent",
    },
}  # fmt: skip


def secret_of(file: Path | None) -> bytes:
    """Return the teacher's secret.

    Without a file it is one that everybody knows, for those who play alone.
    """
    if file is None:
        return b"nobody's secret"
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"the secret cannot be read: {error}") from None
    if len(secret) < 8:
        raise UsageError(f"{file}: a secret has 8 characters at least")
    return secret


def _draw(name: str, secret: bytes, purpose: str, count: int) -> int:
    digest = hmac.new(secret, f"{purpose}:{name}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") % count


def culprit_of(name: str, secret: bytes) -> str:
    """Return who did it, in the program of that name."""
    return list(CULPRITS)[_draw(name, secret, "culprit", len(CULPRITS))]


def new(name: str, into: Path, secret: bytes) -> Path:
    """Write a student's folder, into/NAME: her case and her program.

    Raises UsageError if it is there.
    """
    if not _is_name(name):
        raise UsageError(f"the name is {name!r}: letters, digits, and - _ . between them")
    folder = into / name
    if folder.exists():
        raise UsageError(f"{folder} is there already: choose another name, or remove it")
    build(folder / "program", culprit_of(name, secret))
    (folder / "runs").mkdir()
    (folder / "case.json").write_text(json.dumps({"seed": name}) + "\n", encoding="utf-8")
    (folder / "case.md").write_text(_case(name, secret), encoding="utf-8")
    return folder


def _is_name(name: str) -> bool:
    return all(part.isalnum() or part in "-_." for part in name) and name[:1] not in ("", ".")


def build(folder: Path, culprit: str) -> None:
    """Write the program with that culprit."""
    folder.mkdir(parents=True)
    parts = _HEALTHY | _CHANGES.get(culprit, {})
    for path in _MYSTERY.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        for name, part in parts.items():
            text = text.replace("{" + name + "}", part)
        (folder / f"{path.stem}.py").write_text(text, encoding="utf-8")


def _case(name: str, secret: bytes) -> str:
    culprit = culprit_of(name, secret)
    topic = _TOLD.get(culprit, "ledger")
    if culprit == "none":
        topic = list(_COMPLAINTS)[_draw(name, secret, "complaint", len(_COMPLAINTS))]
    suspects = "\n".join(f"- `{suspect}`: {deed}" for suspect, deed in CULPRITS.items())
    return f"""# The case of {name}

"{_COMPLAINTS[topic]}" Users hear a noise and point; they may be wrong about where it comes from,
and about whether there is one.

The program of the night, in `program/`, has four departments: `pages` fetches all at once with
gevent, `ledger` asks one host for one entry after another, `shelf` fetches books over HTTP/2,
`notices` has a thread for each notice, and a server that is slow to shake hands.
At most one of these did it:

{suspects}

Use all instruments of the book. The program's packages are those of the stack `{STACK}`. Runs
that may serve as evidence are made, counted by the server, and kept under an id by

    .venv/bin/python -m casebook whodunit run FOLDER pages --n 10
    .venv/bin/python -m casebook whodunit run FOLDER pages --n 10 --scheme http

`--n` is {FEWEST} to {MOST} pages. The shelf is asked over https alone.

Then accuse, with the ids of the runs that show it:

    .venv/bin/python -m casebook whodunit answer FOLDER --culprit WHO --evidence ID ID

It says which kinds of runs such an accusation still lacks. Whether it is right, the marks say: your
teacher's, or your own if you play alone (a case without a secret).

    .venv/bin/python -m casebook whodunit mark FOLDER

One run shows what is wrong. To show why may take another, in which the cause, or what it works on,
is taken away. If you acquit everybody, show all four departments healthy, over https. Runs are made
again when the class is marked.
"""


def run(folder: Path, department: str, n: int, scheme: str = "https") -> Run:
    """Run the program in a student's folder, and keep the run there as runs/ID.json."""
    result = run_now(folder / "program", department, n, scheme)
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / f"{result.id}.json").write_text(
        json.dumps(asdict(result)) + "\n", encoding="utf-8"
    )
    return result


def run_now(program: Path, department: str, n: int, scheme: str) -> Run:
    """Run a department of a program once. Raises UsageError if it cannot be run so."""
    if department not in DEPARTMENTS:
        raise UsageError(f"there is no department {department!r}: {', '.join(DEPARTMENTS)}")
    if not 1 <= n <= MOST:
        raise UsageError(f"n is {n}; choose 1 to {MOST}")
    if scheme not in ("https", "http") or (scheme, department) == ("http", "shelf"):
        raise UsageError(f"{department} is not asked over {scheme}")
    path = program / f"{department}.py"
    if not path.is_file():
        raise UsageError(f"{program} is no program of a whodunit: {path.name} is missing")
    if department == "shelf":
        return _from_store(path, n)
    if (department, scheme) == ("notices", "https"):
        return _from_slow_handshakes(path, n)
    return _from_site(path, n, scheme)


def _from_site(path: Path, n: int, scheme: str) -> Run:
    department = path.stem
    with World() as world, Progress(n, f"{department} over {scheme}", "page") as progress:
        site = world.site("right" if scheme == "https" else "plain")
        pages = [secrets.token_hex(4) for _ in range(n)]
        one_by_one = department == "ledger"
        site.reset(0.0 if one_by_one else PATIENCE_S)
        delay_s = 0.0 if one_by_one else _DELAY_S
        requests = [{"url": f"{site.url}/delay/{delay_s}?page={page}"} for page in pages]
        job = _job(requests, world.bundle)
        outcome = room.run(
            STACK, path, [job], room.Setting(countable=one_by_one, with_siblings=True),
            observer=lambda _: progress.reach(site.counts().requests),
        )  # fmt: skip
        answers = outcome.answers[0].get("answers", [])
        right_pages = sum(
            reply.get("status") == 200 and site.word(page) in reply["body"]
            for page, reply in zip(pages, answers, strict=False)
        )
        counts = site.counts()
        return Run(
            department, scheme, n, right_pages, counts.peak_in_flight, len(counts.connections),
            outcome.loads if one_by_one else None, {},
        )  # fmt: skip


def _from_store(path: Path, n: int) -> Run:
    books, ids = stock.books(), stock.ids()[:n]
    with store.open_store(delay_s=_DELAY_S) as open_, Progress(n, "shelf", "book"):
        requests = [{"url": f"{open_.url}/book?id={book}"} for book in ids]
        outcome = room.run(STACK, path, [_job(requests, open_.ca_file)], _WITH_MODULES)
        answers = outcome.answers[0].get("answers", [])
        right_pages = sum(
            reply.get("status") == 200 and json.loads(reply["body"]) == books[book]
            for book, reply in zip(ids, answers, strict=False)
        )
        counts = open_.counters()
        return Run(
            "shelf", "https", n, right_pages, None, counts["connections"], outcome.loads,
            counts["protocols"],
        )  # fmt: skip


def _from_slow_handshakes(path: Path, n: int) -> Run:
    """Run the notices, and count how many handshakes the server works on at once."""
    pages = [secrets.token_hex(4) for _ in range(n)]
    slow = SlowToShakeHands(handshake_s=_HANDSHAKE_S)
    with slow as server, Progress(n, "notices over https", "notice") as progress:
        requests = [{"url": f"{server.url}/?page={page}"} for page in pages]
        # The system's own certificates would take their time in each handshake, too.
        variables = {"SSL_CERT_FILE": str(server.ca_file), "SSL_CERT_DIR": str(server.folder / "-")}
        job = _job(requests, server.ca_file)
        setting = room.Setting(countable=False, with_siblings=True, variables=variables)
        outcome = room.run(
            STACK, path, [job], setting,
            observer=lambda _: progress.reach(server.counters()["handshakes"]),
        )  # fmt: skip
        answers = outcome.answers[0].get("answers", [])
        right_pages = sum(
            reply.get("status") == 200 and json.loads(reply["body"])["args"]["page"] == [page]
            for page, reply in zip(pages, answers, strict=False)
        )
        counts = server.counters()
    peak, connections = counts["peak_handshakes"], counts["handshakes"]
    return Run("notices", "https", n, right_pages, peak, connections, None, {})


def _job(requests: list[dict[str, str]], bundle: Path | None) -> dict[str, Any]:
    return {"function": "fetch", "how": "map", "asks": requests, "verify": str(bundle)}


def answer(folder: Path, culprit: str, evidence: list[str]) -> str:
    """Write a student's answer.

    Returns what it has and which kinds of runs it still lacks, without a word on whether it is
    right. Raises UsageError for an unknown culprit, a run that is not in her folder, or a folder
    that is none.
    """
    if not (folder / "case.json").is_file():
        raise UsageError(f"{folder} is no folder of a whodunit: case.json is missing")
    if culprit not in CULPRITS:
        raise UsageError(f"there is no culprit {culprit!r}; choose one of: {', '.join(CULPRITS)}")
    if len(evidence) > MOST_RUNS:
        raise UsageError(f"{len(evidence)} runs are too many; choose {MOST_RUNS} at most")
    runs = []
    for id_ in evidence:
        if (run := _load_run(folder, id_)) is None:
            raise UsageError(f"there is no run {id_!r} in {folder / 'runs'}")
        if run.n < FEWEST:
            raise UsageError(f"run {id_} has too few pages to show anything: make one of {FEWEST}")
        runs.append(run)
    path = folder / "answer.json"
    path.write_text(json.dumps({"culprit": culprit, "evidence": evidence}) + "\n", encoding="utf-8")
    proof = words.join(run.kind for run in runs) or "no run"
    kinds = {shows.partition(":")[0] for shows in _SHOWN_BY[culprit]}
    lacks = sorted(kinds - {run.kind for run in runs})
    needs = f"such an answer needs {len(kinds)} {words.of_number(len(kinds), 'kinds')} of run"
    rest = f"still missing: {words.join(lacks)}" if lacks else "all are there"
    return f"{path}: {culprit}, with {proof}; {needs}; {rest}. Whether it is right, the marks say."


def _load_run(folder: Path, id_: str) -> Run | None:
    """Return the run of that id in a folder; None if it is missing or was changed."""
    try:
        run = Run(**json.loads((folder / "runs" / f"{Path(id_).name}.json").read_text()))
        can_be_made = type(run.n) is int and 1 <= run.n <= MOST and run.shows
        return run if can_be_made and run.id == id_ else None
    except (OSError, ValueError, TypeError, AssertionError):  # written by hand
        return None


@dataclass(frozen=True)
class Mark:
    """How an answer was judged.

    said: of CULPRITS, or "nothing". evidence: "" where the runs show it, else what is wrong.
    """

    name: str
    said: str
    was: str
    evidence: str

    @property
    def is_right(self) -> bool:
        """Check whether the right culprit was named."""
        return self.said == self.was

    @property
    def accuses_wrongly(self) -> bool:
        """Check whether someone else was accused."""
        return self.said not in ("none", "nothing", self.was)


def mark(folder: Path, secret: bytes) -> list[Mark]:
    """Judge each student's folder below a folder. Runs that serve as evidence are made again."""
    folders = sorted(path.parent for path in folder.glob("**/case.json"))
    if not folders:
        raise UsageError(f"there is no whodunit below {folder}: no case.json")
    with Progress(len(folders), "marking", "answer") as progress:
        marks = []
        for student in folders:
            marks.append(_mark(student, secret))
            progress.step()
    times = Counter(mark.name for mark in marks)
    return [
        replace(mark, evidence=_TWICE) if times[mark.name] > 1 and mark.was else mark
        for mark in marks
    ]


def _mark(folder: Path, secret: bytes) -> Mark:
    try:
        name = str(json.loads((folder / "case.json").read_text())["seed"])
        answer = json.loads((folder / "answer.json").read_text())
        culprit, evidence = str(answer["culprit"]), [str(id_) for id_ in answer["evidence"]]
    except (OSError, ValueError, KeyError, TypeError):
        return Mark(folder.name, "nothing", "", "there is no answer that can be read")
    if not _is_name(name) or culprit not in CULPRITS:
        return Mark(folder.name, "nothing", "", "no culprit is named, or no case that there is")
    was = culprit_of(name, secret)
    return Mark(name, culprit, was, _judge(folder, culprit, was, evidence))


def _judge(folder: Path, culprit: str, was: str, evidence: list[str]) -> str:
    """Say what is wrong with the evidence; an empty string if it shows the culprit."""
    runs = [_load_run(folder, id_) for id_ in evidence[:MOST_RUNS]]
    for id_, run in zip(evidence, runs, strict=False):
        if run is None:
            return f"run {id_} is not there, or was changed"
    shows = {run.shows for run in runs if run}
    if missing := _SHOWN_BY.get(culprit, {"a culprit that there is"}) - shows:
        return "it does not show: " + "; ".join(sorted(missing))
    with World() as world:
        build(world.folder / "program", was)
        for run in runs:
            if run and run.shows in _SHOWN_BY[culprit]:
                for _ in range(TRIES):
                    repeat = run_now(world.folder / "program", run.department, run.n, run.scheme)
                    if repeat.shows == run.shows:
                        break
                else:
                    return f"run {run.id}, made again, shows: {repeat.shows}"
    return ""


def marks_text(marks: list[Mark]) -> str:
    """Return the class as lines, with its sums."""
    width = max(len(mark.name) for mark in marks)
    lines = [
        f"{mark.name:<{width}}  {'right' if mark.is_right else 'wrong':<5}  said {mark.said}, "
        f"it was {mark.was or '-'}; evidence: {mark.evidence or 'shows it'}"
        + (" (a false accusation)" if mark.accuses_wrongly else "")
        for mark in marks
    ]
    right, proven = (sum(map(bool, column)) for column in zip(
        *((mark.is_right, mark.is_right and not mark.evidence) for mark in marks), strict=True
    ))  # fmt: skip
    false = sum(mark.accuses_wrongly for mark in marks)
    lines.append(
        f"{len(marks)} answers: {right} right, {proven} of them shown by their evidence, "
        f"{false} false accusation{'' if false == 1 else 's'}"
    )
    return "\n".join(lines)


_SHEET = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Who did it</title>
<style>
@page {{ size: A4; margin: 14mm; }}
body {{ font: 12pt/1.4 Georgia, serif; max-width: 180mm; margin: 0 auto; padding: 1em;
       color: #111; background: #fff; }}
h1 {{ text-align: center; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .15em .6em; border-bottom: 1px solid #bbb; }}
</style>
<h1>Who did it</h1>
<div><table>
<thead><tr><th>case</th><th>said</th><th>it was</th><th>shown by runs</th><th></th></tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<p>{sums}</p>
</html>
"""


def marks_page(marks: list[Mark]) -> str:
    """Return the class as a page of HTML that loads nothing: a sheet for the wall.

    It names false accusations, too.
    """
    rows = []
    for mark in marks:
        proven = "yes" if mark.is_right and not mark.evidence else "no"
        verdict = "a false accusation" if mark.accuses_wrongly else "right" * mark.is_right
        cells = (mark.name, mark.said, mark.was or "-", proven, verdict)
        rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    sums = marks_text(marks).splitlines()[-1]
    return _SHEET.format(rows="\n".join(rows), sums=escape(sums))
