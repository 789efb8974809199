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
    every = [threading.Thread(target=ssl.create_default_context, kwargs=named) for _ in range(n)]
    for each in every:
        each.start()
    for each in every:
        each.join()


def two_waits():
    """`select` in a further thread, and LEAD_S later `sleep` in this one, WAIT_S each."""
    begun = threading.Event()

    def wait_first():
        begun.set()
        select.select([], [], [], WAIT_S)

    other = threading.Thread(target=wait_first)
    other.start()
    begun.wait()
    threading.Event().wait(LEAD_S)
    time.sleep(WAIT_S)
    other.join()


def profiled(function, *args):
    """(the rows of a cProfile, by function, and the wall time in seconds) of one call."""
    profile = cProfile.Profile()
    start = time.perf_counter()
    profile.runcall(function, *args)
    wall_s = time.perf_counter() - start
    profile.create_stats()
    return profile.stats, wall_s


def of(stats, name):
    """The row of the function with this in its name: [primitive, calls, own, cumulative, ...]."""
    for (_, _, function), row in stats.items():
        if name in function:
            return row
    return None


def overlap():
    stats, wall_s = profiled(two_waits)
    first, second = of(stats, "select.select"), of(stats, "time.sleep")
    return {
        "first_s": first and round(first[2], 6),
        "second_s": second and round(second[2], 6),
        "own_s": round(sum(row[2] for row in stats.values()), 6),
        "wall_s": round(wall_s, 6),
    }


def second_is_refused():
    """Whether a profile cannot be started while another one runs."""
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
    found = of(stats, "load_verify_locations") or [0, 0, 0.0, 0.0]
    answer = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "primitive": found[0],
        "calls": found[1],
        "tottime_s": round(found[2], 6),
        "cumtime_s": round(found[3], 6),
        "refused": second_is_refused(),
        "overlaps": [overlap() for _ in range(rounds)],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
