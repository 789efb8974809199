"""The examination."""

from __future__ import division, print_function

import json
import os
import sys
import time
import warnings

from .basis import BLOCKED, CANNOT_TELL, ENOUGH_S, OWN_TLS, PATIENCE_S, Trouble, clock, defaults
from .blocking import PATCHES, check_loop, find_loop, is_trapped, own_code_uses, try_cures
from .clients import WAYS
from .importing import TooLong, end_after, import_program, trouble_of
from .judging import judge
from .left_behind import is_installed, loaded, openssl, provides
from .loads import Watch, certificates_of_a_load, check_loads, cost_of_a_load
from .own_server import Server, dismiss, needed, start_server
from .probes import KNOWN
from .processes import begin, end_group
from .report import text_of
from .which_http import check_http
from .wording import say


def examine_apart(spec):
    """Have the program examined in a process of its own: what was found. Raises Trouble.

    What is asked is the first line of a file beside the server's, what was found is the last.
    """
    import shutil

    server, address = start_server()
    program, path = None, os.path.join(os.path.dirname(address["ca"]), "said")
    patience = spec["patience"] or PATIENCE_S
    try:
        needed(address)
        spec = dict(spec, patience=patience)
        with open(path, "w") as file:
            file.write(json.dumps(dict(spec, server=address, phase="start")) + "\n")
        program = begin("--examine", path)
        server.stdin.write(("%d\n" % program.pid).encode())  # should this process be killed
        server.stdin.flush()
        limit = clock() + patience + 1
        while clock() < limit and program.poll() is None and server.poll() is None:
            time.sleep(0.02)
        with open(path) as file:
            last = json.loads(file.readlines()[-1])
        if server.poll() is not None:
            raise Trouble(SERVER_GONE % server.returncode)
    except EnvironmentError as error:
        # Without the server its pipe is closed, and its folder may be gone.
        if error.errno != 32 and server.poll() is None:
            raise
        raise Trouble(SERVER_GONE % server.wait())
    finally:
        if program is not None:
            end_group(program.pid)
            if program.poll() is None:
                program.kill()
            program.wait()
        dismiss(server)
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)  # also of a server that was killed
    if "trouble" in last:
        raise Trouble(last["trouble"])
    if "phase" in last:
        name = spec["program"] or "the examination"
        raise Trouble(ended(name, last["phase"], program.returncode))
    return last


SERVER_GONE = (
    "the doctor's own server ended before the examination did (exit status %d), so there is "
    "nothing to tell: run it again"
)


def ended(name, phase, status):
    """Return why a process that gave no answer ended, as far as its status tells."""
    moment = {"start": "before its imports", "imports": "in its imports"}
    moment = moment.get(phase, "while it was examined")
    if status in (-9, -14):
        return "%s gave no answer %s in time, and was ended" % (name, moment)
    if status < 0:
        return (
            "%s was killed by signal %d %s. A package with compiled code is likely not made for "
            "the others here (gevent and greenlet have to fit): reinstall it. `python -X "
            "faulthandler` shows which."
        ) % (name, -status, moment)
    text = "%s ended itself %s (exit status %d, without an exception)."
    return (text + " Name a module that only imports.") % (name, moment, status)


def look(address, spec, watch=None):
    """Examine this process: what was found, as a dictionary that `judge` reads.

    watch: what saw the program's imports, in a process that is ours: cures may be tried there,
    libraries imported that the program has not, and loads counted, by sessions as the library
    makes them. The loopback server is none of a proxy's business, so there are no proxies for them,
    and no warnings. In a process that is not ours nothing of that is done, and nothing changed.
    """
    started, imported, clients = clock(), imported_ways(), known_clients()
    server, deadline = Server(address), clock() + ENOUGH_S
    if watch:
        os.environ.update(dict.fromkeys(("no_proxy", "NO_PROXY"), "*"))
    with warnings.catch_warnings() if watch else nothing():
        if watch:
            warnings.simplefilter("ignore")
        results, blocked = try_loop(server, spec, watch, imported, False)
        results["loads"] = check_loads(server, imported, watch, deadline) if watch else []
        results["load_ms"] = cost_of_a_load(results, watch) if watch else None
        results["certificates"] = certificates_of_a_load()
        if watch and blocked:
            results["cures"] = try_cures(loaded(results["loop"]["name"]), blocked, server)
        if watch and results["loop"]:
            results["trap"] = is_trapped()
    if watch:
        for name in ("no_proxy", "NO_PROXY"):
            os.environ.pop(name, None)
        os.environ.update(watch.environ)
    results["http"] = check_http(spec["url"], imported)
    return dict(results, known=clients, examined_s=round(clock() - started, 2))


