"""How long chapters take, and how much time is left: on numbers that are worked out by hand."""

import json
from dataclasses import asdict

import pytest

from casebook import places, spans
from casebook.laboratory import machine_files
from casebook.pages import timing
from casebook.pages.contents import Book
from casebook.pages.timing import USUAL, ChapterTime, Timing

ALONE = ["cell", "clock"]
NOTES = [
    {"kind": "environment", "within": ["cell"], "wall_s": 6.0, "cpu_s": 4.0},
    {"kind": "wait", "within": ["cell"], "wall_s": 3.0, "cpu_s": 0.0},
    {"kind": "measurement", "label": "fetch", "within": ["cell"], "wall_s": 2.0, "cpu_s": 1.0},
    {"kind": "measurement", "label": "visit", "within": ALONE, "wall_s": 5.0, "cpu_s": 2.0},
    {"kind": "measurement", "label": "visit", "within": ALONE, "wall_s": 4.0, "cpu_s": 1.0},
    {"kind": "clock", "within": ["cell"], "wall_s": 10.0, "cpu_s": 3.5},
    {"kind": "cell", "within": [], "wall_s": 20.0, "cpu_s": 9.0},
    {"kind": "cell", "within": [], "wall_s": 5.0, "cpu_s": 4.0},
]  # fmt: skip


def noted(folder, rows):
    file = folder / "spans"
    file.write_text("".join(json.dumps({"label": "", **row}) + "\n" for row in rows))
    return file


def test_the_time_of_a_chapter_is_split_once(tmp_path):
    took = timing.chapter_time(noted(tmp_path, NOTES), wall_s=29.0)
    # 29 s in all, 25 of them in cells; 25 - 6 - 3 - 2 - 10 = 4 are left for drawing.
    assert took == ChapterTime(
        kernel_s=4, environment_s=6, wait_s=3, clock_s=10, counting_s=2, drawing_s=4, cpu_s=13
    )
    assert took.wall_s == 29 and took.other_s == 16


def test_measurements_are_added_up_by_what_was_measured(tmp_path):
    file = noted(tmp_path, NOTES)
    assert timing.measurement_times(file) == {"fetch": (1, 2.0, 1.0), "visit": (2, 9.0, 3.0)}


def test_a_chapter_that_noted_nothing_took_its_time_all_the_same(tmp_path):
    assert timing.chapter_time(tmp_path / "none", 7.0) == ChapterTime(kernel_s=7.0)


def test_spans_say_what_they_lie_in_and_nothing_outside_a_build(tmp_path, monkeypatch):
    monkeypatch.delenv(spans.VARIABLE, raising=False)
    with spans.span(spans.CELL):
        pass
    file = tmp_path / "spans"
    monkeypatch.setenv(spans.VARIABLE, str(file))
    with spans.span(spans.CLOCK), spans.span(spans.MEASUREMENT, "fetch"):
        sum(range(1_000_000))
    with pytest.raises(ZeroDivisionError), spans.span(spans.WAIT):
        _ = 1 / 0
    inner, outer, failed = map(json.loads, file.read_text().splitlines())
    assert (inner["kind"], inner["label"], inner["within"]) == ("measurement", "fetch", ["clock"])
    assert (outer["kind"], outer["within"]) == ("clock", [])
    assert (failed["kind"], failed["within"]) == ("wait", [])
    assert 0 < inner["wall_s"] <= outer["wall_s"]


def test_only_what_was_computed_takes_longer_on_a_slower_machine():
    # Of 20 s without waiting for the clock, 5 were computed; at half the speed 10: 25 in all.
    took = ChapterTime(kernel_s=4, clock_s=16, wait_s=100, cpu_s=5).scaled(2)
    assert took.kernel_s + took.clock_s == pytest.approx(25)
    assert ChapterTime(kernel_s=10, cpu_s=20).scaled(3).kernel_s == pytest.approx(30)
    assert ChapterTime().scaled(3) == ChapterTime()


@pytest.mark.parametrize(
    ("pairs", "lanes", "seconds"),
    [
        ([], 3, 0),
        ([(0, 30), (0, 30), (0, 30)], 3, 30),  # side by side
        ([(20, 6), (20, 6), (20, 6)], 3, 66),  # one clock, and the rest side by side
        ([(1, 10), (1, 10), (1, 80)], 3, 81),  # the longest
        ([(10, 20), (10, 20), (10, 20), (10, 20)], 2, 80),  # 40, and 80 in two lanes
    ],
)
def test_what_is_left_is_the_clock_and_the_lanes_and_at_least_the_longest(pairs, lanes, seconds):
    times = [ChapterTime(clock_s=clock_s, drawing_s=other_s) for clock_s, other_s in pairs]
    assert timing.left_s(times, lanes) == seconds


