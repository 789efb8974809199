"""What a reader gets wrong in a call, said in one sentence; whatever chapters call."""

import asyncio
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pandas as pd
import pytest
from chapter_calls import NO_READERS, called_by_chapters, types_of
from IPython.core.interactiveshell import InteractiveShell

from casebook import measure, observe
from casebook import mistakes as mistakes_module
from casebook.cases.bookstore import hello
from casebook.cases.certificates import cores
from casebook.cases.fetching import detector
from casebook.cases.many import capacity
from casebook.errors import CasebookError, RunFailed, UsageError
from casebook.laboratory.decisions import Hypothesis
from casebook.mistakes import (
    STOPPED,
    STOPPED_ELSEWHERE,
    check_choice,
    check_range,
    for_readers,
    say_stops,
)


@for_readers
def fetch(
    names: str | Iterable[str],
    n: int | Iterable[int] = 3,
    delay_s: float = 0.1,
    steps: Iterable[str] | None = None,
    one_core: bool = False,
) -> int:
    """Say how many were asked for."""
    return len(list(names))


@pytest.mark.parametrize(
    ("args", "how", "sentence"),
    [
        (["a"], {"n": "ten"}, "n is 'ten'; give a whole number or several of them"),
        (["a"], {"n": 3.5}, "n is 3.5; give a whole number or several of them"),
        (["a"], {"n": True}, "n is True; give a whole number or several of them"),
        (["a"], {"n": [3, "4"]}, "n is [3, '4']; give a whole number or several of them"),
        (["a"], {"n": []}, "n is []: give one at least"),
        ([[]], {}, "names is []: give one at least"),
        (["a"], {"delay_s": "0.2"}, "delay_s is '0.2'; give a number"),
        (["a"], {"delay": 0.2}, "fetch knows no delay=; did you mean delay_s?"),
        (["a"], {"q": 1}, "fetch knows no q=; there is names, n, delay_s, steps, one_core"),
        ([3], {}, "names is 3; give a text in quotes or several of them"),
        (["a"], {"steps": "abc"}, "steps is 'abc'; give a list, each of it a text in quotes"),
        (["a"], {"one_core": 1}, "one_core is 1; give True or False"),
        ([], {}, "fetch needs names=; it is called as fetch(names, n, delay_s, steps, one_core)"),
        (["a", 1, 0.1, (), True, 7], {},
         "fetch cannot take these arguments (too many positional arguments); "
         "it is called as fetch(names, n, delay_s, steps, one_core)"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_sentence(args: list, how: dict, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(*args, **how)
    assert str(caught.value) == sentence


def test_what_has_to_be_given_is_not_empty_and_what_need_not_be_may_be() -> None:
    @for_readers
    def draw(runs: Mapping[str, int], ways: Iterable[str], steps: Iterable[str] = ()) -> int:
        """Say how many were drawn."""
        return len(runs)

    assert draw({"a": 1}, ["a"], []) == 1
    for arguments, sentence in (
        (({}, ["a"]), "runs is {}: give one at least"),
        (({"a": 1}, []), "ways is []: give one at least"),
    ):
        with pytest.raises(UsageError) as caught:
            draw(*arguments)
        assert str(caught.value) == sentence


def test_a_name_that_is_none_has_the_nearest_ones_or_all_or_a_few_of_many() -> None:
    check_choice("the way", "one", ["one", "two"])
    many = [f"way-{number}" for number in range(100)]
    for value, choices, sentence in (
        ("thre", ["one", "two", "three"], "the way is 'thre'; did you mean three?"),
        ("", ["one", "two"], "the way is ''; choose one of: one, two"),
        ("x", many, "the way is 'x'; there are 100: way-0, way-1, way-2, way-3, way-4, way-5 "
         "and others"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            check_choice("the way", value, choices)
        assert str(caught.value) == sentence


class Place(TypedDict, total=False):
    """Where it is fetched from."""

    delay_s: float
    hosts: str | Iterable[str]


@for_readers
def fetch_from(n: int = 3, **place: Unpack[Place]) -> int:
    """Say how many options were chosen."""
    return len(place)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"delay": 0.2}, "fetch_from knows no delay=; did you mean delay_s?"),
        ({"q": 1}, "fetch_from knows no q=; there is n, delay_s, hosts"),
        ({"delay_s": "0.2"}, "delay_s is '0.2'; give a number"),
        ({"hosts": []}, "hosts is []: give one at least"),
    ],
)
def test_options_are_checked_by_the_type_that_names_them(how: dict, sentence: str) -> None:
    assert fetch_from(2, delay_s=0.2, hosts="a") == 2
    with pytest.raises(UsageError) as caught:
        fetch_from(**how)
    assert str(caught.value) == sentence


@for_readers
@dataclass(frozen=True)
class Order:
    """What a cell makes an object of, and a method that it calls."""

    n: int = 1
    way: str = "file"

    @for_readers
    def cost(self, size: float, free: bool = False) -> float:
        """Say what it costs."""
        return 0 if free else self.n * size


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Order("ten"), "n is 'ten'; give a whole number"),
        (lambda: Order(N=3), "Order knows no N=; there is n, way"),
        (lambda: Order(1, "file", 3), "Order cannot take these arguments (too many positional "
         "arguments); it is called as Order(n, way)"),
        (lambda: Order().cost(), "cost needs size=; it is called as cost(size, free)"),
        (lambda: Order().cost("big"), "size is 'big'; give a number"),
        (lambda: Order().cost(1, fre=True), "cost knows no fre=; did you mean free?"),
    ],
)  # fmt: skip
def test_a_class_and_a_method_say_what_is_wrong_as_functions_do(
    call: Callable[[], object], sentence: str
) -> None:
    assert Order(3).cost(2) == 6 and str(inspect.signature(Order)).startswith("(n: int = 1, ")
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == sentence


