"""What a test may do in TLS, so that what was mended stays mended.

    @pytest.mark.tls(loads=1, handshakes=1)   # at most
    def test_two_pages(client): ...

    def test_pages(tls, client):              # the counts so far
        client.get("/")
        assert tls.loads == 1

Counted are loads, handshakes, connections and contexts of the test itself, not of its fixtures,
nor of processes that it starts. Marks of a class and of its tests add up; where both limit the
same thing, the closer one counts.
"""

import pytest

import tls_doctor

NAMES = ("loads", "handshakes", "connections", "contexts")


def pytest_configure(config):
    """Declare the mark."""
    config.addinivalue_line(
        "markers", "tls(%s): how many a test may do at most" % "=N, ".join((*NAMES, ""))[:-2]
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Run a test, and have it fail if it does more than its marks allow."""
    fixture = getattr(item, "funcargs", {}).get("tls")
    if isinstance(fixture, tls_doctor.counting):
        fixture.from_now_on()  # other fixtures may have come after it
    marks = list(item.iter_markers("tls"))  # the closest first
    if not marks:
        yield
        return
    limits = {name: mark.kwargs[name] for mark in reversed(marks) for name in mark.kwargs}
    if not set(NAMES).issuperset(limits) or any(mark.args for mark in marks):
        message = "mark.tls takes %s, by name" % ", ".join(NAMES)
        raise pytest.UsageError("%s: %s" % (item.nodeid, message))
    with tls_doctor.counting() as counter:
        outcome = yield
    over = [name for name in limits if getattr(counter, name) > limits[name]]
    if over and outcome.excinfo is None:
        outcome.force_exception(
            pytest.fail.Exception(describe_counts(counter, limits), pytrace=False)
        )


def describe_counts(counter, limits):
    """Return what a test did, and what it may do, in words."""
    counts = [tls_doctor.several(getattr(counter, name), name[:-1]) for name in NAMES]
    lines = ["TLS: " + ", ".join(counts)]
    lines += ["at most %s=%d" % limit for limit in sorted(limits.items())]
    for row in counter.counts["clients"]:
        if row["loads"]:
            places = ", ".join("%s (%d)" % (place, number) for place, number in row["at"])
            words = row["client"] or "the program", tls_doctor.times(row["loads"]), places
            lines.append("%s loaded %s: %s" % words)
    return "\n".join(lines)


@pytest.fixture
def tls():
    """Count what the test does in TLS: tls.loads, .handshakes, .connections, .contexts.

    All else is in the dictionary tls.counts.
    """
    with tls_doctor.counting() as counter:
        yield counter
