"""The command line as a reader uses it: a process, its output, its exit status."""

import json
import os
import subprocess
import sys

import pytest
from here import needs, run

from casebook import cli, places
from casebook.cases.fetching import server
from casebook.cases.many import cluster
from casebook.classroom import grading
from casebook.classroom.grade_report import Report
from casebook.laboratory.machine_files import Machine
from casebook.pages import timing

MEASURE = ("measure", "stage-1-today", "--delay", "0.1", "--n")


def casebook(*arguments, **environment):
    return run(sys.executable, "-m", "casebook", *arguments, env=os.environ | environment)


def said(*arguments):
    """What a command that succeeds prints."""
    done = casebook(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_help_lists_each_command_with_what_it_does():
    names = {path.stem for path in (places.PACKAGE / "cli").glob("[a-z]*.py")} - {"subcommands"}
    assert {module.__name__.rpartition(".")[2] for module in cli.COMMANDS} == names
    printed = " ".join(said("--help").split())
    for module in cli.COMMANDS:
        name = module.__name__.rpartition(".")[2]
        assert f" {name} {module.__doc__.rstrip('.')}" in printed
    assert "save Write what this machine measured" in " ".join(said("machine", "--help").split())


@pytest.mark.parametrize("name", ["machine", "cluster", "whodunit"])
def test_a_command_with_others_in_it_asks_for_one_of_them(name):
    done = casebook(name)
    assert done.returncode == 2 and "required: COMMAND" in done.stderr


def test_measure_prints_one_json_object_per_run():
    printed = said(*MEASURE, "2,3", "--repeats", "2", "--json")
    rows = [json.loads(line) for line in printed.splitlines()]
    in_turns = [(2, 1), (3, 1), (3, 2), (2, 2)]
    assert [(row["n"], row["repeat"]) for row in rows] == in_turns
    promised = "stack python client n delay_s scheme repeat wall_s user_s sys_s peak_rss_kib ok "
    promised += "effective_concurrency verdict counters versions"
    assert set(promised.split()) <= set(rows[0])
    assert rows[0]["counters"]["handshakes"] == 2
    assert rows[0]["versions"]["requests"]


def test_measure_prints_a_table():
    table = said(*MEASURE, "3", "--repeats", "1")
    assert "effective_concurrency" in table
    assert "stage-1-today" in table


def test_measure_can_point_at_another_server():
    with server.start(scheme="https") as other:
        there = ("--url", other.url, "--ca-file", other.ca_file)
        row = json.loads(said(*MEASURE, "3", "--repeats", "1", *there, "--json"))
        assert row["counters"]["peak_in_flight"] is None  # not a server of ours to ask
        assert other.counters()["requests"] == 3


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (("measure", "stage-9-py27"), 2, "stage-9-py27"),
        (("measure", "stage-1-today", "--n", "0"), 2, "n is 0"),
        (("measure", "stage-1-today", "--n", "three"), 2, "'three'"),
        (("measure", "stage-1-today", "--delay", "-1"), 2, "delay is -1"),
        (("measure", "stage-1-today", "--delay", "1e9"), 2, "delay is 1,000,000,000"),
        (("measure", "stage-1-today", "--repeats", "0"), 2, "repeats is 0"),
        (("measure", "stage-1-today", "--url", "ftp://127.0.0.1"), 2, "scheme is 'ftp'"),
        (("measure", "stage-1-today", "--url", "127.0.0.1"), 2, "https:// or http://"),
        (("measure", "stage-1-today", "--n", "2", "--url", "https://127.0.0.1:9"), 1, "page 0"),
    ],
)
def test_what_cannot_be_measured_ends_with_one_clear_line(arguments, status, why, capsys):
    assert cli.main(list(arguments)) == status
    out, error = capsys.readouterr()
    # Lines before it may tell of an environment that is being made.
    assert out == "" and why in error.splitlines()[-1] and "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("whodunit", "new", "--seed", "a", "--into", "FILE/class"),
        ("whodunit", "answer", "NOWHERE", "--culprit", "lock"),
        ("whodunit", "run", "NOWHERE", "pages"),
        ("course", "--exercises", "FILE/copy"),
        pytest.param(("laptops", "NOWHERE/class.tar.gz"), marks=needs("gzip")),
        ("machine", "compare", str(next(places.DATA.rglob("*.xz"))), "--page", "NOWHERE/a.html"),
    ],
)
def test_a_file_that_is_named_and_cannot_be_had_is_one_line(arguments, tmp_path, capsys):
    (tmp_path / "FILE").touch()
    named = [
        str(tmp_path / part) if part.startswith(("FILE", "NOWHERE")) else part for part in arguments
    ]
    assert cli.main(named) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("casebook: ") and str(tmp_path) in line


