"""What a machine file may not say: paths, users and hosts, whatever their spelling."""

import getpass
import json
import os
import tempfile
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casebook import places
from casebook.laboratory import anonymity
from casebook.laboratory.anonymity import Own

OWN = Own("/data/people/maria", ("/srv/book", "/scratch"), ("marias-laptop", "mmuster"))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("in /srv/book/casebook/x.py, line 3", "in x.py, line 3"),
        ("'/srv/book'", "'book'"),
        ("/scratch/a1/b2/", "b2"),
        ("/scratch/BOX/", "BOX"),
        ("file:///data/people/maria/a.pem;", "file:a.pem;"),
        # The name of her home is a name of hers.
        ("in /data/people/maria", "in ~"),
        ("in /data//people/MARIA/", "in ~"),
        # Another folder, whose name only begins so.
        ("/srv/bookshop/x.py", "/srv/bookshop/x.py"),
        ("/srv/book-2/x.py", "/srv/book-2/x.py"),
        ("nothing of hers", "nothing of hers"),
    ],
)
def test_a_path_is_cut_to_its_last_part(text: str, cleaned: str) -> None:
    assert OWN.cleaned(text) == cleaned
    assert OWN.cleaned({text: [text, {"n": 1}, None]}) == {cleaned: [cleaned, {"n": 1}, None]}


def test_a_home_that_is_reached_by_a_link_has_two_names(tmp_path: Path) -> None:
    real, link = tmp_path / "volume7" / "people" / "maria", tmp_path / "home"
    real.mkdir(parents=True)
    link.symlink_to(real)
    own = Own(str(link), (), ())
    assert own.cleaned(f"{link}/x.py {real}/y.py {real} {link}") == "x.py y.py ~ ~"
    folder = tmp_path / "book"
    folder.symlink_to(real)
    assert Own("/nobody", (str(folder),), ()).cleaned(f"at {real}/z.py") == "at z.py"


@pytest.mark.parametrize(
    ("text", "leak"),
    [
        ("/home/somebody/x", "/home/somebody/x"),
        ("at /Users/she/x", "/Users/she/x"),
        ("/root/x", "/root/x"),
        ("/rooted", ""),
        ("/tmp/x", "/tmp/x"),
        ("/var/folders/zz", "/var/folders/zz"),
        ("C:\\Users\\she", "C:\\Users\\she"),
        ("d:/Users/she", "d:/Users/she"),
        ("/home/" + "x" * 60, "/home/" + "x" * 34),
        ("on marias-laptop!", "marias-laptop"),
        ("on\nmarias-laptop", "marias-laptop"),
        ("MARIAS-LAPTOP.local", "MARIAS-LAPTOP"),
        ("mmuster@", "mmuster"),
        ("my-marias-laptop", ""),
        ("marias-laptops", ""),
        ("mmusters", ""),
        ("localhost", ""),
    ],
)
def test_what_is_left_over_is_found(text: str, leak: str) -> None:
    own = Own(OWN.home, OWN.folders, (*OWN.names, "localhost"))
    for line in ({"why": text}, {text: 1}, [[text]], {"a": {"b": ["c", text]}}):
        assert own.leak(json.dumps(line)) == leak


def test_a_short_name_is_a_word_of_its_own_too_often() -> None:
    assert Own("/h", (), ("pip",)).leak('"pip"') == ""
    assert Own("/h", (), ("anna",)).leak('"anna"') == "anna"
    assert Own("/h", (), ()).leak('"anything"') == ""


def test_of_two_names_that_begin_alike_the_whole_one_is_told() -> None:
    for names in (("anna", "anna.example"), ("anna.example", "anna")):
        assert Own("/h", (), names).leak('"at anna.example"') == "anna.example"


def test_of_this_machine_all_that_names_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anonymity.socket, "gethostname", lambda: "her-laptop")
    monkeypatch.setattr(anonymity.platform, "node", lambda: "her-laptop.example")
    monkeypatch.setattr(anonymity.getpass, "getuser", lambda: "mmuster")
    own = Own.of_this_machine()
    assert own.names == ("her-laptop", "her-laptop.example", "mmuster")
    assert own.home == str(Path.home())
    assert own.folders == (str(places.ROOT), str(places.LOCAL), tempfile.gettempdir())

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(anonymity.getpass, "getuser", nobody)
    assert Own.of_this_machine().names == ("her-laptop", "her-laptop.example")
    assert getpass is anonymity.getpass


#: Names as people and machines have them: with marks, digits, dots and dashes.
NAMES = st.from_regex(r"[a-zäéøñ][a-zäéøñ0-9]{3,8}([.-][a-z0-9]{1,4})?", fullmatch=True)
#: How a text may spell a name or a path, and what may stand around it.
SPELLINGS = st.sampled_from([
    str, str.upper, str.title, lambda text: unicodedata.normalize("NFD", text),
    lambda text: text.replace("/", "//"), lambda text: text + "/",
])  # fmt: skip
AROUND = st.sampled_from(["", " ", "\n", "\t", "'", '"', "(", "file://", "at ", ": ", "é ", "="])
#: What may follow a name and is no part of it.
BEHIND = AROUND.filter(lambda text: not text[:1].isalpha())


@settings(max_examples=30, deadline=None)
@given(user=NAMES, host=NAMES, below=NAMES, spelling=SPELLINGS, before=AROUND, behind=BEHIND)
@example("maria", "laptop", "file", str, "\n", "")
@example("chloé", "laptop", "file", lambda text: unicodedata.normalize("NFD", text), "", "")
def test_no_path_user_or_host_survives(user, host, below, spelling, before, behind) -> None:
    """It is cut away, or the file is refused; never is it in a file that is written."""
    own = Own(f"/data/people/{user}", ("/srv/book",), (host, user))
    for secret in (own.home, f"{own.home}/{below}.py", f"/srv/book/{user}/{below}.py", host, user):
        text = before + spelling(secret) + (behind if behind[-1:] != "/" else "")
        line = json.dumps(own.cleaned({"why": text, "list": [text]}))
        if not own.leak(line):
            left = unicodedata.normalize("NFC", str(json.loads(line))).casefold()
            for name in {"/people", "/srv", user, host} - {below}:
                assert not_a_word_of(name.casefold(), left), (text, line)


def not_a_word_of(name: str, text: str) -> bool:
    """Whether a name is not in a text, or only as a part of a longer word."""
    parts = text.split(name)
    return all(
        left[-1:].isalnum() or left[-1:] in ("_", "-") or right[:1].isalnum() or
        right[:1] in ("_", "-")
        for left, right in pairwise(parts)
    )  # fmt: skip


def test_whoever_runs_this_is_not_in_a_line_of_hers() -> None:
    own = Own.of_this_machine()
    text = f"{Path.home()}/x.py {os.path.realpath(Path.home())} {places.ROOT}/y.py"
    line = json.dumps(own.cleaned(text))
    assert json.loads(line).split() == ["x.py", "~", "y.py"]
