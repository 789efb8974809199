"""What a run did, from the events of its probes."""

from __future__ import division, print_function

import bisect

from .basis import (
    DOES_NOT_APPLY,
    FEW,
    FREE,
    HELD_UP,
    NOT_IN_A_ROW,
    ONCE,
    ONE_AT_A_TIME,
    ONE_FOR_EACH,
    REPEATED,
    TOO_MANY_FROM,
    UNSEEN,
)

#: With this many requests, or exchanges, for each connection, they are kept.
KEPT_FROM = 3
#: The loads of connections that are kept, in percent of the CPU.
KEPT_SHARE = 20
#: Loads hold a loop up that take so many milliseconds while others wait, and so many in a row.
HELD_UP_FROM_MS, HELD_UP_IN_A_ROW_FROM_MS = 20, 5
#: This many connections to one host that speaks HTTP/2 are too many: one would do.
TOO_MANY_H2_FROM = 3
#: A share that is at most this many times the limit, or as little of it, is near it.
NEAR = 1.25
#: Fewer connections than these, when they are kept, are no illness: their loads do not grow.
KEPT_LOADS_FROM = 10
#: Handshakes wait for each other, where so many were wanted at once, never two were under way, and
#: they waited for one that was for so long in all.
WANTED_FROM = 3
WAITED_FROM_S = 0.2
#: This many contexts with the same certificates, alive at once in a process, are too many; the
#: second number is for contexts that belong to a connection each that is kept, as in requests.
CONTEXTS_FROM = 10
KEPT_CONTEXTS_FROM = 100


