"""What a change saves: the counted connections, made again with and without it.

Against the doctor's own server, in a process of its own with the program's Python and its client.
The program itself is not run a second time.
"""

from __future__ import division, print_function

import json
import os

from .basis import CERTIFICATE, HOST, clock
from .left_behind import loaded, try_import
from .probes import Probes
from .processes import spawn_self
from .state import process_ms
from .trial_choice import came_to_something, is_of_places, rounds_of, trial_functions, trials_for
from .trials import CONTEXTS

#: How long a trial may take.
TRIED_WITHIN_S = 120
#: How long each answer takes if they ask at once.
AT_ONCE_S = 0.2


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
        for trial in trials_for(row, examination.counts):
            if trial["change"] or trial["client"] not in tried:
                try_one(tried, dict(trial, late=late, address=address))
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
    if not came_to_something(trial, result):
        return 1
    with open(path, "w") as file:
        file.write(json.dumps(result))
    return 0


def measure_trial(trial):
    """Return what came of a trial, as in `try_changes`; None if it could not be made."""
    events = []
    probes = Probes(events.append).install()
    number, rounds = trial["wanted"], rounds_of(trial)
    kinds = ("kept", "kept") if is_of_places(trial) else ("last", "kept")
    module, repeating, keeping = trial_functions(trial)
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
