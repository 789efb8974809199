"""A whodunit: each culprit shows in its own way, and a class is marked with runs made again."""

import json
import shutil
from dataclasses import asdict

import pytest
from here import run

from casebook.classroom import whodunit
from casebook.errors import UsageError

SECRET = b"the teacher's own"

#: What each department shows, where it is healthy.
HEALTHY = {
    ("pages", "https"): "pages over https: concurrent",
    ("pages", "http"): "pages over http: concurrent",
    ("ledger", "https"): "ledger over https: one connection, few loads",
    ("shelf", "https"): "shelf over https: HTTP/2",
    ("notices", "https"): "notices over https: concurrent",
    ("notices", "http"): "notices over http: concurrent",
}


def name_of(culprit, start=0):
    """A name whose culprit that is, with SECRET."""
    names = (f"student-{number}" for number in range(start, 10_000))
    return next(each for each in names if whodunit.culprit_of(each, SECRET) == culprit)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A folder for each culprit: all that its runs show, and their ids."""
    into, found = tmp_path_factory.mktemp("class"), {}
    for culprit in whodunit.CULPRITS:
        folder = whodunit.new(name_of(culprit), into, SECRET)
        runs = {asked: whodunit.run(folder, asked[0], 8, asked[1]) for asked in HEALTHY}
        found[culprit] = folder, {each.shows: each.id for each in runs.values()}
    return found


def test_each_culprit_shows_itself_and_nothing_else_is_changed(solved):
    for culprit, (_, shown) in solved.items():
        assert whodunit._SHOWN_BY[culprit] <= set(shown), culprit
        unlike = set(shown) - set(HEALTHY.values())
        assert unlike <= whodunit._SHOWN_BY[culprit], culprit
        others = [each for each in whodunit.CULPRITS if whodunit._SHOWN_BY[each] <= set(shown)]
        assert others == [culprit]


SLOW = """
import gevent.monkey, gevent.ssl
sleep = gevent.monkey.get_original("time", "sleep")
shake_hands = gevent.ssl.SSLSocket.do_handshake
def slowly(*given):
    shake_hands(*given)
    sleep(0.25)
