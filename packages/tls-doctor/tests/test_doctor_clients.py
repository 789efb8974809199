"""A client is one record, from which each verdict and each advice on it follows."""

import sys
import types

import pytest
from tls_doctor import (
    advice,
    clients,
    examination,
    judging,
    loads,
    probes,
    rerun,
    trial_choice,
    trying,
    verdicts,
)
from tls_doctor.examination import Examination
from tls_doctor.tally import count_events


class Session:
    """A session of the made-up client."""

    def __init__(self, module, ca=None, **options):
        self.module, self.ca, self.options = module, ca, options


def load_again(url, trust):
    """Stand for what the program does."""


def load_once(url, trust):
    """Stand for the change."""


def with_places(url, trust, places):
    """Stand for a pool of so many places."""
    return url, trust, places


def change(module):
    """Stand for the change from outside."""
    module.changed = True


def change_pools(module):
    """Stand for the change to larger pools."""


def change_headers(module):
    """Stand for the change of a header."""


#: What the further changes of the made-up client are called.
POOL, HEADER = "fetchling's larger pool", "fetchling's header"
TABLES = clients.PACKAGES, clients.OWN_TLS, clients.TRIALS, clients.CHANGES


@pytest.fixture
def made_up():
    """The record of a client that nobody has heard of; all that a developer adds."""
    before, contents = [*clients.CLIENTS], [{**table} for table in TABLES]
    record = clients.Client(
        "fetchling", packages="fetchling fetchling_core", own_tls="fetchling_tls", kind=Session,
        keep=("client = fetchling.Client()", "A Client that is kept loads once."),
        makers="Client", owners="pools", awaits="when_done",
        keep_awaiting=("client = fetchling.Awaiting()", "So does one that awaits."),
        larger_pool="client = fetchling.Client(%s)", pool_options={"full": "max_requests"},
        multiplexed="client = fetchling.Client(http2=True)",
        multiplexed_awaiting="client = fetchling.Awaiting(http2=True)",
        trust_line='fetchling.trust("...")', trust_variables="FETCHLING_CA FETCHLING_BUNDLE",
        constructor="fetchling.Client", keyword="ssl_context",
        trial=("fetchling", load_again, load_once), applied={"fetchling.core": change},
        larger_pool_change=POOL, closing_change=HEADER,
        trials={
            POOL: ("fetchling", with_places, with_places), HEADER: ("fetchling", change, load_once),
        },
        changes={POOL: {"fetchling.pools": change_pools}, HEADER: {"fetchling": change_headers}},
    )  # fmt: skip
    clients.register(record)
    yield record
    clients.CLIENTS[:] = before
    for table, content in zip(TABLES, contents, strict=True):
        table.clear()
        table.update(content)


def who(at="program.py:1"):
    return {"client": "fetchling", "through": "fetchling", "at": at, "awaits": False}


def run_of(connections, at="program.py:1", trust="system"):
    """The events of a program that loads for each connection."""
    events = []
    common = {"pid": 1, "cpu": 0, "compiled": 0, "who": who(at), "loop": False, "by": "ssl", "t": 0}
    for c in range(1, connections + 1):
        events.append(dict(common, c=c, default=False, **{"is": "context"}))
        loaded = dict(ms=50, trust=trust, since=0, kib=[0, 0], alive=1, waiting=False, thread=1)
        events.append(dict(common, c=c, **loaded, **{"is": "load"}))
        begun = dict(h=c, http=True, since=None, thread=1, open=1)
        events.append(dict(common, c=c, **begun, **{"is": "begin"}))
        end = dict(h=c, ok=True, t=1, ms=1, alpn="h2", host="one:443")
        events.append(dict(common, **end, **{"is": "end"}))
    return [*events, {"is": "exit", "pid": 1, "cpu": 1000, "compiled": 0}]


def report_of(events):
    found = Examination(
        program="program.py", python="3.13.0", openssl={}, counts=count_events(events),
        http={"clients": [], "offers": None},
        ended={"raised": None, "signal": None, "why": None, "status": 0},
    )  # fmt: skip
    return judging.judge(found, {"share": 5.0, "fail_on": ["loads"]})


def test_a_record_gives_a_verdict_and_advice_on_loads_and_on_http2(made_up):
    report = report_of(run_of(6))
    assert report["verdicts"]["certificate loads"] == "repeated" and report["exit_status"] == 1
    assert "fetchling" in report["known_to_the_doctor"]
    by_id = {change["id"]: change for change in report["advice"]}
    assert by_id["keep-one"]["add"] == "client = fetchling.Client()"
    assert "A Client that is kept loads once." in by_id["keep-one"]["what"]
    assert by_id["one-connection"]["add"] == made_up.multiplexed
    assert rerun.changes_in(dict(report, loop=None)) == ["fetchling"]


