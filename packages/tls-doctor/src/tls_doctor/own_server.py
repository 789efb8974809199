"""The server of its own."""

from __future__ import division, print_function

import json
import os
import signal
import sys
import time

from .basis import CERTIFICATE, HOST, KEY, PY2, DoctorError
from .left_behind import own_context
from .processes import Offspring, end_group, spawn_self
from .wording import describe

#: What the server may be told to end with itself: a process group, or a program with what it has
#: started (`Offspring`). The word goes before the number of the process.
ENDS_GROUP, ENDS_PROGRAM = "group", "program"


def start_server():
    """Start the server in a process of its own; return it, and its address.

    The address is as `serve` says it. Raises DoctorError.
    """
    import subprocess

    process = spawn_self("--child-serve", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise DoctorError(
            "the doctor's own server did not start (its reason stands above): "
            "is this Python built with ssl and threads?"
        )
    address = json.loads(line.decode("ascii"))
    if "trouble" in address:
        process.communicate()
        raise DoctorError(address["trouble"])
    return process, address


def require_listening(address):
    """Return the address of the server. Raises DoctorError if it could not listen."""
    if address["https"] is None:
        raise DoctorError(
            "the doctor cannot listen on 127.0.0.1 (%(why)s), and its trials need that: allow it, "
            "or count alone, with `doctor.py run -- ...`" % address
        )
    return address


def end_with_server(server, kind, pid):
    """Have the server end this process, too, should the present one be killed.

    kind: ENDS_GROUP or ENDS_PROGRAM.
    """
    server.stdin.write(("%s %d\n" % (kind, pid)).encode("ascii"))
    server.stdin.flush()


def stop_server(server):
    """End the server of one's own, if it has not ended by itself."""
    try:
        server.communicate(b"\n")  # nothing else is left to be ended
    except EnvironmentError:  # what could not be written to it before is tried again, in vain
        server.kill()
        server.wait()


def serve():
    """Run a TLS server and a plain one, until standard input ends: then everything of it is gone.

    Says {"https": port, "http": port, "ca": path} on standard output. The last line of standard
    input says what ends with it, as `end_with_server` writes it; an empty line: nothing.
    """
    import shutil
    import socket
    import tempfile

    # The process that started this decides when it ends: it keeps what was counted when a signal
    # goes to the doctor's whole group, as from `timeout`.
    if hasattr(os, "setsid") and os.getpid() != os.getpgrp():
        os.setsid()
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        folder, group, offspring = tempfile.mkdtemp(prefix="doctor-"), None, None
    except EnvironmentError as error:
        text = "there is no folder for temporary files (%s): name one, as TMPDIR=/a/folder"
        print(json.dumps({"trouble": text % describe(error)}))
        return 2
    try:
        ca, both = [os.path.join(folder, name) for name in ("ca.pem", "server.pem")]
        for path, text in ((ca, CERTIFICATE), (both, CERTIFICATE + KEY)):
            with open(path, "w") as file:
                file.write(text)
        address = {"folder": folder, "ca": ca, "https": None, "http": None}
        try:
            ports = {"https": listen(both), "http": listen(None)}
            for port in ports.values():  # one can listen where nobody can connect
                socket.create_connection(("127.0.0.1", port), 5).close()
            address.update(ports)
        except EnvironmentError as error:
            address["why"] = describe(error)
        print(json.dumps(address))
        sys.stdout.flush()
        for line in iter(sys.stdin.readline, ""):
            kind, _, pid = line.strip().partition(" ")
            group = int(pid) if kind == ENDS_GROUP else None
            offspring = Offspring(int(pid)) if kind == ENDS_PROGRAM else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if offspring is not None:
            offspring.end_with_program()
        else:
            end_group(group)
    os._exit(0)  # the threads that serve would be sorry to see their modules go


def listen(certificate_and_key):
    """Serve in threads, with TLS or (None) without; return the port."""
    import ssl
    import threading

    listener, answers = server_classes()
    server = listener(("127.0.0.1", 0), answers)
    if certificate_and_key:
        context = own_context(ssl)(getattr(ssl, "PROTOCOL_TLS_SERVER", ssl.PROTOCOL_SSLv23))
        if PY2:
            context.set_ecdh_curve("prime256v1")
        context.load_cert_chain(certificate_and_key)
        if hasattr(context, "num_tickets"):
            context.num_tickets = 0  # each handshake is a full one
        # The handshake belongs into the thread of each connection.
        options = {"server_side": True, "do_handshake_on_connect": False}
        server.socket = context.wrap_socket(server.socket, **options)
    serving = threading.Thread(target=server.serve_forever)
    serving.daemon = True
    serving.start()
    return server.server_address[1]


def server_classes():
    """Return the classes of the server.

    GET /SECONDS/TRIAL takes so long, and is told the most requests of that trial that the
    server had in hand at once. After a trial "last..." the connection is closed.
    """
    import threading

    try:
        from http.server import BaseHTTPRequestHandler
        from socketserver import ThreadingTCPServer
    except ImportError:
        from BaseHTTPServer import BaseHTTPRequestHandler
        from SocketServer import ThreadingTCPServer
    in_hand, lock = {}, threading.Lock()

    def count(trial, change):
        with lock:
            number, peak = in_hand.get(trial, (0, 0))
            in_hand[trial] = number + change, max(peak, number + change)
            return in_hand[trial][1]

    class Answers(BaseHTTPRequestHandler):
        protocol_version, timeout, wbufsize = "HTTP/1.1", 60, -1

        def answer(self):
            _, seconds, trial = self.path.partition("?")[0].split("/")
            count(trial, +1)
            time.sleep(float(seconds))
            body = json.dumps({"trial": trial, "peak": count(trial, -1)}).encode("ascii")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close" if trial.startswith("last") else "keep-alive")
            self.end_headers()
            self.wfile.write(body)

        do_GET = answer  # noqa: N815  # as the library calls it

        def log_message(self, *_):
            """Say nothing of a request."""

    class Listener(ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 64

        def handle_error(self, *_):
            """Say nothing of an error: the client went away, or does not trust us."""

    return Listener, Answers


class Server(object):
    """The doctor's server, as the examined process sees it."""

    def __init__(self, address):
        self.address, self.ca, self._trials = address, address["ca"], 0

    def url(self, scheme, delay_s, trial):
        """Return the address of a trial."""
        return "%s://%s:%d/%s/%s" % (scheme, HOST, self.address[scheme], delay_s, trial)

    def new_trial(self):
        """Return a name that no other trial has."""
        self._trials += 1  # others may use the same server: the number has to be nobody else's
        return "%d-%d" % (os.getpid(), self._trials)
