"""A process that serves inside an environment, from its certificates to its end."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from casebook import stacks
from casebook.cases.bookstore import stock
from casebook.cases.fetching.server import certificates, limits
from casebook.cases.fetching.server.certificates import Certificates
from casebook.cases.fetching.server.process import end
from casebook.stacks import environments

#: The scripts that run inside the environments of the servers.
SERVING = Path(__file__).parent / "serving"


@contextlib.contextmanager
def serving(
    stack: str, script: str, nameless: bool = False, /, **options: Any
) -> Iterator[tuple[subprocess.Popen[bytes], Certificates]]:
    """Run a script of SERVING in a stack's environment: its process, and the certificates it shows.

    If the block fails, the process ends and the files go; otherwise both stay until the owner ends
    them. The process dies with this one.

    The script reads as JSON the options, folder, chain_file, key_file, books (the stock's file,
    unless the options name another) and backlog. What it writes to standard error stands in the
    file `log` beside the certificates. nameless: the certificate has no subjectAltName. Raises what
    environments.ensure raises.
    """
    environment = environments.ensure(stacks.get(stack))
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="casebook-store-"))  # readable by this user only
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        files = certificates.make_nameless(folder) if nameless else certificates.issue(folder)
        options = {"books": stock.FILE} | options
        options |= {"folder": folder, "backlog": limits.BACKLOG}
        options |= {"chain_file": files.chain_file, "key_file": files.key_file}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [environment.python, SERVING / script, json.dumps(options, default=os.fspath)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,  # a line that is kept back in a buffer is none that can be waited for
                env=environments.clean_environ(environment),
                # Its own session: neither an interrupted cell nor Ctrl-C reaches it.
                start_new_session=True,
                preexec_fn=limits.raise_open_files,
            )
        undo.callback(end, process)
        yield process, files
        undo.pop_all()


def log_lines(certificate: Path) -> list[str]:
    """Return what the process that shows this certificate has said so far."""
    return (certificate.parent / "log").read_text(errors="replace").splitlines()
