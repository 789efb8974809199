"""How long n requests take, one line per stack."""

from collections.abc import Callable, Sequence

import pandas as pd

from casebook import words
from casebook.charts import labels as end_labels
from casebook.charts.figure import TEXT, WIDTH, Chart, chart, drawing, place, tick_room
from casebook.charts.lines import draw, draw_guide, set_axes, spans_a_decade
from casebook.charts.series import Series, columns, gather, spread

_READING = {
    words.LIVE: "each run a dot, the line through the medians, the band from fastest to slowest",
    words.REFERENCE: "half-filled dots: the reference machine",
    words.PUBLISHED: "hollow dots and dashes: published",
}


def n_against_wall(
    frame: pd.DataFrame,
    published: pd.DataFrame | None = None,
    by: str | Sequence[str] = "stack",
    title: str = "Wall time against the number of requests",
    limit_s: float | None = None,
    expected: float | Callable[[float], float] | None = None,
    expected_label: str = "n × (delay + handshake)",
    name: str = "",
) -> Chart:
    """The wall time of n requests, one line per stack.

    frame: runs (stack, client, n, delay_s, wall_s, source, measured_at); plain HTTP is grey.
    published: rows of published.series(). Where its delay is not the runs' own, both are
    shown in delays instead of seconds. by: what names a line. limit_s: the delay, which no
    concurrent run can beat. expected: seconds per request, or seconds as a function of n.
    Both axes are logarithmic where n spans a decade or more.
    """
    columns(frame, "stack", "n", "wall_s", "delay_s")
    rows = [frame] if published is None else [frame, published]
    delays = sorted({float(d) for part in rows for d in part["delay_s"].dropna()})
    per_delay = len(delays) > 1
    lines = [series for part in rows for series in gather(part, by, per_delay)]
    unit = 1.0 if not per_delay else float(frame["delay_s"].iloc[0])
    guides = []
    if limit_s is not None:
        text = "one delay" if per_delay else f"one delay, {words.delay(limit_s)}"
        guides.append((text, lambda n: limit_s / unit))
    if expected is not None:
        law = expected if callable(expected) else lambda n: n * expected
        guides.append((expected_label, lambda n: law(n) / unit))
    log = spans_a_decade(lines)
    with drawing(WIDTH, 262 + 12 * max(0, len(lines) - 5)) as figure:
        axes = figure.add_subplot()
        set_axes(axes, lines, [law for _, law in guides], log)
        figure.text(
            2 / WIDTH,
            1,
            "wall time, in delays" if per_delay else "wall time, s",
            fontsize=TEXT,
            va="top",
        )
        axes.set_xlabel("requests (n)", fontsize=TEXT)
        ends = [draw_guide(axes, text, law, lines) for text, law in guides]
        ends += [draw(axes, series) for series in lines]
        margin = end_labels.room(figure, ends)
        place(axes, tick_room(axes), 36, margin, 24)
        end_labels.draw(axes, ends)
    return chart(
        name,
        figure,
        title=title,
        finding=_finding(lines, limit_s, per_delay),
        reading=_reading(lines, per_delay, delays, log),
        source=words.provenance(rows),
    )


def _finding(lines: Sequence[Series], limit_s: float | None, per_delay: bool) -> str:
    n = min(max(series.ns) for series in lines)
    at = [(s, s.ns.index(n)) for s in lines if n in s.ns]
    unit = "delays" if per_delay else "s"
    shown = "; ".join(f"{series.label} {spread(series, i, unit)}" for series, i in at)
    sentences = [f"At n = {n}: {shown}."]
    ours = sorted(
        (s.medians[i], s.label)
        for s, i in at
        if s.source != words.PUBLISHED and s.colour != "control"
    )
    if len(ours) > 1 and ours[-1][0] >= 1.5 * ours[0][0]:
        (fast, fastest), (slow, slowest) = ours[0], ours[-1]
        sentences.append(
            f"{words.capital(slowest)} takes {words.times(slow / fast)} as long as {fastest}."
        )
    if limit_s is not None and not per_delay:
        sentences.append(f"One delay is {words.delay(limit_s)}.")
    return " ".join(sentences)


def _reading(lines, per_delay: bool, delays: Sequence[float], log: bool) -> str:
    sources = dict.fromkeys([words.LIVE, *(series.source for series in lines)])
    text = words.capital("; ".join(_READING[source] for source in sources))
    text += "; grey: plain HTTP" if any(s.colour == "control" for s in lines) else ""
    text += "; both axes logarithmic" if log else ""
    if per_delay:
        text += f"; one delay: {words.join(map(words.delay, delays))}"
    return text + "."
