"""A verdict about a package turns with the release that mends it."""

import zipfile
from pathlib import Path

import pytest
from here import environment

from casebook import upstream

TRUSTSTORE = upstream.VERDICTS[0]


def wheel(stack: str, version: str, folder: Path) -> None:
    """The truststore of a stack, as a wheel of another version."""
    python = environment(stack).python
    (package,) = python.parents[1].glob("lib/python*/site-packages/truststore")
    about = f"truststore-{version}.dist-info"
    with zipfile.ZipFile(folder / f"truststore-{version}-py3-none-any.whl", "w") as made:
        for file in package.glob("*.py"):
            text = file.read_text().replace('"0.10.5"', f'"{version}"')
            made.writestr(f"truststore/{file.name}", text)
        made.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: truststore\nVersion: {version}\n"
        )
        made.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{about}/RECORD", "")


@pytest.mark.nightly
def test_a_mended_truststore_in_an_index_turns_the_verdict(tmp_path: Path) -> None:
    index = ["--no-index", "--find-links", str(tmp_path)]
    wheel("truststore-0.10.5-today", "0.10.5", tmp_path)
    before = upstream.ask(TRUSTSTORE, *index)
    assert (before["version"], before["still"]) == ("0.10.5", True)
    assert before["counts"] == "truststore 0.10.5: 1 of 8 handshakes under way at once"
    wheel("truststore-let-go-today", "0.10.6", tmp_path)
    after = upstream.ask(TRUSTSTORE, *index)
    assert (after["version"], after["still"]) == ("0.10.6", False)
    said = upstream.page([(TRUSTSTORE, before), (TRUSTSTORE, after)])
    assert "still true: truststore 0.10.5: 1 of 8" in said
    assert "**no longer true**, since 0.10.6" in said
