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
from .counts import (
    is_broken,
    verdict_on,
    verdict_on_contexts,
    verdict_on_handshakes,
    verdict_on_loop,
)
from .probes import KNOWN

#: What is advised first.
RISKS_NOTHING = ("connection-close", "keep-one", "larger-pool")


def judge(found, spec):
    """Add verdicts, advice, the exit status and what it rests on to what was found.

    Only a run has "counts"; without, the loads are advice, and the exit status says nothing of
    them.
    """
    counts = found.get("counts")
    if counts:
        found = dict(found, clients=[seen_at_work(row, counts) for row in found["clients"]])
    advice = advice_on_loop(found)
    found = dict(found, known_to_the_doctor=sorted(set(KNOWN.values())))
    own_tls = counts["own_tls"] if counts else found["own_tls"]
    if counts:
        loop = worst([judge_loop(found), judge_greenlets(found), judge_asyncio(found)])
        loads = verdict_on(counts, spec["share"])
        if judge_asyncio(found) == BLOCKED:
            advice += advice_on_waits(found)
        others = {
            "loads on the loop": verdict_on_loop(counts), "contexts": verdict_on_contexts(counts),
            "handshakes": verdict_on_handshakes(counts),
        }  # fmt: skip
        if is_broken(counts):
            others = dict.fromkeys(others, DOES_NOT_APPLY)
            more = advice_on_failures(found)
        else:
            more = advice_on_others(found, others) + list(advice_on_counts(found, loads))
        # What risks nothing comes first.
        advice += sorted(more, key=lambda each: each["id"] not in RISKS_NOTHING)
    else:
        loop, loads = judge_loop(found), UNCOUNTED if found["known"] else UNSEEN
        advice += advice_on_trials(found)
        failed = [row for row in found["clients"] if row["verdict"] == CANNOT_TELL and row["error"]]
        if failed and not advice:
            advice = advice_on_failures(found)
    if loop == FREE and own_tls and not (counts and counts["heartbeats"]):
        loop = CANNOT_TELL  # what was tried is the clients that the doctor knows
    verdicts = {"event loop": loop, "certificate loads": loads}
    if counts:
        verdicts.update(others)
    told = [STATUS.get(verdicts.get(FAILS[name]), 0) for name in spec["fail_on"]]
    if counts and found["ended"]["raised"]:
        told.append(2)
    status = 1 if 1 in told else max(told)
    if counts and found["ended"]["signal"]:
        status = 128 + found["ended"]["signal"]
    return dict(
        found, verdicts=verdicts, advice=advice + advice_on_http(found),
        share_stated=spec["share"], exit_status=status,
    )  # fmt: skip


def seen_at_work(row, counts):
    """A row of `check_way` after a run: where nothing is patched, and its connections were all
    made by threads, there were no greenlets to wait for them. Where it ended before its first one,
    nobody knows whether it would have patched before."""
    if row["verdict"] != UNPATCHED or counts["stood"]["fetched"]:
        return row
    if counts["connections"]:
        return row if PY2 else dict(row, verdict=DOES_NOT_APPLY)
    return dict(row, verdict=CANNOT_TELL, error="no connection was made before the program ended")


def judge_loop(found):
    if found.get("untried"):
        return CANNOT_TELL
    verdicts = [row["verdict"] for row in found["clients"]]
    if verdicts and not found["clients"][0]["imported"]:
        # A stand-in for a client that may come later: nothing of the program's was seen to block.
        stands_for = {UNPATCHED: DOES_NOT_APPLY, BLOCKED: CANNOT_TELL}
    else:
        # With nothing patched, greenlets that fetch block the loop; whether there are any is told
        # by who imported gevent: the program, or a library that may leave it alone.
        used = found["loop"] and found["loop"]["used"]
        stands_for = {UNPATCHED: BLOCKED if used else CANNOT_TELL}
    return worst([stands_for.get(verdict, verdict) for verdict in verdicts])


def judge_greenlets(found):
    """BLOCKED where the loop of greenlets was seen to stand still through their replies, in a
    program that uses it, whatever client asked. (A program may import it in a function, where
    nothing but its greenlets tells.)"""
    stood, loop = found["counts"]["stood"], found["loop"]
    used = loop and (loop["used"] or stood["in_greenlets"])
    seen = stood["fetched"] and used and not loop["patched"]
    if seen and stood["times"] >= 2 and stood["s"] >= LOOP_BLOCKED_FROM_S:
        return BLOCKED
    return DOES_NOT_APPLY


def judge_asyncio(found):
    """BLOCKED where clients that do not await, or anything else that the heartbeat saw, kept others
    waiting for a loop; FREE where connections were made under one and did not."""
    counts, loop = found["counts"], found["loop"]
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
