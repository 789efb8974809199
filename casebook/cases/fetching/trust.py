"""What a client trusts: which certificates it is told to load, and which the system offers.

| name | `verify=` | certifi's bundle and the system's default |
|---|---|---|
| authority | a file with the lab's own authority, one certificate | left alone |
| bundle | True | a full bundle: certifi's certificates and the lab's authority |
| path | the path of that full bundle, as with REQUESTS_CA_BUNDLE | the full bundle |
| off | False | the full bundle |
| off-hidden | False | certifi's the full bundle; the system has no default |
"""

from dataclasses import dataclass, field
from pathlib import Path

import certifi

from casebook.errors import UsageError
from casebook.laboratory import measurements
from casebook.mistakes import for_readers
from casebook.stacks import digests

AUTHORITY, BUNDLE, PATH, OFF, OFF_HIDDEN = "authority", "bundle", "path", "off", "off-hidden"
NAMES = (AUTHORITY, BUNDLE, PATH, OFF, OFF_HIDDEN)

_END = "-----END CERTIFICATE-----\n"


@dataclass(frozen=True)
class Trust:
    """One way to trust, as a probe is told of it.

    verify: what requests gets as `verify`. bundle: the file that stands in certifi's place; None:
    certifi's own. variables: further environment variables of the probe.
    """

    verify: bool | str
    bundle: str | None = None
    variables: dict[str, str] = field(default_factory=dict)


def dependency() -> measurements.Using:
    """Return what a measurement depends on if its clients trust what is chosen here."""
    depends_on = [digests.digest(Path(__file__)), *certificates()]
    return measurements.Using("certifi's certificates", depends_on)


def certificates() -> list[str]:
    """Return the certificates of certifi's bundle, each as PEM."""
    text = Path(certifi.where()).read_text()
    return [part[part.index("-----BEGIN") :] + _END for part in text.split(_END)[:-1]]


@for_readers
def full_bundle(authority: str | Path, folder: Path) -> Path:
    """Write a bundle into `folder`: certifi's certificates, then the authority's.

    Returns its path. Raises UsageError if the authority's file or the folder is not there.
    """
    path = Path(folder) / "full-bundle.pem"
    try:
        path.write_text("".join(certificates()) + Path(authority).read_text())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    return path


def of_name(name: str, authority: Path | None, folder: Path) -> Trust:
    """Return the trust of that name, for servers of one authority; write its bundle into `folder`.

    authority: the PEM file of the server's authority; None if there is no TLS, or if the stack
    trusts the server as it is: then only `authority` is possible. Raises UsageError.
    """
    if name not in NAMES:
        raise UsageError(f"there is no trust {name!r}; choose one of: {', '.join(NAMES)}")
    if name == AUTHORITY:
        return Trust(verify=str(authority) if authority else True)
    if authority is None:
        raise UsageError(f"the trust {name!r} needs a server with an authority of its own: https")
    bundle, nowhere = str(full_bundle(authority, folder)), str(Path(folder) / "nothing")
    verify: dict[str, bool | str] = {BUNDLE: True, PATH: bundle, OFF: False, OFF_HIDDEN: False}
    default_bundle = nowhere if name == OFF_HIDDEN else bundle
    return Trust(verify[name], bundle, {"SSL_CERT_FILE": default_bundle, "SSL_CERT_DIR": nowhere})
