"""Wrap connections in many threads with one truststore context: one JSON object in, one out.

In: {"threads", "wraps": of each thread}. Nothing is connected and nobody shakes hands, so all that
happens is what truststore does to a context before each connection. Out: {"wrapped": how many in
all}, if the process lives to say so.
"""

import resource
import ssl
import threading

import answering
import truststore


def run(spec):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    done = []

    def work():
        for _ in range(spec["wraps"]):
            context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
        done.append(spec["wraps"])

    threads = [threading.Thread(target=work) for _ in range(spec["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"wrapped": sum(done)}


if __name__ == "__main__":
    answering.answer(run)
