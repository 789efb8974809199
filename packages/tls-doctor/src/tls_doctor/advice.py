"""What the doctor advises to change."""

from __future__ import division, print_function

import os
import re

from .basis import (
    ADDRESS,
    BLOCKED,
    CANNOT_TELL,
    DELAYS_S,
    FREE,
    HELD_UP,
    ITS_OWN,
    LOOP_BLOCKED_FROM_S,
    ONE_AT_A_TIME,
    ONE_FOR_EACH,
    REPEATED,
    TOO_MANY_FROM,
    UNPATCHED,
)
from .blocking import PATCHES
from .clients import KEEP_CONTEXT, advice_to_keep, client_named
from .loads import judged_rows
from .own_calls import (
    call_at,
    call_of_library,
    call_that_waits,
    settings_after,
    with_argument,
)
from .verdicts import has_to_load, is_shared, wanting
from .wording import readable, several, times

CHAPTERS = {
    2: ("02_all_at_once", "All at once"),
    3: ("03_monkeys", "Monkeys"), 7: ("07_cures", "Cures"),
    8: ("08_still_out_there", "Is it still out there?"),
    10: ("10_the_cure", "The cure"),
    11: ("11_the_lock_around_the_handshake", "The lock around the handshake"),
    13: ("13_what_one_load_costs", "What one load costs"),
    14: ("14_a_time_machine", "A time machine"),
    16: ("16_the_loop_that_loads", "The loop that loads, and the memory that stays"),
    20: ("20_distance", "Distance"),
}  # fmt: skip
#: What has a function wait in a real thread, by loop.
IN_A_THREAD = {
    "gevent": "reply = gevent.get_hub().threadpool.apply(function)",
    "eventlet": "reply = eventlet.tpool.execute(function)",
    "asyncio": "reply = await asyncio.to_thread(...)  # or a client that awaits",
    "trio": "reply = await trio.to_thread.run_sync(...)  # or a client that awaits",
    "twisted": "deferred = threads.deferToThread(...)  # from twisted.internet; or treq's client",
}
#: asyncio.to_thread came with Python 3.9.
BEFORE_TO_THREAD = (
    "reply = await asyncio.get_event_loop().run_in_executor(None, function)  # or a client that "
    "awaits"
)
#: What puts truststore's contexts in the place of ssl's.
INJECTS = "truststore.inject_into_ssl()  # or pip-system-certs, which does it for all programs"
#: What to change: (case, chapter that explains it, line to remove, line to add, package to get,
#: sentence).
ADVICE = {
    "patch": (1, 3, "", "%(patch)s", "",
        "%(loop)s is loaded and has patched no sockets: every greenlet that fetches with "
        "%(client)s blocks the loop, over HTTP too. (If a worker patches later, call "
        "doctor.inside() there.)"),
    "patch-first": (1, 3, "", "%(patch)s", "",
        "Every TLS connection of %(client)s ends in an error: ssl was imported before %(loop)s "
        "patched it, or was not patched along with socket. The whole patch has to come first."),
    "injected": (1, 7, "%(text)s", "", "%(package)s",
        "%(by)s, and urllib3 then waits where the loop cannot see it.%(without)s"),
    "through-pyopenssl": (1, 8, "", "", "",
        "%(client)s connects through pyOpenSSL, and urllib3 then waits where the loop cannot see "
        "it: all greenlets stand still."),
    "standard-socket": (1, 3, "", "", "",
        "%(client)s reads from an %(socket)s of the standard library, because %(loop)s has not "
        "patched ssl."),
    "unpatched-read": (1, 3, "", "%(patch)s", "",
        "%(client)s, called at %(place)s, waited in a read of the standard library that %(loop)s "
        "had not patched, and no greenlet ran meanwhile. The patch has to be the first line."),
    "gevents-context": (1, 7, "",
        "HTTPClient(..., ssl_context_factory=...)  # one that makes a gevent.ssl.SSLContext", "",
        "geventhttpclient takes the context that it is given, and one of gevent's own class lets "
        "the loop run on. (gevent.ssl.create_default_context makes a standard one.)"),
    "patch-select": (1, 7, "", "from gevent import monkey; monkey.patch_select()", "",
        "Called after your imports, this gives the wait to the loop. Threads stay threads."),
    "patch-everything": (1, 7, "", "%(patch)s", "",
        "Or %(loop)s patches everything, in the program's first line, before all other imports. "
        "(Not tried here: in this process it would come too late.)"),
    "trap": (1, 8, "", "", "%(package)s",
        "google-auth's adapter for client certificates injects pyOpenSSL for the whole process. "
        "The doctor made one to see it."),
    "asyncio": (1, 2, "", "%(line)s", "",
        "%(clients)s waited in the thread of the running %(by)s loop, %(places)s, and nothing "
        "else could run meanwhile."),
    "psycogreen": (1, 3, "", "import psycogreen.gevent; psycogreen.gevent.patch_psycopg()",
        "psycogreen",
        "psycopg2 waited in C, %(places)s, and no greenlet ran meanwhile: it connects by a TLS of "
        "its own, which no patch of gevent's reaches. psycogreen has it wait where the loop sees "
        "it."),
    "in-a-thread": (1, 3, "", "%(line)s", "",
        "%(clients)s waited, %(places)s, and no greenlet ran meanwhile: %(why)s."),
    "not-together": (1, 3, "%(remove)s", "", "",
        "truststore's injection and %(loop)s do not go together, in either order: one's sockets "
        "are given to the other's contexts. On Linux, ssl.create_default_context() as a rule "
        "trusts what the system trusts, without it."),
    "untrusted": (2, 13, "", "%(line)s", "",
        "No chain leads from the certificates of these servers to an authority that %(client)s "
        "trusts here%(trust)s. Trust the one that has signed them: give the file of its "
        "certificate.%(before)s (Or a server leaves out an intermediate certificate: that has to "
        "be put right on the server.)"),
    "connection-close": (2, 14, '"Connection": "close"  # of the headers', "", "",
        "%(client)s sends Connection: close%(where)s, and each reply to it ends its connection: "
        "%(connections)s, a handshake for each (%(ms).0f ms of CPU, %(s).2f s in all), %(loads)s. "
        "Without that header a Session or a client keeps them%(keep)s."),
    "server-closes": (2, 14, "", "", "",
        "The server ends each connection of %(client)s with its reply (Connection: close): "
        "%(connections)s, a handshake for each (%(ms).0f ms of CPU, %(s).2f s in all), %(loads)s. "
        "No client can keep them. If the server is yours, let it keep connections (keep-alive)."),
    "keep-connections": (2, 14, "", "", "",
        "%(client)s made %(connections)d connections to %(host)s for a request or two each, one "
        "after the other: a handshake for each (%(ms).0f ms of CPU, %(s).2f s in all). One client "
        "or session that is kept would need few, if its limits keep connections and its headers do "
        "not say Connection: close. (Unless the server ends them.)"),
    "one-connection": (3, 20, "", "%(line)s", "",
        "%(client)s made %(connections)d connections to %(host)s, which speaks HTTP/2: one can "
        "carry as many requests at once as the server allows."),
    "lock": (4, 11, "%(remove)s", "%(line)s", "",
        "%(wanted)d handshakes were wanted at once, but never more than one ran: a lock is held "
        "through each handshake (the context's sockets are those of %(by)s), so they waited "
        "%(behind_s).2f s for each other.%(whose)s"),
    "loop-loads": (4, 16, "", "%(line)s", "",
        "%(loads)s of certificates happened in the thread of the running event loop%(where)s: "
        "for %(ms).0f ms of CPU nothing else could run. Make one client before the work begins, or "
        "one context, and hand it to all clients that show no certificate of their own."),
    "share-contexts": (4, 16, "", "%(line)s", "",
        "%(alive)d contexts with the same certificates were alive at once, made by %(client)s"
        "%(where)s. While they were loaded, memory grew by %(mib).0f MiB. One context serves all "
        "clients that show no certificate of their own."),
    "keep-one": (2, 10, "", "%(line)s", "", "%(client)s loaded %(loads)s%(where)s. %(sentence)s"),
    "loads-late": (2, 13, "%(remove)s", "%(line)s", "",
        "%(client)s loaded %(loads)s%(where)s. A context of truststore%(instead)s loads the "
        "system's certificates once more in each handshake, whoever shares it. On Linux, one that "
        "ssl.create_default_context() makes%(once)s as a rule trusts what the system trusts, too, "
        "and loads once."),
    "larger-pool": (2, 10, "", "%(line)s", "",
        "%(client)s loaded %(loads)s%(where)s. %(sentence)s"),
    "another-openssl": (2, 13, "", "", "a Python with another OpenSSL",
        "Of the six releases that the book measured, a load takes longest with OpenSSL 3.0; with "
        "1.1.1 and 4.0 it takes a fraction of that."),
    "share-context": (2, 10, "", "%(line)s", "",
        "If there are still new connections after that, the book's shared_context.py lends them "
        "one context. (Read first when not to use it.)"),
    "run-it": (2, 10, "", "", "",
        "In a trial, %(clients)s loaded the certificates anew for each connection. What that costs "
        "your program, if anything, is told by a run: doctor.py run -- %(program)s"),
    "http2": (3, 20, "", "", "httpx[http2] or niquests",
        "%(url)s offers HTTP/2, and %(client)s speaks %(version)s. At a distance, many small "
        "requests at once over one connection pay; next door, with Python's h2 at both ends, they "
        "cost more."),
}  # fmt: skip
_WANTING = {
    "full": "%(wanted)d connections to one host were in use at once, and its pool keeps %(size)d: "
    "%(times)d were closed after their reply, and made anew. A place for each thread keeps them.",
    "evicted": "It was asked for %(wanted)d hosts and keeps connections to %(size)d: for %(times)d "
    "of its requests the host's connections had been closed to make room.",
}
#: Functions that make a client for one request.
CALLS = "get post put patch delete head options request stream".split()
#: Where loads are no illness, those that take less are no advice.
WORTH_FROM_MS = 20
#: Another OpenSSL is advised from this many loads on, of at least this many milliseconds.
DEAR_LOADS_FROM, DEAR_FROM_MS = 5, 3
NO_FEWER = (
    " That saves no load here: tried with %d at once, as in the run, each connection loads by "
    "itself. It saves memory, and the loads of later requests."
)
EACH_ONCE = ", where it is kept for many requests: here each connection is made for one"
#: The package to upgrade when one of its files injects pyOpenSSL.
UPGRADES = {
    "requests/": "requests 2.24 or newer, which leaves pyOpenSSL alone",
    "google/auth/": "google-auth 2.55.2 or newer, which leaves pyOpenSSL alone",
}
#: What a connection fails with that no authority vouches for.
UNTRUSTED = ("unable to get local issuer certificate", "self-signed certificate",
    "self signed certificate")  # fmt: skip
