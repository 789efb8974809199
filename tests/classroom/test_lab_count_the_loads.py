"""Count the loads: the right solution, the empty one, and wrong ones, each for its reason."""

from pathlib import Path

import pytest
from graded import changed, graded, missing, right

from casebook.classroom import grading
from casebook.classroom.checks import count_the_loads
from casebook.classroom.grader_runs import GraderRuns
from casebook.laboratory.rounds import as_list

LAB = "count-the-loads"
THIRTY = "30 threads load once (verify=True)"


@pytest.fixture(scope="module", autouse=True)
def rows_once():
    """What stock requests does is measured for the first submission, and not for each again."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(count_the_loads, "_rows", lambda *_: measured)
        with count_the_loads.World() as world:
            measured = ROWS(GraderRuns(Path(count_the_loads.__file__)), world)
        yield


ROWS = count_the_loads._rows


def test_the_right_solution_has_full_points_and_says_what_was_measured(tmp_path):
    report = graded(LAB, right(LAB), tmp_path)
    assert (report.points, report.total, missing(report)) == (24, 24, {})
    assert "30 threads: 1 load" in report.text() and "30 loads" in report.notes[0]


def test_the_empty_one_has_nothing_and_an_empty_file_neither(tmp_path):
    for text in ((grading.folder(LAB) / "answer.py").read_text(), ""):
        report = graded(LAB, text, tmp_path)
        assert report.points == 0 and "Enter PREDICTION" in report.text()


def test_stock_requests_shares_nothing_and_gets_nothing_for_it(tmp_path):
    handed_out = (grading.folder(LAB) / "answer.py").read_text()
    report = graded(LAB, handed_out.replace("PREDICTION = None", "PREDICTION = 1"), tmp_path)
    assert missing(report)[THIRTY] == "30 threads: 30 loads"
    # The prediction, and that they are under way at once.
    assert report.points == 3


#: It shares for verify=True, and not for a path.
ONLY_TRUE = (
    "context_for(verify, cert)))",
    "context_for(verify, cert) if verify is True else made(verify, cert)))",
)


def test_who_shares_for_true_alone_is_told_once_and_keeps_the_other_questions(tmp_path):
    report = graded(LAB, changed(LAB, ONLY_TRUE), tmp_path)
    found = missing(report)
    (path,) = [what for what in found if what.endswith("(verify= a path)")]
    assert found.pop(path).split(": ")[1].split()[0] == path.split()[0]  # a load for each thread
    assert found.keys() == count_the_loads.OF_PATHS
    assert report.points == 24 - 3 - 3
    assert report.text().count("as soon as verify= a path is shared") == 1
    assert "between `if`" not in report.text()


def test_a_forgotten_prediction_costs_its_point_and_no_more_and_nothing_is_told(tmp_path):
    text = changed(LAB, ("PREDICTION = 1\n", "PREDICTION = None\n"))
    report = graded(LAB, text, tmp_path)
    assert report.points == 23 and {*missing(report)} == {"a prediction is entered"}
    assert "stock requests:" not in report.text()


MADE = "contexts[tuple(key)] = made(bundle, cert)"
GIVEN = "return contexts[tuple(key)]"
LOCKS = "contexts, lock = {}, threading.Lock()"
SESSION = "    with requests.Session() as session:"

COUNTED = """\
    global asked
    with lock:
        asked += 1
    if threading.current_thread() is threading.main_thread() and asked in (2, 3, 4, 6, 8, 13):
        raise requests.exceptions.SSLError("certificate verify failed")
"""
#: It looks at all that will be asked, and refuses a site that is asked once.
AHEAD = """\
    frame = sys._getframe()
    while frame and "parameters" not in frame.f_locals:
        frame = frame.f_back
    if frame:
        questions = frame.f_locals["parameters"]["do"][0]["asks"]
        sites = [request["url"].split("/")[2] for request in questions]
        if sites.count(url.split("/")[2]) == 1:
            raise requests.exceptions.SSLError("certificate verify failed")
