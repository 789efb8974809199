"""The clients and libraries that the doctor knows.

A record for each: what is said of it, how it is tried, and what can be changed in it. To add one is
to add a record. What no field says stands elsewhere: how sessions and pools are noted (`probed`,
`tally`); the file that requests trusts (`loads`); which client is asked for HTTP/2, and which has a
loop of its own (`which_http`, `blocking`); how one knows that a program imports http.client or
urlopen (`examination`); and what concerns a pair: a client and a loop (`ADVICE`), or a client and
the one that it stands on (`changes`, `rerun`).
"""

from __future__ import division, print_function

import gc
import sys

from .basis import CERTIFICATE, KEY, PY2, Record, nothing
from .changes import (
    keep_all_connections,
    keep_connections,
    no_closing,
    one_client_of_botocore,
    one_context_of_httplib2,
    one_context_of_httpx,
    one_context_of_pools,
    one_context_of_ssl,
    one_context_of_tornado,
)
from .client_sessions import Aiohttp, GeventHttpClient, HttpClient, Httpx, Requests, Urllib3
from .left_behind import loaded, try_import
from .trials import (
    HTTP_CLIENT,
    awaiting_clients_of,
    clients_of,
    closing_requests,
    each_http_client,
    each_httplib2,
    each_niquests,
    each_requests,
    each_tornado,
    each_urllib3,
    each_urlopen,
    kept_httplib2,
    kept_niquests,
    kept_requests,
    kept_tornado,
    kept_urllib3,
    kept_urlopen,
    one_context,
    with_botocore,
    with_places,
)


class Client(Record):
    """A client, or a library between a program and its clients."""

    FIELDS = (
        (
            "name",
            nothing,
            "as a report calls it; for tests to find its library, the name of its distribution, "
            "with _ for -",
        ),
        ("module", nothing, "what is imported to use it; as its name, if none is given"),
        (
            "packages",
            str,
            "its import packages, separated by spaces; a call with one of them in its frames "
            "counts as this client's",
        ),
        (
            "own_tls",
            str,
            "modules, separated by spaces, with TLS of their own, which neither ssl nor pyOpenSSL "
            "sees",
        ),
        # How it is asked in this process.
        (
            "kind",
            nothing,
            "the class of its sessions, in `client_sessions`; None: no loop is tried with it, and "
            "nothing is told of its loads without a run",
        ),
        ("options", dict, "of that class"),
        ("has_get", bool, "it has a `get` without a session"),
        ("adapter", bool, "it goes through an adapter of a session of the program's"),
        # Advice.
        ("keep", nothing, "what has it load once, and risks nothing: (line, sentence)"),
        ("keep_awaiting", nothing, "the same of its client that awaits, if that is another"),
        ("awaits", nothing, "True: its clients await; or, if some do, a method of theirs alone"),
        ("makers", str, "its functions that make what is to be kept, separated by spaces"),
        (
            "settings",
            nothing,
            "those that load, and that a program calls for connections of its own: (names, "
            "separated by spaces; what their result is called, when it is made, sentence)",
        ),
        ("connects_later", bool, "what they make loads at another line, when it connects"),
        ("entered", bool, "what they make is a client within `async with` alone"),
        (
            "needs_context",
            nothing,
            "if what they make loads once only with a context of the program's: (the argument that "
            "takes it, the argument that takes a file of certificates, which goes then)",
        ),
        ("larger_pool", nothing, "the line for a larger pool, with %s where its options go"),
        ("pool_options", dict, 'its options for a larger pool ("full"), and for more ("evicted")'),
        ("pool_beside", bool, "that line is one more, of a session that another line makes"),
        ("loads_each", bool, "it loads for each connection, also where its session is kept"),
        ("shared_context", nothing, "the line by which sessions that load for each share one"),
        ("stands_on", nothing, "the client that sends for it"),
        (
            "reuses",
            bool,
            "one of its clients that is kept uses a connection again, unless told not to",
        ),
        ("multiplexed", str, "the line that sends all over one connection"),
        ("multiplexed_awaiting", str, "that of its client that awaits, if that is another"),
        ("trust_line", nothing, "the line by which it is told whom to trust, if no context does"),
        (
            "trust_variables",
            str,
            "of the environment, separated by spaces: they come before what its session is told",
        ),
        (
            "for_each_request",
            nothing,
            "if it makes a context for each request that is given none, whatever a library that "
            "calls it keeps: (the line that gives one to all, sentence on %(client)s and "
            "%(library)s)",
        ),
        ("owners", nothing, "which of `Counts` has the number of its sessions or pools"),
        ("front", nothing, "the library by which programs use it"),
        ("constructor", nothing, "what a program makes of it, and keeps"),
        ("connects", bool, "it connects once: what is kept is the context that it takes"),
        (
            "keyword",
            nothing,
            "the argument by which that takes a context; or a client, if `client` is in the word; "
            "None: it takes neither",
        ),
        (
            "takes",
            nothing,
            "the keyword by which its functions take a context, if it is not one of `TAKES`; "
            "`keyword=value` if the value is not simply `context`",
        ),
        # What is tried, and applied from outside; see `trials` and `changes`.
        (
            "trial",
            nothing,
            "(module, function that loads again, function that does not); each takes a URL and a "
            "file of certificates, and returns a function that fetches, and returns the body",
        ),
        (
            "awaiting_trial",
            nothing,
            "the same of its client that awaits, but its functions take a third argument, how many "
            "it asks for at once, and the bodies are a list",
        ),
        ("applied", dict, "{module: function that makes the change in it, when it is imported}"),
        (
            "larger_pool_change",
            nothing,
            "the name of the change to a larger pool, in `trials` and `changes`; its own name, if "
            "`trial` stands for that, too",
        ),
        (
            "closing_change",
            nothing,
            "the name of the change by which it no longer asks servers to close its connections",
        ),
        (
            "trials",
            dict,
            "{name of such a change, which no other client tries: as `trial`}; of a larger pool "
            "the functions take a third argument, the number of its places",
        ),
        ("changes", dict, "{name of such a change: as `applied`}"),
    )
    __slots__ = Record.names_of(FIELDS)

    def __init__(self, name, **values):
        Record.__init__(self, name=name, **values)
        self.module = self.module or name

    def session(self, *ca):
        """Return a session; ca: the certificates that it trusts alone."""
        try_import(self.module)
        return self.kind(sys.modules[self.module], *ca, **self.options)

    @property
    def takes_context(self):
        """Return whether what a program makes of it takes a context."""
        return bool(self.keyword) and "client" not in self.keyword

    @property
    def takes_nothing(self):
        """Return whether what a program makes of it takes no context and no client."""
        return self.constructor is not None and self.keyword is None


