"""The experiment helper, with a case that has nothing to do with what the book is about."""

import http.server
import json
import lzma
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import here
import pytest
from test_machines import HEAD

from casebook import level, places, ratio, stacks
from casebook.errors import MissingInterpreter, RunFailed
from casebook.laboratory import experiment, machine_files, measurements, reference, scripts
from casebook.laboratory.experiment import Experiment
from casebook.stacks import interpreters

#: Two ways to parse numbers, one of which does it twice; and one that is wrong.
SCRIPT = """
import json, sys, time

asked = json.load(sys.stdin)
text = json.dumps(list(range(asked["size"])))
start = time.perf_counter()
for _ in range(asked.get("times", 1)):
    found = json.loads(text)
took_s = time.perf_counter() - start
print(json.dumps({"sum": sum(found) + asked.get("off", 0), "took_s": took_s}))
"""


def figures(asked, answer):
    if answer["sum"] != sum(range(asked["size"])):
        raise RunFailed("the numbers came back as others. Nothing was recorded.")
    return {"took_ms": 1000 * answer["took_s"]}


@pytest.fixture
def parsing(tmp_path: Path, locks_of_our_own) -> Experiment:
    folder = tmp_path / "parsers"
    folder.mkdir()
    (folder / "parse.py").write_text(SCRIPT)
    return Experiment(folder / "parse.py", figures)


def test_each_stack_is_asked_each_question_in_turns(parsing):
    here.environment("stage-1-today")
    frame = parsing.measure("stage-1-today", [{"size": 10}, {"size": 1000}], repeats=2)
    assert frame[["repeat", "size"]].to_numpy().tolist() == [[1, 10], [1, 1000], [2, 1000], [2, 10]]
    assert set(frame["source"]) == {"live"} and (frame["took_ms"] > 0).all()
    assert set(measurements.COLUMNS) <= set(frame)


def test_it_takes_rounds_until_a_question_is_decided(parsing):
    here.environment("stage-1-today")
    asked = [{"size": 20_000, "times": 1}, {"size": 20_000, "times": 8}]
    dearer = ratio("took_ms", 8, 1, by="times", above=2)
    frame = parsing.measure("stage-1-today", asked, until=dearer)
    assert frame["repeat"].nunique() >= 8 and dearer.decide(frame).outcome == "holds"


def test_what_is_drawn_by_lot_depends_on_the_seed_and_the_question_does_not(parsing, monkeypatch):
    here.environment("stage-1-today")
    parsing.script.write_text(SCRIPT.replace('"took_s": took_s', '"took_s": asked.get("lots", -1)'))
    drawing = replace(parsing, is_random=lambda asked: asked["size"] == 10)
    for seed in ("5", "6"):
        monkeypatch.setenv("CASEBOOK_LOTS", seed)
        found = drawing.measure("stage-1-today", [{"size": 10}, {"size": 20}])
        assert list(found["took_ms"]) == [1000 * int(seed), -1000]
        assert "lots" not in found


def test_a_wrong_answer_is_no_measurement(parsing, monkeypatch):
    here.environment("stage-1-today")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    for _ in range(2):  # it is not stored either
        with pytest.raises(RunFailed, match="came back as others"):
            parsing.measure("stage-1-today", [{"size": 10, "off": 1}])


def test_what_is_stored_is_the_answer_and_figures_are_of_today(parsing, monkeypatch):
    here.environment("stage-1-today")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    first = parsing.measure("stage-1-today", [{"size": 10}])
    again = Experiment(parsing.script, lambda asked, answer: {"took_us": answer["took_s"] * 1e6})
    second = again.measure("stage-1-today", [{"size": 10}])
    assert second["took_us"].iloc[0] == pytest.approx(1000 * first["took_ms"].iloc[0])
    parsing.script.write_text(SCRIPT + "\nx = 1\n")
    third = parsing.measure("stage-1-today", [{"size": 10}])
    assert third["key"].iloc[0] != first["key"].iloc[0]


def test_a_script_sees_what_lies_beside_it_and_what_it_is_shown_and_may_answer_with_many_rows(
    parsing, tmp_path
):
    here.environment("stage-1-today")
    beside = tmp_path / "shared"
    beside.mkdir()
    (beside / "counting_up.py").write_text("def up_to(n):\n    return list(range(n))\n")
    parsing.script.write_text(
        "import json, os, sys, counting_up\n"
        "numbers = counting_up.up_to(json.load(sys.stdin)['size'])\n"
        "print(json.dumps({'numbers': numbers, 'shown': os.environ['SHOWN']}))\n"
    )

    def each(asked, answer):
        return [{"number": number, "shown": answer["shown"]} for number in answer["numbers"]]

    several = replace(parsing, figures=each, beside=(beside,), variables=lambda: {"SHOWN": "so"})
    frame = several.measure("stage-1-today", [{"size": 3}, {"size": 1}])
    columns = ["size", "number", "shown", "repeat"]
    assert frame[columns].values.tolist() == [[3, n, "so", 1] for n in range(3)] + [[1, 0, "so", 1]]
    (beside / "counting_up.py").write_text("def up_to(n):\n    return [*range(n)]\n")
    assert several.measure("stage-1-today", [{"size": 1}])["key"].iloc[0] not in set(frame["key"])


