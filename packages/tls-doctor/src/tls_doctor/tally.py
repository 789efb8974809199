"""The tally of a run: its events, counted."""

from __future__ import division, print_function

from .basis import Record, nothing
from .clients import client_named
from .verdicts import (
    ANEW_FROM,
    HELD_UP_IN_A_ROW_FROM_MS,
    KEPT_FROM,
    TOO_MANY_H2_FROM,
    growth,
    has_to_load,
    is_kept,
    longest_queue,
    note_place,
)

#: What is said of a handshake that was given up, as its time was over, or that waits still.
UNENDED = "the handshake did not come to an end"


class Stall(Record):
    """The waits that kept a running event loop from everything else."""

    FIELDS = (
        ("by", nothing, "the loop: asyncio, trio, gevent or eventlet"),
        ("times", int, "how often"),
        ("s", int, "seconds, all together"),
        ("waiting_s", int, "of these, while others waited for the loop"),
        ("clients", list, "[client that waited, times]"),
        ("at", list, "[line of the program, times]"),
    )
    __slots__ = Record.names_of(FIELDS)


class GreenletStall(Record):
    """What the loop of greenlets did while clients waited for replies."""

    FIELDS = (
        ("fetched", bool, "greenlets fetched, or the main program did while some waited"),
        ("in_greenlets", bool, "greenlets fetched themselves"),
        ("waits", int, "waits that were long"),
        ("times", int, "of these, how many the loop stood still through"),
        ("s", int, "seconds that it stood still"),
        ("clients", list, "[client that waited, times]"),
        ("at", list, "[line of the program, times]"),
    )
    __slots__ = Record.names_of(FIELDS)


class LoopLoads(Record):
    """Loads of certificates under a running loop of asyncio or trio."""

    FIELDS = (
        ("loads", int, "how many"),
        ("spare", int, "of these, not needed, and of a client that could do without"),
        ("waiting", int, "of these, while others waited"),
        ("ms", int, "milliseconds of CPU of all"),
        ("held_ms", int, "of those while others waited"),
        ("longest_ms", int, "the longest time in a row, while others waited"),
        ("at", list, "[line of the program, times]"),
    )
    __slots__ = Record.names_of(FIELDS)


class Load(Record):
    """A load of certificates, which is counted anew if its context gets a client certificate."""

    FIELDS = (
        ("row", nothing, "the row that it is counted in"),
        ("key", nothing, "(process, client, certificates, client certificate)"),
        ("is_spare", bool, "it was not needed"),
        ("ms", int, "milliseconds of CPU"),
        ("loop", bool, "it was in the thread of a running loop"),
        ("span", nothing, "(when it began, when it ended)"),
        ("thread", nothing, "the thread that made it"),
    )
    __slots__ = Record.names_of(FIELDS)


class ClientRow(Record):
    """What one client did for one library that called it, or for the program."""

    FIELDS = (
        ("client", nothing, "its name; None: the program's own code"),
        ("through", nothing, "the library that called it"),
        ("kind", nothing, "the class of another's, made of its own, that it is an object of"),
        ("call", nothing, "the library's function that made all loads, as `function_called` tells"),
        ("contexts", int, "contexts that it made"),
        ("default", int, "of these, made by create_default_context for the program's own code"),
        ("loads", int, "loads of certificates"),
        ("needed", int, "one load for each process and set of certificates, and `raced`"),
        ("raced", int, "by threads that wanted one context and did not wait for the first load"),
        ("load_ms", int, "milliseconds of CPU of all loads"),
        ("spare_ms", int, "of those that were not needed"),
        ("spare_on_loop", int, "of those that were not needed, under a running loop"),
        ("connections", int, "connections whose handshake began"),
        ("http", lambda: True, "the doctor knows the client of all of these"),
        ("requests", nothing, "requests; None: nobody tells"),
        ("exchanges", int, "of something sent and an answer, at least"),
        ("kept", bool, "its connections are kept, for several requests or beside each other"),
        (
            "alive",
            int,
            "contexts with the same certificates at once, in one process; with a client "
            "certificate, those that show the same one",
        ),
        ("at", list, "[line of the program that loaded, times]"),
        ("trusts", list, "[certificates that were loaded, times]"),
        ("by", list, "[module of its contexts' class, times]"),
        ("awaits", int, "loads by clients that await"),
        ("full", int, "connections of urllib3's closed for want of a place in their pool"),
        ("evicted", int, "pools made again for a host, as a PoolManager keeps fewer than it has"),
        ("size", dict, 'what such a pool ("full") or manager ("evicted") holds'),
        ("wanted", dict, "what was asked of it"),
        ("closed", dict, 'replies that ended their connection, by "program" or "server"'),
        ("closers", set, "the connections of http.client's that were ended so: their number"),
        ("closed_at", list, "[line of the program, times]"),
        ("open", int, "connections at once"),
        ("peak", int, "handshakes at once, in one process"),
        ("threads", set, "the threads that made connections: their number"),
    )
    __slots__ = Record.names_of(FIELDS)

    @property
    def spare(self):
        """Return how many loads were not needed."""
        return self.loads - self.needed

    def lists(self):
        """Return its lists of [what, times]."""
        return self.at, self.trusts, self.by


