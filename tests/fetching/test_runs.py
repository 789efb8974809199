import gc
import pstats
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from casebook import places, stacks, words
from casebook.cases.fetching import analysis, near_limit, observations, run_record, trust
from casebook.errors import RunFailed
from casebook.laboratory import (
    conditions,
    experiment,
    machine_files,
    measurements,
    progress,
    reference,
)
from casebook.stacks import digests, environments

ASKED = dict(client="grequests", n=2, delay_s=0.1, scheme="https", trust="authority")


def run_of(stored: dict) -> run_record.Run:
    """The run of a stored answer, in the first round of the stack of this Python."""
    made = dict.fromkeys(experiment.PROVENANCE, "")
    asked = [stacks.get("stage-0")]
    return run_record.from_measurement(experiment.Measurement(asked, ASKED, 1, stored, made))


def response(page, status=200, got_page=None):
    return {"page": page, "status": status, "got_page": page if got_page is None else got_page}


def answer(**changed):
    counters = {"contexts": 2, "load_verify_locations": 2, "default_loads": 0}
    return {
        "python": "3.7.16", "openssl": "OpenSSL 1", "versions": {"requests": "2.21.0"},
        "wall_s": 0.1, "user_s": 0.01, "sys_s": 0.02, "process_cpu_s": 0.2, "peak_rss_kib": 30000,
        "responses": [response(0), response(1)], "failure": None,
        "counters": counters | {"longest_stall_s": 0.02},
    } | changed  # fmt: skip


def failed(page, kind, message):
    return {"failure": {"page": page, "type": kind, "message": message}}


def test_a_run_carries_the_servers_counters_and_its_verdict():
    counted = {"connections": 2, "handshakes": 2, "requests": 2, "peak_in_flight": 2}
    run = run_of(run_record.to_store("s", 2, answer(), counted | {"protocols": {}}))
    assert run.verdict == "concurrent"
    assert run.effective_concurrency == pytest.approx(2.0)
    assert set(run.counters) == set(run_record.COUNTERS)
    assert run.cpu_s == pytest.approx(0.03)
    assert run_record.frame([run]).loc[0, "counters_peak_in_flight"] == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"responses": [response(0)]}, "page 1 is missing"),
        ({"responses": [response(0), response(1, 503)]}, "page 1 came back as status 503"),
        ({"responses": [response(0), response(1, 200, 0)]}, "page 1 .* as status 200, page 0"),
        (failed(1, "SSLError", "bad certificate"), "SSLError at page 1: bad certificate"),
        (failed(None, "ImportError", "no gevent"), "s: ImportError: no gevent"),
    ],
)
def test_a_run_with_a_wrong_response_is_an_error_that_names_it(changed, said):
    with pytest.raises(RunFailed, match=said):
        run_record.to_store("s", 2, answer(**changed), None)


@pytest.mark.parametrize("value", [None, "0.2", float("nan")])
def test_a_figure_that_is_no_number_is_named(value):
    stored = run_record.to_store("s", 2, answer(process_cpu_s=value), None)
    with pytest.raises(RunFailed, match=f"^process_cpu_s is {value!r}; a run needs a finite "):
        run_record.figures(ASKED, stored)


def test_each_counter_has_a_heading_and_a_meaning():
    method = (places.ROOT / "book" / "method.md").read_text()
    for name in run_record.COUNTERS:
        assert f"counters_{name}" in words.HEADINGS and f"`{name}`" in method


def test_the_client_in_go_sends_each_figure_that_must_be_a_number():
    """Its answer goes the way of the probe's (near_limit.py), and no compiler sees that."""
    source = near_limit.SOURCE.read_text()
    sent = {*run_record.NUMBERS} & {*run_record.STORED}
    assert {"wall_s", "process_cpu_s"} <= sent
    assert {name for name in sent if f'`json:"{name}"`' not in source} == set()


def test_a_digest_sees_what_code_does_and_not_where_it_lies(tmp_path):
    def digest(source, name="code", n=3):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{name}.py").write_text(source)
        return digests.digest(tmp_path / name, {"n": n})

    code = '"""Says."""\nfrom casebook import runs\nimport json\nx = runs.one(1)  # why\n'
    moved = '"""Better."""\nfrom casebook.laboratory import runs\n\nimport json\nx = runs.one(1)\n'
    assert digest(code) == digest(moved, "elsewhere")
    assert digest(code) != digest(code, n=4)
    assert digest(code) != digest(moved.replace("import json\n", ""))  # their order can matter
    assert digest(code) != digest(moved.replace("one(1)", "one(2)"))


