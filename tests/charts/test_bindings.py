"""Names and objects: what stands behind a name after each import, who waits, and the picture."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import here
import pytest
from playwright.sync_api import Browser, Page
from test_pages import inaccessible, too_wide, troubles

from casebook import charts
from casebook.cases.fetching import bindings
from casebook.cases.fetching.bindings import Bindings, Layer
from casebook.charts.figure import Chart
from casebook.errors import RunFailed
from casebook.laboratory import measurements
from casebook.stacks import environments
from casebook.words import LIVE, REFERENCE

COPY, CONTEXT, POLL = "urllib3.util.ssl_.SSLContext", "ssl.SSLContext", "select.poll"
CONNECTION = "OpenSSL.SSL.Connection"
PYOPENSSLS = "urllib3.contrib.pyopenssl.PyOpenSSLContext"
FIRST, LATE = bindings.GEVENT_FIRST, bindings.URLLIB3_FIRST
INJECTED = (*FIRST, "inject")

# ------------------------------------------------------------------------------- in real stacks

#: stack, steps, scheme -> in the end whose urllib3's copy is and whose select.poll, who waits, how.
STACKS = {
    ("stage-1-py27", FIRST, "https"): ("gevent", "Python", "gevent's TLS", "loop"),
    ("stage-2-py27", FIRST, "https"): ("pyOpenSSL", "Python", "Python's poll", "holds"),
    ("stage-2-py27", FIRST, "http"): ("pyOpenSSL", "Python", "gevent's socket", "loop"),
    ("stage-1-py37", FIRST, "https"): ("gevent", "Python", "gevent's TLS", "loop"),
    ("stage-2-py37", FIRST, "https"): ("pyOpenSSL", "Python", "Python's poll", "holds"),
    ("stage-1-today", FIRST, "https"): ("gevent", "Python", "gevent's TLS", "loop"),
    ("stage-2-today", FIRST, "https"): ("gevent", "Python", "gevent's TLS", "loop"),
    ("stage-2-today", INJECTED, "https"): ("pyOpenSSL", "Python", "Python's poll", "holds"),
    ("stage-2-today", (*INJECTED, "extract"), "https"): (
        *("gevent", "Python", "gevent's TLS", "loop"),
    ),
    ("stage-2-today", (*INJECTED, "patch_select"), "https"): (
        *("pyOpenSSL", "gevent", "gevent's poll", "loop"),
    ),
    ("stage-3-today", (*INJECTED, "gevent_openssl"), "https"): (
        *("pyOpenSSL", "Python", "Python's poll", "holds"),
    ),
    ("stage-4-today", (*INJECTED, "gevent_openssl"), "https"): (
        *("pyOpenSSL", "Python", "gevent_openssl", "loop"),
    ),
}


@pytest.mark.parametrize(
    "choice", STACKS, ids=lambda choice: "-".join((choice[0], *choice[1][-1:]))
)
def test_the_names_and_the_read_are_those_of_the_story(choice):
    here.environment(choice[0])
    copy, poll, waiter, does = STACKS[choice]
    seen = bindings.inspect(*choice)
    last = seen.steps[-1]
    assert seen.source == LIVE and not seen.failure
    assert (seen.owner(last, COPY), seen.owner(last, POLL)) == (copy, poll)
    assert (seen.layers[-1].name, seen.waits) == (waiter, does)
    # gevent's patch stays where it was, whoever comes after it.
    assert seen.owner("python", CONTEXT) == "Python" and seen.owner(last, CONTEXT) == "gevent"
    assert seen.owner(last, "socket.socket") == "gevent"
    assert [layer.name for layer in seen.layers[:3]] == ["requests", "urllib3", "Python's HTTP"]
    refused = [layer.call for layer in seen.layers if layer.does == bindings.NOTHING_YET]
    https = choice[2] == "https"
    assert len(refused) == (copy == "pyOpenSSL" and https)
    # Who holds the thread silences the loop for as long as the server takes, however slow the
    # machine; while the loop waits, it beats many times in each tenth of a second.
    moments = [0, *seen.beats, seen.wall_s]
    silence_s = max(after - before for before, after in itertools.pairwise(moments))
    assert silence_s > 0.9 * bindings._DELAY_S if does == "holds" else len(seen.beats) > 8


@pytest.mark.parametrize("name", ["stage-1-py27", "stage-1-py37", "stage-1-today"])
def test_the_copy_made_before_the_patch_keeps_the_old_object(name):
    here.environment(name)
    seen = bindings.inspect(name, LATE)
    assert [seen.owner(step, COPY) for step in LATE] == ["", *["Python"] * 3]
    assert [seen.owner(step, CONTEXT) for step in LATE] == ["Python", "Python", "gevent", "gevent"]
    # On Python 2.7 it works by luck; after that the two classes lead to each other.
    assert seen.failure == ("" if name == "stage-1-py27" else "RecursionError")
    assert bool(seen.layers) == (name == "stage-1-py27")


def test_without_pyopenssl_no_arrow_points_to_it():
    """The control: nothing of it is drawn, neither an object nor a name."""
    alone = bindings.inspect("stage-1-today")
    assert "pyOpenSSL" not in {
        alone.owner(step, name) for step, classes in alone.classes.items() for name in classes
    }
    html = charts.bindings({"alone": alone}).html
    drawn = html[html.index("<div") : html.index("<figcaption")]
    assert "pyopenssl" not in drawn.lower() and CONNECTION not in drawn
    assert (
        "pyopenssl" in charts.bindings({"with": bindings.inspect("stage-2-today", INJECTED)}).html
    )


def test_what_is_kept_names_no_folder_of_this_machine():
    seen = bindings.inspect("stage-2-today", INJECTED)
    assert not re.search(r"[ '\"(]/", json.dumps(seen.classes) + str(seen.layers))


@pytest.mark.parametrize(
    "choices", [bindings.ORDERS, bindings.INJECTION, bindings.CURES], ids=["3", "6", "7"]
)
def test_a_machine_file_without_the_answers_shows_the_reference_machine_s(choices, monkeypatch):
    monkeypatch.setattr(measurements, "_answers", {})
    monkeypatch.setattr(environments, "_of_another", frozenset({"2.7.18", "3.7.16"}))
    shown = bindings.look_at(choices)
    assert {seen.source for seen in shown.values()} == {REFERENCE}
    caption = charts.bindings(shown).caption
    assert "not measured now" in caption and "Measured on" not in caption


# -------------------------------------------------------------------------------------- by hand

PASSED = [
    *(["~probe/bindings.py", "get"], ["requests/api.py", "get"], ["requests/adapters.py", "send"]),
    *(["urllib3/connectionpool.py", "urlopen"], ["http/client.py", "begin"]),
    ["socket.py", "readinto"],
]
IN_URLLIB3 = [["urllib3/contrib/pyopenssl.py", "recv_into"], ["urllib3/util/wait.py", "do_poll"]]
WANTS = [["OpenSSL/SSL.py", "_raise_ssl_error", "WantReadError"]]
WANTS += [["OpenSSL/SSL.py", "recv_into", "WantReadError"]]
HUB = [["gevent/hub.py", "run"]]
ABOVE = [
    Layer("requests", "", "send", "passes"),
    Layer("urllib3", "", "urlopen", "passes"),
    Layer("Python's HTTP", "Python", "readinto", "passes"),
]
NOTHING = Layer("pyOpenSSL", "pyOpenSSL", "recv_into", "nothing")
URLLIB3_WAITS = Layer("urllib3's wait", "", "do_poll", "passes")


@pytest.mark.parametrize(
    "on_thread, in_greenlet, refusals, poll, below",
    [
        (
            *(PASSED + IN_URLLIB3, [], WANTS, "Python"),
            [NOTHING, URLLIB3_WAITS, Layer("Python's poll", "Python", "poll", "holds")],
        ),
        (
            *(HUB, [*PASSED, *IN_URLLIB3, ["gevent/select.py", "poll"]], WANTS, "gevent"),
            [NOTHING, URLLIB3_WAITS, Layer("gevent's poll", "gevent", "poll", "loop")],
        ),
        (
            *(HUB, [*PASSED, ["gevent/_ssl3.py", "read"]], [], "Python"),
            [Layer("gevent's TLS", "gevent", "read", "loop")],
        ),
        (
            *(HUB, [*PASSED, ["gevent_openssl/SSL.py", "__iowait"]], WANTS, "Python"),
            [NOTHING, Layer("gevent_openssl", "gevent_openssl", "__iowait", "loop")],
        ),
        # What refused in the handshake alone, refused no read.
        (
            *(HUB, [*PASSED, ["gevent/_socket3.py", "recv_into"]]),
            *([["OpenSSL/SSL.py", "do_handshake", "WantReadError"]], "Python"),
            [Layer("gevent's socket", "gevent", "recv_into", "loop")],
        ),
        # Without poll urllib3 waits with select: no name of the picture stands for that.
        (
            [*PASSED, ["urllib3/util/wait.py", "select_wait_for_socket"]],
            *([], [], "Python"),
            [Layer("urllib3's wait", "", "select_wait_for_socket", "holds")],
        ),
    ],
)
def test_the_layers_of_a_read_by_hand(on_thread, in_greenlet, refusals, poll, below):
    read = {"on_thread": on_thread, "in_greenlet": in_greenlet, "refusals": refusals}
    assert bindings.layers(read, poll) == (*ABOVE, *below)


def test_a_read_in_which_nobody_was_seen_is_no_answer():
    read = {"on_thread": HUB, "in_greenlet": [], "refusals": []}
    with pytest.raises(RunFailed, match="nobody was seen to wait"):
        bindings.layers(read, "Python")


@pytest.mark.parametrize(
    "class_, owner",
    [
        ("socket._socketobject", "Python"),
        ("select.poll", "Python"),
        ("gevent._sslgte279.SSLContext", "gevent"),
        ("gevent.select.poll", "gevent"),
        ("gevent_openssl.SSL.Connection", "gevent_openssl"),
        ("OpenSSL.SSL.Connection", "pyOpenSSL"),
        (PYOPENSSLS, "pyOpenSSL"),
        ("urllib3.util.wait.wait_for_socket", "urllib3"),
    ],
)
def test_whose_a_class_is(class_, owner):
    assert bindings.owner_of(class_) == owner


def seen(steps: dict[str, dict[str, str | None]], layers=(), failure="") -> Bindings:
    """A process that was never run: step -> name -> class."""
    beats = (0.01, 0.35)
    origin = (LIVE, "2026-11-27T08:00:00Z")
    return Bindings(
        "stage-2-today", "https", (*steps,), "3.11.7", steps, layers, failure, beats, 0.4, *origin
    )


P, G = ("ssl.SSLContext", "gevent.ssl.SSLContext")
READ = (*ABOVE, NOTHING, URLLIB3_WAITS, Layer("Python's poll", "Python", "poll", "holds"))
#: Injected, and cured by a patch of select.
CURED = seen(
    {
        "python": {CONTEXT: P, COPY: None, POLL: "select.poll"},
        "patch_as_grequests": {CONTEXT: G, COPY: None, POLL: "select.poll"},
        "urllib3": {CONTEXT: G, COPY: G, POLL: "select.poll"},
        "inject": {CONTEXT: G, COPY: PYOPENSSLS, POLL: "select.poll"},
        "patch_select": {CONTEXT: G, COPY: PYOPENSSLS, POLL: "gevent.select.poll"},
    },
    READ,
)
#: urllib3 first: its copy is too early.
EARLY = seen(
    {
        "python": {CONTEXT: P, COPY: None, POLL: "select.poll"},
        "urllib3": {CONTEXT: P, COPY: P, POLL: "select.poll"},
        "patch_as_grequests": {CONTEXT: G, COPY: P, POLL: "select.poll"},
    },
    failure="RecursionError",
)


@pytest.fixture(scope="module")
def picture() -> Chart:
    return charts.bindings({"cured": CURED, "urllib3 first": EARLY}, name="tried")


def told_in(picture: Chart) -> list[dict]:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', picture.html)[1])


def test_the_arrows_after_each_line_by_hand(picture):
    """Names: ssl's context, urllib3's copy, poll. Objects: Python's, gevent's, pyOpenSSL's."""
    cured, early = told_in(picture)
    assert [(line["to"], line["was"]) for line in cured["lines"]] == [
        ([0, -1, 0], [-1, -1, -1]),
        ([1, -1, 0], [0, -1, -1]),
        ([1, 1, 0], [-1, -1, -1]),
        ([1, 2, 0], [-1, 1, -1]),
        ([1, 2, 1], [-1, -1, 0]),  # the cure moves poll alone...
        ([1, 2, 1], [-1, -1, 0]),  # ...and what it has cut stays marked
    ]
    assert [line["cut"] for line in cured["lines"]] == [False] * 4 + [True] * 2
    assert not any(flag for line in cured["lines"] for flag in line["early"])
    assert [(line["to"], line["early"]) for line in early["lines"]] == [
        ([0, -1, 0], [False, False, False]),
        ([0, 0, 0], [False, False, False]),
        ([1, 0, 0], [False, True, False]),
        ([1, 0, 0], [False, True, False]),
    ]


