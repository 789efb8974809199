"""One SSLContext for each way to trust, shared by all connections of requests.

Stock requests makes a new context for each connection and loads the certificates into it again:
some 20 ms of CPU each. With this file (it needs nothing but requests 2.21 or newer; copy it), a
process loads a bundle once:

    session.mount("https://", SharedContextAdapter())    # one session
    install()                                            # or every session made from now on

The answers stay those of stock requests. Shared is only what is safe to share:

- Contexts are told apart by whether they verify, by the path of the bundle and by the file that is
  there (a replaced one is loaded anew). verify=False and verify=True never meet in one.
- A shared context is sealed: what would change it for all connections is refused.
- A connection with a client certificate, a directory of certificates (OpenSSL reads only the one
  that it needs from there), or a context or a check of its own is left alone. So is one whose
  bundle cannot be loaded: stock requests meets the same trouble, and raises its own error.

Under gevent, import this after the monkey patches, as anything that imports requests.
"""

from __future__ import annotations

import os
import ssl
import threading
from functools import lru_cache
from typing import Any

import requests

if tuple(int(part) for part in requests.__version__.split(".")[:2]) < (2, 21):
    raise ImportError(
        "shared_context needs requests 2.21 or newer, and this is "
        f"{requests.__version__}: pip install --upgrade requests"
    )

import urllib3.connection
from requests import adapters, sessions, utils
from urllib3.util import ssl_

#: So many contexts are kept at most; each holds about a megabyte of certificates.
KEPT = 32

_contexts: dict[tuple, tuple] = {}  # way to trust -> (state of the bundle's file, sealed context)
_lock = threading.RLock()
_left_by_parent: list = []


def install() -> None:
    """Let sessions made from now on, and so requests.get() and its like, share contexts."""
    sessions.HTTPAdapter = SharedContextAdapter


def uninstall() -> None:
    """Take `install` back, for sessions made from now on."""
    sessions.HTTPAdapter = adapters.HTTPAdapter


def preload(bundle: str = adapters.DEFAULT_CA_BUNDLE_PATH) -> None:
    """Load a bundle (what verify=True trusts) now, and not in the first connection.

    Raises OSError when it cannot be loaded.
    """
    _context(ssl.CERT_REQUIRED, utils.extract_zipped_paths(bundle))


