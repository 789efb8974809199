"""What the programs of this folder share: a request in, the time that the pages took out."""

import json
import sys
import time


def fetch_all(fetch_pages, spec=None):
    """Read {"url", "ca_file", "n", "delay_s"}, fetch, check the pages, and print {"wall_s"}.

    fetch_pages(urls, ca_file) returns the bodies; their page numbers, which the server echoed, are
    checked. spec: what was read before.
    """
    spec = spec or json.load(sys.stdin)
    pages = list(range(spec["n"]))
    urls = [f"{spec['url']}/delay/{spec['delay_s']}?page={page}" for page in pages]
    start = time.time()
    bodies = fetch_pages(urls, spec["ca_file"])
    wall_s = time.time() - start
    numbers = sorted(int(json.loads(body)["args"]["page"][0]) for body in bodies)
    if numbers != pages:
        raise RuntimeError(f"asked for {len(pages)} pages, got {numbers!r}")
    json.dump({"wall_s": wall_s}, sys.stdout)
