"""What a few names stand for after each import, and who waits while one page is read.

One process takes the steps, looks at the names after each, and then reads one page; a thread looks
on, and notes where the reading greenlet waits and what the thread does meanwhile.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from casebook import places
from casebook.cases.fetching import server
from casebook.cases.fetching.bench import lab_server
from casebook.errors import NotInFile, RunFailed, UsageError
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.mistakes import for_readers
from casebook.words import LIVE

#: What `import grequests` does, one thing at a time; `python` imports what gevent patches.
GEVENT_FIRST = ("python", "patch_as_grequests", "urllib3", "requests")
URLLIB3_FIRST = ("python", "urllib3", "patch_as_grequests", "requests")
_INJECTED = (*GEVENT_FIRST, "inject")

#: A choice of a figure -> a stack, the steps, and the scheme of the page.
Choices = Mapping[str, tuple[str, tuple[str, ...], str]]

#: Who patches first.
ORDERS: Choices = {
    "gevent first": ("stage-1-today", GEVENT_FIRST, "https"),
    "urllib3 first": ("stage-1-today", URLLIB3_FIRST, "https"),
}
#: What requests does if pyOpenSSL is installed, and what it does not.
INJECTION: Choices = {
    "with pyOpenSSL": ("stage-2-py27", GEVENT_FIRST, "https"),
    "without pyOpenSSL": ("stage-1-py27", GEVENT_FIRST, "https"),
    "with pyOpenSSL, over plain HTTP": ("stage-2-py27", GEVENT_FIRST, "http"),
}
#: Where each cure cuts.
CURES: Choices = {
    "no cure": ("stage-2-today", _INJECTED, "https"),
    "A: newer requests": ("stage-2-today", GEVENT_FIRST, "https"),
    "A: extract": ("stage-2-today", (*_INJECTED, "extract"), "https"),
    "B: gevent_openssl + recv_into": ("stage-4-today", (*_INJECTED, "gevent_openssl"), "https"),
    "C: patch_select": ("stage-2-today", (*_INJECTED, "patch_select"), "https"),
}
#: The step in which the page is read.
READ = "connected"
#: What the server waits before it answers: long beside a handshake.
_DELAY_S = 0.3

PYTHON, GEVENT, PYOPENSSL, GEVENT_OPENSSL, URLLIB3 = (
    *("Python", "gevent", "pyOpenSSL", "gevent_openssl", "urllib3"),
)
#: Whose a class is, by the beginning of its name; Python's if by none.
_OWNERS = {
    "gevent_openssl.": GEVENT_OPENSSL,
    "gevent.": GEVENT,
    "OpenSSL.": PYOPENSSL,
    "urllib3.contrib.pyopenssl.": PYOPENSSL,
    "urllib3.": URLLIB3,
}

#: The layers that a read goes through, by the beginning of a file's name: what it is called, and
#: whose it is. A file of none is left out, and so is one with an empty name.
_LAYERS = {
    "requests/": ("requests", ""),
    "urllib3/util/wait.py": ("urllib3's wait", ""),
    "urllib3/contrib/pyopenssl.py": ("", ""),
    "urllib3/": ("urllib3", ""),
    "http/client.py": ("Python's HTTP", PYTHON),
    "httplib.py": ("Python's HTTP", PYTHON),
    "socket.py": ("Python's HTTP", PYTHON),
    "OpenSSL/": ("pyOpenSSL", PYOPENSSL),
    "gevent_openssl/": ("gevent_openssl", GEVENT_OPENSSL),
    "gevent/_ssl": ("gevent's TLS", GEVENT),
    "gevent/ssl": ("gevent's TLS", GEVENT),
    "gevent/_socket": ("gevent's socket", GEVENT),
    "gevent/select.py": ("gevent's poll", GEVENT),
}
#: The functions in which urllib3 waits with whatever `select.poll` stands for.
_POLLING = ("do_poll", "poll_wait_for_socket")
_HUB = ("gevent/hub.py", "run")

#: What a layer does: passes the question on, has nothing yet, waits and lets the loop run, or
#: waits and holds the thread.
PASSES, NOTHING_YET, IN_LOOP, HOLDS_THREAD = "passes", "nothing", "loop", "holds"


@dataclass(frozen=True)
class Layer:
    """One layer that the read went through: its name, whose, the call in it, and what it does."""

    name: str
    owner: str
    call: str
    does: str


@dataclass(frozen=True)
class Bindings:
    """What one process showed.

    steps: in their order. classes: step -> name -> class, None while the name is not there.
    layers: of the read, the outermost first; empty if it failed. failure: the type of the
    exception it ended in. beats: heartbeats of the event loop, in seconds since the read began;
    wall_s: when it ended. source, measured_at, instead: as of a run.
    """

    stack: str
    scheme: str
    steps: tuple[str, ...]
    python: str
    classes: dict[str, dict[str, str | None]]
    layers: tuple[Layer, ...]
    failure: str
    beats: tuple[float, ...]
    wall_s: float
    source: str
    measured_at: str
    instead: str = ""

    @property
    def waits(self) -> str:
        """Return how the read waits: IN_LOOP, HOLDS_THREAD, or an empty text if it failed."""
        return self.layers[-1].does if self.layers else ""

    def owner(self, step: str, name: str) -> str:
        """Return whose object a name stands for after a step; an empty text if there is none."""
        class_ = self.classes[step].get(name)
        return owner_of(class_) if class_ else ""


def owner_of(class_: str) -> str:
    """Return whose a class is, from its full name."""
    return next((owner for start, owner in _OWNERS.items() if class_.startswith(start)), PYTHON)


@for_readers
def inspect(name: str, steps: Iterable[str] = GEVENT_FIRST, scheme: str = "https") -> Bindings:
    """Have a stack take some steps, look at the names after each, and read one page.

    Parameters:
        name: of the stack, which needs gevent and requests.
        steps: functions of casebook/cases/fetching/probes/steps.py, and `python`, which imports
            what gevent patches.
        scheme: of the page, "https" or "http".

    Where the stack cannot run, or a book's machine file has no answer, it is another machine's, and
    `source` says so. Raises RunFailed, and what Experiment.measure raises.
    """
    taken = tuple(steps)
    parameters = {"steps": [*taken], "scheme": scheme, "delay_s": _DELAY_S}
    experiment = Experiment(
        places.PROBES / "bindings.py",
        _figures,
        depends_on=(*server.DEPENDENCIES,),
        tells=lambda: {"url": lab_server(scheme).url, "ca_file": lab_server(scheme).ca_file},
    )
    try:
        row = experiment.measure(name, [parameters]).iloc[0]
    except NotInFile:  # a machine file from before this was asked: another one's answer stands in
        elsewhere = replace(experiment, spares=lambda _: True)
        row = elsewhere.measure(name, [parameters]).iloc[0]
    origin = {column: row[column] for column in ("source", "measured_at", "instead")}
    return Bindings(name, scheme, taken, **row["seen"], **origin)


@for_readers
def look_at(choices: Choices) -> dict[str, Bindings]:
    """Look at all choices of a figure, in their order. Raises as `inspect`."""
    return {label: inspect(*choice) for label, choice in choices.items()}


def record() -> None:
    """Look at what the chapters show, for readers without an old Python and for machine files.

    Raises UsageError if something would be read and not measured.
    """
    for choices in (ORDERS, INJECTION, CURES):
        if any(seen.source != LIVE for seen in look_at(choices).values()):
            raise UsageError("bindings cannot be recorded here: some rows were recorded elsewhere.")


def _figures(_parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    read, page = answer["read"], answer["read"]["page"]
    if not read["failure"] and (page["status"], page["got_page"]) != (200, 0):
        raise RunFailed(f"the page came with status {page['status']}. Nothing was recorded.")
    classes: dict[str, dict[str, str | None]] = {}
    for row in answer["names"]:
        classes.setdefault(row["step"], {})[row["name"]] = row["class"]
    final = classes[list(classes)[-1]]
    seen = {
        "python": answer["python"],
        "classes": classes,
        "layers": () if read["failure"] else layers(read, owner_of(final["select.poll"] or "")),
        "failure": read["failure"]["type"] if read["failure"] else "",
        "beats": tuple(read["beats_s"]),
        "wall_s": read["wall_s"],
    }
    return {"seen": seen}


def layers(read: dict[str, Any], poll: str) -> tuple[Layer, ...]:
    """Return the layers of a read that came, from what was seen of it.

    Parameters:
        read: on_thread, in_greenlet and refusals, as the probe has them.
        poll: whose object `select.poll` stands for.

    While the loop runs, the thread is in gevent's hub and the greenlet is left where it waits;
    otherwise the thread itself is where the greenlet waits. Raises RunFailed if no layer was seen.
    """
    in_loop = tuple((read["on_thread"] or [()])[-1]) == _HUB
    stack = read["in_greenlet"] if in_loop else read["on_thread"]
    passed = [
        (name, owner, [call for _, _, call in calls][-1])
        for (name, owner), calls in groupby(_layer_calls(stack), itemgetter(0, 1))
    ]
    if not passed:
        raise RunFailed("nobody was seen to wait for the page. Nothing was recorded.")
    # A function of C has no frame of its own, and what has raised has none any more.
    if passed[-1][0] == "urllib3's wait" and passed[-1][2] in _POLLING:
        passed.append((f"{poll}'s poll", poll, "poll"))
    found = [Layer(*layer, PASSES) for layer in passed]
    found[-1] = Layer(*passed[-1], IN_LOOP if in_loop else HOLDS_THREAD)
    refused = [call for file, call, _ in read["refusals"] if file.startswith("OpenSSL/")]
    if reads := [call for call in refused if call.startswith("recv")]:
        below = [layer.name for layer in found].index("Python's HTTP") + 1
        found.insert(below, Layer("pyOpenSSL", PYOPENSSL, reads[0], NOTHING_YET))
    return tuple(found)


def _layer_calls(stack: Sequence[Sequence[str]]) -> list[tuple[str, str, str]]:
    """Return the calls of a stack that belong to a layer: its name, whose it is, the function."""
    calls = []
    for file, function in stack:
        name, owner = next(
            (layer for start, layer in _LAYERS.items() if file.startswith(start)), ("", "")
        )
        if name:
            calls.append((name, owner, function))
    return calls
