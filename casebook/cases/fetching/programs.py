"""A few lines of a reader's own, run inside a stack: what they print, and what a server counts.

    programs.run("stage-2-today", "import ssl; print(ssl.HAS_SNI)")
    printed, counted = programs.fetch("stage-1-today", SCRIPT)

The lines may import the measured clients (`import grequests_map`, fetching/clients) and the steps
of the probes (`import steps`, fetching/probes). A process of their own runs them, in the declared
environment of the stack, so nothing of this notebook gets in.
"""

import os

from casebook import places, stacks
from casebook.cases.fetching import clients, server
from casebook.mistakes import check_range, for_readers
from casebook.stacks import commands, environments


@for_readers
def run(name: str, code: str, *arguments: str, within_s: float = 60) -> str:
    """Run Python code in a stack's environment; return what it printed.

    name: the stack. arguments: the code's sys.argv[1:]. Raises RunFailed with the last line of
    what it said on standard error if it fails or takes longer, and MissingInterpreter.
    """
    check_range("within_s", within_s, 0.1, 3600, " s")
    environment = environments.ensure(stacks.get(name))
    importable = os.pathsep.join([str(clients.FOLDER), str(places.PROBES)])
    return commands.output(
        [environment.python, "-Wignore", "-c", code, *arguments], f"{name}: the code", within_s,
        environments.clean_environ(environment) | {"PYTHONPATH": importable},
    )  # fmt: skip


@for_readers
def fetch(name: str, code: str, *arguments: str, scheme: str = "https") -> tuple[str, dict]:
    """Run code that fetches from a lab server; return (what it printed, what the server counted).

    The code's first two arguments are the server's URL and its CA file ("" over plain HTTP), then
    come `arguments`. Raises as `run`.
    """
    stacks.get(name)  # raises, before a server is started
    with server.start(scheme=scheme) as lab:
        printed = run(name, code, lab.url, str(lab.ca_file or ""), *arguments)
        return printed, lab.counters() or {}
