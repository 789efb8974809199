"""The capacity model: what a page and a job cost, and the costs found again from measurements."""

from dataclasses import replace

import pandas as pd
import pytest

from casebook.cases.many import capacity
from casebook.cases.many.capacity import Costs
from casebook.errors import UsageError
from casebook.laboratory.decisions import Window

#: A page costs 2 ms, a batch 100, a connection 4 and a load 16; the server 1 and 50 for a batch.
COSTS = Costs(
    page_ms=2, task_ms=100, engine_task_ms=1, connection_ms=4, handshake_ms=1, load_ms=16,
    worker_second_ms=10, thread_second_ms=3, engine_second_ms=20,
    server_page_ms=1, server_batch_ms=50, memory_mib=512,
)  # fmt: skip


def test_the_cost_of_a_page():
    assert COSTS.cpu_ms(10) == 2 + 10 + 0.4
    assert COSTS.cpu_ms(10, cured=False) == 2 + 10 + 2
    assert COSTS.cpu_ms(10, cured=False, pages_per_connection=1) == 2 + 10 + 20
    assert COSTS.cpu_ms(10, pages_per_connection=4) == 2 + 10 + 1
    assert COSTS.server_cpu_ms(10) == 1 + 5
    assert COSTS.second_ms(2, 4) == 2 * (10 + 4 * 3) + 20


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        # 1,000 pages of 12.4 + 6 ms on two cores: the cores are the busiest.
        ({}, 1000 * 18.4 / 1000 / 2),
        ({"cores": 8, "workers": 1}, 1000 * 12.4 / 1000 + 1000 * 6 / 1000),  # one after the other
        ({"cores": 8, "workers": 2, "threads": 50}, 1000 * 12.4 / 1000 / 2),
        ({"cores": 999, "workers": 128}, 10 * 18.4 / 1000),  # a batch goes one after the other
        # 100 batches, 8 at a time: 13 turns of ten pages that wait 0.1 s.
        ({"cores": 64, "workers": 4, "threads": 2, "delay_s": 0.1}, 13 * 10 * (0.1 + 0.0184)),
        ({"cured": False, "cores": 1}, 1000 * (14 + 6) / 1000),
    ],
)
def test_the_time_of_a_job_is_that_of_whatever_is_busiest(how, seconds):
    assert capacity.seconds(COSTS, capacity.Job(pages=1000, size=10, **how)) == pytest.approx(
        seconds
    )


def test_the_scheduler_can_be_the_busiest():
    costs = replace(COSTS, engine_task_ms=50)
    job = capacity.Job(pages=1000, size=10, cores=999, workers=128)
    assert capacity.seconds(costs, job) == pytest.approx(100 * 50 / 1000)
    assert capacity.tasks_per_s(costs) == 20


def run(**more) -> dict:
    return {"pages": 1000, "size": 10, "cured": True, "delay_s": 0, "workers": 2, "threads": 1,
            "cores": 2, "loads": 4, "wall_s": 5.0, "all_ms": 13.0, "repeat": 1,
            "job": "a"} | more  # fmt: skip


def test_the_model_of_one_run():
    # 12.4 of the page, four loads of 16 ms and five seconds of 2 x 13 + 20 ms over 1,000 pages.
    assert capacity.predicted_cpu_ms(COSTS, run(), 5.0) == pytest.approx(12.4 + 0.064 + 0.23)
    assert capacity.predicted_cpu_ms(COSTS, run(cured=False), 5.0) == pytest.approx(14 + 0.23)
    both = capacity.with_predictions(COSTS, pd.DataFrame([run()]))
    said_s = 1000 * 18.4 / 1000 / 2
    assert both["said_s"].tolist() == pytest.approx([said_s])
    assert both["said_ms"].tolist() == pytest.approx([12.4 + 0.064 + 46 * said_s / 1000])
    assert both["off"].tolist() == pytest.approx([13 / both["said_ms"][0]])