#: What connections fail with when ssl was imported before, or patched without, the rest.
LATE_PATCH = ("recursion", "_wrap_socket() argument")


def chapter(number):
    """Return where a chapter is to be read."""
    file, title = CHAPTERS[number]
    if not ADDRESS:
        return "chapter %d, %s, of The curious case of slow HTTPS in Python" % (number, title)
    return "chapter %d, %s: %s/blob/main/notebooks/%s.ipynb" % (number, title, ADDRESS, file)


def advise(name, saves="", **values):
    """Return one thing to change: what ADVICE has of that name, with these values in it."""
    case, number, remove, add, package, sentence = ADVICE[name]
    texts = {"what": sentence % values, "remove": remove % values, "add": add % values}
    texts.update(id=name, case=case, package=package % values, saves=saves)
    return dict(texts, chapter=chapter(number))


def advice_on_loop(examination):
    """Return the advice on a loop that was tried."""
    advice, of_block = [], []
    for row in examination.clients:
        loop, error = examination.loop["name"], readable(row["error"]).lower()
        names = dict(row, loop=loop, patch=PATCHES[loop])
        if row["verdict"] == UNPATCHED:
            advice.append(advise("patch", **names))
        elif row["verdict"] == CANNOT_TELL and any(sign in error for sign in LATE_PATCH):
            advice.append(advise("patch-first", **names))
        elif row["verdict"] == BLOCKED and row["imported"]:
            of_block = of_block or advice_on_block(examination, names)
    trap = [advise("trap", package=UPGRADES["google/auth/"])] if examination.trap else []
    return advice + of_block + trap


