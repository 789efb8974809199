"""The delay line: what comes through it, in which order, how late, and what is left of it."""

import asyncio
import contextlib
import socket
import statistics
import threading
import time

import pytest
from here import eventually, last_words, serving

from casebook.cases.fetching.server import relay as relaying
from casebook.cases.fetching.server.relay import relay
from casebook.errors import UsageError


def answer(sock: socket.socket, *_: object) -> None:
    """Send back what comes, and end when the client has ended."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := sock.recv(1 << 16):
            sock.sendall(data)


@pytest.fixture(scope="module")
def echo():
    with serving(answer) as url:
        yield url


def connect(url: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def round_trip_s(sock: socket.socket) -> float:
    start = time.perf_counter()
    sock.sendall(b"x")
    assert sock.recv(10) == b"x"
    return time.perf_counter() - start


#: A machine that does something else has a spell without it, among this many.
SPELLS = 20


@pytest.mark.parametrize("latency_s", [0, 0.001, 0.02, 0.05])
def test_a_round_trip_is_never_shorter_and_mostly_not_much_longer(echo, latency_s):
    medians = []
    with relay(echo, latency_s) as url, connect(url) as sock:
        for _ in range(SPELLS):
            took = [round_trip_s(sock) for _ in range(15)]
            assert min(took) >= 2 * latency_s
            medians.append(statistics.median(took))
            if medians[-1] < 2 * latency_s + 0.05:
                return
    pytest.fail(f"medians of fifteen round trips: {medians}")


def test_pieces_do_not_wait_for_one_another(echo):
    """Fifty pieces on their way at a time: a relay that sleeps and passes on would need 2.5 s."""
    took = []
    with relay(echo, 0.05) as url, connect(url) as sock:
        while len(took) < SPELLS and (not took or took[-1] >= 2):
            start = time.perf_counter()
            got = b""
            for number in range(50):
                sock.sendall(bytes([number]))
                time.sleep(0.002)
            while len(got) < 50:
                got += sock.recv(100)
            took.append(time.perf_counter() - start)
            assert got == bytes(range(50))
    assert 0.1 <= min(took) < 2, took


@pytest.mark.parametrize(("latency_s", "stands_still_s"), [(0, 0), (0.03, 0), (0.005, 0.5)])
def test_much_data_arrives_whole_and_in_order_and_the_end_after_it(echo, latency_s, stands_still_s):
    sent = bytes(range(251)) * 80_000  # 20 MB, in no rhythm of a buffer's
    got = bytearray()
    with relay(echo, latency_s) as url, connect(url) as sock:

        def send():
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        time.sleep(stands_still_s)
        while data := sock.recv(1 << 20):
            got += data
        sender.join()
    assert got == sent


def test_hundreds_of_connections_at_once(echo):
    with relay(echo, 0.02) as url, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(url)) for _ in range(400)]
        for number, sock in enumerate(socks):
            sock.sendall(b"%d" % number)
        assert [int(sock.recv(10)) for sock in socks] == list(range(400))


def test_a_client_that_goes_away_takes_the_other_side_with_it():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with relay(f"http://127.0.0.1:{port}", 0.01) as url:
            sock = connect(url)
            far, _ = listener.accept()
            far.settimeout(10)
            linger = b"\x01\0\0\0\0\0\0\0"
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # resets when it closes
            sock.close()
            with contextlib.suppress(ConnectionResetError):
                assert far.recv(10) == b""
            far.close()
            # And the other way round: the server leaves, after its last word.
            with connect(url) as sock:
                far, _ = listener.accept()
                far.sendall(b"bye")
                far.close()
                assert sock.recv(10) == b"bye"
                assert sock.recv(10) == b""


def test_where_nobody_listens_the_client_is_told():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with relay(f"http://127.0.0.1:{unused.getsockname()[1]}", 0.01) as url:
            with connect(url) as sock, contextlib.suppress(ConnectionResetError):
                assert sock.recv(10) == b""


def test_it_ends_with_its_block(echo):
    with relay(echo, 0.01) as url:
        sock = connect(url)
        round_trip_s(sock)
    with sock, contextlib.suppress(ConnectionResetError):
        assert sock.recv(10) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(url)


def test_it_ends_with_an_owner_who_is_killed(echo):
    code = "import time\nfrom casebook.cases.fetching.server.relay import relay\n"
    code += f"with relay({echo!r}, 0.01) as url:\n    print(url, flush=True)\n    time.sleep(600)"
    url = last_words(code).strip()

    def gone():
        try:
            connect(url).close()
        except ConnectionRefusedError:
            return True

    assert eventually(gone), "the relay outlived its owner"


@pytest.mark.parametrize(
    ("url", "latency_s", "said"),
    [
        ("http://127.0.0.1:1", -0.1, "0 to 1"),
        ("http://127.0.0.1:1", 1.1, "0 to 1"),
        ("http://127.0.0.1:1", float("nan"), "0 to 1"),
        ("http://127.0.0.1", 0.1, "with a port"),
        ("nonsense", 0.1, "with a port"),
        ("http://127.0.0.1:70000", 0.1, "with a port"),
    ],
)
def test_what_it_does_not_know_is_refused(url, latency_s, said):
    with pytest.raises(UsageError, match=said), relay(url, latency_s):
        pass


class Transport(asyncio.Transport):
    """One that notes what it is told."""

    def __init__(self):
        super().__init__()
        self.written, self.reads = [], []

    def is_closing(self):
        return False

    def get_write_buffer_size(self):
        return 0

    def write(self, data):
        self.written.append(data)

    def pause_reading(self):
        self.reads.append(False)

    def resume_reading(self):
        self.reads.append(True)


def test_a_side_reads_on_when_what_it_held_has_left(monkeypatch):
    """Whatever went through it before: else it would stand still after so many megabytes."""
    monkeypatch.setattr(relaying, "_ROOM", 10)

    async def pass_on():
        line = relaying._Line(0.001)
        near, far = relaying._Side(line), relaying._Side(line)
        near.peer, far.peer = far, near
        for side in (near, far):
            side.connection_made(Transport())
        for number in range(1, 4):
            near.data_received(b"x" * 10)
            assert near._bytes == 10 and near.transport.reads[-1] is False
            while len(far.transport.written) < number or near._bytes:
                await asyncio.sleep(0.001)
            assert near.transport.reads[-1] is True
        assert far.transport.written == [b"x" * 10] * 3 and near.transport.written == []

    asyncio.run(asyncio.wait_for(pass_on(), 60))