def test_each_line_has_a_sentence_that_follows_from_what_it_changed(picture):
    cured, early = ([line["says"] for line in run["lines"]] for run in told_in(picture))
    assert cured[1] == (
        "gevent patches: ssl.SSLContext now points to gevent's. "
        "select.poll is left alone, as grequests asks."
    )
    assert cured[2].endswith("to gevent's.") and early[1].endswith("to Python's.")
    assert cured[3].startswith("Injected: urllib3's SSLContext now points to pyOpenSSL's.")
    assert cured[4] == "The cure: select.poll now points to gevent's."
    assert cured[5].endswith("holds the thread. The loop is blocked: 2 beats in 400 ms.")
    assert early[2].endswith("urllib3's copy was made too early: it still points to Python's.")
    assert early[3] == "The page never comes: the read ends in a RecursionError."
    described = told_in(picture)[1]["lines"][1]["alt"]
    assert described == (
        "After import urllib3: ssl.SSLContext points to Python's; urllib3's SSLContext points to "
        "Python's; select.poll points to Python's."
    )


def test_the_finding_is_the_alternative_text(picture):
    assert "Cured: urllib3's SSLContext is pyOpenSSL's. The read waits in Python's poll" in (
        picture.alt
    )
    assert "urllib3 first: urllib3's SSLContext is Python's. The page never comes" in picture.alt


