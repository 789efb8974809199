"""Keeps the pages in a bucket that wants to be shown a client certificate."""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.auth.transport import requests as transport

ARCHIVE = "pages of the night"


def certificate():
    """A certificate for this job and its key, PEM. The real one comes from a safe."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nightly")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - day).not_valid_after(now + day).sign(key, hashes.SHA256())
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return made.public_bytes(pem), key.private_bytes(pem, form, plain)


def open_bucket():
    """What the pages are put through; the pages themselves come another way."""
    return transport._MutualTlsAdapter(*certificate())


BUCKET = open_bucket()
