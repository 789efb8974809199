# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The casebook's authors ("The curious case of slow HTTPS in Python"). The MIT
# License: use, change and pass this file on as you like, with this notice; there is no warranty.
"""One SSLContext for all connections of requests that trust the same.

Stock requests makes a new context for each connection and loads the certificates into it again,
which takes up to 20 ms of CPU. With this file a process loads each bundle once.

    session.mount("https://", SharedContextAdapter())    # one session
    install()                                            # or every session made from now on
    preload()                                            # load now, not in the first connection
    stats()                                              # who shares, who does not, and why

How it works: urllib3 connects, tunnels, loads and checks as ever, by its own code. Only the context
that it sets up for a connection is a `_Loan`, which waits until the handshake and then lends the
context that was set up in exactly the same way before. Whatever a loan does not know makes it an
ordinary context of that connection's own.

- Lent is only what was made of the same settings, the same files as they are now, and the same
  client certificate. The files are looked at when the handshake begins.
- A lent context is sealed: what would change it for all connections raises SharedContextError.
- A connection whose class, functions, context or settings are not urllib3's own stays stock, and
  so does everything with releases of requests and urllib3 that this file was not tried with.

The seal stops mistakes, not code that goes round it on purpose: that can call
`ssl.SSLContext.load_verify_locations(context, ...)`, as it can replace requests itself.

Under gevent, import this after the monkey patches, as anything that imports requests.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import hashlib
import http.client
import logging
import os
import ssl
import stat
import sys
import tempfile
import types
import warnings
from collections import Counter, UserDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import requests
import urllib3
import urllib3.connection
import urllib3.connectionpool
import urllib3.util.ssl_

__version__ = "2.0.0"

#: The most contexts that are kept; each holds about a megabyte of certificates.
KEPT = 32
#: What is in a file that holds a key.
_KEY = b"PRIVATE KEY"
#: How long a connection waits, in seconds, while another one loads the same files.
WAITS_S = 5.0

logger = logging.getLogger(__name__)
_versions: tuple[str, str] = (vars(requests)["__version__"], vars(urllib3)["__version__"])
_HTTPAdapter: Any = requests.adapters.HTTPAdapter
_connection: Any = urllib3.connection
_ssl: Any = urllib3.util.ssl_
_StockConnection: Any = urllib3.connection.HTTPSConnection
_StockPool: Any = urllib3.connectionpool.HTTPSConnectionPool

# ------------------------------------------------------------------------- where it can be used

#: The releases that the tests of this file run with.
REQUESTS = (
    "2.21.0 2.22.0 2.23.0 2.24.0 2.25.0 2.25.1 2.26.0 2.27.0 2.27.1 2.28.0 2.28.1 2.28.2 2.29.0 "
    "2.30.0 2.31.0 2.32.2 2.32.3 2.32.4 2.32.5 2.33.0 2.33.1 2.34.0 2.34.1 2.34.2"
).split()
URLLIB3 = (
    "1.24 1.24.1 1.24.2 1.24.3 "
    "1.25.2 1.25.3 1.25.4 1.25.5 1.25.6 1.25.7 1.25.8 1.25.9 1.25.10 1.25.11 "
    "1.26.0 1.26.1 1.26.2 1.26.3 1.26.4 1.26.5 1.26.6 1.26.7 1.26.8 1.26.9 1.26.10 1.26.11 "
    "1.26.12 1.26.13 1.26.14 1.26.15 1.26.16 1.26.17 1.26.18 1.26.19 1.26.20 "
    "2.0.2 2.0.3 2.0.4 2.0.5 2.0.6 2.0.7 2.1.0 2.2.0 2.2.1 2.2.2 2.2.3 2.3.0 2.4.0 2.5.0 "
    "2.6.0 2.6.1 2.6.2 2.6.3 2.7.0 2.8.0"
).split()


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_tested(of_requests: str, of_urllib3: str) -> bool:
    """Return whether the tests cover these two releases together.

    They cover what requests itself accepts, except urllib3 before 1.26 with a requests that needs a
    newer Python.
    """
    if of_requests not in REQUESTS or of_urllib3 not in URLLIB3:
        return False
    ours, theirs = _release(of_requests), _release(of_urllib3)
    above = {(2, 21): (1, 25), (2, 24): (1, 26), (2, 29): (1, 27)}
    limit = next((release for last, release in above.items() if ours[:2] <= last), (3,))
    return theirs < limit and (theirs >= (1, 26) or ours < (2, 32))


def _reason_not_to_share() -> str:
    """Return why contexts cannot be shared here at all, or ""."""
    if not is_tested(*_versions):
        return "requests {} with urllib3 {} was not tried".format(*_versions)
    if not hasattr(os, "register_at_fork") or not os.path.exists(_FILES):
        return f"this system has no {_FILES}, by which the file is loaded that was looked at"
    return ""


#: Where a thread finds its open files as paths. On Linux threads may have tables of their own, and
#: /dev/fd is that of the first.
_FILES = "/dev/fd" if sys.platform != "linux" else "/proc/thread-self/fd"


#: Why nothing is shared here; empty if contexts are shared.
UNKNOWN = _reason_not_to_share()
if UNKNOWN:
    warnings.warn(
        f"shared_context {__version__} shares nothing, and requests stays as it is: {UNKNOWN}. "
        "Look for a newer shared_context, or do without it.",
        RuntimeWarning,
        stacklevel=2,
    )

# ------------------------------------------------------------------------- what programs call


class SharedContextError(RuntimeError):
    """Something tried to change a shared context. The message says what to do instead."""


class SharedContextAdapter(requests.adapters.HTTPAdapter):
    """An HTTPAdapter, with the same parameters, whose connections share their SSLContexts.

    What to trust is decided by requests, as ever: `verify`, `Session.verify`, REQUESTS_CA_BUNDLE.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools as requests does, and have them share."""
        super().init_poolmanager(*args, **kwargs)
        _share(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        """Make the pools of a proxy as requests does, and have them share."""
        return _share(super().proxy_manager_for(*args, **kwargs))


def install() -> None:
    """Let every HTTPAdapter that is made from now on share its contexts.

    Those of new sessions, of requests.get() and its like, and mounted ones, such as
    HTTPAdapter(max_retries=3).
    """
    global _installed
    _installed = True
    for name in ("__init__", "__setstate__", "proxy_manager_for"):
        # Around what is there now: others may have wrapped it since this file was imported.
        # Not init_poolmanager: subclasses override it, often without asking the stock one.
        method = vars(_HTTPAdapter)[name]
        if not any(layer in _ours for layer in _layers(method)):
            setattr(_HTTPAdapter, name, _and_share(method))


def uninstall() -> None:
    """Take `install` back, for adapters that are made from now on."""
    global _installed
    _installed = False


def preload(bundle: str | None = None) -> None:
    """Load a bundle (None: what verify=True trusts) now, and not in the first connection.

    Raises OSError when it cannot be loaded, RuntimeError when contexts cannot be shared here.
    """
    settings: list[tuple[str, Any]] = [("verify_mode", ssl.CERT_REQUIRED)]
    if not getattr(_ssl, "HAS_NEVER_CHECK_COMMON_NAME", True):
        settings.append(("check_hostname", False))  # as urllib3 2 sets it with an old OpenSSL
    chosen = vars(requests.adapters)["DEFAULT_CA_BUNDLE_PATH"] if bundle is None else bundle
    path = str(requests.utils.extract_zipped_paths(chosen))
    try:
        if _unusual():
            raise _OwnContext(_unusual())
        makers = _makers()
        _lend(
            _Recipe(tuple(settings), path, (), _alpn(), _ciphers(), tuple(map(id, makers))), makers
        )
    except _OwnContext as error:
        raise RuntimeError(f"no SSLContext is shared here: {error}") from None


def stats() -> dict[str, Any]:
    """Return what this process did so far. After a fork, the child counts anew.

    contexts: how many are kept; loads: of bundles; shared: connections with a shared context;
    own: connections that made their own, by the reason why; unknown: as UNKNOWN.
    """
    with _guard:
        reasons = {key[4:]: n for key, n in _counts.items() if key.startswith("own:")}
        contexts = sum(slot.lent is not None for slot in _slots.values())
        counts = {"loads": _counts["loads"], "shared": _counts["shared"], "own": reasons}
    return {"contexts": contexts, **counts, "unknown": UNKNOWN}


# ---------------------------------------------------------- adapters, pools and connections


_installed = False
_ours: list[Any] = []  # the methods that `install` has put round others


def _layers(method: Any) -> Iterator[Any]:
    """Yield a method, and what it says that it wraps."""
    while method is not None:
        yield method
        method = getattr(method, "__wrapped__", None)


def _and_share(method: Any) -> Callable[..., Any]:
    @wraps(method)
    def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Bound as Python would do it: the method may be no function.
        manager = method.__get__(self, type(self))(*args, **kwargs)
        pool_manager = getattr(self, "poolmanager", None)
        if manager is None:
            if _installed:
                _share(pool_manager)
        # An adapter that was made before keeps its stock ways, also through proxies.
        elif isinstance(getattr(pool_manager, "pool_classes_by_scheme", None), _PoolClasses):
            _share(manager)
        return manager

    _ours.append(patched)
    return patched


def _share(manager: Any) -> Any:
    """Have the https connections of a pool manager borrow from now on; return the manager.

    A proxy's manager, too. Nothing is done unless its pools are urllib3's own.
    """
    pools = getattr(manager, "pool_classes_by_scheme", None)
    if pools is None or UNKNOWN or isinstance(pools, _PoolClasses):
        return manager
    manager.pool_classes_by_scheme = _PoolClasses(pools)
    pool_class = pools.get("https")
    if pool_class is not _StockPool:
        name = getattr(pool_class, "__name__", None)
        _count(f"own:its pool is {name}, not urllib3's (counted once for each pool manager)")
    return manager


class _PoolClasses(UserDict):  # type: ignore[type-arg]
    """A manager's classes of pools, as they are at each moment: it may share them with others."""

    def __init__(self, stock: Any) -> None:
        self.data = stock

    def __getitem__(self, scheme: Any) -> Any:
        pool_class = self.data[scheme]
        return _Pool if pool_class is _StockPool else pool_class


