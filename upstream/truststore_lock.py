"""How many handshakes of eight threads that share a context are under way at once?

    pip install truststore==0.10.5 && python truststore_lock.py

Asks nobody but itself. Exits with 1 where truststore's context shakes hands one at a time, else 0.
"""

import contextlib
import os
import select
import socket
import ssl
import sys
import threading
import time

import truststore

os.environ["SSL_CERT_FILE"] = __file__  # no certificates: to load them takes its time, too


def shake(context, address):
    with socket.create_connection(address) as plain, contextlib.suppress(OSError, ValueError):
        context.wrap_socket(plain, server_hostname="localhost")


for kind, name in (ssl, "ssl"), (truststore, f"truststore {truststore.__version__}"):
    context = kind.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(8):
            threading.Thread(target=shake, args=(context, server.getsockname())).start()
        clients = [server.accept()[0] for _ in range(8)]
        time.sleep(2)  # the server answers nobody, and whoever may begin has begun
        begun = len(select.select(clients, [], [], 0)[0])
        for client in clients:
            client.close()  # so that all of them end
    print(f"{name}: {begun} of 8 handshakes under way at once")
sys.exit(begun == 1)