#: Fetches the numbers from a server, several times.
FETCHING = """
import json, sys, urllib.request

asked = json.load(sys.stdin)
get = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
found = [json.loads(get(asked["url"]).read()) for _ in range(asked["times"])]
print(json.dumps({"numbers": found[-1]}))
"""


class Numbers(http.server.ThreadingHTTPServer):
    """A server of its own for one question: it says the numbers, and counts who asks."""

    def __init__(self, numbers):
        self.numbers, self.requests = numbers, 0
        super().__init__(("127.0.0.1", 0), SaysNumbers)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,)).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        super().__exit__(*exception)


class SaysNumbers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.numbers).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def fetching(parsing) -> tuple[Experiment, list[int]]:
    """An experiment with a server beside its script; and how often each of these was asked."""
    parsing.script.write_text(FETCHING)
    counted = []

    def ask(environment, asked):
        off, size = asked.get("off", 0), asked["size"]
        with Numbers(list(range(off, off + size))) as server:
            told = {"url": f"http://127.0.0.1:{server.server_port}", "times": asked["times"]}
            answer = scripts.answer_of(environment, parsing.script, told)
        counted.append(server.requests)
        if answer["numbers"] != list(range(size)):
            raise RunFailed("the numbers came back as others. Nothing was recorded.")
        return {"requests": server.requests}

    def figures(asked, answer):
        verdict = "often" if answer["requests"] > 2 else "seldom"
        return {"requests": answer["requests"], "verdict": verdict}

    return replace(parsing, ask=ask, figures=figures), counted


def test_a_question_may_be_asked_with_a_server_beside_the_script_that_counts(fetching):
    here.environment("stage-1-today")
    experiment, _ = fetching
    asked = [{"size": 3, "times": 2}, {"size": 3, "times": 5}]
    frame = experiment.measure("stage-1-today", asked, repeats=2)
    assert frame["requests"].tolist() == [2, 5, 5, 2]
    assert frame["verdict"].tolist() == ["seldom", "often", "often", "seldom"]
    assert set(frame["source"]) == {"live"}


def test_what_such_a_question_finds_wrong_is_not_stored(fetching, monkeypatch):
    here.environment("stage-1-today")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    experiment, counted = fetching
    for _ in range(2):
        with pytest.raises(RunFailed, match="came back as others"):
            experiment.measure("stage-1-today", [{"size": 3, "times": 1, "off": 1}])
    wrong = replace(experiment, figures=lambda asked, answer: answer["pages"])
    for _ in range(2):
        with pytest.raises(KeyError):
            wrong.measure("stage-1-today", [{"size": 3, "times": 1}])
    assert counted == [1] * 4


def test_a_verdict_follows_anew_from_what_was_stored_and_nothing_is_asked_again(
    fetching, monkeypatch, tmp_path
):
    here.environment("stage-1-today")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    monkeypatch.setattr(places, "RUNS", tmp_path / "runs")  # where nobody has asked before
    experiment, counted = fetching
    asked = [{"size": 3, "times": 2}]
    [first] = experiment.measure("stage-1-today", asked).to_dict("records")
    assert first["verdict"] == "seldom"
    assert measurements.load(first["key"])["answer"] == {"requests": 2}  # what was counted, alone
    stricter = replace(experiment, figures=lambda _, answer: {"verdict": answer["requests"] > 1})
    [second] = stricter.measure("stage-1-today", asked).to_dict("records")
    assert second["verdict"] is True and second["key"] == first["key"]
    assert counted == [2]


def recorded(file: Path, parsing: Experiment, took_s: float, rounds: int) -> None:
    """Write the file of a machine on which this took so long in each of its rounds."""
    said, stack = {"sum": 45, "took_s": took_s}, stacks.get("stage-1-py27")
    lines = [HEAD]
    for repeat in range(1, rounds + 1):
        asked = measurements.question_of(parsing.script, "parsers", stack, {"size": 10}, repeat)
        lines += [{"answer": {"asked": asked, "answer": said, "measured_at": "2026-11-01T"}}]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    file.write_bytes(lzma.compress(text.encode()))


@pytest.fixture
def elsewhere(parsing, monkeypatch, tmp_path):
    """A machine that was asked the same of a stack that cannot run here."""
    folder = tmp_path / "machines"
    folder.mkdir()
    recorded(folder / "other.jsonl.xz", parsing, 0.5, rounds=1)
    monkeypatch.setattr(machine_files, "folder", lambda: folder)
    monkeypatch.setattr(interpreters, "find", lambda version: None)
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    reference.unlikeness.cache_clear()
    yield
    reference.unlikeness.cache_clear()


def test_where_a_stack_cannot_run_another_machine_answers_the_same_question(parsing, elsewhere):
    frame = parsing.measure("stage-1-py27", [{"size": 10}])
    [row] = frame.to_dict("records")
    assert row["source"] == "reference" and row["instead"].startswith("on ")
    assert row["took_ms"] == 500
    assert level("took_ms", above=1).decide(frame).rounds == 1


