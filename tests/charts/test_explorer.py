"""The explorer of chapter 4 and the timelines of chapters: their data, and in a browser."""

import html
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page
from test_pages import inaccessible, too_wide, troubles

from casebook import charts, colours, places, words
from casebook.cases.fetching import explorer as case
from casebook.cases.fetching import modes, phases
from casebook.cases.fetching.probes import steps
from casebook.charts import timelines
from casebook.charts.explorer_form import as_data
from casebook.findings.media import FIGURE

STATIC = places.ROOT / "book" / "_static"
#: A serial run in the invented data, as in the measured one.
IN_TURN = {"2.7: pyopenssl", "3.7: pyopenssl", "3.7: pyopenssl + gevent_openssl"}
IN_TURN |= {"today: pyopenssl + injected", "today: pyopenssl + injected + gevent_openssl"}


def timeline(combination: case.Combination, scheme: str, n: int) -> case.Timeline:
    """An invented run: requests of 100 ms, together or one after the other, handshakes of 3 ms."""
    name = f"{combination.python}: {' + '.join(combination.parts)}"
    serial = scheme == "https" and name in IN_TURN
    events = []
    for page in range(n):
        at = 5 + page * (110 if serial else 4)
        parts = [("connect", 1, at), ("send", at + 3, at + 3.2), ("wait", at + 3.3, at + 103)]
        parts += [("handshake", at, at + 3)] if scheme == "https" else []
        parts += [("receive", at + 103, at + 104)]
        events += [(page, event, start / 1000, end / 1000) for event, start, end in parts]
    wall_s = events[-1][-1]
    # The first beat is that of the start, just before the fetch.
    beats = [-0.0001] + ([] if serial else [i / 100 for i in range(1, int(100 * wall_s))])
    return case.Timeline(
        combination.stack, "timeline", n, case.DELAY_S, "9.9.9", "", "2026-11-22T04:05:00Z",
        "live" if case.is_live(n) else "reference",
        {"timeline": events, "heartbeats": beats, "wall_s": wall_s},
        combination=combination, scheme=scheme,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> list[case.Timeline]:
    return [timeline(*each) for each in case.everything()]


def ten(shown: list[case.Timeline], verdict: str) -> case.Timeline:
    """The first one of ten requests with that verdict."""
    return next(each for each in shown if each.verdict == verdict and each.n == 10)


# ---------------------------------------------------------------- the data


def test_phases_are_one_row_for_each_request():
    parts = [(0, "connect", 0, 1), (0, "send", 1, 1.2), (0, "wait", 1.2, 101)]
    parts += [(0, "receive", 101, 102), (1, "connect", 0.5, 1.5), (1, "handshake", 1.5, 4.5)]
    parts += [(1, "send", 4.5, 4.6), (1, "wait", 4.6, 90), (1, "receive", 90, 91)]
    frame = pd.DataFrame(parts, columns=["page", "event", "start_s", "end_s"])
    frame[["start_s", "end_s"]] /= 1000
    rows = [[0, 0.0, 1.0, None, None, 1.0, 1.2, 1.2, 101.0, 101.0, 102.0]]
    rows += [[1, 0.5, 1.5, 1.5, 4.5, 4.5, 4.6, 4.6, 90.0, 90.0, 91.0]]
    assert phases.of_requests(frame) == rows
    assert phases.most_waiting(frame) == 2
    again = pd.DataFrame([(1, "connect", 0.2, 0.3)], columns=frame.columns)
    retried = phases.of_requests(pd.concat([frame, again]))
    assert retried[1][1:3] == [0.5, 300.0]


def test_each_combination_is_a_stack_that_can_be_made():
    for each in case.COMBINATIONS:
        stack = each.as_stack()
        assert stack.python == each.python
        assert set(stack.steps) <= set(steps.STEPS)
        assert ("pyopenssl" in each.parts) == ("pyopenssl" in stack.packages), each
        assert ("gevent_openssl" in each.parts) == ("gevent_openssl" in stack.steps), each
        assert ("recv_into" in each.parts) == bool(stack.patch), each
        assert ("injected" in each.parts) == ("inject" in stack.steps), each
    made = [(each.python, each.parts) for each in case.COMBINATIONS]
    assert len(set(made)) == len(made)


def test_what_can_be_chosen_is_what_there_is_and_all_else_has_a_reason(shown):
    data = as_data(shown)
    rules = {part["id"]: part for part in data["parts"]}
    assert set(rules) == set(case.PARTS) == set(data["order"])
    for python in case.PYTHONS:
        for size in range(len(case.PARTS) + 1):
            for parts in itertools.combinations(case.PARTS, size):
                refused = [
                    part
                    for part in parts
                    if python in rules[part].get("refused", {})
                    or (rules[part].get("needs") and rules[part]["needs"] not in parts)
                ]
                key = f"{python}|{'+'.join(parts)}|https|10"
                assert (key in data["runs"]) == (not refused), key
                assert all(rules[part]["without"] for part in refused)


def test_a_timeline_says_its_verdict_and_what_was_published_of_it():
    by = {(each.python, each.parts): each for each in case.COMBINATIONS}
    slow = timeline(by["2.7", ("pyopenssl",)], "https", 10)
    assert (slow.verdict, slow.peak_waiting, slow.published) == ("serial", 1, "slow")
    fast = timeline(by["2.7", ()], "https", 10)
    assert (fast.verdict, fast.peak_waiting, fast.published) == ("concurrent", 10, "fast")
    assert timeline(by["2.7", ()], "http", 10).published == ""
    assert timeline(by["2.7", ()], "https", 30).published == ""
    assert timeline(by["today", ()], "https", 10).published == ""


def test_a_quick_build_measures_some_and_a_full_one_all(monkeypatch):
    quick = [each for each in case.everything() if case.is_live(each[2])]
    assert {n for _, _, n in quick} == {10}
    monkeypatch.setattr(modes, "current", lambda: modes.FULL)
    assert all(case.is_live(each[2]) for each in case.everything())


def test_what_is_recorded_stands_in_and_says_so(monkeypatch, shown):
    monkeypatch.setattr(case, "measure", lambda todo: [timeline(*each) for each in todo])
    monkeypatch.setattr(case, "can_run", lambda each: each.python == "today")
    recorded = [replace(each, source="reference") for each in shown]
    monkeypatch.setattr(case, "recorded", lambda: recorded)
    sources = {}
    for each in case.timelines():
        sources.setdefault(each.source, set()).add((each.combination.python, each.scheme, each.n))
    assert sources["live"] == {("today", over, n) for over in case.SCHEMES for n in (10,)}
    assert ("2.7", "https", 10) in sources["reference"]
    monkeypatch.setattr(case, "recorded", lambda: recorded[:5])
    assert {each.combination.python for each in case.timelines()} == {"2.7", "today"}


def test_the_book_of_a_machine_says_whose_runs_these_are(monkeypatch, shown):
    monkeypatch.setattr(words, "_machine", "a Pear, 4 cores")
    runs = as_data(shown)["runs"]
    assert runs["2.7|pyopenssl|https|10"]["origin"].startswith("Measured on a Pear, 4 cores")
    assert runs["2.7|pyopenssl|https|30"]["origin"].startswith("Recorded on the reference machine")


def test_timelines_are_measured_with_the_steps_of_their_combination():
    """gevent_openssl without a recv_into, on the Python of today: unused, and injected."""
    unused, injected = (
        each
        for each in case.COMBINATIONS
        if each.python == "today" and each.parts[-1:] == ("gevent_openssl",)
    )
    assert unused.stack == injected.stack
    seen = case.measure([(unused, "https", 3), (injected, "http", 3), (injected, "https", 3)])
    found = {(each.combination, each.scheme): each for each in seen}
    assert found[injected, "https"].peak_waiting == 1
    assert found[injected, "http"].peak_waiting > 1 and found[unused, "https"].peak_waiting > 1
    for each in seen:
        assert each.source == "live" and len(each.requests) == 3
        assert each.wall_s > case.DELAY_S
        assert all((row[3] is None) == (each.scheme == "http") for row in each.requests)


def test_everything_is_recorded_as_it_is_asked_for():
    recorded = case.recorded()
    found = {(each.combination, each.scheme, each.n) for each in recorded}
    assert found == set(case.everything())
    for each in recorded:
        assert len(each.requests) == each.n and each.delay_s == case.DELAY_S
        assert each.source == "reference" and len(each.heartbeats_ms), each
        if each.published:
            assert {"fast": "concurrent", "slow": "serial"}[each.published] == each.verdict
        if each.scheme == "http":
            assert each.verdict == "concurrent"


def test_the_figure_is_a_picture_in_a_notebook_and_goes_whole_to_the_book(shown):
    chart = charts.explorer(shown)
    bundle = chart._repr_mimebundle_()
    assert "casebookExplorer" not in bundle["text/html"]
    assert bundle[FIGURE]["name"] == "explorer"
    whole = bundle[FIGURE]["html"]
    [data] = re.findall(r"<script>window\.casebookExplorer=(.*?);</script>", whole)
    assert json.loads(data) == json.loads(json.dumps(as_data(shown)))
    assert len(whole) < 300_000
    assert 'type="module"' not in whole


def test_the_parts_of_a_request_have_the_colours_of_the_charts():
    css = (STATIC / "explorer.css").read_text()
    for event, colour in timelines.COLOURS.items():
        fill = "currentColor" if colour == "ink" else f"var(--cb-{colour})"
        assert f".tl-{event} {{ fill: {fill}; }}" in css
    assert f".tl-beat {{ fill: var(--cb-{colours.ROLES['loop']}); }}" in css


def test_a_chart_of_timelines_counts_what_it_shows_and_brings_its_data(shown):
    one, two = ten(shown, "concurrent"), ten(shown, "serial")
    chart = charts.timeline({"one <&>": one, 'two "2"': two}, title="Two")
    assert "One <&>: 10 requests in 0.145 s, 10 waiting at once at most." in chart.alt
    assert 'Two "2": 10 requests in 1.10 s, 1 waiting at once at most.' in chart.alt
    assert "1 of 10 had been sent before the first response was in." in chart.alt
    told = html.unescape(re.search(r'data-timelines="([^"]*)"', chart.html)[1])
    panels = json.loads(told)
    assert [panel["label"] for panel in panels] == ["one <&>", 'two "2"']
    assert panels[0]["rows"] == phases.of_requests(one.frame)
    assert panels[0]["end"] == panels[1]["end"]
    assert chart.html.count('role="img"') == 2
    assert re.findall(r"<span>(\w+)</span>", chart.html) == [*phases.EVENTS]


def test_a_loop_that_never_beats_is_blocked_and_no_loop_is_none(shown):
    blocked = ten(shown, "serial")
    chart = charts.timeline({"blocked": blocked})
    assert "The event loop was blocked for 1.10 s at longest" in chart.alt
    assert ">blocked for 1.10 s at longest<" in chart.html and ">event loop<" in chart.html
    no_loop = replace(blocked, answer=blocked.answer | {"heartbeats": []})
    without = charts.timeline({"none": no_loop})
    assert ">event loop<" not in without.html and "blocked" not in without.html


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shown) -> Path:
    """A small site: the explorer on one page, two timelines of a chapter on another.

    A third page has the same two, to be guessed first.
    """
    root = tmp_path_factory.mktemp("site")
    for name in ("_static", "book", "notebooks"):
        (root / name).mkdir()
    for name in ("explorer.js", "explorer.css"):
        shutil.copy(STATIC / name, root / "_static")
    (root / "notebooks" / "a_explorer.html").write_text("<p>here</p>")
    two = {"one": ten(shown, "concurrent"), "two": ten(shown, "serial")}
    chapter = charts.timeline(two, title="Two timelines")
    pages = {"preface": charts.explorer(shown).page_html, "chapter": chapter.html}
    pages["guessed"] = f'<div class="asks">{chapter.html}</div><p class="after-guess">So.</p>'
    for name, body in pages.items():
        (root / "book" / f"{name}.html").write_text(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>x</title>'
            '<meta name="viewport" content="width=device-width">'
            "<style>a{color:inherit}body{color:var(--pst-color-text-base)}"
            "html{--pst-color-text-base:#222;background:#fff}body{margin:1rem}"
            "html[data-theme=dark]{--pst-color-text-base:#e8e8e8;background:#14181e}</style>"
            '<link rel="stylesheet" href="../_static/explorer.css">'
            f'<script src="../_static/explorer.js"></script></head><body><main><h1>x</h1>{body}'
            "</main></body></html>"
        )
    return root