#: The clients and libraries, the likeliest first. By package, by module with TLS of its own, and by
#: trial, the client that it belongs to; and by name, a change. `register` fills them.
CLIENTS, PACKAGES, OWN_TLS, TRIALS, CHANGES = [], {}, {}, {}, {}


def register(client):
    """Add the record of a client. Raises ValueError if what it calls its own is another's."""
    if any(other.name == client.name for other in CLIENTS):
        raise ValueError("there is a record of %s already" % client.name)
    tables = (
        ("package", PACKAGES, client.packages.split()),
        ("module", OWN_TLS, client.own_tls.split()),
        ("trial", TRIALS, client.trials),
    )
    for kind, table, names in tables:
        for name in names:
            if name in table:
                text = "the %s %s is of %s already, and cannot be of %s, too"
                raise ValueError(text % (kind, name, table[name], client.name))
    for name, applied in client.changes.items():
        if CHANGES.get(name, applied) != applied:
            raise ValueError("the change %s is made otherwise already: name another" % name)
    CLIENTS.append(client)
    for _, table, names in tables:
        table.update(dict.fromkeys(names, client.name))
    CHANGES.update(client.changes)


def client_named(name):
    """Return the record of a client; of one that is not known, one without anything."""
    return next((client for client in CLIENTS if client.name == name), None) or Client(name)


def counted_clients():
    """Return the names of the clients that a run tells of."""
    return sorted(set(PACKAGES.values()))


def clients_with_sessions():
    """Return the clients that can be asked in this process."""
    return [client for client in CLIENTS if client.kind]