def test_without_a_record_nothing_of_that_is_known():
    report = report_of(run_of(6))
    assert "fetchling" not in report["known_to_the_doctor"]
    by_id = {change["id"]: change for change in report["advice"]}
    assert by_id["keep-one"]["add"].startswith("client = ...  # of fetchling")
    assert by_id["one-connection"]["add"] == ""
    assert rerun.changes_in(dict(report, loop=None)) == []


def test_the_programs_own_call_is_what_is_advised(made_up, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import fetchling\nfetchling.Client(retries=3).fetch(url)\n")
    row = count_events(run_of(3, f"{program}:2"))["clients"][0]
    line, _ = advice.keep_one(row)
    assert line.startswith("client = fetchling.Client(retries=3)  # once")


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("work()", "ssl_context=ssl.create_default_context(cafile='/etc/own.pem')"),
        ("fetchling.get(url, ssl_context=make(1, 2))", "ssl_context=make(1, 2)"),
        ("fetchling.get(url, verify=True)",  # which is another client's word
         "ssl_context=ssl.create_default_context(cafile='/etc/own.pem')"),
    ],
)  # fmt: skip
def test_the_line_takes_what_the_program_trusts_by_the_records_keyword(
    made_up, call, argument, tmp_path
):
    (tmp_path / "program.py").write_text(call + "\n")
    run = run_of(3, f"{tmp_path / 'program.py'}:1", trust="/etc/own.pem")
    row = count_events(run)["clients"][0]
    assert advice.keep_one(row)[0] == f"client = fetchling.Client({argument})"
    assert advice.keep_one(dict(row, awaits=3))[0] == f"client = fetchling.Awaiting({argument})"
    # One that takes no context, or a client, is given none.
    for keyword in (None, "http_client"):
        made_up.keyword = keyword
        assert advice.keep_one(row)[0] == "client = fetchling.Client()"


def test_whom_to_trust_is_told_by_the_records_line(made_up, monkeypatch):
    row = {"client": "fetchling", "trusts": []}
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    assert advice.names_of_trust(row)["line"] == 'fetchling.trust("...")'
    assert advice.names_of_trust(row)["before"] == ""
    monkeypatch.setenv("FETCHLING_BUNDLE", "ca.pem")
    assert "FETCHLING_BUNDLE is set" in advice.names_of_trust(row)["before"]
    assert advice.names_of_trust(dict(row, client="requests"))["before"] == ""


def test_one_that_awaits_has_lines_of_its_own(made_up):
    row = count_events(run_of(3))["clients"][0]
    assert advice.keep_one(dict(row, awaits=3)) == made_up.keep_awaiting
    both, sentence = advice.keep_one(dict(row, awaits=2))
    assert both == "client = fetchling.Client(); awaiting = fetchling.Awaiting()"
    assert sentence == made_up.keep[1]
    run = [dict(each, loop=True) for each in run_of(6)]
    [line] = [each["add"] for each in report_of(run)["advice"] if each["id"] == "one-connection"]
    assert line == made_up.multiplexed_awaiting


def test_a_client_that_always_awaits_has_one_line():
    """As aiohttp, whose loads are told as those of a client that awaits."""
    row = dict(count_events(run_of(3))["clients"][0], client="aiohttp", through="aiohttp")
    for awaits in (1, 3):
        assert advice.keep_one(dict(row, awaits=awaits)) == advice.keep_one(row)


OF_BOTH_KINDS = """
class Client:
    def __init__(self, look): look()
class Awaiting(Client):
    def when_done(self): pass
"""


@pytest.mark.parametrize(
    ("name", "kinds"), [("fetchling", [False, True]), ("aiohttp", [True, True])]
)
def test_who_awaits_is_told_by_the_record(made_up, name, kinds):
    watching, noted = probes.Probes(lambda _: None), []
    module = types.ModuleType(name)
    exec(compile(OF_BOTH_KINDS, f"/lib/site-packages/{name}/a.py", "exec"), vars(module))
    look = lambda: noted.append(watching.callers(sys._getframe(1)))  # noqa: E731
    module.Client(look), module.Awaiting(look)
    assert [origin["awaits"] for origin in noted] == kinds
    assert {origin["client"] for origin in noted} == {name}


def in_want(row):
    """The row of a client whose pool is too small for seven."""
    return dict(row, requests=9, full=2, size={"full": 1}, wanted={"full": 7})


