"""Stock and cured side by side, for tests/test_shared_context_answers.py: see trust_client.py."""

# ruff: noqa: UP031, I001
import os

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


def targets():
    found = dict(URLS)
    found["https to http"] = URLS["valid"] + "/to?url=" + URLS["http"]
    found["http to https"] = URLS["http"] + "/to?url=" + URLS["valid"]
    found["http to unknown issuer"] = URLS["http"] + "/to?url=" + URLS["unknown issuer"]
    found["https to expired"] = URLS["valid"] + "/to?url=" + URLS["expired"]
    return found


def matrix():
    """{"route / way / target": [stock's outcome, the cure's]}, each with a session of its own."""
    cells = {}
    for route in [None] if ASKED.get("directly") else [None, *PROXIES]:
        proxies = {"http": PROXIES[route], "https": PROXIES[route]} if route else {}
        for way in LISTED if route else WAYS:
            for target, url in targets().items():
                name = "%s / %s / %s" % (route or "direct", way, target)
                cells[name] = [cell(kind, way, url, proxies) for kind in ("stock", "cured")]
        cells.update(showing(route or "direct", proxies))
    contexts = [each.context for each in getattr(shared_context, "_contexts", {}).values()]
    shared = sorted({type(each).__mro__[1].__name__ for each in contexts})
    return {"cells": cells, "shared": shared, "contexts": len(contexts),
            "missing": getattr(shared_context, "MISSING", [])}  # fmt: skip


def showing(route, proxies):
    """The cells of clients with a certificate; directly, twice, so that those of the second turn
    meet what all have left."""
    cells = {}
    for turn in ("first", "again") if route == "direct" else ("once",):
        for way in SHOWING:
            for holder, cert in CERTS.items():
                for target, url in WORLD["demanding"].items():
                    name = "%s / %s / %s shown to %s, %s" % (route, way, holder, target, turn)
                    kinds = ("stock", "cured")
                    cells[name] = [cell(kind, way, url, proxies, cert) for kind in kinds]
                    if holder == "a stranger":
                        # The server refuses, after the handshake, and its alert races its close.
                        cells[name] = [[came[0] == 200] for came in cells[name]]
    return cells


def cell(kind, way, url, proxies, cert=None):
    verify, of_session, variable = WAYS[way]
    os.environ.pop("REQUESTS_CA_BUNDLE", None)
    if variable:
        os.environ["REQUESTS_CA_BUNDLE"] = variable
    with session(kind) as made:
        made.proxies = proxies
        if of_session is not None:
            made.verify = of_session
        options = {} if verify is None else {"verify": verify}
        return outcome(made, url, cert=tuple(cert) if isinstance(cert, list) else cert, **options)


if __name__ == "__main__":
    answer({"matrix": matrix})
