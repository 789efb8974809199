"""A client is one record, from which each verdict and each advice on it follows."""

import sys
import types

import pytest
from tls_doctor import advice, clients, examination, judging, loads, probes, rerun, trying, verdicts
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


def change(module):
    """Stand for the change from outside."""
    module.changed = True


@pytest.fixture
def made_up():
    """The record of a client that nobody has heard of; all that a developer adds."""
    before = [*clients.CLIENTS], {**clients.PACKAGES}, {**clients.OWN_TLS}
    record = clients.Client(
        "fetchling", packages="fetchling fetchling_core", own_tls="fetchling_tls", kind=Session,
        keep=("fetcher = fetchling.Fetcher()", "A Fetcher that is kept loads once."),
        makers="Fetcher", owners="pools",
        larger_pool="fetcher = fetchling.Fetcher(%s)", pool_options={"full": "places"},
        larger_pool_trial="fetchling", multiplexed="fetcher = fetchling.Fetcher(http2=True)",
        constructor="fetchling.Fetcher", keyword="context",
        trial=("fetchling", load_again, load_once), applied={"fetchling.core": change},
    )  # fmt: skip
    clients.register(record)
    yield record
    clients.CLIENTS[:] = before[0]
    for table, content in zip((clients.PACKAGES, clients.OWN_TLS), before[1:], strict=True):
        table.clear()
        table.update(content)


def who(at="program.py:1"):
    return {"client": "fetchling", "through": "fetchling", "at": at, "awaits": False}


def run_of(connections, at="program.py:1"):
    """The events of a program that loads for each connection."""
    events = []
    common = {"pid": 1, "cpu": 0, "compiled": 0, "who": who(at), "loop": False, "by": "ssl", "t": 0}
    for c in range(1, connections + 1):
        events.append(dict(common, c=c, default=False, **{"is": "context"}))
        loaded = dict(ms=50, trust="bundle", since=0, kib=[0, 0], alive=1, waiting=False, thread=1)
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
    assert by_id["keep-one"]["add"] == "fetcher = fetchling.Fetcher()"
    assert "A Fetcher that is kept loads once." in by_id["keep-one"]["what"]
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
    program.write_text("import fetchling\nfetchling.Fetcher(retries=3).fetch(url)\n")
    row = count_events(run_of(3, f"{program}:2"))["clients"][0]
    line, _ = advice.keep_one(row)
    assert line.startswith("fetcher = fetchling.Fetcher(retries=3)  # once")


def test_a_larger_pool_and_shared_pools_follow_from_the_record(made_up):
    row = count_events(run_of(4))["clients"][0]
    row.update(requests=9, full=2, size={"full": 1}, wanted={"full": 7})
    assert advice.larger_pool(row)[0] == "fetcher = fetchling.Fetcher(places=7)"
    assert advice.trial_of("larger-pool", row) == advice.trial_of("keep-one", row) == "fetchling"
    assert verdicts.is_shared(row, {"sessions": 0, "pools": 2, "botocores": 0})
    assert not verdicts.is_shared(row, {"sessions": 2, "pools": 3, "botocores": 0})


def test_a_library_that_uses_it_is_told_what_it_takes(made_up):
    maker, note = clients.advice_to_keep("fetchling")
    assert maker == "fetchling.Fetcher" and "(it takes a context of yours as context=)" in note


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
    spec = {"client": "fetchling", "awaits": False}
    assert trying.trial_functions(spec) == ("fetchling", load_again, load_once)
    applied = rerun.to_apply(["fetchling"])
    module = types.SimpleNamespace()
    applied["fetchling.core"](module)
    assert module.changed


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
