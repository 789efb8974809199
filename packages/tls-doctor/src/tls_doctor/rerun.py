"""The program again, with the change."""

from __future__ import division, print_function

import sys

from .advice import larger_pool
from .basis import DOES_NOT_APPLY, ITS_OWN
from .blocking import PATCHES
from .changes import one_of_each
from .clients import CHANGES, TRIALS, client_named
from .left_behind import is_library
from .verdicts import is_shared
from .wording import print_line, several, wrapped


def one_context_of_a_line(module):
    """Have each line of the program that makes contexts make one, for the same arguments."""
    original, lines = module.create_default_context, {}

    def create_default_context(*args, **kwargs):
        caller = sys._getframe(1)
        if is_library(caller.f_code.co_filename):
            return original(*args, **kwargs)
        line = caller.f_code, caller.f_lineno
        return lines.setdefault(line, one_of_each(original))(*args, **kwargs)

    module.create_default_context = create_default_context


def no_injection(module):
    """Have pyOpenSSL's injection do nothing."""
    module.inject_into_urllib3 = lambda: None


#: What can be applied beside what the records of clients have: its module, when that is imported.
APPLIED = {
    ITS_OWN: {"ssl": one_context_of_a_line},
    "injected": {
        "urllib3.contrib.pyopenssl": no_injection,
        "requests.packages.urllib3.contrib.pyopenssl": no_injection,
    },
}


def change_named(name):
    """Return {module: function that changes it} of one change, named as itself or as its client."""
    return APPLIED.get(name) or CHANGES.get(name) or client_named(name).applied


def to_apply(changes):
    """Return {module: function that changes it} of the names of some changes."""
    by_module = {}
    for name in changes:
        for module, change in change_named(name).items():
            by_module.setdefault(module, []).append(change)

    def all_of(functions):
        return lambda module: [change(module) for change in functions]

    return dict((module, all_of(functions)) for module, functions in by_module.items())


def apply_first(changes):
    """Do what has to come before the program: a loop's patch."""
    for name in changes:
        if name in PATCHES:
            exec(PATCHES[name], {})


def changes_in(report):
    """Return the names of the changes that a report asks for and that can be applied.

    They are clients, further changes of theirs, "injected", and loops that are to patch.
    """
    ids = [change["id"] for change in report["advice"]]
    changes = [name for name in ill_clients(report) if change_named(name)]
    changes += further_changes(report)
    if "injected" in ids:
        changes.append("injected")
    elif report["loop"] and {"patch", "patch-first", "patch-everything"} & set(ids):
        changes.append(report["loop"]["name"])
    return sorted(set(changes))


def further_changes(report):
    """Return the names of the changes that clients have beside that of one that is kept."""
    names = []
    pools = [change["add"] for change in report["advice"] if change["id"] == "larger-pool"]
    closes = "connection-close" in [change["id"] for change in report["advice"]]
    for row in report["counts"]["clients"]:
        client = client_named(row["client"])
        larger = larger_pool(row) if pools else None
        wanted = [client.larger_pool_change] if larger and larger[0] in pools else []
        wanted += [client.closing_change] if closes and row["closed"].get("program") else []
        names += [name for name in wanted if name in client.changes]
    return names


def ill_clients(report):
    """Return the clients whose loads are to be changed, as `try_changes` calls them."""
    if "keep-one" not in [change["id"] for change in report["advice"]]:
        return []
    counts = report["counts"]
    rows = [row for row in counts["clients"] if not row["kept"]]
    rows = [row for row in rows if row["loads"] > row["needed"] + 1]
    return [row["client"] or its_own(row) for row in rows if not is_kept_already(row, counts)]


def is_kept_already(row, counts):
    """Return whether a row's client is one that is shared, and loads for each connection."""
    return client_named(row["client"]).loads_each and is_shared(row, counts)


def its_own(row):
    """Return what contexts are called that no client makes.

    Those that the program's own lines make, by create_default_context, can be made once from
    outside.
    """
    return ITS_OWN if row["default"] == row["contexts"] else "the program's other contexts"


