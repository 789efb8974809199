"""Who holds the thread: the turns of some observed runs, to step through, line by line.

A reader steps through them with casebook/charts/turn_stepper.js, which comes with the picture, so
that it works in the book, from a folder and in JupyterLab. It begins at the end, plays from the
first turn, and draws a run as far as it has been stepped through. Without it, each run is drawn
whole and shows its deciding moment: the longest wait.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import stacks, words
from casebook.cases.fetching import turns as its_turns
from casebook.cases.fetching.observations import Observation
from casebook.cases.fetching.turns import KEEPS, LOOP, RUNS, SCRIPT, WATCHES
from casebook.charts import listings, quotes
from casebook.charts.figure import Chart, slug
from casebook.charts.origins import origin_of
from casebook.charts.quotes import Quote
from casebook.colours import style
from casebook.errors import EnvironmentFailed, MissingInterpreter
from casebook.mistakes import for_readers
from casebook.stacks import environments

#: Shorter turns are no steps: reading the clock takes as long.
_SHORTEST_S = 0.0002

_JS = Path(__file__).with_suffix(".js")

#: What a row does, in the words of the picture. The keys are those of turn_stepper.js.
_STATES = {
    "not": "not begun",
    RUNS: "has the thread",
    KEEPS: "keeps the thread",
    WATCHES: "has the thread",
    "own": "waits in a thread of its own",
    "waits": "waits for its turn",
    "held": "cannot go on: the loop cannot wake it",
    "watched": "the loop will wake it",
    "loop": "cannot look at any socket",
    "done": "done",
    "idle": "has nothing left to do",
}


@for_readers
def turns(
    runs: Mapping[str, Observation], *, title: str = "Who holds the thread", name: str = ""
) -> Chart:
    """Draw the turns of some runs, one run at a time.

    runs: label of a choice -> an Observation of kind `turns` with a few requests. Each line of code
    is read from the packages that the stack has installed here; if its Python is missing, only the
    number of the line is shown.
    """
    panels = [_Run(label, observation) for label, observation in runs.items()]
    # One scale for all: a longer run looks longer.
    end_s = max(run.end_s for run in panels)
    contents = {
        "states": _STATES,
        "end": round(1000 * end_s, 2),
        "runs": [run.as_data([other for other in panels if other is not run]) for run in panels],
    }
    data = json.dumps(contents, separators=(",", ":")).replace("</", "<\\/")
    name = slug(name or title)
    finding = " ".join(run.finding() for run in panels[:2])
    threads_note = (
        "" if all(run.has_loop for run in panels) else ", or a request in a thread of its own"
    )
    line = "line of code is" if any(run.has_code for run in panels) else "file and the line are"
    reading = (
        f"A row for each request, and one for the event loop; all runs have the same scale of "
        f"time. The {line} where a row let go of the thread, or waits. Turns under a fifth of a "
        "millisecond are left out: in such a moment the loop passes the thread to the next on its "
        "list."
    )
    key = "".join(
        f'<li><i class="tn-{does}"></i>{meaning}</li>'
        for does, meaning in (
            (RUNS, "has the thread and runs"),
            (KEEPS, "keeps it, and waits for one socket"),
            (WATCHES, f"the loop waits for all sockets{threads_note}"),
            ("held", "waits, and nobody can wake it"),
            ("watched", "waits, and the loop will wake it"),
        )
    )
    source = origin_of(*(run.observation for run in panels))
    body = "".join(run.html(end_s) for run in panels)
    html = (
        f'<figure class="cb cb-figure cb-turns" id="figure-{name}">{style("figure", "turns")}'
        f'<ul class="cb-key">{key}</ul>{body}<figcaption><p class="cb-title">{escape(title)}.</p>'
        f'<p class="cb-finding-text">{escape(finding)}</p>'
        f'<p class="cb-source">{escape(f"{source} {reading}")}</p></figcaption>'
        f'<script type="application/json">{data}</script>'
        f"<script>{_JS.read_text(encoding='utf-8')}</script></figure>"
    )
    quoted = tuple(quote for run in panels for quote in run.quotes)
    caption = f"{title}. {finding} {source} {reading}"
    return Chart(name, html, f"{title}. {finding}", caption, quotes=quoted)


class _Run:
    """One run: its rows, its steps, and a description of each."""

    def __init__(self, label: str, observation: Observation):
        self.label, self.observation = label, observation
        self.turns = its_turns.turns_of(observation.frame)
        self.has_loop = bool((observation.frame["event"] == "switch").any())
        self.end_s = float(observation.frame["t_s"].max())
        requests = sorted(set(self.turns["greenlet"]) - {SCRIPT, LOOP})
        self.rows = [*requests, LOOP] if self.has_loop else requests
        # The script waits for its requests from the first turn to the last.
        self.turns = self.turns[self.turns["greenlet"].isin(self.rows)].reset_index(drop=True)
        lasts_s = self.turns["end_s"] - self.turns["start_s"]
        self.steps = self.turns[lasts_s >= _SHORTEST_S]
        self._last = self.turns.groupby("greenlet")["end_s"].max()
        self._first = self.turns.groupby("greenlet")["start_s"].min()
        self._lines, self.quotes = _code(observation, self.turns)
        self.has_code = any(code for _, code in self._lines)

    @property
    def deciding(self) -> int:
        """Return the number of the first step that waits about as long as any."""
        waits = self.steps[self.steps["does"] != RUNS]
        waits = waits if len(waits) else self.steps
        lasts_s = waits["end_s"] - waits["start_s"]
        return int(lasts_s.index[lasts_s >= 0.7 * lasts_s.max()][0])

    def state(self, row: int, step: int) -> str:
        """Return what a row does during a step: a key of _STATES."""
        turn = self.steps.loc[step]
        middle_s = (turn["start_s"] + turn["end_s"]) / 2
        if turn["greenlet"] == row:
            return "own" if turn["does"] == KEEPS and not self.has_loop else str(turn["does"])
        if not self.has_loop:
            row_steps = self.steps[self.steps["greenlet"] == row]
            current = row_steps[
                (row_steps["start_s"] <= middle_s) & (middle_s < row_steps["end_s"])
            ]
            if len(current):
                return "own" if current["does"].iloc[0] == KEEPS else RUNS
        if row == LOOP:
            return "loop" if turn["does"] == KEEPS else "waits"
        if middle_s < self._first[row]:
            return "not"
        if middle_s > self._last[row]:
            return "done"
        return {WATCHES: "watched", KEEPS: "held"}.get(turn["does"], "waits")

    def place(self, row: int, step: int) -> int:
        """Return the turn whose line a row is at during a step; -1 if before or after all."""
        middle_s = self.steps.loc[step, ["start_s", "end_s"]].mean()
        row_turns = self.turns[
            (self.turns["greenlet"] == row) & (self.turns["start_s"] <= middle_s)
        ]
        if (
            row_turns.empty
            or self.state(row, step) in ("not", "done")
            or not row_turns["file"].iloc[-1]
        ):
            return -1
        return int(row_turns.index[-1])

    def describe_step(self, step: int) -> str:
        """Say what happens in a step, in a sentence or two."""
        turn = self.steps.loc[step]
        ms = 1000 * (turn["end_s"] - turn["start_s"])
        time = f"{ms:.0f} ms" if ms >= 1 else f"{ms:.1f} ms"
        name = self.name(int(turn["greenlet"]))
        waiting = sum(self.state(row, step) in ("held", "watched") for row in self.rows[:-1])
        if not self.has_loop:
            at_once = sum(self.state(row, step) == "own" for row in self.rows)
            does = "waits" if turn["does"] == KEEPS else "runs"
            return (
                f"{words.capital(name)} {does} for {time}, in a thread of its own. "
                f"Requests that wait at this moment: {at_once}."
            )
        if turn["does"] == WATCHES:
            return (
                f"The loop has the thread for {time}, and waits for all {waiting} requests at once."
            )
        if turn["does"] == KEEPS:
            rest = "The loop, and all others, have to wait." if waiting else "The loop has to wait."
            return (
                f"{words.capital(name)} keeps the thread for {time}: {turn['function']} asks the "
                f"operating system to wait for this one socket. {rest}"
            )
        if not turn["file"]:
            return f"{words.capital(name)} has the thread for {time}, reads its reply, and is done."
        later = self.turns.loc[step + 1 :]
        if len(later) and (later.iloc[0][["greenlet", "does"]] == [turn["greenlet"], KEEPS]).all():
            calls = later.iloc[0]["function"]
            return f"{words.capital(name)} runs for {time}, calls {calls}, and keeps the thread."
        return f"{words.capital(name)} runs for {time}, up to the line below, and lets go."

    @staticmethod
    def name(row: int) -> str:
        return "the loop" if row == LOOP else f"request {row}"

    def finding(self) -> str:
        """Describe the deciding moment of the run in a sentence."""
        sentence = self.describe_step(self.deciding)
        return f"{words.capital(self.label)}: {sentence[0].lower()}{sentence[1:]}"

    def as_data(self, other_runs: Sequence["_Run"]) -> dict[str, Any]:
        """Return the input of turn_stepper.js: the steps, with the state and the place of each row.

        The last one is no turn: all are done, and it says how long that took here and in the
        others.
        """
        steps = [
            {
                "from": round(1000 * self.steps["start_s"][step], 2),
                "to": round(1000 * self.steps["end_s"][step], 2),
                "rows": [[self.state(row, step), self.place(row, step)] for row in self.rows],
                "says": self.describe_step(step),
            }
            for step in self.steps.index
        ]
        end = {
            "from": steps[-1]["to"],
            "to": steps[-1]["to"],
            "rows": [["idle" if row == LOOP else "done", -1] for row in self.rows],
            "says": " ".join([self.describe_end(), *(run.describe_length() for run in other_runs)]),
        }
        return {
            "label": self.label,
            "lines": self._lines,
            "steps": [*steps, end],
        }

    def describe_end(self) -> str:
        """Say how long all requests took together."""
        requests = sum(row != LOOP for row in self.rows)
        return f"All {requests} requests are done, after {1000 * self.end_s:.0f} ms."

    def describe_length(self) -> str:
        """Say of the run, beside another one, how long it takes."""
        return f"{words.capital(self.label)}: {1000 * self.end_s:.0f} ms."

    def html(self, end_s: float) -> str:
        """Return the run at its deciding moment. end_s: where its scale of time ends."""
        step, rows_html = self.deciding, []
        for row in self.rows:
            state, place = self.state(row, step), self.place(row, step)
            place_text, code = self._lines[place] if place >= 0 else ("", "")
            rows_html.append(
                f'<li class="tn-row tn-is-{state}"><b class="tn-name">{self.name(row)}</b>'
                '<span class="tn-track" aria-hidden="true">'
                f'<span class="tn-bars">{self._bars(row, end_s)}</span></span>'
                f'<span class="tn-state">{escape(_STATES[state])}</span>'
                f'<code class="tn-code">{escape(code)}</code>'
                f'<span class="tn-where">{escape(place_text)}</span></li>'
            )
        return (
            f'<div class="tn-run"><p class="tn-label">{escape(words.capital(self.label))}</p>'
            f'<p class="tn-says">{escape(self.describe_step(step))}</p>'
            f'<p class="tn-scale" aria-hidden="true"><span>0 ms</span>'
            f"<span>{1000 * end_s:.0f} ms</span></p>"
            f'<ul class="tn-rows">{"".join(rows_html)}</ul></div>'
        )

    def _bars(self, row: int, end_s: float) -> str:
        """Draw the turns of a row along the scale of time, and its waits during others' turns."""
        bars = []
        for turn in self.turns.itertuples():
            does = self._bar_state(row, turn)
            start, wide = (
                100 * seconds / end_s for seconds in (turn.start_s, turn.end_s - turn.start_s)
            )
            style = f"left:{start:.2f}%;width:{wide:.2f}%"
            bars.append(f'<i class="tn-{does}" style="{style}"></i>' * bool(does))
        return "".join(bars)

    def _bar_state(self, row: int, turn: Any) -> str:
        """Return what a turn is in a row: the row's own, or a wait during another's.

        Empty for neither.
        """
        if turn.greenlet == row:
            return "own" if turn.does == KEEPS and not self.has_loop else str(turn.does)
        if not self.has_loop:
            return ""
        if row == LOOP:
            return "held" if turn.does == KEEPS else ""
        waits = self._first[row] <= turn.start_s and turn.end_s <= self._last[row]
        return {WATCHES: "watched", KEEPS: "held"}.get(turn.does, "") if waits else ""


def _code(
    observation: Observation, turns: pd.DataFrame
) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Return [place, code of the line] of each turn, and the quotes of these lines.

    As the stack's packages have them, or as the project keeps them; empty if neither is here.

    Of a run, only file and line are stored.
    """
    files: dict[str, Quote] = {}
    with contextlib.suppress(MissingInterpreter, EnvironmentFailed):
        environment = environments.ensure(stacks.get(observation.stack))
        files = listings.files_of(environment, sorted({*turns["file"]} - {""}))
    lines: list[list[str]] = []
    used: dict[str, dict[int, str]] = {}
    for turn in turns.itertuples():
        quotation = files.get(turn.file)
        code = quotation.lines.get(turn.line, "") if quotation else ""
        if quotation and code:
            used.setdefault(turn.file, {})[turn.line] = code
        release = f" ({quotation.release})" if quotation else ""
        place = f"{turn.file}, line {turn.line}{release}"
        lines.append([place, code.strip()] if turn.file else ["", ""])
    quoted = [
        quotes.record(observation.stack, file, replace(files[file], lines=chosen))
        for file, chosen in used.items()
    ]
    return lines, quoted
