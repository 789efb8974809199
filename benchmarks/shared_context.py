"""What the shared context saves, as ratios from one run.

    python -m benchmarks.shared_context [--repeats 15] [--children 100]

Thirty threads with one requests.get each, verify=True, a full certificate bundle (certifi's with
the lab's authority): stock requests 2.34.2, stock 2.32.4 (which loaded its context at import), and
2.34.2 with casebook/shared_context.py, which loads in its first connection, or beforehand
("preloaded"). They take turns; the ratios are of medians. Then 300 connections over ten hosts, the
memory that each further session takes, and forked children that connect with the context of their
parent: when the parent has one thread, and when four more are connecting all the time.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.ratios import show as ratio
from casebook import places, server, stacks
from casebook.stacks import environments

CLIENT = Path(__file__).parent / "many_threads.py"
CURE = places.ROOT / "casebook" / "shared_context.py"
N, HOSTS = 30, 10
NEWEST, BEFORE = "requests-2.34.2-today", "requests-2.32.4-today"
VARIANTS = {
    "stock 2.34.2": (NEWEST, "stock"),
    "stock 2.32.4": (BEFORE, "stock"),
    "cured": (NEWEST, "cured"),
    "preloaded": (NEWEST, "preloaded"),
}


def ask(variant: str, folder: Path, job: str, n: int, *urls: str) -> dict:
    """One process of many_threads.py, in which every response was right."""
    stack, kind = VARIANTS[variant]
    environment = environments.ensure(stacks.get(stack))
    done = subprocess.run(
        [environment.python, CLIENT, folder, folder / "bundle.pem", kind, job, str(n), *urls],
        env=environments.clean_environ(environment), check=True, timeout=300,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    found = json.loads(done.stdout)
    if found["ok"] != n:
        sys.exit(f"{variant}, {job}: {n - found['ok']} of {n} responses were wrong or missing")
    return found


@contextlib.contextmanager
def labs(number: int):
    """As many lab servers, and a folder with the cure and a bundle that trusts them all."""
    with contextlib.ExitStack() as running, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers = [running.enter_context(server.start()) for _ in range(number)]
        python = environments.ensure(stacks.get(NEWEST)).python
        [public] = python.parent.parent.glob("lib/python*/site-packages/certifi/cacert.pem")
        authorities = [public, *(each.ca_file for each in servers)]
        (folder / "bundle.pem").write_bytes(b"\n".join(path.read_bytes() for path in authorities))
        # Compiled, as the packages beside it are.
        subprocess.run(
            [python, "-m", "py_compile", shutil.copy(CURE, folder)],
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE=""), check=True,
        )  # fmt: skip
        yield [each.url for each in servers], folder


#: A parent that forks children, each of which asks once: with the context of the parent, whatever
#: its other threads did (kept), or with one of its own (dropped). Prints how many got an answer.
FORKING = """
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
FORKS = (("kept", 0), ("kept", 4), ("dropped", 4))


def answered(kind: str, threads: int, folder: Path, url: str, children: int) -> int:
    """How many of the forked children got an answer."""
    environment = environments.ensure(stacks.get(NEWEST))
    command = [environment.python, "-W", "ignore", "-c", FORKING]
    command += [folder, folder / "bundle.pem", url, kind, str(threads), str(children)]
    done = subprocess.run(
        command, env=environments.clean_environ(environment), check=True, stdout=subprocess.PIPE
    )
    return int(done.stdout)


