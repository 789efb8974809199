"""Find the monkey: a program is serial. Which package, since when, by which import; and mended."""

import ast
import secrets
import shutil
from pathlib import Path
from typing import Any

from casebook import places
from casebook.cases.fetching import analysis
from casebook.classroom import prediction, room
from casebook.classroom.grade_report import ANOTHER, Report, Task, machine_note, picked
from casebook.classroom.grader_runs import GraderRuns
from casebook.classroom.witness import PATIENCE_S, World
from casebook.errors import RunFailed
from casebook.stacks import digests

LAB = "find-the-monkey"
STACK = "google-auth-2.55.1-today"
STACKS = (STACK,)
NAMES = ("PREDICTION", "PACKAGE", "SINCE", "IMPORT", "BECAUSE")
PROGRAM = places.ROOT / "classroom" / "labs" / LAB / "program"
DELAY_S = 0.1
#: What each run's pages come from, in the words of a row.
_OVER = {"right": "https", "plain": "http"}
#: The programs of the grader's own, beside the one that is handed out and its parts.
_OTHERS = {"free": "import grequests", "broken": "import requests\nimport grequests"}
#: How many pages the larger concurrent run may have.
_SOME = range(11, 21)
#: The pages of the serial run that is over sooner than many a concurrent one, and their delay_s.
QUICK = (3, 0.05)
#: The sites that show whether a mend still verifies: one is accepted, the others are refused.
_SHOWING = ("right", "stranger", "expired")
#: The verdict on a run in which a page is missing.
NO_TIMING = "no timing"
#: What a mend is graded by.
_REFUSES = Task("a stranger's certificate is still refused", 2)
_AT_ONCE = Task("mended: {n} pages at once", 2)
_INSTALLED = Task("nothing is uninstalled", 1)
#: What `verdict` is shown of a run.
_SHOWN = ("n", "delay_s", "wall_s", "peak_in_flight", "statuses")


def grade(file: Path, report: Report, grader_runs: GraderRuns) -> None:
    """Add what was found of a submission to the report."""
    stack_here = grader_runs.room(STACK)
    entered = prediction.entered(
        STACK, stack_here, file, report, 20, NAMES, setting=room.NOT_COUNTABLE
    )
    if entered is None:
        return
    names, guess = entered
    with World() as world:
        full_run = _own_run(grader_runs, world, "all")
        truth = f"the server had at most {full_run['peak_in_flight']} under way"
        prediction.grade(report, guess, truth, full_run["machine"])
        blocker = _find_blocker(grader_runs, world)
        run_before = _own_run(grader_runs, world, f"before {blocker['name']}")
        _grade_names(grader_runs, names, blocker, report)
        _grade_verdicts(grader_runs, world, stack_here, file, [full_run, run_before], report)
        if grader_runs.can_run(STACK):
            _grade_mend(world, file, report)
        else:
            _leave_mend(report)
        _grade_explanation(grader_runs, world, names["BECAUSE"], full_run, run_before, report)


def record(grader_runs: GraderRuns) -> None:
    """Make all runs that any submission may need."""
    with World() as world:
        for n in _SOME:
            _own_run(grader_runs, world, "free", n)
        _own_run(grader_runs, world, "all", *QUICK)
        _own_run(grader_runs, world, "free", 4, 1.0)
        for part in ("all", "broken", f"before {_find_blocker(grader_runs, world)['name']}"):
            _own_run(grader_runs, world, part, 5 if part == "broken" else 10)
        _own_run(grader_runs, world, "all", kind="plain")
        _whose_context(grader_runs)


def _requests(world: World, n: int, delay_s: float, kind: str = "right") -> list[dict[str, Any]]:
    url = world.site(kind).url
    return [
        {"url": f"{url}/delay/{delay_s}?page={secrets.randbelow(10**9)}", "options": {}}
        for _ in range(n)
    ]


