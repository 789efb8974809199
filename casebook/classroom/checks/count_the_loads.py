"""Count the loads: thirty threads load the certificates once, and twelve answers do not change.

Twelve questions still get the answers that requests gives.
"""

import os
import random
import re
import secrets
from functools import partial
from pathlib import Path
from typing import Any

from casebook import words
from casebook.classroom import opens, prediction, room
from casebook.classroom.grade_report import ANOTHER, Report, Task, machine_note, picked
from casebook.classroom.grader_runs import GraderRuns
from casebook.classroom.witness import PATIENCE_S, World

LAB = "count-the-loads"
STACK = "stage-1-today"
STACKS = (STACK,)
NAMES = ("PREDICTION", "LOADS_GO_WITH", "BECAUSE")
THREADS, DELAY_S = 30, 0.2
#: What a row counts.
NOUNS = ("threads", "requests", "connections", "loads")
#: The two ways in which threads are told what to trust.
TRUE, PATH = "verify=True", "verify= a path"

#: What threads are graded by.
_ONE_LOAD = {
    TRUE: Task(f"{{n}} threads load once ({TRUE})", 4),
    PATH: Task(f"{{n}} threads load once ({PATH})", 3),
}
_AT_ONCE = Task("and are under way at once", 2)
#: What each of the twelve questions is worth.
_POINTS = 1

#: The twelve questions, in the order in which one process is asked them.
QUESTIONS = (
    "a right certificate is accepted",
    "a stranger's certificate is refused",
    "a certificate for another name is refused",
    "an expired certificate is refused",
    "verify=False accepts the stranger, as asked",
    "after that, the stranger is refused again",
    "another bundle accepts whom it names",
    "another bundle refuses whom it does not name",
    "cert= is shown to the server",
    "a call without cert= shows nobody",
    "another cert= shows the other",
    "a bundle that changed on disk is believed as it is now",
)

#: Those that ask with bundles of their own, whatever else is asked.
OF_PATHS = {
    "another bundle accepts whom it names",
    "another bundle refuses whom it does not name",
    "a bundle that changed on disk is believed as it is now",
}


def grade(file: Path, report: Report, grader_runs: GraderRuns) -> None:
    """Add what was found of a submission to the report."""
    with World() as world:
        bundle = world.bundle
        setting = room.Setting(bundle=bundle) if grader_runs.can_run(STACK) else room.NOT_COUNTABLE
        stack_here = grader_runs.room(STACK)
        entered = prediction.entered(STACK, stack_here, file, report, 24, NAMES, setting=setting)
        if entered is None:
            return
        names, guess = entered
        rows = _rows(grader_runs, world)
        truth = f"stock requests: {rows['A']['loads']} loads"
        prediction.grade(report, guess, truth, rows["A"]["machine"])
        if grader_runs.can_run(STACK):
            _grade_questions(world, file, report, _grade_loads(world, file, report))
        else:
            _leave_get(report)
        _grade_explanation(names, rows, report)


def record(grader_runs: GraderRuns) -> None:
    """Make all runs that any submission may need."""
    with World() as world:
        _rows(grader_runs, world)


def _requests(world: World, kind: str, count: int, delay_s: float, **options: Any) -> list[dict]:
    site = world.site(kind)
    return [
        {"url": f"{site.url}/delay/{delay_s}?page={secrets.token_hex(4)}", "options": options}
        for _ in range(count)
    ]


def _is_right(world: World, kind: str, request: dict, answer: dict) -> bool:
    """Check whether an answer is the one that only the site can give."""
    page = request["url"].rpartition("=")[2]
    return answer.get("status") == 200 and world.site(kind).word(page) in answer["body"]


def _fetch(world: World, file: Path | None, function: str, manner: str, count: int, **options: Any):
    """Have a function fetch pages.

    Returns the outcome, how many answers are right, how many loads there were, and what the site
    saw.
    """
    delay_s = DELAY_S if manner == "at once" else 0.0
    site, requests = world.site("right"), _requests(world, "right", count, delay_s, **options)
    site.reset(PATIENCE_S if manner == "at once" else 0.0)
    job = {"function": function, "how": manner, "asks": requests}
    variables = {"SSL_CERT_FILE": str(world.bundle), "SSL_CERT_DIR": "/nonexistent"}
    setting = room.Setting(bundle=world.bundle, variables=variables)
    with opens.watch(world.bundle) as opened:
        outcome = room.run(STACK, file, [job], setting)
    # Told as they happen; and what the system saw opened by no Python code can only be OpenSSL's.
    loads = max(outcome.loads, (opened.count or 0) - outcome.reads)
    answers = outcome.answers[0].get("answers", [])
    good = sum(_is_right(world, "right", *pair) for pair in zip(requests, answers, strict=False))
    return outcome, good, loads, site.counts()


