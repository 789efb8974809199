"""A run: the program as its user starts it, and its counts."""

from __future__ import division, print_function

import atexit
import json
import os
import signal
import sys
import time

from .basis import OWN_FILE, PY2, REPEATED, DoctorError, clock
from .examination import Examination, examine_end
from .left_behind import is_library
from .own_calls import command_without_secrets
from .own_server import ENDS_PROGRAM, end_with_server, start_server, stop_server
from .probes import Probes
from .processes import (
    ENDS_WITHIN_S,
    LEFT_ENDS_WITHIN_S,
    Offspring,
    is_python,
    running_processes,
    spawn_self,
)
from .rerun import apply_first, to_apply
from .state import named, process_ms
from .tally import count_events
from .trying import try_changes
from .verdicts import verdict_on
from .wording import describe, readable, short

#: Events of one process that are written, at most.
MOST_EVENTS = 400000
UNCOUNTED_FROM_HERE = "after %d events nothing more was counted" % MOST_EVENTS
#: Events without which there is nothing to tell of a program that was interrupted.
TELLS = ("begin", "load", "silence", "failed", "unreached", "own tls")
#: What a program is given that is asked to end by Ctrl-C, which a server takes as a request to
#: finish what it does: longer than by other signals.
ENDS_AFTER_INT_WITHIN_S = 30
#: The modules that the doctor has imported before the program: one of that name beside the program
#: is meant by its imports, as it would be without the doctor.
OWN_IMPORTS = (
    "atexit bisect gc getopt json linecache re resource signal textwrap warnings weakref".split()
)

#: What every Python that the program starts reads first.
SITE = """\
import sys
this = sys.modules.pop("sitecustomize")
sys.path[:] = [each for each in sys.path if each != {folder!r}]
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = this
sys.path.insert(0, {folder!r})
try:
    import tls_doctor_in_child
    tls_doctor_in_child.count_here({events!r}, {changes!r})
except Exception:
    pass
finally:
    sys.path.remove({folder!r})
"""


def run_apart(options):
    """Return the Examination of a run of the program in a process of its own. Raises DoctorError.

    It runs as its user would start it; with "changes" among the options, with these, as `again` has
    them.

    What it prints goes to standard error: standard output is the report's.
    """
    server, address = start_server()
    folder, program, offspring = address["folder"], None, None
    signals, handlers = catch_signals()  # before there is a program that could be left behind
    events = os.path.join(folder, "events")
    try:
        path = os.path.join(folder, "options")
        with open(path, "w") as file:
            children = in_children(folder, events, [str(change) for change in options["changes"]])
            file.write(json.dumps(dict(options, server=address, events=events, children=children)))
        environ = dict(os.environ)
        program = spawn_self("--child-run", path, environ=environ, stdout=2)
        end_with_server(server, ENDS_PROGRAM, program.pid)
        offspring = Offspring(program.pid)
        reason, number = wait_for(program, options["patience"], signals, offspring)
        restore_signals(handlers)
        last = read_events(events)
        if reason:  # they write at their end, into a folder that goes next
            offspring.end(set(event["pid"] for event in last) - set([program.pid]))
        left = [] if reason else left_of(program.pid, folder, events)
        last = last if reason else read_events(events)
        if number and not any(event["is"] in TELLS for event in last):
            raise DoctorError(INTERRUPTED, 128 + number)
        examination = examination_of(last, options, program.returncode, reason)
        examination.ended["signal"] = number
        examination.counts["left"] = len(left)
        may_try = address["https"] and not options["changes"]
        if may_try and verdict_on(examination.counts, options["share"]) == REPEATED:
            examination.tried = try_changes(examination, address)
        return examination
    finally:
        restore_signals(handlers)
        if program is not None and program.poll() is None:
            offspring = offspring or Offspring(program.pid)
            offspring.look()
            program.kill()
            program.wait()
            offspring.end()
        stop_server(server)
        import shutil

        for _ in range(100):  # what was ended just now may write for another moment
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):
                break
            time.sleep(0.02)


def in_children(folder, events, changes):
    """Make what has the Pythons counted that the program starts: the PYTHONPATH that does it."""
    import shutil

    place = os.path.join(folder, "children")
    os.mkdir(place)
    with open(os.path.join(place, "sitecustomize.py"), "w") as file:
        file.write(SITE.format(folder=place, events=events, changes=changes))
    shutil.copy(OWN_FILE, os.path.join(place, "tls_doctor_in_child.py"))
    return os.pathsep.join([place] + [path for path in [os.environ.get("PYTHONPATH")] if path])


