"""The text for requests/toolbelt, pull request 231, is true.

Its adapter does what it says, with the releases that it names.
"""

import pytest
from test_shared_context_received import in_ci, typical
from trust_runs import marks, with_releases

from casebook import places

TEXT = places.ROOT / "upstream" / "toolbelt-231.md"


def tried(of_requests: str, of_urllib3: str, world: dict, cure, without_cert_verify=False) -> dict:
    """What toolbelt_231.py tells of a pair of releases."""
    found = with_releases(
        of_requests, of_urllib3, "toolbelt_231.py", cure, world=world,
        text=TEXT.read_text(), without_cert_verify=without_cert_verify,
    )  # fmt: skip
    assert found["releases"] == [of_requests, of_urllib3]
    return found


@pytest.mark.parametrize(
    ("of_requests", "of_urllib3"),
    [pytest.param(*pair, marks=marks(pair in typical(), False)) for pair in sorted(in_ci())],
)
def test_thirty_connections_load_nothing_and_only_the_context_is_trusted(
    world, cure, of_requests, of_urllib3
):
    found = tried(of_requests, of_urllib3, world, cure)
    # urllib3 1.x refuses an https proxy that is named by its address, before a byte is sent.
    is_1 = of_urllib3.startswith("1.")
    routes = ["direct", "http proxy"] + ["https proxy"] * (not is_1)
    for route in routes:
        thirty = found["thirty"][route]
        assert thirty["came"] == ["THE SERVER"] * 30 and len(thirty["server"]) == 30
        assert thirty["loads"] == []
        assert all(line.startswith("CONNECT ") for line in thirty["proxy"])
        assert len(thirty["proxy"]) == (0 if route == "direct" else 30)
    assert found["another name"] == "SSLError"
    if is_1:
        refused = found["thirty"]["https proxy"]
        assert set(refused["came"]) <= {"TypeError", "ValueError"}
        assert refused["server"] == refused["proxy"] == []
    else:
        assert found["proxy of another name"] in ("ProxyError", "SSLError")
    assert found["stranger"]["came"] == ["SSLError"]
    for loud in ("verify=path", "verify=False", "cert"):
        assert found[loud]["came"] == ["ValueError"] and found[loud]["loads"] == []
    for refused in ("stranger", "verify=path", "verify=False", "cert"):
        assert found[refused]["server"] == []


@pytest.mark.parametrize(("of_requests", "of_urllib3"), sorted(in_ci())[-1:])
def test_without_cert_verify_it_loads_thirty_times_and_trusts_what_verify_names(
    world, cure, of_requests, of_urllib3
):
    """What the text says of the half that the pull request has."""
    found = tried(of_requests, of_urllib3, world, cure, without_cert_verify=True)
    assert found["thirty"]["direct"]["loads"] == ["load_verify_locations"] * 30
    assert found["verify=path"]["came"] == ["THE SERVER"]
    assert found["stranger"]["came"] == ["THE SERVER"]
