"""What the report on an examination says: verdicts, advice, the exit status."""

from __future__ import division, print_function

from .advice import (
    advice_on_counts,
    advice_on_failures,
    advice_on_http,
    advice_on_loop,
    advice_on_others,
    advice_on_trials,
    advice_on_waits,
)
from .basis import (
    BLOCKED,
    CANNOT_TELL,
    DOES_NOT_APPLY,
    FAILS,
    FREE,
    LOOP_BLOCKED_FROM_S,
    ONCE,
    PY2,
    REPEATED,
    STATUS,
    UNCOUNTED,
    UNPATCHED,
    UNSEEN,
)
from .blocking import PATCHES
from .clients import counted_clients
from .verdicts import (
    is_broken,
    verdict_on,
    verdict_on_contexts,
    verdict_on_handshakes,
    verdict_on_loop,
)

#: What is advised first.
RISKS_NOTHING = ("connection-close", "keep-one", "larger-pool")


def judge(examination, options):
    """Return the report on an examination: with verdicts, advice, the exit status and its basis.

    Only a run has "counts"; without, the loads are advice, and the exit status says nothing of
    them.
    """
    counts = examination.counts
    if counts:
        examination.clients = [seen_at_work(row, counts) for row in examination.clients]
    advice = advice_on_loop(examination)
    if counts:
        loop = worst(
            [judge_loop(examination), judge_greenlets(examination), judge_asyncio(examination)]
        )
        loads = verdict_on(counts, options["share"])
        if judge_asyncio(examination) == BLOCKED:
            advice += advice_on_waits(examination)
        other_verdicts = {
            "loads on the loop": verdict_on_loop(counts), "contexts": verdict_on_contexts(counts),
            "handshakes": verdict_on_handshakes(counts),
        }  # fmt: skip
        if is_broken(counts):
            other_verdicts = dict.fromkeys(other_verdicts, DOES_NOT_APPLY)
            further = advice_on_failures(examination)
        else:
            further = advice_on_others(examination, other_verdicts)
            further += advice_on_counts(examination, loads)
        # What risks nothing comes first.
        advice += sorted(further, key=lambda change: change["id"] not in RISKS_NOTHING)
    else:
        loop, loads = judge_loop(examination), UNCOUNTED if examination.known else UNSEEN
        advice += advice_on_trials(examination)
        failed = [
            row for row in examination.clients if row["verdict"] == CANNOT_TELL and row["error"]
        ]
        if failed and not advice:
            advice = advice_on_failures(examination)
    loop, loads = withhold_all_clears(loop, loads, examination)
    verdicts = {"event loop": loop, "certificate loads": loads}
    if counts:
        verdicts.update(other_verdicts)
    statuses = [STATUS.get(verdicts.get(FAILS[name]), 0) for name in options["fail_on"]]
    if counts and (examination.ended["raised"] or was_killed(examination.ended)):
        statuses.append(2)
    status = 1 if 1 in statuses else max(statuses)
    if counts and examination.ended["signal"]:
        status = 128 + examination.ended["signal"]
    return dict(
        examination.as_dict(), verdicts=verdicts, advice=advice + advice_on_http(examination),
        known_to_the_doctor=counted_clients(), share_stated=options["share"],
        exit_status=status,
    )  # fmt: skip


def was_killed(ended):
    """Return whether a signal ended a program, and not the doctor, as it was told to."""
    return (ended["status"] or 0) < 0 and not ended["why"]


def withhold_all_clears(loop, loads, examination):
    """Return the verdicts on the loop and on loads: CANNOT_TELL for an all-clear without ground."""
    if is_unfounded(loop, examination):
        loop = CANNOT_TELL
    counts = examination.counts
    if not counts or not (counts["left"] or counts["uncounted"]):
        return loop, loads
    # Of what runs on, or was not counted to its end, nobody has seen the end.
    return [CANNOT_TELL if verdict in (FREE, ONCE) else verdict for verdict in (loop, loads)]


