"""What a submission may not do: it is stopped with a sentence, and nothing of it is left."""

import json
import os
import sys
import time

import psutil
import pytest
from graded import graded
from here import alive, eventually, run

from casebook import places
from casebook.classroom import opens, room

LAB = "count-the-loads"

STOPPED = {
    "while True:\n    pass": "it did not end within 3 s",
    "import time\ntime.sleep(60)": "it did not end within 3 s",
    "import os\nwhile True:\n    os.fork()": "it starts or signals another process (os.fork)",
    "import subprocess\nsubprocess.run(['sleep', '60'])": "another process (subprocess.Popen)",
    "import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()": (
        "another process (subprocess.Popen)"
    ),
    "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)": "another process (os.kill)",
    "print('x' * 5_000_000)": "it prints more than 1 MB",
    "import sys\nsys.stderr.write('x' * 5_000_000)": "it prints more than 1 MB",
    "x = []\nwhile True:\n    x.append(bytearray(50_000_000))": "it fills the memory",
    f"open({str(places.PACKAGE / 'classroom' / 'checks' / 'count_the_loads.py')!r})": (
        "it reads the checks"
    ),
    f"open({str(places.ROOT / 'tests' / 'answers' / LAB / 'right.py')!r})": "it reads the checks",
    f"open({str(places.ROOT / 'classroom' / 'machines' / 'a.jsonl.xz')!r})": "it reads the checks",
    "import os\nopen(f'/proc/{os.getppid()}/maps')": "it looks into another process",
    f"open({str(places.ROOT / 'README.md')!r}, 'a')": "it writes outside of its own folder",
    "import shutil\nshutil.rmtree(OUTSIDE)": "it changes files outside",
    "import os\nos.remove('one', dir_fd=os.open(OUTSIDE, os.O_RDONLY))": "it changes files outside",
    "import os\nos.rename(OUTSIDE + '/one', 'one')": "it changes files outside",
}


@pytest.mark.parametrize("text", STOPPED)
def test_it_is_stopped_with_a_sentence(text, tmp_path, monkeypatch):
    if "did not end" in STOPPED[text]:
        monkeypatch.setattr(room, "WITHIN_S", 3.0)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").touch()
    report = graded(LAB, f"PREDICTION = 1\nOUTSIDE = {str(outside)!r}\n{text}\n", tmp_path)
    assert (outside / "one").exists()
    assert STOPPED[text] in report.stopped and STOPPED[text] in report.text()
    assert report.points == 0


def test_nothing_is_left_of_what_was_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "WITHIN_S", 2.0)
    # Goes round the audit hook on purpose, which is not stopped; the group is ended all the same.
    text = "import ctypes, time\npid = ctypes.CDLL(None).fork()\ntime.sleep(60)"
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    began = time.time()
    graded(LAB, f"PREDICTION = 1\n{text}\n", tmp_path)

    def left():
        return [
            each
            for each in psutil.process_iter(["cmdline", "create_time"])
            if each.info["create_time"] > began - 1 and "inside.py" in str(each.info["cmdline"])
            and each.pid not in before and alive(each.pid)
            and str(os.getpid()) in map(str, [p.pid for p in each.parents()] or [os.getpid()])
        ]  # fmt: skip

    assert eventually(lambda: not left())


def test_what_it_told_before_it_ended_is_read_however_slow_the_grader_is(tmp_path):
    """It answers and ends while the grader is busy beside it."""
    file, go = tmp_path / "answer.py", tmp_path / "go"
    file.write_text(
        "import os, time\ndef wait(path):\n"
        "    while not os.path.exists(path):\n        time.sleep(0.01)\n    return 42\n"
        "READY = 1\n"
    )
    others, heard = {each.pid for each in psutil.Process().children()}, []

    def beside(outcome):
        heard.append(bool(outcome.names))
        if heard[-2:] == [True, True] and not go.exists():  # nothing came in since: it waits
            go.touch()
            [process] = [p for p in psutil.Process().children() if p.pid not in others]
            assert eventually(lambda: not alive(process.pid))

    job = {"function": "wait", "how": "call", "args": [str(go)]}
    outcome = room.run(
        "stage-1-today", file, [job], room.NOT_COUNTABLE, names=["READY"], observer=beside
    )
    assert [answer.get("value") for answer in outcome.answers] == [42], outcome


