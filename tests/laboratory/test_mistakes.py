"""What a reader gets wrong in a call, said in one sentence; whatever chapters call."""

import ast
import importlib
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack

import nbformat
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from casebook import measure, observe, places
from casebook.errors import CasebookError, RunFailed, UsageError
from casebook.mistakes import STOPPED, check_range, for_readers


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
        ([], {}, "fetch is called as fetch(names, n, delay_s, steps, one_core): "
         "missing a required argument: 'names'"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_sentence(args: list, how: dict, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(*args, **how)
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


@pytest.mark.parametrize("value", [0, 1001, float("nan")])
def test_what_is_out_of_range_is_refused_with_the_range(value: float) -> None:
    check_range("n", 1, 1, 1000)
    check_range("n", 1000, 1, 1000)
    with pytest.raises(UsageError, match=f"^n is {value:,} books; choose 1 to 1,000$"):
        check_range("n", value, 1, 1000, " books")


def test_what_can_be_meant_is_passed_on() -> None:
    numbers = pd.Series([3, 5])
    assert fetch("ab", numbers.iloc[0], 1, [], one_core=numbers.max() == 5) == 2
    assert fetch(iter(["a"]), range(2), numbers.iloc[1] / 2) == 1
    assert fetch(("a" for _ in "bc"), numbers) == 2


@pytest.mark.parametrize(
    "how",
    [{"n": "ten"}, {"n": 3.5}, {"n": []}, {"delay_s": "0.2"}, {"delay": 0.2}, {"repeats": "2"},
     {"until": None, "nn": 2}],
)  # fmt: skip
def test_measure_starts_nothing_for_them(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        measure("stage-1-today", **how)
    assert len(str(caught.value)) < 200
    if "repeats" not in how and "until" not in how:
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


def test_a_notebook_shows_an_error_of_ours_as_its_sentence() -> None:
    def fails() -> None:
        raise RunFailed("the page did not come: try again")

    assert in_a_cell("fails()", fails=fails) == "RunFailed: the page did not come: try again"
    assert issubclass(RunFailed, CasebookError)


def test_a_notebook_shows_a_stop_in_a_measurement_in_one_line_and_another_as_ever() -> None:
    @for_readers
    def waits() -> None:
        raise KeyboardInterrupt

    def other() -> None:
        raise KeyboardInterrupt

    assert in_a_cell("waits()", waits=waits) == STOPPED
    assert "other" in in_a_cell("other()", other=other)


def test_anything_unexpected_keeps_its_traceback() -> None:
    @for_readers
    def breaks() -> None:
        raise ZeroDivisionError("of ours")

    shown = in_a_cell("breaks()", breaks=breaks)
    assert "Traceback" in shown and "ZeroDivisionError" in shown


def called_by_chapters() -> dict[str, Callable[..., Any]]:
    """The functions of ours that chapters call, by name."""
    calls: dict[str, Callable[..., Any]] = {}
    for path in sorted(places.NOTEBOOKS.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        lines = "\n".join(cell.source for cell in cells if cell.cell_type == "code").splitlines()
        tree = ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))
        names: dict[str, Any] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("casebook"):
                for alias in node.names:
                    names[alias.asname or alias.name] = _find(node.module or "", alias.name)
        for node in ast.walk(tree):
            function = _follow(node.func, names) if isinstance(node, ast.Call) else None
            if inspect.isfunction(function) and function.__module__.startswith("casebook"):
                calls[f"{function.__module__}.{function.__name__}"] = function
    return calls


def _find(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


def _follow(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (of := _follow(node.value, names)) is not None:
        return getattr(of, node.attr, None)
    return None


#: A page's own drawing and words, and the doctor, which imports nothing of ours.
ELSEWHERE = ("casebook.charts", "tls_doctor", "casebook.findings", "casebook.words",
             "casebook.cases.many.capacity")  # fmt: skip


def test_every_function_that_a_chapter_measures_with_says_it_in_one_sentence() -> None:
    tried, otherwise = 0, {}
    for name, function in called_by_chapters().items():
        if name.startswith(ELSEWHERE):
            continue
        hints = typing.get_type_hints(function)
        for parameter in inspect.signature(function).parameters:
            if not any(part in (int, float) for part in _parts(hints.get(parameter))):
                continue
            try:
                function(**_others(function, hints, parameter), **{parameter: "ten"})
                message = "no error"
            except Exception as error:
                message = str(error)
            if not message.startswith(f"{parameter} is 'ten'; give "):
                otherwise[name, parameter] = message
            tried += 1
    assert otherwise == {}, "it has no @for_readers"
    assert tried > 40, sorted(called_by_chapters())


def _parts(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) or (hint,)


def _others(function: Callable[..., Any], hints: dict[str, Any], but: str) -> dict[str, Any]:
    """Something of its type for each other parameter that has no default."""
    return {
        name: _of_type(hints.get(name))
        for name, each in inspect.signature(function).parameters.items()
        if each.default is each.empty
        and name != but
        and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }


def _of_type(hint: Any) -> Any:
    if typing.get_origin(hint) is Iterable:
        return [_of_type(typing.get_args(hint)[0])]
    first = _parts(hint)[0]
    known = ((str, "a"), (int, 1), (float, 1.0))
    return next((right for kind, right in known if first is kind), None)
