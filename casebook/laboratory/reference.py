"""Which recorded answers stand in for those that cannot be measured here.

If several machines were asked exactly the same (data/machines/), the one that is most like this one
answers. Among equals it is the reference machine: the one whose full run was made for this, with
what no build of the book asks. A number (n, a delay) that no machine was asked is replaced by the
nearest one of one machine. The column `instead` says both: "on AMD EPYC, 2 cores" and "n = 10
instead of 7".
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from casebook.laboratory import machine_files, measurements
from casebook.words import ON

#: How a part of a question begins that may be anything; its name follows.
_UNKNOWN = "\0"

#: How `instead` names a number.
_WORDS = {"n": "n =", "delay_s": "a delay in seconds of"}

#: The name of the reference machine's file, without its suffix.
NAME = "intel-xeon-2core-full"


def file() -> Path:
    """Return the path of the reference machine's file."""
    return machine_files.folder() / f"{NAME}{machine_files.SUFFIX}"


def machine() -> dict[str, Any]:
    """Describe the reference machine, in fields of machine_files.ABOUT; empty without its file."""
    return machine_files.read_kept(file()).about if file().exists() else {}


@dataclass(frozen=True)
class StandIn:
    """What another machine answered in the place of this one.

    Parameters:
        values: what it was asked in the unknown parts of the question, by their names.
        answer: as its file has it.
        instead: in what it differs from what was asked, in words: "n = 10 instead of 7".
    """

    values: dict[str, Any]
    answer: dict[str, Any]
    instead: str


def unknown(name: str) -> str:
    """Return what stands in a question for a part that may be anything."""
    return f"{_UNKNOWN}{name}"


def stand_ins(
    question: list[Any],
    nearest: Mapping[str, Collection[Any]],
    is_answer: Callable[[dict[str, Any], dict[str, Any]], bool],
) -> list[StandIn]:
    """Find the answers of one machine that stand in for what was asked.

    All come from one machine, whichever rounds are asked for: the one most like this one that was
    asked exactly this, or else the one most like this one that was asked nearly this.

    Parameters:
        question: with `unknown` for each name of nearest, and for the round.
        nearest: the unknown numbers, and the values that are wanted. Where none of them was
            recorded, the nearest one is taken, and `instead` says so. No values: any will do.
        is_answer: tells from the unknown parts and a recorded answer whether it is one.

    Returns them in the order of the file; none if nothing like this was asked.
    """
    nearly: list[StandIn] = []
    recorded = machine_files.all_recorded()
    for machine in sorted(recorded, key=lambda machine: unlikeness(machine.name)):
        note = "" if machine.name == NAME else f"{ON}{machine.label}"
        candidates = [
            StandIn(values, answer, note)
            for answer in machine.answers
            if measurements.FAILED not in answer
            and (values := _values(question, answer.get("asked"))) is not None
            and all(machine_files.is_number(values[name]) for name in nearest)
            and is_answer(values, answer)
        ]
        if any(
            all(candidate.values[name] in wanted or not wanted for name, wanted in nearest.items())
            for candidate in candidates
        ):
            return _nearest(candidates, nearest)
        nearly = nearly or candidates
    return _nearest(nearly, nearest)


def _nearest(candidates: list[StandIn], nearest: Mapping[str, Collection[Any]]) -> list[StandIn]:
    for name, requested_values in nearest.items():
        recorded_values = dict.fromkeys(candidate.values[name] for candidate in candidates)
        if not requested_values or not recorded_values:
            continue
        note = ""
        if not any(value in requested_values for value in recorded_values):
            closest = min(recorded_values, key=lambda number: _distance(number, requested_values))
            requested = ", ".join(f"{value:g}" for value in requested_values)
            note = f"{_WORDS.get(name, name)} {closest:g} instead of {requested}"
            requested_values = [closest]
        candidates = [
            replace(candidate, instead="; ".join(filter(None, (candidate.instead, note))))
            for candidate in candidates
            if candidate.values[name] in requested_values
        ]
    return candidates


def _values(question: Any, parameters: Any) -> dict[str, Any] | None:
    """Return what was asked in the unknown parts of a question; None if something else was."""
    if isinstance(question, str) and question.startswith(_UNKNOWN):
        return {question.removeprefix(_UNKNOWN): parameters}
    if isinstance(question, dict) and isinstance(parameters, dict):
        if question.keys() != parameters.keys():
            return None
        pairs = [(part, parameters[name]) for name, part in question.items()]
    elif isinstance(question, list) and isinstance(parameters, list):
        if len(question) != len(parameters):
            return None
        pairs = list(zip(question, parameters, strict=True))
    else:
        return {} if question == parameters else None
    values: dict[str, Any] = {}
    for part, asked_part in pairs:
        inside = _values(part, asked_part)
        if inside is None:
            return None
        values |= inside
    return values


def label(name: str) -> str:
    """Describe a machine of data/machines/ in a few words, by the name of its file."""
    return next((file.label for file in machine_files.all_recorded() if file.name == name), name)


@lru_cache
def unlikeness(name: str) -> tuple[bool, bool, float, bool]:
    """Compare a machine with this one: architecture, OpenSSL, cores.

    Among equals the reference machine is the nearest.

    name: of its file; empty for the reference machine.
    """
    about = {file.name: file.about for file in machine_files.all_recorded()}.get(name or NAME, {})
    return *machine_files.unlikeness(about), name not in ("", NAME)


def _distance(number: float, values: Collection[Any]) -> float:
    return min(abs(math.log((number + 1e-3) / (value + 1e-3))) for value in values)
