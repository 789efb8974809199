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

#: The system's errors for a disk that takes no more: full, over its quota, read-only, too large.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--n is {text!r}; give whole numbers, like 3,5,10") from None


def _serve(options: Namespace) -> None:
    from casebook.cases.fetching import server

    bookstore_options = [
        name for name in ("engine", "delay", "http1_only") if getattr(options, name)
    ]
    if not options.bookstore:
        if bookstore_options:
            raise UsageError(f"--{bookstore_options[0].replace('_', '-')} is for --bookstore")
        server.serve(partial(server.start, "http" if options.plain else "https", options.port))
        return
    from casebook.cases.bookstore.store import open_store

    if options.plain:
        raise UsageError("the bookstore is served over TLS, by one of --engine")
    settings = {"delay_s": options.delay or 0.0, "port": options.port}
    engine = options.engine or "twisted"
    server.serve(partial(open_store, engine, options.http1_only, **settings))


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
    """Measure each stack on each worker; name what one cannot run, and show the rest."""
    from casebook.cases.many import machines

    if options.url or options.ca_file:
        raise UsageError("--on measures each worker against servers of its own: leave out --url")
    parameters = ["--scheme", options.scheme, "--trust", options.trust]
    for name in ("delay", "repeats", "client"):
        if (value := getattr(options, name)) is not None:
            parameters += [f"--{name}", str(value)]
    if options.n:
        sizes = options.n if isinstance(options.n, list | tuple) else [options.n]
        parameters += ["--n", ",".join(map(str, sizes))]
    parameters += ["--json"] if options.json else []
    failed = []
    commands = [["measure", stack, *parameters] for stack in options.stack]
    for answer in machines.ask(options.on, _keys(options), commands):
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

    _check_exit(machines.scheduler(options.host, options.port, _keys(options)))


def _cluster_worker(options: Namespace) -> None:
    from casebook.cases.many import machines

    _check_exit(machines.worker(options.address, _keys(options), options.host))