def test_methods_that_chapters_call_are_checked() -> None:
    """A chapter's variable says nothing of its class: these are named here."""
    methods = (
        Hypothesis.decide, cores._OnTwoCores.decide, hello.Site.log, detector.Watch.report,
        detector.Watch.blocked_in, capacity.Costs.cpu_ms, capacity.Costs.second_ms,
    )  # fmt: skip
    for method in methods:
        with pytest.raises(UsageError, match="knows no no_such_keyword=; "):
            method(object(), no_such_keyword=1)


@pytest.mark.parametrize("value", [0, 1001, float("nan")])
def test_what_is_out_of_range_is_refused_with_the_range(value: float) -> None:
    check_range("n", 1, 1, 1000)
    check_range("n", 1000, 1, 1000)
    with pytest.raises(UsageError, match=f"^n is {value:,} books; choose 1 to 1,000$"):
        check_range("n", value, 1, 1000, " books")
    with pytest.raises(UsageError, match=r"^n is -1; choose 0 or more$"):
        check_range("n", -1, 0, float("inf"))


def test_what_can_be_meant_is_passed_on() -> None:
    numbers = pd.Series([3, 5])
    assert fetch("ab", numbers.iloc[0], 1, [], one_core=numbers.max() == 5) == 2
    assert fetch(iter(["a"]), range(2), numbers.iloc[1] / 2) == 1
    assert fetch(("a" for _ in "bc"), numbers) == 2