#: What a grader may meet in the place of an answer: the file, and what the report has to say.
STRANGE = {
    "import os\nos._exit(0)": "it ended before it could be asked for anything",
    "PREDICTION = []\nPREDICTION.append(PREDICTION)": "ValueError: Circular reference detected",
    "PREDICTION = 'x' * 900_000": "… and so on",
    "import contextlib, os\nPREDICTION = 1\nfor each in range(3, 99):\n"
    "    with contextlib.suppress(OSError):\n"
    "        os.write(each, b'5\\n{\"took\": 1}\\n[]\\n')": "you said 1",
    "import contextlib, os\nPREDICTION = 1\nsaid = b'{\"answer\": 5}\\n' * 9\n"
    "said += b'{\"took\": [1, 2, 3]}\\n{\"names\": 3}\\n' + b'[' * 100_000 + b'\\n'\n"
    "for each in range(3, 99):\n    with contextlib.suppress(OSError):\n"
    "        os.write(each, said)": "you said 1",
    "PREDICTION = 1\nLOADS_GO_WITH = [{}]\nBECAUSE = [{}, 1, 'A']": "because of []",
}  # fmt: skip


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_no_answer_is_told_in_a_few_words_and_stops_no_grader(text, tmp_path):
    report = graded(LAB, text + "\n", tmp_path)
    assert STRANGE[text] in report.text() and len(report.text()) < 20_000
    assert report.points <= 1


def test_a_traceback_is_no_look_at_the_checks(tmp_path):
    text = "import traceback\nPREDICTION = 1\ntraceback.print_stack()\n"
    report = graded(LAB, text, tmp_path)
    assert not report.stopped and report.items[0].points == 1


def test_noise_costs_no_point(tmp_path):
    text = (
        "import sys, warnings\nPREDICTION = 1\nwarnings.warn('hm')\nprint('a bar', file=sys.stderr)"
    )
    report = graded(LAB, text, tmp_path)
    assert report.items[0].points == 1 and not report.stopped


def test_a_file_that_does_not_run_is_told_with_its_line(tmp_path):
    report = graded(LAB, "PREDICTION = 1\n1 / 0\n", tmp_path)
    assert report.items[0].measured == "ZeroDivisionError: division by zero (line 2 of the file)"
    report = graded(LAB, "PREDICTION = 1\ndef\n", tmp_path)
    assert "SyntaxError" in report.text() and "line 2" in report.text()


def test_the_system_tells_who_opens_a_file(tmp_path):
    path = tmp_path / "bundle"
    path.write_text("x")
    with opens.of(path) as opened:
        for _ in range(5):
            path.read_text()
    assert opened.count in (5, None)


def test_the_command_line_says_it_line_by_line_with_an_exit_status(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("PREDICTION = None\n")
    done = run(sys.executable, "-m", "casebook", "grade", LAB, file)
    assert done.returncode == 1 and "0 of 24   a prediction is entered" in done.stdout
    assert "no security boundary" in done.stdout and "0 of 24 points" in done.stderr
    done = run(sys.executable, "-m", "casebook", "grade", LAB, file, "--json")
    assert json.loads(done.stdout)["points"] == 0
    for lab, path in (("no-lab", file), (LAB, tmp_path / "none.py")):
        done = run(sys.executable, "-m", "casebook", "grade", lab, path)
        assert done.returncode == 2
        assert "choose one of" in done.stderr or "there is no file" in done.stderr
