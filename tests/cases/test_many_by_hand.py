"""What crawls come to, and what a job costs by the model, with numbers that are written down.

No cluster is started.
"""

import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook import places
from casebook.cases import many
from casebook.cases.many import capacity, cluster, costs, jobs
from casebook.errors import MachineFileRefused, RunFailed, UsageError
from casebook.laboratory import machine_files

PROBES = places.PACKAGE / "cases" / "many" / "probes"


@pytest.fixture
def crawling(monkeypatch):
    """The probe, beside a crawl of ours."""
    monkeypatch.syspath_prepend(str(PROBES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    crawl = SimpleNamespace(
        batches_of=lambda *_: {"host": [[], []]}, crawl=lambda *_, **__: {"good": 2},
        **dict.fromkeys(("Manners", "Patience", "OneClient", "Plan"), lambda *_, **__: None),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "crawl", crawl)
    monkeypatch.delitem(sys.modules, "crawling", raising=False)
    import crawling

    monkeypatch.setattr(crawling, "content", lambda _folder: {"rows": 2})
    yield crawling
    sys.modules.pop("crawling", None)


def job_of(crawling, before, after):
    """What a job says whose workers say this before and after it."""
    looks = [before, after]

    def run(function):
        return looks.pop(0) if function is crawling.usage else None

    client = SimpleNamespace(run=run, wait_for_workers=lambda _count: None)
    server = SimpleNamespace(reset=lambda: None, hosts=["a"], counters=lambda: {"requests": 2})
    return crawling.run_job(client, {"pages": 2}, server, "bundle.pem", "folder")


def look(pid, cpu_s, loads, rss):
    return {"pid": pid, "cpu_s": cpu_s, "loads": loads, "rss": rss}


def test_workers_are_added_up_since_before_and_the_memory_is_that_of_the_largest(crawling):
    before = {"x": look(1, 1.0, 5, 100), "y": look(2, 2.0, 7, 900)}
    after = {"x": look(1, 1.5, 6, 300), "y": look(2, 4.0, 9, 901), "z": look(1, 0, 0, 200)}
    del after["z"]
    its = job_of(crawling, before, after)
    assert (its["cpu_s"], its["loads"], its["peak_rss_kib"]) == (2.5, 3, 901)
    assert its["engine_cpu_s"] is not None and its["killed_a_worker"] == 0


def test_where_a_worker_was_replaced_its_counts_are_not_known(crawling):
    before = {"x": look(1, 1.0, 5, 100), "y": look(2, 2.0, 7, 900)}
    after = {"x": look(1, 1.5, 6, 300), "y": look(3, 0.5, 1, 200)}
    its = job_of(crawling, before, after)
    assert its["cpu_s"] is its["loads"] is its["engine_cpu_s"] is None
    assert its["peak_rss_kib"] == 300


def test_pages_are_dealt_out_to_the_hosts_and_say_what_is_wrong_with_them(crawling):
    job = {"pages": 4, "delay_s": 0.5, "faults": {"1": "cut", "3": "nobody"}}
    assert list(crawling.urls_of(job, ["a", "b"])) == [
        "https://a/page/0?delay=0.5",
        "https://b/page/1?delay=0.5&fault=cut",
        "https://a/page/2?delay=0.5",
        f"https://{crawling.NOBODY}/page/3?delay=0.5",
    ]
    assert list(crawling.urls_of({"pages": 1, "faults": {"0": "cut"}}, ["a"])) == [
        "https://a/page/0?fault=cut"
    ]


# ---------------------------------------------------------------- jobs

DONE = {"good": 100, "pages": 100, "killed": [], "failed": [], "stopped": "", "batches": 4}
SERVER = dict(requests=101, again=1, connections=4, peak_connections=2, peak_per_s=50, cpu_s=0.5)
ITS = dict(
    done=DONE, server=SERVER, rows=100, twice=0, right=100, content="digest", wall_s=1.5, cpu_s=2.0,
    engine_cpu_s=1.0, loads=2, peak_rss_kib=2048, killed_a_worker=0,
)  # fmt: skip


def test_milliseconds_are_for_a_page_and_all_of_them_are_of_workers_and_engine():
    row = jobs._of_job({"pages": 100}, ITS)
    assert (row["cpu_ms"], row["engine_cpu_ms"], row["all_ms"]) == (20, 10, 30)
    assert (row["server_cpu_ms"], row["peak_rss_mib"], row["wall_s"]) == (5, 2, 1.5)
    assert (row["good"], row["failed"], row["killed"], row["loads"]) == (100, 0, 0, 2)
    lost = jobs._of_job({"pages": 100}, ITS | {"cpu_s": None, "engine_cpu_s": None})
    assert lost["cpu_ms"] is lost["engine_cpu_ms"] is lost["all_ms"] is None


def test_pages_of_batches_that_killed_workers_are_counted_by_batch():
    done = DONE | {"good": 85, "killed": [["host", 0, 10], ["host", 1, 4]]}
    done |= {"pages": 86, "failed": [["https://a/page/7?fault=cut", "CutShort", "said"]]}
    its = ITS | {"done": done, "rows": 86, "right": 85}
    row = jobs._of_job({"pages": 100, "faults": {"7": "cut"}}, its)
    assert (row["good"], row["failed"], row["killed"]) == (85, 1, 14)
    assert row["cpu_ms"] == 20  # for each page that was to come
    named = jobs.named(pd.DataFrame([row | {"job": "attacked"}])).to_dict("records")
    [first] = named
    assert first == {
        "job": "attacked",
        "page": "7?fault=cut",
        "name": "CutShort",
        "message": "said",
    }
    with pytest.raises(RunFailed, match="85 of 100 pages came: said"):
        jobs._of_job({"pages": 100}, its)  # nobody made this one wrong


@pytest.mark.parametrize("wrong", [{"twice": 1}, {"right": 99}, {"rows": 99}, {"rows": 101}])
def test_pages_that_are_wrong_or_twice_are_no_measurement(wrong):
    with pytest.raises(RunFailed, match="Nothing was recorded"):
        jobs._of_job({"pages": 100}, ITS | wrong)


def test_jobs_are_taken_in_turns_and_each_row_is_its_own(monkeypatch):
    asked_of = []

    def measure(stack, asked, repeats):
        [its] = asked
        asked_of.append((list(repeats), [job["pages"] for job in its["jobs"]]))
        figures = [{"pages": job["pages"], "good": job["pages"]} for job in its["jobs"]]
        return pd.DataFrame([{"stack": stack, "repeat": repeats[0], "figures": figures}])

    monkeypatch.setattr(jobs, "CRAWLS", SimpleNamespace(measure=measure))
    named = {"few": {"pages": 1}, "many": {"pages": 2, "cured": False}, "most": {"pages": 3}}
    frame = jobs.measure(named, workers=3, threads=4, repeats=3)
    assert asked_of == [([1], [1, 2, 3]), ([2], [3, 2, 1]), ([3], [1, 2, 3])]
    assert list(frame["job"]) == [
        "few",
        "many",
        "most",
        "most",
        "many",
        "few",
        "few",
        "many",
        "most",
    ]
    assert dict(zip(frame["job"], frame["good"], strict=True)) == {"few": 1, "many": 2, "most": 3}
    assert list(frame["repeat"]) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert set(frame["workers"]) == {3} and set(frame["threads"]) == {4}
    assert dict(zip(frame["job"], frame["cured"], strict=True))["many"] is False
    assert set(frame["size"]) == {100} and set(frame["delay_s"]) == {0.0}


def test_the_middle_size_is_compared_with_the_model_of_the_other_two():
    """A page takes 1 ms, and a batch 10: 11, 2 and 1.1 ms, for batches as they were filled."""
    rows = pd.DataFrame(
        {
            "repeat": 1,
            "size": [200, 1, 20],
            "pages": [100, 100, 100],
            "batches": [1, 100, 10],
            "all_ms": [1.1, 11.0, 3.0],
        }
    )
    model = jobs.follows_the_model(between=(0.5, 2))
    assert model.values(rows).loc[1] == pytest.approx(1.5)
    with pytest.raises(UsageError, match="three sizes"):
        model.values(rows[:2])


# ---------------------------------------------------------------- costs

PAGES = dict(right=20, cpu_s=0.6, load_s=0.2, handshake_s=0.1, wall_s=2.0, loads=3, handshakes=4,
             openssl="o")  # fmt: skip


def answer(connections, requests=20, **changed):
    server = {"connections": connections, "requests": requests, "cpu_s": 0.04}
    return PAGES | {"server": server} | changed


def test_the_parts_of_a_page_are_milliseconds_and_the_rest_is_what_they_leave():
    row = costs._figures({"n": 20, "kept": False, "way": "requests-stock"}, answer(20))
    parts = {"cpu_ms": 30, "load_ms": 10, "handshake_ms": 5, "rest_ms": 15, "wall_ms": 100}
    assert {name: row[name] for name in parts} == pytest.approx(parts)
    assert row["server_cpu_ms"] == pytest.approx(2)
    assert (row["loads"], row["handshakes"], row["connections"]) == (3, 4, 20)


@pytest.mark.parametrize(
    ("kept", "connections", "requests", "right"),
    [(True, 2, 20, 20), (False, 19, 20, 20), (False, 1, 20, 20), (True, 1, 21, 20),
     (True, 1, 20, 19)],
)  # fmt: skip
def test_pages_over_other_connections_are_no_costs(kept, connections, requests, right):
    asked = {"n": 20, "kept": kept, "way": "aiohttp"}
    with pytest.raises(RunFailed, match="Nothing was recorded"):
        costs._figures(asked, answer(connections, requests, right=right))
    assert costs._figures(asked, answer(1 if kept else 20))["cpu_ms"] == pytest.approx(30)


# ---------------------------------------------------------------- the model

COSTS = capacity.Costs(
    page_ms=1, task_ms=8, engine_task_ms=4, connection_ms=2, handshake_ms=1, load_ms=20,
    worker_second_ms=30, thread_second_ms=5, engine_second_ms=40,
    server_page_ms=0.5, server_batch_ms=2, memory_mib=100,
)  # fmt: skip


def test_costs_of_a_page_by_hand():
    assert COSTS.cpu_ms(4) == 1 + 8 / 4 + 2 / 4
    assert COSTS.cpu_ms(4, cured=False) == 1 + 8 / 4 + 22 / 4
    assert COSTS.cpu_ms(8, pages_per_connection=2) == 1 + 8 / 8 + 2 / 2
    assert COSTS.server_cpu_ms(4) == 1.0
    assert COSTS.second_ms(workers=3, threads=2) == 3 * (30 + 2 * 5) + 40


def test_loads_are_spread_over_the_pages_of_a_job():
    runs = pd.DataFrame({"loads": [2, 0], "pages": [100, 100]})
    assert list(capacity.loads_ms(runs, 20)) == [0.4, 0]
    cured = {"cured": True, "loads": 2, "pages": 100, "size": 10, "workers": 2, "threads": 1}
    # 1 + 10 / 10 for a page, 0.4 of loads, and two seconds of 2 * 35 + 40 ms for a hundred pages.
    assert capacity.predicted_cpu_ms(COSTS, cured, took_s=2) == pytest.approx(2 + 0.4 + 2.2)
    stock = cured | {"cured": False, "loads": 10}
    assert capacity.predicted_cpu_ms(COSTS, stock, took_s=2) == pytest.approx(4 + 2.2)


def test_the_memory_of_the_model_is_that_of_the_largest_worker_of_all_jobs():
    pages = pd.DataFrame(
        [
            {"case": f"requests-{case}", "cpu_ms": ms, "handshake_ms": 1.0}
            for case, ms in (("stock, new", 25), ("cured, new", 5), ("cured, kept", 3))
        ]
    )
    curve = pd.DataFrame({
        "size": [1, 1, 1, 100, 100, 100], "pages": 800, "batches": [800] * 3 + [8] * 3,
        "repeat": [1, 2, 3] * 2, "peak_rss_mib": [90, 100, 170, 120, 110, 130], "loads": 0,
        "wall_s": 0.0, "workers": 2, "threads": 1, "all_ms": [11, 11, 99, 1.1, 1.1, 0.1],
        "server_cpu_ms": [2.5, 2.5, 9, 0.52, 0.52, 0.1],
        "engine_cpu_ms": [4.1, 4.1, 9, 0.14, 0.14, 0.1],
    })  # fmt: skip
    waits = pd.DataFrame({
        "job": list(capacity.WAITS), "repeat": 1, "workers": 2, "pages": [32, 2, 32],
        "wall_s": [0.3, 2.0, 2.3], "loads": 0, "cpu_ms": 1.0, "engine_cpu_ms": 1.0,
    })  # fmt: skip
    found = capacity.fit_costs(curve, pages, waits)
    assert found.memory_mib == 170
    # Medians: one round in three that is far off moves nothing.
    assert (found.page_ms, found.task_ms, found.engine_task_ms) == pytest.approx((1, 8, 4))
    assert (found.server_page_ms, found.server_batch_ms) == pytest.approx((0.5, 2))
    assert (found.load_ms, found.connection_ms) == (20, 2)


def test_a_job_at_scale_by_hand():
    frame = capacity.at_scale(
        COSTS, [3.6e6, 3.6e8], size=10, pages_per_connection=10, hours=10, cores=8,
        dollars_per_core_hour=0.5, other_ms=6,
    )  # fmt: skip
    assert list(frame["cpu_ms"]) == [10, 8, 10, 8]
    assert list(frame["core_hours"]) == pytest.approx([10, 8, 1000, 800])
    assert list(frame["machines"]) == [1, 1, 13, 10]
    assert list(frame["dollars"]) == pytest.approx([5, 4, 500, 400])
    assert set(frame["memory_gib"]) == {8 * 100 / 1024}
    assert list(frame["way"]) == [capacity.CURE_LABELS[False], capacity.CURE_LABELS[True]] * 2


def test_functions_by_hand():
    stock, cured = capacity.functions(
        COSTS, 1e6, size=10, pages_per_connection=10, within_s=900, at_once=3, delay_s=0.1
    ).to_dict("records")
    assert (stock["pages_each"], stock["functions"], stock["turns"]) == (225_000, 5, 2)
    assert stock["minutes"] == pytest.approx(1e6 * 4 / 60_000 / 3)
    assert (stock["connections"], stock["one_by_one"]) == (26, int(900_000 / 104))
    assert (cured["pages_each"], cured["functions"], cured["turns"]) == (450_000, 3, 1)
    assert (cured["connections"], cured["one_by_one"]) == (51, int(900_000 / 102))


def test_what_others_published_by_hand():
    job = capacity.Published("x", "y", pages=7.2e6, hours=2, machines=5, cores=4, dollars=10)
    assert job.per_s == 200 and capacity.core_ms(job) == 20 and capacity.core_hour(job) == 0.25
    unknown = capacity.PUBLISHED[1]
    assert pd.isna(capacity.core_ms(unknown)) and pd.isna(capacity.core_hour(unknown))
    assert many.capacity is capacity


# ---------------------------------------------------------------------------- what a worker sends


@pytest.mark.parametrize(
    ("change", "failed", "file"),
    [
        ({}, "", b"packed"),
        ({"file": None}, "", None),
        ({"file": "no base64!"}, "its file came damaged", None),
        ({"failed": "it died"}, "it died", None),
        ({"status": 1, "said": "no Python 2.7"}, "no Python 2.7", None),
        ({"status": 3, "said": ""}, "exit code 3", None),
        ({"code": "def5678 aa"}, "its checkout is def5678, and here is abc1234", None),
        # The same commit, with files that were changed.
        ({"code": "abc1234 bb"}, "here is abc1234, or files differ: nothing was measured", None),
        ({"code": ""}, "none that says its commit", None),
    ],
)
def test_an_answer_of_a_worker_counts_from_the_same_checkout_alone(
    change, failed, file, monkeypatch
):
    monkeypatch.setattr(cluster.measurements, "code", lambda: "abc1234 aa")
    sent = {"worker": "w", "command": ["measure"], "code": "abc1234 aa", "status": 0}
    answer = cluster._answer(sent | {"out": "o", "said": "", "file": "cGFja2Vk"} | change)
    assert (answer.worker, answer.command, answer.file) == ("w", ["measure"], file)
    assert failed in answer.failed and bool(answer.failed) is bool(failed)


def test_what_a_worker_sends_is_kept_when_it_was_read_as_a_machine_file(monkeypatch, tmp_path):
    machine_files.save(machine_files.Machine("w", {"cores": 2}, [{"asked": ["x"]}]),
                       tmp_path / "sent.jsonl.xz")  # fmt: skip
    good = (tmp_path / "sent.jsonl.xz").read_bytes()
    sent = [cluster.Answer("a", [], failed="it died"), cluster.Answer("b", [], file=good),
            cluster.Answer("c", []), cluster.Answer("d", [], file=b"no such file")]  # fmt: skip
    monkeypatch.setattr(cluster, "run_on_workers", lambda *_, **__: iter(sent))
    folder = tmp_path / "class"
    folder.mkdir()
    came = cluster.save("tcp://127.0.0.1:8786", None, folder / "class.jsonl.xz")
    assert next(came) == ("a", None, "it died")
    assert next(came) == ("b", folder / "class-1.jsonl.xz", "2 cores")
    assert next(came) == ("c", None, "it sent no file")
    with pytest.raises(MachineFileRefused):
        next(came)
    assert [path.name for path in folder.iterdir()] == ["class-1.jsonl.xz"]
    assert (folder / "class-1.jsonl.xz").read_bytes() == good
