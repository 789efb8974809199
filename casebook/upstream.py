"""What changed upstream: findings about packages, decided for their newest releases.

    python -m casebook.upstream [--keep] [FILE]

Each is a finding of a chapter. It is decided by the same experiment, in the same stack, with
another release of that one package; one that is over is not decided. Prints the page in Markdown,
or writes it to FILE; --keep also writes book/upstream.json, from which the book's page is made, and
what a chapter says of its findings. Then it asks what clients can do today, in their newest
releases. Exits with 1 if a finding is not as the table says, or if a client does what it did not do
when that file was written: then the sentences made from its row have to be looked at. Needs the
network, for the packages only.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from casebook import places, stacks
from casebook.cases import bookstore, certificates, handshakes, loop, patients
from casebook.cases.bookstore import quic
from casebook.cases.bookstore.abilities import CLIENTS, abilities
from casebook.cases.fetching import analysis
from casebook.cases.fetching.runs import measure
from casebook.errors import CasebookError, RunFailed, UsageError
from casebook.laboratory import measurements
from casebook.pages import upstream_page as pages
from casebook.stacks import environments, locks

#: Whether a finding is true, and the counts that show it.
Evidence = tuple[bool, str]
Answer = dict[str, Any]


@dataclass(frozen=True)
class PackageClaim:
    """What the book says of a package.

    claim: the finding; chapter: where it is. true_from: the oldest release for which it was decided
    and true; before: the release before that, for which it is not true, empty if none is known.
    true_to: the newest when this was written. turned: the first release for which it is no longer
    true, once that is known. stack: the stack in which `decide`, given its name, decides it.
    Without `decide` the finding is over: its releases are in locks, so that each build of its
    chapter decides it.
    """

    package: str
    claim: str
    chapter: str
    says: str
    true_from: str
    true_to: str
    stack: str
    decide: Callable[[str], Evidence] | None = None
    before: str = ""
    turned: str = ""


def _handshakes(stack: str, client: str = "shared") -> Evidence:
    row = handshakes.measure(stack, client, delay_s=0.5).iloc[0]
    peak = int(row["peak_handshakes"])
    return peak == 1, f"{peak} of {row['n']} handshakes under way at once"


def _shared_by_httpx2(stack: str) -> Evidence:
    row = handshakes.measure(stack, "httpx2-default", delay_s=0.5).iloc[0]
    peak = int(row["peak_handshakes"])
    counts = f"a context of {row['context']}, {peak} of {row['n']} handshakes under way at once"
    return row["context"] == "ssl" and peak > 1, counts


def _patched_first(stack: str) -> Evidence:
    good = handshakes.after_patching(stack, ["standard", "shared"]).set_index("way")["good"]
    counts = f"{good['standard']} of 8 pages with ssl's context, {good['shared']} with truststore's"
    return (good["standard"], good["shared"]) == (8, 0), counts


def _in_flight(stack: str) -> Evidence:
    runs = measure(stack, n=10, delay_s=0.2, repeats=1)
    peak = int(runs["counters_peak_in_flight"].max())
    verdict = analysis.verdict_of(runs)
    return verdict == analysis.SERIAL, f"{peak} of 10 requests in flight at once, {verdict}"


def _load_each(stack: str) -> Evidence:
    row = _twelve(stack, client="threads")
    return row["counters_load_verify_locations"] == 12, _of_connections(row)


def _load_unverified(stack: str) -> Evidence:
    row = _twelve(stack, client="threads", trust="off")
    loads = int(row["counters_default_loads"])
    return loads == 12, f"{loads} loads of the default for {row['counters_handshakes']} connections"


def _load_once(stack: str) -> Evidence:
    row = _twelve(stack)
    return 0 < row.filter(like="_load").sum() < 3, _of_connections(row)


def _of_connections(row: pd.Series) -> str:
    loads = int(row["counters_load_verify_locations"])
    loads_text = f"{loads} load{'' if loads == 1 else 's'} of certificates"
    return f"{loads_text} for {row['counters_handshakes']} connections"


def _twelve(stack: str, trust: str = "bundle", **client: str) -> pd.Series:
    """Return a run with twelve connections."""
    return measure(stack, n=12, delay_s=0, trust=trust, repeats=1, **client).iloc[0]


def _of_pip(stack: str) -> Evidence:
    return _handshakes(stack, "httpx-default")


def _each_handshake(_stack: str) -> Evidence:
    rows = certificates.connection_costs.measure(n=7, repeats=1).set_index("context")
    loads = int(rows.loc["truststore", "loads"])
    return loads == 7, f"{loads} loads for 7 connections that share a context"


def _unpatched(_stack: str) -> Evidence:
    verdict, _ = patients.measured_of(patients.all_patients()["geventhttpclient"])
    return verdict == analysis.SERIAL, f"over HTTPS it is {verdict}"


def _clients_on_a_loop(stack: str, client: str = "httpx-each") -> Evidence:
    row = loop.measure(client, n=10, delay_s=0.1, stack=stack).iloc[0]
    return row["on_loop"] == 10, f"{row['on_loop']} loads on the loop for 10 clients"


def _over_plain_http(stack: str) -> Evidence:
    row = loop.measure("httpx-each", n=10, delay_s=0.1, scheme="http", stack=stack).iloc[0]
    counts = f"{row['on_loop']} loads on the loop for 10 clients that ask over plain HTTP"
    return row["on_loop"] == 10, counts


def _of_openai(stack: str) -> Evidence:
    return _clients_on_a_loop(stack, "openai-each")


def _of_openai_pairs(stack: str) -> Evidence:
    row = loop.measure("openai-pair-each", n=7, stack=stack).iloc[0]
    return row["on_loop"] == 14, f"{row['on_loop']} loads on the loop for 7 pairs of clients"


def _made_alone(stack: str) -> Evidence:
    row = loop.measure("botocore-each", n=10, stack=stack).iloc[0]
    return row["loads"] == 0, f"{row['loads']} loads when 10 clients are made"


def _agent(stack: str) -> Evidence:
    with bookstore.open_store("granian") as store:  # of the same release each time
        protocol = bookstore.hello.asked_by_agent(store, stack)
        offered = store.protocol
    counts = f"from a store that offers {offered} it gets its page over {protocol}"
    return (offered, protocol) == ("h2", "HTTP/1.1"), counts


def _read_each(stack: str) -> Evidence:
    reading = certificates.reading
    if reason := reading.not_here():
        raise RunFailed(f"Who reads the bundle cannot be told here: {reason}.")
    times, pages = reading.bundles(stack, "curl_cffi"), reading.PAGES
    times_text = " and ".join(map(str, times))
    return times == list(
        pages
    ), f"read {times_text} times for {' and '.join(map(str, pages))} pages"


def _in_a_thread(stack: str) -> Evidence:
    row = loop.measure("aiobotocore-each", n=10, delay_s=0.1, stack=stack).iloc[0]
    counts = f"{row['loads']} loads for 10 clients, {row['on_loop']} of them on the loop"
    return row["loads"] == 10 and not row["on_loop"], counts


def _one_client(stack: str) -> Evidence:
    row = loop.measure("botocore-asked-one", n=10, stack=stack).iloc[0]
    return row["loads"] == 10, f"{row['loads']} loads by one client for 10 requests at once"


def _at_import(stack: str) -> Evidence:
    row = loop.measure("aiohttp-each", n=10, delay_s=0.1, stack=stack).iloc[0]
    counts = f"{row['at_import']} loads at import, {row['loads']} for 10 sessions"
    return row["at_import"] > 0 and not row["loads"], counts


_LOCK, _LOOP = "11_the_lock_around_the_handshake", "16_the_loop_that_loads"
_OUT_THERE, _INJECTED = "08_still_out_there", "stage-2-injected-today"
_BOTH, _HELLO = "15_thousands", "18_hello_http2"
_COSTS, _TIMES = "13_what_one_load_costs", "14_a_time_machine"
PACKAGE_CLAIMS = [
    PackageClaim(
        "truststore", "lock-one-at-a-time", _LOCK,
        "threads that share a context shake hands one at a time",
        "0.10.5", "0.10.5", "truststore-0.10.5-today", _handshakes, before="0.10.4",
    ),
    PackageClaim(
        "gevent", "lock-gevent", _LOCK,
        "where `patch_all()` comes first, truststore 0.10.5 fetches no page",
        "24.11.1", "26.9.0", "truststore-in-clients-today", _patched_first,
    ),
    PackageClaim(
        "httpx2", "lock-who-not", _LOCK,
        "on Linux a client shares the standard library's context, and handshakes overlap",
        "2.16.2", "2.16.2", "truststore-in-clients-today", _shared_by_httpx2,
    ),
    PackageClaim(
        "requests", "threads-load-each", "09_thirty_threads",
        "`requests.get` loads the certificates for each connection",
        "2.32.5", "2.34.2", "requests-2.34.2-today", _load_each, before="2.32.4",
    ),
    PackageClaim(
        "urllib3", "cure-half-a-cure", "10_the_cure",
        "certificates are loaded for each connection, into a context that was given",
        "1.26.20", "2.8.0", "half-cured-today", _load_each,
    ),
    PackageClaim(
        "urllib3", "machine-verify-false", _TIMES,
        "where nothing is verified, each connection loads the default certificates all the same",
        "1.26.20", "2.8.0", "requests-2.34.2-today", _load_unverified,
    ),
    PackageClaim(
        "pyopenssl", "today-injected-is-serial", _OUT_THERE,
        "pyOpenSSL makes gevent serial once it is injected into urllib3",
        "24.2.1", "26.4.0", _INJECTED, _in_flight,
    ),
    PackageClaim(
        "httpx", "loop-loads-on-it", _LOOP,
        "each client that is made on an event loop loads the certificates there",
        "0.27.2", "0.28.1", "on-the-loop-today", _clients_on_a_loop,
    ),
    PackageClaim(
        "httpx", "loop-http-loads-too", _LOOP,
        "a client that asks over plain HTTP loads the certificates all the same",
        "0.27.2", "0.28.1", "on-the-loop-today", _over_plain_http,
    ),
    PackageClaim(
        "aiohttp", "loop-aiohttp-import", _LOOP,
        "certificates are loaded when aiohttp is imported, and never by a session",
        "3.10.6", "3.14.5", "on-the-loop-today", _at_import, before="3.10.5",
    ),
    PackageClaim(
        "niquests", "both-who-loads", _BOTH,
        "all connections of a session share one load",
        "3.21.2", "3.21.2", "niquests-today", _load_once,
    ),
    PackageClaim(
        "truststore", "load-truststore-each-handshake", _COSTS,
        "a context that is shared loads the certificates once more for each connection",
        "0.9.0", "0.10.5", "truststore-today", _each_handshake,
    ),
    PackageClaim(
        "pip", "lock-pip", _LOCK,
        "its own truststore, which pip-system-certs injects, shakes hands one at a time",
        "26.3", "26.3", "pip-26.3-system-certs-today", _of_pip, before="26.2",
    ),
    PackageClaim(
        "openai", "loop-openai", _LOOP,
        "each client that is made on an event loop loads the certificates there",
        "1.60.0", "3.54.0", "on-the-loop-today", _of_openai,
    ),
    PackageClaim(
        "openai", "loop-openai-pair", _LOOP,
        "two clients, one that awaits and one that does not, load the certificates twice",
        "1.60.0", "3.54.0", "on-the-loop-today", _of_openai_pairs,
    ),
    PackageClaim(
        "botocore", "loop-botocore", _LOOP,
        "a client that is made and asked for nothing loads no certificates",
        "1.29.0", "1.44.5", "on-the-loop-today", _made_alone,
    ),
    PackageClaim(
        "curl-cffi", "both-curl-cffi-loads", _BOTH,
        "the bundle is read anew for each connection",
        "0.10.0", "0.16.3", "curl-cffi-today", _read_each, turned="0.17.0",
    ),
    PackageClaim(
        "twisted", "hello-agent", _HELLO,
        "its own client speaks HTTP/1.1, whatever the server offers",
        "22.10.0", "26.10.0", "twisted-today", _agent,
    ),
    PackageClaim(
        "botocore", "loop-botocore-connects", _LOOP,
        "one client loads the certificates for each of its connections",
        "1.35.0", "1.44.5", "on-the-loop-today", _one_client,
    ),
    PackageClaim(
        "aiobotocore", "loop-aiobotocore", _LOOP,
        "each client loads the certificates in a thread, and none on the loop",
        "3.8.0", "3.10.0", "aiobotocore-today", _in_a_thread, before="3.7.0",
    ),
    PackageClaim(
        "requests-toolbelt", "today-toolbelt-leaves-no-trace", _OUT_THERE,
        "its adapter connects through pyOpenSSL, and makes gevent serial",
        "1.0.0", "1.0.0", "toolbelt-x509-today", _in_flight,
    ),
    PackageClaim(
        "geventhttpclient", "today-geventhttpclient-blocks", _OUT_THERE,
        "its HTTPS is serial where gevent has not patched everything",
        "2.0.12", "2.6.1", "geventhttpclient-today", _unpatched,
    ),
    PackageClaim(
        "gevent-openssl", "cures-gevent-openssl-alone", "07_cures",
        "it does not make Python 3 concurrent where pyOpenSSL is injected",
        "1.2", "1.2", "stage-3-today", _in_flight,
    ),
    # Over: what a release has fixed, or begun and ended.
    PackageClaim(
        "requests", "patched-injection-by-version", "06_who_patched_whom",
        "it injects pyOpenSSL wherever that can be imported",
        "2.21.0", "2.23.0", "requests-2.23.0-py37", turned="2.24.0",
    ),
    PackageClaim(
        "requests", "machine-releases-that-load", _TIMES,
        "connections share one load", "2.32.2", "2.32.4", "requests-2.32.4-today",
        before="2.31.0", turned="2.32.5",
    ),
    PackageClaim(
        "requests", "machine-leaks", _TIMES,
        "one session's client certificate is shown for others",
        "2.32.2", "2.32.4", "requests-2.32.4-today", before="2.31.0", turned="2.32.5",
    ),
    PackageClaim(
        "google-auth", "today-google-auth-constructor", _OUT_THERE,
        "its adapter for client certificates injects pyOpenSSL for the whole process",
        "2.55.1", "2.55.1", "google-auth-2.55.1-today", turned="2.55.2",
    ),
    PackageClaim(
        "eventlet", "today-eventlet-twin", _OUT_THERE, "HTTPS is serial, and HTTP is not",
        "0.33.3", "0.33.3", "eventlet-0.33.3-py37", turned="0.34.1",
    ),
    PackageClaim(
        "cryptography", "load-openssl-30-slowest", _COSTS,
        "the OpenSSL that it brings loads more slowly than all others",
        "38.0.4", "38.0.4", "openssl-3.0-today", before="36.0.2", turned="41.0.7",
    ),
    PackageClaim(
        "truststore", "lock-is-for-something", _LOCK,
        "a context that is used by several threads at once can kill the process",
        "0.10.4", "0.10.4", "truststore-0.10.4-today", turned="0.10.5",
    ),
]  # fmt: skip


def decide(package_claim: PackageClaim, version: str) -> Answer:
    """Decide a finding for one release of its package.

    Everything else in the stack stays as the book has it, as far as it is compatible with that
    release. Returns version, still (whether the finding is true) and counts. Raises
    EnvironmentFailed if the release cannot be installed, RunFailed if it does not do what is
    measured, and UsageError for a finding that is over.
    """
    if not package_claim.decide:
        raise UsageError(f"{package_claim.claim} is over: each build of its chapter decides it")
    with _with_release(package_claim.stack, package_claim.package, version):
        is_true, counts = package_claim.decide(package_claim.stack)
    return {"version": version, "still": bool(is_true), "counts": counts}


@contextmanager
def _with_release(name: str, package: str, version: str) -> Iterator[None]:
    """Put a release of a package into a stack, for the benches in this process, meanwhile.

    Everything else in the stack stays as the book has it, as far as it is compatible. Raises
    EnvironmentFailed if the release cannot be installed.
    """
    table, stack = stacks.load(), stacks.get(name)
    with TemporaryDirectory(prefix="casebook-") as folder:
        lock = Path(folder, "lock")
        text = locks.with_release(stack, package, f"=={version}")
        lock.with_suffix(".txt").write_text(text)
        table[name] = replace(stack, lock=str(lock))
        try:
            environments.ensure(table[name])  # or a recorded run would stand in for it
            yield
        finally:
            table[name] = stack


def newest(package_claim: PackageClaim, allowed: str = "", prerelease: bool = False) -> str:
    """Return the newest release of a finding's package, or of those that are allowed (">2,<3").

    Raises EnvironmentFailed if there is none.
    """
    return _newest(package_claim.stack, package_claim.package, allowed, prerelease)


def _newest(name: str, package: str, allowed: str = "", prerelease: bool = False) -> str:
    text = locks.with_release(stacks.get(name), package, allowed, prerelease)
    return stacks.pins(text)[package]


def find_turn(package_claim: PackageClaim, turned: str) -> str:
    """Return the first release for which a finding is no longer true, given a later one.

    It goes down release by release, to the newest one that the table calls true.
    """
    while True:
        try:
            below = newest(package_claim, f">{package_claim.true_to},<{turned}", prerelease=True)
            if decide(package_claim, below)["still"]:
                return turned
        except CasebookError:  # there is none in between, or none that runs
            return turned
        turned = below


def answers(package_claim: PackageClaim) -> list[Answer]:
    """Decide a finding for the newest release, and for the newest pre-release if there is one.

    Each answer also has `turned`: the first release for which the finding is no longer true. If a
    release cannot be decided, `still` is None, and counts say why. Empty for a finding that is
    over.
    """
    if not package_claim.decide:
        return []
    by_version: dict[str, Answer] = {}
    for prerelease in (False, True):
        version = "the newest"
        try:
            version = newest(package_claim, prerelease=prerelease)
            if version not in by_version:
                answer = decide(package_claim, version)
                turned = "" if answer["still"] else find_turn(package_claim, version)
                by_version[version] = answer | {"turned": turned}
        except CasebookError as error:
            reason = str(error).splitlines()[0]
            by_version[version] = {
                "version": version,
                "still": None,
                "counts": reason,
                "turned": "",
            }
    return list(by_version.values())


def clients() -> list[Answer]:
    """Return what clients can do in their newest releases: the rows of `abilities`, and `leaks`.

    leaks: whether a client shows the certificate of another with which it shares a context
    (casebook/cases/certificates/sharing.py). In values that JSON knows. If a client cannot be
    asked, its row has its name, and as `failure` why.
    """
    return [_client(name, *of) for name, of in CLIENTS.items()]


def _client(name: str, stack: str, over_quic: str) -> Answer:
    package = name.replace("_", "-")
    try:
        version = _newest(stack, package)
        with ExitStack() as releases:
            for stack_name in [stack, quic.STACK] if over_quic else [stack]:
                releases.enter_context(_with_release(stack_name, package, version))
            rows = abilities([name]).assign(leaks=[certificates.sharing.leaks(name, stack)])
    except CasebookError as error:
        return {"client": name, "failure": str(error).splitlines()[0]}
    [row] = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return row


def row_changes(today: list[Answer], kept: list[Answer]) -> list[str]:
    """Say which clients do what they did not do, whatever their release, in a line each."""
    before = {row["client"]: row for row in kept}
    lines = []
    for row in today:
        known = before.get(row["client"], {})
        changes = [
            f"{column} {known.get(column)} -> {value}"
            for column, value in row.items()
            if column != "release" and value != known.get(column)
        ]
        if changes:
            release = row.get("release") or "the newest"
            lines.append(
                f"{row['client']} {release}: a row has changed, {', '.join(changes)}: the "
                "sentences made from it must be looked at"
            )
    gone = before.keys() - {row["client"] for row in today}
    return lines + [f"{name}: nobody asks it any more" for name in sorted(gone)]


def main(arguments: list[str]) -> int:
    """Decide all findings, ask what clients can do, and return the exit code."""
    parser = ArgumentParser("python -m casebook.upstream", description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="also write book/upstream.json")
    parser.add_argument("file", nargs="?", type=Path, help="write the page here, not on the screen")
    options = parser.parse_args(arguments)
    names = ("package", "claim", "chapter", "says", "before", "true_from", "true_to", "turned")
    rows = []
    as_expected = True
    for package_claim in PACKAGE_CLAIMS:
        answered = answers(package_claim)
        as_expected &= all(answer["still"] is not bool(package_claim.turned) for answer in answered)
        if answered:  # a pre-release may be of another shape
            as_expected &= answered[0]["still"] is not None
        rows.append({name: getattr(package_claim, name) for name in names} | {"answers": answered})
        for reply in answered:
            print(f"{package_claim.package} {reply['version']}: {reply['counts']}", file=sys.stderr)
    today = clients()
    known = pages.load(places.ROOT).get("clients", [])
    for change in (changes := row_changes(today, known)):
        print(change, file=sys.stderr)
    as_expected &= not changes
    # Of a client that could not be asked the page has what it did before.
    known_rows = {row["client"]: row for row in known}
    today = [known_rows.get(row["client"], row) if "failure" in row else row for row in today]
    today = [row for row in today if "failure" not in row]
    record = {"asked": measurements.utc_now()[:10], "findings": rows, "clients": today}
    if options.keep:
        content = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (places.ROOT / pages.KEPT).write_text(content, encoding="utf-8")
    text = f"# What changed upstream\n\n{pages.page(record)}\n{pages.clients(record)}"
    if options.file:
        options.file.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