def advice_on_block(examination, names):
    """Return the advice on a loop that is blocked.

    names: the row of the client that is blocked, and what sentences say of its loop.
    """
    advice, saves, socket = [], {}, str(names["socket"])
    for row in examination.cures:
        if row["verdict"] == FREE:
            numbers = (DELAYS_S[0], names["https"]["trials"][0]["wall_s"], row["wall_s"])
            text = "two requests that take %.1f s each: %.2f s now, %.2f s with it"
            saves[row["cure"]] = text % numbers
    providers = dict((row["name"], row["by"]) for row in examination.provides)
    if providers.get("urllib3's SSLContext") == "pyOpenSSL":
        cure = "extract_from_urllib3()"
        injection = (
            examination.injections[-1] if examination.injections else {"file": "", "text": ""}
        )
        names.update(injection, by=injected_by(injection))
        packages = [UPGRADES[place] for place in UPGRADES if injection["file"].startswith(place)]
        names["package"] = "".join(packages)
        names["without"] = " Without that call the loop runs on." if cure in saves else ""
        advice.append(advise("injected", saves.get(cure, ""), **names))
    elif "pyopenssl" in socket.lower():
        advice.append(advise("through-pyopenssl", **names))
    elif socket.startswith("ssl."):
        advice.append(advise("standard-socket", **names))
    candidates = (("gevent's SSLContext", "gevents-context"), ("patch_select()", "patch-select"))
    for cure, name in candidates:
        if cure in saves:
            advice.append(advise(name, saves[cure]))
    return advice + [advise("patch-everything", **names)]


def injected_by(injection):
    """Return who injected pyOpenSSL, as the beginning of a sentence."""
    sentence = "pyOpenSSL was injected into urllib3"
    if injection["file"]:
        place = "%(file)s:%(line)s" % injection
        sentence += " by " + place
        if injection["from"] and not place.endswith(injection["from"]):
            sentence += ", called from %(from)s" % injection
    return sentence


def advice_on_waits(examination):
    """Return the advice on waits that stop a loop, of clients or of anything else."""
    counts = examination.counts
    blocked = counts["blocked"]
    if blocked["waiting_s"] < LOOP_BLOCKED_FROM_S:
        blocked = counts["silent"]
    names = [name for name, _ in blocked["clients"]]
    clients, reason = " and ".join(names) or "The program", "%s has patched nothing there"
    if blocked is counts["silent"] and not names and counts["own_tls"]:  # C has no frame to name
        clients += " (in %s, which brings TLS of its own?)" % " or ".join(counts["own_tls"])
        reason = "what waits in C no patch of %s's reaches"
    places = ", ".join(place for place, _ in blocked["at"][:3]) or "in code that cannot be named"
    names = dict(by=blocked["by"], clients=clients, places="called at " + places)
    names["why"] = reason % blocked["by"]
    if blocked["by"] == "gevent" and "psycopg2" in clients:
        return [advise("psycogreen", **names)]
    line = IN_A_THREAD[blocked["by"]]
    if blocked["by"] == "asyncio" and version_of(examination) < (3, 9):
        line = BEFORE_TO_THREAD
    line = line_in_a_thread(line, blocked["at"][0][0] if len(blocked["at"]) == 1 else None)
    return [advise("in-a-thread" if blocked["by"] in PATCHES else "asyncio", line=line, **names)]