class _Chosen:
    """The class of a pool's connections.

    It is looked up each time, since tools that record and replay exchange that of urllib3's
    pools, for a while or for good; theirs stay as they are.
    """

    def __get__(self, pool: Any, kind: type) -> Any:
        connection_class = super(_Pool, pool or kind).ConnectionCls  # type: ignore[misc]
        return _Connection if connection_class is _StockConnection else connection_class


class _Pool(_StockPool):  # type: ignore[misc]
    ConnectionCls = _Chosen()

    def _new_conn(self) -> Any:
        connection = super()._new_conn()
        if not isinstance(connection, _Connection):
            _count(f"own:{_NOT_URLLIB3S}")
        return connection


class _Connection(_StockConnection):  # type: ignore[misc]
    """urllib3's own connection. Where it would make a context, it is given a loan."""

    def connect(self) -> None:
        reason = _stays_stock(self)
        if reason:
            _count(f"own:{reason}")
            super().connect()
            return
        loan = _Loan(self)
        self.ssl_context: Any = loan
        try:
            super().connect()
        finally:
            if self.ssl_context is loan:
                self.ssl_context = None
        _warn_of_old_tls(self)


def _warn_of_old_tls(connection: Any) -> None:
    """Warn as urllib3 1.26 does of connections that were given no context, in its own words."""
    version = getattr(connection.sock, "version", str)()
    if (1, 26) <= _release(_versions[1]) < (2,) and version in ("TLSv1", "TLSv1.1"):
        message = (
            "Negotiating TLSv1/TLSv1.1 by default is deprecated and will be disabled in urllib3 "
            f"v2.0.0. Connecting to '{connection.host}' with '{version}' can be enabled by "
            "explicitly opting-in with 'ssl_version'"
        )
        warnings.warn(message, DeprecationWarning, stacklevel=3)


