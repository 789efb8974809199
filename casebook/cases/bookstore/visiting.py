"""One visit at a time, with every book compared, and its figures.

It takes a store and its distance, and a client in its environment.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from casebook import stacks
from casebook.cases.bookstore import readers, stock, store
from casebook.cases.fetching.server import relay
from casebook.errors import VisitFailed
from casebook.laboratory import measurements, recorded_rows
from casebook.laboratory.experiment import Experiment, Measurement
from casebook.stacks import Stack, digests, environments

#: Columns that a client's own answer gives as they are.
_AS_ANSWERED = (
    *("protocol", "python", "peak_in_flight", "arrivals", "wall_s", "user_s", "sys_s"),
    *("process_wall_s", "process_user_s", "process_sys_s"),
)
#: What is stored of a visit, and those of it that must be finite numbers.
ANSWERED = (
    *_AS_ANSWERED,
    *("cpu_percent", "process_cpu_percent", "label", "stack", "library", "version", "opened"),
    *("recovered", "books", "server_cpu_s", "server_connections", "server_streams_peak"),
)
NUMBERS = ("wall_s", "user_s", "sys_s", "server_cpu_s")


@dataclass(frozen=True, kw_only=True)
class Visit(readers.Manner):
    """What a visit is: who visits which store, for how many books, in which manner, how far away.

    latency_ms: each way. delay_s, slow: how the store answers (slow in words). repeat: the number
    of the round.
    """

    engine: str
    n: int
    latency_ms: float
    delay_s: float
    slow: str
    repeat: int = 1

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what was asked, in whichever round."""
        return {name: value for name, value in asdict(self).items() if name != "repeat"}


class Host(ExitStack):
    """The stores that some visits go to, each opened when the first of them needs it, and relays.

    target: an open store of the caller's, in place of our own. What was opened is closed at the
    end of the `with` block.
    """

    def __init__(self, delay_s: float = 0.0, slow: dict | None = None, target=None):
        super().__init__()
        self._target = target
        self._opening = partial(store.open_store, delay_s=delay_s, slow=slow)
        self._open: dict[Hashable, Any] = {}

    def _enter(self, key: Hashable, opening: Callable[[], AbstractContextManager]):
        if key not in self._open:
            self._open[key] = self.enter_context(opening())
        return self._open[key]

    def store(self, engine: str):
        """Return the store on an engine, open."""
        return self._target or self._enter(engine, lambda: self._opening(engine))

    def url(self, engine: str, latency_ms: float) -> str:
        """Return the URL of that store at this distance."""
        near = self.store(engine).url
        if not latency_ms:
            return near
        return self._enter((near, latency_ms), lambda: relay.relay(near, latency_ms / 1000))

    def depends_on(self, engine: str) -> measurements.Using:
        """Return what a measurement depends on if it asks our store on this engine."""
        return measurements.Using(f"the store on {engine}", partial(store.fingerprint, engine))

    def experiment(self, visit: Visit, patience_s: float) -> Experiment:
        """Return the experiment that makes visits of this kind to the store.

        What visits an open store of the caller's is not stored: what that is made of is not known.
        """
        reader = visit.reader
        files = [*digests.executed(readers.SCRIPTS / f"{reader.script}.py"), *digests.files(relay)]
        return replace(
            VISITED,
            depends_on=(*files, Path(__file__), self.depends_on(visit.engine)),
            ask=lambda *_: self._measure(visit, patience_s),
            is_stored=self._target is None,
        )

    def stacks(self, visit: Visit) -> list[Stack]:
        """Return the stacks without which a visit cannot be made: the client's, the store's."""
        of_client = stacks.get(visit.reader.stack)
        return [of_client] if self._target else [of_client, store.stack_of(visit.engine)]

    def answer(self, visit: Visit, patience_s: float) -> Measurement | None:
        """Make a visit and check it, or find what was recorded.

        Raises VisitFailed, and as Experiment.answer.
        """
        experiment = self.experiment(visit, patience_s)
        return experiment.answer(self.stacks(visit), visit.parameters, visit.repeat)

    def _measure(self, visit: Visit, patience_s: float) -> dict:
        ids = None if visit.n == stock.SIZE else stock.ids()[: visit.n]
        longest_s = visit.delay_s + 2 * visit.latency_ms / 1000 + 0.02
        within_s = 60 + patience_s + 3 * visit.n * longest_s
        place, url = self.store(visit.engine), self.url(visit.engine, visit.latency_ms)
        place.reset()
        before_s = place.cpu_s()
        answer = readers.read(visit, place, ids, within_s, url=url, timeout_s=patience_s)
        server_cpu_s = place.cpu_s() - before_s
        counters = place.counters()
        check(visit, answer, visit.n)
        return {
            **_figures(visit, answer),
            "server_cpu_s": round(server_cpu_s, 6),
            "server_connections": counters["connections"],
            "server_streams_peak": counters["peak_streams"],
        }


