"""What a process keeps of contexts that its threads made and dropped, one after the other.

    frame = measure("stage-1-today")

Never is more than one context alive. So in one thread the process grows by about one context. In
glibc each thread takes memory from an arena, of which there are up to eight for each core, and
each arena keeps what was once needed there.
"""

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from casebook import places
from casebook.cases.certificates import weights
from casebook.cases.certificates.loading import Task
from casebook.cases.fetching import trust
from casebook.errors import RunFailed
from casebook.laboratory import measurements, scripts
from casebook.laboratory.experiment import Experiment, Parameters
from casebook.mistakes import check_choices, for_readers
from casebook.stacks.environments import Environment

STEPS = ["before", "dropped", "ended", "trimmed"]

#: What is asked: how it is called on a page -> threads, whether they load all certificates or
#: none, how many arenas there may be (0: as glibc has it), and whether one thread makes all.
WAYS: dict[str, dict[str, Any]] = {
    "1 thread": {"threads": 1, "certificates": None, "arenas": 0, "maker": False},
    "30 threads": {"threads": 30, "certificates": None, "arenas": 0, "maker": False},
    "30 threads, one arena": {"threads": 30, "certificates": None, "arenas": 1, "maker": False},
    "30 threads, one of them makes all contexts": {
        "threads": 30, "certificates": None, "arenas": 0, "maker": True,
    },
    "30 threads, no certificates": {
        "threads": 30, "certificates": 0, "arenas": 0, "maker": False,
    },
}  # fmt: skip

COLUMNS = [
    *("stack", "how", "threads", "arenas", "openssl", "peak", "in_use_kib", "dropped_kib"),
    *("ended_kib", "trimmed_kib", "source", "measured_at", "instead", *measurements.COLUMNS),
]


@for_readers
def measure(name: str, variants: list[str] | None = None) -> pd.DataFrame:
    """Have the threads of a process make a context each and drop it, in each of the ways.

    variants: of WAYS, all by default.

    Returns one row per way, columns COLUMNS: peak, the most contexts that were alive at once; by
    how much resident memory has grown when all are dropped (dropped_kib), when the threads have
    ended (ended_kib), and once malloc was asked to give back what it keeps (trimmed_kib);
    in_use_kib, what malloc has handed out in the end. Raises as weights.measure.
    """
    labels = check_choices("variants", "the variant", variants, WAYS)
    return _THREADS.measure(name, [WAYS[label] for label in labels]).reindex(columns=COLUMNS)


def _run_probe(environment: Environment, parameters: Parameters) -> dict[str, Any]:
    task = Task(certificates=parameters["certificates"])
    variables = {"MALLOC_ARENA_MAX": str(parameters["arenas"])} if parameters["arenas"] else {}
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        spec = {**parameters, "turns": 1, "file": task.bundle(Path(folder))}
        return scripts.answer_of(
            environment, _THREADS.script, spec, variables=variables, beside=[places.PROBES]
        )


def _figures(parameters: Parameters, answer: dict[str, Any]) -> dict[str, Any]:
    steps = {step["what"]: step for step in answer["steps"]}
    if list(steps) != STEPS or answer["peak"] != 1:
        raise RunFailed(
            f"{answer['peak']} contexts were alive at once, and the steps were "
            f"{', '.join(steps)}. Nothing was recorded."
        )
    [label] = [label for label, variant in WAYS.items() if variant == parameters]
    growth = {
        f"{step}_kib": steps[step]["rss_kib"] - steps["before"]["rss_kib"] for step in STEPS[1:]
    }
    in_use = [steps[step]["in_use_kib"] for step in ("before", "trimmed")]
    in_use_kib = None if None in in_use else in_use[1] - in_use[0]
    common = {"how": label, "openssl": answer["openssl"], "peak": answer["peak"]}
    return common | growth | {"in_use_kib": in_use_kib}


_THREADS = Experiment(
    Path(__file__).parent / "probes" / "context_threads.py",
    _figures,
    depends_on=(Path(__file__), trust.dependency()),
    lacks=weights.lacks,
    beside=(places.PROBES,),
    ask=_run_probe,
)