def counted(events):
    """Return the counts of a run, a dictionary, from what `Probes` noted, in the order of time.

    processes (that used TLS), cpu_ms (of all, from when their code begins, without compiled_ms, in
    which Python compiled modules: it does that once); contexts, loads, load_ms; needed: one load
    for each client, process and set of certificates; spare_ms: what the others took; connections
    (of clients that began a handshake), handshakes (that came through), failed, peak (handshakes
    under way at once in one process), under_loop (connections made under a running loop of asyncio
    or trio); blocked: of such loops, {"by" (asyncio or trio), "times", "s", "waiting_s" (while
    others waited), "clients", "at"}; silent: of all loops, {"by", "times", "s", "waiting_s" (while
    others waited), "clients", "at"} of turns that took long while their thread waited, whatever
    for; heartbeats: the loops that were looked at; own_tls: what was imported and brings TLS of its
    own; on_loop: of loads under such a loop, {"loads", "spare",
    "waiting" (while others waited), "ms", "held_ms" (of those), "longest_ms" (in a row), "at"};
    failures: [what a connection ended with, times]; handshake_ms (of CPU) and handshake_s (from
    begin to end) of those that ended; http2: rows of {"client", "host", "connections"}, where a
    host that speaks HTTP/2 was given several by one process; botocores: clients of botocore's;
    collected, dropped: contexts, and open connections, that were freed only when the doctor had
    Python collect; truststore: where it was injected; stood: of the loops of greenlets, {"fetched"
    (whether greenlets did, or the main program while some waited), "in_greenlets" (whether they
    did themselves), "waits" (that were long), "times" and "s" (through which the loop stood
    still), "clients", "at"}; sessions (of requests, that asked by HTTPS) and pools (of urllib3)
    that were made; open (connections at once, each process at its most); queue: of the handshakes
    of one context in one process, where they waited longest for each other from when their sockets
    were connected, {"by" (the module of its sockets' class), "wanted" and "peak" (at once),
    "handshakes", "waited_s" (while nothing was loaded into it), "behind_s" (of that, while one of
    another thread was under way)} or None; alive (contexts with the same certificates at once, in
    one process), context_mib (by which memory grew during loads); clients: a row of {"client",
    "through", "contexts", "default" (of these, made by create_default_context for the program's own
    code), "loads", "needed", "connections", "http" (whether the doctor knows the client of all
    these), "requests" (None where nobody tells), "exchanges" (of something sent and an answer, so
    many at least), "load_ms", "spare_ms", "kept", "alive", "at", "trusts", "by" (the modules of its
    contexts' classes), "awaits" (loads by clients of httpx that await), "full" (connections of
    urllib3's that were closed because their pool had no place for them), "evicted" (pools that were
    made again for a host, since their PoolManager keeps fewer than it has hosts), "size" and
    "wanted" (for each of the two, what such a pool or manager holds, and what was asked of it),
    "closed" (by "program" or "server": Connection: close), "closers" (how many of http.client's
    connections were ended so: each may connect again), "closed_at", "open", "peak" (handshakes at
    once) and "threads" (that made connections)} for each client and each library that called it,
    the one with the most loads first. kept: its connections are, for several requests each, or each
    beside the others.
    """
    rows, makers, began, first, known_keys, spoken = {}, {}, {}, {}, set(), {}
    cpu, started, compiled, trial_ms, under_way, shaken, opened = {}, {}, {}, 0, {}, {}, {}
    loading, memory_spans, programs, holding = {}, {}, set(), {}
    shaking, since_begun, multiplexed, latest = {}, {}, {}, {}
    unreached, reached = [], False
    total = dict(
        processes=0, cpu_ms=0, compiled_ms=0, contexts=0, loads=0, needed=0, load_ms=0, spare_ms=0,
        connections=0, handshakes=0, failed=0, peak=0, under_loop=0, injections=[],
        clients=[],
        blocked={"times": 0, "s": 0, "waiting_s": 0, "clients": [], "at": [], "by": "asyncio"},
        sessions=0, pools=0, uncounted=[], unprobed=[], alive=0, context_mib=0,
        stood=dict(fetched=False, in_greenlets=False, waits=0, times=0, s=0, clients=[], at=[]),
        on_loop={"loads": 0, "spare": 0, "waiting": 0, "ms": 0, "held_ms": 0,
                 "longest_ms": 0, "at": []},
        silent={"by": None, "times": 0, "s": 0, "waiting_s": 0, "clients": [], "at": []},
        heartbeats=[], own_tls=[], failures=[], truststore=[], handshake_ms=0, handshake_s=0,
        botocores=0, dropped=0, collected=0,
    )  # fmt: skip

    def row_of(origin):
        key = origin["client"], origin["through"]
        if key not in rows:
            rows[key] = dict(
                client=key[0], through=key[1], contexts=0, default=0, loads=0, needed=0,
                connections=0, http=True, requests=None, exchanges=0, load_ms=0, spare_ms=0,
                alive=0, at=[], trusts=[], by=[], awaits=0, full=0, evicted=0, size={}, wanted={},
                open=0, threads=set(), peak=0, closed={}, closed_at=[], closers=set(),
            )  # fmt: skip
        return rows[key]

    for event in events:
        kind, pid = event["is"], event["pid"]
        cpu_before, cpu[pid] = cpu.get(pid, 0), max(event["cpu"], cpu.get(pid, 0))
        starts, context = kind in ("process", "start"), (pid, event.get("c"))
        compiled_before, compiled[pid] = compiled.get(pid, 0), event.get("compiled", 0)
        total["compiled_ms"] += 0 if starts else max(0, compiled[pid] - compiled_before)
        if starts:
            # Until here it was Python that began, and the doctor. (A program that another has taken
            # the place of had this process before.)
            started[pid] = started.get(pid, 0) + cpu[pid] - cpu_before
            programs.update([pid] if kind == "start" else [])
        elif kind == "trial":
            trial_ms += event["ms"]
        elif kind == "context":
            makers[context] = first[event["c"]] = event["who"]
            total["contexts"] += 1
            row = row_of(event["who"])
            row["contexts"] += 1
            row["default"] += event["default"]
        elif kind == "load":
            makers[context] = first[event["c"]] = event["who"]
            row, key = row_of(event["who"]), (pid, event["who"]["client"], event["trust"])
            for tally in (row, total):
                tally["loads"] += 1
                tally["load_ms"] += event["ms"]
                tally["needed"] += key not in known_keys
                tally["spare_ms"] += event["ms"] if key in known_keys else 0
                tally["alive"] = max(tally["alive"], event["alive"])
            memory_spans.setdefault(pid, []).append([event["since"], event["t"]] + event["kib"])
            loading.setdefault(context, []).append((event["since"], event["t"]))
            if event["loop"]:
                on_loop = total["on_loop"]
                on_loop["loads"] += 1
                on_loop["spare"] += key in known_keys
                on_loop["waiting"] += event["waiting"]
                on_loop["ms"] = round(on_loop["ms"] + event["ms"], 1)
                # Loads that follow each other hold the loop up as one.
                load_start, load_end = event["since"], event["t"]
                streak = holding.get(pid)
                if streak is None or load_start - streak[1] > 0.001 * HELD_UP_IN_A_ROW_FROM_MS:
                    streak = holding[pid] = [load_start, load_end]
                streak[1] = load_end
                longest_ms = 1000 * (streak[1] - streak[0])
                if event["waiting"]:
                    on_loop["held_ms"] = round(on_loop["held_ms"] + event["ms"], 1)
                    on_loop["longest_ms"] = round(max(on_loop["longest_ms"], longest_ms), 1)
                note_place(on_loop["at"], event["who"]["at"])
            known_keys.add(key)
            row["awaits"] += bool(event["who"].get("awaits"))
            note_place(row["at"], event["who"]["at"])
            note_place(row["trusts"], event["trust"])
            note_place(row["by"], event["by"])
        elif kind == "begin":
            # Made by a process that forked, or before anybody looked.
            maker = makers.get(context) or (context[1] and first.get(context[1])) or event["who"]
            began[pid, event["h"]] = {}
            total["connections"] += 1
            total["under_loop"] += bool(event["loop"])
            row = spoken[pid, event["h"]] = row_of(maker)
            row["connections"] += 1
            latest[pid, event["who"]["client"]] = row
            row["http"] = row["http"] and event["http"]
            under_way[pid] = under_way.get(pid, 0) + 1
            total["peak"] = max(total["peak"], under_way[pid])
            opened[pid] = max(opened.get(pid, 0), event.get("open", 1))
            row["open"] = max(row["open"], event.get("open", 1))
            row["threads"].add(event.get("thread"))
            of_row = shaking.setdefault((pid, id(row)), set())
            of_row.add((pid, event["h"]))
            row["peak"] = max(row["peak"], len(of_row))
            since_begun[pid, event["h"]] = event["t"], of_row
            if event["since"] is not None:
                span = {name: event[name] for name in ("since", "t", "thread", "by")}
                began[pid, event["h"]] = dict(span, end=None)
                shaken.setdefault(context, []).append(began[pid, event["h"]])
        elif kind == "end" and (pid, event["h"]) in began:
            began.pop((pid, event["h"]))["end"] = event["t"]
            total["handshakes" if event["ok"] else "failed"] += 1
            if not event["ok"]:
                note_place(total["failures"], event.get("why"))
            under_way[pid] -= 1
            start, of_row = since_begun.pop((pid, event["h"]))
            of_row.discard((pid, event["h"]))
            total["handshake_ms"] += event.get("ms", 0)
            total["handshake_s"] += event["t"] - start
            if event.get("alpn") == "h2" and event.get("host"):
                key = pid, spoken[pid, event["h"]]["client"], event["host"]
                multiplexed[key] = multiplexed.get(key, 0) + 1
        elif kind == "exchange" and (pid, event["h"]) in spoken:
            spoken[pid, event["h"]]["exchanges"] += event["n"]
        elif kind in ("full", "evicted"):
            row = row_of(makers.get(context) or event["who"])
            row[kind] += 1
            for name in ("size", "wanted"):
                row[name][kind] = max(event[name], row[name].get(kind, 0))
        elif kind in ("session", "pool", "botocore"):
            total[kind + "s"] += 1
        elif kind == "request" and (context in makers or event["c"] in first):
            row = row_of(makers.get(context) or first[event["c"]])
            row["requests"] = 1 + (row["requests"] or 0)
        elif kind == "block":
            blocked = total["blocked"]
            blocked["times"] += 1
            blocked["by"] = event["by"]
            blocked["s"] = round(blocked["s"] + event["s"], 4)
            blocked["waiting_s"] = round(blocked["waiting_s"] + event["waiting"] * event["s"], 4)
            note_place(blocked["clients"], event["who"]["client"])
            note_place(blocked["at"], event["who"]["at"])
        elif kind == "silence":
            silent = total["silent"]
            silent["times"] += 1
            silent["by"] = event["by"]
            silent["s"] = round(silent["s"] + event["s"], 4)
            if event["waiting"]:
                silent["waiting_s"] = round(silent["waiting_s"] + event["s"], 4)
                note_place(silent["clients"], event["who"]["client"])
                note_place(silent["at"], event["who"]["at"])
        elif kind == "closing":
            row = row_of(makers.get(context) or event["who"])
            if not row["connections"]:  # its client got the program's own context
                row = latest.get((pid, event["who"]["client"]), row)
            row["closed"][event["by"]] = row["closed"].get(event["by"], 0) + 1
            note_place(row["closed_at"], event["who"]["at"])
            row["closers"].update([(pid, event["h"])] if event.get("h") else [])
        elif kind == "collected":
            total["dropped"] += event["connections"]
            total["collected"] += event["contexts"]
        elif kind == "failed":
            note_place(total["failures"], event["why"])
        elif kind == "unreached":
            note_place(unreached, event["why"])
        elif kind == "reached":
            reached = True
        elif kind == "truststore":
            total["truststore"].append(event["where"])
        elif kind == "heartbeat" and event["by"] not in total["heartbeats"]:
            total["heartbeats"].append(event["by"])
        elif kind == "own tls" and event["name"] not in total["own_tls"]:
            total["own_tls"].append(event["name"])
        elif kind == "greenlet":
            total["stood"]["fetched"] = True
            total["stood"]["in_greenlets"] |= event["itself"]
        elif kind == "wait":
            stalls = total["stood"]
            stalls["waits"] += 1
            if event["stood"]:
                stalls["times"] += 1
                stalls["s"] = round(stalls["s"] + event["s"], 4)
                note_place(stalls["clients"], event["who"]["client"])
                note_place(stalls["at"], event["who"]["at"])
        elif kind == "injection":
            total["injections"].append(event["where"])
        elif kind in ("uncounted", "unprobed"):
            total[kind].append(event["why"])
    if not (reached or total["connections"]):  # else others than those that are counted were meant
        total["failures"] += unreached
    total["context_mib"] = sum(growth(spans) for spans in memory_spans.values()) / 1024
    total["queue"], total["open"] = longest_queue(shaken, loading), sum(opened.values())
    total["processes"] = len(set(pid for pid, _ in makers) | set(under_way) | programs)
    total["cpu_ms"] = sum(cpu[pid] - started.get(pid, 0) for pid in cpu) - trial_ms
    total["clients"] = sorted(rows.values(), key=lambda row: (-row["loads"], -row["connections"]))
    for tally in total["clients"] + [total]:
        for name in ("load_ms", "spare_ms", "cpu_ms", "compiled_ms", "context_mib"):
            if name in tally:
                tally[name] = round(tally[name], 1)
    whole_ms = max(total["cpu_ms"], total["spare_ms"], 0.1)
    total["share"] = round(100 * total["spare_ms"] / whole_ms, 1)
    total["handshake_ms"] = round(total["handshake_ms"], 1)
    total["handshake_s"] = round(total["handshake_s"], 3)
    largest = {}  # another process has to connect for itself
    for (_, client, host), number in multiplexed.items():
        largest[client, host] = max(number, largest.get((client, host), 0))
    several = [(number,) + key for key, number in largest.items() if number >= TOO_MANY_H2_FROM]
    total["http2"] = [
        {"client": client, "host": host, "connections": number}
        for number, client, host in sorted(several, key=lambda triple: -triple[0])
    ]
    for row in total["clients"]:
        row["threads"], row["closers"] = len(row["threads"]), len(row["closers"])
        row["kept"] = is_kept(row, total)
    ill = [row for row in total["clients"] if not row["kept"]]
    total["again"] = sum(row["loads"] - row["needed"] for row in ill)
    total["again_share"] = round(100 * sum(row["spare_ms"] for row in ill) / whole_ms, 1)
    return total


