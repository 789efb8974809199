"""What the book quotes of other people's packages is kept, and says what the packages say."""

import dataclasses

import nbformat
import pytest

from casebook import listings, places, stacks
from casebook.charts import quotes
from casebook.charts.quotes import Quote
from casebook.errors import UsageError
from casebook.findings import media
from casebook.stacks import environments

EXECUTED = sorted((places.BUILD / "executed").glob("*.ipynb"))
KEPT = quotes._store(quotes.FILE)


def test_what_is_kept_names_its_release_and_its_licence() -> None:
    assert len(KEPT["asked"]) > 20
    for release in KEPT["releases"].values():
        assert release["licence"] and release["files"]
    for key in KEPT["asked"]:
        quote = quotes.find(*key.split(" ", 1))
        assert quote and any(line.strip() for line in quote.lines.values()), key


def test_all_that_the_chapters_quoted_is_kept() -> None:
    """`python -m casebook quotes` keeps it.

    A player shows the lines at which its run waited, and another run may wait at others: of these,
    what is kept has to be the same.
    """
    if not EXECUTED:
        pytest.skip("no chapter was executed here")
    notebooks = [nbformat.read(path, as_version=4) for path in EXECUTED]
    now = quotes.gathered(notebooks)
    quoted = {key: place for key, place in now["asked"].items() if not key.endswith(".py")}
    assert quoted and quoted.items() <= KEPT["asked"].items()
    for name, release in now["releases"].items():
        for path, lines in release["files"].items():
            kept = KEPT["releases"].get(name, {"files": {}})["files"].get(path, {})
            assert all(kept.get(number, line) == line for number, line in lines.items()), path


def test_what_is_kept_is_what_the_installed_packages_say() -> None:
    """Of each stack that is ready here; of another release of Python nothing can be said."""
    looked = 0
    for key in KEPT["asked"]:
        stack, asked = key.split(" ", 1)
        if stack not in stacks.load() or environments.status(stacks.get(stack))["state"] != "ready":
            continue
        quote = quotes.find(stack, asked)
        environment = environments.ensure(stacks.get(stack))
        (said,) = listings.files_of(environment, [quote.path]).values()
        if said.release != quote.release and said.release.startswith("Python "):
            continue
        assert (said.release, said.licence) == (quote.release, quote.licence)
        assert quote.lines.items() <= said.lines.items(), key
        looked += 1
    if not looked:
        pytest.skip("no stack that is quoted is ready here")


def test_where_the_packages_are_not_what_is_kept_is_quoted(monkeypatch) -> None:
    key = "stage-2-py27 urllib3.util.wait poll_wait_for_socket"
    stack, module, name = key.split()
    monkeypatch.setattr(environments, "_of_another", frozenset())
    shown = listings.source(stack, module, name)
    quote = quotes.find(*key.split(" ", 1))
    assert shown.text.endswith(quote.place)
    assert shown.text.splitlines()[0] == next(iter(quote.lines.values())).strip()
    assert (shown.first, shown.last) == (min(quote.lines), max(quote.lines))
    assert "Not shown here" in listings.source(stack, module, "nobody").text


def test_other_lines_than_the_packages_are_refused() -> None:
    key = next(iter(KEPT["asked"]))
    quote = quotes.find(*key.split(" ", 1))
    quotes.check(quote)
    first = min(quote.lines)
    with pytest.raises(UsageError, match=f"line {first} of {quote.path}"):
        quotes.check(dataclasses.replace(quote, lines={first: "pass  # else"}))
    quotes.check(Quote("nothing 1.0", "", "nothing.py", {1: "not kept, and not compared"}))


def test_what_was_quoted_is_gathered_by_release_file_and_line() -> None:
    wait = Quote("urllib3 1.0", "MIT", "urllib3/wait.py", {9: "a", 10: "b"})
    other = dataclasses.replace(wait, lines={2: "c"})
    said = [
        quotes.record("one", "urllib3.wait a", wait),
        quotes.record("two", wait.path, other),
    ]
    output = nbformat.v4.new_output("display_data", {media.QUOTES: {"quotes": said}})
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    gathered = quotes.gathered([nbformat.v4.new_notebook(cells=[cell])])
    files = gathered["releases"]["urllib3 1.0"]["files"]
    assert list(files["urllib3/wait.py"].items()) == [("2", "c"), ("9", "a"), ("10", "b")]
    assert gathered["asked"]["one urllib3.wait a"]["lines"] == "9-10"
    assert gathered["asked"]["two urllib3/wait.py"]["lines"] == "2"
