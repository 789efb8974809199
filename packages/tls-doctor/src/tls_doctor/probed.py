"""What is probed in each module, and how."""

from __future__ import division, print_function

import sys

from .basis import PY2, says_close
from .heartbeat import Beats, Greenlets, Turns
from .left_behind import own_context
from .loads import caller
from .state import ident, named, others_wait, port_of, reactor_waits


def probe_ssl(probes, ssl):
    """Note contexts, loads, handshakes and exchanges of the standard library."""
    kind = own_context(ssl)
    probes.contexts(kind)
    # Not a client's own function: the cure lends no context where urllib3's are not as they were.
    probes.failing(kind, "wrap_socket")
    probes.loads(kind)
    if hasattr(ssl, "SSLObject"):
        probes.handshakes(ssl.SSLObject)
    if not hasattr(ssl, "SSLObject") or sys.version_info >= (3, 7):  # else through SSLObject too
        probes.handshakes(ssl.SSLSocket)
    if not PY2:
        probes.exchanges(ssl.SSLSocket, "send", "write")
        probes.exchanges(ssl.SSLObject, "write")
        probes.waits(ssl.SSLSocket, "read")
        probes.waits(ssl.SSLSocket, "do_handshake")


def probe_socket(probes, socket):
    """Note when sockets connect, and where to."""
    kind = socket.socket
    if kind.__module__ == "socket":
        probes.connects(kind)
        probes.reaches(socket, "getaddrinfo")


def probe_gevent(probes, module):
    """Note the handshakes of gevent's own sockets."""
    kind = getattr(module, "SSLSocket", None)
    if kind is not None and "do_handshake" in vars(kind) and kind.__module__ == module.__name__:
        if PY2 or sys.version_info >= (3, 7):
            probes.handshakes(kind)


def probe_gevents_sockets(probes, module):
    """Note whom gevent's own sockets reach."""
    probes.reaches(module.socket, "connect")
    probes.reaches(module, "getaddrinfo")


def probe_selectors(probes, module):
    """Note whom asyncio's own loops reach."""
    probes.reaches(module.BaseSelectorEventLoop, "sock_connect", 2)


def probe_pyopenssl(probes, module):
    """Note contexts, loads and handshakes of pyOpenSSL."""
    original, kind = module.Context.__init__, module.Context

    def begin(context, *args, **kwargs):
        original(context, *args, **kwargs)
        if probes.active:
            origin = probes.callers(sys._getframe(1))
            probes.note("context", c=probes.number(context), who=origin, default=False)

    probes.replace(kind, "__init__", named(begin, original))
    probes.loads(kind)
    probes.handshakes(module.Connection)


def probe_sessions(probes, module):
    """Note the sessions of requests that ask by HTTPS."""
    choose = module.Session.get_adapter

    def get_adapter(session, url):
        first = url[:6].lower() == "https:" and probes.number_if_any(session) is None
        if first and probes.active:
            probes.number(session)
            probes.note("session")
        return choose(session, url)

    probes.replace(module.Session, "get_adapter", named(get_adapter, choose))


def probe_pools(probes, module):
    """Note the PoolManagers that are not of requests."""
    original = module.PoolManager.__init__

    def begin(pool, *args, **kwargs):
        original(pool, *args, **kwargs)
        if probes.active and probes.callers(sys._getframe(1))["client"] in (None, "urllib3"):
            probes.note("pool")

    probes.replace(module.PoolManager, "__init__", named(begin, original))
    probes.hosts(module.PoolManager)


