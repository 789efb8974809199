"""Connections to a store of HTTP/3, one after the other, each for one book.

One JSON object in (standard input), one out. In: {"url", "ca_file", "path" (of the book), "steps":
["fresh", "resumed", "early", "replayed"], "pause_s" (before and after what is replayed)}.

fresh       a connection that knows nothing of an earlier one
resumed     it shows the ticket of the connection before, and asks when its handshake is done
early       it shows the ticket, and its request leaves with its first datagrams (0-RTT)
replayed    no connection: the datagrams that the last one had sent before it arrived anything are
            sent once more, as they were, from another port; anybody who saw them could do that

Out: {"steps": [{"step", "wall_s" (until the book is in), "resumed", "early" (whether the server
agreed), "tickets" (how many it gave), "body" (text)}, or {"step", "datagrams"} of what was
replayed], "failure": null or words}.
"""

import asyncio
import json
import socket
import sys
import time
from urllib.parse import urlsplit

import bare_h3


class DatagramLog:
    """Sends what the transport would, and keeps what leaves before anything has arrived."""

    def __init__(self, connection):
        self.datagrams, self._connection = [], connection
        self._transport, connection._transport = connection._transport, self

    def sendto(self, data, address):
        """Send a datagram, and keep it if it is one of the first."""
        if self._connection.arrived == 0:
            self.datagrams.append(data)
        self._transport.sendto(data, address)


class Connection(bare_h3.Connection):
    """A connection that counts the datagrams that it got."""

    arrived = 0

    def connection_made(self, transport):
        """Put a DatagramLog between the connection and its transport."""
        super().connection_made(transport)
        self.datagram_log = DatagramLog(self)

    def datagram_received(self, data, address):
        """Count a datagram, and pass it on."""
        self.arrived += 1
        super().datagram_received(data, address)


async def take_step(spec, step, ticket):
    """Take a step with a connection, and return what it was, its ticket and its first datagrams."""
    tickets = []
    if step == "resumed":
        ticket.max_early_data_size = None  # as if the server had not allowed it
    began = time.perf_counter()
    async with bare_h3.connected(
        spec["url"],
        spec["ca_file"],
        ticket=None if step == "fresh" else ticket,
        keep_ticket=tickets.append,
        early=step == "early",
    ) as connection:
        reply = await connection.request(spec["path"])
        wall_s = time.perf_counter() - began
        while connection.protocol is None or not tickets:  # the ticket may be behind the book
            await asyncio.sleep(0.001)
        figures = {"step": step, "wall_s": round(wall_s, 6), "tickets": len(tickets)}
        figures.update(resumed=connection.resumed, early=connection.early)
        figures["body"] = reply.body.decode("utf-8")
        return figures, tickets[-1], connection.datagram_log.datagrams


async def visit(spec):
    """Take all steps, and return what each was."""
    steps, ticket, datagrams = [], None, []
    for step in spec["steps"]:
        if step == "replayed":
            await asyncio.sleep(spec["pause_s"])
            address = urlsplit(spec["url"])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as once_more:
                for datagram in datagrams:
                    once_more.sendto(datagram, (address.hostname, address.port))
                await asyncio.sleep(spec["pause_s"])
            steps.append({"step": step, "datagrams": len(datagrams)})
            continue
        figures, ticket, datagrams = await asyncio.wait_for(take_step(spec, step, ticket), 20)
        steps.append(figures)
    return steps


if __name__ == "__main__":
    bare_h3.Connection = Connection
    parameters = json.load(sys.stdin)
    try:
        print(json.dumps({"steps": asyncio.run(visit(parameters)), "failure": None}))
    except (bare_h3.Broken, OSError, TimeoutError) as error:
        print(json.dumps({"steps": [], "failure": f"{type(error).__name__}: {error}"}))
