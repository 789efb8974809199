"""Names and objects: where each name points after each import, and who waits for one page.

A reader steps through the lines with casebook/charts/binding_stepper.js, which comes with the
picture, as the stepper of turns does. Without it each run is drawn at its last line, and each line
has its sentence.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from casebook import words
from casebook.cases.fetching.bindings import (
    GEVENT,
    GEVENT_OPENSSL,
    HOLDS_THREAD,
    IN_LOOP,
    NOTHING_YET,
    PASSES,
    PYOPENSSL,
    PYTHON,
    READ,
    Bindings,
    Layer,
)
from casebook.charts.figure import Chart, slug
from casebook.charts.origins import origin_of
from casebook.colours import style
from casebook.mistakes import for_readers

_JS = Path(__file__).with_suffix(".js")

_SOCKET, _CONTEXT, _POLL = "socket.socket", "ssl.SSLContext", "select.poll"
_URLLIB3_CONTEXT, _CONNECTION = "urllib3.util.ssl_.SSLContext", "OpenSSL.SSL.Connection"
#: Names that may stand for the same objects, from the top of the picture to its foot.
_GROUPS = ((_SOCKET,), (_CONTEXT, _URLLIB3_CONTEXT), (_CONNECTION,), (_POLL,))
#: How a name is written where it is not as Python has it.
_SHORT = {_URLLIB3_CONTEXT: "urllib3's SSLContext"}
_OWNERS = (PYTHON, GEVENT, PYOPENSSL, GEVENT_OPENSSL)

#: The line of each step, as a program would have it.
_LINES = {
    "python": "import socket, ssl, select",
    "patch_as_grequests": "monkey.patch_all(select=False)",
    "urllib3": "import urllib3",
    "requests": "import requests",
    "inject": "inject_into_urllib3()",
    "extract": "extract_from_urllib3()",
    "gevent_openssl": "gevent_openssl.monkey_patch()",
    "patch_select": "monkey.patch_select()",
    READ: "requests.get(url)",
}
#: Steps that cut an arrow on purpose.
_CURES = ("extract", "gevent_openssl", "patch_select")

#: Who waits, in the words of the picture.
_ANSWERS = {
    PASSES: "no: asks {}",
    NOTHING_YET: "no: “nothing yet, ask again”",
    IN_LOOP: "yes, and lets the loop run",
    HOLDS_THREAD: "yes, and holds the thread",
}


@for_readers
def bindings(
    runs: Mapping[str, Bindings],
    *,
    title: str = "Where the names point, and who waits",
    name: str = "",
) -> Chart:
    """Draw what some names stand for after each line, and the layers that one read goes through.

    runs: label of a choice -> what one process showed (casebook.cases.fetching.bindings.inspect).
    All have the same rows, so that a choice moves nothing but arrows.
    """
    board = _Board(list(runs.values()))
    panels = [_Run(label, bindings, board) for label, bindings in runs.items()]
    data = json.dumps([panel.as_data() for panel in panels], separators=(",", ":"))
    data = data.replace("</", "<\\/")
    name = slug(name or title)
    finding = " ".join(panel.finding() for panel in panels)
    explanation = (
        "Left the names that programs use, right the objects that they stand for after the marked "
        "line, in the colour of their owner. Below it is one read of a page: the layers that were "
        "on the stack while nothing had arrived, from the script down. What urllib3 does between "
        "its layers is left out. A beat is a greenlet that asks for its turn every 10 ms."
    )
    source = origin_of(*(panel.bindings for panel in panels))
    body = "".join(panel.html() for panel in panels)
    rows = max(len(panel.bindings.layers) for panel in panels)
    html = (
        f'<figure class="cb cb-figure cb-bindings" id="figure-{name}" style="--rows:{rows}">'
        f"{style('figure', 'bindings')}{body}"
        f'<figcaption><p class="cb-title">{escape(title)}.</p>'
        f'<p class="cb-finding-text">{escape(finding)}</p>'
        f'<p class="cb-source">{escape(f"{source} {explanation}")}</p></figcaption>'
        f'<script type="application/json">{data}</script>'
        f"<script>{_JS.read_text(encoding='utf-8')}</script></figure>"
    )
    return Chart(name, html, f"{title}. {finding}", f"{title}. {finding} {source} {explanation}")


class _Board:
    """The rows of the picture, the same for all its runs: groups of names and of objects."""

    def __init__(self, runs: Sequence[Bindings]):
        self.groups: list[tuple[list[str], list[str]]] = []
        #: What an object is called, by the first name of its group and its owner.
        self.objects: dict[tuple[str, str], str] = {}
        for names in _GROUPS:
            classes = [
                (name, run.owner(step, name), class_)
                for run in runs
                for step, classes in run.classes.items()
                for name, class_ in classes.items()
                if name in names and class_
            ]
            present = {name for name, _, _ in classes}
            for _, owner, class_ in reversed(classes):
                self.objects[names[0], owner] = class_.rpartition(".")[2]
            owners = [owner for owner in _OWNERS if (names[0], owner) in self.objects]
            if present:
                self.groups.append(([name for name in names if name in present], owners))
        current_owners = {owner for _, owners in self.groups for owner in owners}
        self.owners = [owner for owner in _OWNERS if owner in current_owners]

    @property
    def names(self) -> list[str]:
        """Return all names, from the top."""
        return [name for names, _ in self.groups for name in names]


@dataclass(frozen=True)
class _State:
    """A moment of a run: whose object each name stands for, and whose it stood for before.

    was has the names alone that have just moved, and those that a cure moved before.
    """

    step: str
    owners: dict[str, str]
    was: dict[str, str]
    sentence: str


class _Run:
    """One run: its lines, the states after them, and a sentence for each."""

    def __init__(self, label: str, bindings: Bindings, board: _Board):
        self.label, self.bindings, self.board = label, bindings, board
        self.states: list[_State] = []
        former: dict[str, str] = {}
        cut: dict[str, str] = {}
        # A read that failed has connected nothing, and changed no name.
        for step in (*bindings.steps, READ):
            moment = step if step in bindings.classes else bindings.steps[-1]
            owners = {name: bindings.owner(moment, name) for name in board.names}
            was = {
                name: former[name]
                for name, owner in owners.items()
                if former.get(name) and owner != former[name]
            }
            if step in _CURES:
                cut = was
            self.states.append(_State(step, owners, cut | was, self._sentence(step, owners, was)))
            former = owners

    def _sentence(self, step: str, owners: Mapping[str, str], moved: Mapping[str, str]) -> str:
        """Say what a line has changed, in a sentence or two."""
        if step == READ:
            return self._read_sentence()
        copied = owners.get(_URLLIB3_CONTEXT, "")
        targets = words.join(dict.fromkeys(f"{owners[name]}'s" for name in moved))
        verb = "points" if len(moved) == 1 else "point"
        news = f"{words.join(map(_short_name, moved))} now {verb} to {targets}."
        if not moved:
            news = "No arrow moves."
        if step == "python":
            return "Python starts. Each name points to an object that Python brought along."
        if step == "urllib3":
            return (
                "urllib3 copies the name ssl.SSLContext. Its copy points to where that name points "
                f"now: to {copied}'s."
            )
        if step == "patch_as_grequests":
            rest = "select.poll is left alone, as grequests asks."
            if copied == PYTHON:
                rest = "urllib3's copy was made too early: it still points to Python's."
            return f"gevent patches: {news} {rest}"
        if step in ("requests", "inject") and moved:
            subject = (
                "requests finds pyOpenSSL and injects it" if step == "requests" else "Injected"
            )
            return f"{subject}: {news} Nobody asks for gevent's any more."
        return f"The cure: {news}" if step in _CURES else news

    def _read_sentence(self) -> str:
        if self.bindings.failure:
            return f"The page never comes: the read ends in a {self.bindings.failure}."
        last = self.bindings.layers[-1]
        beats, ms = len(self.bindings.beats), 1000 * self.bindings.wall_s
        count = f"{beats} {'beat' if beats == 1 else 'beats'} in {ms:.0f} ms"
        if last.does == HOLDS_THREAD:
            return (
                f"The read waits in {last.name}, for this one socket, and holds the thread. "
                f"The loop is blocked: {count}."
            )
        return f"The read waits in {last.name}, with the loop, which runs on: {count}."

    def finding(self) -> str:
        """Say in a sentence where urllib3's copy points in the end, and what the read did."""
        owner = self.states[-1].owners.get(_URLLIB3_CONTEXT, "")
        label = words.capital(self.label)
        return f"{label}: urllib3's SSLContext is {owner}'s. {self._read_sentence()}"

    def describe(self, state: _State) -> str:
        """List where all names point, for those who do not see the arrows."""
        pairs = [
            f"{_short_name(name)} points to {owner}'s"
            if owner
            else f"{_short_name(name)} is not there"
            for name, owner in state.owners.items()
        ]
        return f"After {_LINES[state.step]}: {'; '.join(pairs)}."

    def as_data(self) -> dict[str, Any]:
        """Return the input of binding_stepper.js: what each line changes.

        to, was: which row of its group each name points to, and pointed to before; -1 for none.
        """
        rows = {name: owners for names, owners in self.board.groups for name in names}

        def places(owner_of: Mapping[str, str]) -> list[int]:
            return [
                rows[name].index(owner_of[name]) if owner_of.get(name) else -1
                for name in self.board.names
            ]

        return {
            "label": self.label,
            "lines": [
                {
                    "to": places(state.owners),
                    "was": places(state.was),
                    "cut": any(
                        earlier_state.step in _CURES
                        for earlier_state in self.states[: self.states.index(state) + 1]
                    ),
                    "early": [_is_early(name, state.owners) for name in self.board.names],
                    "says": state.sentence,
                    "alt": self.describe(state),
                }
                for state in self.states
            ],
        }

    def html(self) -> str:
        """Return the run at its last line."""
        last = self.states[-1]
        lines = "".join(
            f'<li class="nm-line{" nm-cure" * (state.step in _CURES)}">'
            f"<code>{_breakable(_LINES[state.step])}</code>"
            f'<span class="nm-told">{escape(state.sentence)}</span></li>'
            for state in self.states
        )
        groups = "".join(self._group(names, owners, last) for names, owners in self.board.groups)
        return (
            f'<div class="nm-run nm-reads"><p class="nm-label">{escape(words.capital(self.label))}'
            f'</p><div class="nm-top"><ol class="nm-lines">{lines}</ol>'
            f'<div class="nm-board" role="img" aria-label="{escape(self.describe(last))}">'
            '<p class="nm-heads"><span>this name</span><span>points to</span></p>'
            f'{groups}</div></div><p class="nm-says">{escape(last.sentence)}</p>'
            f'<div class="nm-read"><p class="nm-heads"><span>one read of the page</span>'
            '<span>who waits?</span></p><p class="nm-idle">Nobody reads yet.</p>'
            f"{self._layers()}{self._loop()}</div></div>"
        )

    def _group(self, names: Sequence[str], owners: Sequence[str], state: _State) -> str:
        pointed = {state.owners[name] for name in names}
        wires, names_html = [], []
        for i, name in enumerate(names):
            owner, was = state.owners[name], state.was.get(name, "")
            start = _middle(i, len(names))
            for css, target in (("nm-was", was), (f"nm-wire nm-{_css(owner)}", owner)):
                end = _middle(owners.index(target), len(owners)) if target else start
                hidden = "" if target else " hidden"
                path = f"M0,{start:g}C50,{start:g} 50,{end:g} 100,{end:g}"
                wires.append(f'<path class="{css}" d="{path}"{hidden}></path>')
            absent = "" if owner else " nm-absent"
            absent += " nm-early" * _is_early(name, state.owners)
            label = f"<code>{_breakable(name)}</code>"
            names_html.append(f'<span class="nm-name{absent}">{label}</span>')
        objects = "".join(
            f'<span class="nm-object nm-{_css(owner)}{" nm-on" * (owner in pointed)}">'
            f"<span><b>{owner}'s</b> <code>{self.board.objects[names[0], owner]}</code></span>"
            "</span>"
            for owner in owners
        )
        slots = max(len(names), len(owners))
        return (
            f'<div class="nm-group" style="--slots:{slots}"><div class="nm-names">'
            f'{"".join(names_html)}</div><div class="nm-wires"><svg viewBox="0 0 100 100" '
            f'preserveAspectRatio="none" aria-hidden="true">{"".join(wires)}</svg>'
            f"{self._scissors(names, owners, state)}</div>"
            f'<div class="nm-objects">{objects}</div></div>'
        )

    def _scissors(self, names: Sequence[str], owners: Sequence[str], state: _State) -> str:
        """Mark the arrow that a cure has cut, in the middle of where it was."""
        cured = any(earlier_state.step in _CURES for earlier_state in self.states)
        marks = [
            (_middle(i, len(names)) + _middle(owners.index(state.was[name]), len(owners))) / 2
            for i, name in enumerate(names)
            if cured and name in state.was
        ]
        return "".join(
            f'<span class="nm-cut" style="top:{top:g}%" aria-hidden="true">✂&#xfe0e;</span>'
            for top in marks
        )

    def _layers(self) -> str:
        if self.bindings.failure:
            return (
                '<ol class="nm-layers"><li class="nm-layer nm-is-failed"><b>nobody</b>'
                f"<code></code><span>the read ends in a {self.bindings.failure}</span></li></ol>"
            )
        layers = self.bindings.layers
        following = [layer.name for layer in layers[1:]]
        rows = "".join(
            f'<li class="nm-layer nm-is-{layer.does}" style="--i:{i}">'
            f'<b class="nm-{_css(layer.owner)}">{escape(layer.name)}</b>'
            f"<code>{escape(layer.call)}()</code><span>{_answer(layer, next_name)}</span></li>"
            for i, (layer, next_name) in enumerate(zip(layers, [*following, ""], strict=True))
        )
        return f'<ol class="nm-layers">{rows}</ol>'

    def _loop(self) -> str:
        """Draw the beats of the loop along the time that the read took, and its longest silence."""
        if not self.bindings.layers:
            return ""
        end_s = self.bindings.wall_s
        moments = [0.0, *self.bindings.beats, end_s]
        gaps = [(later - sooner, sooner) for sooner, later in pairwise(moments)]
        long_s, from_s = max(gaps)
        silence = (
            f'<i class="nm-silence" style="left:{100 * from_s / end_s:.1f}%;'
            f'width:{100 * long_s / end_s:.1f}%"></i>'
        ) * (self.bindings.waits == HOLDS_THREAD)
        beats = "".join(
            f'<i class="nm-beat" style="left:{100 * min(beat / end_s, 1):.1f}%"></i>'
            for beat in self.bindings.beats
        )
        does = {HOLDS_THREAD: "blocked", IN_LOOP: "runs the others"}[self.bindings.waits]
        return (
            f'<div class="nm-loop nm-loop-{self.bindings.waits}"><b>the loop</b>'
            f'<span class="nm-track" aria-hidden="true">{silence}{beats}</span>'
            f"<span>{does}</span></div>"
        )


def _answer(layer: Layer, next_name: str) -> str:
    """Say whether a layer waits."""
    target = "select.poll" if layer.name == "urllib3's wait" else next_name
    return escape(_ANSWERS[layer.does].format(target))


def _is_early(name: str, owners: Mapping[str, str]) -> bool:
    """Say whether a name is a copy made before gevent patched the original."""
    return name == _URLLIB3_CONTEXT and owners[name] == PYTHON and owners[_CONTEXT] == GEVENT


def _short_name(name: str) -> str:
    return _SHORT.get(name, name)


def _breakable(name: str) -> str:
    """Return a name as HTML, which may break behind dots and brackets."""
    return re.sub(r"([.(])", r"\1<wbr>", escape(_short_name(name)))


def _middle(row: int, rows: int) -> float:
    """Return the height of a row's middle, in hundredths of its group."""
    return round(100 * (row + 0.5) / rows, 2)


def _css(owner: str) -> str:
    return owner.lower().replace("_", "-") or "nobody"
