"""The program, in its process."""

from __future__ import division, print_function

import os
import signal
import sys

from .basis import OWN_FILE, PY2
from .wording import describe, short


class TooLongError(BaseException):
    """The imports took longer than they may."""

    pass


def end_after(seconds, error=None):
    """Have this process ended after so long, or an error raised in it, where there are alarms."""

    def stop(*_):
        raise error

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, stop if error else signal.SIG_DFL)
        signal.alarm(seconds)


def is_script(program):
    """Return whether a program is a file."""
    return program.endswith(".py") or os.path.isfile(program)


def import_program(program, arguments):
    """Import a module, or run a script under another name than __main__."""
    if PY2:  # whose command lines are bytes
        program, arguments = (
            program.encode("utf-8"),
            [argument.encode("utf-8") for argument in arguments],
        )
    sys.argv = [program] + list(arguments)
    path = os.path.abspath(program)
    if not (getattr(sys.flags, "isolated", 0) or getattr(sys.flags, "safe_path", 0)):
        sys.path[0] = os.path.dirname(path) if is_script(program) else os.getcwd()
    if not is_script(program):
        __import__(program.partition(":")[0])
        return
    module = type(sys)("__program__")
    module.__file__ = path
    sys.modules["__program__"] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", 0, True)
    exec(code, module.__dict__)


def trouble_of(error, options, phase):
    """Return what the import of the program ended with, and what to do, in a sentence or two."""
    if phase == "examination":
        sys.__excepthook__(*sys.exc_info())
        return "the doctor itself failed: %s (its traceback is above)" % describe(error)
    name, place, trace = options["program"], "", sys.exc_info()[2]
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path != OWN_FILE and not path.startswith("<"):
            place = ", at %s:%d" % (short(path), trace.tb_lineno)
        trace = trace.tb_next
    behind = 'behind `if __name__ == "__main__":`'
    if isinstance(error, TooLongError):
        sentence = "was still in its imports after %d s%s" % (options["patience"], place)
        to_do = "Name a module that only imports, or put the work %s" % behind
    elif isinstance(error, SystemExit):
        sentence = "called sys.exit(%r) in its imports%s, " % (error.code, place)
        sentence += "so its other imports were not seen"
        to_do = "Put that %s, or name a module that only imports" % behind
    else:
        python = os.path.basename(sys.executable or "python")
        start = name if is_script(name) else '-c "import %s"' % name.partition(":")[0]
        sentence = "crashed in its imports%s: %s" % (place, describe(error))
        to_do = "Fix that first: `%s %s` has to work" % (python, start)
    return "%s %s. %s." % (name, sentence, to_do)
