"""What the tests here share. They need no book: pyproject.toml names what they need."""

import shutil
from pathlib import Path

import pytest
import requests_shared_context
import trustme
from trust_files import bundles, client_certificates, servers


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The certificates in a folder: {"paths", "certs", "servers"}, as the scripts read them."""
    folder = tmp_path_factory.mktemp("certificates")
    root, other = (trustme.CA(organization_name=name) for name in ("the root", "another"))
    return {
        "certs": client_certificates(folder, root, other),
        "paths": bundles(folder, root, other),
        "servers": servers(folder, root, other),
    }


@pytest.fixture(scope="session")
def copy(tmp_path_factory):
    """A folder with nothing but a copy of the module, under the name that a reader gives it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copy(Path(requests_shared_context.__file__), folder / "shared_context.py")
    return folder
