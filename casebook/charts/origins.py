"""Where and when the rows behind a chart or a table came from, in sentences."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from casebook.runs import machine
from casebook.words import (
    LIVE,
    PUBLISHED,
    REFERENCE,
    capital,
    client_label,
    join,
    split_stack,
    stack_label,
)

#: How the warning begins that the machine's speed varied too much.
UNSTEADY = "Unsteady:"

#: What the sources of data/published.csv are called in a caption.
PUBLICATIONS = {
    "000": "The curious case of grequests and https, part 1 (2019)",
    "001": "the talk The curious case of slow/fast grequests code (2019)",
    "002": "requests, pull request 6667 (2024)",
    "003": "Patching requests for fun and (concurrent) profit (2024)",
    "004": "Building HTTP 2 server in Python (2016)",
}


def publication(source: str) -> str:
    """The title of a source file of data/published.csv; the file's name if it has none."""
    return PUBLICATIONS.get(str(source)[:3], str(source))


def moment(text: str) -> str:
    """An ISO 8601 time (UTC) in words: "20 November 2026, 11:05 UTC"."""
    when = _parsed(text)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def day(text: str) -> str:
    """The day of an ISO 8601 time in words: "20 November 2026"."""
    when = _parsed(text)
    return f"{when.day} {when:%B %Y}"


def _parsed(text: str) -> datetime:
    when = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def origin(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> str:
    """Where and when the rows of some frames came from, in sentences, for a caption.

    frames: one frame or several with a column source (`live`, `reference` or `published`),
    measured_at (ISO 8601) for the first two and published_in (a source's file name) for the
    last. Rows without a source are taken as live.
    Nothing recorded passes for live: a mixture names the recorded stacks one by one. Rows that
    stand in for others say in what they differ (`instead`). Where the machine's speed varied too
    much while the rows were measured, that is said as well (casebook/runs/machine.py).
    """
    frames = [frames] if isinstance(frames, pd.DataFrame) else list(frames)
    frames = [frame for frame in frames if frame is not None and len(frame)]
    sentences = []
    live = _of_source(frames, LIVE)
    if live:
        sentences.append(f"Measured on this machine{_span(live, moment)}.")
        sentences += _unsteady(live)
    recorded = _of_source(frames, REFERENCE)
    if recorded:
        text = f"ecorded on the reference machine{_span(recorded, day)}, not measured now."
        named = f"{_named(recorded, live)}: r" if live else "R"
        sentences.append(capital(named) + text)
        instead = dict.fromkeys(
            said for frame in recorded for said in frame.get("instead", ()) if said
        )
        if instead:
            sentences.append(f"It was recorded with {'; '.join(instead)}.")
    published = _of_source(frames, PUBLISHED)
    if published:
        titles = dict.fromkeys(
            publication(source)
            for frame in published
            for source in frame.get("published_in", pd.Series("an earlier work", frame.index))
        )
        sentences.append(f"Published in {join(titles)}.")
    return " ".join(sentences)


def _unsteady(live: list[pd.DataFrame]) -> list[str]:
    """A warning, where the machine's speed varied too much while these rows were measured."""
    rows = pd.concat([frame for frame in live if "unit_ms" in frame] or [pd.DataFrame()])
    if not machine.is_unstable(rows):
        return []
    least, most = rows["unit_ms"].min(), rows["unit_ms"].max()
    return [
        f"{UNSTEADY} the same piece of work took this machine {least:.2g} to {most:.2g} ms "
        "meanwhile, so small differences mean nothing."
    ]


def _of_source(frames: list[pd.DataFrame], source: str) -> list[pd.DataFrame]:
    chosen = []
    for frame in frames:
        if "source" in frame:
            frame = frame[frame["source"] == source]
        elif source != LIVE:
            continue
        if len(frame):
            chosen.append(frame)
    return chosen


def _named(recorded: list[pd.DataFrame], live: list[pd.DataFrame]) -> str:
    """Which rows were recorded: their Pythons if those were not measured at all, else stacks.

    Of a stack that was measured too, the sizes n that were not.
    """
    stacks, measured = _kinds(recorded), _kinds(live)
    if not stacks:
        return "some rows"
    pythons = dict.fromkeys(split_stack(stack)[1] for stack, _ in stacks if stack)
    here = {split_stack(stack)[1] for stack, _ in measured if stack}
    if len(stacks) > 1 and pythons and not set(pythons) & here:
        return "everything in Python " + join(pythons).replace("Python today", "today")
    by_size: dict[str, list[str]] = {}
    for kind, sizes in stacks.items():
        further = sizes - measured.get(kind, set()) if kind in measured else set()
        said = join(f"{n:,}" for n in sorted(further))
        by_size.setdefault(said, []).append(
            stack_label(*kind) if kind[0] else client_label(kind[1])
        )
    if len(by_size) == 1 and len(stacks) == len(measured) and "" not in by_size:
        return f"the runs with n = {next(iter(by_size))}"
    return "; ".join(
        "; ".join(labels) + f" with n = {said}" * bool(said) for said, labels in by_size.items()
    )


def _kinds(frames: list[pd.DataFrame]) -> dict[tuple[str, str], set[int]]:
    """The (stack, client) of some frames' rows, "" for a stack unknown, and their sizes n."""
    found: dict[tuple[str, str], set[int]] = {}
    for frame in frames:
        for row in frame.itertuples() if {"stack", "client"} & set(frame) else ():
            kind = (getattr(row, "stack", ""), getattr(row, "client", "grequests"))
            sizes = found.setdefault(kind, set())
            if hasattr(row, "n") and not pd.isna(row.n):
                sizes.add(int(row.n))
    return found


def _span(frames: list[pd.DataFrame], say) -> str:
    """The first and last moment of frames: ", A" or ", A to B"; "" when none is known."""
    known = sorted(
        str(value)
        for frame in frames
        if "measured_at" in frame
        for value in frame["measured_at"].dropna()
    )
    if not known:
        return ""
    first, last = say(known[0]), say(known[-1])
    if first == last:
        return f", {first}"
    if say is moment and day(known[0]) == day(known[-1]):
        return f", {first.removesuffix(' UTC')} to {last.partition(', ')[2]}"
    return f", {first} to {last}"
