"""What a probe says: one JSON object, in it what came of each page, and what failed."""

import json
import os
import sys


def answer(function):
    """Read an object from standard input, and print what the function makes of it.

    The answer goes to standard output. Libraries that print, print to standard error meanwhile.
    """
    out = os.dup(1)
    os.dup2(2, 1)
    result = function(json.load(sys.stdin))
    with os.fdopen(out, "w") as stream:
        json.dump(result, stream, sort_keys=True)
        stream.write("\n")


def pages(replies):
    """Return rows {"page", "status", "got_page"}, and the first failure (page, exception) or None.

    replies: pairs (page, what a client has for it).
    """
    rows, failed = [], None
    for page, reply in replies:
        status = got_page = None
        if reply is None or isinstance(reply, Exception):
            failed = failed or (page, reply or RuntimeError("no response and no exception"))
        else:
            status, body = status_and_body(reply)
            got_page = page_of(body)
        rows.append({"page": page, "status": status, "got_page": got_page})
    return rows, failed


def status_and_body(reply):
    """Return the status and the body of a library's response, or of such a pair."""
    if isinstance(reply, tuple):
        return reply
    status = reply.status_code if hasattr(reply, "status_code") else reply.status
    return status, reply.content if hasattr(reply, "content") else reply.data


def page_of(body):
    """Return the page number that the server echoed, or None. Servers send "3" or ["3"]."""
    try:
        page = json.loads(body.decode("utf-8"))["args"]["page"]
        return int(page[0] if isinstance(page, list) else page)
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def failure(page, error, ca_file):
    """Return an exception as {"page", "type", "message"}: of the innermost cause, without paths."""
    cause = innermost(error)
    message = str(cause)
    ca_folder = os.path.dirname(ca_file or "")
    for folder in (ca_folder, sys.path[0], sys.prefix, getattr(sys, "base_prefix", "")):
        if len(folder) > 1:
            message = message.replace(folder + os.sep, "")
    return {"page": page, "type": type(cause).__name__, "message": message}


def innermost(error):
    """Return the exception at the bottom.

    requests and urllib3 wrap the one that says what happened.
    """
    for _ in range(10):
        inside = [getattr(error, "reason", None), getattr(error, "__cause__", None)]
        inside = [e for e in inside + list(error.args) if isinstance(e, Exception)]
        if not inside:
            break
        error = inside[0]
    return error
