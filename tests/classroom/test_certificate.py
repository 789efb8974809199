"""The sheet of what a class measured: one row for each machine, and a stranger's text is text."""

import sys
from pathlib import Path

from here import run

from casebook.classroom import certificate
from casebook.laboratory.machine_files import Machine

ABOUT = {"processor": "AMD EPYC", "cores": 2, "python": "3.12.4", "openssl": "OpenSSL 3.0.19 x"}
ABOUT |= {"measured_from": "2026-11-02T08:00:00Z", "measured_to": "2026-11-23T08:00:00Z"}


def finding(outcome: str, said: str = "The lock is one.") -> dict:
    return {"outcome": outcome, "statement": said}


def class_of(*outcomes: str) -> list[Machine]:
    return [
        Machine(f"student-{n}", ABOUT, [], {"lock": finding(each), "loads": finding("holds")})
        for n, each in enumerate(outcomes)
    ]


def test_each_machine_has_a_row_with_its_outcomes() -> None:
    text = certificate.page(class_of("holds", "holds", "otherwise"), "Class 7b")
    assert "<h1>Class 7b</h1>" in text and "3 machines, 2026-11-02 to 2026-11-23" in text
    assert text.count("<td>AMD EPYC</td><td>2</td><td>3.12.4</td><td>3.0.19</td>") == 3
    counts = "".join(f'<td class="count">{n}</td>' for n in (1, 0, 1, 0))
    assert text.count(counts) == 1
    assert "Of 2 findings that several machines have, 1 came out differently." in text
    assert "The lock is one. Holds on student-0 and student-1; otherwise on student-2." in text
    assert "those of the first machine above that measured it" in text


def test_many_machines_that_agree_are_counted() -> None:
    text = certificate.page(class_of(*["holds"] * 9, "undecided"), "x")
    assert "The lock is one. Holds on 9 machines; undecided on student-9." in text


def test_three_machines_are_named_and_four_are_counted() -> None:
    text = certificate.page(class_of(*["holds"] * 3, *["undecided"] * 4), "x")
    assert "Holds on student-0, student-1 and student-2; undecided on 4 machines." in text


def test_where_nothing_differs_nothing_is_told() -> None:
    text = certificate.page(class_of("holds", "holds"), "Class 7b")
    assert (
        "<li>" not in text
        and "first machine above" not in text
        and "0 came out differently" in text
    )


def test_only_so_many_differences_go_onto_a_sheet() -> None:
    many = {f"f{n}": finding("holds", f"Number {n}.") for n in range(20)}
    other = {id: each | {"outcome": "otherwise"} for id, each in many.items()}
    text = certificate.page([Machine("a", ABOUT, [], many), Machine("b", ABOUT, [], other)], "x")
    assert text.count("<li>") == certificate.TOLD + 1
    assert f"And {20 - certificate.TOLD} more" in text


def test_what_a_stranger_wrote_into_a_file_is_text() -> None:
    evil = "<script>alert(1)</script>"
    about = dict.fromkeys(ABOUT, evil)
    one = Machine(evil, about, [], {"a": finding("holds", evil)})
    two = Machine("b", ABOUT, [], {"a": finding("otherwise", evil)})
    assert "<script" not in certificate.page([one, two], evil)


def test_a_machine_of_which_little_is_known_has_its_row() -> None:
    assert "<td>?</td>" in certificate.page([Machine("little", {}, [])], "x")


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    sheet = tmp_path / "class.html"
    its = ["amd-epyc-2core", "amd-epyc-2core", "--page", sheet, "--title", "Monday"]
    done = run(sys.executable, "-m", "casebook", "machine", "compare", *its)
    assert done.returncode == 0, done.stderr
    assert sheet.read_text().count("<tr>") == 3 and "Monday" in sheet.read_text()
