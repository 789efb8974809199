"""The crawl on Dask: workers die, pages go wrong, disks are full; nothing is lost or doubled."""

import ast
import json
import subprocess
from dataclasses import asdict

import nbformat
import pandas as pd
import pytest
from here import environment, needs, run

from casebook import places, tables
from casebook.cases.many import capacity, costs, jobs, large
from casebook.errors import MissingInterpreter, RunFailed, UsageError
from casebook.laboratory import machine_files
from casebook.stacks import environments

PROBES = places.PACKAGE / "cases" / "many" / "probes"
WHOLE = {"pages": 600, "size": 25}


@pytest.fixture(scope="module")
def crawls():
    """The same job, quiet and with a worker killed in its middle, one after the other."""
    environment(jobs.STACK)
    killed = WHOLE | {"kill_after": 0.5}
    return jobs.measure({"quiet": WHOLE, "killed": killed}, threads=2).set_index("job")


def test_a_worker_is_killed_and_nothing_is_lost_or_doubled(crawls):
    quiet, killed = crawls.loc["quiet"], crawls.loc["killed"]
    assert (quiet["killed_a_worker"], killed["killed_a_worker"]) == (0, 1)
    assert quiet["good"] == killed["good"] == WHOLE["pages"]
    assert quiet["content"] == killed["content"] and not killed["twice"]


def test_what_was_fetched_twice_is_counted_at_the_server(crawls):
    quiet, killed = crawls.loc["quiet"], crawls.loc["killed"]
    assert quiet["again"] == 0 and quiet["requests"] == WHOLE["pages"]
    assert killed["requests"] == WHOLE["pages"] + killed["again"]
    # At most the batches that the dead worker had under way: one for each of its threads.
    assert killed["again"] <= 2 * WHOLE["size"]


def test_a_batch_is_a_connection_and_a_process_loads_once(crawls):
    assert crawls.loc["quiet", "connections"] == crawls.loc["quiet", "batches"]
    assert crawls.loc["quiet", "loads"] == 2


FAULTS = {"1": "endless", "2": "wrong", "3": "once", "4": "never", "5": "cut", "6": "nobody",
          "14": "nobody", "7": "kills"}  # fmt: skip


@pytest.fixture(scope="module")
def attacked():
    environment(jobs.STACK)
    job = {"pages": 160, "size": 10, "faults": FAULTS}
    return jobs.measure({"attacked": job}, failures=1)


def test_each_attacker_ends_in_its_name_and_the_rest_in_place(attacked):
    names = jobs.named(attacked).set_index("page")["name"].to_dict()
    assert names == {
        "1?fault=endless": "EndlessBody",
        "2?fault=wrong": "WrongPage",
        "4?fault=never": "BadStatus",
        "5?fault=cut": "CutShort",
        "6": "Unreachable",
        "14": "Unreachable",
    }
    row = attacked.iloc[0]
    assert row["killed"] == 10  # the batch of the page that kills who looks at it, and no other
    assert row["good"] == 160 - row["failed"] - row["killed"] and not row["stopped"]


def test_connections_and_requests_of_a_host_stay_within_bounds():
    environment(jobs.STACK)
    job = {"pages": 120, "hosts": 2, "size": 10, "connections": 2, "requests_per_s": 40}
    row = jobs.measure({"polite": job}, threads=8).iloc[0]
    assert row["peak_connections"] <= 2
    assert row["peak_per_s"] <= 40 + 2  # each connection may begin its second with a request


@needs("unshare")
def test_a_full_disk_has_its_name_and_what_is_written_is_whole(tmp_path):
    python = environment(jobs.STACK).python
    job = {"pages": 400, "size": 20, "folder": str(tmp_path)}
    spec = json.dumps({"workers": 2, "threads": 1, "jobs": [job]})
    mounted = f"mount -t tmpfs -o size=64k none {tmp_path}"
    if run("unshare", "-Urm", "sh", "-c", mounted).returncode:
        pytest.skip("this system lets nobody mount a small file system")
    command = f"{mounted} && exec {python} {PROBES / 'crawling.py'}"
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", command], input=spec, capture_output=True, text=True,
        timeout=120, env=environments.clean_environ(environment(jobs.STACK)),
    )  # fmt: skip
    its = json.loads(done.stdout)["jobs"][0]
    assert "No space left on device. Make room" in its["done"]["stopped"]
    assert its["rows"] == its["right"] == its["done"]["good"] < 400 and its["rows"]


def test_a_crawl_that_is_run_again_fetches_only_what_is_missing(tmp_path):
    environment(jobs.STACK)
    job = {"pages": 200, "size": 25, "folder": str(tmp_path), "hosts": 1}
    twice = jobs.measure({"first": job, "again": job}, workers=1)
    assert list(twice["requests"]) == [200, 0] and list(twice["good"]) == [200, 200]
    (tmp_path / "batch-000003.parquet").write_bytes(b"half a file")
    # Another server has another port, so all is fetched anew: the files say for which URLs.
    assert jobs.measure({"mended": job}, workers=1).iloc[0]["requests"] == 200


