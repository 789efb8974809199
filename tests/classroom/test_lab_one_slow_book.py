"""One slow book: the right solution, the empty one, and wrong ones, each for its reason."""

import pytest
from graded import changed, graded, missing, right

from casebook.classroom import grading
from casebook.classroom.checks import one_slow_book

LAB = "one-slow-book"


@pytest.fixture(scope="module", autouse=True)
def shelves_once():
    """The grader's own shelves are drawn and measured for the first submission, and not again."""
    counts, measured, drawn = {}, one_slow_book.count_before, one_slow_book.shelves()

    def once(shelf):
        if shelf not in counts:
            counts[shelf] = measured(shelf)
        return counts[shelf]

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(one_slow_book, "count_before", once)
        patching.setattr(one_slow_book, "shelves", lambda: drawn)
        yield


def test_the_right_solution_has_full_points_and_the_model_holds_on_real_shelves(tmp_path):
    report = graded(LAB, right(LAB), tmp_path)
    assert (report.points, report.total, missing(report)) == (15, 15, {})


def test_the_empty_one_has_nothing_and_the_loop_that_is_there_brings_the_books(tmp_path):
    handed_out = (grading.folder(LAB) / "answer.py").read_text()
    assert graded(LAB, handed_out, tmp_path).points == 0
    text = handed_out.replace("PREDICTION = None", "PREDICTION = [99, 99, 99]")
    assert graded(LAB, text, tmp_path).points == 1 + 2 + 2


MODEL = "    return slow[lanes - 1] - lanes  # each lane is held by a slow book then\n"
ASKED = "    asked = {connection.request(path): path for path in paths}\n"
LOOP = """\
    while asked:
        stream, body = connection.next_response()
        take(asked.pop(stream), body)
"""
TAKES = "        take(asked.pop(stream), body)\n"
CHUNKS = """\
    while paths:
        chunk, paths = paths[:10], paths[10:]
        asked = {connection.request(path): path for path in chunk}
        while asked:
            stream, body = connection.next_response()
            take(asked.pop(stream), body)
"""
CLOCK = """\
    import threading

    late = threading.Event()
    threading.Timer(0.1, late.set).start()
    for stream, path in asked.items():
        late.wait()
        take(path, connection.response(stream))
"""
SORTED = """\
    import time

    took_s, bodies = {}, {}
    for stream, path in asked.items():
        start = time.monotonic()
        bodies[path] = connection.response(stream)
        took_s[path] = time.monotonic() - start
    for path in sorted(bodies, key=took_s.get):
        take(path, bodies[path])
"""

#: The books are no secret: whoever finds the file need not ask for any.
KNOWN = """\
    import json
    import pathlib
    import types

    import shelf

    file = pathlib.Path(shelf.__file__).parents[4] / "data" / "books.json"
    known = json.loads(file.read_text())
    for path in paths:
        body = json.dumps(known[path.rpartition("=")[2]]).encode()
        headers = {":status": "200", "content-length": str(len(body))}
        take(path, types.SimpleNamespace(headers=headers, body=body))
"""
#: Her loop runs in the process that tells what it took: up its frames is the function that tells.
TELLS = """\
    import os
    import sys

    import two_loops

    frame = sys._getframe()
    while "send" not in frame.f_locals:
        frame = frame.f_back
    tell = frame.f_locals["send"]
    bodies = {}
    start, longest, slow = os.times().elapsed, 0, None
    for stream, path in asked.items():
        bodies[path] = two_loops.Connection.response(connection, stream).body.decode()
        start, took = os.times().elapsed, os.times().elapsed - start
        longest, slow = max((longest, slow), (took, path), key=lambda each: each[0])
    for path in sorted(bodies, key=slow.__eq__):
        book = path.rpartition("=")[2]
        tell(came=book)
        tell(took=[book, bodies[path]])
"""
#: What is wrong: the changes that make it so, an item that has to go, and what it has to say.
WRONG = {
    "a hard-coded model": (
        [("        return slow[0] - 1\n", "        return 9\n")],
        "the model",
        "9, m",
    ),
    "a model for one slow book": ([(MODEL, "    return slow[0] - 1\n")], "the model", "you say"),
    "a clock in the place of a count": ([(LOOP, CLOCK)], "", "were taken before it"),
    "all are gathered first, and the slow one is handed on last": (
        [(LOOP, SORTED)],
        "",
        "0 of",
    ),
    "it works for ten": ([(ASKED, ""), (LOOP, CHUNKS)], "", "were taken before it"),
    "the slow one is left out": (
        [("    while asked:\n", "    while len(asked) > 1:\n")],
        "10 books: all come",
        "9 of 10",
    ),
    "it takes them from the file of the stock, and asks for none": (
        [(ASKED + LOOP, KNOWN)],
        "10 books: all come",
        "0 of 10 came right, of 0 requests",
    ),
    "it takes them from the file of the stock, and asks for them all the same": (
        [(LOOP, KNOWN + LOOP.replace(TAKES, "        asked.pop(stream)\n"))],
        "10 books: all come",
        "0 of 10 came right, of 10 requests",
    ),
    "it waits in the order asked, and tells the grader another": (
        [(LOOP, TELLS)],
        "10 books: nobody waits",
        "0 of 9 were taken before it",
    ),
    "it takes what did not come": (
        [(TAKES, TAKES.replace("asked.pop(stream)", "asked.popitem()[1]"))],
        "",
        "came right",
    ),
    "the wrong two rows": ([('["A", "B"]', '["A", "D"]')], "the two rows", "['A', 'D']"),
}


#: These are tried with every `make test`.
TYPICAL = [name for name in WRONG if "hard-coded" in name or "clock" in name or "ten" in name]
TYPICAL += [name for name in WRONG if "tells the grader" in name or "all the same" in name]
REST = [pytest.param(name, marks=pytest.mark.slow) for name in WRONG if name not in TYPICAL]


@pytest.mark.parametrize("how", [*TYPICAL, *REST])
def test_wrong_ones_fail_for_their_reason(how, tmp_path):
    changes, what, words = WRONG[how]
    found = missing(graded(LAB, changed(LAB, *changes), tmp_path))
    assert any(item.startswith(what) and words in said for item, said in found.items()), found
