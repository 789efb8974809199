"""What is tried, made again and advised of a client, on rows that are written down."""

import gc
import os
import sys
import types

import pytest
from tls_doctor import clients, rerun, trial_choice, trials, trying
from tls_doctor.basis import DOES_NOT_APPLY, ITS_OWN
from tls_doctor.examination import Examination


def a_row(**values):
    """The row of a client that made six connections, one after the other, and loaded for each."""
    row = dict(
        client="requests", through="requests", connections=6, loads=6, needed=1, kept=False,
        by=[["ssl", 6]], trusts=[["/a.pem", 6]], awaits=0, closed={}, wanted={}, full=0, evicted=0,
        size={}, requests=6, peak=1, threads=1, open=1, contexts=6, default=6,
    )  # fmt: skip
    return dict(row, **values)


def counts_of(*rows, **values):
    return dict({"clients": list(rows), "sessions": 6, "pools": 6, "botocores": 6}, **values)


def trials_for(sessions=6, **values):
    row = a_row(**values)
    return trial_choice.trials_for(row, counts_of(row, sessions=sessions, pools=1))


# ------------------------------------------------------------------------------------- the choice


def test_a_client_that_loads_again_is_tried_as_often_as_it_connected():
    trial = {"client": "requests", "change": None, "trust": "/a.pem", "awaits": False}
    assert trials_for() == [dict(trial, wanted=1, rounds=6)]
    assert trials_for(trusts=[]) == [dict(trial, wanted=1, rounds=6, trust=None)]
    assert trials_for(threads=3, open=3) == [dict(trial, wanted=3, rounds=6)]
    assert trials_for(peak=60) == [dict(trial, wanted=50, rounds=6)]


@pytest.mark.parametrize(
    ("values", "rounds"),
    [
        (dict(connections=60, loads=60, sessions=60), 50),
        (dict(connections=6, loads=4), 4),  # several connections with one load
        (dict(connections=4, loads=6), 4),
        (dict(connections=0, loads=6), 6),  # over plain HTTP
        (dict(connections=3, loads=3), 3),
        (dict(connections=2, loads=2, needed=0), 2),
        (dict(connections=2, loads=2), None),  # one load too many is no illness
        (dict(connections=1, loads=9), None),
        (dict(kept=True), None),
        (dict(sessions=4), 6),
        (dict(sessions=3), None),  # two connections for each Session: they are shared
        (dict(client="urllib3"), 6),  # whose one pool loads no more for that
    ],
)
def test_nothing_is_tried_of_a_client_that_is_kept_or_loads_hardly_again(values, rounds):
    assert [trial["rounds"] for trial in trials_for(**values)] == ([rounds] if rounds else [])


@pytest.mark.parametrize(
    ("client", "modules", "tried"),
    [
        (None, ["ssl"], ITS_OWN),
        (None, ["ssl", "OpenSSL.SSL"], None),
        ("nobody's", ["ssl"], "nobody's"),
        ("nobody's", ["truststore._api"], None),
        ("httpx", ["truststore._api"], "httpx"),
    ],
)
def test_a_client_that_is_not_known_is_tried_where_it_loads_by_ssl(client, modules, tried):
    chosen = trials_for(client=client, by=[[module, 3] for module in modules])
    assert [trial["client"] for trial in chosen] == ([tried] if tried else [])


@pytest.mark.parametrize(
    ("client", "awaits", "is_awaited"),
    [("httpx", 4, True), ("httpx", 3, False), ("requests", 6, False)],
)
def test_it_is_tried_awaiting_where_most_of_its_loads_were_awaited(client, awaits, is_awaited):
    [trial] = trials_for(client=client, awaits=awaits)
    assert trial["awaits"] is is_awaited


