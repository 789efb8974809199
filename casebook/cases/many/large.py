"""Ten thousand pages, near and far, stock and cured: what no quick build has the minutes for.

    runs = measure()      # beside each, what the model says of it (capacity.with_predictions)

A full build crawls them. In the quick mode the answers of a machine file stand in, and so do those
that the model's costs are made of: the costs of one machine say nothing of the crawls of another.
"""

from dataclasses import replace

import pandas as pd

from casebook.cases.fetching import modes
from casebook.cases.many import capacity, costs, jobs
from casebook.errors import MissingInterpreter

PAGES = 10_000
#: What is crawled, by what pages of the book call it.
CRAWLED = {
    f"{variant}, {delay_s} s": {
        "pages": PAGES, "size": 25, "cured": variant == "cured", "delay_s": delay_s,
    }
    for variant in ("stock", "cured")
    for delay_s in (0, 0.1)
}  # fmt: skip
#: What the costs are found from: batches of other sizes, and with requests a connection for each.
ENDS = {"5": {"pages": 400, "size": 5}, "100": {"pages": 1600, "size": 100}}
CLIENTS = ("requests-stock", "requests-cured")
ROUNDS = 3

#: Why there may be no runs, for a page.
NOWHERE = "a full build crawls ten thousand pages, and no machine in the book was asked this"


def measure() -> pd.DataFrame:
    """Crawl, and compare with the model, whose costs are measured before.

    Returns one row per crawl, as capacity.with_predictions has it: measured in the full mode, else
    of the machine file that has all of it; no row where none has. Raises as jobs.measure.
    """
    crawls, pages = (replace(experiment, lacks=_lacks) for experiment in (jobs.CRAWLS, costs.PAGES))
    try:
        curve = jobs.measure(ENDS, repeats=ROUNDS, experiment=crawls)
        threads = capacity.WAITING_THREADS
        waits = jobs.measure(capacity.WAITS, threads=threads, repeats=ROUNDS, experiment=crawls)
        model = capacity.fit_costs(
            curve, costs.measure(CLIENTS, repeats=ROUNDS, experiment=pages), waits
        )
        parts = [
            jobs.measure({name: job}, threads=16, experiment=crawls)
            for name, job in CRAWLED.items()
        ]
    except MissingInterpreter:
        if not _lacks():
            raise
        return pd.DataFrame()
    runs = pd.concat(parts, ignore_index=True)
    if pd.concat([curve, runs])["instead"].nunique() > 1:
        return pd.DataFrame()
    return capacity.with_predictions(model, runs)


def _lacks() -> str:
    return "" if modes.current() == modes.FULL else f"{NOWHERE} (CASEBOOK_MODE=full)"
