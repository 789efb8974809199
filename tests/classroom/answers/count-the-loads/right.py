import os
import ssl
import threading

import requests
from requests.adapters import HTTPAdapter

PREDICTION = 1
LOADS_GO_WITH = "connections"
BECAUSE = ["B", "C"]

contexts, lock = {}, threading.Lock()


def context_for(verify, cert):
    bundle = requests.certs.where() if verify is True else verify
    key = [bundle, cert]
    if bundle:
        looked = os.stat(bundle)
        key += [looked.st_ino, looked.st_size, looked.st_mtime_ns]
    with lock:
        if tuple(key) not in contexts:
            contexts[tuple(key)] = made(bundle, cert)
        return contexts[tuple(key)]


def made(bundle, cert):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if bundle:
        context.load_verify_locations(bundle)
    else:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if cert:
        context.load_cert_chain(cert)
    return context


class Sharing(HTTPAdapter):
    def __init__(self, context):
        self.context = context
        super().__init__()

    def build_connection_pool_key_attributes(self, request, verify, cert=None):
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        needed = "CERT_REQUIRED" if verify else "CERT_NONE"
        return host, {"ssl_context": self.context, "cert_reqs": needed}

    def cert_verify(self, *_):
        pass


def get(url, verify=True, cert=None, timeout=30):
    with requests.Session() as session:
        session.mount("https://", Sharing(context_for(verify, cert)))
        return session.get(url, verify=verify, timeout=timeout)
