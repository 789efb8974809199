"""What is done to the interpreter before the fetch: one small function per step.

A step imports or patches, and returns None, or a function that makes a `requests.Session`. Nothing
here is imported before its turn comes: the order is the experiment.
"""

import os
import sys

#: Steps that only make sense with gevent.
GEVENT_STEPS = ("patch_all", "patch_as_grequests", "patch_select", "gevent_openssl")


def trust_bundle(path):
    """Put a file in the place of certifi's bundle; libraries ask for it when they are imported."""
    try:
        import certifi
    except ImportError:
        return  # then nobody asks for it

    certifi.where = certifi.core.where = lambda: path


def take_all(names, is_of_gevent, after_step=lambda name: None):
    """Take each step in turn, and call `after_step` with its name.

    A client without gevent takes `requests` in the place of `grequests`, and none of gevent's.
    """
    if not is_of_gevent and "grequests" in names:
        names = [name for name in names if name not in GEVENT_STEPS]
        names = ["requests" if name == "grequests" else name for name in names]
    for name in names:
        new_session = take(name)
        if new_session:
            make_sessions_with(new_session)
        after_step(name)


def take(name):
    """Take the step of that name; return what makes the sessions that it is about, or None."""
    if name not in STEPS:
        raise ValueError("no step is called %r; there are %s" % (name, ", ".join(sorted(STEPS))))
    return STEPS[name]()


def make_sessions_with(new_session):
    """Make all sessions in this way from now on, also those of `requests.get` and grequests."""
    for name in ("requests", "requests.sessions", "grequests"):
        if name in sys.modules:
            sys.modules[name].Session = new_session


def urllib3():
    import urllib3  # noqa: F401


def requests():
    import requests  # noqa: F401


def grequests():
    import grequests  # noqa: F401


def patch_all():
    from gevent import monkey

    monkey.patch_all()


def patch_as_grequests():
    """Patch what `import grequests` patches before it imports requests."""
    from gevent import monkey

    monkey.patch_all(thread=False, select=False)


def patch_select():
    from gevent import monkey

    monkey.patch_select()


def gevent_openssl():
    import gevent_openssl

    gevent_openssl.monkey_patch()


def inject():
    from urllib3.contrib import pyopenssl

    pyopenssl.inject_into_urllib3()


def extract():
    from urllib3.contrib import pyopenssl

    pyopenssl.extract_from_urllib3()


def google_auth():
    """Import google-auth's module for requests, and make nothing."""
    import google.auth.transport.requests  # noqa: F401


def google_auth_mtls():
    """Make google-auth's adapter for mutual TLS, as a program does for one of its sessions.

    The requests of the probe do not use that adapter: it is its constructor that injects
    pyOpenSSL into urllib3 for everybody (google-auth up to 2.55.1).
    """
    from google.auth.transport.requests import _MutualTlsAdapter

    certificate, key = client_certificate()
    _MutualTlsAdapter(certificate, key)


def x509_adapter():
    """Make sessions with requests-toolbelt's X509Adapter, which brings a PyOpenSSLContext along.

    One session for each request: urllib3 sets up the adapter's one context for every connection,
    and since pyOpenSSL 26.2.0 a context that has made a connection refuses to be changed.
    """
    from requests import Session
    from requests_toolbelt.adapters.x509 import X509Adapter

    certificate, key = client_certificate()

    def new_session():
        session = Session()
        session.mount("https://", X509Adapter(cert_bytes=certificate, pk_bytes=key))
        return session

    return new_session


def shared_context():
    """Install the cure of the second case: the book's own file, as one would copy it."""
    folder = os.path.abspath(__file__)
    for _ in ("steps.py", "probes", "fetching", "cases", "casebook"):
        folder = os.path.dirname(folder)
    sys.path.append(folder)
    try:
        import shared_context
    finally:
        sys.path.remove(folder)
    shared_context.install()


def preload():
    """Load the certificates that verify=True trusts now, into the cure's context."""
    sys.modules["shared_context"].preload()


def init_poolmanager_only():
    """Give the pool manager of each adapter one loaded context, and stop there."""
    import requests
    from requests import adapters, sessions
    from urllib3.util.ssl_ import create_urllib3_context

    context = create_urllib3_context()
    context.load_verify_locations(requests.certs.where())

    class SharingAdapter(adapters.HTTPAdapter):
        def init_poolmanager(self, *args, **kwargs):
            kwargs["ssl_context"] = context
            adapters.HTTPAdapter.init_poolmanager(self, *args, **kwargs)

    sessions.HTTPAdapter = SharingAdapter


def client_certificate():
    """Make a self-signed client certificate and its key, both PEM bytes, on the spot."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.backends import default_backend
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1(), default_backend())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "casebook client")])
    today = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - day)
        .not_valid_after(today + day)
        .sign(key, hashes.SHA256(), default_backend())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    style = serialization.PrivateFormat.TraditionalOpenSSL
    return certificate.public_bytes(pem), key.private_bytes(pem, style, plain)


STEPS = (
    urllib3, requests, grequests, patch_all, patch_as_grequests, patch_select, gevent_openssl,
    inject, extract, google_auth, google_auth_mtls, x509_adapter, shared_context, preload,
    init_poolmanager_only,
)  # fmt: skip
STEPS = {step.__name__: step for step in STEPS}
