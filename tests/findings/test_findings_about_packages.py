"""Each finding about a package has a row of releases in casebook/upstream.py, or a reason."""

import ast
import functools
import re
import tomllib

import nbformat

from casebook import places, upstream

#: requests is a word of English as well: the package is one thing, or has a release.
REQUESTS = r"stock requests|requests (?:\d|as it is|of today|makes|uses|needs|takes|injects|before)"


def direct_packages() -> set[str]:
    """The packages that the stacks of today are made of, as somebody asked for them."""
    asked = tomllib.loads((places.ROOT / "env" / "stacks.toml").read_text())["packages"]
    named = (each for name, those in asked.items() if "py27" not in name for each in those)
    return {re.split(r"[\[=<>; ]", each)[0].lower() for each in named}


@functools.cache
def findings() -> dict[str, str]:
    """The statement of each finding of the book, as its cell has it."""
    found = {}
    for path in sorted(places.NOTEBOOKS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if "claim(" in cell.source and cell.cell_type == "code":
                for node in ast.walk(ast.parse(cell.source)):
                    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim":
                        name, statement = node.args[:2]
                        found[name.value] = " ".join(
                            each.value
                            for each in ast.walk(statement)
                            if isinstance(each, ast.Constant) and isinstance(each.value, str)
                        )
    return found


def about_packages() -> dict[str, set[str]]:
    """The findings whose statement names packages, and which."""
    names = {
        name: re.compile(rf"(?<![\w./-]){name.replace('-', '[-_]')}(?![\w-])", re.I)
        for name in direct_packages() - {"requests"}
    } | {"requests": re.compile(REQUESTS)}
    found = {
        claim: {name for name, pattern in names.items() if pattern.search(said)}
        for claim, said in findings().items()
    }
    return {claim: packages for claim, packages in found.items() if packages}


#: Findings of which the row of another one asks what matters. (Some of these, and of the rows, are
#: about a package that their statement does not name. No rule finds such a one; whoever writes it
#: puts it here.)
COVERED = {
    "today-injected-is-serial": """
        stages-one-package stages-thirty-lines profile-no-poll-without-pyopenssl
        profile-ten-of-one-is-no-recursion profile-trace-poll-never-switches
        monkeys-installed-is-not-used patched-seal-tells-verdict patched-reads-past-gevent
        patched-seal-second-request patched-descriptor-never-blocks patched-control-http
        today-detector-names-the-wait today-detector-silent-when-plain today-installed-is-harmless
        explorer-serial method-verdicts-here cures-today cures-threads cures-cut-once
        cures-patient-is-ill""",
    "today-toolbelt-leaves-no-trace": """
        cures-extract-wears-off today-detector-finds-the-hidden today-adapter-stops-the-others""",
    "cures-gevent-openssl-alone": "stages-python-decides profile-stage-3-half-cured",
    "threads-load-each": """
        machine-load-per-connection machine-kept-control cure-same-answers many-loads
        many-kept-control thousands-loads thousands-kept-responses both-timelines-loads""",
    "machine-releases-that-load": """
        machine-path-not-cured machine-cpu machine-load-at-import machine-first-pays
        machine-complaints-answered""",
    "machine-leaks": "machine-leaks-control",
    "machine-verify-false": "threads-false-pays-too threads-hidden-is-the-control",
    "lock-one-at-a-time": """
        lock-releases lock-who lock-reply-control lock-cause-taken-away lock-other-sizes
        lock-who-holds-it lock-tasks""",
    "loop-loads-on-it": "loop-silence loop-cures loop-thread-beats",
}
#: Why others have none.
WITHOUT = {
    "It compares costs on a clock. Releases move them a little, and each build decides anew.": """
        profile-one-wait thousands-near-limit both-injected-threads cure-as-cheap-as-2-32-4
        cure-as-fast-as-2-32-4 many-cured-page many-model-stock weight-of-a-context
        books-same-library books-same-protocol books-no-library books-server-today books-granian
        books-h2load books-calls books-hundred-connections books-pool books-control
        distance-one-at-a-time take-library-or-protocol take-line-library books-compiled
        books-compiled-alone quic-sooner quic-sooner-granian distance-window quic-last-book
        quic-share quic-cpu take-one-book distance-tcp-law-short distance-bodies""",
    "It is about releases of the past alone, or what others published of them.": """
        books-user-cpu books-user-cpu-later books-hyper-alone books-elapsed books-both-2016
        hello-original""",
    "It is what a patch of gevent's, or none, is for: nobody will mend it.": """
        monkeys-order-matters monkeys-wrong-order-looks-fast monkeys-poll-left-alone
        cures-threads-become-greenlets cures-patch-all-adds""",
    "It is what the protocol asks for, or a control: no release is to blame.": """
        hello-silent hello-control books-at-once slow-in-order slow-as-completed
        loop-unverified-control quic-amplification quic-chain quic-early take-one-handshake
        hello-refused""",
    "It is said in passing, of the release in the lock: nothing is advised because of it.": """
        hello-extra hello-no-push quic-libraries quic-ends patched-has-sni-decides
        distance-requests-whole distance-window-libraries quic-pycurl-early quic-pycurl-post
        quic-did-not-wait quic-witness""",
}


def test_each_finding_about_a_package_has_a_row_or_a_reason() -> None:
    about, rows = set(about_packages()), {each.claim for each in upstream.PACKAGE_CLAIMS}
    assert len(findings()) > 250 and len(about) > 60
    assert rows >= set(COVERED)
    named = [each for those in (*COVERED.values(), *WITHOUT.values()) for each in those.split()]
    assert len(set(named)) == len(named) and not set(named) & rows
    assert about - rows - set(named) == set(), (
        "give it a row in PACKAGE_CLAIMS, or say why it has none"
    )
    assert set(named) - set(findings()) == set(), "there is no such finding"
