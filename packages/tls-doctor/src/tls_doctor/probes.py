"""What the program does in `ssl`, noted while it runs.

Every event is a dictionary that is given to one function, `note`: in a run it writes a line of
JSON to a file, which is still there when the program is killed. Nothing is imported for it: a
module is probed when the program has imported it. What the program gets, and what it raises, is as
without.

What is noted stands in EVENTS (events.py).
"""

from __future__ import division, print_function

import errno
import gc
import itertools
import os
import sys
import weakref

from .basis import clock
from .callers import VENDORED, CallStack
from .clients import OWN_TLS, PACKAGES
from .heartbeat import Beats, Heartbeat, Turns
from .import_hook import ImportHook
from .left_behind import is_library
from .probed import PROBED
from .state import (
    current,
    current_greenlet,
    descriptor,
    greenlets_wait,
    ident,
    in_globals_of,
    is_server,
    make_lock,
    named,
    others_wait,
    port_of,
    process_ms,
    protocol_of,
    queued_ms,
    resident_kib,
    running_loop,
    thread_ms,
)
from .tally import count_events
from .verdicts import CONTEXTS_FROM, KEPT_FROM
from .wording import describe, readable

#: What a socket says that does not wait until it is connected.
UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, errno.EISCONN, 10035)
#: A wait that is shorter harms nobody, unless others follow at once.
BLOCKS_FROM_S = 0.02
#: A context that says how it is set takes no time, unless it waits.
ASKED_FROM_S = 0.002
#: What a connection ends with that is closed, and an attempt that its client gives up.
NO_ANSWER = "the server ended the connection without an answer"
GIVEN_UP = "given up before it was connected"