def _observe(
    world: World,
    n: int,
    delay_s: float,
    kind: str,
    *jobs: dict[str, Any],
    program: Path,
    file: Path | None = None,
) -> tuple[dict[str, Any], room.Outcome]:
    """Fetch pages with grequests after `jobs`.

    Returns the run, as `verdict` gets it, and its outcome.
    """
    requests, site = _requests(world, n, delay_s, kind), world.site(kind)
    fetch = {
        "function": "grequests.map",
        "how": "map",
        "asks": requests,
        "verify": str(world.bundle),
    }
    site.reset(0.0 if (n, delay_s) == QUICK else PATIENCE_S)
    outcome = room.run(STACK, file, [*jobs, fetch], room.Setting(countable=False, program=program))
    counts, answer = site.counts(), outcome.answers[-1]
    # A submission that also asks for more may have two under way at a time and still be serial.
    at_most_once = counts.requests <= n
    statuses = [
        reply.get("status")
        if at_most_once and site.word(request["url"].rpartition("=")[2]) in reply.get("body", "")
        else None
        for request, reply in zip(requests, answer.get("answers", []), strict=False)
    ]  # fmt: skip
    run = {
        "n": n, "delay_s": delay_s, "wall_s": answer.get("wall_s"),
        "peak_in_flight": counts.peak_in_flight,
        "statuses": statuses or [None] * n, "over": _OVER[kind], "requests": counts.requests,
    }  # fmt: skip
    return run, outcome


def _own_run(
    grader_runs: GraderRuns, world: World, part: str, n: int = 10, delay_s: float = DELAY_S,
    kind: str = "right",
) -> dict[str, Any]:  # fmt: skip
    """Return one of the grader's own runs, as from _observe, with `machine`.

    part: "all", "until NAME" or "before NAME" (of an import), or one of _OTHERS.
    """
    parameters = {"what": part, "n": n, "delay_s": delay_s, "over": _OVER[kind]}

    def measure() -> dict[str, Any]:
        return _observe(world, n, delay_s, kind, program=_program(world, part))[0]

    return grader_runs.answer([STACK], parameters | {"program": _program_is()}, measure, _as_run)


def _program_is() -> str:
    """Return a digest of the program's text.

    Its syntax tree would not do: that differs between Pythons, and a machine file may come from
    another one.
    """
    return digests.digest([path.read_text() for path in sorted(PROGRAM.rglob("*.py"))])


def _as_run(answer: dict[str, Any]) -> dict[str, Any]:
    """Check the raw answer of a run on any machine, and return its values.

    Raises what is wrong with it.
    """
    if not all(status is None or type(status) is int for status in answer["statuses"]):
        raise ValueError(f"no list of statuses: {answer['statuses']}")
    counts = {name: int(answer[name]) for name in ("n", "peak_in_flight", "requests")}
    times = {name: float(answer[name]) for name in ("delay_s", "wall_s")}
    return counts | times | {"statuses": answer["statuses"], "over": str(answer["over"])}


def _program(world: World, part: str) -> Path:
    """Return the program of one of the grader's own runs."""
    if part == "all":
        return PROGRAM / "nightly.py"
    if part in _OTHERS:
        path = world.folder / f"{part}.py"
        path.write_text(_OTHERS[part])
        return path
    preposition, name = part.split()
    return _write_part(world, name, including=preposition == "until")


def verdict_on(run: dict[str, Any]) -> str:
    """Return the verdict that a run deserves: NO_TIMING if a page is missing."""
    if any(status != 200 for status in run["statuses"]):
        return NO_TIMING
    return analysis.verdict_by_peak(run["peak_in_flight"])


def _imports() -> list[str]:
    """Return the names that nightly.py imports, in order."""
    tree = ast.parse((PROGRAM / "nightly.py").read_text(encoding="utf-8"))
    return [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]


def _write_part(world: World, name: str, including: bool) -> Path:
    """Write the program's imports up to that one, as a program."""
    folder = world.folder / f"until-{name}-{including}"
    shutil.copytree(PROGRAM, folder)
    names = _imports()[: _imports().index(name) + including]
    path = folder / "part.py"
    path.write_text("\n".join(f"import {module}" for module in [*names, "grequests"]))
    return path


def _find_blocker(grader_runs: GraderRuns, world: World) -> dict[str, str]:
    """Return the first import after which the program is serial (name), and on which machine."""
    run: dict[str, Any] = {}
    for name in _imports():
        run = _own_run(grader_runs, world, f"until {name}")
        if verdict_on(run) == analysis.SERIAL:
            return {"name": name, "machine": run["machine"]}
    raise RunFailed("the program that is handed out was concurrent to its end. Try again.")


