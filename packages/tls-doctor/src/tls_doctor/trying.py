"""What a change saves: the counted connections, made again with and without it.

Against the doctor's own server, in a process of its own with the program's Python and its client.
The program itself is not run a second time.
"""

from __future__ import division, print_function

import json
import os

from .basis import CERTIFICATE, HOST, ITS_OWN, clock
from .clients import client_named
from .left_behind import loaded, try_import
from .probes import Probes
from .processes import spawn_self
from .state import process_ms
from .trials import CONTEXTS
from .verdicts import at_once, is_shared, wanting

#: How many connections at most are made again, and how long that may take.
MOST_AGAIN = 50
TRIED_WITHIN_S = 120
#: If they ask at once: how long each answer takes, how often they ask at most, and how many do.
AT_ONCE_S, MOST_ROUNDS, MOST_AT_ONCE = 0.2, 4, 50


def in_threads(fetch, number):
    """Return a function that has some threads fetch at once and returns their answers."""
    import threading

    answers = []

    def ask_all():
        del answers[:]
        threads = [threading.Thread(target=lambda: answers.append(fetch())) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(answers) < number:
            raise ValueError("not every thread got its answer")
        return answers

    return ask_all


def try_changes(examination, address):
    """Return {client: what the change was seen to save} for clients that repeat their loads.

    For contexts that the program makes itself, under ITS_OWN; for a change that has a name of its
    own (`Client.trials`), under that. A value: {"connections",
    "at_once" (as many as in the run), "now": {"loads", "cpu_ms"}, "then": the same, "with" (the
    client that made them: another if the doctor does not know the program's)}. What could not
    be tried is left out.
    """
    tried, late = {}, any(row["by"] == "truststore" for row in examination.provides)
    for row in examination.counts["clients"]:
        client = row["client"] or ITS_OWN
        n = min(MOST_AGAIN, row["connections"] or row["loads"])  # none, over plain HTTP
        repeats = row["loads"] - row["needed"] >= 2 and n >= 2
        record = client_named(client)
        shared = record.loads_each and is_shared(row, examination.counts)
        keeps = row["kept"] or shared
        is_known = record.trial or [module for module, _ in row["by"]] == ["ssl"]
        trial = {"trust": row["trusts"][0][0] if row["trusts"] else None, "address": address}
        awaits = bool(record.awaiting_trial) and 2 * row["awaits"] > row["loads"]
        trial.update(client=client, change=None, late=late, awaits=awaits)
        trial.update(wanted=min(at_once(row), MOST_AT_ONCE))
        closing, pool = record.closing_change, record.larger_pool_change
        if closing in record.trials and row["closed"].get("program", 0) >= 2:
            try_one(tried, dict(trial, change=closing, rounds=n, wanted=1, awaits=False))
        if repeats and is_known and not keeps and client not in tried:
            # (A client may make several connections with one load, as FTP does for its data.)
            try_one(tried, dict(trial, rounds=min(n, row["loads"])))
        places, is_wanting = row["wanted"].get("full", 0), "full" in wanting(row)
        if repeats and pool in record.trials and is_wanting and places <= MOST_AGAIN:
            trial = dict(trial, change=pool, wanted=places, size=row["size"]["full"])
            rounds = max(2, min(MOST_ROUNDS, MOST_AGAIN // places))
            try_one(tried, dict(trial, rounds=rounds, awaits=False))
    return tried


def try_one(tried, trial):
    """Add to what was tried what came of one trial, if it came to something."""
    import time

    path = os.path.join(trial["address"]["folder"], "trial")
    with open(path, "w") as file:
        file.write(json.dumps(trial))
    environ, deadline = dict(os.environ, no_proxy="*", NO_PROXY="*"), clock() + TRIED_WITHIN_S
    with open(os.devnull, "w") as nowhere:
        process = spawn_self("--child-try", path, environ=environ, stdout=nowhere, stderr=nowhere)
    while process.poll() is None and clock() < deadline:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
    if process.wait() == 0:
        with open(path) as file:
            tried[trial["change"] or trial["client"]] = json.loads(file.read())


def try_change(path):
    """Run one trial, as its process; return the exit status, 0 if it came to something."""
    with open(path) as file:
        trial = json.loads(file.read())
    result = measure_trial(trial)
    if result is None:
        return 1
    has_to_save = trial["wanted"] == 1 or trial["change"]
    if has_to_save and result["then"]["loads"] >= result["now"]["loads"]:
        return 1
    with open(path, "w") as file:
        file.write(json.dumps(result))
    return 0


def measure_trial(trial):
    """Return what came of a trial, as in `try_changes`; None if it could not be made."""
    events = []
    probes = Probes(events.append).install()
    number, rounds, kinds = trial["wanted"], trial["rounds"], ("last", "kept")
    module, repeating, keeping = trial_functions(trial)
    if is_of_places(trial):
        kinds = ("kept", "kept")
    elif number > 1:
        rounds = max(1, min(MOST_ROUNDS, rounds // number))
    trust = bundle(trial["trust"], trial["address"]["folder"])
    if trust is None or not try_import(module):
        return None
    if trial["late"] and try_import("truststore"):  # as in the program
        loaded("truststore").inject_into_ssl()
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        os.environ[name] = trust
    url = "https://%s:%d/%s/" % (HOST, trial["address"]["https"], AT_ONCE_S if number > 1 else 0)
    result = {"connections": rounds * number, "at_once": number, "with": trial["client"]}
    if (module, repeating, keeping) == CONTEXTS:
        result["with"] = "http.client"

    def measure(prepare, kind, rounds):
        """Return what some rounds took, or None if a reply was another than the one asked for."""
        del events[:]
        started_ms = process_ms()
        fetch = fetcher(trial, prepare, url + kind, trust)
        for _ in range(rounds):
            replies = fetch()
            replies = replies if isinstance(replies, list) else [replies]
            if any(json.loads(reply.decode("ascii"))["trial"] != kind for reply in replies):
                return None
        loads = sum(event["is"] == "load" for event in events)
        return {"loads": loads, "cpu_ms": round(process_ms() - started_ms, 1)}

    functions = list(zip((repeating, keeping), kinds))
    # The first of each is not counted: it brings what is imported late.
    first = [measure(prepare, kind, 1) for prepare, kind in functions]
    result["now"], result["then"] = [measure(prepare, kind, rounds) for prepare, kind in functions]
    probes.remove()
    return None if None in first + [result["now"], result["then"]] else result


def trial_functions(trial):
    """Return (module, function that loads again, function that does not), as `Client.trial`."""
    client = client_named(trial["client"])
    if trial["change"] is None:
        return (client.awaiting_trial if trial["awaits"] else client.trial) or CONTEXTS
    module, repeating, keeping = client.trials[trial["change"]]
    if is_of_places(trial):
        repeating = of_size(repeating, trial["size"])
        keeping = of_size(keeping, trial["wanted"])
    return module, repeating, keeping


def is_of_places(trial):
    """Return whether a trial is that of a larger pool."""
    pool = client_named(trial["client"]).larger_pool_change
    return trial["change"] is not None and trial["change"] == pool


def of_size(prepare, places):
    """Return a function of a trial that has a pool of so many places."""
    return lambda url, trust: prepare(url, trust, places)


def fetcher(trial, prepare, url, trust):
    """Return a function that fetches, as many times at once as in the run."""
    number = trial["wanted"]
    if trial["awaits"]:
        return prepare(url, trust, number)
    return in_threads(prepare(url, trust), number) if number > 1 else prepare(url, trust)


def bundle(trust, folder):
    """Return a file of the certificates that the program loaded, and the doctor's, or None."""
    if trust == "system":
        import ssl

        paths = ssl.get_default_verify_paths()
        trust = paths.cafile or paths.openssl_cafile
    if not trust or trust.startswith("data ") or not os.path.isfile(trust):
        return None
    path = os.path.join(folder, "bundle.pem")
    with open(trust, "rb") as certificates, open(path, "wb") as file:
        file.write(certificates.read() + b"\n" + CERTIFICATE.encode("ascii"))
    return path