def is_kept(row, total):
    """Return whether the connections of a row of `counted` are kept."""
    side_by_side = row["connections"] <= total["open"]  # each was made beside the others
    # Threads that share a client have one each: one that finds no place in its pool is closed.
    if is_shared(row, total) and (side_by_side or row["connections"] <= row["threads"]):
        return True
    several = KEPT_FROM * max(row["connections"], 1)
    if row["requests"]:
        return row["requests"] >= several
    # A visit to a mailbox takes several exchanges, too, so of what is no HTTP they do not suffice.
    return row["exchanges"] >= several and (row["http"] or side_by_side)


def at_once(row):
    """Return how many requests of a row of `counted` were under way at once, as far as their
    handshakes tell: those, or the threads whose connections were open at the same time.
    """
    return max(1, row["peak"], min(row["threads"], row["open"], row["connections"]))


def wanting(row):
    """Return what the connections of a row of `counted` were closed for want of, again and again:
    "full" (places in a pool), "evicted" (pools).
    """
    # Where no connection had a second request, a server closes them, or nobody asked again.
    is_asked_again = (row["requests"] or 0) > row["connections"]
    kinds = ["evicted", "full"] if is_asked_again else ["evicted"]
    return [kind for kind in kinds if row[kind] >= TOO_MANY_FROM]


