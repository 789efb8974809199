"""A client over HTTP/2 that does not wait to hear how many streams the store allows.

Reads {"clients" (the folder of bare_h2), "url", "ca_file", "paths"} from standard input, asks for
all paths at once, and prints one JSON object: answered and refused (paths, the latter those whose
streams the server reset), goaway ([error code, last stream], or null).
"""

import json
import sys

from h2 import events

asked = json.load(sys.stdin)
sys.path.insert(0, asked["clients"])

import bare_h2  # noqa: E402

seen = {"answered": [], "refused": [], "goaway": None}
connection = bare_h2.Connection(asked["url"], asked["ca_file"])
connection.socket.settimeout(10)
connection.h2.initiate_connection()
for path in asked["paths"]:
    connection.ask(path)
while connection.open and not seen["goaway"]:
    for event in connection.exchange():
        if isinstance(event, events.ConnectionTerminated):
            seen["goaway"] = [event.error_code, event.last_stream_id]
        elif isinstance(event, (events.StreamEnded, events.StreamReset)):
            what = "answered" if isinstance(event, events.StreamEnded) else "refused"
            seen[what].append(connection.open.pop(event.stream_id).path)
print(json.dumps(seen))
