"""How stacks, clients, Pythons and numbers are named on a page, in charts and in tables alike."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from casebook import stacks
from casebook.errors import UsageError

LIVE, REFERENCE, PUBLISHED = "live", "reference", "published"

#: Before the name of another machine than the reference machine, in the column `instead` of rows.
ON = "on "

SOURCES = {LIVE: "measured here", REFERENCE: "reference machine", PUBLISHED: "published"}

#: Whose measurements are LIVE: those of this machine, or of the one that a book is written for.
_machine = "this machine"


def of_machine(label: str) -> None:
    """From now on in this process, what is LIVE is of another machine's file, and says so."""
    global _machine
    _machine = label
    SOURCES[LIVE] = "measured there"


def machine() -> str:
    """The machine whose measurements are LIVE, in words: "this machine", or a label."""
    return _machine


def is_of_file() -> bool:
    """Whether what is LIVE comes from a machine file."""
    return _machine != "this machine"


#: The sources' words for verdicts, in the words of this book.
VERDICTS = {"slow": "serial", "fast": "concurrent"}

PYTHONS = {"py27": "2.7", "py37": "3.7", "today": "today"}

#: A column, or several that say something together.
Column = str | tuple[str, ...]

#: The two columns that say which run it is.
RUN = ("stack", "client")

#: What stands in columns, in words: column -> value -> words. Each case says its own (`call`).
VALUES: dict[Column, dict[Any, str]] = {RUN: {("", ""): "{}"}}

#: How any other number in a column is said, where it stands alone.
NUMBERS: dict[Any, str] = {"n": "n = {:,}", "threads": "{:,} threads"}

#: Names that are written small, at the beginning of a sentence too.
LIBRARIES: set[str] = set()


def call(column: Column, names: Mapping[Any, str], others: str = "") -> None:
    """Say what stands in a column, in words, as a case does for its own when it is imported.

    Parameters:
        column: its name, or RUN.
        names: value -> words. Of RUN: (stack, client) -> words, in which {} is the stack's label,
            and "" is any other stack. A client without such words is named instead of its stack.
        others: how any other number in that column is said, such as "{:,} at once".

    Raises UsageError where another case has said it in other words.
    """
    once(VALUES.setdefault(column, {}), names, str(column))
    once(NUMBERS, {column: others} if others else {}, "a number in")


def once(told: dict[Any, str], names: Mapping[Any, str], of: str) -> None:
    """Add names to those that are told. Raises UsageError for one that is told otherwise."""
    for value, said in names.items():
        if told.setdefault(value, said) != said:
            raise UsageError(f"{of} {value!r} is {told[value]!r} already, and cannot be {said!r}")


def split_stack(stack: str) -> tuple[str, str]:
    """A stack's name as (what it is, which Python): `stage-2-py27` -> ("stage-2", "2.7").

    The second is "2.7", "3.7" or "today"; "today" too for a name without a suffix, which is
    whatever runs the book.
    """
    what, _, suffix = stack.rpartition("-")
    if what and suffix in PYTHONS:
        return what, PYTHONS[suffix]
    return stack, "today"


def stack_label(stack: str, client: str = "") -> str:
    """A stack as a reader's words: `stage-2-py27` -> "+ pyOpenSSL, Python 2.7".

    A client that is the point of its run is named instead; one that is not may add something to
    the stack: "requests 2.32.4, threads" (see `call`).
    """
    run = _run(stack, client)
    return run.replace("{}", _bare_label(stack)) if run else client_label(client)


def is_of_stack(stack: str, client: str) -> bool:
    """Whether the stack, and not the client, is what a run is about."""
    return "{}" in _run(stack, client)


def _run(stack: str, client: str) -> str:
    """What is told of it; empty where its client is the point, and nothing more is known."""
    told = VALUES[RUN]
    return told.get((stack, client)) or told.get(("", client), "")


def _bare_label(stack: str) -> str:
    """As the table of stacks has it for one of that name on any Python, else the name itself."""
    what, python = split_stack(stack)
    alike = (it for it in stacks.load().values() if it.label and split_stack(it.name)[0] == what)
    label = next((it.label for it in alike), f"{what.replace('-', ' ')}, {{}}")
    if stack == what:
        return label.removesuffix(", {}")
    return label.replace("{}", python_label(python))


def added(stack: str) -> str:
    """What a stack has that the one before has not: `stage-2-py27` -> "+ pyOpenSSL"."""
    return stack_label(split_stack(stack)[0])


def python_of(stack: str) -> str:
    """Which Python a stack has: `stage-2-py27` -> "Python 2.7"."""
    return python_label(split_stack(stack)[1])


def python_label(python: str) -> str:
    """A Python as it is headed: "Python 2.7", "today"."""
    return python if python == "today" else f"Python {python}"


def client_label(client: str) -> str:
    """A client as a reader's words: `bare-h2` -> "bare h2"."""
    return value_label("client", client)


def value_label(column: str, value) -> str:
    """What stands in a column of a frame of runs, in words: engine `twisted` -> "Twisted"."""
    if value in VALUES.get(column, {}):
        return VALUES[column][value]
    return NUMBERS[column].format(value) if column in NUMBERS else str(value)


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits and no exponent: 10.0481 -> "10.0".

    From a thousand on with commas: 2231.4 -> "2,231".
    """
    value = float(value)
    if not math.isfinite(value):
        raise UsageError(f"{value} is not a number that a page can show")
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def amount(value: float, unit: str = "") -> str:
    """A number with its unit: "2,231 MB", "0.523 s", "0.052 s"; a count stays exact: "30"."""
    if not unit and float(value).is_integer():
        return f"{value:,.0f}"
    said = number(value, 2 if unit == "s" and abs(value) < 0.1 else 3)
    return f"{said} {unit}".rstrip()


def of_number(value: Any, unit: str) -> str:
    """A unit behind that number: "rounds", but "round" behind a one."""
    one = value == 1 and unit.endswith("s") and unit not in ("s", "ms")
    return unit[:-1] if one else unit


def tick(value: float) -> str:
    """A number at an axis, as short as it is round: "0.1", "10", "3,000"."""
    return f"{value:,.10g}"


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


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Second words by their first ones, in order of appearance: verdicts and the stacks of each."""
    found: dict[str, list[str]] = {}
    for first, second in pairs:
        found.setdefault(first, []).append(second)
    return found


def capital(text: str) -> str:
    """A sentence's beginning: only the first letter is changed, and no library's name."""
    if re.match(rf"({'|'.join(map(re.escape, LIBRARIES))})\b", text):
        return text
    return text[:1].upper() + text[1:]


def times(factor: float) -> str:
    """A factor as a reader says it: "9.6 times", "96 times"."""
    return f"{number(factor, 2) if factor < 100 else f'{factor:.0f}'} times"
