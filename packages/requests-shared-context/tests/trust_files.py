"""Certificates as files: what may be trusted, what servers show, what clients may give."""

import warnings
from pathlib import Path

import OpenSSL.crypto
import trustme
from cryptography.hazmat.primitives import serialization

HOST = "127.0.0.1"
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


def bundles(folder: Path, root: trustme.CA, other: trustme.CA) -> dict[str, str]:
    """The paths of what may be trusted, by its kind."""
    pem = root.cert_pem.bytes()
    # As certifi's: the one certificate that is needed, among others.
    more = [trustme.CA(organization_name=f"no. {n}").cert_pem.bytes() for n in range(3)]
    directory = folder / "directory"
    directory.mkdir()
    certificate = OpenSSL.crypto.load_certificate(OpenSSL.crypto.FILETYPE_PEM, pem)
    for path, content in {
        folder / "file": pem,
        folder / "other": other.cert_pem.bytes(),
        folder / "certifi": b"".join([*more, pem]),
        folder / "corrupt": pem.replace(b"A", b"?"),
        directory / f"{certificate.subject_name_hash():08x}.0": pem,
    }.items():
        path.write_bytes(content)
    names = ("certifi", "file", "other", "corrupt", "directory", "missing")
    return {name: str(folder / name) for name in names}


def servers(folder: Path, root: trustme.CA, other: trustme.CA) -> dict[str, str]:
    """The files of a server's certificate with its key, by who issued it."""
    paths = {}
    for name, issuer in {"root": root, "other": other}.items():
        path = paths[name] = folder / f"server-of-{name}.pem"
        issuer.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(path)
    return {name: str(path) for name, path in paths.items()}


def client_certificates(
    folder: Path, root: trustme.CA, other: trustme.CA
) -> dict[str, str | list[str]]:
    """What clients may give as `cert`, good and bad: a path, or two (certificate, key)."""

    def write(name: str, issuer: trustme.CA) -> str:
        path = folder / f"{name}.pem"
        own = issuer.issue_cert(f"{name}.example", common_name=name)
        own.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    alice, bob = write("alice", root), write("bob", root)
    key = serialization.load_pem_private_key(Path(alice).read_bytes(), None)
    locked = folder / "locked-key"
    secret = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(key.private_bytes(PEM, PKCS8, secret))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # only pyOpenSSL encrypts with nothing
        form = OpenSSL.crypto.FILETYPE_PEM
        pkey = OpenSSL.crypto.load_privatekey(form, Path(alice).read_bytes())
        unlocked = OpenSSL.crypto.dump_privatekey(form, pkey, "aes-128-cbc", b"")
    (folder / "key-locked-with-nothing").write_bytes(unlocked)
    return {
        "alice": alice,
        "bob": bob,
        "alice, in two files": [alice, alice],
        "a stranger": write("stranger", other),
        "bob with alice's key": [bob, alice],
        "alice with a locked key": [alice, str(locked)],
        "a missing key": [alice, str(folder / "missing")],
        "no certificate": str(folder / "file"),
    }