class SharedContextAdapter(adapters.HTTPAdapter):
    """An HTTPAdapter, with the same parameters, whose connections share their SSLContexts.

    What to trust is decided by requests, as ever: `verify`, `Session.verify`, REQUESTS_CA_BUNDLE.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _share(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        return _share(super().proxy_manager_for(*args, **kwargs))


def _share(manager: Any) -> Any:
    """A pool manager (or a proxy's) whose https connections share contexts from now on."""
    pools = manager.pool_classes_by_scheme
    if not issubclass(pools["https"].ConnectionCls, _Sharing):
        sharing = _sharing(pools["https"], pools["https"].ConnectionCls)
        manager.pool_classes_by_scheme = dict(pools, https=sharing)
    return manager


@lru_cache(maxsize=64)
def _sharing(pool: type, connection: type) -> type:
    # Under the same names, which stand in messages.
    sharing = type(connection.__name__, (_Sharing, connection), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": sharing})


class _Sharing:
    """Put before urllib3's HTTPSConnection: connects with a shared context where it may.

    A connection has its own copy of what it was told about trust. That decides, and is put back
    afterwards: the connection may be dropped, and connect again.
    """

    def connect(self) -> None:
        self._told = context, bundle = self.ssl_context, self.ca_certs
        if context is not None and context is getattr(adapters, "_preloaded_ssl_context", None):
            # requests 2.32.0 to 2.32.4 have one context of their own, and load client
            # certificates into it: https://github.com/psf/requests/issues/6726
            if ssl_.resolve_cert_reqs(self.cert_reqs) == ssl.CERT_REQUIRED:
                context = None
                bundle = utils.extract_zipped_paths(adapters.DEFAULT_CA_BUNDLE_PATH)
        shared = _shared(self, bundle) if context is None else None
        if shared is not None:
            self.ssl_context, self.ca_certs = shared, None  # or the bundle would be loaded again
        elif self.cert_file:
            self.ssl_context, self.ca_certs = context, bundle
        try:
            return super().connect()
        finally:
            self.ssl_context, self.ca_certs = self._told

    def _connect_tls_proxy(self, *args: Any) -> Any:
        """The TLS to an https proxy, which comes before the TLS through it."""
        through, config = (self.ssl_context, self.ca_certs), self.proxy_config
        self.ssl_context, self.ca_certs = self._told
        own = (getattr(config, name, None) for name in ("assert_hostname", "assert_fingerprint"))
        # Before version 2, urllib3 compares no host names for a context that it is given here.
        able = hasattr(urllib3.connection, "_ssl_wrap_socket_and_match_hostname")
        if able and self.ssl_context is config.ssl_context is None and not any(own):
            shared = _shared(self, self.ca_certs)
            if shared is not None:
                self.ca_certs, self.proxy_config = None, config._replace(ssl_context=shared)
        try:
            return super()._connect_tls_proxy(*args)
        finally:
            (self.ssl_context, self.ca_certs), self.proxy_config = through, config


#: A connection that was told one of these makes its own context, as in stock requests.
_OWN = (
    "cert_file", "key_file", "key_password", "assert_hostname", "assert_fingerprint",
    "ca_cert_dir", "ca_cert_data", "ssl_version", "ssl_minimum_version", "ssl_maximum_version",
)  # fmt: skip


def _shared(connection: Any, bundle: str | None) -> _Sealed | None:
    """The context that a connection shares with its like; None when it has to make its own."""
    if any(getattr(connection, name, None) is not None for name in _OWN):
        return None
    try:
        cert_reqs = ssl_.resolve_cert_reqs(connection.cert_reqs)
        if not bundle and cert_reqs != ssl.CERT_NONE:
            return None  # the system's certificates
        return _context(cert_reqs, bundle)
    except Exception:  # whatever it was: stock requests meets it too, and raises its own error
        return None


def _context(cert_reqs: int, bundle: str | None) -> _Sealed:
    """The one context for such connections, made now if there is none that fits the file."""
    alpn = tuple(getattr(ssl_, "ALPN_PROTOCOLS", ()))
    # gevent, pyOpenSSL and truststore put a class of their own in SSLContext's place.
    key = (ssl_.SSLContext, alpn, cert_reqs, bundle)
    found = _contexts.get(key)
    if found is None or found[0] != _state(bundle):
        with _lock:
            found, state = _contexts.get(key), _state(bundle)
            if found is None or found[0] != state:
                found = _contexts[key] = state, _Sealed(cert_reqs, bundle, alpn)
                while len(_contexts) > KEPT:
                    del _contexts[next(iter(_contexts))]
    return found[1]


def _state(bundle: str | None) -> tuple | None:
    """What changes when a file is replaced or written to."""
    if not bundle:
        return None
    found = os.stat(bundle)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Sealed:
    """A context to connect with, which nothing can change any more.

    urllib3 sets what it wants on a context before each connection, shared or not. The same value
    again is not set again (OpenSSL would free what another thread is reading), and another value,
    or something to load, is an AttributeError.
    """

    __slots__ = ("_alpn", "_context")

    def __init__(self, cert_reqs: int, bundle: str | None, alpn: tuple) -> None:
        context = ssl_.create_urllib3_context(cert_reqs=cert_reqs)
        if not getattr(ssl_, "HAS_NEVER_CHECK_COMMON_NAME", True):
            context.check_hostname = False  # with an old OpenSSL, urllib3 2 compares names itself
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if bundle:
            context.load_verify_locations(bundle)
        object.__setattr__(self, "_context", context)
        object.__setattr__(self, "_alpn", alpn)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("load_", "set_", "_")):
            raise AttributeError(f"this SSLContext is shared, and so has no {name}")
        return getattr(self._context, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self._context, name) != value:
            raise AttributeError(f"this SSLContext is shared: {name} cannot become {value!r}")

    def set_alpn_protocols(self, protocols: Any) -> None:
        if tuple(protocols) != self._alpn:
            raise AttributeError(f"this SSLContext is shared, and its ALPN is {self._alpn}")


def _forget() -> None:
    """In a forked child: another thread of the parent may have held a lock, ours or OpenSSL's.

    The parent's contexts are kept and not freed, since freeing takes locks too.
    """
    global _contexts, _lock
    _left_by_parent.append(_contexts)
    _contexts, _lock = {}, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