@pytest.mark.parametrize(
    ("client", "closed", "kept", "changes"),
    [
        ("requests", {"program": 2}, True, ["connection-close"]),
        ("requests", {"program": 2}, False, ["connection-close", None]),
        ("requests", {"program": 1}, False, [None]),
        ("requests", {"server": 6}, False, [None]),
        ("urllib3", {"program": 6}, False, [None]),  # whose header nobody tries
    ],
)
def test_a_header_is_tried_where_the_program_sent_it_again_and_again(client, closed, kept, changes):
    chosen = trials_for(client=client, closed=closed, kept=kept)
    assert [trial["change"] for trial in chosen] == changes


def in_want_of(places, **values):
    return dict(dict(requests=9, full=2, size={"full": 10}, wanted={"full": places}), **values)


@pytest.mark.parametrize(
    ("values", "rounds"),
    [
        (in_want_of(12), 4),
        (in_want_of(16), 3),
        (in_want_of(20), 2),
        (in_want_of(26), 2),  # two at least: in one nothing is closed and made anew
        (in_want_of(50), 2),
        (in_want_of(51), None),
        (in_want_of(12, full=1), None),
        (in_want_of(12, loads=2), None),
        (in_want_of(12, client="urllib3"), None),
    ],
)
def test_a_larger_pool_is_tried_with_as_many_places_as_were_wanted(values, rounds):
    of_pool = [trial for trial in trials_for(**values, kept=True) if trial["change"]]
    assert [trial["rounds"] for trial in of_pool] == ([rounds] if rounds else [])
    for trial in of_pool:
        assert (trial["change"], trial["size"]) == ("larger-pool", 10)
        assert trial["wanted"] == values["wanted"]["full"] and not trial["awaits"]


def test_a_header_is_tried_one_after_the_other_and_neither_it_nor_a_pool_awaiting(monkeypatch):
    record = clients.Client(
        "fetchling", trial=("json", None, None), awaiting_trial=("json", None, None),
        larger_pool_change="pool", closing_change="header",
        trials={"pool": ("json", None, None), "header": ("json", None, None)},
    )  # fmt: skip
    monkeypatch.setattr(trial_choice, "client_named", lambda _: record)
    chosen = trials_for(awaits=6, peak=3, closed={"program": 6}, **in_want_of(7))
    told = [(trial["change"], trial["wanted"], trial["awaits"]) for trial in chosen]
    assert told == [("header", 1, False), (None, 3, True), ("pool", 7, False)]
    assert [trial["rounds"] for trial in chosen] == [6, 6, 4]


@pytest.mark.parametrize(
    ("client", "change", "awaits", "functions"),
    [
        (ITS_OWN, None, False, trials.CONTEXTS),
        ("nobody's", None, True, trials.CONTEXTS),
        ("requests", None, False,
         ("requests", trials.each_requests, trials.kept_requests)),
        ("requests", "connection-close", False,
         ("requests", trials.closing_requests, trials.kept_requests)),
        ("httpx", None, True, clients.client_named("httpx").awaiting_trial),
        ("httpx", None, False, clients.client_named("httpx").trial),
    ],
)  # fmt: skip
def test_the_functions_of_a_trial_are_its_clients(client, change, awaits, functions):
    trial = {"client": client, "change": change, "awaits": awaits}
    assert trial_choice.trial_functions(trial) == functions
    assert not trial_choice.is_of_places(trial)


@pytest.mark.parametrize(
    ("wanted", "rounds", "made"),
    [(1, 6, 6), (2, 6, 3), (2, 12, 4), (3, 8, 2), (3, 50, 4), (7, 6, 1), (50, 50, 1)],
)
def test_so_many_at_once_have_fewer_rounds(wanted, rounds, made):
    trial = {"client": "requests", "change": None, "wanted": wanted, "rounds": rounds}
    assert trial_choice.rounds_of(trial) == made
    # Those of a larger pool stay.
    assert trial_choice.rounds_of(dict(trial, change="larger-pool")) == rounds


