"""One SSLContext for each way to trust, shared by all connections of requests.

Stock requests makes a new context for each connection and loads the certificates into it again,
which takes up to 20 ms of CPU. With this file a process loads a bundle once. It needs nothing but
requests 2.21 or newer; copy it, or install requests-shared-context.

    install()                                            # every session made from now on
    session.mount("https://", SharedContextAdapter())    # or one session
    context()                                            # or a context for httpx or urllib3
    stats()                                              # who shares, who does not, and why

The answers stay those of stock requests. Shared is only what is safe to share:

- Contexts are told apart by whether they verify, by the bundle and by the client certificate:
  their paths, and the files that are there now. A replaced file is loaded anew.
- A shared context is sealed: what would change it for all connections is a SharedContextError.
- A connection that trusts a directory of certificates (OpenSSL reads only the one that it needs
  from there) or the system's, or has a context or a check of its own, makes its own context. So
  does one whose files cannot be loaded: stock requests meets the same trouble, and says so.
- Where requests or urllib3 are not as this file knows them, they stay stock, with a warning.

The seal stops mistakes, not code that goes round it on purpose. Whatever runs in this process can
call `ssl.SSLContext.load_verify_locations(context, ...)`, use object.__setattr__ or native code,
as it can exchange requests itself.

Under gevent, import this after the monkey patches, as anything that imports requests.
"""

from __future__ import annotations

import itertools
import logging
import os
import ssl
import sys
import threading
import warnings
from collections import Counter
from functools import lru_cache, partial, wraps
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import requests
import urllib3

__version__ = "1.0.0"

if tuple(int(part) for part in requests.__version__.split(".")[:2]) < (2, 21):
    raise ImportError(
        "shared_context needs requests 2.21 or newer, and this is "
        f"{requests.__version__}: pip install --upgrade requests"
    )

#: So many contexts are kept at most; each holds about a megabyte of certificates.
KEPT = 32

logger = logging.getLogger(__name__)


def _missing() -> list[str]:
    """What this file builds on and does not find."""
    needed = {
        lambda: requests: "adapters.DEFAULT_CA_BUNDLE_PATH utils.extract_zipped_paths "
        "adapters.HTTPAdapter.__setstate__ adapters.HTTPAdapter.init_poolmanager "
        "adapters.HTTPAdapter.proxy_manager_for",
        lambda: urllib3: "connectionpool.HTTPSConnectionPool.ConnectionCls util.ssl_.SSLContext "
        "util.ssl_.resolve_cert_reqs util.ssl_.create_urllib3_context util.ssl_.ssl_wrap_socket "
        "connection.create_urllib3_context connection.ssl_wrap_socket",
        lambda: urllib3.PoolManager(): "pool_classes_by_scheme",
        lambda: urllib3.connection.HTTPSConnection("localhost"): "connect ssl_context cert_reqs "
        "ca_certs ca_cert_dir cert_file key_file ssl_version assert_fingerprint",
    }
    missing = []
    for place, names in needed.items():
        for name in names.split():
            try:
                attrgetter(name)(place())
            except AttributeError:
                missing.append(name)
    return missing


#: What this file builds on and did not find. If there is anything, nothing is shared.
MISSING = _missing()
if MISSING:
    warnings.warn(
        f"requests {requests.__version__} with urllib3 {urllib3.__version__} has no "
        f"{', '.join(MISSING)}: no SSLContext is shared, every connection loads its own. Look for "
        f"a newer shared_context than {__version__}, or do without it.",
        RuntimeWarning,
        stacklevel=2,
    )

# ----------------------------------------------------------------------------- to be used


