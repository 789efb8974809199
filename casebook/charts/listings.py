"""Code as a page shows it: the clients that are measured, and what installed packages say.

    listings.client("grequests_map", beside="loop")
    listings.source("stage-2-py27", "urllib3.contrib.pyopenssl", "WrappedSocket.recv")
    listings.file("casebook/cases/fetching/probes/steps.py", lines=(60, 80))

All of it is read from the very files that run.
"""

import difflib
import importlib.metadata
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

from casebook import places, stacks, words
from casebook.cases.fetching import clients
from casebook.charts import quotes
from casebook.charts.quotes import Quote
from casebook.charts.tables import Table
from casebook.colours import style
from casebook.errors import EnvironmentFailed, MissingInterpreter, UsageError
from casebook.findings.media import FIGURE, QUOTES
from casebook.mistakes import for_readers
from casebook.stacks import commands, environments
from casebook.stacks.environments import Environment

#: The most lines of somebody else's code that are quoted at a time.
LONGEST = 60

#: The file name of a listing of what a program has printed.
_PRINTED = "printed.txt"


@dataclass(frozen=True)
class Listing(Table):
    """Code with its caption.

    html: for a page, in its colours. text: the same for a terminal, with `>` before each marked
    line. path, first, last: the lines of a file that are quoted. quotes: what is somebody else's
    (charts/quotes.py).
    """

    path: str = ""
    first: int = 0
    last: int = 0
    quotes: tuple[dict[str, Any], ...] = ()

    def _repr_mimebundle_(self, **_: object) -> dict:
        bundle = super()._repr_mimebundle_()
        return bundle | ({QUOTES: {"quotes": [*self.quotes]}} if self.quotes else {})


@dataclass(frozen=True)
class Printed(Listing):
    """What a program printed, with a name by which another page may include it."""

    name: str = ""

    def _repr_mimebundle_(self, **_: object) -> dict:
        record = {"name": self.name, "html": self.html, "alt": self.text}
        return super()._repr_mimebundle_() | {FIGURE: record}


@for_readers
def client(name: str, beside: str = "") -> Listing:
    """Show a client (casebook/cases/fetching/clients), by its name or the name of its file.

    beside: another one; the lines of code that it does not have are marked. Raises UsageError if
    there is no such client.
    """
    path = clients.file_of(name)
    lines = path.read_text(encoding="utf-8").splitlines()
    if not beside:
        return _listing(lines, path.name, f"{_place(path)}.")
    base_path = clients.file_of(beside)
    base_lines = base_path.read_text(encoding="utf-8").splitlines()
    opcodes = difflib.SequenceMatcher(None, base_lines, lines, autojunk=False).get_opcodes()
    new = [i for tag, *_, first, end in opcodes if tag != "equal" for i in range(first, end)]
    marked = [i + 1 for i in new if lines[i].strip() and not lines[i].startswith('"""')]
    note = f" Marked: the code that differs from {_place(base_path)} ({_numbers(marked)})."
    return _listing(lines, path.name, f"{_place(path)}.{note if marked else ''}", marked)


@for_readers
def file(path: str | Path, lines: tuple[int, int] | None = None) -> Listing:
    """Show a file of ours, or its lines first to last; path: from the root of the project.

    Raises UsageError if there is no such file, or it has no such lines.
    """
    file_path = (places.ROOT / path).resolve()
    if not file_path.is_relative_to(places.ROOT) or not file_path.is_file():
        raise UsageError(f"there is no file {str(path)!r} in this project")
    code = file_path.read_text(encoding="utf-8").splitlines()
    span = f", lines {lines[0]} to {lines[1]}" if lines else ""
    return _listing(_chosen(code, lines), file_path.name, f"{_place(file_path)}{span}.")


