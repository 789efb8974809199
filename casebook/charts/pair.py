"""A fast run and a slow one of the same requests, one above the other, with what each took.

It needs no vocabulary: a row for each request, pale until it is sent, full until its reply is here.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from casebook import words
from casebook.charts import figure as page
from casebook.charts.captions import Caption
from casebook.charts.figure import Chart, key_mark, level_axis, place
from casebook.charts.origins import origin_of
from casebook.colours import ROLES, sentinel
from casebook.errors import UsageError
from casebook.mistakes import for_readers

#: The colours of the runs, fast and slow; a row's height, and of a drawing's parts, in points.
_COLOURS = ROLES["fast"], ROLES["slow"]
_ROW, _HEAD, _FOOT = 9, 26, 34
#: How pale a request is that has not been sent.
_PALE = 0.25
_BAR = '<rect x="1" y="3" width="24" height="10"{}/>'


@for_readers
def pair(runs: Mapping[str, Any], *, title: str, name: str = "") -> Chart:
    """Draw two runs of the same requests, the fast one first, on one scale of time.

    runs: label -> an Observation of kind `timeline`. Raises UsageError if there are not two.
    """
    if len(runs) != 2:
        raise UsageError(f"runs is {len(runs)} of them; give two, the fast one first")
    spans = {label: _spans(run.frame) for label, run in runs.items()}
    end_s = max(span["end_s"].max() for span in spans.values())
    height = sum(_HEAD + _ROW * len(span) for span in spans.values()) + _FOOT
    with page.drawing(page.WIDTH, height) as figure:
        top = 0
        for (label, span), colour in zip(spans.items(), _COLOURS, strict=True):
            axes = figure.add_axes((0, 0, 1, 1))
            bottom = height - top - _HEAD - _ROW * len(span)
            place(axes, 4, bottom, 8, top + _HEAD)
            text: dict[str, Any] = {
                "fontsize": page.TEXT,
                "va": "bottom",
                "y": 1 - (top + _HEAD - 4) / height,
            }
            top += _HEAD + _ROW * len(span)
            figure.text(0, s=words.capital(label), **text)
            took = f"{words.seconds(span['end_s'].max())} for all {len(span)}"
            figure.text(1, s=took, fontweight="bold", ha="right", color=sentinel(colour), **text)
            _rows(axes, span, colour, end_s)
            if bottom > _FOOT:
                axes.spines["bottom"].set_visible(False)
                axes.tick_params(labelbottom=False, length=0)
        axes.set_xlabel("time since the start, s", fontsize=page.SMALL)
    grey = "control"
    alts = [f"{words.capital(label)}: {_describe(span)}" for label, span in spans.items()]
    return page.chart(
        name,
        figure,
        Caption(
            title,
            finding=" ".join(alts),
            clause="One row per request.",
            source=origin_of(*runs.values()),
        ),
        data=pd.concat([span.assign(run=label) for label, span in spans.items()]),
        key=[
            (key_mark(_BAR.format(f' fill-opacity="{_PALE}"'), grey), "not sent yet"),
            (key_mark(_BAR.format(""), grey), "sent, and waiting for its reply"),
        ],
    )


def _spans(frame: pd.DataFrame) -> pd.DataFrame:
    """Return when each request was sent and when its reply was here, in the order of replies."""
    sent = frame[frame["event"] == "send"].groupby("page")["start_s"].min()
    end = frame[frame["event"] == "receive"].groupby("page")["end_s"].max()
    spans = pd.DataFrame({"sent_s": sent, "end_s": end}).reset_index()
    return spans.sort_values("end_s", ignore_index=True)


def _describe(spans: pd.DataFrame) -> str:
    """Describe a run, counted."""
    early = int((spans["sent_s"] < spans["end_s"].min()).sum())
    return (
        f"{len(spans)} requests in {words.seconds(spans['end_s'].max())}; {early} of them had been "
        "sent before the first reply was here."
    )


def _rows(axes: Axes, spans: pd.DataFrame, colour: str, end_s: float) -> None:
    rows, fill = list(spans.index), sentinel(colour)
    axes.barh(rows, spans["sent_s"], 0.72, color=fill, alpha=_PALE, lw=0)
    axes.barh(rows, spans["end_s"] - spans["sent_s"], 0.72, spans["sent_s"], color=fill, lw=0)
    level_axis(axes)
    axes.set_xlim(0, end_s * 1.01)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks([])
