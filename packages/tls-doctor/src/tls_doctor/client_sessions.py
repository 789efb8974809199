"""Sessions of the clients."""

from __future__ import division, print_function

# A class for each kind of session: Kind(module, ca or None, ...). With ca, a path of certificates,
# it trusts these alone and goes past all proxies; without, it is as the library makes it. Its
# method `fetch` returns (status, body, class of the socket or None, HTTP version).


class Requests(object):
    """A session of requests or niquests.

    mount: makes its adapter for https.
    """

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

    def fetch(self, url, method="GET", **options):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
        response = self.session.request(method, url, **dict(self.options, **options))
        kind = socket_of(response.raw)
        return response.status_code, response.content, kind, response.raw.version


class Urllib3(object):
    """A PoolManager of urllib3."""

    def __init__(self, module, ca=None):
        trust = {"cert_reqs": "CERT_REQUIRED", "ca_certs": ca} if ca else {}
        self.pool = module.PoolManager(**trust)
        self.close = self.pool.clear

    def fetch(self, url, method="GET", **options):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
        options.update(retries=False, redirect=False, preload_content=False)
        response = self.pool.request(method, url, **options)
        kind = socket_of(response)
        return response.status, response.read(), kind, response.version


class Httpx(object):
    """A client of httpx."""

    def __init__(self, module, ca=None, **options):
        if ca:
            import ssl

            options.update(verify=ssl.create_default_context(cafile=ca), trust_env=False)
        self.client = module.Client(**options)
        self.close = self.client.close
        # The older ones follow redirects unless they are told otherwise.
        follows = hasattr(self.client, "follow_redirects")
        self.options = {} if follows else {"allow_redirects": False}

    def fetch(self, url, method="GET", **options):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
        response = self.client.request(method, url, **dict(self.options, **options))
        return response.status_code, response.content, None, response.http_version


class GeventHttpClient(object):
    """A client of geventhttpclient, which knows HTTP/1.1 alone.

    factory: makes its TLS contexts, if not its default does.
    """

    def __init__(self, module, ca=None, factory=None):
        self.module, self.client, self.close = module, None, lambda: None
        self.trust = {"ssl_options": {"ca_certs": ca}, "ssl_context_factory": factory} if ca else {}

    def fetch(self, url):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
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

    def fetch(self, url):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
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
    """A session of aiohttp, with a loop of its own."""

    def __init__(self, module, _ca=None):
        import asyncio

        loop = asyncio.new_event_loop()
        self.wait, self.end, self.module = loop.run_until_complete, loop.close, module
        self.session = module.ClientSession(loop=loop)

    def fetch(self, url, method="GET", timeout=None):
        """Return (status, body, class of the socket or None, HTTP version) of one request."""
        options = {"timeout": self.module.ClientTimeout(total=timeout)} if timeout else {}
        # As Python 2.7 has to be able to read it: without `async with` and `await`.
        response = self.wait(self.session.request(method, url, allow_redirects=False, **options))
        return response.status, self.wait(response.read()), None, "HTTP/%d.%d" % response.version

    def close(self):
        """Close the session, and its loop."""
        self.wait(self.session.close())
        self.end()


def class_of(value):
    """Return the name of a value's class with its module; None for None."""
    return value and "%s.%s" % (type(value).__module__, type(value).__name__)


def socket_of(response):
    """Return the name of the class of the socket below a urllib3 response; None if it is hidden."""
    connection = getattr(response, "_connection", None) or getattr(response, "connection", None)
    return class_of(getattr(connection, "sock", None))
