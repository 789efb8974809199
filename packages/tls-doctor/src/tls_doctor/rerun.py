"""The program again, with the change."""

from __future__ import division, print_function

import os
import sys

from .basis import DOES_NOT_APPLY, ITS_OWN
from .blocking import PATCHES
from .left_behind import is_library
from .probes import says_close
from .tally import is_shared
from .wording import say, several, wrapped

#: More than a program has threads, or hosts.
PLACES = 1000

# What is applied stands in for a line of the program: it does what the line would do, from outside.


def keep_connections(module):
    """Have sessions of requests share one pool of connections, as one session that is kept would.
    An adapter of the program's own stays as it is.
    """
    adapter, pools = module.HTTPAdapter, {}
    original, leave = adapter.init_poolmanager, adapter.close

    def init_poolmanager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if type(self) is adapter:
            key = os.getpid(), args, tuple(sorted(kwargs.items()))  # no child takes ours
            self.poolmanager = pools.setdefault(key, self.poolmanager)

    def close(self):
        if type(self) is not adapter:
            leave(self)

    adapter.init_poolmanager, adapter.close = init_poolmanager, close


def keep_all_connections(module):
    """Give pools of requests a place for every connection, as a larger one would have, and keep
    those to every host. An adapter of the program's own stays as it is.
    """
    adapter = module.HTTPAdapter
    original = adapter.init_poolmanager

    def init_poolmanager(self, connections, maxsize, block=False, **options):
        if type(self) is adapter and not block:
            connections, maxsize = max(connections, PLACES), max(maxsize, PLACES)
        original(self, connections, maxsize, block=block, **options)

    adapter.init_poolmanager = init_poolmanager


def one_of_each(function):
    """Return a function that makes a context once for each set of arguments and each process."""
    contexts, lock = {}, {}

    def make_once(*args, **kwargs):
        import threading  # not before the program has the chance to patch it

        key = os.getpid(), args, tuple(sorted(kwargs.items()))
        try:
            hash(key)
        except TypeError:  # what cannot be compared
            return function(*args, **kwargs)
        with lock.setdefault(os.getpid(), threading.Lock()):
            if key not in contexts:
                contexts[key] = function(*args, **kwargs)
            return contexts[key]

    return make_once


def one_context_of_httpx(module):
    module.create_ssl_context = one_of_each(module.create_ssl_context)


def one_context_of_ssl(module):
    module._create_default_https_context = one_of_each(module._create_default_https_context)


def one_context_of_httplib2(module):
    module._build_ssl_context = one_of_each(module._build_ssl_context)


def one_context_of_tornado(module):
    """Give requests that name the same certificates one context."""
    kind, contexts = module._HTTPConnection, {}
    original = kind._get_ssl_options

    def _get_ssl_options(self, scheme):
        request = self.request
        if scheme != "https" or request.ssl_options is not None:
            return original(self, scheme)
        key = (
            os.getpid(),
            request.validate_cert,
            request.ca_certs,
            request.client_cert,
            request.client_key,
        )
        if key not in contexts:
            contexts[key] = original(self, scheme)
        return contexts[key]

    kind._get_ssl_options = _get_ssl_options


def one_client_of_botocore(module):
    """Have clients with the same settings share one pool of connections, as one that is kept
    would.
    """
    kind, managers = module.URLLib3Session, {}
    original = kind.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        key = os.getpid(), repr(args), repr(sorted(kwargs.items()))
        self._manager = managers.setdefault(key, self._manager)

    kind.__init__, kind.close = __init__, lambda self: None


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


