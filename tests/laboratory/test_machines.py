"""Machine files: what is written, what is refused, and how machines stand side by side."""

import base64
import dataclasses
import io
import json
import lzma
import math
import re
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from casebook import charts, cli, places
from casebook.cases.bookstore.timed_visits import VISITS
from casebook.cases.certificates import complaints, connection_costs, counts, weights
from casebook.cases.certificates.loading import LOADS
from casebook.cases.fetching import processor_time, runs
from casebook.cases.fetching.run_record import RUNS
from casebook.cases.handshakes import crashes, shared_contexts
from casebook.classroom import certificate
from casebook.errors import MachineFileRefused, UsageError
from casebook.findings import side_by_side
from casebook.findings.finding import Finding
from casebook.laboratory import anonymity, machine_files, recorded_rows, reference
from casebook.laboratory.anonymity import Own
from casebook.laboratory.decisions import NOT_HERE, ratio
from casebook.laboratory.machine_files import Machine
from casebook.pages import building, ledger, statements, timing
from casebook.pages.contents import Book

HEAD = {
    "format": machine_files.FORMAT,
    "version": machine_files.VERSION,
    "about": {"processor": "A chip"},
}
#: An answer as the store keeps it, of a run that was concurrent.
RUN = {
    "asked": ["fetch", ["stage-1-py37", "grequests"], {"n": 7}, "https"],
    "stack": "stage-1-py37", "python": "3.7.16", "client": "grequests", "n": 7, "delay_s": 0.1,
    "scheme": "https", "trust": "authority", "repeat": 1, "wall_s": 0.2, "user_s": 0.03,
    "sys_s": 0.01, "process_cpu_s": 0.2, "peak_rss_kib": 30000, "ok": 7, "versions": {},
    "counters": {"peak_in_flight": 7}, "measured_at": "2026-11-23T00:00:00Z", "source": "live",
    "unit_ms": 1.0, "commit": "0123456789ab", "schema": 2, "key": "abc",
}  # fmt: skip


def run(**changed: object) -> dict:
    """RUN with something else, and the question that it answers."""
    answer = RUN | changed
    asked = {name: answer[name] for name in ("client", "delay_s", "n", "repeat", "trust")}
    return answer | {"asked": ["fetch", [answer["stack"], "grequests"], asked, answer["scheme"]]}


FINDING = {"id": "one-thing", "outcome": "holds", "value": 0.5, "window": "below 0.85"}


def packed(path: Path, *lines: object, text: bytes | None = None) -> Path:
    """Write a file by hand, whatever is in it."""
    if text is None:
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    path.write_bytes(lzma.compress(text))
    return path


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / f"a-machine{machine_files.SUFFIX}"


def test_what_is_saved_is_read(file):
    machine = Machine("a-machine", {"processor": "A chip", "cores": 2}, [RUN], {"x": FINDING})
    assert machine_files.save(machine, file) == file.stat().st_size < 1000
    back = machine_files.read(file)
    assert (back.name, back.about, back.answers) == (machine.name, machine.about, [RUN])
    assert back.findings == {"one-thing": FINDING}
    assert back.label == "A chip, 2 cores"


def test_a_field_that_an_old_file_lacks_is_not_there_and_no_error(file):
    old = {name: value for name, value in run().items() if name not in ("peak_rss_kib", "key")}
    assert len(_runs(file, old)) == 1
    machine = machine_files.read(packed(file, HEAD | {"about": {}}, {"answer": old}))
    assert machine.label == "a-machine" and not machine.findings
    assert "No finding is in the files of two machines." in side_by_side.text([machine, machine])


BOMB = 200_000_000


