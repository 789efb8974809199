"""The emblem of the book: n against wall time, a panel for each Python, a line for each stage."""

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.figure import Figure

from casebook import words
from casebook.cases.fetching.analysis import verdicts
from casebook.charts.captions import Caption
from casebook.charts.curves import Limit, all_xs, panel
from casebook.charts.figure import HALF_WIDTH, Chart, chart
from casebook.charts.origins import origin
from casebook.charts.series import (
    Series,
    chart_data,
    gather,
    reading,
    require_columns,
    span,
    spans_a_decade,
)
from casebook.colours import ROLES, colour_of, name_or_spare
from casebook.errors import UsageError
from casebook.mistakes import for_readers

#: One delay for all requests, and one for each of n.
_LAWS: dict[str, Limit] = {"one delay": 1.0, "one for each": float}


@for_readers
def stages(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    *,
    title: str = "The stages, Python by Python",
    name: str = "",
) -> Chart:
    """Draw a panel for each Python: the wall time of n requests in delays, one line per stage.

    frame: runs of stacks named <stage>-<py27|py37|today>; those over plain HTTP (scheme
    `http`) are the control, drawn in grey. published: rows of published.series(), drawn
    hollow in the panel of their Python. The panels stand side by side, or one below the other on a
    phone, and share their scales. Each line has its label at its end. Raises UsageError for runs
    without a delay.
    """
    require_columns(frame, "stack", "n", "wall_s", "delay_s", "scheme", "verdict")
    if not (frame["delay_s"] > 0).all():
        raise UsageError("the stages are drawn in delays: leave out the runs without a delay")
    frames = [frame, frame[:0] if published is None else published]
    ours, theirs = map(_by_python, frames)
    panels = {
        python: _lines(ours, python) + _lines(theirs, python)
        for python in words.PYTHONS.values()
        if python in set(ours["on"])
    }
    all_series = [series for panel in panels.values() for series in panel]
    log = spans_a_decade(all_xs(all_series))
    delays = words.join(map(words.delay, sorted({*pd.concat(frames)["delay_s"]})))
    caption = Caption(
        title,
        finding=_finding(ours, theirs, list(panels)),
        clause=f"Dotted: one delay ({delays}), and one delay for each request."
        + " Both scales are logarithmic." * log,
        reading=reading(
            "A line for each stage through the medians, a dot for each run", all_series
        ),
        source=origin(frames),
    )
    further = [f"The panel of {words.python_label(python)}." for python in list(panels)[1:]]
    return chart(
        name,
        _drawings(panels, log),
        caption,
        alts=[caption.alt, *further],
        data=chart_data(pd.concat(frames), "stack", "scheme", "n", "delay_s", "wall_s", "verdict"),
    )


def stages_named(stacks: Iterable[str]) -> str:
    """Name stacks by stage: "+ pyOpenSSL (Python 2.7, Python 3.7) and + recv_into (today)"."""
    names = map(words.split_stack, stacks)
    pythons = words.grouped((words.stack_label(s), words.python_label(p)) for s, p in names)
    return words.join(f"{stage} ({', '.join(labels)})" for stage, labels in pythons.items())


def _by_python(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs in delays, with the stage of each (`stage`) and its Python (`on`)."""
    names = [words.split_stack(stack) for stack in frame["stack"]]
    return frame.assign(
        wall_s=frame["wall_s"] / frame["delay_s"],
        stage=[stage for stage, _ in names],
        on=[python for _, python in names],
    )


class _StageLine(Series):
    """The line of a stage in the panel of its Python, labelled with as much as that leaves out."""

    @property
    def label(self) -> str:
        if self.source == words.PUBLISHED:
            return words.PUBLISHED
        name = "plain HTTP" if self.colour == ROLES["other"] else self.name.split(",")[0]
        return name if self.source == words.LIVE else f"{name}, {self.source}"


def _lines(frame: pd.DataFrame, python: str) -> list[Series]:
    """Return the lines of one Python, each in the colour of its stack: here they are told apart."""
    rows = frame[frame["on"] == python].sort_values("stage", kind="stable")
    if rows.empty:
        return []
    of_stacks = [name_or_spare(colour_of(stack)) for stack in rows["stack"]]
    rows = rows.assign(colour=of_stacks)
    rows.loc[rows["scheme"] == "http", "colour"] = ROLES["other"]
    return [_StageLine(**vars(line)) for line in gather(rows)]


def _drawings(panels: dict[str, list[Series]], log: bool) -> list[Figure]:
    """Draw a panel for each Python, all on the same scales."""
    every_line = [line for lines in panels.values() for line in lines]
    return [
        panel(
            # The control lies below the others.
            sorted(lines, key=lambda line: line.colour != ROLES["other"]),
            _LAWS,
            titles=("requests (n)", "wall time, in delays"),
            logs=(log, log),
            width=HALF_WIDTH,
            heading=words.capital(words.python_label(python)),
            scaled_for=every_line,
            widths=_widths(lines),
        )
        for python, lines in panels.items()
    ]


def _widths(lines: Sequence[Series]) -> dict[Series, float]:
    """Return the widths of lines that end at the same place: the lower ones show at the edges."""
    ours = [s for s in lines if s.source != words.PUBLISHED and s.colour != ROLES["other"]]
    widths = {}
    for i, line in enumerate(ours):
        above = [s for s in ours[i + 1 :] if 0.8 < s.medians[-1] / line.medians[-1] < 1.25]
        widths[line] = 1.8 + 1.4 * len(above)
    return widths


def _finding(ours: pd.DataFrame, theirs: pd.DataFrame, pythons: Sequence[str]) -> str:
    """Name the stages by verdict, and what they take at the largest n that all of them have."""
    https = ours[ours["scheme"] == "https"]
    by_stack = verdicts(https)
    shared = set.intersection(*(set(part["n"]) for _, part in https.groupby("stack")))
    sentences = []
    for verdict in sorted(set(by_stack), reverse=True):  # serial first
        stacks = by_stack.index[by_stack == verdict]
        text = f"{words.capital(verdict)}: {stages_named(sorted(stacks, key=words.split_stack))}"
        if shared:
            at_n = https[https["stack"].isin(stacks) & (https["n"] == max(shared))]["wall_s"]
            text += f": {span(at_n)} delays at n = {max(shared)}"
        sentences.append(text)
    control = ours[ours["scheme"] == "http"]
    if len(control):
        n = control["n"].max()
        slowest = control[control["n"] == n]["wall_s"].max()
        sentences.append(
            f"Over plain HTTP the slowest takes {words.number(slowest)} delays at n = {n}"
        )
    for python in pythons:
        rows = theirs[theirs["on"] == python]
        if len(rows):
            last = rows.sort_values("n").iloc[-1]
            delays = f"{words.number(last['wall_s'])} delays at n = {last['n']}"
            sentences.append(f"Published for a laptop, {words.python_label(python)}: {delays}")
    return ". ".join(sentences) + "."