def test_what_is_no_frame_is_said_in_one_sentence_and_anything_goes_where_anything_may() -> None:
    @for_readers
    def show(
        frame: pd.DataFrame,
        value: Any = None,
        seen: Path | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        """Show it."""

    for arguments, sentence in (
        (("fast",), "frame is 'fast'; give a DataFrame"),
        ((None,), "frame is None; give a DataFrame"),
        ((pd.DataFrame(), 1, "a.py"), "seen is 'a.py'; give a Path"),
        ((pd.DataFrame(), 1, None, [1]), "limits is [1]; give a dictionary, each value a number"),
    ):
        with pytest.raises(UsageError) as caught:
            show(*arguments)
        assert str(caught.value) == sentence
    show(pd.DataFrame(), object(), Path("a.py"), {"one delay": 1.0})


@pytest.mark.parametrize(
    "how",
    [{"n": "ten"}, {"n": 3.5}, {"n": []}, {"delay_s": "0.2"}, {"delay": 0.2}, {"repeats": "2"},
     {"until": None, "nn": 2}, {"until": 3}, {"until": "cpu"}, {"until": [3]}, {"looks": 8}],
)  # fmt: skip
def test_measure_starts_nothing_for_them(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        measure("stage-1-today", **how)
    assert len(str(caught.value)) < 200
    assert any(name in str(caught.value) for name in how)
    if not {"repeats", "until", "looks"} & how.keys():
        with pytest.raises(UsageError):
            observe("stage-1-today", "profile", **how)


def in_a_cell(source: str, **names: object) -> str:
    """What a cell shows of its error: IPython's, as a kernel's."""
    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    lines: list[str] = []
    shell._showtraceback = lambda kind, value, stack: lines.extend(stack)  # type: ignore[method-assign]
    shell.run_cell(source)
    return "\n".join(lines)


def stopped_in_an_await() -> str:
    """What a cell shows that is stopped while it awaits: a kernel cancels its task."""
    shell = InteractiveShell.instance()
    lines: list[str] = []
    shell._showtraceback = lambda kind, value, stack: lines.extend(stack)  # type: ignore[method-assign]

    async def stop() -> None:
        code = "import asyncio\nawaits = True\nawait asyncio.sleep(60)"
        cell = asyncio.ensure_future(shell.run_cell_async(code, transformed_cell=code))
        while not shell.user_ns.get("awaits"):
            await asyncio.sleep(0.01)
        cell.cancel()
        await cell

    asyncio.run(stop())
    return "\n".join(lines)


def test_a_notebook_shows_an_error_of_ours_as_its_sentence() -> None:
    def fails() -> None:
        raise RunFailed("the page did not come: try again")

    assert in_a_cell("fails()", fails=fails) == "RunFailed: the page did not come: try again"
    assert issubclass(RunFailed, CasebookError)


def test_a_notebook_shows_a_stop_in_one_line_wherever_it_was() -> None:
    @for_readers
    def waits() -> None:
        raise KeyboardInterrupt

    def other() -> None:
        raise KeyboardInterrupt

    shell = InteractiveShell.instance()
    assert in_a_cell("waits()", waits=waits) == STOPPED
    assert "other" in in_a_cell("other()", other=other)
    handlers = shell.custom_exceptions, shell.CustomTB
    say_stops(shell)
    say_stops(None)
    try:
        assert in_a_cell("waits()", waits=waits) == STOPPED
        assert in_a_cell("other()", other=other) == STOPPED_ELSEWHERE
        assert "ZeroDivisionError" in in_a_cell("1 / 0")
        assert stopped_in_an_await() == STOPPED_ELSEWHERE
        # A task that the cell itself had cancelled is no stop.
        own = "task = asyncio.ensure_future(asyncio.sleep(9)); task.cancel(); await task"
        assert "CancelledError" in in_a_cell(own, asyncio=asyncio)
        # A handler of somebody else's is left alone.
        shell.set_custom_exc((ValueError,), lambda *_: ["mine"])
        say_stops(shell)
        assert shell.custom_exceptions == (ValueError,)
    finally:
        shell.custom_exceptions, shell.CustomTB = handlers


def test_anything_unexpected_keeps_its_traceback() -> None:
    @for_readers
    def breaks() -> None:
        raise ZeroDivisionError("of ours")

    shown = in_a_cell("breaks()", breaks=breaks)
    assert "Traceback" in shown and "ZeroDivisionError" in shown


def test_a_frame_without_a_column_is_one_sentence_that_names_it() -> None:
    @for_readers
    def count(frame: pd.DataFrame, by: str = "stack") -> int:
        """Count what is of one kind, in one of several ways."""
        if by == "records":
            return sum(row["n"] for row in frame.to_dict("records"))
        return len(frame[frame["a"] > 0].groupby(by))

    frame = pd.DataFrame({"a": [1], "b": [2]})
    for by, column in (("stack", "stack"), ("records", "n")):
        with pytest.raises(UsageError) as caught:
            count(frame, by)
        assert str(caught.value) == f"count needs a column {column}; this has a, b"
    with pytest.raises(UsageError, match=r"^count needs a column a; this has none$"):
        count(pd.DataFrame())
    wide = pd.DataFrame({letter: [1] for letter in "bcdefghi"})
    with pytest.raises(UsageError, match=r"this has b, c, d, e, f, g and others$"):
        count(wide)


def test_a_name_that_is_missing_elsewhere_keeps_its_traceback() -> None:
    """What a function of ours has not made itself is no mistake of a reader's."""

    @for_readers
    def broken(frame: pd.DataFrame, part: str) -> Any:
        """Look into a frame of its own, or a dictionary."""
        return pd.DataFrame({"c": [1]})["x"] if part == "frame" else {"c": 1}["x"]

    for part in ("frame", "dictionary"):
        with pytest.raises(KeyError, match="x"):
            broken(pd.DataFrame({"a": [1]}), part)


def test_no_frame_of_another_kind_is_more_than_one_sentence() -> None:
    tried, frame = 0, pd.DataFrame({"a": [1.0, 2.0]})
    for name, function in called_by_chapters().items():
        hints = types_of(function)
        for parameter, hint in hints.items():
            if pd.DataFrame not in _parts(hint) or name.endswith("tables.show"):
                continue  # that shows any
            if parameter == "return" or name.endswith("with_predictions"):
                continue  # that takes what `capacity` itself returned, and names it otherwise
            with pytest.raises(UsageError) as caught:
                function(**_others(function, hints, parameter), **{parameter: frame})
            assert len(str(caught.value)) <= 3 * 80, name
            tried += 1
    assert tried > 25, tried


#: What a reader may type or pass by mistake.
WRONG = (
    "ten", 3.5, -1, True, None, [], ["ten"], [None], {}, {"n": 3}, ("a", 1), b"ten", object(), len,
    Path("a.py"), pd.DataFrame(), pd.Series([1.5]),
)  # fmt: skip


def mistakes() -> Iterator[tuple[str, Callable[..., Any], str, Any]]:
    """Yield each function that a chapter calls with each of its parameters and wrong arguments."""
    for name, function in called_by_chapters().items():
        hints = types_of(function)
        for parameter in inspect.signature(function).parameters.values():
            if name.startswith(NO_READERS) or parameter.kind in (
                parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL
            ):  # fmt: skip
                continue
            hint = hints.get(parameter.name, Any)
            for value in WRONG:
                if not right(value, hint):
                    yield name, function, parameter.name, value


def right(value: Any, hint: Any) -> bool:
    """Return whether an argument is of a type: by the test's own rules, not by those it tries."""
    if hint is Any or any(part in (Any, object) for part in _parts(hint)):
        return True
    return any(_is_right(value, part) for part in _parts(hint))


def _is_right(value: Any, part: Any) -> bool:
    origin, inner = typing.get_origin(part) or part, typing.get_args(part)
    if origin in (int, float):
        return isinstance(value, int | origin) and not isinstance(value, bool)
    if origin in (Iterable, Sequence, list):
        is_several = isinstance(value, Iterable) and not isinstance(value, str)
        return is_several and all(right(member, inner[0] if inner else Any) for member in value)
    if origin is tuple:
        return isinstance(value, Sequence)
    return isinstance(value, origin) if isinstance(origin, type) else callable(value)


def test_no_mistake_in_a_call_is_more_than_one_sentence() -> None:
    tried, otherwise = 0, {}
    for name, function, parameter, value in mistakes():
        hints = types_of(function)
        try:
            function(**_others(function, hints, parameter), **{parameter: value})
            message = "no error"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if not message.startswith(f"UsageError: {parameter} is ") or len(message) > 3 * 80:
            otherwise[name, parameter, repr(value)[:40]] = message[:200]
        tried += 1
    assert otherwise == {}, "it has no @for_readers"
    assert tried > 1500, tried


def test_right_arguments_are_no_mistake() -> None:
    """What has the types that a function names is no mistake."""
    tried = 0
    for name, function in called_by_chapters().items():
        if name.startswith(NO_READERS):
            continue
        hints = types_of(function)
        arguments = _others(function, hints, "")
        signature = inspect.signature(function)
        called = vars(function)["__init__"] if inspect.isclass(function) else function
        mistakes_module.check(called, signature, (), arguments)
        tried += bool(arguments)
    assert tried > 80, tried


def _parts(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _others(function: Callable[..., Any], hints: dict[str, Any], but: str) -> dict[str, Any]:
    """Return something of its type for each other parameter that has no default."""
    return {
        name: _of_type(hints.get(name, Any))
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
        and name != but
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }


def _of_type(hint: Any) -> Any:
    first = _parts(hint)[0]
    origin, inner = typing.get_origin(first) or first, typing.get_args(first)
    if origin in (Iterable, Sequence, list):
        return [_of_type(inner[0] if inner else Any)]
    if origin is tuple:
        return tuple(_of_type(part) for part in inner if part is not ...)
    if origin in (Mapping, dict):
        return {"a": _of_type(inner[1] if inner else Any)}
    plain = {str: "a", int: 1, float: 1.0, Path: Path("a.py"), pd.DataFrame: pd.DataFrame(),
             pd.Series: pd.Series(dtype=float), Any: None,
             Callable: len}  # fmt: skip
    if origin in plain or not isinstance(origin, type):
        return plain.get(origin, len)
    return object.__new__(origin)
