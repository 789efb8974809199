"""Where and when the rows behind a chart or a table came from, in sentences."""

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import pandas as pd

from casebook.words import (
    LIVE,
    ON,
    PUBLISHED,
    REFERENCE,
    capital,
    client_label,
    grouped,
    join,
    machine,
    split_stack,
    stack_label,
)

#: The columns of a frame that tell something of its origin.
_TOLD = ["source", "measured_at", "published_in", "instead", "stack", "client", "n", "how"]

#: What the sources of data/published.csv are called in a caption.
PUBLICATIONS = {
    "000": "The curious case of grequests and https, part 1 (2019)",
    "001": "the talk The curious case of slow/fast grequests code (2019)",
    "002": "requests, pull request 6667 (2024)",
    "003": "Patching requests for fun and (concurrent) profit (2024)",
    "004": "Building HTTP 2 server in Python (2016)",
}


def moment(text: str) -> str:
    """An ISO 8601 time (UTC) in words: "20 November 2026, 11:05 UTC"."""
    return f"{day(text)}, {pd.to_datetime(text, utc=True):%H:%M} UTC"


def day(text: str) -> str:
    """The day of an ISO 8601 time in words: "20 November 2026"."""
    when = pd.to_datetime(text, utc=True)
    return f"{when.day} {when:%B %Y}"


def origin(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> str:
    """Where and when the rows of some frames came from, in sentences, for a caption.

    frames: one frame or several with a column source (`live`, `reference` or `published`),
    measured_at (ISO 8601) for the first two and published_in (a source's file name) for the
    last. Rows without a source are taken as live; of another one, which the chart has to name by
    itself, nothing is said.
    Nothing recorded passes for live: a mixture names the recorded stacks one by one. Rows that
    stand in for others say in what they differ (`instead`).
    """
    frames = [frames] if isinstance(frames, pd.DataFrame) else frames
    rows = pd.concat([frame.reindex(columns=_TOLD).astype(object) for frame in frames])
    source = rows["source"].fillna(LIVE)
    live, recorded, published = (rows[source == each] for each in (LIVE, REFERENCE, PUBLISHED))
    sentences = []
    if len(live):
        sentences.append(f"Measured on {machine()}{_span(live, moment)}.")
    if len(recorded):
        by_row = recorded["instead"].fillna("").astype(str).str.split("; ")
        parts = by_row.explode().unique()
        others = [said.removeprefix(ON) for said in parts if said.startswith(ON)]
        all_others = by_row.map(lambda said: said[0].startswith(ON)).all()
        where = join(others) if all_others else "the reference machine"
        text = f"ecorded on {where}{_span(recorded, day)}, not measured now."
        named = f"{_named(recorded, live)}: r" if len(live) else "R"
        sentences.append(capital(named) + text)
        if others and not all_others:
            sentences.append(f"Some of it was recorded on another machine: {join(others)}.")
        instead = [said for said in parts if said and not said.startswith(ON)]
        if instead:
            sentences.append(f"It was recorded with {'; '.join(instead)}.")
    if len(published):
        ids = published["published_in"].dropna().unique()
        titles = dict.fromkeys(PUBLICATIONS.get(str(source)[:3], str(source)) for source in ids)
        sentences.append(f"Published in {join(titles) or 'an earlier work'}.")
    return " ".join(sentences)


def marked(source: str) -> str:
    """What a caption says of its source, as HTML in which the sentence that says the usual,
    measured here and now, is told apart: a page may leave it out (book/_static/casebook.js)."""
    return re.sub(r"Measured on this machine[^.]*\.", r'<span class="cb-live">\g<0></span>',
                  escape(source), count=1)  # fmt: skip


def origin_of(*observations: Any) -> str:
    """The same of observations, which have .stack, .source and .measured_at."""
    columns = ("stack", "source", "measured_at")
    return origin(pd.DataFrame([{c: getattr(one, c) for c in columns} for one in observations]))


def _named(recorded: pd.DataFrame, live: pd.DataFrame) -> str:
    """Which rows were recorded: their Pythons if those were not measured at all, else stacks.

    Of a stack that was measured too, the sizes n that were not, or what it did (how) that was not.
    """
    stacks, measured = _kinds(recorded), _kinds(live)
    if not stacks:
        return "some rows"
    pythons = dict.fromkeys(split_stack(stack)[1] for stack, _ in stacks if stack)
    here = {split_stack(stack)[1] for stack, _ in measured if stack}
    if len(stacks) > 1 and pythons and not set(pythons) & here:
        return "everything in Python " + join(pythons).replace("Python today", "today")
    further = [stacks[kind] - measured[kind] if kind in measured else set() for kind in stacks]
    sizes = [join(f"{n:,}" for n in sorted(each)) for each in further]
    labels = [stack_label(*kind) if kind[0] else client_label(kind[1]) for kind in stacks]
    hows = [_apart(recorded, live, kind[0]) if kind in measured else [] for kind in stacks]
    labels = [", ".join([label, *how]) for label, how in zip(labels, hows, strict=True)]
    by_size = grouped(zip(sizes, labels, strict=True))
    if len(by_size) == 1 and len(stacks) == len(measured) and "" not in by_size:
        return f"the runs with n = {next(iter(by_size))}"
    return "; ".join(
        "; ".join(labels) + f" with n = {said}" * bool(said) for said, labels in by_size.items()
    )


def _apart(recorded: pd.DataFrame, live: pd.DataFrame, stack: str) -> list[str]:
    """What a stack did where it was recorded, and did not where it was measured."""
    there, here = (rows.loc[rows["stack"] == stack, "how"].dropna() for rows in (recorded, live))
    return [each for each in there.unique() if each not in set(here)]


def _kinds(rows: pd.DataFrame) -> dict[tuple[str, str], set[int]]:
    """The (stack, client) of some rows, "" for a stack unknown, and their sizes n."""
    known = rows[rows["stack"].notna() | rows["client"].notna()]
    kinds = [known["stack"].fillna(""), known["client"].fillna("grequests")]
    return {kind: set(n.dropna().astype(int)) for kind, n in known["n"].groupby(kinds, sort=False)}


def _span(rows: pd.DataFrame, say: Callable[[str], str]) -> str:
    """The first and last moment of rows: ", A" or ", A to B"; "" when none is known."""
    known = sorted(map(str, rows["measured_at"].dropna()))
    if not known:
        return ""
    first, last = say(known[0]), say(known[-1])
    if first == last:
        return f", {first}"
    if say is moment and day(known[0]) == day(known[-1]):
        return f", {first.removesuffix(' UTC')} to {last.partition(', ')[2]}"
    return f", {first} to {last}"
