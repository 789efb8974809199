"""What .github/workflows/binder.yml does once Binder's image is made.

    python .ci/binder.py pin IMAGE@sha256:DIGEST
    python .ci/binder.py launch OWNER/NAME NOTEBOOK BADGE.svg [HUB]

pin: the tag `release` of the remote `origin` moves to a commit that is this one, but for binder/,
where a Dockerfile names the image: whoever opens that tag on Binder waits for no build. The work
tree stays as it is.
launch: opens that tag on the public Binder as a reader does, runs a notebook there, and writes a
badge: how long it took to start, and how the notebook's findings came out. Leaves with 1 where it
did not start, did not end, or a finding came out otherwise; the badge says so then.
"""

import contextlib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

HUB = "https://mybinder.org"
TAG = "release"
#: Seconds: Binder ends a launch by itself, and says so.
LAUNCHED_WITHIN, RAN_WITHIN = 1800, 900

#: Run there, beside the notebook's own kernel; the last line that it prints is read here.
CODE = """
import json, pathlib, subprocess, sys
inner = '''
import json, pathlib, sys, nbformat
from nbclient import NotebookClient
from casebook.findings import media
path = pathlib.Path(sys.argv[1])
notebook = nbformat.read(path, 4)
NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}).execute()
found = media.records(notebook, media.CLAIM)
print(json.dumps([[each["outcome"], each["live"]] for each in found]))
'''
done = subprocess.run([sys.executable, "-c", inner, NOTEBOOK], capture_output=True, text=True)
said = done.stdout if done.returncode == 0 else done.stderr
print(json.dumps([done.returncode, said.strip().splitlines()[-1:]]))
"""


class Failed(Exception):
    """Something did not work; the message says what, in one line."""


def pin(image: str) -> str:
    """Move the tag; the commit that it is at. image: with its digest."""
    if not re.fullmatch(r"[\w.:/-]+@sha256:[0-9a-f]{64}", image):
        raise Failed(f"{image!r} names no image by its digest (NAME@sha256:…)")
    commit = _git("rev-parse", "HEAD")
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        _git("read-tree", commit, environ=environ)
        _git("rm", "-r", "--cached", "--quiet", "binder", environ=environ)
        text = f"# What binder/ of {commit} makes, made by .github/workflows/binder.yml."
        blob = _git("hash-object", "-w", "--stdin", given=f"{text}\nFROM {image}\n")
        entry = f"100644,{blob},binder/Dockerfile"
        _git("update-index", "--add", "--cacheinfo", entry, environ=environ)
        tree = _git("write-tree", environ=environ)
    who = {"GIT_AUTHOR_NAME": "binder.yml", "GIT_AUTHOR_EMAIL": "binder.yml@invalid"}
    who |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    message = f"Binder's image of {commit[:12]}"
    made = _git("commit-tree", "-p", commit, "-m", message, tree, environ=os.environ | who)
    _git("push", "--quiet", "--force", "origin", f"{made}:refs/tags/{TAG}")
    return made


