"""What the imports left behind."""

from __future__ import division, print_function

import os
import sys

from .wording import readable

#: What a report names the provider of: (what, module, attribute).
PROVIDED = (
    ("socket.socket", "socket", "socket"),
    ("ssl.SSLContext", "ssl", "SSLContext"),
    ("urllib3's SSLContext", "urllib3.util.ssl_", "SSLContext"),
    ("select.poll", "select", "poll"),
    ("pyOpenSSL's Connection", "OpenSSL.SSL", "Connection"),
)

#: Folders that were looked into -> what was installed there (`installed_in`).
INSTALLED = {}


def provides():
    """Return rows of {name, by, class}: who made what programs use for TLS."""
    rows = []
    for name, module, attribute in PROVIDED:
        if loaded(module):
            member = getattr(loaded(module), attribute, None)
            maker = "nobody: it is gone" if member is None else provider(member)
            rows.append({"name": name, "by": maker, "class": member and readable(member)})
    return rows


def provider(value):
    """Return who made a class or function.

    gevent, eventlet, pyOpenSSL, the standard library, or a module.
    """
    module = str(getattr(value, "__module__", "") or "")
    first = module.split(".")[0]
    if "contrib.pyopenssl" in module or first == "OpenSSL":
        return "pyOpenSSL"
    if first in ("ssl", "_ssl", "socket", "_socket", "select"):
        return "the standard library"
    return first or "unknown"


#: A module that is there already, or None. (A None in sys.modules forbids its import.)
loaded = sys.modules.get


def try_import(module):
    """Import a library that the program has not; whether it is there."""
    try:
        __import__(module)
        return True
    except Exception:
        return False


def urllib3_module(name):
    """Return a module of urllib3, or of the copy in an old requests; None if not imported."""
    return loaded("urllib3." + name) or loaded("requests.packages.urllib3." + name)


def injected():
    """Return whether urllib3 makes its contexts with pyOpenSSL for everybody."""
    context = getattr(urllib3_module("util.ssl_"), "SSLContext", None)
    return str(getattr(context, "__module__", "")).endswith("contrib.pyopenssl")


def own_context(ssl):
    """Return the SSLContext that ssl itself makes.

    gevent's and truststore's, which may stand in its place (a .pth file injects truststore into
    every process), are made of it.
    """
    return [base for base in ssl.SSLContext.__mro__ if base.__module__ == "ssl"][-1]


def openssl():
    """Return the versions of OpenSSL: {"ssl", "pyOpenSSL", "loads"}."""
    import ssl

    versions = {"ssl": ssl.OPENSSL_VERSION, "pyOpenSSL": None}
    pyopenssl = loaded("OpenSSL.SSL")
    if pyopenssl:
        version = getattr(pyopenssl, "OpenSSL_version", None) or pyopenssl.SSLeay_version
        versions["pyOpenSSL"] = version(0).decode("ascii")  # 0: SSLEAY_VERSION
    versions["loads"] = versions["pyOpenSSL"] if injected() else versions["ssl"]
    return versions


def is_library(path):
    """Return whether a file is of the standard library or was installed."""
    library = os.path.dirname(os.path.abspath(os.__file__))
    return path.startswith(library) or is_package(path)


def is_package(path):
    """Return whether a file was installed.

    Into site-packages, or elsewhere (pip install --target) with what an installer leaves beside
    its package.
    """
    if "site-packages" in path or "dist-packages" in path:
        return True
    folder, name = os.path.split(os.path.splitext(path)[0])
    while name:
        if name.lower() in installed_in(folder):
            return True
        folder, name = os.path.split(folder)
    return False


def installed_in(folder):
    """Return the packages and modules that were installed into a folder, in small letters."""
    if folder not in INSTALLED:
        packages = set()
        for name in folders_in(folder):
            if name.endswith(".dist-info"):
                packages.add(name.partition("-")[0].lower())
                packages.update(top_level(os.path.join(folder, name)))
        INSTALLED[folder] = packages
    return INSTALLED[folder]


def folders_in(folder):
    """Return the names in a folder; none if it cannot be read."""
    try:
        return os.listdir(folder or ".")
    except (OSError, UnicodeError):  # such as one in an archive
        return []


def top_level(folder):
    """Return what a package says is imported of it (google-auth: google), in small letters."""
    try:
        with open(os.path.join(folder, "top_level.txt")) as file:
            return file.read().lower().split()
    except (IOError, OSError, UnicodeError):
        return []


def is_installed(package):
    """Return whether a package can be imported."""
    return any(os.path.isdir(os.path.join(folder or ".", package)) for folder in sys.path)
