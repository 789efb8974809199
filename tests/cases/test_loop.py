"""Clients made on an event loop: what loads where, and what the heartbeat makes of it."""

import pytest

from casebook.cases import loop
from casebook.errors import UsageError

QUICK = {"n": 4, "delay_s": 0.1}


@pytest.mark.parametrize("way", ["httpx-each", "aiohttp-context-each", "openai-each"])
@pytest.mark.parametrize("n", [3, 4])
def test_a_client_each_is_a_load_each_on_the_loop(way, n):
    found = loop.measure(way, n=n, delay_s=0.1).iloc[0]
    assert (found["loads"], found["on_loop"]) == (n, n)


def test_one_client_and_one_context_load_once_and_a_thread_spares_the_loop():
    ways = ["httpx-one", "httpx-context", "httpx-thread"]
    found = loop.measure(ways, **QUICK)
    assert list(found["loads"]) == [1, 1, 1]
    assert list(found["on_loop"]) == [1, 1, 0]


def test_without_a_check_nothing_is_loaded_and_without_tls_all_the_same():
    assert loop.measure("httpx-unverified", **QUICK)["loads"].tolist() == [0]
    assert loop.measure("httpx-each", scheme="http", **QUICK)["on_loop"].tolist() == [4]


def test_aiohttp_loads_when_imported_and_botocore_when_it_connects():
    found = loop.measure(["aiohttp-each", "botocore-each"], **QUICK)
    assert found["at_import"][0] > 0
    assert list(found["loads"]) == [0, 0]


def test_a_pair_of_clients_is_two_loads():
    assert loop.measure("openai-pair-each", n=3, delay_s=0.1)["on_loop"].tolist() == [6]


def test_one_client_of_a_cloud_loads_for_each_connection_and_not_on_the_loop():
    found = loop.measure(["botocore-asked-each", "botocore-asked-one"], **QUICK)
    assert list(found["loads"]) == [4, 4]
    assert list(found["on_loop"]) == [0, 0]


@pytest.mark.parametrize(("stack", "on_loop"), [("3.7.0-today", [3, 1]), ("today", [0, 0])])
def test_aiobotocore_loads_once_for_each_client_and_in_a_thread_by_now(stack, on_loop):
    ways = ["aiobotocore-each", "aiobotocore-one"]
    found = loop.measure(ways, n=3, delay_s=0.1, stack=f"aiobotocore-{stack}")
    assert list(found["loads"]) == [3, 1]
    assert list(found["on_loop"]) == on_loop


def test_no_beat_comes_while_the_loop_loads_and_beats_come_while_a_thread_does():
    seen = loop.timeline(["httpx-each", "httpx-thread"], **QUICK)
    during = {}
    for way, rows in seen.groupby("way"):
        beats = rows.loc[rows["what"] == "beat", "start_s"]
        loads = rows[rows["what"] == "load"]
        during[way] = [
            beats.between(load["start_s"], load["end_s"]).sum() for _, load in loads.iterrows()
        ]
    assert during["httpx-each"] == [0] * 4
    assert sum(during["httpx-thread"]) > 0


@pytest.mark.parametrize("wrong", [{"ways": "requests"}, {"n": 0}, {"delay_s": 99}], ids=str)
def test_what_cannot_be_asked_is_said(wrong):
    with pytest.raises(UsageError):
        loop.measure(**({"ways": "httpx-one"} | QUICK | wrong))
