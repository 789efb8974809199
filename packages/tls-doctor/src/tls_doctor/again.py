"""The program again, with the change."""

from __future__ import division, print_function

import os
import sys

from .basis import DOES_NOT_APPLY, ITS_OWN
from .blocking import PATCHES
from .counts import is_shared
from .left_behind import is_library
from .probes import says_close
from .words import say, several, wrapped

#: More than a program has threads, or hosts.
PLACES = 1000

# What is applied stands in for a line of the program: it does what the line would do, from outside.


def keep_connections(module):
    """Sessions of requests share one pool of connections, as one that is kept would have it. An
    adapter of the program's own stays as it is."""
    adapter, kept = module.HTTPAdapter, {}
    make, leave = adapter.init_poolmanager, adapter.close

    def init_poolmanager(self, *args, **kwargs):
        make(self, *args, **kwargs)
        if type(self) is adapter:
            key = os.getpid(), args, tuple(sorted(kwargs.items()))  # no child takes ours
            self.poolmanager = kept.setdefault(key, self.poolmanager)

    def close(self):
        if type(self) is not adapter:
            leave(self)

    adapter.init_poolmanager, adapter.close = init_poolmanager, close


def keep_all_connections(module):
    """Pools of requests have a place for every connection, as a larger one would have, and keep
    those to every host. An adapter of the program's own stays as it is."""
    adapter = module.HTTPAdapter
    make = adapter.init_poolmanager

    def init_poolmanager(self, connections, maxsize, block=False, **options):
        if type(self) is adapter and not block:
            connections, maxsize = max(connections, PLACES), max(maxsize, PLACES)
        make(self, connections, maxsize, block=block, **options)

    adapter.init_poolmanager = init_poolmanager


def one_of_each(function):
    """A function that makes a context once for each set of arguments and each process."""
    made, lock = {}, {}

    def make(*args, **kwargs):
        import threading  # not before the program has the chance to patch it

        key = os.getpid(), args, tuple(sorted(kwargs.items()))
        try:
            hash(key)
        except TypeError:  # what cannot be compared
            return function(*args, **kwargs)
        with lock.setdefault(os.getpid(), threading.Lock()):
            if key not in made:
                made[key] = function(*args, **kwargs)
            return made[key]

    return make


def one_context_of_httpx(module):
    module.create_ssl_context = one_of_each(module.create_ssl_context)


def one_context_of_ssl(module):
    module._create_default_https_context = one_of_each(module._create_default_https_context)


def one_context_of_httplib2(module):
    module._build_ssl_context = one_of_each(module._build_ssl_context)


def one_context_of_tornado(module):
    """Requests that name the same certificates get one context."""
    kind, made = module._HTTPConnection, {}
    make = kind._get_ssl_options

    def _get_ssl_options(self, scheme):
        asked = self.request
        if scheme != "https" or asked.ssl_options is not None:
            return make(self, scheme)
        key = os.getpid(), asked.validate_cert, asked.ca_certs, asked.client_cert, asked.client_key
        if key not in made:
            made[key] = make(self, scheme)
        return made[key]

    kind._get_ssl_options = _get_ssl_options


def one_client_of_botocore(module):
    """Clients with the same settings share one pool of connections, as one that is kept has it."""
    kind, kept = module.URLLib3Session, {}
    make = kind.__init__

    def __init__(self, *args, **kwargs):
        make(self, *args, **kwargs)
        key = os.getpid(), repr(args), repr(sorted(kwargs.items()))
        self._manager = kept.setdefault(key, self._manager)

    kind.__init__, kind.close = __init__, lambda self: None


def one_context_of_a_line(module):
    """Each line of the program that makes contexts makes one, for the same arguments."""
    make, lines = module.create_default_context, {}

    def create_default_context(*args, **kwargs):
        caller = sys._getframe(1)
        if is_library(caller.f_code.co_filename):
            return make(*args, **kwargs)
        line = caller.f_code, caller.f_lineno
        return lines.setdefault(line, one_of_each(make))(*args, **kwargs)

    module.create_default_context = create_default_context


