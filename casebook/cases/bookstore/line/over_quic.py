"""A round of visits over a line with three protocols: one JSON object in (standard input), one out.

As over.py, with two stores at the far end: one for TCP, and aioquic's for what asks for "h3". In
and out are the same; "serves" names the script of ../serving that is the one for TCP (Twisted's,
where nothing is said). Each visit also has "server_cpu_s", user and system CPU seconds of its
store, and "lost_at_s": when the first packet that was lost came to the middle of the line, in
seconds since the client's first did (null: none was lost).
"""

import json
import os
import sys
import tempfile

import over
from ends import Ends, NoLineError

_SERVING = os.path.dirname(over._STORE)
QUIC_STORE = os.path.join(_SERVING, "quic_store.py")


def answer(parameters):
    """Open the line and both stores, and make the visits."""
    script = os.path.join(_SERVING, parameters.get("serves", os.path.basename(over._STORE)))
    with (
        tempfile.TemporaryDirectory(prefix="casebook-line-") as of_tcp,
        tempfile.TemporaryDirectory(prefix="casebook-line-") as of_udp,
        Ends(parameters["way"], parameters["congestion"]) as line,
        over.store(line, parameters, of_tcp, script) as tcp,
        over.store(line, parameters, of_udp, QUIC_STORE) as udp,
    ):
        stores = {"h3": udp}
        return {
            "way": line.way,
            "lots": parameters.get("lots"),
            "visits": [
                visited(line, stores.get(visit["protocol"], tcp), visit, parameters["carries"])
                for visit in over.with_lots(parameters)
            ],
        }


def visited(line, serving, visit, carries):
    """Make one visit, and add the CPU time of its store and when the first loss was."""
    figures, wire, used_s = over.with_wire(line, serving, visit, carries)
    return dict(figures, server_cpu_s=round(used_s, 6), lost_at_s=lost_at(wire.packets))


def lost_at(packets):
    """Return when the first loss was, since the client's first packet; None if there was none."""
    traffic = [packet for packet in packets if packet["connection"] is not None]
    loss_s = next((packet["t_s"] for packet in traffic if packet["dropped"]), None)
    return None if loss_s is None else round(loss_s - traffic[0]["t_s"], 6)


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (over.VisitError, NoLineError, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
