"""Stock and cured side by side, for tests/test_shared_context_answers.py: see trust_client.py."""

# ruff: noqa: UP031
import os

from trust_client import LOADS, PATHS, PROXIES, URLS, answer, outcome, session, shared_context

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
    for route in [None, *PROXIES]:
        proxies = {"http": PROXIES[route], "https": PROXIES[route]} if route else {}
        for way in LISTED if route else WAYS:
            for target, url in targets().items():
                name = "%s / %s / %s" % (route or "direct", way, target)
                cells[name] = [cell(kind, way, url, proxies) for kind in ("stock", "cured")]
    classes = [key[0] for key in getattr(shared_context, "_contexts", {})]
    shared = ["%s.%s" % (each.__module__, each.__name__) for each in classes]
    return {"cells": cells, "loads": LOADS, "shared": shared}


def cell(kind, way, url, proxies):
    verify, of_session, variable = WAYS[way]
    os.environ.pop("REQUESTS_CA_BUNDLE", None)
    if variable:
        os.environ["REQUESTS_CA_BUNDLE"] = variable
    with session(kind) as made:
        made.proxies = proxies
        if of_session is not None:
            made.verify = of_session
        options = {} if verify is None else {"verify": verify}
        return outcome(made, url, **options)


if __name__ == "__main__":
    answer({"matrix": matrix})