def _rows(grader_runs: GraderRuns, world: World) -> dict[str, dict[str, Any]]:
    """Return what stock requests does: the rows that an explanation is picked from."""
    variants = {
        "A": ("30 threads, requests.get in each", "requests.get", "at once"),
        "B": ("one thread, 30 times requests.get", "requests.get", "one by one"),
        "C": ("one thread, one Session, 30 times get", "one session", "one by one"),
    }
    rows = {}
    for letter, (label, function, manner) in variants.items():
        measure = partial(_count_stock, world, function, manner)
        parameters = {"function": function, "how": manner, "count": THREADS}
        counts = grader_runs.answer([STACK], parameters, measure, _as_counts)
        threads = THREADS if manner == "at once" else 1
        rows[letter] = {"what": label, "threads": threads} | counts
    return rows


def _count_stock(world: World, function: str, manner: str) -> dict[str, Any]:
    """Count what stock requests does, now."""
    _, _, loads, counts = _fetch(world, None, function, manner, THREADS)
    return {"requests": counts.requests, "connections": len(counts.connections), "loads": loads}


def _as_counts(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: int(answer[name]) for name in ("requests", "connections", "loads")}


def _count_in_words(count: int, nouns: str) -> str:
    return f"{count} {words.of_number(count, nouns)}"


def _grade_loads(world: World, file: Path, report: Report) -> dict[str, str]:
    """Grade how often each way to say verify= loads, for how many threads.

    Returns it in words, for the ways in which threads share anything.
    """
    threads = 11 + secrets.randbelow(14)
    shared = {}
    for count, manner, options in (
        (THREADS, TRUE, {}),
        (threads, PATH, {"verify": str(world.bundle)}),
    ):
        outcome, good, loads, counts = _fetch(world, file, "get", "at once", count, **options)
        report.stopped = report.stopped or outcome.stopped
        message = f"{count} threads: {_count_in_words(loads, 'loads')}"
        if good < count or counts.requests != count:
            bad = outcome.answers[0].get("error") or next(
                (reply["error"] for reply in outcome.answers[0]["answers"] if "error" in reply),
                "answers that the server did not give",
            )
            message = f"{good} of {count} answers were right, {counts.requests} requests: {bad}"
            hint = "Every thread has to get the page that it asked for, from the server."
            loads = -1
        elif loads >= count:
            hint = "Each thread loads for itself: where does the second one look for what the "
            hint += "first has made?"
        elif loads > 1:
            hint = "The second thread has to wait until the first has loaded, and then take its "
            hint += "context: look at what two threads do between `if` and `=`."
        else:
            hint = "Nothing was loaded: then what were the certificates checked against?"
        if 0 <= loads < count:
            shared[manner] = message
        task = _ONE_LOAD[manner].of(count)
        report.add(task.title, loads == 1, task.points, message, hint)
        if manner == TRUE:
            at_a_time = _count_in_words(counts.peak_in_flight, "requests")
            report.add(
                _AT_ONCE.title, loads >= 0 and counts.peak_in_flight > 1, _AT_ONCE.points,
                f"with the server at a time: {at_a_time}",
                "Hold the lock while you load, not while you fetch.",
            )  # fmt: skip
    return shared


