"""The stock: what data/books.json has to be for a store, its clients and the chapters."""

import json
from collections import Counter

from casebook.cases.bookstore import stock


def test_three_thousand_books_of_a_sensible_size_one_line_for_each():
    books = stock.books()
    assert len(books) == stock.SIZE == 3_000
    assert stock.FILE.stat().st_size < 600_000
    assert len({book["title"] for book in books.values()}) == 3_000
    assert list(books) == sorted(books, key=int)
    assert all(len(number) == 5 and number.isdigit() for number in books)
    assert int(list(books)[-1]) - int(next(iter(books))) > 3_000  # there are unknown ids between
    lines = stock.FILE.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3_002
    assert json.loads("{" + lines[1].rstrip(",") + "}").keys() <= books.keys()


def test_each_book_has_what_a_shop_would_print():
    for book in stock.books().values():
        assert list(book) == ["title", "author", "rating", "pages", "year"]
        assert 1 <= book["rating"] <= 5 and round(book["rating"], 2) == book["rating"]
        assert 90 <= book["pages"] <= 780
        assert 1931 <= book["year"] <= 2015
        assert not book["title"].startswith(("A A", "A E", "A I", "A O"))


def test_some_authors_write_more_than_others():
    books_of = Counter(book["author"] for book in stock.books().values())
    assert 500 < len(books_of) <= 900
    assert max(books_of.values()) >= 8
    assert any(not name.isascii() for name in books_of)


def test_whoever_changes_a_book_changes_her_own_copy():
    stock.books().popitem()
    assert len(stock.books()) == 3_000
