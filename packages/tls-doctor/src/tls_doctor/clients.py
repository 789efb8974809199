"""The clients."""

from __future__ import division, print_function

import gc
import sys

from .basis import CERTIFICATE, KEY, PY2
from .left_behind import bring, loaded

# A session of each kind: Kind(module, ca or None, ...). With ca, a path of certificates, it trusts
# these alone and goes past all proxies; without, it is as the library makes it.
# ask(url, method, ...): (status, body, class of the socket or None, HTTP version).


class Requests(object):
    """A session of requests or niquests; mount: what makes its adapter for https."""

    def __init__(self, module, ca=None, mount=None):
        code = getattr(module.Session.__init__, "__code__", None)
        # niquests would ask the authorities about each certificate, and nobody asked for that.
        quiet = "revocation_configuration" in getattr(code, "co_varnames", ())
        self.session = module.Session(**({"revocation_configuration": None} if quiet else {}))
        self.options = {"stream": True, "allow_redirects": False}
        if ca:
            self.session.trust_env, self.options["verify"] = False, ca
        self.close = self.session.close
        if mount:
            self.session.mount("https://", mount())
            # A program's adapter may have connections that it goes on using.
            self.close = lambda: None

    def ask(self, url, method="GET", **options):
        response = self.session.request(method, url, **dict(self.options, **options))
        kind = socket_of(response.raw)
        return response.status_code, response.content, kind, response.raw.version


class Urllib3(object):
    def __init__(self, module, ca=None):
        trust = {"cert_reqs": "CERT_REQUIRED", "ca_certs": ca} if ca else {}
        self.pool = module.PoolManager(**trust)
        self.close = self.pool.clear

    def ask(self, url, method="GET", **options):
        options.update(retries=False, redirect=False, preload_content=False)
        response = self.pool.request(method, url, **options)
        kind = socket_of(response)
        return response.status, response.read(), kind, response.version


class Httpx(object):
    def __init__(self, module, ca=None, **options):
        if ca:
            import ssl

            options.update(verify=ssl.create_default_context(cafile=ca), trust_env=False)
        self.client = module.Client(**options)
        self.close = self.client.close
        # The older ones follow redirects unless they are told otherwise.
        follows = hasattr(self.client, "follow_redirects")
        self.options = {} if follows else {"allow_redirects": False}

    def ask(self, url, method="GET", **options):
        response = self.client.request(method, url, **dict(self.options, **options))
        return response.status_code, response.content, None, response.http_version


class GeventHttpClient(object):
    """It knows HTTP/1.1 alone. factory: what makes its TLS contexts, where not its default."""

    def __init__(self, module, ca=None, factory=None):
        self.module, self.client, self.close = module, None, lambda: None
        self.trust = {"ssl_options": {"ca_certs": ca}, "ssl_context_factory": factory} if ca else {}

    def ask(self, url):
        if self.client is None:
            trust = self.trust if url.startswith("https") else {}
            self.client = self.module.HTTPClient.from_url(url, **trust)
            self.close = self.client.close
        response = self.client.get("/" + url.split("/", 3)[3])
        kind = class_of(getattr(response, "_sock", None))
        return response.status_code, response.read(), kind, "HTTP/1.1"


class HttpClient(object):
    """The standard library's http.client, or eventlet's copy of it, with the ssl that it holds."""

    def __init__(self, module, ca):
        self.module, self.ca, self.close = module, ca, lambda: None

    def ask(self, url):
        scheme, _, place, path = url.split("/", 3)
        if scheme == "https:":
            context = self.module.ssl.create_default_context(cafile=self.ca)
            connection = self.module.HTTPSConnection(place, context=context)
        else:
            connection = self.module.HTTPConnection(place)
        self.close = connection.close
        connection.request("GET", "/" + path)
        kind, response = class_of(connection.sock), connection.getresponse()
        return response.status, response.read(), kind, response.version


