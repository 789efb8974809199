"""Connections to one store of HTTP/3 over a line, one after the other: one JSON object in (standard
input), one out.

In: {"way" (of ends.Ends), "congestion", "least_bytes", "tickets" (of ../serving/quic_store.py),
"there", "back" (as wire.Wire takes them), "visits": [{"script" ("sessions" or "connects" of
../clients), and what that reads beside url, ca_file and path}]}.

Out: {"way", "book" (its id), "visits": [what the script answers; "server" (the store's counters);
"connections": [{"there", "back"}, bytes of IP, for each connection in its order]; "late_ms",
"most_late_ms", "tries"]}. Or {"failed": what went wrong, in words}.
"""

import json
import os
import subprocess
import sys
import tempfile

import over
from ends import ADDRESSES, Ends, NoLine
from over_quic import QUIC_STORE
from wire import BACK, THERE, TooMuch, Wire

_CLIENTS = os.path.dirname(over._VISIT)


def answer(asked):
    with open(over._BOOKS) as file:
        book = next(iter(json.load(file)))
    with (
        tempfile.TemporaryDirectory(prefix="casebook-line-") as folder,
        Ends(asked["way"], asked["congestion"]) as ends,
        over.store(ends, asked, folder, QUIC_STORE) as serving,
    ):
        visits = [visited(ends, serving, asked, visit, book) for visit in asked["visits"]]
        return {"way": ends.way, "book": book, "visits": visits}


def visited(ends, serving, asked, visit, book):
    """One script, as often as it takes until the line kept up."""
    ask, port, certificate = serving
    spec = dict(visit, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec["path"] = "/book?id=" + book
    command = [sys.executable, os.path.join(_CLIENTS, visit["script"] + ".py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for tries in range(1, over._TRIES + 1):
        ask("reset")
        with Wire(ends.near, ends.far, asked["there"], asked["back"]) as wire:
            process = ends.start("near", command, **pipes)
            said, _ = process.communicate(json.dumps(spec).encode())
        try:
            kept = wire.kept_up()
        except TooMuch as error:
            too_much = error
            continue
        seen = json.loads(said or b'{"failure": "it said nothing"}')
        if seen["failure"]:
            raise over.Failed("{} failed: {}".format(visit["script"], seen["failure"]))
        counts = wire.counts()
        both = zip(*(counts[way]["by_connection"] for way in (THERE, BACK)), strict=False)
        carried = [{THERE: there["bytes"], BACK: back["bytes"]} for there, back in both]
        return dict(seen, server=ask("counters"), connections=carried, tries=tries, **kept)
    raise over.Failed(f"the line could not keep up, {over._TRIES} times: {too_much}")


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (over.Failed, NoLine, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