@pytest.mark.parametrize(
    "said", [{}, {"sum": 44, "took_s": 1}, {"sum": 45}, {"sum": 45, "took_s": None}], ids=str
)
def test_what_lacks_what_is_asked_today_or_is_wrong_stands_in_for_nothing(
    parsing, elsewhere, tmp_path, said
):
    stack = stacks.get("stage-1-py27")
    asked = measurements.question_of(parsing.script, "parsers", stack, {"size": 10}, 1)
    lines = (
        json.dumps(each) + "\n" for each in (HEAD, {"answer": {"asked": asked, "answer": said}})
    )
    other = tmp_path / "machines" / "other.jsonl.xz"
    other.write_bytes(lzma.compress("".join(lines).encode()))
    with pytest.raises(MissingInterpreter, match=r"Python 2\.7"):
        parsing.measure("stage-1-py27", [{"size": 10}])


def test_rounds_that_no_machine_took_leave_a_question_undecided(parsing, elsewhere):
    """One round is recorded; a question asks for eight, sixteen and so on."""
    asked = level("took_ms", above=1)
    frame = parsing.measure("stage-1-py27", [{"size": 10}], until=asked)
    assert frame["repeat"].tolist() == [1] and asked.decide(frame).outcome == "undecided"


def test_all_rounds_come_from_one_machine_and_among_equals_from_the_reference(
    parsing, elsewhere, tmp_path
):
    """The reference machine took two rounds, the other one, which is as near, three."""
    recorded(tmp_path / "machines" / "other.jsonl.xz", parsing, 0.5, rounds=3)
    recorded(tmp_path / "machines" / f"{reference.NAME}.jsonl.xz", parsing, 0.25, rounds=2)
    frame = parsing.measure("stage-1-py27", [{"size": 10}], repeats=3)
    assert frame[["repeat", "took_ms", "instead"]].values.tolist() == [[1, 250, ""], [2, 250, ""]]


def test_nothing_else_than_the_same_question_stands_in(parsing, elsewhere):
    with pytest.raises(MissingInterpreter, match=r"Python 2\.7"):
        parsing.measure("stage-1-py27", [{"size": 11}])


def test_where_a_stack_cannot_run_nothing_is_asked_however_that_is_done(parsing, elsewhere):
    def ask(environment, asked):
        raise AssertionError("it cannot run")

    [row] = replace(parsing, ask=ask).measure("stage-1-py27", [{"size": 10}]).to_dict("records")
    assert row["source"] == "reference" and row["took_ms"] == 500


def test_what_is_too_dear_is_taken_from_a_machine_that_was_asked_and_else_asked_here(
    parsing, tmp_path, monkeypatch
):
    here.environment("stage-1-today")
    other = tmp_path / "machines"
    other.mkdir()
    stack = stacks.get("stage-1-today")
    asked = measurements.question_of(parsing.script, "parsers", stack, {"size": 10}, 1)
    said = {"answer": {"asked": asked, "answer": {"sum": 45, "took_s": 0.5}}}
    lines = "".join(json.dumps(each) + "\n" for each in (HEAD, said))
    (other / "other.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    monkeypatch.setattr(machine_files, "folder", lambda: other)
    reference.unlikeness.cache_clear()
    questions = [{"size": 10}, {"size": 11}]
    spared = replace(parsing, spares=lambda parameters: True).measure("stage-1-today", questions)
    assert spared["source"].tolist() == ["reference", "live"] and spared["took_ms"].iloc[0] == 500
    assert set(parsing.measure("stage-1-today", questions)["source"]) == {"live"}


def test_where_the_script_cannot_run_another_machine_answers_or_it_says_what_is_missing(
    parsing, elsewhere
):
    lacking = replace(parsing, lacks=lambda: "there is no network of its own here")
    [row] = lacking.measure("stage-1-py27", [{"size": 10}]).to_dict("records")
    assert row["source"] == "reference" and row["took_ms"] == 500
    with pytest.raises(MissingInterpreter, match="no network of its own here"):
        lacking.measure("stage-1-py27", [{"size": 11}])


def test_missing_environments_are_made_first_and_each_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    names, made = ["stage-1-today", "stage-2-today"], []

    def ensure(stack, progress, again=False):
        progress(f"making environment of {stack.name}")
        made.append(stack.name)

    monkeypatch.setattr(experiment.environments, "is_there", lambda stack: stack.name in made)
    monkeypatch.setattr(experiment.environments, "ensure", ensure)
    assert experiment.runnable([*names, names[0]]) == names == made
    assert capfd.readouterr().err.count("making environment of") == 2


def test_what_is_not_wrong_is_not_red_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """JupyterLab shows standard error on red."""
    kernel = SimpleNamespace(kernel=None)
    for shell, stream in ((None, "err"), (kernel, "out")):
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        experiment.environments.report("making an environment")
        assert getattr(capsys.readouterr(), stream) == "making an environment\n"