class Counts(Record):
    """The counts of a run. In a report they are a dictionary, `counts`."""

    FIELDS = (
        ("processes", int, "that used TLS"),
        ("cpu_ms", int, "of all, from when their code begins, without `compiled_ms`"),
        ("compiled_ms", int, "in which Python compiled modules: it does that once"),
        ("contexts", int, "that were made"),
        ("loads", int, "loads of certificates"),
        (
            "needed",
            int,
            "one load for each client, process, set of certificates and client certificate; "
            "and `raced`",
        ),
        ("raced", int, "loads of threads that wanted one context and did not wait for the first"),
        ("load_ms", int, "milliseconds of CPU of all loads"),
        ("spare_ms", int, "of those that were not needed"),
        ("share", int, "of these in the CPU, in percent"),
        ("again", int, "loads that were not needed, of connections that are not kept"),
        ("again_share", int, "of these in the CPU, in percent"),
        ("connections", int, "connections of clients whose handshake began"),
        ("handshakes", int, "that came through"),
        ("failed", int, "that did not"),
        ("peak", int, "handshakes under way at once, in one process"),
        ("handshake_ms", int, "milliseconds of CPU of the handshakes that ended"),
        ("handshake_s", int, "seconds from their begin to their end"),
        ("open", int, "connections at once, each process at its most"),
        ("under_loop", int, "connections made under a running loop of asyncio or trio"),
        ("failures", list, "[what a connection ended with, times]"),
        ("queue", nothing, "of handshakes that waited for each other, as `longest_queue` has it"),
        ("http2", list, "hosts that speak HTTP/2 and were given several connections by a process"),
        ("unkept", list, "hosts that a client connected to again and again, one after the other"),
        ("sessions", int, "of requests, that asked by HTTPS"),
        ("pools", int, "of urllib3's that were made"),
        ("botocores", int, "clients of botocore's"),
        ("alive", int, "contexts with the same certificates at once, in one process"),
        ("context_mib", int, "by which memory grew during loads"),
        ("collected", int, "contexts that were freed only when the doctor had Python collect"),
        ("left", int, "processes of these that ran on when the program had ended"),
        ("dropped", int, "open connections that were closed only then"),
        ("on_loop", LoopLoads, "loads under a running loop"),
        ("blocked", lambda: Stall(by="asyncio"), "of asyncio and trio, by clients"),
        ("silent", Stall, "of all loops: turns that took long while their thread waited"),
        ("stood", GreenletStall, "of greenlets, while the program ran"),
        ("heartbeats", list, "the loops that were looked at"),
        ("own_tls", list, "what was imported and brings TLS of its own"),
        ("truststore", list, "where it was injected"),
        ("injections", list, "where pyOpenSSL was injected"),
        ("uncounted", list, "why something was not counted"),
        ("unprobed", list, "why a module was not probed"),
        ("clients", list, "a `ClientRow` each, the one with the most loads first"),
    )
    __slots__ = Record.names_of(FIELDS)


