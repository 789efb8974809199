"""The calculator: a visit's time by the model, and what was measured, to be set by a reader.

A reader sets distance, body, books and loss with casebook/charts/calculator.js, which comes with
the picture, so that it works in the book, from a folder and in JupyterLab. Without it, the picture
shows the setting of which most was measured.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from casebook import words
from casebook.cases.bookstore.line import model
from casebook.cases.bookstore.line.situations import SMALL, placed
from casebook.charts import figure as page
from casebook.charts.captions import Caption
from casebook.charts.figure import Chart, key_mark
from casebook.charts.origins import origin
from casebook.charts.series import chart_data, require_columns
from casebook.colours import choice_for, sentinel, style
from casebook.errors import UsageError
from casebook.mistakes import for_readers

_JS = Path(__file__).with_suffix(".js")

#: What the sliders can be set to: ms each way, bytes of a book, books, and the share that is lost.
DISTANCES = (0.5, 1, 2, 4, 7, 10, 20, 35, 70, 150)
BODIES = (SMALL, 1_000, 3_000, 10_000, 27_000, 100_000)
BOOKS = (1, 3, 7, 13, 30, 60, 100, 200)
LOSSES = (0.0, 0.001, 0.005, 0.01, 0.02)

#: What is written at a line's end, in the order of model.WAYS.
_SHORT = ("one", "six", "one each", "streams", "wide")
#: How the list below the picture calls them.
_NAMES = (
    "one connection", "six connections", "a connection for each book",
    "streams with the client's own window", "streams with a wide window",
)  # fmt: skip
#: This one is dashed: where it lies on another line, both are seen.
_DASHED = list(model.WAYS)[-1]

_NEEDED = (
    *("client", "connections", "window_bytes", "n", "body_bytes", "latency_ms", "lose"),
    *("at_once", "congestion", "wall_s", "source"),
)


@for_readers
def calculator(
    visits: pd.DataFrame,
    *,
    title: str = "What takes how long, and where",
    name: str = "calculator",
    bodies: Sequence[int] = BODIES,
    losses: Sequence[float] = LOSSES,
    ways: Sequence[str] = tuple(model.WAYS),
) -> Chart:
    """Draw the model for some of its WAYS at any setting, with the medians of measured visits.

    The visits are those that were made at such a setting.

    visits: as bookstore.line.visit returns them. Left out are those of other ways, those whose
    losses are not a share of all packets, and those not with reno. Raises UsageError if none is
    left. bodies, losses: what a reader can choose; if that is one value, it has no slider.
    """
    require_columns(visits, *_NEEDED)
    rows = placed(visits)
    rows = rows[rows["way"].isin(ways) & rows["body"].isin(bodies) & rows["loss"].isin(losses)]
    if rows.empty:
        raise UsageError("none of these visits was made in a way that the model knows")
    settings = rows.groupby(["n", "body", "loss"])["latency_ms"].agg(["nunique", "size"])
    least_lossy = settings[settings.index.get_level_values("loss") == rows["loss"].min()]
    n, body, loss = least_lossy.sort_values(["nunique", "size"]).index[-1]
    first = {"n": int(n), "body": int(body), "loss": float(loss)}
    first["ms"] = float(rows[_is(rows, first)]["latency_ms"].max())
    picture = page.chart(
        name,
        _drawing(rows[_is(rows, first)], first, ways),
        Caption(
            title,
            finding=_describe(first, ways),
            clause="The lines are the model: the time on the way, without any computing. A dot is "
            "the median of what was measured there.",
            reading="A stroke goes from the smallest to the largest; what is above its line, "
            "where nothing is lost, is computing. Logarithmic: both scales.",
            source=origin(rows),
        ),
        data=chart_data(rows, "way", "latency_ms", "n", "body", "loss", "wall_s"),
        key=[
            (key_mark('<rect y="6" width="26" height="4"/>', way["colour"]), way["name"])
            for way in _as_data(ways)
        ],
    )
    told = as_data(rows, first, ways) | {"bodies": bodies, "losses": losses}
    data = json.dumps(told, separators=(",", ":")).replace("</", "<\\/")
    scripts = (
        f'<script type="application/json">{data}</script>'
        f"<script>{_JS.read_text(encoding='utf-8')}</script></figure>"
    )
    html = picture.html.replace("cb-figure", "cb-figure cb-calculator", 1)
    html = html.replace(style("figure"), style("figure", "calculator"))
    return replace(picture, html=html.removesuffix("</figure>") + scripts)


def as_data(rows: pd.DataFrame, first: dict[str, Any], ways: Sequence[str]) -> dict[str, Any]:
    """Return the input of calculator.js, but for the bodies and losses.

    That is the ways, the sliders' values, the first setting, and points, each [number of the way,
    ms each way, n, body, loss, median, smallest, largest, runs].
    """
    keys = [*("way", "latency_ms", "n", "body", "loss")]
    labels = list(ways)
    points = [
        [
            labels.index(label),
            ms,
            n,
            body,
            loss,
            *(round(f(walls), 4) for f in _FIGURES),
            len(walls),
        ]
        for (label, ms, n, body, loss), walls in rows.groupby(keys, sort=False)["wall_s"]
    ]
    return {
        "ways": _as_data(ways),
        "distances": DISTANCES,
        "books": BOOKS,
        "draws": model.DRAWS,
        "first": first,
        "points": points,
    }


_FIGURES = statistics.median, min, max


def _as_data(ways: Sequence[str]) -> list[dict[str, Any]]:
    """Return what calculator.js has to know of some ways.

    Only one kind of streams needs no word on its window.
    """
    named = zip(model.WAYS.items(), _NAMES, _SHORT, strict=True)
    return [
        {
            "name": name if _DASHED in ways else name.partition(" with ")[0],
            "short": short,
            "colour": choice_for("way", way),
        }
        | {"connections": connections, "window": window, "dashed": way == _DASHED}
        for (way, (connections, window)), name, short in named
        if way in ways
    ]


def by_model(label: str, ms: float, n: int, body: int, loss: float) -> tuple[float, float, float]:
    """Compute seconds by the model: the median of DRAWS lots, and the middle eight tenths' ends.

    All three are the same number if nothing is lost.
    """
    return model.spread(label, n, body, ms / 500, loss)


def _is(rows: pd.DataFrame, setting: dict[str, Any]) -> pd.Series:
    """Return which rows are of a setting, at any distance."""
    matches = [rows[name].eq(setting[name]) for name in ("n", "body", "loss")]
    return matches[0] & matches[1] & matches[2]


def _describe(setting: dict[str, Any], ways: Sequence[str]) -> str:
    """Return what the model says of a setting, in a sentence."""
    ms, rest = setting["ms"], {name: setting[name] for name in ("n", "body", "loss")}
    durations = sorted((by_model(label, ms, **rest)[0], label) for label in ways)
    figures = "; ".join(f"{label} {words.seconds(s)}" for s, label in durations)
    size = f"{rest['body'] / 1000:.3g} kB"
    loss = f", {100 * rest['loss']:g} % of the packets lost" if rest["loss"] else ""
    return f"By the model, {rest['n']} books of {size} from {ms:g} ms away{loss}: {figures}."


def _drawing(rows: pd.DataFrame, setting: dict[str, Any], ways: Sequence[str]) -> Figure:
    rest = {name: setting[name] for name in ("n", "body", "loss")}
    rows = rows.assign(trips=rows["wall_s"] / (rows["latency_ms"] / 500))
    with page.drawing(page.WIDTH, 262) as figure:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        ys = list(rows["trips"])
        for i, name_of_way in enumerate(ways):
            colour = choice_for("way", name_of_way)
            linestyle = (0, (5, 4)) if name_of_way == _DASHED else "-"
            # In round trips the lines are level if nothing is lost, and apart.
            trips = [by_model(name_of_way, ms, **rest)[0] / (ms / 500) for ms in DISTANCES]
            axes.plot(DISTANCES, trips, color=sentinel(colour), linewidth=1.6, linestyle=linestyle)
            ys += trips
            groups = rows[rows["way"] == name_of_way].groupby("latency_ms")["trips"]
            spread = groups.agg(["median", "min", "max"]).reset_index()
            xs = list(spread["latency_ms"] * 1.05 ** (i - 2))  # side by side
            axes.vlines(xs, spread["min"], spread["max"], color=sentinel(colour), linewidth=1.2)
            style = {"marker": "o", "markersize": 6, "source": rows["source"].iloc[0]}
            page.marks(axes, xs, list(spread["median"]), colour, **style)
        low, high = min(ys) / 1.2, max(ys) * 1.2
        axes.set_xlim(DISTANCES[0] / 1.1, DISTANCES[-1] * 1.1)
        axes.set_ylim(low, high)
        axes.grid(True)
        page.set_ticks(axes.xaxis, [0.5, 1, 4, 10, 35, 150])
        page.set_ticks(axes.yaxis, _ticks(low, high))
        axes.set_xlabel("latency each way, ms", fontsize=page.TEXT)
        heading = "wall time, in round trips"
        figure.text(2 / page.WIDTH, 1, heading, fontsize=page.TEXT, va="top")
        numbers = (label.get_window_extent().width for label in axes.get_yticklabels())
        page.place(axes, 6 + max(numbers, default=0), 36, 12, 24)
    return figure


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers of round trips, closer together than on a scale of several decades."""
    steps = [m * 10.0**e for e in range(5) for m in (1, 2, 3, 5, 7)]
    ticks = [step for step in steps if low <= step <= high]
    return ticks if len(ticks) <= 9 else page.decades(low, high, 9)
