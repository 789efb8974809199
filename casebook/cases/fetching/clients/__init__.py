"""The measured code: one short file for each way to fetch, the same that pages print.

Each has `fetch(urls, verify)`, which returns the responses in the order of the URLs, and runs by
itself: `python loop.py URL N CA_FILE`. A response is what its library gives (`status_code` or
`status`; the body as `content` or `data`), a pair of both, or the exception in its place. A new
client is a new file.

A client is called as its file, `session.py` is `session`, unless its docstring begins with another
name and a colon: a file with `import httpx` in it cannot itself be called `httpx.py`. That name is
the beginning of the file's name (`httpx-each` of `httpx_each.py`) or a module that the file imports
(`requests` of `loop.py`); any other word before a colon is just a word.
"""

import re
from functools import cache
from pathlib import Path

from casebook.errors import UsageError
from casebook.mistakes import check_choice

FOLDER = Path(__file__).parent


@cache
def files() -> dict[str, Path]:
    """Return all clients by name, in the order of the names: `requests` -> clients/loop.py.

    Raises UsageError if two files have the same name.
    """
    by_name: dict[str, Path] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.name == "__init__.py":
            continue
        name = _client_name(path)
        if name in by_name:
            raise UsageError(
                f"two clients are called {name!r}: clients/{by_name[name].name} and "
                f"{path.name}. The first word of a docstring, up to a colon, is the client's name."
            )
        by_name[name] = path
    return dict(sorted(by_name.items()))


def _client_name(path: Path) -> str:
    """Return the name of the client in a file."""
    text = path.read_text(encoding="utf-8")
    match = re.match(r'"""([\w.-]+): ', text)
    if not match:
        return path.stem
    name = match[1]
    imports = re.search(rf"^\s*(import|from) {re.escape(name)}\b", text, re.MULTILINE)
    is_name = imports or path.stem.startswith(name.replace("-", "_"))
    return name if is_name else path.stem


def name_of(client: str) -> str:
    """Return the name of a client, given by its name or its file's: `loop` -> `requests`.

    Raises UsageError, with the nearest names or all of them, if there is none.
    """
    by_file = {path.stem: name for name, path in files().items()}
    if client not in by_file:
        check_choice("the client", client, files())
    return client if client in files() else by_file[client]


def file_of(client: str) -> Path:
    """Return the file of a client. Raises UsageError as `name_of`, and if it cannot be measured."""
    path = files()[name_of(client)]
    if "\ndef fetch(urls, verify):" not in path.read_text(encoding="utf-8"):
        raise UsageError(f"clients/{path.name} has no function fetch(urls, verify)")
    return path
