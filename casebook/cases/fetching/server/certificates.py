"""Certificates of one run: a certificate authority of its own, and a server certificate."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

#: Names and addresses under which the server can be reached (subjectAltName).
NAMES = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Certificates:
    """Three PEM files: what clients trust, what the server shows, and its private key."""

    ca_file: Path
    chain_file: Path
    key_file: Path


def issue(folder: Path) -> Certificates:
    """Make new certificates and write them into `folder`, which must be private to this user.

    ECDSA (P-256): with RSA keys of 2,048 bits each handshake costs both sides more.
    """
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert(*NAMES, key_type=trustme.KeyType.ECDSA)
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    return _write(folder, authority.cert_pem.bytes(), chain, issued.private_key_pem.bytes())


def make_nameless(folder: Path) -> Certificates:
    """Make one certificate that signed itself, without a subjectAltName; otherwise as `issue`.

    This is what `openssl req -new -x509` makes if it is told localhost for a common name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=365))
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return _write(folder, pem, pem, private)


def _write(folder: Path, authority: bytes, chain: bytes, key: bytes) -> Certificates:
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    files.ca_file.write_bytes(authority)
    files.chain_file.write_bytes(chain)
    files.key_file.write_bytes(key)
    return files
