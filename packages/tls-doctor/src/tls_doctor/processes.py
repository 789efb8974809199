"""The processes."""

from __future__ import division, print_function

import os
import signal
import sys
import time

from .basis import OWN_FILE, DoctorError, clock

#: What a program that is asked to end is given for it; and each process that it has left.
ENDS_WITHIN_S, LEFT_ENDS_WITHIN_S = 5, 2


IN_MODULES = (
    "these are the doctor's sources, and it starts itself again from its one file: run doctor.py, "
    "which `make products` makes of them, or install the package (and not with --editable)"
)


def is_in_modules():
    """Return whether this is run from the modules that the single file is made of."""
    return os.path.basename(OWN_FILE) == "basis.py"


def spawn_self(*arguments, **streams):
    """Start this file again as a process of its own, with the options of this Python.

    environ: its environment, if not this one's. Raises DoctorError if it cannot be started.
    """
    import subprocess

    check_start()
    options = getattr(subprocess, "_args_from_interpreter_flags", lambda: [])()
    environ = streams.pop("environ", None) or dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable] + options + [OWN_FILE] + list(arguments)
    return subprocess.Popen(command, close_fds=True, env=environ, **streams)


def check_start():
    """Raise DoctorError where this process has no Python that could read this file."""
    if is_in_modules():
        raise DoctorError(IN_MODULES)
    python = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or "py" not in python:
        # A frozen program would start itself, and that would start itself.
        raise DoctorError(
            "this process is no Python that could run the doctor a second time (%s), and it needs "
            "one for its server: run the program with a Python, and the doctor with the same"
            % ("it is frozen" if getattr(sys, "frozen", False) else python or "it has no name")
        )
    if not os.path.isfile(OWN_FILE):
        raise DoctorError(
            "the doctor starts itself again from its file, and there is none: save it as "
            "doctor.py, and run `python doctor.py`"
        )


def end_group(group):
    """End all that a process group still runs."""
    try:
        if group and hasattr(os, "killpg"):
            os.killpg(group, signal.SIGKILL)
    except OSError:
        pass


class Offspring(object):
    """Ends with a program what it has started, where the doctor is what ends the program.

    That is its children, theirs, and so on, as far as somebody has looked while their parents were
    there, and what has counted beside them. A process with a session of its own (a daemon, or what
    start_new_session= starts) has been handed over: it goes on after its program without the
    doctor, and here. So does whatever is left by a program that comes to its end by itself.
    """

    def __init__(self, pid):
        self.pid, self.found, self.sessions = pid, {}, set()
        self.born = self.look().get(pid, (None, None))[1]

    def look(self):
        """Find what the program has started by now; return what runs, as `running_processes`."""
        running = running_processes()
        if self.pid in running:
            self.sessions.add(session_of(self.pid))
        generation = set([self.pid]) | set(self.left(running))
        family = set()
        while generation:
            family |= generation
            children = set(pid for pid in running if running[pid][0] in generation)
            generation = children - family
        self.add(family - set([self.pid]), running)
        return running

    def add(self, pids, running):
        """Take processes for the program's, unless they have a session of their own."""
        for pid in pids:
            if pid in running and session_of(pid) in self.sessions:
                self.found.setdefault(pid, running[pid][1])

    def left(self, running):
        """Return which of those that were found run still."""
        return [pid for pid in self.found if running.get(pid, ())[1:] == (self.found[pid],)]

    def end(self, counted=()):
        """End what is left of it: it is asked to, and killed if it has not gone soon.

        counted: processes of which somebody knows that they are the program's.
        """
        running = self.look()
        if not running:  # nobody tells what runs here
            send_all(counted, signal.SIGTERM)
        self.add(counted, running)
        left, deadline = self.left(running), clock() + LEFT_ENDS_WITHIN_S
        send_all(left, signal.SIGTERM)
        while left and clock() < deadline:
            time.sleep(0.02)
            left = self.left(running_processes())
        send_all(left, getattr(signal, "SIGKILL", signal.SIGTERM))

    def end_with_program(self):
        """End the program first, where nobody is there any more who would."""
        if not running_processes():
            send_all([self.pid], signal.SIGTERM)
            return
        for name, seconds in (("SIGTERM", ENDS_WITHIN_S), ("SIGKILL", LEFT_ENDS_WITHIN_S)):
            deadline = clock() + seconds
            if self.runs():
                send_all([self.pid], getattr(signal, name))
            while self.runs() and clock() < deadline:
                time.sleep(0.02)
        self.end()

    def runs(self):
        """Look, and return whether the program runs still."""
        return self.look().get(self.pid, ())[1:] == (self.born,)


def send_all(pids, number):
    """Send a signal to processes; one may have ended."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def session_of(pid):
    """Return the session of a process; None if there is none, or if it has ended."""
    try:
        return os.getsid(pid)
    except (AttributeError, OSError):  # another system
        return None


def running_processes():
    """Return {number of a process that runs: (its parent's, when it began)}; empty if nobody tells.

    When it began tells it from a later one of the same number.
    """
    running = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    for name in names:
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except EnvironmentError:  # it has ended meanwhile
            continue
        if len(fields) > 19 and fields[0] not in (b"Z", b"X"):
            running[int(name)] = int(fields[1]), fields[19]
    return running or processes_of_ps()


def processes_of_ps():
    """Return what `running_processes` tells, where ps has to be asked (macOS)."""
    import subprocess

    if not hasattr(os, "getsid"):
        return {}
    running = {}
    try:
        command = ["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="]
        ps = subprocess.Popen(command, stdout=subprocess.PIPE, close_fds=True)
        lines = ps.communicate()[0].splitlines()
    except EnvironmentError:
        lines = []
    for line in lines:
        fields = line.split()
        if len(fields) > 3 and not fields[2].startswith(b"Z"):
            running[int(fields[0])] = int(fields[1]), b" ".join(fields[3:])
    return running


def is_python(pid):
    """Return whether a process runs a Python; also True where nobody tells."""
    try:
        path = os.readlink("/proc/%d/exe" % pid)
    except (AttributeError, OSError):
        return True
    return "py" in os.path.basename(path) or path == os.path.realpath(sys.executable)
