"""The owner of a server: the process at the other end of its standard input and output.

It reads one line of JSON when the server is ready, and asks in lines: "counters 1", "reset 2",
"cpu 3". Each answer is a line of JSON with the number of its question. When the owner ends,
however it went, the server ends. Runs inside the environments.
"""

import json
import os
import resource
import shutil
import sys
import threading
import time

_CHECK_S = 1.0


def make_room():
    """Raise the limit of open files as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, 10240):  # macOS reports "unlimited" and allows this many
        try:
            if soft != hard:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
        except (ValueError, OSError):
            pass


def say(**content):
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def attend(counters, folder):
    """Answer the owner from now on, beside whatever serves; when the owner is gone, remove the
    folder of this run and end."""
    threading.Thread(target=_answer, args=(counters, folder), daemon=True).start()
    threading.Thread(target=_watch, args=(folder,), daemon=True).start()


def _answer(counters, folder):
    for line in sys.stdin:
        question, _, number = line.partition(" ")
        found = {}
        if question == "counters":
            found = counters.report()
        elif question == "reset":
            counters.reset()
        elif question == "cpu":
            used = resource.getrusage(resource.RUSAGE_SELF)
            found = {"user_s": used.ru_utime, "sys_s": used.ru_stime}
        say(number=int(number), **found)
    _end(folder)


def _watch(folder):
    # A child that the owner forked may still hold the pipe; the kernel's word on our parent is
    # sure.
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_CHECK_S)
    _end(folder)


def _end(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
