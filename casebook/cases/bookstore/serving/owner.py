"""The owner of a server: the process at the other end of its standard input and output.

It reads one line of JSON when the server is ready, and asks in lines: "counters 1", "reset 2",
"cpu 3", "let_go 4". Each answer is a line of JSON with the number of its question. When the owner
ends, however it went, the server ends. Runs inside the environments.
"""

import json
import os
import resource
import shutil
import sys
import threading
import time

_CHECK_S = 1.0


def report(**content):
    """Print a line for the owner."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def attend(folder, counters=None, let_go=None):
    """Answer the owner from now on, beside whatever serves.

    When the owner is gone, remove the folder of this run and end. let_go: answers what was held
    back; called in another thread.
    """
    parent = os.getppid()

    def end():
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    def answer():
        for line in sys.stdin:
            question, _, number = line.partition(" ")
            report(number=int(number), **(_answer(question, counters, let_go) or {}))
        end()

    def watch():
        # A child that the owner forked may still hold the pipe; the kernel's word on our parent
        # is sure.
        while os.getppid() == parent:
            time.sleep(_CHECK_S)
        end()

    for target in (answer, watch):
        threading.Thread(target=target, daemon=True).start()


def _answer(question, counters, let_go):
    if question == "counters":
        return counters.report()
    if question == "reset":
        return counters.reset()
    if question == "let_go":
        return let_go()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": used.ru_utime + used.ru_stime}
