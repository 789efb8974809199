"""No sequence of steps makes a cured session accept or send what stock would not.

The steps are mounting, replacing files, links, forks, threads and proxies.
"""

import json
import os
import sys

import here
import pytest
from here import BREADTH
from trust_runs import CURE, SCRIPTS, installed


@pytest.mark.parametrize(
    ("of_requests", "of_urllib3", "examples"),
    [
        ("2.34.2", "2.8.0", 25),
        pytest.param("2.33.1", "2.6.3", 25, marks=BREADTH),
        *(
            pytest.param(*pair, 300, marks=BREADTH)
            for pair in (
                ("2.34.2", "2.8.0"), ("2.34.1", "2.7.0"), ("2.33.1", "2.5.0"),
                ("2.32.5", "2.2.3"), ("2.31.0", "2.0.7"), ("2.32.5", "1.26.20"),
            )
        ),
    ],
)  # fmt: skip
def test_no_sequence_comes_to_something_else(world, of_requests, of_urllib3, examples):
    done = sequences(world, CURE.parent, of_requests, of_urllib3, examples)
    assert done.returncode == 0, done.stderr[-3000:]
    stats = json.loads(done.stdout)
    # It shares, so that there is something to find.
    assert stats["asked"] > examples and stats["shared"] > examples and not stats["unknown"]


def test_the_sequences_find_a_cure_that_does_not_look_at_files_again(world, tmp_path):
    """The control."""
    right, blind = CURE.read_text(), "if lent:"
    looks = "if lent and lent[0] == fingerprints and lent[2] == _settings_of(lent[1]):"
    assert looks in right
    (tmp_path / "shared_context.py").write_text(right.replace(looks, blind))
    done = sequences(world, tmp_path, "2.34.2", "2.8.0", 100)
    assert done.returncode == 1 and "AssertionError" in done.stderr


def sequences(world, cure, of_requests, of_urllib3, examples):
    """Run trust_sequences.py in the Python of these tests, which has hypothesis."""
    path = [installed("requests", of_requests, sys.executable)]
    path += [installed("urllib3", of_urllib3, sys.executable)]
    told = json.dumps({"world": world, "cells": [], "seed": 2026, "examples": examples})
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_BUNDLE", "_proxy", "_PROXY")) and not name.startswith("SSL_CERT")
    }
    return here.run(
        sys.executable, "-W", "ignore", SCRIPTS / "trust_sequences.py", cure,
        input=told, env=clean | {"PYTHONPATH": os.pathsep.join(path)}, timeout=1500,
    )  # fmt: skip
