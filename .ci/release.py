"""What a release of the book, the cure and the doctor is made of, and whether it can be made.

    python .ci/release.py check [TAG]   do versions, changelogs and the tag, if one is given, agree?
    python .ci/release.py make          gather its files in _build/release, with SHA256SUMS

`make release-check` and `make release` call them, and build first what they gather.
"""

import datetime
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("_build", "release")
ARCHIVE = Path("_build", "slow-https-in-python.zip")
DIST = Path("_build", "dist")
#: Where each product says its version.
PRODUCTS = {
    "requests-shared-context": Path("src", "requests_shared_context", "__init__.py"),
    "tls-doctor": Path("src", "tls_doctor", "basis.py"),
}
BILL = "sbom.cdx.json"


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the versions of the book and of its products, by name."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found = {"the book": project["version"]}
    for name, file in PRODUCTS.items():
        text = (root / "packages" / name / file).read_text()
        match = re.search(r'(?m)^(?:__version__|VERSION) = "([^"]+)"', text)
        found[name] = match[1] if match else ""
    return found


def complaints(root: Path = ROOT, tag: str = "") -> list[str]:
    """Return what keeps a release from being made, a sentence each; none if nothing does."""
    found = []
    numbers = versions(root)
    changelogs = {"the book": root / "CHANGELOG.md"} | {
        name: root / "packages" / name / "CHANGELOG.md" for name in PRODUCTS
    }
    for name, file in changelogs.items():
        headings = re.findall(r"(?m)^## \[?([^\]\s]+)\]?", file.read_text())
        newest = next((heading for heading in headings if heading != "Unreleased"), "nothing")
        if newest != numbers[name]:
            found.append(f"{name} is {numbers[name]}, and its changelog begins with {newest}.")
    if "Unreleased" in re.findall(r"(?m)^## \[?(\w+)", changelogs["the book"].read_text()):
        found.append("CHANGELOG.md has a section Unreleased: name it by its version and day.")
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    if citation["version"] != numbers["the book"]:
        found.append(f"CITATION.cff cites {citation['version']}, not {numbers['the book']}.")
    day = str(citation["date-released"])
    dated = re.search(
        r"(?m)^## \[?[\d.]+\]? - (\d{4}-\d\d-\d\d)$", changelogs["the book"].read_text()
    )
    if not dated or dated[1] != day:
        found.append(
            f"CITATION.cff is of {day}, and CHANGELOG.md of {dated[1] if dated else 'no day'}."
        )
    if day > datetime.date.today().isoformat():
        found.append(f"{day} is still to come.")
    if tag and tag != f"v{numbers['the book']}":
        found.append(
            f"the tag is {tag}, and the book is {numbers['the book']}: v{numbers['the book']}."
        )
    return found


def gather(root: Path = ROOT) -> list[Path]:
    """Copy the files of a release into an empty _build/release, and list their digests there.

    Returns them. Raises FileNotFoundError for one that was not built.
    """
    folder = root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [
        root / ARCHIVE, root / "doctor.py", root / "shared_context.py",
        *sorted((root / DIST).iterdir()), *sorted((root / "data" / "machines").iterdir()),
    ]  # fmt: skip
    files = [Path(shutil.copy(source, folder)) for source in sources]
    files.append(bill_of_materials(root, folder / BILL))
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text("".join(lines))
    return files


def bill_of_materials(root: Path, file: Path) -> Path:
    """Write what the book is made of, in CycloneDX's format, by its locked requirements."""
    uv = [sys.executable, "-m", "casebook.stacks.installers", "uv", "tool", "run"]
    subprocess.run(
        [*uv, "--from", "cyclonedx-bom==7.5.0", "cyclonedx-py", "requirements",
         "--output-format", "JSON", "--output-file", file, root / "requirements.txt"],
        check=True, cwd=root,
    )  # fmt: skip
    return file


def main(arguments: list[str]) -> None:
    """Check or gather, as the first argument says."""
    match arguments:
        case ["check"] | ["check", _]:
            if found := complaints(tag=arguments[1] if len(arguments) == 2 else ""):
                sys.exit("\n".join(found))
            print(", ".join(f"{name} {number}" for name, number in versions().items()))
        case ["make"]:
            for file in gather():
                print(file.relative_to(ROOT))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
