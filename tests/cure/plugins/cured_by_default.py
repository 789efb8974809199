"""A pytest plugin for requests' own tests: every session shares contexts.

Writes how many connections shared into the file that SHARED names.
"""

import os
from pathlib import Path

import shared_context

shared_context.install()


def pytest_unconfigure():
    Path(os.environ["SHARED"]).write_text(str(shared_context.stats()["shared"]))
