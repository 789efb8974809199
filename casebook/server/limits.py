"""How much the lab server can be asked for, and the room it makes for itself."""

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


def make_room() -> list[str]:
    """Raise this process's limit of open files as far as it goes.

    Returns one sentence for each limit that stays too low for a crowd of `CROWD` connections
    and that only the reader can raise; an empty list when there is room.
    """
    return _raise_open_files() + _look_at_backlog()


def _raise_open_files() -> list[str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (ValueError, OSError):  # macOS reports "unlimited" and allows less
            wanted = CROWD + _OWN_FILES
            if soft < wanted:
                try:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                    soft = wanted
                except (ValueError, OSError):
                    pass
    if soft == resource.RLIM_INFINITY or soft >= CROWD + _OWN_FILES:
        return []
    return [
        f"at most {max(soft - _OWN_FILES, 0)} connections are served at once, further ones wait: "
        f"this process may open only {soft} files. Raise the hard limit (ulimit -Hn) for more."
    ]


def _look_at_backlog() -> list[str]:
    if not sys.platform.startswith("linux"):
        return []
    try:
        allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    except (OSError, ValueError):
        return []
    if allowed >= CROWD:
        return []
    return [
        f"a crowd of more than {allowed} new connections may wait for repeated SYNs: the kernel's "
        f"net.core.somaxconn is {allowed}. Raise it with sysctl for larger crowds."
    ]