def test_the_silence_is_drawn_where_the_loop_is_blocked_and_nowhere_else(picture):
    cured, early = picture.html.split('<div class="nm-run')[1:]
    assert 'class="nm-silence" style="left:2.5%;width:85.0%"' in cured
    assert cured.count('class="nm-beat"') == 2
    assert "nm-silence" not in early and "nm-beat" not in early and "nm-loop" not in early
    assert "nm-is-failed" in early and "nm-is-holds" not in early


# ------------------------------------------------------------------------------------ in a page


def write(picture: Chart, folder: Path) -> Path:
    page = folder / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Names</title>"
        "<meta name=viewport content='width=device-width'><main><h1>Names</h1>"
        f"{picture.html}</main></html>"
    )
    return page


@pytest.fixture(params=[1000, 390])
def tab(browser: Browser, picture, tmp_path: Path, request) -> Iterator[Page]:
    # Nothing moves by itself, so that what is looked at is what will be seen.
    context = browser.new_context(
        viewport={"width": request.param, "height": 900}, reduced_motion="reduce"
    )
    opened = context.new_page()
    found = troubles(opened)
    opened.goto(write(picture, tmp_path).as_uri())
    yield opened
    assert not found
    context.close()


def points_at(tab: Page) -> list[str]:
    """Whose object the shown wires end at, from the top: measured in the page."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('.nm-run:not([hidden]) .nm-group')].flatMap(group =>
          [...group.querySelectorAll('.nm-wire')].map(wire => {
            if (wire.hasAttribute('hidden')) return '';
            const end = wire.getPointAtLength(wire.getTotalLength());
            const box = group.getBoundingClientRect(), y = box.top + box.height * end.y / 100;
            const at = [...group.querySelectorAll('.nm-object')].find(object => {
              const { top, bottom } = object.getBoundingClientRect();
              return top < y && y < bottom;
            });
            return at.querySelector('b').textContent;
          }))"""
    )


