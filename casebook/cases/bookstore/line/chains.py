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
    """Write two files for a server at an address, and return their paths.

    The first has what the server shows, with its key behind it; the second what its clients have to
    trust.
    """
    between = CHAINS[chain]
    chain_file, trusted_file = (
        os.path.join(folder, "store.pem"),
        os.path.join(folder, "trusted.pem"),
    )
    if between is None:
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _sign(address, key, None)
        _write(chain_file, [leaf], key)
        return chain_file, chain_file
    root = _authority("Root", None)
    _write(trusted_file, [root[0]])
    authorities = [root]
    for i in range(between):
        authorities.append(_authority(f"Intermediate {i + 1}", authorities[-1]))
    key = rsa.generate_private_key(65_537, 2048)
    leaf = [_sign(address, key, authorities[-1])]
    _write(chain_file, leaf + [certificate for certificate, _ in reversed(authorities[1:])], key)
    return chain_file, trusted_file


def _authority(name, issuer):
    """Return a certificate that may sign others, and its key; `issuer` signs it, or else itself."""
    key = rsa.generate_private_key(65_537, 2048)
    subject = _name("Bookstore Trust Services", name)
    builder = _builder(subject, key.public_key(), issuer).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    builder = builder.add_extension(_usage(signs=True), critical=True)
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(key_id, critical=False)
    return _finish(builder, key, issuer), key


def _sign(address, key, issuer):
    """Return the server's certificate, signed by an authority or by itself."""
    name = _name("bookstore")
    builder = _builder(name, key.public_key(), issuer)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    builder = builder.add_extension(names, critical=False)
    if issuer:
        filling = x509.UnrecognizedExtension(_FILLING, os.urandom(_PROOFS))
        builder = builder.add_extension(filling, critical=False)
        builder = builder.add_extension(_usage(signs=False), critical=True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return _finish(builder, key, issuer)


def _name(*parts):
    """Return a name of one part, or of an organization and one."""
    kinds = [NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME][-len(parts) :]
    return x509.Name(
        [x509.NameAttribute(*attribute) for attribute in zip(kinds, parts, strict=True)]
    )


def _builder(name, public, issuer):
    """Return a certificate that is not signed yet.

    One below an authority has what such certificates have today.
    """
    today, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    signer = issuer[0].subject if issuer else name
    builder = x509.CertificateBuilder(signer, name, public, x509.random_serial_number())
    builder = builder.not_valid_before(today - day).not_valid_after(today + day)
    if not issuer:
        return builder
    key = issuer[1]
    issuer_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    builder = builder.add_extension(issuer_key_id, critical=False)
    issuer_url = x509.UniformResourceIdentifier("http://trust.bookstore.example/authority.crt")
    access = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, issuer_url)
    builder = builder.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
    lists = x509.UniformResourceIdentifier("http://trust.bookstore.example/revoked.crl")
    point = x509.DistributionPoint([lists], None, None, None)
    builder = builder.add_extension(x509.CRLDistributionPoints([point]), critical=False)
    policy = x509.PolicyInformation(x509.ObjectIdentifier("2.23.140.1.2.1"), None)
    return builder.add_extension(x509.CertificatePolicies([policy]), critical=False)


def _usage(signs):
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    names += ("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    allowed = ("key_cert_sign", "crl_sign") if signs else ("digital_signature", "key_encipherment")
    return x509.KeyUsage(**{name: name in allowed for name in names})


def _finish(builder, key, issuer):
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256())


def _write(path, certificates, key=None):
    """Write certificates, in their order, and the key of the first."""
    pem = serialization.Encoding.PEM
    parts = [certificate.public_bytes(pem) for certificate in certificates]
    if key is not None:
        form, open_ = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        parts.append(key.private_bytes(pem, form, open_))
    with open(path, "wb") as file:
        file.write(b"".join(parts))
