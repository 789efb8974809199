"""The page about a reader's own program, from a report of the doctor."""

import json

import pytest

from casebook import cli, places
from casebook.errors import UsageError
from casebook.laboratory import machine_files
from casebook.pages import program, program_report

COUNTS = {name: 8 for name in program_report.COUNTED} | {"needed": 1, "share": 41.5}
REPORT = {
    "program": "report.py", "python": "3.11.7", "counts": COUNTS, "exit_status": 1,
    "verdicts": {"event loop": "does not apply", "certificate loads": "repeated"},
    "advice": [{"what": "requests loaded 8 times", "add": "s = Session()", "saves": "7 loads"}],
}  # fmt: skip


def page_of(tmp_path, answers=(), **changed) -> str:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(REPORT | changed))
    program_report.keep(tmp_path, file)
    return program.page(tmp_path, answers)


def test_it_has_the_counts_the_charts_and_the_chapters_in_order(tmp_path):
    page = page_of(tmp_path)
    assert "<td>41.5</td>" in page and page.count("<figure") == 2
    assert page.index("13_what_one_load_costs") < page.index("10_the_cure")
    assert "requests loaded 8 times" in page and "11_the_lock" not in page
    verdicts = {each[0]: each[1] for each in program.MATTERS}
    first = [line for line in page_of(tmp_path, verdicts=verdicts).splitlines() if ". [" in line]
    numbers = ("02_", "11_", "16_")
    assert [line.partition("notebooks/")[2][:3] for line in first] == list(numbers)


def test_connections_and_loads_are_drawn_as_they_were_counted(tmp_path):
    """One kept connection with its one load does not look as ten of each."""
    for counts in ({"connections": 1, "loads": 1}, {"connections": 10**9, "loads": 0}):
        page = page_of(tmp_path, counts=COUNTS | counts)
        for name, number in counts.items():
            called = {"connections": "Connections", "loads": "Certificate loads"}[name]
            assert f"{called}: your program, from its report {number:,}." in page
        assert "Measured on" not in page  # nothing was


def test_a_healthy_program_is_told_so(tmp_path):
    well = {"certificate loads": "not repeated"}
    assert "found nothing ill" in page_of(tmp_path, verdicts=well, advice=[])


def test_a_program_of_which_nothing_was_seen_is_not_called_healthy(tmp_path):
    unseen = {"certificate loads": "nothing seen", "event loop": "does not apply"}
    page = page_of(tmp_path, verdicts=unseen, advice=[])
    assert "could not tell" in page and "nothing ill" not in page


def test_what_to_change_stands_there_with_its_line_and_what_it_saves(tmp_path):
    page = page_of(tmp_path)
    assert "<br>add: <code>s = Session()</code><br>saves: 7 loads</li>" in page
    evil = {"what": "", "add": "</code><script>alert(1)</script>", "saves": 3, "package": ["x"]}
    assert "<script" not in page_of(tmp_path, advice=[evil])


def test_the_next_build_without_a_report_shows_none(tmp_path):
    page_of(tmp_path)
    program_report.keep(tmp_path, None)
    assert program.page(tmp_path, []) == program.NONE_GIVEN


def test_what_a_strangers_report_says_stands_there_as_text(tmp_path):
    evil = (
        "<script>alert(1)</script>\n```\n# mine\n```{include} /etc/passwd\n```\u202e" + "x" * 10**5
    )
    page = page_of(
        tmp_path, program=evil, python=evil, verdicts={"event loop": evil}, advice=[{"what": evil}]
    )
    assert "<script" not in page and "\u202e" not in page
    assert "\n# mine" not in page and "\n```{include}" not in page
    assert len(page) < 200_000


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{}", "[" * 10**5, "\xff", json.dumps(REPORT | {"counts": None}),
        json.dumps(REPORT | {"counts": COUNTS | {"loads": "8"}}),
        json.dumps(REPORT | {"counts": COUNTS | {"loads": float("inf")}}),
        json.dumps(REPORT | {"counts": COUNTS | {"loads": -1}}),
        json.dumps(REPORT | {"advice": 3}), json.dumps(REPORT) + " " * program_report.MOST_BYTES,
        json.dumps({"trouble": "there is no program", "exit_status": 2}),
    ],
)  # fmt: skip
def test_what_is_no_report_is_told_in_a_sentence(text, tmp_path):
    page_of(tmp_path)
    file = tmp_path / "other.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="is no report of a run"):
        program_report.keep(tmp_path, file)
    assert program.page(tmp_path, []) == program.NONE_GIVEN  # and not the last one's


def test_the_command_line_says_so_before_anything_is_built(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(places, "ROOT", tmp_path)  # the report of this checkout's book is not ours
    assert cli.main(["book", "--program", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_what_the_book_has_measured_stands_beside_it(tmp_path):
    """The answers are those of machine files, as `make book MACHINE=` has them."""
    known = [answer for each in machine_files.all_recorded() for answer in each.answers]
    counts = COUNTS | {"clients": [{"client": "httpx"}, {"client": None}]}
    httpx = page_of(tmp_path, known, counts=counts)
    assert "httpx, each" in httpx and "requests, each" not in httpx
    counts = COUNTS | {"clients": [{"client": "botocore", "through": "s3fs"}]}
    botocore = page_of(tmp_path, known, counts=counts)
    assert "boto3, each" in botocore and "requests, each" not in botocore
    counts = COUNTS | {"clients": [{"client": "httpx", "through": "openai"}]}
    assert "openai, each" in page_of(tmp_path, known, counts=counts)
    page = page_of(tmp_path, known)
    assert "requests, each" in page and "httpx, each" not in page
    alone = page_of(tmp_path)
    assert "requests, each" not in alone and "Beside programs of the book" not in alone
    assert page.index("your program, from its report") < page.index("requests, each")
