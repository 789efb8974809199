"""The processes."""

from __future__ import division, print_function

import os
import signal
import sys

from .basis import OWN_FILE, DoctorError


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
    """End all that a process group still runs; of a negative number, that one process."""
    try:
        if group and group < 0:
            os.kill(-group, signal.SIGTERM)
        elif group and hasattr(os, "killpg"):
            os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
