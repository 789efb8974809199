"""A server with as many pages as anybody asks for, on several addresses, which counts.

    with Pages(hosts=4) as server:
        ...                          # any client: server.hosts, server.ca_file
        print(server.counters())

    /page/17?delay=0.1      page 17, after 0.1 s
    /page/17?fault=wrong    page 17 as a crawler may meet it: one of FAULTS

It runs in a process of its own, on Python 3.10 and newer, with trustme. Where the system has one
loopback address (macOS), the hosts are ports of it.
"""

import asyncio
import collections
import hashlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from urllib.parse import parse_qs, urlsplit

#: What may be wrong with a page, and what the server does then.
FAULTS = {
    "endless": "a body that never ends",
    "wrong": "another page in its place, with status 200",
    "once": "status 500 the first time, then the page",
    "never": "status 503 each time",
    "cut": "half a page, then the connection is closed",
}

#: What the server shows: the kind of all keys, and how many authorities stand between the server's
#: certificate and the one that is trusted.
CHAINS = {"ecdsa": ("ECDSA", 0), "rsa": ("RSA", 2)}

#: Bytes of a page, about; few enough that the work is in fetching it.
SIZE = 2_000


def page(number):
    """Return the bytes of a page: its number, text that only it has, and a digest of both."""
    seed = hashlib.sha256(b"page %d" % number).hexdigest()
    text = "page %d\n%s\n" % (number, (seed * (SIZE // len(seed))))
    return (text + hashlib.sha256(text.encode()).hexdigest() + "\n").encode()


class Pages:
    """The server, until the block ends.

    hosts: how many, such as ["127.0.0.1:4711", "127.0.0.2:4711"]. chain: what it shows, of CHAINS.
    ca_file: the authority to trust.
    """

    def __init__(self, hosts=1, chain="ecdsa"):
        self._wanted = [str(hosts), chain]

    def __enter__(self):
        command = [sys.executable, os.path.abspath(__file__), *self._wanted]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        ready = self._answer()
        self.hosts, self.ca_file = ready["hosts"], ready["ca_file"]
        return self

    def __exit__(self, *_):
        self._process.stdin.close()  # it takes this for the death of its owner
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def counters(self):
        """Return what was asked since the start or the last reset.

        connections (handshake completed), requests, pages (different ones), again (requests for a
        page that had been asked for before); of the host that had most, peak_connections (open at a
        time) and peak_per_s (requests within one second); cpu_s of the server.
        """
        return self._query("counters")

    def reset(self):
        """Set the counters to zero."""
        self._query("reset")

    def _query(self, question):
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server of pages has ended (%s)" % self._process.wait())
        return json.loads(line)


class _Tally:
    """What the server has counted."""

    def __init__(self, still_open=None):
        self.requests = collections.Counter()
        self.connections = 0
        self.open = still_open or collections.Counter()
        self.peak_connections = max(self.open.values(), default=0)
        self.lately = collections.defaultdict(collections.deque)
        self.peak_per_s = 0
        self.cpu_s = time.process_time()

    def request(self, host, number):
        moment, lately = time.monotonic(), self.lately[host]
        lately.append(moment)
        while lately[0] <= moment - 1:
            lately.popleft()
        self.peak_per_s = max(self.peak_per_s, len(lately))
        self.requests[number] += 1

    def report(self):
        total = sum(self.requests.values())
        return {
            "connections": self.connections,
            "requests": total,
            "pages": len(self.requests),
            "again": total - len(self.requests),
            "peak_connections": self.peak_connections,
            "peak_per_s": self.peak_per_s,
            "cpu_s": time.process_time() - self.cpu_s,
        }


class _Connection(asyncio.Protocol):
    """One client: a request at a time, over a connection that is kept unless it says otherwise."""

    tally = _Tally()
    faulty_requests = collections.Counter()  # how often a page with a fault was asked for

    def __init__(self, host):
        self._host, self._received = host, b""

    def connection_made(self, transport):
        self._transport, counters = transport, self.tally
        counters.connections += 1
        counters.open[self._host] += 1
        counters.peak_connections = max(counters.peak_connections, counters.open[self._host])

    def connection_lost(self, _error):
        self.tally.open[self._host] -= 1

    def data_received(self, data):
        self._received += data
        head, end, self._received = self._received.partition(b"\r\n\r\n")
        if not end:
            self._received = head
            return
        target = head.split(b" ", 2)[1].decode()
        keep = b"connection: close" not in head.lower()
        address = urlsplit(target)
        number = int(address.path.rpartition("/")[2])
        query = parse_qs(address.query)
        self.tally.request(self._host, number)
        delay_s = float(query.get("delay", ["0"])[0])
        answer = (number, query.get("fault", [""])[0], keep)
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._reply, *answer)
        else:
            self._reply(*answer)

    def _reply(self, number, fault, keep):
        if self._transport.is_closing():
            return
        status, body = b"200 OK", page(number)
        if fault == "endless":
            asyncio.get_running_loop().create_task(self._without_end())
            return
        if fault == "wrong":
            body = page(number + 1)
        elif fault == "never" or (fault == "once" and not self.faulty_requests[number]):
            status, body = b"503 No", b"not now\n"
        self.faulty_requests[number] += bool(fault)
        head = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%b\r\n" % (
            status, len(body), b"" if keep else b"Connection: close\r\n",
        )  # fmt: skip
        if fault == "cut":
            body, keep = body[: len(body) // 2], False
        self._transport.write(head + body)
        if not keep:
            self._transport.close()

    async def _without_end(self):
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while not self._transport.is_closing():
            self._transport.write(b"and so on " * 1_000)
            await asyncio.sleep(0.002)


def _certified(folder, hosts, chain):
    import trustme

    kind, between = CHAINS[chain]
    key_type = getattr(trustme.KeyType, kind)
    authority = trustme.CA(key_type=key_type)
    ca_file = os.path.join(folder, "ca.pem")
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for _ in range(between):
        authority = authority.create_child_ca(key_type=key_type)
    issued = authority.issue_cert(*hosts, key_type=key_type)
    issued.configure_cert(context)
    context.num_tickets = 0  # no client here resumes a session: each handshake is a full one
    return ca_file, context


async def _serve(count, chain):
    loop = asyncio.get_running_loop()
    addresses = ["127.0.0.%d" % (1 + number) for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        ca_file, context = _certified(folder, addresses, chain)
        hosts, port, servers = [], 0, []
        for address in addresses:
            name = []
            factory = lambda name=name: _Connection(name[0])  # noqa: E731
            options = {"ssl": context, "backlog": 4096, "ssl_handshake_timeout": 3600}
            try:
                server = await loop.create_server(factory, address, port, **options)
            except OSError:  # an address that this system has not, or a port that is taken
                server = await loop.create_server(factory, "127.0.0.1", 0, **options)
            servers.append(server)
            host, port_there = server.sockets[0].getsockname()[:2]
            port = port or port_there
            name.append("%s:%d" % (host, port_there))
            hosts += name
        print(json.dumps({"hosts": hosts, "ca_file": ca_file}), flush=True)
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            if line.strip() == b"reset":
                _Connection.tally = _Tally(_Connection.tally.open)
            print(json.dumps(_Connection.tally.report()), flush=True)
        for server in servers:
            server.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2]))
