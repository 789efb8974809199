"""One run at a time: a server, a stack's environment, a probe in it, and the answer checked."""

import atexit
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from casebook import places
from casebook.cases.fetching import clients, observations, run_record, server
from casebook.cases.fetching import trust as trusts
from casebook.cases.fetching.server import Server
from casebook.laboratory import scripts
from casebook.laboratory.experiment import Experiment
from casebook.laboratory.measurements import Using
from casebook.stacks import Stack
from casebook.stacks.environments import Environment

_FETCH = places.PROBES / "fetch.py"

#: The probe's modules that only some runs execute, by the instrument that was asked for.
_INSTRUMENTS = {
    "profile": {"profiling", "thread_profile"},
    "trace": {"calltrace"},
    "timeline": {"timeline"},
    "turns": {"turns"},
}


def ask_probe(
    environment: Environment,
    lab: Server,
    n: int,
    delay_s: float,
    client: str = "",
    variables: dict[str, str] | None = None,
    **further: Any,
) -> tuple[dict[str, Any], str]:
    """Have a probe in a stack's environment fetch pages 0 to n - 1 of a server, once.

    client: the stack's own if none is named. variables: further environment variables. further:
    what else fetching/probes/fetch.py reads (gather, the names of instruments; steps in the place
    of the stack's, verify, bundle, trace_limit). Returns the answer, not yet checked, and what the
    stack said on standard error. Raises RunFailed when there is no answer within a generous bound
    (serial time three times over, and a minute), UsageError for an unknown client.
    """
    spec = {
        "client": clients.file_of(client or environment.stack.client),
        "steps": environment.stack.steps,
        "url": lab.url,
        "n": n,
        "delay_s": delay_s,
        "ca_file": lab.ca_file,
        "gather": (),
    }
    return scripts.run_script(
        environment, _FETCH, spec | further, 60 + 3 * n * (delay_s + 0.1),
        advice="Try a smaller n or delay.", variables=variables,
    )  # fmt: skip


#: Lab servers by scheme.
_labs: dict[str, Server] = {}


def lab_server(scheme: str = "https") -> Server:
    """Return the lab server of this process, started when the first measurement needs one."""
    lab = _labs.get(scheme)
    if lab is None or not lab.process or lab.process.poll() is not None:
        lab = _labs[scheme] = server.start(scheme)
        atexit.register(lab.stop)
    return lab


def fetching(
    stack: Stack,
    client: str,
    gather: str = "",
    target: Server | None = None,
    variables: dict[str, str] | None = None,
) -> Experiment:
    """Return the experiment in which a client fetches in a stack, against a server that counts.

    Its parameters are n, delay_s, client, trust, scheme and, with an instrument, gather.

    Parameters:
        stack: where it runs.
        client: a name of fetching/clients.
        gather: the name of an instrument that looks on (observations.KINDS); empty: none.
        target: a server of the caller's in the place of the lab server. What it answers is not
            stored: what such a server is made of cannot be known.
        variables: further environment variables of the stack.
    """
    files = [Path(__file__), clients.file_of(client)]
    if {"shared_context", "preload"} & set(stack.steps):
        files.append(places.CURE)
    stored: list[Using] = []
    if not gather:  # what is observed is stored whole
        stored.append(Using("what is stored of a run", [run_record.STORED, run_record.COUNTERS]))
    unused = [modules for name, modules in _INSTRUMENTS.items() if name != gather]
    return replace(
        observations.OBSERVED if gather else run_record.FETCHES,
        depends_on=(*files, *server.DEPENDENCIES, trusts.dependency(), *stored),
        excluded=frozenset().union(*unused),
        ask=partial(_fetch, target, variables or {}),
        is_stored=target is None,
    )


def _fetch(
    target: Server | None,
    variables: dict[str, str],
    environment: Environment,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Have the pages fetched once, and check what came; return what is stored of it.

    Raises RunFailed if any response is missing or wrong.
    """
    lab, gather = target or lab_server(parameters["scheme"]), parameters.get("gather")
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        trusted = trusts.of_name(parameters["trust"], lab.ca_file, Path(folder))
        lab.reset()
        answer, _ = ask_probe(
            environment, lab, parameters["n"], parameters["delay_s"], parameters["client"],
            gather=(gather,) if gather else (), verify=trusted.verify, bundle=trusted.bundle,
            variables=variables | trusted.variables,
        )  # fmt: skip
    answer["versions"] = environment.versions
    if gather:
        run_record.check(environment.stack.name, parameters["n"], answer)
        return answer
    return run_record.to_store(environment.stack.name, parameters["n"], answer, lab.counters())
