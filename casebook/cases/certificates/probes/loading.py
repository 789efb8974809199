"""Load certificates inside a stack and say what it took: one JSON object in, one out.

In: {"library": "ssl" or "pyopenssl", "nowhere": a path that does not exist, "tasks": [...]}. A
task: {"way": "file", "default", "none" or "compute", "bundle": its path or null, "holds": how
many certificates it has, "loads", "threads", "processes", "watched"}; the
loads are shared evenly between the threads or processes. If a context lacks certificates, there is
no answer.
To "compute" is to load nothing, and to do a fixed piece of work in Python instead of each load.

Out: {"python", "openssl", "results": [...]}, a result for each task: as counting.Tally has it (of
what is counted, this process only), certificates (in the last context made), beats and stall_s (of
a watched task, else null), locks (where rwlocks.c was preloaded, else null).
"""

import ctypes
import os
import resource
import ssl
import sys
import threading
import time

import answering
import counting

clock = counting.clock

#: Seconds from one beat of the watching thread to the next, when it gets the interpreter.
BEAT_S = 0.001

#: How much is computed in the place of one load: about as long as a load with OpenSSL 3.0.
PIECE = 200000


class Stdlib(object):
    """The standard library's contexts."""

    version = ssl.OPENSSL_VERSION

    def context(self):
        """Make a context."""
        return ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23))

    def certificates(self, context):
        """Count the certificates of a context."""
        return context.cert_store_stats()["x509"]


class PyOpenSSL(object):
    """pyOpenSSL's contexts, which bring their own OpenSSL inside the cryptography package."""

    def __init__(self):
        from OpenSSL import SSL, _util

        self.version = SSL.SSLeay_version(SSL.SSLEAY_VERSION).decode()
        self._ssl = SSL
        self._lib = _util.lib

    def context(self):
        """Make a context."""
        return self._ssl.Context(self._ssl.SSLv23_METHOD)

    def certificates(self, context):
        """Count the certificates of a context."""
        store = context.get_cert_store()._store
        return self._lib.sk_X509_OBJECT_num(self._lib.X509_STORE_get0_objects(store))


class Watch(object):
    """A thread that notes the time every millisecond. It needs the GIL for it, for a moment."""

    def __init__(self):
        self._times = []
        self._over = False
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _beat(self):
        while not self._over:
            self._times.append(clock())
            time.sleep(BEAT_S)

    def end(self, start, stop):
        """Return (beats, longest time without one) between two moments."""
        self._over = True
        self._thread.join()
        beats = [moment for moment in self._times if start < moment < stop]
        moments = [start] + beats + [stop]
        return len(beats), max(
            following - moment for moment, following in zip(moments, moments[1:])
        )


def locks():
    """Return how many read-write locks were taken so far; None where nobody counts them."""
    try:
        count = ctypes.CDLL(None).casebook_locks
    except AttributeError:
        return None
    count.restype = ctypes.c_long
    return count()


def loader(library, task, nowhere):
    """Return a function that makes a context, loads what the task says, and returns it."""
    if task["way"] == "compute":
        return compute
    bundle = task["bundle"]
    os.environ["SSL_CERT_FILE"] = bundle or nowhere
    os.environ["SSL_CERT_DIR"] = nowhere

    def load():
        context = library.context()
        if task["way"] == "file":
            context.load_verify_locations(bundle)
        elif task["way"] == "default":
            context.set_default_verify_paths()
        return context

    return load


def compute():
    """Do a piece of work that shares nothing with anybody, and make no context."""
    total = 0
    for number in range(PIECE):
        total += number % 7


def in_threads(load, task, newest):
    """Take the loads in threads that start together, and return (start, stop)."""
    gate = threading.Event()
    failed = []

    def work():
        gate.wait()
        try:
            for _ in range(task["loads"] // task["threads"]):
                newest[:] = [load()]
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(task["threads"])]
    for thread in threads:
        thread.start()
    start = clock()
    gate.set()
    for thread in threads:
        thread.join()
    stop = clock()
    if failed:
        raise failed[0]
    return start, stop


def in_this_thread(load, task, newest):
    """Take the loads one after the other, here, and return (start, stop)."""
    start = clock()
    for _ in range(task["loads"]):
        newest[:] = [load()]
    return start, clock()


def in_processes(load, task):
    """Take the loads in processes of their own, and return (start, stop)."""
    start = clock()
    children = []
    for _ in range(task["processes"]):
        child = os.fork()
        if not child:
            try:
                for _ in range(task["loads"] // task["processes"]):
                    load()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    if any([os.waitpid(child, 0)[1] for child in children]):
        raise RuntimeError("a process that was to load ended with an error")
    return start, clock()


def measure(library, task, counters, nowhere):
    """Take the loads of a task, and return what they took."""
    load = loader(library, task, nowhere)
    newest = [load()]  # the first load of a process also reads files for the first time
    forked = task["processes"] > 1
    watch, locked = Watch() if task["watched"] else None, locks()
    process = resource.RUSAGE_CHILDREN if forked else resource.RUSAGE_SELF
    tally = counting.Tally(counters, process)
    if forked:
        start, stop = in_processes(load, task)
    else:
        strategy = in_threads if task["threads"] > 1 else in_this_thread
        start, stop = strategy(load, task, newest)
    result = tally.lap()
    result["wall_s"] = stop - start
    result["locks"] = None if locked is None else locks() - locked
    result["beats"], result["stall_s"] = watch.end(start, stop) if watch else (None, None)
    result["certificates"] = library.certificates(newest[0]) if newest[0] else 0
    if result["certificates"] != task["holds"]:
        counts = result["certificates"], task["holds"]
        raise RuntimeError("%d certificates were loaded, not %d" % counts)
    return result


def run(spec):
    """Measure all tasks with one library."""
    library = PyOpenSSL() if spec["library"] == "pyopenssl" else Stdlib()
    counters = counting.install()
    results = [measure(library, task, counters, spec["nowhere"]) for task in spec["tasks"]]
    python = sys.version.split()[0]
    return {"python": python, "openssl": library.version, "results": results}


if __name__ == "__main__":
    answering.answer(run)
