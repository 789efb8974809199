"""requests' own tests come out with the cure as they do without it."""


def test_requests_own_tests_come_out_alike(own_tests):
    stock, cured = (suite.outcomes() for suite in own_tests)
    assert cured == stock
    assert list(stock.values()).count("passed") > 600
    assert own_tests[1].shared() > 1
