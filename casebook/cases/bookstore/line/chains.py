"""Certificates for the far end of a line: one that signed itself, or a chain as servers show it.

Standard library and cryptography.
"""

import datetime
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

#: Chains by name: whether the keys are RSA's, and how many authorities stand between the server's
#: certificate and the one that is trusted. SELF is a certificate of an elliptic curve, alone.
SELF = "one ECDSA certificate"
CHAINS = {SELF: None, "RSA, one intermediate": 1, "RSA, two intermediates": 2}

#: A public certificate of today also has two proofs that it was logged (RFC 6962), in some 240
#: bytes. Ours was not, and has as many bytes in an extension that means nothing.
_FILLING, _PROOFS = x509.ObjectIdentifier("2.25.1"), 242


def certify(folder, address, chain=SELF):
    """Two files for a server at an address: what it shows, with its key behind it, and what its
    clients have to trust."""
    between = CHAINS[chain]
    shown, trusted = os.path.join(folder, "store.pem"), os.path.join(folder, "trusted.pem")
    if between is None:
        key = ec.generate_private_key(ec.SECP256R1())
        made = _sign(address, key, None)
        _write(shown, [made], key)
        return shown, shown
    above = _authority("Root", None)
    _write(trusted, [above[0]])
    authorities = [above]
    for i in range(between):
        authorities.append(_authority(f"Intermediate {i + 1}", authorities[-1]))
    key = rsa.generate_private_key(65_537, 2048)
    made = [_sign(address, key, authorities[-1])]
    _write(shown, made + [each for each, _ in reversed(authorities[1:])], key)
    return shown, trusted


def _authority(name, above):
    """A certificate that may sign others, and its key; `above` signs it, or else itself."""
    key = rsa.generate_private_key(65_537, 2048)
    called = _name("Bookstore Trust Services", name)
    made = _builder(called, key.public_key(), above).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    made = made.add_extension(_usage(signs=True), critical=True)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    made = made.add_extension(own, critical=False)
    return _finish(made, key, above), key


def _sign(address, key, above):
    """The server's certificate: by an authority, or by itself."""
    name = _name("bookstore")
    made = _builder(name, key.public_key(), above)
    named = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    made = made.add_extension(named, critical=False)
    if above:
        filling = x509.UnrecognizedExtension(_FILLING, os.urandom(_PROOFS))
        made = made.add_extension(filling, critical=False)
        made = made.add_extension(_usage(signs=False), critical=True)
        made = made.add_extension(
            x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return _finish(made, key, above)


def _name(*parts):
    """A name of one part, or of an organization and one."""
    kinds = [NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME][-len(parts) :]
    return x509.Name([x509.NameAttribute(*each) for each in zip(kinds, parts, strict=True)])


def _builder(name, public, above):
    """A certificate that is not signed yet; one below an authority has what such have today."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    signer = above[0].subject if above else name
    made = x509.CertificateBuilder(signer, name, public, x509.random_serial_number())
    made = made.not_valid_before(now - day).not_valid_after(now + day)
    if not above:
        return made
    key = above[1]
    its = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    made = made.add_extension(its, critical=False)
    where = x509.UniformResourceIdentifier("http://trust.bookstore.example/authority.crt")
    access = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, where)
    made = made.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
    lists = x509.UniformResourceIdentifier("http://trust.bookstore.example/revoked.crl")
    point = x509.DistributionPoint([lists], None, None, None)
    made = made.add_extension(x509.CRLDistributionPoints([point]), critical=False)
    policy = x509.PolicyInformation(x509.ObjectIdentifier("2.23.140.1.2.1"), None)
    return made.add_extension(x509.CertificatePolicies([policy]), critical=False)


def _usage(signs):
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    names += ("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    allowed = ("key_cert_sign", "crl_sign") if signs else ("digital_signature", "key_encipherment")
    return x509.KeyUsage(**{name: name in allowed for name in names})


def _finish(made, key, above):
    return made.sign(above[1] if above else key, hashes.SHA256())


def _write(path, certificates, key=None):
    """Certificates, in their order, and the key of the first."""
    pem = serialization.Encoding.PEM
    parts = [each.public_bytes(pem) for each in certificates]
    if key is not None:
        form, open_ = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        parts.append(key.private_bytes(pem, form, open_))
    with open(path, "wb") as file:
        file.write(b"".join(parts))