def test_wires_end_at_their_objects_after_each_line(tab, picture):
    owners = [["Python's", "gevent's", "pyOpenSSL's"]] * 2 + [["Python's", "gevent's"]]
    for number, run in enumerate(told_in(picture)):
        tab.locator(".nm-choice").nth(number).click()
        tab.keyboard.press("Home")
        for line in run["lines"]:
            expected = [owners[i][row] if row >= 0 else "" for i, row in enumerate(line["to"])]
            assert points_at(tab) == expected
            assert tab.locator(".nm-run:visible .nm-says").inner_text() == line["says"]
            tab.keyboard.press("ArrowRight")


def test_it_is_stepped_through_by_button_by_key_and_by_line(tab):
    now = tab.locator(".nm-run:visible .nm-now")
    read = tab.locator(".nm-run:visible .nm-layers")
    assert "requests.get(url)" in now.inner_text() and read.is_visible()  # who only looks
    tab.get_by_label("From the start").locator("visible=true").click()
    assert now.inner_text().strip() == "import socket, ssl, select" and not read.is_visible()
    assert tab.get_by_label("One line back").locator("visible=true").is_disabled()
    tab.get_by_label("Next line").locator("visible=true").click()
    assert "patch_all" in now.inner_text()
    tab.keyboard.press("ArrowLeft")
    assert "import socket" in now.inner_text()
    tab.locator(".nm-run:visible .nm-jump").last.click()
    assert "requests.get(url)" in now.inner_text() and read.is_visible()
    assert tab.locator(".nm-run:visible .nm-is-holds").inner_text().endswith("holds the thread")
    assert not tab.get_by_label("Next line").locator("visible=true").count()
    tab.keyboard.press("ArrowDown")  # and no further
    assert "requests.get(url)" in now.inner_text()


