"""Two loops over one HTTP/2 connection: one JSON object in (standard input), one out.

In: {"url", "ca_file", "paths": [path, ...], "loop": "in_order" or "as_completed"}.
Out: {"taken": [[path, seconds since the first request], ...], "bodies": [text, ...], "failure":
null or a text}. The two functions are as alike as they can be: only whom they wait for differs.
"""

import json
import sys
import time

import bare_h2
from h2 import events


def in_order(connection, paths, take):
    asked = {}
    for path in paths:
        stream = connection.request(path)
        asked[stream] = path
    for stream in list(asked):
        body = connection.response(stream)
        path = asked.pop(stream)
        take(path, body)


def as_completed(connection, paths, take):
    asked = {}
    for path in paths:
        stream = connection.request(path)
        asked[stream] = path
    while asked:
        stream, body = connection.next_response()
        path = asked.pop(stream)
        take(path, body)


class Connection(bare_h2.Connection):
    """The bare client's, with a way to wait for one response, and a way to wait for any."""

    def __init__(self, url, ca_file):
        super().__init__(url, ca_file)
        self.bodies, self.whole = {}, {}
        self.settle()

    def request(self, path):
        stream = self.ask(path)
        self.bodies[stream] = b""
        return stream

    def response(self, stream):
        """Wait for the response on this stream, whatever else comes in meanwhile."""
        while stream not in self.whole:
            self.listen()
        return self.whole.pop(stream)

    def next_response(self):
        """Wait for any response: the number of its stream, and its body."""
        while not self.whole:
            self.listen()
        return self.whole.popitem()

    def listen(self):
        for event in self.exchange():
            if isinstance(event, (events.StreamReset, events.ConnectionTerminated)):
                raise bare_h2.Broken(f"the server ended it: {event.error_code!r}")
            if isinstance(event, events.DataReceived):
                self.bodies[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, events.StreamEnded):
                self.whole[event.stream_id] = self.bodies.pop(event.stream_id).decode()


def main():
    spec = json.load(sys.stdin)
    taken, bodies = [], []

    def take(path, body):
        taken.append([path, round(time.perf_counter() - began, 6)])
        bodies.append(body)

    try:
        connection = Connection(spec["url"], spec["ca_file"])
        connection.socket.settimeout(15)
        loop = {"in_order": in_order, "as_completed": as_completed}[spec["loop"]]
        began = time.perf_counter()
        loop(connection, spec["paths"], take)
        answer = {"taken": taken, "bodies": bodies, "failure": None}
    except Exception as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
