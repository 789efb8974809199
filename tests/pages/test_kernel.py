"""A chapter's kernel, forked or begun anew: the same to its cells, and never left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from here import alive, eventually

from casebook import places
from casebook.pages import kernel
from casebook.pages.contents import Book

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")

#: What a cell can see of its process, less what differs from one kernel to the next.
SEEN = """
import multiprocessing, os, resource, signal, sys, threading
of_one_run = {"JPY_PARENT_PID", "CASEBOOK_PROGRESS", "CASEBOOK_SPANS"}
print(os.getcwd(), sys.path[0], __name__, sys.flags, sys.stdin.__class__, sys.dont_write_bytecode)
print({name: value for name, value in os.environ.items() if name not in of_one_run})
print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getsid(0) == os.getpid(), os.umask(18))
print(resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0))
print(multiprocessing.get_start_method(), len(threading.enumerate()))
"""
#: Who forked this process: the name of the module is in its command line.
PARENT = "import os; print(open(f'/proc/{os.getppid()}/cmdline').read())"


def executed(folder: Path, *cells: str) -> tuple[list[str], str]:
    """Execute cells in a kernel for the book under `folder`: what each printed, and the failure."""
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    path = folder / "notebooks" / "one.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory() as name:
        run = pool.submit(
            kernel.run, path, Book(folder), Path(name), lambda *_: None, threading.Event()
        )
        notebook, failure = run.result(300)
    printed = [
        "".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells
    ]
    return printed, failure


def test_a_forked_kernel_is_to_its_cells_like_one_begun_anew(tmp_path, monkeypatch):
    begun_anew, _ = executed(tmp_path, SEEN, PARENT)
    monkeypatch.setattr(places, "ROOT", tmp_path)
    forked, failure = executed(tmp_path, SEEN, PARENT)
    assert not failure
    assert "forkserver" in forked[1] and "forkserver" not in begun_anew[1]
    assert forked[0].splitlines() == begun_anew[0].splitlines()


def test_a_forked_kernel_has_nothing_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "ROOT", tmp_path)
    cell = "import random, casebook; print(hasattr(casebook, 'left'), random.random())"
    first, _ = executed(tmp_path, cell, "casebook.left = True")
    second, _ = executed(tmp_path, cell)
    assert first[0].startswith("False ") and second[0].startswith("False ")
    assert first[0] != second[0]  # numbers drawn by chance differ, too


def test_a_forked_kernel_that_ends_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "ROOT", tmp_path)
    _, failure = executed(tmp_path, "import os; os._exit(3)")
    assert "the kernel died" in failure


def test_a_forked_kernel_ends_with_a_build_that_is_killed(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from casebook import places\n"
        "from test_kernel import executed\n"
        "places.ROOT = folder = pathlib.Path(sys.argv[1])\n"
        "executed(folder, \"import os; open('../pid', 'w').write(str(os.getpid()))\", "
        "'import time; time.sleep(600)')"
    )
    here = Path(__file__).parent
    build = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        env={**os.environ, "PYTHONPATH": f"{here}:{here.parent / 'support'}"},
    )
    pid = tmp_path / "pid"
    assert eventually(lambda: pid.exists() and pid.read_text())
    build.send_signal(signal.SIGKILL)
    build.wait()
    assert eventually(lambda: not alive(int(pid.read_text())))
