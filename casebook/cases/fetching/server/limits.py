"""How much the lab server can be asked for, and the room it makes for itself."""

import contextlib
import resource
import sys
from pathlib import Path

#: The longest `/delay/{seconds}`. Both httpbin and go-httpbin stop at ten seconds by default.
MAX_DELAY_S = 10.0

#: Connections that may arrive at once without being refused.
CROWD = 3_000

#: Connections that the kernel may hold until they are accepted; it lowers this to its own limit.
#: With the usual 128 some clients of a crowd lose a second or three to repeated SYNs.
BACKLOG = 8_192

#: Open files of the process that are not clients' connections: generous.
_OWN_FILES = 20


def make_room() -> int | None:
    """Raise this process's limit of open files as far as it goes.

    Returns how many connections that leaves (None: any number).

    Warns, on standard error, of each limit that only the reader can raise and that stays too low
    for a crowd of `CROWD` connections.
    """
    files = raise_open_files()
    if files == resource.RLIM_INFINITY:
        room = None
    else:
        room = max(files - _OWN_FILES, 1)
        if room < CROWD:
            _warn(
                f"at most {room} connections are served at once, further ones wait: this process "
                f"may open only {files} files. Raise the hard limit (ulimit -Hn) for more."
            )
    try:
        backlog = int(Path("/proc/sys/net/core/somaxconn").read_text())
    except (OSError, ValueError):  # a system that does not say so
        backlog = BACKLOG
    if backlog < CROWD:
        _warn(
            f"a crowd of more than {backlog} new connections may wait for repeated SYNs: the "
            f"kernel's net.core.somaxconn is {backlog}. Raise it with sysctl for larger crowds."
        )
    return room


def _warn(sentence: str) -> None:
    print(f"casebook: {sentence}", file=sys.stderr, flush=True)


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as it goes; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, CROWD + _OWN_FILES):  # macOS reports "unlimited" and allows less
        if soft != hard and (limit == hard or soft < limit):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return limit
    return soft
