"""What the doctor's runs are tried on."""

from pathlib import Path

import certifi
import here
import pytest
from doctoring import Counting


@pytest.fixture(scope="module")
def site(tls, tmp_path_factory):
    """A server: (URL, Counting, environment variables, its context, the file of its authority).

    The variables make clients trust it beside all others.
    """
    context, ca_file = tls
    bundle = tmp_path_factory.mktemp("trust") / "bundle.pem"
    bundle.write_bytes(Path(certifi.where()).read_bytes() + b"\n" + ca_file.read_bytes())
    names = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "BUNDLE")
    with here.serving(Counting, context) as url:
        yield url, Counting, dict.fromkeys(names, str(bundle)) | {"SITE": url}, context, ca_file