def is_shared(row, total):
    """Return whether connections of requests, urllib3 or botocore are those of far fewer sessions,
    pools or clients.
    """
    owners = {
        "requests": total["sessions"], "urllib3": total["pools"], "botocore": total["botocores"]
    }.get(row["client"], 0)  # fmt: skip
    return 0 < 2 * owners <= row["connections"]


def growth(spans):
    """Return by how many KiB the memory of a process grew in some spans of time, of [from, to, KiB
    before, KiB after]. What happens in several that overlap is one growth.
    """
    total_kib, last_end, before_kib, after_kib = 0, None, 0, 0
    for begin, end, start_kib, end_kib in sorted(spans):
        if last_end is None or begin > last_end:
            total_kib += max(0, after_kib - before_kib)
            last_end, before_kib, after_kib = end, start_kib, end_kib
        last_end, after_kib = max(last_end, end), max(after_kib, end_kib)
    return total_kib + max(0, after_kib - before_kib)


def longest_queue(handshakes, loads):
    """Return where handshakes waited longest for another of the same context, of {(process,
    context): [{"since", "t", "end", "thread", "by"}, ...]} and the spans of time in which it was
    loaded, {(process, context): [(from, to), ...]}: what `counted` has as "queue"; None if there is
    none.
    """
    queues = []
    for key, group in handshakes.items():
        group = sorted(
            (handshake for handshake in group if handshake["end"]),
            key=lambda handshake: handshake["t"],
        )
        most_wanted = most_at_once([(handshake["since"], handshake["end"]) for handshake in group])
        waited_s, behind_s, of_loads = 0, 0, sorted(loads.get(key, []))
        for number, handshake in enumerate(group):
            wait = handshake["since"], handshake["t"]
            last = bisect.bisect(of_loads, wait[1:])
            near = [load for load in of_loads[max(0, last - 200) : last] if load[1] > wait[0]]
            waited_s += seconds(wait, near)
            for earlier in group[max(0, number - 200) : number]:
                if earlier["thread"] != handshake["thread"]:
                    both = max(earlier["t"], wait[0]), min(earlier["end"], wait[1])
                    behind_s += seconds(both, near)
        queues.append(dict(
            by=group[-1]["by"] if group else None, wanted=most_wanted, handshakes=len(group),
            peak=most_at_once([(handshake["t"], handshake["end"]) for handshake in group]),
            waited_s=round(waited_s, 3), behind_s=round(behind_s, 3),
        ))  # fmt: skip
    return max(queues, key=lambda queue: queue["behind_s"]) if queues else None