@for_readers
def source(
    stack: str,
    module: str,
    name: str = "",
    lines: tuple[int, int] | None = None,
    mark: str = "",
) -> Listing:
    """Quote a function, method or class of a package as a stack has it installed.

    name: such as `wait_for_socket` or `WrappedSocket.recv`; "": the module itself. lines: only
    these, where 1 is the first line of the definition, decorators included. mark: lines that hold
    this text are marked. Where the stack's packages are not, since its Python is missing, its
    environment cannot be made, or the book is that of a machine file, the lines are those that the
    project keeps (charts/quotes.py). Raises UsageError if there is no such module, it has no such
    name, there are more than LONGEST lines, or other lines are kept than the package has.
    """
    request = f"{module} {name} {lines or ''}".strip()
    quotation, reason = quotes.find(stack, request), "it is not kept"
    try:
        environment = environments.ensure(stacks.get(stack))
        if not environments.is_another_machine():
            quotation = _quoted(environment, module, name, lines)
            quotes.check(quotation)
    except (MissingInterpreter, EnvironmentFailed) as missing:
        reason = str(missing).partition("\n")[0].rstrip(":.")
    if quotation is None:
        definition = f"{module}.{name}".rstrip(".")
        return _listing([], "none.py", f"Not shown here, {definition}: {reason}.")
    chosen = textwrap.dedent("\n".join(quotation.lines.values())).splitlines()
    marked = [number for number, line in enumerate(chosen, 1) if mark and mark in line]
    caption = quotation.place.removesuffix(".") + _note_on_patch(stack, quotation.path) + "."
    listing = _listing(chosen, Path(quotation.path).name, caption, marked)
    return replace(
        listing,
        path=quotation.path,
        first=min(quotation.lines),
        last=max(quotation.lines),
        quotes=(quotes.record(stack, request, quotation),),
    )


def _note_on_patch(stack: str, path: str) -> str:
    """Say that a stack has a file in a copy which this book has patched; "" if it has not."""
    patch = stacks.get(stack).patch
    if not patch:
        return ""
    text = (places.ENV / "patches" / patch).read_text(encoding="utf-8")
    is_patched = f"+++ b/{path}" in text.splitlines()
    return f", in this book's patched copy (env/patches/{patch})" if is_patched else ""


def _quoted(
    environment: Environment, module: str, name: str, lines: tuple[int, int] | None
) -> Quote:
    """Return what an installed package says. Raises UsageError as `source`."""
    folder, path = _file_of(environment, module)
    shown_path = path.relative_to(folder)
    code = path.read_text(encoding="utf-8", errors="replace").splitlines()
    first, block = _definition(code, name)
    if not block:
        raise UsageError(f"{shown_path} of {environment.stack.name} has no {name}")
    chosen = _chosen(block, lines)
    if len(chosen) > LONGEST:
        many = f"{name or module} has {len(chosen)} lines"
        raise UsageError(f"{many}; quote up to {LONGEST}: lines=(1, 20)")
    first += lines[0] - 1 if lines else 0
    version, licence = _release(environment, folder, shown_path)
    return Quote(version, licence, shown_path.as_posix(), dict(enumerate(chosen, first)))


@for_readers
def printed(text: str, caption: str, name: str) -> "Printed":
    """Show what a program printed; other pages may include it by its name."""
    listing = _listing(text.splitlines(), _PRINTED, caption)
    return Printed(listing.html, listing.text, name=name)


