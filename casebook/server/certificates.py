"""Certificates of one run: a certificate authority of its own, and a server certificate."""

from dataclasses import dataclass
from pathlib import Path

import trustme

#: Names and addresses under which the server can be reached (subjectAltName).
NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Certificates:
    """Three PEM files: what clients trust, what the server shows, and its private key."""

    ca_file: Path
    chain_file: Path
    key_file: Path


def make(folder: Path) -> Certificates:
    """Make new certificates and write them into `folder`, which must be private to this user.

    ECDSA (P-256): with RSA keys of 2,048 bits each handshake costs both sides more.
    """
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert(*NAMES, key_type=trustme.KeyType.ECDSA)
    certificates = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    authority.cert_pem.write_to_path(certificates.ca_file)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(certificates.chain_file, append=True)
    issued.private_key_pem.write_to_path(certificates.key_file)
    return certificates
