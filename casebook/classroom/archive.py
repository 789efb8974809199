"""The teacher's archive: slides of the chapters, and all answers. It is not on the site.

`make teacher` writes _build/teacher/ and _build/teacher.zip. The slides are nbconvert's, with
reveal.js from npm in one fixed release, whose digest is checked; nothing comes from outside when
they are shown.
"""

import base64
import hashlib
import io
import os
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from traitlets.config import Config

from casebook import places
from casebook.classroom import grading
from casebook.errors import BookFailed
from casebook.pages.contents import Book
from casebook.stacks import commands

REVEAL = "reveal.js@4.6.1"
_REVEAL_SHA512 = (
    "1CW0auaXNPmwmvQ7TwpszwVxMi2Xr5cTS3J3EBC/HHgbPF32Dn7aiu/LKWDOGjMbaDwKQiGmfqcoGQ74HUHCMw=="
)
#: What slides need of it.
_OF_REVEAL = re.compile(
    r"package/(LICENSE|dist/(reset|reveal)\.(css|js)|dist/theme/white\.css|"
    r"dist/theme/fonts/.*|plugin/notes/.*)$"
)
_TEMPLATES = Path(__file__).with_name("templates")
#: Where the slides of a chapter end: what follows is for readers.
_END = re.compile(r"## (Exercises|Sources|All checks)")


def make(into: Path, book: Book) -> Path:
    """Write the archive's folder anew, and into.zip. Its path.

    Charts are in the slides of those chapters that were executed here (`make book`). Raises
    BookFailed where reveal.js cannot be had.
    """
    shutil.rmtree(into, ignore_errors=True)
    slides = into / "slides"
    slides.mkdir(parents=True)
    unpack_reveal(slides / "reveal.js", package())
    for path in book.notebooks():
        executed = book.executed / path.name
        source = executed if executed.exists() else path
        text = slides_of(nbformat.read(source, as_version=4))
        (slides / f"{path.stem}.html").write_text(text, encoding="utf-8")
    images = places.ROOT / "book" / "_static"
    shutil.copytree(images, into / "book" / "_static")
    for lab in grading.LABS:
        for what, folder in (("labs", grading.folder(lab)), ("answers", _answers(lab))):
            shutil.copytree(
                folder, into / what / lab, ignore=shutil.ignore_patterns("*.prediction.json")
            )
    for path in sorted((places.ROOT / "book").glob("lab_*.md")):
        shutil.copy(path, into)
    return Path(shutil.make_archive(str(into), "zip", into))


def _answers(lab: str) -> Path:
    return places.ROOT / "tests" / "classroom" / "answers" / lab


def package() -> bytes:
    """reveal.js, as npm packs it, its digest checked."""
    npm = shutil.which("npm")
    if not npm:
        raise BookFailed("slides need npm, which brings reveal.js, and it is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        commands.output(
            [npm, "pack", REVEAL, "--silent"], "npm", 300, os.environ,
            folder=Path(folder), failed=BookFailed,
        )  # fmt: skip
        (packed,) = Path(folder).glob("*.tgz")
        data = packed.read_bytes()
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != _REVEAL_SHA512:
        raise BookFailed(f"{REVEAL} is not the package that it was: its digest differs")
    return data


def unpack_reveal(into: Path, data: bytes) -> None:
    """Write what slides need of the package."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            if member.isfile() and _OF_REVEAL.match(member.name):
                path = into / member.name.removeprefix("package/")
                path.parent.mkdir(parents=True, exist_ok=True)
                found = tar.extractfile(member)
                assert found
                path.write_bytes(found.read())


def slides_of(notebook: NotebookNode) -> str:
    """A chapter as slides: one for each heading, and code with the words that lead to it; up to
    the exercises, whose solutions are in the book."""
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":  # what is kept for other pages is not shown
            cell.outputs = [each for each in cell.outputs if _is_shown(each)]
        if cell.cell_type == "markdown":
            if _END.match(cell.source):
                break
            told = _told(cell.source)
            # What a title or a finding is followed by stands on its slide.
            if told and cells and _has_room(cells[-1]) and not told[0].source.startswith("#"):
                told[0].metadata["slideshow"] = {"slide_type": "-"}
            cells += told
        elif "hide-input" not in cell.metadata.get("tags", []):
            # Code goes with the words that lead to it.
            leads = bool(cells) and cells[-1].cell_type == "markdown"
            cell.metadata["slideshow"] = {"slide_type": "-" if leads else "slide"}
            cells.append(cell)
        elif cell.outputs:
            cell.metadata.setdefault("tags", []).append("outputs-alone")
            cell.metadata["slideshow"] = {"slide_type": "slide"}
            cells.append(cell)
    notebook.cells = cells
    its = Config()
    its.SlidesExporter.exclude_anchor_links = True
    its.TagRemovePreprocessor.remove_input_tags = {"outputs-alone"}
    its.TagRemovePreprocessor.enabled = True
    exporter = SlidesExporter(
        config=its, extra_template_basedirs=[str(_TEMPLATES)], template_name="casebook",
        reveal_url_prefix="reveal.js", reveal_theme="white", font_awesome_url="",
    )  # fmt: skip
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    text, _ = exporter.from_notebook_node(notebook)
    return re.sub(r'<link[^>]*href="(https?:[^"]*)?"[^>]*>', "", text)


def _has_room(cell: NotebookNode) -> bool:
    """Whether a slide that ends with this has a line or two: a title alone, or a finding."""
    if cell.cell_type == "markdown":
        return cell.source.startswith("#") and "\n" not in cell.source.strip()
    return "evidence" in cell.metadata.get("tags", [])


def _is_shown(output: NotebookNode) -> bool:
    return not any(kind.startswith("application/papermill") for kind in output.get("data", {}))


def _told(source: str) -> list[NotebookNode]:
    """The slides of a text, one for each heading."""
    slides = []
    for part in re.split(r"(?m)^(?=#+ )", source):
        if not part.strip():
            continue
        shown = re.sub(
            r"```\{admonition\} ([^\n]*)\n(?::[^\n]*\n)*(.*?)```",
            lambda found: f"> **{found[1]}**\n>\n> " + found[2].strip().replace("\n", "\n> "),
            part, flags=re.DOTALL,
        )  # fmt: skip
        # Roles and links of the book mean nothing here: their words stay.
        shown = re.sub(r"(?<!!)\[([^\]]*)\]\([^)]*\)", r"\1", shown)
        shown = re.sub(r"\{glue:text\}`[^`]*`", "…", shown)
        cell = nbformat.v4.new_markdown_cell(shown)
        cell.metadata["slideshow"] = {"slide_type": "slide"}
        slides.append(cell)
    return slides


if __name__ == "__main__":
    made = make(places.BUILD / "teacher", Book(places.ROOT))
    print(f"{made.relative_to(places.ROOT)}: slides, labs and answers", file=sys.stderr)
