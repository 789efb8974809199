"""Who holds the thread: the probe in real stacks, the turns that follow, and the picture."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import here
import pytest
from playwright.sync_api import Browser, Page
from test_pages import inaccessible, too_wide, troubles

from casebook import charts, observe
from casebook.cases.fetching import turns
from casebook.cases.fetching.observations import Observation
from casebook.charts import listings

#: stack -> whether a request keeps the thread while its reply is on the way.
KEEPING = {
    "stage-1-py27": False,
    "stage-2-py27": True,
    "stage-3-py27": False,
    "stage-3-py37": True,
    "stage-4-py37": False,
    "stage-1-today": False,
    "stage-2-injected-today": True,
    "stage-3-today": True,
    "stage-4-today": False,
}
#: A wait for a reply, which takes DELAY_S, and none for a handshake, on a busy machine either.
DELAY_S, LONG_S = 0.5, 0.2


def waits(frame, does: str):
    found = turns.turns_of(frame)
    return found[(found["does"] == does) & (found["end_s"] - found["start_s"] > LONG_S)]


@pytest.mark.parametrize("name", KEEPING)
def test_who_waits_for_the_replies(name):
    here.environment(name)
    seen = observe(name, "turns", n=3, delay_s=DELAY_S)
    kept, watched = (waits(seen.frame, does) for does in (turns.KEEPS, turns.WATCHES))
    if KEEPING[name]:
        assert sorted(kept["greenlet"]) == [1, 2, 3] and watched.empty
        assert set(kept["function"]) == {"poll"}
        assert set(kept["file"]) == {"urllib3/util/wait.py"}
        # Nobody has the thread while somebody keeps it.
        every = turns.turns_of(seen.frame)
        for one in kept.itertuples():
            others = every[every["greenlet"] != one.greenlet]
            assert not ((others["start_s"] < one.end_s) & (others["end_s"] > one.start_s)).any()
    else:
        assert kept.empty and len(watched) and set(watched["greenlet"]) == {turns.LOOP}
        assert set(watched["file"]) == {"gevent/hub.py"}


def test_with_threads_all_wait_at_the_same_time():
    seen = observe("stage-2-injected-today", "turns", n=3, delay_s=DELAY_S, client="threads")
    kept = waits(seen.frame, turns.KEEPS)
    assert sorted(kept["greenlet"]) == [1, 2, 3]
    assert kept["start_s"].max() < kept["end_s"].min()
    assert waits(seen.frame, turns.WATCHES).empty


def test_the_lines_are_those_of_the_installed_packages():
    seen = observe("stage-4-today", "turns", n=3, delay_s=0.1)
    environment = here.environment("stage-4-today")
    at = turns.turns_of(seen.frame)
    files = listings.files_of(environment, set(at["file"]) - {""})
    assert {"gevent_openssl/SSL.py", "gevent/hub.py"} <= set(files)
    hub = at[at["greenlet"] == turns.LOOP].iloc[0]
    assert "loop.run()" in files["gevent/hub.py"].lines[hub["line"]]
    assert files["gevent/hub.py"].release.startswith("gevent ")
    # What is kept names no folder of this machine, and quotes nobody's code.
    assert not re.search(r'"/', json.dumps(seen.answer["turns"]))
    assert "loop.run()" not in json.dumps(seen.answer)


def test_what_only_passes_the_thread_on_is_no_turn_of_the_loop():
    """By hand: the loop for a moment, a call that returns at once, a call that computes."""
    names = ("t_s", "event", "greenlet", "to", "function", "file", "line")
    rows = [
        (0.001, "switch", 0, -1, "map", "a.py", 1),
        (0.0011, "switch", -1, 1, "run", "hub.py", 2),
        (0.002, "call", 1, None, "poll", "w.py", 3),
        (0.0021, "return", 1, None, "poll", "w.py", 3),
        (0.003, "call", 1, None, "do_handshake", "s.py", 4),
        (0.013, "return", 1, None, "do_handshake", "s.py", 4),
        (0.014, "call", 1, None, "poll", "w.py", 3),
        (0.114, "return", 1, None, "poll", "w.py", 3),
        (0.115, "switch", 1, -1, None, None, None),
        (0.125, "switch", -1, 0, "run", "hub.py", 2),
        (0.126, "end", 0, None, None, None, None),
    ]
    frame = Observation(
        "x",
        "turns",
        1,
        0.1,
        "3",
        "",
        "",
        "live",
        {"turns": [dict(zip(names, r, strict=True)) for r in rows]},
    ).frame
    found = [(t.greenlet, t.does, t.function) for t in turns.turns_of(frame).itertuples()]
    assert found == [
        (0, "runs", "map"),
        (1, "runs", "poll"),
        (1, "keeps", "poll"),
        (1, "runs", ""),
        (-1, "watches", "run"),
        (0, "runs", ""),
    ]


# ---------------------------------------------------------------------------------- the picture


@pytest.fixture(scope="module")
def picture() -> charts.turns:
    names = {"with poll": "stage-2-injected-today", "with the loop": "stage-4-today"}
    runs = {said: observe(name, "turns", n=3, delay_s=DELAY_S) for said, name in names.items()}
    return charts.turns(runs, name="tried")


def test_the_finding_is_in_words_computed_from_the_runs(picture):
    assert re.search(r"With poll: request \d keeps the thread for \d+ ms: poll asks", picture.alt)
    assert re.search(r"With the loop: the loop has the thread for \d+ ms, and waits", picture.alt)
    assert "Measured on this machine" in picture.caption


def test_all_runs_have_one_scale_of_time(picture):
    """The run that waits for one socket after the other is drawn about three times as long."""
    ends = [
        max(
            float(left) + float(wide)
            for left, wide in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", run)
        )
        for run in picture.html.split('class="tn-run"')[1:]
    ]
    with_poll, with_the_loop = ends
    assert with_poll > 95 and 20 < with_the_loop < 75


def test_waits_during_the_turns_of_others_are_drawn_as_the_loop_can_or_cannot_wake_them(picture):
    """Of the delay in which a request keeps the thread, the others and the loop have nothing."""

    def long_ones(run: str) -> list[list[str]]:
        bars = re.compile(r'<i class="tn-(\w+)" style="left:([\d.]+)%;width:([\d.]+)%"')
        rows = [bars.findall(row) for row in run.split('<li class="tn-row ')[1:]]
        return [[does for does, _, wide in row if float(wide) > 10] for row in rows]

    with_poll, with_the_loop = (long_ones(run) for run in picture.html.split('class="tn-run"')[1:])
    *requests, loop = with_poll
    assert sorted(row.count("held") for row in requests) == [0, 1, 2]
    assert all(row.count("keeps") == 1 and "watched" not in row for row in requests)
    assert loop == ["held"] * 3
    *requests, loop = with_the_loop
    assert all(row.count("watched") == 1 and "held" not in row for row in requests)
    assert loop == ["watches"]


@pytest.fixture(params=[1000, 390])
def tab(browser: Browser, picture, tmp_path: Path, request) -> Iterator[Page]:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Turns</title>"
        "<meta name=viewport content='width=device-width'><main><h1>Turns</h1>"
        f"{picture.html}</main></html>"
    )
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    opened = context.new_page()
    found = troubles(opened)
    opened.goto(page.as_uri())
    yield opened
    assert not found
    context.close()


def at(tab: Page) -> int:
    return int(tab.locator(".tn-slider").input_value())


def seen_at(tab: Page) -> tuple[float, float]:
    """From when to when, in milliseconds, the turn that is shown is said to be."""
    said = tab.locator(".tn-at").text_content()
    start, end = re.findall(r"([\d.]+) to ([\d.]+) ms after the start$", said)[0]
    last = int(tab.locator(".tn-slider").get_attribute("max"))
    assert said.startswith(f"Turn {at(tab) + 1} of {last}: ")
    return float(start), float(end)


def test_it_begins_at_the_end_and_says_which_turn_it_shows(tab, picture):
    told = json.loads(re.search(r'<script type="application/json">(.*?)</script>', picture.html)[1])
    assert at(tab) == len(told["runs"][0]["steps"]) - 1
    tab.locator(".tn-slider").press("Home")
    assert at(tab) == 0
    assert tab.locator(".tn-scale:visible").inner_text().split("\n") == [
        "0 ms",
        f"{told['end']:.0f} ms",
    ]
    *turns_of, last = told["runs"][0]["steps"]
    for step in turns_of:
        start, end = seen_at(tab)
        assert start < end
        assert (start, end) == pytest.approx((step["from"], step["to"]), abs=0.51)
        tab.get_by_label("One turn on").click()
    # The end is no turn: nobody has the thread, and the other run is beside it.
    assert tab.locator(".tn-at").text_content() == f"The end, {last['to']:.0f} ms after the start"
    states = tab.locator(".tn-run:visible .tn-state").all_text_contents()
    assert states == ["done"] * 3 + ["has nothing left to do"]
    says = tab.locator(".tn-run:visible .tn-says").text_content()
    assert re.fullmatch(r"All 3 requests are done, after \d+ ms\. With the loop: \d+ ms\.", says)


def test_nothing_moves_from_one_turn_to_the_next(tab):
    """A row keeps the height of its longest line of code, and the text above it of its longest."""
    rows = tab.locator(".tn-run:visible .tn-row")
    tops = {tuple(row.bounding_box()["y"] for row in rows.all())}
    tab.locator(".tn-slider").press("Home")
    for _ in range(int(tab.locator(".tn-slider").get_attribute("max"))):
        tab.locator(".tn-slider").press("ArrowRight")
        tops.add(tuple(row.bounding_box()["y"] for row in rows.all()))
    assert len(tops) == 1


def test_the_control_is_in_sight_beside_every_row(tab):
    """On a phone it stays at the upper edge of the window; wide, it stands above the rows."""
    for row in tab.locator(".tn-run:visible .tn-row").all():
        row.evaluate("row => row.scrollIntoView({block: 'end'})")
        box = tab.locator(".tn-desk").bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900


def test_it_is_drawn_as_far_as_it_has_been_stepped_through(tab, picture):
    told = json.loads(re.search(r'<script type="application/json">(.*?)</script>', picture.html)[1])
    bars, steps = tab.locator(".tn-run:visible .tn-bars"), told["runs"][0]["steps"]

    def drawn_to_ms():
        clips = [each.evaluate("bar => bar.style.clipPath") for each in bars.all()]
        cut = {
            float(re.fullmatch(r"inset\(0(?:px)? ([\d.]+)% 0(?:px)? 0(?:px)?\)", clip)[1])
            for clip in clips
        }
        (percent,) = cut
        return told["end"] * (1 - percent / 100)

    assert drawn_to_ms() == told["end"]
    tab.locator(".tn-slider").press("Home")
    assert drawn_to_ms() == pytest.approx(steps[0]["to"], abs=0.1)
    tab.get_by_label("One turn on").click()
    assert drawn_to_ms() == pytest.approx(steps[1]["to"], abs=0.1)
    tab.locator(".tn-slider").press("End")
    assert drawn_to_ms() == told["end"]
    tab.locator(".tn-slider").press("Home")
    assert drawn_to_ms() == pytest.approx(steps[0]["to"], abs=0.1)


def test_it_is_stepped_through_by_keys_and_by_hand(tab):
    says = tab.locator(".tn-run:visible .tn-says")
    tab.locator(".tn-slider").press("Home")
    while "keeps the thread for" not in says.text_content():
        before = at(tab)
        tab.get_by_label("One turn on").click()
        assert at(tab) == before + 1
    deciding = says.text_content()
    held = tab.locator(".tn-run:visible .tn-is-held")
    assert held.count() >= 1 and tab.locator(".tn-run:visible .tn-is-loop").count() == 1
    assert "poll" in tab.locator(".tn-run:visible .tn-is-keeps .tn-code").text_content()
    first = at(tab)
    tab.locator(".tn-slider").focus()
    tab.keyboard.press("ArrowLeft")
    assert at(tab) == first - 1
    assert says.text_content() != deciding
    tab.get_by_label("One turn on").click()
    assert says.text_content() == deciding
    tab.keyboard.press("Home")  # the button has the focus, not the slider
    tab.locator(".tn-slider").focus()
    tab.keyboard.press("Home")
    tab.get_by_label("One turn back").click()
    assert at(tab) == 0  # and no further


def test_the_switch_changes_the_run(tab):
    tab.get_by_role("button", name="with the loop").click()
    last = int(tab.locator(".tn-slider").get_attribute("max"))
    assert tab.locator(".tn-run:visible").count() == 1 and at(tab) == last
    tab.locator(".tn-slider").press("Home")
    says = tab.locator(".tn-run:visible .tn-says")
    while "waits for all 3 requests" not in says.text_content():
        before = at(tab)
        tab.get_by_label("One turn on").click()
        assert at(tab) == before + 1
    assert tab.locator(".tn-run:visible .tn-is-watched").count() == 3
    pressed = tab.locator(".tn-choice[aria-pressed=true]")
    tab.locator(".tn-run:visible .tn-slider, .tn-slider:visible").first.press("End")
    [took_ms] = re.findall(r"are done, after (\d+) ms", says.text_content())
    assert pressed.all_text_contents() == [f"with the loop, {took_ms} ms"]


def test_it_plays_to_the_end_and_stops(tab):
    tab.clock.install()
    tab.reload()
    tab.get_by_label("Play").click()
    assert at(tab) == 0
    last = int(tab.locator(".tn-slider").get_attribute("max"))
    tab.clock.run_for(5000 * (last + 1))
    assert at(tab) == last
    said = tab.locator(".tn-run:visible .tn-says").text_content()
    assert re.match(r"All 3 requests are done, after \d+ ms\.", said)
    assert tab.get_by_label("Play").count() == 1 and tab.get_by_label("Pause").count() == 0


def test_everybody_can_read_it(tab):
    assert not inaccessible(tab)
    assert not too_wide(tab)


def test_without_a_script_both_deciding_moments_stand_there(browser, picture, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><html lang=en><title>x</title><main>{picture.html}</main>")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    says = tab.locator(".tn-says:visible").all_text_contents()
    assert len(says) == 2 and "keeps the thread" in says[0] and "all 3 requests" in says[1]
    assert tab.locator("button, input").count() == 0
    context.close()