def test_a_digest_survives_a_move_and_sees_only_what_is_executed(tmp_path):
    probe = tmp_path / "here" / "probe.py"
    probe.parent.mkdir()
    probe.write_text("import steps\n")
    probe.with_name("steps.py").write_text("def take():\n    import late\n")
    probe.with_name("late.py").write_text("x = 1\n")

    def digest(without=()):
        return digests.digest(digests.executed(probe, without))

    first, shorter = digest(), digest({"late"})
    probe.with_name("new_probe.py").write_text("import probe\n")
    assert digest() == first  # a new one voids nothing
    probe = probe.parent.rename(tmp_path / "elsewhere") / "probe.py"
    assert digest() == first
    probe.with_name("late.py").write_text("x = 2\n")
    assert digest() != first
    assert digest({"late"}) == shorter


def test_digests_can_be_made_in_several_threads(tmp_path):
    """Python 3.11 raises SystemError where a thread begins to parse while another one does."""
    files = [tmp_path / f"{i}.py" for i in range(40)]
    for i, file in enumerate(files):
        file.write_text(f"x{i} = [" + "f(1), " * 400 + "]\n")

    def let_others_run(phase, _):
        time.sleep(0.001)

    def digest(file, depth):
        return digest(file, depth - 1) if depth else digests.digest(file)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(2) as pool:
            made = set(pool.map(digest, files, [0, 3, 6, 9] * 10))
    finally:
        gc.callbacks.remove(let_others_run)
        gc.set_threshold(*before)
    assert len(made) == len(files)


def test_a_measurement_says_how_it_was_made(tmp_path, monkeypatch, locks_of_our_own):
    monkeypatch.setattr(places, "RUNS", tmp_path / "runs")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    values = iter(range(9))

    def taken():
        key = measurements.Key("key", ["x"], {})
        return measurements.stored_or_new(key, lambda: {"value": next(values)})

    first = taken()
    assert set(measurements.COLUMNS) <= set(first) and first["schema"] == measurements.SCHEMA
    assert first["unit_ms"] > 0 and first["cores"] > 0 and first["key"] == "key"
    assert taken() == first
    monkeypatch.delenv("CASEBOOK_BUILD")
    assert taken()["value"] == 1  # a reader measures anew


def test_what_the_machine_did_meanwhile_is_what_came_since_before(monkeypatch):
    """Not what it has done since it began."""
    units, stolen, loads = iter([2.0, 3.0] * 2), iter([100.0, 100.75]), iter([(0.5,), (1.5,)])
    monkeypatch.setattr(conditions, "unit_ms", lambda: next(units))
    monkeypatch.setattr(conditions.psutil, "cpu_times", lambda: SimpleNamespace(steal=next(stolen)))
    monkeypatch.setattr(conditions.psutil, "cpu_freq", lambda: SimpleNamespace(current=2499.96))
    monkeypatch.setattr(conditions.os, "getloadavg", lambda: next(loads))
    monkeypatch.setattr(conditions, "_cores", lambda: 2)
    assert conditions.watched(lambda: {"value": 1}) == {
        "value": 1, "unit_ms": 2.5, "unit_change": 1.5, "load_1min": 0.5, "steal_s": 0.75,
        "cores": 2, "mhz": 2500.0,
    }  # fmt: skip
    # A system that says neither.
    monkeypatch.setattr(conditions.psutil, "cpu_times", SimpleNamespace)
    monkeypatch.setattr(conditions.psutil, "cpu_freq", lambda: None)
    silent = conditions.watched(dict)
    assert silent["steal_s"] is silent["mhz"] is None