def line_in_a_thread(line, place):
    """Return the line that has a thread wait, with the program's own call, if its line has one.

    place: "file.py:3", or None.
    """
    call = call_that_waits(place, by_await="await " in line) if place else None
    if not call or line.startswith("deferred"):  # which has to be waited for in another way
        return line
    work = "lambda: %s)" % call
    return re.sub(r"\(\.\.\.\)", "(function)", line).replace("function)", work)


def version_of(examination):
    """Return the version of the program's Python, as (3, 13)."""
    return tuple(int(part) for part in str(examination.python or "3.9").split(".")[:2])


def advice_on_failures(examination):
    """Return the advice if no connection came through, as far as the reason is known."""
    loop, counts = examination.loop, examination.counts or {}
    # The injection that came second is in ssl; urllib3 may have kept the first.
    provided = any("truststore" in str(row["class"]) for row in examination.provides)
    if loop and loop["patched"] and (counts.get("truststore") or provided):
        return [advise("not-together", loop=loop["name"], remove=INJECTS)]
    rows = counts.get("clients", [])
    failed = " ".join(readable(words) for words, _ in counts.get("failures", []))
    if rows and any(sign in failed for sign in UNTRUSTED):
        return [
            advise("untrusted", **names_of_trust(max(rows, key=lambda row: row["connections"])))
        ]
    return []


def names_of_trust(row):
    """Return what sentences say of the certificates that the client of a row trusts."""
    files, client = [path for path, _ in row["trusts"]], client_named(row["client"])
    variables = [name for name in client.trust_variables.split() if os.environ.get(name)]
    before = " (%s is set, and comes before session.verify.)" % variables[0] if variables else ""
    line = client.trust_line or 'context = ssl.create_default_context(cafile="...")'
    return dict(
        client=row["client"] or "the program", line=line, before=before,
        trust=" (%s)" % ", ".join(files[:2]) if files else "",
    )  # fmt: skip


_OF_TRUSTSTORE = (
    " truststore 0.10.5 does that. 0.10.4 does not, but can kill a process in which threads share "
    "the context of a client that awaits. Where you need what the system trusts, give each thread "
    "a client and a context of its own (each handshake then still loads); asyncio's tasks do not "
    "wait for it."
)


def of_lock(examination, module):
    """Return whose lock handshakes wait for, and what to change, for sockets of a module."""
    names = {"remove": ""}
    if "truststore" in module:
        names["whose"] = _OF_TRUSTSTORE
        if is_injected(examination):  # and ssl.create_default_context() makes truststore's, too
            names.update(remove=INJECTS, line="")
    elif module == "ssl":
        names["whose"] = " ssl holds none: it is the program's own, or that of a class of its own."
        names["line"] = (
            "context.wrap_socket(..., do_handshake_on_connect=False)  # do_handshake() comes "
            "later, without the lock"
        )
    return names


def is_injected(examination):
    """Return whether truststore, or the copy of it in pip, is in the place of ssl's contexts."""
    return any(
        row["name"] == "ssl.SSLContext" and "truststore" in str(row["class"])
        for row in examination.provides
    )


def advice_on_others(examination, verdicts):
    """Return the advice on the illnesses of the fourth case."""
    counts, advice = examination.counts, []
    line = "context = ssl.create_default_context()  # once, for all clients"
    if verdicts["handshakes"] == ONE_AT_A_TIME:
        names = dict(counts["queue"], line=line, whose="")
        names.update(of_lock(examination, names["by"]))
        advice.append(advise("lock", **names))
    if verdicts["loads on the loop"] == HELD_UP:
        names = dict(
            counts["on_loop"], line=line, loads=several(counts["on_loop"]["loads"], "load")
        )
        first = names["at"][0][0] if names["at"] else None
        for row in counts["clients"]:
            if row["at"] and row["at"][0][0] == first:
                names["line"] = line_for_all(line, row, shares_contexts(examination))
        advice.append(advise("loop-loads", where=place_in(names["at"]), **names))
    if verdicts["contexts"] == ONE_FOR_EACH:
        row = max(counts["clients"], key=lambda row: row["alive"])
        names = dict(row, line=line, where=place_in(row["at"]), mib=counts["context_mib"])
        names["client"] = row["client"] or "the program"
        names["line"] = line_for_all(line, row, shares_contexts(examination))
        advice.append(advise("share-contexts", **names))
    return advice


def place_in(places):
    """Return the first of some places, as the end of a sentence."""
    return ", at %s" % places[0][0] if places else ""


