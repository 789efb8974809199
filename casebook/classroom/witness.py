"""The grader's own servers, which count what they see.

Each answer carries a word that nobody can know without having asked.

    with World() as world:
        ...                              # clients: world.site("right").url, world.bundle
        print(world.site("right").counts())

They run in threads of the grader's process: a submission has no hand in the counting.
"""

import contextlib
import hashlib
import hmac
import secrets
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import trustme

from casebook.cases.certificates import hosts
from casebook.cases.fetching import trust

_DAY = timedelta(days=1)
#: The longest that a page may be asked to wait, in seconds.
LONGEST_S = 5.0
#: How long the first request of a run waits for a second one: a hundred times what an undisturbed
#: client needs for it.
PATIENCE_S = 5.0


@dataclass
class Seen:
    """What a site saw since the last reset. connections: over which something was asked."""

    #: How long the first request is held, at most, until another one is in flight with it.
    patience_s: float = 0.0
    #: Two were in flight together, or the first has waited long enough.
    overlap: threading.Event = field(default_factory=threading.Event)
    requests: int = 0
    connections: set[tuple[str, int]] = field(default_factory=set)
    in_flight: int = 0
    peak_in_flight: int = 0
    #: The pages that were asked for, and the names in the client certificates that came along.
    pages: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)


class Page(hosts.Handler):
    """/delay/SECONDS?page=N waits, then answers with the page's word and whose certificate came."""

    server: "Site"

    def do_GET(self) -> None:
        """Answer one request."""
        url = urlsplit(self.path)
        page = parse_qs(url.query).get("page", [""])[0]
        self.server.when.get(page, lambda: None)()
        with self.server.request(self.client_address, page, self._client_name()):
            with contextlib.suppress(ValueError):
                time.sleep(min(max(float(url.path.rpartition("/")[2]), 0.0), LONGEST_S))
        self.answer(
            {"args": {"page": [page]}, "word": self.server.word(page), "shown": self._client_name()}
        )

    def _client_name(self) -> str:
        return hosts.Page.common_name(self) if self.server.context else hosts.NOBODY  # type: ignore


class Site(hosts.Server):
    """One of the grader's servers.

    when: page -> what the grader does when it is asked for, before the answer goes out.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(Page, context)
        self._secret, self._lock, self._seen = secrets.token_bytes(16), threading.Lock(), Seen()
        self.when: dict[str, Callable[[], object]] = {}

    def word(self, page: str) -> str:
        """Return the word that an answer with this page has to carry."""
        return hmac.new(self._secret, page.encode(), hashlib.sha256).hexdigest()[:16]

    def reset(self, patience_s: float = 0.0) -> None:
        """Set all counts to zero. A request that is still in flight is not counted again.

        patience_s: the first request is held until another one is in flight with it, and no longer
        than this. Without it a concurrent client on a busy machine, which needs longer for its next
        request than the first page takes, has never two in flight.
        """
        self._seen = Seen(patience_s)

    def counts(self) -> Seen:
        """Return what was counted since the reset."""
        return self._seen

    @contextlib.contextmanager
    def request(self, connection: tuple[str, int], page: str, client_name: str) -> Iterator[None]:
        """Count a request, in flight until its answer is known and not yet written.

        A client that asks again when it has read the last answer is never in flight twice.
        """
        counts = self._seen
        with self._lock:
            counts.requests += 1
            counts.connections.add(connection)
            counts.pages.append(page)
            counts.shown.append(client_name)
            counts.in_flight += 1
            counts.peak_in_flight = max(counts.peak_in_flight, counts.in_flight)
            if counts.in_flight > 1:
                counts.overlap.set()
        try:
            counts.overlap.wait(counts.patience_s)
            counts.overlap.set()  # one wait is enough
            yield
        finally:
            with self._lock:
                counts.in_flight -= 1


class World(contextlib.ExitStack):
    """Sites of every kind of trustworthiness, until the block ends.

    bundle: a full bundle, certifi's certificates and the authority of all but "stranger" and
    "plain"; other_bundle: the authority of "stranger" alone; folder: where these are.
    """

    #: The kinds of sites; "plain" has no TLS.
    KINDS = ("right", "stranger", "wrong name", "expired", "plain")

    def __enter__(self) -> "World":
        super().__enter__()
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="casebook-class-"))
        self.folder = Path(folder)
        self._root, self._other = (trustme.CA(key_type=trustme.KeyType.ECDSA) for _ in "ab")
        authority, self.other_bundle = self.folder / "authority.pem", self.folder / "other.pem"
        self._root.cert_pem.write_to_path(authority)
        self._other.cert_pem.write_to_path(self.other_bundle)
        self.bundle = trust.full_bundle(authority, self.folder)
        self._sites: dict[str, Site] = {}
        return self

    def site(self, kind: str) -> Site:
        """Return the site of one of KINDS, opened at the first call.

        "right/1", "right/2" are others of the kind, each with a port of its own.
        """
        if kind not in self._sites:
            base_kind = kind.partition("/")[0]
            context = None if base_kind == "plain" else self._context(base_kind)
            self._sites[kind] = self.enter_context(Site(context))
        return self._sites[kind]

    def client_certificate(self, name: str) -> Path:
        """Issue a client certificate with its key, for `name`, and return the path of its file."""
        path = self.folder / f"{name}.pem"
        issued = self._root.issue_cert(f"{name}.example", common_name=name)
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def _context(self, kind: str) -> ssl.SSLContext:
        today, authority = datetime.now(UTC), self._root
        names: tuple[str, ...] = hosts.NAMES
        valid_from, valid_until = today - 9 * _DAY, today + 9 * _DAY
        if kind == "stranger":
            authority = self._other
        if kind == "wrong name":
            names = ("elsewhere.example",)
        if kind == "expired":
            valid_until = today - _DAY
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = authority.issue_cert(
            *names, not_before=valid_from, not_after=valid_until, key_type=trustme.KeyType.ECDSA
        )
        issued.configure_cert(context)
        self._root.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0  # each handshake is a full one
        return context
