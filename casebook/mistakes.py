"""A reader's mistake in calling a function, in one sentence.

@for_readers
def measure(names: str | Iterable[str], n: int | Iterable[int] | None = None): ...

measure("stage-1-today", n="ten")       # UsageError: n is 'ten'; give a whole number, ...
"""

import asyncio
import inspect
import math
import numbers
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar, overload

from casebook.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

#: What a cell shows in place of a traceback if somebody stops it.
STOPPED = "Stopped. Nothing is broken: run the cell again, and it goes on with what is missing."
#: The same, if it was not one of our functions that was stopped.
STOPPED_ELSEWHERE = "Stopped. Nothing is broken: run the cell again."

#: The types that are checked, and what each is called.
_SIMPLE: dict[Any, tuple[type, str]] = {
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a text in quotes"),
}
_SEVERAL = (Iterable, Sequence, list)
#: All choices are listed if they take at most this many letters; else only the first few.
_MOST_LISTED, _FEW = 220, 6
#: Types that are checked as a whole, and what each is called.
_OTHERS: dict[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    range: (range, "a range"),
    dict: (Mapping, "a dictionary"),
    Mapping: (Mapping, "a dictionary"),
    tuple: (Sequence, "a pair"),
    Callable: (Callable, "a function"),
}


@overload
def for_readers(function: C) -> C: ...
@overload
def for_readers(function: Callable[P, R]) -> Callable[P, R]: ...


