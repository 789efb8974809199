"""What is printed is what is measured, and what is quoted stands in the installed package."""

import html
import importlib.util
import re
from pathlib import Path

import pytest

from casebook import listings, places, stacks
from casebook.cases.fetching import clients
from casebook.charts.listings import LONGEST, Listing
from casebook.errors import MissingInterpreter, UsageError
from casebook.stacks import environments


def printed(listing: Listing) -> str:
    """The code that a page shows."""
    [code] = re.findall(r"<pre>(.*?)</pre>", listing.html, re.S)
    return html.unescape(re.sub(r"<[^>]+>", "", code))


def marked(listing: Listing) -> list[str]:
    return [line[2:] for line in listing.text.splitlines() if line.startswith("> ")]


@pytest.mark.parametrize("name", clients.files())
def test_a_client_is_printed_as_it_runs(name):
    path = clients.file_of(name)
    listing = listings.client(name)
    assert printed(listing) == path.read_text()
    assert listing.text.startswith(path.read_text())
    assert f"casebook/cases/fetching/clients/{path.name}" in listing.html


def test_what_differs_is_marked_line_by_line():
    listing = listings.client("grequests_map", beside="loop")
    loop = clients.file_of("loop").read_text().splitlines()
    own = [line for line in clients.file_of("grequests").read_text().splitlines()[1:]]
    assert marked(listing) == [line for line in own if line.strip() and line not in loop]
    assert listing.html.count('class="hll"') == len(marked(listing))
    assert "(lines 6, 10 and 11)" in listing.text
    assert marked(listings.client("loop", beside="requests")) == []


def test_a_quotation_is_what_the_interpreter_imports():
    listing = listings.source("stage-0", "json.decoder", "JSONDecoder.decode", mark="raw_decode")
    method = importlib.util.find_spec("json.decoder")
    for line in printed(listing).splitlines():
        assert line in Path(method.origin).read_text(encoding="utf-8")
    assert printed(listing).startswith("def decode(self, s")
    assert len(marked(listing)) == 1
    assert re.search(r"Python 3\.[\d.]+: json/decoder\.py, lines \d+ to \d+\.", listing.text)


def test_a_quotation_names_its_package_and_its_lines():
    whole = listings.source("stage-1-today", "grequests", "map")
    assert re.search(r"grequests [\d.]+: grequests\.py, lines (\d+) to \d+\.", whole.text)
    part = listings.source("stage-1-today", "grequests", "map", lines=(1, 2))
    assert printed(part).splitlines() == printed(whole).splitlines()[:2]


def test_a_quotation_of_a_patched_copy_says_so():
    quotation = ("gevent_openssl.SSL", "Connection.recv_into")
    caption = listings.source("stage-4-today", *quotation).text.splitlines()[-1]
    patch = "env/patches/gevent-openssl-recv-into.patch"
    assert caption.endswith(f", in this book's patched copy ({patch}).")
    other = listings.source("stage-4-today", "gevent.pool", lines=(1, 2)).text
    assert "patched" not in other.splitlines()[-1]


def test_python_2_is_quoted_too():
    if not environments.find_interpreter("2.7") and "2.7" not in environments.required():
        pytest.skip("no Python 2.7 here")
    said = listings.source("stage-2-py27", "urllib3.contrib.pyopenssl", "WrappedSocket.recv")
    assert printed(said).startswith("def recv(self, *args, **kwargs):\n    try:\n")
    assert printed(said).endswith("    else:\n        return data\n")
    assert f"urllib3 {stacks.get('stage-2-py27').packages['urllib3']}: urllib3/contrib" in said.text


def test_where_the_interpreter_is_missing_it_says_so(monkeypatch):
    def missing(stack):
        raise MissingInterpreter(f"{stack.name} needs Python 2.7: apt install it")

    monkeypatch.setattr(environments, "ensure", missing)
    said = listings.source("stage-2-py27", "ssl", "SSLSocket.recv")
    assert "ssl.SSLSocket.recv: stage-2-py27 needs Python 2.7" in said.text
    assert "<pre>" not in said.html


def test_files_of_ours_and_of_nobody_else():
    said = listings.file("casebook/places.py", lines=(1, 3))
    assert printed(said) == "".join((places.PACKAGE / "places.py").read_text().splitlines(True)[:3])
    assert said.text.endswith("casebook/places.py, lines 1 to 3.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: listings.client("nobody"), "choose one of: aiohttp"),
        (lambda: listings.file("/etc/passwd"), "no file"),
        (lambda: listings.file("../outside"), "no file"),
        (lambda: listings.file("casebook/places.py", lines=(0, 3)), "no 0 to 3"),
        (lambda: listings.source("stage-0", "json.nothing", "x"), "no module json.nothing"),
        (lambda: listings.source("stage-0", "json.decoder", "Nobody.decode"), "no Nobody.decode"),
        (lambda: listings.source("stage-0", "ssl", "SSLSocket"), f"quote up to {LONGEST}"),
    ],
)
def test_what_is_not_there_is_named(asked, said):
    with pytest.raises(UsageError, match=said):
        asked()


def test_what_a_program_printed_can_be_taken_up_by_its_name():
    report = listings.printed("one <two>\n  three", "What it said.", "what-it-said")
    shown = report._repr_mimebundle_()
    record = shown["application/vnd.casebook.figure+json"]
    assert record["name"] == "what-it-said" and "one &lt;two&gt;" in record["html"]
    assert shown["text/plain"].splitlines()[:2] == ["one <two>", "  three"]
