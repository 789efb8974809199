"""The examination."""

from __future__ import division, print_function

import json
import os
import sys
import time
import warnings

from .basis import (
    BLOCKED,
    CANNOT_TELL,
    ENOUGH_S,
    PATIENCE_S,
    DoctorError,
    Record,
    clock,
    defaults,
    nothing,
)
from .blocking import (
    LOOP_FRAMES,
    LOOP_SERVERS,
    PATCHES,
    check_loop,
    find_loop,
    is_trapped,
    own_code_uses,
    running_loops,
    try_cures,
)
from .clients import OWN_TLS, PACKAGES, clients_with_sessions
from .importing import TooLongError, end_after, import_program, trouble_of
from .judging import judge
from .left_behind import is_installed, loaded, openssl, provides
from .loads import Watch, certificates_of_a_load, check_loads, cost_of_a_load
from .own_server import (
    ENDS_GROUP,
    Server,
    end_with_server,
    require_listening,
    start_server,
    stop_server,
)
from .processes import end_group, spawn_self
from .report import text_of
from .which_http import check_http
from .wording import print_line


class Examination(Record):
    """What was found out about a program. `judge` makes the report of it, a dictionary."""

    FIELDS = (
        ("program", nothing, "the program, with its arguments; None: none was named"),
        ("python", nothing, "its version"),
        ("openssl", nothing, 'its versions: {"ssl", "pyOpenSSL", "loads" (by which it loads)}'),
        ("provides", list, "who provides what, as `provides` tells"),
        ("injections", list, "where pyOpenSSL was injected, as `caller` tells"),
        ("loads_at_import", nothing, "loads of certificates in its imports; None: nobody counted"),
        ("loops_installed", list, "the loops that patch and that are installed"),
        ("loop", nothing, '{"name", "patched", "used" (by its own code)}; None: it has none'),
        ("untried", nothing, "why the loop could not be tried"),
        ("clients", list, "rows of `check_client`: whether a read of theirs blocks the loop"),
        ("cures", list, "rows of `try_cures`"),
        ("trap", bool, "google-auth would inject pyOpenSSL later"),
        ("own_tls", list, "what was imported and brings TLS of its own"),
        ("unwatched", list, "loops of LOOP_FRAMES that nobody watched, as `unwatched_loops` tells"),
        ("known", nothing, "the clients that the doctor knows, of those that are imported"),
        ("loads", list, "rows of `count_loads`"),
        ("load_ms", nothing, "[least, most] milliseconds of one load"),
        ("certificates", nothing, "how many are loaded at once; None: nobody can tell"),
        ("http", dict, "as `check_http` tells"),
        ("imported_s", nothing, "how long its imports took"),
        ("examined_s", nothing, "how long the examination took"),
        ("counts", nothing, "of a run: a dictionary as `Counts`"),
        ("ended", nothing, 'of a run: {"status", "why", "raised", "signal"}'),
        ("tried", nothing, "of a run: what changes were seen to save, as `try_changes` tells"),
    )
    __slots__ = Record.names_of(FIELDS)
    OPTIONAL = ("untried", "known", "imported_s", "examined_s", "counts", "ended", "tried")


def examine_apart(options):
    """Return the Examination of the program, made in a process of its own. Raises DoctorError.

    What is asked is the first line of a file beside the server's, what was found is the last.
    """
    import shutil

    server, address = start_server()
    program, path = None, os.path.join(os.path.dirname(address["ca"]), "examination")
    patience = options["patience"] or PATIENCE_S
    try:
        require_listening(address)
        options = dict(options, patience=patience)
        with open(path, "w") as file:
            file.write(json.dumps(dict(options, server=address, phase="start")) + "\n")
        program = spawn_self("--child-examine", path)
        end_with_server(server, ENDS_GROUP, program.pid)
        limit = clock() + patience + 1
        while clock() < limit and program.poll() is None and server.poll() is None:
            time.sleep(0.02)
        with open(path) as file:
            last = json.loads(file.readlines()[-1])
        if server.poll() is not None:
            raise DoctorError(SERVER_GONE % server.returncode)
    except EnvironmentError as error:
        # Without the server its pipe is closed, and its folder may be gone.
        if error.errno != 32 and server.poll() is None:
            raise
        raise DoctorError(SERVER_GONE % server.wait())
    finally:
        if program is not None:
            end_group(program.pid)
            if program.poll() is None:
                program.kill()
            program.wait()
        stop_server(server)
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)  # also of a server that was killed
    if "trouble" in last:
        raise DoctorError(last["trouble"])
    if "phase" in last:
        name = options["program"] or "the examination"
        raise DoctorError(reason_of_end(name, last["phase"], program.returncode))
    return Examination(**last)


SERVER_GONE = (
    "the doctor's own server ended before the examination did (exit status %d), so there is "
    "nothing to tell: run it again"
)


def reason_of_end(name, phase, status):
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


