"""Where and when the rows behind a chart or a table came from, in sentences."""

from collections.abc import Callable, Sequence
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

#: The columns of a frame that describe its origin.
_COLUMNS = ["source", "measured_at", "published_in", "instead", "stack", "client", "n", "how"]

#: The names of the sources of data/published.csv in a caption.
PUBLICATIONS = {
    "000": "The curious case of grequests and https, part 1 (2019)",
    "001": "the talk The curious case of slow/fast grequests code (2019)",
    "002": "requests, pull request 6667 (2024)",
    "003": "Patching requests for fun and (concurrent) profit (2024)",
    "004": "Building HTTP 2 server in Python (2016)",
}


def moment(text: str) -> str:
    """Return an ISO 8601 time (UTC) in words: "20 November 2026, 11:05 UTC"."""
    return f"{day(text)}, {pd.to_datetime(text, utc=True):%H:%M} UTC"


def day(text: str) -> str:
    """Return the day of an ISO 8601 time in words: "20 November 2026"."""
    date = pd.to_datetime(text, utc=True)
    return f"{date.day} {date:%B %Y}"


def origin(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> str:
    """Say in a caption's sentences where and when the rows of some frames came from.

    frames: one frame or several with a column source (`live`, `reference` or `published`),
    measured_at (ISO 8601) for the first two and published_in (a source's file name) for the
    last. Rows without a source count as live. Rows of any other source are not mentioned: the chart
    has to name that source itself. Nothing recorded passes for live: in a mixture the recorded
    stacks are named one by one. Rows that stand in for others say in what they differ (`instead`).
    """
    frames = [frames] if isinstance(frames, pd.DataFrame) else frames
    rows = pd.concat([frame.reindex(columns=_COLUMNS).astype(object) for frame in frames])
    source = rows["source"].fillna(LIVE)
    live, recorded, published = (rows[source == kind] for kind in (LIVE, REFERENCE, PUBLISHED))
    sentences = []
    if len(live):
        sentences.append(f"Measured on {machine()}{_span(live, moment)}.")
    if len(recorded):
        by_row = recorded["instead"].fillna("").astype(str).str.split("; ")
        parts = by_row.explode().unique()
        machines = [note.removeprefix(ON) for note in parts if note.startswith(ON)]
        all_others = by_row.map(lambda notes: notes[0].startswith(ON)).all()
        place = join(machines) if all_others else "the reference machine"
        text = f"ecorded on {place}{_span(recorded, day)}, not measured now."
        beginning = f"{_named(recorded, live)}: r" if len(live) else "R"
        sentences.append(capital(beginning) + text)
        if machines and not all_others:
            sentences.append(f"Some of it was recorded on another machine: {join(machines)}.")
        differences = [note for note in parts if note and not note.startswith(ON)]
        if differences:
            sentences.append(f"It was recorded with {'; '.join(differences)}.")
    if len(published):
        ids = published["published_in"].dropna().unique()
        titles = dict.fromkeys(PUBLICATIONS.get(str(source)[:3], str(source)) for source in ids)
        sentences.append(f"Published in {join(titles) or 'an earlier work'}.")
    return " ".join(sentences)


def origin_of(*observations: Any) -> str:
    """Say the same of observations, which have .stack, .source and .measured_at."""
    columns = ("stack", "source", "measured_at")
    return origin(
        pd.DataFrame(
            [{c: getattr(observation, c) for c in columns} for observation in observations]
        )
    )


def _named(recorded: pd.DataFrame, live: pd.DataFrame) -> str:
    """Name the recorded rows: by their Pythons if those were not measured at all, else by stack.

    A stack that was measured too is named with the sizes n or the actions (how) that were not.
    """
    stacks, live_sizes = _kinds(recorded), _kinds(live)
    if not stacks:
        return "some rows"
    pythons = dict.fromkeys(split_stack(stack)[1] for stack, _ in stacks if stack)
    live_pythons = {split_stack(stack)[1] for stack, _ in live_sizes if stack}
    if len(stacks) > 1 and pythons and not set(pythons) & live_pythons:
        return "everything in Python " + join(pythons).replace("Python today", "today")
    missing = [stacks[kind] - live_sizes[kind] if kind in live_sizes else set() for kind in stacks]
    sizes = [join(f"{n:,}" for n in sorted(numbers)) for numbers in missing]
    labels = [stack_label(*kind) if kind[0] else client_label(kind[1]) for kind in stacks]
    steps_by_kind = [
        _steps_only_recorded(recorded, live, kind[0]) if kind in live_sizes else []
        for kind in stacks
    ]
    labels = [
        ", ".join([label, *steps]) for label, steps in zip(labels, steps_by_kind, strict=True)
    ]
    by_size = grouped(zip(sizes, labels, strict=True))
    if len(by_size) == 1 and len(stacks) == len(live_sizes) and "" not in by_size:
        return f"the runs with n = {next(iter(by_size))}"
    return "; ".join(
        "; ".join(labels) + f" with n = {size}" * bool(size) for size, labels in by_size.items()
    )


def _steps_only_recorded(recorded: pd.DataFrame, live: pd.DataFrame, stack: str) -> list[str]:
    """Return what a stack did in its recorded rows, and did not in the measured ones."""
    recorded_steps, live_steps = (
        rows.loc[rows["stack"] == stack, "how"].dropna() for rows in (recorded, live)
    )
    return [step for step in recorded_steps.unique() if step not in set(live_steps)]


def _kinds(rows: pd.DataFrame) -> dict[tuple[str, str], set[int]]:
    """Return the (stack, client) of some rows, "" for an unknown stack, and their sizes n."""
    rows_named = rows[rows["stack"].notna() | rows["client"].notna()]
    kinds = [rows_named["stack"].fillna(""), rows_named["client"].fillna("grequests")]
    return {
        kind: set(n.dropna().astype(int)) for kind, n in rows_named["n"].groupby(kinds, sort=False)
    }


def _span(rows: pd.DataFrame, format_time: Callable[[str], str]) -> str:
    """Return the first and last moment of rows: ", A" or ", A to B"; "" if none is known."""
    times = sorted(map(str, rows["measured_at"].dropna()))
    if not times:
        return ""
    first, last = format_time(times[0]), format_time(times[-1])
    if first == last:
        return f", {first}"
    if format_time is moment and day(times[0]) == day(times[-1]):
        return f", {first.removesuffix(' UTC')} to {last.partition(', ')[2]}"
    return f", {first} to {last}"