for _subclass, _stock in ((_Pool, _StockPool), (_Connection, _StockConnection)):
    # Under the names of urllib3's, since messages show them.
    _subclass.__name__, _subclass.__qualname__ = _stock.__name__, _stock.__qualname__
    _subclass.__module__ = _stock.__module__

_NOT_URLLIB3S = "its class is not urllib3's"
#: A connection that was told one of these makes its own context, as in stock requests.
_SETTINGS = (
    "ca_cert_dir", "ca_cert_data", "key_password", "assert_hostname", "assert_fingerprint",
    "ssl_version", "ssl_minimum_version", "ssl_maximum_version",
)  # fmt: skip
#: What a connection runs until it is connected: (where it is, names, whose code that has to be).
_CODE: list[tuple[Any, str, list[dict[str, Any]]]] = [
    (owner, name, [vars(home) for home in homes])
    for owner, names, homes in (
        (_StockConnection, "connect _new_conn _prepare_conn _connect_tls_proxy", [_connection]),
        (_StockConnection, "_tunnel set_tunnel", [_connection, http.client]),
        (_connection, "_ssl_wrap_socket_and_match_hostname", [_connection]),
        (_connection, "create_urllib3_context ssl_wrap_socket", [_ssl]),
        (_connection, "resolve_cert_reqs resolve_ssl_version", [_ssl]),
        (_ssl, "create_urllib3_context ssl_wrap_socket _ssl_wrap_socket_impl", [_ssl]),
    )
    for name in names.split()
]
_MAKES = (_connection, "create_urllib3_context")
#: What others add while a program runs, and what does not change what a context is.
_NO_MATTER = ("__dict__", "__weakref__", "__warningregistry__")