def _whose_context(grader_runs: GraderRuns) -> dict[str, Any]:
    """Return the module of urllib3's SSLContext after all the program's imports: `module`."""

    def measure() -> dict[str, Any]:
        job = {"function": "whose context", "how": "call", "args": []}
        program = PROGRAM / "nightly.py"
        setting = room.Setting(countable=False, program=program)
        (answer,) = room.run(STACK, None, [job], setting).answers
        return {"module": answer["value"][0]}

    parameters = {"what": "whose context", "program": _program_is()}
    return grader_runs.answer(
        [STACK], parameters, measure, lambda answer: {"module": str(answer["module"])}
    )


def _grade_names(
    grader_runs: GraderRuns, names: dict[str, Any], blocker: dict[str, str], report: Report
) -> None:
    package = str(names["PACKAGE"]).lower().replace("_", "-")
    context = _whose_context(grader_runs)
    right = package in ("pyopenssl", "openssl") and "pyopenssl" in context["module"]
    report.add(
        "which package waits", right, 2, f"you said {names['PACKAGE']!r}",
        "Whose class is the socket that urllib3 connects, when nightly.py has imported all?",
        context["machine"],
    )  # fmt: skip
    report.add(
        "since which import", names["SINCE"] == blocker["name"], 2, f"you said {names['SINCE']!r}",
        "Leave out the imports from the end, one by one, and count. To import a package is one "
        "thing, and to put it in somebody's place another.", blocker["machine"],
    )  # fmt: skip
    report.add(
        "which module put it there",
        str(names["IMPORT"]) in ("google.auth.transport.requests", "google.auth.transport"), 2,
        f"you said {names['IMPORT']!r}",
        "Somebody calls inject_into_urllib3. Have it print a traceback.",
    )  # fmt: skip


def _grade_verdicts(
    grader_runs: GraderRuns,
    world: World,
    stack_here: str,
    file: Path,
    runs: list[dict[str, Any]],
    report: Report,
) -> None:
    examples = [
        *runs,
        _own_run(grader_runs, world, "all", *QUICK),
        _own_run(grader_runs, world, "free", 4, 1.0),
        _own_run(grader_runs, world, "free", secrets.choice(_SOME)),
        _own_run(grader_runs, world, "broken", 5),
    ]
    secrets.SystemRandom().shuffle(examples)
    jobs = [
        {"function": "verdict", "how": "call",
         "args": [{name: run[name] for name in _SHOWN}]}
        for run in examples
    ]  # fmt: skip
    outcome = room.run(stack_here, file, jobs, room.NOT_COUNTABLE)
    report.stopped = report.stopped or outcome.stopped
    pairs = list(zip(examples, outcome.answers, strict=True))
    # Pages that are missing come first: a verdict on them is wrong on every machine.
    pairs.sort(key=lambda pair: verdict_on(pair[0]) != NO_TIMING)
    wrong = [
        f"{run['n']} pages of {run['delay_s']} s in {run['wall_s']:.2f} s, at most "
        f"{run['peak_in_flight']} under way, {sum(s == 200 for s in run['statuses'])} came: "
        f"you say {answer.get('value', answer.get('error'))!r}, it is {verdict_on(run)!r}"
        for run, answer in pairs
        if answer.get("value") != verdict_on(run)
    ]
    report.add(
        "verdicts on six runs", not wrong, 4,
        f"{len(wrong)} of {len(examples)} are wrong. {wrong[0]}" if wrong else "all right",
        "Not every quick run is concurrent and not every slow one serial: what did the server "
        "count? And did all pages come?", examples[0]["machine"],
    )  # fmt: skip


