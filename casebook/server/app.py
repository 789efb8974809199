"""The endpoints, as a WSGI application.

The bodies have the shape of go-httpbin's, the server that the 2019 investigation was made with:
arguments and headers map to lists of values, errors are `status_code`, `error` and `detail`.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qs

import gevent

from casebook.server.counters import Epoch
from casebook.server.limits import MAX_DELAY_S

_SECONDS = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_READ = ("GET", "HEAD")

#: Path of the counters (GET), and of setting them to zero (POST). Neither counts itself.
COUNTERS = "/counters"
RESET = "/counters/reset"


class Refusal(Exception):
    """A request that gets no answer but a status, a reason, and perhaps further headers."""

    def __init__(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


class Application:
    """The WSGI application; `epoch` counts what it is asked.

    `accept_all` accepts the clients that have connected before the counters are asked for.
    The server puts two things of its own into the environ: `casebook.connection`, the
    `Connection` on which the request came, and `casebook.target`, the request target as sent.
    """

    def __init__(self, accept_all: Callable[[], None]) -> None:
        self.epoch = Epoch()
        self._accept_all = accept_all

    def __call__(self, environ: dict, start_response: Callable) -> list[bytes]:
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
        connection, path = environ["casebook.connection"], environ["PATH_INFO"]
        if path in (COUNTERS, RESET):
            connection.control()
            return self._control(environ)
        with connection.request(self.epoch, environ["SERVER_PROTOCOL"]):
            match path.split("/"):
                case ["", "get"]:
                    _allow(environ, *_READ)
                    return _echo(environ)
                case ["", "delay", seconds] if seconds:
                    _allow(environ, *_READ)
                    _wait(seconds)
                    return _echo(environ) | {"data": "", "files": {}, "form": {}, "json": None}
            raise Refusal(404, f"no such page: {path}")

    def _control(self, environ: dict) -> dict:
        resets = environ["PATH_INFO"] == RESET
        _allow(environ, *(("POST",) if resets else _READ))
        self._accept_all()
        if resets:
            self.epoch = Epoch()
        return self.epoch.report()


def _wait(seconds: str) -> None:
    # float() alone would take "nan", "1_0", " 1" and digits of other scripts too.
    if not _SECONDS.fullmatch(seconds):
        raise Refusal(400, f"invalid delay: {seconds!r} is not a number of seconds")
    if float(seconds) > MAX_DELAY_S:
        raise Refusal(400, f"invalid delay: {seconds} s is longer than {MAX_DELAY_S:g} s")
    gevent.sleep(float(seconds))


def _allow(environ: dict, *methods: str) -> None:
    method = environ["REQUEST_METHOD"]
    if method not in methods:
        allowed = ", ".join(methods)
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