def run_again(report, run):
    """Return what came out when the program ran again with what its report asks for.

    A dictionary: "changes", "left" (clients that cannot be changed from outside), "why"
    (nothing ran, or None), "loads", "cpu_ms" and "event loop" (before, and now), "promises":
    rows of {"client", "promised", "loads"}, "kept" (None: no promise was made).

    run: makes the second report, given the changes.
    """
    result, changes = {"changes": [], "why": None, "promises": [], "kept": None}, changes_in(report)
    result["left"] = sorted(set(ill_clients(report)) - set(changes))
    ending = report["ended"]
    if ending["why"] or ending["raised"] or ending["status"]:
        return dict(result, why="it did not come to a good end the first time")
    if not changes:
        reason = (
            "the doctor cannot make this change from outside: make it, and run the doctor again"
        )
        return dict(result, why=reason if report["advice"] else "nothing is to be changed")
    print_line("running the program again, with the change (%s)" % ", ".join(changes))
    second = run(changes)
    for name in ("loads", "cpu_ms"):
        result[name] = [report["counts"][name], second["counts"][name]]
    result["event loop"] = [run_report["verdicts"]["event loop"] for run_report in (report, second)]
    loads_before, loads_now = by_client(report), by_client(second)
    # The context of urllib3's pools is made for them, as by the program.
    before, now = [totals.get(ITS_OWN, (0, 0))[0] for totals in (loads_before, loads_now)]
    own_loads = max(0, now - before)
    for name, tried in sorted(report.get("tried", {}).items()):
        client = client_named(TRIALS.get(name, name))
        is_of_pool = name in client.trials and name == client.larger_pool_change
        # How many threads ask at once may be another number the next time.
        if name in changes and not is_of_pool:
            loads, needed_loads = loads_now.get(client.name, (0, 0))
            loads += own_loads if name == "urllib3" else 0
            promised = max(tried["then"]["loads"], needed_loads)
            row = {"client": name, "promised": promised, "loads": loads}
            result["promises"].append(row)
    if result["promises"]:
        result["kept"] = all(row["loads"] <= row["promised"] for row in result["promises"])
    good = not (second["ended"]["raised"] or second["ended"]["why"] or second["ended"]["status"])
    reason = None if good else "with the change it did not come to a good end"
    return dict(result, changes=changes, why=reason)


def by_client(report):
    """Return {client, or ITS_OWN: (loads, needed)} of a run."""
    totals = {}
    for row in report["counts"]["clients"]:
        name = row["client"] or ITS_OWN
        loads, needed_loads = totals.get(name, (0, 0))
        totals[name] = loads + row["loads"], needed_loads + row["needed"]
    return totals


def again_lines(comparison):
    """Yield the lines of a report on the second run."""
    if comparison["left"] and comparison["changes"]:
        text = "%s: cannot be changed from outside, so nothing is promised."
        yield wrapped(text % ", ".join(comparison["left"]))
    if not comparison["changes"]:
        yield wrapped("The program was not run again: %s." % comparison["why"])
        return
    yield wrapped("applied from outside: %s" % ", ".join(comparison["changes"]))
    if comparison["why"]:
        yield wrapped("But %s." % comparison["why"])
    numbers = [several(number, "load") for number in comparison["loads"]]
    yield wrapped("%s before, %s now" % tuple(numbers))
    yield wrapped("%.0f ms of CPU before, %.0f ms now" % tuple(comparison["cpu_ms"]))
    if comparison["event loop"][0] != DOES_NOT_APPLY:
        yield wrapped("event loop: %s before, %s now" % tuple(comparison["event loop"]))
    for row in comparison["promises"]:
        text = "%(client)s: at most %(promised)d promised, and %(loads)d came out"
        yield wrapped(text % row)
    if comparison["kept"] is not None:
        yield wrapped("The promise was %skept." % ("" if comparison["kept"] else "not "))
