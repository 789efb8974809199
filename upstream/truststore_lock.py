"""How many handshakes of threads that share a context are under way at once?

    pip install truststore==0.10.5 && python truststore_lock.py

Needs nothing but Python and truststore, and asks nobody but itself. Exits with 1 where truststore's
contexts shake hands one at a time, else with 0.
"""

import os
import socket
import ssl
import sys
import threading
import time

import truststore

# A file without certificates: loading the system's would take its time, and is not asked about.
os.environ["SSL_CERT_FILE"] = __file__
THREADS, WAIT_S = 8, 0.5
counting, in_hand, peak = threading.Lock(), 0, 0


def hold(connection):
    """The server's part: the client's first message is here, and ours takes its time."""
    global in_hand, peak
    with connection:
        connection.recv(1)
        with counting:
            in_hand += 1
            peak = max(peak, in_hand)
        time.sleep(WAIT_S)
        with counting:
            in_hand -= 1


def serve(listener):
    while True:
        threading.Thread(target=hold, args=listener.accept()[:1], daemon=True).start()


def shake(context, address):
    with socket.create_connection(address) as plain:
        try:
            context.wrap_socket(plain, server_hostname="localhost")
        except OSError:
            pass  # the server has no certificate, and hangs up: by then it has counted


listener = socket.create_server(("127.0.0.1", 0), backlog=THREADS)
threading.Thread(target=serve, args=(listener,), daemon=True).start()
for kind, name in (ssl, "ssl"), (truststore, f"truststore {truststore.__version__}"):
    peak, context = 0, kind.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    target = {"target": shake, "args": (context, listener.getsockname())}
    threads = [threading.Thread(**target) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    print(f"{name}: {peak} of {THREADS} handshakes under way at once")
sys.exit(peak == 1)