def test_an_estimate_follows_what_was_known_and_then_the_pace(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(timing.time, "monotonic", lambda: now[0])
    expected = {"one": ChapterTime(drawing_s=40), "two": ChapterTime(drawing_s=60)}
    times = Timing(Book(tmp_path), ["one", "two"], 1, expected=expected)
    assert times.estimate_s() == pytest.approx(100)
    # `one` is done after 80 s, twice what was expected: (80 + 25) / (40 + 25) times the 60 left.
    now[0] += 80
    times.show("one", 1.0, "")
    assert times.estimate_s() == pytest.approx(60 * 105 / 65)
    times.show("two", 1.0, "")
    assert times.estimate_s() == 0


def test_a_chapter_of_which_nothing_is_known_is_expected_to_take_the_usual(tmp_path):
    times = Timing(Book(tmp_path), ["new"], 1)
    assert times.estimate_s() == pytest.approx(USUAL.other_s, rel=0.01)
    # What is written from a machine file measures nothing.
    from_file = Timing(Book(tmp_path), ["one"], 1, source=" of a.jsonl.xz")
    assert from_file.estimate_s() == pytest.approx(6, rel=0.01)


def test_what_a_build_took_is_kept_and_shown_the_longest_first(tmp_path):
    book = Book(tmp_path)
    with Timing(book, ["one", "two"], 1) as times:
        for name, rows in (("one", NOTES[-1:]), ("two", NOTES)):
            with times.chapter(name, noted(tmp_path, rows)):
                pass
    kept = timing.read(book)
    assert kept["two"].clock_s == 10 and kept["one"].cpu_s == 4
    text = timing.table(book)
    assert text.index("\ntwo ") < text.index("\none ") < text.index("\nall ")
    assert "two, visit" in text
    assert (tmp_path / places.LOCAL_NAME / "timing.json").exists()


def test_a_chapter_that_was_taken_from_the_store_is_still_known_as_it_was_measured(tmp_path):
    book = Book(tmp_path)
    for rows in (NOTES, []):  # the second time, everything was in the store
        with Timing(book, ["one"], 1) as times, times.chapter("one", noted(tmp_path, rows)):
            pass
    assert timing.read(book)["one"].clock_s == 0
    assert timing.read_measured(book)["one"].clock_s == 10
    with Timing(book, ["two"], 1) as times, times.chapter("two", noted(tmp_path, NOTES)):
        pass
    assert [*timing.read_measured(book)] == ["one", "two"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "about 5 s"),
        (52, "about 50 s"),
        (89, "about 90 s"),
        (100, "about 2 min"),
        (611, "about 10 min"),
    ],
)
def test_durations_in_words(seconds, words):
    assert timing.duration(seconds) == words


def test_growth_compares_the_chapters_that_both_know_without_what_they_waited():
    here = {
        "one": ChapterTime(clock_s=10, wait_s=99),
        "two": ChapterTime(drawing_s=20),
        "new": USUAL,
    }
    before = {"one": ChapterTime(clock_s=8), "two": ChapterTime(kernel_s=12), "gone": USUAL}
    assert timing.growth(here, before) == pytest.approx(1.5)  # 30 s where 20 were
    assert timing.growth({"new": USUAL}, before) is None


def test_another_machine_says_what_may_be_expected_scaled_by_the_unit(monkeypatch):
    rows = {
        "one": {"stem": "one", **asdict(ChapterTime(clock_s=10, cpu_s=5))},
        "bad": {"stem": "bad"},
    }
    machine = machine_files.Machine("m", {"unit_ms": [1.0, 2.0, 3.0]}, [], {}, rows)
    monkeypatch.setattr(timing, "unit_ms", lambda: 4.0)  # half as fast: 5 s more of the ten
    assert timing.on_this_machine(machine)["one"].clock_s == pytest.approx(15)
    assert set(timing.on_this_machine(machine)) == {"one"}


def test_what_chapters_took_travels_in_a_machine_file(tmp_path):
    rows = {"one": {"stem": "one", **asdict(ChapterTime(clock_s=10, cpu_s=5))}}
    answers = [{"asked": ["x"], "answer": 1}]
    file = tmp_path / f"m{machine_files.SUFFIX}"
    machine_files.save(machine_files.Machine("m", {"processor": "p"}, answers, {}, rows), file)
    assert timing.from_json(machine_files.read(file).chapters) == {
        "one": ChapterTime(clock_s=10, cpu_s=5)
    }
