"""A pytest plugin for requests' own tests: every session shares contexts.

Writes how many contexts were shared into the file that SHARED names.
"""

import os
from pathlib import Path

import shared_context

shared_context.install()


def pytest_unconfigure():
    Path(os.environ["SHARED"]).write_text(str(len(shared_context._contexts)))