@pytest.mark.parametrize("bomb", [b"\0", b'{"answer": {}}\n', b"\n"])
def test_a_bomb_is_not_unpacked(file, bomb):
    head = json.dumps(HEAD).encode() + b"\n"
    packed(file, text=head + bomb * (BOMB // len(bomb)))
    assert file.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(MachineFileRefused, match="larger, unpacked"):
            machine_files.read(file)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "holds nothing"),
        (b"{}\n", "not a machine file of version"),
        (json.dumps(HEAD | {"version": 99}).encode() + b"\n", "not a machine file of version"),
        (b"[" * 100_000 + b"\n", "line 1, is not JSON"),
        (b"[1]\n", "line 1, is not an object"),
        (json.dumps(HEAD).encode() + b'\n{"answer": {"wall_s": NaN}}\n', "line 2, is not JSON"),
        (json.dumps(HEAD).encode() + b'\n{"answer": {"wall_s": 1e999}}\n', "line 2, is not JSON"),
        (
            json.dumps(HEAD).encode() + b'\n{"answer": ' + b"9" * 9999 + b"}\n",
            "line 2, is not JSON",
        ),
        (b"\xff\xfe\n", "line 1, is not JSON"),
        (b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}\n", "line 1, is nested deeper"),
        (json.dumps(HEAD).encode(), "does not end where its text does"),
    ],
)
def test_what_is_no_machine_file_is_refused_by_name(file, text, said):
    with pytest.raises(MachineFileRefused, match=said) as error:
        machine_files.read(packed(file, text=text))
    assert file.name in str(error.value) and str(file.parent) not in str(error.value)


def test_what_is_not_compressed_so_is_refused(file):
    whole = lzma.compress(json.dumps(HEAD).encode() + b"\n")
    wide = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}])
    for content in (b"PK\x03\x04", b"\x80\x04.", whole[:-9], whole + b"more", wide):
        file.write_bytes(content)
        with pytest.raises(MachineFileRefused):
            machine_files.read(file)
    file.write_bytes(b"x" * (machine_files.MOST_PACKED + 1))
    with pytest.raises(MachineFileRefused, match="above 2,000,000"):
        machine_files.read(file)
    with pytest.raises(MachineFileRefused, match="cannot be read"):
        machine_files.read(file.with_name("none.jsonl.xz"))


