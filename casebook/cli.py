"""The command line: serve, stacks, measure, machine, grade, course, whodunit, record, book."""

import errno
import json
import os
import select
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from casebook.errors import CasebookError, UsageError

#: What the system says of a disk that takes no more: full, over its quota, read-only, too large.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--n is {text!r}; give whole numbers, like 3,5,10") from None


def _serve(options: Namespace) -> None:
    from casebook.cases.fetching import server

    given = [name for name in ("engine", "delay", "http1_only") if getattr(options, name)]
    if not options.bookstore:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} is for --bookstore")
        server.serve(partial(server.start, "http" if options.plain else "https", options.port))
        return
    from casebook.cases.bookstore.store import open_store

    if options.plain:
        raise UsageError("the bookstore is served over TLS, by one of --engine")
    how = {"delay_s": options.delay or 0.0, "port": options.port}
    engine = options.engine or "twisted"
    server.serve(partial(open_store, engine, options.http1_only, **how))


def _stacks(options: Namespace) -> None:
    from casebook import stacks
    from casebook.stacks import environments, pythons

    if options.get:
        pythons.get()
    if options.make:
        environments.ensure_all(stacks.of_chapters())
    if options.get or options.make:
        return
    states = [environments.status(stack) for stack in stacks.load().values()]
    if options.json:
        print(json.dumps(states, indent=2))
        return
    width = max(len(state["name"]) for state in states)
    for state in states:
        print(
            f"{state['name']:<{width}}  {state['state']:<14} "
            f"{state['interpreter'] or '-':<8} {' > '.join(state['steps'])}"
            + (f"  + {state['patch']}" if state["patch"] else "")
        )
        print(f"{'':<{width}}  {state['about']}")


def _keys(options: Namespace) -> Any:
    from casebook.cases.many import machines

    return machines.keys_of(options.tls_ca, options.tls_cert, options.tls_key)


def _measure_on(options: Namespace) -> None:
    """Each stack on each worker: what one of them cannot run is named, and the rest comes."""
    from casebook.cases.many import machines

    if options.url or options.ca_file:
        raise UsageError("--on measures each worker against servers of its own: leave out --url")
    more = ["--scheme", options.scheme, "--trust", options.trust]
    for name in ("delay", "repeats", "client"):
        if (value := getattr(options, name)) is not None:
            more += [f"--{name}", str(value)]
    if options.n:
        sizes = options.n if isinstance(options.n, list | tuple) else [options.n]
        more += ["--n", ",".join(map(str, sizes))]
    more += ["--json"] if options.json else []
    failed = []
    asked = [["measure", stack, *more] for stack in options.stack]
    for answer in machines.ask(options.on, _keys(options), asked):
        if answer.failed:
            failed.append(f"{answer.worker}, {' '.join(answer.command[1:2])}: {answer.failed}")
        elif options.json:
            for line in answer.out.splitlines():
                print(json.dumps({"worker": answer.worker, **json.loads(line)}), flush=True)
        else:
            print(f"{answer.worker}:\n{answer.out}", flush=True)
    machines.all_came(failed)


def _cluster_scheduler(options: Namespace) -> None:
    from casebook.cases.many import machines

    _ended(machines.scheduler(options.host, options.port, _keys(options)))


def _cluster_worker(options: Namespace) -> None:
    from casebook.cases.many import machines

    _ended(machines.worker(options.address, _keys(options), options.host))


def _ended(code: int) -> None:
    from casebook.errors import ServerFailed

    if code:
        raise ServerFailed(f"it ended with exit code {code}; the lines above say why")


def _measure(options: Namespace) -> None:
    if options.on:
        return _measure_on(options)
    from casebook.cases.fetching import analysis, server
    from casebook.cases.fetching.measure import measure_runs
    from casebook.cases.fetching.run_record import frame

    scheme, target = options.scheme, None
    if options.url:
        scheme, colon, _ = options.url.partition("://")
        if not colon:
            raise UsageError(f"--url is {options.url!r}; it starts with https:// or http://")
        target = server.Server(options.url.rstrip("/"), options.ca_file)
    measured = measure_runs(
        options.stack,
        n=options.n,
        delay_s=options.delay,
        repeats=options.repeats,
        client=options.client,
        scheme=scheme,
        trust=options.trust,
        target=target,
    )
    if options.json:
        for run in measured:
            print(json.dumps(asdict(run)))
        return
    table = analysis.summary(frame(measured)).drop(columns=["scheme", "source"])
    print(table.round(3).to_string(index=False))


