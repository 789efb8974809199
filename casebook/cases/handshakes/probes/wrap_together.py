"""Wrap connections in many threads with one truststore context: one JSON object in, one out.

In: {"threads", "contexts": used one after the other, "wraps": of each thread from each context}.
Nothing is connected and nobody shakes hands, so all that happens is what truststore does to a
context before each connection. Out: {"wrapped": how many in all}, if the process lives to say so.
"""

import resource
import ssl
import threading

import answering
import truststore


def run(spec):
    """Wrap connections in threads, context by context."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return {"wrapped": sum(wrap_in_threads(**spec) for _ in range(spec.pop("contexts")))}


def wrap_in_threads(threads, wraps):
    """Wrap from one new context in many threads, which begin at the same time."""
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    start_line, counts = threading.Barrier(threads), []

    def work():
        start_line.wait()
        for _ in range(wraps):
            context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
        counts.append(wraps)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts)


if __name__ == "__main__":
    answering.answer(run)
