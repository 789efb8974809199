"""A decision is made once, and counted once; and each finding says what it was measured on."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from test_notebooks import NOTEBOOKS, called, python_of, sources
from test_resting import made

from casebook.laboratory import machine_files

#: Findings of which another repeats a decision, as a condition of its own: (it, the other).
REPEATED = {
    ("distance-law", "distance-hundred"): "what is counted there are handshakes",
}


@cache
def claims_of(path: Path) -> dict[str, ast.Call]:
    """The calls that make the claims of a chapter, by id."""
    trees = [ast.parse(python_of(cell)) for cell in sources(path, "code")]
    calls = (node for tree in trees for node in ast.walk(tree) if called(node) == "claim")
    return {ast.literal_eval(call.args[0]): call for call in calls}


def decisions_of(path: Path) -> dict[str, list[str]]:
    """What the claims of a chapter decide, as `question.decide(frame)`: the ids by decision.

    A name that a cell gives to a decision counts as the decision.
    """
    named: dict[str, str] = {}
    ids = defaultdict(list)
    for cell in sources(path, "code"):
        tree = ast.parse(python_of(cell))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                pairs = zip(*map(_parts, (node.targets[0], node.value)), strict=False)
                named |= {
                    ast.unparse(name): ast.unparse(value)
                    for name, value in pairs
                    if called(value) == "decide"
                }
        for call in (node for node in ast.walk(tree) if called(node) == "claim"):
            given = [k.value for k in call.keywords if k.arg in ("value", "also")] + call.args[2:3]
            parts = [part for value in given for part in _parts(value)]
            texts = {named.get(ast.unparse(part), ast.unparse(part)) for part in parts}
            for text in texts:
                if ".decide(" in text:
                    ids[text].append(ast.literal_eval(call.args[0]))
    return ids


def _parts(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_two_findings_of_a_chapter_make_the_same_decision(path: Path) -> None:
    """Quote the other finding by a link, or say in REPEATED why it is a condition here, too."""
    pairs = {tuple(ids) for ids in decisions_of(path).values() if len(ids) > 1}
    assert pairs - REPEATED.keys() == set()


def test_the_decisions_are_found() -> None:
    decisions = [text for path in NOTEBOOKS for text in decisions_of(path)]
    assert len(decisions) > 90 and "gain.decide(away)" in decisions
    repeated = {tuple(ids) for path in NOTEBOOKS for ids in decisions_of(path).values()}
    assert REPEATED.keys() <= repeated, "nobody repeats these any more: take them out"


@pytest.mark.parametrize("machine", machine_files.all_recorded(), ids=lambda machine: machine.name)
def test_no_two_findings_of_a_machine_have_one_interval(machine: machine_files.Machine) -> None:
    """Equal to the last digit: then they are the same rounds, asked the same, in whatever words."""
    ids = defaultdict(list)
    today = {id for _, id in made()}
    for id, finding in machine.findings.items():
        if id in today and finding.get("interval"):
            ids[finding["value"], *finding["interval"]].append(id)
    assert [several for several in ids.values() if len(several) > 1] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_finding_says_what_it_was_measured_on(path: Path) -> None:
    """By its runs, whose stacks are known, by `stack=`, or in words by `on=`."""
    without_stack = {
        id
        for machine in machine_files.all_recorded()
        for id, finding in machine.findings.items()
        if not finding.get("stack")
    } - WITH_CLIENTS
    silent = []
    for id, call in claims_of(path).items():
        keywords = {keyword.arg for keyword in call.keywords}
        if not keywords & {"stack", "on"} and ("runs" not in keywords or id in without_stack):
            silent.append(id)
    assert silent == []


#: Their runs have no stacks, and say by another column of reach.COLUMNS what they were made with.
WITH_CLIENTS = {"books-calls"}
