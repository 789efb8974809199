"""uv and pip, set to trust the authorities that this machine trusts, and to share no file with it.

Every call of uv goes through here, also those of the Makefile:
python -m casebook.stacks.installers uv ... (or pip ...)
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from casebook import places

#: Where Linux systems keep their authorities in one file: Debian, Fedora, openSUSE and their kin.
STORES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
)

#: The variables that tell pip, or the requests in it, whom to trust.
_OF_PIP = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def uv(*arguments: object) -> list[str]:
    """Return a command of uv that uses the system's certificates, as today's pip does.

    SSL_CERT_FILE and SSL_CERT_DIR take precedence, and so does UV_SYSTEM_CERTS. On a Linux without
    a store uv keeps to its built-in authorities; the option would make it fail there.
    """
    from uv import find_uv_bin  # not there yet when the Makefile asks for pip

    has_store = sys.platform == "darwin" or _first(STORES) is not None
    options = ["--system-certs"] if has_store and "UV_SYSTEM_CERTS" not in os.environ else []
    return [find_uv_bin(), *options, *map(str, arguments)]


def environ_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that installers run with.

    These are UV_LINK_MODE, PIP_CERT unless the variables already say whom pip is to trust, and
    UV_CACHE_DIR if uv could not write into its usual one.

    uv would link files from its cache into every environment of the machine. Changing one of them
    in place, as companies do that append their authority to certifi's bundle, would then change it
    in all. A copy is a clone if the file system can do that (uv copies as the system does).

    Before 24.2, pip looks neither at the system's store nor at SSL_CERT_FILE. Such a pip comes
    with many a Python 3.11, and with every 2.7 and 3.7.
    """
    environ = {**environ, "UV_LINK_MODE": "copy"}
    default = Path(environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uv")
    if not environ.get("UV_CACHE_DIR") and not _can_be_written(default):
        environ["UV_CACHE_DIR"] = str(places.LOCAL / "uv-cache")
    trusted = _first([Path(environ.get("SSL_CERT_FILE", "")), *STORES])
    if trusted is None or any(environ.get(name) for name in _OF_PIP):
        return environ
    return {**environ, "PIP_CERT": str(trusted)}


def _can_be_written(folder: Path) -> bool:
    """Return whether files can be made in a folder that may not exist yet."""
    existing = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))
    return existing.is_dir() and os.access(existing, os.W_OK)


def _first(files: Iterable[Path]) -> Path | None:
    return next((path for path in files if path.is_file()), None)


if __name__ == "__main__":
    tool, *arguments = sys.argv[1:]
    pip = [sys.executable, "-m", "pip", *arguments]
    command = pip if tool == "pip" else uv(*arguments)
    os.execve(command[0], command, environ_of(os.environ))
