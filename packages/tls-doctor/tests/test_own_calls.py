"""The program's own calls, found in its files, and the advice that is made of them."""

import pytest
from tls_doctor import advice, own_calls, tally

OF_LIBRARIES = [
    ("import hvac\nhvac.Client(url=URL)\n", "hvac", None, "hvac.Client(url=URL)"),
    # One that is an argument of another is not what is kept.
    ("from github import Github, Auth\nGithub(auth=Auth.Token(T))\n", "github", None,
     "Github(auth=Auth.Token(T))"),
    # Of several the one that is called a client; or the one that the doctor knows.
    ("from k8s import client\nclient.Api(client.ApiClient(client.Settings()))\n", "k8s", None,
     "client.ApiClient(client.Settings())"),
    ("from ldap3 import Server, Connection\ns = Server(H)\nc = Connection(s)\n", "ldap3", None,
     "Connection(s)"),
    ("from x import Api, XConnection, XClient\nXConnection()\nXClient(1)\n", "x", None,
     "XClient(1)"),
    ("import k8s.client as c\nc.Api(c.Core(x))\n", "k8s", "Core", "c.Core(x)"),
    ("from openai import AsyncOpenAI as AI\nasync def f(): return AI(\n key=1)\n", "openai",
     "OpenAI", "AI( key=1)"),
    # What a session of the library makes, which the program calls as it likes.
    ("from boto9 import get_session\nmine = get_session()\nmine.make_it('s3')\n", "boto9",
     "make_it", "mine.make_it('s3')"),
    ("mine.make_it('s3')\n", "boto9", "make_it", None),
    # What a function makes, if its methods are called there.
    ("import net; nb = net.api(URL); nb.status()\n", "net", None, "net.api(URL)"),
    ("import net; nb = net.api(URL)\nnb.status()\n", "net", None, None),
    ("import net; nb = ours.api(URL); nb.status()\n", "net", None, None),
    ("import net; nb = net.a.api(URL); nb.status()\n", "net", None, None),
    # Nothing tells these apart, and this is another library's.
    ("from k8s import Api, Core\nApi(1)\nCore(2)\n", "k8s", None, None),
    ("from other import Client\nimport hvac\nClient()\nhvac.adapters.get()\n", "hvac", None, None),
    ("from .hvac import Client\nClient()\n", "hvac", None, None),
    ("print 'of another Python'\n", "hvac", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "library", "maker", "call"), OF_LIBRARIES)
def test_a_librarys_client_is_the_call_that_makes_it(text, library, maker, call, tmp_path):
    (tmp_path / "one.py").write_text(text)
    assert own_calls.call_of_library(f"{tmp_path / 'one.py'}:1", library, maker) == call


@pytest.mark.parametrize("start", ["async def get(i): return ", "class get(i): x = ", ""])
def test_what_is_defined_on_a_line_is_not_called_there(start, tmp_path):
    (tmp_path / "one.py").write_text(start + "curl.get(URL)\n")
    assert own_calls.call_at(f"{tmp_path / 'one.py'}:1", ["get"]) == "curl.get(URL)"


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("gevent", "reply = gevent.get_hub().threadpool.apply(lambda: curl.get(URL))"),
        ("eventlet", "reply = eventlet.tpool.execute(lambda: curl.get(URL))"),
        ("twisted", advice.IN_A_THREAD["twisted"]),  # its loop has no `await`
        ("trio", advice.IN_A_THREAD["trio"]),  # and no coroutine is there
    ],
)
def test_a_greenlet_has_a_thread_make_its_own_call(loop, line, tmp_path):
    (tmp_path / "one.py").write_text("def page(): return curl.get(URL).text\n")
    place = f"{tmp_path / 'one.py'}:1"
    assert advice.line_in_a_thread(advice.IN_A_THREAD[loop], place) == line
    assert advice.line_in_a_thread(advice.IN_A_THREAD[loop], None) == advice.IN_A_THREAD[loop]


