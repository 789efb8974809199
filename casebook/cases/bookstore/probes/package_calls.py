"""One visit to the bookstore under a profile, its calls counted by package.

Reads the JSON object that bookstore/clients/visit.py reads, and in it also "scripts", the folder
of that script. Prints the JSON object that it prints, and in it also "calls": {package: calls}.
What is written in C counts for the package that called it. Runs on Python 3.7 and newer.
"""

import cProfile
import json
import os
import sys
from collections import Counter


def package(file):
    """Return the package or standard module of a file.

    .../site-packages/urllib3/util.py -> urllib3
    """
    if file.startswith("<frozen "):
        return file[len("<frozen ") : -1].partition(".")[0]
    parts = file.replace("\\", "/").split("/")
    if "site-packages" in parts:
        inside = parts[parts.index("site-packages") + 1 :]
        inside = inside[2:] if inside[1:2] in (["packages"], ["_vendor"]) else inside
    elif os.path.dirname(file) == SCRIPTS:
        return "our script"
    else:
        folder = os.path.dirname(os.__file__).replace("\\", "/") + "/"
        path = "/".join(parts)
        if not path.startswith(folder):
            return "others"
        inside = path[len(folder) :].split("/")
    return inside[0].partition(".")[0]


def by_package(stats):
    """Count the calls in a profile's raw statistics: {package: calls}."""
    counts = Counter()
    for (file, _, _), (_, calls, _, _, callers) in stats.items():
        if file != "~":
            counts[package(file)] += calls
            continue
        for (caller, _, _), (_, caller_calls, _, _) in callers.items():
            counts[package(caller) if caller != "~" else "others"] += caller_calls
    return counts


def main(spec):
    """Visit, and print what was counted."""
    import visit

    answers = []
    profile = cProfile.Profile()
    profile.runcall(visit.run, spec, answers.append)
    profile.create_stats()
    print(json.dumps(dict(answers[0], calls=by_package(profile.stats))), flush=True)
    os._exit(0)  # whatever threads or connections a library has left open


if __name__ == "__main__":
    parameters = json.load(sys.stdin)
    SCRIPTS = parameters["scripts"]
    sys.path.insert(0, SCRIPTS)
    main(parameters)
