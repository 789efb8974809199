"""The command line."""

from __future__ import division, print_function

import json
import os
import re
import sys

from .attaching import attach, attach_text
from .basis import FAILS, NUMBERS, OWN_FILE, VERSION, DoctorError, defaults
from .examination import examine, examine_apart
from .judging import judge
from .own_server import serve
from .processes import IN_MODULES, is_in_modules
from .report import annotations, text_of
from .rerun import run_again
from .running import console_script, run_apart, run_program
from .schema import schema
from .trying import try_change
from .which_http import parts_of
from .wording import print_line


def parse(arguments):
    """Return the options of a command line, as `defaults` has them. Raises DoctorError."""
    options, words = defaults(), list(arguments)
    if "--" in words:
        words, program = words[: words.index("--")], words[words.index("--") + 1 :]
        words = take_program(options, words, program)
    if words[:1] == ["run"]:
        raise DoctorError("run needs a program: doctor.py run -- program.py arguments")
    if words[:1] == ["attach"]:
        if not "".join(words[1:2]).isdigit():
            raise DoctorError("attach needs the number of a process: doctor.py attach PID")
        options["attach"], words = int(words[1]), words[2:]
    take_options(options, words)
    if options["again"] and not options["run"]:
        raise DoctorError("--again is for a run: doctor.py run --again -- program.py")
    return options


def take_program(options, words, program):
    """Put the program, which is what follows --, into the options; return the other words."""
    if not program:
        raise DoctorError("after -- comes a module or a script")
    if words[:1] == ["run"]:
        options["run"], words = True, words[1:]
        options["python"], program = without_python(program)
        if program[0] == "-m":
            options["module"], program = True, program[1:]
    if not program:
        raise DoctorError("after -m comes a module")
    options["program"], options["arguments"] = program[0], program[1:]
    return words


def take_options(options, words):
    """Put what the words of a command line ask for into the options."""
    import getopt

    try:
        names = ["json", "github", "again", "url=", "fail-on="] + [name + "=" for name in NUMBERS]
        chosen, rest = getopt.getopt(words, "", names)
    except getopt.GetoptError as error:
        raise DoctorError(str(error))
    if rest:
        raise DoctorError("%r is not known; a program is named after --" % rest[0])
    for option, text in chosen:
        name = option[2:]
        try:
            value, wants = value_of(name, text)
        except ValueError:
            value, wants = None, wants_of_number(name)
        if not value:
            raise DoctorError("%s takes %s" % (option, wants))
        options[name.replace("-", "_")] = value


def value_of(name, text):
    """Return (the value of an option, or what is no value; what it takes, in words)."""
    if name in NUMBERS:
        kind, _, limit = NUMBERS[name]
        return 0 < kind(text) <= limit and kind(text), wants_of_number(name)
    if name == "fail-on":
        names = text.split(",")
        return set(names) <= set(FAILS) and names, "what exits with 1: " + ", ".join(sorted(FAILS))
    if name == "url":
        is_address = text.startswith(("https://", "http://")) and parts_of(text)[0]
        return is_address and text, "an address that begins with https://"
    return True, ""


def wants_of_number(name):
    """Return what an option takes that is a number; of another, what an address is."""
    if name not in NUMBERS:
        return "an address that begins with https://"
    return "a number above 0, up to %d" % NUMBERS[name][2]


def without_python(program):
    """Return (the path of the Python at the start of a command line or None, the rest of it)."""
    if len(program) < 2 or not re.match(r"python[0-9.]*$", os.path.basename(program[0])):
        return None, program
    paths = [program[0]]
    if not os.path.dirname(program[0]):
        folders = os.environ.get("PATH", "").split(os.pathsep)
        paths = [os.path.join(folder, program[0]) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), None), program[1:]


def other_python(options):
    """Return the Python that runs the program of a run, if that is another than this one.

    It is the one that is named, or that of a console script; else None.
    """
    python = options["python"]
    if python is None and not options["module"]:
        try:
            path = options["program"] if os.path.isfile(options["program"]) else None
            with open(path or console_script(options["program"]) or os.devnull, "rb") as file:
                line = file.readline(300)
        except (EnvironmentError, DoctorError):
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


#: What this file does in the processes that it starts: never typed by a person.
CHILD_COMMANDS = {
    "--child-serve": lambda _: serve(),
    "--child-examine": lambda words: examine(words[0]),
    "--child-try": lambda words: try_change(words[0]),
    "--child-run": lambda words: run_child(words),
}
#: The program's own Python was started for this command line.
CHOSEN = "--child-chosen"


def run_child(words):
    """Run the program; what it compiles is kept, as it would be without the doctor."""
    sys.dont_write_bytecode = False
    return run_program(words[0])


def main(arguments):
    """Run a command line; return the exit status."""
    sys.dont_write_bytecode = True
    command = "".join(arguments[:1])
    if command in CHILD_COMMANDS:
        return CHILD_COMMANDS[command](arguments[1:])
    if is_in_modules():
        print_line("doctor: %s." % IN_MODULES)
        return 2
    if command in ("-h", "--help"):
        print(__doc__.strip())
    elif command == "--version":
        print("doctor %s, Python %s" % (VERSION, sys.version.split()[0]))
    elif command == "--schema":
        print(json.dumps(schema(), indent=1, sort_keys=True))
    else:
        return report_on(arguments)
    return 0


def report_on(arguments):
    """Do what a command line asks for, and print its report; return the exit status."""
    options, is_chosen = None, arguments[:1] == [CHOSEN]
    try:
        options = parse(arguments[1:] if is_chosen else arguments)
        if options["run"] and not is_chosen and other_python(options):
            sys.stdout.flush()
            python = other_python(options)
            os.execv(python, [python, OWN_FILE, CHOSEN] + list(arguments))
        report, text = attach_to(options) if options["attach"] is not None else examined(options)
    except (DoctorError, KeyboardInterrupt) as trouble:
        text = trouble.args[0] if trouble.args else "interrupted; nothing is left running"
        text += "" if options else ". --help says more"
        status = trouble.args[1] if len(trouble.args) > 1 else 2
        options, report = options or defaults(), {"trouble": text, "exit_status": status}
    if options["github"]:
        for line in annotations(report):
            print_line(line, sys.stderr if options["json"] else sys.stdout)
    if options["json"]:
        print(json.dumps(dict(report, version=VERSION), sort_keys=True))
    elif "trouble" in report:
        print_line("doctor: %s." % text.rstrip("."))
    else:
        print_line(text, sys.stdout)
    return report["exit_status"]


def attach_to(options):
    """Return (the report on a running process, its text)."""
    report = attach(options["attach"], options["seconds"], options["share"])
    return report, attach_text(report)


def examined(options):
    """Return (the report on a program that is run or imported, its text)."""
    report = judge((run_apart if options["run"] else examine_apart)(options), options)
    if options["again"]:

        def run(changes):
            return judge(run_apart(dict(options, changes=changes)), options)

        report["again"] = run_again(report, run)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return report, text_of(report, sys.stdout.isatty() and not plain)


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
