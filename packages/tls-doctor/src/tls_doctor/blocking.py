"""Whether a read blocks the event loop, as it is tried."""

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
    DoctorError,
    clock,
)
from .client_sessions import Aiohttp
from .clients import (
    EVENTLETS,
    STANDARD,
    Client,
    clients_with_sessions,
    own_adapters,
    topmost,
)
from .left_behind import injected, is_library, loaded, provider, try_import, urllib3_module
from .state import running_loop
from .wording import describe

#: Event loops that patch, and the line that does it.
PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}


#: Loops that patch nothing, so whatever does not await blocks them; and the frames of a thread that
#: runs one: (the end of a file's name, function).
LOOP_FRAMES = {
    "asyncio": (
        ("/asyncio/base_events.py", "run_forever"), ("/asyncio/runners.py", "run"),
        ("/uvloop/__init__.py", "run"),
    ),
    "trio": (("/trio/_core/_run.py", "run"), ("/trio/_core/_run.py", "unrolled_run")),
    "twisted": (("/twisted/internet/base.py", "mainLoop"),),
}  # fmt: skip


#: What serves under a loop of LOOP_FRAMES, which may begin after somebody has looked.
LOOP_SERVERS = {
    "uvicorn.server": "asyncio", "uvicorn.workers": "asyncio", "uvicorn_worker": "asyncio",
    "hypercorn.asyncio": "asyncio", "hypercorn.trio": "trio", "aiohttp.web_runner": "asyncio",
    "aiohttp.worker": "asyncio", "granian.server": "asyncio", "daphne.server": "twisted",
    "gunicorn.workers.gtornado": "asyncio",
}  # fmt: skip


def running_loops():
    """Return the names of those loops of LOOP_FRAMES that run now, in whichever thread."""
    places, names = set(), set()
    for frame in sys._current_frames().values():
        while frame is not None:
            code = frame.f_code
            places.add((code.co_filename.replace("\\", "/"), code.co_name))
            frame = frame.f_back
    for loop, ends in LOOP_FRAMES.items():
        for path, function in places:
            if any(path.endswith(end) and function == name for end, name in ends):
                names.add(loop)
    if running_loop() is not None and "trio" not in names:  # of uvloop there may be no frame
        names.add("asyncio")
    return sorted(names)


def find_loop():
    """Return (the module of the program's event loop, whether its sockets are the standard ones).

    The second says whether its sockets stand in for those of `socket`; (None, False) if there
    is no loop.
    """
    provided = provider(getattr(loaded("socket"), "socket", None))
    loops = [name for name in ("gevent", "eventlet") if loaded(name)]
    loops.sort(key=lambda name: name != provided)  # the one that patched comes first
    return (loaded(loops[0]), provided == loops[0]) if loops else (None, False)


def own_code_uses(package, program):
    """Return whether a module of the program's own holds a part of a package.

    A library may import gevent and leave it alone.
    """
    top = str(program).partition(".")[0]
    for name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None) or {}  # what is there need not be a module
        path = names.get("__file__")
        if not hasattr(path, "lower") or OWN_FILE.startswith(os.path.splitext(path)[0] + "."):
            continue
        if is_library(path) and name.partition(".")[0] != top:
            continue
        for value in list(names.values()):
            origin = getattr(value, "__name__", None) if type(value) is type(sys) else None
            origin = origin or getattr(type(value), "__module__", None)
            holds = [origin, vars(value).get("__module__") if isinstance(value, type) else None]
            if any(str(module_name).partition(".")[0] == package for module_name in holds):
                return True
    return False


def request_once(client, server, scheme, delay_s, trial):
    """Make one request over a new connection; return (the trial's peak, the socket's class).

    The peak is the most requests that the server had in hand at once. Raises DoctorError for
    any answer but the right one: a failed request is no timing.
    """
    session = client.session(server.ca)
    try:
        status, body, kind, _ = session.fetch(server.url(scheme, delay_s, trial))
    finally:
        session.close()
    answer = json.loads(body.decode("ascii")) if status == 200 else {}
    if answer.get("trial") != trial:
        raise DoctorError(
            "the doctor's server was asked, and something else answered (%s)" % status
        )
    return answer["peak"], kind


def one_trial(loop, client, server, scheme, delay_s, n):
    """Run n greenlets with a request each, and one with a heartbeat; return what happened.

    The heart beats as often as the event loop lets it. A dictionary; longest_gap_s: by how much
    the worst beat came late.
    """
    trial, peaks, errors, beats = server.new_trial(), [], [], [clock()]

    def fetch():
        try:
            peaks.append(request_once(client, server, scheme, delay_s, trial)[0])
        except Exception as error:
            errors.append(describe(error))

    def beat():
        while len(peaks + errors) < n:
            loop.sleep(BEAT_S)
            beats.append(clock())

    loop.spawn(beat)
    for task in [loop.spawn(fetch) for _ in range(n)]:
        (task.join if loop.__name__ == "gevent" else task.wait)()
    beats.append(clock())
    wall_s = beats[-1] - beats[0]
    gaps = [later - earlier - BEAT_S for earlier, later in zip(beats, beats[1:])]
    return dict(
        requests=n, delay_s=delay_s, wall_s=round(wall_s, 4),
        effective_concurrency=round(n * delay_s / wall_s, 3),
        peak_in_flight=max(peaks + [0]), longest_gap_s=round(max(gaps + [0.0]), 4),
        error=errors[0] if errors else None,
    )  # fmt: skip