def _listing(lines: Sequence[str], name: str, caption: str, marked: Sequence[int] = ()) -> Listing:
    """Return a listing of lines of a file of that name; marked: some of them, from 1."""
    formatter = HtmlFormatter(hl_lines=list(marked), wrapcode=True)
    lexer = get_lexer_for_filename(name, stripnl=False)
    code = pygments.highlight("\n".join(lines), lexer, formatter) if lines else ""
    printed = " cb-printed" if name == _PRINTED else ""
    html = (
        f'<figure class="cb cb-listing{printed}">{style("listing")}{code}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
    blank = "  " if marked else ""
    text = [f"{'> ' if i in marked else blank}{line}".rstrip() for i, line in enumerate(lines, 1)]
    return Listing(html, "\n".join([*text, *[""] * bool(text), caption]))


def _place(path: Path) -> str:
    return path.relative_to(places.ROOT).as_posix()


def _numbers(lines: Sequence[int]) -> str:
    """Return line numbers in words: [3, 4, 5, 9] -> "lines 3 to 5 and 9"."""
    parts: list[str] = []
    for line in lines:
        if line - 1 in lines and line + 1 in lines:
            continue
        if line - 1 in lines and line - 2 in lines:
            parts[-1] += f" to {line}"
        else:
            parts.append(str(line))
    return f"line{'s' * (len(lines) > 1)} {words.join(parts)}"


def _chosen(code: list[str], lines: tuple[int, int] | None) -> list[str]:
    first, last = lines or (1, len(code))
    if not 1 <= first <= last <= len(code):
        raise UsageError(f"there are {len(code)} lines, and no {first} to {last}")
    return code[first - 1 : last]


def _search_path(environment: Environment) -> list[Path]:
    """Return the folders in which a stack's Python looks for modules."""
    script = [str(environment.python), "-c", "import sys; print('\\n'.join(sys.path[1:]))"]
    environ = environments.clean_environ(environment)
    folders = commands.output(script, environment.stack.name, 60, environ).splitlines()
    return [*filter(Path.is_dir, map(Path, folders))]


def _file_of(environment: Environment, module: str) -> tuple[Path, Path]:
    """Return the folder of a stack's search path that has a module, and the module's file."""
    for folder in _search_path(environment):
        stem = folder.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return folder, path
    raise UsageError(f"{environment.stack.name} has no module {module} that is written in Python")


def files_of(environment: Environment, names: Iterable[str]) -> dict[str, Quote]:
    """Read files as a stack's packages have them, by their names ("urllib3/util/wait.py").

    Missing files are left out. In the book of a machine file, only the lines are there that the
    project keeps.
    """
    files = {}
    if environments.is_another_machine():
        quotations = {name: quotes.find(environment.stack.name, name) for name in names}
        return {name: quotation for name, quotation in quotations.items() if quotation}
    folders = _search_path(environment)
    for name in names:
        for folder in folders:
            if (path := folder / name).is_file():
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                release = _release(environment, folder, Path(name))
                files[name] = Quote(*release, name, dict(enumerate(lines, 1)))
                break
    return files


def _definition(code: list[str], name: str) -> tuple[int, list[str]]:
    """Return the number of the first line of `Class.method` in a file, and its lines.

    None if it is missing.

    It goes by the indentation: today's parser does not read Python 2.
    """
    first, block = 0, code
    for part in filter(None, name.split(".")):
        pattern = re.compile(rf"(\s*)(?:async def|def|class) {re.escape(part)}\b")
        heads = [
            (len(m[1]), number)
            for number, line in enumerate(block)
            if (m := pattern.match(line)) and not (number and "overload" in block[number - 1])
        ]
        if not heads:
            return 0, []
        indent, start = min(heads)
        length = len(inspect.getblock([f"{line}\n" for line in block[start:]]))
        decorated = start
        while decorated and block[decorated - 1].startswith(" " * indent + "@"):
            decorated -= 1
        first, block = first + decorated, block[decorated : start + length]
    return first + 1, block


def _release(environment: Environment, folder: Path, file_path: Path) -> tuple[str, str]:
    """Return the release that a file belongs to, and its licence.

    The release is that of its distribution, "urllib3 1.24.3", or else of its Python. The licence
    is as that names it.
    """
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        if any(file == file_path for file in distribution.files or ()):
            release = f"{distribution.name.replace('-', '_')} {distribution.version}"
            return release, _licence(distribution.metadata)
    return f"Python {environment.python_version}", "PSF-2.0"


def _licence(metadata: Any) -> str:
    """Return the licence that a distribution names, in its first line."""
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    named = metadata.get("License-Expression") or metadata.get("License") or ""
    return (named.strip().partition("\n")[0] or words.join(classifiers)).strip()
