"""Three clients share one context, and one of them brings a certificate: one JSON object in, out.

In: {"client": of CLIENTS, "url": of a host that says whom it was shown, "ca_file", "certificate":
a path}. Out: {"shown": whom the host saw in the request of the first client, of the one with the
certificate, and of the third}.
"""

import json
import ssl
import sys


def of_httpx(context, ca_file, certificate):
    """Return a client of httpx, which takes a context."""
    import httpx

    return httpx.Client(verify=context, cert=certificate, trust_env=False)


def of_requests(context, ca_file, certificate):
    """Return a Session of requests with an adapter that hands in the context."""
    import requests.adapters

    return _session(requests, context, ca_file, certificate)


def of_niquests(context, ca_file, certificate):
    """Return a Session of niquests with an adapter that hands in the context."""
    import niquests.adapters

    return _session(niquests, context, ca_file, certificate)


def _session(library, context, ca_file, certificate):
    class Adapter(library.adapters.HTTPAdapter):
        def init_poolmanager(self, *arguments, **options):
            library.adapters.HTTPAdapter.init_poolmanager(
                self, *arguments, ssl_context=context, **options
            )

    session = library.Session()
    session.trust_env = False
    session.verify, session.cert = ca_file, certificate
    session.mount("https://", Adapter())
    return session


CLIENTS = {"requests": of_requests, "httpx": of_httpx, "niquests": of_niquests}


def run(spec):
    """Ask with each of the three, and return whom the host saw."""
    context = ssl.create_default_context(cafile=spec["ca_file"])
    shown = []
    for certificate in (None, spec["certificate"], None):
        client = CLIENTS[spec["client"]](context, spec["ca_file"], certificate)
        shown.append(client.get(spec["url"]).json()["shown"])
    return {"shown": shown}


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
