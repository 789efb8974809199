"""Look up what is locked in the index's list of known vulnerabilities: `make audit` calls it.

Exits with 1 if a package is known to be vulnerable, and with 2 if one could not be looked up.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "env/test.lock")
COMMAND = [
    sys.executable, "-m", "casebook.stacks.installers", "uv", "tool", "run", "pip-audit==2.10.1",
    "--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json",
]  # fmt: skip
ELSEWHERE = "Run `make audit` on a machine that reaches pypi.org; the nightly workflow does."


def judge(answer: str, errors: str) -> tuple[int, list[str]]:
    """Return the exit status and what to say, from what pip-audit printed.

    It finds "no known vulnerabilities" in packages that it could not look up, too.
    """
    try:
        packages = json.loads(answer)["dependencies"]
    except ValueError:
        reason = (errors.strip().splitlines() or ["it said nothing"])[-1]
        return 2, [f"Nothing was looked up, since pip-audit failed: {reason}", ELSEWHERE]
    vulnerable = [package for package in packages if package.get("vulns")]
    if vulnerable:
        return 1, [
            f"{package['name']} {package['version']}: {flaw['id']}, "
            f"fixed in {', '.join(flaw['fix_versions']) or 'no release'}"
            for package in vulnerable
            for flaw in package["vulns"]
        ]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return 2, [
            "Nothing was looked up: the list of known vulnerabilities is at pypi.org, which a "
            f"mirror does not pass on. {ELSEWHERE}"
        ]
    if unknown:
        return 2, [f"Could not be looked up: {', '.join(unknown)}."]
    return 0, [f"None of {len(packages)} packages is known to be vulnerable."]


def main() -> int:
    """Ask pip-audit about all locks, and return the exit status."""
    locks = [option for lock in LOCKS for option in ("-r", lock)]
    process = subprocess.run([*COMMAND, *locks], capture_output=True, text=True, cwd=ROOT)
    status, lines = judge(process.stdout, process.stderr)
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
