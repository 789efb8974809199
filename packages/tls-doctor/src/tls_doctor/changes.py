"""What can be changed in each client, from outside."""

from __future__ import division, print_function

import os
import sys

from .basis import says_close

#: More than a program has threads, or hosts.
PLACES = 1000

# What is applied stands in for a line of the program: it does what the line would do, from outside.


def keep_connections(module):
    """Have sessions of requests share one pool of connections, as one that is kept would.

    An adapter of the program's own stays as it is.
    """
    adapter, pools = module.HTTPAdapter, {}
    original, leave = adapter.init_poolmanager, adapter.close

    def init_poolmanager(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if type(self) is adapter:
            key = os.getpid(), args, tuple(sorted(kwargs.items()))  # no child takes ours
            self.poolmanager = pools.setdefault(key, self.poolmanager)

    def close(self):
        if type(self) is not adapter:
            leave(self)

    adapter.init_poolmanager, adapter.close = init_poolmanager, close


def keep_all_connections(module):
    """Give pools of requests a place for every connection, and keep those to every host.

    An adapter of the program's own stays as it is.
    """
    adapter = module.HTTPAdapter
    original = adapter.init_poolmanager

    def init_poolmanager(self, connections, maxsize, block=False, **options):
        if type(self) is adapter and not block:
            connections, maxsize = max(connections, PLACES), max(maxsize, PLACES)
        original(self, connections, maxsize, block=block, **options)

    adapter.init_poolmanager = init_poolmanager


def no_closing(module):
    """Have requests go without the header that closes their connection."""
    kind = module.HTTPConnection
    original = kind.putheader

    def putheader(connection, header, *values):
        return None if says_close(header, values) else original(connection, header, *values)

    kind.putheader = putheader


def one_of_each(function):
    """Return a function that makes a context once for each set of arguments and each process."""
    contexts, lock = {}, {}

    def make_once(*args, **kwargs):
        import threading  # not before the program has the chance to patch it

        key = os.getpid(), args, tuple(sorted(kwargs.items()))
        try:
            hash(key)
        except TypeError:  # what cannot be compared
            return function(*args, **kwargs)
        with lock.setdefault(os.getpid(), threading.Lock()):
            if key not in contexts:
                contexts[key] = function(*args, **kwargs)
            return contexts[key]

    return make_once


def one_context_of_httpx(module):
    """Have clients of httpx share their contexts."""
    module.create_ssl_context = one_of_each(module.create_ssl_context)


def one_context_of_ssl(module):
    """Have http.client and urlopen share their contexts."""
    module._create_default_https_context = one_of_each(module._create_default_https_context)


def one_context_of_httplib2(module):
    """Have Https of httplib2 share their contexts."""
    module._build_ssl_context = one_of_each(module._build_ssl_context)


def one_context_of_tornado(module):
    """Give requests that name the same certificates one context."""
    kind, contexts = module._HTTPConnection, {}
    original = kind._get_ssl_options

    def _get_ssl_options(self, scheme):
        request = self.request
        if scheme != "https" or request.ssl_options is not None:
            return original(self, scheme)
        key = (
            os.getpid(),
            request.validate_cert,
            request.ca_certs,
            request.client_cert,
            request.client_key,
        )
        if key not in contexts:
            contexts[key] = original(self, scheme)
        return contexts[key]

    kind._get_ssl_options = _get_ssl_options


def one_client_of_botocore(module):
    """Have clients with the same settings share one pool of connections, as one that is kept."""
    kind, managers = module.URLLib3Session, {}
    original = kind.__init__

    def begin(self, *args, **kwargs):
        original(self, *args, **kwargs)
        key = os.getpid(), repr(args), repr(sorted(kwargs.items()))
        self._manager = managers.setdefault(key, self._manager)

    kind.__init__, kind.close = begin, lambda _: None


def one_context_of_pools(module):
    """Give pools that the program makes by itself one context for each file of certificates."""
    import ssl

    context = one_of_each(ssl.create_default_context)
    needs = "ssl_context cert_file ca_cert_dir ca_cert_data ssl_version".split()
    verifies = (None, ssl.CERT_REQUIRED, "CERT_REQUIRED", "REQUIRED")

    def with_context(kind):
        original = kind.__init__

        def begin(self, *args, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            plain = options.get("cert_reqs") in verifies and not any(map(options.get, needs))
            if caller not in ("requests", "urllib3") and plain:
                options["ssl_context"] = context(cafile=options.pop("ca_certs", None))
            original(self, *args, **options)

        kind.__init__ = begin

    with_context(module.PoolManager)
    with_context(module.HTTPSConnectionPool)
