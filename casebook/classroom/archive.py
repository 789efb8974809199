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
import secrets
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter, SlidesExporter
from nbformat import NotebookNode
from traitlets.config import Config

from casebook import places
from casebook.classroom import grading, solutions, whodunit
from casebook.errors import BookFailed
from casebook.findings import media
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
#: The pages of the book for teachers.
_PAGES = ("instructors.md", "whodunit.md", "lab_*.md")
_TEMPLATES = Path(__file__).with_name("templates")
#: Where the slides of a chapter end: what follows is for readers, but for profiles to look into.
_END = re.compile(r"(?m)^## (Exercises|Sources|All checks)")


def write(into: Path, book: Book) -> Path:
    """Write the archive's folder anew, and into.zip. Returns the path of that file.

    Charts are in the slides of the chapters that were executed here (`make book`). Raises
    BookFailed if reveal.js cannot be had.
    """
    shutil.rmtree(into, ignore_errors=True)
    slides = into / "slides"
    slides.mkdir(parents=True)
    unpack_reveal(slides / "reveal.js", package())
    titles = {}
    for path in book.notebooks():
        notebook = built(book, path)
        titles[path.stem] = _title(notebook)
        text = slides_of(notebook)
        (slides / f"{path.stem}.html").write_text(text, encoding="utf-8")
    images = places.ROOT / "book" / "_static"
    shutil.copytree(images, into / "book" / "_static")
    if (profiles := book.html / "profiles").is_dir():  # what slides show of SnakeViz
        shutil.copytree(profiles, into / "profiles")
    for lab in grading.LABS:
        for subfolder, folder in (("labs", grading.folder(lab)), ("answers", _answers(lab))):
            shutil.copytree(
                folder, into / subfolder / lab, ignore=shutil.ignore_patterns("*.prediction.json")
            )
    pages = [path for name in _PAGES for path in sorted((places.ROOT / "book").glob(name))]
    leads_to = {f"../notebooks/{stem}.ipynb": f"slides/{stem}.html" for stem in titles}
    leads_to |= {path.name: f"{path.stem}.html" for path in pages}
    for path in pages:
        text = read_in_a_browser(path.read_text(encoding="utf-8"), leads_to)
        (into / leads_to[path.name]).write_text(text, encoding="utf-8")
    (into / "answers" / "exercises.html").write_text(exercises(book), encoding="utf-8")
    whodunits(into / "whodunit")
    (into / "index.html").write_text(index(titles), encoding="utf-8")
    return Path(shutil.make_archive(str(into), "zip", into))


def built(book: Book, path: Path) -> NotebookNode:
    """Return a notebook with the outputs of the last build, without what went to standard error.

    If it was not built, it has no outputs: those saved in notebooks/ may be old.
    """
    executed = book.executed / path.name
    notebook = nbformat.read(executed if executed.exists() else path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if executed.exists() and output.get("name") != "stderr"
            ]
    return notebook


def exercises(book: Book) -> str:
    """Return a page with each exercise and its solution, chapter by chapter."""
    parts = []
    for path in book.notebooks():
        notebook = built(book, path)
        solved = {cell.id for cells in solutions.cells_of(notebook) for cell in cells}
        cells = [
            cell
            for cell in notebook.cells
            if cell.id in solved
            or (cell.cell_type == "markdown" and "{exercise" in cell.source)
            or _profiles(cell)
        ]
        for cell in cells:
            if cell.cell_type == "markdown":
                cell.source = _plain(cell.source)
            else:
                cell.outputs = [output for output in cell.outputs if _is_shown(output)]
        if cells:
            title = _numbered(path.stem, _title(notebook))
            notebook.cells = [nbformat.v4.new_markdown_cell(f"# {title}"), *cells]
            parts.append(_basic().from_notebook_node(notebook)[0])
    return _page("Exercises and their solutions", "\n".join(parts))


def read_in_a_browser(text: str, leads_to: Mapping[str, str]) -> str:
    """Return a page of the book, which is Markdown, as a page that stands by itself.

    leads_to: what is in the archive, by the files that the page links to. Other links into the book
    are words only.
    """

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2].partition("#")[0]
        if re.match(r"https?:", match[2]):
            return match[0]
        return f"[{words}]({leads_to[target]})" if target in leads_to else words

    text = re.sub(r"(?ms)^:::\{only\}.*?^:::\n", "", text)  # of the published book
    text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]*)\)", link, text)
    title = text.partition("\n")[0].lstrip("# ")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    return _page(title, _basic().from_notebook_node(notebook)[0])