def advice_on_counts(examination, verdict):
    """Return the advice on a run's loads, first what risks nothing."""
    rows = [row for row in examination.counts["clients"] if row["loads"] > row["needed"] + 1]
    rows = [row for row in rows if not (row["kept"] and has_to_load(row))]
    if verdict != REPEATED:
        rows = [row for row in rows if not row["kept"] and row["spare_ms"] >= WORTH_FROM_MS]
    advice = list(advice_on_closings(examination))
    for row, others in group_alike(rows):
        advice += advice_on_row(examination, row, others, verdict)
    if not advice:  # which says as much
        advice += advice_on_hosts(examination.counts)
    for host in examination.counts["http2"]:
        client = client_named(host["client"])
        line = (host["awaits"] and client.multiplexed_awaiting) or client.multiplexed
        names = dict(host, line=line, client=host["client"] or "A client")
        advice.append(advise("one-connection", **names))
    return advice + advice_on_openssl(examination, rows) + advice_on_sharing(examination, rows)


def group_alike(rows):
    """Return pairs of (row, others that one and the same client of a library would do without).

    A library may load for the client that it calls, and that client once more. The row is the one
    whose place tells the program's own call.
    """
    groups = []
    for row in rows:
        library = library_between(row)
        line = keep_one(row)[0] if library else None
        for group in groups:
            if library and group[0] == library and (is_untold(line) or line in group[1:2]):
                group[2].append(row)
                break
            if library and group[0] == library and is_untold(group[1]):
                group[1:] = [line, [row] + group[2]]
                break
        else:
            groups.append([library, line, [row]])
    return [(group[2][0], group[2][1:]) for group in groups]


def is_untold(line):
    """Return whether a line makes a client whose call was not found in the program's file."""
    return "...  # of " in line or "(...)  # " in line


def advice_on_row(examination, row, others, verdict):
    """Return the advice on one client that loads again and again.

    others: rows that the same change would do for, as `group_alike` tells.
    """
    injected = is_injected(examination)
    larger, keep = larger_pool(row), keep_one(row)
    client = client_named(row["client"])
    if client.loads_each and is_shared(row, examination.counts):
        keep = None  # one Session for many connections: it is kept
    if larger and not client.pool_beside:
        keep = None
    names = names_of(row, others)
    nothing_to_keep = row["contexts"] <= row["needed"] or not (keep or larger)
    if injected and nothing_to_keep:
        names.update(remove=INJECTS, line="", instead=", in the place of ssl.SSLContext,")
        return [advise("loads-late", once=", without the injection,", **names)]
    if not injected and any("truststore" in module for module, _ in row["by"]):
        # A client that is kept would load as often.
        line = "context = ssl.create_default_context()  # on Linux; once, for all"
        return [advise("loads-late", line=line, remove="", instead="", once="", **names)]
    advice = []
    for name, pair in ("keep-one", keep), ("larger-pool", larger):
        if pair is not None:
            line, sentence = pair
            if injected:
                sentence += " (truststore loads the system's once more in each handshake.)"
            trials = [trial_of(name, each) for each in [row] + (others if pair is keep else [])]
            tried = (examination.tried or {}).get
            tried = sum_of_trials([tried(trial) for trial in trials if tried(trial)])
            note, saves = promise_of(tried, verdict)
            advice.append(advise(name, saves, **dict(names, line=line, sentence=sentence + note)))
    return advice


def names_of(row, others=()):
    """Return what sentences say of one client: its row, with what it did and where in words.

    others: rows that are told with it.
    """
    rows = [row] + list(others)
    through = library_between(row)
    place = ", called by %s" % through if through else ""
    places = sorted(set(each["at"][0][0] for each in rows if each["at"]))
    place += ", from %s" % " and ".join(places) if places else ""
    loads, connections = [sum(each[name] for each in rows) for name in ("loads", "connections")]
    loads = "%s for %s" % (times(loads), several(connections, "connection"))
    client = " and ".join(each["client"] or "the program" for each in rows)
    return dict(row, where=place, loads=loads, client=client if row["client"] else "The program")


def sum_of_trials(trials):
    """Return what came of several trials as one's, as in `try_changes`; None if there are none."""
    if not trials:
        return None
    sums = dict(trials[0])
    for name in ("now", "then"):
        sums[name] = dict(
            (key, sum(trial[name][key] for trial in trials)) for key in ("loads", "cpu_ms")
        )
    if any(trial["with"] == "http.client" for trial in trials):
        sums["with"] = "http.client"
    return sums


def promise_of(tried, verdict):
    """Return (what is to be said of a trial beside, what it saved), in words."""
    if not tried:
        note = " What that saves could not be tried, so nothing is promised."
        return note if verdict == REPEATED else "", ""
    if tried["then"]["loads"] >= tried["now"]["loads"]:
        return NO_FEWER % tried["at_once"], ""
    return "", saves_of(tried)


def advice_on_openssl(examination, rows):
    """Return the advice to use another OpenSSL, if loads with this one are costly."""
    costly = [row for row in rows if row["loads"] >= DEAR_LOADS_FROM]
    costly = [row for row in costly if row["load_ms"] >= DEAR_FROM_MS * row["loads"]]
    modules = [module for row in costly for module, _ in row["by"]]
    # pyOpenSSL brings another OpenSSL than Python's.
    names = set("pyOpenSSL" if module.startswith("OpenSSL") else "ssl" for module in modules)
    is_costly = any(" 3.0." in str(examination.openssl.get(name)) for name in names)
    return [advise("another-openssl")] if is_costly else []


