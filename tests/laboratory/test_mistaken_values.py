"""Values that make no sense, where their type is right: one sentence, and nothing is begun."""

import inspect
import math
import re
import subprocess
import typing
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from chapter_calls import NO_READERS, called_by_chapters, types_of

from casebook.cases.bookstore import readers
from casebook.cases.certificates.loading import Task
from casebook.cases.fetching.observations import Observation
from casebook.cases.many.capacity import Costs

PROFILE = {"file": "a.py", "line": 1, "function": "f", "nc": 1, "cc": 1, "tt": 0.1, "ct": 0.1}
TRACE = pd.DataFrame(
    [(0.0, 1, 0, "f", "a.py", 1, "call"), (0.1, 1, 0, "f", "a.py", 1, "return")],
    columns=["t_s", "greenlet", "depth", "function", "file", "line", "event"],
)
STORE = SimpleNamespace(url="https://127.0.0.1:1", ca_file="none.pem")
COSTS = Costs(**dict.fromkeys(Costs.__dataclass_fields__, 1.0))
OBSERVED = Observation(
    "stage-1-today", "profile", 3, 0.1, "3", "", "", "live", {"profile": [PROFILE]}
)  # fmt: skip

#: What each function is called with where all is well: by the name of the parameter, and of the
#: function where that is not enough.
GOOD: dict[str, Any] = {
    "name": "stage-1-today", "names": ["stage-1-today"], "stack": "stage-1-today", "n": 3,
    "ns": [3], "kind": "profile", "complaint": "first", "client": "requests",
    "clients": ["requests"], "ways": ["httpx-each"], "few": 10, "many": 30, "figures": len,
    "code": "", "tasks": Task(), "store": STORE, "paths": "/", "ids": None, "repeats": 1,
    "manner": readers.manner("requests"), "jobs": {"a": {"pages": 3}}, "costs": COSTS,
    "pages": 1e6, "delay_s": 0.1, "wall_s": 1.0, "observation": TRACE, "id": "talk-serial-10",
    "observations": {"a": OBSERVED}, "dollars_per_core_hour": 0.1, "module": "requests",
    "path": "doctor.py", "contexts": 3, "column": "wall_s", "of": "a",
    "to": "b", "job": "a", "basis": ["a"], "tasks_per_second": 100.0, "sizes": ["a", "b"],
    "waits": pd.DataFrame(), "frame": pd.DataFrame(), "title": "Costs",
}  # fmt: skip
GOOD_OF = {
    "near_limit.measure": {"repeats": 1}, "bookstore.line.visits.visit": {"clients": ["bare-h2"]},
    "quic.visit": {"clients": ["bare-h3"]},
    "capacity.prediction_ratio": {"pages": pd.DataFrame()}, "capacity.at_scale": {"pages": [1e6]},
    "experiment.measure": {}, "handshakes.": {"ways": ["shared"]}, "costs.measure": {},
    "client_tasks.": {"ways": ["httpx-each"]}, "processor_time.": {"names": ["stage-1-today"]},
    "timed_visits.from_reference": {"repeats": 3, "n": 200},
    "calculator.calculator": {"visits": pd.DataFrame()},
}  # fmt: skip
#: Texts of which there is a choice, by the names of their parameters.
CHOICES = (
    "names name stack kind client clients scheme trust complaint engine ways way waits_in chain "
    "kinds variants order tls id"
).split()
#: Values that are right, by the names of their parameters.
NOUGHT = (
    "port failures certificates loads body_bytes delay_s latency_s before after delays wait_s "
    "other_ms dollars_per_core_hour proxies handshake_s reply_s"
).split()
RIGHT = {**dict.fromkeys(NOUGHT, (0,)), "tls": ("",), "without": ("",)}
#: What only compares, draws or names: a number of any size will do.
OF_ANY_SIZE = ("words.", "decisions.", "published.agrees", "analysis.verdict", "published.compare")
NOT_CHOSEN = ("charts.", "findings.claims", "laboratory.decisions")


