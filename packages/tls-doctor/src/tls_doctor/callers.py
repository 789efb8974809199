"""Who made a call, by the frames of its thread."""

from __future__ import division, print_function

import re
import sys
import weakref

from .basis import OWN_FILE
from .clients import PACKAGES, client_named
from .decorators import is_decorator
from .left_behind import is_library, is_package
from .state import running_loop
from .wording import short

#: What may come between a client and what it calls.
BETWEEN = (
    "ssl socket selectors contextlib functools threading concurrent asyncio anyio sniffio gevent "
    "eventlet greenlet truststore OpenSSL shared_context requests_shared_context weakref "
    "_weakrefset".split()
)
#: It is there in pip, too, and pip-system-certs has every program use that.
VENDORED = "._vendor.truststore"


class Call(object):
    """What the frames of a call tell, from the innermost on."""

    def __init__(self):
        self.client = self.first = self.at = self.kind = None
        self.inner, self.awaits, self.chain = True, False, []
        self.giver = {}  # who gave it to a thread of an executor

    def see_client(self, package, frame):
        """Note the client that a frame belongs to: the outermost of those that call each other."""
        if not self.inner:
            return
        if package in PACKAGES:
            self.client = PACKAGES[package]
            client, name = client_named(self.client), frame.f_code.co_name
            self.awaits = self.awaits or client.awaits is True
            if name == "__init__" and client.awaits and not self.awaits:
                self.awaits = hasattr(type(frame.f_locals.get("self")), client.awaits)
            if name in ("request", "send", "urlopen"):
                self.kind = kind_made_of(client, frame) or self.kind
        elif self.client and package not in BETWEEN:
            self.inner = False

    def see_library(self, package, is_installed, frame):
        """Note the library that a frame belongs to."""
        if package in BETWEEN:
            return
        self.first = self.first or package
        if is_installed:
            if not self.chain or self.chain[-1][0] != package:
                self.chain.append((package, []))
            self.chain[-1][1].append(frame)

    def as_dict(self):
        """Return the call as events have it."""
        makers = [
            (package, frames)
            for package, frames in self.chain
            if not is_decorator(package, [frame.f_code for frame in frames])
        ] or self.chain
        through, frames = makers[-1] if makers else (None, [])
        client, call = self.client or self.first, function_called(through, frames)
        if call is None and through == self.giver.get("through"):
            call = self.giver.get("call")
        origin = {"client": client, "through": through, "at": self.at, "awaits": self.awaits}
        origin.update({"kind": self.kind} if self.kind else {})
        origin.update({"call": call} if call else {})
        return origin


class CallStack(object):
    """Tells who made a call, by the frames above it, and by the tasks of asyncio."""

    def __init__(self):
        self.files = {}  # (path, package): (whether it is a library's, whether it was installed)
        self.tasks = weakref.WeakKeyDictionary()  # a task of asyncio's: the line that made it
        self.works = weakref.WeakKeyDictionary()  # what an executor's thread does: who gave it

    def callers(self, frame):
        """Return who made a call: {"client", "through", "at", "awaits"}, and "kind".

        The client that made it, the library that the program's own code called, and the
        line of the program's own code; None for what nobody can tell; whether it is a client that
        awaits; and, if there is one, the class of another that it is an object of, and
        "call", the function of the library that was called, as `function_called` tells.
        """
        call = Call()
        try:
            self.look_up(call, frame)
        except Exception:  # whatever stands in the frames is no reason for the program to fail
            pass
        return call.as_dict()

    def look_up(self, call, frame):
        """Note what the frames of a call tell, from the innermost one on."""
        depth = 0
        while frame is not None and depth < 200:
            depth += 1
            code, package = frame.f_code, package_of(frame)
            path = code.co_filename
            if path != OWN_FILE and not path.startswith("<frozen"):
                call.see_client(package, frame)
                is_of_library, is_installed = self.kind_of_file(path, package)
                if not is_of_library:
                    call.at = "%s:%d" % (short(path), frame.f_lineno)
                    break
                if package == "asyncio" and code.co_name == "_run" and running_loop():
                    call.at = self.line_of_task()  # what is below only runs the loop
                    break
                if is_work(frame, package):
                    call.giver = self.giver_of_work(frame)
                    call.at = call.giver.get("at")
                    break
                call.see_library(package, is_installed, frame)
            frame = frame.f_back

    def kind_of_file(self, path, package):
        """Return (whether a file is a library's, whether it was installed)."""
        key = path, package
        if key not in self.files:
            is_text = path.startswith("<") and package != "__main__"  # which -c and stdin run
            library = is_text or is_library(path) or package in BETWEEN
            self.files[key] = library, is_package(path)
        return self.files[key]

    def line_of(self, frame):
        """Return the line of the program's own code that called, or of the task that did."""
        while frame is not None:
            path, code = frame.f_code.co_filename, frame.f_code
            if not self.kind_of_file(path, package_of(frame))[0] and path != OWN_FILE:
                return "%s:%d" % (short(path), frame.f_lineno)
            if code.co_name == "_run" and path.replace("\\", "/").endswith("/asyncio/events.py"):
                return self.line_of_task()
            if is_work(frame, package_of(frame)):
                return self.giver_of_work(frame).get("at")
            frame = frame.f_back
        return None

    def giver_of_work(self, frame):
        """Return who gave an executor what it does in a frame, as `callers`; {} if nobody tells."""
        try:
            return self.works.get(frame.f_locals.get("self")) or {}
        except TypeError:  # it has let go of it, as an error came
            return {}

    def line_of_task(self):
        """Return the line that made asyncio's task that runs in this thread; None in a callback."""
        asyncio = sys.modules["asyncio"]
        try:
            task = getattr(asyncio, "current_task", None) or asyncio.Task.current_task  # before 3.7
            task = task()
        except RuntimeError:  # no loop runs here
            task = None
        return None if task is None else self.tasks.get(task)