@pytest.mark.parametrize(
    ("wanted", "change", "then", "is_told"),
    [
        (1, None, 5, True),
        (1, None, 6, False),
        (3, None, 6, True),  # each loads by itself, which is told
        (3, "larger-pool", 6, False),
        (3, "larger-pool", 5, True),
    ],
)
def test_a_trial_that_saves_nothing_is_told_of_several_at_once_alone(wanted, change, then, is_told):
    trial, result = {"wanted": wanted, "change": change}, {"now": {"loads": 6}}
    assert trial_choice.came_to_something(trial, dict(result, then={"loads": then})) is is_told
    assert trial_choice.came_to_something(trial, None) is False


@pytest.mark.parametrize(("comes", "trusts"), [(True, ["/a.pem"]), (False, ["/a.pem", "/b.pem"])])
@pytest.mark.parametrize(("by", "late"), [("truststore", True), ("ssl", False)])
def test_a_second_row_of_a_client_is_tried_where_the_first_came_to_nothing(
    comes, trusts, by, late, monkeypatch
):
    made = []

    def try_one(tried, trial):
        made.append(trial)
        if comes:
            tried[trial["client"]] = "its result"

    monkeypatch.setattr(trying, "try_one", try_one)
    rows = a_row(), a_row(trusts=[["/b.pem", 6]])
    found = Examination(counts=counts_of(*rows), provides=[{"by": "nobody"}, {"by": by}])
    assert trying.try_changes(found, "address") == ({"requests": "its result"} if comes else {})
    assert [trial["trust"] for trial in made] == trusts
    assert {(trial["late"], trial["address"]) for trial in made} == {(late, "address")}


# ------------------------------------------------------------------------------- the second run


def test_each_line_of_the_program_makes_one_context_and_a_library_as_many_as_it_likes():
    made = []
    module = types.SimpleNamespace(create_default_context=lambda *a, **k: made.append((a, k)) or 7)
    rerun.one_context_of_a_line(module)
    code = "for _ in range(3):\n    assert make(1, cafile='a') == 7\n    make(1, cafile='a')\n"
    exec(compile(code, "/home/reader/program.py", "exec"), {"make": module.create_default_context})
    assert made == 2 * [((1,), {"cafile": "a"})]
    library = "/usr/lib/python3/site-packages/fetchling/core.py"
    exec(compile(code, library, "exec"), {"make": module.create_default_context})
    assert made == 8 * [((1,), {"cafile": "a"})]


def test_an_injection_does_nothing():
    module = types.SimpleNamespace(inject_into_urllib3=pytest.fail)
    rerun.no_injection(module)
    assert module.inject_into_urllib3() is None


def test_a_change_is_named_as_itself_or_as_its_client():
    assert rerun.change_named(ITS_OWN) == {"ssl": rerun.one_context_of_a_line}
    assert rerun.change_named("connection-close") == clients.NO_CLOSING
    assert set(rerun.change_named("requests")) == {"requests.adapters"}
    assert rerun.change_named("nobody's") == {}
    injections = dict.fromkeys(
        ("urllib3.contrib.pyopenssl", "requests.packages.urllib3.contrib.pyopenssl"),
        rerun.no_injection,
    )
    assert rerun.change_named("injected") == injections


def test_two_changes_of_one_module_are_both_made(monkeypatch):
    made = []
    monkeypatch.setattr(rerun, "APPLIED", {
        "first": {"a": lambda module: made.append(("first", module))},
        "second": {"a": lambda module: made.append(("second", module)), "b": made.append},
    })  # fmt: skip
    applied = rerun.to_apply(["first", "second"])
    applied["a"]("module a"), applied["b"]("module b")
    assert made == [("first", "module a"), ("second", "module a"), "module b"]
    assert set(applied) == {"a", "b"}


def test_a_loops_patch_comes_first(monkeypatch):
    monkeypatch.delenv("PATCHED", raising=False)
    patches = {"gevent": "import os; os.environ['PATCHED'] = str('__name__' in globals())"}
    monkeypatch.setattr(rerun, "PATCHES", patches)
    rerun.apply_first(["requests"])
    assert "PATCHED" not in os.environ
    rerun.apply_first(["requests", "gevent"])
    assert os.environ["PATCHED"] == "False"  # in names of its own