def verdict_of(trials):
    """Return BLOCKED, FREE, or None while the trials do not settle it."""
    if all(trial["requests"] > 1 for trial in trials):
        if any(trial["effective_concurrency"] >= AT_ONCE_FROM for trial in trials):
            return FREE  # no series of requests reaches that, whatever the machine is busy with
    elif any(trial["longest_gap_s"] < RAN_ON_TO * trial["delay_s"] for trial in trials):
        return FREE
    stood_still = [
        trial["peak_in_flight"] == 1
        and trial["longest_gap_s"] >= STOOD_STILL_FROM * trial["delay_s"]
        and (trial["requests"] == 1 or trial["effective_concurrency"] <= ONE_BY_ONE_TO)
        for trial in trials
    ]
    return BLOCKED if len(trials) >= 2 and all(stood_still) else None


def try_out(loop, client, server, scheme, n=2):
    """Run trials until they settle it.

    Returns {"verdict": BLOCKED, FREE or CANNOT_TELL, "trials", "error"}.
    """
    trials, verdict, error = [], None, None
    for delay_s in DELAYS_S:
        trial = one_trial(loop, client, server, scheme, delay_s, n)
        error = trial["error"]
        if error and n > 1:
            # Some adapters cannot make two connections. One is enough for a heartbeat.
            single = try_out(loop, client, server, scheme, 1)
            return dict(single, error=single["error"] and error)
        if error:
            break
        trials.append(trial)
        verdict = verdict_of(trials)
        if verdict:
            break
    return {"verdict": verdict or CANNOT_TELL, "trials": trials, "error": error}


def check_client(loop, patched, client, server, imported):
    """Check whether a TLS read of this client blocks the loop, with plain HTTP as the control."""
    row = {"client": client.name, "imported": imported, "socket": None, "https": None, "http": None}
    try:
        row["socket"] = request_once(client, server, "https", 0, server.new_trial())[1]
        row["https"] = try_out(loop, client, server, "https")
        row["http"] = try_out(loop, client, server, "http")
    except Exception as error:
        return dict(row, verdict=CANNOT_TELL, error=describe(error))
    secure, plain = row["https"]["verdict"], row["http"]["verdict"]
    row["error"] = row["https"]["error"] or row["http"]["error"]
    row["verdict"] = secure
    if secure == BLOCKED and plain != FREE:
        row["verdict"] = CANNOT_TELL if patched or plain != BLOCKED else UNPATCHED
    return row


def check_loop(loop, patched, server, imported, watch):
    """Return (client, row of `check_client`) for each client that the program imported.

    If it imported none, for one that stands in.
    """
    # aiohttp has a loop of its own.
    candidates = [client for client in clients_with_sessions() if client.kind is not Aiohttp]
    chosen = [client for client in candidates if client.module in topmost(imported)]
    if loaded(EVENTLETS.module):
        chosen.append(EVENTLETS)
    chosen = chosen[:3] + own_adapters()
    stand_ins = [
        client for client in candidates[:3] if not chosen and watch and try_import(client.module)
    ]
    clients = chosen or (stand_ins + [STANDARD])[:1]
    return [
        (client, check_client(loop, patched, client, server, bool(chosen))) for client in clients
    ]


def try_cures(loop, client, server):
    """Return what frees the loop of a client that is blocked: rows of {cure, verdict, wall_s}.

    They are tried in this very process, one after the other. It is not the same afterwards.
    """
    rows = []

    def note(cure, variant=client):
        outcome = try_out(loop, variant, server, "https")
        wall_s = min([trial["wall_s"] for trial in outcome["trials"]] or [None])
        rows.append({"cure": cure, "verdict": outcome["verdict"], "wall_s": wall_s})

    if injected():
        pyopenssl = urllib3_module("contrib.pyopenssl")
        pyopenssl.extract_from_urllib3()
        note("extract_from_urllib3()")
        pyopenssl.inject_into_urllib3()
    if client.name == "geventhttpclient":
        note(
            "gevent's SSLContext",
            Client(client.name, kind=client.kind, options={"factory": gevents_context}),
        )
    elif loop.__name__ == "gevent":
        from gevent import monkey

        if not monkey.is_module_patched("select"):
            monkey.patch_select()
            note("patch_select()")
    return rows


def gevents_context(cafile=None):
    """Return a context of gevent's own class, whatever has been patched."""
    import gevent.ssl

    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile)
    return context


def is_trapped():
    """Return whether google-auth's adapter for client certificates would inject pyOpenSSL later.

    One is made here to see it.
    """
    adapter = getattr(loaded("google.auth.transport.requests"), "_MutualTlsAdapter", None)
    if adapter is None or injected():
        return False
    try:
        adapter(CERTIFICATE.encode(), KEY.encode())
    except Exception:
        return False
    return injected()
