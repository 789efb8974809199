"""A round of visits over a line: one JSON object in (standard input), one out.

In: {"way" (of ends.Ends), "congestion", "least_bytes" (of a book's body), "chain" (of
chains.CHAINS; SELF where nothing is said), "lots" (the seed of this build, where something is lost
at random), "carries" (packets a second that the line carries here, as flood.py measures them),
"visits": [{"script" (of ../clients),
"protocol", "at_once", "connections", "order", "n" (books), "there", "back" (as wire.Wire takes
them), "window_bytes" (of HTTP/2; 0: its own), "delays_small" (whether TCP may), "records" (whether
each packet is told)}]}.

Out: {"way", "lots", "visits": [what ../clients/visit.py answers, where of "index" and "bodies"
there is a digest, and the bytes of all bodies; "counts", "packets" as of wire.Wire (packets in
lists: see _PACKET), "late_ms", "most_late_ms", "busiest", "tries", "server" (its counters)]}. Or
{"failed": what went wrong, in words}.

A visit during which the line could not keep up is made again, twice at the most. The store, with
the certificates that it shows, runs at the far end until this process is gone; so does everything
else that it started.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from chains import SELF, certify
from ends import ADDRESSES, Ends, NoLineError
from wire import BACK, THERE, TooMuchError, Wire

_HERE = os.path.dirname(os.path.abspath(__file__))
_STORE = os.path.join(os.path.dirname(_HERE), "serving", "twisted_store.py")
VISIT = os.path.join(os.path.dirname(_HERE), "clients", "visit.py")
_BOOKS = os.path.join(_HERE, *[os.pardir] * 4, "data", "books.json")

#: The columns of a packet in the answer.
_PACKET = ("t_s", "direction", "connection", "seq", "bytes", "is_again", "dropped")

#: How often a visit is made, and how long without a book it may take.
_TRIES, _PATIENCE_S = 3, 20.0


class VisitError(Exception):
    """What there is no answer for, in words."""


def answer(parameters):
    """Open the line and the store, and make the visits."""
    with tempfile.TemporaryDirectory(prefix="casebook-line-") as folder:
        with (
            Ends(parameters["way"], parameters["congestion"]) as line,
            store(line, parameters, folder) as serving,
        ):
            visits = with_lots(parameters)
            return {
                "way": line.way,
                "lots": parameters.get("lots"),
                "visits": [
                    visited(line, serving, visit, parameters["carries"]) for visit in visits
                ],
            }


def with_lots(parameters):
    """Return the visits with the lots of this build.

    What is lost at random is drawn from the build's seed and that of the visit, which is another
    one in each round.
    """
    visits = [dict(visit) for visit in parameters["visits"]]
    for visit in visits:
        for direction in (THERE, BACK):
            lose = visit[direction].get("lose") or {}
            if "share" in lose:
                seed = "{}/{}".format(parameters.get("lots"), lose.get("seed"))
                visit[direction] = dict(visit[direction], lose=dict(lose, seed=seed))
    return visits


@contextlib.contextmanager
def store(line, parameters, folder, script=_STORE):
    """Run the store at the far end: a function that queries it, its port and the file to trust."""
    chain_file, trusted_file = certify(folder, ADDRESSES["far"], parameters.get("chain", SELF))
    options = {"folder": folder, "books": _BOOKS, "least_bytes": parameters["least_bytes"]}
    options.update(interface=ADDRESSES["far"], port=0, backlog=1024, http1_only=False, lacks="")
    options.update(delay_s=0, slow={}, chain_file=chain_file, key_file=chain_file)
    options.update(tickets=parameters.get("tickets", ""))
    command = [sys.executable, script, json.dumps(options)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = line.start("far", command, dies=False, bufsize=0, **pipes)
    try:
        ready = json.loads(process.stdout.readline() or b"{}")
        if "port" not in ready:
            raise VisitError(
                "the store did not start: {}".format(ready.get("error", "it said nothing"))
            )

        def query(request):
            process.stdin.write(request.encode() + b" 1\n")
            return json.loads(process.stdout.readline())

        yield query, ready["port"], trusted_file
    finally:
        process.stdin.close()  # which is the store's end
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def visited(line, serving, visit, carries):
    """Make one visit."""
    return with_wire(line, serving, visit, carries)[0]


def with_wire(line, serving, visit, carries):
    """Make one visit: its answer, the wire that it went over, and the CPU seconds of the store."""
    query, port, certificate = serving
    with open(_BOOKS) as file:
        ids = list(json.load(file))[: visit["n"]]
    spec = dict(visit, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec.update(ids=ids, timeout_s=_PATIENCE_S, started_at=0)
    reply, wire, quality, used_s = carried(line, query, visit, VISIT, spec, carries)
    figures = dict(
        summed_up(reply), counts=wire.counts(), server=query("counters"),
        packets=[[packet[name] for name in _PACKET] for packet in wire.packets * visit["records"]],
        **quality,
    )  # fmt: skip
    return figures, wire, used_s


def carried(line, query, conditions, script, spec, carries):
    """Run a client at the near end, as often as it takes until the line kept up.

    query: of the store; conditions: has "there" and "back", as Wire takes them; script: the
    client's path; spec: what it reads; carries: as Wire.kept_up takes it. Returns what the client
    answered, the wire, {"tries", and what Wire.kept_up says}, and the CPU seconds of the store.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for tries in range(1, _TRIES + 1):
        query("reset")
        before_s = query("cpu")["cpu_s"]
        with Wire(line.near, line.far, conditions["there"], conditions["back"]) as wire:
            process = line.start("near", [sys.executable, script], **pipes)
            output, _ = process.communicate(json.dumps(spec).encode())
            used_s = query("cpu")["cpu_s"] - before_s
        try:
            quality = wire.kept_up(carries)
        except TooMuchError as error:
            too_much = error
            continue
        reply = json.loads(output or b'{"failure": "it said nothing"}')
        if reply["failure"]:
            client = spec.get("script", os.path.basename(script))
            raise VisitError("a visit with {} failed: {}".format(client, reply["failure"]))
        return reply, wire, dict(quality, tries=tries), used_s
    raise VisitError(f"the line could not keep up, {_TRIES} times: {too_much}")


def summed_up(reply):
    """Return an answer with digests in place of the list and the books."""
    index, bodies = reply.pop("index"), reply.pop("bodies")
    books = sorted((book, json.loads(body)) for book, body in bodies.items())
    return dict(
        reply,
        list_digest=digest(sorted(index)),
        books_digest=digest(books),
        body_bytes=sum(len(body) for body in bodies.values()),
    )


def digest(value):
    """Return a digest of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (VisitError, NoLineError, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
