"""The measured code: one short file for each way to fetch, the same that pages print.

Each has `fetch(urls, verify)`, which returns the responses in the order of the URLs, and runs by
itself: `python loop.py URL N CA_FILE`. A response is what its library gives (`status_code` or
`status`; the body as `content` or `data`), a pair of both, or the exception in its place. A new
client is a new file. What it is called in stacks and measurements is the first word of its
docstring, up to a colon, as `httpx` is not a name that a file with `import httpx` in it can have;
without one it is called as the file.
"""

import re
from functools import cache
from pathlib import Path

from casebook.errors import UsageError

FOLDER = Path(__file__).parent


@cache
def files() -> dict[str, Path]:
    """Every client by its name, in the order of the names: `requests` -> clients/loop.py."""
    found = {}
    for path in FOLDER.glob("*.py"):
        if path.name != "__init__.py":
            said = re.match(r'"""([\w.-]+): ', path.read_text(encoding="utf-8"))
            found[said[1] if said else path.stem] = path
    return dict(sorted(found.items()))


def name_of(client: str) -> str:
    """The name of a client that is called by its name or by its file's: `loop` -> `requests`.

    Raises UsageError, with all names, where there is none.
    """
    by_file = {path.stem: name for name, path in files().items()}
    if client not in files() and client not in by_file:
        raise UsageError(f"the client is {client!r}; choose one of: {', '.join(files())}")
    return client if client in files() else by_file[client]


def file_of(client: str) -> Path:
    """The file of a client. Raises UsageError as `name_of`, and where it cannot be measured."""
    path = files()[name_of(client)]
    if "\ndef fetch(urls, verify):" not in path.read_text(encoding="utf-8"):
        raise UsageError(f"casebook/clients/{path.name} has no function fetch(urls, verify)")
    return path