def asking(*ids, rows=(), loop=None, **values):
    """A report that asks for these changes."""
    advice = [{"id": name, "add": ""} for name in ids]
    return {"advice": advice, "counts": counts_of(*rows), "loop": loop, **values}


GEVENT = {"name": "gevent"}


@pytest.mark.parametrize(
    ("ids", "loop", "changes"),
    [
        (["injected"], GEVENT, ["injected"]),
        (["injected", "patch"], GEVENT, ["injected"]),
        (["patch"], GEVENT, ["gevent"]),
        (["patch-first"], GEVENT, ["gevent"]),
        (["patch-everything"], GEVENT, ["gevent"]),
        (["patch-select"], GEVENT, []),
        (["patch"], None, []),
        ([], GEVENT, []),
    ],
)
def test_a_loop_is_patched_where_that_is_asked_for_and_nothing_is_injected(ids, loop, changes):
    assert rerun.changes_in(asking(*ids, loop=loop)) == changes


@pytest.mark.parametrize(
    ("rows", "changes"),
    [
        ([a_row(), a_row()], ["requests"]),
        ([a_row(client="urllib3"), a_row(client="httpx")], ["httpx", "urllib3"]),
        ([a_row(loads=2), a_row(client="httpx", loads=3)], ["httpx"]),  # a load more than needed
        ([a_row(kept=True), a_row(client="httpx")], ["httpx"]),
        ([a_row(client=None)], [ITS_OWN]),
        ([a_row(client=None, default=5)], []),  # of an SSLContext, too: not made from outside
        ([a_row(client="aiohttp")], []),
    ],
)
def test_clients_that_load_again_are_changed_where_one_is_to_be_kept(rows, changes):
    assert rerun.changes_in(asking("keep-one", rows=rows)) == changes
    assert rerun.changes_in(asking("larger-pool", rows=rows)) == []


def test_each_client_has_the_further_changes_that_are_asked_for():
    line = 'session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=12))'
    rows = (
        a_row(**in_want_of(12)),
        a_row(client="urllib3", closed={"program": 1}),
        a_row(client="httpx"),
    )
    report = asking("connection-close", rows=rows)
    assert rerun.further_changes(report) == ["connection-close"]
    report["advice"].append({"id": "larger-pool", "add": line})
    assert rerun.further_changes(report) == ["larger-pool", "connection-close"]
    report["advice"] = [{"id": "larger-pool", "add": "another's"}]
    assert rerun.further_changes(report) == []


def test_what_cannot_be_changed_from_outside_has_a_name():
    rows = [a_row(client=None, default=5), a_row(client="aiohttp")]
    assert rerun.ill_clients(asking("keep-one", rows=rows)) == [
        "the program's other contexts", "aiohttp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("client", "owners", "is_kept"),
    [("requests", 3, True), ("requests", 4, False), ("urllib3", 1, False), ("botocore", 1, True)],
)
def test_a_client_that_loads_for_each_connection_is_kept_where_it_is_shared(
    client, owners, is_kept
):
    counts = dict.fromkeys(("sessions", "pools", "botocores"), owners)
    assert rerun.is_kept_already(a_row(client=client), counts) is is_kept
    report = {
        "advice": [{"id": "keep-one"}],
        "counts": dict(counts, clients=[a_row(client=client)]),
    }
    assert rerun.ill_clients(report) == ([] if is_kept else [client])


def a_run(rows, *ids, loads=12, cpu_ms=90.0, loop="blocked", tried=None, **ended):
    report = asking(*ids, rows=rows, tried=tried or {}, verdicts={"event loop": loop})
    report["counts"].update(loads=loads, cpu_ms=cpu_ms)
    return dict(report, ended=dict({"why": None, "raised": None, "status": 0}, **ended))


