"""The bare h2 client, for what a store says when it does not answer.

Reads {"clients" (the folder of bare_h2), "url", "ca_file", "paths", "at_once"} from standard input,
asks for so many paths at once, whatever the store allows, and for the next ones when these are
answered; prints one JSON object: protocol (ALPN's choice), answers ([path, status, body] in the
order of completion), goaway ([error code, last stream] or null), refused (paths whose streams the
server reset), failure.
"""

import json
import sys

from h2 import events, exceptions

asked = json.load(sys.stdin)
sys.path.insert(0, asked.pop("clients"))

import bare_h2  # noqa: E402


class Connection(bare_h2.Connection):
    """The bare client's, which notes what was refused and how it ended."""

    goaway = None

    def exchange(self):
        for event in super().exchange():
            if isinstance(event, events.ConnectionTerminated):
                self.goaway = [event.error_code, event.last_stream_id]
            if isinstance(event, events.StreamReset):
                refused.append(self.open.pop(event.stream_id).path)
            else:
                yield event


def ask(connection, paths, at_once):
    connection.h2.initiate_connection()
    for start in range(0, len(paths), at_once):
        for path in paths[start : start + at_once]:
            connection.ask(path)
        while connection.open:
            for _, reply in connection.listen():
                answers.append([reply.path, int(reply.headers[":status"]), reply.body.decode()])


answers, refused, failure = [], [], ""
connection = Connection(asked["url"], asked["ca_file"])
connection.socket.settimeout(10)
try:
    if connection.protocol == "h2":
        ask(connection, asked["paths"], asked["at_once"])
except (OSError, bare_h2.Broken, exceptions.ProtocolError) as error:
    failure = type(error).__name__
seen = {"protocol": connection.protocol, "answers": answers, "refused": refused}
print(json.dumps(seen | {"goaway": connection.goaway, "failure": failure}))
