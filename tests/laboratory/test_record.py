"""The reference run as it is committed: whole, anonymous, and what the README shows."""

import re
from itertools import product

import pytest
from here import environment

from casebook import places, stacks
from casebook.cases import reference_run
from casebook.cases.bookstore.timed_visits import VISITS
from casebook.cases.fetching import (
    analysis,
    modes,
    observations,
    run_record,
    verdicts_under_load,
)
from casebook.charts import picture
from casebook.errors import UsageError
from casebook.laboratory import machine_files, measurements, recorded_rows, reference, rounds
from casebook.laboratory.rounds import as_list


def rows(**wanted):
    """The reference runs with these values in these columns."""
    frame = recorded_rows.of_reference(run_record.RUNS)
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def needed(names) -> set[str]:
    """Those of some stacks that a reader cannot run: a new one of today waits for `make record`."""
    return {name for name in names if stacks.get(name).python != "today"}


def test_every_run_that_is_planned_is_recorded():
    for names, asked in reference_run.plan():
        schemes = as_list(asked.get("scheme", "https"))
        for name, scheme, client in product(names, schemes, as_list(asked.get("client"))):
            wanted = {"stack": name, "client": client or stacks.get(name).client, "scheme": scheme}
            wanted |= {"trust": asked.get("trust", "authority")}
            wanted |= {"delay_s": asked.get("delay_s", modes.FULL.delay_s)}
            found = rows(**wanted)
            if found.empty and not needed([name]):
                continue
            sizes = set(asked.get("n", modes.FULL.ns))
            if "n" not in asked and analysis.verdict_of(found) == analysis.CONCURRENT:
                sizes |= set(modes.FULL.ns_if_concurrent)
            taken = found.groupby("n")["repeat"].agg(set)
            for size in sizes:
                repeats = rounds.numbers(asked.get("repeats", modes.FULL.repeats))
                assert set(repeats) <= taken.get(size, set()), (name, asked, size)
    assert set(rows()["source"]) == {"reference"}


def test_each_client_of_the_lab_server_is_planned_somewhere():
    planned = {name for names, _ in reference_run.plan() for name in names}
    fetching = {stack.name for stack in stacks.load().values() if stack.client}
    assert needed(fetching - planned) == needed(reference_run.NOT_RECORDED)
    assert not planned & set(reference_run.NOT_RECORDED)


def test_the_reference_run_agrees_with_the_published_verdicts_and_its_control_shows_nothing():
    https = rows(client="grequests", scheme="https", trust="authority")
    words = {"serial": "slow", "concurrent": "fast"}
    verdicts = analysis.verdicts(https)
    for stack in stacks.load().values():
        if stack.says:
            assert words[verdicts[stack.name]] == stack.says["verdict"], stack.name
    control = rows(scheme="http", client="grequests")
    assert set(verdicts.index) <= set(control["stack"])
    assert set(control["verdict"]) == {"concurrent"}


def test_everything_that_chapters_look_at_in_old_stacks_is_recorded():
    for what in reference_run.OBSERVED:
        steps = what.get("steps", stacks.get(what["name"]).steps)
        n, delay_s = what.get("n", 10), what.get("delay_s", 0.1)
        seen = observations.recorded(what["name"], what["kind"], steps, n, delay_s)
        assert seen is not None and seen.source == "reference", what
        assert len(seen.frame), what


def test_the_machine_is_described():
    machine = reference.machine()
    assert {"measured_to", "processor", "cores", "kernel", "python", "openssl"} <= set(machine)


def test_the_reference_run_had_the_packages_of_the_locks():
    [machine] = [each for each in machine_files.all_recorded() if each.name == reference.NAME]
    recorded = {each["stack"]: each["versions"] for each in machine.answers if "versions" in each}
    for name in ("stage-2-py27", "stage-3-py37"):
        assert recorded[name].items() >= environment(name).versions.items()
    hyper = recorded_rows.of_reference(VISITS).query("stack == 'hyper-py37'")
    assert set(hyper["version"]) == {environment("hyper-py37").versions["hyper"]}


def test_nothing_that_is_read_from_data_can_be_a_program():
    """Machine files, and text: no marshal, no pickle, no archive."""
    found = {"".join(path.suffixes) for path in places.DATA.rglob("*") if path.is_file()}
    assert found == {machine_files.SUFFIX, ".csv", ".json", ".md"}
    loading = re.compile(r"(marshal|pickle|dill|joblib|shelve)\.(load|loads|open)\b|read_pickle")
    for path in places.PACKAGE.rglob("*.py"):
        assert not loading.search(path.read_text()), path


def test_the_readme_shows_the_reference_run():
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.draw()
    assert "book/_static/stages.svg" in (places.ROOT / "README.md").read_text()


def test_each_row_names_the_clean_commit_and_the_day_that_made_it():
    frame = rows()
    assert set(frame["schema"]) == {measurements.SCHEMA}
    for column in ("commit", "measured_at", "process_cpu_s", "unit_ms", "cores"):
        assert frame[column].notna().all(), column
    assert not frame["commit"].str.contains("dirty|unknown").any()


@pytest.mark.slow
def test_runs_with_a_known_answer_come_out_so_in_their_smallest_size():
    frame = verdicts_under_load.measure(1, 2)
    cells = frame.groupby(["busy", "delay_s", "known"]).size().to_dict()
    assert cells == {
        (busy, delay_s, known): 2 if busy and delay_s == modes.QUICK.delay_s else 1
        for busy in (False, True)
        for delay_s in verdicts_under_load.DELAYS_S
        for known in ("serial", "concurrent")
    }
    assert ((frame["counters_peak_in_flight"] == 1) == (frame["known"] == "serial")).all()
    recorded = verdicts_under_load.recorded()
    assert list(recorded) == [*verdicts_under_load.COLUMNS, "source"]
    assert len(recorded) == 400 and recorded.notna().all(axis=None)


def test_a_tree_that_differs_from_its_commit_is_not_recorded(monkeypatch):
    monkeypatch.setattr(measurements, "commit", lambda: "0123456789ab-dirty")
    with pytest.raises(UsageError, match="commit first"):
        reference_run.record()