class nothing(object):
    """A `with` block that does nothing."""

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def imported_ways():
    return set(client.module for client in WAYS if loaded(client.module))


def known_clients():
    """Return the names of the clients that the doctor knows and that are imported."""
    names = ("http.client", "httplib", "eventlet.green.http.client")
    clients = set(KNOWN[name] for name in KNOWN if loaded(name) and name not in ("http", "urllib"))
    clients |= set("http.client" for name in names if loaded(name))
    return sorted(
        clients | set("urlopen" for name in ("urllib.request", "urllib2") if loaded(name))
    )


def try_loop(server, spec, watch, imported, over):
    """Return (the results on the event loop, the client that is blocked or None). over: the program
    has done its work, and nothing but cures is of interest.
    """
    loop, patched = find_loop()
    results = dict(
        program=spec["program"], python=sys.version.split()[0], openssl=openssl(),
        provides=provides(), injections=watch.injections if watch else [],
        loads_at_import=watch and len(watch.loads),
        loops_installed=[name for name in PATCHES if is_installed(name)],
        loop=None, cures=[], trap=False,
        own_tls=sorted(set(OWN_TLS[name] for name in OWN_TLS if loaded(name))),
    )  # fmt: skip
    by_loop = []
    if loop:
        used = own_code_uses(loop.__name__, spec["program"])
        results["loop"] = {"name": loop.__name__, "patched": patched, "used": used}
        by_loop = check_loop(loop, patched, server, imported, watch)
    results["clients"] = [row for _, row in by_loop]
    blocked = [client for client, row in by_loop if row["verdict"] == BLOCKED]
    if over and blocked:
        results["cures"] = try_cures(loop, blocked[0], server)
    return results, blocked[0] if blocked else None


def look_after(spec):
    """Return what the program has left behind at its end, in its own process, for `judge`."""
    if find_loop()[0] and spec["server"]["https"] is None:
        raise Trouble("the doctor cannot listen on 127.0.0.1, which its trials need")
    results = try_loop(Server(spec["server"]), spec, None, imported_ways(), True)[0]
    for name in ("program", "injections"):  # which the run itself knows better
        del results[name]
    return dict(results, known=known_clients(), certificates=certificates_of_a_load())


def examine(path):
    """Run the process of the examined program: read the parameters, and write lines of JSON after
    them, the last of them the results; then end, whatever the program has left running.
    """
    with open(path) as file:
        spec = json.loads(file.readline())
    out, pid = open(path, "a"), os.getpid()
    os.dup2(2, 1)  # what the program prints is no part of the report
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if hasattr(os, "setsid"):
        os.setsid()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    watch, started, phase = Watch(), clock(), "imports"

    def answer(**fields):
        if os.getpid() == pid:  # a child that the program forked has nothing to say
            out.write(json.dumps(fields) + "\n")
            out.flush()

    try:
        answer(phase=phase)
        end_after(spec["patience"], TooLong)
        if spec["program"]:
            with watch:
                import_program(spec["program"], spec["arguments"])
        imported_s, phase = round(clock() - started, 2), "examination"
        # Whatever happens to the process that started this.
        end_after(max(1, int(spec["patience"] - (clock() - started))))
        answer(phase=phase)
        if os.getpid() == pid:
            answer(imported_s=imported_s, **look(spec["server"], spec, watch))
    except BaseException as error:
        answer(trouble=trouble_of(error, spec, phase))
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)  # no thread is waited for, and nothing is called that waits for the end


def inside(stream=None, **options):
    """Examine the process that calls this, as it is now, and print the report; returns it.

    For programs that patch when they start and not when they are imported: in gunicorn, call it in
    post_worker_init of the configuration file. Nothing is changed, and no cure is tried out.
    options: url. Blocks for some seconds. Where it cannot look it says why, in a report that has
    "trouble" and the exit status 2.
    """
    spec = dict(defaults(), program="this process", **options)
    try:
        server, address = start_server()
        try:
            report = judge(look(needed(address), spec), spec)
        finally:
            dismiss(server)
    except Trouble as trouble:
        text = trouble.args[0]
        verdicts = dict.fromkeys(("event loop", "certificate loads"), CANNOT_TELL)
        say("doctor: %s." % text, stream)
        return {"trouble": text, "verdicts": verdicts, "exit_status": 2}
    say(text_of(report, False), stream)
    return report
