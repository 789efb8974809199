"""Names of stacks, clients, Pythons and numbers on a page, in charts and in tables alike."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from casebook import stacks
from casebook.errors import UsageError
from casebook.mistakes import for_readers

LIVE, REFERENCE, PUBLISHED = "live", "reference", "published"

#: The prefix of a machine's name in the column `instead`, if it is not the reference machine.
ON = "on "

SOURCES = {LIVE: "measured here", REFERENCE: "recorded", PUBLISHED: "published"}

#: The machine whose measurements are LIVE: this one, or the one that a book is written for.
_machine = "this machine"


def set_machine_label(label: str) -> None:
    """Label what is LIVE, from now on in this process, as coming from another machine's file."""
    global _machine
    _machine = label
    SOURCES[LIVE] = "measured there"


def machine() -> str:
    """Return the machine whose measurements are LIVE, in words: "this machine", or a label."""
    return _machine


def is_from_machine_file() -> bool:
    """Return whether what is LIVE comes from a machine file."""
    return _machine != "this machine"


#: The sources' words for verdicts -> the words of this book.
PUBLISHED_VERDICTS = {"slow": "serial", "fast": "concurrent"}

PYTHONS = {"py27": "2.7", "py37": "3.7", "today": "today"}

#: A column, or several that say something together.
Column = str | tuple[str, ...]

#: The two columns that say which run it is.
RUN = ("stack", "client")

#: The values of columns in words: column -> value -> words. Each case adds its own (`call`).
VALUES: dict[Column, dict[Any, str]] = {RUN: {("", ""): "{}"}}

#: The format of any other number in a column, if it stands alone.
NUMBERS: dict[Any, str] = {"n": "n = {:,}", "threads": "{:,} threads"}

#: The headings of columns in tables, with the unit in them: those that any case may have. Each case
#: adds its own (`head`).
HEADINGS: dict[Any, str] = {
    "wall_s": "wall time, s",
    "user_s": "user CPU, s",
    "sys_s": "system CPU, s",
    "cpu_s": "CPU, s",
    "process_cpu_s": "CPU of the whole process, s",
    "server_cpu_s": "server's CPU, s",
    "median_s": "median time, s",
    "min_s": "fastest, s",
    "max_s": "slowest, s",
    "tottime_s": "total time, s",
    "cumtime_s": "cumulative time, s",
    "peak_rss_kib": "peak memory, KiB",
    "peak_mb": "peak memory, MB",
    "measured_at": "measured at, UTC",
}

#: Names that stay lower-case, even at the beginning of a sentence.
LIBRARIES: set[str] = set()


def call(column: Column, names: Mapping[Any, str], number_format: str = "") -> None:
    """Put the values of a column into words, as each case does for its own when it is imported.

    Parameters:
        column: its name, or RUN.
        names: value -> words. For RUN: (stack, client) -> words, in which {} is the stack's label,
            and "" is any other stack. A client without such words is named instead of its stack.
        number_format: for any other number in that column, such as "{:,} at once".

    Raises UsageError if another case has used other words.
    """
    add_names(VALUES.setdefault(column, {}), names, str(column))
    add_names(NUMBERS, {column: number_format} if number_format else {}, "a number in")


def head(headings: Mapping[str, str]) -> None:
    """Give columns their headings in tables, as each case does for its own when it is imported.

    Parameters:
        headings: column -> heading, with its unit, such as "server's CPU, s". Without one, a column
            is headed by its name.

    Raises UsageError if another case has used another heading.
    """
    add_names(HEADINGS, headings, "the heading of")


def add_names(table: dict[Any, str], names: Mapping[Any, str], subject: str) -> None:
    """Add names to a table of them. Raises UsageError for a value that has another name already."""
    for value, name in names.items():
        if table.setdefault(value, name) != name:
            raise UsageError(
                f"{subject} {value!r} is {table[value]!r} already, and cannot be {name!r}"
            )


def split_stack(stack: str) -> tuple[str, str]:
    """Split a stack's name into what it is and its Python: `stage-2-py27` -> ("stage-2", "2.7").

    The second is "2.7", "3.7" or "today"; "today" too for a name without a suffix, which stands for
    the Python that runs the book.
    """
    stage, _, suffix = stack.rpartition("-")
    if stage and suffix in PYTHONS:
        return stage, PYTHONS[suffix]
    return stack, "today"


@for_readers
def stack_label(stack: str, client: str = "") -> str:
    """Return a stack in a reader's words: `stage-2-py27` -> "+ pyOpenSSL, Python 2.7".

    A client that is the point of its run is named instead; any other may add something to the
    stack: "requests 2.32.4, threads" (see `call`).
    """
    run = _run(stack, client)
    return run.replace("{}", _bare_label(stack)) if run else client_label(client)


