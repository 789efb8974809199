"""Where and when the rows behind a chart or a table came from, in sentences."""

from collections.abc import Callable, Sequence
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


def moment(text: str) -> str:
    """An ISO 8601 time (UTC) in words: "20 November 2026, 11:05 UTC"."""
    return f"{day(text)}, {_parsed(text):%H:%M} UTC"


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
    frames = [frames] if isinstance(frames, pd.DataFrame) else frames
    frames = [frame if "source" in frame else frame.assign(source=LIVE) for frame in frames]
    live, recorded, published = (
        [rows for frame in frames if len(rows := frame[frame["source"] == source])]
        for source in (LIVE, REFERENCE, PUBLISHED)
    )
    sentences = []
    if live:
        sentences.append(f"Measured on this machine{_span(live, moment)}.")
        sentences += _unsteady(live)
    if recorded:
        text = f"ecorded on the reference machine{_span(recorded, day)}, not measured now."
        named = f"{_named(recorded, live)}: r" if live else "R"
        sentences.append(capital(named) + text)
        instead = [said for said in _each(recorded, "instead") if said]
        if instead:
            sentences.append(f"It was recorded with {'; '.join(instead)}.")
    if published:
        titles = [
            PUBLICATIONS.get(str(source)[:3], str(source))
            for source in _each(published, "published_in")
        ]
        sentences.append(f"Published in {join(dict.fromkeys(titles)) or 'an earlier work'}.")
    return " ".join(sentences)


def _each(frames: Sequence[pd.DataFrame], column: str) -> list:
    """What stands in a column of some frames, once each, in order."""
    return list(dict.fromkeys(value for frame in frames for value in frame.get(column, ())))


def _unsteady(live: Sequence[pd.DataFrame]) -> list[str]:
    """A warning, where the machine's speed varied too much while these rows were measured."""
    rows = pd.concat([frame for frame in live if "unit_ms" in frame] or [pd.DataFrame()])
    if not machine.is_unstable(rows):
        return []
    least, most = rows["unit_ms"].min(), rows["unit_ms"].max()
    return [
        f"{UNSTEADY} the same piece of work took this machine {least:.2g} to {most:.2g} ms "
        "meanwhile, so small differences mean nothing."
    ]


def _named(recorded: Sequence[pd.DataFrame], live: Sequence[pd.DataFrame]) -> str:
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
        label = stack_label(*kind) if kind[0] else client_label(kind[1])
        by_size.setdefault(said, []).append(label)
    if len(by_size) == 1 and len(stacks) == len(measured) and "" not in by_size:
        return f"the runs with n = {next(iter(by_size))}"
    return "; ".join(
        "; ".join(labels) + f" with n = {said}" * bool(said) for said, labels in by_size.items()
    )


def _kinds(frames: Sequence[pd.DataFrame]) -> dict[tuple[str, str], set[int]]:
    """The (stack, client) of some frames' rows, "" for a stack unknown, and their sizes n."""
    found: dict[tuple[str, str], set[int]] = {}
    for frame in frames:
        for row in frame.itertuples() if {"stack", "client"} & set(frame) else ():
            kind = (getattr(row, "stack", ""), getattr(row, "client", "grequests"))
            sizes = found.setdefault(kind, set())
            if hasattr(row, "n") and not pd.isna(row.n):
                sizes.add(int(row.n))
    return found


def _span(frames: Sequence[pd.DataFrame], say: Callable[[str], str]) -> str:
    """The first and last moment of frames: ", A" or ", A to B"; "" when none is known."""
    known = sorted(str(value) for value in _each(frames, "measured_at") if not pd.isna(value))
    if not known:
        return ""
    first, last = say(known[0]), say(known[-1])
    if first == last:
        return f", {first}"
    if say is moment and day(known[0]) == day(known[-1]):
        return f", {first.removesuffix(' UTC')} to {last.partition(', ')[2]}"
    return f", {first} to {last}"