INTERRUPTED = "interrupted before a TLS connection was made; nothing is left running"


def left_of(program, folder, events):
    """Return the Pythons that run on when the program has ended by itself, and were its own.

    They are given a moment to end, too. events: the file that those that count write to, which some
    have only begun to.
    """
    deadline = clock() + LEFT_ENDS_WITHIN_S
    while True:
        kinds = ("process", "forked")
        writers = set(event["pid"] for event in read_events(events) if event["is"] in kinds)
        pids = set(running_processes()) - set([program, os.getpid()])
        pids = [pid for pid in pids if (pid in writers or is_of(pid, folder)) and is_python(pid)]
        if not pids or clock() > deadline:
            return pids
        time.sleep(0.02)


def is_of(pid, folder):
    """Return whether a folder tells that a process is the program's; False if nobody tells.

    A process that it forks has its command line, and one that it starts has its PYTHONPATH.
    """
    for name in ("cmdline", "environ"):
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as file:
                if folder.encode("utf-8") in file.read():
                    return True
        except (EnvironmentError, UnicodeError):
            pass
    return False


def catch_signals():
    """Note the signals that would end the doctor.

    Returns the list of those that came, and the handlers that were there before.
    """
    signals = []
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    numbers = [
        number for number in numbers if number and signal.getsignal(number) != signal.SIG_IGN
    ]

    def note(number, _):
        signals.append(number)

    return signals, [(number, signal.signal(number, note)) for number in numbers]


def restore_signals(handlers):
    """Put back the handlers that `catch_signals` returned."""
    for number, handler in handlers:
        signal.signal(number, handler)


def wait_for(program, patience, signals, offspring):
    """Wait until the program has ended; return (why before its time, the signal's number).

    None for either if there is none. A signal that would end the doctor ends the program; a
    second one ends it at once. signals: see `catch_signals`. offspring: what looks, before it ends
    what it has started.
    """
    limit = clock() + patience if patience else None
    reason, kill_at, passed = None, None, 0
    while program.poll() is None:
        for number in signals[passed:]:
            passed += 1
            offspring.look()
            if number != signal.SIGINT or not os.isatty(0):  # the terminal has told both of us
                program.send_signal(number)
        if signals:
            by_key = signals[0] == signal.SIGINT
            kill_at = kill_at or clock() + (ENDS_AFTER_INT_WITHIN_S if by_key else ENDS_WITHIN_S)
        if limit and clock() > limit and kill_at is None:
            reason, kill_at = "ended after %d s, as --patience says" % patience, limit + 2
            offspring.look()
            program.terminate()
        if kill_at and (clock() > kill_at or len(signals) > 1):
            offspring.look()
            program.kill()
        time.sleep(0.01)
    return "interrupted" if signals else reason, int(signals[0]) if signals else None


def read_events(path):
    """Return the events that were written, without one that was cut off."""
    events = []
    try:
        with open(path, "rb") as file:
            for line in file:
                try:
                    events.append(json.loads(line.decode("utf-8")))
                except ValueError:
                    pass
    except EnvironmentError:
        pass
    return events


def examination_of(events, options, status, reason):
    """Return the Examination of a run that has ended with a status, or for a reason."""
    examination = Examination(
        program=command_without_secrets([options["program"]] + options["arguments"]),
        http={"url": None, "offers": None, "clients": [], "requests": 0},
    )
    by_kind = {}
    for event in events:
        by_kind.setdefault(event["is"], []).append(event)
    if "trouble" in by_kind:
        raise DoctorError(by_kind["trouble"][0]["why"])
    for event in by_kind.get("found", []):
        for name in set(event["found"]) - set(["program", "injections", "http"]):
            setattr(examination, name, event["found"][name])
    counts = count_events(events)
    raised = [event["why"] for event in by_kind.get("raised", [])]
    examination.injections = counts.pop("injections")
    examination.counts = counts
    examination.ended = {"status": status, "why": reason, "raised": raised[0] if raised else None}
    loops = sorted(set(event["name"] for event in by_kind.get("loop", [])))
    if loops and not examination.loop:
        # It is in a process that ended too early, or in a child.
        reason = "the program was ended"
        if "found" in by_kind:
            reason = "it is in a process that the program started"
        untried = [event["why"] for event in by_kind.get("untried", [])]
        examination.loop = {"name": loops[0], "patched": None, "used": True}
        examination.untried = untried[0] if untried else reason
    if examination.python is None:
        examination.python = sys.version.split()[0]
        examination.openssl = {"ssl": "", "loads": ""}
    return examination


