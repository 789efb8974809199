"""A round of visits over a line with three protocols: one JSON object in (standard input), one out.

As over.py, with two stores at the far end: Twisted's, and aioquic's for what asks for "h3". In and
out are the same, and each visit also has "server_cpu_s", user and system CPU seconds of its store,
and "lost_at_s": when the first packet that was lost came to the middle of the line, in seconds
since the client's first did (null: none was lost).
"""

import json
import os
import subprocess
import sys
import tempfile

import over
from ends import ADDRESSES, Ends, NoLine
from wire import TooMuch, Wire

QUIC_STORE = os.path.join(os.path.dirname(over._STORE), "quic_store.py")


def answer(asked):
    with (
        tempfile.TemporaryDirectory(prefix="casebook-line-") as of_tcp,
        tempfile.TemporaryDirectory(prefix="casebook-line-") as of_udp,
        Ends(asked["way"], asked["congestion"]) as ends,
        over.store(ends, asked, of_tcp) as tcp,
        over.store(ends, asked, of_udp, QUIC_STORE) as udp,
    ):
        stores = {"h3": udp}
        return {
            "way": ends.way,
            "visits": [
                visited(ends, stores.get(visit["protocol"], tcp), visit)
                for visit in asked["visits"]
            ],
        }


def visited(ends, serving, asked):
    """One visit, as often as it takes until the line kept up."""
    ask, port, certificate = serving
    with open(over._BOOKS) as file:
        ids = list(json.load(file))[: asked["n"]]
    spec = dict(asked, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec.update(ids=ids, timeout_s=over._PATIENCE_S, started_at=0)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for tries in range(1, over._TRIES + 1):
        ask("reset")
        before_s = ask("cpu")["cpu_s"]
        with Wire(ends.near, ends.far, asked["there"], asked["back"]) as wire:
            process = ends.start("near", [sys.executable, over._VISIT], **pipes)
            said, _ = process.communicate(json.dumps(spec).encode())
            used_s = ask("cpu")["cpu_s"] - before_s
        try:
            kept = wire.kept_up()
        except TooMuch as error:
            too_much = error
            continue
        seen = json.loads(said or b"{}")
        if not seen or seen["failure"]:
            raise over.Failed(
                "a visit with {} failed: {}".format(asked["script"], seen.get("failure"))
            )
        rows = wire.packets * asked["records"]
        return dict(
            over.summed_up(seen), counts=wire.counts(), tries=tries, server=ask("counters"),
            packets=[[each[name] for name in over._PACKET] for each in rows],
            server_cpu_s=round(used_s, 6), lost_at_s=lost_at(wire.packets), **kept,
        )  # fmt: skip
    raise over.Failed(f"the line could not keep up, {over._TRIES} times: {too_much}")


def lost_at(packets):
    """When the first loss was, since the client's first packet; None where there was none."""
    own = [each for each in packets if each["connection"] is not None]
    lost = next((each["t_s"] for each in own if each["dropped"]), None)
    return None if lost is None else round(lost - own[0]["t_s"], 6)


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (over.Failed, NoLine, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