def seconds(span, loads):
    """Return how long a span of time is without the loads in it; those that overlap count twice."""
    begin, end = span
    inside = [min(end, stop) - max(begin, start) for start, stop in loads]
    return max(0, end - begin - sum(overlap for overlap in inside if overlap > 0))


def most_at_once(spans):
    """Return how many of some spans of time there were at once."""
    peak = count = 0
    for _, step in sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans]):
        count += step
        peak = max(peak, count)
    return peak


def note_place(places, place):
    """Count a place in a list of [place, times], which stays short."""
    for pair in places:
        if pair[0] == place:
            pair[1] += 1
            return
    if place is not None and len(places) < 20:
        places.append([place, 1])


def verdict_on(counts, share):
    """Return REPEATED, ONCE or UNSEEN. share: above this part of the CPU, in percent, repeated
    loads are an illness.

    Where connections are kept there are no more loads than connections, however long the program
    runs: those have to take more.
    """
    if is_broken(counts):
        return UNSEEN
    avoidable_loads, avoidable_share = avoidable(counts)
    if counts["again"] >= TOO_MANY_FROM and counts["again_share"] >= share:
        return REPEATED
    if avoidable_loads >= KEPT_LOADS_FROM and avoidable_share >= KEPT_SHARE:
        return REPEATED
    return ONCE if counts["handshakes"] else UNSEEN