def count_events(events):
    """Return the counts of a run, a dictionary as `Counts`, of its events in the order of time."""
    tally = Tally()
    for event in events:
        tally.add(event)
    return tally.finish()


class Tally(object):
    """Counts the events of a run, which `add` takes in the order of time; `finish` returns them.

    There is a method for each kind of event that is counted; HANDLERS names it.
    """

    def __init__(self):
        self.total = Counts()
        self.rows = {}  # (client, through): its row
        self.makers, self.first_makers = {}, {}  # context of a process, and of any: who
        # By process.
        self.cpu_ms, self.started_ms, self.compiled_ms, self.trial_ms = {}, {}, {}, 0
        self.programs, self.under_way, self.open = set(), {}, {}
        self.memory_spans, self.streaks = {}, {}
        self.known_loads = set()  # (process, client, certificates, client certificate)
        # By (process, context): client certificate, `Load`s, threads that connected with it.
        self.identities, self.loads, self.users = {}, {}, {}
        # By (process, connection).
        self.waits, self.begun, self.row_of_connection = {}, {}, {}
        self.shaking = {}  # (process, row): its handshakes under way
        self.last_row = {}  # (process, client): of its last connection
        # By (process, context): handshakes, and spans of time in which it was loaded.
        self.handshakes, self.load_spans = {}, {}
        self.http2 = {}  # as `connected`, of those that speak HTTP/2
        self.awaited = set()  # connections made under a running loop
        self.connected = {}  # (process, client that connected, host): its connections
        self.connector, self.exchanges = {}, {}  # by (process, connection)
        self.most_open = {}  # (process, client that connected): connections at once
        self.unended = 0  # handshakes that ended without a reason
        self.unreached, self.reached = {}, set()  # by port

    def add(self, event):
        """Count one event."""
        kind, pid = event["is"], event["pid"]
        cpu_before = self.cpu_ms.get(pid, 0)
        self.cpu_ms[pid] = max(event["cpu"], cpu_before)
        if kind in ("process", "start"):
            # Until here it was Python that began, and the doctor. (A program that another has taken
            # the place of had this process before.)
            spent_ms = self.cpu_ms[pid] - cpu_before
            self.started_ms[pid] = self.started_ms.get(pid, 0) + spent_ms
            self.compiled_ms[pid] = event["compiled"]
        else:
            compiled_before = self.compiled_ms.get(pid, 0)
            self.compiled_ms[pid] = max(event["compiled"], compiled_before)
            self.total.compiled_ms += self.compiled_ms[pid] - compiled_before
        if kind in self.HANDLERS:
            self.HANDLERS[kind](self, event)

    def row_of(self, origin):
        """Return the row of a call, as `Probes.callers` tells of it."""
        key = origin["client"], origin["through"]
        if key not in self.rows:
            self.rows[key] = ClientRow(client=key[0], through=key[1])
        return self.rows[key]

    # ------------------------------------------------------------------------------------ processes

    def on_start(self, event):
        """Count a process that runs the program."""
        self.programs.add(event["pid"])

    def on_trial(self, event):
        """Leave out what the doctor used itself."""
        self.trial_ms += event["ms"]

    def on_collected(self, event):
        """Count what a collection by the doctor alone has freed."""
        self.total.dropped += event["connections"]
        self.total.collected += event["contexts"]

    # --------------------------------------------------------------------------- contexts and loads

    def on_context(self, event):
        """Count a context that was made."""
        self.makers[context_of(event)] = self.first_makers[event["c"]] = event["who"]
        self.total.contexts += 1
        row = self.row_of(event["who"])
        row.contexts += 1
        row.default += event["default"]

    def on_load(self, event):
        """Count a load of certificates."""
        context, pid = context_of(event), event["pid"]
        self.makers[context] = self.first_makers[event["c"]] = event["who"]
        row, identity = self.row_of(event["who"]), self.identities.get(context)
        key = pid, event["who"]["client"], event["trust"], identity
        is_spare = key in self.known_loads
        for tally in (row, self.total):
            tally.loads += 1
            tally.load_ms += event["ms"]
            tally.needed += not is_spare
            tally.spare_ms += event["ms"] if is_spare else 0
            tally.alive = max(tally.alive, event["alive"])
        self.memory_spans.setdefault(pid, []).append([event["since"], event["t"]] + event["kib"])
        self.load_spans.setdefault(context, []).append((event["since"], event["t"]))
        if event["loop"]:
            self.count_loop_load(event, is_spare)
            row.spare_on_loop += is_spare
        self.known_loads.add(key)
        load = Load(row=row, key=key, is_spare=is_spare, ms=event["ms"], loop=event["loop"],
                    span=(event["since"], event["t"]), thread=event["thread"])  # fmt: skip
        self.loads.setdefault(context, []).append(load)
        row.awaits += bool(event["who"].get("awaits"))
        row.kind = event["who"].get("kind") or row.kind
        call = event["who"].get("call")
        row.call = call if call == row.call or row.loads == 1 else None
        note_place(row.at, event["who"]["at"])
        note_place(row.trusts, event["trust"])
        note_place(row.by, event["by"])

    def on_identity(self, event):
        """Count the loads of a context anew: no other can show its client certificate."""
        context = context_of(event)
        self.identities[context] = event["identity"]
        for load in self.loads.get(context, ()):
            key = load.key[:-1] + (event["identity"],)
            if key == load.key:
                continue
            if not load.is_spare:  # a context with another certificate, or none, needs one
                self.known_loads.discard(load.key)
            change = int(key in self.known_loads) - int(load.is_spare)
            for tally in (load.row, self.total):
                tally.alive = max(tally.alive, event["alive"])
                tally.needed -= change
                tally.spare_ms += change * load.ms
            if load.loop:
                self.total.on_loop.spare += change
                load.row.spare_on_loop += change
            self.known_loads.add(key)
            load.key, load.is_spare = key, load.is_spare + change == 1

    def count_loop_load(self, event, is_spare):
        """Count a load under a running loop."""
        on_loop, pid = self.total.on_loop, event["pid"]
        on_loop.loads += 1
        on_loop.spare += is_spare
        on_loop.waiting += event["waiting"]
        on_loop.ms = round(on_loop.ms + event["ms"], 1)
        # Loads that follow each other hold the loop up as one.
        load_start, load_end = event["since"], event["t"]
        streak = self.streaks.get(pid)
        if streak is None or load_start - streak[1] > 0.001 * HELD_UP_IN_A_ROW_FROM_MS:
            streak = self.streaks[pid] = [load_start, load_end]
        streak[1] = load_end
        if event["waiting"]:
            longest_ms = 1000 * (streak[1] - streak[0])
            on_loop.held_ms = round(on_loop.held_ms + event["ms"], 1)
            on_loop.longest_ms = round(max(on_loop.longest_ms, longest_ms), 1)
        note_place(on_loop.at, event["who"]["at"])

    def on_truststore(self, event):
        """Note where truststore was injected."""
        self.total.truststore.append(event["where"])

    def on_injection(self, event):
        """Note where pyOpenSSL was injected."""
        self.total.injections.append(event["where"])

    # ------------------------------------------------------------------- handshakes and connections

    def on_begin(self, event):
        """Count a connection, and its handshake as under way."""
        context, pid, connection = context_of(event), event["pid"], connection_of(event)
        # Made by a process that forked, or before anybody looked.
        maker = self.makers.get(context) or (event["c"] and self.first_makers.get(event["c"]))
        row = self.row_of_connection[connection] = self.row_of(maker or event["who"])
        self.waits[connection] = {}
        self.total.connections += 1
        self.total.under_loop += bool(event["loop"])
        self.awaited |= set([connection] if event["loop"] else [])
        row.connections += 1
        self.last_row[pid, event["who"]["client"]] = row
        row.http = row.http and event["http"]
        self.under_way[pid] = self.under_way.get(pid, 0) + 1
        self.total.peak = max(self.total.peak, self.under_way[pid])
        self.open[pid] = max(self.open.get(pid, 0), event["open"])
        row.open = max(row.open, event["open"])
        key = self.connector[connection] = pid, event["who"]["client"]
        self.most_open[key] = max(self.most_open.get(key, 0), event["open"])
        row.threads.add(event["thread"])
        self.users.setdefault(context, set()).add(event["thread"])
        of_row = self.shaking.setdefault((pid, id(row)), set())
        of_row.add(connection)
        row.peak = max(row.peak, len(of_row))
        self.begun[connection] = event["t"], of_row
        if event["since"] is not None:
            span = {name: event[name] for name in ("since", "t", "thread", "by")}
            self.waits[connection] = dict(span, end=None)
            self.handshakes.setdefault(context, []).append(self.waits[connection])

    def on_end(self, event):
        """Count a handshake that ended, if its begin was seen."""
        connection = connection_of(event)
        if connection not in self.waits:
            return
        self.waits.pop(connection)["end"] = event["t"]
        if event["ok"]:
            self.total.handshakes += 1
        else:
            self.total.failed += 1
            self.unended += event.get("why") is None
            note_place(self.total.failures, event.get("why"))
        self.under_way[event["pid"]] -= 1
        start, of_row = self.begun.pop(connection)
        of_row.discard(connection)
        self.total.handshake_ms += event["ms"]
        self.total.handshake_s += event["t"] - start
        if event["ok"] and event.get("host"):
            key = self.connector[connection] + (event["host"],)
            self.connected.setdefault(key, []).append(connection)
        if event.get("alpn") == "h2" and event.get("host"):
            pid, client = self.connector[connection]  # its frames are gone where a loop connects
            client = client or self.row_of_connection[connection].client
            key = pid, client, event["host"]
            self.http2.setdefault(key, []).append(connection)

    def on_failed(self, event):
        """Count a connection that was never made."""
        note_place(self.total.failures, event["why"])

    def on_unreached(self, event):
        """Note that a port of a host was not reached."""
        note_place(self.unreached.setdefault(event["port"], []), event["why"])

    def on_reached(self, event):
        """Note that a port was reached."""
        self.reached.add(event["port"])

    def on_rejected(self, event):
        """Take a handshake back after which the server has ended the connection."""
        if connection_of(event) in self.row_of_connection:
            self.total.handshakes -= 1
            self.total.failed += 1
            note_place(self.total.failures, event["why"])

    def on_exchange(self, event):
        """Count what went over a connection whose begin was seen."""
        if connection_of(event) in self.row_of_connection:
            self.row_of_connection[connection_of(event)].exchanges += event["n"]
            exchanges = self.exchanges.get(connection_of(event), 0)
            self.exchanges[connection_of(event)] = exchanges + event["n"]

    def on_request(self, event):
        """Count a request, if its context is known."""
        maker = self.makers.get(context_of(event)) or self.first_makers.get(event["c"])
        if maker:
            row = self.row_of(maker)
            row.requests = 1 + (row.requests or 0)

    def on_closing(self, event):
        """Count a reply that ends its connection."""
        row = self.row_of(self.makers.get(context_of(event)) or event["who"])
        if not row.connections:  # its client got the program's own context
            row = self.last_row.get((event["pid"], event["who"]["client"]), row)
        row.closed[event["by"]] = row.closed.get(event["by"], 0) + 1
        note_place(row.closed_at, event["who"]["at"])
        if event.get("h"):
            row.closers.add(connection_of(event))

    # ----------------------------------------------------------------------- what keeps connections

    def on_session(self, _):
        """Count a session of requests."""
        self.total.sessions += 1

    def on_pool(self, _):
        """Count a PoolManager of urllib3's."""
        self.total.pools += 1

    def on_botocore(self, _):
        """Count a client of botocore's."""
        self.total.botocores += 1

    def on_full(self, event):
        """Count a connection that was closed for want of a place in its pool."""
        row = self.row_of(self.makers.get(context_of(event)) or event["who"])
        row.full += 1
        self.count_size(row, event)

    def on_evicted(self, event):
        """Count a pool that a manager had to make again."""
        row = self.row_of(event["who"])
        row.evicted += 1
        self.count_size(row, event)

    def count_size(self, row, event):
        """Note how large a pool or a manager was, and what was wanted of it."""
        for sizes, name in ((row.size, "size"), (row.wanted, "wanted")):
            sizes[event["is"]] = max(event[name], sizes.get(event["is"], 0))

    # ------------------------------------------------------------------------------------ the loops

    def on_heartbeat(self, event):
        """Note a loop that is looked at."""
        if event["by"] not in self.total.heartbeats:
            self.total.heartbeats.append(event["by"])

    def on_own_tls(self, event):
        """Note what brings TLS of its own."""
        if event["name"] not in self.total.own_tls:
            self.total.own_tls.append(event["name"])

    def on_block(self, event):
        """Count a wait of a client that does not await."""
        blocked = self.total.blocked
        blocked.times += 1
        blocked.by = event["by"]
        blocked.s = round(blocked.s + event["s"], 4)
        blocked.waiting_s = round(blocked.waiting_s + event["waiting"] * event["s"], 4)
        note_place(blocked.clients, event["who"]["client"])
        note_place(blocked.at, event["who"]["at"])

    def on_silence(self, event):
        """Count a turn of a loop that took long."""
        silent = self.total.silent
        silent.times += 1
        silent.by = event["by"]
        silent.s = round(silent.s + event["s"], 4)
        if event["waiting"]:
            silent.waiting_s = round(silent.waiting_s + event["s"], 4)
            note_place(silent.clients, event["who"]["client"])
            note_place(silent.at, event["who"]["at"])

    def on_greenlet(self, event):
        """Note that greenlets fetch."""
        self.total.stood.fetched = True
        self.total.stood.in_greenlets |= event["itself"]

    def on_wait(self, event):
        """Count a wait for a reply beside greenlets."""
        stalls = self.total.stood
        stalls.waits += 1
        if event["stood"]:
            stalls.times += 1
            stalls.s = round(stalls.s + event["s"], 4)
            note_place(stalls.clients, event["who"]["client"])
            note_place(stalls.at, event["who"]["at"])

    # ---------------------------------------------------------------------------- what was not seen

    def on_uncounted(self, event):
        """Note why nothing more was counted."""
        self.total.uncounted.append(event["why"])

    def on_unprobed(self, event):
        """Note why a module was not probed."""
        self.total.unprobed.append(event["why"])

    HANDLERS = {
        "start": on_start, "trial": on_trial, "collected": on_collected, "context": on_context,
        "load": on_load, "identity": on_identity, "truststore": on_truststore,
        "injection": on_injection,
        "begin": on_begin, "end": on_end, "failed": on_failed, "unreached": on_unreached,
        "reached": on_reached, "rejected": on_rejected, "exchange": on_exchange,
        "request": on_request, "closing": on_closing, "session": on_session, "pool": on_pool,
        "botocore": on_botocore,
        "full": on_full, "evicted": on_evicted, "heartbeat": on_heartbeat,
        "own tls": on_own_tls, "block": on_block, "silence": on_silence,
        "greenlet": on_greenlet, "wait": on_wait, "uncounted": on_uncounted,
        "unprobed": on_unprobed,
    }  # fmt: skip

    # ----------------------------------------------------------------------------------- the counts

    def finish(self):
        """Return the counts, a dictionary as `Counts`; nothing can be added to them."""
        total = self.total
        if not total.handshakes:  # else others than the counted were meant
            for port in sorted(set(self.unreached) - self.reached, key=str):
                total.failures += self.unreached[port]
            unended = len(self.begun) + self.unended
            total.failures += [[UNENDED, unended]] if unended else []
        self.forgive_races()
        pids = [pid for pid, _ in self.makers]
        total.processes = len(set(pids) | set(self.under_way) | self.programs)
        total.cpu_ms = sum(self.cpu_ms[pid] - self.started_ms.get(pid, 0) for pid in self.cpu_ms)
        total.cpu_ms -= self.trial_ms
        total.context_mib = sum(growth(spans) for spans in self.memory_spans.values()) / 1024
        total.queue = longest_queue(self.handshakes, self.load_spans)
        total.open = sum(self.open.values())
        total.http2, total.unkept = self.crowded_hosts(), self.hosts_met_anew()
        total.clients = sorted(self.rows.values(), key=lambda row: (-row.loads, -row.connections))
        for places in [total.on_loop.at] + [each for row in total.clients for each in row.lists()]:
            places.sort(key=lambda pair: -pair[1])  # what is told first is what came most often
        for tally in total.clients + [total]:
            tally.load_ms, tally.spare_ms = round(tally.load_ms, 1), round(tally.spare_ms, 1)
        for name, digits in (("cpu_ms", 1), ("compiled_ms", 1), ("context_mib", 1),
                             ("handshake_ms", 1), ("handshake_s", 3)):  # fmt: skip
            setattr(total, name, round(getattr(total, name), digits))
        sums = total.as_dict()
        for row in total.clients:
            row.threads, row.closers = len(row.threads), len(row.closers)
            row.kept = is_kept(row.as_dict(), sums)
            if row.kept and has_to_load(row.as_dict()):
                total.on_loop.spare -= row.spare_on_loop  # each of its connections has to load
        self.count_shares()
        return total.as_dict()

    def forgive_races(self):
        """Count loads as needed whose threads wanted one context, and did not wait for the first.

        That happens once: each of them loads once, while another does, and what one of them has
        loaded is used by several.
        """
        groups = {}
        for context, loads in self.loads.items():
            for load in loads:
                groups.setdefault(load.key, []).append((load.span, context, load))
        for group in groups.values():
            group.sort(key=lambda item: item[0])
            shared = any(len(self.users.get(context, ())) > 1 for _, context, _ in group)
            if not shared or not is_race([load for _, _, load in group]):
                continue
            for load in [load for _, _, load in group if load.is_spare]:
                for tally in (load.row, self.total):
                    tally.raced += 1
                    tally.needed += 1
                    tally.spare_ms -= load.ms
                if load.loop:
                    self.total.on_loop.spare -= 1
                    load.row.spare_on_loop -= 1

    def count_shares(self):
        """Count what the loads that were not needed took of the CPU."""
        total = self.total
        whole_ms = max(total.cpu_ms, total.spare_ms, 0.1)
        total.share = round(100 * total.spare_ms / whole_ms, 1)
        ill = [row for row in total.clients if not row.kept]
        total.again = sum(row.spare for row in ill)
        total.again_share = round(100 * sum(row.spare_ms for row in ill) / whole_ms, 1)

    def crowded_hosts(self):
        """Return rows of {"client", "host", "connections", "awaits"} where one would do, by HTTP/2.

        "awaits": they were made under a running loop.
        """
        largest = {}  # another process has to connect for itself
        for (_, client, host), connections in self.http2.items():
            largest[client, host] = max(connections, largest.get((client, host), []), key=len)
        rows = [
            {
                "client": client, "host": host, "connections": len(connections),
                "awaits": self.awaited.issuperset(connections),
            }
            for (client, host), connections in largest.items()
            if len(connections) >= TOO_MANY_H2_FROM
        ]  # fmt: skip
        return sorted(rows, key=lambda row: -row["connections"])

    def hosts_met_anew(self):
        """Return rows of {"client", "host", "connections"} of hosts that were met again and again.

        By a client that can keep its connections, for a request or two each, and not beside each
        other.
        """
        hosts = []
        for (pid, client, host), connections in self.connected.items():
            # Of those without one nobody tells: Python 2.7's, say, and gevent's.
            short = [key for key in connections if 0 < self.exchanges.get(key, 0) < KEPT_FROM]
            one_by_one = len(short) >= 2 * self.most_open[pid, client]
            if client_named(client).reuses and len(short) >= ANEW_FROM and one_by_one:
                hosts.append({"client": client, "host": host, "connections": len(short)})
        return sorted(hosts, key=lambda row: (-row["connections"], row["host"]))


def is_race(loads):
    """Return whether loads, in the order of their begin, are of a thread each that overlap."""
    threads = set(load.thread for load in loads)
    end = loads[0].span[1]
    for load in loads:
        if load.span[0] > end:
            return False
        end = max(end, load.span[1])
    return len(threads) == len(loads)


def context_of(event):
    """Return (process, number of the context) of an event; its number may be None."""
    return event["pid"], event["c"]


def connection_of(event):
    """Return (process, number of the connection) of an event."""
    return event["pid"], event["h"]