def test_a_larger_pool_and_shared_pools_follow_from_the_record(made_up):
    row = in_want(count_events(run_of(4))["clients"][0])
    assert advice.larger_pool(row)[0] == "client = fetchling.Client(max_requests=7)"
    names = [advice.trial_of(each, row) for each in ("keep-one", "larger-pool", "connection-close")]
    assert names == ["fetchling", POOL, HEADER]
    # Of urllib3 one trial stands for both; and none has tried it without the header.
    row["client"] = "urllib3"
    names = [advice.trial_of(each, row) for each in ("keep-one", "larger-pool", "connection-close")]
    assert names == ["urllib3", "urllib3", None]
    row["client"] = "fetchling"
    assert verdicts.is_shared(row, {"sessions": 0, "pools": 2, "botocores": 0})
    assert not verdicts.is_shared(row, {"sessions": 2, "pools": 3, "botocores": 0})


def test_a_library_that_uses_it_is_told_what_it_takes(made_up):
    maker, note = clients.advice_to_keep("fetchling")
    assert maker == "fetchling.Client" and "(it takes a context of yours as ssl_context=)" in note


def test_its_frames_are_its_own_and_its_sessions_can_be_asked(made_up, monkeypatch):
    module = types.ModuleType("fetchling")
    exec("def fetch(look): return look()", vars(module))
    monkeypatch.setitem(sys.modules, "fetchling", module)
    watching = probes.Probes(lambda _: None)
    origin = module.fetch(lambda: watching.callers(sys._getframe(1)))
    assert origin["client"] == "fetchling"
    assert made_up in clients.clients_with_sessions()
    assert "fetchling" in examination.known_clients()
    assert "fetchling" in examination.imported_modules()
    session = made_up.session("ca.pem")
    assert (session.module, session.ca) == (module, "ca.pem")
    row = dict(client="fetchling", imported=True, adapter=False, error=None)
    assert loads.judged_rows([row], "p") == [row]


def test_it_is_tried_and_changed_by_its_functions(made_up):
    spec = {"client": "fetchling", "change": None, "awaits": False}
    assert trial_choice.trial_functions(spec) == ("fetchling", load_again, load_once)
    spec["change"] = HEADER
    assert trial_choice.trial_functions(spec) == ("fetchling", change, load_once)
    module, before, after = trial_choice.trial_functions(dict(spec, change=POOL, size=1, wanted=7))
    assert (module, before("url", "ca"), after("url", "ca")) == (
        "fetchling", ("url", "ca", 1), ("url", "ca", 7),
    )  # fmt: skip
    applied = rerun.to_apply(["fetchling", POOL])
    assert set(applied) == {"fetchling.core", "fetchling.pools"}
    module = types.SimpleNamespace()
    applied["fetchling.core"](module)
    assert module.changed


def test_each_of_its_trials_is_made_where_its_row_asks_for_it(made_up, monkeypatch):
    made = {}
    monkeypatch.setattr(trying, "try_one", lambda _, trial: made.update({trial["change"]: trial}))
    counts = count_events(run_of(6))
    counts["clients"] = [dict(in_want(counts["clients"][0]), closed={"program": 2})]
    trying.try_changes(Examination(counts=counts, provides=[]), {})
    assert {trial["client"] for trial in made.values()} == {"fetchling"}
    assert set(made) == {None, POOL, HEADER}
    assert (made[POOL]["size"], made[POOL]["wanted"], made[HEADER]["wanted"]) == (1, 7, 1)


def test_again_makes_the_changes_of_the_rows_that_were_advised_on(made_up):
    """Not of requests, though the word stands in the line that is advised."""
    counts = count_events(run_of(6))
    counts["clients"] = [dict(in_want(counts["clients"][0]), closed={"program": 2}, kept=True)]
    line = "client = fetchling.Client(max_requests=7)"
    pool, header = {"id": "larger-pool", "add": line}, {"id": "connection-close", "add": ""}
    for given, names in (([pool], [POOL]), ([header], [HEADER]), ([pool, header], [HEADER, POOL])):
        report = {"counts": counts, "advice": given, "loop": None}
        assert rerun.changes_in(report) == names
    other = dict(pool, add='session.mount("https://", requests.adapters.HTTPAdapter())')
    assert rerun.changes_in({"counts": counts, "advice": [other], "loop": None}) == []
    made_up.changes = {}
    assert rerun.changes_in({"counts": counts, "advice": [pool, header], "loop": None}) == []


