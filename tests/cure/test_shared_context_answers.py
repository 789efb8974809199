"""The cure answers as stock requests does: the same acceptance, the same exceptions."""

import here
import pytest
from here import BREADTH
from trust_runs import CURE, NEWEST, PRELOADED, every_release, run

from casebook.stacks import installers

#: One context for everybody, as one may find it recommended.
NAIVE = """
import certifi
import requests
import requests.sessions
from urllib3.util.ssl_ import create_urllib3_context

shared = create_urllib3_context()
shared.load_verify_locations(certifi.where())


class SharedContextAdapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *args, **kwargs):
        super().init_poolmanager(*args, ssl_context=shared, **kwargs)

    def cert_verify(self, conn, url, verify, cert):
        pass
"""


def matrix(stack: str, world, cure, directly: bool = False, **asked) -> dict:
    """What trust_matrix.py answers, all of whose cells are there."""
    found = run(stack, "trust_matrix.py", "matrix", world, cure, directly=directly, **asked)
    # Targets x ways (fewer of them through the three proxies); with client certificates: servers x
    # certificates x ways, twice directly and once through each proxy.
    ways_to_show = 3 if stack in PRELOADED else 4
    cells = 15 * 15 + 2 * 8 * ways_to_show * 2
    if not directly:
        cells += 3 * (15 * 7 + 2 * 8 * ways_to_show)
    assert len(found["cells"]) == cells
    return found


def different(cells: dict[str, list]) -> dict[str, list]:
    """The cells in which the cure answers otherwise: [stock's outcome, the cure's]."""
    return {name: cell for name, cell in cells.items() if cell[0] != cell[1]}


@every_release
def test_stock_and_cured_answer_alike_in_every_cell(world, cure, stack):
    cells = matrix(stack, world, cure)["cells"]
    assert not different(cells)
    # The world is as bad as it says, for the stock that this is compared with.
    good, bad = ("valid", "whole chain"), ("expired", "self-signed", "wrong host")
    assert all(cells[f"direct / True / {name}"][0] == [200, []] for name in good)
    assert all(cells[f"direct / True / {name}"][0][0].endswith("SSLError") for name in bad)
    shown = "direct / file / {} shown to demanding, again"
    assert cells[shown.format("alice")][0] == [200, [], "alice"]
    assert cells[shown.format("bob")][0] == [200, [], "bob"]
    assert cells[shown.format("a stranger")][0] == [False]


@pytest.mark.nightly  # it downloads them
@pytest.mark.breadth
def test_with_the_newest_releases_and_prereleases_of_requests_and_urllib3(world, cure, tmp_path):
    install = installers.uv("pip", "install", "--target", tmp_path, "--prerelease=allow")
    done = here.run(*install, "--python", here.environment(NEWEST).python, "requests", "urllib3")
    assert done.returncode == 0, done.stderr
    found = matrix(NEWEST, world, cure, variables={"PYTHONPATH": str(tmp_path)})
    # What it does not know stays stock, loudly; what it knows shares.
    assert bool(found["stats"]["unknown"]) != (found["stats"]["contexts"] > 4)
    assert not different(found["cells"])


@pytest.mark.parametrize(
    "stack",
    [
        # What the cure does there, test_shared_context_inside.py says with fewer cells.
        pytest.param("stage-2-injected-today", marks=pytest.mark.slow),
        pytest.param("stage-2-py37", marks=BREADTH),
    ],
)
def test_under_pyopenssl_too(world, cure, stack):
    # The requests of 2019 injects it on its own.
    found = matrix(stack, world, cure, inject=stack == "stage-2-injected-today")
    assert not different(found["cells"])
    assert set(found["stats"]["own"]) >= {"pyOpenSSL was injected into urllib3"}
    assert found["stats"]["contexts"] == 0


def test_the_matrix_sees_a_cure_that_shares_too_much(world, tmp_path):
    (tmp_path / "shared_context.py").write_text(NAIVE)
    found = different(matrix(NEWEST, world, tmp_path, directly=True)["cells"])
    assert "direct / missing / valid" in found and "direct / corrupt / valid" not in found
    assert found["direct / other file / valid"][1] == [200, []]
    assert found["direct / False / expired"][1] != [200, [], "InsecureRequestWarning"]


def test_the_matrix_sees_a_cure_that_mixes_up_clients(world, tmp_path):
    mixing = CURE.read_text()
    one_slot = "        slot = _slots.pop(recipe) if recipe in _slots else _Slot(makers)\n"
    for right, wrong in {
        one_slot + "        _slots[recipe] = slot":
            "        alike = recipe._replace(client=bool(recipe.client))\n"
            "        slot = _slots.setdefault(alike, _Slot(makers))",
        "def _fitting(slot: _Slot, fingerprints: list[bytes]) -> Any:\n":
            "def _fitting(slot, fingerprints):\n    return slot.lent and slot.lent[1]\n",
    }.items():  # fmt: skip
        assert right in mixing
        mixing = mixing.replace(right, wrong)
    (tmp_path / "shared_context.py").write_text(mixing)
    found = different(matrix(NEWEST, world, tmp_path, directly=True)["cells"])
    mixed_up = found["direct / file / bob shown to demanding, first"]
    assert mixed_up == [[200, [], "bob"], [200, [], "alice"]]
    assert not any("shown" not in name for name in found)
