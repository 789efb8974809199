"""The book of a machine file: what statements saw is kept and said again, and nothing measured."""

import json
import lzma
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from here import eventually, needs, run
from test_book import write_model

from casebook import build, places
from casebook.laboratory import machine_files, measurements
from casebook.pages import execution, kernel, plain
from casebook.pages.contents import Book

#: Runs cells, read from standard input, in a shell whose store is a folder of the test.
SHELL = """
import json, os, pathlib, sys
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

class Kernels(DisplayHook):  # a kernel's does not print what a cell shows, either
    def write_output_prompt(self): pass
    def finish_displayhook(self): pass
    def write_format_data(self, formats, metadata=None):
        sys.stdout.flush()
        os.write(1, f"shown: {formats['text/plain']}\\n".encode())

from casebook import places
places.RUNS = pathlib.Path(sys.argv[1])
from casebook.pages import statements
shell = InteractiveShell.instance(displayhook_class=Kernels)
statements.load_ipython_extension(shell)
for cell in json.load(sys.stdin):
    shell.run_cell(cell)
"""
SAYS = (
    "import subprocess, sys\nsaid = subprocess.check_output([sys.executable, '-c', 'print(6 * 7)'])"
)
LISTENS = "import socket\nhere = socket.socket()\nhere.bind(('127.0.0.1', 0))"
CELLS = [
    SAYS, "print('it said', int(said))", "twice = 2 * int(said)\nprint('twice', twice)",
    LISTENS, "port = here.getsockname()[1]", "print('port', port)",
    "seen = []\ndef look():\n    seen.append(socket.gethostbyname('127.0.0.1'))", "look()",
    "print('seen', seen)",
    # urllib3 binds a socket when it is imported: that is not the work of the line before.
    "from textwrap import dedent\nimport urllib3", "print(dedent('  dedented'))",
    "ADAPTER = socket.SocketIO", "print('called', ADAPTER.__name__)",
    # A value that a cell shows, a frame that gets a column, a file, a server.
    "import threading\nten = 10", "threading.active_count() * 0 + ten",
    "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})",
    "frame['b'] = [threading.active_count() * 0 + each for each in (3, 4)]",
    "print('sum', frame['b'].sum())",
    "from pathlib import Path\nfile = Path(sys.argv[1]).absolute() / 'some.txt'",
    "size = file.write_text('in a file')", "text = file.read_text()", "print('text', text)",
    "from casebook.cases.fetching import server\nlab = server.start('http')",
    "def ask(url=lab.url):\n    return url.partition(':')[0]", "print(ask())",
    "counted = lab.counters()['requests']\nlab.stop()", "print('counted', counted)",
    "import asyncio\nasync def pause():\n    await asyncio.sleep(0)", "print(pause.__name__)",
]  # fmt: skip
#: A measurement that ends in an error, which is what it shows.
FAILS = [
    "from casebook import measure\nfrom casebook.errors import RunFailed",
    "try:\n    measure('requests-first-today', n=3, repeats=1)\n"
    "except RunFailed as error:\n    refusal = str(error)",
    "print('failed:', refusal)",
]


