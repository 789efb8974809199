"""Load a bundle once, in a process of its own beside one that does not: for a tool that counts.

    valgrind ... python instructions.py PACKAGES BUNDLE

PACKAGES: the folder with the stack's cryptography package, whose OpenSSL loads; nothing else is
imported from it, because imports are slow under such a tool. Prints
one JSON object: openssl (as it names itself), and the processes in which no certificate was loaded
(idle) and in which the bundle was loaded (loading). What the second counts beyond the first is one
load.
"""

import os
import sys


def load(lib, null, bundle):
    """Make a context, load the bundle into it, and free it."""
    context = lib.SSL_CTX_new(lib.TLS_method())
    if lib.SSL_CTX_load_verify_locations(context, bundle, null) != 1:
        raise RuntimeError("no certificate was loaded from the bundle")
    lib.SSL_CTX_free(context)


def child(work):
    """Do something in a process of its own, and return its number."""
    number = os.fork()
    if not number:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(number, 0)[1]:
        raise RuntimeError("a process that was to be counted ended with an error")
    return number


def main():
    """Load the bundle as often as is asked, and nothing else."""
    packages, bundle = sys.argv[1], sys.argv[2].encode()
    sys.path.insert(0, packages)
    from _cffi_backend import FFI

    try:
        from cryptography.hazmat.bindings._openssl import lib
    except ImportError:  # since cryptography 40
        from cryptography.hazmat.bindings._rust import _openssl

        lib = _openssl.lib
    ffi = FFI()
    load(lib, ffi.NULL, bundle)  # the first load of a process also prepares OpenSSL
    idle = child(lambda: None)
    loading = child(lambda: load(lib, ffi.NULL, bundle))
    openssl = ffi.string(lib.OpenSSL_version(lib.OPENSSL_VERSION)).decode()
    print('{"openssl": "%s", "idle": %d, "loading": %d}' % (openssl, idle, loading))


if __name__ == "__main__":
    main()
