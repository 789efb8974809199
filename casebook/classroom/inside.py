"""Run what a student handed in: a script inside a stack, one JSON object in (standard input).

In: {"file", "tell" (a descriptor), "memory" (bytes, or null), "probes", "clients", "forbidden"
(folders), "bundle" (what verify=True trusts, or null), "names" (of constants to bring),
"countable", "before" (names of steps), "program" (a file or null), "do"}.

Told, a line of JSON each: {"loads": 1} at each load of certificates, {"reads": 1} each time Python
itself opens the bundle, {"took": [book, body]} when a loop takes one, {"stopped": why},
{"names": {...}}, and for each of `do` {"answer": ...}.

It imports nothing that gevent would have to patch: the order of imports may be what is asked about.
"""

import contextlib
import json
import os
import resource
import sys
import time

#: What a submission may not do, as Python announces it before it happens.
STARTS = {
    *("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"),
    *("subprocess.Popen", "os.kill", "os.killpg", "signal.pthread_kill"),
}
#: Which of an event's arguments are paths, and which the folders that they are relative to.
CHANGES = {
    "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.truncate": ((0, None),),
    "os.rename": ((0, 2), (1, 3)), "os.link": ((1, 3),), "os.symlink": ((1, 2),),
    "os.chmod": ((0, 2),), "os.mkdir": ((0, 2),), "shutil.rmtree": ((0, 1),),
}  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Teller:
    """Tells the grader, and takes nothing back."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def __call__(self, **message):
        """Send one message."""
        data = json.dumps(message, default=repr).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


def watch(  # noqa: C901 (closures: a submission could replace functions of the module)
    send, forbidden, folder, bundle, end=os._exit, real=os.path.realpath
):
    """End a submission, from now on, that does what it may not, and tell the grader why.

    Cannot be taken back: Python keeps its audit hooks.
    """
    own_path = real(__file__)

    def stop(reason):
        send(stopped=reason)
        end(3)

    def relative_to(arguments, base, path):
        descriptor = arguments[base] if base is not None and base < len(arguments) else -1
        if not isinstance(descriptor, int) or descriptor < 0:
            return path
        with contextlib.suppress(OSError):
            return os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), os.fsdecode(path))
        return None  # a folder that cannot be told is not its own

    def inside(path, folders):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        path = real(os.fsdecode(path))
        return any(path == parent or path.startswith(parent + os.sep) for parent in folders)

    def is_of_another(path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        parts = real(os.fsdecode(path)).split("/")
        if parts[1:2] != ["proc"] or not parts[2:] or not parts[2].isdigit():
            return False
        return parts[2] != str(os.getpid())

    def hook(event, arguments):
        if event in STARTS:
            stop(f"it starts or signals another process ({event}), and no lab needs one")
        elif event == "open":
            path, mode, flags = arguments
            # A traceback shows lines of this file, too.
            if inside(path, forbidden) and not inside(path, [own_path]):
                stop("it reads the checks")
            if is_of_another(path):
                stop("it looks into another process")
            if bundle and inside(path, [bundle]):
                send(reads=1)
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & _WRITES
            if writes and isinstance(path, str | bytes) and not inside(path, [folder, "/dev"]):
                stop("it writes outside of its own folder")
        for path, base in CHANGES.get(event, ()):
            if not inside(relative_to(arguments, base, arguments[path]), [folder]):
                stop(f"it changes files outside of its own folder ({event})")

    sys.addaudithook(hook)
    # What multiprocessing starts processes with, and Python announces nothing.
    import _posixsubprocess

    _posixsubprocess.fork_exec = lambda *_: hook("subprocess.Popen", ())


def load(path):
    """Run a student's file, as an import does. Returns its names."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    module = {"__name__": "answer", "__file__": path}
    exec(compile(source, path, "exec"), module)
    return module


def describe(error, path):
    """Put an exception into words, with the line of the student's file that it came through."""
    lines, traceback = [], error.__traceback__
    while traceback:
        if traceback.tb_frame.f_code.co_filename == path:
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename == path:
        lines = [error.lineno]
    place = f" (line {lines[-1]} of the file)" if lines else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def reply_to(function, *args, **options):
    """Make a request. Returns what the grader reads: {"status", "body"} or {"error", "kind"}."""
    try:
        reply = function(*args, **options)
        return of_reply(reply)
    except Exception as error:
        return of_reply(error)


def of_reply(reply):
    """Return what the grader reads of a reply or an error; as `reply_to`."""
    if reply is None or isinstance(reply, BaseException):
        import answering

        deepest = type(answering.innermost(reply) if reply else None).__name__
        return {"error": f"{deepest}: {str(reply)[:300]}", "kind": deepest}
    import answering

    try:
        status, body = answering.status_and_body(reply)
        return {"status": status, "body": bytes(body).decode("utf-8", "replace")[:5000]}
    except Exception as error:
        return {"error": f"no response: {type(reply).__name__} ({error})", "kind": "none"}