@pytest.mark.parametrize("separator", ["\n    ", "; "])
def test_what_is_set_on_a_context_goes_with_it(separator, tmp_path):
    """Without its client certificate, or the authority that it trusts, it would fail."""
    lines = [
        "made = ssl.create_default_context()", 'made.load_cert_chain("client.pem")',
        "made.check_hostname = False", "other.set_ciphers(1)", "made.wrap_socket(plain)",
    ]  # fmt: skip
    text = "def dial():\n    " + separator.join(lines) + "\n"
    (tmp_path / "one.py").write_text("# -*- coding: utf-8 -*-\n" + text)
    settings = '; context.load_cert_chain("client.pem"); context.check_hostname = False'
    place = f"{tmp_path / 'one.py'}:3"
    assert own_calls.settings_after(place) == settings
    assert own_calls.settings_after(f"{tmp_path / 'one.py'}:2") == ""
    row = row_of(None, None, place)
    line, _ = advice.keep_one(row)
    assert line.startswith("context = ssl.create_default_context()" + settings + "  # once")
    for_all = advice.line_for_all("context", row, shares=True)
    assert settings in for_all
    for each in (line, for_all):  # whoever shares the context shows the certificate
        assert each.endswith("  # once for each client certificate")


def row_of(client, through, place):
    row = tally.ClientRow(client=client, through=through, loads=9, trusts=[["system", 9]])
    row.at.append([place, 9])
    return row.as_dict()


@pytest.mark.parametrize("client", ["requests", "urllib3", "unheard_of"])
def test_a_library_between_is_what_is_kept_and_not_what_it_calls(client, tmp_path):
    """A Session beside hvac's client changes nothing."""
    program = tmp_path / "one.py"
    program.write_text("import hvac\ndef work():\n    c = hvac.Client(URL)\n    c.read()\n")
    row = row_of(client, "hvac", f"{program}:4")
    for line in (advice.keep_one(row)[0], advice.line_for_all("context", row, shares=True)):
        assert line.startswith("client = hvac.Client(URL)  # once")
    program = tmp_path / "two.py"
    program.write_text("from ours import reader\nreader.read()\n")
    row = row_of(client, "hvac", f"{program}:2")
    for line in (advice.keep_one(row)[0], advice.line_for_all("context", row, shares=True)):
        assert line.startswith("client = ...  # of hvac, made once")


@pytest.mark.parametrize("first", ["urllib3", "elastic_transport"])
def test_what_a_library_and_its_client_load_is_one_advice(first, tmp_path):
    """Of two calls, or of two libraries, each has its own; a place that tells no call has none."""
    program, other = tmp_path / "clients.py", tmp_path / "work.py"
    program.write_text("import elastic\nc = elastic.Client(URL)\n")
    other.write_text("from clients import c\nc.search()\nimport hvac\nhvac.Client(1)\n")
    told = row_of("elastic_transport", "elastic", f"{program}:2")
    untold = row_of("urllib3", "elastic", f"{other}:2")
    of_hvac = row_of("requests", "hvac", f"{other}:4")
    alone = row_of("requests", "requests", f"{other}:9")
    rows = [told, untold] if first == "elastic_transport" else [untold, told]
    pairs = advice.group_alike([*rows, of_hvac, alone])
    assert pairs == [(told, [untold]), (of_hvac, []), (alone, [])]
    again = tmp_path / "again.py"
    again.write_text("import elastic\nd = elastic.Client(OTHER)\n")
    another = row_of("urllib3", "elastic", f"{again}:2")
    assert advice.group_alike([told, another]) == [(told, []), (another, [])]
    names = advice.names_of(told, [untold])
    assert names["where"] == f", called by elastic, from {program}:2 and {other}:2"
    assert names["loads"].startswith("18 times") and "elastic_transport and urllib3" in str(names)


def test_sessions_of_requests_share_a_context_by_an_adapter():
    """They take none themselves."""
    row = row_of("requests", "requests", "program.py:1")
    assert advice.line_for_all("one line", row, shares=True).endswith("SharedContextAdapter())")
    assert advice.line_for_all("one line", row, shares=False) == "one line"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('Client(URL, password="hunter2")', 'Client(URL, password="...")'),
        ("Client(api_key='sk', timeout=3)", 'Client(api_key="...", timeout=3)'),
        ('Github("ghp_16C7e42F292c6912E7")', 'Github("...")'),
        ('load_cert_chain("client.pem", "k.pem", password = b"x")',
         'load_cert_chain("client.pem", "k.pem", password = "...")'),
        # Files, addresses and settings are what the line needs.
        ('Client(certfile="a.pem", keyfile="b.pem")', None),
        ('Client("https://vault.example.org:8200", verify="/etc/ssl/certs/ca-2024.pem")', None),
        ("Client(token=os.environ['TOKEN'])", None),
        ('Client(signature_version="s3v4", region="eu-central-1")', None),
    ],
)  # fmt: skip
def test_a_report_repeats_no_secret_of_the_programs_own_call(text, shown, tmp_path):
    assert own_calls.without_secrets(text) == (shown or text)
    program = tmp_path / "program.py"
    program.write_text(f"x = {text}\n")
    name = text.partition("(")[0]
    assert own_calls.call_at(f"{program}:1", [name]) == (shown or text)


