"""How long n requests take, one line per stack."""

from collections.abc import Callable, Sequence

import pandas as pd

from casebook import words
from casebook.charts.figure import Chart, chart
from casebook.charts.lines import all_xs, panel, reading, spans_a_decade
from casebook.charts.origins import origin
from casebook.charts.series import Series, columns, gather, spread


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
    shown = [_in_delays(part) if per_delay else part for part in rows]
    lines = [series for part in shown for series in gather(part, by)]
    unit = 1.0 if not per_delay else float(frame["delay_s"].iloc[0])
    guides: dict[str, Callable] = {}
    if limit_s is not None:
        text = "one delay" if per_delay else f"one delay, {words.delay(limit_s)}"
        guides[text] = lambda n: limit_s / unit
    if expected is not None:
        law = expected if callable(expected) else lambda n: n * expected
        guides[expected_label] = lambda n: law(n) / unit
    log = spans_a_decade(all_xs(lines))
    drawn = panel(
        lines,
        guides,
        x_title="requests (n)",
        y_title="wall time, in delays" if per_delay else "wall time, s",
        log_x=log,
        log_y=log,
    )
    return chart(
        name,
        drawn,
        title=title,
        finding=_finding(lines, limit_s, per_delay),
        reading=reading(lines, log, log)
        + (f"; one delay: {words.join(map(words.delay, delays))}." if per_delay else "."),
        source=origin(rows),
    )


def _in_delays(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(wall_s=frame["wall_s"] / frame["delay_s"])


def _finding(lines: Sequence[Series], limit_s: float | None, per_delay: bool) -> str:
    n = min(max(series.xs) for series in lines)
    at = [(s, s.xs.index(n)) for s in lines if n in s.xs]
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
