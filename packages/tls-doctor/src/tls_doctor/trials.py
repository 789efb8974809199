"""What each client does in a trial.

A function of a URL and a file of certificates returns one that fetches: as a program does it that
loads again and again, or with the change.
"""

from __future__ import division, print_function

from .basis import PY2
from .left_behind import loaded

HTTP_CLIENT = "httplib" if PY2 else "http.client"


def closing_requests(url, _trust):
    """Return a function that fetches with a Session, and asks for the end of each connection."""
    session = loaded("requests").Session()
    return lambda: session.get(url, headers={"Connection": "close"}).content


def each_requests(url, _trust):
    """Return a function that fetches with requests.get."""
    return lambda: loaded("requests").get(url).content


def kept_requests(url, _trust):
    """Return a function that fetches with one Session."""
    session = loaded("requests").Session()
    return lambda: session.get(url).content


def with_places(url, _trust, places):
    """Return a function that fetches with a Session whose pool has this many places."""
    requests = loaded("requests")
    session = requests.Session()
    session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=places))
    return lambda: session.get(url).content


def each_niquests(url, trust):
    """Return a function that fetches with a new Session of niquests each time."""
    quiet = {"revocation_configuration": None}
    return lambda: loaded("niquests").Session(**quiet).get(url, verify=trust).content


def kept_niquests(url, trust):
    """Return a function that fetches with one Session of niquests."""
    session = loaded("niquests").Session(revocation_configuration=None)
    return lambda: session.get(url, verify=trust).content


def clients_of(httpx):
    """Return the trial of httpx or httpx2, as in `Client.trial`."""

    def new_client(url, _trust):
        return lambda: loaded(httpx).get(url).content

    def kept_client(url, _trust):
        client = loaded(httpx).Client()
        return lambda: client.get(url).content

    return httpx, new_client, kept_client


def awaiting_clients_of(httpx):
    """Return the trial of their clients that await, several at once, as `Client.awaiting_trial`.

    (As Python 2.7 has to be able to read it: without `async def` and `await`.)
    """

    def new_clients(url, _trust, number):
        wait = waiting()

        def fetch():
            clients = [loaded(httpx).AsyncClient() for _ in range(number)]
            try:
                return [reply.content for reply in wait(gathered([c.get(url) for c in clients]))]
            finally:
                wait(gathered([client.aclose() for client in clients]))

        return fetch

    def kept_client(url, _trust, number):
        wait, client = waiting(), loaded(httpx).AsyncClient()

        def fetch():
            replies = wait(gathered([client.get(url) for _ in range(number)]))
            return [reply.content for reply in replies]

        return fetch

    return httpx, new_clients, kept_client


def gathered(awaitables):
    """Return what waits for all of some that can be awaited."""
    import asyncio

    class All(object):
        def __await__(self):
            return asyncio.gather(*awaitables).__await__()

    return asyncio.wait_for(All(), None)


def waiting():
    """Return a function that waits for what can be awaited, on a loop of its own."""
    import asyncio

    return asyncio.new_event_loop().run_until_complete


def each_urllib3(url, trust):
    """Return a function that fetches with a new PoolManager each time."""
    options = {"cert_reqs": "CERT_REQUIRED", "ca_certs": trust}
    return lambda: loaded("urllib3").PoolManager(**options).request("GET", url).data


def kept_urllib3(url, trust):
    """Return a function that fetches with one PoolManager that has one context."""
    import ssl

    pool = loaded("urllib3").PoolManager(ssl_context=ssl.create_default_context(cafile=trust))
    return lambda: pool.request("GET", url).data


def each_httplib2(url, trust):
    """Return a function that fetches with a new Http of httplib2 each time."""
    return lambda: loaded("httplib2").Http(ca_certs=trust).request(url)[1]


def kept_httplib2(url, trust):
    """Return a function that fetches with one Http of httplib2."""
    http = loaded("httplib2").Http(ca_certs=trust)
    return lambda: http.request(url)[1]


def with_http_client(url, **options):
    """Return a function that fetches with an HTTPSConnection, made anew with these options."""
    client = loaded(HTTP_CLIENT)
    _, _, place, path = url.split("/", 3)

    def fetch():
        connection = client.HTTPSConnection(place, **options)
        try:
            connection.request("GET", "/" + path)
            return connection.getresponse().read()
        finally:
            connection.close()

    return fetch


def each_http_client(url, _trust):
    """Return a function that fetches with an HTTPSConnection that makes its own context."""
    return with_http_client(url)


def each_urlopen(url, _trust):
    """Return a function that fetches with an opener of its own.

    The one that urlopen has made for itself keeps its context, from Python 3.12 on.
    """
    return lambda: loaded("urllib2" if PY2 else "urllib.request").build_opener().open(url).read()


def kept_urlopen(url, _trust):
    """Return a function that fetches with urlopen and one context."""
    import ssl

    context, module = ssl.create_default_context(), loaded("urllib2" if PY2 else "urllib.request")
    return lambda: module.urlopen(url, context=context).read()


def each_tornado(url, trust):
    """Return a function that has tornado load the certificates for each connection."""
    return with_tornado(url, ca_certs=trust)


def kept_tornado(url, trust):
    """Return a function that has tornado use one context."""
    import ssl

    return with_tornado(url, ssl_options=ssl.create_default_context(cafile=trust))


def with_tornado(url, **options):
    """Return a function that fetches with tornado's client and these options."""
    import asyncio

    loop, client = asyncio.new_event_loop(), loaded("tornado.httpclient").AsyncHTTPClient
    # As Python 2.7 has to be able to read it: without `async def`.
    asyncio.set_event_loop(loop)
    return lambda: loop.run_until_complete(fetched(client, url, options)).body


def fetched(client, url, options):
    """Return what waits for a reply of tornado."""
    return client().fetch(url, **options)


def with_botocore(url, trust, clients={}):  # the clients that it keeps
    """Return a function that fetches with one client of botocore that is kept.

    If the server closes each connection, it loads for each. (To make a client takes longer than a
    load, so it is made once, and counted in neither.)
    """
    place, folder, name = url.rsplit("/", 2)
    if place not in clients:
        config = loaded("botocore.config").Config(
            signature_version=loaded("botocore").UNSIGNED, s3={"addressing_style": "path"}
        )
        options = dict(endpoint_url=place, region_name="us-east-1", verify=trust, config=config)
        clients[place] = loaded("botocore.session").get_session().create_client("s3", **options)
    clients[place].close()  # what it kept before; it goes on
    return lambda: clients[place].get_object(Bucket=folder, Key=name)["Body"].read()


def each_context(url, trust):
    """Return a function that makes a context for each connection."""
    import ssl

    return lambda: with_http_client(url, context=ssl.create_default_context(cafile=trust))()


def one_context(url, trust):
    """Return a function that uses one context for all connections."""
    import ssl

    return with_http_client(url, context=ssl.create_default_context(cafile=trust))


#: Of contexts that no client makes: a context for each connection, and one for all.
CONTEXTS = (HTTP_CLIENT, each_context, one_context)