def _record(options: Namespace) -> None:
    from casebook.cases import reference_run
    from casebook.charts import picture

    reference_run.record(options.only)
    picture.write()


def _machine_of(name: str) -> Any:
    """The machine of a file, of one that comes with the book, or `here`: this one."""
    from casebook.laboratory import machines, reference

    if name == "here":
        return _this_machine()
    return machines.read(reference.file() if name == "reference" else _file_of(name))


def _file_of(name: str) -> Path:
    """A machine file, by its path, or by its name where it comes with the book."""
    from casebook.laboratory import machines

    known = {path.name.removesuffix(machines.SUFFIX): path for path in machines.files()}
    return known.get(name, Path(name)).absolute()


def _this_machine() -> Any:
    from casebook.laboratory import machines

    return machines.of_this_machine(_claims(), _chapters())


def _chapters() -> dict[str, dict[str, float]]:
    """What each chapter took in the last build here; none before the first."""
    from casebook.pages import timing
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    return {stem: asdict(time) for stem, time in timing.read(Book(ROOT)).items()}


def _claims() -> list[dict[str, Any]]:
    """What the last build's claims said; none before the first."""
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    built = Book(ROOT).html / "claims.json"
    return json.loads(built.read_text()) if built.exists() else []


def _machine_save(options: Namespace) -> None:
    from casebook.laboratory import machines

    _check_name(options.file)
    if options.on:
        return _machine_save_on(options)
    if options.complete:
        from casebook.cases import reference_run

        reference_run.complete()
    machine = _this_machine()
    size = machines.save(machine, options.file)
    print(
        f"{options.file}: {machine.label}; {len(machine.answers):,} answers, "
        f"{len(machine.findings)} findings, {size:,} bytes"
    )


def _machine_labs(options: Namespace) -> None:
    from casebook.classroom import grading
    from casebook.laboratory import machines

    _check_name(options.file)
    answers = grading.recorded()
    about = machines.describe() | machines.steadiness(answers)
    size = machines.save(machines.Machine("here", about, answers), options.file)
    print(f"{options.file}: {len(answers)} answers to what the labs ask, {size:,} bytes")


def _check_name(file: Path) -> None:
    from casebook.laboratory import machines

    if not file.name.endswith(machines.SUFFIX):
        raise UsageError(f"{file.name}: a machine file's name ends in {machines.SUFFIX}")


def _machine_save_on(options: Namespace) -> None:
    from casebook.cases.many import machines

    failed = []
    for worker, file, said in machines.save(options.on, _keys(options), options.file):
        if file is None:
            failed.append(f"{worker}: {said}")
        else:
            print(f"{file}: {said}", flush=True)
    machines.all_came(failed)


def _machine_compare(options: Namespace) -> None:
    from casebook.classroom import certificate
    from casebook.findings import side_by_side

    asked = side_by_side.windows(_claims())
    machines = [side_by_side.judged_today(_machine_of(name), asked) for name in options.file]
    if options.page:
        options.page.write_text(certificate.page(machines, options.title), encoding="utf-8")
        print(f"{options.page}: open it in a browser, and print it")
    else:
        print(side_by_side.text(machines))


def _grade(options: Namespace) -> None:
    from casebook.classroom import grading, report
    from casebook.errors import NotGraded, PointsMissing

    file = _file_of(options.machine) if options.machine else None
    graded = grading.grade(options.lab, options.submission, file)
    print(json.dumps(graded.as_json()) if options.json else report.with_warning(graded))
    if graded.points < graded.of:
        raise PointsMissing(f"{graded.score()}: see the hints.")
    if graded.not_graded:
        raise NotGraded(f"{graded.score()}.")


