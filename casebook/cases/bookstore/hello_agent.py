import sys

from twisted.internet import defer, ssl, task
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS


async def fetch(reactor, url, authority):
    ca = ssl.Certificate.loadPEM(open(authority).read())
    trust = BrowserLikePolicyForHTTPS(ssl.trustRootFromCertificates([ca]))
    response = await Agent(reactor, trust).request(b"GET", url.encode())
    name, major, minor = response.version
    print(f"{name.decode()}/{major}.{minor}")


task.react(lambda r: defer.ensureDeferred(fetch(r, *sys.argv[1:])))
