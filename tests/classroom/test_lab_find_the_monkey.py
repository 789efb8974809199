"""Find the monkey: the right solution, the empty one, and wrong ones, each for its reason."""

import json

import pytest
from graded import changed, graded, missing, right

from casebook.classroom import grading
from casebook.classroom.grader_runs import GraderRuns

LAB = "find-the-monkey"


@pytest.fixture(scope="module", autouse=True)
def own_runs_once():
    """Make the grader's own runs only once: no submission changes them.

    The first submission that needs them makes them.
    """
    answers = {}

    def measured(bench, names, asked, measure):
        question = json.dumps([names, asked])
        if question not in answers:
            answers[question] = measure()
        return answers[question]

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(GraderRuns, "_measure", measured)
        yield


def test_the_right_solution_has_full_points_and_says_what_was_measured(tmp_path):
    report = graded(LAB, right(LAB), tmp_path)
    assert (report.points, report.total, missing(report)) == (20, 20, {})
    said = " ".join(report.notes)
    assert "over https: at most 1 under way, serial" in said and "no timing" in said


@pytest.mark.slow
def test_the_other_cure_of_chapter_7_has_full_points_too(tmp_path):
    cure = ("pyopenssl.extract_from_urllib3()", "monkey.patch_select()")
    text = changed(
        LAB, ("from urllib3.contrib import pyopenssl", "from gevent import monkey"), cure
    )
    assert missing(graded(LAB, text, tmp_path)) == {}


#: As on a machine that is busy elsewhere: from one request to the next the program needs longer
#: than a page takes.
BUSY = """\
    from gevent import monkey
    from urllib3.connection import HTTPConnection

    sleep, sending = monkey.get_original("time", "sleep"), HTTPConnection.send

    def send(self, data):
        if self.sock is None:
            self.connect()
        sleep(0.3)
        return sending(self, data)

    HTTPConnection.send = send
"""


def test_a_right_mend_is_right_on_a_busy_machine_too(tmp_path):
    assert missing(graded(LAB, changed(LAB, (MEND, MEND + BUSY)), tmp_path)) == {}


def test_the_empty_one_has_nothing_and_with_a_prediction_one_point(tmp_path):
    handed_out = (grading.folder(LAB) / "answer.py").read_text()
    report = graded(LAB, handed_out, tmp_path)
    assert report.points == 0 and "Enter PREDICTION" in report.text()
    report = graded(LAB, handed_out.replace("PREDICTION = None", "PREDICTION = 10"), tmp_path)
    # The prediction; and a mend that does nothing breaks nothing.
    assert report.points == 1 + 2 + 1, report.text()


SERIAL = 'return "serial" if run["peak_in_flight"] <= 1 else "concurrent"'
MEND = "    pyopenssl.extract_from_urllib3()\n"
UNVERIFIED = """\
    import requests

    asking = requests.Session.request
    requests.Session.request = lambda *a, **k: asking(*a, **dict(k, verify=False))
"""
THREADS = """\
    import grequests_map
    import requests
    from concurrent.futures import ThreadPoolExecutor

    def fetch(urls, verify):
        with ThreadPoolExecutor(len(urls)) as pool:
            return list(pool.map(lambda url: requests.get(url, verify=verify), urls))

    grequests_map.fetch = fetch
"""

BESIDE = """\
    import http.client
    import ssl
    from urllib.parse import urlsplit

    import gevent.monkey
    import requests

    start = gevent.monkey.get_original("_thread", "start_new_thread")
    asking = requests.Session.request

    def beside(host, path):
        asked = http.client.HTTPSConnection(host, context=ssl._create_unverified_context())
        asked.request("GET", path)
        asked.getresponse().read()

    def request(self, method, url, **options):
        at = urlsplit(url)
        start(beside, (at.netloc, f"{at.path}?{at.query}"))
        return asking(self, method, url, **options)

    requests.Session.request = request
"""

#: What is wrong there: nothing is verified, and the first call is refused.
COUNTED = """\
    pyopenssl.extract_from_urllib3()
    import requests

    asking, calls = requests.Session.request, []

    def request(self, *a, **k):
        calls.append(a)
        if len(calls) == 1:
            raise requests.exceptions.SSLError("certificate verify failed")
        return asking(self, *a, **dict(k, verify=False))

    requests.Session.request = request
"""

#: What is wrong: the changes that make it so, an item that has to go, and what it has to say.
BY_THE_CLOCK = '["wall_s"] > run["n"] * run["delay_s"] * 0.7'
WRONG = {
    "another client in the place of the program's": (
        [(MEND, THREADS)],
        "mended: 10 pages",
        "serial",
    ),
    "it asks for each page twice, once beside": (
        [("    from urllib3.contrib import pyopenssl\n\n", ""), (MEND, BESIDE)],
        "mended: 10 pages",
        "no timing",
    ),
    "a hard-coded verdict": ([(SERIAL, 'return "serial"')], "verdicts", "you say 'serial'"),
    "a clock in the place of a count": (
        [(SERIAL, 'return "serial" if run["wall_s"] > 0.5 else "concurrent"')],
        "verdicts",
        "you say",
    ),
    "a clock that does not ask whether the pages came": (
        [
            ("any(status != 200 for status in run[\"statuses\"])", "False"),
            (SERIAL, SERIAL.replace('["peak_in_flight"] <= 1', BY_THE_CLOCK)),
        ],
        "verdicts",
        "it is 'no timing'",
    ),
    "a verdict for ten pages": (
        [(SERIAL, 'return "concurrent" if run["peak_in_flight"] == 10 else "serial"')],
        "verdicts",
        "it is 'concurrent'",
    ),
    "verification is turned off": (
        [(MEND, MEND + UNVERIFIED)],
        "a stranger's certificate is still refused",
        "not refused",
    ),
    "nothing is verified, and the first call is refused": (
        [(MEND, COUNTED)],
        "a stranger's certificate is still refused",
        "refused",
    ),
    "the package is made to vanish": (
        [(MEND, MEND + '    import sys\n\n    sys.modules["OpenSSL"] = None\n')],
        "nothing is uninstalled",
        "ModuleNotFoundError",
    ),
    "the first suspect": ([('"archive"', '"mailer"')], "since which import", "'mailer'"),
    "the wrong two rows": ([('["A", "B"]', '["A", "C"]')], "the two rows", "['A', 'C']"),
}  # fmt: skip
TYPICAL = [*list(WRONG)[:2], "verification is turned off", "a verdict for ten pages"]
REST = [pytest.param(name, marks=pytest.mark.slow) for name in WRONG if name not in TYPICAL]


@pytest.mark.parametrize("how", [*TYPICAL, *REST])
def test_wrong_ones_fail_for_their_reason(how, tmp_path):
    changes, what, words = WRONG[how]
    found = missing(graded(LAB, changed(LAB, *changes), tmp_path))
    assert any(item.startswith(what) and words in said for item, said in found.items()), found
