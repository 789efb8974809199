"""h2load, nghttp2's load generator, as a client.

It verifies no certificate and looks at no body: of each response only the status is known, and
the server's counters have to tell how many connections there were.
Source: https://nghttp2.org/documentation/h2load-howto.html
"""

import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from casebook.errors import RunFailed
from casebook.server import limits

NAME = "h2load"
_LOOKED_AT_EVERY_S = 0.02


def version() -> str:
    """Such as "1.52.0", of "h2load nghttp2/1.52.0"."""
    said = subprocess.run([NAME, "--version"], capture_output=True, text=True, timeout=60)
    return said.stdout.split("/")[-1].strip()


def fetch(url: str, n: int, within_s: float) -> dict:
    """GET `url` n times over HTTP/1.1, each over a connection of its own, all at once.

    Returns an answer in the shape of the probes' (runs.from_answer). wall_s has two decimals
    from a second on. Raises RunFailed unless all of the responses are 200, or as `run`.
    """
    found = run(["--h1", "-t", "1", "-n", str(n), "-c", str(n), url], within_s)
    if found["good"] != n:
        raise RunFailed(f"h2load: {found['good']} succeeded of {n}. Nothing was recorded.")
    return found | {
        "python": "",
        "openssl": None,
        "versions": {NAME: version()},
        "failure": None,
        "responses": [{"page": page, "status": 200, "got_page": page} for page in range(n)],
        "counters": {},
        "process_cpu_s": round(found["user_s"] + found["sys_s"], 6),
    }


def run(arguments: list[str], within_s: float) -> dict:
    """What h2load says: "wall_s", "good" (whole responses with a status of 200 to 299),
    "protocol", "body_bytes" (of all bodies); and what it used: "user_s", "sys_s", "peak_rss_kib".

    Raises RunFailed when it does not end in `within_s` seconds, or without a result.
    """
    said, used, peak_kib = _watched([NAME, *arguments], within_s)
    finished = re.search(r"^finished in ([\d.]+)(us|ms|s)\b", said, re.MULTILINE)
    if not finished:
        last = said.strip().splitlines()[-1:] or ["it said nothing"]
        raise RunFailed(f"{NAME}: no result ({last[0]}). Nothing was recorded.")
    good = (r"^status codes: (\d+) 2xx", r"^requests: .* (\d+) succeeded")
    return {
        "wall_s": float(finished[1]) / {"us": 1e6, "ms": 1e3, "s": 1.0}[finished[2]],
        "good": min(int(_found(pattern, said) or 0) for pattern in good),
        "protocol": _found(r"^Application protocol: (\S+)", said) or "no protocol at all",
        "body_bytes": int(_found(r"\((\d+)\) data$", said) or 0),
        "user_s": used.ru_utime,
        "sys_s": used.ru_stime,
        "peak_rss_kib": peak_kib,
    }


def _found(pattern: str, said: str) -> str | None:
    found = re.search(pattern, said, re.MULTILINE)
    return found[1] if found else None


def _watched(command: list, within_s: float) -> tuple[str, resource.struct_rusage, int | None]:
    """A program's output, the CPU that it used, and the most memory it was seen to hold (KiB)."""
    deadline, peak_kib = time.monotonic() + within_s, None
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            preexec_fn=limits.raise_open_files,
        )
        try:
            # wait4 gives the CPU of this one program, which subprocess does not.
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak_kib = _high_water_kib(process.pid) or peak_kib
                if time.monotonic() > deadline:
                    raise RunFailed(f"{NAME}: no end within {within_s:.0f} s. Try again.")
                time.sleep(_LOOKED_AT_EVERY_S)
            process.returncode = os.waitstatus_to_exitcode(ended[1])
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        said.seek(0)
        return said.read(), ended[2], peak_kib


def _high_water_kib(pid: int) -> int | None:
    try:
        return int(_found(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text()) or 0) or None
    except OSError:
        return None