def test_a_password_that_is_set_on_a_context_is_not_repeated(tmp_path):
    program = tmp_path / "program.py"
    program.write_text('c = make()\nc.load_cert_chain("a.pem", password="hunter2")\n')
    settings = own_calls.settings_after(f"{program}:1")
    assert settings == '; context.load_cert_chain("a.pem", password="...")'


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["sync.py", "--password", "hunter2", "all"], "sync.py --password ... all"),
        (["sync.py", "--api-key=abc", "--retries=3"], "sync.py --api-key=... --retries=3"),
        (["sync.py", "Authorization: Bearer abc"], "sync.py Authorization: ..."),
        (["sync.py", "DB_PASSWORD=hunter2"], "sync.py DB_PASSWORD=..."),
        (["sync.py", "ghp_16C7e42F292c6912E7"], "sync.py ..."),
        (["sync.py", "amqps://me:hunter2@broker:5671/"], "sync.py amqps://me:...@broker:5671/"),
        (["sync.py", "--token", "--verbose"], "sync.py --token --verbose"),
        # What a command needs to be typed again.
        (["-m", "monkeys", "--monkey-patch", "gevent", "--keyfile", "a.pem"], None),
        (["sync.py", "https://example.org:8443/?n=1", "data/2026-11-28.csv", "pass"], None),
        (["manage.py", "synchronize_everything_now", "--passive", "x", "host:8443"], None),
    ],
)
def test_a_report_repeats_no_secret_of_the_command(words, shown):
    assert own_calls.command_without_secrets(words) == (shown or " ".join(words))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from websockets.sync.client import connect\nwith connect() as one: pass\n",
         "connect(ssl=context)"),
        ("import websockets\nwebsockets.connect(URL, close_timeout=1)\n",
         "websockets.connect(URL, close_timeout=1, ssl=context)"),
        ("from ours import say\nsay()\n", "websockets.connect(..., ssl=context)"),
    ],
)  # fmt: skip
def test_a_connection_that_takes_a_context_is_given_one(text, line, tmp_path):
    program = tmp_path / "one.py"
    program.write_text(text)
    row = row_of("websockets", "websockets", f"{program}:2")
    context = "context = ssl.create_default_context()"
    assert advice.keep_one(row)[0] == f"{context}  # once; then {line}"
    assert advice.line_for_all(context, row, shares=True) == context


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("session.client('s3', verify=CA)", "client = session.client('s3', verify=CA)  # once"),
        ("boto3.client('s3')", "client = boto3.client('s3')  # once"),
        ("boto3.resource('s3')", "client = boto3.resource('s3')  # once"),
        # Which of them?
        ("session.client('s3'), session.client('sqs')", "client = boto3.client(...)"),
        ("session.client('s3'), boto3.resource('s3')", "client = boto3.client(...)"),
    ],
)
def test_boto3s_client_is_found_where_it_is_made(text, line, tmp_path):
    """It connects later, at another line."""
    path = tmp_path / "program.py"
    path.write_text(f"import boto3\nsession = boto3.Session()\nx = {text}\nx.list_tables()\n")
    at = [[f"{path}:4", 20]]
    row = dict(client="botocore", through="botocore", at=at, loads=20, awaits=0, trusts=[])
    assert advice.keep_one(row)[0].startswith(line)


@pytest.mark.parametrize(
    ("text", "client", "line"),
    [
        ("urllib3.PoolManager(4, ca_certs=CA)", "urllib3",
         "pool = urllib3.PoolManager(4, ssl_context=ssl.create_default_context(cafile=CA))  #"),
        ("urllib3.PoolManager(4)", "urllib3",
         "pool = urllib3.PoolManager(4, ssl_context=ssl.create_default_context())  #"),
        ("httplib2.Http(ca_certs=CA)", "httplib2", "http = httplib2.Http(ca_certs=CA)  # once"),
        # One that loads where it is made has its call on that line; another is not meant.
        ("httpx.Client(verify=CA)", "httpx", "client = httpx.Client()"),
    ],
)  # fmt: skip
def test_a_client_that_loads_when_it_connects_is_found_where_it_is_made(
    text, client, line, tmp_path
):
    path = tmp_path / "program.py"
    path.write_text(f"import {client}\nx = {text}\nx.request('GET', URL)\n")
    at = [[f"{path}:3", 20]]
    row = dict(client=client, through=client, at=at, loads=20, awaits=0, trusts=[])
    assert advice.keep_one(row)[0].startswith(line)


