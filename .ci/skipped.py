"""Count what the tests of a bare machine skipped, by the reason: python .ci/skipped.py tests.xml.

Fails on any reason that is not named here.
"""

import re
import sys
from collections import Counter
from xml.etree import ElementTree

#: What a machine may lack, as the tests say it.
MAY_LACK = (
    r"(h2load|curl|go-httpbin) is not installed",
    r"(actionlint|bash|git|gzip|ps|timeout|curl|cc|valgrind) is not on the PATH",
    r"(go|strace|npm|unshare) is not on the PATH",
    r"no Chromium here",
    r"a stack needs Python (2\.7|3\.7), which is not on the PATH",
    r"no Python (2\.7|3\.7|2\.7 and 3\.7) here|\S+ needs a Python that is not on this machine",
    r"no Python 3\.(8|9|1[0-4]) here",
    r"no pyenv here",
    r"unshare\(1\) cannot|no control group can be made here|this machine does not let one process",
    r"there can be no line between two network namespaces here",
    r"a line here cannot have (cubic|bbr)",
)


def main(report: str) -> int:
    """How many were skipped for what, on standard output; 1 if a reason is not named above."""
    cases = ElementTree.parse(report).iter("testcase")
    skipped = [
        (case.get("name"), re.sub(r"^\S+ (?=needs Python)", "a stack ", found.get("message")))
        for case in cases
        for found in case.iter("skipped")
    ]
    reasons = Counter(reason for _, reason in skipped)
    for reason, count in reasons.most_common():
        print(f"skipped, {count} times: {reason}")
    strange = [reason for reason in reasons if not any(re.match(may, reason) for may in MAY_LACK)]
    for reason in strange:
        names = sorted(name for name, found in skipped if found == reason)
        print(f"not named in .ci/skipped.py: {reason} ({', '.join(names[:5])})", file=sys.stderr)
    print(f"{len(skipped)} tests skipped on a bare machine, for {len(reasons)} reasons")
    return bool(strange or not skipped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