def probe_truststore(probes, module):
    """Note where truststore is injected."""
    inject = module.inject_into_ssl

    def inject_into_ssl():
        probes.note("truststore", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_ssl = named(inject_into_ssl, inject)


def probe_botocore(probes, module):
    """Note the clients of botocore."""
    original = module.URLLib3Session.__init__

    def begin(session, *args, **kwargs):
        original(session, *args, **kwargs)
        if probes.active:
            probes.note("botocore")

    probes.replace(module.URLLib3Session, "__init__", named(begin, original))


def probe_pool(probes, module):
    """Note the pools of urllib3 that have no place for a connection."""
    probes.pools(module.HTTPConnectionPool)


def probe_loop(probes, module):
    """Note that a loop of greenlets is there, and watch gevent's."""
    probes.note("loop", name=module.__name__.partition(".")[0])
    kind = getattr(module, "Hub", None)
    if kind is not None and module.__name__ == "gevent.hub":
        original = kind.__init__

        def begin(hub, *args, **kwargs):
            original(hub, *args, **kwargs)
            probes.heartbeat.watch(Greenlets(hub))  # which stays for as long as its thread

        probes.replace(kind, "__init__", named(begin, original))


def probe_asyncio(probes, module):
    """Watch the loops of asyncio."""
    probes.runs(module.BaseEventLoop, turns=True)
    probes.takes_turns(module.BaseEventLoop)
    probes.makes_tasks(module.BaseEventLoop)


def probe_executor(probes, module):
    """Remember who has a thread of an executor do something."""
    original, kind = module._WorkItem.__init__, module._WorkItem

    def begin(item, *args, **kwargs):
        original(item, *args, **kwargs)
        try:
            probes.stack.works[item] = probes.callers(sys._getframe(1))
        except Exception:  # an item of another kind
            pass

    probes.replace(kind, "__init__", named(begin, original))


def probe_sslproto(probes, module):
    """Note which connections of asyncio's are lost."""
    probes.loses(module.SSLProtocol, "connection_lost")


def probe_anyios_tls(probes, module):
    """Note which connections of anyio's are lost."""
    probes.loses(module.TLSStream, "_call_sslobject_method")


def probe_trios_tls(probes, module):
    """Note which connections of trio's are lost."""
    probes.loses(module.SSLStream, "_retry")


def probe_twisteds_tls(probes, module):
    """Note which connections of Twisted's are lost before their first answer.

    (One that the program itself ends is not lost.)
    """
    kind, wrapper = module.TLSMemoryBIOProtocol, module.ProtocolWrapper
    lost, received = kind.connectionLost, wrapper.dataReceived

    def connection_lost(around, reason):
        connection = getattr(around, "_tlsConnection", None)
        error = getattr(getattr(around, "_reason", None) or reason, "value", None)
        if type(error).__name__ in ("ConnectionLost", "Error"):
            probes.refused(connection, error)
        return lost(around, reason)

    def data_received(around, data):
        connection = getattr(around, "_tlsConnection", None)  # of TLS alone
        number = probes.number_if_any(connection) if connection is not None else None
        if number is not None:
            probes.accepted.add(number)
        return received(around, data)

    probes.replace(kind, "connectionLost", named(connection_lost, lost))
    probes.replace(wrapper, "dataReceived", named(data_received, received))


def probe_uvloop(probes, module):
    """Watch the loops of uvloop, note whom they reach, and which of their connections are lost."""
    probes.reaches(module.Loop, "getaddrinfo", 2)
    probes.reaches(module.Loop, "create_connection", 3)
    probes.loses_later(module.Loop)
    probes.reaches(module.Loop, "sock_connect", 2)
    probes.runs(module.Loop)
    probes.makes_tasks(module.Loop)


def probe_trio(probes, module):
    """Have trio's loop count, while it runs in the thread that made its runner."""
    original, run, leaving = module.setup_runner, module.run, {}

    def setup_runner(*args, **kwargs):
        runner = original(*args, **kwargs)
        beats = Beats("trio", lambda: others_wait(runner), runner.entry_queue.run_sync_soon)
        leaving[ident()] = probes.heartbeat.watch(beats)
        return runner

    def run_to_the_end(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        finally:
            leaving.pop(ident(), lambda: None)()

    module.setup_runner = named(setup_runner, original)
    module.run = named(run_to_the_end, run)


def probe_trios_sockets(probes, module):
    """Note whom trio's sockets reach."""
    probes.reaches(module._SocketType, "connect")


def probe_twisteds_sockets(probes, module):
    """Note whom Twisted's sockets reach."""
    kind, connected = module.BaseClient, module.BaseClient._connectDone
    failed = kind.failIfNotConnected

    def fail_if_not_connected(client, error):
        if not client.connected and not client.disconnected and hasattr(client, "connector"):
            probes.unreached(error, port_of([getattr(client, "addr", None)], 0))
        return failed(client, error)

    def connect_done(client):
        probes.reached(port_of([client.addr], 0))
        return connected(client)

    probes.replace(kind, "failIfNotConnected", named(fail_if_not_connected, failed))
    probes.replace(kind, "_connectDone", named(connect_done, connected))


def probe_proxy_errors(probes, module):
    """Note the refusals of proxies."""
    for name in ("ClientHttpProxyError", "ProxyError"):
        if hasattr(module, name):
            probes.raises(getattr(module, name))


def probe_twisted(probes, module):
    """Watch Twisted's reactor while it runs, unless asyncio runs it: that is watched as such."""
    kind = module.ReactorBase
    [owner] = [
        member for member in vars(module).values() if "mainLoop" in getattr(member, "__dict__", ())
    ]
    run, take_turn = owner.mainLoop, kind.runUntilCurrent

    def main_loop(reactor):
        turns = probes.watched[id(reactor)] = Turns("twisted", lambda: reactor_waits(reactor))
        leave = probes.heartbeat.watch(turns)
        try:
            return run(reactor)
        finally:
            leave()
            probes.watched.pop(id(reactor), None)

    def run_until_current(reactor):
        watched = probes.watched.get(id(reactor))
        if watched is not None:
            watched.turns += 1
        return take_turn(reactor)

    probes.replace(owner, "mainLoop", named(main_loop, run))
    probes.replace(kind, "runUntilCurrent", named(run_until_current, take_turn))


def probe_eventlet(probes, module):
    """Watch the loops of eventlet."""
    probes.count_turns(module.BaseHub)
    original = module.BaseHub.__init__

    def begin(hub, *args, **kwargs):
        original(hub, *args, **kwargs)
        thread = probes.thread()

        def waits():
            return bool(hub.timers or hub.next_timers or any(hub.listeners.values()))

        turns = Turns("eventlet", waits)
        turns.turn = lambda: probes.turns.get(thread)
        probes.heartbeat.watch(turns)

    probes.replace(module.BaseHub, "__init__", named(begin, original))


def probe_h11(probes, module):
    """Note the headers of httpx and of urllib3-future."""
    # What urllib3-future calls, too; h11's own send calls it.
    send, receive = module.Connection.send_with_data_passthrough, module.Connection.next_event

    def noted(connection, event, name, side):
        if type(event).__name__ == name and connection.our_role is module.CLIENT and probes.active:
            if any(says_close(header, [value]) for header, value in event.headers):
                probes.note("closing", c=None, by=side, who=probes.callers(sys._getframe(2)))
                return True
        return False

    def send_noted(connection, event):
        if type(event).__name__ == "Request":  # and not the end of one
            probes.closes[id(connection)] = noted(connection, event, "Request", "program")
        return send(connection, event)

    def next_event(connection):
        event = receive(connection)
        if not probes.closes.get(id(connection)):
            noted(connection, event, "Response", "server")
        return event

    probes.replace(module.Connection, "send_with_data_passthrough", named(send_noted, send))
    probes.replace(module.Connection, "next_event", named(next_event, receive))


def probe_injection(probes, module):
    """Note where pyOpenSSL is injected."""
    inject = module.inject_into_urllib3

    def inject_into_urllib3():
        if probes.active:  # not in the doctor's own trials
            probes.note("injection", where=caller(sys._getframe(1)))
        return inject()

    module.inject_into_urllib3 = named(inject_into_urllib3, inject)


def probe_http(probes, module):
    """Note requests and closings of http.client."""
    answered = module.HTTPConnection.getresponse

    def getresponse(connection, *args, **kwargs):
        # Before the answer: with it goes the connection that is not kept.
        context = getattr(getattr(connection, "sock", None), "context", None)
        is_watched = context is not None and probes.active
        number = probes.number(context) if is_watched else None
        if is_watched:
            probes.note("request", c=number)
        side = "program" if probes.closes.pop(id(connection), None) else "server"
        reply = answered(connection, *args, **kwargs)
        if is_watched and (side == "program" or getattr(reply, "will_close", False)):
            origin = probes.callers(sys._getframe(1))
            if origin["client"] != "urlopen":  # which always asks for it
                probes.note("closing", c=number, by=side, who=origin, h=probes.number(connection))
        return reply

    probes.replace(module.HTTPConnection, "getresponse", named(getresponse, answered))
    probes.failing(module.HTTPConnection, "_tunnel")
    original = module.HTTPConnection.putheader

    def putheader(connection, header, *values):
        if says_close(header, values):
            probes.closes[id(connection)] = True
        return original(connection, header, *values)

    probes.replace(module.HTTPConnection, "putheader", named(putheader, original))
    if not PY2:
        probes.waits(module.HTTPConnection, "getresponse")


#: What is probed, and how.
PROBED = {
    "ssl": probe_ssl, "socket": probe_socket, "OpenSSL.SSL": probe_pyopenssl,
    "gevent.socket": probe_gevents_sockets, "asyncio.selector_events": probe_selectors,
    "http.client": probe_http, "httplib": probe_http,
    "gevent.ssl": probe_gevent, "gevent._ssl3": probe_gevent, "gevent._sslgte279": probe_gevent,
    "requests.sessions": probe_sessions, "urllib3.poolmanager": probe_pools,
    "urllib3.connectionpool": probe_pool,
    "truststore._api": probe_truststore, "h11._connection": probe_h11,
    "botocore.httpsession": probe_botocore,
    "gevent.hub": probe_loop, "eventlet.hubs": probe_loop,
    "concurrent.futures.thread": probe_executor,
    "asyncio.base_events": probe_asyncio, "uvloop": probe_uvloop, "trio._core._run": probe_trio,
    "twisted.internet.base": probe_twisted,
    "asyncio.sslproto": probe_sslproto, "anyio.streams.tls": probe_anyios_tls,
    "trio._ssl": probe_trios_tls, "twisted.protocols.tls": probe_twisteds_tls,
    "trio._socket": probe_trios_sockets, "twisted.internet.tcp": probe_twisteds_sockets,
    "aiohttp.client_exceptions": probe_proxy_errors, "httpcore._exceptions": probe_proxy_errors,
    "httpcore2._exceptions": probe_proxy_errors, "websockets.exceptions": probe_proxy_errors,
    "python_socks._errors": probe_proxy_errors,
    "eventlet.hubs.hub": probe_eventlet,
    "urllib3.contrib.pyopenssl": probe_injection,
    "requests.packages.urllib3.contrib.pyopenssl": probe_injection,
}  # fmt: skip
