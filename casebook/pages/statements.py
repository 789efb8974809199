"""Statements of a notebook that look at the machine themselves, past the store of measurements.

Most cells ask through the store, and a machine file holds what it answered. Others start a server,
run a program or read a clock in the open, because that is what the chapter shows. An extension of
IPython, loaded into the kernels of a build, takes care of these, statement by statement:

- while the book is measured (`Keeping`), what such a statement printed, and the data that it gave
  names to, is kept in the store as one more answer;
- while it is written from a machine file (`Answering`), the statement is not executed: what it
  printed there is printed, and its names get that data. Everything else of the cell is executed,
  by the code of today, and can start no process and connect to nobody.

If the file has no answer, the cell says so, and so do its findings.
"""

import ast
import builtins
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from casebook import build, places, spans, words
from casebook.errors import NotInFile
from casebook.findings import claims, media
from casebook.laboratory import machine_files, measurements
from casebook.pages import plain
from casebook.stacks import digests, environments

#: The chapter that a kernel executes, and the machine file that it answers from, if there is one.
CHAPTER, MACHINE = "CASEBOOK_CHAPTER", "CASEBOOK_MACHINE"

#: How a question begins whose answer is what a statement saw.
KIND = "notebook"

#: What tells of the machine, or of the moment: a statement that uses one of these is kept.
TELLING = {
    "_socket", "_thread", "asyncio", "certifi", "concurrent", "gevent", "importlib", "os",
    "platform", "posix", "psutil", "requests", "resource", "selectors", "socket", "ssl",
    "subprocess", "sys", "threading", "time", "timeit", "tracemalloc", "twisted", "urllib3",
    "casebook.stacks.environments", "casebook.cases.fetching.server",
    "casebook.cases.fetching.cprofile",
}  # fmt: skip
#: What the audit hook of Python calls the beginning of a process, and a way to another one.
EVENTS = (
    "subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec",
    "os.spawn", "pty.spawn", "socket.connect", "socket.sendto", "socket.bind",
)  # fmt: skip

#: Statements that only say what code there is: they are always executed, and never kept.
_DEFINITIONS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom,
)  # fmt: skip

#: By this name a cell's code tells us that a statement begins.
_BEGINS = "__casebook_begins__"
_SAYS = "__casebook_says__"
_SHOWN, _REFUSED = "__casebook_shown__", "__casebook_refused__"
#: Whose calls show data, and look at nothing themselves.
_DRAWING = ("casebook.charts", "casebook.findings", "IPython")
#: In place of a number: what begins is one of _DEFINITIONS.
_DEFINITION = -1


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Keep what this kernel's statements see, or answer them from a machine file."""
    chapter, file = os.environ.get(CHAPTER), os.environ.get(MACHINE)
    _note_cells(shell)
    # It starts a process the first time, whichever library asks; from then on it knows the answer.
    platform.processor()
    if file:
        try:
            Answering(shell, chapter or "", machine_files.read_kept(Path(file)))
        except BaseException:  # IPython would go on without it, and measure this machine
            traceback.print_exc()
            os._exit(1)
    elif chapter and build.in_build():
        Keeping(shell, chapter)


def _note_cells(shell: InteractiveShell) -> None:
    """Note the time of each cell of this kernel."""
    under_way = ExitStack()

    def cell_begins(_: Any) -> None:
        under_way.enter_context(spans.span(spans.CELL))

    def cell_ends(_: Any) -> None:
        under_way.close()

    shell.events.register("pre_run_cell", cell_begins)
    shell.events.register("post_run_cell", cell_ends)


