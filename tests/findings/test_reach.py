"""How far a finding reaches: what it was measured on, and what its sentences may speak of."""

import json
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from test_resting import PAGES, RESTS, made, prose_of

from casebook import cli, places, stacks
from casebook.findings import reach
from casebook.findings.finding import Finding
from casebook.laboratory import machine_files
from casebook.pages import ledger, resting
from casebook.pages.contents import Book

#: Findings on which wider sentences may rest, each with the reason.
ALLOWED = {
    "laptop-times-slower": "two Pythons are what is compared",
    "stages-python-decides": "two Pythons are what is compared",
    "stages-one-package": "what a script imports, one can read in it",
    "method-serial-bound": "arithmetic: n waits in a row take n waits at least",
    "hello-alpn": "RFC 9113 and RFC 7301 say so; the finding shows it",
    "slow-streams-do-not-wait": "RFC 9113 says so; the finding shows it",
    "machine-leaks": "everybody in one process of requests, as its row says",
    "patched-seal-tells-verdict": "the row names the packages in its next cell",
    "today-geventhttpclient-blocks": "the row names the library in its first cell",
}


@cache
def measured_on() -> dict[str, str]:
    """The stacks of each finding, as the machines of the book have it."""
    findings = (machine.findings for machine in machine_files.all_recorded())
    return {id: its.get("stack", "") for each in findings for id, its in each.items()}


def sentences(path: Path) -> list[tuple[str, list[str]]]:
    """The sentences of a page that rest on findings: their text, and the ids."""
    prose = re.sub(r"^```.*?^```", "", prose_of(path), flags=re.M | re.S)
    blocks = re.split(r"\n\s*\n|\n(?=[-*|] )|(?<!\\)\|", prose)
    ended = (" ".join(block.split()) + " " for block in blocks)
    parts = [resting._END.sub(lambda end: end[0].rstrip() + "\0", each) for each in ended]
    found = []
    for sentence in (each for part in parts for each in part.split("\0")):
        if ids := [id or key for _, id, _, key in RESTS.findall(sentence)]:
            text = re.sub(r'\]\([^)\s]*(?: "[^"]*")?\)|`[^`]*::[^`]*`', "", sentence)
            found.append((text.replace("[", ""), ids))
    return found