def test_a_profile_survives_the_way_into_a_dump_and_back(tmp_path, monkeypatch):
    rows = [
        {"file": "a.py", "line": 1, "function": "f", "nc": 20, "cc": 10, "tt": 0.5, "ct": 1.5}
        | {"callers": [["b.py", 2, "g", 10, 20, 0.5, 1.5]]},
        {"file": "b.py", "line": 2, "function": "g", "nc": 1, "cc": 1, "tt": 0.1, "ct": 2.0}
        | {"callers": []},
    ]
    seen = observations.Observation(
        stack="s", kind="profile", n=10, delay_s=1.0, python="2.7.18", steps="grequests",
        measured_at="2026-01-01T00:00:00Z", source="live", answer={"profile": rows},
    )  # fmt: skip
    how = {"client": "grequests", "trust": "authority", "gather": "profile"}
    asked = ["fetch", ["stage-0", "grequests"], {"n": 10, "delay_s": 1.0} | how, "https"]
    monkeypatch.setattr(machine_files, "folder", lambda: tmp_path)
    answer = vars(seen) | {"asked": asked, "stack": "stage-0"}
    machine_files.save(
        machine_files.Machine(reference.NAME, {"cores": 2}, [answer]), reference.file()
    )
    back = observations.recorded("stage-0", "profile", ["grequests"], n=10, delay_s=1.0)
    assert back.source == "reference" and back.instead == ""
    other = observations.recorded("stage-0", "profile", ["grequests"], n=10, delay_s=0.1)
    assert other.instead == "a delay in seconds of 1 instead of 0.1"
    assert (
        observations.recorded("stage-0", "profile", ["grequests"], 10, 1.0, client="loop") is None
    )
    assert back.answer["profile"] == rows
    assert back.frame["function"].tolist() == ["g", "f"]
    broken = [{"function": "f"}, rows[0] | {"callers": [["b.py"]]}, rows[0] | {"tt": "long"}]
    for row in broken:
        lie = answer | {"answer": {"profile": [row]}}
        assert observations.OBSERVATIONS.of_answer(lie) == []

    observations.dump_profile(back, tmp_path / "s.prof")
    stats = pstats.Stats(str(tmp_path / "s.prof"))
    assert stats.stats["a.py", 1, "f"][:2] == (10, 20)  # primitive calls, then all calls
    assert stats.stats["a.py", 1, "f"][4] == {("b.py", 2, "g"): (20, 10, 0.5, 1.5)}


@pytest.fixture
def keyed(monkeypatch, tmp_path):
    """keyed(tool=..., n=...) -> the key of a measurement in a store and with code of our own."""
    monkeypatch.setattr(places, "RUNS", tmp_path / "runs")
    monkeypatch.setenv("CASEBOOK_BUILD", "1")
    code = tmp_path / "asking.py"
    code.write_text("x = 1\n")

    def key(tool="1.0", n=3, stack="stage-0"):
        using = measurements.Using("a tool", tool)
        return measurements.key_of([code], using, trust.dependency(), stacks.get(stack), {"n": n})

    return key, code


def test_a_key_says_what_was_asked_and_what_made_it(keyed):
    key, _ = keyed
    made = key()
    assert made.question == ["asking", ["stage-0", *stacks.get("stage-0").steps], {"n": 3}]
    of = {"certifi's certificates", "a tool", "asking.py", "laboratory/scripts.py"}
    assert of | {"the environment of stage-0", "the variables of stage-0"} <= set(made.depends_on)
    assert key(tool="2.0") != made and key(tool="2.0").question_digest == made.question_digest
    assert key(n=4).question_digest != made.question_digest


def test_a_miss_names_what_changed(keyed, monkeypatch, tmp_path, locks_of_our_own):
    key, code = keyed

    def taken(**how):
        said = tmp_path / "progress"
        progress.changes_file(said).unlink(missing_ok=True)
        monkeypatch.setenv(progress.VARIABLE, str(said))
        measurements.stored_or_new(key(**how), lambda: {"value": 1})
        file = progress.changes_file(said)
        return file.read_text().splitlines() if file.exists() else []

    assert taken() == []  # the first time nothing has changed
    assert taken() == []
    assert taken(tool="2.0") == ["a tool"]
    code.write_text("x = 2\n")
    assert taken(tool="2.0") == ["asking.py"]
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n")
    monkeypatch.setattr(trust.certifi, "where", lambda: str(bundle))
    assert taken(tool="2.0") == ["certifi's certificates"]


def test_variables_that_a_stack_is_run_with_are_in_its_key(keyed, monkeypatch):
    key, _ = keyed
    before, declared = key(), environments.declared
    monkeypatch.setattr(environments, "declared", lambda stack: declared(stack) | {"TZ": "CET"})
    after = key()
    changed = {
        name for name in before.depends_on if before.depends_on[name] != after.depends_on[name]
    }
    assert after != before and changed == {"the variables of stage-0"}


def test_what_follows_from_a_run_is_said_by_the_code_of_today(monkeypatch):
    stored = run_record.to_store("s", 2, answer(), {"peak_in_flight": 2})
    assert not {"verdict", "effective_concurrency", "cpu_s", "responses"} & set(stored)
    run = run_of(stored)
    assert run.verdict == analysis.CONCURRENT and run_of(stored | {"verdict": "serial"}) == run
    monkeypatch.setattr(analysis, "CONCURRENT_FROM", 2.5)
    assert run_of(stored).verdict == analysis.BETWEEN


def test_what_a_script_imports_is_looked_up_once_until_a_file_changes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import json\n")
    (tmp_path / "beside.py").write_text("")
    first, misses = digests.executed(script), digests._executed.cache_info().misses
    assert digests.executed(script) == first
    assert digests._executed.cache_info().misses == misses
    script.write_text("import json, beside\n")
    assert tmp_path / "beside.py" in digests.executed(script)
