"""Six pages with httplib2."""

import os

import httplib2

SITE = os.environ["SITE"]


def each():
    for _ in range(6):
        httplib2.Http(ca_certs=os.environ["SSL_CERT_FILE"]).request(SITE)


def kept():
    http = httplib2.Http(ca_certs=os.environ["SSL_CERT_FILE"])
    for _ in range(6):
        http.request(SITE)


if __name__ == "__main__":
    globals()[os.environ["JOB"]]()
