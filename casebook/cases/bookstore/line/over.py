"""A round of visits over a line: one JSON object in (standard input), one out.

In: {"way" (of ends.Ends), "congestion", "least_bytes" (of a book's body), "chain" (of
chains.CHAINS; SELF where nothing is said), "lots" (the seed of this build, where something is lost
by lot), "carries" (packets a second that the line carries here, as flood.py measures them),
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
from ends import ADDRESSES, Ends, NoLine
from wire import BACK, THERE, TooMuch, Wire

_HERE = os.path.dirname(os.path.abspath(__file__))
_STORE = os.path.join(os.path.dirname(_HERE), "serving", "twisted_store.py")
VISIT = os.path.join(os.path.dirname(_HERE), "clients", "visit.py")
_BOOKS = os.path.join(_HERE, *[os.pardir] * 4, "data", "books.json")

#: The columns of a packet in the answer.
_PACKET = ("t_s", "direction", "connection", "seq", "bytes", "is_again", "dropped")

#: How often a visit is made, and how long without a book it may take.
_TRIES, _PATIENCE_S = 3, 20.0


class Failed(Exception):
    """What there is no answer for, in words."""


def answer(asked):
    with tempfile.TemporaryDirectory(prefix="casebook-line-") as folder:
        with Ends(asked["way"], asked["congestion"]) as ends, store(ends, asked, folder) as serving:
            visits = drawn(asked)
            return {
                "way": ends.way,
                "lots": asked.get("lots"),
                "visits": [visited(ends, serving, visit, asked["carries"]) for visit in visits],
            }


def drawn(asked):
    """The visits, with the lots of this build: what is lost by lot is drawn from its seed and that
    of the visit, which is another one in each round."""
    visits = [dict(visit) for visit in asked["visits"]]
    for visit in visits:
        for way in (THERE, BACK):
            lose = visit[way].get("lose") or {}
            if "share" in lose:
                seed = "{}/{}".format(asked.get("lots"), lose.get("seed"))
                visit[way] = dict(visit[way], lose=dict(lose, seed=seed))
    return visits


@contextlib.contextmanager
def store(ends, asked, folder, script=_STORE):
    """The store at the far end: a function that asks it, its port and the file to trust."""
    shown, trusted = certify(folder, ADDRESSES["far"], asked.get("chain", SELF))
    options = {"folder": folder, "books": _BOOKS, "least_bytes": asked["least_bytes"]}
    options.update(interface=ADDRESSES["far"], port=0, backlog=1024, http1_only=False, lacks="")
    options.update(delay_s=0, slow={}, chain_file=shown, key_file=shown)
    options.update(tickets=asked.get("tickets", ""))
    command = [sys.executable, script, json.dumps(options)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = ends.start("far", command, dies=False, bufsize=0, **pipes)
    try:
        ready = json.loads(process.stdout.readline() or b"{}")
        if "port" not in ready:
            raise Failed(
                "the store did not start: {}".format(ready.get("error", "it said nothing"))
            )

        def ask(what):
            process.stdin.write(what.encode() + b" 1\n")
            return json.loads(process.stdout.readline())

        yield ask, ready["port"], trusted
    finally:
        process.stdin.close()  # which is the store's end
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def visited(ends, serving, asked, carries):
    """One visit."""
    return with_wire(ends, serving, asked, carries)[0]


def with_wire(ends, serving, asked, carries):
    """One visit: its answer, the wire that it went over, and the CPU seconds of the store."""
    ask, port, certificate = serving
    with open(_BOOKS) as file:
        ids = list(json.load(file))[: asked["n"]]
    spec = dict(asked, url="https://{}:{}".format(ADDRESSES["far"], port), ca_file=certificate)
    spec.update(ids=ids, timeout_s=_PATIENCE_S, started_at=0)
    seen, wire, told, used_s = carried(ends, ask, asked, VISIT, spec, carries)
    found = dict(
        summed_up(seen), counts=wire.counts(), server=ask("counters"),
        packets=[[each[name] for name in _PACKET] for each in wire.packets * asked["records"]],
        **told,
    )  # fmt: skip
    return found, wire, used_s


def carried(ends, ask, asked, script, spec, carries):
    """Run a client at the near end, as often as it takes until the line kept up.

    ask: of the store; asked: has "there" and "back", as Wire takes them; script: the client's path;
    spec: what it reads; carries: as Wire.kept_up takes it. Gives what the client answered, the
    wire, {"tries", and what Wire.kept_up says}, and the CPU seconds that the store took.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for tries in range(1, _TRIES + 1):
        ask("reset")
        before_s = ask("cpu")["cpu_s"]
        with Wire(ends.near, ends.far, asked["there"], asked["back"]) as wire:
            process = ends.start("near", [sys.executable, script], **pipes)
            said, _ = process.communicate(json.dumps(spec).encode())
            used_s = ask("cpu")["cpu_s"] - before_s
        try:
            kept = wire.kept_up(carries)
        except TooMuch as error:
            too_much = error
            continue
        seen = json.loads(said or b'{"failure": "it said nothing"}')
        if seen["failure"]:
            who = spec.get("script", os.path.basename(script))
            raise Failed("a visit with {} failed: {}".format(who, seen["failure"]))
        return seen, wire, dict(kept, tries=tries), used_s
    raise Failed(f"the line could not keep up, {_TRIES} times: {too_much}")


def summed_up(seen):
    """An answer with digests in place of the list and the books."""
    index, bodies = seen.pop("index"), seen.pop("bodies")
    books = sorted((book, json.loads(body)) for book, body in bodies.items())
    return dict(
        seen,
        list_digest=digest(sorted(index)),
        books_digest=digest(books),
        body_bytes=sum(len(body) for body in bodies.values()),
    )


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (Failed, NoLine, ValueError) as error:
        print(json.dumps({"failed": str(error)}))