def _makers() -> list[Any]:
    """Return all that makes a fresh context, as it is now.

    That is urllib3's functions and variables, and the classes of contexts. Code that replaces
    one of them gets other contexts.
    """
    makers = [getattr(owner, name, None) for owner, name, _ in _CODE]
    for owner in (_ssl, *_ssl.SSLContext.__mro__[:-1]):
        members = list(vars(owner).items())  # at once: other threads may add to them
        makers += [member for name, member in members if name not in _NO_MATTER]
    return [*makers, *(maker.__code__ for maker in makers if type(maker) is types.FunctionType)]


def _stays_stock(connection: Any, loan: _Loan | None = None) -> str:
    """Return why a connection makes its own context in urllib3's own way, or ""."""
    if type(connection) is not _Connection:
        return _NOT_URLLIB3S
    for _, name, _ in _CODE:
        if name in vars(connection):
            return f"its {name} was replaced"
    if connection.ssl_context is not loan:
        return "it was given ssl_context"
    for name in _SETTINGS:
        if getattr(connection, name, None) is not None:
            return f"it was given {name}"
    if getattr(connection, "proxy_is_forwarding", False):
        return "its proxy forwards, and does not tunnel"
    if _ssl.resolve_cert_reqs(connection.cert_reqs) != ssl.CERT_NONE and not connection.ca_certs:
        return "it trusts the system's certificates"
    return _unusual()


def _unusual() -> str:
    """Return why no context is made in the way that this file knows, or ""."""
    if UNKNOWN:
        return UNKNOWN
    if os.environ.get("SSLKEYLOGFILE"):
        return "SSLKEYLOGFILE is set"
    if getattr(_ssl, "IS_PYOPENSSL", False):
        return "pyOpenSSL was injected into urllib3"
    if not isinstance(_ssl.SSLContext, type):
        return f"{_ssl.__name__}.SSLContext was replaced"
    for owner, name, homes in _CODE:
        function = getattr(owner, name, None)  # not each release has each of them
        # A wrapper may show the attributes of what it wraps, and is no function.
        code = function.__globals__ if type(function) is types.FunctionType else None
        if function is not None and code is not homes[0] and code is not homes[-1]:
            return f"{owner.__name__}.{name} was replaced"
    return ""


# ----------------------------------------------------------------------------------- the loan


