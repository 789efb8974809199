"""Who reads the bundle of certificates, and how often: the kernel's count.

It is for clients whose TLS is not Python's.

    reading.bundles("curl-cffi-today", "curl_cffi")      # [10, 23]
"""

import json
import tempfile
from pathlib import Path

from casebook.cases.fetching import clients, programs, server, trust

#: Connections in the first and in the second run.
PAGES = (10, 23)

#: What runs in the stack: rchar of /proc/self/io has what is read from files, and no sockets.
SCRIPT = """
import importlib, json, sys
folder, name, url, bundle, *pages = sys.argv[1:]
sys.path.insert(0, folder)
client = importlib.import_module(name)
def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])
def status_of(reply):
    return reply[0] if isinstance(reply, tuple) else reply.status_code
found = []
for n in map(int, pages):
    urls = [f"{url}/delay/0?page={page}" for page in range(n)]
    before = bytes_read()
    replies = client.fetch(urls, bundle)
    found.append(bytes_read() - before)
    assert [status_of(reply) for reply in replies] == [200] * n
print(json.dumps(found))
"""


def not_here() -> str:
    """Say why this machine cannot tell; "" if it can."""
    has_counter = Path("/proc/self/io").exists()
    return "" if has_counter else "this system does not count bytes read"


def bundles(stack: str, client: str) -> list[int]:
    """Count the bundles' worth of bytes that a client of a stack reads, for each of PAGES.

    client: a file of the measured clients. Raises RunFailed where a reply is no success, and
    MissingInterpreter.
    """
    file = clients.file_of(client)
    with server.start() as lab, tempfile.TemporaryDirectory(prefix="casebook-") as folder:
        bundle = trust.full_bundle(str(lab.ca_file), Path(folder))
        arguments = [str(part) for part in (file.parent, file.stem, lab.url, bundle, *PAGES)]
        output = programs.run(stack, SCRIPT, *arguments)
        return [round(count / bundle.stat().st_size) for count in json.loads(output)]
