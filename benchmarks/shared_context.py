"""What the shared context saves, as ratios from one run.

    python -m benchmarks.shared_context [--repeats 15]

Thirty threads with one requests.get each, verify=True, a full certificate bundle (certifi's with
the lab's authority): stock requests 2.34.2, stock 2.32.4 (which loaded its context at import), and
2.34.2 with casebook/shared_context.py, which loads in its first connection, or beforehand
("preloaded"). They take turns; the ratios are of medians. Then 300 connections over ten hosts, and
the memory that each further session takes.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from casebook import environments, places, server, stacks

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
        env=environments.clean_environ(environment), check=True, stdout=subprocess.PIPE,
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
        packages = environments.ensure(stacks.get(NEWEST)).python.parent.parent / "lib"
        [public] = packages.glob("python*/site-packages/certifi/cacert.pem")
        authorities = [public, *(each.ca_file for each in servers)]
        (folder / "bundle.pem").write_bytes(b"\n".join(path.read_bytes() for path in authorities))
        shutil.copy(CURE, folder)
        yield [each.url for each in servers], folder


def ratio(name: str, value: float, target: float) -> None:
    """Print one ratio beside what it should not exceed."""
    print(
        f"  {name:<58} {value:6.2f}   (at most {target:g}){'' if value <= target else '  MISSED'}"
    )


def main() -> None:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    with labs(HOSTS) as (urls, folder):
        runs = {variant: [] for variant in VARIANTS}
        for _ in range(repeats):
            for variant, found in runs.items():
                found.append(ask(variant, folder, "threads", N, urls[0]))
        hosts = {v: ask(v, folder, "threads", N * HOSTS, *urls) for v in ("stock 2.34.2", "cured")}
        memory = {v: ask(v, folder, "sessions", 21, urls[0]) for v in VARIANTS}

    keys = ("loads", "cpu_s", "process_cpu_s", "wall_s")
    of = {v: {key: median(run[key] for run in found) for key in keys} for v, found in runs.items()}
    print(f"{N} threads, verify=True, medians of {repeats}; CPU of the client, in ms")
    print(f"  {'':<14} loads    CPU   with imports   wall")
    for variant, row in of.items():
        cpu, process, wall = (1000 * row[key] for key in keys[1:])
        print(f"  {variant:<14} {row['loads']:5.0f} {cpu:6.0f} {process:10.0f} {wall:10.0f}")
    cured, stock, before, preloaded = (
        of[v] for v in ("cured", "stock 2.34.2", "stock 2.32.4", "preloaded")
    )
    ratio("loads", cured["loads"], 1)
    ratio("CPU of the process, cured / 2.32.4 (both load once)",
          cured["process_cpu_s"] / before["process_cpu_s"], 1.1)  # fmt: skip
    ratio("CPU of the threads, preloaded / 2.32.4", preloaded["cpu_s"] / before["cpu_s"], 1.1)
    ratio("CPU of the threads, cured / stock 2.34.2", cured["cpu_s"] / stock["cpu_s"], 0.2)
    ratio("wall, preloaded / 2.32.4", preloaded["wall_s"] / before["wall_s"], 1.1)
    print(f"  CPU of the threads, cured / 2.32.4: {cured['cpu_s'] / before['cpu_s']:.2f}"
          f"; wall: {cured['wall_s'] / before['wall_s']:.2f}")  # fmt: skip
    print(f"{N * HOSTS} connections over {HOSTS} hosts")
    ratio("loads, cured", hosts["cured"]["loads"], 1)
    print(f"  loads, stock 2.34.2: {hosts['stock 2.34.2']['loads']}")
    print("memory of each further session with an open connection, KiB")
    for variant, found in memory.items():
        print(f"  {variant:<14} {found['kib_each']:8.0f}")


if __name__ == "__main__":
    main()