def _git(*arguments: str, environ: dict[str, str] | None = None, given: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments], env=environ, input=given, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed(f"git {arguments[0]}: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def launched(repository: str, hub: str) -> tuple[str, str]:
    """The address of a new session, with a slash at its end, and its token."""
    asked = Request(f"{hub}/build/gh/{repository}/{TAG}", headers={"Accept": "text/event-stream"})
    said: dict = {}
    with urlopen(asked, timeout=LAUNCHED_WITHIN) as stream:
        for line in stream:
            if line.startswith(b"data:"):
                said = json.loads(line.removeprefix(b"data:"))
                if said.get("phase") == "ready":
                    return said["url"].rstrip("/") + "/", said["token"]
                if said.get("phase") == "failed":
                    break
    raise Failed(f"Binder started nothing: {' '.join(str(said.get('message', '')).split())}")


class Session:
    """A session of Jupyter somewhere else."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def ask(self, method: str, path: str) -> dict:
        """What its interface answers."""
        headers = {"Authorization": f"token {self._token}", "Content-Type": "application/json"}
        data = b"{}" if method == "POST" else None
        request = Request(self._address + path, method=method, headers=headers, data=data)
        with urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or b"{}")

    def printed(self, code: str) -> str:
        """What a new kernel prints when it runs some code."""
        from websocket import create_connection

        kernel = self.ask("POST", "api/kernels")["id"]
        channels = re.sub("^http", "ws", self._address) + f"api/kernels/{kernel}/channels?"
        channel = create_connection(
            channels + urlencode({"token": self._token}), timeout=RAN_WITHIN
        )
        try:
            content = {"code": code, "silent": False, "store_history": False}
            header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
            header |= {"session": uuid.uuid4().hex, "username": "", "date": ""}
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
            channel.send(json.dumps(message | {"channel": "shell", "buffers": []}))
            return self._until_idle(channel, header["msg_id"])
        finally:
            channel.close()
            self.ask("DELETE", f"api/kernels/{kernel}")

    @staticmethod
    def _until_idle(channel, its: str) -> str:
        printed = ""
        while True:
            told = json.loads(channel.recv())
            if told.get("parent_header", {}).get("msg_id") != its:
                continue
            kind, content = told["msg_type"], told["content"]
            if kind == "stream":
                printed += content["text"]
            elif kind == "error":
                raise Failed(f"{content['ename']}: {content['evalue']}")
            elif kind == "status" and content["execution_state"] == "idle":
                return printed


def ran(session: Session, notebook: str) -> str:
    """How a notebook's findings came out there, in words.

    Failed where one came out otherwise, or the notebook did not run to its end.
    """
    try:
        printed = session.printed(f"NOTEBOOK = {notebook!r}\n{CODE}")
        code, lines = json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError, OSError) as error:
        raise Failed(f"{notebook} told nothing: {error}") from None
    if code:
        raise Failed(f"{notebook} did not run to its end: {' '.join(lines)}")
    outcomes = json.loads(lines[0])
    holds = sum(outcome == "holds" and live for outcome, live in outcomes)
    text = f"{holds} of {len(outcomes)} findings hold"
    if not outcomes or any(outcome == "otherwise" for outcome, _ in outcomes):
        raise Failed(text)
    return text


def launch(repository: str, notebook: str, badge: Path, hub: str = HUB) -> str:
    """Start a session, run a notebook in it, write the badge: what the badge says."""
    began = time.monotonic()
    try:
        session = Session(*launched(repository, hub))
        session.ask("GET", "api/status")
        started = f"starts in {time.monotonic() - began:.0f} s"
        try:
            said = f"{started}, {ran(session, notebook)}"
        finally:
            with contextlib.suppress(OSError, ValueError):  # it ends, perhaps before it answers
                session.ask("POST", "api/shutdown")
    except (Failed, OSError) as error:
        badge.write_text(drawn("does not work"), encoding="utf-8")
        raise Failed(str(error)) from None
    badge.write_text(drawn(said, works=True), encoding="utf-8")
    return said


def drawn(text: str, works: bool = False) -> str:
    """A badge with some words, as SVG."""
    left, right = 52, 14 + 6.6 * len(text)
    ground, words = ("#24805e" if works else "#b3261e"), html.escape(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" '
        f'role="img" aria-label="Binder: {words}"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right:.0f}" height="20" fill="{ground}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="7" y="14">Binder</text><text x="{left + 7}" y="14">{words}</text></g></svg>\n'
    )


def main(arguments: list[str]) -> None:
    """Run the command that the arguments name."""
    match arguments:
        case ["pin", image]:
            print(f"{TAG}: {pin(image)}")
        case ["launch", repository, notebook, badge, *hub] if len(hub) <= 1:
            print(launch(repository, notebook, Path(badge), *hub))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failed as failed:
        sys.exit(f"binder.py: {failed}")
