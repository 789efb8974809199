"""Each attack beside the requests and urllib3 of this environment.

The book runs the same scripts beside other releases: tests/cure.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import requests_shared_context

HERE = Path(__file__).parent
ATTACKS = re.findall(r"^def (an?_\w+|one_\w+)\(\):", (HERE / "trust_attacks.py").read_text(), re.M)
pytestmark = pytest.mark.skipif(
    bool(requests_shared_context.UNKNOWN), reason=requests_shared_context.UNKNOWN
)


def run(script, copy, **parameters):
    """Return the process of a script that ran in a clean environment."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith(("_bundle", "_proxy")) and not name.startswith("SSL_CERT")
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", HERE / script, copy],
        input=json.dumps(parameters), env=environ, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_comes_to_nothing(files, copy, attack):
    process = run("trust_attacks.py", copy, world=files, attack=attack)
    assert process.returncode == 0, process.stderr[-3000:]
    assert json.loads(process.stdout)["unknown"] == ""


def test_all_attacks_are_found():
    assert len(ATTACKS) == 24


def test_random_sequences_come_out_as_without_it(files, copy):
    process = run("trust_sequences.py", copy, world=files, cells=[], seed=2026, examples=20)
    assert process.returncode == 0, process.stderr[-3000:]
    stats = json.loads(process.stdout)
    assert stats["asked"] > 20 and stats["shared"] > 20 and not stats["unknown"]


def test_servers_and_proxies_receive_what_stock_sends(files, copy):
    cells = [
        ["direct", "urllib3's", "bundle", "trusted"],
        ["http proxy", "urllib3's", "True", "trusted"],
        ["http proxy", "urllib3's", "bundle", "stranger"],
    ]
    process = run("trust_received.py", copy, world=files, cells=cells, shares=True)
    assert process.returncode == 0, process.stderr[-3000:]
    answer = json.loads(process.stdout)
    outcomes = {name: (stock, cured) for name, (stock, cured, *_) in answer["cells"].items()}
    assert len(outcomes) == 3 and all(stock == cured for stock, cured in outcomes.values())
    trusted, stranger = (
        [stock[0][0] for name, (stock, _) in outcomes.items() if name.endswith(end)]
        for end in ("trusted", "stranger")
    )
    assert trusted == [200, 200] and stranger != [200]