def test_what_its_header_costs_is_promised_of_its_own_loads(made_up):
    def run(loads):
        counts = count_events(run_of(loads))
        counts["clients"] = [dict(row, closed={"program": loads}) for row in counts["clients"]]
        return {
            "counts": counts, "advice": [{"id": "connection-close", "add": ""}], "loop": None,
            "tried": {HEADER: {"then": {"loads": 1}}, POOL: {"then": {"loads": 1}}},
            "verdicts": {"event loop": "free"}, "ended": {"why": None, "raised": None, "status": 0},
        }  # fmt: skip

    again = rerun.run_again(run(6), lambda changes: run(1))
    assert again["promises"] == [{"client": HEADER, "promised": 1, "loads": 1}]
    assert rerun.run_again(run(6), lambda changes: run(2))["kept"] is False


def test_what_was_tried_with_another_client_is_not_promised(made_up):
    tried = {"connection-close": dict(
        connections=6, at_once=1, now={"loads": 6, "cpu_ms": 9}, then={"loads": 1, "cpu_ms": 2},
        **{"with": "requests"}
    )}  # fmt: skip
    counts = count_events(run_of(6))
    for name, is_promised in (("requests", True), ("fetchling", False), ("httpx", False)):
        counts["clients"] = [dict(row, client=name, closed={"program": 6})
                             for row in counts["clients"]]  # fmt: skip
        [given] = advice.advice_on_closings(Examination(counts=counts, tried=tried))
        assert (given["id"], bool(given["saves"])) == ("connection-close", is_promised)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("requests", {}, "there is a record of requests already"),
        (
            "fast",
            {"packages": "fast httpcore"},
            "the package httpcore is of httpx already, and cannot be of fast, too",
        ),
        (
            "fast",
            {"own_tls": "fast_tls pycurl"},
            "the module pycurl is of pycurl already, and cannot be of fast, too",
        ),
        (
            "fast",
            {"trials": {"larger-pool": ("fast", load_again, load_once)}},
            "the trial larger-pool is of requests already, and cannot be of fast, too",
        ),
        (
            "fast",
            {"changes": {"connection-close": {"fast": change}}},
            "the change connection-close is made otherwise already: name another",
        ),
    ],
)
def test_what_is_anothers_cannot_be_registered(made_up, name, values, words):
    before = [*clients.CLIENTS], [{**table} for table in TABLES]
    with pytest.raises(ValueError, match=f"^{words}$"):
        clients.register(clients.Client(name, **values))
    assert before == ([*clients.CLIENTS], [{**table} for table in TABLES])


def test_tls_of_its_own_is_named_when_it_is_imported(made_up):
    noted = []
    watching = probes.Probes(noted.append)
    assert watching.is_probed("fetchling_tls") and not watching.is_probed("fetchling_else")
    watching.probe("fetchling_tls", types.ModuleType("fetchling_tls"))
    assert [(event["is"], event["name"]) for event in noted] == [("own tls", "fetchling")]
    assert count_events(noted)["own_tls"] == ["fetchling"]


SESSIONS = """
def requests_module():
    class Session:
        def get(self): return self.request()
        def request(self): return look()
    return Session
"""


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("google.auth.transport.requests", "google.auth.transport.requests.Authorized"),
        ("__main__", "Authorized"),
        ("requests.sessions", None),  # its own
    ],
)
def test_a_session_that_another_has_made_its_own_of_is_told_by_its_class(module, kind):
    watching, noted = probes.Probes(lambda _: None), []
    look = lambda: noted.append(watching.callers(sys._getframe(1)))  # noqa: E731
    namespace = {"__name__": "requests.sessions", "look": look}
    exec(compile(SESSIONS, "/lib/site-packages/requests/sessions.py", "exec"), namespace)
    session = namespace["requests_module"]()
    type("Authorized", (session,), {"__module__": module})().get()
    session().get()
    assert [origin.get("kind") for origin in noted] == [kind, None]
    assert {origin["client"] for origin in noted} == {"requests"}


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("AuthorizedSession(key)", "session = AuthorizedSession(key)"),
        ("other()", "session = google.auth.transport.requests.AuthorizedSession(...)"),
    ],
)
def test_such_a_session_is_kept_as_the_program_makes_it(made, line, tmp_path):
    """A Session of requests' own would ask without the authorization."""
    path = tmp_path / "program.py"
    text = "from google.auth.transport.requests import AuthorizedSession\ndef make():\n"
    path.write_text(f"{text}    return {made}\nmake().get(URL)\n")
    kind = "google.auth.transport.requests.AuthorizedSession"
    row = {
        "client": "requests", "through": "requests", "kind": kind, "awaits": 0, "loads": 9,
        "trusts": [["system", 9]], "at": [[f"{path}:4", 9]],
    }  # fmt: skip
    advised, sentence = advice.keep_one(row)
    assert advised.startswith(line + "  # once")
    assert sentence.startswith("Each new AuthorizedSession loads anew")
    assert advice.keep_one(dict(row, kind=None))[0] == "session = requests.Session()"
