"""What the program does in `ssl`, noted while it runs.

Every event is a dictionary that is given to one function, `note`: in a run it writes a line of
JSON to a file, which is still there when the program is killed. Nothing is imported for it: a
module is probed when the program has imported it. What the program gets, and what it raises, is as
without.

Events, by "is": process (it begins), context (c, default), load (c, ms, kib: the memory before it
and after, alive, loop, waiting, trust, by, who, t, since), begin and end of a handshake (h, c, ok,
loop, t, since, thread, by, http), exchange (h, n: so many more, of something sent and an answer;
none of HTTP/2), request (c, where http.client tells), session (of requests, the first time that it
asks by HTTPS), pool (a PoolManager that is not of requests), full (c, who: a connection was closed
because its pool of urllib3's had no place for it; size, and wanted, the most of it in use at once),
evicted (who: a PoolManager makes a pool for a host again, having given up the one with an open
connection; size, and wanted, its hosts), trial (ms, of the doctor's own), block (s, waiting, who,
by), wait (of a greenlet: s, stood, who), greenlet (itself: whether a greenlet waits for a client,
or the main program while greenlets wait; each the first time), injection (where), truststore (where
it is injected), failed (why: no connection was made), unreached (why: no host was found, or it did
not let itself be connected to; until, once in a process, reached: one did), loop (name), heartbeat
(by: such a loop is looked at), silence (s, waiting, who, by: a turn of it that took so long while
its thread waited), own tls (name: what brings it is imported). c and h are numbers of contexts and
connections; who is what `callers` tells; t, and since, from when it was wanted (a load: from when
it ran, to t), are seconds; by is the module of its class; default: the program's own code called
create_default_context for it; http: its client is one that the doctor knows. Each has the "pid" of
its process, and "cpu", the milliseconds that this has used without those in which it compiled
modules: "compiled".
"""

from __future__ import division, print_function

import errno
import gc
import itertools
import os
import sys
import time
import weakref

from .basis import OWN_FILE, OWN_TLS, PY2, clock
from .heartbeat import Beats, Greenlets, Heartbeat, Turns
from .left_behind import is_library, is_package, own_context
from .libraries import is_decorator
from .loads import caller
from .tally import CONTEXTS_FROM, KEPT_FROM, counted
from .wording import readable, short, told

#: The clients that the doctor knows, as their packages are called.
KNOWN = {
    "requests": "requests", "niquests": "niquests", "urllib3": "urllib3",
    "urllib3_future": "niquests", "httpx": "httpx", "httpcore": "httpx", "httpx2": "httpx2",
    "httpcore2": "httpx2", "aiohttp": "aiohttp", "botocore": "botocore", "httplib2": "httplib2",
    "tornado": "tornado", "geventhttpclient": "geventhttpclient", "http": "http.client",
    "httplib": "http.client", "urllib": "urlopen", "urllib2": "urlopen",
}  # fmt: skip
#: What may come between a client and what it calls.
BETWEEN = (
    "ssl socket contextlib functools threading concurrent asyncio anyio sniffio gevent eventlet "
    "greenlet truststore OpenSSL shared_context requests_shared_context weakref _weakrefset".split()
)
#: It is there in pip, too, and pip-system-certs has every program use that.
VENDORED = "._vendor.truststore"
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
#: What a socket says that does not wait until it is connected.
UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, errno.EISCONN, 10035)
#: A wait that is shorter harms nobody.
BLOCKS_FROM_S = 0.02
#: A context that says how it is set takes no time, unless it waits.
ASKED_FROM_S = 0.002