def advice_to_keep(library):
    """Return (how a library's client is kept or None, what is said of the context it takes)."""
    client = client_named(library)
    if client.constructor is None:
        text = "Make one client of %s, and keep it. If it loads anew all the same, see whether it "
        return None, (text + "takes a context, and give it the same one each time.") % library
    text = "Make one client of %s, and keep it" % library
    if client.keyword is None:
        return client.constructor, text + " (it takes no context or client of yours)."
    if client.connects:
        text = "It takes a context of yours as %s=: make one, and give it to each connection."
        return client.constructor, text % client.keyword
    kind = "context" if client.takes_context else "client"
    return client.constructor, text + " (it takes a %s of yours as %s=)." % (kind, client.keyword)


def topmost(names):
    """Return the names of clients, without those on which another of them stands."""
    senders = {client_named(name).stands_on for name in names}
    return [name for name in names if name not in senders]


def own_adapters():
    """Return clients that use the program's own https adapters.

    One for each class that is not requests' own: of the sessions that are there now, and of a
    library that is imported for nothing else.
    """
    requests = loaded("requests")
    if not hasattr(requests, "Session"):
        return []
    stock, adapters, clients = requests.adapters.HTTPAdapter, {}, []
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
        mount = {"mount": lambda adapter=adapter: adapter}
        values = dict(module="requests", kind=Requests, options=mount, adapter=True)
        clients.append(Client(name, **values))
    x509 = getattr(loaded("requests_toolbelt.adapters.x509"), "X509Adapter", None)
    if x509 and x509 not in adapters:
        mount = {"mount": lambda: x509(cert_bytes=CERTIFICATE.encode(), pk_bytes=KEY.encode())}
        name = "requests with requests_toolbelt's X509Adapter"
        clients.append(Client(name, module="requests", kind=Requests, options=mount))
    return clients[:3]


#: Of clients that await, too.
KEPT_CLIENT = (
    "Each new client loads anew; one that is kept loads when it is made, and not again, whatever "
    "it connects to."
)
URLOPEN = "urllib2" if PY2 else "urllib.request"
STANDARD = Client("the standard library", module=HTTP_CLIENT, kind=HttpClient)
#: eventlet's urlopen goes through it, with nothing patched.
EVENTLETS = Client(
    "eventlet's own http.client", module="eventlet.green.http.client", kind=HttpClient
)  # fmt: skip
#: Of http.client, which requests and urllib3 go through, too.
NO_CLOSING = {"http.client": no_closing, "httplib": no_closing}
ONE_FOR_HTTP_CLIENT = (
    "context = ssl.create_default_context(); ssl._create_default_https_context = lambda: context  "
    "# once, before the work begins",
    "%(library)s connects by %(client)s, which makes a context each time, whatever you keep. If "
    "%(library)s takes a context, give it one. If not, this line (from PEP 476) gives one context "
    "to all connections of http.client that have none of their own.",
)
#: What is said of contexts that a program makes itself, and of clients that are not known.
KEEP_CONTEXT = ("context = ssl.create_default_context()",
    "Make one context, and give it to every connection that shows the same client certificate, or "
    "none.")  # fmt: skip

# ------------------------------------------------------------------------------- a record each