def in_a_shell(
    folder: Path, cells: list[str], file: Path | None = None, chapter: str = "one"
) -> str:
    """What cells print in a kernel's shell: that keeps, or that answers from a machine file."""
    environ = os.environ | {"CASEBOOK_BUILD": "1", "CASEBOOK_CHAPTER": chapter}
    if file:
        environ["CASEBOOK_MACHINE"] = str(file)
    done = run(sys.executable, "-c", SHELL, folder, env=environ, input=json.dumps(cells))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> tuple[Path, str]:
    """The answers that a build of CELLS keeps, and what the cells printed."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, in_a_shell(folder, CELLS)


def file_of(folder: Path, at: Path, lie: tuple[str, str] = ("\0", "")) -> Path:
    """A machine file of the answers in a folder, in whose text something may be replaced."""
    answers = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    file = at / f"a-machine{machine_files.SUFFIX}"
    machine_files.save(
        machine_files.Machine("m", {"processor": "A chip", "cores": 2}, answers), file
    )
    text = lzma.decompress(file.read_bytes()).decode()
    file.write_bytes(lzma.compress(text.replace(*lie).encode()))
    return file


def test_what_statements_saw_is_said_again_and_the_rest_is_worked_out(kept, tmp_path):
    folder, printed = kept
    assert "it said 42" in printed and "twice 84" in printed and "seen ['127.0.0.1']" in printed
    assert in_a_shell(tmp_path, CELLS, file_of(folder, tmp_path)) == printed
    # The bytes "42\n" that the program printed, as 43: all that follows is worked out from them.
    other = in_a_shell(tmp_path, CELLS, file_of(folder, tmp_path, ("NDIK", "NDMK")))
    assert "it said 43" in other and "twice 86" in other


@needs("git")
def test_what_only_finds_its_way_about_is_not_kept(tmp_path):
    """The functions that say so themselves: each starts a process. The last one does not say so."""
    functions = [
        "interpreters.examine(HERE, '')", "interpreters._candidates('3.11')", "digests.tool('sh')",
        "measurements._git('--version')", "commands.run([HERE, '--version'], 'x', 60, {})",
    ]  # fmt: skip
    cells = [
        "from casebook import places\nfrom casebook.build import is_exploring\n"
        "from casebook.stacks import commands, digests, interpreters\n"
        "from casebook.laboratory import measurements\nbegun = []\n"
        f"import sys\nHERE = interpreters.Path({sys.executable!r})\n"
        "note = lambda event, _: event == 'subprocess.Popen' and begun.append(is_exploring())",
        "sys.addaudithook(note)",
        "begun.clear()",
        *(f"{function}; begun.append('done')" for function in functions),
        "print(begun)",
    ]
    printed = in_a_shell(tmp_path / "runs", cells)
    assert "[True, 'done', True, 'done', True, 'done', True, 'done', False, 'done']" in printed
    # Of these statements the first, which asks `sys`, and the last.
    assert len([*(tmp_path / "runs").glob("*.json")]) == 2


def test_whether_this_is_a_build_is_asked_in_one_place():
    paths = [p for p in places.PACKAGE.rglob("*.py") if build.VARIABLE in p.read_text()]
    assert paths == [places.PACKAGE / "build.py"]


def test_a_measurement_that_failed_fails_again_and_is_never_taken_for_one(tmp_path):
    folder = tmp_path / "runs"
    printed = in_a_shell(folder, FAILS)
    assert "failed: requests-first-today: RecursionError at page 0" in printed
    [stored] = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert stored["failed"][0] == "RunFailed" and "wall_s" not in stored
    assert in_a_shell(tmp_path, FAILS, file_of(folder, tmp_path)) == printed
    assert in_a_shell(folder, FAILS) == printed  # measured again: the newer one is kept
    [again] = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert again["measured_at"] > stored["measured_at"]
    for lie in (["SystemExit", "x"], ["RunFailed"], "RunFailed", {"RunFailed": "x"}, [[], {}]):
        assert measurements._failure_of({"failed": lie}) is None


def test_what_gives_a_name_to_code_is_not_refused_and_what_reads_the_machine_is(kept, tmp_path):
    cells = [
        "import ssl, socket", "OTHER = ssl.SSLSocket", "OPENSSL = ssl.OPENSSL_VERSION",
        "print('and', 'OTHER' in globals(), 'OPENSSL' in globals())", "print(OTHER.__name__)",
    ]  # fmt: skip
    said = in_a_shell(tmp_path, cells, file_of(kept[0], tmp_path)).splitlines()
    not_here = "Not here: its file has no answer to this."
    assert [line for line in said if line] == [not_here, "and True False", not_here]


def test_where_the_file_has_no_answer_the_cell_and_its_claims_are_not_here(kept, tmp_path):
    new = (
        "from casebook import claim\n"
        "subprocess.run([sys.executable, '-c', 'open(sys.argv[1], \"w\")', TARGET])\n"
        "claim('a-thing', f'Of {1 + 1} things, {{value}} are so.', 1, holds=True)"
    )
    target = tmp_path / "was-run"
    cells = [*CELLS, f"TARGET = {str(target)!r}", new, "print('and it goes on', twice)"]
    said = in_a_shell(tmp_path, cells, file_of(kept[0], tmp_path))
    assert "Not here: its file has no answer to this." in said and not target.exists()
    assert "Of … things, … are so. [– not here" in said and "and it goes on 84" in said


LOOKING = [
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "os.posix_spawn('/bin/true', ['true'], {})",
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "from casebook.laboratory import measurements; measurements.new(dict)",
    "from casebook.cases.fetching import server; server.start()",
    "import time; began = time.monotonic()",
    "print(time.strftime('%Y'))",
    "from casebook import measure; measure('stage-1-today', n=3, repeats=1)",
]


def test_a_book_of_a_machine_file_starts_nothing_and_connects_to_nobody(kept, tmp_path):
    cells = [each for code in LOOKING for each in (code, "print('after')")]
    said = in_a_shell(tmp_path, cells, file_of(kept[0], tmp_path))
    each = ["Not here: its file has no answer to this.", "after"] * len(LOOKING)
    assert [line for line in said.splitlines() if line] == each
    assert not [*tmp_path.glob("*.json")]


@pytest.mark.parametrize("lie", ['"names": [[1]]', '"names": 5', '"printed": 7'])
def test_a_form_that_is_none_is_not_here_and_nothing_is_measured_instead(kept, tmp_path, lie):
    """Else IPython would drop what answers from the file, and ask this machine."""
    answers = [json.loads(path.read_text()) for path in sorted(kept[0].glob("*.json"))]
    [name, value] = json.loads(f"{{{lie}}}").popitem()
    lied = [each | {name: value} if "printed" in each else each for each in answers]
    file = tmp_path / f"a-machine{machine_files.SUFFIX}"
    machine_files.save(machine_files.Machine("m", {"processor": "A chip"}, lied), file)
    cells = [*CELLS[:2], "import time; began = time.monotonic()", "print('after')"]
    said = in_a_shell(tmp_path, cells, file)
    assert said.count("Not here: ") == 3 and "it said" not in said and "after" in said


def test_a_kernel_that_cannot_answer_from_its_file_ends(tmp_path):
    file = tmp_path / f"none{machine_files.SUFFIX}"
    environ = os.environ | {"CASEBOOK_BUILD": "1", "CASEBOOK_MACHINE": str(file)}
    done = run(sys.executable, "-c", SHELL, tmp_path, env=environ, input='["print(1)"]')
    assert done.returncode == 1 and not done.stdout and "MachineFileRefused" in done.stderr


def test_a_chapter_whose_kernel_cannot_begin_says_so_and_measures_nothing(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("open('was-run', 'w')")])
    (tmp_path / "notebooks").mkdir()
    nbformat.write(notebook, tmp_path / "notebooks" / "one.ipynb")
    book, file = Book(tmp_path), tmp_path / f"none{machine_files.SUFFIX}"
    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory() as folder:
        begun = pool.submit(
            kernel.run, tmp_path / "notebooks" / "one.ipynb", book, Path(folder),
            lambda *_: None, threading.Event(), file,
        )  # fmt: skip
        kept, failure = begun.result(300)
    assert failure.startswith("notebooks/one.ipynb: its kernel could not begin")
    assert not kept.cells[0].outputs and not (tmp_path / "notebooks" / "was-run").exists()


FRAME = pd.DataFrame({"n": [1, 2], "s": [0.5, math.nan], "who": ["x", None], "of": [b"a", [1]]})


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 0.5, "text", (1, (2,)), {"a": 1, 2: [3]}, {1, 2}, b"\0\xff", Path("x")],
    ids=repr,
)
def test_data_comes_back_as_it_was(value):
    assert plain.decode(json.loads(json.dumps(plain.encode(value)))) == value


def test_frames_come_back_as_they_were():
    for frame in (FRAME, FRAME[:0], FRAME.set_index(["n", "who"]), FRAME.groupby("n").agg("first")):
        back = plain.decode(json.loads(json.dumps(plain.encode(frame))))
        pd.testing.assert_frame_equal(back, frame, check_index_type=False, check_column_type=False)
    assert math.isnan(plain.decode(plain.encode(math.nan)))


@pytest.mark.parametrize(
    "value",
    [print, object(), json, [lambda: 1], "x" * 2_000_000],
    ids=["function", "object", "module", "list of a function", "too long"],
)
def test_what_is_no_data_has_no_form(value):
    with pytest.raises(plain.NotDataError):
        plain.encode(value)


@pytest.mark.parametrize(
    "form",
    [
        {"record": ["Popen", {"dict": [["args", "true"]]}]}, {"pickle": "gASV"}, {"a": 1, "b": 2},
        {"column": [[[None], [0]], "x", "datetime64[ns]", [1]]}, {"float": "1e9"},
        {"environment": ["../x", {"dict": []}, ""]}, {"frame": [1]}, {"bytes": "*"}, {"dict": [1]},
        {"record": ["Observation", {"dict": [["stack", "x"]]}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_stranger_writes_in_its_place_is_refused(form):
    with pytest.raises(plain.NotDataError):
        plain.decode(form)


def test_a_chapter_is_of_the_first_file_that_answers_all_of_it(tmp_path):
    """Of one file alone: what two machines measured is never on one page as if one had."""
    cells = [SAYS, "print('it said', int(said))"]
    root, runs = tmp_path / "book", tmp_path / "runs"
    write_model(root)
    (root / "casebook" / "__init__.py").unlink()
    shutil.rmtree(root / "casebook")
    (root / "casebook").symlink_to(places.PACKAGE)
    for name in ("one", "two"):
        notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
        nbformat.write(notebook, root / "notebooks" / f"{name}.ipynb")
        in_a_shell(runs, cells, chapter=name)
        (tmp_path / name).mkdir()
        if name == "one":
            partial = file_of(runs, tmp_path / "one")
    whole = file_of(runs, tmp_path / "two", ("NDIK", "NDMK")).rename(
        tmp_path / f"b{machine_files.SUFFIX}"
    )
    book = Book(root)

    def said(*files: Path) -> list[str]:
        with ThreadPoolExecutor(1) as pool:  # nbclient takes the signals of a main thread
            chapters = pool.submit(execution.execute, book, files).result(300)
        assert execution.stale_notebooks(book, book.notebooks(), files) == {}
        shown = [chapter.notebook.cells[1].outputs[0] for chapter in chapters]
        return [" ".join(output.get("text", output.get("data", {}).get("text/plain")).split())
                for output in shown]  # fmt: skip

    def names() -> list[str]:
        return [book.machine_file_of(path) for path in book.notebooks()]

    assert said(partial, whole) == ["it said 42", "it said 43"]
    assert names() == [partial.name, whole.name]
    assert said(whole, partial) == ["it said 43", "it said 43"]
    assert said(partial) == ["it said 42", "Not here: its file has no answer to this."]
    assert names() == [partial.name] * 2
    assert said(partial, partial)[1] == "Not here: its file has no answer to this."


# --------------------------------------------------------------------------- the whole way, slowly

ONE = [
    "import subprocess, sys\nfrom casebook import claim",
    "said = subprocess.check_output([sys.executable, '-c', 'print(6 * 7)'], text=True)",
    "claim('one-said', 'A program says {value}.', int(said), holds=int(said) > 1)",
]
#: Waits while a file of the test is there, so that it can be interrupted.
TWO = [
    "import os, time\nfrom casebook import claim",
    "os.close(os.open('../measuring', os.O_CREAT))\n"
    "while os.path.exists('../wait'):\n    time.sleep(0.1)",
    "claim('two-is', 'It is {value}.', 2, holds=True)",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A project of its own: this package, no stacks, a preface and two chapters."""
    root = tmp_path_factory.mktemp("project") / "book"
    write_model(root)
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(places.PACKAGE, root / "casebook", dirs_exist_ok=True, ignore=left_out)
    (root / "env").mkdir()
    (root / "env" / "stacks.toml").write_text("stack = []\n")
    building = root / "casebook" / "pages" / "building.py"  # the first pages, after one chapter
    building.write_text(building.read_text().replace("\nFIRST = 3\n", "\nFIRST = 1\n"))
    for name, cells in (("one", ONE), ("two", TWO)):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_markdown_cell(f"# Chapter {name}\n\nIt begins.")]
        notebook.cells += map(nbformat.v4.new_code_cell, cells)
        nbformat.write(notebook, root / "notebooks" / f"{name}.ipynb")
    return root


