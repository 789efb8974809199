"""Sentences that rest on findings, on paragraphs that are written down, without a build."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sphinx import addnodes

from casebook.errors import BookFailed
from casebook.findings.finding import AS_HOLDS, Finding, Rounds
from casebook.laboratory.decisions import HOLDS, NOT_HERE, OTHERWISE, UNDECIDED
from casebook.pages import ledger, resting
from casebook.pages.contents import Book


def finding(id: str, outcome: str, chapter: str = "one") -> Finding:
    """A finding, as far as sentences need it."""
    return Finding(
        id, f"The {id} is 5.", 5.0, n=8, outcome=outcome, because=f"no {id} here", chapter=chapter
    )


def page(folder: Path, outcomes: dict[str, str], *blocks: list) -> tuple[nodes.document, list]:
    """A page of paragraphs as it is shown, and what is listed of it.

    blocks: of each paragraph its parts: text, a node, or (words, id of a claim, title).
    """
    book = Book(folder)
    book.included.mkdir(parents=True, exist_ok=True)
    findings = [finding(id, outcome) for id, outcome in outcomes.items()]
    (book.included / ledger.FINDINGS_FILE).write_text(ledger.claims_json(findings))
    builder = SimpleNamespace(get_relative_uri=lambda start, to: f"<from {start}>{to}.html")
    app = SimpleNamespace(srcdir=str(folder), builder=builder)
    env = SimpleNamespace(app=app, _app=app, docname="notebooks/one", metadata=defaultdict(dict))
    document = new_document("one", get_default_settings())
    document.settings.env = env
    for parts in blocks:
        paragraph = nodes.paragraph()
        for part in parts:
            if isinstance(part, tuple):
                words, id, *title = part
                part = nodes.reference("", "", nodes.Text(words), refuri=f"#claim-{id}")
                part["id_link"] = True
                if title:
                    part["reftitle"] = title[0]
            paragraph += nodes.Text(part) if isinstance(part, str) else part
        document += paragraph
    transform = resting.MarkSentences(document)
    transform.apply()
    return document, env.metadata["notebooks/one"][resting.LISTED]


def marked(folder: Path, outcomes: dict[str, str], *blocks: list) -> tuple[list[str], list]:
    """The texts of such paragraphs, and what is listed of them."""
    document, listed = page(folder, outcomes, *blocks)
    return [paragraph.astext() for paragraph in document.findall(nodes.paragraph)], listed


ALL = {"good": HOLDS, "bad": OTHERWISE, "open": UNDECIDED, "gone": NOT_HERE}


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["It is ", ("so", "good"), ". Done."], "It is so. Done."),
        (["It is ", ("so", "bad"), ". Done."], "Not so here: It is so. (The bad is 5) Done."),
        (["One. It is ", ("so", "open"), "! Done."],
         "One. Undecided here: It is so! (The open is 5) Done."),
        (["It is ", ("so", "gone")], "Not measured here: It is so (no gone here)"),
        # The gravest says how the sentence is marked; the others say their own.
        (["Is ", ("a", "gone"), " or ", ("b", "open"), " or ", ("c", "good"), "?"],
         "Undecided here: Is a or b or c? (not measured here: no gone here) (The open is 5)"),
        (["Is ", ("a", "open"), " or ", ("b", "bad"), "?"],
         "Not so here: Is a or b? (undecided here: The open is 5) (The bad is 5)"),
        # One sentence in the place of another, for its own outcome alone.
        (["A. ", ("So", "bad", "otherwise: It is `not`. undecided: Who knows?"), " be it. B."],
         "A. It is not. (otherwise here: The bad is 5) B."),
        (["A. ", ("So", "open", "otherwise: It is not. undecided: Who knows?"), " be it. B."],
         "A. Who knows? (undecided here: The open is 5) B."),
        (["A. ", ("So", "open", "otherwise: It is not."), " be it. B."],
         "A. Undecided here: So be it. (The open is 5) B."),
        (["A. ", ("So", "good", "otherwise: It is not."), " be it. B."], "A. So be it. B."),
        # What is no end of a sentence.
        (["See e.g. the ", ("so", "bad"), ", i.e. x vs. y etc. and 1.5 of it. B."],
         "Not so here: See e.g. the so, i.e. x vs. y etc. and 1.5 of it. (The bad is 5) B."),
        (["\u201cIs it?\u201d Then ", ("so", "bad"), "."],
         "\u201cIs it?\u201d Not so here: Then so. (The bad is 5)"),
        # A lead-in stands by itself.
        ([nodes.strong("", "Lead-in."), " It is ", ("so", "bad"), "."],
         "Lead-in. Not so here: It is so. (The bad is 5)"),
        (["One. ", nodes.strong("", "Lead-in!"), " It is ", ("so", "bad"), "."],
         "One. Lead-in! Not so here: It is so. (The bad is 5)"),
        ([nodes.emphasis("", "Lead-in?"), ("So", "bad"), "."],
         "Lead-in?Not so here: So. (The bad is 5)"),
        # Two sentences in the place of one, and a value that is no link.
        (["A ", ("is", "bad", "otherwise: No."), ", ", ("b", "open", "undecided: Who knows?"), "."],
         "No. Who knows? (otherwise here: The bad is 5) (undecided here: The open is 5)"),
        (["It takes ", nodes.inline("", "5", claim="bad"), " s."],
         "Not so here: It takes 5 s. (The bad is 5)"),
        # The word alone is no claim.
        (["The claim is ", ("so", "bad"), "."], "Not so here: The claim is so. (The bad is 5)"),
        ([nodes.strong("", "strong"), " is ", ("so", "bad"), "."],
         "Not so here: strong is so. (The bad is 5)"),
    ],
)  # fmt: skip
def test_a_sentence_whose_finding_did_not_hold_says_so(tmp_path, parts, shown) -> None:
    [text], _ = marked(tmp_path, ALL, parts)
    assert text == shown


def lines(markup: str) -> list[str]:
    return [line.strip() for line in markup.splitlines() if line.strip()]


def test_how_a_marked_sentence_is_made(tmp_path) -> None:
    """Its style sheet finds the parts by their classes, and readers its finding by the link."""
    document, _ = page(tmp_path, ALL, ["Is ", ("a", "gone"), " or ", ("b", "bad"), "?"])
    assert lines(document.pformat()) == lines("""
        <document source="one">
            <paragraph>
                <inline classes="cb-marked cb-otherwise">
                    <strong>
                        Not so here:
                    Is
                    <inline claim="gone" instead="{}">
                        <reference classes="cb-rests" internal="True" refuri="#claim-gone">
                            a
                    or
                    <inline claim="bad" instead="{}">
                        <reference classes="cb-rests" internal="True" refuri="#claim-bad">
                            b
                    ?
                    <inline classes="cb-why">
                        (
                        <reference classes="cb-rests" internal="True" refuri="#claim-gone">
                            not measured here
                            <inline classes="cb-measured">
                                :
                                no gone here
                        )
                    <inline classes="cb-why">
                        (
                        <reference classes="cb-rests" internal="True" refuri="#claim-bad">
                            The bad is 5
                        )
    """)


def test_code_in_the_sentence_that_takes_the_place(tmp_path) -> None:
    parts = [("So", "bad", "otherwise: `Not` so, and `not` so."), " be it."]
    document, _ = page(tmp_path, ALL, parts)
    assert [code.astext() for code in document.findall(nodes.literal)] == ["Not", "not"]


def links(*settings: dict) -> list[nodes.Element]:
    """Links to claims of pages, as MyST leaves them: the words stand in a child."""
    words = [addnodes.pending_xref("", **each) for each in settings]
    return [link.__iadd__(nodes.inline("", "", nodes.Text("so"))) for link in words]


@pytest.mark.parametrize(
    ("link", "shown", "complaints"),
    [
        ({"reftarget": "notebooks/one", "reftargetid": "claim-bad"},
         "Not so here: It is so. (The bad is 5)", []),
        ({"reftarget": "notebooks/one", "reftargetid": "claim-bad", "title": "otherwise: No."},
         "No. (otherwise here: The bad is 5)", []),
        ({"reftarget": "notebooks/one", "reftargetid": None}, "It is so.", []),
        ({"reftarget": "notebooks/one", "reftargetid": "claim-nobody"}, "It is so.",
         ["no chapter makes the claim 'nobody', on which a sentence rests"]),
        ({"reftarget": "notebooks/two", "reftargetid": "claim-good"}, "It is so.",
         ["the claim 'good' is made in one, not in notebooks/two"]),
        ({"reftarget": "notebooks/one", "reftargetid": "claim-good", "title": "Else."},
         "It is so.",
         ["the claim 'good': the title 'Else.' is a sentence for the case that the finding did "
          'not hold: it begins with "otherwise:" or "undecided:", each of them once at most']),
    ],
)  # fmt: skip
def test_a_link_to_a_claim_of_a_page(tmp_path, monkeypatch, link, shown, complaints) -> None:
    said: list = []
    logger = SimpleNamespace(warning=lambda *what, **where: said.append((*what, where)))
    monkeypatch.setattr(resting, "LOGGER", logger)
    [node] = links(link)
    [text], _ = marked(tmp_path, ALL, ["It is ", node, "."])
    assert text == shown
    # The log says where: at the link.
    assert said == [(text, {"location": node, "type": "casebook"}) for text in complaints]


def test_a_link_in_emphasis_marks_its_whole_sentence(tmp_path) -> None:
    [node] = links({"reftarget": "notebooks/one", "reftargetid": "claim-bad"})
    [text], _ = marked(tmp_path, ALL, ["One. It ", nodes.emphasis("", "is ", node), ", yes."])
    assert text == "One. Not so here: It is so, yes. (The bad is 5)"


@pytest.mark.parametrize(
    ("text", "id", "shown"),
    [
        ("bad", "bad", "0.01235"),  # four digits
        ("bad:.1%", "bad", "1.2%"),
        ("bad:.7f", "bad", "0.0123457"),  # rounded once
        ("two.ipynb::other:.0f", "other", "7"),
        ("gone:.1f", "gone", "…"),
        # No claim, one of another chapter, and a format that is none: MyST-NB's.
        ("nobody", None, ""),
        ("other:.0f", None, ""),
        ("two.ipynb::bad", None, ""),
        ("bad:.1q", None, ""),
    ],
)
def test_a_glued_value_is_that_of_its_claim(monkeypatch, text, id, shown) -> None:
    findings = {
        "bad": replace(finding("bad", OTHERWISE), value=0.01234567),
        "gone": replace(finding("gone", NOT_HERE), value=None),
        "other": replace(finding("other", HOLDS, "two"), value=7.0),
    }
    app = SimpleNamespace()
    monkeypatch.setattr(resting, "_findings", lambda its: findings if its is app else {})
    monkeypatch.setattr(resting.PasteTextRole, "run", lambda self: ([], ["MyST-NB's"]))
    role = object.__new__(resting.GluedValue)
    env = SimpleNamespace(docname="notebooks/one", app=app)
    role.inliner = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=env)))
    role.text = text
    made, messages = role.run()
    assert [(node["claim"], node.astext(), node["classes"]) for node in made] == (
        [(id, shown, ["pasted-text"])] if id else []
    )
    assert messages == ([] if id else ["MyST-NB's"])


def test_the_list_of_a_book_is_that_of_its_pages_in_their_order(tmp_path, monkeypatch) -> None:
    book = Book(tmp_path)
    with pytest.raises(BookFailed, match=r"^There is no book yet"):
        resting.listed(book)
    book.html.mkdir(parents=True)
    first = resting.Resting("b", "Over HTTP/2 it waits “so”.", ["good"])
    second = resting.Resting("a", "Here it waits.", ["good", "bad"], "Not so here.")
    pages_of = {tmp_path: ["b", "none", "a"]}
    monkeypatch.setattr(Book, "page_names", lambda its: pages_of[its.root])
    metadata = defaultdict(dict, a={resting.LISTED: [second]}, b={resting.LISTED: [first]})
    app = SimpleNamespace(srcdir=str(tmp_path), outdir=str(book.html), env=SimpleNamespace(
        metadata=metadata))  # fmt: skip
    resting.write_list(app, ValueError("a build that failed lists nothing"))
    assert not list(book.html.iterdir())
    resting.write_list(app, None)
    assert resting.listed(book) == [first, second]
    text = (book.html / "rests.json").read_text(encoding="utf-8")
    assert text.startswith('[\n {\n  "page": "b"') and "“so”" in text and text.endswith("]\n")
    # Of HTTP/2, one implementation was measured.
    findings = [replace(finding("good", HOLDS), stack="h2-today"), finding("bad", HOLDS)]
    (book.html / ledger.FINDINGS_FILE).write_text(ledger.claims_json(findings))
    assert resting.too_wide(book) == [(first, ["HTTP/2"])]
    both = [replace(findings[0], stack="h2-today, pycurl-today"), findings[1]]
    (book.html / ledger.FINDINGS_FILE).write_text(ledger.claims_json(both))
    assert resting.too_wide(book) == []


def test_what_sphinx_is_told_of() -> None:
    class App:
        def __getattr__(self, name):
            return lambda *values, **names: told.append((name, *values, *names.items()))

    told: list = []
    resting.setup(App())
    [*others, (*role, value, override)] = sorted(
        told, key=lambda call: call[0] == "add_role_to_domain"
    )
    assert others == [
        ("setup_extension", "myst_nb"),  # whose role the next one takes the place of
        ("add_transform", resting.MarkSentences),
        ("connect", "build-finished", resting.write_list),
    ]
    assert role == ["add_role_to_domain", "glue", "text"] and override == ("override", True)
    assert isinstance(value, resting.GluedValue)


def test_a_figure_is_said_once_on_a_page(tmp_path, monkeypatch) -> None:
    rounds = Rounds(value=5.0, n=8, interval=[4, 6], window="below 3")
    with_interval = replace(finding("bad", OTHERWISE), **vars(rounds), decided=rounds)
    monkeypatch.setattr(resting, "_findings", lambda _: {"bad": with_interval})
    texts, _ = marked(tmp_path, {}, [("A", "bad"), "."], [("B", "bad"), "."])
    assert texts == [
        "Not so here: A. (The bad is 5: 4 to 6 in 8 rounds, asked: below 3)",
        "Not so here: B. (4 to 6 in 8 rounds, asked: below 3)",
    ]


def test_what_two_findings_lack_is_said_once(tmp_path, monkeypatch) -> None:
    gone = {id: replace(finding(id, NOT_HERE), because="no Python 2.7.") for id in ("a", "b")}
    monkeypatch.setattr(resting, "_findings", lambda _: gone)
    [text], _ = marked(tmp_path, {}, ["Neither ", ("x", "a"), " nor ", ("y", "b"), "."])
    assert text == "Not measured here: Neither x nor y. (no Python 2.7)"


def test_all_that_rest_are_listed_in_their_order(tmp_path) -> None:
    blocks = [["A ", ("so", "good"), ". B ", ("so", "bad"), ". C."], ["D ", ("so", "open"), "."]]
    _, listed = marked(tmp_path, ALL, *blocks)
    assert [(each.page, each.text, each.claims, each.shown) for each in listed] == [
        ("notebooks/one", "A so.", ["good"], ""),
        ("notebooks/one", "B so.", ["bad"], "Not so here: B so. (The bad is 5)"),
        ("notebooks/one", "D so.", ["open"], "Undecided here: D so. (The open is 5)"),
    ]


def test_a_link_leads_to_its_finding() -> None:
    transform = object.__new__(resting.MarkSentences)
    builder = SimpleNamespace(get_relative_uri=lambda start, to: f"{start}->{to}.html")
    env = SimpleNamespace(docname="notebooks/one", app=SimpleNamespace(builder=builder))
    env._app = env.app
    transform.document = SimpleNamespace(settings=SimpleNamespace(env=env))
    here, there = finding("a", HOLDS), finding("b", HOLDS, "two")
    assert transform._reference(here)["refuri"] == "#claim-a"
    assert transform._reference(here)["internal"] is True  # no mark of a page elsewhere
    assert transform._reference(there)["refuri"] == "notebooks/one->notebooks/two.html#claim-b"
    far = addnodes.pending_xref("", reftarget="notebooks/two", reftargetid="claim-b")
    assert transform._address(far) == ("notebooks/two", "b")
    near = nodes.reference("", "", refuri="#claim-a-b", id_link=True)
    assert transform._address(near) == ("notebooks/one", "a-b")
    for other in (
        nodes.reference("", "", refuri="#claim-a"), nodes.paragraph(),
        nodes.reference("", "", refuri="#figure-a", id_link=True),
        nodes.reference("", "", refuri="#claim-", id_link=True),
    ):  # fmt: skip
        assert transform._address(other) is None


@pytest.mark.parametrize(
    ("title", "sentences"),
    [
        ("otherwise: A.", {OTHERWISE: "A."}),
        ("undecided: A: b.", {UNDECIDED: "A: b."}),
        ("otherwise:  A.  undecided: B. ", {OTHERWISE: "A.", UNDECIDED: "B."}),
        ("undecided: B. otherwise: A.", {OTHERWISE: "A.", UNDECIDED: "B."}),
    ],
)
def test_the_title_of_a_link(title, sentences) -> None:
    assert resting.stand_ins_of(title) == sentences


@pytest.mark.parametrize(
    "title",
    ["", "Else.", "x otherwise: A.", "otherwise:", "otherwise: undecided: B.", "not here: A.",
     "otherwise: A. otherwise: B."],
)  # fmt: skip
def test_another_title_is_refused(title) -> None:
    if title:
        with pytest.raises(ValueError, match="is a sentence for the case that the finding"):
            resting.stand_ins_of(title)
    else:
        assert resting.stand_ins_of(title) == {}


WORDS = st.lists(st.sampled_from(["it", "takes", "1.5", "s", "e.g.", "a", "load"]), min_size=1,
                 max_size=4)  # fmt: skip
#: Sentences: words, what one rests on if it does, and its end.
SENTENCES = st.lists(
    st.tuples(WORDS, st.sampled_from([None, *ALL]), st.sampled_from([".", "!", "?"])),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sentences=SENTENCES)
def test_marking_a_sentence_leaves_all_others_as_they_are(tmp_path, sentences) -> None:
    parts: list = []
    whole = []
    for words, id, end in sentences:
        text = " ".join(words)
        parts += [f"{text} ", *([("so", id)] if id else ["so"]), f"{end} "]
        sentence = f"{text} so{end}"
        if id in (None, "good"):
            whole.append(sentence)
        else:
            figure = "no gone here" if id == "gone" else f"The {id} is 5"
            whole.append(f"{resting.MARKS[ALL[id]][0]}: {sentence} ({figure})")
    [text], listed = marked(tmp_path, ALL, parts)
    assert text.split() == " ".join(whole).split()
    assert [each.claims for each in listed] == [[id] for _, id, _ in sentences if id]
    assert [bool(each.shown) for each in listed] == [id != "good" for _, id, _ in sentences if id]


def test_the_marks_go_from_the_gravest_on() -> None:
    assert list(resting.MARKS) == [OTHERWISE, UNDECIDED, NOT_HERE]
    assert set(AS_HOLDS) - set(resting.MARKS) == {HOLDS}