@pytest.fixture(scope="module")
def pages():
    environment(jobs.STACK)
    return costs.measure(n=10).set_index("case")


def test_stock_loads_for_each_connection_and_cured_not_at_all(pages):
    loads, connections = pages["loads"], pages["connections"]
    assert loads["requests-stock, new"] == connections["requests-stock, new"] == 10
    assert loads["requests-cured, new"] == 0 and connections["requests-cured, new"] == 10
    assert list(pages[pages["kept"]]["connections"]) == [1, 1, 1]


def test_the_parts_of_a_page_are_parts(pages):
    parts = pages[["load_ms", "handshake_ms", "rest_ms"]]
    assert (parts >= 0).all(axis=None)
    assert parts.sum(axis=1).to_numpy() == pytest.approx(pages["cpu_ms"].to_numpy())


def test_wrong_questions_are_refused_before_anything_runs():
    for wrong in ({"pages": 0}, {"pages": 10, "colour": "red"}):
        with pytest.raises(UsageError):
            jobs.measure({"wrong": wrong})
    with pytest.raises(UsageError):
        costs.measure("wget")


def test_a_doubled_or_a_wrong_page_is_no_measurement():
    its = {"done": {"good": 5, "pages": 5, "killed": [], "failed": [], "stopped": ""},
           "server": {}, "rows": 5, "twice": 0, "right": 5}  # fmt: skip
    for damage in ({"twice": 1}, {"right": 4}, {"rows": 6}):
        with pytest.raises(RunFailed, match="Nothing was recorded"):
            jobs._of_job({"pages": 5}, its | damage)


COSTS = capacity.Costs(
    page_ms=1, task_ms=8, engine_task_ms=4, connection_ms=2, handshake_ms=1, load_ms=20,
    worker_second_ms=30, thread_second_ms=5, engine_second_ms=30,
    server_page_ms=0.5, server_batch_ms=2, memory_mib=100,
)  # fmt: skip


def time_of(**job):
    """How long a job takes by the model, in seconds."""
    return capacity.seconds(COSTS, capacity.Job(**job))


def test_the_model_is_the_longest_of_four_times():
    assert COSTS.cpu_ms(10) == 2 and COSTS.cpu_ms(10, cured=False) == 4
    assert COSTS.cpu_ms(100, pages_per_connection=1) == pytest.approx(3.08)
    by_cores = time_of(pages=1000, size=10, workers=4, threads=8)
    assert by_cores == pytest.approx(1000 * (2 + 0.7) / 1000 / 2)
    by_waiting = time_of(pages=1000, size=10, workers=2, threads=5, delay_s=0.1)
    assert by_waiting == pytest.approx(100 * (0.1 + 0.0027))
    assert time_of(pages=1000, size=10, workers=1, cores=8) == pytest.approx(2.7)
    # A task for each page, and many workers: then the one scheduler is busiest.
    by_scheduler = time_of(pages=1000, size=1, workers=64, cores=64)
    assert by_scheduler == pytest.approx(4.0)
    # The eleventh batch of ten threads is alone, and takes as long as the ten before it.
    alone = time_of(pages=110, size=10, workers=2, threads=5, delay_s=0.1)
    assert alone == pytest.approx(2 * 10 * (0.1 + 0.0027))


#: A job that the costs were not found from.
STOCK = {
    "pages": 1600, "batches": 64, "size": 25, "cured": False, "delay_s": 0, "workers": 2,
    "threads": 1, "cores": 2.0, "wall_s": 4.0,
}  # fmt: skip