class SharedContextAdapter(requests.adapters.HTTPAdapter):
    """An HTTPAdapter, with the same parameters, whose connections share their SSLContexts.

    What to trust is decided by requests, as ever: `verify`, `Session.verify`, REQUESTS_CA_BUNDLE.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _share(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        return _share(super().proxy_manager_for(*args, **kwargs))


def install() -> None:
    """Let every HTTPAdapter that is made from now on share: those of new sessions, of
    requests.get() and its like, and mounted ones, such as HTTPAdapter(max_retries=3)."""
    for name, method in _PATCHED.items():
        setattr(requests.adapters.HTTPAdapter, name, method)


def uninstall() -> None:
    """Take `install` back, for adapters that are made from now on."""
    for name, method in _STOCK.items():
        if vars(requests.adapters.HTTPAdapter)[name] is _PATCHED[name]:
            setattr(requests.adapters.HTTPAdapter, name, method)


def context(bundle: str | None = None, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
    """The shared context that trusts a bundle (None: what verify=True trusts), to hand to others:
    httpx.Client(verify=context()), urllib3.PoolManager(ssl_context=context()).

    alpn: the protocols to offer, ("http/1.1", "h2") for httpx with HTTP/2; else what urllib3
    offers. A replaced bundle is seen when you ask again. It compares host names, which urllib3
    before 2 does itself for its own connections (and can ask no IP address with such a context).
    Raises OSError when a bundle cannot be loaded, RuntimeError when contexts cannot be shared here.
    """
    return _ready(bundle, alpn, for_others=True)


def preload(bundle: str | None = None) -> None:
    """Load a bundle (None: what verify=True trusts) now, and not in the first connection.

    Raises what `context` raises.
    """
    _ready(bundle)


def stats() -> dict[str, Any]:
    """What this process did so far. After a fork, the child counts anew.

    contexts: how many are kept; loads: of bundles; shared: connections with a shared context;
    own: connections that made their own, by the reason why; missing: as MISSING.
    """
    with _counting:
        own = {why[4:]: n for why, n in _counts.items() if why.startswith("own:")}
        counted = {"loads": _counts["loads"], "shared": _counts["shared"], "own": own}
    return {"contexts": len(_contexts), **counted, "missing": list(MISSING)}


class SharedContextError(AttributeError):
    """Something tried to change a shared context. The message says what to do instead."""


# --------------------------------------------------------------- adapters, pools, connections


def _and_share(method: Any) -> Any:
    @wraps(method)
    def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        manager = method(self, *args, **kwargs)
        _share(getattr(self, "poolmanager", None) if manager is None else manager)
        return manager

    return patched


# Not init_poolmanager: subclasses override it, often without asking the stock one.
_STOCK = {
    name: vars(requests.adapters.HTTPAdapter)[name]
    for name in ("__init__", "__setstate__", "proxy_manager_for")
    if not MISSING
}
_PATCHED = {name: _and_share(method) for name, method in _STOCK.items()}


def _share(manager: Any) -> Any:
    """A pool manager (or a proxy's) whose https connections share contexts from now on."""
    pools = getattr(manager, "pool_classes_by_scheme", {})
    if "https" not in pools:
        logger.warning("%r has no pools of https connections, and stays as it is", manager)
    elif not (MISSING or issubclass(pools["https"], _SharingPool)):
        manager.pool_classes_by_scheme = dict(pools, https=_before(pools["https"], _SharingPool))
    return manager


@lru_cache(maxsize=64)
def _before(kind: type, first: type) -> type:
    """A subclass of both, under the name of `kind`, which stands in messages."""
    return type(kind.__name__, (first, kind), {"__module__": kind.__module__})


class _ConnectionCls:
    """The class of a pool's connections, with _Sharing before it. Looked up each time, since other
    tools exchange that of urllib3's pools, for a while or for good."""

    def __get__(self, pool: Any, kind: type) -> type:
        found = super(_SharingPool, kind if pool is None else pool).ConnectionCls
        if isinstance(found, type) and issubclass(found, urllib3.connection.HTTPSConnection):
            return _before(found, _Sharing)
        return found


class _SharingPool:
    """Put before urllib3's HTTPSConnectionPool."""

    ConnectionCls = _ConnectionCls()


class _Sharing:
    """Put before urllib3's HTTPSConnection: connects with a shared context where it may.

    A connection has its own copy of what it was told about trust. That decides, and is put back
    afterwards: the connection may be dropped, and connect again.
    """

    _changes_contexts = False

    def connect(self) -> None:
        self._shares = False
        instead = _instead(self)
        self._told = {name: getattr(self, name) for name in instead}
        vars(self).update(instead)
        try:
            came = super().connect()
            if self._shares and _own_wish(self):
                raise SharedContextError(f"{_own_wish(self)}, set in connect(), {_ADVICE}")
            return came
        except SharedContextError as error:
            if not self._shares:
                raise
            # A urllib3 that is not known here, or a class before its own: give it its own context.
            type(self)._changes_contexts = True
            logger.warning("%s make their own contexts now: %s", type(self), error)
        finally:
            vars(self).update(self._told)
        self.close()
        return self.connect()

    def _connect_tls_proxy(self, *args: Any) -> Any:
        """The TLS to an https proxy, which comes before the TLS through it."""
        config, meanwhile = self.proxy_config, {name: getattr(self, name) for name in self._told}
        vars(self).update(self._told)
        names = "ssl_context", "assert_hostname", "assert_fingerprint"
        own = [self.ssl_context, *(getattr(config, name, None) for name in names)]
        # Before version 2, urllib3 compares no host names for a context that it is given here.
        able = hasattr(urllib3.connection, "_ssl_wrap_socket_and_match_hostname")
        if able and all(each is None for each in own):
            shared = _shared(self, self.ca_certs)
            if shared is not None:
                self.proxy_config = config._replace(ssl_context=shared)
        try:
            return super()._connect_tls_proxy(*args)
        finally:
            vars(self).update(meanwhile, proxy_config=config)


# ------------------------------------------------------------------ which context for which


def _ready(
    bundle: str | None, alpn: tuple[str, ...] = (), for_others: bool = False
) -> ssl.SSLContext:
    try:
        _check_stock()
        path = requests.utils.extract_zipped_paths(
            requests.adapters.DEFAULT_CA_BUNDLE_PATH if bundle is None else bundle
        )
        names = for_others and not _bare(ssl.CERT_REQUIRED).check_hostname
        return _context(ssl.CERT_REQUIRED, path, alpn=alpn, names=names)
    except _MakesItsOwn as why:
        raise RuntimeError(f"no SSLContext is shared here: {why}") from None


def _instead(connection: Any) -> dict[str, Any]:
    """What a connection is to believe while it connects, instead of what it was told."""
    told, bundle = connection.ssl_context, connection.ca_certs
    if told is not None and told is getattr(requests.adapters, "_preloaded_ssl_context", None):
        # requests 2.32.0 to 2.32.4 have one context of their own, and load client certificates
        # into it: https://github.com/psf/requests/issues/6726
        if urllib3.util.ssl_.resolve_cert_reqs(connection.cert_reqs) == ssl.CERT_REQUIRED:
            told, bundle = None, requests.adapters.DEFAULT_CA_BUNDLE_PATH
            bundle = requests.utils.extract_zipped_paths(bundle)
    client = (connection.cert_file, connection.key_file) if connection.cert_file else ()
    shared = _shared(connection, bundle, client, told)
    if shared is not None:  # and none of its files, or they would be loaded again
        return dict(ssl_context=shared, ca_certs=None, cert_file=None, key_file=None)
    if client and told is not connection.ssl_context:
        return dict(ssl_context=None, ca_certs=bundle)
    return {}


#: A connection that was told one of these makes its own context, as in stock requests.
_OWN = (
    "key_password", "assert_hostname", "assert_fingerprint", "ca_cert_dir", "ca_cert_data",
    "ssl_version", "ssl_minimum_version", "ssl_maximum_version",
)  # fmt: skip


def _own_wish(connection: Any) -> str | None:
    """What a connection was told that only a context of its own can do."""
    return next((name for name in _OWN if getattr(connection, name, None) is not None), None)


class _MakesItsOwn(Exception):
    """Why a connection does not share; few different ones, since they are counted."""


def _shared(
    connection: Any, bundle: str | None, client: tuple = (), told: ssl.SSLContext | None = None
) -> ssl.SSLContext | None:
    """The context that a connection shares with its like; None when it has to make its own.

    client: the paths of the client certificate and its key (or None); told: the context that it
    was given.
    """
    try:
        if told is not None:
            raise _MakesItsOwn("it was given ssl_context")
        if _own_wish(connection):
            raise _MakesItsOwn(f"it was given {_own_wish(connection)}")
        if connection._changes_contexts:
            raise _MakesItsOwn("it changes its context")
        cert_reqs = urllib3.util.ssl_.resolve_cert_reqs(connection.cert_reqs)
        if not bundle and cert_reqs != ssl.CERT_NONE:
            raise _MakesItsOwn("it trusts the system's certificates")
        _check_stock()
        found = _context(cert_reqs, bundle, client)
        connection._shares = True
        _count("shared")
        return found
    except _MakesItsOwn as error:
        why = str(error)
    except OSError as error:  # stock requests meets it too, and raises its own
        why = "its files cannot be loaded"
        logger.info("a connection does not share, %s: %s", why, error)
    except Exception:
        why = "an unexpected error, see the log"
        logger.warning("a connection does not share", exc_info=True)
    _count(f"own:{why}")
    return None


def _check_stock() -> None:
    """Raises _MakesItsOwn where contexts are made in another way than this file knows."""
    if MISSING:
        raise _MakesItsOwn(f"there is no {MISSING[0]}")
    known = vars(urllib3.util.ssl_)
    for name in ("create_urllib3_context", "ssl_wrap_socket"):
        for module in (urllib3.connection, urllib3.util.ssl_):
            if getattr(getattr(module, name), "__globals__", None) is not known:
                raise _MakesItsOwn(f"{module.__name__}.{name} was replaced")
    if os.environ.get("SSLKEYLOGFILE"):
        raise _MakesItsOwn("SSLKEYLOGFILE is set")


# ------------------------------------------------------------------------ the shared contexts

_contexts: dict[tuple, SimpleNamespace] = {}  # way to trust -> state of its files, context, used
_clock = itertools.count()
_counts: Counter[str] = Counter()
_lock, _counting = threading.RLock(), threading.RLock()


def _count(what: str) -> None:
    with _counting:
        _counts[what] += 1


def _context(
    cert_reqs: int, bundle: str | None, client: tuple = (), alpn: tuple = (), names: bool = False
) -> ssl.SSLContext:
    """The one context for such connections, made now if there is none that fits the files.

    names: to compare host names where urllib3's contexts leave that to its connections. Raises
    OSError when a file cannot be loaded.
    """
    known = urllib3.util.ssl_
    # Others put a class of their own in SSLContext's place; old ciphers are a variable.
    made_of = known.SSLContext, getattr(known, "DEFAULT_CIPHERS", None)
    alpn = tuple(alpn or getattr(known, "ALPN_PROTOCOLS", ()))
    key = (cert_reqs, bundle, client, alpn, names, made_of)
    found = _contexts.get(key)
    if not _fits(found, cert_reqs, _state(bundle, *client)):
        with _lock:
            found, state = _contexts.get(key), _state(bundle, *client)
            if not _fits(found, cert_reqs, state):
                made = _make(cert_reqs, bundle, client, alpn, names)
                found = SimpleNamespace(state=state, context=made, used=next(_clock))
                _contexts[key] = found
                while len(_contexts) > KEPT:
                    del _contexts[min(_contexts, key=lambda each: _contexts[each].used)]
    found.used = next(_clock)
    return found.context


def _state(*files: str | None) -> list[tuple]:
    """What changes when a file is replaced or written to."""
    found = [os.stat(file) for file in files if file]
    return [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in found]


def _fits(found: SimpleNamespace | None, cert_reqs: int, state: list[tuple]) -> bool:
    """Whether a context is there, for these files, and verifies as ever: somebody who went round
    its seal may have changed that, and keeps it for himself."""
    return found and found.state == state and found.context.verify_mode == cert_reqs


def _bare(cert_reqs: int) -> Any:
    """A new context, as urllib3 makes one for each connection, before anything is loaded."""
    made = urllib3.connection.create_urllib3_context(cert_reqs=cert_reqs)
    if type(made).__module__ not in _SEALABLE:
        name = f"{type(made).__module__}.{type(made).__name__}"
        raise _MakesItsOwn(f"{name} is not known to be safe to share")
    if not getattr(urllib3.util.ssl_, "HAS_NEVER_CHECK_COMMON_NAME", True):
        made.check_hostname = False  # with an old OpenSSL, urllib3 2 compares names itself
    return made


def _make(
    cert_reqs: int, bundle: str | None, client: tuple, alpn: tuple, names: bool
) -> ssl.SSLContext:
    """A new context, loaded and sealed."""
    made = _bare(cert_reqs)
    if names and not isinstance(made, ssl.SSLContext):
        raise _MakesItsOwn(f"{type(made).__module__} cannot compare host names for others")
    if names:
        made.check_hostname = True
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if bundle:
        made.load_verify_locations(bundle)
        _count("loads")
    if client:
        # The password is wrong for any encrypted key. Without, OpenSSL asks on the terminal.
        made.load_cert_chain(*client, password=b"")
    return _seal(made, alpn)


# ----------------------------------------------------------------------------------- the seal

#: Where classes of contexts come from that do nothing but hold what they are told. truststore's
#: is not among them: it changes itself during each handshake, behind a lock of its own.
_SEALABLE = ("ssl", "gevent.ssl", "gevent._ssl3", "urllib3.contrib.pyopenssl")
_CHANGES = ("load_", "set_", "_load_", "_set_", "use_", "add_", "clear_", "get_cert_store")
_ADVICE = (
    "is refused, since this SSLContext is shared with other connections. Tell requests what to "
    "trust (verify=, cert=), or mount an HTTPAdapter with an ssl_context of its own."
)


def _seal(made: Any, alpn: tuple) -> ssl.SSLContext:
    """The same object, which lets nothing be changed any more."""
    inner = vars(made).get("_ctx")  # pyOpenSSL's, inside urllib3's wrapper; sockets lead to it
    if inner is not None:
        inner._used = True  # as pyOpenSSL sets it for the first connection
        object.__setattr__(inner, "__class__", _sealed(type(inner), alpn))
    object.__setattr__(made, "__class__", _sealed(type(made), alpn))
    return made


@lru_cache(maxsize=64)
def _sealed(kind: type, alpn: tuple) -> type:
    """A subclass for sealed contexts of that kind.

    urllib3 sets what it wants on a context before each connection, shared or not. The same value
    again passes, and is not set again: OpenSSL would free what another thread is reading.
    """

    def refuse(what: str, *_: Any) -> None:
        raise SharedContextError(f"{what} {_ADVICE}")

    def set_attribute(context: Any, name: str, value: Any) -> None:
        if getattr(context, name, refuse) != value:
            refuse(f"{name} = {value!r}")

    def set_alpn_protocols(context: Any, protocols: Any) -> None:
        if tuple(protocols) != alpn:
            refuse(f"set_alpn_protocols({protocols!r})")

    # As properties, since old urllib3 asks whether there is a load_default_certs, and calls it.
    changes = [name for name in dir(kind) if name.startswith(_CHANGES)]
    sealed: dict[str, Any] = {name: property(partial(refuse, name)) for name in changes}
    sealed.update(
        __slots__=(),
        __setattr__=set_attribute,
        __delattr__=lambda _, name: refuse(f"del {name}"),
        set_alpn_protocols=set_alpn_protocols,
    )
    return type(f"Shared{kind.__name__}", (kind,), sealed)


# --------------------------------------------------------------------------------------- forks

_alone = True
_left_by_parent: list = []


def _before_fork() -> None:
    global _alone
    _alone = len(sys._current_frames()) == 1  # threads of the system; greenlets are none


def _in_child() -> None:
    """Keep what was loaded, if no other thread of the parent could hold a lock of OpenSSL's at the
    moment of the fork; else leave it, and do not free it, since freeing takes locks too. Never
    keep a client certificate: the child may have been forked to have fewer rights."""
    global _contexts, _lock, _counting
    _left_by_parent.append(_contexts)
    _contexts = {key: found for key, found in _contexts.items() if _alone and not key[2]}
    _lock, _counting = threading.RLock(), threading.RLock()
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
