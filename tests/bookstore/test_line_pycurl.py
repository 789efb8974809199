"""Six cells of the table in *What to take*, taken once more by another bench.

libcurl fetches, by pycurl, and its own times are compared. Client, HTTP/2 and TLS are of another
make; store, line and books are the same.
"""

import json
from pathlib import Path

import here
import pandas as pd
import pytest

from casebook.cases.bookstore import line, stock
from casebook.cases.bookstore.line import ends, feasibility, situations, visits

#: Fetches the list, then the books: as streams of one connection, or over some of HTTP/1.1.
FETCHES = """
import io, json, sys, time
import pycurl
url, ca_file, streams, connections, ids = json.load(sys.stdin)
multi = pycurl.CurlMulti()
multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, connections)
version = pycurl.CURL_HTTP_VERSION_2TLS if streams else pycurl.CURL_HTTP_VERSION_1_1
spoken = set()

def fetch(paths):
    asked = {}
    for path in paths:
        curl, body = pycurl.Curl(), io.BytesIO()
        curl.setopt(pycurl.URL, url + path)
        curl.setopt(pycurl.CAINFO, ca_file)
        curl.setopt(pycurl.HTTP_VERSION, version)
        curl.setopt(pycurl.PIPEWAIT, streams)
        curl.setopt(pycurl.WRITEDATA, body)
        curl.setopt(pycurl.TIMEOUT, 30)
        multi.add_handle(curl)
        asked[path] = curl, body
    running = 1
    while running:
        _, running = multi.perform()
        due_ms = multi.timeout()
        if running and multi.select(due_ms / 1000 if due_ms >= 0 else 1.0) < 0:
            time.sleep(0.001)  # there is nothing to wait for yet
    for curl, _ in asked.values():
        assert curl.getinfo(pycurl.RESPONSE_CODE) == 200
        spoken.add(curl.getinfo(pycurl.INFO_HTTP_VERSION))
        multi.remove_handle(curl)
    return {path: json.loads(body.getvalue()) for path, (_, body) in asked.items()}

began = time.monotonic()
listed = fetch(["/"])["/"]
books = fetch(["/book?id=" + book for book in ids])
wall_s = time.monotonic() - began
print(json.dumps({"wall_s": wall_s, "listed": len(listed), "books": books, "spoken": [*spoken]}))
"""

#: The line and the store, and a client for each way and round, in turns.
BENCH = """
import json, subprocess, sys, tempfile
sys.path.insert(0, {folder!r})
import over
from ends import ADDRESSES, Ends
from wire import Wire
python, code, cell, ways, ids, rounds, carries = json.load(sys.stdin)
far = {{"latency_s": cell["latency_s"]}}
found = []
with tempfile.TemporaryDirectory() as folder, Ends() as ends:
    with over.store(ends, {{"least_bytes": cell["body_bytes"]}}, folder) as (ask, port, ca_file):
        url = "https://{{}}:{{}}".format(ADDRESSES["far"], port)
        for repeat in range(1, rounds + 1):
            lose = dict(cell["lose"], seed=repeat) if cell["lose"] else {{}}
            for way, (streams, connections) in sorted(ways.items(), reverse=repeat % 2 == 0):
                ask("reset")
                spec = [url, ca_file, streams, connections, ids]
                pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
                with Wire(ends.near, ends.far, far, dict(far, lose=lose)) as wire:
                    client = ends.start("near", [python, "-c", code], **pipes)
                    said, _ = client.communicate(json.dumps(spec).encode())
                wire.kept_up(carries)
                found.append(dict(json.loads(said), label=way, repeat=repeat,
                                  opened=ask("counters")["connections"]))
print(json.dumps(found))
"""

SMALL = {"body_bytes": 0, "lose": {}}
LARGE = {"body_bytes": 27_000, "lose": {}}
CELLS = {
    "small, 1 ms": {"latency_s": 0.001, **SMALL},
    "small, 4 ms": {"latency_s": 0.004, **SMALL},
    "small, 35 ms": {"latency_s": 0.035, **SMALL},
    "large, 4 ms": {"latency_s": 0.004, **LARGE},
    "large, 35 ms": {"latency_s": 0.035, **LARGE},
    "large, 35 ms, lossy": {"latency_s": 0.035, **LARGE, "lose": {"share": 0.02}},
}


@pytest.mark.nightly
@pytest.mark.skipif(bool(line.not_here()), reason="there can be no line here")
def test_libcurl_ranks_no_cell_the_other_way_round():
    """Both benches decide by rounds, and may not decide a cell for different ways."""
    bench, curl = here.environment(visits.STACK).python, here.environment("pycurl-today").python
    both = pd.concat([by_libcurl(bench, curl), by_the_book()], ignore_index=True)
    table = line.standings(both, ["bench", "cell"])
    behind = {
        cell: {each.bench: each.way for each in rows.itertuples() if each.outcome == "longer"}
        for cell, rows in table.groupby("cell")
    }
    assert {cell for cell, its in behind.items() if len(set(its.values())) > 1} == set(), table
    # Three round trips of 70 ms are far more than either client computes.
    assert behind["small, 35 ms"] == {"libcurl": "connections", "book": "connections"}, table


def by_libcurl(bench, curl):
    ids = stock.ids()[:13]
    books = {f"/book?id={book}": stock.books()[book] for book in ids}
    code = BENCH.format(folder=str(Path(ends.__file__).parent))
    rows = []
    for name, cell in CELLS.items():
        many = 13 if cell["body_bytes"] else 6
        ways = {"streams": (True, 1), "connections": (False, many)}
        asked = [str(curl), FETCHES, cell, ways, ids, 8, feasibility.line_capacity()["carries"]]
        done = here.run(bench, "-c", code, input=json.dumps(asked))
        assert done.returncode == 0, done.stderr
        for each in json.loads(done.stdout):
            assert each.pop("books") == books and each.pop("listed") == stock.SIZE
            opened, spoken = (1, [3]) if each["label"] == "streams" else (many, [2])
            assert each["opened"] == opened and each["spoken"] == spoken
            rows.append(each | {"bench": "libcurl", "cell": name})
    return pd.DataFrame(rows)


def by_the_book():
    frames = []
    for name, cell in CELLS.items():
        many = "pipes:13" if cell["body_bytes"] else "pipes:6"
        found = line.visit(
            [many, "bare-h2"], n=13, repeats=8, window_bytes=situations._WINDOWS[1], **cell
        )
        ways = found["client"].map({"pipes": "connections", "bare-h2": "streams"})
        frames.append(found.assign(label=ways, bench="book", cell=name))
    return pd.concat(frames, ignore_index=True)