def for_readers(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function, method or class that chapters call: a mistake is one sentence.

    The sentence says what is wrong with the arguments, that a frame among them lacks a column, or
    that the cell was stopped.

    Arguments are compared with the function's annotations: numbers, texts, lists of them, frames
    and other objects. A parameter that takes one or several, or takes several and has no default,
    must not be empty. It raises UsageError. A KeyboardInterrupt goes on, and a notebook shows
    STOPPED for it.
    """
    if isinstance(function, type):
        function.__init__ = for_readers(function.__init__)  # type: ignore[misc]
        return function
    parameters = inspect.signature(function)
    of_call, is_method = _without_self(parameters)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            check(function, of_call, args[is_method:], kwargs)
            return function(*args, **kwargs)
        except KeyError as error:
            if message := _missing_column(error, (*args, *kwargs.values())):
                raise UsageError(f"{_name(function)} {message}") from error
            raise
        except KeyboardInterrupt as stop:
            stop._render_traceback_ = lambda: [STOPPED]  # type: ignore[attr-defined]
            raise

    call.__signature__ = parameters  # type: ignore[attr-defined]
    return call


def say_stops(shell: Any) -> None:
    """Have a shell of IPython show one line if somebody stops a cell, whatever it was doing.

    A shell that has handlers of its own keeps them.
    """
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((KeyboardInterrupt, asyncio.CancelledError), _show_stop)


def _show_stop(
    shell: Any, kind: type, stop: BaseException, trace: Any, tb_offset: int | None = None
) -> list[str] | None:
    """Show a stop in one line; a task that the cell itself had cancelled, as IPython does."""
    if kind is asyncio.CancelledError and not _is_cell_cancelled():
        return shell.showtraceback((kind, stop, trace), tb_offset=tb_offset)
    lines = getattr(stop, "_render_traceback_", lambda: [STOPPED_ELSEWHERE])()
    shell._showtraceback(kind, stop, lines)
    return lines


def _is_cell_cancelled() -> bool:
    """Say whether somebody stopped the cell in an `await` of its own: a kernel cancels its task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop
        return False
    return bool(task and getattr(task, "cancelling", int)())  # Python 3.11 counts them


def check(
    function: Callable[..., Any],
    parameters: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Raise UsageError if these arguments make no sense."""
    known, takes_any = _types_of(function)
    for name in () if takes_any else kwargs.keys() - known.keys():
        near = get_close_matches(name, known, 1, 0.4)
        advice = f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}"
        raise UsageError(f"{_name(function)} knows no {name}=; {advice}")
    try:
        bound = parameters.bind(*args, **kwargs)
    except TypeError as error:
        missing = re.search(r"missing a required argument: '(\w+)'", str(error))
        problem = f"needs {missing[1]}=" if missing else f"cannot take these arguments ({error})"
        call = f"{_name(function)}{_plain(parameters)}"
        raise UsageError(f"{_name(function)} {problem}; it is called as {call}") from None
    for name, value in {**bound.arguments, **kwargs}.items():
        if name in known:
            _check_value(name, value, known[name], _is_required(parameters, name))


def _missing_column(error: KeyError, arguments: Iterable[Any]) -> str:
    """Say which column a frame among the arguments lacks, if that is what the error is about.

    It is if a frame or a row was asked for it that has the very columns of that argument.
    """
    trace, asked = error.__traceback__, []
    while trace:
        known = trace.tb_frame.f_locals
        asked += [_columns(known[name]) for name in ("self", "obj", "row") if name in known]
        trace = trace.tb_next
    for columns in map(_columns, arguments):
        if columns is not None and columns in asked and error.args[0] not in columns:
            return f"needs a column {error.args[0]}; this has {_few(columns)}"
    return ""


def _columns(value: Any) -> list[Any] | None:
    """Return the names of a frame's columns, or of a row's; None of anything else."""
    if isinstance(value, dict):
        return list(value)
    pandas = sys.modules.get("pandas")  # which this module does not need
    if pandas and isinstance(value, pandas.DataFrame):
        return list(value.columns)
    return list(value.index) if pandas and isinstance(value, pandas.Series) else None


@cache
def _types_of(function: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """Return the types of all parameters by name, and whether it takes any other name as well.

    Of **options that are annotated as Unpack[Options], the TypedDict has the names.
    """
    hints, hints_by_name, takes_any = typing.get_type_hints(function), {}, False
    parameters, _ = _without_self(inspect.signature(function))
    for name, parameter in parameters.parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_POSITIONAL:
            hints_by_name[name] = Iterable[hint]  # type: ignore[valid-type]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            hints_by_name[name] = hint
        elif typing.get_origin(hint) is typing.Unpack:
            hints_by_name |= typing.get_type_hints(typing.get_args(hint)[0])
        else:
            takes_any = True
    return hints_by_name, takes_any


def _without_self(parameters: inspect.Signature) -> tuple[inspect.Signature, bool]:
    """Return the parameters that a caller of a method gives, and whether it is one."""
    of_call = [parameter for name, parameter in parameters.parameters.items() if name != "self"]
    return parameters.replace(parameters=of_call), "self" in parameters.parameters


def _is_required(parameters: inspect.Signature, name: str) -> bool:
    parameter = parameters.parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty


def _check_value(name: str, value: Any, hint: Any, is_required: bool) -> None:
    """Raise UsageError if an argument is of no type that its parameter takes, or is empty."""
    if not _fits(value, hint):
        raise UsageError(f"{name} is {_short(value)}; give {' or '.join(_words(hint))}")
    takes_several = _is_one_or_several(hint) or (is_required and _is_several(hint))
    if takes_several and isinstance(value, Collection) and not len(value):
        raise UsageError(f"{name} is {_short(value)}: give one at least")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise UsageError, with the nearest choices or all of them, if a name is none of them."""
    choices = list(choices)
    if value in choices:
        return
    if near := get_close_matches(value, choices, 3, 0.6):
        raise UsageError(f"{name} is {_short(value)}; did you mean {' or '.join(near)}?")
    listed = f"choose one of: {', '.join(choices)}"
    if len(listed) > _MOST_LISTED:
        listed = f"there are {len(choices)}: {_few(choices)}"
    raise UsageError(f"{name} is {_short(value)}; {listed}")


def check_choices(
    parameter: str, name: str, values: Collection[str] | None, choices: Iterable[str]
) -> list[str]:
    """Return the values, or all choices for None. Raise UsageError for no value, or an unknown one.

    Parameters:
        parameter: where the values were given.
        name: what one of them is called, such as "the patient".
        values, choices: what was chosen, and of what.
    """
    choices = list(choices)
    if values is None:
        return choices
    if not values:
        raise UsageError(f"{parameter} is {_short(values)}: give one at least")
    for value in values:
        check_choice(name, value, choices)
    return list(values)


def check_range(name: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Raise UsageError, which names the range, if a number is out of it, or is none (NaN)."""
    if not low <= value <= high:
        most = f"{low:,g} or more" if high == math.inf else f"{low:,g} to {high:,g}"
        raise UsageError(f"{name} is {value:,}{unit}; choose {most}")


def _name(function: Callable[..., Any]) -> str:
    """Return how a reader calls it; a class by its own name."""
    names = getattr(function, "__qualname__", "this").split(".")
    return names[-2] if names[-1] == "__init__" else names[-1]


def _plain(parameters: inspect.Signature) -> str:
    """Return the names of the parameters: "(names, n, delay_s)"."""
    return f"({', '.join(parameters.parameters)})"


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def _few(names: Sequence[Any]) -> str:
    """Return the first of some names: "a, b and others"."""
    return ", ".join(map(str, names[:_FEW])) + " and others" * (len(names) > _FEW) or "none"


def _parts(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; any other type alone."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _fits(value: Any, hint: Any) -> bool:
    return any(_is_of(value, part) for part in _parts(hint))


def _is_of(value: Any, part: Any) -> bool:
    """Return whether a value is of a type; always true for types that are not checked."""
    if part in _SIMPLE:
        kind, _ = _SIMPLE[part]
        return isinstance(value, kind) and not isinstance(value, bool)
    if part is bool:  # also NumPy's
        return type(value).__name__ in ("bool", "bool_")
    origin = typing.get_origin(part) or part
    if origin in _SEVERAL:
        if isinstance(value, str | numbers.Number) or not isinstance(value, Iterable):
            return False
        (inner, *_) = typing.get_args(part) or (Any,)
        return isinstance(value, Iterator) or all(_fits(member, inner) for member in value)
    kind = _OTHERS[origin][0] if origin in _OTHERS else part
    if not _is_class(kind):
        return True
    inners = typing.get_args(part)[1:] if kind is Mapping else ()
    return isinstance(value, kind) and all(
        _fits(member, inner) for inner in inners for member in value.values()
    )


def _is_class(kind: Any) -> bool:
    """Return whether a value can be asked if it is one: of Any and of protocols it cannot."""
    return isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)


def _words(hint: Any) -> list[str]:
    """Return what would have been right: "a whole number", "a list of them"."""
    words = []
    for part in _parts(hint):
        if part in _SIMPLE:
            words.append(_SIMPLE[part][1])
        elif (origin := typing.get_origin(part) or part) in _OTHERS:
            inner = typing.get_args(part)[1:] if _OTHERS[origin][0] is Mapping else ()
            of_class = [word for kind in inner if _is_class(kind) for word in _words(kind)]
            words.append(_OTHERS[origin][1] + "".join(f", each value {word}" for word in of_class))
        elif origin in _SEVERAL:
            inner = typing.get_args(part) or (Any,)
            singular = " or ".join(_words(inner[0])).removeprefix("a ")
            words.append("several of them" if words else f"a list, each of it a {singular}")
        elif _is_class(part) and part is not type(None):
            words.append(f"{'an' if part.__name__[0] in 'AEIO' else 'a'} {part.__name__}")
    return words or ["something else"]


def _is_several(hint: Any) -> bool:
    """Return whether a parameter takes several, by name or without one, and nothing else."""
    several = (*_SEVERAL, dict, Mapping)
    return all((typing.get_origin(part) or part) in several for part in _parts(hint))


def _is_one_or_several(hint: Any) -> bool:
    """Return whether a parameter takes X and several X."""
    parts = _parts(hint)
    several = [part for part in parts if typing.get_origin(part) in _SEVERAL]
    return any(typing.get_args(part)[:1] == (scalar,) for part in several for scalar in parts)


# In a reader's notebook, from the first import of the book on; elsewhere there is no shell.
say_stops(getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)())
