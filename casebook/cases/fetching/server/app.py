"""The endpoints, as a WSGI application.

The bodies have the shape of go-httpbin's, the server that the 2019 investigation was made with:
arguments and headers map to lists of values, errors are `status_code`, `error` and `detail`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

import gevent

from casebook.cases.fetching.server.limits import MAX_DELAY_S

_SECONDS = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_METHODS = ("GET", "HEAD")


@dataclass(slots=True)
class Epoch:
    """What the server saw between two resets of its counters.

    A reset starts a new one instead of zeroing numbers in place: a request that was in flight then
    is finished in the epoch in which it began, and can neither raise the new one's peak nor push
    its number in flight below zero.
    """

    connections: int = 0
    handshakes: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    protocols: Counter[str] = field(default_factory=Counter)

    def report(self) -> dict:
        """Return the counters as casebook.cases.fetching.server.Server.counters gives them."""
        return {
            "connections": self.connections,
            "handshakes": self.handshakes,
            "requests": sum(self.protocols.values()),
            "peak_in_flight": self.peak_in_flight,
            "protocols": dict(self.protocols),
        }

    @contextmanager
    def request(self, protocol: str) -> Iterator[None]:
        """Count a request as in flight until its answer is known (and not yet written).

        So a client that asks again when it has read the last answer is never in flight twice.
        """
        self.protocols[protocol] += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1


class Refusal(Exception):
    """A request that gets no answer but a status, a reason, and perhaps further headers."""

    def __init__(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


class Application:
    """The WSGI application; `epoch` counts what it is asked.

    The server puts the request target, as it was sent, into the environ as `casebook.target`.
    """

    def __init__(self) -> None:
        self.epoch = Epoch()

    def __call__(self, environ: dict, start_response: Callable) -> list[bytes]:
        """Answer a request in JSON, a refused one with its status and reason (WSGI)."""
        status, headers = 200, []
        try:
            content = self._answer(environ)
        except Refusal as refusal:
            status, headers = refusal.status, list(refusal.headers)
            phrase = HTTPStatus(status).phrase
            content = {"status_code": status, "error": phrase, "detail": str(refusal)}
        body = json.dumps(content, indent=2).encode() + b"\n"
        headers.append(("Content-Type", "application/json; charset=utf-8"))
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: dict) -> dict:
        path = environ["PATH_INFO"]
        with self.epoch.request(environ["SERVER_PROTOCOL"]):
            match path.split("/"):
                case ["", "get"]:
                    _check_method(environ)
                    return _echo(environ)
                case ["", "delay", seconds] if seconds:
                    _check_method(environ)
                    _wait(seconds)
                    return _echo(environ) | {"data": "", "files": {}, "form": {}, "json": None}
            raise Refusal(404, f"no such page: {path}")


def _wait(seconds: str) -> None:
    # float() alone would take "nan", "1_0", " 1" and digits of other scripts too.
    if not _SECONDS.fullmatch(seconds):
        raise Refusal(400, f"invalid delay: {seconds!r} is not a number of seconds")
    if float(seconds) > MAX_DELAY_S:
        raise Refusal(400, f"invalid delay: {seconds} s is longer than {MAX_DELAY_S:g} s")
    gevent.sleep(float(seconds))


def _check_method(environ: dict) -> None:
    if (method := environ["REQUEST_METHOD"]) not in _METHODS:
        allowed = ", ".join(_METHODS)
        raise Refusal(405, f"{method} is not for this page, {allowed} is", ("Allow", allowed))


def _echo(environ: dict) -> dict:
    scheme, target = environ["wsgi.url_scheme"], environ["casebook.target"]
    host = environ.get("HTTP_HOST", f"127.0.0.1:{environ['SERVER_PORT']}")
    sent = {
        key.removeprefix("HTTP_").replace("_", "-").title(): [value]
        for key, value in sorted(environ.items())
        if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }
    return {
        "args": parse_qs(environ["QUERY_STRING"], keep_blank_values=True),
        "headers": sent,
        "method": environ["REQUEST_METHOD"],
        "origin": environ["REMOTE_ADDR"],
        "url": f"{scheme}://{host}{target}",
    }