@pytest.fixture
def made_of_costs():
    """Runs as COSTS would have them: crawls, pages, and waiting."""
    sizes, batch = pd.Series([1, 10, 100]), COSTS.task_ms + COSTS.connection_ms
    loads = pd.Series([2, 2, 0])  # two processes, which load in their first cured job
    wall_s = pd.Series([5, 3, 1])
    curve = pd.DataFrame({
        "size": sizes, "pages": 800, "batches": 800 // sizes, "repeat": 1, "peak_rss_mib": 100,
        "loads": loads, "wall_s": wall_s, "workers": 2, "threads": 1,
        "all_ms": COSTS.page_ms + batch / sizes + (loads * COSTS.load_ms + wall_s * 100) / 800,
        "engine_cpu_ms": 0.2 + COSTS.engine_task_ms / sizes + wall_s * 30 / 800,
        "server_cpu_ms": COSTS.server_page_ms + COSTS.server_batch_ms / sizes,
    })  # fmt: skip
    cases = {"requests-stock, new": (25, 2), "requests-cured, new": (5, 1)}
    cases |= {"requests-cured, kept": (3, 0)}
    pages = pd.DataFrame(
        [{"case": case, "cpu_ms": ms, "handshake_ms": h} for case, (ms, h) in cases.items()]
    )
    # A page took 50 ms of the workers and 10 of the engine, at once; a second 60 ms, 5 for each
    # page that is waited for, and 30 of the engine. The two workers load in the first job.
    waiting = pd.Series([0, 2, 32])
    waits = pd.DataFrame({
        "job": list(capacity.WAITS), "repeat": 1, "workers": 2, "pages": [32, 2, 32],
        "wall_s": [0.32, 2.02, 2.32], "loads": [2, 0, 0],
    })  # fmt: skip
    longer_s = pd.Series([0, 2, 2])
    waits["cpu_ms"] = (
        50 + ((60 + 5 * waiting) * longer_s + waits["loads"] * COSTS.load_ms) / waits["pages"]
    )
    waits["engine_cpu_ms"] = 10 + 30 * longer_s / waits["pages"]
    return curve, pages, waits


def test_the_costs_are_those_that_the_runs_were_made_of(made_of_costs):
    curve, pages, waits = made_of_costs
    found = capacity.fit_costs(curve, pages, waits)
    assert asdict(found) == pytest.approx(asdict(COSTS))
    model = jobs.follows_the_model(above=0)
    without = curve.assign(all_ms=COSTS.page_ms + 10 / curve["size"])
    assert model.values(without).loc[1] == pytest.approx(1)
    with pytest.raises(UsageError, match="two sizes"):
        capacity.fit_costs(curve[:1], pages, waits)


def test_a_billion_pages_and_a_million_in_functions():
    found = capacity.at_scale(
        COSTS, [1e9], size=10, pages_per_connection=10, hours=10, cores=10, dollars_per_core_hour=1
    )
    assert list(found["machines"]) == [12, 6]  # 1,111 and 556 core hours
    assert list(found["dollars"]) == pytest.approx([1e9 * ms / 3.6e6 for ms in (4, 2)])
    # A hundred million tasks of 4 ms are 111 hours of a scheduler, however few machines it takes.
    assert list(found["schedulers"]) == [12, 12]
    assert list(capacity.at_scale(COSTS, [1e9], size=100, hours=24)["schedulers"]) == [1, 1]
    two = capacity.functions(COSTS, 1e6, size=10, pages_per_connection=10)
    assert list(two["pages_each"]) == [225_000, 450_000] and list(two["functions"]) == [5, 3]


def test_the_published_figures_say_what_they_say():
    chan = capacity.PUBLISHED[0]
    assert round(chan.per_s) == 912 and round(capacity.core_ms(chan), 1) == 17.5


@needs("go")
def test_go_fetches_the_same_pages_and_its_own_time_is_counted():
    kept, new = (costs.measure("go", kept=each, n=20).iloc[0] for each in (True, False))
    assert (kept["connections"], kept["handshakes"], kept["loads"]) == (1, 1, 1)
    assert (new["connections"], new["handshakes"], new["loads"]) == (20, 20, 1)
    assert kept["openssl"] is None and 0 < kept["cpu_ms"] < new["cpu_ms"]
    with pytest.raises(UsageError, match="ask Go alone"):
        costs.measure(["go", "aiohttp"], n=1)


def test_the_error_of_the_model_is_one_of_rounds(made_of_costs):
    curve, pages, waits = made_of_costs
    said_ms = capacity.predicted_cpu_ms(COSTS, STOCK, took_s=4)
    assert said_ms == pytest.approx(COSTS.cpu_ms(25, cured=False) + 0.25)  # 100 ms a second
    rounds = []
    for number in range(1, 9):
        # What else the machine does makes all of a round dearer, and is no error of the model.
        dearer = 1 + number / 10
        own = curve.assign(job=curve["size"].astype(str), repeat=number)
        loads_and_seconds = own["all_ms"] - COSTS.page_ms - 10 / own["size"]
        own["all_ms"] = dearer * (own["all_ms"] - loads_and_seconds) + loads_and_seconds
        stock = STOCK | {"job": "stock", "repeat": number, "loads": 16}
        work_ms = COSTS.cpu_ms(25) * dearer + COSTS.load_ms / 25 + 0.25
        rounds += [own, pd.DataFrame([stock | {"all_ms": 1.2 * work_ms}])]
    runs = pd.concat(rounds, ignore_index=True).assign(source="live")
    for high, outcome in ((1.3, "holds"), (1.1, "otherwise")):
        asked = capacity.prediction_ratio("stock", ["1", "100"], pages, waits, between=(0.5, high))
        found = asked.decide(runs)
        assert (round(found.value, 3), found.outcome) == (1.2, outcome)