def test_a_cure_marks_the_arrow_that_it_cuts(tab):
    cuts = tab.locator(".nm-run:visible .nm-cut")
    for line, count in enumerate((0, 0, 0, 0, 1, 1)):
        tab.locator(".nm-run:visible .nm-jump").nth(line).click()
        assert cuts.count() == count, line
    assert (
        cuts.locator("xpath=ancestor::*[contains(@class,'nm-group')]")
        .inner_text()
        .startswith("select.")
    )


def test_the_early_copy_says_so(tab):
    tab.get_by_role("button", name="urllib3 first").click()
    early = tab.locator(".nm-run:visible .nm-early")
    tab.keyboard.press("Home")
    assert early.count() == 0
    tab.get_by_role("button", name="monkey.patch_all").locator("visible=true").click()
    assert early.inner_text().split() == ["urllib3's", "SSLContext"]
    assert tab.locator(".nm-choice[aria-pressed=true]").all_text_contents() == ["urllib3 first"]


def test_everybody_can_read_it(tab):
    for line in (0, -1):
        tab.locator(".nm-run:visible .nm-jump").nth(line).click()
        assert not inaccessible(tab)
        assert not too_wide(tab)


def test_without_a_script_each_run_stands_there_with_a_sentence_for_each_line(
    browser, picture, tmp_path
):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(write(picture, tmp_path).as_uri())
    assert tab.locator(".nm-run:visible").count() == 2
    assert tab.locator(".nm-told:visible").count() == 6 + 4
    assert tab.locator(".nm-layers:visible").count() == 2 and tab.locator("button").count() == 0
    context.close()