gevent.ssl.SSLSocket.do_handshake = slowly
"""


def test_on_a_busy_machine_a_healthy_program_is_concurrent_all_the_same(tmp_path):
    """From one request to the next it takes longer than a page does, and keeps the loop."""
    whodunit.build(tmp_path / "program", "none")
    with (tmp_path / "program" / "report.py").open("a") as report:
        report.write(SLOW)
    made = whodunit.run_now(tmp_path / "program", "pages", 4, "https")
    assert made.shows == "pages over https: concurrent"


def test_a_class_is_marked(solved):
    for culprit, (folder, shown) in solved.items():
        whodunit.answer(folder, culprit, [shown[each] for each in whodunit._SHOWN_BY[culprit]])
    into = folder.parent
    accused, shown = solved["none"]
    whodunit.answer(accused, "injected", list(shown.values()))
    acquitted, _ = solved["http1"]
    whodunit.answer(acquitted, "none", [])
    silent, _ = solved["session"]
    (silent / "answer.json").unlink()
    marks = {each.was or each.name: each for each in whodunit.mark(into, SECRET)}
    for culprit in ("injected", "late", "order", "loads", "lock"):
        assert marks[culprit].is_right and marks[culprit].evidence == ""
    assert marks["none"].accuses_wrongly and "it does not show" in marks["none"].evidence
    assert not marks["http1"].accuses_wrongly and not marks["http1"].is_right
    assert marks[silent.name].said == "nothing"
    text = whodunit.marks_text(list(marks.values()))
    assert text.splitlines()[-1] == (
        "8 answers: 5 right, 5 of them shown by their evidence, 1 false accusation"
    )


def test_evidence_of_another_program_does_not_come_out_again(solved, tmp_path):
    other = whodunit.new(name_of("none", start=500), tmp_path, SECRET)
    _, shown = solved["http1"]
    for id_ in shown.values():
        text = (solved["http1"][0] / "runs" / f"{id_}.json").read_text()
        (other / "runs" / f"{id_}.json").write_text(text)
    whodunit.answer(other, "http1", [shown["shelf over https: HTTP/1.1"]])
    [mark] = whodunit.mark(tmp_path, SECRET)
    assert "made again, shows: shelf over https: HTTP/2" in mark.evidence


def test_a_run_that_was_changed_is_none(solved):
    folder, shown = solved["loads"]
    id_ = shown["pages over https: concurrent"]
    path = folder / "runs" / f"{id_}.json"
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text) | {"peak_in_flight": 1}))
    with pytest.raises(UsageError, match="no run"):
        whodunit.answer(folder, "loads", [id_])
    path.write_text(text)


def handed_in(name, answer, into):
    folder = whodunit.new(name, into, SECRET)
    (folder / "answer.json").write_text(json.dumps(answer))
    return folder


def test_an_answer_says_what_it_lacks_and_not_whether_it_is_right(tmp_path):
    for culprit in ("lock", "none"):  # of a program with that culprit, and of one without
        folder = whodunit.new(name_of(culprit), tmp_path, SECRET)
        ids = []
        for scheme, peak in (("https", 1), ("http", 8)):
            made = whodunit.Run("notices", scheme, 8, 8, peak, 8, None, {})
            (folder / "runs" / f"{made.id}.json").write_text(json.dumps(asdict(made)))
            ids.append(made.id)
        assert whodunit.answer(folder, "lock", ids[:1]).partition(": ")[2] == (
            "lock, with notices over https; such an answer needs 2 kinds of run; still missing: "
            "notices over http. Whether it is right, the marks say."
        )
        assert "all are there" in whodunit.answer(folder, "lock", ids)
        kept = (folder / "answer.json").read_text()
        few = whodunit.Run("notices", "https", 2, 2, 1, 2, None, {})
        (folder / "runs" / f"{few.id}.json").write_text(json.dumps(asdict(few)))
        with pytest.raises(UsageError, match="too few pages to show anything: make one of 3"):
            whodunit.answer(folder, "lock", [few.id, *ids])
        with pytest.raises(UsageError, match="11 runs are too many; choose 10 at most"):
            whodunit.answer(folder, "lock", ids[:1] * 11)
        assert (folder / "answer.json").read_text() == kept
        assert "1 kind of run;" in whodunit.answer(folder, "session", [])
    assert "whodunit mark FOLDER" in (folder / "case.md").read_text()


def test_the_sheet_for_the_wall_names_who_accused_wrongly_and_is_escaped():
    marks = [
        whodunit.Mark("alice", "lock", "lock", ""),
        whodunit.Mark("bob", "injected", "none", "it does not show: <b>"),
        whodunit.Mark("<i>", "nothing", "", "there is no answer that can be read"),
    ]
    page = whodunit.marks_page(marks)
    assert page.count("a false accusation") == 1 and "<i>" not in page
    assert "1 false accusation" not in page.partition("</table>")[0]
    assert "3 answers: 1 right" in page.partition("</table>")[2]


def test_what_was_written_by_hand_stops_no_marking_and_forges_no_line(tmp_path):
    said = {"culprit": "none", "evidence": []}
    alice = handed_in("alice", said, tmp_path)
    handed_in("bob", {"culprit": "none\nalice  right", "evidence": []}, tmp_path)
    handed_in("carol", {"culprit": "none", "evidence": 5}, tmp_path)
    dan = handed_in("dan", said, tmp_path)
    (dan / "case.json").write_text(json.dumps({"seed": "x\nalice  right  said none"}))
    # Runs that no program has made, under the ids that they would have.
    strange = {"n": 10**9}, {"n": "10"}, {"peak_in_flight": None}, {"department": "cellar"}
    for number, change in enumerate(strange):
        made = asdict(whodunit.Run("pages", "https", 10, 10, 1, 10, None, {})) | change
        erin = handed_in(f"erin-{number}", said, tmp_path)
        id_ = whodunit.Run(**made).id
        (erin / "runs" / f"{id_}.json").write_text(json.dumps(made))
        (erin / "answer.json").write_text(json.dumps({"culprit": "injected", "evidence": [id_]}))
    marks = {each.name: each for each in whodunit.mark(tmp_path, SECRET)}
    assert len(marks) == 8 and all(each.evidence for each in marks.values())
    assert [marks[name].said for name in ("bob", "carol", "dan")] == ["nothing"] * 3
    lines = whodunit.marks_text(list(marks.values())).splitlines()
    assert len(lines) == 9 and [each for each in lines if each.startswith("alice")] == lines[:1]
    # Whoever hands in another one's folder is told, and so is the other one.
    shutil.copytree(alice, tmp_path / "frank")
    again = [each for each in whodunit.mark(tmp_path, SECRET) if each.name == "alice"]
    assert len(again) == 2 and all("more than once" in each.evidence for each in again)


def test_the_culprit_follows_from_the_name_and_the_secret():
    drawn = [whodunit.culprit_of(f"s{number}", SECRET) for number in range(200)]
    assert set(drawn) == set(whodunit.CULPRITS)
    others = [whodunit.culprit_of(f"s{number}", b"another secret") for number in range(200)]
    assert drawn == [whodunit.culprit_of(f"s{number}", SECRET) for number in range(200)]
    assert sum(map(str.__eq__, drawn, others)) < 60  # an eighth, or so


def test_the_command_line(tmp_path):
    import sys

    def say(*arguments):
        return run(sys.executable, "-m", "casebook", "whodunit", *arguments)

    secret = tmp_path / "secret"
    secret.write_text("not for students")
    made = say("new", "--seed", "alice", "--secret", secret, "--into", tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "alice"
    assert "The case of alice" in (folder / "case.md").read_text()
    seen = json.loads(say("run", folder, "ledger", "--n", "4").stdout)
    done = say("answer", folder, "--culprit", "session", "--evidence", seen["id"])
    assert done.returncode == 0, done.stderr
    marked = say("mark", tmp_path, "--secret", secret)
    assert "1 answers:" in marked.stdout and "alice" in marked.stdout
    assert say("new", "--seed", "../alice", "--into", tmp_path).returncode == 2
    assert say("answer", folder, "--culprit", "butler").returncode == 2
    assert say("mark", tmp_path / "nowhere").returncode == 2
