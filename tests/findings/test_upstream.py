"""Findings about packages are the book's own, and one turns with the release that mends it."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from here import environment, needs, run
from packaging.version import Version

from casebook import places, stacks, upstream
from casebook.cases.bookstore import abilities
from casebook.errors import EnvironmentFailed, RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.pages import upstream_page as pages

TRUSTSTORE = upstream.PACKAGE_CLAIMS[0]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, and no other index."""
    for stack in ("truststore-0.10.5-today", "truststore-let-go-today"):
        environment(stack)  # as its lock has it, which an index like this one cannot
    config = tmp_path / "uv.toml"
    config.write_text(f"[pip]\nno-index = true\nfind-links = [{str(tmp_path)!r}]\n")
    monkeypatch.setenv("UV_CONFIG_FILE", str(config))
    return tmp_path


def wheel(stack: str, version: str, folder: Path) -> None:
    """The truststore of a stack, as a wheel of another version."""
    python = environment(stack).python
    (package,) = python.parents[1].glob("lib/python*/site-packages/truststore")
    about = f"truststore-{version}.dist-info"
    with zipfile.ZipFile(folder / f"truststore-{version}-py3-none-any.whl", "w") as made:
        for file in package.glob("*.py"):
            text = file.read_text().replace('"0.10.5"', f'"{version}"')
            made.writestr(f"truststore/{file.name}", text)
        made.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: truststore\nVersion: {version}\n"
        )
        made.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{about}/RECORD", "")


ASKED = [each for each in upstream.PACKAGE_CLAIMS if each.decide]
OVER = [each for each in upstream.PACKAGE_CLAIMS if not each.decide]


def named(row: upstream.PackageClaim) -> str:
    return f"{row.package}-{row.claim}"


def pinned(package: str) -> set[str]:
    """The releases of a package that are in locks."""
    return {each.packages.get(package, "") for each in stacks.load().values() if each.lock}


@pytest.mark.parametrize("row", upstream.PACKAGE_CLAIMS, ids=named)
def test_a_row_is_a_finding_of_the_book_about_the_release_that_it_measures(row) -> None:
    chapter = nbformat.read(places.NOTEBOOKS / f"{row.chapter}.ipynb", as_version=4)
    assert any(f'claim(\n    "{row.claim}"' in cell.source for cell in chapter.cells)
    assert stacks.get(row.stack).packages[row.package] == row.true_to


@pytest.mark.parametrize("row", OVER, ids=named)
def test_a_finding_that_is_over_has_both_its_ends_in_locks(row) -> None:
    ends = {row.true_from, row.true_to, row.turned, row.before} - {""}
    assert row.turned and ends <= pinned(row.package)
    assert upstream.answers(row) == []
    with pytest.raises(UsageError, match="over"):
        upstream.decide(row, row.true_to)


@pytest.mark.nightly
@pytest.mark.parametrize("row", ASKED, ids=named)
def test_a_finding_is_true_from_where_it_says(row) -> None:
    first = upstream.decide(row, row.true_from)
    assert (first["version"], first["still"]) == (row.true_from, True), first
    if row.before:
        before = upstream.decide(row, row.before)
        assert (before["version"], before["still"]) == (row.before, False), before


@pytest.mark.nightly
def test_a_mended_truststore_in_an_index_turns_the_finding(index: Path) -> None:
    usual = stacks.get(TRUSTSTORE.stack)
    wheel("truststore-0.10.5-today", "0.10.5", index)
    (before,) = upstream.answers(TRUSTSTORE)
    assert before == {
        "version": "0.10.5", "still": True, "turned": "",
        "counts": "1 of 8 handshakes under way at once",
    }  # fmt: skip
    wheel("truststore-0.10.5-today", "0.10.6", index)
    wheel("truststore-let-go-today", "0.10.7", index)
    wheel("truststore-let-go-today", "0.10.8", index)
    (after,) = upstream.answers(TRUSTSTORE)
    assert (after["version"], after["still"], after["turned"]) == ("0.10.8", False, "0.10.7")
    wheel("truststore-let-go-today", "0.10.9b1", index)
    assert [each["version"] for each in upstream.answers(TRUSTSTORE)] == ["0.10.8", "0.10.9b1"]
    assert stacks.get(TRUSTSTORE.stack) is usual