def too_wide(path: Path) -> list[tuple[str, list[str]]]:
    return [
        (text, ids)
        for text, ids in sentences(path)
        if reach.wider(text, [measured_on().get(id, "") for id in ids])
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_sentence_reaches_no_further_than_its_findings(path: Path) -> None:
    """Each sentence reaches no further than its findings.

    Name the implementation, rest the sentence on two that share no code, or say in ALLOWED why it
    may speak wider.
    """
    assert [text for text, ids in too_wide(path) if not ALLOWED.keys() & set(ids)] == []


def test_what_is_allowed_is_needed() -> None:
    needed = {id for path in PAGES for _, ids in too_wide(path) for id in ids}
    assert ALLOWED.keys() - needed == set(), "no sentence needs these any more: take them out"
    assert ALLOWED.keys() <= {id for _, id in made()}


def test_the_sentences_are_found() -> None:
    found = [text for path in PAGES for text, _ in sentences(path)]
    assert len(found) > 400
    known = "The certificates are what costs: with a bundle of one, just as many loads are cheap."
    assert known in [text.removeprefix("- ") for text in found]


@pytest.mark.parametrize(
    ("sentence", "names", "layers"),
    [
        ("Over HTTP/2 all of them wait.", ["twisted-today"], ["HTTP/2"]),
        ("Over HTTP/2 all of them wait.", ["twisted-today, httpx-today"], ["HTTP/2"]),  # both h2
        ("Over HTTP/2 all of them wait.", ["twisted-today, granian-today"], []),
        ("Over HTTP/2 all of them wait.", ["twisted-today", "pycurl-today"], []),
        ("Over HTTP/2, Twisted lets all of them wait.", ["twisted-today"], []),
        ("It saves nothing.", ["twisted-today"], []),
        ("Resuming TLS saves none.", ["line-libraries-today"], ["TLS"]),
        ("Whoever wants it today writes it.", ["h2-today"], ["HTTP"]),
        ("Whoever fetches loads for each.", ["cured-today, aiohttp-today"], []),
        ("It takes HTTP/2 and TLS.", [""], ["HTTP/2", "TLS"]),
        ("On Python 2.7 it is slow.", ["stage-1-py27"], []),
        # Who said it does not narrow it, and what somebody says of a thing does not name the thing:
        # stage-2-py27 has one HTTP (urllib3) and one TLS (OpenSSL), hyper-py37 one HTTP/2 (h2).
        ("Hirani found that TLS is always slow.", ["stage-2-py27"], ["TLS", "HTTP"]),
        ("Hirani's guess holds for TLS.", ["stage-2-py27"], ["TLS"]),
        ("As the post says, over HTTP/2 all of them wait.", ["hyper-py37"], ["HTTP/2"]),
        ("Miech was right: over HTTP/2 none of them waits.", ["hyper-py37"], ["HTTP/2"]),
        # But a person's server or program is one.
        ("Hirani's server probably spoke TLS 1.2.", ["stage-2-py27"], []),
        ("The post's own loop is blocked over HTTP/2.", ["hyper-py37"], []),
        ("With hyper, as Miech says, HTTP/2 lets all of them wait.", ["hyper-py37"], []),
    ],
)
def test_what_speaks_wider_than_it_was_measured_on(sentence, names, layers) -> None:
    assert reach.wider(sentence, names) == layers


def test_the_command_lists_what_speaks_too_wide(tmp_path, monkeypatch, capsys) -> None:
    html = Book(tmp_path).html
    html.mkdir(parents=True)
    texts = ["Over HTTP/2 all of them wait.", "With Twisted all of them wait."]
    listed = [{"page": "book/x", "text": text, "claims": ["waits"]} for text in texts]
    (html / resting.LISTED).write_text(json.dumps(listed))
    finding = Finding("waits", "It waits.", outcome="holds", stack="twisted-today")
    (html / ledger.FINDINGS_FILE).write_text(ledger.claims_json([finding]))
    monkeypatch.setattr(places, "ROOT", tmp_path)
    assert cli.main(["rests", "--reach"]) == 0
    assert capsys.readouterr().out == (
        "book/x: Over HTTP/2 all of them wait.\n    speaks of HTTP/2, and rests on waits\n"
    )


def test_of_a_stack_that_fetches_its_client_counts() -> None:
    assert reach.implementations("HTTP", "aiohttp-today, httpx-each-today") == {
        "aiohttp", "httpcore",
    }  # fmt: skip
    assert reach.implementations("HTTP", "cured-today, requests-2.34.2-today") == {"urllib3"}
    assert reach.implementations("TLS", "go, curl-cffi-today") == {"go", "BoringSSL"}
    assert reach.implementations("HTTP", "") == set()


def test_each_client_and_each_package_of_the_table_is_one_of_the_book() -> None:
    pinned = {name for lock in stacks.table()["packages"].values() for name in lock}
    known = {re.split(r"[\[=<>]", name)[0] for name in pinned}
    assert reach.CODE.keys() <= known | {"hyper"}
    assert all(len(code) == len(reach.LAYERS) for code in reach.CODE.values())
    clients = {stack.client for stack in stacks.load().values() if stack.client}
    assert {each.partition("-each")[0].replace("_", "-") for each in clients} <= reach.CODE.keys()


def test_what_runs_were_measured_on_is_said_by_their_columns() -> None:
    runs = pd.DataFrame({
        "client": ["httpx", "bare-h2", None], "latency_ms": [4, 35, 35], "congestion": "reno",
        "openssl": "", "wall_s": 1.0, "n": range(3),
    })  # fmt: skip
    assert reach.conditions_of(runs) == "client httpx, bare-h2; latency_ms 4, 35; congestion reno"
    four, five = (pd.DataFrame({"latency_ms": range(count)}) for count in (4, 5))
    assert reach.conditions_of(four) == "latency_ms 0, 1, 2, 3"
    assert reach.conditions_of(five) == "latency_ms 5 kinds"
    line = pd.DataFrame({"mbit": [0, 10], "body_bytes": [27000, 27000], "window_bytes": [0, 0]})
    assert reach.conditions_of(line) == "mbit 10; body_bytes 27000"
    assert reach.conditions_of(pd.DataFrame()) == ""