class Probes(object):
    """Everything that is noted of one process, and of those that it forks.

    note: what is given each event.
    """

    def __init__(self, note):
        self.give, self.numbers, self.count = note, {}, itertools.count(1)
        self.under_way, self.busy, self.files, self.active = {}, set(), {}, True
        self.undo, self.held, self.kinds = [], {}, set()
        self.connected, self.asked, self.open = {}, {}, {}
        self.turns, self.fetches, self.changes, self.talks = {}, 0, {}, {}
        self.begun_last, self.closes = {}, {}  # by thread; by connection
        self.tasks = weakref.WeakKeyDictionary()
        self.collected, self.in_use, self.lock = {}, weakref.WeakKeyDictionary(), make_lock()
        threads = sys.modules.get("_thread")  # which Python 2.7 has not, and counts no turns
        self.thread = threads.get_ident if threads else ident  # as it is before anybody patches
        self.compiled = {}
        self.heartbeat, self.watched, self.answered_in = Heartbeat(self), {}, set()

    # ------------------------------------------------------------------ what is noted, and of what

    def note(self, event, **values):
        try:
            pid = os.getpid()
            compiled = self.compiled.get(pid, 0)
            own_ms = self.heartbeat.used_ms if self.heartbeat.looking == pid else 0
            values.update(cpu=process_ms() - compiled - own_ms, compiled=compiled)
            self.give(dict(values, **{"is": event, "pid": pid}))
        except Exception:  # a full disk, an interpreter that ends: no business of the program's
            pass

    def known(self, thing):
        """Return the number of a context or connection; None if it has none yet."""
        pair = self.numbers.get(id(thing))
        return pair[1] if pair is not None and pair[0]() is thing else None

    def number(self, thing):
        """Return a number that no other context or connection of this process has had."""
        if self.known(thing) is not None:
            return self.known(thing)
        number = next(self.count)  # which no two threads get at once
        try:
            self.numbers[id(thing)] = weakref.ref(thing), number
        except TypeError:
            self.numbers[id(thing)] = (lambda: thing), number
        return number

    def callers(self, frame):
        """Return {"client", "through", "at", "awaits"} of a call: the client that made it, the
        library that the program's own code called, and the line of the program's own code; None for
        what nobody can tell; and whether it is a client of httpx that awaits.
        """
        client, first, through, place, depth = None, None, None, None, 0
        inner, awaits, chain = True, False, []
        while frame is not None and depth < 200:
            depth += 1
            this_frame, code, name = frame, frame.f_code, str(frame.f_globals.get("__name__") or "")
            frame_line, frame, path = frame.f_lineno, frame.f_back, code.co_filename
            package = "truststore" if VENDORED in name else name.partition(".")[0]
            if path == OWN_FILE or path.startswith("<frozen"):
                continue
            if inner and package in KNOWN:
                client = KNOWN[package]
                if package in ("httpx", "httpx2") and code.co_name == "__init__":
                    awaits = awaits or hasattr(type(this_frame.f_locals.get("self")), "aclose")
            elif inner and client and package not in BETWEEN:
                inner = False
            if path not in self.files:
                library = path.startswith("<") or is_library(path) or package in BETWEEN
                self.files[path] = library, is_package(path)
            library, packages = self.files[path]
            if library:
                if package == "asyncio" and code.co_name == "_run" and running_loop():
                    place = self.line_of_task()  # what is below only runs the loop
                    break
                if package not in BETWEEN:
                    first = first or package
                    if packages and (not chain or chain[-1][0] != package):
                        chain.append((package, []))
                    if packages:
                        chain[-1][1].append(code)
                continue
            place = "%s:%d" % (short(path), frame_line)
            break
        packages = [package for package, codes in chain if not is_decorator(package, codes)]
        packages = packages or [package for package, _ in chain]
        through = packages[-1] if packages else None
        return {"client": client or first, "through": through, "at": place, "awaits": awaits}

    # -------------------------------------------------------------------------- contexts and loads

    def contexts(self, kind):
        """Note the contexts of a class that are made, but for servers."""
        original, probes = kind.__new__, self

        def __new__(cls, *args, **kwargs):
            context = original(cls, *args, **kwargs)
            protocol = kwargs.get("protocol", args[0] if args else None)
            if probes.active and getattr(protocol, "name", "") != "PROTOCOL_TLS_SERVER":
                probes.locks(cls, kind)
                caller = sys._getframe(1)
                values = dict(c=probes.number(context), who=probes.callers(caller))
                probes.note("context", default=is_default(caller), **values)
            return context

        self.put(kind, "__new__", staticmethod(__new__))

    def locks(self, cls, kind):
        """Note when a class of contexts lets a thread wait that only asks how it is set: urllib3
        asks before it connects, and truststore 0.10.5 answers when no handshake is under way.
        """
        for base in set(cls.__mro__) - self.kinds:
            self.kinds.add(base)
            for name in ("verify_mode", "check_hostname"):
                member = vars(base).get(name)
                if issubclass(base, kind) and base is not kind and isinstance(member, property):
                    asking = property(self.asking(member.fget), self.asking(member.fset))
                    self.put(base, name, asking)

    def asking(self, function):
        probes = self

        def timed(*args):
            started = clock()
            try:
                return function(*args)
            finally:
                if probes.active and clock() - started >= ASKED_FROM_S:
                    probes.asked.setdefault(ident(), started)

        return function and named(timed, function)

    def loads(self, kind):
        """Note the certificates that are loaded into contexts of a class. load_default_certs is
        Python code that ends in one of these two.
        """
        for name in ("load_verify_locations", "set_default_verify_paths"):
            self.put(kind, name, self.loading(name, getattr(kind, name)))

    def loading(self, name, function):
        probes = self

        def load(context, *args, **kwargs):
            thread = "load", ident()
            if not probes.active or thread in probes.busy:
                return function(context, *args, **kwargs)
            probes.busy.add(thread)
            started, began, kib, ok = thread_ms(), clock(), [resident_kib()], False
            try:
                result = function(context, *args, **kwargs)
                ok = True
                return result
            finally:
                t, ms, kib = clock(), thread_ms() - started, kib + [resident_kib()]
                probes.busy.discard(thread)
                if ok:
                    spent = {"ms": round(ms, 3), "kib": kib, "since": began, "t": t}
                    probes.loaded(context, name, args, kwargs, spent, sys._getframe(1))

        return named(load, function)

    def loaded(self, context, name, args, kwargs, spent, frame):
        trust, loop = trust_of(name, args, kwargs), running_loop()
        try:
            certificates = context.cert_store_stats()["x509"]
        except Exception:
            certificates = None
        # A folder is read later, one file at a time, and a place where nothing is costs nothing.
        if certificates == 0 or (certificates is None and spent["ms"] < 0.5) or trust is None:
            return
        values = dict(trust=trust, who=self.callers(frame), alive=self.hold(context, trust))
        values.update(loop=loop is not None, waiting=bool(loop) and others_wait(loop))
        # truststore's loads in a handshake go into a context of ssl that it keeps for itself.
        name = str(frame.f_globals.get("__name__") or "")
        of_truststore = name.startswith("truststore") or VENDORED in name
        values.update(by="truststore" if of_truststore else type(context).__module__)
        self.note("load", c=self.number(context), **dict(values, **spent))

    def hold(self, context, trust):
        """Return how many contexts with these certificates are in use now, with this one: at most,
        while Python frees them by itself; if it has to be told to, at least.
        """
        references, number = self.held.setdefault(trust, {}), self.number(context)
        try:
            references[number] = weakref.ref(context, lambda _: references.pop(number, None))
        except TypeError:
            return len(references)
        alive, look_at = self.collected.get(trust, (None, CONTEXTS_FROM))
        if len(references) >= look_at and gc.isenabled():
            alive = self.freed(references, alive)
            in_use = len(references) if alive is None else alive
            self.collected[trust] = alive, max(CONTEXTS_FROM, in_use + max(5, in_use // 4))
        return len(references) if alive is None else min(alive, len(references))

    def freed(self, references, alive_before):
        """Return how many of the contexts of these references are in use; None if Python has freed
        all others by itself, now as before.

        A client that is closed may refer to itself, and to its context, and is there until Python
        collects such things, which it does when it likes. So that is done here, but not often: each
        time that there are a quarter more contexts.
        """
        several, started, before_it = len(references), thread_ms(), self.still_open()
        gc.collect()
        self.note("trial", ms=round(thread_ms() - started, 3))
        closed = before_it - self.still_open()
        self.note("collected", contexts=several - len(references), connections=max(0, closed))
        return None if alive_before is None and len(references) == several else len(references)

    # --------------------------------------------------------------------------------- handshakes

    def handshakes(self, kind):
        """Note the handshakes of a class of connections; only those of clients."""
        function, probes = kind.do_handshake, self

        def do_handshake(connection, *args, **kwargs):
            if not probes.active or is_server(connection):
                return function(connection, *args, **kwargs)
            number, started = probes.begun(connection), thread_ms()
            try:
                result = function(connection, *args, **kwargs)
            except Exception as error:
                probes.spent(number, started)
                if not type(error).__name__.startswith(("SSLWant", "Want")):
                    probes.ended(connection, number, False, told(error))
                raise
            except BaseException:  # a greenlet's time-out, or the user's Ctrl-C
                probes.ended(connection, number, False)
                raise
            probes.spent(number, started)
            probes.ended(connection, number, True)
            return result

        self.put(kind, "do_handshake", named(do_handshake, function))

    def begun(self, connection):
        number = self.number(connection)
        if number not in self.under_way:
            context = getattr(connection, "context", None)
            if context is None and hasattr(connection, "get_context"):
                context = connection.get_context()
            self.under_way[number] = 0
            self.begun_last[ident()] = number
            origin = self.callers(sys._getframe(2))
            wanted_from = [
                self.connected.pop(descriptor(connection), None),
                self.asked.pop(ident(), None),
            ]
            wanted_from = min([moment for moment in wanted_from if moment is not None] or [None])
            values = dict(c=None if context is None else self.number(context), who=origin)
            values.update(loop=running_loop() is not None, since=wanted_from, t=clock())
            values.update(thread=ident(), by=type(connection).__module__)
            values.update(http=origin["client"] in KNOWN.values())
            self.note("begin", h=number, open=self.opened(connection, number), **values)
        return number

    def opened(self, connection, number):
        """Return how many connections of clients are open in this process now, with this one."""
        try:
            self.open[number] = weakref.ref(connection), os.getpid()
        except TypeError:
            return 1
        for key, (alive, pid) in list(self.open.items()):
            candidate = alive()
            if candidate is None or pid != os.getpid() or descriptor(candidate) == -1:
                self.open.pop(key, None)
        return len(self.open)

    def spent(self, number, started):
        """Add what a part of a handshake took of the processor."""
        if number in self.under_way:
            self.under_way[number] += thread_ms() - started

    def still_open(self):
        """Return how many connections of clients are open in this process, of those that have a
        socket of their own: an event loop's have none, and their loop closes them.
        """
        alive = [alive() for alive, pid in list(self.open.values()) if pid == os.getpid()]
        return len([connection for connection in alive if descriptor(connection) not in (None, -1)])

    def ended(self, connection, number, ok, reason=None):
        values = dict(ok=ok, why=reason, ms=round(self.under_way.pop(number, None) or 0, 3))
        if ok:
            values.update(protocol_of(connection))
        self.note("end", h=number, t=clock(), **values)
        if ok and len(self.numbers) > 10000:
            dead = [key for key, (alive, _) in list(self.numbers.items()) if alive() is None]
            for key in dead:
                self.talks.pop(self.numbers.pop(key, (None, None))[1], None)

    def failing(self, kind, name):
        """Note what a function of a class ends with that makes a connection, if it makes none and
        no handshake has told why.
        """
        function, probes = getattr(kind, name), self

        def connect(connection, *args, **kwargs):
            began = probes.begun_last.get(ident())
            try:
                return function(connection, *args, **kwargs)
            except Exception as error:
                if probes.active and began == probes.begun_last.get(ident()):
                    probes.note("failed", why=told(error))
                raise

        self.put(kind, name, named(connect, function))

    def exchanges(self, kind, *sending):
        """Note how often something was sent and answered over the connections of a class, whose
        functions that send are named: a connection that is kept has many of these.
        """
        for name in sending:
            self.put(kind, name, self.talking(getattr(kind, name), self.sent))
        self.put(kind, "read", self.talking(kind.read, self.answered))

    def talking(self, function, note):
        probes = self

        def talk(connection, *args, **kwargs):
            result = function(connection, *args, **kwargs)
            number = probes.known(connection) if result and probes.active else None
            if number is not None:
                try:
                    note(number, connection)
                except Exception:  # one that another thread has closed
                    pass
            return result

        return named(talk, function)

    def sent(self, number, connection):
        talk = self.talks.get(number)
        if talk is None:
            h2 = connection.selected_alpn_protocol() == "h2"  # which answers what nobody has asked
            talk = self.talks[number] = {"answered": not h2, "number": 0, "told": 0}
        if talk["answered"]:
            talk["answered"], talk["number"] = False, talk["number"] + 1
            unreported = talk["number"] - talk["told"]
            if talk["number"] <= KEPT_FROM or unreported >= talk["told"]:  # few lines, for many
                talk["told"] = talk["number"]
                self.note("exchange", h=number, n=unreported)

    def answered(self, number, connection):
        if self.talks.get(number, {}).get("number"):
            self.talks[number]["answered"] = True

    def connects(self, kind):
        """Note when the sockets of a class were connected: from then on they want a handshake."""
        function, probes = kind.connect, self

        def connect(connection, *args, **kwargs):
            result = function(connection, *args, **kwargs)
            if probes.active:
                probes.connected[descriptor(connection)] = clock()
            return result

        self.put(kind, "connect", named(connect, function))
        self.reaches(kind, "connect")

    def reaches(self, owner, name):
        """Note what a function ends with that looks for a host or connects to it; and, the first
        time, that one connected, or was answered.
        """
        function, probes = getattr(owner, name), self

        def reach(*args, **kwargs):
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                if getattr(error, "errno", None) not in UNDER_WAY:
                    probes.unreached(error)
                raise
            if name != "getaddrinfo":
                probes.reached()
            return result

        self.put(owner, name, named(reach, function))

    def unreached(self, error):
        if self.active and os.getpid() not in self.answered_in:
            self.note("unreached", why=told(error))

    def reached(self):
        if self.active and os.getpid() not in self.answered_in:
            self.answered_in.add(os.getpid())
            self.note("reached")

    # ------------------------------------------------------------------- waits under a running loop

    def waits(self, kind, name):
        """Note how long a function that waits kept a running asyncio loop from everything else."""
        function, probes = getattr(kind, name), self

        def wait(*args, **kwargs):
            loop, turns, thread = running_loop(), probes.turns_of_greenlets(), current()
            if (loop is None and turns is None) or not probes.active or thread in probes.busy:
                return function(*args, **kwargs)
            allowed = getattr(args[0], "gettimeout", None)
            if allowed and allowed() == 0:  # it asks, and does not wait
                return function(*args, **kwargs)
            probes.busy.add(thread)
            fetches = greenlets_wait() if loop is None and probes.fetches < 2 else 0
            if fetches > probes.fetches:
                probes.fetches = fetches
                probes.note("greenlet", itself=fetches == 2)
            # In this order, so that a pause between the two looks is never taken for a wait.
            busy_ms, started = thread_ms() + queued_ms(), clock()
            try:
                return function(*args, **kwargs)
            finally:
                waited_s = clock() - started - (thread_ms() + queued_ms() - busy_ms) / 1000
                probes.busy.discard(thread)
                # Of greenlets: the loop has taken no turn meanwhile.
                stalled = loop is not None or turns == probes.turns_of_greenlets()
                if waited_s >= BLOCKS_FROM_S:
                    origin = probes.callers(sys._getframe(1))
                    if loop is not None:
                        others_waiting = others_wait(loop)
                        kind = type(loop).__module__.partition(".")[0]
                        values = dict(s=round(waited_s, 4), waiting=others_waiting, who=origin)
                        probes.note("block", by="trio" if kind == "trio" else "asyncio", **values)
                    else:
                        probes.note("wait", s=round(waited_s, 4), stood=stalled, who=origin)

        self.put(kind, name, named(wait, function))

    def turns_of_greenlets(self):
        """Return how many turns the loop of gevent or eventlet has taken in this thread; None if
        there is none, or if the loop itself asks.
        """
        hub_of = getattr(sys.modules.get("gevent._hub_local"), "get_hub_if_exists", None)
        hub = hub_of and hub_of()
        if hub is not None and hub.loop is not None:
            return None if current_greenlet() is hub else hub.loop.iteration
        return self.turns.get(self.thread())

    def count_turns(self, kind):
        """Count the turns that a class of eventlet's hubs takes."""
        function, probes = kind.fire_timers, self

        def fire_timers(hub, *args, **kwargs):
            probes.turns[probes.thread()] = probes.turns.get(probes.thread(), 0) + 1
            return function(hub, *args, **kwargs)

        self.put(kind, "fire_timers", named(fire_timers, function))

    # ------------------------------------------------------------------------------- loops that run

    def runs(self, kind, name="run_forever", turns=False):
        """Look at the loops of a class of asyncio's, or of one like it, while they run. turns:
        whether they are counted as the loop takes them.
        """
        function, probes = getattr(kind, name), self

        def run_forever(loop, *args, **kwargs):
            waits = lambda: others_wait(loop)  # noqa: E731
            watched = Beats("asyncio", waits, loop.call_soon_threadsafe)
            if turns:
                watched = probes.watched[id(loop)] = Turns("asyncio", waits)
            leave = probes.heartbeat.watch(watched)
            try:
                return function(loop, *args, **kwargs)
            finally:
                leave()
                probes.watched.pop(id(loop), None)

        self.put(kind, name, named(run_forever, function))

    def makes_tasks(self, kind):
        """Remember the line of the program that has the loops of a class make a task: a library's
        task has none of its own.
        """
        function, probes = kind.create_task, self

        def create_task(loop, *args, **kwargs):
            task = function(loop, *args, **kwargs)
            try:
                probes.tasks[task] = probes.line_of(sys._getframe(1))
            except Exception:  # a task of another kind
                pass
            return task

        self.put(kind, "create_task", named(create_task, function))

    def line_of(self, frame):
        """Return the line of the program's own code that called; that of the task that did, if
        none.
        """
        while frame is not None:
            path, code = frame.f_code.co_filename, frame.f_code
            if path not in self.files:
                name = str(frame.f_globals.get("__name__") or "").partition(".")[0]
                library = path.startswith("<") or is_library(path) or name in BETWEEN
                self.files[path] = library, is_package(path)
            if not self.files[path][0] and path != OWN_FILE:
                return "%s:%d" % (short(path), frame.f_lineno)
            if code.co_name == "_run" and path.replace("\\", "/").endswith("/asyncio/events.py"):
                return self.line_of_task()
            frame = frame.f_back
        return None

    def line_of_task(self):
        """Return the line that made asyncio's task that runs in this thread; None in a callback."""
        try:
            task = sys.modules["asyncio"].current_task()
        except RuntimeError:  # no loop runs here
            task = None
        return None if task is None else self.tasks.get(task)

    def takes_turns(self, kind):
        """Count the turns that the loops of a class of asyncio's take."""
        function, probes = kind._run_once, self

        def _run_once(loop):
            watched = probes.watched.get(id(loop))
            if watched is not None:
                watched.turns += 1
            return function(loop)

        self.put(kind, "_run_once", named(_run_once, function))

    # ------------------------------------------------------------------------------ urllib3's pools

    def pools(self, kind):
        """Note when a pool of HTTPS connections has no place for one that comes back."""
        get, put_back, probes = kind._get_conn, kind._put_conn, self

        def used(pool, change):
            with probes.lock:
                count, peak = probes.in_use.get(pool, (0, 0))
                probes.in_use[pool] = count + change, max(peak, count + change)
                return probes.in_use[pool][1]

        def _get_conn(pool, *args, **kwargs):
            connection = get(pool, *args, **kwargs)
            used(pool, 1)
            return connection

        def _put_conn(pool, connection):
            peak, places = used(pool, -1), getattr(pool, "pool", None)  # None: the pool is closed
            socket_before = getattr(connection, "sock", None)
            result = put_back(pool, connection)
            socket_after = getattr(connection, "sock", None)
            was_open = places is not None and socket_before is not None and pool.scheme == "https"
            if was_open and socket_after is None and probes.active:
                context = getattr(socket_before, "context", None)
                values = dict(c=None if context is None else probes.number(context))
                values.update(who=probes.callers(sys._getframe(1)), size=places.maxsize)
                probes.note("full", wanted=peak, **values)
            return result

        self.put(kind, "_get_conn", named(_get_conn, get))
        self.put(kind, "_put_conn", named(_put_conn, put_back))

    def hosts(self, kind):
        """Note when a PoolManager makes a pool for a host once more, because it had to give up the
        one that it had, with a connection that was open.
        """
        original, probes, managers = kind._new_pool, self, weakref.WeakKeyDictionary()

        def _new_pool(manager, scheme, host, port, *args, **kwargs):
            if scheme == "https" and probes.active:
                hosts, size = (
                    managers.setdefault(manager, {}),
                    getattr(manager.pools, "_maxsize", 0),
                )
                if hosts.get((host, port)):
                    origin = probes.callers(sys._getframe(1))
                    probes.note("evicted", who=origin, size=size, wanted=len(hosts))
                hosts[host, port] = False  # whether its pool had to go
                if size and len(manager.pools) >= size:
                    oldest = next(iter(manager.pools._container.values()))
                    hosts[oldest.host, oldest.port] = is_open(oldest)
            return original(manager, scheme, host, port, *args, **kwargs)

        self.put(kind, "_new_pool", named(_new_pool, original))

    # --------------------------------------------------------------------- the compiling of modules

    def compiles(self, kind, name):
        """Count the time that a function takes which compiles modules for a class of loaders, or
        keeps what came out, in `compiled`, by process.

        Python does that once: with it, a program's first run would be another than the next ones.
        """

        def note(ms):
            pid = os.getpid()
            self.compiled[pid] = self.compiled.get(pid, 0) + ms

        namespace = {"function": getattr(kind, name), "note": note, "thread_ms": thread_ms}
        exec(compile(COMPILING, "<frozen importlib._bootstrap_external>", "exec"), namespace)
        self.put(kind, name, named(namespace["timed"], namespace["function"]))

    # ------------------------------------------------------------------------ when they are put in

    def put(self, kind, name, value):
        previous = vars(kind).get(name)
        setattr(kind, name, value)
        self.undo.append((kind, name, previous))

    def remove(self):
        """Take all probes out again, and note nothing more."""
        self.active, self.heartbeat.stop = False, True
        for kind, name, previous in reversed(self.undo):
            if previous is None:
                delattr(kind, name)
            else:
                setattr(kind, name, previous)
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        self.undo = []

    def install(self):
        """Put the probes into what is imported already, and into the rest when it comes."""
        loaders = sys.modules.get("_frozen_importlib_external")  # Python 2.7 has none
        if loaders is not None:
            self.compiles(loaders.SourceLoader, "source_to_code")
            self.compiles(loaders.SourceFileLoader, "set_data")
        for name in set(PROBED) | set(self.changes):
            if sys.modules.get(name) is not None:
                self.probe(name, sys.modules[name])
        sys.meta_path.insert(0, self)
        return self

    def probe(self, name, module):
        try:
            if name in PROBED:
                PROBED[name](self, module)
            if name in self.changes:
                self.changes[name](module)
        except Exception as error:  # a module that only has the name of the one that is meant
            self.note("unprobed", module=name, why=readable(error))

    def find_spec(self, name, path=None, target=None):
        """Return the spec of a module that is to be probed once it is imported; of others, none."""
        if name not in PROBED and name not in self.changes:
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

        def find_module(self, name, path=None):
            is_probed = name in PROBED or name in self.changes
            return self if is_probed and ("import", name) not in self.busy else None

        def load_module(self, name):
            self.busy.add(("import", name))
            try:
                __import__(name)
            finally:
                self.busy.discard(("import", name))
            self.probe(name, sys.modules[name])
            return sys.modules[name]


class counting(object):
    """Counts what happens in this process in a `with` block, in all its threads: `counts`, as
    `counted` has them, and loads, handshakes, connections and contexts by their names.
    """

    def __enter__(self):
        self._events = []
        self._probes = Probes(self._events.append)
        self._probes.note("start")
        self._probes.install()
        return self

    def __exit__(self, *_):
        self._probes.note("exit")
        self._probes.remove()

    def from_now_on(self):
        """Forget what was counted so far."""
        del self._events[:]
        self._probes.note("start")

    @property
    def counts(self):
        return counted(list(self._events))

    def __getattr__(self, name):
        if name in ("loads", "handshakes", "connections", "contexts"):
            return self.counts[name]
        raise AttributeError(name)


def probe_ssl(probes, ssl):
    kind = own_context(ssl)
    probes.contexts(kind)
    # Not a client's own function: the cure lends no context where urllib3's are not as they were.
    probes.failing(kind, "wrap_socket")
    probes.loads(kind)
    if hasattr(ssl, "SSLObject"):
        probes.handshakes(ssl.SSLObject)
    if not hasattr(ssl, "SSLObject") or sys.version_info >= (3, 7):  # else through SSLObject too
        probes.handshakes(ssl.SSLSocket)
    if not PY2:
        probes.exchanges(ssl.SSLSocket, "send", "write")
        probes.exchanges(ssl.SSLObject, "write")
        probes.waits(ssl.SSLSocket, "read")
        probes.waits(ssl.SSLSocket, "do_handshake")


def probe_socket(probes, socket):
    kind = socket.socket
    if kind.__module__ == "socket":
        probes.connects(kind)
        probes.reaches(socket, "getaddrinfo")


def probe_gevent(probes, module):
    kind = getattr(module, "SSLSocket", None)
    if kind is not None and "do_handshake" in vars(kind) and kind.__module__ == module.__name__:
        if PY2 or sys.version_info >= (3, 7):
            probes.handshakes(kind)


def probe_gevents_sockets(probes, module):
    probes.reaches(module.socket, "connect")
    probes.reaches(module, "getaddrinfo")


def probe_selectors(probes, module):
    """Note the connections of asyncio's own loops, which are there a turn later."""
    kind = module.BaseSelectorEventLoop
    function = kind._sock_connect_cb

    def _sock_connect_cb(loop, future, *args):
        was_done = future.done()
        result = function(loop, future, *args)
        if future.done() and not was_done and not future.cancelled():
            error = getattr(future, "_exception", None)  # to ask for it would be to handle it
            if error is None:
                probes.reached()
            else:
                probes.unreached(error)
        return result

    probes.put(kind, "_sock_connect_cb", named(_sock_connect_cb, function))


def probe_pyopenssl(probes, module):
    original, kind = module.Context.__init__, module.Context

    def __init__(context, *args, **kwargs):
        original(context, *args, **kwargs)
        if probes.active:
            origin = probes.callers(sys._getframe(1))
            probes.note("context", c=probes.number(context), who=origin, default=False)

    probes.put(kind, "__init__", __init__)
    probes.loads(kind)
    probes.handshakes(module.Connection)


def probe_sessions(probes, module):
    choose = module.Session.get_adapter

    def get_adapter(session, url):
        first = url[:6].lower() == "https:" and probes.known(session) is None
        if first and probes.active:
            probes.number(session)
            probes.note("session")
        return choose(session, url)

    probes.put(module.Session, "get_adapter", named(get_adapter, choose))


def probe_pools(probes, module):
    original = module.PoolManager.__init__

    def __init__(pool, *args, **kwargs):
        original(pool, *args, **kwargs)
        if probes.active and probes.callers(sys._getframe(1))["client"] in (None, "urllib3"):
            probes.note("pool")

    probes.put(module.PoolManager, "__init__", named(__init__, original))
    probes.hosts(module.PoolManager)


def probe_truststore(probes, module):
    inject = module.inject_into_ssl

    def inject_into_ssl():
        probes.note("truststore", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_ssl = named(inject_into_ssl, inject)


def probe_botocore(probes, module):
    original = module.URLLib3Session.__init__

    def __init__(session, *args, **kwargs):
        original(session, *args, **kwargs)
        if probes.active:
            probes.note("botocore")

    probes.put(module.URLLib3Session, "__init__", named(__init__, original))


def probe_pool(probes, module):
    probes.pools(module.HTTPConnectionPool)


def probe_loop(probes, module):
    probes.note("loop", name=module.__name__.partition(".")[0])
    kind = getattr(module, "Hub", None)
    if kind is not None and module.__name__ == "gevent.hub":
        original = kind.__init__

        def __init__(hub, *args, **kwargs):
            original(hub, *args, **kwargs)
            probes.heartbeat.watch(Greenlets(hub))  # which stays for as long as its thread

        probes.put(kind, "__init__", named(__init__, original))


def probe_asyncio(probes, module):
    probes.runs(module.BaseEventLoop, turns=True)
    probes.takes_turns(module.BaseEventLoop)
    probes.makes_tasks(module.BaseEventLoop)


def probe_uvloop(probes, module):
    probes.runs(module.Loop)
    probes.makes_tasks(module.Loop)


def probe_trio(probes, module):
    """Have trio's loop count, while it runs in the thread that made its runner."""
    original, run, leaving = module.setup_runner, module.run, {}

    def setup_runner(*args, **kwargs):
        runner = original(*args, **kwargs)
        waits = lambda: others_wait(runner)  # noqa: E731
        beats = Beats("trio", waits, runner.entry_queue.run_sync_soon)
        leaving[ident()] = probes.heartbeat.watch(beats)
        return runner

    def run_to_the_end(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        finally:
            leaving.pop(ident(), lambda: None)()

    module.setup_runner = named(setup_runner, original)
    module.run = named(run_to_the_end, run)


def probe_eventlet(probes, module):
    probes.count_turns(module.BaseHub)
    original = module.BaseHub.__init__

    def __init__(hub, *args, **kwargs):
        original(hub, *args, **kwargs)
        thread = probes.thread()
        waits = lambda: bool(hub.timers or hub.next_timers or any(hub.listeners.values()))  # noqa: E731
        turns = Turns("eventlet", waits)
        turns.turn = lambda: probes.turns.get(thread)
        probes.heartbeat.watch(turns)

    probes.put(module.BaseHub, "__init__", named(__init__, original))


def probe_h11(probes, module):
    """Note the headers of httpx."""
    send, receive = module.Connection.send, module.Connection.next_event

    def noted(connection, event, name, side):
        if type(event).__name__ == name and connection.our_role is module.CLIENT and probes.active:
            if any(says_close(header, [value]) for header, value in event.headers):
                probes.note("closing", c=None, by=side, who=probes.callers(sys._getframe(2)))
                return True
        return False

    def send_noted(connection, event):
        probes.closes[id(connection)] = noted(connection, event, "Request", "program")
        return send(connection, event)

    def next_event(connection):
        event = receive(connection)
        if not probes.closes.get(id(connection)):
            noted(connection, event, "Response", "server")
        return event

    probes.put(module.Connection, "send", named(send_noted, send))
    probes.put(module.Connection, "next_event", named(next_event, receive))


def says_close(header, values):
    texts = [
        value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values
    ]
    header = header.decode("latin-1") if isinstance(header, bytes) else str(header)
    return header.lower() == "connection" and any("close" in text.lower() for text in texts)


def probe_own_tls(probes, module):
    probes.note("own tls", name=OWN_TLS[module.__name__])


def probe_injection(probes, module):
    inject = module.inject_into_urllib3

    def inject_into_urllib3():
        probes.note("injection", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_urllib3 = named(inject_into_urllib3, inject)


def probe_http(probes, module):
    answered = module.HTTPConnection.getresponse

    def getresponse(connection, *args, **kwargs):
        # Before the answer: with it goes the connection that is not kept.
        context = getattr(getattr(connection, "sock", None), "context", None)
        is_watched = context is not None and probes.active
        number = probes.number(context) if is_watched else None
        if is_watched:
            probes.note("request", c=number)
        side = "program" if probes.closes.pop(id(connection), None) else "server"
        reply = answered(connection, *args, **kwargs)
        if is_watched and (side == "program" or getattr(reply, "will_close", False)):
            origin = probes.callers(sys._getframe(1))
            if origin["client"] != "urlopen":  # which always asks for it
                probes.note("closing", c=number, by=side, who=origin, h=probes.number(connection))
        return reply

    probes.put(module.HTTPConnection, "getresponse", named(getresponse, answered))
    original = module.HTTPConnection.putheader

    def putheader(connection, header, *values):
        if says_close(header, values):
            probes.closes[id(connection)] = True
        return original(connection, header, *values)

    probes.put(module.HTTPConnection, "putheader", named(putheader, original))
    if not PY2:
        probes.waits(module.HTTPConnection, "getresponse")


#: What is probed, and how.
PROBED = {
    "ssl": probe_ssl, "socket": probe_socket, "OpenSSL.SSL": probe_pyopenssl,
    "gevent.socket": probe_gevents_sockets, "asyncio.selector_events": probe_selectors,
    "http.client": probe_http, "httplib": probe_http,
    "gevent.ssl": probe_gevent, "gevent._ssl3": probe_gevent, "gevent._sslgte279": probe_gevent,
    "requests.sessions": probe_sessions, "urllib3.poolmanager": probe_pools,
    "urllib3.connectionpool": probe_pool,
    "truststore._api": probe_truststore, "h11._connection": probe_h11,
    "botocore.httpsession": probe_botocore,
    "gevent.hub": probe_loop, "eventlet.hubs": probe_loop,
    "asyncio.base_events": probe_asyncio, "uvloop": probe_uvloop, "trio._core._run": probe_trio,
    "eventlet.hubs.hub": probe_eventlet,
    "urllib3.contrib.pyopenssl": probe_injection,
    "requests.packages.urllib3.contrib.pyopenssl": probe_injection,
}  # fmt: skip
PROBED.update(dict.fromkeys(OWN_TLS, probe_own_tls))


def named(wrapper, function):
    """Return the wrapper, with the name and the text of what it stands for."""
    for name in ("__name__", "__doc__", "__qualname__", "__module__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    return wrapper


def trust_of(name, args, kwargs):
    """Return what is loaded, so that the same is told from another: a file's path, "system", or a
    digest of what was given in memory. None for a folder alone, which is read later.
    """
    if name == "set_default_verify_paths":
        return "system"
    values = dict(kwargs)
    for key, value in zip(("cafile", "capath", "cadata"), args):
        values[key] = value
    if values.get("cafile"):
        path = values["cafile"]
        path = path.decode("utf-8", "replace") if hasattr(path, "decode") else path
        return os.path.realpath(str(path))
    if values.get("cadata"):
        return "data %x" % (hash(values["cadata"]) & 0xFFFFFFFF)
    return None


def is_default(caller):
    """Return whether a context is made by create_default_context, called by the program's own
    code.
    """
    maker = caller.f_code.co_name == "create_default_context" and caller.f_back
    return bool(maker) and not is_library(maker.f_code.co_filename)


def protocol_of(connection):
    """Return {"alpn", "host"} of a connection, as far as it tells."""
    try:
        host = getattr(connection, "server_hostname", None)
        peer = getattr(connection, "getpeername", lambda: None)()
        host = "%s:%d" % (host or peer[0], peer[1]) if peer else host
        return {"alpn": connection.selected_alpn_protocol(), "host": host and readable(host)}
    except Exception:  # pyOpenSSL's, or one that is closed
        return {"alpn": None, "host": None}


def is_open(pool):
    """Return whether a pool of urllib3's keeps a connection that the server has not closed."""
    dropped = sys.modules["urllib3.util.connection"].is_connection_dropped
    connections = [
        connection
        for connection in list(pool.pool.queue)
        if getattr(connection, "sock", None) is not None
    ]
    return any(not dropped(connection) for connection in connections)


def is_server(connection):
    side = getattr(connection, "server_side", None)
    if side is None and hasattr(connection, "_sslobj"):
        side = getattr(connection._sslobj, "server_side", False)
    if side is None:  # pyOpenSSL tells by its state
        state = getattr(connection, "get_state_string", lambda: b"")()
        side = b"accept" in state.lower() or b"server" in state.lower()
    return bool(side)


def running_loop():
    """Return the loop of asyncio that runs in this thread, or trio's; None if there is none."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    trio = getattr(sys.modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
    return (running and running()) or getattr(trio, "runner", None)


def others_wait(loop):
    """Return whether anything else waits for a loop now: a callback, a timer that is due, or a
    socket (of trio, a task or a timer), or whether it serves: then others come, if not now. Of a
    loop that does not tell: whether a socket that is watched waits, or there are other tasks than
    one and its awaiter.
    """
    try:
        if hasattr(loop, "deadlines"):
            due = loop.deadlines.next_deadline() <= loop.clock.current_time()
            due = due or any(task._next_send_fn is not None for task in loop.tasks)
        else:
            timers = loop._scheduled
            due = bool(timers) and timers[0].when() <= loop.time()
            due = bool(loop._ready) or due or bool(loop._selector.select(0))
        return due or "listening" in watched_sockets()
    except Exception:
        all_tasks = getattr(sys.modules["asyncio"], "all_tasks", None)
        return bool(watched_sockets()) or (bool(all_tasks) and len(all_tasks(loop)) > 2)


def watched_sockets():
    """Return what the sockets do that this process's loops watch: a set of "listening" (they serve)
    and "waiting" (there is something to read). Linux tells; elsewhere it is empty.
    """
    states, kind, select = set(), sys.modules.get("_socket"), sys.modules.get("select")
    try:
        watched = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + name).endswith("[eventpoll]"):
                    with open("/proc/self/fdinfo/" + name) as lines:
                        rows = [line.split() for line in lines if line.startswith("tfd:")]
                    watched.update(int(row[1]) for row in rows if int(row[3], 16) & 1)
            except EnvironmentError:  # one that is closed meanwhile
                pass
        for number in watched:
            try:
                copy = kind.socket(fileno=os.dup(number))
            except EnvironmentError:  # no socket
                continue
            try:
                if copy.getsockopt(kind.SOL_SOCKET, kind.SO_ACCEPTCONN):
                    states.add("listening")
                elif copy.family != getattr(kind, "AF_UNIX", None):  # a loop's own pair
                    states.update(["waiting"] if select.select([copy], [], [], 0)[0] else [])
            except Exception:  # a number that is too large
                pass
            finally:
                copy.close()
    except Exception:  # another system
        pass
    return states


def descriptor(connection):
    try:
        return connection.fileno()
    except Exception:  # one without a socket of its own, or a closed one
        return None


def resident_kib():
    """Return the memory that this process holds; if nobody tells at once, the most that it has
    held.
    """
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        finally:
            os.close(handle)
    except Exception:
        return most_kib()


def queued_ms():
    """Return the milliseconds through which this thread could run and had no processor: on a busy
    machine that is no wait for an answer. Linux tells; elsewhere 0.
    """
    try:
        handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) / 1e6
        finally:
            os.close(handle)
    except Exception:
        return 0


def current_greenlet():
    get_current = getattr(sys.modules.get("greenlet"), "getcurrent", None)
    return get_current and get_current()


def greenlets_wait():
    """Return 2 if a greenlet asks, 1 if the main program does while greenlets of the same thread
    wait, else 0.
    """
    greenlet = current_greenlet()
    if getattr(greenlet, "parent", None) is not None:
        return 2
    hub_of = getattr(sys.modules.get("gevent._hub_local"), "get_hub_if_exists", None)
    hub = hub_of and hub_of()
    return int(hub is not None and hub.loop is not None and hub.loop.activecnt > 0)


def current():
    """Return what tells this greenlet, or this thread if there are none, from others."""
    return "wait", ident(), id(current_greenlet())


def make_lock():
    """Return a lock that no patch of the program's replaces. (To import threading would be too
    early.)
    """
    try:
        import _thread
    except ImportError:  # as Python 2.7 calls it
        import thread as _thread
    return _thread.allocate_lock()


def ident():
    thread = sys.modules.get("_thread") or sys.modules.get("thread")
    return thread.get_ident()


def make_clocks():
    """Return (the most KiB that this process has held, its processor milliseconds, those of this
    thread), as functions.
    """
    try:
        import resource
    except ImportError:
        resource = None

    def peak_kib():
        if resource is None:
            return 0
        return resource.getrusage(0).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

    def process():
        if resource is None:
            return 1000 * sum(os.times()[:2])
        used = resource.getrusage(0)
        return 1000 * (used.ru_utime + used.ru_stime)

    if hasattr(time, "thread_time"):
        return peak_kib, process, lambda: 1000 * time.thread_time()

    def thread():
        try:
            used = resource.getrusage(1)  # RUSAGE_THREAD, which has no name in old Pythons
        except Exception:
            return process()
        return 1000 * (used.ru_utime + used.ru_stime)

    return peak_kib, process, thread


most_kib, process_ms, thread_ms = make_clocks()
