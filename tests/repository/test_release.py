"""What a release is made of, and what keeps one from being made."""

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from casebook import places

SPEC = importlib.util.spec_from_file_location("release", places.ROOT / ".ci" / "release.py")
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)

BASIS = "packages/tls-doctor/src/tls_doctor/basis.py"
FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that can be released: of it, what says a version."""
    sources = [Path("packages", name, file) for name, file in release.PRODUCTS.items()]
    changelogs = [Path("packages", name, "CHANGELOG.md") for name in release.PRODUCTS]
    for name in (*FILES, *sources, *changelogs):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(places.ROOT / name, tmp_path / name)
    write(tmp_path, "pyproject.toml", '[project]\nname = "casebook"\nversion = "1.0.0"\n')
    write(tmp_path, "CITATION.cff", 'version: "1.0.0"\ndate-released: "2026-11-20"\n')
    write(tmp_path, "CHANGELOG.md", "# Changes\n\n## 1.0.0 - 2026-11-20\n\nAll of it.\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)


def test_the_products_say_one_version_each() -> None:
    """In their sources, and first in their changelogs. The book's is looked at by a release."""
    assert [line for line in release.complaints() if "book" not in line and ".md" not in line] == []
    assert all(number.count(".") == 2 for number in list(release.versions().values())[1:])


def test_what_agrees_can_be_released(root: Path) -> None:
    assert release.complaints(root) == release.complaints(root, "v1.0.0") == []


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("pyproject.toml", "1.0.0", "1.1.0", "the book is 1.1.0, and its changelog begins"),
        ("CITATION.cff", "1.0.0", "0.1", "CITATION.cff cites 0.1, not 1.0.0."),
        ("CITATION.cff", "2026-11-20", "2026-11-21", "and CHANGELOG.md of 2026-11-20."),
        ("CHANGELOG.md", " - 2026-11-20", "", "CHANGELOG.md of no day."),
        ("CHANGELOG.md", "## 1.0.0", "## Unreleased\n\n## 1.0.0", "has a section Unreleased"),
        (BASIS, 'VERSION = "', 'VERSION = "9.', "tls-doctor is 9."),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_named(
    root: Path, name: str, old: str, new: str, sentence: str
) -> None:
    text = (root / name).read_text()
    assert old in text
    write(root, name, text.replace(old, new))
    assert any(sentence in line for line in release.complaints(root))


def test_a_day_to_come_and_another_tag_are_refused(root: Path) -> None:
    for name in ("CITATION.cff", "CHANGELOG.md"):
        write(root, name, (root / name).read_text().replace("2026-11-20", "2999-01-01"))
    assert release.complaints(root) == ["2999-01-01 is still to come."]
    assert (
        release.complaints(root, "1.0.0")[-1] == "the tag is 1.0.0, and the book is 1.0.0: v1.0.0."
    )


def test_its_files_come_with_their_digests(root: Path, monkeypatch) -> None:
    (root / "_build" / "dist").mkdir(parents=True)
    (root / "data" / "machines").mkdir(parents=True)
    names = ("doctor.py", "shared_context.py", release.ARCHIVE, release.DIST / "a-1.whl",
             Path("data", "machines", "m.jsonl.xz"))  # fmt: skip
    for name in names:
        write(root, name, f"{name}")
    monkeypatch.setattr(
        release, "bill_of_materials", lambda root, file: shutil.copy(root / "doctor.py", file)
    )
    (root / release.FOLDER).mkdir()
    write(root, release.FOLDER / "of-yesterday", "")
    files = release.gather(root)
    folder = root / release.FOLDER
    lines = dict(
        reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines()
    )
    assert lines == {Path(f).name: hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in files}
    assert {*lines, "SHA256SUMS"} == {path.name for path in folder.iterdir()}
    assert {Path(name).name for name in names} | {release.BILL} == set(lines)
    (root / "doctor.py").unlink()
    with pytest.raises(FileNotFoundError):
        release.gather(root)


@pytest.mark.slow
def test_the_bill_of_materials_names_each_locked_package(tmp_path: Path) -> None:
    bill = json.loads(release.bill_of_materials(places.ROOT, tmp_path / release.BILL).read_text())
    named = {(part["name"].lower(), part["version"]) for part in bill["components"]}
    lines = (places.ROOT / "requirements.txt").read_text().splitlines()
    pins = {
        tuple(line.partition(" ")[0].lower().split("=="))
        for line in lines
        if "==" in line and not line.startswith(("#", " "))
    }
    assert pins == named and bill["bomFormat"] == "CycloneDX"
