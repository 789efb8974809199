"""The calculator of chapter "More than one machine": the page computes what the model does."""

from pathlib import Path

import pytest

from casebook import places
from casebook.cases.many import capacity
from casebook.charts import capacity as drawn

STATIC = places.ROOT / "book" / "_static"
COSTS = capacity.Costs(
    page_ms=1.3, task_ms=8, engine_task_ms=4, connection_ms=2, handshake_ms=1, load_ms=20,
    worker_second_ms=30, thread_second_ms=5, engine_second_ms=30,
    server_page_ms=0.5, server_batch_ms=2, memory_mib=100,
)  # fmt: skip


def told(row) -> list[str]:
    return [f"{row.machines:,.0f}", f"{row.schedulers:,.0f}", f"{row.dollars:,.0f}"]


@pytest.fixture
def shown(browser, tmp_path: Path):
    """The calculator on a page in a folder, without a network. Its errors end the test."""
    html = drawn(COSTS, 0.1, "Machines and money").html
    page = tmp_path / "page.html"
    page.write_text(
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>x</title><style>"
        f"{(STATIC / 'capacity.css').read_text()}</style><script>"
        f"{(STATIC / 'capacity.js').read_text()}</script></head><body>{html}</body></html>"
    )
    context = browser.new_context(offline=True, viewport={"width": 390, "height": 800})
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(error))
    tab.goto(page.as_uri())
    yield tab
    context.close()
    assert errors == []


def figures(tab) -> list[list[str]]:
    """Machines, schedulers and dollars of the two rows, stock first."""
    rows = tab.locator("tr[data-cured]").all()
    return [[cell.text_content() for cell in row.locator("td").all()[2:]] for row in rows]


def test_it_begins_with_what_the_still_says_which_is_the_model(shown) -> None:
    model = capacity.at_scale(COSTS, [1e9], cores=16, dollars_per_core_hour=0.1)
    expected = [told(row) for row in model.itertuples()]
    assert figures(shown) == expected
    for number in [*expected[0], *expected[1]]:
        assert f">{number}</td>" in drawn(COSTS, 0.1, "x").html


def test_a_slider_changes_what_the_model_would_change(shown) -> None:
    kept = shown.get_by_label("pages over one connection")
    kept.focus()
    kept.press("End")
    other = shown.get_by_label("other CPU for a page")
    other.focus()
    other.press("End")
    cents = shown.get_by_label("cents for an hour of a core")
    cents.focus()
    cents.press("End")
    pages = shown.get_by_label("pages:")
    pages.focus()
    pages.press("End")
    model = capacity.at_scale(
        COSTS, [1e10], pages_per_connection=1000, cores=16, dollars_per_core_hour=0.2, other_ms=50
    )
    assert set(model["schedulers"]) == {5}
    assert figures(shown) == [told(row) for row in model.itertuples()]
    assert (
        shown.get_by_label("pages over one connection").get_attribute("aria-valuetext") == "1,000"
    )


def test_it_fits_a_phone_and_loads_nothing(shown) -> None:
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("capacity.js", "capacity.css"):
        assert "http" not in (STATIC / name).read_text()


def test_without_javascript_the_table_stays(browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(drawn(COSTS, 0.1, "Machines and money").html)
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert tab.get_by_text("1,000,000,000 pages in 24 hours").is_visible()
    context.close()