class _Statements(ast.NodeTransformer):
    """Sees each statement of a notebook before it is executed. A transformer of syntax trees."""

    def __init__(self, shell: InteractiveShell, chapter: str):
        self.shell, self.chapter = shell, chapter
        self.statements: list[tuple[ast.stmt, list[Any]]] = []
        self._times: dict[str, int] = {}
        self._lines: list[str] = []
        self._without_form: set[str] = set()
        self._defined: dict[str, set[str]] = {}
        shell.events.register("pre_run_cell", self._cell_begins)
        shell.ast_transformers.append(self)
        setattr(builtins, _BEGINS, self.note_start)
        sys.addaudithook(self._audit)

    def _cell_begins(self, info: Any) -> None:
        self._lines = info.raw_cell.splitlines()

    def visit(self, cell: ast.AST) -> ast.AST:
        """Return the cell with a call before each statement that does something."""
        assert isinstance(cell, ast.Module)
        body: list[ast.stmt] = []
        for statement in cell.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._defined[statement.name] = _names(statement, ast.Load)
            if isinstance(statement, _DEFINITIONS):
                # What an import does, such as asking for IPv6, is not the work of the one before.
                if getattr(statement, "module", "") != "__future__":
                    body.append(_call(_BEGINS, _DEFINITION, statement))
            else:
                lines = self._lines[statement.lineno - 1 : statement.end_lineno]
                text = digests.digest(" ".join(" ".join(lines).split()))
                self._times[text] = occurrence = self._times.get(text, 0) + 1
                self.statements.append((statement, [KIND, self.chapter, text, occurrence]))
                body.append(_call(_BEGINS, len(self.statements) - 1, statement))
                statement = self.replacement_of(statement, len(self.statements) - 1)
            body.append(statement)
        cell.body = body
        return cell

    def replacement_of(self, statement: ast.stmt, _number: int) -> ast.stmt:
        """Return what is executed in the place of statement `number`: itself, by default."""
        return statement

    def note_start(self, number: int) -> None:
        """Note that statement `number` begins, or one of _DEFINITIONS."""

    def note_event(self) -> None:
        """Note that a process or a connection begins that the notebook itself asks for.

        It belongs to no measurement of the store, and to no function that is `not_a_measurement`.
        """

    def _names_used(self, statement: ast.stmt) -> set[str]:
        """Return the names that a statement uses, also in functions of the notebook."""
        names, todo = set(), [*_names(statement, ast.Load)]
        while todo:
            name = todo.pop()
            if name not in names:
                names.add(name)
                todo += self._defined.get(name, ())
        return names

    def _reveals_machine(self, name: str) -> bool:
        """Say whether the object of this name tells of the machine, or has no form as data."""
        if name in self._without_form:
            return True
        value = self.shell.user_ns.get(name)
        if isinstance(value, Path):  # a file of this machine
            is_ours = value.is_relative_to(places.ROOT) and not value.is_relative_to(places.LOCAL)
            return value.is_absolute() and not is_ours
        module = (
            value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        )
        parts = str(module).split(".")
        return not TELLING.isdisjoint(".".join(parts[: i + 1]) for i in range(len(parts)))

    def _audit(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or measurements.is_under_way() or build.is_exploring():
            return
        self.note_event()


def _call(name: str, number: int, statement: ast.stmt) -> ast.stmt:
    call = ast.parse(f"{name}({number})").body[0]
    return ast.fix_missing_locations(ast.copy_location(call, statement))


class Keeping(_Statements):
    """Keeps what statements printed and which data they gave names to, if they saw the machine.

    A name whose value has no form as data (a server that is open) makes each statement that uses
    it one of these.
    """

    def __init__(self, shell: InteractiveShell, chapter: str):
        super().__init__(shell, chapter)
        self._current: int | None = None
        self._has_event = self._has_shown = False
        self._value: Any = None
        self._printed: list[list[str]] = []
        for stream in (sys.stdout, sys.stderr):
            self._listen(stream)
        publish = shell.display_pub.publish

        def published(*content: Any, **options: Any) -> Any:
            self._has_shown = True
            return publish(*content, **options)

        shell.display_pub.publish = published
        shell.events.register("post_run_cell", self._cell_ends)

    def _listen(self, stream: Any) -> None:
        write, name = stream.write, "stderr" if stream is sys.stderr else "stdout"

        def record_and_write(text: str) -> int:
            self._printed.append([name, text])
            return write(text)

        stream.write = record_and_write

    def note_event(self) -> None:
        """Note that the current statement looked at the machine."""
        self._has_event = True

    def note_start(self, number: int) -> None:
        """Keep what the statement before saw, and begin with the next one."""
        self._end()
        self._current = None if number == _DEFINITION else number
        self._has_event, self._has_shown, self._value, self._printed = False, False, None, []

    def _cell_ends(self, result: Any) -> None:
        if result.success:
            self._value = result.result
            self._end()
        self._current = None

    def _end(self) -> None:
        """Keep what the last statement printed and assigned, if it saw the machine."""
        if self._current is None:
            return
        statement, question = self.statements[self._current]
        used, bound = self._names_used(statement), _assigned(statement)
        sees = self._has_event or any(map(self._reveals_machine, used))
        self._without_form -= bound
        if not sees:
            return
        space, data = self.shell.user_ns, {}
        changed = {name for name in used if type(space.get(name)) in (list, dict, set)}
        for name in sorted((bound | changed) & space.keys()):
            try:
                data[name] = plain.encode(space[name])
            except plain.NotDataError:
                self._without_form |= {name} & bound
        answer: dict[str, Any] = {"printed": _joined(self._printed), "names": data}
        if self._value is not None:
            try:
                answer["value"] = plain.encode(self._value)
            except plain.NotDataError:
                self._has_shown = True
        if self._has_shown:  # it is executed again, with the names of those before it
            answer = {"shown": True}
        answer["asked"] = question
        provenance = {"measured_at": measurements.utc_now(), "commit": measurements.commit()}
        measurements.save(
            digests.digest(question), answer | provenance | {"schema": measurements.SCHEMA}
        )


def _names(tree: ast.AST, context: type) -> set[str]:
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and type(node.ctx) is context
    }


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns, or whose parts it replaces.

    Such as frame in `frame["x"] = 1`.
    """
    parts = (
        node.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store)
    )
    bases = {part.id for part in parts if isinstance(part, ast.Name)}
    return _names(statement, ast.Store) | bases


def _names_given(part: ast.AST) -> set[str]:
    """Return the names that a part of a cell gives in the notebook, and not within a function."""
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {part.name}
    if isinstance(part, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return set()
    names = {part.id} if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) else set()
    return names.union(*map(_names_given, ast.iter_child_nodes(part)))


def _joined(printed: Iterable[list[str]]) -> list[list[str]]:
    """Return what was printed, with neighbours on one stream joined."""
    joined: list[list[str]] = []
    for name, text in printed:
        if joined and joined[-1][0] == name:
            joined[-1][1] += text
        else:
            joined.append([name, text])
    return joined


class Answering(_Statements):
    """Has statements say what they said on the machine of a file, and refuses to look at this one.

    A cell for which the file has no answer says so, and its findings come out as not here.
    """

    def __init__(self, shell: InteractiveShell, chapter: str, machine: machine_files.Machine):
        super().__init__(shell, chapter)
        self._cell: list[ast.stmt] = []
        self._number = 0
        measurements.answer_from(machine.answers)
        environments.of_another_machine(machine.about.get("pythons", {}))
        words.set_machine_label(machine.label)
        self.machine = machine
        setattr(builtins, _SAYS, self.replay)
        setattr(builtins, _SHOWN, self.pass_on)
        setattr(builtins, _REFUSED, (NotInFile, NameError))
        shell.set_custom_exc((Exception,), self._not_in_file)

    def visit(self, cell: ast.AST) -> ast.AST:
        """Return the cell with what was said there in the place of what looked at the machine."""
        self._cell = list(getattr(cell, "body", ()))
        return super().visit(cell)

    def note_event(self) -> None:
        """Refuse to start a process or to connect to anybody."""
        raise NotInFile("its machine file has no answer to this")

    def note_start(self, number: int) -> None:
        """Refuse a statement that reads this machine, if the file has no answer to it."""
        if number == _DEFINITION:
            return
        self._number = number
        statement, question = self.statements[number]
        if measurements.answered(question) is None and not self._draws(statement):
            if any(
                map(self._reveals_machine, self._names_used(statement))
            ) and not self._names_code(statement):
                self.note_event()

    def replacement_of(self, statement: ast.stmt, number: int) -> ast.stmt:
        """Return what says again what a statement said on the machine of the file."""
        answer = measurements.answered(self.statements[number][1])
        if answer is None:
            return statement
        if "shown" in answer:
            return _checked(statement, number)
        names = answer.get("names")
        values = names if isinstance(names, dict) else {}
        lacks = isinstance(statement, ast.Assign) and not _names_given(statement) <= values.keys()
        if lacks and not answer.get("printed"):
            return self._attempt(statement, number)
        return _call(_SAYS, number, statement)

    def _attempt(self, statement: ast.stmt, number: int) -> ast.stmt:
        """Return a statement that tries again to compute what the file does not have.

        If it cannot, it replays what it said there. What only looks up a class or a module tells
        nothing yet.
        """
        names = set() if _looks_up(statement) else self._names_used(statement)
        used = ", ".join(map(repr, sorted(names)))
        code = (
            f"try:\n    {_SHOWN}.__self__.require_known({used})\n    pass\n"
            f"except {_REFUSED}:\n    {_SAYS}({number})"
        )
        [attempt] = ast.parse(code).body
        assert isinstance(attempt, ast.Try)
        attempt.body[1] = statement
        return ast.fix_missing_locations(ast.copy_location(attempt, statement))

    def require_known(self, *names: str) -> None:
        """Raise NotInFile if one of these names tells of this machine, or does not exist."""
        for name in names:
            if self._reveals_machine(name) or not (
                name in self.shell.user_ns or hasattr(builtins, name)
            ):
                self.note_event()

    def pass_on(self, number: int, value: Any) -> Any:
        """Let a statement show a value that is drawn from data, and no data of this machine."""
        if any(map(self._reveals_machine, self._names_used(self.statements[number][0]))):
            try:
                plain.encode(value)
            except plain.NotDataError:
                return value
            if value is not None:
                self.note_event()
        return value

    def _draws(self, statement: ast.stmt) -> bool:
        """Say whether a statement only shows data, by one of our charts, tables or claims."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        root: ast.expr = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        value = self.shell.user_ns.get(root.id) if isinstance(root, ast.Name) else None
        module = (
            value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        )
        return str(module).startswith(_DRAWING)

    def _names_code(self, statement: ast.stmt) -> bool:
        """Say whether a statement only gives another name to what is no data, like a class.

        Such a name tells nothing of this machine; what is done with it later may.
        """
        if not isinstance(statement, ast.Assign) or not _looks_up(statement):
            return False
        code = compile(ast.Expression(statement.value), "<lookup>", "eval")
        try:
            plain.encode(eval(code, dict(self.shell.user_ns)))  # a lookup: no call is in it
        except plain.NotDataError:
            self._without_form |= _names(statement, ast.Store)
            return True
        except Exception:
            pass  # the statement itself will say what is wrong
        return False

    def replay(self, number: int) -> Any:
        """Print what a statement printed there, and give its names their data.

        Returns the value that it showed; None if it showed none.
        """
        answer = measurements.answered(self.statements[number][1]) or {}
        for name, text in answer.get("printed", ()):
            print(text, end="", file=sys.stderr if name == "stderr" else sys.stdout)
        bound = {*_names(self.statements[number][0], ast.Store), *self.shell.user_ns}
        for name, form in answer.get("names", {}).items():
            if name in bound and not name.startswith("_"):
                self.shell.user_ns[name] = plain.decode(form)
        return plain.decode(answer["value"]) if "value" in answer else None

    def _not_in_file(
        self, shell: Any, kind: type, error: BaseException, *_: Any, **__: Any
    ) -> None:
        """Say why a cell cannot go on, and that its further findings are not here.

        Names that it gave before are removed, so that nothing is concluded from half a cell.
        """
        for name in (binding for part in self._cell for binding in _names_given(part)):
            shell.user_ns.pop(name, None)
        reason = "its file has no answer to this"
        if not isinstance(error, NotInFile | NameError):
            reason = f"what its file holds cannot be shown: {kind.__name__}"
            last = traceback.format_exception_only(kind, error)[-1].strip()
            print(f"{self.chapter}: {last}", file=sys.stderr)
        text = f"Not here: {reason}."
        html = f'<p class="cb cb-not-here"><em>{text}</em></p>'
        data = {"text/plain": text, "text/html": html, media.NOT_IN_FILE: {"why": str(error)}}
        display(data, raw=True)
        stopped, cell = self.statements[self._number][0], self._cell
        rest = cell[cell.index(stopped) :] if stopped in cell else cell
        for id, statement in claims_in(rest):
            claims.claim(id, statement, None, not_here=f"{self.machine.label}: {reason}")