@pytest.fixture
def tab(browser: Browser, folder: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Open the page with the explorer from file://, where nothing may go wrong.

    It is a phone where nothing moves, unless the test has other options.
    """
    phone = {"has_touch": True, "viewport": {"width": 390, "height": 844}}
    page = browser.new_page(**getattr(request, "param", phone | {"reduced_motion": "reduce"}))
    said = troubles(page)
    page.goto((folder / "book" / "preface.html").as_uri())
    yield page
    page.close()
    assert said == []


def verdict(tab: Page) -> str:
    return tab.locator(".ex-verdict").inner_text()


def run_it(tab: Page) -> None:
    """Have a run shown that is asked about, if there is one."""
    button = tab.get_by_role("button", name="Show it")
    if button.is_visible():
        button.click()


def press_until(tab: Page, key: str, selector: str) -> None:
    """Press a key, up to fifty times, until an element has the focus."""
    for _ in range(50):
        tab.keyboard.press(key)
        if tab.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with {key}")


TOGETHER, IN_A_ROW = "0.14 s: all 10 at once.", "1.10 s: one after the other."
UNTICK = "untick gevent_openssl and untick its patch."
REST = "The rest is yours: try any of them, with 3 requests or with 30."
#: How the reader is led: keys to a choice, the choice, the key there, what is seen, what is next.
LED = (
    ("Tab", "pyopenssl", "Space", IN_A_ROW, "Now choose http."),
    ("Tab", "scheme", "ArrowRight", TOGETHER, "Now choose https and tick gevent_openssl."),
    ("Tab", "scheme", "ArrowLeft", IN_A_ROW, "Now tick gevent_openssl."),
    ("Tab", "gevent_openssl", "Space", TOGETHER, "Now choose Python 3.7."),
    ("Tab", "python", "ArrowRight", IN_A_ROW, "Now tick its patch."),
    ("Tab", "recv_into", "Space", TOGETHER, f"Now choose Python of today, {UNTICK}"),
    ("Tab", "python", "ArrowRight", TOGETHER, f"Now {UNTICK}"),
    ("Tab", "gevent_openssl", "Space", TOGETHER, "Now tick injected by hand."),
    ("Tab", "injected", "Space", IN_A_ROW, REST),
)


def test_by_keyboard_alone_from_the_first_invitation_to_the_last(tab: Page) -> None:
    """As the reader is led, without a mouse."""
    told, said = tab.locator(".ex-next"), tab.locator(".cb-source")
    assert (verdict(tab), told.inner_text()) == ("0.14 s: all 10 at once.", "Now tick pyOpenSSL.")
    assert tab.locator("input:visible").count() == 1
    for way, where, key, found, then in LED:
        press_until(tab, way, f"#explorer-parts-{where}, [name=explorer-{where}]")
        tab.keyboard.press(key)
        assert verdict(tab) == "Guess, then look."  # and what comes is not told yet
        assert said.inner_text() == ""
        press_until(tab, "Tab", "#explorer-guess")
        tab.keyboard.press("Enter")
        assert (verdict(tab), told.inner_text()) == (found, then)
        if then == "Now choose http.":
            assert "blocked for 1.10 s at longest" in tab.locator(".tl-plot").inner_text()
            assert said.inner_text().startswith(
                "Measured on the machine that made this page, 22 November 2026, 04:05 UTC"
            )
            assert said.inner_text().endswith("The post of 2019 found it slow.")
            assert "Recorded" not in said.inner_text()
        elif "choose https" in then:
            assert said.inner_text().endswith("Measured by us, never published.")

    assert tab.locator("input:visible").count() == 4 + 2 + 3 + 3
    press_until(tab, "Tab", "[name=explorer-n]")
    tab.keyboard.press("ArrowRight")
    run_it(tab)
    assert verdict(tab) == "3.30 s: one after the other."
    assert said.inner_text().startswith("Recorded on the reference machine, 22 November 2026")
    assert "not measured now. Measured by us, never published." in said.inner_text()


def test_what_cannot_be_is_grey_and_says_why(tab: Page) -> None:
    tab.click(".ex-all")

    def about(part: str) -> tuple[bool, str]:
        box = tab.locator(f"#explorer-parts-{part}")
        named = box.get_attribute("aria-describedby")
        return box.is_disabled(), tab.locator(f"#{named}").inner_text()

    assert about("gevent_openssl") == (
        True,
        "not possible: there is no pyOpenSSL for it to work on",
    )
    assert about("injected")[0] and "requests 2.21.0 injects" in about("injected")[1]
    tab.check("#explorer-parts-pyopenssl")
    assert not about("gevent_openssl")[0] and "not possible" not in about("gevent_openssl")[1]
    assert about("recv_into") == (True, "not possible: there is no gevent_openssl to add it to")
    tab.check("#explorer-python-today")
    assert not about("injected")[0]
    run_it(tab)
    assert verdict(tab).endswith("all 10 at once.")
    tab.check("#explorer-parts-injected")
    run_it(tab)
    assert verdict(tab).endswith("one after the other.")
    tab.check("#explorer-parts-gevent_openssl")
    tab.check("#explorer-parts-recv_into")
    run_it(tab)
    assert verdict(tab).endswith("all 10 at once.")
    tab.uncheck("#explorer-parts-pyopenssl")  # what was made for it goes with it
    tab.check("#explorer-parts-pyopenssl")
    assert not tab.is_checked("#explorer-parts-gevent_openssl")
    assert not tab.is_checked("#explorer-parts-injected")


@pytest.mark.nightly
@pytest.mark.breadth
def test_every_combination_shows_its_own_run(tab: Page, shown) -> None:
    tab.click(".ex-all")
    for each in shown:
        chosen = each.combination
        tab.check(f"#explorer-python-{chosen.python}".replace(".", "\\."))
        tab.check(f"#explorer-scheme-{each.scheme}")
        tab.check(f"#explorer-n-{each.n}")
        for part in case.PARTS * 2:  # some can be ticked only after others
            box = tab.locator(f"#explorer-parts-{part}")
            if not box.is_disabled():
                box.set_checked(part in chosen.parts)
        run_it(tab)
        peak = each.peak_waiting
        many = f"all {each.n}" if peak == each.n else f"up to {peak} of {each.n}"
        how = "one after the other." if each.verdict == "serial" else f"{many} at once."
        assert verdict(tab) == f"{each.wall_s:.2f} s: {how}", chosen
        assert tab.locator(".tl-receive").count() - 1 <= each.n <= tab.locator(".tl-wait").count()


def test_a_request_tells_its_parts_and_a_zoom_shows_its_handshake(folder: Path, tab: Page) -> None:
    tab.goto((folder / "book" / "chapter.html").as_uri())
    said = tab.locator(".tl-said")
    assert tab.locator("figure svg[role=img]").count() == 0
    plots = tab.locator(".tl-plot")
    assert plots.count() == 2
    label = plots.nth(1).get_attribute("aria-label")
    assert "10 requests in 1.10 s, 1 waiting at once at most" in label
    # A loop that never beats is blocked to the end, which no beat ends; the other one never is.
    assert [plots.nth(i).locator(".tl-stall").count() for i in (0, 1)] == [0, 1]
    assert plots.nth(1).locator(".tl-late").text_content() == "blocked for 1.10 s at longest"
    plots.nth(1).focus()
    assert said.inner_text().startswith("two. Request 0: connected in 4.0 ms, handshake 3.0 ms")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    assert said.inner_text().startswith("two. Request 1: ")
    assert said.locator("strong").inner_text() == "handshake 3.0 ms"

    def width() -> float:
        return tab.locator(".tl-handshake.tl-part").bounding_box()["width"]

    before = width()
    assert before < 4
    for _ in range(4):
        tab.keyboard.press("+")
    assert width() > 20
    tab.keyboard.press("0")
    assert width() == pytest.approx(before, abs=2)
    tab.get_by_role("button", name="Zoom in").click()
    assert width() > before
    tab.get_by_role("button", name="Zoom: all of it").click()

    box = plots.nth(0).bounding_box()
    tab.mouse.move(box["x"] + 60, box["y"] + 6 + 17 * 2.5)
    assert said.inner_text().startswith("one. Request 2: ")
    tab.mouse.move(box["x"] + 60, box["y"] + 6 + 17 * 4.5)
    assert said.inner_text().startswith("one. Request 4: ")


def test_a_guess_comes_first_and_the_run_before_stays_behind(tab: Page) -> None:
    """The scale fits what is shown, and a connection that is kept waiting is not connecting."""
    plot, pale = tab.locator(".tl-plot"), tab.locator(".tl-before")

    def reach() -> float:
        """How far the last reply is to the right, as a share of the picture."""
        box, dots = plot.bounding_box(), tab.locator(".tl-plot .tl-receive").all()
        ends = [box["x"] for box in (dot.bounding_box() for dot in dots)]
        return (max(ends) - box["x"]) / box["width"]

    assert reach() > 0.8 and pale.count() == tab.locator(".tl-held").count() == 0
    tab.check("#explorer-parts-pyopenssl")
    assert plot.evaluate("box => box.inert") and "1.10 s" not in tab.locator(".ex").inner_text()
    # The title is that of the run that is seen, and the question names the one to come.
    title, question = tab.locator(".ex-what").inner_text(), tab.locator(".ex-ask").inner_text()
    assert title.startswith("Pale, the run before: Python 2.7, https, grequests and nothing more")
    assert question.startswith("Python 2.7, https, grequests with pyOpenSSL: how many delays")
    tab.get_by_label("Your guess").fill("2")
    tab.get_by_role("button", name="Show it").tap()
    assert verdict(tab) == f"{IN_A_ROW} That is 11 delays; you guessed 2."
    assert (
        tab.locator(".ex-what")
        .inner_text()
        .startswith("Python 2.7, https, grequests with pyOpenSSL: 10 requests")
    )
    assert not plot.evaluate("box => box.inert") and tab.locator(".ex-ask").is_hidden()
    assert pale.count() == 10 and tab.locator(".ex-behind").is_visible() and reach() > 0.8
    wide = [each.bounding_box()["width"] for each in pale.all()]
    assert max(wide) < 0.2 * plot.bounding_box()["width"]
    # All connections but the first were begun, and kept waiting.
    assert tab.locator(".tl-held").count() >= 9
    plot.focus()
    tab.keyboard.press("End")
    assert "kept waiting" in tab.locator(".tl-said").inner_text()
    tab.uncheck("#explorer-parts-pyopenssl")
    tab.check("#explorer-parts-pyopenssl")  # as it is shown already: nothing to ask
    assert tab.locator(".ex-ask").is_hidden() and verdict(tab) == IN_A_ROW


@pytest.mark.parametrize("guess", ["2.5", "2,5", "0", ""])
def test_two_runs_are_guessed_before_they_are_shown(folder: Path, tab: Page, guess: str) -> None:
    tab.goto((folder / "book" / "guessed.html").as_uri())
    drawings, caption = tab.locator(".tl-plot svg"), tab.locator("figcaption .cb-finding")
    one, two = drawings.all()  # of which the first is told of in the question
    assert one.is_visible() and not two.is_visible() and not caption.is_visible()
    place, text = tab.locator(".cb-panels").bounding_box(), tab.get_by_text("So.", exact=True)
    asked = "one takes 1.4 delays for all 10 pages. How many will two take? Your guess:"
    assert tab.locator(".ex-ask label").inner_text() == asked and not text.is_visible()
    press_until(tab, "Tab", "#explorer-guess")
    tab.keyboard.type("many")
    tab.keyboard.press("Enter")  # which is no number, so nothing is shown yet
    assert not two.is_visible()
    tab.locator("#explorer-guess").fill(guess)
    tab.keyboard.press("Enter")
    assert text.is_visible()
    said = "two takes 11 delays."
    assert verdict(tab) == (f"{said} You guessed {guess.replace(',', '.')}." if guess else said)
    assert tab.locator(".ex-ask").count() == 0 and caption.is_visible()
    for drawing in drawings.all():
        assert drawing.is_visible()
    assert tab.locator(".cb-panels").bounding_box() == pytest.approx(place, abs=1)
    press_until(tab, "Tab", ".tl-plot")
    assert tab.locator(".tl-said").inner_text().startswith("one. Request 0: ")


@pytest.mark.parametrize("tab", [{"reduced_motion": "no-preference"}], indirect=True)
def test_guessed_runs_come_as_they_happened(folder: Path, tab: Page) -> None:
    tab.goto((folder / "book" / "guessed.html").as_uri())
    tab.get_by_role("button", name="Show it").click()
    assert verdict(tab) == ""
    tab.wait_for_function("document.querySelector('.ex-verdict').textContent")
    assert verdict(tab) == "two takes 11 delays."


def test_a_tap_tells_as_much_as_a_mouse(tab: Page) -> None:
    tab.locator("label[for=explorer-parts-pyopenssl]").tap()
    run_it(tab)
    assert verdict(tab).endswith("one after the other.")
    box = tab.locator(".tl-plot").bounding_box()
    tab.touchscreen.tap(box["x"] + 100, box["y"] + 6 + 17 * 3.5)
    assert tab.locator(".tl-said").inner_text().startswith("Request 3: connected in ")
    for target in tab.locator(".ex-choice label:visible, .tl-zoom button").all():
        assert target.bounding_box()["height"] >= 24


@pytest.mark.parametrize("page", ["preface", "chapter", "guessed"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_has_room_and_is_accessible(
    folder: Path, tab: Page, page: str, theme: str, width: int
) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto((folder / "book" / f"{page}.html").as_uri())
    tab.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    for everything in (False, True):
        assert too_wide(tab) == []
        assert inaccessible(tab) == []
        if page == "preface" and not everything:
            tab.click(".ex-all")
            tab.check("#explorer-n-30")
            tab.check("#explorer-parts-pyopenssl")
            assert inaccessible(tab) == []
            run_it(tab)
    for text in tab.locator(".tl-plot text").all():
        box, plot = text.bounding_box(), tab.locator(".tl-plot").first.bounding_box()
        assert page != "preface" or (
            box["x"] >= plot["x"] - 1 and box["x"] + box["width"] <= plot["x"] + plot["width"] + 1
        )


@pytest.mark.parametrize("tab", [{"java_script_enabled": False}], indirect=True)
@pytest.mark.parametrize("page", ["preface", "guessed"])
def test_without_javascript_the_picture_stays(folder: Path, tab: Page, page: str) -> None:
    tab.goto((folder / "book" / f"{page}.html").as_uri())
    pictures = tab.locator("svg[role=img]")
    assert pictures.count() == 2
    assert pictures.first.bounding_box()["height"] > 100
    assert "1 waiting at once" in pictures.nth(1).get_attribute("aria-label")
    assert tab.locator("input").count() == 0


def test_what_was_neither_measured_nor_recorded_is_not_shown(
    folder: Path, tab: Page, shown: list[case.Timeline]
) -> None:
    today = [each for each in shown if each.combination.python == "today" and each.n == 10]
    page = (folder / "book" / "preface.html").read_text()
    page = page.replace(charts.explorer(shown).page_html, charts.explorer(today).page_html)
    (folder / "book" / "today.html").write_text(page)
    tab.goto((folder / "book" / "today.html").as_uri())
    assert verdict(tab) == "This was neither measured here nor recorded."
    assert tab.locator(".tl-plot").is_hidden()
    tab.click(".ex-all")
    tab.check("#explorer-python-today")
    assert verdict(tab).endswith("all 10 at once.")
    assert tab.locator(".tl-plot").is_visible()
    assert tab.locator("#explorer-n-30").is_disabled()


@pytest.mark.parametrize("tab", [{"reduced_motion": "no-preference"}], indirect=True)
def test_what_moves_ends_with_the_whole_picture(tab: Page) -> None:
    def uncovered() -> float:
        return tab.locator("clipPath rect").evaluate(
            "one => parseFloat(getComputedStyle(one).width)"
        )

    whole = 0.9 * tab.locator(".tl-plot").bounding_box()["width"] - 40
    tab.check("#explorer-parts-pyopenssl")
    run_it(tab)
    assert "one after" not in verdict(tab) and uncovered() < whole  # it is still playing
    tab.wait_for_selector("text=one after the other.", timeout=10_000)
    assert uncovered() > whole
