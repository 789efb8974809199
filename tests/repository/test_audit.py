"""What `make audit` says of what pip-audit found."""

import importlib.util
import json

import pytest

from casebook import places

SPEC = importlib.util.spec_from_file_location("audit", places.ROOT / ".ci" / "audit.py")
audit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(audit)

SOUND = {"name": "idna", "version": "3.10", "vulns": []}
ILL = {"name": "h2", "version": "4.1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4.3"]}]}
UNKNOWN = {"name": "tqdm", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "status", "words"),
    [
        ([SOUND, SOUND], 0, "None of 2 packages is known to be vulnerable."),
        ([SOUND, ILL, UNKNOWN], 1, "h2 4.1: PYSEC-1, fixed in 4.3"),
        ([SOUND, UNKNOWN], 2, "Could not be looked up: tqdm."),
        ([UNKNOWN, UNKNOWN], 2, "Nothing was looked up: the list of known vulnerabilities is at"),
    ],
)
def test_what_was_not_looked_up_is_not_called_sound(packages, status, words) -> None:
    code, [line] = audit.judge(json.dumps({"dependencies": packages}), "")
    assert code == status and line.startswith(words)


def test_why_nobody_could_look_is_told() -> None:
    code, [reason, advice] = audit.judge("", "Traceback\nProxyError: refused\n")
    assert code == 2 and reason.endswith("failed: ProxyError: refused")
    assert advice == audit.ELSEWHERE
