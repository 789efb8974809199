"""Stock and cured side by side, for test_shared_context_answers.py: see trust_client.py."""

# ruff: noqa: UP031, I001
import os
from unittest import mock

from trust_client import (
    ASKED, CERTS, PATHS, PROXIES, URLS, WORLD, answer, outcome, requests, session, shared_context,
)  # fmt: skip

#: Ways to say what to trust: verify of the call, Session.verify, REQUESTS_CA_BUNDLE.
WAYS = {
    "True": (True, None, None),
    "False": (False, None, None),
    "file": (PATHS["file"], None, None),
    "directory": (PATHS["directory"], None, None),
    "missing": (PATHS["missing"], None, None),
    "variable": (None, None, PATHS["file"]),
    "session: file": (None, PATHS["file"], None),
    "other file": (PATHS["other"], None, None),
    "corrupt": (PATHS["corrupt"], None, None),
    "other in variable": (None, None, PATHS["other"]),
    "missing in variable": (None, None, PATHS["missing"]),
    "False beside variable": (False, None, PATHS["file"]),
    "session: False": (None, False, None),
    "session: other file": (None, PATHS["other"], None),
    "session: file, beside other in variable": (None, PATHS["file"], PATHS["other"]),
}
#: As many of them as are tried through proxies too.
LISTED = list(WAYS)[:7]
#: Those in which clients show certificates. requests 2.32.0 to 2.32.4 load these into the context
#: of verify=True, where the next one finds them: see trust_tasks.py.
SHOWING = ("file", "other file", "False", "True")
if getattr(requests.adapters, "_preloaded_ssl_context", None):
    SHOWING = SHOWING[:-1]


TARGETS = dict(URLS)
TARGETS["https to http"] = URLS["valid"] + "/to?url=" + URLS["http"]
TARGETS["http to https"] = URLS["http"] + "/to?url=" + URLS["valid"]
TARGETS["http to unknown issuer"] = URLS["http"] + "/to?url=" + URLS["unknown issuer"]
TARGETS["https to expired"] = URLS["valid"] + "/to?url=" + URLS["expired"]


def matrix():
    """{"route / way / target": [stock's outcome, the cure's]}, each with a session of its own."""
    cells = {}
    for route in [None] if ASKED.get("directly") else [None, *PROXIES]:
        proxies = {"http": PROXIES[route], "https": PROXIES[route]} if route else {}
        for name, *asked in asks(route):
            came = [cell(kind, proxies, *asked) for kind in ("stock", "cured")]
            cells["%s / %s" % (route or "direct", name)] = came
    stats = getattr(shared_context, "stats", dict)()
    return {"cells": cells, "stats": stats}


def asks(route):
    """Return the cells of a route: (name, way, URL).

    For clients with a certificate, (certificate, whether it is a stranger's) is added. These come
    twice directly, so that those of the second turn meet what all have left.
    """
    for way in LISTED if route else WAYS:
        for target, url in TARGETS.items():
            yield "%s / %s" % (way, target), way, url
    for turn in ["once"] if route else ["first", "again"]:
        for way in SHOWING:
            for holder, cert in CERTS.items():
                for target, url in WORLD["demanding"].items():
                    name = "%s / %s shown to %s, %s" % (way, holder, target, turn)
                    yield name, way, url, cert, holder == "a stranger"


def cell(kind, proxies, way, url, cert=None, is_strange=False):
    verify, of_session, bundle = WAYS[way]
    variables = {"REQUESTS_CA_BUNDLE": bundle} if bundle else {}
    with session(kind) as made, mock.patch.dict(os.environ, variables):
        made.proxies = proxies
        if of_session is not None:
            made.verify = of_session
        options = {} if verify is None else {"verify": verify}
        cert = tuple(cert) if isinstance(cert, list) else cert
        came = outcome(made, url, cert=cert, **options)
    # A server refuses a stranger after the handshake, and its alert races its close.
    return [came[0] == 200] if is_strange else came


if __name__ == "__main__":
    answer({"matrix": matrix})
