"""Counts, and says with which OpenSSL."""

import ssl

from OpenSSL import SSL

COUNTS = {"pages": 0}
VERSIONS = ssl.OPENSSL_VERSION, SSL.OpenSSL_version(SSL.OPENSSL_VERSION)