def test_a_run_stands_beside_what_the_model_says_of_it():
    how = {"pages": 1000, "size": 25, "workers": 2, "threads": 16, "cores": 2.0, "delay_s": 0.1}
    # 1 + (8 + 2) / 25, and two loads among a thousand pages; stock: a load for 25 pages.
    work_ms = {True: 1.4 + 0.04, False: 2.2}
    ways = dict(size=25, workers=2, threads=16, cores=2, delay_s=0.1)
    said_s = {each: time_of(pages=1000, cured=each, **ways) for each in work_ms}
    # Two workers of sixteen threads and the engine take 2 * (30 + 80) + 30 ms a second.
    said_ms = {each: work_ms[each] + 0.25 * said_s[each] for each in work_ms}
    runs = pd.DataFrame([
        how | {"cured": True, "loads": 2, "all_ms": 2 * said_ms[True]},
        how | {"cured": False, "loads": 40, "all_ms": said_ms[False]},
    ])  # fmt: skip
    found = capacity.with_predictions(COSTS, runs)
    assert list(found["said_ms"]) == pytest.approx([said_ms[True], said_ms[False]])
    assert list(found["said_s"]) == pytest.approx([said_s[True], said_s[False]])
    assert list(found["off"]) == pytest.approx([2, 1])


@pytest.fixture
def nowhere_a_go(monkeypatch, tmp_path):
    """No Go on the PATH, nobody who asks for one, and no machine file that was asked."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    monkeypatch.setattr(machine_files, "all_recorded", list)
    environment(jobs.STACK)


def test_without_go_a_cell_says_so_in_one_line(nowhere_a_go):
    notebook = nbformat.read(places.NOTEBOOKS / "17_more_than_one_machine.ipynb", as_version=4)
    [cell] = [each for each in notebook.cells if each.id == "mo-go-table"]
    names = {"costs": costs, "tables": tables, "parts": {"load_ms": "loads"}}
    *before, last = ast.parse(cell.source).body
    exec(compile(ast.Module(before, []), "mo-go-table", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "mo-go-table", "eval"), names)
    assert shown.text.startswith("Not here: there is no Go on the PATH")
    assert "\n" not in shown.text and "<table" not in shown.html


def test_without_go_whoever_requires_it_is_told(nowhere_a_go, monkeypatch):
    monkeypatch.setenv("CASEBOOK_REQUIRE", "go")
    with pytest.raises(MissingInterpreter, match="needs Go"):
        costs.measure("go", n=7)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_pages_near_and_far_stock_and_cured(monkeypatch):
    environment(jobs.STACK)
    monkeypatch.setenv("CASEBOOK_MODE", "full")
    runs = large.measure().set_index("job")
    assert list(runs.index) == list(large.CRAWLED) and set(runs["source"]) == {"live"}
    assert set(runs["good"]) == set(runs["requests"]) == {large.PAGES}
    # Cured, a load for each process; stock, for each connection: a batch.
    assert list(runs["loads"]) == [400, 400, 2, 2]
    assert runs["off"].between(1 / 1.5, 1.5).all(), runs["off"]


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_pages_in_bounded_memory():
    # What it will cost is said first, from batches of other sizes and pages without a cluster.
    curve = jobs.measure(large.ENDS, repeats=large.ROUNDS)
    threads = capacity.WAITING_THREADS
    waits = jobs.measure(capacity.WAITS, threads=threads, repeats=large.ROUNDS)
    pages = costs.measure(large.CLIENTS, repeats=large.ROUNDS)
    found = capacity.fit_costs(curve, pages, waits)
    few = jobs.measure({"few": {"pages": 2_000}}).iloc[0]
    many = jobs.measure({"many": {"pages": 100_000, "size": 50}}).iloc[0]
    assert many["good"] == 100_000 and not many["twice"]
    assert many["peak_rss_mib"] < few["peak_rss_mib"] + 100
    assert 1 / 1.3 < many["all_ms"] / capacity.predicted_cpu_ms(found, many, many["wall_s"]) < 1.3


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_twenty_thousand_pages_and_a_worker_killed_in_their_middle():
    job = {"pages": 20_000}
    both = jobs.measure({"quiet": job, "killed": job | {"kill_after": 0.5}}, workers=3)
    assert both["content"].nunique() == 1 and not both["twice"].any()


def test_a_chain_of_rsa_certificates_is_shown_and_its_handshakes_are_counted():
    environment(jobs.STACK)
    found = costs.measure("requests-cured", kept=False, n=10, chain="rsa").iloc[0]
    assert (found["chain"], found["handshakes"], found["loads"]) == ("rsa", 10, 0)
    with pytest.raises(UsageError, match="a chain of ecdsa, rsa"):
        costs.measure("requests-cured", chain="dsa")