def one_context_of_pools(module):
    """Pools that the program makes by itself get one context for each file of certificates."""
    import ssl

    context = one_of_each(ssl.create_default_context)
    needs = "ssl_context cert_file ca_cert_dir ca_cert_data ssl_version".split()
    verifies = (None, ssl.CERT_REQUIRED, "CERT_REQUIRED", "REQUIRED")

    def with_context(kind):
        make = kind.__init__

        def __init__(self, *args, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            plain = options.get("cert_reqs") in verifies and not any(map(options.get, needs))
            if caller not in ("requests", "urllib3") and plain:
                options["ssl_context"] = context(cafile=options.pop("ca_certs", None))
            make(self, *args, **options)

        kind.__init__ = __init__

    with_context(module.PoolManager)
    with_context(module.HTTPSConnectionPool)


def no_injection(module):
    module.inject_into_urllib3 = lambda: None


def no_closing(module):
    """Requests go without the header that has their connection closed."""
    kind = module.HTTPConnection
    put = kind.putheader

    def putheader(connection, header, *values):
        return None if says_close(header, values) else put(connection, header, *values)

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
    """{module: function that changes it} of the names of some changes."""
    found = {}
    for name in changes:
        for module, change in APPLIED.get(name, {}).items():
            found.setdefault(module, []).append(change)

    def all_of(those):
        return lambda module: [change(module) for change in those]

    return dict((module, all_of(those)) for module, those in found.items())


def apply_first(changes):
    """Do what has to come before the program: a loop's patch."""
    for name in changes:
        if name in PATCHES:
            exec(PATCHES[name], {})


def changes_in(report):
    """The names of the changes that a report asks for and that can be applied: clients, "injected",
    and loops that are to patch."""
    ids = [each["id"] for each in report["advice"]]
    changes = [name for name in ill_clients(report) if name in APPLIED]
    if any(each["id"] == "larger-pool" and "requests" in each["add"] for each in report["advice"]):
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
    """The clients whose loads are to be changed, as `try_changes` calls them."""
    if "keep-one" not in [each["id"] for each in report["advice"]]:
        return []
    counts = report["counts"]
    rows = [row for row in counts["clients"] if not row["kept"]]
    rows = [row for row in rows if row["loads"] > row["needed"] + 1]
    # A Session that is shared is kept already.
    rows = [row for row in rows if row["client"] != "requests" or not is_shared(row, counts)]
    return [row["client"] or its_own(row) for row in rows]


def its_own(row):
    """What contexts are called that no client makes: those that the program's own lines make, by
    create_default_context, can be made once from outside."""
    return ITS_OWN if row["default"] == row["contexts"] else "the program's other contexts"


def run_again(report, run):
    """What came out when the program ran again with what its report asks for, beside what was
    promised: {"changes", "left" (clients that cannot be changed from outside), "why" (nothing ran,
    or None), "loads", "cpu_ms" and "event loop" (before, and now), "promises": rows of {"client",
    "promised", "loads"}, "kept" (None: none was made)}.

    run: a function of the changes that makes the second report.
    """
    found, changes = {"changes": [], "why": None, "promises": [], "kept": None}, changes_in(report)
    found["left"] = sorted(set(ill_clients(report)) - set(changes))
    ended = report["ended"]
    if ended["why"] or ended["raised"] or ended["status"]:
        return dict(found, why="it did not come to a good end the first time")
    if not changes:
        asked = "keep-one" in [each["id"] for each in report["advice"]]
        why = "the doctor cannot make this change from outside: make it, and run the doctor again"
        return dict(found, why=why if asked or report["advice"] else "nothing is to be changed")
    say("running the program again, with the change (%s)" % ", ".join(changes))
    second = run(changes)
    for name in ("loads", "cpu_ms"):
        found[name] = [report["counts"][name], second["counts"][name]]
    found["event loop"] = [each["verdicts"]["event loop"] for each in (report, second)]
    before, now = by_client(report), by_client(second)
    # The context of urllib3's pools is made for them, as by the program.
    own = max(0, now.get(ITS_OWN, (0, 0))[0] - before.get(ITS_OWN, (0, 0))[0])
    for client, tried in sorted(report.get("tried", {}).items()):
        # How many threads ask at once may be another number the next time.
        if client in changes and client != "larger-pool":
            of = "requests" if client == "connection-close" else client
            loads, needed = now.get(of, (0, 0))
            loads += own if client == "urllib3" else 0
            promised = max(tried["then"]["loads"], needed)
            row = {"client": client, "promised": promised, "loads": loads}
            found["promises"].append(row)
    if found["promises"]:
        found["kept"] = all(row["loads"] <= row["promised"] for row in found["promises"])
    good = not (second["ended"]["raised"] or second["ended"]["why"] or second["ended"]["status"])
    why = None if good else "with the change it did not come to a good end"
    return dict(found, changes=changes, why=why)


def by_client(report):
    """{client, or ITS_OWN: (loads, needed)} of a run."""
    found = {}
    for row in report["counts"]["clients"]:
        name = row["client"] or ITS_OWN
        loads, needed = found.get(name, (0, 0))
        found[name] = loads + row["loads"], needed + row["needed"]
    return found


def again_lines(again):
    if again["left"] and again["changes"]:
        text = "%s: cannot be changed from outside, so nothing is promised."
        yield wrapped(text % ", ".join(again["left"]))
    if not again["changes"]:
        yield wrapped("The program was not run again: %s." % again["why"])
        return
    yield wrapped("applied from outside: %s" % ", ".join(again["changes"]))
    if again["why"]:
        yield wrapped("But %s." % again["why"])
    numbers = [several(each, "load") for each in again["loads"]]
    yield wrapped("%s before, %s now" % tuple(numbers))
    yield wrapped("%.0f ms of CPU before, %.0f ms now" % tuple(again["cpu_ms"]))
    if again["event loop"][0] != DOES_NOT_APPLY:
        yield wrapped("event loop: %s before, %s now" % tuple(again["event loop"]))
    for row in again["promises"]:
        text = "%(client)s: at most %(promised)d promised, and %(loads)d came out"
        yield wrapped(text % row)
    if again["kept"] is not None:
        yield wrapped("The promise was %skept." % ("" if again["kept"] else "not "))