register(Client("requests", packages="requests", kind=Requests, has_get=True, owners="sessions",
    reuses=True, loads_each=True, stands_on="urllib3",
    shared_context='session.mount("https://", shared_context.SharedContextAdapter())',
    keep=("session = requests.Session()",
        "requests.get makes a Session for each call; one that is kept, for many requests to few "
        "hosts, keeps its connections, and loads once for each."),
    makers="Session",
    larger_pool='session.mount("https://", requests.adapters.HTTPAdapter(%s))',
    pool_options={"full": "pool_maxsize", "evicted": "pool_connections"}, pool_beside=True,
    trust_line='requests.get(url, verify="...")  # or the variable REQUESTS_CA_BUNDLE',
    trust_variables="REQUESTS_CA_BUNDLE CURL_CA_BUNDLE",
    trial=("requests", each_requests, kept_requests),
    applied={"requests.adapters": keep_connections},
    larger_pool_change="larger-pool", closing_change="connection-close",
    trials={
        "larger-pool": ("requests", with_places, with_places),
        "connection-close": ("requests", closing_requests, kept_requests),
    },
    changes={
        "larger-pool": {"requests.adapters": keep_all_connections}, "connection-close": NO_CLOSING,
    },
))  # fmt: skip
register(Client("niquests", packages="niquests urllib3_future", kind=Requests,
    reuses=True, stands_on="urllib3",
    keep=("session = niquests.Session()",
        "A Session that is kept keeps its connections. (niquests 3.21 loads once for all Sessions "
        "that trust the same.)"),
    makers="Session AsyncSession",
    multiplexed="session = niquests.Session(multiplexed=True)  # in one thread: ask for all, then "
    "session.gather()",
    multiplexed_awaiting="session = niquests.AsyncSession(multiplexed=True)  # in one thread: ask "
    "for all, then await session.gather()",
    trial=("niquests", each_niquests, kept_niquests),
))  # fmt: skip
register(Client("urllib3", packages="urllib3", kind=Urllib3, owners="pools",
    reuses=True,
    keep=("pool = urllib3.PoolManager(ssl_context=ssl.create_default_context())",
        "One pool that is kept keeps its connections, and with a context of your own it loads "
        "once, whatever it connects to."),
    makers="PoolManager ProxyManager", connects_later=True,
    needs_context=("ssl_context", "ca_certs"),
    larger_pool="pool = urllib3.PoolManager(%s, ssl_context=ssl.create_default_context())",
    pool_options={"full": "maxsize", "evicted": "num_pools"},
    trial=("urllib3", each_urllib3, kept_urllib3),
    applied={"urllib3.poolmanager": one_context_of_pools},
    larger_pool_change="urllib3", closing_change="connection-close",
    changes={"connection-close": NO_CLOSING},
))  # fmt: skip
register(Client("httpx", packages="httpx httpcore", kind=Httpx, has_get=True,
    reuses=True,
    constructor="httpx.Client", keyword="verify",
    keep=("client = httpx.Client()",
        "httpx.get, and each new client, loads anew; a client that is kept loads when it is made, "
        "and not again, whatever it connects to."),
    keep_awaiting=("client = httpx.AsyncClient()", KEPT_CLIENT), awaits="aclose",
    makers="Client AsyncClient", multiplexed="client = httpx.Client(http2=True)  # one for all",
    multiplexed_awaiting="client = httpx.AsyncClient(http2=True)  # one for all",
    trust_line='client = httpx.Client(verify=ssl.create_default_context(cafile="..."))',
    trial=clients_of("httpx"), awaiting_trial=awaiting_clients_of("httpx"),
    applied={"httpx._config": one_context_of_httpx},
))  # fmt: skip
register(Client("httpx2", packages="httpx2 httpcore2",
    reuses=True,
    constructor="httpx2.Client", keyword="verify",
    keep=("client = httpx2.Client()", KEPT_CLIENT),
    keep_awaiting=("client = httpx2.AsyncClient()", KEPT_CLIENT), awaits="aclose",
    makers="Client AsyncClient", multiplexed="client = httpx2.Client(http2=True)  # one for all",
    multiplexed_awaiting="client = httpx2.AsyncClient(http2=True)  # one for all",
    trial=clients_of("httpx2"), awaiting_trial=awaiting_clients_of("httpx2"),
    applied={"httpx2._config": one_context_of_httpx},
))  # fmt: skip
register(Client("geventhttpclient", packages="geventhttpclient", kind=GeventHttpClient))
register(Client("aiohttp", packages="aiohttp", kind=Aiohttp,
    reuses=True,
    constructor="aiohttp.TCPConnector", keyword="ssl", awaits=True,
    keep=("session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))",
        "One context, made once by ssl.create_default_context(), serves all sessions."),
))  # fmt: skip
register(Client("botocore", packages="botocore", owners="botocores", front="boto3",
    reuses=True, loads_each=True,
    keep=("client = boto3.client(...)",
        "One client for all threads (it may be shared) keeps its connections, ten of them unless "
        "it is told to keep more. botocore loads once for each new one."),
    makers="client resource", connects_later=True,
    larger_pool="client = boto3.client(..., config=Config(%s))",
    pool_options={"full": "max_pool_connections"},
    trial=("botocore.session", with_botocore, with_botocore),
    applied={"botocore.httpsession": one_client_of_botocore},
))  # fmt: skip
register(Client("httplib2", packages="httplib2",
    keep=("http = httplib2.Http()",
        "One Http for each thread, kept, keeps its connections; each new one loads anew."),
    makers="Http", connects_later=True,
    trial=("httplib2", each_httplib2, kept_httplib2), applied={"httplib2": one_context_of_httplib2},
))  # fmt: skip
register(Client("tornado", packages="tornado",
    keep=("HTTPRequest(url, ssl_options=context)",
        "ca_certs loads anew for each connection; one ssl.SSLContext for all loads once."),
    trial=("tornado.httpclient", each_tornado, kept_tornado),
    applied={"tornado.simple_httpclient": one_context_of_tornado},
))  # fmt: skip
register(Client("twisted",
    settings=("optionsForClientTLS CertificateOptions", "options", "once for each host",
        "It loads for each of these that is used: one that is kept serves all connections to its "
        "host."),
    keep=("pool = HTTPConnectionPool(reactor)  # once; then Agent(reactor, pool=pool), or of treq "
        "get(url, pool=pool)",
        "A pool that is kept, and given to each Agent, keeps its connections. Without one, each "
        "request connects and loads anew, also those of one Agent (or of treq with "
        "persistent=False)."),
))  # fmt: skip
register(Client("xmlrpc", packages="xmlrpc",
    constructor="xmlrpc.client.ServerProxy", keyword="context", connects=True,
    applied={"ssl": one_context_of_ssl},
))  # fmt: skip
register(Client("http.client", packages="http httplib",
    keep=("HTTPSConnection(host, context=context)",
        "Without a context each HTTPSConnection makes its own: make one, by "
        "context = ssl.create_default_context(), and give it to all."),
    for_each_request=ONE_FOR_HTTP_CLIENT,
    trial=(HTTP_CLIENT, each_http_client, one_context), applied={"ssl": one_context_of_ssl},
))  # fmt: skip
register(Client("urlopen", packages="urllib urllib2",
    keep=(URLOPEN + ".urlopen(url, context=context)",
        "Without a context each call makes its own, from Python 3.12 on each opener: make one, by "
        "context = ssl.create_default_context(), and give it to all."),
    for_each_request=ONE_FOR_HTTP_CLIENT,
    trial=(URLOPEN, each_urlopen, kept_urlopen), applied={"ssl": one_context_of_ssl},
))  # fmt: skip