def book(root: Path, *how: object) -> subprocess.CompletedProcess[str]:
    done = run(sys.executable, "-m", "casebook", "book", *how, cwd=root, timeout=1500)
    assert done.returncode == 0, done.stderr
    return done


def pages(root: Path) -> dict[str, str]:
    site = Book(root).html
    return {path.stem: path.read_text() for path in sorted(site.glob("[bn]o*/*.html"))}


@pytest.mark.slow
@pytest.mark.timeout(3000)  # five builds; a crowded machine took minutes for one
def test_a_book_is_there_at_once_and_survives_an_interrupt(project):
    """Measured, saved; then in a fresh clone written from that file, interrupted, and measured."""
    book(project)
    assert not any("another machine" in text for text in pages(project).values())
    file = project / f"m{machine_files.SUFFIX}"
    saved = run(sys.executable, "-m", "casebook", "machine", "save", file, cwd=project)
    assert saved.returncode == 0, saved.stderr
    text = lzma.decompress(file.read_bytes()).decode()
    assert text.count('"42\\n"') == 1  # what the program of chapter one printed
    file.write_bytes(lzma.compress(text.replace('"42\\n"', '"43\\n"').encode()))
    for folder in (".casebook", "_build"):
        shutil.rmtree(project / folder)
    # The book of that file: its answers, and no word of this machine.
    (project / "measuring").unlink()
    done = book(project, "--machine", file)
    assert "this measures nothing" in done.stderr and not (project / "measuring").exists()
    assert "A program says 43." in pages(project)["one"]
    assert all("another machine" in text for text in pages(project).values())
    claims = json.loads((Book(project).html / "claims.json").read_text())
    assert {claim["source"] for claim in claims} == {"reference"}
    # A fresh clone that has such a file: its book at once, interrupted while it measures.
    shutil.rmtree(project / "_build")
    (project / "data" / "machines").mkdir()
    file.rename(project / "data" / "machines" / file.name)
    (project / "wait").touch()
    command = [sys.executable, "-m", "casebook", "book"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as building:
        assert eventually((project / "measuring").exists, 600)
        assert all("another machine" in text for text in pages(project).values())
        building.send_signal(signal.SIGTERM)
        said = building.communicate(timeout=600)[1]
        assert "the first 1 chapters can be read" in said
    assert building.returncode == 130
    assert all("another machine" in text for text in pages(project).values())
    assert "Chapter two" in pages(project)["two"] and (Book(project).html / "index.html").exists()
    # The next build goes on, and ends with this machine alone.
    (project / "wait").unlink()
    assert "from m" not in book(project).stderr
    assert not any("another machine" in text for text in pages(project).values())
    assert "A program says 42." in pages(project)["one"]
    claims = json.loads((Book(project).html / "claims.json").read_text())
    assert {claim["source"] for claim in claims} == {"live"}