def _check_exit(code: int) -> None:
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
    runs = measure_runs(
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
        for run in runs:
            print(json.dumps(asdict(run)))
        return
    table = analysis.summary(frame(runs)).drop(columns=["scheme", "source"])
    print(table.round(3).to_string(index=False))


def _record(options: Namespace) -> None:
    from casebook.cases import reference_run
    from casebook.charts import picture

    reference_run.record(options.only)
    picture.write()


def _machine_of(name: str) -> Any:
    """Return the machine of a file, of one that comes with the book, or `here`: this one."""
    from casebook.laboratory import machines, reference

    if name == "here":
        return _this_machine()
    return machines.read(reference.file() if name == "reference" else _file_of(name))


def _file_of(name: str) -> Path:
    """Return a machine file, by its path, or by its name if it comes with the book."""
    from casebook.laboratory import machines

    by_name = {path.name.removesuffix(machines.SUFFIX): path for path in machines.files()}
    return by_name.get(name, Path(name)).absolute()


def _this_machine() -> Any:
    from casebook.laboratory import machines

    return machines.of_this_machine(_claims(), _chapters())


def _chapters() -> dict[str, dict[str, float]]:
    """Return what each chapter took in the last build here; empty before the first."""
    from casebook.pages import timing
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    return {stem: asdict(time) for stem, time in timing.read(Book(ROOT)).items()}


def _claims() -> list[dict[str, Any]]:
    """Return the findings of the last build; empty before the first."""
    from casebook.pages.contents import Book
    from casebook.places import ROOT

    claims_file = Book(ROOT).html / "claims.json"
    return json.loads(claims_file.read_text()) if claims_file.exists() else []


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
    for worker, file, message in machines.save(options.on, _keys(options), options.file):
        if file is None:
            failed.append(f"{worker}: {message}")
        else:
            print(f"{file}: {message}", flush=True)
    machines.all_came(failed)


def _machine_compare(options: Namespace) -> None:
    from casebook.classroom import certificate
    from casebook.findings import side_by_side

    windows = side_by_side.windows(_claims())
    machines = [side_by_side.judged_today(_machine_of(name), windows) for name in options.file]
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

    folder = whodunit.new(options.seed, options.into, whodunit.secret_of(options.secret))
    print(f"{folder}: read case.md")


def _whodunit_run(options: Namespace) -> None:
    from casebook.classroom import whodunit

    result = whodunit.run(options.folder, options.department, options.n, options.scheme)
    print(json.dumps({"id": result.id, **asdict(result), "shows": result.shows}, indent=2))


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

    # SIGTERM leaves no kernel behind either, nor does an interrupt that a shell ignores for its
    # background jobs.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if options.machine and (options.strict or options.fresh or options.everything):
        excluded = "--strict, --fresh and --all"
        raise UsageError(f"--machine writes what was measured there: leave out {excluded}")
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


def _quotes(options: Namespace) -> None:
    from casebook.charts import quotes

    print(quotes.keep())


def _rests(options: Namespace) -> None:
    from casebook import places
    from casebook.pages import resting
    from casebook.pages.contents import Book

    book = Book(places.ROOT)
    if options.reach:
        for sentence, layers in resting.too_wide(book):
            reason = f"speaks of {', '.join(layers)}, and rests on {', '.join(sentence.claims)}"
            print(f"{sentence.page}: {sentence.text}\n    {reason}")
        return
    for sentence in resting.listed(book):
        if sentence.shown or not options.marked:
            print(f"{sentence.page}: {sentence.text}\n    rests on {', '.join(sentence.claims)}")
            if sentence.shown:
                print(f"    shown here: {sentence.shown}")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m casebook", description="The instruments of the book.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    switch: dict[str, Any] = {"action": "store_true"}

    def command(name: str, do: Callable[[Namespace], None], what_for: str) -> Callable[..., Any]:
        subparser = commands.add_parser(name, help=what_for)
        subparser.set_defaults(do=do)
        return subparser.add_argument

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
    subcommands = machine.add_subparsers(required=True, metavar="save|compare|labs")
    save = subcommands.add_parser("save", help="write what this machine measured in its builds")
    save.set_defaults(do=_machine_save)
    save.add_argument("file", type=Path, metavar="FILE", help="its name ends in .jsonl.xz")
    complete_help = "measure first what no quick build does (some ten minutes)"
    save.add_argument("--complete", **switch, help=complete_help)
    _add_cluster(save.add_argument)
    compare = subcommands.add_parser(
        "compare", help="lay machines side by side, the differences first"
    )
    compare.set_defaults(do=_machine_compare)
    files_help = "files; `here`, `reference`, or names of machines in data/machines"
    compare.add_argument("file", nargs="+", metavar="FILE", help=files_help)
    page_help = "write a sheet to print: what a class measured"
    compare.add_argument("--page", type=Path, metavar="HTML", help=page_help)
    compare.add_argument("--title", default="What our class measured", help="of that sheet")

    labs_help = "measure what the labs' graders ask, for machines that cannot"
    labs = subcommands.add_parser("labs", help=labs_help)
    labs.set_defaults(do=_machine_labs)
    labs.add_argument("file", type=Path, metavar="FILE", help="its name ends in .jsonl.xz")

    cluster = commands.add_parser("cluster", help="machines that measure together, on Dask")
    subcommands = cluster.add_subparsers(required=True, metavar="scheduler|worker")
    host_help = "the address to listen at; another than the loopback needs the three keys"
    child = subcommands.add_parser("scheduler", help="run a scheduler, until Ctrl-C")
    child.set_defaults(do=_cluster_scheduler)
    child.add_argument("--host", default="127.0.0.1", help=host_help)
    child.add_argument("--port", type=int, default=8786)
    _add_keys(child.add_argument)
    child = subcommands.add_parser(
        "worker", help="let this machine measure for a scheduler, until Ctrl-C"
    )
    child.set_defaults(do=_cluster_worker)
    child.add_argument("address", metavar="ADDRESS", help="such as tcp://127.0.0.1:8786")
    child.add_argument("--host", default="127.0.0.1", help=host_help)
    _add_keys(child.add_argument)

    add = command("grade", _grade, "grade what was handed in for a lab: points, measured, hints")
    add("lab", metavar="LAB", help="a folder of classroom/labs")
    add("submission", type=Path, metavar="SUBMISSION", help="the answer.py, or its folder")
    machine_help = "ask this machine file what the grader would measure: of `machine labs`"
    add("--machine", metavar="FILE", help=machine_help)
    add("--json", **switch)

    add = command("course", _course, "write the labs as a course for nbgrader")
    add("folder", type=Path, metavar="FOLDER", help="one that is not there yet")
    add("--exercises", **switch, help="the chapters in its place, without their solutions")

    add = command("ready", _ready, "the evening before a lesson: is this machine ready?")
    add("chapter", nargs="*", metavar="CHAPTER", help="numbers, like 1 2 3; default: all")

    add = command("laptops", _laptops, "one archive for laptops that have no network")
    add("file", type=Path, metavar="FILE", help="such as ../class.tar.gz")

    whodunit = commands.add_parser(
        "whodunit", help="a program with one culprit or none, and who did it"
    )
    parts = whodunit.add_subparsers(required=True, metavar="new|run|answer|mark")
    child = parts.add_parser("new", help="write a student's case and program")
    child.set_defaults(do=_whodunit_new)
    child.add_argument("--seed", required=True, metavar="NAME", help="whose it is")
    child.add_argument("--secret", type=Path, metavar="FILE", help="what the culprits are drawn by")
    child.add_argument("--into", type=Path, default=Path("whodunit"), metavar="FOLDER")
    run = parts.add_parser("run", help="run a department, counted by the server, and keep the run")
    run.set_defaults(do=_whodunit_run)
    run.add_argument("folder", type=Path, metavar="FOLDER")
    run.add_argument("department", metavar="pages|ledger|shelf|notices")
    run.add_argument("--n", type=int, default=10, help="pages")
    run.add_argument("--scheme", choices=("https", "http"), default="https")
    answer = parts.add_parser("answer", help="accuse, with runs as evidence")
    answer.set_defaults(do=_whodunit_answer)
    answer.add_argument("folder", type=Path, metavar="FOLDER")
    answer.add_argument("--culprit", required=True)
    answer.add_argument("--evidence", nargs="+", default=[], metavar="ID", help="ids of runs")
    mark = parts.add_parser("mark", help="judge all answers below a folder")
    mark.set_defaults(do=_whodunit_mark)
    mark.add_argument("folder", type=Path, metavar="FOLDER")
    mark.add_argument("--secret", type=Path, metavar="FILE")
    mark.add_argument("--page", type=Path, metavar="HTML", help="write a sheet for the wall")

    add = command("record", _record, "make the reference run into data/")
    only_help = "only these; also: go, loading, bookstore, verdicts, explorer"
    add("--only", nargs="*", metavar="STACK", help=only_help)

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
    against_help = (
        "a machine file: exit with 1 if the chapters took a quarter longer than it lets expect"
    )
    add("--against", metavar="FILE", help=against_help)

    command("quotes", _quotes, "keep what the chapters quoted of packages, in data/quotes.json")
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
    """Return whether nobody reads our output any more. If so, the rest of it goes nowhere."""
    output = select.poll()
    output.register(sys.stdout, 0)  # asks for nothing: errors are reported anyway
    if not output.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 (it failed), 2 (wrong usage) or 3 (a
    submission was not graded completely).

    As in a shell: 130 after Ctrl-C, 141 if nobody reads the output to its end (`| head`).
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
        reason = f"{error.strerror}{f' ({error.filename})' if error.filename else ''}"
        print(f"casebook: {reason}: make room, then run the same command again.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