def is_unfounded(verdict, examination):
    """Return whether a verdict on the loop gives an all-clear to what nobody looked at.

    That is a loop that only a run watches, or TLS that only a heartbeat hears: the clients that
    the doctor knows are what was tried.
    """
    counts = examination.counts
    own_tls = counts["own_tls"] if counts else examination.own_tls
    unheard = own_tls and not (counts and counts["heartbeats"])
    if examination.unwatched:
        return verdict in (FREE, DOES_NOT_APPLY)
    return verdict == FREE and bool(unheard)


def seen_at_work(row, counts):
    """Return a row of `check_client`, judged by what the run did.

    If nothing is patched, and threads made all its connections, there were no greenlets to wait
    for them. If greenlets waited, and the loop went on, they did so elsewhere: in a worker, which
    had patched, or with gevent's own sockets. If it ended before its first connection, nobody
    knows whether it would have patched before.
    """
    if row["verdict"] != UNPATCHED:
        return row
    if went_on(counts["stood"]):
        error = "nothing is patched in this process, and no greenlet was seen to wait for it"
        return dict(row, verdict=DOES_NOT_APPLY, error=error)
    if counts["stood"]["fetched"]:
        return row
    if counts["connections"]:
        return row if PY2 else dict(row, verdict=DOES_NOT_APPLY)
    return dict(row, verdict=CANNOT_TELL, error="no connection was made before the program ended")


def went_on(stalls):
    """Return whether greenlets were seen to wait for replies, and never kept their loop waiting."""
    return stalls["in_greenlets"] and stalls["waits"] >= 2 and not stalls["times"]


def judge_loop(examination):
    """Return the verdict on the loop, by the clients that were tried.

    Where none could be, as the program was ended, what its greenlets did has the say.
    """
    if examination.untried:
        ran_on = examination.counts and went_on(examination.counts["stood"])
        return DOES_NOT_APPLY if ran_on else CANNOT_TELL
    verdicts = [row["verdict"] for row in examination.clients]
    if verdicts and not examination.clients[0]["imported"]:
        # A stand-in for a client that may come later: nothing of the program's was seen to block.
        stands_for = {UNPATCHED: DOES_NOT_APPLY, BLOCKED: CANNOT_TELL}
    else:
        # With nothing patched, greenlets that fetch block the loop; whether there are any is told
        # by who imported gevent: the program, or a library that may leave it alone.
        used = examination.loop and examination.loop["used"]
        stands_for = {UNPATCHED: BLOCKED if used else CANNOT_TELL}
    return worst([stands_for.get(verdict, verdict) for verdict in verdicts])


def judge_greenlets(examination):
    """Return BLOCKED if the loop of greenlets stood still through their replies; FREE if never.

    The program has to use it; which client fetched does not matter. (A program may import
    gevent in a function, where nothing but its greenlets tells.)
    """
    stalls, loop = examination.counts["stood"], examination.loop
    if went_on(stalls):
        return FREE
    used = loop and (loop["used"] or stalls["in_greenlets"])
    is_seen = stalls["fetched"] and used and not loop["patched"]
    if is_seen and stalls["times"] >= 2 and stalls["s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return DOES_NOT_APPLY


def judge_asyncio(examination):
    """Return BLOCKED if something kept others waiting for a running loop.

    That is clients that do not await, or anything else that the heartbeat saw. FREE if
    connections were made under a loop and did not; else DOES_NOT_APPLY.
    """
    counts, loop = examination.counts, examination.loop
    if counts["blocked"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    # A library may import gevent, and leave it alone.
    of_greenlets = counts["silent"]["by"] in PATCHES
    used = not of_greenlets or (loop and (loop["used"] or loop["patched"]))
    if used and counts["silent"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return FREE if counts["under_loop"] else DOES_NOT_APPLY


def worst(verdicts):
    """Return the worst of some verdicts."""
    order = (BLOCKED, REPEATED, CANNOT_TELL, UNSEEN, FREE, ONCE, UNCOUNTED, DOES_NOT_APPLY)
    return min(verdicts or [DOES_NOT_APPLY], key=order.index)