def main() -> None:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--children", type=int, default=100)
    asked = parser.parse_args()
    repeats = asked.repeats
    with labs(HOSTS) as (urls, folder):
        runs = {variant: [] for variant in VARIANTS}
        for _ in range(repeats):
            for variant, found in runs.items():
                found.append(ask(variant, folder, "threads", N, urls[0]))
        hosts = {v: ask(v, folder, "threads", N * HOSTS, *urls) for v in ("stock 2.34.2", "cured")}
        memory = {v: ask(v, folder, "sessions", 21, urls[0]) for v in VARIANTS}
        forks = {each: answered(*each, folder, urls[0], asked.children) for each in FORKS}

    keys = ("loads_before", "loads", "cpu_s", "process_cpu_s", "wall_s", "process_wall_s")
    of = {v: {key: median(run[key] for run in found) for key in keys} for v, found in runs.items()}
    print_table(of, repeats)
    print_ratios(of)
    print(f"{N * HOSTS} connections over {HOSTS} hosts")
    ratio("loads, cured", hosts["cured"]["loads"], 1)
    print(f"  loads, stock 2.34.2: {hosts['stock 2.34.2']['loads']}")
    print("memory of each further session with an open connection, KiB")
    for variant, found in memory.items():
        print(f"  {variant:<14} {found['kib_each']:8.0f}")
    kib = {variant: found["kib_each"] for variant, found in memory.items()}
    # Stock's further session holds a store of its own, 2.32.4's none.
    ratio("cured / stock 2.34.2", kib["cured"] / kib["stock 2.34.2"], 0.2)
    ratio("cured / stock 2.32.4", kib["cured"] / kib["stock 2.32.4"], 1.5)
    print(
        "forked children that got an answer; their parent's context kept or dropped, and how many"
    )
    print("other threads of the parent were connecting (the cure keeps with none, drops with any)")
    for (kind, threads), came in forks.items():
        print(f"  {kind:<8} {threads} threads {came:8} of {asked.children}")


def print_table(of: dict[str, dict], repeats: int) -> None:
    """The medians: of the threads, and of the whole process with its imports."""
    print(f"{N} threads, verify=True, medians of {repeats}; times in ms")
    print(f"  {'':<14} loads at   loads in   CPU of the   CPU of the   wall of the   wall, with")
    print(f"  {'':<14}   import    threads      threads      process       threads      imports")
    for variant, row in of.items():
        before, loads, *times = row.values()
        cpu, process, wall, whole = (1000 * each for each in times)
        print(
            f"  {variant:<14} {before:8.0f} {loads:10.0f} {cpu:12.0f} {process:12.0f} "
            f"{wall:13.0f} {whole:12.0f}"
        )


def print_ratios(of: dict[str, dict]) -> None:
    """What was asked of the cure, in two ways where 2.32.4 has paid before the clock starts."""
    cured, stock, before, preloaded = (
        of[v] for v in ("cured", "stock 2.34.2", "stock 2.32.4", "preloaded")
    )
    ratio("loads of a process, cured", cured["loads_before"] + cured["loads"], 1)
    ratio("CPU of the threads, cured / stock 2.34.2", cured["cpu_s"] / stock["cpu_s"], 0.2)
    print("against 2.32.4, like with like: both load once in each process")
    of_process = cured["process_cpu_s"] / before["process_cpu_s"]
    ratio("CPU of the process, cured / 2.32.4", of_process, 1.1)
    of_process = cured["process_wall_s"] / before["process_wall_s"]
    ratio("wall with imports, cured / 2.32.4", of_process, 1.1)
    print("against 2.32.4, both loaded before the clock starts")
    ratio("CPU of the threads, preloaded / 2.32.4", preloaded["cpu_s"] / before["cpu_s"], 1.1)
    ratio("wall of the threads, preloaded / 2.32.4", preloaded["wall_s"] / before["wall_s"], 1.1)
    print(
        "against 2.32.4, by the clock of the threads alone: there the cured ones load, and 2.32.4"
    )
    print("has loaded at import, which that clock does not see; so these are no aims")
    print(f"  CPU of the threads, cured / 2.32.4  {cured['cpu_s'] / before['cpu_s']:29.2f}")
    print(f"  wall of the threads, cured / 2.32.4 {cured['wall_s'] / before['wall_s']:29.2f}")


if __name__ == "__main__":
    main()
