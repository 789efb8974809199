"""What a change saves: the counted connections, made again with and without it.

Against the doctor's own server, in a process of its own with the program's Python and its client.
The program itself is not run a second time.
"""

from __future__ import division, print_function

import json
import os

from .basis import CERTIFICATE, HOST, ITS_OWN, PY2, clock
from .left_behind import bring, loaded
from .probes import Probes, process_ms
from .processes import begin
from .tally import at_once, is_shared, wanting

#: How many connections at most are made again, and how long that may take.
MOST_AGAIN = 50
TRIED_WITHIN_S = 120
#: Where they ask at once, each answer takes so long, and they ask so often at most; so many do.
AT_ONCE_S, MOST_ROUNDS, MOST_AT_ONCE = 0.2, 4, 50


def closing_requests(url, trust):
    session = loaded("requests").Session()
    return lambda: session.get(url, headers={"Connection": "close"}).content


def each_requests(url, trust):
    return lambda: loaded("requests").get(url).content


def kept_requests(url, trust):
    session = loaded("requests").Session()
    return lambda: session.get(url).content


def with_places(url, size):
    """Return a function that fetches with a Session whose pool has this many places."""
    requests = loaded("requests")
    session = requests.Session()
    session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=size))
    return lambda: session.get(url).content


def in_threads(fetch, number):
    """Return a function that has a number of threads fetch at once, and returns the answers."""
    import threading

    answers = []

    def ask_all():
        del answers[:]
        threads = [threading.Thread(target=lambda: answers.append(fetch())) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(answers) < number:
            raise ValueError("not every thread got its answer")
        return answers

    return ask_all


def each_niquests(url, trust):
    quiet = {"revocation_configuration": None}
    return lambda: loaded("niquests").Session(**quiet).get(url, verify=trust).content


def kept_niquests(url, trust):
    session = loaded("niquests").Session(revocation_configuration=None)
    return lambda: session.get(url, verify=trust).content


def clients_of(httpx):
    """Return a row of CHANGES, for httpx or httpx2."""

    def new_client(url, trust):
        return lambda: loaded(httpx).get(url).content

    def kept_client(url, trust):
        client = loaded(httpx).Client()
        return lambda: client.get(url).content

    return httpx, new_client, kept_client


def awaiting_clients_of(httpx):
    """Return the same with clients that await, several at once. (As Python 2.7 has to be able to
    read it.)
    """

    def new_clients(url, trust, number):
        wait = waiting()

        def fetch():
            clients = [loaded(httpx).AsyncClient() for _ in range(number)]
            try:
                return [reply.content for reply in wait(gathered([c.get(url) for c in clients]))]
            finally:
                wait(gathered([client.aclose() for client in clients]))

        return fetch

    def kept_client(url, trust, number):
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
    options = {"cert_reqs": "CERT_REQUIRED", "ca_certs": trust}
    return lambda: loaded("urllib3").PoolManager(**options).request("GET", url).data


def kept_urllib3(url, trust):
    import ssl

    pool = loaded("urllib3").PoolManager(ssl_context=ssl.create_default_context(cafile=trust))
    return lambda: pool.request("GET", url).data


def each_httplib2(url, trust):
    return lambda: loaded("httplib2").Http(ca_certs=trust).request(url)[1]


def kept_httplib2(url, trust):
    http = loaded("httplib2").Http(ca_certs=trust)
    return lambda: http.request(url)[1]


def with_http_client(url, **options):
    client = loaded("httplib" if PY2 else "http.client")
    _, _, place, path = url.split("/", 3)

    def fetch():
        connection = client.HTTPSConnection(place, **options)
        try:
            connection.request("GET", "/" + path)
            return connection.getresponse().read()
        finally:
            connection.close()

    return fetch


def each_http_client(url, trust):
    return with_http_client(url)


def each_urlopen(url, trust):
    return lambda: loaded("urllib2" if PY2 else "urllib.request").urlopen(url).read()


def kept_urlopen(url, trust):
    import ssl

    context, module = ssl.create_default_context(), loaded("urllib2" if PY2 else "urllib.request")
    return lambda: module.urlopen(url, context=context).read()


def each_tornado(url, trust):
    return with_tornado(url, ca_certs=trust)


def kept_tornado(url, trust):
    import ssl

    return with_tornado(url, ssl_options=ssl.create_default_context(cafile=trust))


def with_tornado(url, **options):
    import asyncio

    loop, client = asyncio.new_event_loop(), loaded("tornado.httpclient").AsyncHTTPClient
    # As Python 2.7 has to be able to read it: without `async def`.
    asyncio.set_event_loop(loop)
    return lambda: loop.run_until_complete(fetched(client, url, options)).body


def fetched(client, url, options):
    return client().fetch(url, **options)


def botocores(url, trust, clients={}):  # noqa: B006
    """Return a function that fetches with one client that is kept: if the server closes each
    connection, it loads for each. (To make a client takes longer than a load, so it is made once,
    and priced in neither.)
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
    import ssl

    return lambda: with_http_client(url, context=ssl.create_default_context(cafile=trust))()


def one_context(url, trust):
    import ssl

    return with_http_client(url, context=ssl.create_default_context(cafile=trust))


HTTP_CLIENT = "httplib" if PY2 else "http.client"
#: Of each client: (its module, as the program does it, with the change).
CHANGES = {
    "requests": ("requests", each_requests, kept_requests),
    "niquests": ("niquests", each_niquests, kept_niquests),
    "httpx": clients_of("httpx"),
    "httpx2": clients_of("httpx2"),
    "urllib3": ("urllib3", each_urllib3, kept_urllib3),
    "httplib2": ("httplib2", each_httplib2, kept_httplib2),
    "tornado": ("tornado.httpclient", each_tornado, kept_tornado),
    "botocore": ("botocore.session", botocores, botocores),
    "http.client": (HTTP_CLIENT, each_http_client, one_context),
    "urlopen": ("urllib2" if PY2 else "urllib.request", each_urlopen, kept_urlopen),
    "connection-close": ("requests", closing_requests, kept_requests),
}
#: Of those that await.
AWAITING = {"httpx": awaiting_clients_of("httpx"), "httpx2": awaiting_clients_of("httpx2")}
#: Of all others, whose contexts are those of `ssl`: a context for each connection, and one for all.
CONTEXTS = (HTTP_CLIENT, each_context, one_context)


def try_changes(results, address):
    """Return {client: what the change was seen to save} for each client that repeats its loads; for
    contexts that the program makes itself, under ITS_OWN.

    A value: {"connections", "at_once" (as many as in the run), "now": {"loads", "cpu_ms"}, "then":
    the same, "with" (the client that made them: another where the doctor does not know the
    program's)}. Left out is whatever could not be tried.
    """
    tried, late = {}, any(row["by"] == "truststore" for row in results["provides"])
    for row in results["counts"]["clients"]:
        client = row["client"] or ITS_OWN
        n = min(MOST_AGAIN, row["connections"] or row["loads"])  # none, over plain HTTP
        repeats = row["loads"] - row["needed"] >= 2 and n >= 2
        shared = client in ("requests", "botocore") and is_shared(row, results["counts"])
        keeps = row["kept"] or shared
        is_known = client in CHANGES or [module for module, _ in row["by"]] == ["ssl"]
        spec = {"trust": row["trusts"][0][0] if row["trusts"] else None, "address": address}
        spec.update(late=late, awaits=2 * row["awaits"] > row["loads"])
        spec.update(wanted=min(at_once(row), MOST_AT_ONCE))
        if client == "requests" and row["closed"].get("program", 0) >= 2:
            try_one(tried, dict(spec, client="connection-close", rounds=n, wanted=1))
        if repeats and is_known and not keeps and client not in tried:
            try_one(tried, dict(spec, client=client, rounds=n))
        places = row["wanted"].get("full", 0)
        if repeats and client == "requests" and "full" in wanting(row) and places <= MOST_AGAIN:
            spec = dict(spec, wanted=places, size=row["size"]["full"])
            rounds = max(2, min(MOST_ROUNDS, MOST_AGAIN // places))
            try_one(tried, dict(spec, client="larger-pool", rounds=rounds))
    return tried


def try_one(tried, spec):
    """Add to what was tried what came of one trial, if it came to something."""
    import time

    path = os.path.join(spec["address"]["folder"], "trial")
    with open(path, "w") as file:
        file.write(json.dumps(spec))
    environ, deadline = dict(os.environ, no_proxy="*", NO_PROXY="*"), clock() + TRIED_WITHIN_S
    with open(os.devnull, "w") as nowhere:
        process = begin("--try", path, environ=environ, stdout=nowhere, stderr=nowhere)
    while process.poll() is None and clock() < deadline:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
    if process.wait() == 0:
        with open(path) as file:
            tried[spec["client"]] = json.loads(file.read())


def try_change(path):
    """Run one trial, as its process; return the exit status, 0 if it came to something."""
    with open(path) as file:
        spec = json.loads(file.read())
    events = []
    probes = Probes(events.append).install()
    changes, number = AWAITING if spec["awaits"] else CHANGES, spec["wanted"]
    module, repeating, keeping = changes.get(spec["client"], CONTEXTS)
    kinds, rounds = ("last", "kept"), spec["rounds"]
    if spec["client"] == "larger-pool":
        module, kinds = "requests", ("kept", "kept")
        repeating = lambda url, _: with_places(url, spec["size"])  # noqa: E731
        keeping = lambda url, _: with_places(url, number)  # noqa: E731
    elif number > 1:
        rounds = max(1, min(MOST_ROUNDS, rounds // number))
    trust = bundle(spec["trust"], spec["address"]["folder"])
    if trust is None or not bring(module):
        return 1
    if spec["late"] and bring("truststore"):  # as in the program
        loaded("truststore").inject_into_ssl()
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        os.environ[name] = trust
    answer_s = AT_ONCE_S if number > 1 else 0
    url = "https://%s:%d/%s/last" % (HOST, spec["address"]["https"], answer_s)
    result = {"connections": rounds * number, "at_once": number, "with": spec["client"]}
    if spec["client"] not in CHANGES and module == HTTP_CLIENT:
        result["with"] = "http.client"
    # The first of each is not counted: it brings what is imported late.
    for name, prepare, kind in zip(("", "", "now", "then"), (repeating, keeping) * 2, kinds * 2):
        del events[:]
        started_ms = process_ms()
        if spec["awaits"] and changes is AWAITING and spec["client"] in AWAITING:
            fetch = prepare(url.replace("last", kind), trust, number)
        else:
            fetch = prepare(url.replace("last", kind), trust)
            fetch = in_threads(fetch, number) if number > 1 else fetch
        for _ in range(rounds if name else 1):
            answers = fetch()
            answers = answers if isinstance(answers, list) else [answers]
            if any(json.loads(reply.decode("ascii"))["trial"] != kind for reply in answers):
                return 1
        loads = sum(event["is"] == "load" for event in events)
        result[name] = {"loads": loads, "cpu_ms": round(process_ms() - started_ms, 1)}
    probes.remove()
    del result[""]
    if result["then"]["loads"] >= result["now"]["loads"] and (
        number == 1 or spec["client"] in ("larger-pool", "connection-close")
    ):
        return 1
    with open(path, "w") as file:
        file.write(json.dumps(result))
    return 0


def bundle(trust, folder):
    """Return a file of the certificates that the program loaded, and the doctor's; None if
    unknown.
    """
    if trust == "system":
        import ssl

        paths = ssl.get_default_verify_paths()
        trust = paths.cafile or paths.openssl_cafile
    if not trust or trust.startswith("data ") or not os.path.isfile(trust):
        return None
    path = os.path.join(folder, "bundle.pem")
    with open(trust, "rb") as certificates, open(path, "wb") as file:
        file.write(certificates.read() + b"\n" + CERTIFICATE.encode("ascii"))
    return path