def at_once(function, requests):
    """Make each request in a thread of its own, all let go together."""
    import threading

    gate, answers = threading.Barrier(len(requests)), [None] * len(requests)

    def fetch(number, request):
        gate.wait(20)
        answers[number] = reply_to(function, request["url"], **request["options"])

    threads = [threading.Thread(target=fetch, args=pair) for pair in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def one_by_one(function, requests):
    """Make each request when the one before it has its reply."""
    return [reply_to(function, request["url"], **request["options"]) for request in requests]


def stock_get():
    """Return requests.get."""
    import requests

    return requests.get


def stock_session_get():
    """Return the `get` of one session of requests."""
    import requests

    return requests.Session().get


def profiled(function, *args):
    """Profile the call, and measure what it used: {"value": rows, "answers", "cpu_s"}."""
    import profiling

    profile = profiling.Profile()
    start = resource.getrusage(resource.RUSAGE_SELF)
    replies = profile.observe(function, *args)
    end = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    return {"value": profile.rows(), "answers": list(map(of_reply, replies)), "cpu_s": cpu_s}


def from_shelf(function, job, send):
    """Have a loop fetch books over HTTP/2, and send each as it is taken."""
    import ssl

    sys.path.append(job["scripts"])
    import shelf
    import two_loops
    import with_h2

    books = {shelf.path(book): book for book in job["books"]}
    context = ssl.create_default_context(cafile=job["ca_file"])
    connection = two_loops.Connection(job["url"], context)
    connection.greet()

    def receive(path, reply):
        status, body, _ = with_h2.response_parts(reply)
        send(took=[books[path], body.decode() if status == 200 else ""])

    function(connection, list(books), receive)
    return {"value": None}


def plain_loop():
    """Return the measured client that fetches in a loop."""
    import loop

    return loop.fetch


def grequests_map():
    """Return the measured client that fetches with grequests."""
    import grequests_map

    return grequests_map.fetch


def whose_context():
    """Return a function that names the module of urllib3's SSLContext.

    It also shows that pyOpenSSL can be imported.
    """

    def read():
        import OpenSSL
        from urllib3.util import ssl_

        return [ssl_.SSLContext.__module__, OpenSSL.__version__]

    return read


#: Functions of the grader's own that `do` may name, beside those of the submission.
STOCK = {
    "requests.get": stock_get,
    "one session": stock_session_get,
    "grequests.map": grequests_map,
    "a plain loop": plain_loop,
    "whose context": whose_context,
}


def do(job, stock, names, path, send):
    """Do one job: {"answers": [...]} of requests, {"value": ...} of a call, or {"error": words}."""
    try:
        if job["function"] in stock:
            function = stock[job["function"]]
        elif callable(names.get(job["function"])):
            function = names[job["function"]]
        else:
            return {"error": f"there is no function {job['function']} in the file"}
        start = time.monotonic()
        if job["how"] == "call":
            answer = {"value": function(*job["args"])}
        elif job["how"] == "shelf":
            answer = from_shelf(function, job, send)
        elif job["how"] == "profile":
            answer = profiled(function, [request["url"] for request in job["asks"]], job["verify"])
        elif job["how"] == "map":  # all URLs are handed over at once, as to a measured client
            replies = list(function([request["url"] for request in job["asks"]], job["verify"]))
            answer = {"answers": [of_reply(reply) for reply in replies]}
        else:
            fetch = at_once if job["how"] == "at once" else one_by_one
            answer = {"answers": fetch(function, job["asks"])}
        return answer | {"wall_s": round(time.monotonic() - start, 4)}
    except BaseException as error:
        return {"error": describe(error, path)}


def count_loads(send, is_countable):
    """Tell the grader of each load of certificates from now on, if loads can be counted."""
    if not is_countable:
        return
    import ssl

    import counting

    class Told(dict):
        """Counters that tell of each load, and are what the probes count with otherwise."""

        def __setitem__(self, name, value):
            if name in ("load_verify_locations", "default_loads") and value > self.get(name, 0):
                send(loads=1)
            dict.__setitem__(self, name, value)

    counters = Told(dict.fromkeys(counting.NAMES, 0))
    stdlib = [c for c in ssl.SSLContext.__mro__ if c.__module__ == "ssl"][-1]
    counting.count_loads(stdlib, counters)


def main():
    """Read the parameters, run the submission and do the jobs."""
    parameters = json.load(sys.stdin)
    send = Teller(parameters["tell"])
    if parameters["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (parameters["memory"], parameters["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path[:] = [parameters["clients"], parameters["probes"], *sys.path[1:]]
    sys.dont_write_bytecode = True
    import answering  # noqa: F401
    import counting  # noqa: F401

    if parameters["bundle"]:
        import steps

        steps.trust_bundle(parameters["bundle"])
    count_loads(send, parameters["countable"])
    folder = os.path.realpath(os.getcwd())
    path = parameters["file"]
    program = {}
    if parameters["before"]:
        import steps

        steps.take_all(parameters["before"], is_of_gevent=True)
    if path:
        sys.path.insert(0, folder)
        watch(send, parameters["forbidden"], folder, parameters["bundle"])
    try:
        if parameters["program"]:
            sys.path.insert(0, os.path.dirname(parameters["program"]))
            program = load(parameters["program"])
        functions = {job["function"] for job in parameters["do"]}
        # Before the submission, which could put functions of its own in their place.
        stock = {name: STOCK[name]() for name in functions & STOCK.keys()}
        names = program | (load(path) if path else {})
    except BaseException as error:
        send(names={}, error=describe(error, path or parameters["program"]))
        os._exit(0)
    try:
        send(names={name: names.get(name) for name in parameters["names"]})
    except (ValueError, RecursionError) as error:  # it contains itself, or goes too deep
        send(names={}, error=describe(error, path))
        os._exit(0)
    for job in parameters["do"]:
        answer = do(job, stock, names, path, send)
        try:
            send(answer=answer)
        except (ValueError, RecursionError) as error:
            send(answer={"error": describe(error, path)})
    sys.stdout.flush()
    os._exit(0)  # threads and greenlets that are left belong to nobody


if __name__ == "__main__":
    main()