class _Recipe(NamedTuple):
    """The recipe of a context. Contexts of one recipe, and of the same files, are alike."""

    #: What urllib3 sets on each context, in its order.
    settings: tuple[tuple[str, Any], ...]
    bundle: str | None
    #: The paths of the client certificate and its key (or None).
    client: tuple[str | None, ...]
    alpn: tuple[str, ...]
    #: The ciphers that old releases set from a variable.
    ciphers: str | None
    #: The ids of _makers(), which the slot of this recipe keeps alive.
    made_by: tuple[int, ...]

    @property
    def steps(self) -> list[tuple[Any, ...]]:
        """Return what urllib3 does to a fresh context, to make it one of this recipe."""
        steps: list[tuple[Any, ...]] = [("__setattr__", *setting) for setting in self.settings]
        steps += [("load_verify_locations", self.bundle, None, None)] if self.bundle else []
        steps += [("load_cert_chain", *self.client)] if self.client else []
        return steps + ([("set_alpn_protocols", list(self.alpn))] if self.alpn else [])

    @property
    def paths(self) -> list[str]:
        """Return the files, the client's key last: it may be in the file of the certificate."""
        cert, key = self.client or (None, None)
        return [path for path in (self.bundle, cert, key or cert) if path]


def _alpn() -> tuple[str, ...]:
    return tuple(getattr(_ssl, "ALPN_PROTOCOLS", ()))


def _ciphers() -> str | None:
    return getattr(_ssl, "DEFAULT_CIPHERS", None) if _release(_versions[1]) < (2,) else None


class _OwnContext(Exception):  # noqa: N818, RUF100  # a reason, no error
    """Why a connection makes its own context; few different ones, since they are counted."""


