"""The lab server: a loopback HTTPS server that counts what it sees.

    from casebook import server

    with server.start() as lab:
        ...                       # any client: lab.url, lab.ca_file
        print(lab.counters())

It runs in its own process, follows httpbin's conventions (`/get`, `/delay/{seconds}`), and is
patient: a client may connect and stand still for minutes before its handshake.

This package is imported by the owner of a server only; gevent is imported in the server's own
process, so that importing this changes nothing in a notebook whose patches are being studied.
"""

from pathlib import Path

from casebook.cases.fetching.server.limits import MAX_DELAY_S
from casebook.cases.fetching.server.process import SCHEMES, Server, serve, start

__all__ = ["MAX_DELAY_S", "SCHEMES", "Server", "serve", "start"]

#: What an answer of the server depends on; the relay is a process of its own.
DEPENDENCIES = [file for file in Path(__file__).parent.glob("*.py") if file.name != "relay.py"]
