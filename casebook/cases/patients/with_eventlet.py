"""requests in eventlet's greenlets; PATIENT=injected: with pyOpenSSL in urllib3."""

import os
import warnings

warnings.filterwarnings("ignore", module="with_eventlet|__main__|__program__")
import eventlet  # noqa: E402

eventlet.monkey_patch()
import requests  # noqa: E402
from at_once import fetch_all  # noqa: E402

if os.environ.get("PATIENT") == "injected":
    from urllib3.contrib import pyopenssl

    pyopenssl.inject_into_urllib3()


def fetch_pages(urls, ca_file):
    def fetch(url):
        return requests.get(url, verify=ca_file).content

    return list(eventlet.GreenPool(len(urls)).imap(fetch, urls))


if __name__ == "__main__":
    fetch_all(fetch_pages)
