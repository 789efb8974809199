"""The store on Twisted: python twisted_store.py OPTIONS (JSON). Runs on 16.3.0 and on today's.

The server of the article, with an address, a back-log and a delay of its own.
"""

import json
import sys

options = json.loads(sys.argv[1])
if options["lacks"] == "h2":
    sys.modules["h2"] = None  # as if it were not installed: importing it fails

import owner  # noqa: E402
from books import Books, Counters  # noqa: E402
from twisted.internet import endpoints, reactor, ssl  # noqa: E402
from twisted.internet.interfaces import IProtocolFactory  # noqa: E402
from twisted.python import log  # noqa: E402
from twisted.web import server  # noqa: E402
from twisted.web.resource import Resource  # noqa: E402
from zope.interface import classImplementsOnly  # noqa: E402

books = Books(options)
counters = Counters()
held_books = {}  # request -> book, of those that wait until the owner lets them go


class Page(Resource):
    """A resource that counts who asks for it."""

    def render_GET(self, request):
        """Count a request, and answer it."""
        http2 = getattr(request.channel, "_conn", None)
        streams = len(http2.streams) if http2 else 1
        # Not request.client, which 16.3.0 does not know over HTTP/2.
        client = (http2 or request.channel).transport.getPeer()
        counters.request((client.host, client.port), request.clientproto.decode("ascii"), streams)
        request.setHeader(b"content-type", b"application/json")
        return self.answer(request)


class Index(Page):
    """Serve all book ids."""

    def answer(self, _):
        """Return the ids."""
        return books.index()


class Book(Page):
    """Return detailed data about each book."""

    def answer(self, request):
        """Return a book, at once or when its time has come."""
        # No id has other letters than ASCII's; Latin-1 knows what to do with each byte.
        number = books.find([text.decode("latin-1") for text in request.args.get(b"id", [])])
        if number is None:
            request.setResponseCode(404)
            return b""
        wait_s = books.wait_s(number)
        if wait_s is None:
            held_books[request] = number
            request.notifyFinish().addErrback(lambda _: held_books.pop(request, None))
            return server.NOT_DONE_YET
        if not wait_s:
            return books.book(number)
        later = reactor.callLater(wait_s, finish, request, number)
        # The client went away: nobody is left to answer.
        request.notifyFinish().addErrback(lambda _: later.active() and later.cancel())
        return server.NOT_DONE_YET


class Site(server.Site):
    """Offers what the options say, and writes no log of each request."""

    def log(self, request):
        """Write nothing."""
        pass

    def acceptableProtocols(self):
        """Return what is offered in the handshake."""
        if options["http1_only"]:
            return [b"http/1.1"]
        return server.Site.acceptableProtocols(self)


def finish(request, number):
    """Send a book that was waited for."""
    body = books.book(number)
    request.setHeader(b"content-length", str(len(body)).encode("ascii"))
    request.write(body)
    request.finish()


def let_go():
    """Answer what is held, and hold nothing from now on."""
    books.slow = {number: wait_s or 0 for number, wait_s in books.slow.items()}
    while held_books:
        finish(*held_books.popitem())


def complain(event):
    """Write errors to standard error, which the owner keeps, and everything else nowhere."""
    if event.get("isError"):
        sys.stderr.write((log.textFromEventDict(event) or "an error without a text") + "\n")
        sys.stderr.flush()


def listening(port):
    """Tell the owner the port."""
    owner.report(port=port.getHost().port)


def failed(failure):
    """Tell the owner what went wrong, and end."""
    owner.report(error=failure.getErrorMessage())
    reactor.stop()


def main():
    """Listen, with the answers that the options ask for."""
    owner.attend(options["folder"], counters, lambda: reactor.callFromThread(let_go))
    log.startLoggingWithObserver(complain, setStdout=False)
    root = Resource()
    root.putChild(b"", Index())
    root.putChild(b"book", Book())
    site = Site(root)
    if options["lacks"] == "alpn":
        return listen_without_alpn(site)
    files = map(endpoints.quoteStringArgument, (options["key_file"], options["chain_file"]))
    interface = options.get("interface", "127.0.0.1")
    spec = "ssl:port={}:interface={}:backlog={}:privateKey={}:certKey={}".format(
        options["port"], interface, options["backlog"], *files
    )
    endpoint = endpoints.serverFromString(reactor, spec)
    endpoint.listen(site).addCallbacks(listening, failed)


def listen_without_alpn(site):
    """Listen with the context factory of old, of which the article warns.

    16.3.0 negotiates with it all the same, for a site that says it can: this one says so no longer.
    """
    classImplementsOnly(Site, IProtocolFactory)
    context = ssl.DefaultOpenSSLContextFactory(options["key_file"], options["chain_file"])
    listening(reactor.listenSSL(options["port"], site, context, options["backlog"], "127.0.0.1"))


main()
reactor.run()
