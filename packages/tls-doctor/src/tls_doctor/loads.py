"""What loads of certificates cost."""

from __future__ import division, print_function

import linecache
import os
import sys

from .basis import OWN_FILE, TURNS, clock, cpu_clock
from .clients import clients_with_sessions, own_adapters, topmost
from .left_behind import is_library, loaded, try_import
from .wording import describe, readable, short

LOADS = ("load_verify_locations", "set_default_verify_paths")


class Watch(object):
    """A `with` block that notes the processor milliseconds of each load of certificates.

    It notes where pyOpenSSL is injected, too. It is a profile function, so that nothing is
    replaced: to wrap a class of `ssl` one has to import it. Imports take about twice as long
    under it; a load, which is one call, does not.
    """

    def __init__(self):
        self.loads, self.injections, self._depth = [], [], 0
        names = ("no_proxy", "NO_PROXY")
        self.environ = dict((name, os.environ[name]) for name in names if name in os.environ)

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._before)

    def _see(self, frame, event, arg):
        if event.startswith("c_"):
            name = getattr(arg, "__name__", None)
            is_load = name in LOADS
        else:
            name = frame.f_code.co_name
            # pyOpenSSL's are Python functions, and its default falls back to the other.
            is_load = name in LOADS and frame.f_globals.get("__name__") == "OpenSSL.SSL"
            if event == "call" and name == "inject_into_urllib3":
                self.injections.append(caller(frame.f_back))
        if is_load and event.endswith("call"):
            self._depth += 1
            if self._depth == 1:
                self._began = cpu_clock()
        elif is_load:
            self._depth -= 1
            if self._depth == 0:
                self.loads.append(1000 * (cpu_clock() - self._began))


def caller(frame):
    """Return {"file", "line", "text", "from"} of a frame that calls.

    from: the program's own line above it.
    """
    path, line = frame.f_code.co_filename, frame.f_lineno
    origin = {"file": short(path), "line": line, "from": None}
    origin["text"] = readable(linecache.getline(path, line)).strip()
    while frame is not None and frame.f_code.co_filename != OWN_FILE:
        path = frame.f_code.co_filename
        if not path.startswith("<") and not is_library(path):
            origin["from"] = "%s:%d" % (short(path), frame.f_lineno)
            break
        frame = frame.f_back
    return origin


def loads_of(work):
    """Return (the processor milliseconds of each load, the error or None) of one piece of work."""
    error = None
    with Watch() as watch:
        try:
            work()
        except Exception as caught:
            error = caught
    return watch.loads, error


def count_loads(client, server):
    """Return how often certificates are loaded by three connections of one session.

    And by one call without a session: {"client", "by_connection", "made", "by_call", "error"}.
    The connections are made with the trust that the library has by default, so they end at the
    certificate of the doctor's server, after the loads. (One that does not verify gets an
    answer.)
    """
    row = {
        "client": client.name,
        "by_connection": [],
        "by_call": None,
        "error": None,
        "each_ms": [],
    }
    url = server.url("https", 0, "last" + server.new_trial())
    with Watch() as watch:
        session = client.session()
    row["made"] = len(watch.loads)
    for _ in range(3):
        loads, error = loads_of(lambda: session.fetch(url))
        row["by_connection"].append(len(loads))
        row["each_ms"] += [round(ms, 3) for ms in loads]
        if error and "certificate verify failed" not in describe(error).lower():
            row["error"] = row["error"] or describe(error)
    session.close()
    if client.has_get:
        row["by_call"] = len(loads_of(lambda: loaded(client.module).get(url))[0])
    return row


def check_loads(server, imported, watch, deadline):
    """Return a row of `count_loads` for each client that is here.

    What the program did not import comes last, in our own process alone, and if there is time.
    """
    rows, candidates = [], [client for client in own_adapters() if client.adapter]
    candidates += sorted(clients_with_sessions(), key=lambda client: client.module not in imported)
    for client in candidates:
        its_own = client.module in imported
        if not its_own and (not watch or (imported and clock() > deadline)):
            continue
        with Watch() as importing:
            if not try_import(client.module):
                continue
        try:
            row = count_loads(client, server)
        except Exception as error:
            row = {"client": client.name, "error": describe(error), "by_call": None}
        row.update(imported=its_own, adapter=client.adapter, at_import=len(importing.loads))
        rows.append(row)
    return rows


def judged_rows(rows, program):
    """Return the rows of loads that count: of the clients that the program imported.

    If no program was named, of requests. A session's own adapter counts for requests as a
    whole.
    """
    judged = [row for row in rows if row["imported"]]
    if not program:
        judged = judged or [row for row in rows if row["client"] == "requests"]
    judged = [row for row in judged if not (row["adapter"] and row["error"])]
    names = topmost([row["client"] for row in judged])
    stock = "requests" if any(row["adapter"] for row in judged) else None
    return [row for row in judged if row["client"] in names and row["client"] != stock]


def bounds(values):
    """Return [least, most] without the very least and the very most.

    Of eleven values those two have the median between them with a certainty of 98.8 %, whatever
    the noise looks like. Of fewer, all count.
    """
    values = sorted(values)[1:-1] if len(values) >= TURNS else sorted(values)
    return [round(values[0], 2), round(values[-1], 2)]


def certificates_of_a_load():
    """Return how many there are if verify=True means a file; None if it means the system's."""
    try:
        variables = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if loaded("requests") else ()
        paths = [os.environ[name] for name in variables if os.environ.get(name)]
        sources = [getattr(loaded(name), "certs", None) for name in ("requests", "niquests")]
        paths += [source.where() for source in sources + [loaded("certifi")] if source]
        with open(paths[0], "rb") as file:
            return file.read().count(b"BEGIN CERTIFICATE")
    except Exception:
        return None


def cost_of_a_load(rows, watch):
    """Return [least, most] milliseconds of one load, as the program or the clients here do it.

    If none of them loads, of one into a new context of the standard library's.
    """
    import ssl

    spent = [ms for row in rows if row["imported"] for ms in row.get("each_ms", ())]
    spent = spent or (watch.loads if watch else [])
    spent = spent or [ms for row in rows for ms in row.get("each_ms", ())]
    spent = spent or loads_of(lambda: [ssl.create_default_context() for _ in range(TURNS)])[0]
    return bounds(spent) if spent else None
