"""The endpoints, as a WSGI application.

The bodies have the shape of go-httpbin's, the server that the 2019 investigation was made with:
arguments and headers map to lists of values, errors are `status_code`, `error` and `detail`.
"""

import http.client
import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs

import gevent

from casebook.server.counters import Epoch
from casebook.server.limits import MAX_DELAY_S

_SECONDS = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_CODE = re.compile(r"\d{3}", re.ASCII)
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
        headers: list[tuple[str, str]] = []
        try:
            status, content = self._answer(environ)
        except Refusal as refusal:
            status, detail = refusal.status, str(refusal)
            content = {"status_code": status, "error": _phrase(status), "detail": detail}
            headers.extend(refusal.headers)
        body = b"" if content is None else json.dumps(content, indent=2).encode() + b"\n"
        if status not in (204, 304):
            kind = "text/plain" if content is None else "application/json"
            headers.append(("Content-Type", f"{kind}; charset=utf-8"))
            headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} {_phrase(status)}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: dict) -> tuple[int, dict | None]:
        if environ["PATH_INFO"] in (COUNTERS, RESET):
            return self._control(environ)
        with environ["casebook.connection"].request(self.epoch, environ["SERVER_PROTOCOL"]):
            name, *arguments = environ["PATH_INFO"].removeprefix("/").split("/")
            page = _PAGES.get((name, len(arguments)))
            if page is None or not all(arguments):
                raise Refusal(404, f"no such page: {environ['PATH_INFO']}")
            _allow(environ, *_READ)
            return page(environ, *arguments)

    def _control(self, environ: dict) -> tuple[int, dict]:
        environ["casebook.connection"].control()
        resets = environ["PATH_INFO"] == RESET
        _allow(environ, *(("POST",) if resets else _READ))
        self._accept_all()
        if resets:
            self.epoch = Epoch()
        return 200, self.epoch.report()


def _get(environ: dict) -> tuple[int, dict]:
    return 200, _echo(environ)


def _headers(environ: dict) -> tuple[int, dict]:
    return 200, {"headers": _sent_headers(environ)}


def _status(environ: dict, code: str) -> tuple[int, None]:
    if not _CODE.fullmatch(code) or not 200 <= int(code) <= 599:
        raise Refusal(400, f"invalid status code: {code!r} is not a number from 200 to 599")
    return int(code), None


def _delay(environ: dict, seconds: str) -> tuple[int, dict]:
    # float() alone would take "nan", "1_0", " 1" and digits of other scripts too.
    if not _SECONDS.fullmatch(seconds):
        raise Refusal(400, f"invalid delay: {seconds!r} is not a number of seconds")
    if float(seconds) > MAX_DELAY_S:
        raise Refusal(400, f"invalid delay: {seconds} s is longer than {MAX_DELAY_S:g} s")
    gevent.sleep(float(seconds))
    return 200, {**_echo(environ), "data": "", "files": {}, "form": {}, "json": None}


#: By name, and by how many arguments follow it in the path.
_PAGES: dict[tuple[str, int], Callable[..., tuple[int, dict | None]]] = {
    ("get", 0): _get, ("headers", 0): _headers, ("status", 1): _status, ("delay", 1): _delay,
}  # fmt: skip


def _allow(environ: dict, *methods: str) -> None:
    method = environ["REQUEST_METHOD"]
    if method not in methods:
        allowed = ", ".join(methods)
        raise Refusal(405, f"{method} is not for this page, {allowed} is", ("Allow", allowed))


def _echo(environ: dict) -> dict:
    scheme, target = environ["wsgi.url_scheme"], environ["casebook.target"]
    host = environ.get("HTTP_HOST", f"127.0.0.1:{environ['SERVER_PORT']}")
    return {
        "args": parse_qs(environ["QUERY_STRING"], keep_blank_values=True),
        "headers": _sent_headers(environ),
        "method": environ["REQUEST_METHOD"],
        "origin": environ["REMOTE_ADDR"],
        "url": f"{scheme}://{host}{target}",
    }


def _sent_headers(environ: dict) -> dict[str, list[str]]:
    names = {
        key.removeprefix("HTTP_").replace("_", "-").title(): value
        for key, value in environ.items()
        if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }
    return {name: [value] for name, value in sorted(names.items())}


def _phrase(status: int) -> str:
    return http.client.responses.get(status, f"status code {status}")
