"""Ten students at once on one machine, each with a kernel: `python crowd_of_students.py`.

Each measures a stack that is concurrent and one that is serial, then has a lab graded. Printed is
what each found, how long the slowest waited, and the memory of all together.

    python crowd_of_students.py 02_all_at_once 1 2 10 1

One student runs all cells of a chapter, then two at the same moment, ten, and one again: each as in
a container of a hub, with nothing measured before and no lock in common. Printed is how long the
median and the slowest of them took, and how their findings came out.
"""

import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
import psutil
from jupyter_client.manager import AsyncKernelManager, KernelManager
from nbclient import NotebookClient

from casebook import places
from casebook.findings import media

#: What a student runs.
CELL = """
import json, logging
from pathlib import Path
from casebook import analysis, measure
from casebook.classroom import grading

frame = measure(["stage-1-today", "stage-2-injected-today"], n=10, delay_s=0.3, repeats=2)
report = grading.grade("read-a-profile", Path({answer!r}))
print("FOUND", json.dumps([dict(analysis.verdicts(frame)), report.points, report.of]))
"""
#: What she has to find.
VERDICTS = {"stage-1-today": "concurrent", "stage-2-injected-today": "serial"}


@dataclass
class Student:
    """verdicts: by stack; points of points; waited_s: from the start of her kernel to the end."""

    verdicts: dict
    points: int
    of: int
    waited_s: float


@dataclass
class Crowd:
    """peak_mb: of all kernels and what they started, together, without what they share."""

    students: list
    peak_mb: float


def play(count: int = 10, within_s: float = 900) -> Crowd:
    """Have this many students work at once. Raises what goes wrong with one of them."""
    students, errors, kernels = [], [], []

    def attend(number: int) -> None:
        try:
            students.append(_attend(Path(folder) / str(number), kernels, within_s))
        except Exception as error:
            errors.append(error)

    with tempfile.TemporaryDirectory() as folder, _weighed(kernels) as peak_mb:
        threads = [threading.Thread(target=attend, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return Crowd(students, peak_mb[0])


def _attend(folder: Path, kernels: list, within_s: float) -> Student:
    """Be one student, with a kernel of her own, which is added to `kernels`."""
    start_s = time.monotonic()
    answer = folder / "answer.py"
    folder.mkdir()
    shutil.copyfile(Path(__file__).parent / "answers" / "read-a-profile" / "right.py", answer)
    # Sockets of her own: without a file, all kernels take theirs by the same name.
    manager = KernelManager(transport="ipc", connection_file=str(folder / "kernel.json"))
    manager.start_kernel(cwd=str(places.ROOT))
    kernels.append(manager)
    client = manager.blocking_client()
    client.start_channels()
    printed, errors = [], []

    def hear(message: dict) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            printed.append(content["text"])
        if message["msg_type"] == "error":
            errors.append(f"{content['ename']}: {content['evalue']}")

    try:
        client.wait_for_ready(timeout=within_s)
        cell = CELL.format(answer=str(answer))
        client.execute_interactive(cell, timeout=within_s, output_hook=hear)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    lines = [line for line in "".join(printed).splitlines() if line.startswith("FOUND ")]
    if errors or not lines:
        raise RuntimeError(f"student {folder.name}: {errors or printed}")
    verdicts, points, total = json.loads(lines[0].removeprefix("FOUND "))
    return Student(verdicts, points, total, time.monotonic() - start_s)


@contextlib.contextmanager
def _weighed(kernels: list) -> Iterator[list[float]]:
    """Weigh the kernels and their children each second: gives a list with the peak, in MB."""
    over, peak_mb = threading.Event(), [0.0]

    def weigh() -> None:
        while not over.wait(1):
            total = 0
            for manager in list(kernels):
                with contextlib.suppress(psutil.Error, AttributeError):  # it has just ended
                    process = psutil.Process(manager.provisioner.pid)
                    for member in (process, *process.children(recursive=True)):
                        total += member.memory_full_info().uss
            peak_mb[0] = max(peak_mb[0], total / 1e6)

    thread = threading.Thread(target=weigh)
    thread.start()
    try:
        yield peak_mb
    finally:
        over.set()
        thread.join()


#: What a container would do: the environments are there, what is written beside them stays with the
#: student, and nothing was measured.
CONTAINER = """
set -e
mkdir "$1/upper" "$1/work"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$2"
mkdir -p "$2/runs"
mount -t tmpfs tmpfs "$2/runs"
exec "$3" "$4" --alone "$5" "$1/kernel.json"
"""


def execute(stem: str, count: int) -> list:
    """Have this many students run all cells of a chapter at the same moment.

    For each the seconds, and how many findings came out in which way. Raises RuntimeError where one
    does not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        students = []
        for number in range(count):
            own = Path(folder) / str(number)
            own.mkdir()
            command = ["unshare", "-Urm", "sh", "-c", CONTAINER, "sh", own, places.LOCAL,
                       sys.executable, __file__, stem]  # fmt: skip
            students.append(
                subprocess.Popen(
                    list(map(str, command)),
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
        results = []
        for student in students:
            printed, complaints = student.communicate()
            if student.returncode:
                raise RuntimeError(complaints[-2000:])
            results.append(json.loads(printed.splitlines()[-1]))
    return results


def execute_alone(stem: str, connection_file: str) -> None:
    """Run all cells of a chapter, and print the seconds and the outcomes of its findings."""
    notebook = nbformat.read(places.NOTEBOOKS / f"{stem}.ipynb", as_version=4)
    kernel = AsyncKernelManager(transport="ipc", connection_file=connection_file)
    where = {"metadata": {"path": str(places.NOTEBOOKS)}}
    began = time.monotonic()
    NotebookClient(notebook, km=kernel, resources=where, timeout=None).execute()
    outcomes = Counter(record["outcome"] for record in media.records(notebook, media.CLAIM))
    print(json.dumps([time.monotonic() - began, outcomes]))


def print_times(stem: str, counts: list) -> None:
    """Print a line for each number of students, in this order, as soon as they are done."""
    for count in counts:
        seconds, outcomes = zip(*execute(stem, count), strict=True)
        total = sum(map(Counter, outcomes), Counter())
        print(
            f"{stem}, {count} at once: median {statistics.median(seconds):.0f} s, slowest "
            f"{max(seconds):.0f} s; findings: {dict(total)}; load {psutil.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__" and sys.argv[1:2] == ["--alone"]:
    execute_alone(*sys.argv[2:])
elif __name__ == "__main__" and len(sys.argv) > 2:
    print_times(sys.argv[1], [int(count) for count in sys.argv[2:]])
elif __name__ == "__main__":
    crowd = play(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    for each in crowd.students:
        print(asdict(each))
    slowest = max(each.waited_s for each in crowd.students)
    print(f"the slowest waited {slowest:.0f} s; all together held {crowd.peak_mb:.0f} MB at most")
