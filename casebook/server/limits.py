"""How much the lab server can be asked for, and the room it makes for itself."""

import contextlib
import resource
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


def make_room() -> list[str]:
    """Raise this process's limit of open files as far as it goes.

    Returns one sentence for each limit that stays too low for a crowd of `CROWD` connections
    and that only the reader can raise; an empty list when there is room.
    """
    said = []
    files = raise_open_files()
    if files != resource.RLIM_INFINITY and files < CROWD + _OWN_FILES:
        said.append(
            f"at most {max(files - _OWN_FILES, 0)} connections are served at once, further ones "
            f"wait: this process may open only {files} files. Raise the hard limit (ulimit -Hn) "
            "for more."
        )
    allowed = _backlog()
    if allowed < CROWD:
        said.append(
            f"a crowd of more than {allowed} new connections may wait for repeated SYNs: the "
            f"kernel's net.core.somaxconn is {allowed}. Raise it with sysctl for larger crowds."
        )
    return said


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as it goes; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, CROWD + _OWN_FILES):  # macOS reports "unlimited" and allows less
        if soft != hard and (limit == hard or soft < limit):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return limit
    return soft


def _backlog() -> int:
    """How many connections the kernel holds until they are accepted, where it says so."""
    try:
        return int(Path("/proc/sys/net/core/somaxconn").read_text())
    except (OSError, ValueError):
        return BACKLOG