def advice_on_sharing(examination, rows):
    """Return the advice to share a context, where that works."""
    if not shares_contexts(examination):
        return []
    lines = [client_named(row["client"]).shared_context for row in rows]
    return [advise("share-context", line=line) for line in list(filter(None, lines))[:1]]


def shares_contexts(examination):
    """Return whether the book's shared_context.py works in a program."""
    return not is_injected(examination) and version_of(examination) >= (3, 7)


KEPT_KIND = (
    "Each new %s loads anew; one that is kept, for many requests to few hosts, keeps its "
    "connections, and what it loads."
)


def keep_one(row):
    """Return (line, sentence) of what makes the client of a row load once.

    The line is the program's own call, with its arguments, if the line that loads has one.
    """
    client = client_named(row["client"])
    line, sentence = client.keep or KEEP_CONTEXT
    other = client.keep_awaiting if row["awaits"] else None
    both = other and row["awaits"] < row["loads"]
    call = None if both else own_call(row)
    if both:
        line = "%s; awaiting = %s" % (line, other[0].partition(" = ")[2])
    elif other:
        line, sentence = other
    line = with_trust(line, row)
    library = library_between(row) or (None if client.keep else row["client"])
    if library:
        return keep_one_of_library(library, row, sentence)
    if row.get("kind"):
        call = call or "%s(...)" % row["kind"]
        sentence = KEPT_KIND % row["kind"].rpartition(".")[2]
    own_settings = settings_kept(client, row)
    if own_settings:
        return own_settings
    if call:
        line = "%s = %s" % (line.partition(" = ")[0] if " = " in line else "context", call)
        line += "" if row["client"] else settings_after(row["at"][0][0])
        return when_made(line, "once, before the work begins"), sentence
    if not both and client.takes_context and line.endswith("()"):
        line = line[:-1] + trust_argument(client.keyword, row) + ")"
    return line, sentence


def keep_one_of_library(library, row, sentence):
    """Return (line, sentence) of what makes a library load once that is between.

    sentence: what is said of the client that it calls.
    """
    record, client = client_named(library), client_named(row["client"])
    if is_function(library, row):
        return line_of_function(library, row)
    if record.connects:
        return line_with_context(library, row), advice_to_keep(library)[1]
    if client.for_each_request and record.constructor is None:
        return line_for_each_request(library, row)
    _, note = advice_to_keep(library)
    if client.keep and record.keyword:
        note += " " + sentence
    taken = [
        keyword for keyword in TAKES if keyword in (row.get("call") or {}).get("parameters", [])
    ]
    if taken and not record.constructor:
        note = KEPT_OR_GIVEN % dict(library=library, keyword=taken[0])
    return client_line(library, row, "once, before the work begins"), note


def line_for_each_request(library, row):
    """Return (line, sentence) of what gives a context to a client that makes one each time."""
    client = client_named(row["client"])
    line, text = client.for_each_request
    return with_trust(line, row), text % {"library": library, "client": client.name}


def settings_kept(client, row):
    """Return (line, sentence) if the line that loads makes settings of a client's that do."""
    names, name, moment, sentence = client.settings or ("", None, None, None)
    call = row["at"] and call_at(row["at"][0][0], names.split())
    return (when_made("%s = %s" % (name, call), moment), sentence) if call else None


def when_made(line, moment):
    """Return a line with a comment: when it is run. A client certificate is one context's alone."""
    if re.search(r"\bload_cert_chain\(|\bcert=", line):
        moment = "once for each client certificate"
    return "%s  # %s" % (line, moment)


def trust_argument(keyword, row):
    """Return the argument that has a client trust what the program's own call did, or "".

    keyword: by which both the client and a call without one take a context.
    """
    place = row["at"][0][0] if row["at"] else None
    call = (place and call_at(place, CALLS)) or ""
    match = re.search(r"\b%s=([^,()]+|[^,()]*\([^()]*\))(?=[,)])" % keyword, call)
    if match:
        return match.group()
    context = with_trust("ssl.create_default_context()", row)
    return "%s=%s" % (keyword, context) if "cafile" in context else ""


def own_call(row):
    """Return the program's own call that made what is to be kept, as it stands there.

    None if the line that is named has none, or takes what only a pool of one's own could hold.
    """
    if not row["at"]:
        return None
    client = client_named(row["client"])
    makers = client.makers if row["client"] else "create_default_context"
    if row.get("kind"):
        place, name = row["at"][0][0], row["kind"].rpartition(".")[2]
        library = row["kind"].partition(".")[0]
        call = call_at(place, [name]) or call_of_library(place, library, name)
        return call or call_of_library(place, library)  # which may make that
    call = call_at(row["at"][0][0], makers.split())
    if not call and client.connects_later:
        library, place = client.front or client.name, row["at"][0][0]
        calls = [call_of_library(place, library, name, True) for name in makers.split()]
        calls = list(filter(None, calls))
        call = calls[0] if len(calls) == 1 else None
    if call and client.needs_context and client.needs_context[0] not in call:
        keyword, of_file = client.needs_context
        context = r"%s=ssl.create_default_context(cafile=\1)" % keyword
        call, number = re.subn(r"\b%s=([^,()]+|[^,()]*\([^()]*\))" % of_file, context, call)
        if not number:
            call = with_argument(call, keyword, "ssl.create_default_context()")
    return call