def _grade_questions(world: World, file: Path, report: Report, shared: dict[str, str]) -> None:
    """Ask the twelve questions.

    If only verify=True shares anything, the questions that need no path of their own are asked with
    it, and the others do not count: what shares nothing can mix nothing up.
    """
    bundle, other_bundle = str(world.bundle), str(world.other_bundle)
    alice, bob = (str(world.client_certificate(name)) for name in ("alice", "bob"))
    changing = world.folder / "changing.pem"
    changing.write_bytes(world.bundle.read_bytes())
    turned = world.folder / "turned.pem"
    turned.write_bytes(world.other_bundle.read_bytes())
    only_true = TRUE in shared and PATH not in shared
    trusting = {} if only_true else {"verify": bundle}
    # (site, options, what has to come: a name that the server was shown, or "refused")
    plan: list[tuple[str, dict, str]] = [
        ("right", trusting, "nobody"),
        ("stranger", trusting, "refused"),
        ("wrong name", trusting, "refused"),
        ("expired", trusting, "refused"),
        ("stranger", {"verify": False}, "nobody"),
        ("stranger", trusting, "refused"),
        ("stranger", {"verify": other_bundle}, "nobody"),
        ("right", {"verify": other_bundle}, "refused"),
        ("right", trusting | {"cert": alice}, "alice"),
        ("right", trusting, "nobody"),
        ("right", trusting | {"cert": bob}, "bob"),
        ("right", {"verify": str(changing)}, "nobody"),
        ("right", {"verify": str(changing)}, "refused"),
    ]
    requests = [_requests(world, kind, 1, 0, **options)[0] for kind, options, _ in plan]
    site = world.site("right")
    site.when[requests[-2]["url"].rpartition("=")[2]] = lambda: os.replace(turned, changing)
    site.reset()
    # The first four questions are asked again between the others, in an order drawn at random, each
    # of a site that nobody has seen before. What goes by the number of a call, by a port, or by a
    # look at all that will be asked, refuses a right certificate or accepts another.
    repeats = [0, 1, 2, 3, *(secrets.randbelow(4) for _ in range(2 + secrets.randbelow(6)))]
    secrets.SystemRandom().shuffle(repeats)
    positions = sorted(random.SystemRandom().choices(range(1, len(plan) - 1), k=len(repeats)))
    series = [*zip(plan, requests, range(len(plan)), strict=True)]
    for number, place in zip(repeats, reversed(positions), strict=True):
        kind, options, expected = plan[number]
        site_of_its_own = f"{kind}/{len(series)}"
        request = _requests(world, site_of_its_own, 1, 0, **options)[0]
        series.insert(place, ((site_of_its_own, options, expected), request, number))
    job = {"function": "get", "how": "one by one", "asks": [request for _, request, _ in series]}
    outcome = room.run(STACK, file, [job], room.Setting(bundle=world.bundle))
    report.stopped = report.stopped or outcome.stopped
    answers = outcome.answers[0].get("answers") or [outcome.answers[0]] * len(series)
    errors = [""] * len(plan)
    for ((kind, _, expected), request, number), answer in zip(series, answers, strict=True):
        errors[number] = errors[number] or _find_fault(world, kind, expected, request, answer)
    errors[-2:] = [errors[-2] or errors[-1]]  # before and after the change: one question
    reason = (
        f"These count as soon as {PATH} is shared, too." if shared else
        "These count as soon as something is shared: what shares nothing can mix nothing up."
    )  # fmt: skip
    for question, wrong in zip(QUESTIONS, errors, strict=True):
        counts = bool(shared) and not (only_true and question in OF_PATHS)
        hint = "Which of your contexts was used for this call, and is that all it depends on?"
        if not (counts or wrong):
            hint, reason = reason, ""  # once
        right = "yes" if counts else "as requests does; it does not count yet"
        report.add(question, counts and not wrong, _POINTS, wrong or right, hint)


def _find_fault(world: World, kind: str, expected: str, request: dict, answer: dict) -> str:
    """Say what is wrong with an answer; an empty string if it is right."""
    if expected == "refused":
        if "error" not in answer:
            return "the page came: it was not refused"
        about = answer.get("kind", "") + answer["error"]
        is_refusal = any(word in about for word in ("SSL", "Certificate", "certificate"))
        return "" if is_refusal else f"it failed for another reason: {answer['error']}"
    if "error" in answer:
        return f"it failed: {answer['error']}"
    if not _is_right(world, kind, request, answer):
        return "that is not what the server answered"
    match = re.search(r'"shown": "(\w+)"', answer["body"])
    if match and match[1] == expected:
        return ""
    return f"the server was shown {match[1] if match else 'something else'}, not {expected}"


def _leave_get(report: Report) -> None:
    of_threads = (_ONE_LOAD[TRUE].of(THREADS), _AT_ONCE, _ONE_LOAD[PATH].of(ANOTHER))
    for task in (*of_threads, *(Task(question, _POINTS) for question in QUESTIONS)):
        report.leave(task.title, task.points, STACK)


def _grade_explanation(
    names: dict[str, Any], rows: dict[str, dict[str, Any]], report: Report
) -> None:
    """Grade what the loads go with, and the rows that show it.

    The number that equals the loads in every row counts, and rows that rule the others out.
    """
    for letter, row in rows.items():
        report.notes.append(
            f"Row {letter}: {row['what']}: "
            + ", ".join(_count_in_words(row[noun], noun) for noun in NOUNS)
            + machine_note(row["machine"])
        )
    candidates = ("threads", "requests", "connections")
    truth = [noun for noun in candidates if all(row[noun] == row["loads"] for row in rows.values())]
    letters = picked(names["BECAUSE"])
    ruled_out = {
        noun
        for noun in candidates
        for letter in letters & rows.keys()
        if rows[letter][noun] != rows[letter]["loads"]
    }
    right = [names["LOADS_GO_WITH"]] == truth and ruled_out == {*candidates} - {*truth}
    report.add(
        "what the loads go with, and the rows that show it",
        right and len(letters) <= 2, 2,
        f"you said {names['LOADS_GO_WITH']!r}, because of {sorted(letters)}",
        "A row rules something out when its number is not the number of loads. Two rows are "
        "enough.", rows["A"]["machine"],
    )  # fmt: skip
