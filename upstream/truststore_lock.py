"""Of eight threads that share a context, how many shake hands at once? Exits with 1 if one does.

pip install truststore==0.10.5 && python truststore_lock.py
"""

import os
import select
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import truststore

os.environ["SSL_CERT_FILE"] = __file__  # no certificates: to load them takes its time, too

for kind, name in (ssl, "ssl"), (truststore, f"truststore {truststore.__version__}"):
    context = kind.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shake = partial(context.wrap_socket, server_hostname="localhost")
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(8) as threads:
        ours = [socket.create_connection(server.getsockname()) for _ in range(8)]
        theirs = [server.accept()[0] for _ in range(8)]
        threads.map(shake, ours)
        time.sleep(2)  # the server answers nobody, and whoever may begin has begun
        begun = len(select.select(theirs, [], [], 0)[0])
        for each in theirs:
            each.close()  # so that all of them end
    print(f"{name}: {begun} of 8 handshakes under way at once")
raise SystemExit(begun == 1)
