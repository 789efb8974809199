"""A few lines of a reader's own, run inside a stack: what they print, and what a server counts.

    programs.run("stage-2-today", "import ssl; print(ssl.HAS_SNI)")
    printed, counted = programs.fetch("stage-1-today", SCRIPT)

The lines may import the measured clients (`import grequests_map`, casebook/clients) and the steps
of the probes (`import steps`, casebook/probes). A process of their own runs them, in the declared
environment of the stack, so nothing of this notebook gets in.
"""

import os
import subprocess

from casebook import clients, places, server, stacks
from casebook.errors import RunFailed
from casebook.stacks import environments

_WITHIN_S = 60.0


def run(name: str, code: str, *arguments: str) -> str:
    """Run Python code in a stack's environment: what it printed.

    name: the stack. arguments: the code's sys.argv[1:]. Raises RunFailed with the last line of
    what it said on standard error where it fails or takes a minute, and MissingInterpreter.
    """
    environment = environments.ensure(stacks.get(name))
    importable = os.pathsep.join([str(clients.FOLDER), str(places.PROBES)])
    try:
        done = subprocess.run(
            [str(environment.python), "-Wignore", "-c", code, *arguments],
            env=environments.clean_environ(environment) | {"PYTHONPATH": importable},
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{name}: the code did not end within {_WITHIN_S:.0f} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["nothing on standard error"]
        raise RunFailed(f"{name}: the code left with exit code {done.returncode} ({last[0]})")
    return done.stdout


def fetch(name: str, code: str, *arguments: str, scheme: str = "https") -> tuple[str, dict]:
    """Run code that fetches from a lab server: (what it printed, what the server counted).

    The code's first two arguments are the server's URL and its CA file ("" over plain HTTP), then
    come `arguments`. Raises as `run`.
    """
    with server.start(scheme=scheme) as lab:
        printed = run(name, code, lab.url, str(lab.ca_file or ""), *arguments)
        return printed, lab.counters() or {}