@pytest.mark.parametrize(
    ("ids", "ended", "reason"),
    [
        (["keep-one"], {"status": 1}, "it did not come to a good end the first time"),
        (["keep-one"], {"raised": "ValueError"}, "it did not come to a good end the first time"),
        (["keep-one"], {"why": "killed"}, "it did not come to a good end the first time"),
        (["keep-one"], {},
         "the doctor cannot make this change from outside: make it, and run the doctor again"),
        (["lock"], {},
         "the doctor cannot make this change from outside: make it, and run the doctor again"),
        ([], {}, "nothing is to be changed"),
    ],
)  # fmt: skip
def test_why_the_program_does_not_run_again(ids, ended, reason):
    first = a_run([a_row(client="aiohttp")], *ids, **ended)
    again = rerun.run_again(first, pytest.fail)
    assert again == {
        "changes": [], "why": reason, "promises": [], "kept": None,
        "left": ["aiohttp"] if "keep-one" in ids else [],
    }  # fmt: skip
    lines = words_of(again)
    assert lines == [f"The program was not run again: {reason}."]


def words_of(again):
    return [" ".join(line.split()) for line in rerun.again_lines(again)]


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ({}, None),
        ({"status": 1}, "with the change it did not come to a good end"),
        ({"raised": "E"}, "with the change it did not come to a good end"),
        ({"why": "killed"}, "with the change it did not come to a good end"),
    ],
)
def test_what_came_out_when_it_ran_again(ended, reason, capsys):
    rows = a_row(), a_row(client="urllib3"), a_row(client="aiohttp")
    tried = {"urllib3": {"then": {"loads": 1}}, "httpx": {"then": {"loads": 1}}}
    first, asked = a_run(rows, "keep-one", tried=tried), []

    def run(changes):
        asked.append(changes)
        later = a_row(client="urllib3", loads=1, needed=1), a_row(client=None, loads=1, needed=0)
        return a_run(later, loads=2, cpu_ms=30.4, loop="free", **ended)

    again = rerun.run_again(first, run)
    assert asked == [["requests", "urllib3"]]
    assert capsys.readouterr().err == (
        "running the program again, with the change (requests, urllib3)\n"
    )
    # The program's own context is one of urllib3's; of requests nothing was promised.
    assert again == {
        "changes": ["requests", "urllib3"], "left": ["aiohttp"], "why": reason, "loads": [12, 2],
        "cpu_ms": [90.0, 30.4], "event loop": ["blocked", "free"], "kept": False,
        "promises": [{"client": "urllib3", "promised": 1, "loads": 2}],
    }  # fmt: skip
    but = [f"But {reason}."] if reason else []
    assert words_of(again) == [
        "aiohttp: cannot be changed from outside, so nothing is promised.",
        "applied from outside: requests, urllib3", *but,
        "12 loads before, 2 loads now", "90 ms of CPU before, 30 ms now",
        "event loop: blocked before, free now",
        "urllib3: at most 1 promised, and 2 came out",
        "The promise was not kept.",
    ]  # fmt: skip
    kept = dict(again, kept=True, left=[], loads=[2, 1])
    kept["event loop"] = [DOES_NOT_APPLY, DOES_NOT_APPLY]
    assert words_of(kept)[len(but) :] == [
        "applied from outside: requests, urllib3", *but, "2 loads before, 1 load now",
        "90 ms of CPU before, 30 ms now", "urllib3: at most 1 promised, and 2 came out",
        "The promise was kept.",
    ][len(but) :]  # fmt: skip
    assert not any(
        "promise" in line for line in words_of(dict(again, promises=[], kept=None, left=[]))
    )


def test_contexts_that_the_program_made_before_too_are_nobodys_loads():
    tried, own = {"urllib3": {"then": {"loads": 1}}}, {"client": None, "kept": True}
    first = a_run([a_row(client="urllib3"), a_row(**own, loads=3)], "keep-one", tried=tried)
    for now, loads in ((2, 1), (3, 1), (5, 3)):
        later = [a_row(client="urllib3", loads=1), a_row(**own, loads=now)]
        [promise] = rerun.run_again(first, lambda _, rows=later: a_run(rows))["promises"]
        assert promise["loads"] == loads