def _grade_mend(world: World, file: Path, report: Report) -> None:
    mend = {"function": "mend", "how": "call", "args": []}
    # By lot, and each of a site of its own: nobody can go by the number of a call, or by a port.
    kinds = [*_SHOWING, *(secrets.choice(_SHOWING) for _ in range(5))]
    secrets.SystemRandom().shuffle(kinds)
    requests = [
        request
        for number, kind in enumerate(kinds)
        for request in _requests(world, 1, 0, f"{kind}/{number}")
    ]
    checks = (
        {"function": "grequests.map", "how": "map", "asks": requests, "verify": str(world.bundle)},
        {"function": "whose context", "how": "call", "args": []},
    )
    results = []
    for n in (10, 11 + secrets.randbelow(15)):
        run, outcome = _observe(
            world, n, DELAY_S, "right", mend, *checks, program=PROGRAM / "nightly.py", file=file
        )
        report.stopped = report.stopped or outcome.stopped
        results.append((run, outcome.answers))
    _, (mend_answer, fetch_answer, context_answer, _) = results[0]
    wrong = _find_fault(kinds, fetch_answer)
    verifies = not wrong
    installed = "value" in context_answer
    report.add(
        _REFUSES.title, verifies and "error" not in mend_answer, _REFUSES.points,
        mend_answer.get("error") or wrong or "refused",
        "A cure may not turn verification off: then anybody can answer.",
    )  # fmt: skip
    for run, _ in results:
        report.add(
            _AT_ONCE.of(run["n"]).title,
            verdict_on(run) == analysis.CONCURRENT and verifies and installed, _AT_ONCE.points,
            f"{verdict_on(run)}: the server had at most {run['peak_in_flight']} under way, of "
            f"{run['requests']} requests",
            "Chapter 7 has four places where one can cut."
            if verdict_on(run) != analysis.CONCURRENT
            else "It counts if certificates are verified and nothing is uninstalled.",
        )  # fmt: skip
    report.add(
        _INSTALLED.title, installed and "error" not in mend_answer, _INSTALLED.points,
        "pyOpenSSL can be imported" if installed else str(context_answer.get("error")),
        "Others in the program need the package: mailer and metrics do.",
    )  # fmt: skip


def _find_fault(kinds: list[str], fetch_answer: dict[str, Any]) -> str:
    """Say what is wrong with the answers of sites with such certificates.

    Returns an empty string if the right ones are accepted and the others refused.
    """
    answers = fetch_answer.get("answers") or [fetch_answer] * len(kinds)
    for kind, answer in zip(kinds, answers, strict=True):
        about = answer.get("kind", "") + answer.get("error", "")
        if kind == "right" and "error" in answer:
            return f"a right certificate is refused, too: {answer['error']}"
        if kind != "right" and "error" not in answer:
            return f"not refused: {answer}"
        if kind != "right" and "ertificate" not in about:
            return f"it failed for another reason: {answer['error']}"
    return ""


def _leave_mend(report: Report) -> None:
    for task in (_REFUSES, _AT_ONCE.of(10), _AT_ONCE.of(ANOTHER), _INSTALLED):
        report.leave(task.title, task.points, STACK)


def _grade_explanation(
    grader_runs: GraderRuns, world: World, choice: Any, full_run: dict[str, Any],
    run_before: dict[str, Any], report: Report,
) -> None:  # fmt: skip
    rows = {
        "A": ("nightly.py as it is", full_run),
        "B": ("nightly.py as it is", _own_run(grader_runs, world, "all", kind="plain")),
        "C": ("only the imports before", run_before),
        "D": ("requests imported before grequests", _own_run(grader_runs, world, "broken", 5)),
    }
    for letter, (label, run) in rows.items():
        report.notes.append(
            f"Row {letter}: {label}, {run['n']} pages over {run['over']}: at most "
            f"{run['peak_in_flight']} under way, {verdict_on(run)}{machine_note(run['machine'])}"
        )
    letters = sorted(picked(choice))
    right = False
    if len(letters) == 2 and {*letters} <= {*rows}:
        (label, first), (other_label, second) = (rows[letter] for letter in letters)
        both_verdicts = {verdict_on(first), verdict_on(second)} == {
            analysis.SERIAL,
            analysis.CONCURRENT,
        }
        right = label == other_label and first["over"] != second["over"] and both_verdicts
    report.add(
        "the two rows which show that only TLS waits", right, 2, f"you said {letters}",
        "In which two rows is everything the same but TLS?", full_run["machine"],
    )  # fmt: skip