class Probes(object):
    """Everything that is noted of one process, and of those that it forks.

    note: what is given each event.
    """

    def __init__(self, note):
        self.give, self.numbers, self.count = note, {}, itertools.count(1)
        self.under_way, self.busy, self.active = {}, set(), True
        self.undo, self.held, self.kinds = [], {}, set()
        self.identities = {}  # number of a context: the digest of its client certificate
        self.connected, self.asked, self.open = {}, {}, {}
        self.turns, self.fetches, self.changes, self.talks = {}, 0, {}, {}
        self.begun_last, self.closes = {}, {}  # by thread; by connection
        self.short_waits = {}  # thread: (when its last wait ended, seconds that were not noted)
        self.stack = CallStack()
        self.callers = self.stack.callers
        self.collected, self.in_use, self.lock = {}, weakref.WeakKeyDictionary(), make_lock()
        threads = sys.modules.get("_thread")  # which Python 2.7 has not, and counts no turns
        self.thread = threads.get_ident if threads else ident  # as it is before anybody patches
        self.hook = ImportHook(self.is_probed, self.probe)
        self.heartbeat, self.watched = Heartbeat(self), {}
        self.answered_in, self.accepted = set(), set()  # (process, port); connections

    # ------------------------------------------------------------------ what is noted, and of what

    def note(self, event, **values):
        """Give one event to whoever writes it."""
        try:
            pid = os.getpid()
            compiled = self.hook.compiled.get(pid, 0)
            own_ms = self.heartbeat.used_ms if self.heartbeat.looking == pid else 0
            values.update(cpu=process_ms() - compiled - own_ms, compiled=compiled)
            self.give(dict(values, **{"is": event, "pid": pid}))
        except Exception:  # a full disk, an interpreter that ends: no business of the program's
            pass

    def number_if_any(self, thing):
        """Return the number of a context or connection; None if it has none yet."""
        pair = self.numbers.get(id(thing))
        return pair[1] if pair is not None and pair[0]() is thing else None

    def number(self, thing):
        """Return a number that no other context or connection of this process has had."""
        if self.number_if_any(thing) is not None:
            return self.number_if_any(thing)
        number = next(self.count)  # which no two threads get at once
        try:
            self.numbers[id(thing)] = weakref.ref(thing), number
        except TypeError:
            self.numbers[id(thing)] = (lambda: thing), number
        return number

    # -------------------------------------------------------------------------- contexts and loads

    def contexts(self, kind):
        """Note the contexts of a class that are made, but for servers."""
        original, probes = kind.__new__, self

        def make(cls, *args, **kwargs):
            context = original(cls, *args, **kwargs)
            protocol = kwargs.get("protocol", args[0] if args else None)
            if probes.active and getattr(protocol, "name", "") != "PROTOCOL_TLS_SERVER":
                probes.locks(cls, kind)
                caller = sys._getframe(1)
                values = dict(c=probes.number(context), who=probes.callers(caller))
                probes.note("context", default=is_default(caller), **values)
            return context

        self.replace(kind, "__new__", staticmethod(make))

    def locks(self, cls, kind):
        """Note when a class of contexts lets a thread wait that only asks how it is set.

        urllib3 asks before it connects, and truststore 0.10.5 answers when no handshake is
        under way.
        """
        for base in set(cls.__mro__) - self.kinds:
            self.kinds.add(base)
            for name in ("verify_mode", "check_hostname"):
                member = vars(base).get(name)
                if issubclass(base, kind) and base is not kind and isinstance(member, property):
                    asking = property(self.asking(member.fget), self.asking(member.fset))
                    self.replace(base, name, asking)

    def asking(self, function):
        """Return a function that asks a context, and notes when it had to wait."""
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
        """Note the certificates that are loaded into contexts of a class.

        load_default_certs is Python code that ends in one of these two.
        """
        for name in ("load_verify_locations", "set_default_verify_paths"):
            self.replace(kind, name, self.loading(name, getattr(kind, name)))
        for name in ("load_cert_chain", "use_certificate_chain_file", "use_certificate_file"):
            if hasattr(kind, name):
                self.replace(kind, name, self.identifying(getattr(kind, name)))

    def identifying(self, function):
        """Return a function that gives a context a client certificate, and notes which."""
        probes = self

        def identify(context, *args, **kwargs):
            result = function(context, *args, **kwargs)
            if probes.active:
                probes.identified(context, args[0] if args else kwargs.get("certfile"))
            return result

        return named(identify, function)

    def identified(self, context, path):
        """Note a client certificate, by what is in its file: many write it anew for each client."""
        try:
            import hashlib

            with open(path, "rb") as file:
                identity = hashlib.sha256(file.read()).hexdigest()[:16]
        except Exception:
            return
        number = self.number(context)
        self.identities[number] = identity
        alive = 0
        for (trust, former), references in list(self.held.items()):
            if former != identity and references.pop(number, None):
                alive = max(alive, self.hold(context, trust))
        self.note("identity", c=number, identity=identity, alive=alive)

    def loading(self, name, function):
        """Return a function that loads certificates, and notes it."""
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
                    spent["thread"] = thread[1]
                    probes.loaded(context, name, args, kwargs, spent, sys._getframe(1))

        return named(load, function)

    def loaded(self, context, name, args, kwargs, spent, frame):
        """Note a load, unless nothing was loaded."""
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
        """Return how many contexts with these certificates are in use now, with this one.

        One that shows another client certificate is none of them. It is an upper bound while
        Python frees them by itself, and a lower one if it has to be told to.
        """
        number = self.number(context)
        key = trust, self.identities.get(number)
        references = self.held.setdefault(key, {})
        try:
            references[number] = weakref.ref(context, lambda _: references.pop(number, None))
        except TypeError:
            return len(references)
        alive, look_at = self.collected.get(key, (None, CONTEXTS_FROM))
        if len(references) >= look_at and gc.isenabled():
            alive = self.freed(references, alive)
            in_use = len(references) if alive is None else alive
            self.collected[key] = alive, max(CONTEXTS_FROM, in_use + max(5, in_use // 4))
        return len(references) if alive is None else min(alive, len(references))

    def freed(self, references, alive_before):
        """Return how many of the contexts of these references are in use.

        None if Python has freed all others by itself, now as before. A client that is
        closed may refer to itself, and to its context, and is there until Python collects
        such things, which it does when it likes. So that is done here, but not often: each
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
            number, started = probes.begin_handshake(connection), thread_ms()
            try:
                result = function(connection, *args, **kwargs)
            except Exception as error:
                probes.spent(number, started)
                if not type(error).__name__.startswith(("SSLWant", "Want")):
                    probes.end_handshake(connection, number, False, describe(error))
                raise
            except BaseException:  # a greenlet's time-out, or the user's Ctrl-C
                probes.end_handshake(connection, number, False)
                raise
            probes.spent(number, started)
            probes.end_handshake(connection, number, True)
            return result

        self.replace(kind, "do_handshake", named(do_handshake, function))

    def begin_handshake(self, connection):
        """Note that a handshake begins; return the number of its connection."""
        number = self.number(connection)
        if number not in self.under_way:
            context = getattr(connection, "context", None)
            if context is None and hasattr(connection, "get_context"):
                context = connection.get_context()
            self.under_way[number] = 0
            self.begun_last[ident()] = number
            origin = self.callers(sys._getframe(2))
            if origin["client"] not in PACKAGES.values():
                origin["client"] = client_of_protocol(sys._getframe(2)) or origin["client"]
            wanted_from = [
                self.connected.pop(descriptor(connection), None),
                self.asked.pop(ident(), None),
            ]
            wanted_from = min([moment for moment in wanted_from if moment is not None] or [None])
            values = dict(c=None if context is None else self.number(context), who=origin)
            values.update(loop=running_loop() is not None, since=wanted_from, t=clock())
            values.update(thread=ident(), by=type(connection).__module__)
            values.update(http=origin["client"] in PACKAGES.values())
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
        """Return how many connections of clients are open in this process.

        Of those that have a socket of their own: an event loop's have none, and their loop
        closes them.
        """
        alive = [alive() for alive, pid in list(self.open.values()) if pid == os.getpid()]
        return len([connection for connection in alive if descriptor(connection) not in (None, -1)])

    def end_handshake(self, connection, number, ok, reason=None):
        """Note that a handshake has ended."""
        values = dict(ok=ok, why=reason, ms=round(self.under_way.pop(number, None) or 0, 3))
        if ok:
            values.update(protocol_of(connection))
        else:
            self.accepted.add(number)  # what follows from that is told with it
        self.note("end", h=number, t=clock(), **values)
        if ok and len(self.numbers) > 10000:
            dead = [key for key, (alive, _) in list(self.numbers.items()) if alive() is None]
            for key in dead:
                number = self.numbers.pop(key, (None, None))[1]
                self.talks.pop(number, None)
                self.accepted.discard(number)

    def failing(self, kind, name):
        """Note what a function of a class that makes a connection ends with, if it makes none.

        Unless a handshake has told why.
        """
        function, probes = getattr(kind, name), self

        def connect(connection, *args, **kwargs):
            began = probes.last_handshake()
            try:
                return function(connection, *args, **kwargs)
            except Exception as error:
                probes.note_failure(error, began)
                raise

        self.replace(kind, name, in_globals_of(connect, function))

    def last_handshake(self):
        """Return the number of the connection whose handshake this thread began last."""
        return self.begun_last.get(ident())

    def note_failure(self, error, began):
        """Note what a connection ends with, if no handshake was begun since `began`."""
        if self.active and began == self.last_handshake():
            self.note("failed", why=describe(error))

    def exchanges(self, kind, *sending):
        """Note how often something was sent and answered over the connections of a class.

        sending: the names of its functions that send. A connection that is kept has many
        exchanges.
        """
        for name in sending:
            self.replace(kind, name, self.talking(getattr(kind, name), self.sent))
        self.replace(kind, "read", self.talking(kind.read, self.answered, self.closed))

    def talking(self, function, note, note_end=None):
        """Return a function that sends or reads, and notes that it did, or that all is over."""
        probes = self

        def talk(connection, *args, **kwargs):
            try:
                result = function(connection, *args, **kwargs)
            except Exception as error:
                probes.rejected(connection, error)
                raise
            hear = note if result else note_end
            number = probes.number_if_any(connection) if hear and probes.active else None
            if number is not None:
                try:
                    hear(number, connection)
                except Exception:  # one that another thread has closed
                    pass
            return result

        return named(talk, function)

    def rejected(self, connection, error):
        """Note that a connection ends with an error in the place of a first answer.

        By TLS 1.3 a server may refuse it when the client's part of the handshake is over: as the
        client has shown no certificate, say.
        """
        kinds = [kind.__name__ for kind in type(error).__mro__]
        ends = set(["SSLError", "ConnectionError", "BrokenResourceError"]) & set(kinds)
        waits = kinds[0].startswith("SSLWant") or "timeout" in kinds or "TimeoutError" in kinds
        if ends and not waits:
            self.refused(connection, error)

    def refused(self, connection, error):
        """Note the error of a connection that ends after its handshake, before a first answer."""
        number = self.number_if_any(connection) if self.active else None
        is_over = number is not None and number not in self.under_way  # the handshake
        if is_over and number not in self.accepted:
            self.accepted.add(number)  # it says so once
            self.note("rejected", h=number, why=describe(error))

    def sent(self, number, connection):
        """Note that something was sent over a connection."""
        talk = self.talks.get(number)
        if talk is None:
            h2 = connection.selected_alpn_protocol() == "h2"  # which answers what nobody has asked
            talk = self.talks[number] = {"answered": not h2, "number": 0, "noted": 0}
        if talk["answered"]:
            talk["answered"], talk["number"] = False, talk["number"] + 1
            unreported = talk["number"] - talk["noted"]
            if talk["number"] <= KEPT_FROM or unreported >= talk["noted"]:  # few lines, for many
                talk["noted"] = talk["number"]
                self.note("exchange", h=number, n=unreported)

    def answered(self, number, _connection):
        """Note that something was read from a connection."""
        self.accepted.add(number)
        if self.talks.get(number, {}).get("number"):
            self.talks[number]["answered"] = True

    def closed(self, number, _connection):
        """Note that a connection was ended that something was sent over, and nothing answered."""
        if self.talks.get(number, {}).get("number") and number not in self.accepted:
            self.accepted.add(number)
            self.note("rejected", h=number, why=NO_ANSWER)

    def connects(self, kind):
        """Note when the sockets of a class were connected: from then on they want a handshake."""
        function, probes = kind.connect, self

        def connect(connection, *args, **kwargs):
            result = function(connection, *args, **kwargs)
            if probes.active:
                probes.connected[descriptor(connection)] = clock()
            return result

        self.replace(kind, "connect", named(connect, function))
        self.reaches(kind, "connect")

    def loses(self, kind, name):
        """Note that a connection was lost, by a method of what a loop has around its TLS.

        There the error never comes to a read: `connection_lost` is given it, or what waits for more
        ends with it.
        """
        function, probes = getattr(kind, name), self

        def lose(around, *args, **kwargs):
            pipe = getattr(around, "_sslpipe", None)  # of asyncio's before Python 3.11
            connection = getattr(pipe or around, "_sslobj", None)
            connection = connection or getattr(around, "_ssl_object", None)
            if name == "connection_lost":
                probes.note_loss(connection, args[0])
            result = function(around, *args, **kwargs)
            if hasattr(result, "send") and hasattr(result, "throw"):
                return Reading(result, probes, connection)
            return result

        self.replace(kind, name, named(lose, function))

    def loses_later(self, kind):
        """Note which connections of uvloop's loops are lost, whose own protocols are fixed."""
        function, probes = kind.create_connection, self

        def create_connection(*args, **kwargs):
            return Connecting(function(*args, **kwargs), probes)

        self.replace(kind, "create_connection", named(create_connection, function))

    def note_loss(self, connection, error):
        """Note that a connection of a loop's was lost, if it was by an error.

        The error itself, or the one that it was made of.
        """
        cause = getattr(error, "__cause__", None)
        while cause is not None:
            error, cause = cause, getattr(cause, "__cause__", None)
        if error is not None and connection is not None:
            self.rejected(connection, error)

    def reaches(self, owner, name, place=1):
        """Note what a function ends with that looks for a host or connects to it.

        And, the first time, that it connected to a port. place: of its address among its arguments.
        """
        function, probes, connects = getattr(owner, name), self, name != "getaddrinfo"

        def reach(*args, **kwargs):
            port = kwargs.get("port", port_of(args, place))
            if port is None and connects:  # a socket of this machine
                return function(*args, **kwargs)
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                if getattr(error, "errno", None) not in UNDER_WAY:
                    probes.unreached(error, port)
                raise
            if hasattr(result, "send") and hasattr(result, "throw"):  # a coroutine, of any Python
                return Attempt(result, probes, port, connects)
            if connects:
                probes.reached(port)
            return result

        self.replace(owner, name, named(reach, function))

    def unreached(self, error, port):
        """Note that a port of a host was not reached, unless that of another was."""
        if self.active and (os.getpid(), port) not in self.answered_in:
            is_told = isinstance(error, Exception) and type(error).__name__ != "CancelledError"
            self.note("unreached", why=describe(error) if is_told else GIVEN_UP, port=port)

    def reached(self, port):
        """Note that a port was reached, the first time."""
        if self.active and (os.getpid(), port) not in self.answered_in:
            self.answered_in.add((os.getpid(), port))
            self.note("reached", port=port)

    def raises(self, kind):
        """Note that an exception was made by which a client says that there is no connection."""
        original, probes = kind.__init__, self

        def begin(error, *args, **kwargs):
            original(error, *args, **kwargs)
            if probes.active:
                probes.note("failed", why=describe(error))

        self.replace(kind, "__init__", named(begin, original))

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
                if loop is not None:
                    waited_s = probes.in_a_row(started, waited_s)
                if waited_s >= BLOCKS_FROM_S:
                    origin = probes.callers(sys._getframe(1))
                    if loop is not None:
                        others_waiting = others_wait(loop)
                        kind = type(loop).__module__.partition(".")[0]
                        values = dict(s=round(waited_s, 4), waiting=others_waiting, who=origin)
                        probes.note("block", by="trio" if kind == "trio" else "asyncio", **values)
                    else:
                        probes.note("wait", s=round(waited_s, 4), stood=stalled, who=origin)

        self.replace(kind, name, named(wait, function))

    def in_a_row(self, started, waited_s):
        """Return how long this thread has waited by now, with what was too short to be noted.

        Waits that follow each other within less than the last one's length keep the loop as one.
        """
        ended, short_s = self.short_waits.get(ident(), (0, 0.0))
        if started - ended < waited_s:
            waited_s += short_s
        self.short_waits[ident()] = clock(), waited_s if waited_s < BLOCKS_FROM_S else 0.0
        return waited_s

    def turns_of_greenlets(self):
        """Return how many turns the loop of gevent or eventlet has taken in this thread.

        None if there is none, or if the loop itself asks.
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

        self.replace(kind, "fire_timers", named(fire_timers, function))

    # ------------------------------------------------------------------------------- loops that run

    def runs(self, kind, name="run_forever", turns=False):
        """Look at the loops of a class of asyncio's, or of one like it, while they run.

        turns: whether they are counted as the loop takes them.
        """
        function, probes = getattr(kind, name), self

        def run_forever(loop, *args, **kwargs):
            def waits():
                return others_wait(loop)

            watched = Beats("asyncio", waits, loop.call_soon_threadsafe)
            if turns:
                watched = probes.watched[id(loop)] = Turns("asyncio", waits)
            leave = probes.heartbeat.watch(watched)
            try:
                return function(loop, *args, **kwargs)
            finally:
                leave()
                probes.watched.pop(id(loop), None)

        self.replace(kind, name, named(run_forever, function))

    def makes_tasks(self, kind):
        """Remember the line of the program that has the loops of a class make a task.

        A library's task has none of its own.
        """
        function, probes = kind.create_task, self

        def create_task(loop, *args, **kwargs):
            task = function(loop, *args, **kwargs)
            try:
                probes.stack.tasks[task] = probes.stack.line_of(sys._getframe(1))
            except Exception:  # a task of another kind
                pass
            return task

        self.replace(kind, "create_task", named(create_task, function))

    def takes_turns(self, kind):
        """Count the turns that the loops of a class of asyncio's take."""
        function, probes = kind._run_once, self

        def _run_once(loop):
            watched = probes.watched.get(id(loop))
            if watched is not None:
                watched.turns += 1
            return function(loop)

        self.replace(kind, "_run_once", named(_run_once, function))

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

        self.replace(kind, "_get_conn", named(_get_conn, get))
        self.replace(kind, "_put_conn", named(_put_conn, put_back))

    def hosts(self, kind):
        """Note when a PoolManager makes a pool for a host once more.

        It had to give up the one that it had, with a connection that was open.
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

        self.replace(kind, "_new_pool", named(_new_pool, original))

    # ------------------------------------------------------------------------ when they are put in

    def replace(self, kind, name, value):
        """Put something into a class or a module; `remove` takes it out again."""
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
        self.hook.remove()
        self.undo = []

    def install(self):
        """Put the probes into what is imported already, and into the rest when it comes."""
        for name in set(PROBED) | set(OWN_TLS) | set(self.changes):
            if sys.modules.get(name) is not None:
                self.probe(name, sys.modules[name])
        self.hook.install(self.replace)
        return self

    def is_probed(self, name):
        """Return whether there is a probe for a module."""
        return name in PROBED or name in OWN_TLS or name in self.changes

    def probe(self, name, module):
        """Put the probes into a module, and the changes."""
        try:
            if name in PROBED:
                PROBED[name](self, module)
            if name in OWN_TLS:
                self.note("own tls", name=OWN_TLS[name])
            if name in self.changes:
                self.changes[name](module)
        except Exception as error:  # a module that only has the name of the one that is meant
            self.note("unprobed", module=name, why=readable(error))


class Awaited(object):
    """Awaits a coroutine, and has `note_value` or `note_error` hear what it ends with."""

    def __init__(self, coroutine, probes):
        self.coroutine, self.probes = coroutine, probes

    def __await__(self):
        return self

    __iter__ = __await__

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Go on with it."""
        return self.go_on(self.coroutine.send, value)

    def throw(self, *error):
        """Go on with it, with an exception."""
        return self.go_on(self.coroutine.throw, *error)

    def close(self):
        """Give it up."""
        self.coroutine.close()

    def go_on(self, function, *args):
        """Return what a function of the coroutine's does."""
        try:
            return function(*args)
        except StopIteration as end:
            self.note_value(end.value)
            raise
        except BaseException as error:  # also one that was cancelled, as its time was over
            self.note_error(error)
            raise

    def note_value(self, value):
        """Hear what came of it."""

    def note_error(self, error):
        """Hear which error it ended with."""


class Attempt(Awaited):
    """Awaits a coroutine that looks for a host or connects to it, and notes what it ends with."""

    def __init__(self, coroutine, probes, port, connects):
        Awaited.__init__(self, coroutine, probes)
        self.port, self.connects = port, connects

    def note_value(self, _value):
        """Note that the port was reached."""
        if self.connects:
            self.probes.reached(self.port)

    def note_error(self, error):
        """Note that it was not."""
        self.probes.unreached(error, self.port)


class Reading(Awaited):
    """Awaits a coroutine that reads over a connection, and notes that it was lost."""

    def __init__(self, coroutine, probes, connection):
        Awaited.__init__(self, coroutine, probes)
        self.connection = connection

    def note_error(self, error):
        """Note that the connection was lost."""
        self.probes.note_loss(self.connection, error)


class Connecting(Awaited):
    """Awaits a coroutine of uvloop's that connects, and watches its connection."""

    def note_value(self, value):
        """Note later that the connection was lost."""
        transport, protocol = value
        connection = transport.get_extra_info("ssl_object")
        if connection is None or not hasattr(protocol, "__dict__"):
            return
        probes, lose = self.probes, protocol.connection_lost

        def connection_lost(error):
            probes.note_loss(connection, error)
            return lose(error)

        protocol.connection_lost = named(connection_lost, lose)


class Counting(object):
    """A `with` block that counts what happens in this process, in all its threads.

    `counts` is a dictionary as `Counts`; loads, handshakes, connections and contexts are there
    by their names.
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
        """Return what was counted so far, a dictionary as `Counts`."""
        return count_events(list(self._events))

    def __getattr__(self, name):
        if name in ("loads", "handshakes", "connections", "contexts"):
            return self.counts[name]
        raise AttributeError(name)


#: As a program calls it: `with counting() as counter`.
counting = Counting


def trust_of(name, args, kwargs):
    """Return what is loaded, so that the same can be told from another.

    A file's path, "system", or a digest of what was given in memory. None for a folder alone,
    which is read later.
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


def client_of_protocol(frame):
    """Return the client whose protocol stands on asyncio's TLS; None if there is none.

    asyncio shakes hands in a turn of its own, with no frame of the client's.
    """
    for _ in range(6):
        if frame is None:
            break
        protocol = getattr(frame.f_locals.get("self"), "_app_protocol", None)
        if protocol is not None:
            return PACKAGES.get(type(protocol).__module__.partition(".")[0])
        frame = frame.f_back
    return None


def is_default(caller):
    """Return whether the program's own code had create_default_context make a context."""
    maker = caller.f_code.co_name == "create_default_context" and caller.f_back
    return bool(maker) and not is_library(maker.f_code.co_filename)


def is_open(pool):
    """Return whether a pool of urllib3's keeps a connection that the server has not closed."""
    dropped = sys.modules["urllib3.util.connection"].is_connection_dropped
    connections = [
        connection
        for connection in list(pool.pool.queue)
        if getattr(connection, "sock", None) is not None
    ]
    return any(not dropped(connection) for connection in connections)
