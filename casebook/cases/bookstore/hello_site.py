import sys

from twisted.internet import endpoints, reactor
from twisted.python import log
from twisted.web import resource, server


class Hello(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        return b"Hello!"


key, certificate = map(endpoints.quoteStringArgument, sys.argv[1:3])
address = "ssl:0:interface=127.0.0.1:privateKey={}:certKey={}"
endpoint = endpoints.serverFromString(reactor, address.format(key, certificate))
log.startLogging(sys.stdout)
endpoint.listen(server.Site(Hello()))
reactor.run()