class _Loan:
    """Stands in for the SSLContext of one connection while that connects.

    urllib3 sets it up step by step. When it loads the first file, the context of that recipe is
    looked up, or made. If all further steps are those of that context too, it is lent for the
    handshake. Otherwise, and at anything that is not known here, the connection gets a context of
    its own, to which all steps are done in their order: what it has in stock urllib3.
    """

    _connection: Any
    _steps: list[tuple[Any, ...]]
    _context: Any  # in the end: a lent one, whose recipe is _recipe, or the connection's own
    _recipe: _Recipe | None
    _doubt: OSError | None  # what ended a load and is no fault of its files, since these loaded now

    def __init__(self, connection: Any) -> None:
        # Past __setattr__, since that is one of urllib3's steps.
        vars(self).update(
            _connection=connection, _steps=[], _context=None, _recipe=None, _doubt=None
        )

    def __setattr__(self, name: str, value: Any) -> None:
        self._step("__setattr__", name, value)

    def load_verify_locations(
        self, cafile: Any = None, capath: Any = None, cadata: Any = None
    ) -> None:
        self._step("load_verify_locations", cafile, capath, cadata)

    def load_cert_chain(self, *args: Any) -> None:
        self._step("load_cert_chain", *args)

    def set_alpn_protocols(self, protocols: Any) -> None:
        self._step("set_alpn_protocols", protocols)

    def wrap_socket(self, *args: Any, **kwargs: Any) -> Any:
        return self._decided().wrap_socket(*args, **kwargs)

    def wrap_bio(self, *args: Any, **kwargs: Any) -> Any:
        return self._decided().wrap_bio(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Ask the context for everything else. A lent one refuses to be changed."""
        if self._context is None:
            self._make_own(f"urllib3 asked for its {name}")
        return getattr(self._context, name)

    def _step(self, *step: Any) -> None:
        self._steps.append(step)
        if self._context is None:
            if step[0].startswith("load_"):
                self._borrow()
        elif self._recipe is None:
            _do(self._context, step)
        elif step not in self._recipe.steps:
            self._make_own("its context was set up in another way")

    def _decided(self) -> Any:
        """Return the context for the handshake, which begins now."""
        if self._doubt:
            raise self._doubt
        if self._context is None:
            self._borrow()
        if self._recipe and self._steps != self._recipe.steps:
            self._make_own("its context was set up in another way")
        if self._recipe:
            _count("shared")
        return self._context

    def _borrow(self) -> None:
        """Take the context of the recipe that the steps so far begin, or one of its own."""
        try:
            reason = _stays_stock(self._connection, self)
            if reason:
                raise _OwnContext(reason)
            cert, makers = self._connection.cert_file, _makers()
            recipe = _Recipe(
                tuple(step[1:] for step in self._steps if step[0] == "__setattr__"),
                next((step[1] for step in self._steps if step[0] == "load_verify_locations"), None),
                (cert, self._connection.key_file) if cert else (),
                _alpn(),
                _ciphers(),
                tuple(map(id, makers)),
            )
            if self._steps != recipe.steps[: len(self._steps)]:
                raise _OwnContext("its context was set up in another way")
            vars(self).update(_context=_lend(recipe, makers), _recipe=recipe)
        except _OwnContext as refusal:
            self._make_own(str(refusal))
        except OSError as error:
            if error.errno is None:
                raise  # it is of no file: the connection ends
            logger.info("a connection does not share, its files cannot be loaded: %s", error)
            self._make_own("its files cannot be loaded")  # urllib3 meets it too, and raises its own
            if not _is_raised_here(error):
                vars(self)["_doubt"] = error

    def _make_own(self, reason: str) -> None:
        """Make a context of the connection's own, by all steps so far."""
        _count(f"own:{reason}")
        vars(self).update(_context=_fresh(self._steps, self._connection), _recipe=None)
        for step in self._steps:
            _do(self._context, step)


def _is_raised_here(error: OSError) -> bool:
    """Return whether the system or OpenSSL raised this error in this file.

    If it was raised in somebody else's function, it may be a time limit, called by a signal in
    the middle of a load.
    """
    trace: Any = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    its_code = trace.tb_frame.f_globals
    return its_code is globals() or its_code is vars(tempfile)


def _fresh(
    steps: Sequence[tuple[Any, ...]],
    connection: Any = None,
    factory: Any = None,
    ciphers: Any = None,
) -> Any:
    """Return a new context, as urllib3 makes one before it sets it up by steps."""
    modes = [step[2] for step in steps if step[:2] == ("__setattr__", "verify_mode")]
    limits = {
        name: getattr(connection, name)
        for name in ("ssl_minimum_version", "ssl_maximum_version")
        if getattr(connection, name, None) is not None
    }
    factory = factory or _connection.create_urllib3_context
    return factory(
        ssl_version=_connection.resolve_ssl_version(getattr(connection, "ssl_version", None)),
        cert_reqs=modes[0] if modes else ssl.CERT_REQUIRED,
        ciphers=ciphers,
        **limits,
    )


def _do(context: Any, step: tuple[Any, ...]) -> None:
    getattr(context, step[0])(*step[1:])


# ------------------------------------------------------------------------ the shared contexts


#: Of threads: that of `threading` is made of locks of greenlets under gevent, which threads that
#: have no loop cannot share. Nothing gives way to another greenlet while one is held.
_RLock: Any = _thread.RLock


class _Slot:
    """The place of the contexts of one recipe.

    Its lock is held while its files are loaded, and no other is.
    """

    def __init__(self, makers: list[Any], lent: tuple[Any, ...] | None = None) -> None:
        self.makers = makers
        self.lock = _RLock()
        self.lent = lent  # the fingerprints of its files, the context, and its settings


_slots: dict[_Recipe, _Slot] = {}  # the least recently used first
_guard = _RLock()  # of _slots and _counts; nothing is waited for while it is held
_counts: Counter[str] = Counter()


def _count(name: str) -> None:
    with _guard:
        _counts[name] += 1


def _lend(recipe: _Recipe, makers: list[Any]) -> Any:
    """Return the context of a recipe for the files that are there now, made if there is none.

    Raises _OwnContext, or OSError when a file cannot be loaded.
    """
    if os.getpid() != _process:  # a fork of which Python was not told
        _in_child()
    with _guard:
        slot = _slots.pop(recipe) if recipe in _slots else _Slot(makers)
        _slots[recipe] = slot  # the last is the one used last
        while len(_slots) > KEPT:
            del _slots[next(iter(_slots))]
    context = _fitting(slot, _fingerprints(recipe, _read(recipe)))
    if context:
        return context
    if slot.lock._is_owned():
        raise _OwnContext("its thread was interrupted while it loads the same files")
    try:
        if not slot.lock.acquire(timeout=WAITS_S):
            with _guard:  # the next need not wait: it may be held by a thread that was ended
                if _slots.get(recipe) is slot:
                    del _slots[recipe]
            raise _OwnContext("another connection takes long to load its files")
        texts = _read(recipe)  # as they are after the wait
        fingerprints = _fingerprints(recipe, texts)
        context = _fitting(slot, fingerprints)
        if not context:
            context = _make_sealed_context(recipe, texts, slot.makers)
            reason = _unusual()  # since the connection was looked at
            if reason or recipe.made_by != tuple(map(id, _makers())):
                raise _OwnContext(reason or "what makes contexts changes meanwhile")
            slot.lent = (fingerprints, context, _settings_of(context))
        return context
    finally:
        if slot.lock._is_owned():  # a thread may be ended in the instant in which it gets a lock
            slot.lock.release()


def _fitting(slot: _Slot, fingerprints: list[bytes]) -> Any:
    """Return the slot's context, if its files and its settings are as they were when it was made.

    Code that went round its seal may keep it.
    """
    lent = slot.lent
    if lent and lent[0] == fingerprints and lent[2] == _settings_of(lent[1]):
        return lent[1]
    return None


def _fingerprints(recipe: _Recipe, texts: Sequence[bytes]) -> list[bytes]:
    """Return what is kept of files to compare with later: of a client's, the digest alone."""
    bundles = 1 if recipe.bundle else 0
    digests = [hashlib.sha256(text).digest() for text in texts[bundles:]]
    return [*texts[:bundles], *digests]


def _settings_of(context: Any) -> tuple[Any, ...]:
    """Return those settings of a context that can be read and cost little to read."""
    names = (
        "verify_mode", "check_hostname", "verify_flags", "options", "minimum_version",
        "maximum_version", "keylog_filename",
    )  # fmt: skip
    return (*(getattr(context, name, None) for name in names), context.cert_store_stats())


def _read(recipe: _Recipe) -> list[bytes]:
    """Return what the files of a recipe hold.

    They are read each time: a process that may no longer read one must not use what was read
    then, and a file may change without its times.
    """
    texts = []
    for path in recipe.paths:
        # Before it is opened: to open a pipe wakes its writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _OwnContext("it trusts what is no regular file")
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise _OwnContext("it trusts what is no regular file")
            with open(file, "rb", buffering=0, closefd=False) as opened:
                texts.append(opened.read())
        finally:
            os.close(file)
    return texts


@contextlib.contextmanager
def _copies(texts: Sequence[bytes]) -> Iterator[Iterator[str]]:
    """Yield the paths of files that hold exactly this, for OpenSSL to load.

    A file, and where its path leads, may change meanwhile.
    """
    with contextlib.ExitStack() as opened:
        names = []
        for text in texts:
            if _in_memory:
                file = opened.enter_context(open(_in_memory(), "wb", buffering=0))
            elif _KEY in text:
                raise _OwnContext("its key would have to be copied to a disk")
            else:
                file = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            if file.write(text) != len(text):
                raise OSError(errno.ENOSPC, "there is no room for a copy")
            names.append(f"{_FILES}/{file.fileno()}")
        yield iter(names)


def _memory() -> Callable[[], int] | None:
    """Return what makes a file in memory; None if there are none."""
    if sys.platform != "linux":
        return None
    memfd_create: Any = getattr(os, "memfd_create", None)
    if memfd_create is None:  # before Python 3.8
        import ctypes

        memfd_create = getattr(ctypes.CDLL(None, use_errno=True), "memfd_create", None)

        def new_file() -> int:
            number = int(memfd_create(b"", 1))  # 1: not for programs that are started
            if number < 0:
                raise OSError(ctypes.get_errno(), "no file in memory can be made")
            return number

        return memfd_create and new_file
    return lambda: int(memfd_create(""))


_in_memory = _memory()


def _make_sealed_context(recipe: _Recipe, texts: Sequence[bytes], makers: Sequence[Any]) -> Any:
    """Return a new context, loaded and sealed."""
    # By the function that was checked, whatever is in its place for a moment.
    factory = makers[[(owner, name) for owner, name, _ in _CODE].index(_MAKES)]
    context = _fresh(recipe.steps, factory=factory, ciphers=recipe.ciphers)
    if getattr(context, "keylog_filename", None):
        raise _OwnContext("SSLKEYLOGFILE is set")
    if type(context).__module__ not in _SEALABLE:
        name = f"{type(context).__module__}.{type(context).__name__}"
        raise _OwnContext(f"{name} is not known to be safe to share")
    for setting in recipe.settings:
        setattr(context, *setting)
    if recipe.client and b"ENCRYPTED" in texts[-1]:
        raise _OwnContext("its key is encrypted")
    with _copies(texts) as names:
        if recipe.bundle:
            context.load_verify_locations(next(names))
            _count("loads")
        if recipe.client:
            context.load_cert_chain(next(names), next(names), _refuse_password)
    if recipe.alpn:
        context.set_alpn_protocols(list(recipe.alpn))
    kind: Any = type(context)
    context.__class__ = _sealed(kind)
    return context


def _refuse_password() -> str:
    raise _OwnContext("its key is encrypted")  # else OpenSSL would ask on the terminal


# ----------------------------------------------------------------------------------- the seal

#: Where classes of contexts come from that do nothing but hold what they are told. truststore's
#: is not among them: it changes itself during each handshake.
_SEALABLE = ("ssl", "gevent.ssl", "gevent._ssl3")
_CHANGES = ("load_", "set_", "_load_", "_set_")
_ADVICE = (
    "is refused, since this SSLContext is shared with other connections. Tell requests what to "
    "trust (verify=, cert=), or mount an HTTPAdapter with an ssl_context of its own."
)


@lru_cache(maxsize=8)
def _sealed(kind: type) -> type:
    """Return a subclass for sealed contexts of that kind, which can do everything but change."""

    def refusing(operation: str) -> Callable[..., None]:
        def refuse(*_: Any, **__: Any) -> None:
            raise SharedContextError(f"{operation} {_ADVICE}")

        return refuse

    def without_session(name: str, place: int) -> Callable[..., Any]:
        """Refuse a session of TLS: it belongs to the connection that it comes from."""

        def wrap(context: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("session") or args[place:]:
                refusing(f"{name}(session=)")()
            return getattr(super(sealed, context), name)(*args, **kwargs)

        return wrap

    changes = [name for name in dir(kind) if name.startswith(_CHANGES)]
    members: dict[str, Any] = {name: refusing(name) for name in changes}
    members.update(
        __slots__=(),
        __setattr__=lambda _, name, value: refusing(f"{name} = {value!r}")(),
        __delattr__=lambda _, name: refusing(f"del {name}")(),
        wrap_socket=without_session("wrap_socket", 5),
        wrap_bio=without_session("wrap_bio", 4),
    )
    sealed = type(f"Shared{kind.__name__}", (kind,), members)
    return sealed


# --------------------------------------------------------------------------------------- forks

_single_threaded = False  # whether a fork under way is of a process with a single thread
_process = os.getpid()
_left_by_parent: list[Any] = []


def _before_fork() -> None:
    global _single_threaded
    _single_threaded = len(sys._current_frames()) == 1  # threads of the system; greenlets are none


def _in_parent() -> None:
    global _single_threaded
    _single_threaded = False


def _in_child() -> None:
    """Keep in a forked child what was loaded, or leave it.

    It is kept if no other thread of the parent could hold a lock of OpenSSL's at the moment of
    the fork. Else it is left and not freed, since freeing takes locks too. A client certificate
    is never kept: the child may have been forked to have fewer rights.
    """
    global _slots, _guard, _single_threaded, _process
    slots = {
        recipe: (slot.makers, slot.lent)
        for recipe, slot in _slots.items()
        if _single_threaded and not recipe.client
    }
    if not _single_threaded:
        _left_by_parent.append(_slots)
    _slots, _guard = {recipe: _Slot(*fields) for recipe, fields in slots.items()}, _RLock()
    _counts.clear()
    _single_threaded, _process = False, os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