def function_called(library, frames):
    """Return what is known of a library's function that a program called; None for a method.

    {"name", "parameters" ("**": any more), "keeps" (the class of the library's whose object the
    function makes and lets go of; None if nobody tells)}; of a class that loads when one is made
    {"name", "parameters", "makes": True}. frames: of the library, from the innermost on.
    """
    named = [frame for frame in frames if frame.f_code.co_flags & 12 != 12]  # no wrapper
    if not named:
        return None
    code = named[-1].f_code
    number = code.co_argcount + getattr(code, "co_kwonlyargcount", 0)
    parameters, name = list(code.co_varnames[:number]), code.co_name
    parameters += ["**"] if code.co_flags & 8 else []
    is_method = parameters[:1] in (["self"], ["cls"]) or "self" in code.co_freevars
    made = named[-1].f_locals.get("self") if name == "__init__" else None
    if made is not None and type(made).__init__.__code__ is code:
        name = public_name(type(made).__module__, type(made).__name__, type(made))
        return {"name": name, "parameters": parameters, "makes": True} if name else None
    if is_method or not re.match("[a-z]", name):
        return None
    kinds = [type(frame.f_locals["self"]) for frame in frames if "self" in frame.f_locals]
    kinds = [kind for kind in kinds if kind.__module__.partition(".")[0] == library]
    keeps = [public_name(kind.__module__, kind.__name__, kind) for kind in reversed(kinds)]
    module = str(named[-1].f_globals.get("__name__") or "")
    name = public_name(module, name, code) or "%s.%s" % (library, name)
    keeps = next((kept for kept in keeps if kept), None)
    return {"name": name, "parameters": parameters, "keeps": keeps}


def public_name(module, name, thing):
    """Return how a program calls a class, or a function of which the code is given.

    None if it has no name that is public.
    """
    words = module.split(".")
    for number in range(1, len(words) + 1):
        place = ".".join(words[:number])
        member = getattr(sys.modules.get(place), name, None)
        if member is not None and thing in (member, getattr(member, "__code__", None)):
            return None if name.startswith("_") else "%s.%s" % (place, name)
    return None


def kind_made_of(client, frame):
    """Return the name of a class made of a client's, with its module, whose method a frame runs.

    None if it is the client's own.
    """
    kind, makers = type(frame.f_locals.get("self")), client.makers.split()
    module = str(getattr(kind, "__module__", None))
    is_made = any(base.__name__ in makers for base in kind.__mro__[1:])
    if not is_made or PACKAGES.get(module.partition(".")[0]) == client.name:
        return None
    return kind.__name__ if module == "__main__" else "%s.%s" % (module, kind.__name__)


def is_work(frame, package):
    """Return whether a thread of an executor does in a frame what it was given."""
    path = frame.f_code.co_filename.replace("\\", "/")
    is_run = package == "concurrent" and frame.f_code.co_name == "run"
    return is_run and path.endswith("/futures/thread.py")


def package_of(frame):
    """Return the package that a frame's code belongs to."""
    name = str(frame.f_globals.get("__name__") or "")
    return "truststore" if VENDORED in name else name.partition(".")[0]
