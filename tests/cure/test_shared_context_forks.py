"""Do forked children hang in the TLS context of their parent? Counted, for book/threat_model.md."""

import here
import pytest
from here import BREADTH
from trust_runs import NEWEST

from casebook.cases.fetching import trust

pytestmark = BREADTH

#: A parent with the cure whose children each ask once, with what they got of its contexts or not.
PARENT = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import requests, shared_context
bundle, url, kind, threads, children = sys.argv[2:]
shared_context.install()

def ask():
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
        if kind == "dropped":
            shared_context._slots = {}
        elif shared_context._left_by_parent:
            shared_context._slots = shared_context._left_by_parent[-1]
        os._exit(0 if ask() else 1)
    answered += os.waitpid(child, 0)[1] == 0
print(answered)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("kind", "threads", "children", "lost"),
    # The cure keeps contexts beside no thread, and drops them beside any. There a few in some
    # thousands are lost in either way.
    [("kept", 0, 1000, 0), ("kept", 4, 100, 5), ("dropped", 4, 100, 5)],
)
def test_children_get_an_answer(https, cure, tmp_path, kind, threads, children, lost):
    bundle = trust.full_bundle(https.ca_file, tmp_path)
    told = [cure, bundle, https.url, kind, threads, children]
    done = here.python_in(NEWEST, "-Wignore", "-c", PARENT, *told, timeout=600)
    assert children - lost <= int(done.stdout) <= children, done.stderr