def _looks_up(statement: ast.stmt) -> bool:
    """Say whether a statement gives names to attributes of names, and calls nothing."""
    allowed = (ast.Name, ast.Attribute, ast.Tuple, ast.expr_context)
    return isinstance(statement, ast.Assign) and all(
        isinstance(node, allowed) for part in (statement.value, *statement.targets)
        for node in ast.walk(part)
    )  # fmt: skip


def _checked(statement: ast.stmt, number: int) -> ast.stmt:
    """Return a statement whose value, if it is an expression, passes through Answering.pass_on."""
    if not isinstance(statement, ast.Expr):
        return statement
    code = ast.parse(f"{_SHOWN}({number}, None)").body[0]
    assert isinstance(code, ast.Expr) and isinstance(code.value, ast.Call)
    code.value.args[1] = statement.value
    return ast.fix_missing_locations(ast.copy_location(code, statement))


def claims_in(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the claims of some statements, as far as the code says them: an id and a sentence."""
    for call in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if call.func.id == "claim" and len(call.args) > 1:
                id, sentence = (_literal(part) for part in call.args[:2])
                if "…" not in id:
                    yield id, sentence


def _literal(part: ast.expr) -> str:
    """Return a text in code, with … for what is computed."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    if isinstance(part, ast.JoinedStr):
        return "".join(_literal(piece) for piece in part.values)
    return "…"