def test_no_promise_is_made_of_a_larger_pool():
    """How many threads ask at once may be another number the next time."""
    line = 'session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=12))'
    tried = {"larger-pool": {"then": {"loads": 1}}}
    first = a_run([a_row(**in_want_of(12))], "larger-pool", tried=tried)
    first["advice"][0]["add"] = line
    again = rerun.run_again(first, lambda _: a_run([]))
    assert (again["changes"], again["promises"]) == (["larger-pool"], [])
    del first["tried"]
    assert rerun.run_again(first, lambda _: a_run([]))["kept"] is None


def test_what_is_left_and_whether_the_loop_was_judged_the_first_time():
    again = {
        "changes": ["requests"], "left": ["aiohttp", "svix"], "why": None, "loads": [2, 1],
        "cpu_ms": [9, 8], "event loop": [DOES_NOT_APPLY, "free"], "promises": [], "kept": None,
    }  # fmt: skip
    assert words_of(again) == [
        "aiohttp, svix: cannot be changed from outside, so nothing is promised.",
        "applied from outside: requests", "2 loads before, 1 load now",
        "9 ms of CPU before, 8 ms now",
    ]  # fmt: skip
    again["event loop"] = ["blocked", DOES_NOT_APPLY]
    assert words_of(again)[-1] == "event loop: blocked before, does not apply now"


def test_fewer_contexts_of_its_own_are_nobodys_loads():
    """And a client of which nothing is left has made no load."""
    tried = {"urllib3": {"then": {"loads": 3}}}
    first = a_run([a_row(client="urllib3")], "keep-one", tried=tried)
    again = rerun.run_again(first, lambda _: a_run([]))
    assert again["promises"] == [{"client": "urllib3", "promised": 3, "loads": 0}]
    first["tried"]["urllib3"]["then"]["loads"] = 0
    [promise] = rerun.run_again(first, lambda _: a_run([]))["promises"]
    assert promise["promised"] == 0
    later = [a_row(client="urllib3", loads=5, needed=4)]
    assert rerun.run_again(first, lambda _: a_run(later))["promises"] == [
        {"client": "urllib3", "promised": 4, "loads": 5}
    ]


# ------------------------------------------------------------------------------------ the records


def test_a_client_without_a_record_has_nothing():
    record = clients.client_named("nobody's")
    assert (record.name, record.module, record.keep, record.changes) == (
        "nobody's",
        "nobody's",
        None,
        {},
    )
    assert clients.client_named("httpx").module == "httpx"
    assert clients.client_named("http.client").packages == "http httplib"


def test_what_is_made_of_a_client_takes_a_context_a_client_or_nothing():
    kinds = {
        "httpx": (True, False), "openai": (False, False), "boto3": (False, True),
        "requests": (False, False), "paho": (False, False),
    }  # fmt: skip
    for name, (takes_context, takes_nothing) in kinds.items():
        record = clients.client_named(name)
        assert (record.takes_context, record.takes_nothing) == (takes_context, takes_nothing), name