def line_for_all(line, row, shares):
    """Return the line that makes one context, or one client if its library takes no context.

    It is the program's own call, or one like it. shares: as `shares_contexts` tells.
    """
    client = client_named(row["client"])
    library = library_between(row) or client.front or (None if client.keep else row["client"])
    if library and is_function(library, row):
        return line_of_function(library, row)[0]
    if library and not client_named(library).takes_context:
        return client_line(library, row, "once, for all")
    if client.shared_context and shares and not library:
        return client.shared_context
    call = own_call(row) if row["client"] is None else None
    if call:
        line = "context = %s%s" % (call, settings_after(row["at"][0][0]))
        return when_made(line, "once, for all clients")
    return with_trust(line, row)


def client_line(library, row, how):
    """Return the line that makes the one client of a library that is kept.

    It is the program's own call, if its file has one; how: that it is made once, as a comment.
    """
    record, place = client_named(library), row["at"][0][0] if row["at"] else None
    maker = record.constructor
    name = (maker.rpartition(".")[2] if maker else record.makers) or None
    call = place and (call_of_library(place, library, name) or call_at(place, [name or ""]))
    if record.entered:
        call = call or "session.%s(...)" % name
        return "async with %s as client: ...  # once, around all the work" % call
    if call:
        kept = "api_client" if call.startswith("client.") else "client"  # a module of that name
        return "%s = %s  # %s" % (kept, call, how)
    return (
        "client = %s(...)  # %s" % (maker, how)
        if maker
        else ("client = ...  # of %s, made %s" % (library, how))
    )


KEPT_OR_GIVEN = (
    "Make one client of %(library)s, and keep it. If there have to be several, as for several "
    "accounts, make one context, by context = ssl.create_default_context(), and give it to each as "
    "%(keyword)s=context."
)
#: By which functions take a context, and what names the certificates that it holds.
TAKES = ("ssl_context", "tls_context", "sslcontext", "context", "ssl")
OF_TRUST = ("cafile", "ca_file", "ca_certs", "ca_bundle", "cert_bundle")


def is_function(library, row):
    """Return whether all loads of a row are of one function of a library that is not known."""
    record = client_named(library)
    is_call = bool(row.get("call")) and not row["call"].get("makes")
    return is_call and not (record.constructor or record.makers)


def line_of_function(library, row):
    """Return (line, sentence) of what makes a function of a library load once.

    That is a context or a client that it takes; or an object of the class that it makes each time.
    """
    call, place = row["call"], row["at"][0][0] if row["at"] else None
    function, kept = call["name"], (client_named(row["client"]).keep or ("", ""))[0]
    name, kept = function.rpartition(".")[2], kept.partition(" = ")[0]
    own = place and (call_at(place, [name]) or call_of_library(place, library, name))
    known = [(client_named(library).takes or "").partition("=")[::2]]
    known += [(keyword, "") for keyword in TAKES]
    takes = [(key, value or "context") for key, value in known if key in call["parameters"]]
    if known[0][0] and "**" in call["parameters"]:
        takes = [(known[0][0], known[0][1] or "context")]
    clients = [keyword for keyword in (kept, "http_" + kept) if keyword in call["parameters"]]
    or_keep = (
        " (Or keep one %s, if it is to connect once.)" % call["keeps"] if call["keeps"] else ""
    )
    if takes:
        context = with_trust("context = ssl.create_default_context()", row)
        line = with_argument(own or function + "(...)", takes[0][0], takes[0][1], OF_TRUST)
        text = "%s makes a context for each call, if it is given none: make one, and give it to "
        text += "each as %s=.%s"
        return "%s  # once; then %s" % (context, line), text % (function, takes[0][0], or_keep)
    if kept and clients:
        line = with_argument(own or function + "(...)", clients[0], kept)
        text = "%s makes a %s for each call, if it is given none: make one, and give it to each as "
        text = (text + "%s=.") % (function, kept, clients[0])
        client = client_named(row["client"])
        made = ((row["awaits"] and client.keep_awaiting) or client.keep)[0]
        return "%s  # once; then %s" % (made, line), text
    if call["keeps"]:
        text = "%s makes a %s for each call, and loads for it: make one, keep it, and call its "
        text = (text + "methods in the place of that function.") % (function, call["keeps"])
        return "client = %s(...)  # once, before the work begins" % call["keeps"], text
    if client_named(row["client"]).for_each_request:
        return line_for_each_request(library, row)
    text = "%s loads for each call, and takes neither a context nor a client. If %s has a class "
    text += "whose objects can be kept, use that; else only its authors can have it load once."
    return "", text % (function, library)


def line_with_context(library, row):
    """Return the line that gives one context to each connection of a library that takes one.

    It is the program's own call, if its file has one, with the context added.
    """
    record, place = client_named(library), row["at"][0][0] if row["at"] else None
    name = record.constructor.rpartition(".")[2]
    call = place and (call_of_library(place, library, name) or call_at(place, [name]))
    call = call or "%s.%s(...)" % (library, name)
    context = with_trust("context = ssl.create_default_context()", row)
    return "%s  # once; then %s" % (context, with_argument(call, record.keyword, "context"))