def _basic() -> HTMLExporter:
    exporter = HTMLExporter(template_name="basic")
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.exclude_anchor_links = True
    return exporter


def _plain(source: str) -> str:
    """Return the text of an exercise or a solution, with its marks as headings."""
    source = re.sub(r"(?m)^[`:]{3,}\{exercise-start\} ?(.*)$", r"### \1", source)
    source = re.sub(r"(?m)^[`:]{3,}\{solution-start\}.*$", "**Solution**\n", source)
    source = re.sub(r"(?m)^[`:]{3,}\{(?:exercise|solution)-end\}$|^:\w+:.*$|^[`:]{3,}$", "", source)
    return re.sub(r"(?<!!)\[([^\]]*)\]\([^)]*\)", r"\1", source)


#: How many cases of a whodunit are ready to hand out.
CASES = 30


def whodunits(into: Path) -> None:
    """Write cases to hand out, drawn by a new secret, and who did it in each."""
    into.mkdir()
    secret = secrets.token_hex()
    (into / "secret").write_text(secret + "\n", encoding="utf-8")
    names = [f"case-{number:02}" for number in range(1, CASES + 1)]
    for name in names:
        whodunit.new(name, into / "class", secret.encode())
    key = (f"{name}  {whodunit.culprit_of(name, secret.encode())}\n" for name in names)
    (into / "culprits.txt").write_text("".join(key), encoding="utf-8")


def index(titles: dict[str, str]) -> str:
    """Return the page that leads to all that is in the archive."""
    slides = "".join(
        f'<li><a href="slides/{stem}.html">{escape(_numbered(stem, title))}</a></li>\n'
        for stem, title in titles.items()
    )
    labs = "".join(
        f'<li>{lab}: <a href="lab_{lab.replace("-", "_")}.html">for the teacher</a>, '
        f'<a href="labs/{lab}/">to hand out</a>, '
        f'<a href="answers/{lab}/right.py">the answer</a></li>\n'
        for lab in grading.LABS
    )
    body = f"""<h1>For the teacher</h1>
<p>Begin with <a href="instructors.html">the instructors' page</a>. The labs' answers and
the key are not on the site.</p>
<h2>Slides</h2>
<p>Up to the exercises. Arrow keys go on; <kbd>S</kbd> opens the speaker's view.</p>
<ul>
{slides}</ul>
<h2>Exercises</h2>
<p><a href="answers/exercises.html">All exercises and their solutions</a></p>
<h2>Labs</h2>
<ul>
{labs}</ul>
<h2>A whodunit</h2>
<p><a href="whodunit.html">How it goes</a>; <a href="whodunit/class/">{CASES} cases to hand out</a>,
one for each student; <a href="whodunit/culprits.txt">who did it</a>. Keep
<a href="whodunit/secret">the secret</a>, with which you mark them.</p>
"""
    return _page("For the teacher", body)


def _title(notebook: NotebookNode) -> str:
    return notebook.cells[0].source.partition("\n")[0].lstrip("# ")


def _numbered(stem: str, title: str) -> str:
    """Return a chapter's title after its number; the pages of the evidence have no number."""
    number = stem.partition("_")[0].lstrip("0")
    return f"{number} {title}" if number.isdigit() else title


