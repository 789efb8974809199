"""Six pages with httplib2."""

import os

import httplib2

SITE = os.environ["SITE"]


def with_a_client_each():
    for _ in range(6):
        httplib2.Http(ca_certs=os.environ["SSL_CERT_FILE"]).request(SITE)


def with_one_client():
    http = httplib2.Http(ca_certs=os.environ["SSL_CERT_FILE"])
    for _ in range(6):
        http.request(SITE)


#: By the names that machine files know them by.
JOBS = {
    "each": with_a_client_each,
    "kept": with_one_client,
}

if __name__ == "__main__":
    JOBS[os.environ["JOB"]]()
