"""The import of modules that are probed."""

from __future__ import division, print_function

import os
import sys

from .basis import PY2
from .state import named, thread_ms

#: Stands in for a function of Python's that compiles modules. It goes by the name of that one's
#: file, so that Python leaves it out of the traceback of a module that cannot be compiled.
COMPILING = """
def timed(loader, *args, **kwargs):
    started = thread_ms()
    try:
        return function(loader, *args, **kwargs)
    finally:
        note(thread_ms() - started)
"""


class ImportHook(object):
    """A finder in sys.meta_path: has modules probed once they are imported.

    wants: returns whether a module of a name is to be probed. probe: does it, given its name and
    itself. compiled: the milliseconds that Python spent compiling modules, by process.
    """

    def __init__(self, wants, probe):
        self.wants, self.probe, self.compiled, self.importing = wants, probe, {}, set()

    def install(self, replace):
        """Watch imports from now on. replace: puts a function into a class, as `Probes.replace`."""
        loaders = sys.modules.get("_frozen_importlib_external")  # Python 2.7 has none
        if loaders is not None:
            for kind, name in (
                (loaders.SourceLoader, "source_to_code"), (loaders.SourceFileLoader, "set_data")
            ):  # fmt: skip
                replace(kind, name, self.timed(getattr(kind, name)))
        sys.meta_path.insert(0, self)

    def remove(self):
        """Watch imports no more."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def timed(self, function):
        """Return a function that compiles modules, or keeps what came out, and is timed.

        Python does that once: with it, a program's first run would be another than the next ones.
        """

        def note(ms):
            pid = os.getpid()
            self.compiled[pid] = self.compiled.get(pid, 0) + ms

        namespace = {"function": function, "note": note, "thread_ms": thread_ms}
        exec(compile(COMPILING, "<frozen importlib._bootstrap_external>", "exec"), namespace)
        return named(namespace["timed"], function)

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a module that is to be probed once it is imported; of others, none."""
        if not self.wants(name):
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            self.watch(spec.loader, name)
            return spec
        return None

    def watch(self, loader, name):
        """Have a module probed when its loader has executed it."""
        execute = getattr(loader, "exec_module", None)

        def exec_module(module):
            execute(module)
            if module.__name__ == name:
                self.probe(name, module)

        if execute is not None:
            try:
                loader.exec_module = exec_module
            except AttributeError:
                pass

    if PY2:

        def find_module(self, name, _path=None):
            """Return what loads a module that is to be probed (Python 2.7)."""
            return self if self.wants(name) and name not in self.importing else None

        def load_module(self, name):
            """Import a module, and probe it (Python 2.7)."""
            self.importing.add(name)
            try:
                __import__(name)
            finally:
                self.importing.discard(name)
            self.probe(name, sys.modules[name])
            return sys.modules[name]