def _page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 Georgia, serif; max-width: 50em; margin: 0 auto; padding: 1em; }}
pre {{ overflow-x: auto; background: #f4f4f4; padding: .6em; }}
table {{ border-collapse: collapse; }}
td, th {{ padding: .1em .6em; }}
</style>
{body}
</html>
"""


def _answers(lab: str) -> Path:
    return places.ROOT / "tests" / "classroom" / "answers" / lab


def package() -> bytes:
    """Return reveal.js as npm packs it, with its digest checked."""
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
    """Write the files of the package that slides need."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            if member.isfile() and _OF_REVEAL.match(member.name):
                path = into / member.name.removeprefix("package/")
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content
                path.write_bytes(content.read())


def slides_of(notebook: NotebookNode) -> str:
    """Return a chapter as slides, one for each heading.

    The code is on the slide of the words that lead to it. They end at the exercises, whose
    solutions are in the book; of what follows, a profile still has its slide.
    """
    cells: list[NotebookNode] = []
    is_over = False
    for cell in notebook.cells:
        if cell.cell_type == "code":  # what is kept for other pages is not shown
            cell.outputs = [output for output in cell.outputs if _is_shown(output)]
        if profiles := _profiles(cell):
            cells += map(_frame, profiles)
        elif is_over:
            continue
        elif cell.cell_type == "markdown":
            text, *rest = _END.split(cell.source, maxsplit=1)
            is_over = bool(rest)
            texts = _text_slides(text)
            # What a title or a finding is followed by stands on its slide.
            if texts and cells and _has_room(cells[-1]) and not texts[0].source.startswith("#"):
                texts[0].metadata["slideshow"] = {"slide_type": "-"}
            cells += texts
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
    config = Config()
    config.SlidesExporter.exclude_anchor_links = True
    config.TagRemovePreprocessor.remove_input_tags = {"outputs-alone"}
    config.TagRemovePreprocessor.enabled = True
    exporter = SlidesExporter(
        config=config, extra_template_basedirs=[str(_TEMPLATES)], template_name="casebook",
        reveal_url_prefix="reveal.js", reveal_theme="white", font_awesome_url="",
    )  # fmt: skip
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    text, _ = exporter.from_notebook_node(notebook)
    # The mark of a finding leads to a page of the book, which is not here.
    text = re.sub(r'(<a class="cb-mark") href="[^"]*"', r"\1", text)
    return re.sub(r'<link[^>]*href="(https?:[^"]*)?"[^>]*>', "", text)


def _profiles(cell: NotebookNode) -> list[NotebookNode]:
    """Return the outputs of a cell that are profiles to look into."""
    return [output for output in cell.get("outputs", []) if media.PROFILE in output.get("data", {})]


def _frame(output: NotebookNode) -> NotebookNode:
    """Return a slide for one profile.

    reveal.js loads its page only when the slide is shown, since SnakeViz measures how much room it
    has.
    """
    page = output.data[media.PROFILE]
    frame = nbformat.v4.new_output(
        "display_data",
        data={
            "text/html": f"<p>{escape(page['title'])}</p>"
            f'<iframe data-src="../profiles/{page["name"]}.html" '
            f'title="{escape(page["title"])}" style="width:1540px;height:960px;zoom:.66"></iframe>'
        },
    )
    cell = nbformat.v4.new_code_cell(page["name"], outputs=[frame])
    cell.metadata = NotebookNode(tags=["outputs-alone"], slideshow={"slide_type": "slide"})
    return cell


def _has_room(cell: NotebookNode) -> bool:
    """Check whether a slide that ends with this cell has room for a line or two.

    It has if it is a title alone, or a finding.
    """
    if cell.cell_type == "markdown":
        return cell.source.startswith("#") and "\n" not in cell.source.strip()
    return "evidence" in cell.metadata.get("tags", [])


def _is_shown(output: NotebookNode) -> bool:
    """Check whether an output is for readers: not kept for other pages, no progress, no errors."""
    if output.get("name") == "stderr":
        return False
    return not any(kind.startswith("application/papermill") for kind in output.get("data", {}))


def _text_slides(source: str) -> list[NotebookNode]:
    """Return the slides of a text, one for each heading."""
    slides = []
    for part in re.split(r"(?m)^(?=#+ )", source):
        if not part.strip():
            continue
        text = re.sub(
            r"```\{admonition\} ([^\n]*)\n(?::[^\n]*\n)*(.*?)```",
            lambda match: f"> **{match[1]}**\n>\n> " + match[2].strip().replace("\n", "\n> "),
            part, flags=re.DOTALL,
        )  # fmt: skip
        # Roles and links of the book mean nothing here: their words stay.
        text = re.sub(r"(?<!!)\[([^\]]*)\]\([^)]*\)", r"\1", text)
        text = re.sub(r"\{glue:text\}`[^`]*`", "…", text)
        text = re.sub(r"\{download\}`([^`<]*?) ?(<[^`]*)?`", r"`\1`", text)
        text = re.sub(r"(?ms)^```\{raw\}.*?^```$", "", text)
        cell = nbformat.v4.new_markdown_cell(text)
        cell.metadata["slideshow"] = {"slide_type": "slide"}
        slides.append(cell)
    return slides


if __name__ == "__main__":
    folder = write(places.BUILD / "teacher", Book(places.ROOT))
    message = f"{folder.relative_to(places.ROOT)}: begin with its index.html"
    print(f"{message}. Slides, labs, answers, and a whodunit", file=sys.stderr)