LIES = [
    {"wall_s": "fast"}, {"wall_s": 0}, {"wall_s": None}, {"n": "7"}, {"counters": None},
    {"counters": []}, {"counters": {"peak_in_flight": "many"}}, {"stack": "../../etc/passwd"},
    {"stack": ["stage-1-py37"]}, {"delay_s": {}}, {"client": {"a": 1}}, {"user_s": [1]},
    {"n": 10**400}, {"repeat": True},
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_what_does_not_look_like_a_run_is_none(file, lie):
    assert _runs(file, run(**lie), run())["wall_s"].tolist() == [0.2]


def test_a_verdict_in_a_file_is_not_believed(file):
    [row] = _runs(file, run(verdict="serial", effective_concurrency=0.9))["verdict"]
    assert row == "concurrent"


def _runs(file, *answers):
    packed(file, HEAD, *({"answer": each} for each in answers))
    return recorded_rows.rows_of_machine(machine_files.read(file), RUNS)


def test_text_of_a_stranger_stays_text(file):
    script = "<script>alert(1)</script>"
    about = {"processor": f"{script}\n# x\x1b[31m", "cores": "<b>", "unit_ms": [script], "x": 1}
    finding = FINDING | {"statement": script, "id": "one-thing", "stack": script, "value": script}
    other = FINDING | {"id": script}
    packed(file, HEAD | {"about": about}, {"finding": finding}, {"finding": other})
    machine = machine_files.read(file)
    assert machine.about["processor"] == f"{script} # x [31m"
    assert set(machine.about) == {"processor"} and set(machine.findings) == {"one-thing"}
    pair = [machine, Machine("b", {}, [], {"one-thing": FINDING | {"outcome": "otherwise"}})]
    page = MarkdownIt("commonmark").enable("table").render(ledger.machines_page(pair))
    assert "<script" not in page and page.count("&lt;script&gt;alert(1)") > 3
    assert "<h1" not in page and "\x1b" not in side_by_side.text(pair)
    assert set(re.findall(r"<(\w+)", page)) <= {"h2", "ul", "li", "strong", "p", "br", "a"} | {
        "table", "div", "thead", "tbody", "tr", "th", "td", "span"
    }  # fmt: skip


SCRIPT = "<script>mark()</script>"
#: What a stranger may write in the place of any field.
ODD = [
    SCRIPT, '"><img src=x onerror=mark()>', "", "x" * 5000, 10**300, -1, 0, 1e300, True, None, [],
    [1, 2], ["a", "b"], [SCRIPT, 1, 2], [-1, 0, 1], [[1]], [{}], [None], {}, {"a": 1},
    {"a": SCRIPT},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_no_field_of_a_stranger_ends_a_comparison_or_becomes_a_part_of_a_page(file, odd):
    """Each field is tried in turn.

    It stands in the terminal, on the page, on a class's sheet, and in the choice of who stands in.
    """
    about = {"processor": "A chip", "cores": 2, "openssl": "OpenSSL 3.0.19", "unit_ms": [1, 2, 3]}
    whole = FINDING | {
        "statement": "One.",
        "interval": [0.4, 0.6],
        "others": ["holds", "undecided"],
    }
    other = Machine("b", {}, [], {"one-thing": FINDING | {"outcome": "otherwise"}})
    heads = [(about | {name: odd}, whole) for name in machine_files.ABOUT]
    for its, finding in heads + [(about, whole | {name: odd}) for name in machine_files.FINDING]:
        machine = machine_files.read(packed(file, HEAD | {"about": its}, {"finding": finding}))
        assert machine_files.unlikeness(machine.about)[2] >= 0
        pair = [machine, other]
        assert "a-machine: " in side_by_side.text(pair)
        page = MarkdownIt("commonmark").enable("table").render(ledger.machines_page(pair))
        for html in (page, certificate.page(pair, "A class")):
            assert "<script" not in html and "<img" not in html


def test_a_question_that_is_none_is_left_out(file):
    odd = [{"asked": asked, "answer": {}} for asked in ("fetch", {"a": 1}, [], [[]], 5, [None, 1])]
    lines = ({"answer": each} for each in [*odd, {"asked": ["fetch"]}, {"n": 1}])
    assert machine_files.read(packed(file, HEAD, *lines)).answers == [
        {"asked": ["fetch"]},
        {"n": 1},
    ]


def test_no_path_user_or_host_leaves_this_machine(file, monkeypatch):
    report = {
        "program": f"{places.ROOT}/casebook/cases/fetching/clients/loop.py",
        "why": f"in {Path.home()}/x.py",
    }
    machine_files.save(Machine("m", {}, [RUN | {"report": report}]), file)
    [answer] = machine_files.read(file).answers
    assert answer["report"] == {"program": "loop.py", "why": "in x.py"}
    monkeypatch.setattr(anonymity.socket, "gethostname", lambda: "her-laptop")
    for leaking in ("/home/somebody/x", "on her-laptop!", "C:\\Users\\she"):
        file.unlink(missing_ok=True)
        with pytest.raises(UsageError, match="of this machine alone"):
            machine_files.save(Machine("m", {}, [RUN | {"why": leaking}]), file)
        assert not file.exists()


def test_a_build_is_saved_and_compared(tmp_path, monkeypatch, capsys, locks_of_our_own):
    """The whole way: measured in a build, saved, and laid beside a machine of the book."""
    monkeypatch.setattr(places, "RUNS", tmp_path / "runs")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    [measured] = runs.measure_runs(["stage-1-today"], n=[5], delay_s=0.2, repeats=1)
    path = tmp_path / "mine.jsonl.xz"
    assert cli.main(["machine", "save", str(path)]) == 0
    [answer] = machine_files.read(path).answers
    assert answer["asked"][:2] == ["fetch", ["stage-1-today", "grequests"]]
    assert answer["answer"]["wall_s"] == measured.wall_s and "verdict" not in answer["answer"]
    assert machine_files.read(path).about["cores"] >= 1
    # Of two answers to one question, the newer one.
    (places.RUNS / "older.json").write_text(json.dumps(answer | {"measured_at": "2020"}))
    assert len(machine_files.of_this_machine().answers) == 1
    capsys.readouterr()
    assert cli.main(["machine", "compare", str(path), "amd-epyc-2core", "here"]) == 0
    said = capsys.readouterr().out
    assert "mine: " in said and "amd-epyc-2core: AMD EPYC, 2 cores" in said
    assert cli.main(["machine", "compare", "reference", "amd-epyc-2core"]) == 0
    said = capsys.readouterr().out
    assert "Processor: Intel(R) Xeon(R) Processor / AMD EPYC." in said
    assert re.search(r"\d\d ways to fetch were measured on all of them, and 0 came out diff", said)
    assert cli.main(["machine", "save", str(tmp_path / "x.zip")]) == 2
    assert "ends in .jsonl.xz" in capsys.readouterr().err


def test_differences_come_first_and_in_words():
    def machine(name, **outcomes):
        its = {id: {"id": id, "outcome": said, "value": 1.1} for id, said in outcomes.items()}
        return Machine(name, {"processor": name, "cores": 2}, [], its)

    a = machine("A", same="holds", opposed="holds", noise="holds", cannot="not-here")
    b = machine("B", same="holds", opposed="otherwise", noise="undecided", cannot="holds")
    b.findings["opposed"] |= {"statement": "Locks cost.", "window": "below 0.85"}
    b.findings["opposed"] |= {"interval": [1.04, 1.15]}
    rows = side_by_side.findings([a, b])
    assert [row.id for row in rows] == ["opposed", "noise", "cannot", "same"]
    assert [row.differs for row in rows] == [True, True, True, False]
    assert side_by_side.how_many(rows).startswith("Of 4 findings that several machines have, 3 ")
    assert side_by_side.in_words(rows[0], [a, b]) == (
        "Locks cost (asked: below 0.85). A: holds, 1.10; B: otherwise, 1.10 (1.04 to 1.15)."
    )
    a.findings["opposed"]["window"] = "below 1.2"
    [opposed, *_] = side_by_side.findings([a, b])
    assert side_by_side.in_words(opposed, [a, b]) == (
        "Locks cost (asked: below 1.2). A: holds, 1.10; "
        "B: otherwise, 1.10 (1.04 to 1.15), asked: below 0.85."
    )
    assert side_by_side.differences([a, b]) == {"Processor": ["A", "B"]}
    assert "Processor: A / B." in side_by_side.text([a, b])


def test_a_finding_of_a_file_is_judged_by_the_window_of_today():
    def found(**fields):
        its = {"value": 1.1, "interval": [1.04, 1.15], "window": "below 1.2"}
        return FINDING | its | {"statement": "It takes 1.1 (1.04 to 1.15) times as long."} | fields

    its = {
        "narrower": found(id="narrower", outcome="holds"),
        "wider": found(id="wider", outcome="otherwise", window="below 0.85"),
        "across": found(id="across", outcome="holds"),
        "same": found(id="same", outcome="holds"),
        # A count beside the clock had decided: no window makes that good.
        "counted": found(id="counted", outcome="otherwise"),
        "strange": found(id="strange", outcome="holds", window="below <b>1.2</b>"),
        # Of what asks for another number today.
        "another": found(id="another", outcome="holds", statement="It takes 1.1 s more."),
    }
    asked = {
        "narrower": "below 1", "wider": "above 1", "across": "between 1.1 and 2",
        "same": "below 1.2", "counted": "below 2", "strange": "below 1", "another": "below 1",
    }  # fmt: skip
    said = "It takes 2.31 times as long."
    of_today = [Finding(id, said, outcome="holds", window=window) for id, window in asked.items()]
    windows = side_by_side.windows([*of_today, Finding("x", said, outcome="holds")])
    machine = side_by_side.judged_today(Machine("a", {}, [], its), windows)
    assert {id: each["outcome"] for id, each in machine.findings.items()} == {
        "narrower": "otherwise", "wider": "holds", "across": "undecided", "same": "holds",
        "counted": "otherwise", "strange": "holds", "another": "holds",
    }  # fmt: skip
    rows = {row.id: row for row in side_by_side.findings([machine])}
    assert rows["narrower"].window == "below 1"
    assert side_by_side.outcome(machine.findings["narrower"], "below 1") == (
        "otherwise, 1.10 (1.04 to 1.15), asked there: below 1.2: holds"
    )
    assert its["narrower"]["outcome"] == "holds"  # what was read is not changed


def test_the_same_work_is_drawn_for_each_machine_that_did_it():
    def machine(name, *walls):
        stacks = ("stage-1-py37", "stage-2-py37")
        answers = [
            run(n=10, stack=stack, wall_s=wall_s)
            for stack, wall_s in zip(stacks, walls, strict=False)
        ]
        return Machine(name, {}, answers)

    fast, slow, half = machine("fast", 0.2, 1.1), machine("slow", 0.4, 2.2), machine("half", 0.3)
    [chart] = charts.of_machines([fast, slow, half], live_machine="fast")
    assert "On both that were asked, + pyOpenSSL takes the most wall time" in chart.caption
    assert "5.50 on fast and 5.50 on slow" in chart.caption
    rows = pd.read_csv(io.BytesIO(base64.b64decode(chart.html.split("base64,")[1].split('"')[0])))
    assert rows[["machine", "source"]].values.tolist() == [["fast", "live"], ["slow", "reference"]]
    [other] = charts.of_machines([fast, machine("odd", 2.0, 1.0)])
    assert "The machines differ in which way takes the least" in other.caption
    assert charts.of_machines([fast, half]) == []


def test_a_difference_comes_with_the_reason_that_a_chapter_gives():
    because = side_by_side.reasons_given(places.ROOT)
    assert because["load-threads-locks-apart"].startswith("On this machine it is not")
    a = Machine("a", {}, [], {"one-thing": FINDING | {"statement": "Locks cost."}})
    b = Machine("b", {}, [], {"one-thing": FINDING | {"outcome": "otherwise", "statement": "…"}})
    [row] = side_by_side.findings([b, a])
    said = side_by_side.in_words(row, [b, a], {"one-thing": "It is not the locks."})
    assert said.endswith("Where it is otherwise: It is not the locks.")
    there = {"outcome": "not-here", "because": "valgrind is missing", "statement": "… locks."}
    [row] = side_by_side.findings([Machine("c", {}, [], {"one-thing": FINDING | there}), a])
    assert row.statement == "Locks cost." and "not here, 0.500 (valgrind is missing)" in (
        side_by_side.in_words(row, [b, a], {"one-thing": "It is not the locks."})
    )
    assert "It is not the locks" not in side_by_side.in_words(row, [b, a], {"one-thing": "It"})


@pytest.mark.parametrize("path", machine_files.files(), ids=lambda path: path.name)
def test_each_machine_of_the_book_is_whole_and_anonymous(path):
    machine = machine_files.read(path)
    assert path.stat().st_size < machine_files.MOST_PACKED and machine.label != machine.name
    known = {"processor", "architecture", "cores", "python", "openssl", "commit", "unit_ms"}
    assert known <= set(machine.about)
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        assert not Own.of_this_machine().leak(line)
    assert len(machine.answers) > 100
    assert len(machine.findings) > 100 or machine.name == reference.NAME
    for kind in (RUNS, VISITS, LOADS):
        frame = recorded_rows.rows_of_machine(machine, kind)
        assert len(frame) > 40 and set(frame["source"]) == {"reference"}, kind.name
    published = {"stage-2-py27": "serial", "stage-3-py27": "concurrent", "stage-3-py37": "serial"}
    found = side_by_side.verdicts([machine])[machine.name]
    assert {name: found[name, "grequests", "https"] for name in published} == published


@pytest.mark.parametrize("path", machine_files.files(), ids=lambda path: path.name)
def test_each_chapter_that_a_machine_of_the_book_names_exists(path):
    """Of findings, and of what statements of notebooks printed."""
    machine = machine_files.read(path)
    asked = [answer.get("asked") or [None] for answer in machine.answers]
    named = {question[1] for question in asked if question[0] == statements.KIND}
    named |= {finding["chapter"] for finding in machine.findings.values() if "chapter" in finding}
    chapters = {notebook.stem for notebook in (places.ROOT / "notebooks").glob("*.ipynb")}
    assert named <= chapters
    assert named or machine.name == reference.NAME


#: Experiments that ask in ways of their own, by what they are called in a machine file.
ASKING = {
    each.script.stem: each
    for each in (
        shared_contexts._THREADS,
        crashes._CRASHES,
        connection_costs._SHARED,
        weights._WEIGHTS,
        complaints._COMPLAINTS,
        counts._counting(),
        processor_time._experiment_of("threads", "cured-today"),
    )
}


@pytest.mark.parametrize("script", ASKING)
def test_what_follows_from_an_answer_in_a_machine_file_the_code_of_today_can_say(script):
    found = 0
    for answer in (each for machine in machine_files.all_recorded() for each in machine.answers):
        question = answer.get("asked") or [None]
        if question[0] != script:
            continue
        _, _, _, asked, _ = question
        if "look_after" not in asked:  # where threads wait has places, and no figures
            ASKING[script].figures(asked, answer["answer"])
            found += 1
    assert found


def test_exactly_the_same_question_is_answered_by_the_machine_that_has_it(
    file, monkeypatch, no_old_pythons
):
    """The reference machine never recorded n = 7; another one did, and the row says so."""
    shutil.copy(reference.file(), file.parent)
    monkeypatch.setattr(machine_files, "folder", lambda: file.parent)
    before = runs.measure("stage-1-py37", n=7, delay_s=0.1, repeats=1)
    assert before["instead"].unique().tolist() == ["n = 5 instead of 7"]
    about = {"processor": "Other chip", "cores": 2, "architecture": "x86_64"}
    packed(file, HEAD | {"about": about}, {"answer": run()}, {"answer": run(n=10, wall_s=9)})
    reference.unlikeness.cache_clear()
    found = runs.measure("stage-1-py37", n=7, delay_s=0.1, repeats=1)
    assert found[["n", "source", "instead"]].values.tolist() == [
        [7, "reference", "on Other chip, 2 cores"]
    ]
    # Among equals, the reference machine answers; one of another kind never before it.
    for openssl in (reference.machine()["openssl"], "OpenSSL 9.9.9"):
        head = HEAD | {"about": about | {"openssl": openssl}}
        packed(file, head, {"answer": run(n=10)})
        reference.unlikeness.cache_clear()
        monkeypatch.setattr(
            machine_files, "describe", lambda: reference.machine() | {"architecture": "x86_64"}
        )
        same = runs.measure("stage-1-py37", n=10, delay_s=0.1, repeats=1)
        assert same["instead"].unique().tolist() == [""]


def test_rounds_of_two_recorded_machines_are_not_divided():
    rows = recorded_rows.of_reference(RUNS).query(
        "stack == 'stage-1-py37' and n == 10 and delay_s == 0.1"
    )
    rows = rows.query("scheme == 'https' and client == 'grequests'").drop_duplicates("repeat")
    here = rows.assign(instead="", stack="a")
    there = rows.assign(instead="on AMD EPYC, 2 cores; n = 10 instead of 7", stack="b")
    asked = ratio("wall_s", "a", "b", below=2)
    assert asked.decide(pd.concat([here, there])).outcome == NOT_HERE
    one = pd.concat([there, there.assign(stack="a")])
    assert not math.isnan(asked.decide(one).value)


def test_the_book_at_once_is_of_the_machine_most_like_this_one_that_knows_its_findings(
    tmp_path: Path, monkeypatch
) -> None:
    """Of two with the same architecture, OpenSSL and cores, the one with the same processor.

    But not if a twentieth of the findings has come since: its pages would have holes.
    """
    ids = [f"finding-{number}" for number in range(40)]
    for folder in ("notebooks", "data/machines"):
        (tmp_path / folder).mkdir(parents=True)
    code = "\n".join(f'claim("{id}", "So it is.", 1, True)' for id in ids)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbformat.write(notebook, tmp_path / "notebooks" / "one.ipynb")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: notebooks/one\n")
    about = machine_files.describe()
    statement = {"answer": {"asked": [statements.KIND, "one", "print(1)"]}}

    def write(name: str, processor: str, known: int) -> Path:
        head = HEAD | {"about": about | {"processor": processor}}
        path = tmp_path / "data" / "machines" / f"{name}{machine_files.SUFFIX}"
        rows = ({"finding": {"id": id, "outcome": "holds"}} for id in ids[:known])
        return packed(path, head, *rows, statement)

    monkeypatch.setattr(machine_files, "processor", lambda: "Ours")
    other = write("another", "Another chip", 40)
    for known, chosen in ((40, "ours"), (39, "ours"), (38, "another")):
        ours = write("ours", "Ours", known)
        assert building._most_alike(Book(tmp_path)) == {"ours": ours, "another": other}[chosen]
    write("another", "Another chip", 37)  # of two that are old, again the one like this one
    assert building._most_alike(Book(tmp_path)) == ours
    ours = write("ours", "Ours at another clock", 40)  # neither is the same: the same maker's
    other = write("another", "Another chip", 40)
    assert building._most_alike(Book(tmp_path)) == ours
    # Of two of the same maker's, the one whose times are an estimate.
    times = dict.fromkeys((field.name for field in dataclasses.fields(timing.ChapterTime)), 1.0)
    chapter = {"chapter": {"stem": "one"} | times}
    timed = packed(tmp_path / "data" / "machines" / f"zzz{machine_files.SUFFIX}",
                   HEAD | {"about": about | {"processor": "Ours with times"}},
                   *({"finding": {"id": id, "outcome": "holds"}} for id in ids), statement, chapter,
                   )  # fmt: skip
    assert building._most_alike(Book(tmp_path)) == timed
    # The most alike knows no times: they are the other's, as far as all of their fields are there.
    write("zz", "Ours", 40)
    assert building._most_alike(Book(tmp_path)).name.startswith("zz.")
    assert [*building._expected_times(Book(tmp_path))] == ["one"]


def test_a_file_is_read_once_and_again_when_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "LOCAL", tmp_path / "local")
    file, answers = (
        tmp_path / f"m{machine_files.SUFFIX}",
        [{"asked": ["x"], "answer": [1.5, None, "é"]}],
    )
    rows = {"one": {"stem": "one", "cpu_s": 2.0}}
    finding = {"id": "f", "statement": "It is so."}
    machine = machine_files.Machine("m", {"processor": "p"}, answers, {"f": finding}, rows)
    machine_files.save(machine, file)
    first = machine_files.read_kept(file)
    [kept] = (tmp_path / "local" / "machines").iterdir()
    monkeypatch.setattr(machine_files, "read", lambda path: pytest.fail("it is kept"))
    assert machine_files.read_kept(file) == first == machine
    monkeypatch.undo()
    monkeypatch.setattr(places, "LOCAL", tmp_path / "local")
    kept.write_bytes(kept.read_bytes()[:-3])  # damaged: read anew
    assert machine_files.read_kept(file) == machine
    machine_files.save(replace(machine, about={"processor": "q"}), file)
    assert machine_files.read_kept(file).about == {"processor": "q"}
