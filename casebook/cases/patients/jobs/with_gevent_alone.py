"""Six pages in greenlets, with what Python itself has."""

import os
import ssl
import urllib.request

if os.environ["JOB"] == "patched":
    from gevent import monkey

    monkey.patch_all()

import gevent

SITE = os.environ["SITE"].replace("/get", "/delay/0.2")
context = ssl.create_default_context()


def fetch():
    assert urllib.request.urlopen(SITE, context=context).status == 200


def in_greenlets():
    gevent.joinall([gevent.spawn(fetch) for page in range(6)], raise_error=True)


patched = unpatched = in_greenlets

if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
