"""Crawl many pages with many workers, on Dask: a script to carry away.

    python crawl.py URLS.txt FOLDER                          # workers of its own, on this machine
    python crawl.py URLS.txt FOLDER tls://scheduler:8786     # those of a cluster; FOLDER is shared

- A batch is some pages of one host, over one connection. It ends as one Parquet file, written under
  another name and renamed: a batch that is run again replaces its file, and never doubles it.
- Each worker process has one client, made by a WorkerPlugin, and with shared_context.py loads the
  trusted certificates once.
- Each page is checked. What fails is tried again, then named; the rest goes on.
- Limits: connections and requests per second for each host, and batches submitted.
- Run it again: the batches whose files are there are not fetched again.

It runs on Python 3.10 and newer. The workers need requests and pyarrow; this file and
shared_context.py, which lies beside it, are sent to them.
"""

import collections
import contextlib
import dataclasses
import errno
import glob
import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

import pyarrow
import pyarrow.parquet
import requests
from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker


@dataclasses.dataclass(frozen=True)
class Manners:
    """Limits of each host: connections at a time, requests per second (0: no limit)."""

    connections: int = 2
    requests_per_s: float = 0

    @property
    def pause_s(self):
        """Return the time from one request's beginning to the next one's, on each connection."""
        return self.connections / self.requests_per_s if self.requests_per_s else 0


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long a page may take in seconds, how large it may be, and how often it is tried."""

    connect_s: float = 5
    silence_s: float = 30
    page_s: float = 60
    max_bytes: int = 10_000_000
    tries: int = 3
    between_tries_s: float = 0.2


# ------------------------------------------------------------------------- what may be wrong


class PageFailed(Exception):
    """A page that did not come. Its class is the name under which it is reported."""

    is_retried = True


class Unreachable(PageFailed):
    """Nobody answers at this host: refused, unknown, silent, or not to be trusted."""


class BadStatus(PageFailed):
    """Another status than 200."""


class CutShort(PageFailed):
    """The connection ended before the page did."""


class TooSlow(PageFailed):
    """It took longer than we wait."""


class EndlessBody(PageFailed):
    """Larger than any page we want."""

    is_retried = False


class WrongPage(PageFailed):
    """Status 200, and not the page that was asked for."""

    is_retried = False


class NotWritten(Exception):
    """The result of a batch could not be written: a full disk, a folder without permission."""


# ------------------------------------------------------------------------- in a worker


class OneClient(WorkerPlugin):
    """Gives each worker process, new ones too, one client: the trust and the adapters.

    cured: share the contexts (shared_context.py); else as requests does it. kept: keep a connection
    for the pages of a batch. verify: as in requests.
    """

    name = "one-client"

    def __init__(self, cured=True, kept=True, verify=True):
        self.cured, self.kept, self.verify = cured, kept, verify

    def setup(self, worker):
        """Choose the adapter, in a worker that begins."""
        worker.one_client = self
        self.adapter = requests.adapters.HTTPAdapter
        if self.cured:
            import shared_context

            self.adapter = shared_context.SharedContextAdapter

    def connection(self):
        """Return a session for one batch: its connection ends with it, but not the context."""
        session = requests.Session()
        session.verify = self.verify
        session.mount("https://", self.adapter(pool_connections=1, pool_maxsize=1))
        if not self.kept:
            session.headers["Connection"] = "close"
        return session


def fetch_batch(number, urls, folder, check, manners, patience):
    """Fetch the pages of one host over one connection, write what came of each, and report.

    Returns {"batch", "pages", "good", "failed": [[url, name, message]], "requests"}. Raises
    NotWritten.
    """
    path = os.path.join(folder, f"batch-{number:06d}.parquet")
    if (existing := report_of(path, urls)) is not None:
        return existing
    rows, attempts, outage = [], 0, None
    with get_worker().one_client.connection() as session:
        for url in urls:
            row = {"url": url, "status": "", "message": "", "body": b"", "tries": 0}
            rows.append(row)
            try:
                if outage:
                    raise Unreachable(f"not asked: {outage}")
                for row["tries"] in range(1, patience.tries + 1):
                    attempts += 1
                    start = time.monotonic()
                    try:
                        row["body"] = get(session, url, patience)
                        check(url, row["body"])
                        break
                    except PageFailed as error:
                        if not error.is_retried or row["tries"] == patience.tries:
                            raise
                        time.sleep(patience.between_tries_s * 2 ** (row["tries"] - 1))
                    finally:
                        time.sleep(max(0, start + manners.pause_s - time.monotonic()))
                row["status"] = "good"
            except PageFailed as error:
                row |= {"status": type(error).__name__, "message": str(error), "body": b""}
                # A host that does not answer three times will not answer the next hundred pages.
                outage = (outage or str(error)) if isinstance(error, Unreachable) else None
    failed = [[r["url"], r["status"], r["message"]] for r in rows if r["status"] != "good"]
    report = {"batch": number, "pages": len(rows), "good": len(rows) - len(failed),
              "failed": failed, "requests": attempts}  # fmt: skip
    write(path, rows, report)
    return report


def get(session, url, patience):
    """Return the body of a page, or raise PageFailed."""
    deadline, body = time.monotonic() + patience.page_s, bytearray()
    try:
        limits = (patience.connect_s, patience.silence_s)
        with session.get(url, stream=True, timeout=limits, allow_redirects=False) as reply:
            for piece in reply.iter_content(65_536):
                body += piece
                if len(body) > patience.max_bytes:
                    raise EndlessBody(f"more than {patience.max_bytes} bytes")
                if time.monotonic() > deadline:
                    raise TooSlow(f"not complete after {patience.page_s:g} s")
            if reply.status_code != 200:
                raise BadStatus(f"status {reply.status_code}")
            return bytes(body)
    except requests.exceptions.ReadTimeout:
        raise TooSlow(f"no byte for {patience.silence_s:g} s") from None
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        kind = CutShort if "Connection broken" in str(error) or body else Unreachable
        kind = CutShort if "Connection aborted" in str(error) else kind
        raise kind(innermost(error)) from None
    except requests.RequestException as error:
        raise PageFailed(innermost(error)) from None


def innermost(error):
    """Return the exception at the bottom, in its words: requests and urllib3 wrap it."""
    for _ in range(10):
        inside = [getattr(error, "reason", None), error.__cause__, error.__context__, *error.args]
        inside = [cause for cause in inside if isinstance(cause, Exception)]
        if not inside:
            break
        error = inside[0]
    return f"{type(error).__name__}: {error}"


def write(path, rows, report):
    """Write the rows as a Parquet file, whole or not at all."""
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.part")
    try:
        table = pyarrow.Table.from_pylist(rows, schema=SCHEMA)
        notes = {"report": json.dumps(report), "urls": digest_of(r["url"] for r in rows)}
        pyarrow.parquet.write_table(table.replace_schema_metadata(notes), draft)
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        reason = os.strerror(error.errno) if error.errno else str(error)
        full = " Make room and run it again." if error.errno == errno.ENOSPC else ""
        raise NotWritten(f"{name}: {reason}.{full}") from None


def report_of(path, urls):
    """Return the report of a batch that is there, for exactly these URLs; else None."""
    try:
        notes = pyarrow.parquet.read_schema(path).metadata
        is_same = notes[b"urls"].decode() == digest_of(urls)
        return json.loads(notes[b"report"]) if is_same else None
    except (OSError, pyarrow.ArrowException, KeyError):
        return None


def digest_of(urls):
    """Return a digest of a batch's URLs."""
    return hashlib.sha256("\n".join(urls).encode()).hexdigest()


