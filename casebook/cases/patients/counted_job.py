"""Runs a job of the folder, and counts its loads by the book's own counter: counted_job.py PATH.

The last line that it prints is {"loads": N}.
"""

import json
import os
import runpy
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fetching", "probes"))
import counting

counters = counting.count_imports()
runpy.run_path(sys.argv[1], run_name="__main__")
print(json.dumps({"loads": counters["load_verify_locations"] + counters["default_loads"]}))
