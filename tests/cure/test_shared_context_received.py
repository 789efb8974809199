"""What servers and proxies receive from stock and cured sessions is the same, byte for byte.

This holds with every release of urllib3 that the cure knows; and the cure shares with each of them.
"""

import itertools
from functools import cache

import pytest
from trust_runs import CURE, cure, marks, with_releases

ROUTES = ("direct", "http proxy", "https proxy")
KINDS = ("urllib3's", "own context", "late limit", "connect replaced", "pyOpenSSL")
TRUSTS = ("bundle", "directory", "True", "False", "client certificate")
TARGETS = ("trusted", "stranger", "TLS 1.2")


#: Releases of requests that have a context of their own for verify=True.
OF_THEIR_OWN = ("2.32.2", "2.32.3", "2.32.4")


def pairwise() -> list[tuple[str, ...]]:
    """Few cells in which each two values of different axes meet, and those of the attacks."""
    axes = (ROUTES, KINDS, TRUSTS, TARGETS)
    todo = {
        frozenset(pair)
        for one, other in itertools.combinations(enumerate(axes), 2)
        for pair in itertools.product(*([(n, value) for value in axis] for n, axis in (one, other)))
    }
    found = [
        ("https proxy", "urllib3's", trust, "trusted")
        for trust in ("bundle", "True", "client certificate")
    ]
    found += [("https proxy", "late limit", "client certificate", "TLS 1.2")]
    cells = list(itertools.product(*axes))

    def meets(cell):
        return {frozenset(pair) for pair in itertools.combinations(enumerate(cell), 2)}

    for cell in found:
        todo -= meets(cell)
    while todo:
        best = max(cells, key=lambda cell: len(meets(cell) & todo))
        found.append(best)
        todo -= meets(best)
    return found


@cache
def pairs() -> list[tuple[str, str]]:
    """All (requests, urllib3) that the cure knows, the newest requests first."""
    known = itertools.product(reversed(cure.REQUESTS), cure.URLLIB3)
    return [pair for pair in known if cure.is_tested(*pair)]


@cache
def in_ci() -> set[tuple[str, str]]:
    """The last of each minor release of urllib3, each with another requests if it can be."""
    lasts: dict[str, str] = {}
    for release in cure.URLLIB3:
        lasts[release.rsplit(".", release.count(".") - 1)[0]] = release
    chosen: dict[str, str] = {}
    for release in lasts.values():
        fitting = [pair for pair in pairs() if pair[1] == release and pair[0] not in OF_THEIR_OWN]
        chosen[release] = next(
            (each for each, _ in fitting if each not in chosen.values()), fitting[0][0]
        )
    return {(of_requests, release) for release, of_requests in chosen.items()}


@cache
def typical() -> set[tuple[str, str]]:
    """Of these, those with the oldest and the newest urllib3, and the last before version 2."""
    ends = ("1.24.", "1.26.", cure.URLLIB3[-1])
    return {pair for pair in in_ci() if pair[1].startswith(ends)}


def received(of_requests: str, of_urllib3: str, world, cure, cells=None, **asked) -> dict:
    """What trust_received.py tells of a pair of releases."""
    found = with_releases(
        of_requests, of_urllib3, "trust_received.py", cure, world=world, cells=cells, **asked
    )
    assert found["releases"] == [of_requests, of_urllib3] and found["unknown"] == ""
    return found


def test_pairs_of_values_all_meet():
    assert len(pairwise()) < 60
    assert len(pairs()) > 300 and len(in_ci()) == 12 and len(typical()) == 3


@pytest.mark.parametrize(
    ("of_requests", "of_urllib3"),
    [pytest.param(*pair, marks=marks(pair in typical(), False)) for pair in pairs()],
)
def test_servers_and_proxies_receive_what_stock_sends(world, cure, of_requests, of_urllib3):
    often = (of_requests, of_urllib3) in in_ci()
    found = received(of_requests, of_urllib3, world, cure, pairwise(), shares=often)
    different = {name: cell for name, cell in found["cells"].items() if cell[0] != cell[1]}
    assert not different
    for name, (stock, _, why, expected) in found["cells"].items():
        [said] = why or ["no TLS with the server came about"]
        # Some routes end before TLS with the server: old releases and pyOpenSSL have none in TLS.
        assert said in expected or (name.startswith("https proxy") and stock[0][0] != 200), name
        # A proxy that lets through reads CONNECT and nothing else.
        assert all(heard.startswith("CONNECT ") for each in stock[2] for heard in each["requests"])
    if often:
        assert found["shares"] and set(map(tuple, found["shares"].values())) == {(1, 30)}


@pytest.mark.nightly
@pytest.mark.breadth
@pytest.mark.parametrize(("of_requests", "of_urllib3"), sorted(in_ci()))
def test_in_every_cell(world, cure, of_requests, of_urllib3):
    found = received(of_requests, of_urllib3, world, cure)
    assert len(found["cells"]) == 225
    assert not {name for name, cell in found["cells"].items() if cell[0] != cell[1]}


def test_the_cells_see_the_leak_that_the_first_version_had(world, tmp_path):
    """Version 1 connected again inside connect(), without CONNECT. A cure that does so is found."""
    leaking = CURE.read_text()
    right = "        try:\n            super().connect()\n        finally:\n"
    wrong = (
        "        try:\n            super().connect()\n            self.close()\n"
        "            self._tunnel_host = None\n            _StockConnection.connect(self)\n"
        "        finally:\n"
    )
    assert right in leaking
    (tmp_path / "shared_context.py").write_text(leaking.replace(right, wrong))
    cell = ("http proxy", "urllib3's", "False", "trusted")
    found = received(*max(in_ci()), world, tmp_path, [cell])
    [(stock, cured, *_)] = found["cells"].values()
    assert stock != cured
