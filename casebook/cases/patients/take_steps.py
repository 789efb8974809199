"""A program whose imports are the steps of a stack: take_steps.py STEP...

Only its imports matter: the doctor examines what they leave behind.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fetching", "probes"))
import steps

for name in sys.argv[1:]:
    steps.take(name)