def _question_parts(
    targets: Sequence[Any], parameters: dict[str, Any], repeat: Any
) -> Sequence[Any]:
    """Return the parts of the question, in the form that machine files have: Experiment.form."""
    reader = readers.get(parameters["client"])
    return targets[0], parameters | {"repeat": repeat}, reader.protocol, reader.title


def figures(
    parameters: Mapping[str, Any],  # noqa: ARG001 - as an Experiment calls it
    answer: dict[str, Any],
) -> dict[str, Any]:
    """Return the columns of a visit that follow from its answer, and its arrivals.

    Raises VisitFailed if it is none.
    """
    columns = {name: answer.get(name) for name in ANSWERED}
    is_plain = recorded_rows.is_plain(columns, NUMBERS, parts=("arrivals",))
    if not is_plain or not isinstance(columns["arrivals"], list):
        raise VisitFailed("there is text where a visit has numbers. Nothing was recorded.")
    return columns


#: Visits as machine files have them. Each kind has an experiment of its own (Host.experiment).
VISITED = Experiment(readers.VISIT, figures, form=_question_parts)


def _figures(visit: Visit, answer: dict) -> dict:
    """Return the columns about the client.

    More connections than planned mean that some were lost, and that it asked again over a new one.
    """
    reader, planned = visit.reader, visit.connections
    versions = environments.ensure(stacks.get(reader.stack)).versions
    recoveries = [
        f"connection {i} (of {planned} planned) after {books} books"
        for i, books in enumerate(answer["opened"], 1)
        if i > planned
    ]
    figures = {name: answer[name] for name in _AS_ANSWERED}
    for prefix in ("", "process_"):  # in per cent of one processor, as `time` prints it
        used_s = answer[f"{prefix}user_s"] + answer[f"{prefix}sys_s"]
        figures[f"{prefix}cpu_percent"] = round(100 * used_s / answer[f"{prefix}wall_s"], 1)
    return figures | {
        "label": visit.label,
        "stack": reader.stack,
        "library": reader.library,
        # http.client has none of its own
        "version": versions.get(reader.library, answer["python"]),
        "opened": len(answer["opened"]),
        "recovered": "; ".join(recoveries),
        "books": len(answer["bodies"]),
    }


def check(manner: readers.Manner, answer: dict, n: int) -> None:
    """Refuse a visit that did not bring the whole list and n books as the stock has them.

    Raises VisitFailed with the book and the cause.
    """
    if fault := next(_faults(manner, answer, n), None):
        raise VisitFailed(f"{manner.client}: {fault}. Nothing was recorded.")


def _faults(manner: readers.Manner, answer: dict, n: int) -> Iterator[str]:
    stocked, listed, bodies = stock.books(), answer["index"], answer["bodies"]
    if answer["failure"]:
        yield _in_words(answer["failure"])
    if answer["protocol"] != manner.reader.protocol:
        yield f"it spoke {answer['protocol']}, not {manner.reader.protocol}"
    for odd, complaint in (
        (stocked.keys() - set(listed), "lacks"),
        (set(listed) - stocked.keys(), "has what the stock has not:"),
        ([book for book, times in Counter(listed).items() if times > 1], "repeats"),
    ):
        if odd:
            yield (
                f"the list of books {complaint} {len(odd)} of {len(stocked):,}, such as {min(odd)}"
            )
    for book in stock.ids()[:n]:
        if book not in bodies:
            yield f"book {book} is missing"
        elif json.loads(bodies[book]) != stocked[book]:
            yield f"book {book}: the body is not the one in the stock"
    if len(bodies) != n:
        yield "it brought books that nobody asked for"


def _in_words(failure: dict) -> str:
    """Describe a failure, as clients/visit.py says it: the book, the cause, and who else waited."""
    place = f"book {failure['book']}" if failure["book"] else "the list of books"
    text = f"{place}: {failure['type']}: {failure['message']}"
    if failure["waiting"] and not failure["certain"]:
        text += f" ({len(failure['waiting'])} more were waited for)"
    if "alone" in failure:
        retry = failure["alone"]
        text += "; asked for one at a time, "
        text += f"it is {_in_words(retry)}" if retry else "all of them came"
    return text