# In the process of the program, and in those that it starts.


def writer(path):
    """Return a function that writes events as lines to a file that others write to as well."""
    output, names = {}, {"open": os.open, "write": os.write, "stat": os.fstat}

    def opened():
        handle = names["open"](path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        state = names["stat"](handle)
        output.update(handle=handle, identity=(state.st_dev, state.st_ino), written=0)

    def write(event):
        output["written"] += 1
        if output["written"] > MOST_EVENTS and event["is"] in ("context", "load", "begin", "end"):
            if "told" in output:
                return
            output["told"] = True
            event = dict((name, event[name]) for name in ("pid", "cpu", "compiled"))
            event.update({"is": "uncounted", "why": UNCOUNTED_FROM_HERE})
        try:  # a daemon closes all its files, and another may have this number now
            state = names["stat"](output["handle"])
            is_same = (state.st_dev, state.st_ino) == output["identity"]
        except OSError:
            is_same = False
        if not is_same:
            opened()
        names["write"](output["handle"], (json.dumps(event) + "\n").encode("utf-8"))

    opened()
    return write


def count_here(path, changes=()):
    """Count in this process from now on, with these changes: its probes."""
    probes = Probes(writer(path))
    probes.changes = to_apply(changes)
    atexit.register(probes.note, "exit")
    probes.note("process")
    leave = os._exit

    def _exit(status):
        probes.note("exit")
        leave(status)

    os._exit = _exit
    note_forks(probes)
    return probes.install()


def note_forks(probes):
    """Note the processes that this one forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: probes.note("forked"))
    elif hasattr(os, "fork"):
        fork_itself = os.fork

        def fork():
            pid = fork_itself()
            if pid == 0:
                probes.note("forked")
            return pid

        os.fork = named(fork, fork_itself)


def run_program(path):
    """Run the program, as its process, and then look at its event loop, if it has one."""
    with open(path) as file:
        options = json.loads(file.read())
    probes, pid = count_here(options["events"], options["changes"]), os.getpid()
    status = 0
    try:
        run = prepare_run(options)
    except DoctorError as trouble:
        probes.note("trouble", why=trouble.args[0])
        return 2
    os.environ["PYTHONPATH"] = str(options["children"])
    probes.note("start")
    try:
        apply_first(options["changes"])
        run()
    except SystemExit as error:
        status = error.code
    except BaseException as error:
        kind, value, trace = sys.exc_info()
        while trace is not None and trace.tb_next and is_ours(trace):
            trace = trace.tb_next
        inner = error
        while isinstance(getattr(inner, "exceptions", None), tuple):  # a group tells who waited
            inner = inner.exceptions[0]
        innermost = trace if inner is error else inner.__traceback__
        probes.note("raised", why="%s, at %s" % (describe(inner), place_of(innermost)))
        if not PY2:
            value = value.with_traceback(trace)
        sys.excepthook(kind, value, trace)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    if os.getpid() != pid:  # a child that the program forked has nothing to say
        return status
    started_ms = process_ms()
    try:
        probes.active = False
        probes.note("found", found=examine_end(options).as_dict())
    except BaseException as error:
        probes.note("untried", why=describe(error))
    probes.active = True
    probes.note("trial", ms=process_ms() - started_ms)
    return status


def is_ours(trace):
    """Return whether a traceback's frame is of the doctor, or of what runs a program."""
    path = trace.tb_frame.f_code.co_filename
    return path == OWN_FILE or path.startswith("<frozen") or os.path.basename(path) == "runpy.py"


def place_of(trace):
    """Return the innermost line of the program's own code; if there is none, of any."""
    places, own_places = [""], []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith("<") and path != OWN_FILE:
            (places if is_library(path) else own_places).append(
                "%s:%d" % (short(path), trace.tb_lineno)
            )
        trace = trace.tb_next
    return (own_places or places)[-1]


def prepare_run(options):
    """Return a function that runs the program as Python would; sys.argv and sys.path are ready.

    Raises DoctorError for what cannot be run.
    """
    name, arguments = options["program"], list(options["arguments"])
    if PY2:  # whose command lines are bytes
        name, arguments = name.encode("utf-8"), [argument.encode("utf-8") for argument in arguments]
    path = None if options["module"] else path_of(name)
    folder = os.getcwd() if path is None else folder_of(path)
    prepare_imports(folder, folder == path)
    held_modules.append(sys.modules["__main__"])
    main = type(sys)("__main__")
    main.__builtins__ = held_modules[0].__builtins__
    main.__spec__ = main.__loader__ = None
    if path is None:
        sys.argv = [name] + arguments
        return prepare_module(name, main)
    sys.argv = [name if path == os.path.abspath(name) else path] + arguments
    if folder == path:
        sys.modules["__main__"] = main
        return lambda: run_as_main("__main__", False)
    return prepare_script(path, main)


def path_of(name):
    """Return the absolute path of a script or of a console script; None if there is none."""
    path = name if os.path.exists(name) else None
    if path is None and os.sep not in name:
        path = console_script(name)
    return None if path is None else os.path.abspath(path)


def folder_of(path):
    """Return what a program's imports are looked for in first; an archive is a folder itself."""
    is_whole = os.path.isdir(path) or is_archive(path)
    return path if is_whole else os.path.dirname(os.path.realpath(path))


def prepare_imports(folder, is_whole):
    """Have the program's imports be looked for in a folder first, as Python has."""
    if not (getattr(sys.flags, "isolated", 0) or getattr(sys.flags, "safe_path", 0)):
        sys.path[0] = folder
    elif is_whole:
        sys.path.insert(0, folder)
    for module_name in OWN_IMPORTS:
        if os.path.exists(os.path.join(folder, module_name + ".py")):
            sys.modules.pop(module_name, None)


def prepare_script(path, main):
    """Return a function that runs a script as a module. Raises DoctorError if it is none."""
    try:
        with open(path, "rb") as file:
            text = file.read()
        code = compile(text, path, "exec", 0, True)
    except (SyntaxError, ValueError, TypeError) as error:
        if isinstance(error, SyntaxError):
            error.__traceback__ = None  # of the line, and not of the doctor, as Python tells it
            sys.excepthook(type(error), error, None)
        raise DoctorError("%s is no program of this Python (%s)" % (short(path), describe(error)))
    main.__file__ = path
    sys.modules["__main__"] = main

    def run():
        exec(code, main.__dict__)

    return run


#: So that Python 2.7 does not empty what the doctor's functions need.
held_modules = []


def prepare_module(name, main):
    """Return a function that runs a module as `python -m` does, or calls module:function."""
    module, colon, function = name.partition(":")
    if not match_name(module) or (colon and not match_name(function)):
        raise DoctorError(
            "there is no program %r: name a script, a console script, -m and a module, or "
            "package.module:function (of standard input: /dev/stdin)" % readable(name)
        )
    if not colon:
        sys.modules["__main__"] = main
        return lambda: run_as_main(module, True)

    def call():
        __import__(module)
        value = sys.modules[module]
        for attribute in function.split("."):
            value = getattr(value, attribute)
        value = value()
        if hasattr(value, "__await__"):
            import asyncio

            value = asyncio.run(value)
        if isinstance(value, int):  # as a console script ends
            sys.exit(value)

    sys.modules["__main__"] = main
    return call


def match_name(text):
    """Return whether a text is a name with dots, as a match or None."""
    import re

    return re.match(r"[^\W\d]\w*(\.[^\W\d]\w*)*$", text)


def run_as_main(module, alter):
    """Run a module as __main__."""
    import runpy

    try:
        runpy._run_module_as_main(module, alter)
    except TypeError:
        if hasattr(runpy, "_run_module_as_main"):
            raise
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def is_archive(path):
    """Return whether a file is a zip archive, as Python runs them."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 66000))
            return b"PK\x05\x06" in file.read() and not path.endswith(".py")
    except EnvironmentError:
        return False


def console_script(name):
    """Return the path of a command that is written in Python; None if there is no such command."""
    places = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    places += os.environ.get("PATH", "").split(os.pathsep)
    for place in places:
        path = os.path.join(place, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            with open(path, "rb") as file:
                head = file.read(300)
            if head.startswith(b"#!") and b"python" in head:
                return path
            if not head.startswith(b"#!"):
                raise DoctorError(
                    "%s is no Python program, and the doctor counts in Python alone: name the "
                    "script itself" % readable(path)
                )
    return None
