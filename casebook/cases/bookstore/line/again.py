"""Connections to one store of HTTP/3 over a line, one after the other: one JSON object in (standard
input), one out.

In: {"way" (of ends.Ends), "congestion", "least_bytes", "chain" (as over.py has it), "tickets" (of
../serving/quic_store.py),
"carries" (as over.py has it), "there", "back" (as wire.Wire takes them), "visits": [{"script"
("sessions" or "connects" of ../clients), and what that reads beside url, ca_file and path}]}.

Out: {"way", "book" (its id), "visits": [what the script answers; "server" (the store's counters);
"connections": [{"there", "back": bytes of IP, "begins": what `begins` says}, for each connection in
its order]; "late_ms",
"most_late_ms", "busiest", "tries"]}. Or {"failed": what went wrong, in words}.
"""

import json
import os
import sys
import tempfile

import over
from ends import ADDRESSES, Ends, NoLine
from over_quic import QUIC_STORE
from wire import BACK, THERE

_CLIENTS = os.path.dirname(over.VISIT)


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
    """What a script answered, and what each of its connections carried."""
    ask, port, certificate = serving
    spec = dict(visit, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec["path"] = "/book?id=" + book
    script = os.path.join(_CLIENTS, visit["script"] + ".py")
    seen, wire, told, _ = over.carried(ends, ask, asked, script, spec, asked["carries"])
    counts = wire.counts()
    both = zip(*(counts[way]["by_connection"] for way in (THERE, BACK)), strict=False)
    carried = [
        {THERE: there["bytes"], BACK: back["bytes"], "begins": begins(wire.packets, i, asked)}
        for i, (there, back) in enumerate(both)
    ]
    return dict(seen, server=ask("counters"), connections=carried, **told)


def begins(packets, connection, asked):
    """Bytes of datagrams with which a connection begins: what the client sends before it can have
    heard anything, and what the store sends before it can have heard of more than that."""
    own = [each for each in packets if each["connection"] == connection]
    there, back = ([each for each in own if each["direction"] == way] for way in (THERE, BACK))
    if not back:
        return {}
    heard_s = back[0]["t_s"] + asked[BACK]["latency_s"]
    answers = (each["t_s"] for each in there if each["t_s"] >= heard_s)
    more_s = next(answers, float("inf")) + asked[THERE]["latency_s"]
    return {
        THERE: sum(each["bytes"] for each in there if each["t_s"] < heard_s),
        BACK: sum(each["bytes"] for each in back if each["t_s"] < more_s),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (over.Failed, NoLine, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