def test_a_release_that_cannot_be_had_is_said_and_fails(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(upstream, "PACKAGE_CLAIMS", [TRUSTSTORE])
    monkeypatch.setattr(upstream, "clients", lambda: pages.load(places.ROOT)["clients"])
    assert upstream.main([]) == 1
    assert "could not be asked: there is no truststore to install" in capsys.readouterr().out


def test_a_recorded_run_is_no_answer_of_a_release_that_cannot_be_installed(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines of data/machines/ were asked the same of the release that is in the lock."""
    monkeypatch.delenv("CASEBOOK_REQUIRE", raising=False)
    monkeypatch.setattr(upstream.locks, "with_release", lambda *_: "botocore==99.0\n")
    [row] = [each for each in ASKED if each.decide is upstream._made_alone]
    with pytest.raises(EnvironmentFailed, match="on-the-loop-today"):
        upstream.decide(row, "99.0")


@needs("git")
def test_what_is_kept_is_no_change_of_the_commit_that_pages_and_machine_files_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(upstream, "PACKAGE_CLAIMS", OVER)  # so that nothing has to be installed
    monkeypatch.setattr(upstream, "clients", list)

    def git(*arguments: object) -> str:
        who = ("-c", "user.name=one", "-c", "user.email=one@invalid")
        return run("git", *who, *arguments, cwd=tmp_path, check=True).stdout

    commit = measurements.commit.__wrapped__
    code, kept = tmp_path / "code.py", tmp_path / pages.KEPT
    kept.parent.mkdir()
    for path in (code, kept):
        path.write_text("{}")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    clean = git("rev-parse", "--short=12", "HEAD").strip()
    assert commit() == clean
    assert upstream.main(["--keep"]) == 0
    assert git("diff", "--name-only").split() == [str(pages.KEPT)]  # git itself sees it
    assert commit() == clean
    code.write_text("{1}")  # what else has changed counts as before
    assert commit() == f"{clean}-dirty"
    git("add", ".")
    assert commit() == f"{clean}-dirty"


def answered(*answers: dict) -> dict:
    names = ("package", "claim", "chapter", "says", "before", "true_from", "true_to", "turned")
    row = {name: getattr(TRUSTSTORE, name) for name in names}
    return {"asked": "2026-11-23", "findings": [row | {"answers": list(answers)}]}


TRUE = {"version": "0.10.6", "still": True, "counts": "1 of 8", "turned": ""}
TURNED = {"version": "0.10.8", "still": False, "counts": "8 of 8", "turned": "0.10.7"}


def test_the_page_has_the_release_in_which_a_finding_turned() -> None:
    asked = answered(TRUE, TURNED)
    text = pages.page(asked)
    both = "| from 0.10.5 to 0.10.6 (not in 0.10.4 or 0.10.7) |"
    assert f"{both} 0.10.6, still true: 1 of 8 |" in text
    assert f"{both} 0.10.8, **no longer true**, since 0.10.7: 8 of 8 |" in text
    assert "Asked on 2026-11-23" in text and "ipynb" not in text
    assert f"../notebooks/{TRUSTSTORE.chapter}.ipynb#claim-" in pages.page(asked, "../notebooks/")


def test_a_chapter_says_so_only_once_its_finding_has_turned() -> None:
    assert pages.turned(answered(TRUE), TRUSTSTORE.chapter) == ""
    assert pages.turned(answered(TURNED), "another") == ""
    said = pages.turned(answered(TURNED), TRUSTSTORE.chapter)
    assert ":class: tip\n- Since truststore 0.10.7 it is no longer true that threads" in said


def test_a_chapter_says_of_which_releases_each_of_its_findings_is_true() -> None:
    said = pages.releases(answered(TRUE), TRUSTSTORE.chapter)
    assert "](#claim-lock-one-at-a-time). True from 0.10.5 to 0.10.6 (not in 0.10.4)." in said
    assert pages.releases(answered(TRUE), "another") == ""
    kept = pages.load(places.ROOT)
    for row in upstream.PACKAGE_CLAIMS:
        said = pages.releases(kept, row.chapter)
        (line,) = [line for line in said.splitlines() if f"#claim-{row.claim})" in line]
        assert line.startswith(f"- **{row.package}**") and f" {row.true_from}" in line
        assert re.search(r"True (from \S+ to|in) \S+", line)
        nots = re.search(r"\(not in (.*)\)", line)
        assert not row.turned or row.turned in nots[1].split(" or ")


def test_what_is_kept_is_about_the_findings_of_today() -> None:
    asked = pages.load(places.ROOT)
    claims = {each.claim: (each.says, each.turned) for each in upstream.PACKAGE_CLAIMS}
    assert {each["claim"]: (each["says"], each["turned"]) for each in asked["findings"]} == claims


ROWS = [
    {
        "client": client, "release": "1", "http2": stream is not None, "stream_window": stream,
        "connection_window": stream, "quic_by_itself": by_itself, "http3": http3, "resumed": early,
        "early": early, "loads": loads, "connections": None if http3 is None else 20,
        "leaks": leaks,
    }
    for client, stream, by_itself, http3, early, loads, leaks in (
        ("slow", None, False, False, None, 20, True),
        ("wide", 70_000, False, False, None, 2, False),
        ("quic", 65_536, True, True, 0, 1, True),
        ("early", 65_535, False, True, 1, None, None),
        ("bare", 65_535, None, None, None, None, None),
    )
]  # fmt: skip


def test_sentences_about_clients_are_made_from_their_rows() -> None:
    assert pages.sentences(ROWS) == [
        "HTTP/3: quic and early; not slow or wide. By itself, when the server says that it can: "
        "quic.",
        "A request with the first datagrams (0-RTT), accepted by our store: early; not quic.",
        "HTTP/2's own window of 65,535 bytes is opened by wide and quic; not by early or bare.",
        "As many loads of certificates as connections: slow; fewer: wide and quic. Python cannot "
        "count those of early.",
        "Clients share a context, and one of them brings a certificate (`cert=`). The next one "
        "shows it, too: slow and quic; does not show it: wide. Nobody can bring one beside a "
        "context of Python's: early.",
    ]
    table = pages.clients({"clients": ROWS}).splitlines()
    assert "| slow 1 | no HTTP/2 | no |  | 20 for 20 |" in table
    assert "| wide 1 | 68 and 68 | no |  | 2 for 20 |" in table
    assert "| early 1 | 64 and 64 | if told so | 1 of 2 |  |" in table
    assert pages.clients({}) == ""


def test_a_client_that_turns_fails_the_nightly_job(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(upstream, "PACKAGE_CLAIMS", [])
    known = pages.load(places.ROOT)["clients"]
    monkeypatch.setattr(upstream, "clients", lambda: known)
    assert upstream.main([]) == 0
    monkeypatch.setattr(upstream, "clients", lambda: [known[0] | {"http3": True}, *known[1:]])
    assert upstream.main([]) == 1
    assert "HTTP/3: requests, niquests" in capsys.readouterr().out


def test_a_row_that_has_changed_is_named_whatever_the_release() -> None:
    slow, wide = ROWS[:2]
    assert upstream.row_changes([slow | {"release": "2"}, wide], [slow, wide]) == []
    assert upstream.row_changes([slow | {"release": "2", "http3": True}], [slow, wide]) == [
        "slow 2: a row has changed, http3 False -> True: the sentences made from it must be looked "
        "at",
        "wide: nobody asks it any more",
    ]


def test_a_client_is_asked_in_its_newest_release_wherever_it_is_visited(monkeypatch) -> None:
    releases = []

    @contextmanager
    def released(*of: str) -> Iterator[None]:
        releases.append(of)
        yield

    monkeypatch.setattr(upstream, "CLIENTS", {"curl_cffi": ("curl-cffi-today", "curl")})
    monkeypatch.setattr(upstream, "_newest", lambda stack, package: "99")
    monkeypatch.setattr(upstream, "_with_release", released)
    monkeypatch.setattr(upstream, "abilities", lambda names: pd.DataFrame(ROWS[:1]))
    assert [row["client"] for row in upstream.clients()] == ["slow"]
    assert releases == [("curl-cffi-today", "curl-cffi", "99"), ("quic-today", "curl-cffi", "99")]


def test_a_client_that_cannot_be_asked_fails_the_night_and_keeps_its_row(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def fails(_names: list[str]) -> None:
        raise RunFailed("over HTTP/2: the client asked for nothing.")

    monkeypatch.setattr(upstream, "PACKAGE_CLAIMS", [])
    monkeypatch.setattr(upstream, "_newest", lambda stack, package: "99")
    monkeypatch.setattr(upstream, "_with_release", lambda *_: nullcontext())
    monkeypatch.setattr(upstream, "abilities", fails)
    assert upstream.main([]) == 1
    printed = capsys.readouterr()
    assert "failure None -> over HTTP/2: the client asked for nothing." in printed.err
    assert pages.clients(pages.load(places.ROOT)) in printed.out


def test_what_is_kept_of_clients_is_of_no_older_release_than_the_book_has() -> None:
    known = pages.load(places.ROOT)["clients"]
    assert [row["client"] for row in known] == list(abilities.CLIENTS)
    for row in known:
        stack = stacks.get(abilities.CLIENTS[row["client"]][0])
        pinned = stack.packages[row["client"].replace("_", "-")]
        assert Version(row["release"]) >= Version(pinned)


def test_chapters_say_of_clients_what_the_rows_say() -> None:
    known = pages.load(places.ROOT)["clients"]
    real = [row for row in known if row["http3"] is not None]
    silent = pages.listed([row for row in real if not row["http3"]], "or")
    early = pages.listed([row for row in real if row["early"]])
    wide = [row for row in known if row["http2"] and row["stream_window"] > pages.OWN_WINDOW]

    def prose(chapter: str) -> str:
        cells = nbformat.read(places.NOTEBOOKS / f"{chapter}.ipynb", as_version=4).cells
        return re.sub(r"\]\([^)]*\)", "", " ".join(cell.source for cell in cells)).replace("[", "")

    assert f"Neither the standard library nor {silent} speaks it;" in prose("22_http3")
    assert f"{early} can do it, and leaves the choice to you." in prose("22_http3")
    opens = f"{pages.listed(wide[:2])} open the window themselves, and so do "
    assert opens + f"{pages.listed(wide[2:])};" in prose("20_distance")


@pytest.mark.nightly
def test_clients_do_today_what_the_pages_say() -> None:
    assert upstream.row_changes(upstream.clients(), pages.load(places.ROOT)["clients"]) == []