def with_trust(text, row):
    """Return a line that makes a context with the certificates that the program names, if any."""
    trust = row["trusts"][0][0] if row["trusts"] else None
    default = trust in (None, "system") or trust.startswith("data ") or "certifi" in trust
    named = [os.environ.get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
    default = default or trust in [os.path.realpath(path) for path in named if path]
    default = default or os.path.basename(trust) in ("ca-certificates.crt", "cert.pem")
    if default:
        return text
    context = "ssl.create_default_context(cafile=%r)" % str(trust)
    return text.replace("ssl.create_default_context()", context)


def advice_on_closings(examination):
    """Yield the advice on connections that are ended with each reply."""
    counts = examination.counts
    for row in counts["clients"]:
        side = max(row["closed"], key=row["closed"].get) if row["closed"] else None
        if (
            side is None
            or row["closed"][side] < TOO_MANY_FROM
            or row["connections"] < TOO_MANY_FROM
        ):
            continue
        share = row["connections"] / max(counts["connections"], 1)
        names = dict(
            client=row["client"] or "The program", where=place_in(row["closed_at"]),
            connections=several(row["connections"], "connection"),
            loads=several(row["loads"], "load"), ms=share * counts["handshake_ms"],
            s=share * counts["handshake_s"], keep=EACH_ONCE if is_made_anew(row) else "",
        )  # fmt: skip
        tried = (examination.tried or {}).get(trial_of("connection-close", row))
        saves = saves_of(tried) if tried and side == "program" else ""
        yield advise("connection-close" if side == "program" else "server-closes", saves, **names)


def advice_on_hosts(counts):
    """Return the advice on connections that are made anew, whatever they load."""
    advice, of_http2 = [], [row["host"] for row in counts["http2"]]  # told as that
    for host in counts["unkept"]:
        if host["host"] in of_http2:
            continue
        share = host["connections"] / max(counts["connections"], 1)
        names = dict(host, ms=share * counts["handshake_ms"], s=share * counts["handshake_s"])
        advice.append(advise("keep-connections", **names))
    return advice


def is_made_anew(row):
    """Return whether each connection of a row that asked for its end was made for that."""
    return 0 < row["closers"] == row["closed"].get("program")


def library_between(row):
    """Return the library that called the client of a client's row; None if the program did."""
    return row["through"] if row["through"] != row["client"] else None


def trial_of(name, row):
    """Return what `try_changes` calls the trial of a change; None if it has none.

    name: of the advice that asks for the change.
    """
    client = client_named(row["client"])
    if name == "keep-one":
        return client.name or ITS_OWN
    change = client.larger_pool_change if name == "larger-pool" else client.closing_change
    return change if change == client.name or change in client.trials else None


def larger_pool(row):
    """Return (line, sentence) of the pool that would have kept a row's connections.

    None if none of them was closed for want of a place.
    """
    client = client_named(row["client"])
    options = client.pool_options
    kinds = [kind for kind in wanting(row) if kind in options]
    if not kinds:
        return None
    line = ", ".join("%s=%d" % (options[kind], row["wanted"][kind]) for kind in kinds)
    sentences = [_WANTING[kind] % dict(
        wanted=row["wanted"][kind], size=row["size"][kind], times=row[kind]
    ) for kind in kinds]  # fmt: skip
    return client.larger_pool % line, " ".join(sentences)


def saves_of(tried):
    """Return what was seen to be saved, in words."""
    numbers = (requests_of(tried), several(tried["now"]["loads"], "load"), tried["now"]["cpu_ms"])
    numbers += (several(tried["then"]["loads"], "load"), tried["then"]["cpu_ms"])
    text = "tried here, against the doctor's own server: of %s, %s and %.0f ms of CPU; "
    if tried["with"] == "http.client":
        text = text.replace("tried here", "tried here with http.client")
    return (text + "with it %s and %.0f ms") % numbers


def requests_of(tried):
    """Return how many requests a trial made, in words."""
    text = several(tried["connections"], "request")
    return text + (", %d at once" % tried["at_once"] if tried["at_once"] > 1 else "")


def advice_on_trials(examination):
    """Return the advice on trials, of a program that nobody has seen at work."""
    repeated = [
        row for row in judged_rows(examination.loads, examination.program) if not row["error"]
    ]
    repeated = [
        row["client"] for row in repeated if sum(row["by_connection"]) >= 3 or row["by_call"]
    ]
    if repeated:
        clients = " and ".join(repeated)
        return [advise("run-it", clients=clients, program=examination.program or "your_program.py")]
    return []


def advice_on_http(examination):
    """Return the advice on HTTP/1.1 where the server offers HTTP/2."""
    http = examination.http
    old = [row for row in http["clients"] if str(row["version"]).startswith("HTTP/1")]
    if http["offers"] != "h2" or not old or old[0]["error"]:
        return []
    ms = old[0]["ms"][1]
    saves = "one by one, %d requests of %.0f ms take %.1f s; at once they wait for each other less"
    return [advise("http2", saves % (100, ms, 100 * ms / 1000), **dict(old[0], url=http["url"]))]
