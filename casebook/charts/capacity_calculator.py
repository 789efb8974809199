"""A calculator on the page: machines and money for a job, by the model of casebook.cases.many.

The page's sliders are made by book/_static/capacity.js; without JavaScript, and in JupyterLab,
the table stays as it is here.
"""

import json
from dataclasses import asdict
from html import escape
from typing import Any

from casebook.cases.many import capacity as model
from casebook.charts.tables import Table
from casebook.colours import style
from casebook.mistakes import for_readers

#: What can be chosen, as it is at first and in the still picture.
FIRST = {
    "pages": 1e9,
    "pages_per_connection": 1,
    "hours": 24,
    "cores": 16,
    "other_ms": 0,
}  # and the price

#: Pages per batch, not for choice: with that many the engine costs next to nothing.
SIZE = 100


@for_readers
def capacity(costs: model.Costs, dollars_per_core_hour: float, title: str) -> Table:
    """Show machines and money, stock and cured, for what the reader chooses.

    The reader chooses pages, how many of them share a connection, hours, cores of a machine, CPU
    per page for other work, and the price of a core.

    costs: as capacity.fit_costs returns them. dollars_per_core_hour: the price of a core at
    first. title: the caption. The numbers are those of model.at_scale; the still picture is one
    case of them.
    """
    first = model.at_scale(
        costs, [FIRST["pages"]], size=SIZE, pages_per_connection=FIRST["pages_per_connection"],
        hours=FIRST["hours"], cores=int(FIRST["cores"]),
        dollars_per_core_hour=dollars_per_core_hour,
    )  # fmt: skip
    chosen = {**FIRST, "cents": 100 * dollars_per_core_hour}
    data = {**asdict(costs), "size": SIZE, "first": chosen}
    summary = (
        f"{FIRST['pages']:,.0f} pages in {FIRST['hours']} hours, a new connection for each, on "
        f"machines of {FIRST['cores']} cores, at {chosen['cents']:.1f} cents an hour a core, "
        "and nothing but fetching"
    )
    heads = ("certificates", "CPU for a page, ms", "pages a second on a machine", "machines",
             "schedulers", "dollars")  # fmt: skip
    rows = "".join(
        f'<tr data-cured="{int(row.way == model.CURE_LABELS[True])}"><th scope="row">{row.way}</th>'
        + "".join(
            f'<td data-title="{column}">{number}</td>'
            for column, number in zip(heads[1:], _numbers(row), strict=True)
        )
        + "</tr>"
        for row in first.itertuples()
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    html = (
        f"{style()}"
        f'<div class="cb capacity" data-costs="{escape(json.dumps(data))}">'
        f'<p class="capacity-said">{summary}:</p><div class="capacity-table" tabindex="0" '
        f'role="region" aria-label="{escape(title)}"><table><caption>{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></div>"
    )
    text = "\n".join(
        f"{row.way}: {row.machines:,} machines, {row.schedulers:,} schedulers, "
        f"{row.dollars:,.0f} dollars"
        for row in first.itertuples()
    )
    return Table(html, f"{title}. {summary}:\n{text}")


def _numbers(row: Any) -> list[str]:
    """Return the numbers of a row, in the order of the columns."""
    per_s = 1000 * FIRST["cores"] / row.cpu_ms
    counts = [f"{n:,.0f}" for n in (per_s, row.machines, row.schedulers, row.dollars)]
    return [f"{row.cpu_ms:.1f}", *counts]