def examine_here(address, options, watch=None):
    """Return the Examination of this process.

    watch: what saw the program's imports, in a process that is ours: cures may be tried there,
    libraries imported that the program has not, and loads counted, by sessions as the library
    makes them. The loopback server is none of a proxy's business, so there are no proxies for them,
    and no warnings. In a process that is not ours nothing of that is done, and nothing changed.
    """
    started, imported, clients = clock(), imported_modules(), known_clients()
    server, deadline = Server(address), clock() + ENOUGH_S
    if watch:
        os.environ.update(dict.fromkeys(("no_proxy", "NO_PROXY"), "*"))
    with warnings.catch_warnings() if watch else Unchanged():
        if watch:
            warnings.simplefilter("ignore")
        examination, blocked = try_loop(server, options, watch, imported)
        examination.unwatched = unwatched_loops(
            options["program"], examination.own_tls, is_inside=not watch
        )
        if watch:
            examination.loads = check_loads(server, imported, watch, deadline)
            examination.load_ms = cost_of_a_load(examination.loads, watch)
        examination.certificates = certificates_of_a_load()
        if watch and blocked:
            examination.cures = try_cures(loaded(examination.loop["name"]), blocked, server)
        if watch and examination.loop:
            examination.trap = is_trapped()
    if watch:
        for name in ("no_proxy", "NO_PROXY"):
            os.environ.pop(name, None)
        os.environ.update(watch.environ)
    examination.http = check_http(options["url"], imported)
    examination.known, examination.examined_s = clients, round(clock() - started, 2)
    return examination


class Unchanged(object):
    """A `with` block that does nothing."""

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def imported_modules():
    """Return the modules of the clients that can be asked, of those that are imported."""
    return set(client.module for client in clients_with_sessions() if loaded(client.module))


def known_clients():
    """Return the names of the clients that the doctor knows and that are imported."""
    names = ("http.client", "httplib", "eventlet.green.http.client")
    packages = [name for name in PACKAGES if loaded(name) and name not in ("http", "urllib")]
    clients = set(PACKAGES[name] for name in packages)
    clients |= set("http.client" for name in names if loaded(name))
    return sorted(
        clients | set("urlopen" for name in ("urllib.request", "urllib2") if loaded(name))
    )


def try_loop(server, options, watch, imported):
    """Return (an Examination with what is known of the event loop, the client that is blocked)."""
    loop, patched = find_loop()
    examination = Examination(
        program=options["program"], python=sys.version.split()[0], openssl=openssl(),
        provides=provides(), injections=watch.injections if watch else [],
        loads_at_import=watch and len(watch.loads),
        loops_installed=[name for name in PATCHES if is_installed(name)],
        own_tls=sorted(set(OWN_TLS[name] for name in OWN_TLS if loaded(name))),
    )  # fmt: skip
    by_loop = []
    if loop:
        used = own_code_uses(loop.__name__, options["program"])
        examination.loop = {"name": loop.__name__, "patched": patched, "used": used}
        by_loop = check_loop(loop, patched, server, imported, watch)
    examination.clients = [row for _, row in by_loop]
    blocked = [client for client, row in by_loop if row["verdict"] == BLOCKED]
    return examination, blocked[0] if blocked else None


def unwatched_loops(program, own_tls, is_inside):
    """Return the loops that await and that nothing was tried of, since only a run watches them.

    Those that run in this process; those of servers that are there, which may begin them later
    (is_inside: this is a program's process, and no import alone); and those that the program's own
    code uses, if something was imported that brings TLS of its own, which may block such a loop
    unseen.
    """
    used = [name for name in LOOP_FRAMES if own_tls and own_code_uses(name, program)]
    servers = [LOOP_SERVERS[name] for name in LOOP_SERVERS if is_inside and loaded(name)]
    return sorted(set(running_loops() + used + servers))


def examine_end(options):
    """Return the Examination of what the program has left behind at its end, in its process."""
    if find_loop()[0] and options["server"]["https"] is None:
        raise DoctorError("the doctor cannot listen on 127.0.0.1, which its trials need")
    server = Server(options["server"])
    examination, blocked = try_loop(server, options, None, imported_modules())
    if blocked:  # the program has done its work: its process may be changed
        examination.cures = try_cures(loaded(examination.loop["name"]), blocked, server)
    examination.known, examination.certificates = known_clients(), certificates_of_a_load()
    return examination


def examine(path):
    """Run the process of the examined program, and end, whatever it has left running.

    It reads the options, and writes lines of JSON after them; the last is the Examination.
    """
    with open(path) as file:
        options = json.loads(file.readline())
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
        end_after(options["patience"], TooLongError)
        if options["program"]:
            with watch:
                import_program(options["program"], options["arguments"])
        imported_s, phase = round(clock() - started, 2), "examination"
        # Whatever happens to the process that started this.
        end_after(max(1, int(options["patience"] - (clock() - started))))
        answer(phase=phase)
        if os.getpid() == pid:
            examination = examine_here(options["server"], options, watch)
            examination.imported_s = imported_s
            answer(**examination.as_dict())
    except BaseException as error:
        answer(trouble=trouble_of(error, options, phase))
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)  # no thread is waited for, and nothing is called that waits for the end


def inside(stream=None, **options):
    """Examine the process that calls this, as it is now, and print the report; returns it.

    For programs that patch when they start and not when they are imported: in gunicorn, call it in
    post_worker_init of the configuration file. Nothing is changed, and no cure is tried out.
    options: url. Blocks for some seconds. Of the loop of asyncio or trio it cannot tell: only a run
    watches that. Where it cannot look it says why, in a report that has "trouble" and the exit
    status 2.
    """
    options = dict(defaults(), program="this process", **options)
    try:
        server, address = start_server()
        try:
            report = judge(examine_here(require_listening(address), options), options)
        finally:
            stop_server(server)
    except DoctorError as trouble:
        text = trouble.args[0]
        verdicts = dict.fromkeys(("event loop", "certificate loads"), CANNOT_TELL)
        print_line("doctor: %s." % text, stream)
        return {"trouble": text, "verdicts": verdicts, "exit_status": 2}
    print_line(text_of(report, False), stream)
    return report
