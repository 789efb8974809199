"""Connections to one store of HTTP/3 over a line, one after the other.

One JSON object in (standard input), one out. In: {"way" (of ends.Ends), "congestion",
"least_bytes", "chain" (as over.py has it), "tickets" (of ../serving/quic_store.py), "carries" (as
over.py has it), "there", "back" (as wire.Wire takes them), "visits": [{"script" ("sessions" or
"connects" of ../clients), and what that reads beside url, ca_file and path}]}.

Out: {"way", "book" (its id), "visits": [what the script answers; "server" (the store's counters);
"connections": [{"there", "back": bytes of IP, "begins": as `opening_bytes` returns them}, for each
connection in its order]; "late_ms", "most_late_ms", "busiest", "tries"]}. Or {"failed": what went
wrong, in words}.
"""

import json
import os
import sys
import tempfile

import over
from ends import ADDRESSES, Ends, NoLineError
from over_quic import QUIC_STORE
from wire import BACK, THERE

_CLIENTS = os.path.dirname(over.VISIT)


def answer(parameters):
    """Open the line and the store, and make the visits."""
    with open(over._BOOKS) as file:
        book = next(iter(json.load(file)))
    with (
        tempfile.TemporaryDirectory(prefix="casebook-line-") as folder,
        Ends(parameters["way"], parameters["congestion"]) as line,
        over.store(line, parameters, folder, QUIC_STORE) as serving,
    ):
        visits = [visited(line, serving, parameters, visit, book) for visit in parameters["visits"]]
        return {"way": line.way, "book": book, "visits": visits}


def visited(line, serving, parameters, visit, book):
    """Return what a script answered, and what each of its connections carried."""
    query, port, certificate = serving
    spec = dict(visit, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec["path"] = "/book?id=" + book
    script = os.path.join(_CLIENTS, visit["script"] + ".py")
    reply, wire, quality, _ = over.carried(
        line, query, parameters, script, spec, parameters["carries"]
    )
    counts = wire.counts()
    both = zip(*(counts[direction]["by_connection"] for direction in (THERE, BACK)), strict=False)
    carried = [
        {
            THERE: sent["bytes"],
            BACK: received["bytes"],
            "begins": opening_bytes(wire.packets, i, parameters),
        }
        for i, (sent, received) in enumerate(both)
    ]
    return dict(reply, server=query("counters"), connections=carried, **quality)


def opening_bytes(packets, connection, parameters):
    """Count the bytes of datagrams with which a connection begins, in both directions.

    There: what the client sends before it can have heard anything. Back: what the store sends
    before it can have heard of more than that.
    """
    traffic = [packet for packet in packets if packet["connection"] == connection]
    sent, received = (
        [packet for packet in traffic if packet["direction"] == direction]
        for direction in (THERE, BACK)
    )
    if not received:
        return {}
    heard_s = received[0]["t_s"] + parameters[BACK]["latency_s"]
    answers = (packet["t_s"] for packet in sent if packet["t_s"] >= heard_s)
    more_s = next(answers, float("inf")) + parameters[THERE]["latency_s"]
    return {
        THERE: sum(packet["bytes"] for packet in sent if packet["t_s"] < heard_s),
        BACK: sum(packet["bytes"] for packet in received if packet["t_s"] < more_s),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (over.VisitError, NoLineError, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
