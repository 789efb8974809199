"""Judging."""

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
from .probes import KNOWN
from .tally import (
    is_broken,
    verdict_on,
    verdict_on_contexts,
    verdict_on_handshakes,
    verdict_on_loop,
)

#: What is advised first.
RISKS_NOTHING = ("connection-close", "keep-one", "larger-pool")


def judge(results, spec):
    """Add verdicts, advice, the exit status and what it rests on to the results.

    Only a run has "counts"; without, the loads are advice, and the exit status says nothing of
    them.
    """
    counts = results.get("counts")
    if counts:
        results = dict(results, clients=[seen_at_work(row, counts) for row in results["clients"]])
    advice = advice_on_loop(results)
    results = dict(results, known_to_the_doctor=sorted(set(KNOWN.values())))
    own_tls = counts["own_tls"] if counts else results["own_tls"]
    if counts:
        loop = worst([judge_loop(results), judge_greenlets(results), judge_asyncio(results)])
        loads = verdict_on(counts, spec["share"])
        if judge_asyncio(results) == BLOCKED:
            advice += advice_on_waits(results)
        other_verdicts = {
            "loads on the loop": verdict_on_loop(counts), "contexts": verdict_on_contexts(counts),
            "handshakes": verdict_on_handshakes(counts),
        }  # fmt: skip
        if is_broken(counts):
            other_verdicts = dict.fromkeys(other_verdicts, DOES_NOT_APPLY)
            further = advice_on_failures(results)
        else:
            further = advice_on_others(results, other_verdicts) + list(
                advice_on_counts(results, loads)
            )
        # What risks nothing comes first.
        advice += sorted(further, key=lambda change: change["id"] not in RISKS_NOTHING)
    else:
        loop, loads = judge_loop(results), UNCOUNTED if results["known"] else UNSEEN
        advice += advice_on_trials(results)
        failed = [
            row for row in results["clients"] if row["verdict"] == CANNOT_TELL and row["error"]
        ]
        if failed and not advice:
            advice = advice_on_failures(results)
    if loop == FREE and own_tls and not (counts and counts["heartbeats"]):
        loop = CANNOT_TELL  # what was tried is the clients that the doctor knows
    verdicts = {"event loop": loop, "certificate loads": loads}
    if counts:
        verdicts.update(other_verdicts)
    statuses = [STATUS.get(verdicts.get(FAILS[name]), 0) for name in spec["fail_on"]]
    if counts and results["ended"]["raised"]:
        statuses.append(2)
    status = 1 if 1 in statuses else max(statuses)
    if counts and results["ended"]["signal"]:
        status = 128 + results["ended"]["signal"]
    return dict(
        results, verdicts=verdicts, advice=advice + advice_on_http(results),
        share_stated=spec["share"], exit_status=status,
    )  # fmt: skip


def seen_at_work(row, counts):
    """Return a row of `check_way` after a run: if nothing is patched, and threads made all its
    connections, there were no greenlets to wait for them. If it ended before its first one, nobody
    knows whether it would have patched before.
    """
    if row["verdict"] != UNPATCHED or counts["stood"]["fetched"]:
        return row
    if counts["connections"]:
        return row if PY2 else dict(row, verdict=DOES_NOT_APPLY)
    return dict(row, verdict=CANNOT_TELL, error="no connection was made before the program ended")


def judge_loop(results):
    if results.get("untried"):
        return CANNOT_TELL
    verdicts = [row["verdict"] for row in results["clients"]]
    if verdicts and not results["clients"][0]["imported"]:
        # A stand-in for a client that may come later: nothing of the program's was seen to block.
        stands_for = {UNPATCHED: DOES_NOT_APPLY, BLOCKED: CANNOT_TELL}
    else:
        # With nothing patched, greenlets that fetch block the loop; whether there are any is told
        # by who imported gevent: the program, or a library that may leave it alone.
        used = results["loop"] and results["loop"]["used"]
        stands_for = {UNPATCHED: BLOCKED if used else CANNOT_TELL}
    return worst([stands_for.get(verdict, verdict) for verdict in verdicts])


def judge_greenlets(results):
    """Return BLOCKED if the loop of greenlets was seen to stand still through their replies, in a
    program that uses it, whatever client fetched. (A program may import it in a function, where
    nothing but its greenlets tells.)
    """
    stalls, loop = results["counts"]["stood"], results["loop"]
    used = loop and (loop["used"] or stalls["in_greenlets"])
    is_seen = stalls["fetched"] and used and not loop["patched"]
    if is_seen and stalls["times"] >= 2 and stalls["s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return DOES_NOT_APPLY


def judge_asyncio(results):
    """Return BLOCKED if clients that do not await, or anything else that the heartbeat saw, kept
    others waiting for a loop; FREE if connections were made under one and did not.
    """
    counts, loop = results["counts"], results["loop"]
    if counts["blocked"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    # A library may import gevent, and leave it alone.
    of_greenlets = counts["silent"]["by"] in PATCHES
    used = not of_greenlets or (loop and (loop["used"] or loop["patched"]))
    if used and counts["silent"]["waiting_s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return FREE if counts["under_loop"] else DOES_NOT_APPLY


def worst(verdicts):
    order = (BLOCKED, REPEATED, CANNOT_TELL, UNSEEN, FREE, ONCE, UNCOUNTED, DOES_NOT_APPLY)
    return min(verdicts or [DOES_NOT_APPLY], key=order.index)