def test_a_file_that_nobody_named_keeps_its_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr(cli.whodunit, "write_case", lambda _: open("/nowhere/of/ours"))
    with pytest.raises(FileNotFoundError):
        cli.main(["whodunit", "new", "--seed", "a", "--into", str(tmp_path)])


def test_a_server_with_an_unknown_certificate_is_an_error_and_no_timing():
    with server.start(scheme="https") as other:
        done = casebook("measure", "stage-1-today", "--n", "2", "--url", other.url, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CERTIFICATE_VERIFY_FAILED" in done.stderr


def test_a_missing_interpreter_is_named_with_the_command_that_brings_it(no_old_pythons, capsys):
    assert cli.main(["measure", "stage-1-py27", "--n", "2"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "2.7" in line and "install" in line


def test_stacks_shows_each_stack_and_what_it_needs():
    states = {state["name"]: state for state in json.loads(said("stacks", "--json"))}
    assert states["stage-3-py37"]["steps"] == ["gevent_openssl", "grequests"]
    assert states["stage-4-py27"]["patch"]
    assert said("stacks").count("stage-") >= 13


@pytest.mark.parametrize("option", [["--json"], []])
def test_a_reader_who_has_enough_is_no_error(option):
    """As after `| head -1`, only surely: here the other end of the pipe is closed at once."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "casebook", "stacks", *option]
    done = subprocess.run(
        command, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=120, cwd=places.ROOT
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")


def test_another_broken_pipe_is_told():
    lost = "raise BrokenPipeError('to a server')"
    code = f"from casebook import cli\ndef lose(options): {lost}\n"
    code += "cli.stacks.run = lose\ncli.main(['stacks'])"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 1 and "to a server" in done.stderr


def test_ctrl_c_leaves_as_in_a_shell(monkeypatch):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.stacks, "run", interrupted)
    assert cli.main(["stacks"]) == 130


def graded(right: bool, is_whole: bool) -> Report:
    report = Report("a lab")
    report.add("this", right, 3, "as it came out", "look again")
    if not is_whole:
        report.leave("that", 4, "Python 2.7")
    return report


@pytest.mark.parametrize(
    ("right", "is_whole", "status"),
    [(True, True, 0), (True, False, 3), (False, True, 1), (False, False, 1)],
)
def test_a_grading_leaves_by_what_it_found(right, is_whole, status, monkeypatch, capsys):
    monkeypatch.setattr(grading, "grade", lambda *_: graded(right, is_whole))
    assert cli.main(["grade", "a-lab", "answer.py"]) == status
    assert "3   this" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("times", "status", "words"),
    [(1.2, 0, "the chapters took 1.20 times what intel"), (1.3, 1, "above 1.25"),
     (None, 2, "does not say what its chapters took")],
)  # fmt: skip
def test_a_build_that_has_grown_leaves_with_1(times, status, words, monkeypatch, capsys):
    monkeypatch.setattr(timing, "table", lambda _: "chapter  s")
    monkeypatch.setattr(timing, "growth", lambda *_: times)
    monkeypatch.setattr(timing, "on_this_machine", lambda _: {})
    monkeypatch.setattr(cli.machine, "machine_of", lambda name: Machine(name, {}, []))
    assert cli.main(["timing", "--against", "intel"]) == status
    assert words in "".join(capsys.readouterr())


def test_what_is_asked_for_is_asked_of_each_worker(monkeypatch, capsys):
    asked = []

    def run_on_workers(address, keys, commands):
        asked.append((address, keys, commands))
        return [cluster.Answer("one", commands[0], "three runs"),
                cluster.Answer("two", commands[1], failed="it has no Python 2.7")]  # fmt: skip

    monkeypatch.setattr(cluster, "run_on_workers", run_on_workers)
    options = ["--n", "3,10", "--delay", "0.5", "--repeats", "2", "--client", "loop"]
    options += ["--scheme", "http", "--trust", "authority"]
    names = ["stage-1-today", "stage-1-py27"]
    assert cli.main(["measure", *names, *options, "--on", "tcp://127.0.0.1:1"]) == 1
    [(address, keys, commands)] = asked
    assert (address, keys) == ("tcp://127.0.0.1:1", None)
    given = [cli._parser().parse_args(["measure", name, *options]) for name in names]
    assert [cli._parser().parse_args(command) for command in commands] == given
    out, error = capsys.readouterr()
    assert out == "one:\nthree runs\n" and "two, stage-1-py27: it has no Python 2.7" in error
