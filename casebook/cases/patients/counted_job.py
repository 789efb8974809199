"""Runs a job of the folder, and counts its loads by the book's own counter: counted_job.py PATH.

The last line that it prints is {"loads": N, "peak": N}: loads, and handshakes under way at once.
"""

import json
import os
import runpy
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fetching", "probes"))
import counting

under_way, lock = [0, 0], threading.Lock()
shake_hands = ssl.SSLSocket.do_handshake


def count_handshake(connection, *args):
    """Shake hands, and count the handshake while it is under way."""
    with lock:
        under_way[0] += 1
        under_way[1] = max(under_way)
    try:
        return shake_hands(connection, *args)
    finally:
        with lock:
            under_way[0] -= 1


ssl.SSLSocket.do_handshake = count_handshake
counters = counting.count_imports()
runpy.run_path(sys.argv[1], run_name="__main__")
loads = counters["load_verify_locations"] + counters["default_loads"]
print(json.dumps({"loads": loads, "peak": under_way[1]}))
