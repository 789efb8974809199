"""The rules of each kind of output, out of style.css, which has a section for each."""

import re
from functools import cache
from pathlib import Path

from casebook import colours

FILE = Path(__file__).with_name("style.css")


@cache
def rules(section: str) -> str:
    """The rules of one section, in one line."""
    sections = re.split(r"/\* (\w+) \*/", FILE.read_text(encoding="utf-8"))
    named = dict(zip(sections[1::2], sections[2::2], strict=True))
    return named[section].replace("\n", "")


def style(*sections: str) -> str:
    """A <style> element for one piece of output, with the variables of the page's theme."""
    return colours.style("".join(map(rules, filter(None, sections))))