def is_of_stack(stack: str, client: str) -> bool:
    """Return whether the stack, and not the client, is what a run is about."""
    return "{}" in _run(stack, client)


def _run(stack: str, client: str) -> str:
    """Return the words for a run; "" if its client is the point, and nothing more is known."""
    labels = VALUES[RUN]
    return labels.get((stack, client)) or labels.get(("", client), "")


def _bare_label(stack: str) -> str:
    """Return the label of a stack of that name on any Python in the table, else the name."""
    stage, python = split_stack(stack)
    namesakes = (
        stack_row
        for stack_row in stacks.load().values()
        if stack_row.label and split_stack(stack_row.name)[0] == stage
    )
    label = next((namesake.label for namesake in namesakes), f"{stage.replace('-', ' ')}, {{}}")
    if stack == stage:
        return label.removesuffix(", {}")
    return label.replace("{}", python_label(python))


def added(stack: str) -> str:
    """Return what a stack has that the one before has not: `stage-2-py27` -> "+ pyOpenSSL"."""
    return stack_label(split_stack(stack)[0])


def python_of(stack: str) -> str:
    """Return which Python a stack has: `stage-2-py27` -> "Python 2.7"."""
    return python_label(split_stack(stack)[1])


def python_label(python: str) -> str:
    """Return a Python as in a header: "Python 2.7", "today"."""
    return python if python == "today" else f"Python {python}"


@for_readers
def client_label(client: str) -> str:
    """Return a client in a reader's words: `bare-h2` -> "bare h2"."""
    return value_label("client", client)


def value_label(column: str, value) -> str:
    """Return a value of a frame of runs in words: engine `twisted` -> "Twisted"."""
    if value in VALUES.get(column, {}):
        return VALUES[column][value]
    return NUMBERS[column].format(value) if column in NUMBERS else str(value)


def number(value: float, digits: int = 3) -> str:
    """Format a number with that many significant digits and no exponent: 10.0481 -> "10.0".

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
    """Format a number and its unit: "2,231 MB", "0.523 s", "0.052 s"; a count stays exact: "30"."""
    if not unit and float(value).is_integer():
        return f"{value:,.0f}"
    text = number(value, 2 if unit == "s" and abs(value) < 0.1 else 3)
    return f"{text} {unit}".rstrip()


def of_number(value: Any, unit: str) -> str:
    """Return a unit behind that number: "rounds", but "round" behind a one."""
    is_one = value == 1 and unit.endswith("s") and unit not in ("s", "ms")
    return unit[:-1] if is_one else unit


def tick(value: float) -> str:
    """Format a number at an axis, as short as it is round: "0.1", "10", "3,000"."""
    return f"{value:,.10g}"


def seconds(value: float) -> str:
    """Format a time as a reader says it: "10.0 s", "250 ms"."""
    return f"{number(value * 1000, 2)} ms" if abs(value) < 0.1 else f"{number(value)} s"


def delay(value: float) -> str:
    """Format a chosen time, with no digit more than was chosen: "0.1 s", "1 s"."""
    return f"{value:g} s"


@for_readers
def join(words: Iterable[str] = ()) -> str:
    """Join words in a list: "a", "a and b", "a, b and c"."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group second words by their first ones, in order of appearance.

    The words are verdicts and the stacks of each.
    """
    groups: dict[str, list[str]] = {}
    for first, second in pairs:
        groups.setdefault(first, []).append(second)
    return groups


@for_readers
def capital(text: str) -> str:
    """Capitalise the first letter of a sentence, unless it is a library's name."""
    if re.match(rf"({'|'.join(map(re.escape, LIBRARIES))})\b", text):
        return text
    return text[:1].upper() + text[1:]


def times(factor: float) -> str:
    """Format a factor as a reader says it: "9.6 times", "96 times"."""
    return f"{number(factor, 2) if factor < 100 else f'{factor:.0f}'} times"


#: Small numbers as a sentence has them.
_NUMERALS = "no one two three four five six seven eight nine ten eleven twelve".split()


@for_readers
def numeral(count: int) -> str:
    """Return a count as it stands in a sentence: "eight", "30"."""
    return _NUMERALS[count] if 0 <= count < len(_NUMERALS) else f"{count:,}"


@for_readers
def out_of(count: int, total: int, nouns: str) -> str:
    """Return how many of several, as a person says it: "both Pythons", "six of the seven cures"."""
    if count == total > 1:
        return f"both {nouns}" if total == 2 else f"all {numeral(total)} {nouns}"
    if count == 0:
        return f"{'neither' if total == 2 else 'none'} of the {numeral(total)} {nouns}"
    return f"{numeral(count)} of the {numeral(total)} {nouns}"