SCHEMA = pyarrow.schema({
    "url": pyarrow.string(), "status": pyarrow.string(), "message": pyarrow.string(),
    "body": pyarrow.binary(), "tries": pyarrow.int32(),
})  # fmt: skip


def any_page(_, body):
    """Check a page of which nothing is known: there is something."""
    if not body:
        raise WrongPage("an empty page")


# ------------------------------------------------------------------------- who hands it out


def batches_of(urls, size):
    """Return {host: deque of batches, (number, URLs)}. The same URLs give the same batches."""
    by_host, number = collections.defaultdict(list), 0
    for url in urls:
        by_host[urlsplit(url).netloc].append(url)
    batches = {}
    for host, pages in by_host.items():
        parts = [pages[start : start + size] for start in range(0, len(pages), size)]
        batches[host] = collections.deque(enumerate(parts, number))
        number += len(parts)
    return batches


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a crawl goes. size: pages of a batch. check: called with the URL and body of each page.

    waiting: how many batches are submitted at a time for each thread of the cluster.
    """

    size: int = 100
    check: Callable = any_page
    waiting: int = 2
    manners: Manners = Manners()
    patience: Patience = Patience()
    one_client: OneClient = dataclasses.field(default_factory=OneClient)


def crawl(client, urls, folder, plan=None, report=None):
    """Fetch all pages into a folder that all workers see, and return what came of it.

    client: of a Dask cluster. plan: a Plan, the usual one by default. report: called after each
    batch with the result so far.

    Returns {"pages", "good", "failed": [[url, name, message]], "requests", "batches", "killed":
    [[batch, its first URL, its pages]] that killed their workers, "stopped": why it ended early, or
    nothing}.
    """
    plan = plan or Plan()
    for draft in glob.glob(os.path.join(glob.escape(folder), ".batch-*.part")):
        os.unlink(draft)  # of workers that were killed while they wrote
    client.register_plugin(plan.one_client)
    under_way = _Crawl(client, batches_of(urls, plan.size), folder, plan)
    under_way.hand_out()
    while under_way.running:
        under_way.take_next()
        if report:
            report(under_way.result)
        under_way.hand_out()
    return under_way.result


class _Crawl:
    """A crawl under way: the batches to do, those that run, and what came of the others."""

    def __init__(self, client, batches, folder, plan):
        self.client, self.batches, self.folder, self.plan = client, batches, folder, plan
        self.result = {"pages": 0, "good": 0, "failed": [], "requests": 0, "batches": 0,
                       "killed": [], "stopped": ""}  # fmt: skip
        self.suspects, self.running, self.at_host = [], {}, collections.Counter()
        self.futures, self.name = as_completed(), uuid.uuid4().hex[:8]

    def hand_out(self):
        """Submit as many as may wait; of each host as many as it may have connections."""
        limit = self.plan.waiting * max(1, sum(self.client.nthreads().values()))
        allowed = self.plan.manners.connections
        for host in sorted(self.batches, key=self.at_host.__getitem__):
            queue = self.batches[host]
            while queue and self.at_host[host] < allowed and len(self.running) < limit:
                self.submit(host, queue.popleft())
        if not self.running and self.suspects:
            self.submit(*self.suspects.pop(0), attempt="alone")

    def submit(self, host, batch, attempt="first"):
        """Hand out a batch."""
        number, pages = batch
        plan = self.plan
        future = self.client.submit(
            fetch_batch, number, pages, self.folder, plan.check, plan.manners, plan.patience,
            key=f"batch-{number:06d}-{attempt}-{self.name}", pure=False,
        )  # fmt: skip
        self.running[future] = (host, batch, attempt)
        self.at_host[host] += 1
        self.futures.add(future)

    def take_next(self):
        """Wait for a batch to end, and note what came of it."""
        future = next(self.futures)
        host, batch, attempt = self.running.pop(future)
        self.at_host[host] -= 1
        if future.status == "finished":
            self.count(future.result())
        elif self.is_written(batch):
            pass
        elif future.cancelled():
            self.stop("the scheduler is gone. What has arrived stays: run it again.")
        elif not isinstance(error := future.exception(), KilledWorker):
            self.stop(f"{type(error).__name__}: {error}")
        elif attempt == "first":
            self.suspects.append((host, batch))  # or a neighbour killed it: once more, alone
        else:
            self.result["killed"].append([batch[0], batch[1][0], len(batch[1])])

    def count(self, report):
        """Add the report of a batch to the result."""
        for name in ("pages", "good", "failed", "requests"):
            self.result[name] += report[name]
        self.result["batches"] += 1

    def is_written(self, batch):
        """Check whether a batch whose worker died had its file; then it counts like any other."""
        number, pages = batch
        report = report_of(os.path.join(self.folder, f"batch-{number:06d}.parquet"), pages)
        if report is not None:
            self.count(report)
        return report is not None

    def stop(self, reason):
        """Hand out no more."""
        self.result["stopped"], self.batches, self.suspects = reason, {}, []


def main(urls, folder, address=None):
    """Crawl the pages that a file names, and print what came of it."""
    os.makedirs(folder, exist_ok=True)
    with open(urls) as lines:
        pages = [line.strip() for line in lines if line.strip()]
    with Client(address) if address else Client(processes=True, dashboard_address=None) as client:
        own_folder = os.path.dirname(os.path.abspath(__file__))
        for name in (__file__, os.path.join(own_folder, "shared_context.py")):
            client.upload_file(name)

        def show(result):
            print(f"\r{result['pages']} of {len(pages)} pages", end="")

        result = crawl(client, pages, os.path.abspath(folder), report=show)
    print(json.dumps(result, indent=1))
    return 1 if result["stopped"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
