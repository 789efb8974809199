"""Find the monkey: a program is serial. Which package, since when, by which import; and mended."""

import ast
import secrets
import shutil
from pathlib import Path
from typing import Any

from casebook import places
from casebook.cases.fetching import analysis
from casebook.classroom import prediction, room
from casebook.classroom.report import Report, picked
from casebook.classroom.witness import World

LAB = "find-the-monkey"
STACK = "google-auth-2.55.1-today"
NAMES = ("PREDICTION", "PACKAGE", "SINCE", "IMPORT", "BECAUSE")
PROGRAM = places.ROOT / "classroom" / "labs" / LAB / "program"
DELAY_S = 0.1
#: What each run's pages come from, in the words of a row.
_OVER = {"right": "https", "plain": "http"}
#: What `verdict` is shown of a run.
_SHOWN = ("n", "delay_s", "wall_s", "peak_in_flight", "statuses")


def grade(file: Path, report: Report) -> None:
    """Add to the report what was found of a submission."""
    first = room.run(STACK, file, [], names=NAMES, countable=False)
    if first.stopped or first.error:
        report.stopped = first.stopped
        report.give("the file runs", False, 20, first.error or first.stopped, "Mend that first.")
        return
    guess = prediction.kept(file, first.names["PREDICTION"])
    if guess is None:
        report.give(
            "a prediction is entered", False, 20, "nothing was measured",
            "Enter PREDICTION before anything is measured: you can only do it once.",
        )  # fmt: skip
        return
    with World() as world:
        whole = _own_run(world, PROGRAM / "nightly.py")
        report.give(
            "a prediction is entered", True, 1,
            f"you said {guess['prediction']!r} on {guess['at']}; the server had at most "
            f"{whole['peak_in_flight']} in hand. It costs nothing to have been wrong.", "",
        )  # fmt: skip
        since = _since(world)
        before = _own_run(world, _until(world, since, including=False))
        _names(first.names, since, report)
        _verdicts(world, file, [whole, before], report)
        _mended(world, file, report)
        _explains(world, first.names["BECAUSE"], whole, before, report)


def _asks(world: World, n: int, delay_s: float, kind: str = "right") -> list[dict[str, Any]]:
    url = world.site(kind).url
    return [
        {"url": f"{url}/delay/{delay_s}?page={secrets.randbelow(10**9)}", "options": {}}
        for _ in range(n)
    ]


def _observed(
    world: World, n: int, delay_s: float, kind: str, jobs: tuple[dict[str, Any], ...], **how: Any
) -> tuple[dict[str, Any], room.Outcome]:
    """A run that fetches pages with grequests after `jobs`: (as `verdict` gets it, what came)."""
    asks, site = _asks(world, n, delay_s, kind), world.site(kind)
    fetch = {"function": "grequests.map", "how": "map", "asks": asks, "verify": str(world.bundle)}
    site.reset()
    outcome = room.run(jobs=[*jobs, fetch], countable=False, **how)
    seen, came = site.seen(), outcome.answers[-1]
    # Whoever asks for more, beside, may have two in hand at a time and be serial all the same.
    at_most_once = seen.requests <= n
    statuses = [
        each.get("status")
        if at_most_once and site.word(ask["url"].rpartition("=")[2]) in each.get("body", "")
        else None
        for ask, each in zip(asks, came.get("answers", []), strict=False)
    ]  # fmt: skip
    run = {
        "n": n, "delay_s": delay_s, "wall_s": came.get("wall_s"),
        "peak_in_flight": seen.peak_in_flight,
        "statuses": statuses or [None] * n, "over": _OVER[kind], "requests": seen.requests,
    }  # fmt: skip
    return run, outcome


def _own_run(
    world: World, program: Path, n: int = 10, delay_s: float = DELAY_S, kind: str = "right"
) -> dict[str, Any]:
    """A run of the grader's own."""
    how: dict[str, Any] = {"stack": STACK, "file": None, "program": program}
    return _observed(world, n, delay_s, kind, (), **how)[0]


def told(run: dict[str, Any]) -> str:
    """The verdict that a run deserves: "no timing" where not every page came."""
    if any(status != 200 for status in run["statuses"]):
        return "no timing"
    return analysis.SERIAL if run["peak_in_flight"] <= 1 else analysis.CONCURRENT


def _imports() -> list[str]:
    """What nightly.py imports, in its order."""
    tree = ast.parse((PROGRAM / "nightly.py").read_text(encoding="utf-8"))
    return [each.names[0].name for each in tree.body if isinstance(each, ast.Import)]


def _until(world: World, name: str, including: bool) -> Path:
    """The program's imports up to that one, as a program."""
    folder = world.folder / f"until-{name}-{including}"
    shutil.copytree(PROGRAM, folder)
    names = _imports()[: _imports().index(name) + including]
    path = folder / "part.py"
    path.write_text("\n".join(f"import {each}" for each in [*names, "grequests"]))
    return path


def _since(world: World) -> str:
    """The first import after which the program is serial: measured now."""
    for name in _imports():
        if told(_own_run(world, _until(world, name, including=True))) == analysis.SERIAL:
            return name
    return "never"


