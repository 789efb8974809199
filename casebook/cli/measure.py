"""Measure stacks against the lab server."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from casebook.cli import cluster
from casebook.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    """Add what the command takes."""
    add = parser.add_argument
    add("stack", nargs="+", metavar="STACK")
    add("--n", type=_sizes, help="pages per run, like 3,5,10")
    add("--delay", type=float, help="seconds before each response")
    add("--scheme", choices=("https", "http"), default="https")
    add("--repeats", type=int, help="how often each is measured, in turns")
    add("--client", help="what fetches; default: the stack's own, mostly grequests")
    add("--trust", default="authority", help="what it trusts: see casebook/cases/fetching/trust.py")
    add("--url", help="another server that has a /delay/ endpoint")
    add("--ca-file", type=Path, help="the certificate authority of --url, as PEM")
    add("--json", action="store_true", help="one JSON object per run")
    cluster.add_address(parser)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--n is {text!r}; give whole numbers, like 3,5,10") from None


def run(options: Namespace) -> None:
    """Measure here, or on each worker of a cluster."""
    if options.on:
        return _run_on(options)
    from casebook.cases.fetching import analysis, server
    from casebook.cases.fetching.run_record import frame
    from casebook.cases.fetching.runs import measure_runs

    scheme, target = options.scheme, None
    if options.url:
        scheme, colon, _ = options.url.partition("://")
        if not colon:
            raise UsageError(f"--url is {options.url!r}; it starts with https:// or http://")
        target = server.Server(options.url.rstrip("/"), options.ca_file)
    runs = measure_runs(
        options.stack,
        n=options.n,
        delay_s=options.delay,
        repeats=options.repeats,
        client=options.client,
        scheme=scheme,
        trust=options.trust,
        target=target,
    )
    if options.json:
        for run in runs:
            print(json.dumps(asdict(run)))
        return
    table = analysis.summary(frame(runs)).drop(columns=["scheme", "source"])
    print(table.round(3).to_string(index=False))


def _run_on(options: Namespace) -> None:
    """Measure each stack on each worker; name what one cannot run, and show the rest."""
    from casebook.cases.many import cluster as workers

    if options.url or options.ca_file:
        raise UsageError("--on measures each worker against servers of its own: leave out --url")
    parameters = ["--scheme", options.scheme, "--trust", options.trust]
    for name in ("delay", "repeats", "client"):
        if (value := getattr(options, name)) is not None:
            parameters += [f"--{name}", str(value)]
    if options.n:
        sizes = options.n if isinstance(options.n, list | tuple) else [options.n]
        parameters += ["--n", ",".join(map(str, sizes))]
    parameters += ["--json"] if options.json else []
    failed = []
    commands = [["measure", stack, *parameters] for stack in options.stack]
    for answer in workers.run_on_workers(options.on, cluster.keys(options), commands):
        if answer.failed:
            failed.append(f"{answer.worker}, {' '.join(answer.command[1:2])}: {answer.failed}")
        elif options.json:
            for line in answer.out.splitlines():
                print(json.dumps({"worker": answer.worker, **json.loads(line)}), flush=True)
        else:
            print(f"{answer.worker}:\n{answer.out}", flush=True)
    workers.all_came(failed)
