"""What a run did, from the events of its probes."""

from __future__ import division, print_function

from .basis import ONCE, REPEATED, TOO_MANY_FROM, UNSEEN

#: So many requests for each connection, and they are kept.
KEPT_FROM = 3
#: The loads of connections that are kept, in percent of the CPU.
KEPT_SHARE = 20


def counted(events):
    """The counts of a run, a dictionary, from what `Probes` noted, in the order of time.

    processes (that used TLS), cpu_ms (of all); contexts, sessions (of requests), loads, load_ms;
    needed: one load for each client, process and set of certificates; spare_ms: what the others
    took; connections (of clients that began a handshake), handshakes (that came through), failed,
    peak (handshakes under way at once in one process), under_loop (connections made under a
    running asyncio loop); blocked: of such loops, {"times", "s", "waiting_s" (while others
    waited), "clients", "at"}; clients: a row of {"client", "through", "contexts", "loads",
    "needed", "connections", "requests" (None where nobody tells), "load_ms", "spare_ms", "kept",
    "at", "trusts"} for each client and each library that called it, the one with the most loads
    first. kept: its connections are, for several requests each.
    """
    rows, made, began, first, seen = {}, {}, {}, {}, set()
    cpu, started, trial_ms, under_way = {}, {}, 0, {}
    total = dict(
        processes=0, cpu_ms=0, contexts=0, loads=0, needed=0, load_ms=0, spare_ms=0,
        connections=0, handshakes=0, failed=0, peak=0, under_loop=0, injections=[],
        blocked={"times": 0, "s": 0, "waiting_s": 0, "clients": [], "at": []}, clients=[],
        sessions=0, uncounted=[], unprobed=[],
    )  # fmt: skip

    def row_of(who):
        key = who["client"], who["through"]
        if key not in rows:
            rows[key] = dict(
                client=key[0], through=key[1], contexts=0, loads=0, needed=0, connections=0,
                requests=None, load_ms=0, spare_ms=0, at=[], trusts=[],
            )  # fmt: skip
        return rows[key]

    for event in events:
        what, pid = event["is"], event["pid"]
        cpu[pid] = max(event["cpu"], cpu.get(pid, 0))
        of = pid, event.get("c")
        if what == "start":
            started[pid] = event["cpu"]
        elif what == "trial":
            trial_ms += event["ms"]
        elif what == "context":
            made[of] = first[event["c"]] = event["who"]
            total["contexts"] += 1
            row_of(event["who"])["contexts"] += 1
        elif what == "load":
            made[of] = first[event["c"]] = event["who"]
            row, key = row_of(event["who"]), (pid, event["who"]["client"], event["trust"])
            for each in (row, total):
                each["loads"] += 1
                each["load_ms"] += event["ms"]
                each["needed"] += key not in seen
                each["spare_ms"] += event["ms"] if key in seen else 0
            seen.add(key)
            note_place(row["at"], event["who"]["at"])
            note_place(row["trusts"], event["trust"])
        elif what == "begin":
            # Made by a process that forked, or before anybody looked.
            who = made.get(of) or (of[1] and first.get(of[1])) or event["who"]
            began[pid, event["h"]] = row_of(who)
            total["connections"] += 1
            total["under_loop"] += bool(event["loop"])
            row_of(who)["connections"] += 1
            under_way[pid] = under_way.get(pid, 0) + 1
            total["peak"] = max(total["peak"], under_way[pid])
        elif what == "end" and (pid, event["h"]) in began:
            del began[pid, event["h"]]
            total["handshakes" if event["ok"] else "failed"] += 1
            under_way[pid] -= 1
        elif what == "session":
            total["sessions"] += 1
        elif what == "request" and (of in made or event["c"] in first):
            row = row_of(made.get(of) or first[event["c"]])
            row["requests"] = 1 + (row["requests"] or 0)
        elif what == "block":
            blocked = total["blocked"]
            blocked["times"] += 1
            blocked["s"] = round(blocked["s"] + event["s"], 4)
            blocked["waiting_s"] = round(blocked["waiting_s"] + event["waiting"] * event["s"], 4)
            note_place(blocked["clients"], event["who"]["client"])
            note_place(blocked["at"], event["who"]["at"])
        elif what == "injection":
            total["injections"].append(event["where"])
        elif what in ("uncounted", "unprobed"):
            total[what].append(event["why"])
    total["processes"] = len(set(pid for pid, _ in made) | set(under_way) | set(started))
    total["cpu_ms"] = sum(cpu[pid] - started.get(pid, 0) for pid in cpu) - trial_ms
    total["clients"] = sorted(rows.values(), key=lambda row: (-row["loads"], -row["connections"]))
    for each in total["clients"] + [total]:
        for name in ("load_ms", "spare_ms", "cpu_ms"):
            if name in each:
                each[name] = round(each[name], 1)
    whole_ms = max(total["cpu_ms"], total["spare_ms"], 0.1)
    total["share"] = round(100 * total["spare_ms"] / whole_ms, 1)
    for row in total["clients"]:
        row["kept"] = bool(row["requests"]) and row["requests"] >= KEPT_FROM * row["connections"]
    ill = [row for row in total["clients"] if not row["kept"]]
    total["again"] = sum(row["loads"] - row["needed"] for row in ill)
    total["again_share"] = round(100 * sum(row["spare_ms"] for row in ill) / whole_ms, 1)
    return total


def note_place(places, place):
    """Count a place in a list of [place, times], which stays short."""
    for each in places:
        if each[0] == place:
            each[1] += 1
            return
    if place is not None and len(places) < 20:
        places.append([place, 1])


def verdict_on(counts, share):
    """REPEATED, ONCE or UNSEEN. share: above this part of the CPU, in percent, repeated loads are
    an illness.

    Where connections are kept there are no more loads than connections, however long the program
    runs: those have to take more.
    """
    again = counts["loads"] - counts["needed"]
    if counts["again"] >= TOO_MANY_FROM and counts["again_share"] >= share:
        return REPEATED
    if again >= TOO_MANY_FROM and counts["share"] >= KEPT_SHARE:
        return REPEATED
    return ONCE if counts["handshakes"] else UNSEEN