def _course(options: Namespace) -> None:
    from casebook.classroom import course, grading

    if options.exercises:
        from casebook import places
        from casebook.classroom import solutions
        from casebook.pages.contents import Book

        solutions.exercises(options.folder, Book(places.ROOT))
        print(
            f"{options.folder}: the notebooks without their solutions. To open them:\n"
            f"    {sys.executable} -m jupyterlab --config=jupyter_server_config.py "
            f"--notebook-dir={options.folder} start.ipynb"
        )
        return
    nbgrader = course.make(options.folder)
    print(
        f"{options.folder}: a course. In that folder:\n"
        f"    {nbgrader} generate_assignment LAB\n"
        f"    {nbgrader} release_assignment LAB      (or hand out release/LAB)\n"
        f"    {nbgrader} collect LAB                 (or fill submitted/STUDENT/LAB)\n"
        f"    {nbgrader} autograde LAB\n"
        f"    {nbgrader} generate_feedback LAB\n"
        f"    {nbgrader} export                      (all points, as grades.csv)\n"
        f"LAB is one of: {', '.join(grading.LABS)}"
    )


def _ready(options: Namespace) -> None:
    from casebook import places
    from casebook.classroom import ready
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    missing = 0
    for is_ready, line in ready.lines(book, ready.chapters(book, options.chapter)):
        print(line, flush=True)
        missing += not is_ready
    if missing:
        raise CasebookError(f"{missing} not ready: the lines above say why.")


def _laptops(options: Namespace) -> None:
    from casebook.classroom import laptops

    print(laptops.pack(options.file))


def _whodunit_new(options: Namespace) -> None:
    from casebook.classroom import whodunit

    made = whodunit.new(options.seed, options.into, whodunit.secret_of(options.secret))
    print(f"{made}: read case.md")


def _whodunit_run(options: Namespace) -> None:
    from casebook.classroom import whodunit

    done = whodunit.run(options.folder, options.department, options.n, options.scheme)
    print(json.dumps({"id": done.id, **asdict(done), "shows": done.shows}, indent=2))


def _whodunit_answer(options: Namespace) -> None:
    from casebook.classroom import whodunit

    print(whodunit.answer(options.folder, options.culprit, options.evidence))


def _whodunit_mark(options: Namespace) -> None:
    from casebook.classroom import whodunit

    marks = whodunit.mark(options.folder, whodunit.secret_of(options.secret))
    print(whodunit.marks_text(marks))
    if options.page:
        options.page.write_text(whodunit.marks_page(marks), encoding="utf-8")
        print(f"{options.page}: open it in a browser, and print it")


def _book(options: Namespace) -> None:
    from casebook import pages, places
    from casebook.pages import program

    # No kernel is left by SIGTERM either, nor by an interrupt that a shell has ignored for what it
    # starts in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if options.machine and (options.strict or options.fresh or options.everything):
        others = "--strict, --fresh and --all"
        raise UsageError(f"--machine writes what was measured there: leave out {others}")
    program.keep(places.ROOT, options.program)
    file = _file_of(options.machine) if options.machine else None
    pages.build(
        strict=options.strict, fresh=options.fresh, file=file, everything=options.everything
    )


def _timing(options: Namespace) -> None:
    from casebook import places
    from casebook.errors import RunFailed
    from casebook.pages import timing
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    try:
        print(timing.table(book))
    except FileNotFoundError:
        raise UsageError("nothing was measured here yet: `make book` does") from None
    if options.against:
        machine = _machine_of(options.against)
        expected = timing.on_this_machine(machine)
        times = timing.growth(timing.read(book), expected)
        if times is None:
            raise UsageError(f"{machine.name} does not say what its chapters took")
        line = f"{times:.2f} times what {machine.name} lets expect of this processor"
        if times > timing.MOST_GROWTH:
            raise RunFailed(f"the chapters took {line}, above {timing.MOST_GROWTH}: see the table")
        print(f"the chapters took {line}")


