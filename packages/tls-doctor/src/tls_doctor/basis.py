"""What all parts use."""

from __future__ import division, print_function

import os
import sys
import time

#: For the doctor's own server on the loopback interface, until 2100. The key is public, as you can
#: see: it protects nothing, and nothing but the doctor ever trusts its certificate.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIICFTCCAbugAwIBAgIUN8fwXb6UWF2K4w6Yyjm3VPGQfBcwCgYIKoZIzj0EAwIw
NzE1MDMGA1UEAwwsZG9jdG9yLnB5IHRlc3QgY2VydGlmaWNhdGUsIHByb3RlY3Rz
IG5vdGhpbmcwIBcNMDAwMTAxMDAwMDAwWhgPMjEwMDAxMDEwMDAwMDBaMDcxNTAz
BgNVBAMMLGRvY3Rvci5weSB0ZXN0IGNlcnRpZmljYXRlLCBwcm90ZWN0cyBub3Ro
aW5nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWSzp8CExFyvIOQe3M11H5wSS
dqYJVbf48wi+Vo+cKKhdGOBC2K3KNxtMivU/qQQJ+Z0s8m8WM9fMB/Hw/ldsWKOB
ojCBnzASBgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIChDAdBgNVHSUE
FjAUBggrBgEFBQcDAQYIKwYBBQUHAwIwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/
AAABMB0GA1UdDgQWBBRt2avFty8F9/cScvPYqxEugHDmlTAfBgNVHSMEGDAWgBRt
2avFty8F9/cScvPYqxEugHDmlTAKBggqhkjOPQQDAgNIADBFAiEAittXGpAu/Doq
T5wJgkiIrGLhWdHg2swKao1Idc7fXu8CIFTzabATy83YtDE3YRm4MZQ9A7J2/lK2
jpo89qkmXUEr
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMuzyXz1vAzbD2YguE20tet9D+lEj1RBxJd87dL1kf9HoAoGCCqGSM49
AwEHoUQDQgAEWSzp8CExFyvIOQe3M11H5wSSdqYJVbf48wi+Vo+cKKhdGOBC2K3K
NxtMivU/qQQJ+Z0s8m8WM9fMB/Hw/ldsWA==
-----END EC PRIVATE KEY-----
"""

PY2 = sys.version_info[0] == 2
#: Python 2.7 finds addresses in certificates only with a package that may not be there.
HOST = "localhost" if PY2 else "127.0.0.1"

#: How long the doctor's server takes for an answer, trial by trial, until the verdict is clear.
DELAYS_S = (0.4, 0.4, 0.8, 1.6)
#: From one heartbeat to the next, when nothing blocks the loop.
BEAT_S = 0.01
#: Two requests that follow each other reach an effective concurrency (n x delay / wall) of at most
#: 1 on any machine, and two at once reach 2; noise only makes it smaller.
AT_ONCE_FROM = 1.5
ONE_BY_ONE_TO = 1.02
#: A heartbeat that misses this part of a delay stood still for the answer.
STOOD_STILL_FROM = 0.9
RAN_ON_TO = 0.5

#: How often a single load is timed.
TURNS = 11
#: After so long, what is only nice to know is left out.
ENOUGH_S = 7.0
MOST_REQUESTS = 20

BLOCKED, FREE, UNPATCHED = "blocked", "free", "not patched"
CANNOT_TELL, DOES_NOT_APPLY = "cannot tell", "does not apply"
VERSION = "1.2.0"

#: Of loads: the same certificates again and again; not so; imports alone cannot tell; and nothing
#: was seen that could load any.
REPEATED, ONCE, UNCOUNTED, UNSEEN = "repeated", "not repeated", "not counted", "nothing seen"
#: Of handshakes; of loads under a running event loop; of contexts that are alive at once.
ONE_AT_A_TIME, NOT_IN_A_ROW = "one at a time", "at once"
HELD_UP = "held up"
ONE_FOR_EACH, FEW = "one for each client", "few"
#: What contexts that the program makes itself are called, where others are told by their client.
ITS_OWN = "the program's own contexts"
#: The exit status that goes with a verdict; with all others, 0.
STATUS = {BLOCKED: 1, REPEATED: 1, CANNOT_TELL: 2, UNSEEN: 2}
STATUS.update({ONE_AT_A_TIME: 1, HELD_UP: 1, ONE_FOR_EACH: 1})
#: This many loads that were not needed are an illness, if they take their share of the CPU.
TOO_MANY_FROM = 2
#: A loop that was kept from others for so long in all was blocked.
LOOP_BLOCKED_FROM_S = 0.1

#: Where the book is that the doctor comes from: as _config.yml has it, when this is built. Empty
#: while it is published nowhere.
ADDRESS = ""

#: Empty where this is read from standard input.
OWN_FILE = globals().get("__file__") or ""
OWN_FILE = OWN_FILE and os.path.abspath(OWN_FILE).replace(".pyc", ".py").replace(".pyo", ".py")

clock = getattr(time, "perf_counter", time.time)
cpu_clock = getattr(time, "thread_time", None) or getattr(time, "process_time", None)
cpu_clock = cpu_clock or getattr(time, "clock", time.time)


#: What `--fail-on` knows: the question whose worst answer it is.
FAILS = {
    "blocked": "event loop", "loads": "certificate loads", "loop-loads": "loads on the loop",
    "handshakes": "handshakes", "contexts": "contexts",
}  # fmt: skip


class Record(object):
    """An object with documented fields.

    FIELDS has of each its name, the function that makes its first value, and what it means. A class
    of records has `__slots__ = Record.names_of(FIELDS)`, so that a name that is not there is an
    error. `as_dict` is for the report, which leaves out those of OPTIONAL that are None.
    """

    __slots__ = ()
    FIELDS = OPTIONAL = ()

    def __init__(self, **values):
        for name, make, _ in self.FIELDS:
            setattr(self, name, values.pop(name) if name in values else make())
        if values:
            raise TypeError("%s has no %s" % (type(self).__name__, ", ".join(sorted(values))))

    @staticmethod
    def names_of(fields):
        """Return the names in a table of fields."""
        return tuple(name for name, _, _ in fields)

    def as_dict(self):
        """Return the fields as a dictionary, and those of the records in them."""
        values = dict((name, plain(getattr(self, name))) for name, _, _ in self.FIELDS)
        for name in self.OPTIONAL:
            if values[name] is None:
                del values[name]
        return values


def plain(value):
    """Return a value of a record's field as what can be written as JSON."""
    if isinstance(value, Record):
        return value.as_dict()
    return [plain(item) for item in value] if isinstance(value, list) else value


def says_close(header, values):
    """Return whether a header asks for the end of its connection."""
    texts = [
        value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values
    ]
    header = header.decode("latin-1") if isinstance(header, bytes) else str(header)
    return header.lower() == "connection" and any("close" in text.lower() for text in texts)


def nothing():
    """Return None: the first value of a field that is not known yet."""
    return None


class DoctorError(Exception):
    """Why the doctor cannot tell; the text says what to do next."""


#: Options that take a number: (kind, default, most); they begin above 0.
NUMBERS = {
    "share": (float, 5.0, 100),
    "seconds": (float, 5.0, 60),
    "patience": (int, None, 86400),
}


#: How long an examination may take if nobody says. A run takes what it takes.
PATIENCE_S = 90


def defaults():
    """Return the options of a command line that names none."""
    options = {"program": None, "arguments": [], "json": False, "url": None, "attach": None}
    options.update(run=False, module=False, python=None, github=False, fail_on=sorted(FAILS))
    options.update(again=False, changes=[])
    return dict(options, **dict((name, default) for name, (_, default, _) in NUMBERS.items()))
