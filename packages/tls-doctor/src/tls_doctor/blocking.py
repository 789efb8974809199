"""1. Does a read block the loop?."""

from __future__ import division, print_function

import json
import os
import sys

from .basis import (
    AT_ONCE_FROM,
    BEAT_S,
    BLOCKED,
    CANNOT_TELL,
    CERTIFICATE,
    DELAYS_S,
    FREE,
    KEY,
    ONE_BY_ONE_TO,
    OWN_FILE,
    RAN_ON_TO,
    STOOD_STILL_FROM,
    UNPATCHED,
    Trouble,
    clock,
)
from .clients import EVENTLETS, STANDARD, WAYS, Aiohttp, Way, own_adapters, topmost
from .left_behind import bring, injected, is_library, loaded, provider, urllib3_module
from .words import told

#: Event loops that patch, and the line that does it.
PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}


def find_loop():
    """(the module of the event loop that the program has, whether its sockets are the standard
    ones' stand-in); (None, False) where it has none."""
    provided = provider(getattr(loaded("socket"), "socket", None))
    here = [name for name in ("gevent", "eventlet") if loaded(name)]
    here.sort(key=lambda name: name != provided)  # who patched comes first
    return (loaded(here[0]), provided == here[0]) if here else (None, False)


def own_code_uses(package, program):
    """Whether a module of the program's own, and not only some library, holds a part of a package:
    a library may import gevent and leave it alone."""
    top = str(program).partition(".")[0]
    for name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None) or {}  # what stands there need not be a module
        path = names.get("__file__")
        if not hasattr(path, "lower") or OWN_FILE.startswith(os.path.splitext(path)[0] + "."):
            continue
        if is_library(path) and name.partition(".")[0] != top:
            continue
        for value in list(names.values()):
            origin = getattr(value, "__name__", None) if type(value) is type(sys) else None
            origin = origin or getattr(type(value), "__module__", None)
            holds = [origin, vars(value).get("__module__") if isinstance(value, type) else None]
            if any(str(each).partition(".")[0] == package for each in holds):
                return True
    return False


def ask(way, server, scheme, delay_s, trial):
    """One request over a new connection: (the trial's peak in the server's hand, socket class).

    Raises Trouble for any answer but the right one: a failed request is no timing.
    """
    session = way.session(server.ca)
    try:
        status, body, kind, _ = session.ask(server.url(scheme, delay_s, trial))
    finally:
        session.close()
    answer = json.loads(body.decode("ascii")) if status == 200 else {}
    if answer.get("trial") != trial:
        raise Trouble("the doctor's server was asked, and something else answered (%s)" % status)
    return answer["peak"], kind


def one_trial(loop, way, server, scheme, delay_s, n):
    """n greenlets with a request each, and one whose heart beats as often as the event loop lets
    it: what happened, as a dictionary. longest_gap_s: by how much the worst beat came late."""
    trial, peaks, errors, beats = server.new_trial(), [], [], [clock()]

    def one():
        try:
            peaks.append(ask(way, server, scheme, delay_s, trial)[0])
        except Exception as error:
            errors.append(told(error))

    def beat():
        while len(peaks + errors) < n:
            loop.sleep(BEAT_S)
            beats.append(clock())

    loop.spawn(beat)
    for task in [loop.spawn(one) for _ in range(n)]:
        (task.join if loop.__name__ == "gevent" else task.wait)()
    beats.append(clock())
    wall_s = beats[-1] - beats[0]
    gaps = [later - before - BEAT_S for before, later in zip(beats, beats[1:])]  # noqa: RUF007
    return dict(
        requests=n, delay_s=delay_s, wall_s=round(wall_s, 4),
        effective_concurrency=round(n * delay_s / wall_s, 3),
        peak_in_flight=max(peaks + [0]), longest_gap_s=round(max(gaps + [0.0]), 4),
        error=errors[0] if errors else None,
    )  # fmt: skip


