"""What the records of clients say holds for the libraries, in the book's environments."""

import json
import sys

import pytest
from here import environment, run
from tls_doctor import clients

from casebook import places, stacks

#: Where libraries are looked for; in the first of them, if they are the standard library's.
STACKS = ("reports-today", "libraries-today", "niquests-today", "twisted-today")
#: Where a name stands that a line imports by itself.
BARE = {"tornado": "tornado.httpclient", "twisted": "twisted.web.client",
        "botocore": "botocore.config"}  # fmt: skip


def python_of(library: str):
    """The Python of the first environment that has a library."""
    for stack in STACKS:
        packages = stacks.get(stack).packages
        if library.replace("_", "-") in packages or library not in OF_PACKAGES:
            return environment(stack).python
    pytest.fail(f"no environment among {', '.join(STACKS)} has {library}: name it there")


#: Records of what is installed, and not the standard library's.
OF_PACKAGES = [
    client.name
    for client in clients.CLIENTS
    if client.packages.partition(" ")[0].partition(".")[0] not in sys.stdlib_module_names
]


def lines_of(client) -> list[str]:
    """Each line that a record has the doctor advise."""
    pairs = [pair for pair in (client.keep, client.keep_awaiting) if pair]
    lines = [line for line, _ in pairs] + [client.multiplexed, client.multiplexed_awaiting]
    for option in client.pool_options.values():
        lines.append(client.larger_pool % f"{option}=3")
    return [line for line in [*lines, client.trust_line] if line]


#: Says of each call in a line, in whose names that of a module or of one of its members stands,
#: what it names that is not there; and how many calls those were.
LOOK_UP = """
import ast, importlib, inspect, json, sys
line, module = sys.argv[1:]
def member(words):
    for number in range(len(words) - 1, 0, -1):
        try: value = importlib.import_module(".".join(words[:number]))
        except ImportError: continue
        for word in words[number:]: value = getattr(value, word)
        return value
    return getattr(importlib.import_module(module), words[0]) if len(words) == 1 else None
calls = [node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Call)]
missing, number = [], 0
for call in calls:
    name = ast.unparse(call.func)
    try: value = member(name.split("."))
    except AttributeError as error:
        missing.append(str(error))
        continue
    if value is None: continue  # of what another line makes
    number += 1
    parameters = inspect.signature(value).parameters.values()
    names = {each.name for each in parameters}
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        missing += [f"{name}({word.arg}=)" for word in call.keywords if word.arg not in names]
print(json.dumps([missing, number]))
"""


@pytest.mark.parametrize("name", [each.name for each in clients.CLIENTS if each.keep])
def test_what_a_line_names_is_there(name):
    client = clients.client_named(name)
    python, module = python_of(name), BARE.get(name, client.module)
    for line in lines_of(client):
        done = run(python, "-c", LOOK_UP, line, module)
        assert done.returncode == 0, done.stderr
        missing, number = json.loads(done.stdout)
        assert (missing, number > 0) == ([], True), line


#: Tries changes as a run does, against the doctor's own server.
TRY = """
import json, sys
sys.path.insert(0, sys.argv[1])
import doctor
server, address = doctor.start_server()
try:
    tried = {}
    for trial in json.loads(sys.argv[2]):
        doctor.try_one(tried, dict(trial, trust=address["ca"], address=address, late=False))
    print(json.dumps(tried))
finally:
    doctor.stop_server(server)
"""
#: In 3.21 it keeps contexts by what they loaded, for all Sessions: there is nothing to be saved.
LOADS_ONCE = ["niquests"]
#: client, change, whether it awaits
TRIALS = [(each.name, None, False) for each in clients.CLIENTS if each.trial]
TRIALS += [(each.name, None, True) for each in clients.CLIENTS if each.awaiting_trial]
TRIALS += [(each.name, change, False) for each in clients.CLIENTS for change in each.trials]


@pytest.mark.parametrize(("name", "change", "awaits"), TRIALS)
def test_a_trial_loads_again_and_again_and_then_once(name, change, awaits):
    is_of_pool = change is not None and change == clients.client_named(name).larger_pool_change
    at_once = 3 if is_of_pool or awaits else 1
    trial = {"client": name, "change": change, "awaits": awaits, "wanted": at_once, "size": 1}
    rounds = 2 if is_of_pool else 6
    for _ in range(3 if is_of_pool else 1):
        done = run(
            *(python_of(name), "-c", TRY, places.DOCTOR.parent),
            json.dumps([trial | {"rounds": rounds}]),
        )
        assert done.returncode == 0, done.stderr
        tried = json.loads(done.stdout)
        # On a crowded machine, threads may come one after the other: then a small pool is enough,
        # and the trial says nothing.
        if not is_of_pool or any(each["now"]["loads"] > at_once for each in tried.values()):
            break
    if name in LOADS_ONCE:
        assert tried == {}
        return
    [(key, came)] = tried.items()
    assert (key, came["with"], came["connections"]) == (change or name, name, 6)
    if is_of_pool:  # a load for each place is needed; and one place serves no second thread
        assert came["then"]["loads"] <= at_once < came["now"]["loads"]
    else:
        assert (came["now"]["loads"], came["then"]["loads"]) == (6, 1)