def frames(costs: Costs = COSTS) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """What would be measured where these are the costs: curve, pages and waits."""
    cases = {"requests-stock, new": 30, "requests-cured, new": 14, "requests-cured, kept": 10}
    pages = pd.DataFrame([
        {"case": case, "cpu_ms": ms, "handshake_ms": 1} for case, ms in cases.items()
    ])  # fmt: skip
    rows = []
    for job, size, batches, took_s, peak in (("small", 2, 500, 8, 300), ("large", 50, 20, 5, 512),
                                             ("middle", 10, 100, 5, 400)):  # fmt: skip
        own = costs.cpu_ms(size) + (4 * costs.load_ms + costs.second_ms(2, 1) * took_s) / 1000
        engine = costs.engine_task_ms / size + costs.engine_second_ms * took_s / 1000
        rows.append(run(job=job, size=size, batches=batches, all_ms=own, peak_rss_mib=peak,
                        wall_s=took_s, engine_cpu_ms=engine,
                        server_cpu_ms=costs.server_cpu_ms(size)))  # fmt: skip
    waits = []
    for job, its in capacity.WAITS.items():
        took_s = 0.5 + its.get("delay_s", 0)
        # Waiting costs its seconds: of two workers, of a thread for each page, and the engine.
        second_ms = 2 * costs.worker_second_ms + its["pages"] * costs.thread_second_ms
        waits.append({
            "job": job, "pages": its["pages"], "workers": 2, "loads": 2, "repeat": 1,
            "cpu_ms": 6 + (2 * costs.load_ms + second_ms * its.get("delay_s", 0)) / its["pages"],
            "wall_s": 0.5 *
            its["pages"] / 32 + its.get("delay_s", 0), "engine_cpu_ms": 1 + costs.engine_second_ms *
            its.get("delay_s", 0) / its["pages"], "took_s": took_s,
        })  # fmt: skip
    return pd.DataFrame(rows), pages, pd.DataFrame(waits)


def test_the_costs_are_found_again_from_what_they_would_give():
    curve, pages, waits = frames()
    found = capacity.fit_costs(curve, pages, waits)
    assert vars(found) == pytest.approx(vars(COSTS))
    # The memory is that of the largest worker process, whatever the size of its batches.
    assert found.memory_mib == 512


def test_another_machine_has_other_costs():
    other = replace(
        COSTS, page_ms=3, task_ms=80, engine_task_ms=7, server_page_ms=2, thread_second_ms=1
    )
    found = capacity.fit_costs(*frames(other))
    assert vars(found) == pytest.approx(vars(other))


def test_a_batch_never_costs_less_than_its_connection():
    found = capacity.fit_costs(*frames(replace(COSTS, task_ms=-1)))
    assert found.task_ms == 0


def test_of_several_rounds_the_median_counts():
    curve, pages, waits = frames()
    odd = pd.concat([curve, curve.assign(all_ms=99.0, repeat=2), curve.assign(repeat=3)])
    assert capacity.fit_costs(odd, pages, waits).page_ms == pytest.approx(2)
    with pytest.raises(UsageError, match=r"^a model of two costs needs .* two sizes of batches$"):
        capacity.fit_costs(curve[curve["size"] == 2], pages, waits)


def test_how_far_the_model_is_off_is_asked_in_each_round():
    curve, pages, waits = frames()
    twice = pd.concat([curve, curve.assign(repeat=2)])
    asked = capacity.prediction_ratio(
        "middle", ["small", "large"], pages, waits, between=(0.9, 1.1)
    )
    assert asked.values(twice).to_dict() == pytest.approx({1: 1.0, 2: 1.0})
    assert asked.window == Window(low=0.9, high=1.1)
    twice.loc[(twice["job"] == "middle") & (twice["repeat"] == 2), "all_ms"] *= 1.5
    assert asked.values(twice).to_dict() == pytest.approx({1: 1.0, 2: 1.5})


@pytest.mark.parametrize(
    ("hours", "schedulers", "machines"), [(24, 1, (17, 6)), (2, 2, (200, 61)), (1, 3, (400, 122))]
)
def test_schedulers_and_machines_for_a_job_that_has_to_be_done_in_time(hours, schedulers, machines):
    """1e9 pages are 1e7 tasks of a millisecond, which take one scheduler 2.8 hours.

    A page costs 2 ms, 1 of its task and 4 of its connection, and stock 16 of its load.
    """
    fleet = capacity.at_scale(COSTS, [1e9], size=100, hours=hours, dollars_per_core_hour=0.1)
    stock, cured = fleet.to_dict("records")
    assert (stock["cpu_ms"], cured["cpu_ms"]) == (23, 7)
    assert (stock["schedulers"], cured["schedulers"]) == (schedulers, schedulers)
    assert (stock["machines"], cured["machines"]) == machines
    assert cured["dollars"] == pytest.approx(7e6 / 3600 * 0.1) and cured["memory_gib"] == 8


def test_how_many_schedulers_it_takes_is_asked_in_each_round():
    rows = [
        {"repeat": repeat, "job": str(size), "size": size, "pages": 10 * size, "batches": 10,
         "wall_s": 1.0, "engine_cpu_ms": task_ms / size + COSTS.engine_second_ms / (10 * size)}
        for repeat, task_ms in enumerate([4, 5, 6] * 3, 1)
        for size in (1, 10, 100)
    ]  # fmt: skip
    asked = capacity.schedulers_asked(COSTS, 1000, ["1", "100"], above=1)
    decision = asked.decide(pd.DataFrame(rows))
    assert [round(value, 9) for value in asked.values(pd.DataFrame(rows))] == [4, 5, 6] * 3
    assert decision.outcome == "holds" and decision.value == pytest.approx(5)
    # One that has nothing but its seconds to spend on would be enough.
    enough = capacity.schedulers_asked(COSTS, 100, ["1", "100"], above=1)
    assert enough.decide(pd.DataFrame(rows)).outcome == "otherwise"