def avoidable(counts):
    """Return (how many loads were not needed, what they took of the CPU in percent), without those
    of clients of botocore that are kept: nobody can have them load less.
    """
    rows = [row for row in counts["clients"] if row["client"] == "botocore" and row["kept"]]
    loads = counts["loads"] - counts["needed"] - sum(row["loads"] - row["needed"] for row in rows)
    part = sum(row["spare_ms"] for row in rows) / max(counts["spare_ms"], 0.1) if rows else 0
    return loads, counts["share"] * (1 - part)


def is_broken(counts):
    """Return whether none of a program's connections came through: then it has no fault of
    loads.
    """
    return bool(counts["failures"]) and not counts["handshakes"]


def limit_near(counts, share):
    """Return the limit of `verdict_on`, in percent, that this run came near; None if it came near
    none. What a run takes varies by some percent of itself, so that the next one may come out
    otherwise.
    """
    if is_broken(counts):
        return None
    of_again = counts["again"] >= TOO_MANY_FROM and counts["again_share"]
    if of_again and share / NEAR < of_again < share * NEAR:
        return share
    avoidable_loads, avoidable_share = avoidable(counts)
    several = avoidable_loads >= KEPT_LOADS_FROM and of_again < share
    if several and KEPT_SHARE / NEAR < avoidable_share < KEPT_SHARE * NEAR:
        return KEPT_SHARE
    return None


def verdict_on_handshakes(counts):
    """Return ONE_AT_A_TIME, NOT_IN_A_ROW, or DOES_NOT_APPLY if no two were under way or wanted."""
    queue = counts["queue"]
    if queue and queue["peak"] == 1 and queue["wanted"] >= WANTED_FROM:
        behind_s = queue["behind_s"]
        # Who waits more for something else, an answer of a proxy, say, or a processor, is not ill.
        if behind_s >= WAITED_FROM_S and behind_s >= queue["waited_s"] / 2:
            return ONE_AT_A_TIME
    return NOT_IN_A_ROW if counts["peak"] > 1 else DOES_NOT_APPLY


def verdict_on_loop(counts):
    """Return the verdict on loads on an asyncio loop: HELD_UP, FREE, or DOES_NOT_APPLY if none
    ran.
    """
    on_loop = counts["on_loop"]
    in_a_row = on_loop["longest_ms"] >= HELD_UP_IN_A_ROW_FROM_MS
    long = on_loop["held_ms"] >= HELD_UP_FROM_MS and in_a_row
    if on_loop["spare"] >= TOO_MANY_FROM and long:
        return HELD_UP
    return FREE if counts["under_loop"] or on_loop["loads"] else DOES_NOT_APPLY


def verdict_on_contexts(counts):
    """Return ONE_FOR_EACH, FEW, or DOES_NOT_APPLY if no context has loaded anything."""
    for row in counts["clients"]:
        # Others could have one for all.
        of_connections = row["requests"] and (row["kept"] or is_shared(row, counts))
        if row["alive"] >= (KEPT_CONTEXTS_FROM if of_connections else CONTEXTS_FROM):
            return ONE_FOR_EACH
    return FEW if counts["loads"] else DOES_NOT_APPLY