def _rests(options: Namespace) -> None:
    from casebook import places
    from casebook.pages import resting
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    if options.reach:
        for each, layers in resting.too_wide(book):
            said = f"speaks of {', '.join(layers)}, and rests on {', '.join(each.claims)}"
            print(f"{each.page}: {each.text}\n    {said}")
        return
    for each in resting.listed(book):
        if each.shown or not options.marked:
            print(f"{each.page}: {each.text}\n    rests on {', '.join(each.claims)}")
            if each.shown:
                print(f"    shown here: {each.shown}")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m casebook", description="The instruments of the book.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    switch: dict[str, Any] = {"action": "store_true"}

    def command(name: str, do: Callable[[Namespace], None], what_for: str) -> Callable[..., Any]:
        made = commands.add_parser(name, help=what_for)
        made.set_defaults(do=do)
        return made.add_argument

    add = command("serve", _serve, "run the lab server, or the bookstore, until Ctrl-C")
    add("--port", type=int, default=0, help="default: one that is free")
    add("--plain", **switch, help="HTTP instead of HTTPS")
    add("--bookstore", **switch, help="the books of the third part")
    add("--engine", help="of the bookstore: twisted (of today, the default), twisted-16.3, granian")
    add("--http1-only", **switch, help="the bookstore without HTTP/2")
    add("--delay", type=float, help="seconds before each book")

    add = command("stacks", _stacks, "what can be run here, and what is missing")
    add("--json", **switch)
    add("--get", **switch, help="get Python 2.7 and 3.7, where they are missing")
    add("--make", **switch, help="make the environments of all chapters, as a build does first")

    add = command("measure", _measure, "measure stacks against the lab server")
    add("stack", nargs="+", metavar="STACK")
    add("--n", type=_sizes, help="pages per run, like 3,5,10")
    add("--delay", type=float, help="seconds before each response")
    add("--scheme", choices=("https", "http"), default="https")
    add("--repeats", type=int)
    add("--client", help="who fetches; default: the stack's own, mostly grequests")
    add("--trust", default="authority", help="what it trusts: see casebook/cases/fetching/trust.py")
    add("--url", help="another server that has a /delay/ endpoint")
    add("--ca-file", type=Path, help="the certificate authority of --url, as PEM")
    add("--json", **switch, help="one JSON object per run")
    _add_cluster(add)

    machine = commands.add_parser("machine", help="what a machine measured, as a file")
    its = machine.add_subparsers(required=True, metavar="save|compare|labs")
    saving = its.add_parser("save", help="write what this machine measured in its builds")
    saving.set_defaults(do=_machine_save)
    saving.add_argument("file", type=Path, metavar="FILE", help="its name ends in .jsonl.xz")
    first = "measure first what no quick build does (some ten minutes)"
    saving.add_argument("--complete", **switch, help=first)
    _add_cluster(saving.add_argument)
    comparing = its.add_parser("compare", help="lay machines side by side, the differences first")
    comparing.set_defaults(do=_machine_compare)
    those = "files; `here`, `reference`, or names of machines in data/machines"
    comparing.add_argument("file", nargs="+", metavar="FILE", help=those)
    printed = "write a sheet to print: what a class measured"
    comparing.add_argument("--page", type=Path, metavar="HTML", help=printed)
    comparing.add_argument("--title", default="What our class measured", help="of that sheet")

    for_whom = "measure what the labs' graders ask, for machines that cannot"
    labs = its.add_parser("labs", help=for_whom)
    labs.set_defaults(do=_machine_labs)
    labs.add_argument("file", type=Path, metavar="FILE", help="its name ends in .jsonl.xz")

    cluster = commands.add_parser("cluster", help="machines that measure together, on Dask")
    its = cluster.add_subparsers(required=True, metavar="scheduler|worker")
    mine = "the address to listen at; another than the loopback needs the three keys"
    made = its.add_parser("scheduler", help="run a scheduler, until Ctrl-C")
    made.set_defaults(do=_cluster_scheduler)
    made.add_argument("--host", default="127.0.0.1", help=mine)
    made.add_argument("--port", type=int, default=8786)
    _add_keys(made.add_argument)
    made = its.add_parser("worker", help="let this machine measure for a scheduler, until Ctrl-C")
    made.set_defaults(do=_cluster_worker)
    made.add_argument("address", metavar="ADDRESS", help="such as tcp://127.0.0.1:8786")
    made.add_argument("--host", default="127.0.0.1", help=mine)
    _add_keys(made.add_argument)

    add = command("grade", _grade, "grade what was handed in for a lab: points, measured, hints")
    add("lab", metavar="LAB", help="a folder of classroom/labs")
    add("submission", type=Path, metavar="SUBMISSION", help="the answer.py, or its folder")
    instead = "ask this machine file what the grader would measure: of `machine labs`"
    add("--machine", metavar="FILE", help=instead)
    add("--json", **switch)

    add = command("course", _course, "write the labs as a course for nbgrader")
    add("folder", type=Path, metavar="FOLDER", help="one that is not there yet")
    add("--exercises", **switch, help="the chapters in its place, without their solutions")

    add = command("ready", _ready, "the evening before a lesson: is this machine ready?")
    add("chapter", nargs="*", metavar="CHAPTER", help="numbers, like 1 2 3; default: all")

    add = command("laptops", _laptops, "one archive for laptops that have no network")
    add("file", type=Path, metavar="FILE", help="such as ../class.tar.gz")

    who = commands.add_parser("whodunit", help="a program with one culprit or none, and who did it")
    parts = who.add_subparsers(required=True, metavar="new|run|answer|mark")
    made = parts.add_parser("new", help="write a student's case and program")
    made.set_defaults(do=_whodunit_new)
    made.add_argument("--seed", required=True, metavar="NAME", help="whose it is")
    made.add_argument("--secret", type=Path, metavar="FILE", help="what the culprits are drawn by")
    made.add_argument("--into", type=Path, default=Path("whodunit"), metavar="FOLDER")
    ran = parts.add_parser("run", help="run a department, counted by the server, and keep the run")
    ran.set_defaults(do=_whodunit_run)
    ran.add_argument("folder", type=Path, metavar="FOLDER")
    ran.add_argument("department", metavar="pages|ledger|shelf|notices")
    ran.add_argument("--n", type=int, default=10, help="pages")
    ran.add_argument("--scheme", choices=("https", "http"), default="https")
    said = parts.add_parser("answer", help="accuse, with runs as evidence")
    said.set_defaults(do=_whodunit_answer)
    said.add_argument("folder", type=Path, metavar="FOLDER")
    said.add_argument("--culprit", required=True)
    said.add_argument("--evidence", nargs="+", default=[], metavar="ID", help="ids of runs")
    marking = parts.add_parser("mark", help="judge all answers below a folder")
    marking.set_defaults(do=_whodunit_mark)
    marking.add_argument("folder", type=Path, metavar="FOLDER")
    marking.add_argument("--secret", type=Path, metavar="FILE")
    marking.add_argument("--page", type=Path, metavar="HTML", help="write a sheet for the wall")

    add = command("record", _record, "make the reference run into data/")
    also = "only these; also: go, loading, bookstore, verdicts, explorer"
    add("--only", nargs="*", metavar="STACK", help=also)

    add = command("book", _book, "execute what changed, decide claims, render")
    add("--strict", **switch, help="exit with 1 when a finding comes out otherwise")
    add(
        "--all",
        **switch,
        dest="everything",
        help="measure the whole laboratory, not only the story",
    )
    add("--fresh", **switch, help="measure again, whatever is stored")
    add("--machine", metavar="FILE", help="write the book of this machine file; measure nothing")
    add("--program", type=Path, metavar="FILE", help="a report of doctor.py run --json, for a page")

    add = command("timing", _timing, "where the time of the last build went, in seconds")
    beside = "a machine file: exit with 1 if the chapters took a quarter longer than it lets expect"
    add("--against", metavar="FILE", help=beside)

    add = command("rests", _rests, "the sentences of the built book that rest on findings")
    add("--marked", **switch, help="only those whose finding did not hold on this machine")
    add("--reach", **switch, help="only those that say more than their finding was measured on")
    return parser


def _add_cluster(add: Callable[..., Any]) -> None:
    add("--on", metavar="ADDRESS", help="on each worker of a cluster: tcp://127.0.0.1:8786")
    _add_keys(add)


def _add_keys(add: Callable[..., Any]) -> None:
    add("--tls-ca", type=Path, metavar="PEM", help="the authority that a cluster's machines trust")
    add("--tls-cert", type=Path, metavar="PEM", help="what this machine shows of itself")
    add("--tls-key", type=Path, metavar="PEM", help="and its key")


def _reader_has_left() -> bool:
    """Whether nobody reads our output any more. If so, what is left of it goes nowhere."""
    output = select.poll()
    output.register(sys.stdout, 0)  # asks for nothing: an error is told in any case
    if not output.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0, 1 (it failed), 2 (it was asked wrongly) or 3 (a
    submission was not graded as a whole).

    As a shell tells it: 130 after Ctrl-C, 141 when nobody reads the output to its end (`| head`).
    """
    try:
        options = _parser().parse_args(arguments)
        options.do(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        return 141
    except CasebookError as error:
        print(f"casebook: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        told = f"{error.strerror}{f' ({error.filename})' if error.filename else ''}"
        print(f"casebook: {told}: make room, then run the same command again.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
