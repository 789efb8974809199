"""What one cProfile sees of n threads that each load the same bundle of certificates.

    python one_profile.py N BUNDLE

Standard library only, any Python from 3.4 on. Prints one JSON object: how often
`load_verify_locations` is in the profile (calls, primitive), its tottime_s and cumtime_s, own_s
(the own times of all functions together), wall_s, and whether a second profile is refused
while one runs.
"""

import cProfile
import json
import ssl
import sys
import threading
import time


def threads(n, bundle):
    """Start n threads, each of which makes a context, and wait for them."""
    named = {"cafile": bundle}
    every = [threading.Thread(target=ssl.create_default_context, kwargs=named) for _ in range(n)]
    for each in every:
        each.start()
    for each in every:
        each.join()


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
    n, bundle = int(sys.argv[1]), sys.argv[2]
    profile = cProfile.Profile()
    start = time.perf_counter()
    profile.runcall(threads, n, bundle)
    wall_s = time.perf_counter() - start
    profile.create_stats()
    found = [0, 0, 0.0, 0.0]
    for (_, _, function), row in profile.stats.items():
        if "load_verify_locations" in function:
            found = row[:4]
    print(
        json.dumps(
            {
                "python": "%d.%d.%d" % sys.version_info[:3],
                "primitive": found[0],
                "calls": found[1],
                "tottime_s": round(found[2], 6),
                "cumtime_s": round(found[3], 6),
                "own_s": round(sum(row[2] for row in profile.stats.values()), 6),
                "wall_s": round(wall_s, 6),
                "refused": second_is_refused(),
            }
        )
    )


if __name__ == "__main__":
    main()