def test_the_module_of_a_client_is_imported_for_its_session(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    kind = lambda *given, **options: (given, options)  # noqa: E731
    record = clients.Client("colours", module="colorsys", kind=kind, options={"mount": 7})
    (module, trust), options = record.session("ca.pem")
    assert (module.__name__, trust, options) == ("colorsys", "ca.pem", {"mount": 7})


KEEP = "Make one client of %s, and keep it"


@pytest.mark.parametrize(
    ("library", "maker", "words"),
    [
        ("nobody's", None, KEEP + ". If it loads anew all the same, see whether it takes a context,"
         " and give it the same one each time."),
        ("boto3", "boto3.client", KEEP + " (it takes no context or client of yours)."),
        ("websockets", "websockets.sync.client.connect",
         "It takes a context of yours as ssl=: make one, and give it to each connection."),
        ("slack_sdk", "slack_sdk.WebClient", KEEP + " (it takes a context of yours as ssl=)."),
        ("openai", "openai.OpenAI", KEEP + " (it takes a client of yours as http_client=)."),
    ],
)  # fmt: skip
def test_how_the_client_of_a_library_is_kept(library, maker, words):
    words = words.replace("%s", library)
    assert clients.advice_to_keep(library) == (maker, words)


def test_one_that_another_stands_on_is_not_told_beside_it():
    assert clients.topmost(["requests", "urllib3", "httpx"]) == ["requests", "httpx"]
    assert clients.topmost(["urllib3", "httpx"]) == ["urllib3", "httpx"]


def test_clients_are_counted_once_each_in_the_order_of_their_names():
    names = clients.counted_clients()
    assert names == sorted(set(names)) and {"requests", "niquests", "http.client"} <= set(names)
    assert "openai" not in names and "pycurl" not in names
    asked = [client.name for client in clients.clients_with_sessions()]
    assert asked == ["requests", "niquests", "urllib3", "httpx", "geventhttpclient", "aiohttp"]


@pytest.fixture
def made_up_requests(monkeypatch):
    class HTTPAdapter:
        def send(self): ...
        def get_connection_with_tls_context(self): ...
        def close(self): ...

    class Session:
        def __init__(self, adapter):
            self.adapters = {"https://": adapter, "http://": None}

    module = types.ModuleType("requests")
    module.Session, module.adapters = Session, types.SimpleNamespace(HTTPAdapter=HTTPAdapter)
    for name in [name for name in sys.modules if name.startswith("requests_toolbelt")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "requests", module)
    yield module
    gc.collect()


def test_adapters_of_the_programs_own_are_asked_one_of_each_class(made_up_requests):
    stock = made_up_requests.adapters.HTTPAdapter

    class Own(stock):
        def close(self): ...

    class Elsewhere(stock):
        def send(self): ...

    class ByAnotherWay(stock):
        def get_connection_with_tls_context(self): ...

    adapters = [Own(), Own(), stock(), Elsewhere(), ByAnotherWay(), object()]
    kept = [made_up_requests.Session(adapter) for adapter in adapters]
    kept.append(made_up_requests.Session.__new__(made_up_requests.Session))  # that is half made
    [client] = clients.own_adapters()
    assert client.name == "requests with a session's Own" and client.adapter
    assert client.module == "requests" and client.kind is clients.Requests
    assert client.options["mount"]() in adapters[:2]
    del kept


def test_at_most_three_classes_of_adapters_are_asked(made_up_requests):
    kinds = [
        type(f"Own{number}", (made_up_requests.adapters.HTTPAdapter,), {}) for number in range(4)
    ]
    kept = [made_up_requests.Session(kind()) for kind in kinds]
    assert len(clients.own_adapters()) == 3
    del kept


def test_the_adapter_of_a_library_is_asked_where_no_session_has_it(made_up_requests, monkeypatch):
    class X509Adapter(made_up_requests.adapters.HTTPAdapter):
        def __init__(self, **files):
            self.files = files

    module = types.ModuleType("requests_toolbelt.adapters.x509")
    module.X509Adapter = X509Adapter
    monkeypatch.setitem(sys.modules, module.__name__, module)
    [client] = clients.own_adapters()
    assert client.name == "requests with requests_toolbelt's X509Adapter" and not client.adapter
    assert client.module == "requests" and client.kind is clients.Requests
    files = client.options["mount"]().files
    assert set(files) == {"cert_bytes", "pk_bytes"}
    assert b"CERTIFICATE" in files["cert_bytes"] and b"KEY" in files["pk_bytes"]
    kept = made_up_requests.Session(X509Adapter())
    [client] = clients.own_adapters()
    assert client.adapter
    del kept


def test_without_requests_there_are_no_adapters(monkeypatch):
    monkeypatch.delitem(sys.modules, "requests", raising=False)
    assert clients.own_adapters() == []
