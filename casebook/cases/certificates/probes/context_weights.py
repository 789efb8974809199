"""What contexts with certificates weigh: one JSON object in, one out.

In: {"file": a bundle's path, or null for none, "contexts": how many are made and kept, "loads": how
often the bundle is loaded once more into one context}. A stack that has pyOpenSSL makes its
contexts, the others make the standard library's.

Out: {"openssl", "steps": [{"what", "rss_kib", "in_use_kib", "free_kib"}]}: after a first context
was made and freed ("before"), with all contexts ("made"), without them ("freed"), once malloc was
asked to give back what it keeps ("trimmed"), with one context ("one"), after further loads
("again").
rss_kib: the process's resident memory. in_use_kib: what malloc has handed out; free_kib: what it
keeps and nobody uses; both null without glibc 2.33 or newer.
"""

import ctypes
import gc
import os
import ssl

import answering

try:
    from OpenSSL import SSL
except ImportError:
    SSL = None

#: What Python 2.7 has in its place checks nothing until it is told to, and weighs the same.
PROTOCOL = getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_SSLv23)
NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()


class Mallinfo2(ctypes.Structure):
    """What glibc's mallinfo2 returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]


def libc():
    """Return the C library, if it can tell what malloc does; None for another or an old one."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    library.mallinfo2.restype = Mallinfo2
    return library


def make_context(file):
    """Make a context that trusts a bundle."""
    if SSL:
        context = SSL.Context(SSL.TLS_METHOD)
    else:
        context = ssl.SSLContext(PROTOCOL)
    load(context, file)
    return context


def load(context, file):
    """Load the bundle, if there is one, into a context."""
    if file:
        context.load_verify_locations(file)


def rss_kib():
    """Return the process's resident memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Look:
    """Looks at the process's memory, and keeps a row of each step. library: of `libc`."""

    def __init__(self, library):
        self.library, self.steps = library, []

    def __call__(self, step):
        """Add the row of a step."""
        gc.collect()
        row = {"what": step, "rss_kib": rss_kib(), "in_use_kib": None, "free_kib": None}
        if self.library:
            info = self.library.mallinfo2()
            row["in_use_kib"] = (info.uordblks + info.hblkhd) / 1024
            row["free_kib"] = info.fordblks / 1024
        self.steps.append(row)


def run(spec):
    """Make and free contexts, and return the memory at each step."""
    library = libc()
    record = Look(library)
    make_context(spec["file"])
    record("before")
    contexts = [make_context(spec["file"]) for _ in range(spec["contexts"])]
    record("made")
    del contexts
    record("freed")
    if library:
        library.malloc_trim(0)
    record("trimmed")
    context = make_context(spec["file"])
    record("one")
    for _ in range(spec["loads"]):
        load(context, spec["file"])
    record("again")
    return {"openssl": openssl(), "steps": record.steps}


def openssl():
    """Return the version of the OpenSSL that makes the contexts."""
    if not SSL:
        return ssl.OPENSSL_VERSION
    version = SSL.SSLeay_version(SSL.SSLEAY_VERSION)
    return version.decode()


if __name__ == "__main__":
    answering.answer(run)