def _names(said: dict[str, Any], since: str, report: Report) -> None:
    package = str(said["PACKAGE"]).lower().replace("_", "-")
    found = room.run(
        STACK, None, [{"function": "whose context", "how": "call", "args": []}],
        countable=False, program=PROGRAM / "nightly.py",
    ).answers[0]["value"]  # fmt: skip
    whose, _ = found
    report.give(
        "which package waits", package in ("pyopenssl", "openssl") and "pyopenssl" in whose, 2,
        f"you said {said['PACKAGE']!r}",
        "Whose class is the socket that urllib3 connects, when nightly.py has imported all?",
    )  # fmt: skip
    report.give(
        "since which import", said["SINCE"] == since, 2, f"you said {said['SINCE']!r}",
        "Leave out the imports from the end, one by one, and count. To import a package is one "
        "thing, and to put it in somebody's place another.",
    )  # fmt: skip
    report.give(
        "which module put it there",
        str(said["IMPORT"]) in ("google.auth.transport.requests", "google.auth.transport"), 2,
        f"you said {said['IMPORT']!r}",
        "Somebody calls inject_into_urllib3. Have it print a traceback.",
    )  # fmt: skip


def _verdicts(world: World, file: Path, runs: list[dict[str, Any]], report: Report) -> None:
    whole = PROGRAM / "nightly.py"
    free = world.folder / "free.py"
    free.write_text("import grequests")
    some = 11 + secrets.randbelow(10)
    shown = [
        *runs,
        _own_run(world, whole, 3, 0.05),
        _own_run(world, free, 4, 1.0),
        _own_run(world, free, some),
        _broken(world),
    ]
    secrets.SystemRandom().shuffle(shown)
    jobs = [
        {"function": "verdict", "how": "call",
         "args": [{name: run[name] for name in _SHOWN}]}
        for run in shown
    ]  # fmt: skip
    outcome = room.run(STACK, file, jobs, countable=False)
    report.stopped = report.stopped or outcome.stopped
    wrong = [
        f"{run['n']} pages of {run['delay_s']} s in {run['wall_s']:.2f} s, at most "
        f"{run['peak_in_flight']} in hand, {sum(s == 200 for s in run['statuses'])} came: "
        f"you say {answer.get('value', answer.get('error'))!r}, it is {told(run)!r}"
        for run, answer in zip(shown, outcome.answers, strict=True)
        if answer.get("value") != told(run)
    ]
    report.give(
        "verdicts on six runs", not wrong, 4,
        f"{len(wrong)} of {len(shown)} are wrong. {wrong[0]}" if wrong else "all right",
        "Not every quick run is concurrent and not every slow one serial: what did the server "
        "count? And did all pages come?",
    )  # fmt: skip


def _mended(world: World, file: Path, report: Report) -> None:
    mend = {"function": "mend", "how": "call", "args": []}
    how: dict[str, Any] = {"stack": STACK, "file": file, "program": PROGRAM / "nightly.py"}
    stranger = _asks(world, 1, 0, "stranger")
    after = (
        {"function": "grequests.map", "how": "map", "asks": stranger, "verify": str(world.bundle)},
        {"function": "whose context", "how": "call", "args": []},
    )
    found = []
    for n in (10, 11 + secrets.randbelow(15)):
        run, outcome = _observed(world, n, DELAY_S, "right", (mend, *after), **how)
        report.stopped = report.stopped or outcome.stopped
        found.append((run, outcome.answers))
    _, (mending, refusing, having, _) = found[0]
    came = (refusing.get("answers") or [refusing])[0]
    verifies = "error" in came and "ertificate" in came["error"] + came.get("kind", "")
    installed = "value" in having
    report.give(
        "a stranger's certificate is still refused", verifies and "error" not in mending, 2,
        mending.get("error") or ("refused" if verifies else f"not refused: {came}"),
        "A cure may not turn verification off: then anybody can answer.",
    )  # fmt: skip
    for run, _ in found:
        report.give(
            f"mended: {run['n']} pages at once",
            told(run) == analysis.CONCURRENT and verifies and installed, 2,
            f"{told(run)}: the server had at most {run['peak_in_flight']} in hand, of "
            f"{run['requests']} requests",
            "Chapter 7 has four places where one can cut."
            if told(run) != analysis.CONCURRENT
            else "It counts if certificates are verified and nothing is uninstalled.",
        )  # fmt: skip
    report.give(
        "nothing is uninstalled", installed and "error" not in mending, 1,
        "pyOpenSSL can be imported" if installed else str(having.get("error")),
        "Others in the program need the package: mailer and metrics do.",
    )  # fmt: skip


def _explains(
    world: World, said: Any, whole: dict[str, Any], before: dict[str, Any], report: Report
) -> None:
    rows = {
        "A": ("nightly.py as it is", whole),
        "B": ("nightly.py as it is", _own_run(world, PROGRAM / "nightly.py", kind="plain")),
        "C": ("only the imports before", before),
        "D": ("requests imported before grequests", _broken(world)),
    }
    for letter, (what, run) in rows.items():
        report.notes.append(
            f"Row {letter}: {what}, {run['n']} pages over {run['over']}: at most "
            f"{run['peak_in_flight']} in hand, {told(run)}"
        )
    letters = sorted(picked(said))
    right = False
    if len(letters) == 2 and {*letters} <= {*rows}:
        (what, one), (other, two) = (rows[letter] for letter in letters)
        timed = {told(one), told(two)} == {analysis.SERIAL, analysis.CONCURRENT}
        right = what == other and one["over"] != two["over"] and timed
    report.give(
        "the two rows which show that only TLS waits", right, 2, f"you said {letters}",
        "In which two rows is everything the same but TLS?",
    )  # fmt: skip


def _broken(world: World) -> dict[str, Any]:
    """A run whose pages do not come: requests was imported before grequests patched."""
    path = world.folder / "broken.py"
    path.write_text("import requests\nimport grequests")
    return _own_run(world, path, 5)
