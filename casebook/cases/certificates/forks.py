"""Do forked children hang in the TLS context of their parent?

    python -m casebook.cases.certificates.forks [--children 100]

A parent with the shared context forks children that each ask once, and counts those that got an
answer: while it has one thread, and while four more are connecting all the time; with its context
kept in the child, or dropped. The cure keeps it beside no thread, and drops it beside any.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from casebook import places, server
from casebook.cases import programs
from casebook.runs import trust

STACK = "requests-2.34.2-today"

PARENT = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import requests, shared_context
bundle, url, kind, threads, children = sys.argv[2:]
shared_context.install()

def ask(_=None):
    return requests.get(url + "/get", verify=bundle, timeout=60).status_code == 200

def go_on():
    while True:
        ask()

answered = int(ask()) - 1
for _ in range(int(threads)):
    threading.Thread(target=go_on, daemon=True).start()
for _ in range(int(children)):
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # one that waits for a lock that nobody holds any more
        left = shared_context._left_by_parent[-1] if kind == "kept" else {}
        shared_context._contexts = dict(left)
        os._exit(0 if ask() else 1)
    answered += os.waitpid(child, 0)[1] == 0
print(answered)
sys.stdout.flush()
os._exit(0)
"""


def main() -> int:
    """Fork, and print what came out; 1 where a child of a parent without threads was lost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--children", type=int, default=100)
    children = parser.parse_args().children
    within_s = 60 + 10 * children  # each ends after ten seconds
    with server.start() as lab, tempfile.TemporaryDirectory() as folder:
        bundle = trust.full_bundle(str(lab.ca_file), Path(folder))
        for kind, threads in (("kept", 0), ("kept", 4), ("dropped", 4)):
            told = [places.CURE.parent, bundle, lab.url, kind, threads, children]
            came = int(programs.run(STACK, PARENT, *map(str, told), within_s=within_s))
            print(f"context {kind}, {threads} threads: {came} of {children} answered", flush=True)
            if not threads and came < children:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
