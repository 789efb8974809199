"""What the sources published (data/published.csv), and how it compares with what we got.

Outcomes, of which `compare` finds the first two itself:
- reproduced: the same within TOLERANCE for a number, the same word or class otherwise;
- differs: another number with the same finding: serial or concurrent, or what the caller found;
- undecided: another number, and too much noise to say whether the finding holds;
- not reproduced: another finding, which the page must explain;
- not measured: nothing here corresponds to it, which the page must explain.

Times of the first case are compared in delays: its sources asked for one second per response, and
a reader in the quick mode asks for less. Where most of such a time is the delay that was set,
the caller says so, and only the rest is compared. The sources of the others asked for none, and
their times are compared as they are; whether a finding holds is for the caller to say.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from casebook import places, words
from casebook.cases.fetching import analysis
from casebook.errors import UsageError
from casebook.findings.claims import plain, runs_frame
from casebook.findings.media import COMPARISON
from casebook.findings.sentences import Sentence, origin
from casebook.laboratory.decisions import UNDECIDED
from casebook.mistakes import check_choice, for_readers

REPRODUCED, DIFFERS = "reproduced", "differs"
NOT_REPRODUCED, NOT_MEASURED = "not reproduced", "not measured"
#: The outcomes, and the sign of the mark at the end of a row.
OUTCOMES = {
    REPRODUCED: "✓", DIFFERS: "≈", UNDECIDED: "?", NOT_REPRODUCED: "✗", NOT_MEASURED: "–"
}  # fmt: skip

#: How far a number may be from the published one, relative to it, and still be the same: the
#: sources printed single runs on other machines, over networks of their own.
TOLERANCE = 0.25

#: What the sources of the first case waited for in each response, in seconds.
DELAY_S = 1.0

#: Stands in for a reason if a row is not reproduced and the chapter gives none, because it was
#: reproduced where the book was written. A strict build fails on it.
UNEXPLAINED = "The book has no reason for this: it was written where the row is reproduced."

_WITH_DELAY = ("000", "001")

#: What stands beside a time that was published in delays, where ours was measured without any.
NO_DELAY = "There it waited for a delay, and here for none, so the two times are not comparable."

#: A stage, as data/published.csv has it: its number, and what some rows say of it.
_STAGE = re.compile(r"(stage-\d)(?: laptop| minimal| \+ \S+)?")

#: How the sources' metrics begin, in words.
_METRICS = {"wall": "wall time", "tottime": "own time of", "cumtime": "cumulative time of"}


@dataclass(frozen=True)
class Comparison:
    """A published number beside ours.

    Fields:
        id: its row of data/published.csv.
        published, measured_text: theirs and ours, with their units; ours is empty without one.
        outcome: one of OUTCOMES.
        why: the reason, in a sentence, where one is given.
        source: "live", or "reference" if ours was recorded elsewhere.
        chapter: the stem of its notebook, once a build has gathered it.
    """

    id: str
    published: str
    measured_text: str
    outcome: str
    why: str
    source: str
    chapter: str = ""


def load() -> pd.DataFrame:
    """Load all published rows: id, source, system, python, proto, n, metric, value, unit, note.

    All columns are text, empty if the source says nothing; `number` is the value as a float, NaN
    if it is not one.
    """
    frame = pd.read_csv(places.DATA / "published.csv", dtype=str, keep_default_na=False)
    return frame.assign(number=pd.to_numeric(frame["value"], errors="coerce"))


@for_readers
def row(id: str) -> pd.Series:
    """Return one published row. Raises UsageError for an unknown id."""
    frame = load().set_index("id", drop=False)
    check_choice("the id of a row of data/published.csv", id, frame.index)
    return frame.loc[id]


@for_readers
def value(id: str) -> float | str:
    """Return what was published under an id: a float if it is a number, else the text."""
    published = row(id)
    return published["value"] if pd.isna(published["number"]) else float(published["number"])


@for_readers
def series(*ids: str) -> pd.DataFrame:
    """Return published wall times as a frame that charts take beside runs.

    ids: ids, or beginnings of ids ("talk-serial"). Columns: stack, client, n, delay_s, wall_s,
    effective_concurrency, scheme, source (`published`), published_in.
    """
    frame = load()
    frame = frame[frame["id"].str.startswith(ids) & (frame["metric"] == "wall")]
    frame = frame[frame["number"].notna() & frame["n"].str.isdigit()]
    if frame.empty:
        raise UsageError(f"data/published.csv has no wall times under {', '.join(ids)}")
    n, is_loop = frame["n"].astype(int), frame["system"].str.startswith("requests")
    columns = {
        "stack": _stacks(frame),
        "client": is_loop.map({True: "requests", False: "grequests"}),
        "n": n,
        "delay_s": DELAY_S,
        "wall_s": frame["number"],
        "effective_concurrency": n * DELAY_S / frame["number"],
        "scheme": frame["proto"],
    }
    return _of_rows(frame, columns)


def verdicts() -> pd.DataFrame:
    """Return the published verdicts, a row each.

    Columns: id, stack, published (slow, fast), source, published_in.
    """
    frame = load()
    frame = frame[frame["metric"] == "verdict"]
    columns = {"id": frame["id"], "stack": _stacks(frame), "published": frame["value"]}
    return _of_rows(frame, columns)


@for_readers
def profile_lines(beginning: str) -> pd.DataFrame:
    """Return the lines of a published profile, as they were printed.

    Columns: calls ("30/1"), tottime_s, cumtime_s (NaN if the row of data/published.csv has none),
    function, source, published_in.

    beginning: of the ids, such as "threads-true". Raises UsageError if there are none.
    """
    rows = load()
    rows = rows[rows["id"].str.startswith(beginning) & rows["metric"].str.startswith("tottime ")]
    if rows.empty:
        raise UsageError(f"data/published.csv has no profile whose ids begin with {beginning!r}")
    note = rows["note"].str
    columns = {
        "calls": note.extract(r"([\d/]+) calls", expand=False),
        "tottime_s": rows["number"],
        "cumtime_s": note.extract(r"cumtime ([\d.]+)", expand=False).astype(float),
        "function": rows["metric"].str.removeprefix("tottime "),
    }
    return _of_rows(rows, columns)


def _of_rows(rows: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """Return columns made of published rows, and the sources of these rows."""
    origin = {"source": words.PUBLISHED, "published_in": rows["source"]}
    return pd.DataFrame(columns | origin).reset_index(drop=True)


@for_readers
def agrees(published: float | str, result: Any) -> bool:
    """Say whether a result is the published one.

    Numbers: within TOLERANCE, relative to the published one. A published range ("20-25") is
    widened by it at both ends; ">100%" asks for more than 100. Verdicts: slow is serial, fast
    is concurrent. Everything else: the same text.
    """
    if isinstance(result, str):
        return words.PUBLISHED_VERDICTS.get(str(published), str(published)) == result
    text = str(published)
    if text.startswith(">"):
        return result > float(text.strip(">% "))
    first, _, last = text.partition("-")
    try:
        low, high = float(first), float(last or first)
    except ValueError:
        return False
    return low * (1 - TOLERANCE) <= result <= high * (1 + TOLERANCE)


@for_readers
def compare(  # noqa: PLR0913 - a chapter's call, each keyword about the comparison
    id: str, measured: Any = None, outcome: str = "", why: str = "", runs: object = None,
    finding: bool | None = None, delays: int = 0,
) -> None:  # fmt: skip
    """Show a published row beside what we got, and leave a record for the page of all rows.

    id: a row of published.csv. measured: ours, a number in the row's unit or a text; None
    if nothing corresponds to it. runs: what it came from, a frame or an Observation, for
    the source and the delay. outcome: one of OUTCOMES if it cannot be computed. why: one
    sentence; needed for `not measured`. finding: whether the published finding holds here,
    although the number is another one; needed for numbers of the second and third case, which had
    no delay to compare by. delays: how many of the delays that were set are in every such time,
    so that only the remaining seconds were free to differ and are compared.
    Raises UsageError without what is needed.
    """
    published = row(id)
    if measured is not None:
        measured = plain(measured, f"comparison {id}")
    delay_s = _delay_s(runs) if _waited(published) else DELAY_S
    outcome = outcome or _outcome(published, measured, delay_s, finding, delays)
    if outcome == NOT_MEASURED and not delay_s and not why:
        why = NO_DELAY
    why = _explained(published, outcome, why.strip())
    if delays and measured is not None:
        theirs_s, ours_s = _without_delays(published, measured, delay_s, delays)
        delay_text = "the delay" if delays == 1 else f"the {delays} delays"
        why = (
            f"Beside {delay_text} it took {theirs_s:.2f} s there and {ours_s:.2f} s here. {why}"
        ).strip()
    recorded = runs_frame(runs)["source"].eq(words.REFERENCE).any()
    source = words.REFERENCE if recorded or words.is_from_machine_file() else words.LIVE
    theirs = _with_unit(published["value"], published["unit"])
    ours = _text(measured, published, delay_s)
    _show(Comparison(id, theirs, ours, outcome, why, source), published)


def _stacks(frame: pd.DataFrame) -> pd.Series:
    """Return the stacks of published systems: "stage-2 + pyopenssl" on 2.7 -> stage-2-py27."""
    stages = frame["system"].str.extract(r"\b(stage-\S+)", expand=False).fillna("stage-0")
    pythons = ("-py" + frame["python"].str.replace(".", "")).where(frame["python"] != "", "")
    return stages + pythons


def _explained(published: pd.Series, outcome: str, reason: str) -> str:
    """Return why a comparison came out so. Raises UsageError if a reason is needed and missing."""
    if outcome not in OUTCOMES:
        raise UsageError(
            f"comparison {published['id']}: {outcome!r} is none of {', '.join(OUTCOMES)}"
        )
    if outcome == NOT_MEASURED and not reason:
        raise UsageError(
            f"comparison {published['id']}: published {published['value']}, and nothing here. "
            "Say why in one sentence (why=...)."
        )
    return UNEXPLAINED if outcome == NOT_REPRODUCED and not reason else reason


def _delay_s(runs: object) -> float:
    """Return the delay of what was measured, in seconds; the published one if it is not known."""
    delays = runs_frame(runs)["delay_s"].dropna().unique()
    if len(delays) > 1:
        raise UsageError("the runs behind a comparison must all have the same delay")
    return float(delays[0]) if len(delays) else DELAY_S


def _waited(published: pd.Series) -> bool:
    """Say whether the source of a row had its server wait before each response."""
    return published["source"].startswith(_WITH_DELAY)


def _without_delays(
    published: pd.Series, result: Any, delay_s: float, delays: int
) -> tuple[float, float]:
    """Return the seconds that remain of a published time and of ours without their delays."""
    return published["number"] - delays * DELAY_S, result - delays * delay_s


def _outcome(
    published: pd.Series, result: Any, delay_s: float, finding: bool | None, delays: int
) -> str:
    if result is None:
        return NOT_MEASURED
    is_number = not isinstance(result, str) and pd.notna(published["number"])
    if not is_number or (published["unit"] != "s" and finding is None):
        return REPRODUCED if agrees(published["value"], result) else NOT_REPRODUCED
    if delay_s:
        ours, theirs = result / delay_s, published["number"] / DELAY_S
    elif delays:
        ours, theirs = result, published["number"]
    else:
        return NOT_MEASURED if finding is None else DIFFERS if finding else NOT_REPRODUCED
    if agrees(*(_without_delays(published, result, delay_s, delays) if delays else (theirs, ours))):
        return REPRODUCED
    if finding is not None:
        return DIFFERS if finding else NOT_REPRODUCED
    if not published["n"].isdigit() or not _waited(published):
        return NOT_REPRODUCED
    n = int(published["n"])
    if not delay_s:  # a verdict of serial or concurrent would be none
        return NOT_REPRODUCED
    is_same_verdict = analysis.verdict(n, 1.0, ours) == analysis.verdict(n, 1.0, theirs)
    return DIFFERS if is_same_verdict else NOT_REPRODUCED


def _with_unit(value: object, unit: str) -> str:
    return f"{value}{unit}" if unit == "%" else f"{value} {unit}".strip()


def _text(result: Any, published: pd.Series, delay_s: float) -> str:
    if result is None:
        return ""
    unit = published["unit"] or "%" * published["value"].endswith("%")
    if not isinstance(result, float):
        return _with_unit(result, unit)
    text = _with_unit(words.number(result), unit)
    if unit == "s" and not delay_s:
        text += " without a delay"
    elif unit == "s" and delay_s != DELAY_S:
        text += f" at a delay of {words.delay(delay_s)} ({words.number(result / delay_s)} delays)"
    return text


def described(published: Mapping[str, Any]) -> str:
    """Describe a published row: "+ pyOpenSSL, Python 3.7, n = 10, wall time".

    The sources number their stages; here they are called what the book calls them.
    """
    python, n = published["python"], published["n"]
    metric, _, rest = published["metric"].partition(" ")
    metric = f"{_METRICS.get(metric, metric)} {rest}".rstrip()
    system = _STAGE.sub(lambda stage: words.stack_label(stage[1]), published["system"])
    system = system.replace("grequests whatever", "grequests, whatever")
    parts = (system, python and f"Python {python}", n and f"n = {n}", metric)
    return ", ".join(part for part in parts if part)


def _show(comparison: Comparison, published: pd.Series) -> None:
    ours = comparison.measured_text
    recorded = comparison.source == words.REFERENCE
    Sentence(
        kind="published",
        id=comparison.id,
        text=f"{described(published)}: published {comparison.published}, "
        + (f"here {ours}" if ours else "nothing here"),
        sign=OUTCOMES[comparison.outcome],
        outcome=comparison.outcome,
        origin=origin(recorded, 1) if ours else "",
        details="ours was recorded" if recorded else "ours was measured here",
        remark=comparison.why,
    ).show(COMPARISON, asdict(comparison))