def one_context_of_pools(module):
    """Give pools that the program makes by itself one context for each file of certificates."""
    import ssl

    context = one_of_each(ssl.create_default_context)
    needs = "ssl_context cert_file ca_cert_dir ca_cert_data ssl_version".split()
    verifies = (None, ssl.CERT_REQUIRED, "CERT_REQUIRED", "REQUIRED")

    def with_context(kind):
        original = kind.__init__

        def __init__(self, *args, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            plain = options.get("cert_reqs") in verifies and not any(map(options.get, needs))
            if caller not in ("requests", "urllib3") and plain:
                options["ssl_context"] = context(cafile=options.pop("ca_certs", None))
            original(self, *args, **options)

        kind.__init__ = __init__

    with_context(module.PoolManager)
    with_context(module.HTTPSConnectionPool)


def no_injection(module):
    module.inject_into_urllib3 = lambda: None


def no_closing(module):
    """Have requests go without the header that closes their connection."""
    kind = module.HTTPConnection
    original = kind.putheader

    def putheader(connection, header, *values):
        return None if says_close(header, values) else original(connection, header, *values)

    kind.putheader = putheader


#: What can be applied: its module, when that has been imported.
APPLIED = {
    "requests": {"requests.adapters": keep_connections},
    "larger-pool": {"requests.adapters": keep_all_connections},
    "connection-close": {"http.client": no_closing, "httplib": no_closing},
    "httpx": {"httpx._config": one_context_of_httpx},
    "httpx2": {"httpx2._config": one_context_of_httpx},
    "httplib2": {"httplib2": one_context_of_httplib2},
    "tornado": {"tornado.simple_httpclient": one_context_of_tornado},
    "botocore": {"botocore.httpsession": one_client_of_botocore},
    ITS_OWN: {"ssl": one_context_of_a_line},
    "http.client": {"ssl": one_context_of_ssl},
    "urlopen": {"ssl": one_context_of_ssl},
    "urllib3": {"urllib3.poolmanager": one_context_of_pools},
    "injected": {
        "urllib3.contrib.pyopenssl": no_injection,
        "requests.packages.urllib3.contrib.pyopenssl": no_injection,
    },
}


def to_apply(changes):
    """Return {module: function that changes it} of the names of some changes."""
    by_module = {}
    for name in changes:
        for module, change in APPLIED.get(name, {}).items():
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
    """Return the names of the changes that a report asks for and that can be applied: clients,
    "injected", and loops that are to patch.
    """
    ids = [change["id"] for change in report["advice"]]
    changes = [name for name in ill_clients(report) if name in APPLIED]
    if any(
        change["id"] == "larger-pool" and "requests" in change["add"] for change in report["advice"]
    ):
        changes.append("larger-pool")
    if "connection-close" in ids and any(
        row["closed"].get("program") and row["client"] in ("requests", "urllib3")
        for row in report["counts"]["clients"]
    ):
        changes.append("connection-close")
    if "injected" in ids:
        changes.append("injected")
    elif report["loop"] and {"patch", "patch-first", "patch-everything"} & set(ids):
        changes.append(report["loop"]["name"])
    return sorted(set(changes))


def ill_clients(report):
    """Return the clients whose loads are to be changed, as `try_changes` calls them."""
    if "keep-one" not in [change["id"] for change in report["advice"]]:
        return []
    counts = report["counts"]
    rows = [row for row in counts["clients"] if not row["kept"]]
    rows = [row for row in rows if row["loads"] > row["needed"] + 1]
    # A Session that is shared is kept already.
    rows = [row for row in rows if row["client"] != "requests" or not is_shared(row, counts)]
    return [row["client"] or its_own(row) for row in rows]


def its_own(row):
    """Return what contexts are called that no client makes: those that the program's own lines
    make, by create_default_context, can be made once from outside.
    """
    return ITS_OWN if row["default"] == row["contexts"] else "the program's other contexts"


def run_again(report, run):
    """Return what came out when the program ran again with what its report asks for, beside what
    was promised: {"changes", "left" (clients that cannot be changed from outside), "why" (nothing
    ran, or None), "loads", "cpu_ms" and "event loop" (before, and now), "promises": rows of
    {"client", "promised", "loads"}, "kept" (None: none was made)}.

    run: a function of the changes that makes the second report.
    """
    result, changes = {"changes": [], "why": None, "promises": [], "kept": None}, changes_in(report)
    result["left"] = sorted(set(ill_clients(report)) - set(changes))
    ending = report["ended"]
    if ending["why"] or ending["raised"] or ending["status"]:
        return dict(result, why="it did not come to a good end the first time")
    if not changes:
        keeps = "keep-one" in [change["id"] for change in report["advice"]]
        reason = (
            "the doctor cannot make this change from outside: make it, and run the doctor again"
        )
        return dict(result, why=reason if keeps or report["advice"] else "nothing is to be changed")
    say("running the program again, with the change (%s)" % ", ".join(changes))
    second = run(changes)
    for name in ("loads", "cpu_ms"):
        result[name] = [report["counts"][name], second["counts"][name]]
    result["event loop"] = [run_report["verdicts"]["event loop"] for run_report in (report, second)]
    loads_before, loads_now = by_client(report), by_client(second)
    # The context of urllib3's pools is made for them, as by the program.
    own_loads = max(0, loads_now.get(ITS_OWN, (0, 0))[0] - loads_before.get(ITS_OWN, (0, 0))[0])
    for client, tried in sorted(report.get("tried", {}).items()):
        # How many threads ask at once may be another number the next time.
        if client in changes and client != "larger-pool":
            counted_as = "requests" if client == "connection-close" else client
            loads, needed_loads = loads_now.get(counted_as, (0, 0))
            loads += own_loads if client == "urllib3" else 0
            promised = max(tried["then"]["loads"], needed_loads)
            row = {"client": client, "promised": promised, "loads": loads}
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
