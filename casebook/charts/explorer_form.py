"""The explorer of chapter 4: its data, its first picture, and the labels of its choices.

The page draws it with book/_static/explorer.js; without JavaScript the first picture stays.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from casebook import stacks, words
from casebook.cases.fetching import explorer as case
from casebook.charts.figure import Chart
from casebook.charts.origins import day, moment
from casebook.charts.timelines import STALL_S, timeline
from casebook.mistakes import for_readers

NAME = "explorer"

#: The choices: label, text beside it, what it needs, and what to say if that is missing.
_PARTS = {
    "pyopenssl": ("pyOpenSSL", "the package is installed; the script does not name it"),
    "gevent_openssl": (
        *("gevent_openssl", "pyOpenSSL for programs with gevent"),
        *("pyopenssl", "there is no pyOpenSSL for it to work on"),
    ),
    "recv_into": (
        *("its patch", "a few lines that gevent_openssl lacks"),
        *("gevent_openssl", "there is no gevent_openssl to add it to"),
    ),
    "injected": (
        *("injected by hand", "the script tells urllib3 to use it: inject_into_urllib3()"),
        *("pyopenssl", "there is no pyOpenSSL to inject"),
    ),
}

#: The guided tour: what to choose next. Each step uncovers what it names.
_STEPS = (
    ("2.7", "https", "pyopenssl"),
    ("2.7", "http", "pyopenssl"),
    ("2.7", "https", "pyopenssl+gevent_openssl"),
    ("3.7", "https", "pyopenssl+gevent_openssl"),
    ("3.7", "https", "pyopenssl+gevent_openssl+recv_into"),
    ("today", "https", "pyopenssl"),
    ("today", "https", "pyopenssl+injected"),
)


@for_readers
def explorer(timelines: Sequence[case.Timeline]) -> Chart:
    """Draw the explorer of some timelines (casebook.cases.fetching.explorer.timelines).

    A notebook shows the first picture; the book includes all of it by its name, "explorer".
    """
    by_key = {key_of(run): run for run in timelines}
    first = [by_key[key] for key in ("2.7||https|10", "2.7|pyopenssl|https|10") if key in by_key]
    names = ("grequests alone", "pyOpenSSL is installed too")
    picture = timeline(
        dict(zip(names, first or timelines[:1], strict=False)),
        title="Ten requests of the same script over HTTPS, on Python 2.7",
        name="explorer-still",
    )
    data = json.dumps(as_data(timelines), separators=(",", ":")).replace("</", "<\\/")
    html = (
        f'<div class="cb explorer" id="{NAME}">{picture.html}</div>\n'
        f"<script>window.casebookExplorer={data};</script>\n"
        '<p class="explorer-more"><a href="../notebooks/a_explorer.html">'
        "What was measured for this picture</a></p>\n"
    )
    return replace(picture, name=NAME, page_html=html)


def as_data(timelines: Sequence[case.Timeline]) -> dict[str, Any]:
    """Return the input of explorer.js: the choices, the reasons against some, and the timelines.

    runs: "2.7|pyopenssl+gevent_openssl|https|10" -> rows, beats and wall in ms, verdict, most
    (waiting at once), origin (where, when and on which Python, a sentence), says (the source's
    verdict, or nothing).
    """
    # On which Pythons nobody has to inject by hand, and why.
    refused = {
        python: f"on this Python requests {stacks.get(name).packages['requests']} injects "
        "whatever pyOpenSSL it finds"
        for python, name in (("2.7", "stage-2-py27"), ("3.7", "stage-2-py37"))
    }
    keys = "label", "about", "needs", "without"
    return {
        "delay": round(1000 * case.DELAY_S),
        "stall": round(1000 * STALL_S),
        "pythons": list(case.PYTHONS),
        "schemes": list(case.SCHEMES),
        "sizes": list(case.SIZES),
        "parts": [
            {"id": part, **dict(zip(keys, texts, strict=False))}
            | {"refused": refused if part == "injected" else {}}
            for part, texts in _PARTS.items()
        ],
        "order": list(case.PARTS),
        "steps": [
            {"python": python, "scheme": scheme, "parts": parts.split("+")}
            for python, scheme, parts in _STEPS
        ],
        "runs": {key_of(run): _run(run) for run in timelines},
    }


def key_of(run: case.Timeline) -> str:
    """Return the key of a timeline in the explorer: python, parts, scheme and n."""
    chosen = run.combination
    return f"{chosen.python}|{'+'.join(chosen.parts)}|{run.scheme}|{run.n}"


def _run(run: case.Timeline) -> dict[str, Any]:
    if run.source == words.LIVE:
        place = (
            words.machine() if words.is_from_machine_file() else "the machine that made this page"
        )
        origin = f"Measured on {place}, {moment(run.measured_at)}, on Python {run.version}."
    else:
        origin = f"Recorded on the reference machine, {day(run.measured_at)}, on Python "
        origin += f"{run.version}; not measured now."
    return {
        "rows": run.requests,
        "beats": run.heartbeats_ms,
        "wall": round(1000 * run.wall_s, 1),
        "verdict": run.verdict,
        "most": run.peak_waiting,
        "origin": origin,
        "says": run.published,
    }
