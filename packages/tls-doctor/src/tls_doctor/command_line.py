"""The command line."""

from __future__ import division, print_function

import json
import os
import re
import sys

from .attaching import attach, attach_text
from .basis import FAILS, NUMBERS, OWN_FILE, VERSION, Trouble, defaults
from .examination import examine, examine_apart
from .judging import judge
from .own_server import serve
from .report import annotations, text_of
from .rerun import run_again
from .running import console_script, run_apart, run_program
from .schema import schema
from .trying import try_change
from .which_http import parts_of
from .wording import say


def parse(arguments):
    """Return the command line as a dictionary like `defaults`. Raises Trouble."""
    import getopt

    spec, options = defaults(), list(arguments)
    if "--" in options:
        options, program = options[: options.index("--")], options[options.index("--") + 1 :]
        if not program:
            raise Trouble("after -- comes a module or a script")
        if options[:1] == ["run"]:
            spec["run"], options = True, options[1:]
            spec["python"], program = without_python(program)
            if program[0] == "-m":
                spec["module"], program = True, program[1:]
        if not program:
            raise Trouble("after -m comes a module")
        spec["program"], spec["arguments"] = program[0], program[1:]
    if options[:1] == ["run"]:
        raise Trouble("run needs a program: doctor.py run -- program.py arguments")
    if options[:1] == ["attach"]:
        if not "".join(options[1:2]).isdigit():
            raise Trouble("attach needs the number of a process: doctor.py attach PID")
        spec["attach"], options = int(options[1]), options[2:]
    try:
        names = ["json", "github", "again", "url=", "fail-on="] + [name + "=" for name in NUMBERS]
        chosen, rest = getopt.getopt(options, "", names)
    except getopt.GetoptError as error:
        raise Trouble(str(error))
    if rest:
        raise Trouble("%r is not known; a program is named after --" % rest[0])
    for option, text in chosen:
        name, wants = option[2:], "an address that begins with https://"
        try:
            if name in NUMBERS:
                kind, _, limit = NUMBERS[name]
                wants = "a number above 0, up to %d" % limit
                value = 0 < kind(text) <= limit and kind(text)
            elif name == "fail-on":
                wants = "what exits with 1: " + ", ".join(sorted(FAILS))
                name, value = "fail_on", text.split(",")
                value = set(value) <= set(FAILS) and value
            else:
                value = name in ("json", "github", "again") or (
                    text.startswith(("https://", "http://")) and parts_of(text)[0] and text
                )
        except ValueError:
            value = None
        if not value:
            raise Trouble("%s takes %s" % (option, wants))
        spec[name] = value
    if spec["again"] and not spec["run"]:
        raise Trouble("--again is for a run: doctor.py run --again -- program.py")
    return spec


def without_python(program):
    """Return (the path of the Python at the start of a command line or None, the rest of it)."""
    if len(program) < 2 or not re.match(r"python[0-9.]*$", os.path.basename(program[0])):
        return None, program
    paths = [program[0]]
    if not os.path.dirname(program[0]):
        folders = os.environ.get("PATH", "").split(os.pathsep)
        paths = [os.path.join(folder, program[0]) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), None), program[1:]


def other_python(spec):
    """Return the Python that runs the program of a run, if that is another than this one, or None:
    the one that is named, or that of a console script.
    """
    python = spec["python"]
    if python is None and not spec["module"]:
        try:
            path = spec["program"] if os.path.isfile(spec["program"]) else None
            with open(path or console_script(spec["program"]) or os.devnull, "rb") as file:
                line = file.readline(300)
        except (EnvironmentError, Trouble):
            return None
        match = re.match(b"#! *(/[^ ]*python[0-9.]*) *\n", line)
        python = match.group(1).decode("utf-8") if match else None
    current_python = sys.executable or ""
    if not python or not os.access(python, os.X_OK):
        return None
    places = [
        os.path.abspath(os.path.dirname(executable)) for executable in (python, current_python)
    ]
    is_same = places[0] == places[1] and os.path.realpath(python) == os.path.realpath(
        current_python
    )
    return None if is_same else python


def main(arguments):
    sys.dont_write_bytecode = True
    if arguments[:1] == ["--serve"]:
        return serve()
    if arguments[:1] == ["--examine"]:
        examine(arguments[1])
    if arguments[:1] == ["--try"]:
        return try_change(arguments[1])
    if arguments[:1] == ["--run"]:
        sys.dont_write_bytecode = False
        return run_program(arguments[1])
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if arguments[:1] == ["--version"]:
        print("doctor %s, Python %s" % (VERSION, sys.version.split()[0]))
        return 0
    if arguments[:1] == ["--schema"]:
        print(json.dumps(schema(), indent=1, sort_keys=True))
        return 0
    spec, chosen = None, arguments[:1] == ["--chosen"]
    try:
        spec = parse(arguments[1:] if chosen else arguments)
        if spec["run"] and not chosen and other_python(spec):
            sys.stdout.flush()
            python = other_python(spec)
            os.execv(python, [python, OWN_FILE, "--chosen"] + list(arguments))
        if spec["attach"] is None:
            report = judge((run_apart if spec["run"] else examine_apart)(spec), spec)
            if spec["again"]:
                run = lambda changes: judge(run_apart(dict(spec, changes=changes)), spec)  # noqa: E731
                report["again"] = run_again(report, run)
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
            text = text_of(report, sys.stdout.isatty() and not plain)
        else:
            report = attach(spec["attach"], spec["seconds"], spec["share"])
            text = attach_text(report)
    except (Trouble, KeyboardInterrupt) as trouble:
        text = trouble.args[0] if trouble.args else "interrupted; nothing is left running"
        text += "" if spec else ". --help says more"
        status = trouble.args[1] if len(trouble.args) > 1 else 2
        spec, report = spec or defaults(), {"trouble": text, "exit_status": status}
    if spec["github"]:
        for line in annotations(report):
            say(line, sys.stderr if spec["json"] else sys.stdout)
    if spec["json"]:
        print(json.dumps(dict(report, version=VERSION), sort_keys=True))
    elif "trouble" in report:
        say("doctor: %s." % text.rstrip("."))
    else:
        say(text, sys.stdout)
    return report["exit_status"]


def start():
    """Run the command line of this process: its exit status."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except (IOError, OSError) as error:
        if error.errno != 32:
            raise
        status = 2  # its reader has left, as in `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status