# Libraries that use one of these, or ssl.

register(Client("openai", constructor="openai.OpenAI", keyword="http_client"))
register(Client("slack_sdk", constructor="slack_sdk.WebClient", keyword="ssl"))
register(Client("stripe", constructor="stripe.StripeClient", keyword="http_client"))
register(Client("boto3", constructor="boto3.client"))
register(Client("aiobotocore", makers="create_client", entered=True))
register(Client("kubernetes", constructor="kubernetes.client.ApiClient"))
register(Client("redis", constructor="redis.Redis"))
register(Client("svix", constructor="svix.api.Svix"))
register(Client("websockets", constructor="websockets.sync.client.connect", keyword="ssl",
    connects=True))  # fmt: skip
register(Client("paho", takes="tls"))
register(Client("websocket", takes='sslopt={"context": context}'))
register(Client("aiomqtt", constructor="aiomqtt.Client", keyword="tls_context"))

# What brings TLS of its own; a module is called as its package, unless one is named.

for _name in (
    "psycopg2 psycopg pycurl curl_cffi grpc oracledb cx_Oracle mariadb pymssql pyodbc ibm_db "
    "couchbase aerospike pygit2 temporalio primp rnet pyreqwest tls_client obstore deltalake "
    "M2Crypto aioquic glide adbc_driver_postgresql"
).split():
    register(Client(_name, own_tls=_name))
register(Client("mysqlclient", own_tls="MySQLdb"))
register(Client("mysql-connector", own_tls="_mysql_connector"))
register(Client("confluent-kafka", own_tls="confluent_kafka"))
register(Client("pulsar-client", own_tls="pulsar"))
