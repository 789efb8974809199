"""requests' own tests come out with the cure as they do without it."""

import pytest
import requests_own_tests
from trust_runs import nightly

NEWEST, *BEFORE = requests_own_tests.RELEASES


@pytest.mark.parametrize(
    "release", [NEWEST, *(pytest.param(release, marks=nightly) for release in BEFORE)]
)
def test_requests_own_tests_come_out_alike(release, tmp_path, cure):
    with requests_own_tests.both(release, tmp_path, cure) as suites:
        stock, cured = (suite.outcomes() for suite in suites)
        assert cured == stock
        assert list(stock.values()).count("passed") > 600
        assert suites[1].shared() > 1
