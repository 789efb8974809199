"""The cure answers as stock requests does: the same acceptance, the same exceptions."""

import pytest
from trust_runs import NEWEST, VERSIONS, run

CELLS = 15 * 15 + 3 * 7 * 15

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


def different(cells: dict[str, list]) -> dict[str, list]:
    """The cells in which the cure answers otherwise: [stock's outcome, the cure's]."""
    assert len(cells) == CELLS
    return {name: cell for name, cell in cells.items() if cell[0] != cell[1]}


@pytest.mark.parametrize("version", VERSIONS)
def test_stock_and_cured_answer_alike_in_every_cell(world, cure, version):
    cells = run(version, "trust_matrix.py", "matrix", world.card(), cure)["cells"]
    assert not different(cells)
    # The world is as bad as it says, for the stock that this is compared with.
    good, bad = ("valid", "whole chain"), ("expired", "self-signed", "wrong host")
    assert all(cells[f"direct / True / {name}"][0] == [200, []] for name in good)
    assert all(cells[f"direct / True / {name}"][0][0].endswith("SSLError") for name in bad)


def test_under_pyopenssl_too(world, cure):
    stack = "stage-2-injected-today"
    found = run(stack, "trust_matrix.py", "matrix", world.card(), cure, inject=True)
    assert not different(found["cells"])
    # One for verify=False, and one for each of the three bundles that can be loaded.
    assert found["shared"] == ["urllib3.contrib.pyopenssl.PyOpenSSLContext"] * 4


def test_the_matrix_sees_a_cure_that_shares_too_much(world, tmp_path):
    (tmp_path / "shared_context.py").write_text(NAIVE)
    found = different(run(NEWEST, "trust_matrix.py", "matrix", world.card(), tmp_path)["cells"])
    assert "direct / missing / valid" in found and "direct / corrupt / valid" not in found
    assert found["direct / other file / valid"][1] == [200, []]
    assert found["direct / False / expired"][1] != [200, [], "InsecureRequestWarning"]
