"""How stacks, Pythons, sources and numbers are named on a page, in charts and in tables alike."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pandas as pd

from casebook.errors import UsageError

LIVE, REFERENCE, PUBLISHED = "live", "reference", "published"

SOURCES = {LIVE: "measured here", REFERENCE: "reference machine", PUBLISHED: "published"}

#: The sources' words for verdicts, in the words of this book.
VERDICTS = {"slow": "serial", "fast": "concurrent"}

PYTHONS = {"py27": "2.7", "py37": "3.7", "today": "today"}

#: What the sources of data/published.csv are called in a caption.
PUBLICATIONS = {
    "000": "The curious case of grequests and https, part 1 (2019)",
    "001": "the talk The curious case of slow/fast grequests code (2019)",
    "002": "requests, pull request 6667 (2024)",
    "003": "Patching requests for fun and (concurrent) profit (2024)",
    "004": "Building HTTP 2 server in Python (2016)",
}


def split_stack(stack: str) -> tuple[str, str]:
    """A stack's name as (what it is, which Python): `stage-2-py27` -> ("stage-2", "2.7").

    The second is "2.7", "3.7" or "today"; "today" too for a name without a suffix, which is
    whatever runs the book.
    """
    what, _, suffix = stack.rpartition("-")
    if what and suffix in PYTHONS:
        return what, PYTHONS[suffix]
    return stack, "today"


def stack_label(stack: str, client: str = "grequests") -> str:
    """A stack as a reader's words: `stage-2-py27` -> "stage 2, Python 2.7".

    Runs of the client `requests` are named "requests", whichever stack they ran in: nothing
    that distinguishes the stacks happens there.
    """
    if client != "grequests":
        return client
    what, python = split_stack(stack)
    words = re.sub(r"^(stage)-(\d)", r"\1 \2", what)
    words = re.sub(r"-(?=[a-z])", " ", words)
    words = re.sub(r"-(?=\d)", " ", words)
    if stack == what:
        return words
    return f"{words}, today" if python == "today" else f"{words}, Python {python}"


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits and no exponent: 10.0481 -> "10.0"."""
    value = float(value)
    if not math.isfinite(value):
        raise UsageError(f"{value} is not a number that a page can show")
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def seconds(value: float) -> str:
    """A time as a reader says it: "10.0 s", "250 ms"."""
    return f"{number(value * 1000, 2)} ms" if abs(value) < 0.1 else f"{number(value)} s"


def delay(value: float) -> str:
    """A chosen time, with no digit more than was chosen: "0.1 s", "1 s"."""
    return f"{value:g} s"


def join(words: Iterable[str]) -> str:
    """Words in a list: "a", "a and b", "a, b and c"."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def capital(text: str) -> str:
    """A sentence's beginning: only the first letter is changed."""
    return text[:1].upper() + text[1:]


def times(factor: float) -> str:
    """A factor as a reader says it: "9.6 times", "96 times"."""
    return f"{number(factor, 2) if factor < 100 else f'{factor:.0f}'} times"


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


def provenance(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> str:
    """Where and when the rows of some frames came from, in sentences, for a caption.

    frames: one frame or several with a column source (`live`, `reference` or `published`),
    measured_at (ISO 8601) for the first two and published_in (a source's file name) for the
    last. Rows without a source are taken as live.
    Nothing recorded passes for live: a mixture names the recorded stacks one by one.
    """
    frames = [frames] if isinstance(frames, pd.DataFrame) else list(frames)
    frames = [frame for frame in frames if frame is not None and len(frame)]
    sentences = []
    live = _of_source(frames, LIVE)
    if live:
        sentences.append(f"Measured on this machine{_span(live, moment)}.")
    recorded = _of_source(frames, REFERENCE)
    if recorded:
        text = f"ecorded on the reference machine{_span(recorded, day)}, not measured now."
        named = f"{_named(recorded, live)}: r" if live else "R"
        sentences.append(capital(named) + text)
    published = _of_source(frames, PUBLISHED)
    if published:
        titles = dict.fromkeys(
            publication(source)
            for frame in published
            for source in frame.get("published_in", pd.Series("an earlier work", frame.index))
        )
        sentences.append(f"Published in {join(titles)}.")
    return " ".join(sentences)


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
    """Which rows were recorded: their Pythons if those were not measured at all, else stacks."""

    def of(frames: list[pd.DataFrame]) -> dict[tuple[str, str], None]:
        return dict.fromkeys(
            (row.stack, getattr(row, "client", "grequests"))
            for frame in frames
            if "stack" in frame
            for row in frame.itertuples()
        )

    stacks = of(recorded)
    pythons = dict.fromkeys(split_stack(stack)[1] for stack, _ in stacks)
    if not stacks:
        return "some rows"
    if len(stacks) > 1 and not set(pythons) & {split_stack(stack)[1] for stack, _ in of(live)}:
        return "everything in Python " + join(pythons).replace("Python today", "today")
    return "; ".join(stack_label(*stack) for stack in stacks)


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