class Aiohttp(object):
    def __init__(self, module, ca=None):
        import asyncio

        loop = asyncio.new_event_loop()
        self.wait, self.end, self.module = loop.run_until_complete, loop.close, module
        self.session = module.ClientSession(loop=loop)

    def ask(self, url, method="GET", timeout=None):
        options = {"timeout": self.module.ClientTimeout(total=timeout)} if timeout else {}
        # As Python 2.7 has to be able to read it: without `async with` and `await`.
        response = self.wait(self.session.request(method, url, allow_redirects=False, **options))
        return response.status, self.wait(response.read()), None, "HTTP/%d.%d" % response.version

    def close(self):
        self.wait(self.session.close())
        self.end()


class Way(object):
    """A client, as the program has it. once: whether it has a `get` without a session; priced:
    whether a kept connection can be asked for; adapter: whether it goes through one of an own
    session of the program's.
    """

    once = priced = adapter = False

    def __init__(self, name, kind, module=None, options=(), **can):
        self.name, self.kind, self.module = name, kind, module or name
        self.options = dict(options)
        vars(self).update(can)

    def session(self, *ca):
        bring(self.module)
        return self.kind(sys.modules[self.module], *ca, **self.options)


#: Every client that the doctor knows, the likeliest first.
WAYS = (
    Way("requests", Requests, once=True, priced=True),
    Way("niquests", Requests, priced=True),
    Way("urllib3", Urllib3, priced=True),
    Way("httpx", Httpx, once=True),
    Way("geventhttpclient", GeventHttpClient),
    Way("aiohttp", Aiohttp),
)
STANDARD = Way("the standard library", HttpClient, "httplib" if PY2 else "http.client")
#: eventlet's urlopen goes through it, with nothing patched.
EVENTLETS = Way("eventlet's own http.client", HttpClient, "eventlet.green.http.client")


def topmost(names):
    """Return the names of clients, without urllib3 if requests or niquests stands on it."""
    on_it = {"requests", "niquests"} & set(names)
    return [name for name in names if name != "urllib3" or not on_it]


def class_of(value):
    """Return the name of a value's class with its module; None for None."""
    return value and "%s.%s" % (type(value).__module__, type(value).__name__)


def socket_of(response):
    """Return the name of the class of the socket below a urllib3 response; None if it is hidden."""
    connection = getattr(response, "_connection", None) or getattr(response, "connection", None)
    return class_of(getattr(connection, "sock", None))


def own_adapters():
    """Return clients that use the program's own https adapters, one for each class that is not
    requests' own: of the sessions that are there now, and of a library that is imported for nothing
    else.
    """
    requests = loaded("requests")
    if not hasattr(requests, "Session"):
        return []
    stock, adapters, ways = requests.adapters.HTTPAdapter, {}, []
    # One that sends in its own way might send elsewhere.
    sending = [name for name in dir(stock) if name == "send" or name.startswith("get_connection")]
    for candidate in gc.get_objects():
        if issubclass(type(candidate), requests.Session):  # isinstance would wake lazy objects up
            adapter = getattr(candidate, "adapters", {}).get("https://")
            kind = type(adapter)
            if kind is not stock and issubclass(kind, stock):
                if all(getattr(kind, name) == getattr(stock, name) for name in sending):
                    adapters.setdefault(kind, adapter)
    for kind, adapter in adapters.items():
        name = "requests with a session's %s" % kind.__name__
        its_own = {"mount": lambda adapter=adapter: adapter}
        ways.append(Way(name, Requests, "requests", its_own, priced=True, adapter=True))
    x509 = getattr(loaded("requests_toolbelt.adapters.x509"), "X509Adapter", None)
    if x509 and x509 not in adapters:
        new = {"mount": lambda: x509(cert_bytes=CERTIFICATE.encode(), pk_bytes=KEY.encode())}
        ways.append(Way("requests with requests_toolbelt's X509Adapter", Requests, "requests", new))
    return ways[:3]
