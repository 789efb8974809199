import json
import sys

from twisted.internet import endpoints, reactor
from twisted.python import log
from twisted.web import resource, server


class Index(resource.Resource):
    def render_GET(self, request):
        return json.dumps(list(books)).encode()


class Book(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        (number,) = request.args[b"id"]
        book = books.get(number.decode())
        if not book:
            request.setResponseCode(404)
        return json.dumps(book).encode()


with open(sys.argv[3]) as file:
    books = json.load(file)
root = resource.Resource()
root.putChild(b"", Index())
root.putChild(b"book", Book())
key, certificate = map(endpoints.quoteStringArgument, sys.argv[1:3])
address = "ssl:0:interface=127.0.0.1:privateKey={}:certKey={}"
endpoint = endpoints.serverFromString(reactor, address.format(key, certificate))
log.startLogging(sys.stdout)
endpoint.listen(server.Site(root))
reactor.run()
