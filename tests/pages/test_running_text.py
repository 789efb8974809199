"""What of a page concerns no other page."""

from pathlib import Path

import pytest

from casebook.pages import last_build
from casebook.pages.contents import Book
from casebook.pages.last_build import Stamp
from casebook.pages.running_text import rest

PAGE = """# A title

(label)=
It is a sentence,
which goes on.

```{exercise}
Count them.
```

| a | b |
|---|---|

See [the locks](#claim-locks "otherwise: Here
it is not.") and {ref}`label`, `code` and <b>bold</b>.

:::{note}
Nothing `{ref}`
:::
- an item
"""


def test_the_rest_is_what_may_show_elsewhere() -> None:
    assert rest(PAGE) == [
        "# A title", "(label)=", "```{exercise}", "Count them.", "```", "| a | b |", "|---|---|",
        ":::{note}", "Nothing `{ref}`", ":::",
        '](#claim-locks "otherwise: Here\nit is not.")', "{ref}`label`", "<b>", "</b>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "old, new",
    [
        ("It is a sentence", "It was a sentence"),
        ("`code`", "`other`"),
        ("- an item", "- two items"),
        ("See [the locks]", "See [the lock]"),
    ],
)
def test_running_text_is_none_of_it(old: str, new: str) -> None:
    assert PAGE.count(old) == 1
    assert rest(PAGE.replace(old, new)) == rest(PAGE)


@pytest.mark.parametrize(
    "old, new",
    [
        ("# A title", "# Another title"),
        ("(label)=", "(other)="),
        ("Count them.", "Count the sheep."),
        ("| a |", "| c |"),
        ("#claim-locks", "#claim-keys"),
        ("it is not.", "it is less."),
        ("{ref}`label`,", "{ref}`other`,"),
        ("<b>", '<b id="x">'),
        ("- an item", "- an item\n\n[^note]: It is so."),
        ("- an item", "- an item[^note]"),
        ("- an item", "- {{ start }}"),
    ],
)
def test_what_may_show_elsewhere_is(old: str, new: str) -> None:
    assert PAGE.count(old) == 1
    assert rest(PAGE.replace(old, new)) != rest(PAGE)


def test_a_longer_fence_ends_with_as_long_a_one() -> None:
    assert rest("````{note}\n```\nin it\n```\n````\nbehind it") == [
        "````{note}", "```", "in it", "```", "````",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "0123abcd", "[]", '{"rest": "x"}', '{"stamp": "x", "summary": ""}',
        '{"stamp": {"rest": "x"}, "summary": ""}',
        '{"stamp": {"rest": "", "pages": {}, "made": ""}}',
        None,
    ],
)  # fmt: skip
def test_a_record_of_another_kind_is_none(tmp_path: Path, text: str | None) -> None:
    book = Book(tmp_path)
    book.build.mkdir()
    if text is not None:
        (book.build / "last_build.json").write_text(text)
    assert last_build.read(book) is None


def test_a_page_has_changed_alone_only_if_all_else_is_the_same() -> None:
    former = Stamp("rest", {"one": "a", "two": "b"}, "made")
    assert Stamp("rest", {"one": "a", "two": "b"}, "made").changed_pages(former) == []
    assert Stamp("rest", {"one": "a", "two": "c"}, "made").changed_pages(former) == ["two"]
    assert Stamp("other", {"one": "a", "two": "c"}, "made").changed_pages(former) is None
    assert Stamp("rest", {"one": "a", "two": "c"}, "other").changed_pages(former) is None
    assert Stamp("rest", {"two": "b", "one": "a"}, "made").changed_pages(former) is None
