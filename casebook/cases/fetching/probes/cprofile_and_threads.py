"""What one cProfile sees of threads that run beside each other.

    python cprofile_and_threads.py N BUNDLE ROUNDS

Standard library only, any Python from 3.4 on. Prints one JSON object. Of N threads that each load
the same bundle of certificates: how often `load_verify_locations` is in the profile (calls,
primitive), its tottime_s and cumtime_s. Whether a second profile is refused while one runs
(refused). And overlaps, ROUNDS times two functions that take equally long, in two threads: the own
times of the one that begins and returns first and of the other (first_s, second_s; null where the
profile has no such function), own_s (of all functions together), wall_s.
"""

import cProfile
import json
import select
import ssl
import sys
import threading
import time


#: How long each of two functions takes, and how much earlier one begins, seconds.
WAIT_S, LEAD_S = 0.05, 0.01


def threads(n, bundle):
    """Start n threads, each of which makes a context, and wait for them."""
    named = {"cafile": bundle}
    workers = [threading.Thread(target=ssl.create_default_context, kwargs=named) for _ in range(n)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def two_waits():
    """Run `select` in a further thread, and LEAD_S later `sleep` in this one, WAIT_S each."""
    started = threading.Event()

    def wait_first():
        started.set()
        select.select([], [], [], WAIT_S)

    thread = threading.Thread(target=wait_first)
    thread.start()
    started.wait()
    threading.Event().wait(LEAD_S)
    time.sleep(WAIT_S)
    thread.join()


def profiled(function, *args):
    """Profile one call.

    Returns the rows of a cProfile, by function, and the wall time in seconds.
    """
    profile = cProfile.Profile()
    start = time.perf_counter()
    profile.runcall(function, *args)
    wall_s = time.perf_counter() - start
    profile.create_stats()
    return profile.stats, wall_s


def row_of(stats, name):
    """Return the row of the function with this in its name.

    The row is [primitive, calls, own, cumulative, ...].
    """
    for (_, _, function), row in stats.items():
        if name in function:
            return row
    return None


def overlap():
    stats, wall_s = profiled(two_waits)
    first, second = row_of(stats, "select.select"), row_of(stats, "time.sleep")
    return {
        "first_s": first and round(first[2], 6),
        "second_s": second and round(second[2], 6),
        "own_s": round(sum(row[2] for row in stats.values()), 6),
        "wall_s": round(wall_s, 6),
    }


def second_is_refused():
    """Say whether a profile cannot be started while another one runs."""
    first, second = cProfile.Profile(), cProfile.Profile()
    first.enable()
    try:
        second.enable()
        second.disable()
        return False
    except ValueError:
        return True
    finally:
        first.disable()


def main():
    n, bundle, rounds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    stats, _ = profiled(threads, n, bundle) if n else ({}, 0.0)
    row = row_of(stats, "load_verify_locations") or [0, 0, 0.0, 0.0]
    answer = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "primitive": row[0],
        "calls": row[1],
        "tottime_s": round(row[2], 6),
        "cumtime_s": round(row[3], 6),
        "refused": second_is_refused(),
        "overlaps": [overlap() for _ in range(rounds)],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