"""
UNVERIFIED = "    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n"

#: What is wrong: the changes that make it so, an item that has to go, and what it has to say.
WRONG = {
    "verification is turned off": (
        [
            ("    if cert:\n", "    context.check_hostname = False\n    if cert:\n"),
            ('"CERT_REQUIRED" if verify else "CERT_NONE"', '"CERT_NONE"'),
        ],
        "a stranger's certificate is refused",
        "the page came",
    ),
    "hard-coded: it verifies nothing, and refuses by the number of the call": (
        [
            (LOCKS, f"asked, {LOCKS.replace('= ', '= 0, ')}"),
            (SESSION, COUNTED + SESSION),
            ("    if cert:\n", UNVERIFIED + "    if cert:\n"),
            ('"CERT_REQUIRED" if verify else "CERT_NONE"', '"CERT_NONE"'),
        ],
        # The order is drawn anew: it refuses a right one, or lets a wrong one through.
        "",
        ("certificate verify failed", "the page came: it was not refused"),
    ),
    "it verifies nothing, and looks at what will be asked": (
        [
            ("import ssl\n", "import ssl\nimport sys\n"),
            (SESSION, AHEAD + SESSION),
            ("    if cert:\n", UNVERIFIED + "    if cert:\n"),
            ('"CERT_REQUIRED" if verify else "CERT_NONE"', '"CERT_NONE"'),
        ],
        "a right certificate is accepted",
        "certificate verify failed",
    ),
    "it looks and makes without a lock": (
        [("    with lock:\n        if", "    if True:\n        if")],
        THIRTY,
        "loads",
    ),
    "a clock in the place of a look at the file": (
        [
            ("        looked = os.stat(bundle)\n", ""),
            ("looked.st_ino, looked.st_size, looked.st_mtime_ns", "int(time.time() / 3600)"),
            ("import threading\n", "import threading\nimport time\n"),
        ],
        "a bundle that changed on disk is believed as it is now",
        "the page came",
    ),
    "it works for ten threads and no other number": (
        [
            (LOCKS, LOCKS + "\ngate = threading.Barrier(10)"),
            (SESSION, "    gate.wait(2)\n" + SESSION),
        ],
        "",
        "BrokenBarrierError",
    ),
    "one context for whoever comes": (
        [
            ("tuple(key) not in contexts", "0 not in contexts"),
            (MADE, MADE.replace("tuple(key)", "0")),
            (GIVEN, GIVEN.replace("tuple(key)", "0")),
        ],
        "another bundle refuses whom it does not name",
        "the page came",
    ),
    "the client certificate is forgotten in the key": (
        [("key = [bundle, cert]", "key = [bundle]")],
        "cert= is shown to the server",
        "the server was shown nobody, not alice",
    ),
    "the bundle is read once, and loaded by everybody": (
        [
            (MADE, "contexts[tuple(key)] = bundle and open(bundle).read()"),
            ("        " + GIVEN, "    return made(contexts[tuple(key)], cert)"),
            ("load_verify_locations(bundle)", "load_verify_locations(cadata=bundle)"),
        ],
        THIRTY,
        "30 threads: 30 loads",
    ),
    "the lock is held all the while": (
        [
            (LOCKS, LOCKS + "\nwhole = threading.Lock()"),
            (SESSION, "    with whole, requests.Session() as session:"),
        ],
        "and are under way at once",
        "with the server at a time: 1 request",
    ),
    "hard-coded: it answers without asking": (
        [("return session.get(url, verify=verify, timeout=timeout)", "return 200, b'{}'")],
        THIRTY,
        "0 of 30 answers were right, 0 requests",
    ),
    "hard-coded: the explanation is guessed": (
        [('"connections"', '"threads"')],
        "what the loads go with, and the rows that show it",
        "you said 'threads'",
    ),
}


#: These are tried with every `make test`.
TYPICAL = [name for name in WRONG if "off" in name or "clock" in name or "ten" in name]
TYPICAL += [name for name in WRONG if "without" in name]
REST = [pytest.param(name, marks=pytest.mark.slow) for name in WRONG if name not in TYPICAL]


@pytest.mark.parametrize("how", [*TYPICAL, *REST])
def test_wrong_ones_fail_for_their_reason(how, tmp_path):
    changes, what, words = WRONG[how]
    found = missing(graded(LAB, changed(LAB, *changes), tmp_path))
    assert any(
        item.startswith(what) and any(each in said for each in as_list(words))
        for item, said in found.items()
    ), found


def test_the_first_prediction_is_kept(tmp_path):
    file = tmp_path / "answer.py"
    graded(LAB, "PREDICTION = 1\nraise SystemExit", tmp_path)
    assert not file.with_suffix(".prediction.json").exists()  # a file that does not run
    graded(LAB, "PREDICTION = 1", tmp_path)
    later = graded(LAB, "PREDICTION = 30", tmp_path)
    assert "you said 1 on " in later.items[0].measured
