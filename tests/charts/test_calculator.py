"""The model over a line, in Python and in the page, and the calculator that a reader sets."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page
from test_pages import inaccessible, too_wide, troubles

from casebook import charts, places
from casebook.cases.bookstore.line import model
from casebook.cases.bookstore.line.situations import placed
from casebook.charts.calculator import _NAMES, by_model
from casebook.errors import UsageError


def visits(**also) -> pd.DataFrame:
    """Invented visits at three distances, in four ways, and as many with a loss."""
    kinds = [("pipes", 6, 1, 0), ("pipes", 13, 1, 0), ("bare-h2", 1, 100, 0)]
    kinds += [("bare-h2", 1, 100, 1 << 24)]
    lost = json.dumps({"share": 0.01, "seed": 1})
    rows = [
        {
            **{"client": client, "connections": connections, "at_once": at_once, "n": 13},
            **{"window_bytes": window, "body_bytes": 27_000, "latency_ms": ms, "lose": lose},
            **{"congestion": "reno", "repeat": repeat, "wall_s": 0.02 * ms + 0.01 * repeat},
            **{"source": "live", "measured_at": "2026-11-20T11:05:00Z"},
        }
        for client, connections, at_once, window in kinds
        for lose, distances in (("", (4.0, 35.0)), (lost, (35.0,)))
        for ms in distances
        for repeat in (1, 2, 3)
    ]
    return pd.DataFrame(rows).assign(**also)


# ---------------------------------------------------------------- the model


def test_the_model_counts_what_the_chapter_on_distance_counts():
    """Its two functions, as the chapter shows them, for the visits that it makes."""
    cells = nbformat.read(next(places.NOTEBOOKS.glob("*_distance.ipynb")), as_version=4).cells
    shown = [cell.source for cell in cells if re.match(r"def (flights|over_tcp)\(", cell.source)]
    told: dict = {"math": __import__("math")}
    exec("\n".join(shown), told)
    for way, n, body, asked in (
        ("six connections", 13, 109, {"connections": 6}),
        ("six connections", 13, 27_000, {"connections": 6}),
        ("a connection for each", 13, 27_000, {"connections": 13}),
        ("streams, own window", 13, 27_000, {"most": model.OWN_WINDOW}),
        ("streams, wide window", 13, 27_000, {}),
        ("streams, own window", 13, 109, {"most": model.OWN_WINDOW}),
        ("streams, own window", 200, 109, {"most": model.OWN_WINDOW}),
    ):
        size = body if body > 109 else 186
        assert model.round_trips(way, n, body) == told["over_tcp"](n, size, **asked), (way, n, body)


@pytest.mark.parametrize(
    "lost, packets, trips, timers",
    [
        ([], 5, 1, 0),
        ([2], 5, 2, 0),  # with others behind it
        ([4], 5, 3, 1),  # the last: its timer, after all others have been acknowledged
        ([0], 1, 2, 1),  # alone: its timer, from the beginning
        ([9], 12, 3, 0),  # the last that left at a time, and more behind it
    ],
)
def test_a_packet_behind_which_nothing_comes_waits_for_a_timer(lost, packets, trips, timers):
    gone = [1.0] * 100
    for each in lost:
        gone[each] = 0.0
    sender = model._Sender(model._Line(0.07, 0.5, iter(gone)))
    took_s = sender.send(packets * model.PACKET)
    assert took_s == pytest.approx(0.07 * trips + model.SHORTEST_S * timers)


@pytest.mark.parametrize(
    "way, n, body, trips",
    [
        ("one connection", 1, 109, 5),  # TCP, TLS, two flights of the list, the book
        ("streams, own window", 1, 109, 5),
        ("a connection for each", 2, 109, 6),  # the first fetches both before the other is open
        ("one connection", 13, 109, 17),
        ("six connections", 200, 109, 39),
        ("six connections", 6, 100_000, 9),
    ],
)
def test_round_trips_by_hand(way, n, body, trips):
    assert model.round_trips(way, n, body) == trips
    assert model.round_trips(way, n, body, tls=2) > trips


@pytest.mark.parametrize("way", model.WAYS)
def test_a_loss_costs_time_and_the_same_lot_the_same(way):
    calm = model.seconds(way, 13, 27_000, 0.07)
    walls = [model.seconds(way, 13, 27_000, 0.07, 0.02, seed) for seed in range(50)]
    assert walls == [model.seconds(way, 13, 27_000, 0.07, 0.02, seed) for seed in range(50)]
    assert min(walls) >= calm - 1e-9 and max(walls) > calm
    rarer = [model.seconds(way, 13, 27_000, 0.07, 0.001, seed) for seed in range(50)]
    assert sum(rarer) < sum(walls)


def test_a_packet_of_a_handshake_waits_a_second():
    """Of 400 visits over one connection, some lose the answer to their first packet."""
    walls = [model.seconds("one connection", 1, 109, 0.01, 0.02, seed) for seed in range(400)]
    late = [wall for wall in walls if wall > 1]
    assert 0 < len(late) < 40


# ---------------------------------------------------------------- the picture


@pytest.fixture(scope="module")
def picture():
    return charts.calculator(visits())


def test_what_was_measured_is_told_with_its_setting(picture):
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', picture.html)[1])
    assert [way["name"] for way in data["ways"]] == list(_NAMES)
    assert data["first"] == {"n": 13, "body": 27_000, "loss": 0.0, "ms": 35.0}
    points = data["points"]
    assert len(points) == 4 * 3 and all(point[-1] == 3 for point in points)
    assert {(point[1], point[4]) for point in points} == {(4.0, 0.0), (35.0, 0.0), (35.0, 0.01)}
    assert [1, 35.0, 13, 27_000, 0.0, 0.72, 0.71, 0.73, 3] in points
    assert "By the model, 13 books of 27 kB from 35 ms away" in picture.alt
    assert "Measured on this machine" in picture.caption
    assert picture.html.count("<svg ") == 1 + len(model.WAYS)  # the still, and its key


def test_what_the_model_does_not_know_is_left_out():
    odd = visits()
    odd.loc[odd["client"] == "pipes", "client"] = "aiohttp"
    odd.loc[odd["window_bytes"] == 0, "congestion"] = "cubic"
    odd.loc[odd["lose"] != "", "lose"] = json.dumps({"connection": 0, "byte": 29_000})
    assert set(placed(odd)["way"]) == {"streams, wide window"}
    assert set(placed(odd)["loss"]) == {0.0}
    with pytest.raises(UsageError, match="none of these visits"):
        charts.calculator(visits(congestion="bbr"))


@pytest.fixture(params=[1000, 390])
def tab(browser: Browser, picture, tmp_path: Path, request) -> Iterator[Page]:
    """The picture alone on a page, opened as a file, wide or on a phone."""
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Model</title>"
        "<meta name=viewport content='width=device-width'><main><h1>Model</h1>"
        f"{picture.html}</main></html>"
    )
    context = browser.new_context(
        viewport={"width": request.param, "height": 900}, has_touch=request.param == 390
    )
    opened = context.new_page()
    found = troubles(opened)
    opened.goto(page.as_uri())
    yield opened
    assert not found
    context.close()


def test_the_page_and_python_say_the_same(tab):
    asked = [
        [way, n, body, trip_s, loss, seed]
        for way in model.WAYS
        for n, body in ((1, 109), (13, 109), (13, 27_000), (200, 3_000))
        for trip_s in (0.002, 0.07)
        for loss, seed in ((0, 0), (0.01, 1), (0.02, 7))
    ]
    found = tab.evaluate(
        "([ways, asked]) => asked.map(([way, ...how]) => casebookModel(ways[way], ...how))",
        [
            {way: {"connections": each[0], "window": each[1]} for way, each in model.WAYS.items()},
            asked,
        ],
    )
    assert found == pytest.approx([model.seconds(*each) for each in asked], rel=1e-12)


def slider(tab: Page, name: str):
    return tab.locator(f"#figure-calculator-{name}")


def soonest(tab: Page) -> str:
    return tab.locator(".cl-list b").first.text_content()


def test_it_is_set_by_keys_and_says_what_the_model_says(tab):
    said = tab.locator(".cl-said")
    assert "13 books of 27 kB from 35 ms away" in said.text_content()
    assert tab.locator(".cl-dot").count() == 4 * 2
    assert tab.locator(".cl-found").count() == 4
    body = slider(tab, "body")
    body.focus()
    tab.keyboard.press("Home")
    assert body.get_attribute("aria-valuetext") == "0.1 kB"
    assert "13 books of 0.1 kB" in said.text_content()
    assert "Here nothing was measured" in said.text_content()
    assert tab.locator(".cl-dot").count() == 0
    assert soonest(tab).startswith("streams")
    body.focus()
    tab.keyboard.press("End")
    assert soonest(tab) == "a connection for each book"
    slider(tab, "ms").focus()
    tab.keyboard.press("Home")
    assert "from 0.5 ms away" in said.text_content()


def test_the_scale_stays_where_it_is_and_each_line_has_its_name(tab):
    """So a line moves under the hand, and not the scale; what coincides shows both colours."""

    def scale() -> list[str]:
        lines = tab.locator(".cl-plot .cl-grid").all()
        return [f"{line.get_attribute('x1')}, {line.get_attribute('y1')}" for line in lines]

    before, curve = scale(), tab.locator(".cl-model").first
    was = curve.get_attribute("points")
    for name in ("body", "n", "ms"):
        for key in ("Home", "End", "ArrowLeft"):
            slider(tab, name).press(key)
            assert scale() == before
    assert curve.get_attribute("points") != was
    names = tab.locator(".cl-plot text").all_text_contents()
    assert {"one", "six", "one each", "streams", "wide"} <= {*names}
    dashes = tab.locator(".cl-model").evaluate_all(
        "lines => lines.map(line => getComputedStyle(line).strokeDasharray)"
    )
    assert [dash != "none" for dash in dashes] == [False] * 4 + [True]


def test_a_button_leads_to_what_was_measured(tab):
    lost = tab.get_by_role("button", name="13 books of 27 kB, 1 % lost")
    if tab.viewport_size["width"] == 390:
        lost.tap()
    else:
        lost.click()
    assert lost.get_attribute("aria-pressed") == "true"
    assert tab.locator(".cl-found").count() == 4 and tab.locator(".cl-dot").count() == 4
    assert "1 % of the packets lost" in tab.locator(".cl-said").text_content()
    assert tab.locator(".cl-lots").count() == len(model.WAYS)
    middle = by_model("one connection", 35.0, 13, 27_000, 0.01)[0]
    rows = tab.locator(".cl-list li").all_text_contents()
    [one] = [row for row in rows if row.startswith("one connection")]
    assert f"{middle:.2f} s (mostly " in one


def test_everybody_can_read_it(tab):
    assert not inaccessible(tab)
    assert not too_wide(tab)


def test_without_a_script_one_setting_stands_there(browser, picture, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><html lang=en><title>x</title><main>{picture.html}</main>")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert tab.locator("svg[role=img]:visible").count() == 1
    assert tab.locator(".cb-key li:visible").all_text_contents() == list(_NAMES)
    assert tab.locator("button, input").count() == 0
    context.close()
