"""Who is who: the class behind each name that somebody may have replaced, step by step."""

import os
import re
import sys

#: (module, attribute) of the names that patching changes hands of.
NAMES = (
    ("socket", "socket"),
    ("ssl", "SSLContext"),
    ("ssl", "SSLSocket"),
    ("select", "poll"),
    ("urllib3.util.ssl_", "SSLContext"),
    ("urllib3.util.wait", "wait_for_socket"),
    ("OpenSSL.SSL", "Connection"),
)


class Provenance(object):
    """The names as they stand after each step, and the socket that urllib3 connects."""

    def __init__(self):
        self._rows = []
        self._connected = None

    def note_names(self, step):
        """Add a row for each name, as it stands now. Imports nothing."""
        for module, attribute in NAMES:
            # Only what somebody else has imported: looking must not change the order.
            owner = getattr(sys.modules.get(module), attribute, None)
            self._add(step, module + "." + attribute, owner)
        if self._connected:
            self._add(step, "connected socket", self._connected)

    def observe(self, function, *args):
        """Call the function, and look at the socket of the first connection that it makes."""
        from urllib3 import connectionpool

        for pool in (connectionpool.HTTPSConnectionPool, connectionpool.HTTPConnectionPool):
            self._watch(pool.ConnectionCls)
        result = function(*args)
        self.note_names("connected")
        return result

    def rows(self):
        """Return {"step", "name", "class", "module_file"}; a class is None while not imported."""
        return self._rows

    def _watch(self, connection_class):
        connect = connection_class.connect

        def watched(connection):
            connect(connection)
            if self._connected is None:
                self._connected = type(connection.sock)

        connection_class.connect = watched

    def _add(self, step, name, owner):
        row = {"step": step, "name": name, "class": None, "module_file": None}
        if owner is not None:
            row["class"] = "%s.%s" % (owner.__module__, owner.__name__)
            module = sys.modules.get(owner.__module__)
            row["module_file"] = short(getattr(module, "__file__", None))
        self._rows.append(row)


def short(path):
    """Return a file's name as the book shows it: from site-packages or the standard library on.

    Never absolute. Built-in modules have no file: None stays None.
    """
    if path is None:
        return None
    path = path.replace("\\", "/")
    if path.endswith(".pyc"):
        path = path[:-1]
    if not path.startswith("/"):
        return path
    if os.path.dirname(path) == os.path.dirname(os.path.abspath(__file__)):
        return "~probe/" + os.path.basename(path)
    for folder in (r"/(?:site|dist)-packages/", r"/lib(?:64)?/python\d+\.\d+/"):
        parts = re.split(folder, path)
        if len(parts) > 1:
            return parts[-1]
    return os.path.basename(path)


def openssl_versions():
    """Return the OpenSSL of the standard library, and pyOpenSSL's (None: not loaded)."""
    import ssl

    pyopenssl = sys.modules.get("OpenSSL.SSL")
    if pyopenssl is None:
        return ssl.OPENSSL_VERSION, None
    return ssl.OPENSSL_VERSION, pyopenssl.SSLeay_version(pyopenssl.SSLEAY_VERSION).decode("ascii")
