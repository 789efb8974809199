"""By night: what chapter 22 found with aioquic's store, asked of a server that shares no code.

quic-go is written in Go. Its modules come from Go's proxy, checked against go.sum.
"""

import contextlib
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import here
import pytest

from casebook.cases.bookstore import quic, readers
from casebook.cases.bookstore.line import chains
from casebook.laboratory import scripts

SOURCE = Path(here.__file__).parent / "quic_go"
RSA = "RSA, two intermediates"
#: How long what the server sends is held back, in seconds: so long the client cannot answer it. It
#: is less than the time after which the server would repeat itself.
HELD_S = 0.06

pytestmark = [pytest.mark.nightly, here.needs("go")]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quic-go")
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    made = here.run("go", "build", "-o", "store", ".", cwd=folder, timeout=900)
    assert made.returncode == 0, made.stderr
    return folder / "store"


@contextlib.contextmanager
def serving(program: Path, folder: Path, chain: str) -> Iterator[tuple[int, str, subprocess.Popen]]:
    """quic-go's server: its port, what to trust, and the process that prints its counts."""
    chain_file, trusted_file = chains.certify(folder, "127.0.0.1", chain)
    command = [program, chain_file, chain_file]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline()), trusted_file, process
        finally:
            process.kill()


@contextlib.contextmanager
def held_back(port: int) -> Iterator[tuple[int, list[tuple[float, int]]]]:
    """A relay that holds back what the server sends: its port, and when it got how many bytes."""
    sent: list[tuple[float, int]] = []
    over = threading.Event()
    with (
        socket.socket(type=socket.SOCK_DGRAM) as front,
        socket.socket(type=socket.SOCK_DGRAM) as back,
    ):
        front.bind(("127.0.0.1", 0))
        back.connect(("127.0.0.1", port))

        def relay() -> None:
            client, waiting = None, []
            while not over.is_set():
                ready = select.select([front, back], [], [], 0.005)[0]
                if front in ready:
                    data, client = front.recvfrom(65_535)
                    back.send(data)
                if back in ready:
                    waiting.append((time.monotonic(), back.recv(65_535)))
                    sent.append((waiting[-1][0], len(waiting[-1][1])))
                while waiting and waiting[0][0] + HELD_S <= time.monotonic():
                    front.sendto(waiting.pop(0)[1], client)

        thread = threading.Thread(target=relay)
        thread.start()
        try:
            yield front.getsockname()[1], sent
        finally:
            over.set()
            thread.join()


def asks(script: str, port: int, ca_file: str, **spec) -> None:
    spec = {"url": f"https://127.0.0.1:{port}", "ca_file": ca_file, "path": "/book"} | spec
    place = here.environment(quic.STACK)
    answer = scripts.answer_of(place, readers.SCRIPTS / f"{script}.py", spec, within_s=120)
    assert answer["failure"] is None, answer["failure"]


def begins(client: str, program: Path, folder: Path, chain: str) -> int:
    """The bytes that the server sends before the client has heard any of them."""
    with (
        serving(program, folder, chain) as (port, ca_file, _),
        held_back(port) as (relayed, sent),
    ):
        if client == "pycurl":
            asks("connects", relayed, ca_file, library="pycurl", times=1)
        else:
            asks("sessions", relayed, ca_file, steps=["fresh"], pause_s=0)
        return sum(size for at, size in sent if at < sent[0][0] + HELD_S)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pycurl_has_an_early_request_accepted_whatever_it_asks(
    method: str, program: Path, tmp_path: Path
) -> None:
    """As quic-pycurl-early and quic-pycurl-post: one of two connections after the first."""
    with serving(program, tmp_path, chains.SELF) as (port, ca_file, process):
        asks("connects", port, ca_file, library="pycurl", times=3, method=method)
        assert process.stdout
        counts = [process.stdout.readline().split() for _ in range(3)]
    assert counts == [["0", "0"], ["1", "1"], ["1", "1"]]


def test_a_chain_of_rsa_stops_at_the_limit_unless_the_client_begins_with_more(
    program: Path, tmp_path: Path
) -> None:
    """As quic-amplification: three times the 1,200 bytes of aioquic, and the packet in progress."""
    small = begins("aioquic", program, tmp_path, chains.SELF)
    stopped = begins("aioquic", program, tmp_path, RSA)
    whole = begins("pycurl", program, tmp_path, RSA)
    assert small < 3 * 1_200 <= stopped < 3 * 1_200 + 1_452
    assert whole > stopped + 500