def wrong(parameter: str, hint: Any) -> Iterator[Any]:
    """Yield values of a parameter's type that make no sense."""
    kinds = set(_kinds(hint))
    if int in kinds:
        yield from (0, -1, 10**9)
    if float in kinds:
        yield from (-1.0, math.nan, 1e30)
    if str in kinds and parameter in CHOICES:
        yield from ("no-such-thing", "")


def _kinds(hint: Any) -> Iterator[Any]:
    if (typing.get_origin(hint) or hint) in (Mapping, dict, Callable):
        return
    inner = typing.get_args(hint)
    for part in inner:
        yield from _kinds(part)
    if not inner:
        yield hint


def good(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments without which a function cannot be called."""
    own = next((values for part, values in GOOD_OF.items() if part in name), {})
    return {
        parameter.name: own.get(parameter.name, GOOD.get(parameter.name))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }


def mistakes() -> Iterator[tuple[str, Callable[..., Any], str, Any]]:
    """Yield each function that a chapter calls with its parameters and values that are wrong."""
    for name, function in called_by_chapters().items():
        if name.startswith(NO_READERS) or any(part in name for part in OF_ANY_SIZE):
            continue
        hints = types_of(function)
        for parameter in inspect.signature(function).parameters.values():
            is_one = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if is_one and not name.startswith(NO_READERS):
                for value in wrong(parameter.name, hints.get(parameter.name)):
                    if value not in RIGHT.get(parameter.name, ()) and _is_wrong(
                        name, parameter.name, value
                    ):
                        yield name, function, parameter.name, value


def _is_wrong(name: str, parameter: str, value: Any) -> bool:
    if isinstance(value, str) and any(part in name for part in NOT_CHOSEN):
        return False
    return (name.rpartition(".")[2], parameter, value) != ("observe", "n", 0)


@pytest.fixture
def nothing_begins(monkeypatch):
    """Fail what starts a program, but for asking a Python or a tool what it is."""
    begin = subprocess.Popen.__init__

    def begun(self, command, *args, **options):
        text = " ".join(map(str, command if isinstance(command, list | tuple) else [command]))
        if not any(part in text for part in ("python_implementation", "python dir", "version")):
            raise AssertionError(f"it began {text[:80]}")
        begin(self, command, *args, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", begun)


#: What hands on whatever it is given, to a function of the reader's or a script of hers.
HAND_ON = ("readers.read",)


@pytest.mark.usefixtures("nothing_begins")
def test_a_keyword_that_is_none_is_one_sentence_and_nothing_is_begun() -> None:
    tried, otherwise = 0, {}
    for name, function in called_by_chapters().items():
        if name.startswith(NO_READERS) or any(part in name for part in HAND_ON):
            continue
        if not inspect.signature(function).parameters:  # Python says that it takes none
            continue
        try:
            function(**good(name, function), no_such_keyword=1)
            message = "no error"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if not re.match(r"UsageError: .* knows no no_such_keyword=; ", message):
            otherwise[name] = message[:200]
        tried += 1
    assert otherwise == {}
    assert tried > 80, tried


@pytest.mark.usefixtures("nothing_begins")
def test_no_value_without_sense_is_more_than_one_sentence_and_nothing_is_begun() -> None:
    tried, otherwise = 0, {}
    for name, function, parameter, value in mistakes():
        try:
            function(**good(name, function) | {parameter: value})
            message = "no error"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        shown = repr(value) if isinstance(value, str) else f"{value:,}"
        # "0" alone: it also stands in "choose 1 to 10".
        whole = rf"(?<![\d,.]){re.escape(shown)}(?![\d,.]*\d)"
        says_it = re.search(rf"\b{parameter}\b", message) or re.search(whole, message)
        if not message.startswith("UsageError: ") or len(message) > 3 * 80 or not says_it:
            otherwise[name, parameter, value] = message[:200]
        tried += 1
    assert otherwise == {}
    assert tried > 300, tried
