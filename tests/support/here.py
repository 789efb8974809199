"""What is on this machine: stacks' environments, processes, and what may take a moment."""

import contextlib
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from casebook import places, stacks
from casebook.cases.certificates.hosts import Server
from casebook.errors import MissingInterpreter
from casebook.stacks import environments

#: The marks of what is only breadth: for make test-nightly, or any run with CASEBOOK_NIGHTLY=1.
BREADTH = [pytest.mark.nightly, pytest.mark.breadth]
if os.environ.get("CASEBOOK_NIGHTLY") == "1":
    BREADTH = []


def environment(name: str) -> environments.Environment:
    """The environment of a stack, made now. Skips where its interpreter is missing and may be."""
    stack = stacks.get(name)
    try:
        return environments.ensure(stack)
    except MissingInterpreter as error:
        if stack.python in environments.required():
            raise
        pytest.skip(str(error))


def needs(program: str) -> pytest.MarkDecorator:
    """The mark of a test that skips where a program is missing and may be."""
    missing = shutil.which(program) is None and program not in environments.required()
    return pytest.mark.skipif(missing, reason=f"{program} is not on the PATH")


def another_python(version: str) -> Path:
    """A Python that the book does not need: skips where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for each in filter(None, found):  # pyenv's shims exist and fail
        if subprocess.run([each, "-c", "import ssl"], capture_output=True).returncode == 0:
            return Path(each)
    pytest.skip(f"no Python {version} here")


def python_in(name: str, *arguments: object, **more) -> subprocess.CompletedProcess:
    """Run a stack's Python in its declared environment, and whatever it says.

    variables: further environment variables; everything else goes to subprocess.run.
    """
    place = environment(name)
    environ = environments.clean_environ(place) | more.pop("variables", {})
    return run(place.python, *arguments, env=environ, **more)


def run(*command: object, **more) -> subprocess.CompletedProcess:
    """Run a command, in the project's folder unless asked otherwise: its exit status and words."""
    more = {"capture_output": True, "text": True, "timeout": 300, "cwd": places.ROOT} | more
    return subprocess.run(list(map(str, command)), **more)


def last_words(code: str) -> str:
    """The first line that a Python program prints, which is killed then."""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=places.ROOT, text=True, stdout=subprocess.PIPE
    ) as owner:
        said = owner.stdout.readline()
        owner.kill()
    return said


def eventually(condition: Callable[[], object], seconds: float = 120) -> bool:
    """Whether a condition comes true.

    Generous: it is about order and leftovers, not about speed, and a crowded machine may take a
    minute for what is done in a second.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs. One that has ended, and was not waited for yet, does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the files of its `directory`, and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: Callable, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server in threads of this process, for as long as the block runs."""
    with Server(handler, context) as running:
        yield running.url
