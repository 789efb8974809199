"""What the counts of a run mean."""

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
from .clients import client_named

#: With this many requests, or exchanges, for each connection, they are kept.
KEPT_FROM = 3
#: The loads of connections that are kept, in percent of the CPU.
KEPT_SHARE = 20
#: Loads hold up a loop if they take this long while others wait, in all and in a row.
HELD_UP_FROM_MS, HELD_UP_IN_A_ROW_FROM_MS = 20, 5
#: From this many connections to one host on, one after the other, it is worth a word.
ANEW_FROM = 10
#: This many connections to one host that speaks HTTP/2 are too many: one would do.
TOO_MANY_H2_FROM = 3
#: A share that is at most this many times the limit, or as little of it, is near it.
NEAR = 1.25
#: Fewer connections than these, when they are kept, are no illness: their loads do not grow.
KEPT_LOADS_FROM = 10
#: Handshakes wait for each other if this many were wanted at once, never two were under way, and
#: they waited for this long in all.
WANTED_FROM = 3
WAITED_FROM_S = 0.2
#: This many contexts with the same certificates, alive at once in a process, are too many; the
#: second number is for contexts that belong to a connection each that is kept, as in requests, or
#: whose loads, of the clients that threads make once, take little beside what these do.
CONTEXTS_FROM = 10
KEPT_CONTEXTS_FROM = 100


def is_kept(row, total):
    """Return whether the connections of a client's row are kept."""
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
    """Return how many requests of a row were under way at once, as far as its handshakes tell.

    That is those, or the threads whose connections were open at the same time.
    """
    return max(1, row["peak"], min(row["threads"], row["open"], row["connections"]))


def wanting(row):
    """Return what the connections of a row were closed for want of, again and again.

    "full": places in a pool; "evicted": pools.
    """
    # Where no connection had a second request, a server closes them, or nobody asked again.
    is_asked_again = (row["requests"] or 0) > row["connections"]
    kinds = ["evicted", "full"] if is_asked_again else ["evicted"]
    return [kind for kind in kinds if row[kind] >= TOO_MANY_FROM]


def is_shared(row, total):
    """Return whether a row's connections are those of far fewer sessions, pools or clients."""
    owners = total.get(client_named(row["client"]).owners, 0)
    return 0 < 2 * owners <= row["connections"]


def growth(spans):
    """Return by how many KiB the memory of a process grew in some spans of time.

    spans: [from, to, KiB before, KiB after]. What happens in several that overlap is one
    growth.
    """
    total_kib, last_end, before_kib, after_kib = 0, None, 0, 0
    for begin, end, start_kib, end_kib in sorted(spans):
        if last_end is None or begin > last_end:
            total_kib += max(0, after_kib - before_kib)
            last_end, before_kib, after_kib = end, start_kib, end_kib
        last_end, after_kib = max(last_end, end), max(after_kib, end_kib)
    return total_kib + max(0, after_kib - before_kib)


def longest_queue(handshakes, loads):
    """Return where handshakes waited longest for another of the same context; None if nowhere.

    handshakes: {(process, context): [{"since", "t", "end", "thread", "by"}, ...]}. loads: the
    spans of time in which it was loaded, {(process, context): [(from, to), ...]}.

    Returns {"by" (the module of its sockets' class), "wanted" and "peak" (at once),
    "handshakes", "waited_s" (from when their sockets were connected, while nothing was loaded),
    "behind_s" (of that, while one of another thread was under way)}.
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
    """Return the verdict on loads: REPEATED, ONCE or UNSEEN.

    share: above this part of the CPU, in percent, repeated loads are an illness. Where
    connections are kept there are no more loads than connections, however long the program
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
    """Return (how many loads were not needed, what they took of the CPU in percent).

    Those of clients that are kept, and can neither load once nor share a context, are left out:
    nobody can have them load less.
    """
    rows = [row for row in counts["clients"] if row["kept"] and has_to_load(row)]
    loads = counts["loads"] - counts["needed"] - sum(row["loads"] - row["needed"] for row in rows)
    part = sum(row["spare_ms"] for row in rows) / max(counts["spare_ms"], 0.1) if rows else 0
    return loads, counts["share"] * (1 - part)


def has_to_load(row):
    """Return whether the client of a row loads for each connection, and takes no other's context.

    So do those of a library that takes neither a context nor a client of the program's.
    """
    client, library = client_named(row["client"]), client_named(row.get("through"))
    return (client.loads_each and not client.shared_context) or library.takes_nothing


def is_broken(counts):
    """Return whether none of a program's connections came through: its loads are no fault then."""
    return bool(counts["failures"]) and not counts["handshakes"]


def limit_near(counts, share):
    """Return the limit of `verdict_on`, in percent, that this run came near; None if none.

    What a run takes varies by some percent of itself, so that the next one may come out
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
    """Return the verdict on loads under an asyncio loop: HELD_UP, FREE or DOES_NOT_APPLY."""
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
        has_few_loads = has_to_load(row) or counts["share"] < KEPT_SHARE
        of_connections = of_connections or (row["kept"] and has_few_loads)
        alive = row["alive"] - row.get("raced", 0)
        if alive >= (KEPT_CONTEXTS_FROM if of_connections else CONTEXTS_FROM):
            return ONE_FOR_EACH
    return FEW if counts["loads"] else DOES_NOT_APPLY
