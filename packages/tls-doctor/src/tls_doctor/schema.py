"""What --json prints."""

from __future__ import division, print_function

from .advice import ADVICE
from .basis import (
    ADDRESS,
    BLOCKED,
    CANNOT_TELL,
    DOES_NOT_APPLY,
    FEW,
    FREE,
    HELD_UP,
    NOT_IN_A_ROW,
    ONCE,
    ONE_AT_A_TIME,
    ONE_FOR_EACH,
    REPEATED,
    UNCOUNTED,
    UNSEEN,
)

#: Numbers of `Counts`.
COUNTS = (
    "processes contexts sessions pools open loads needed connections handshakes failed peak "
    "under_loop again cpu_ms compiled_ms load_ms spare_ms share again_share alive context_mib"
).split()


def schema():
    """Return the JSON schema (2020-12) of a report. Names and ids stay; new ones may come."""
    number, text, either = {"type": "number"}, {"type": "string"}, {"type": ["string", "null"]}

    def thing(required, **properties):
        return {"type": "object", "required": sorted(required), "properties": properties}

    def rows(row):
        return {"type": "array", "items": row}

    loop = {"enum": [BLOCKED, FREE, CANNOT_TELL, DOES_NOT_APPLY]}
    loads = {"enum": [REPEATED, ONCE, UNCOUNTED, UNSEEN, CANNOT_TELL]}
    verdicts = {
        "event loop": loop, "certificate loads": loads,  # those below, of a run alone
        "loads on the loop": {"enum": [HELD_UP, FREE, DOES_NOT_APPLY]},
        "handshakes": {"enum": [ONE_AT_A_TIME, NOT_IN_A_ROW, DOES_NOT_APPLY]},
        "contexts": {"enum": [ONE_FOR_EACH, FEW, DOES_NOT_APPLY]},
    }  # fmt: skip
    advice = thing(
        ["id", "case", "what", "remove", "add", "package", "saves", "chapter"],
        id={"enum": sorted(ADVICE)}, case={"enum": [1, 2, 3, 4]}, what=text, remove=text, add=text,
        package=text, saves=text, chapter=text,
    )  # fmt: skip
    blocked = thing(["times", "s", "waiting_s"], times=number, s=number, waiting_s=number)
    stalls = thing(["fetched", "waits", "times", "s"], fetched={"type": "boolean"}, waits=number,
                  times=number, s=number, in_greenlets={"type": "boolean"})  # fmt: skip
    names = ("contexts", "loads", "needed", "connections", "load_ms", "spare_ms")
    client = thing(
        ["client", "through", "kept", "requests"] + list(names), client=either, through=either,
        kept={"type": "boolean"}, requests={"type": ["number", "null"]},
        **dict.fromkeys(names, number)
    )  # fmt: skip
    counts = dict(
        dict.fromkeys(COUNTS, number), blocked=blocked, stood=stalls, clients=rows(client)
    )
    ending = thing(["status", "why", "raised", "signal"], why=either, raised=either)
    trouble = thing(["trouble", "exit_status", "version"], trouble=text, version=text)
    looked = thing(["pid", "looks", "seen", "exit_status"], pid=number, looks=number)
    two = {"type": "array", "minItems": 2, "maxItems": 2}
    promise = thing(["client", "promised", "loads"], client=text, promised=number, loads=number)
    comparison = thing(
        ["changes", "left", "why", "promises", "kept"], changes=rows(text), left=rows(text),
        why=either, promises=rows(promise), kept={"type": ["boolean", "null"]}, loads=two,
        cpu_ms=two,
    )  # fmt: skip
    report = thing(
        ["verdicts", "advice", "exit_status", "version", "program", "python", "openssl"],
        verdicts=thing(
            ["event loop", "certificate loads"],
            **verdicts
        ),
        advice=rows(advice), program=either, python=text, version=text, ended=ending,
        counts=thing(COUNTS + ["blocked", "stood", "clients"], **counts),
        exit_status={"enum": [0, 1, 2, 129, 130, 143]}, again=comparison,
    )  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": (ADDRESS or "urn:tls-doctor") + "/doctor-report.json",
        "title": "What doctor.py --json prints",
        "anyOf": [report, trouble, looked],
    }