def test_settings_that_a_program_gives_to_each_connection_are_made_once(tmp_path):
    """Of Twisted, where it starts TLS itself, as behind a proxy: there is no Agent with a pool."""
    path = tmp_path / "program.py"
    path.write_text('transport.startTLS(optionsForClientTLS("localhost"))\nagent.request(URL)\n')
    line, sentence = advice.keep_one(row_of("twisted", "twisted", f"{path}:1"))
    assert line == 'options = optionsForClientTLS("localhost")  # once for each host'
    assert "one that is kept serves all connections to its host" in sentence
    assert "HTTPConnectionPool" in advice.keep_one(row_of("twisted", "twisted", f"{path}:2"))[0]


@pytest.mark.parametrize(
    ("call", "library", "function", "line"),
    [
        ('websocket.create_connection(URL, sslopt={"ca_certs": CA})', "websocket",
         {"parameters": ["url", "**"], "keeps": "websocket.WebSocket"},
         'websocket.create_connection(URL, sslopt={"context": context})'),
        ("publish.single(T, tls={})", "paho", {"parameters": ["topic", "tls"], "keeps": None},
         "publish.single(T, tls=context)"),
        ("dial(URL, ssl=True)", "dialing", {"parameters": ["url", "ssl"], "keeps": None},
         "dial(URL, ssl=context)"),
        ("dial(f(1, 2), 'a, b')", "dialing", {"parameters": ["url", "ssl_context"], "keeps": None},
         "dial(f(1, 2), 'a, b', ssl_context=context)"),
    ],
)  # fmt: skip
def test_a_function_that_takes_a_context_is_given_one(call, library, function, line, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(call + "\n")
    row = dict(row_of(library, library, f"{path}:1"))
    name = call.partition("(")[0].rpartition(".")[2]
    row["call"] = dict(function, name=f"{library}.{name}")
    made = "context = ssl.create_default_context()  # once; then " + line
    assert advice.keep_one(row)[0] == advice.line_for_all("context", row, shares=True) == made


def test_what_asks_by_urlopen_is_given_a_context_by_pep_476(tmp_path):
    """A function of a library's (feedparser.parse) that takes none itself."""
    row = dict(row_of("urlopen", "feeds", f"{tmp_path / 'program.py'}:1"))
    row["call"] = {"name": "feeds.parse", "parameters": ["url"], "keeps": None}
    line, sentence = advice.keep_one(row)
    assert "ssl._create_default_https_context = lambda: context" in line
    assert sentence.startswith("feeds connects by urlopen")
    line, sentence = advice.keep_one(dict(row, client="httpx"))
    assert line == "" and "only its authors" in sentence


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (["self", "host", "ssl", "ssl_context"], "give it to each as ssl_context=context."),
        (["self", "host"], "see whether it takes a context"),
    ],
)
def test_of_a_class_that_loads_when_one_is_made_it_is_told_what_it_takes(
    parameters, words, tmp_path
):
    """One that is kept is no help to who has to have several, as for several accounts."""
    path = tmp_path / "program.py"
    path.write_text("from mails import Client\nClient(HOST, ssl=True)\n")
    row = dict(row_of("mails", "mails", f"{path}:2"))
    row["call"] = {"name": "mails.Client", "parameters": parameters, "makes": True}
    line, sentence = advice.keep_one(row)
    assert line == "client = Client(HOST, ssl=True)  # once, before the work begins"
    assert sentence.endswith(words) or words in sentence


def test_a_library_that_takes_a_client_is_not_given_a_context(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import openai\nopenai.AsyncOpenAI(timeout=3)\n")
    row = row_of("httpx", "openai", f"{path}:2")
    line = advice.line_for_all("context", row, shares=False)
    assert line == "client = openai.AsyncOpenAI(timeout=3)  # once, for all"
    row = row_of("aiohttp", "slack_sdk", f"{path}:2")
    assert advice.line_for_all("context", row, shares=False) == "context"


def test_a_proxy_of_xmlrpc_is_given_a_context(tmp_path):
    """Its server may end each connection."""
    path = tmp_path / "program.py"
    path.write_text(
        "from xmlrpc.client import ServerProxy\np = ServerProxy(URL)\np.system.list()\n"
    )
    line, _ = advice.keep_one(row_of("xmlrpc", None, f"{path}:3"))
    context = "context = ssl.create_default_context()  # once; then "
    assert line == context + "ServerProxy(URL, context=context)"