def verdict_of(trials):
    """BLOCKED, FREE, or None while the trials do not settle it."""
    if all(each["requests"] > 1 for each in trials):
        if any(each["effective_concurrency"] >= AT_ONCE_FROM for each in trials):
            return FREE  # no series of requests reaches that, whatever the machine is busy with
    elif any(each["longest_gap_s"] < RAN_ON_TO * each["delay_s"] for each in trials):
        return FREE
    stood_still = [
        each["peak_in_flight"] == 1
        and each["longest_gap_s"] >= STOOD_STILL_FROM * each["delay_s"]
        and (each["requests"] == 1 or each["effective_concurrency"] <= ONE_BY_ONE_TO)
        for each in trials
    ]
    return BLOCKED if len(trials) >= 2 and all(stood_still) else None


def try_out(loop, way, server, scheme, n=2):
    """Trials until they settle it: {"verdict": BLOCKED, FREE or CANNOT_TELL, "trials", "error"}."""
    trials, verdict, error = [], None, None
    for delay_s in DELAYS_S:
        trial = one_trial(loop, way, server, scheme, delay_s, n)
        error = trial["error"]
        if error and n > 1:
            # Some adapters cannot make two connections. One is enough for a heartbeat.
            alone = try_out(loop, way, server, scheme, 1)
            return dict(alone, error=alone["error"] and error)
        if error:
            break
        trials.append(trial)
        verdict = verdict_of(trials)
        if verdict:
            break
    return {"verdict": verdict or CANNOT_TELL, "trials": trials, "error": error}


def check_way(loop, patched, way, server, imported):
    """Does a TLS read of this client block the loop? With plain HTTP as the control."""
    row = {"client": way.name, "imported": imported, "socket": None, "https": None, "http": None}
    try:
        row["socket"] = ask(way, server, "https", 0, server.new_trial())[1]
        row["https"] = try_out(loop, way, server, "https")
        row["http"] = try_out(loop, way, server, "http")
    except Exception as error:
        return dict(row, verdict=CANNOT_TELL, error=told(error))
    secure, plain = row["https"]["verdict"], row["http"]["verdict"]
    row["error"] = row["https"]["error"] or row["http"]["error"]
    row["verdict"] = secure
    if secure == BLOCKED and plain != FREE:
        row["verdict"] = CANNOT_TELL if patched or plain != BLOCKED else UNPATCHED
    return row


def check_loop(loop, patched, server, imported, watch):
    """(way, row of `check_way`) for each client that the program imported; for a stand-in where it
    imported none."""
    known = [way for way in WAYS if way.kind is not Aiohttp]  # that has a loop of its own
    chosen = [way for way in known if way.module in topmost(imported)]
    if loaded(EVENTLETS.module):
        chosen.append(EVENTLETS)
    chosen = chosen[:3] + own_adapters()
    stand_ins = [way for way in known[:3] if not chosen and watch and bring(way.module)]
    ways = chosen or (stand_ins + [STANDARD])[:1]
    return [(way, check_way(loop, patched, way, server, bool(chosen))) for way in ways]


def try_cures(loop, way, server):
    """What frees the loop of a way that is blocked, tried in this very process, one after the
    other: rows of {"cure", "verdict", "wall_s"}. The process is not the same afterwards."""
    rows = []

    def note(cure, way=way):
        found = try_out(loop, way, server, "https")
        wall_s = min([each["wall_s"] for each in found["trials"]] or [None])
        rows.append({"cure": cure, "verdict": found["verdict"], "wall_s": wall_s})

    if injected():
        pyopenssl = urllib3_module("contrib.pyopenssl")
        pyopenssl.extract_from_urllib3()
        note("extract_from_urllib3()")
        pyopenssl.inject_into_urllib3()
    if way.name == "geventhttpclient":
        note("gevent's SSLContext", Way(way.name, way.kind, options={"factory": gevents_context}))
    elif loop.__name__ == "gevent":
        from gevent import monkey

        if not monkey.is_module_patched("select"):
            monkey.patch_select()
            note("patch_select()")
    return rows


def gevents_context(cafile=None):
    """A context of gevent's own class, whatever has been patched."""
    import gevent.ssl

    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile)
    return context


def is_trapped():
    """Whether google-auth's adapter for client certificates would inject later: it is made here."""
    adapter = getattr(loaded("google.auth.transport.requests"), "_MutualTlsAdapter", None)
    if adapter is None or injected():
        return False
    try:
        adapter(CERTIFICATE.encode(), KEY.encode())
    except Exception:
        return False
    return injected()