def test_tasks_are_handed_out_at_a_rate():
    for rate in (1e-9, 1e9):
        capacity.schedulers_asked(COSTS, rate, ["1", "100"], above=1)
    for rate in (0, 1e9 + 1):
        with pytest.raises(UsageError, match=r"^tasks_per_second is "):
            capacity.schedulers_asked(COSTS, rate, ["1", "100"], above=1)


def test_a_job_at_scale_if_nothing_else_is_said():
    """A day, 16 cores, a hundred pages to a batch and one to a connection, and no price."""
    _, cured = capacity.at_scale(COSTS, [1e9]).to_dict("records")
    core_hours = 1e9 * 7 / 1000 / 3600
    assert cured == pytest.approx({
        "pages": 1e9, "way": "one context", "cpu_ms": 7, "core_hours": core_hours,
        "machines": 6, "schedulers": 1, "dollars": 0, "memory_gib": 8,
    })  # fmt: skip
    # 3,600,000 tasks of a millisecond are an hour of a scheduler; half a second more is two's.
    hour = capacity.at_scale(COSTS, [3.6e8, 3.6005e8], hours=1)
    assert hour["schedulers"].tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("pages", "settings", "expected"),
    [
        # 7 ms a page: 900 s are 128,571 of them, and a thousand functions run at once.
        (1e9, {}, (128_571, 7778, 8, 1e9 * 7 / 60_000 / 1000, 16, 8411)),
        # 12.8 ms a page: 2, 100 for ten, and 4 for five.
        (1e6, {"size": 10, "pages_per_connection": 5, "within_s": 60, "at_once": 4, "delay_s": 0.5},
         (4687, 214, 54, 1e6 * 12.8 / 60_000 / 4, 41, 117)),
        (1, {"within_s": 1}, (142, 1, 1, 7 / 60_000, 16, 9)),
    ],
)  # fmt: skip
def test_functions_that_somebody_else_runs(pages, settings, expected):
    _, cured = capacity.functions(COSTS, pages, **settings).to_dict("records")
    names = ("pages_each", "functions", "turns", "minutes", "connections", "one_by_one")
    assert cured == pytest.approx({"way": "one context"} | dict(zip(names, expected, strict=True)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pages": [0]}, "pages is 0; choose 1 to 1e+15"),
        ({"pages": [1e15 + 1]}, "pages is 1,000,000,000,000,001.0; choose"),
        ({"size": 0}, "size is 0; choose"),
        ({"pages_per_connection": 0.5}, "pages_per_connection is 0.5; choose"),
        ({"cores": 0}, "cores is 0; choose"),
        ({"hours": 0}, "hours is 0; choose 0.001 to 1e+06"),
        ({"hours": 1_000_001}, "hours is 1,000,001; choose"),
        ({"other_ms": -1}, "other_ms is -1; choose 0 to 1e+06"),
        ({"other_ms": 1_000_001}, "other_ms is 1,000,001; choose"),
        ({"dollars_per_core_hour": -1}, "dollars_per_core_hour is -1; choose"),
        ({"dollars_per_core_hour": 1_000_001}, "dollars_per_core_hour is 1,000,001; choose"),
    ],
)
def test_a_job_at_scale_that_cannot_be(settings, said):
    with pytest.raises(UsageError) as refused:
        capacity.at_scale(COSTS, **{"pages": [1e6]} | settings)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pages": 0}, "pages is 0; choose"),
        ({"size": 0}, "size is 0; choose"),
        ({"pages_per_connection": 0.5}, "pages_per_connection is 0.5; choose"),
        ({"at_once": 0}, "at_once is 0; choose"),
        ({"within_s": 0.5}, "within_s is 0.5 s; choose 1 to 1e+06"),
        ({"within_s": 1_000_001}, "within_s is 1,000,001 s; choose"),
        ({"delay_s": -1}, "delay_s is -1 s; choose 0 to 1e+06"),
        ({"delay_s": 1_000_001}, "delay_s is 1,000,001 s; choose"),
    ],
)
def test_functions_that_cannot_be(settings, said):
    with pytest.raises(UsageError) as refused:
        capacity.functions(COSTS, **{"pages": 1e6} | settings)
    assert str(refused.value).startswith(said)
