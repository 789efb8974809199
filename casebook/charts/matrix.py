"""The verdicts of all stages on all Pythons, ours beside the published ones."""

from html import escape

import pandas as pd

from casebook import stacks, words
from casebook.cases.fetching.analysis import BETWEEN, CONCURRENT, SERIAL, verdict_of
from casebook.charts import tables
from casebook.charts.captions import Caption
from casebook.charts.figure import Chart, slug
from casebook.charts.multiples import stages_named
from casebook.charts.origins import origin
from casebook.charts.series import require_columns
from casebook.colours import choice_for, variable
from casebook.mistakes import for_readers

#: The order of the rows; others follow.
_ROWS = ("stage-0", "stage-1", "stage-2", "stage-2-injected", "stage-3", "stage-4")

#: Three requests over time, as a mark: one after the other, all together, partly together.
_MARKS = {
    SERIAL: ((0, 1, 6), (6, 6, 6), (12, 11, 6)),
    CONCURRENT: ((0, 1, 18), (0, 6, 18), (0, 11, 18)),
    BETWEEN: ((0, 1, 9), (4.5, 6, 9), (9, 11, 9)),
}


@for_readers
def verdict_matrix(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    *,
    title: str = "Verdicts by stage and Python",
    name: str = "",
) -> Chart:
    """Show a row per stage, a column per Python: verdict, concurrency, what was published.

    frame: runs (stack, n, effective_concurrency, verdict, source, measured_at) over HTTPS; a
    verdict is that of the best repeat at the largest n. published: published.verdicts(), with
    columns stack and published (`slow`, `fast`). Words and a mark tell verdicts apart, not
    colour alone. A stack whose own steps inject pyOpenSSL says so: today's requests no longer does
    that by itself.
    """
    require_columns(frame, "stack", "n", "effective_concurrency", "verdict")
    if "scheme" in frame:
        frame = frame[frame["scheme"] == "https"]
    publications = {} if published is None else published.set_index("stack")["published"].to_dict()
    names = {words.split_stack(stack): stack for stack in [*publications, *frame["stack"]]}
    pythons = [p for p in words.PYTHONS.values() if any(python == p for _, python in names)]
    by_hand = {entry.name for entry in stacks.load().values() if "inject" in entry.steps}
    rows, verdicts = [], {}
    for stage in sorted({stage for stage, _ in names}, key=lambda it: (it not in _ROWS, it)):
        cells = [tables.breakable(words.stack_label(stage)).replace("_", "_<wbr>")]
        cells[0] = cells[0].replace("+ ", "+\u00a0")
        for stack in (names.get((stage, python)) for python in pythons):
            runs = frame[frame["stack"] == stack]
            cells.append(_cell(runs, publications.get(stack), stack in by_hand))
            if stack and len(runs):
                verdicts[stack] = verdict_of(runs)
        rows.append(cells)
    finding = _finding(verdicts, publications)
    source = origin([frame] if published is None else [frame, published])
    clause = "“At a time”: the effective concurrency, n × delay / wall time."
    caption = Caption(title, finding=finding, clause=clause, source=source)
    titles = ["stage", *map(words.python_label, pythons)]
    html_table = tables.table(caption, titles, rows, kind="matrix")
    return Chart(
        slug(name or title), html_table.html, caption.alt, f"{caption.alt} {clause} {source}"
    )


def _cell(runs: pd.DataFrame, publication: str | None, by_hand: bool) -> str:
    if runs.empty:
        text = "not measured" if publication else "–"
        return text + _aside(publication and f"published: {publication}")
    verdict = verdict_of(runs)
    best = runs[runs["n"] == runs["n"].max()]["effective_concurrency"].max()
    cell = f'<span class="cb-verdict">{_mark(verdict)}{escape(verdict)}</span>'
    cell += _aside(f"{words.number(best, 2)} at a time")
    if by_hand:
        cell += _aside("injected by hand")
    if publication:
        agrees = words.PUBLISHED_VERDICTS.get(publication, publication) == verdict
        cell += _aside(f"published: {publication}{'' if agrees else ', different here'}")
    if "source" in runs and (runs["source"] == words.REFERENCE).all():
        cell += _aside("recorded")
    return cell


def _aside(text: str | None) -> str:
    if not text:
        return ""
    return f'<span class="cb-aside">{escape(text).replace("_", "_<wbr>")}</span>'


def _mark(verdict: str) -> str:
    bars = "".join(
        f'<rect x="{x}" y="{y}" width="{wide}" height="3.4"/>' for x, y, wide in _MARKS[verdict]
    )
    colour = escape(variable(choice_for("verdict", verdict)))
    return (
        f'<svg viewBox="0 0 18 15.4" aria-hidden="true"><g style="fill:{colour}">{bars}</g></svg>'
    )


def _finding(verdicts: dict[str, str], publications: dict[str, str]) -> str:
    """Count and name the stacks that are not concurrent, and count the verdicts as published."""
    exceptions = {stack: verdict for stack, verdict in verdicts.items() if verdict != CONCURRENT}
    text = f"{len(verdicts) - len(exceptions)} of {len(verdicts)} stacks are concurrent"
    for verdict in dict.fromkeys(exceptions.values()):
        text += f"; {verdict}: {stages_named(s for s, v in exceptions.items() if v == verdict)}"
    compared = [stack for stack in verdicts if stack in publications]
    if compared:
        agreeing = sum(
            words.PUBLISHED_VERDICTS.get(publications[stack]) == verdicts[stack]
            for stack in compared
        )
        text += f". {agreeing} of {len(compared)} verdicts are as published"
    return text + "."
