"""What is left of contexts that threads make and drop one after the other.

One JSON object in, one out. In: {"file": a bundle's path, or null for none, "threads", "turns": how
many contexts each thread makes, "maker": whether one thread makes them for all}. Never is more than
one context alive: a lock is held while it is.

Out: {"openssl", "peak": the most contexts that were alive at once, "steps": [{"what", "rss_kib",
"in_use_kib", "free_kib"}]}, as context_weights.py has it: when a first context was made and freed
and all threads have begun ("before"), when all turns are over ("dropped"), when the threads have
ended ("ended"), and once malloc was asked to give back what it keeps ("trimmed").
"""

import threading

import answering
from context_weights import Look, libc, make_context, openssl


class Alive:
    """How many contexts there are, and the most there were."""

    def __init__(self):
        self.now = self.peak = 0

    def __enter__(self):
        self.now += 1
        self.peak = max(self.peak, self.now)

    def __exit__(self, *_):
        self.now -= 1


class Maker(threading.Thread):
    """A thread that makes the contexts of others, and keeps none."""

    def __init__(self, file):
        threading.Thread.__init__(self)
        self.daemon = True
        self.file, self.context = file, None
        self.wanted, self.there = threading.Semaphore(0), threading.Semaphore(0)

    def run(self):
        """Make a context whenever one is asked for."""
        while True:
            self.wanted.acquire()
            self.context = make_context(self.file)
            self.there.release()

    def hand_over(self):
        """Have it make a context, and return that."""
        self.wanted.release()
        self.there.acquire()
        context, self.context = self.context, None
        return context


def run(spec):
    """Have the threads make and drop their contexts, and return the memory at each step."""
    library, alive, one_alive = libc(), Alive(), threading.Lock()
    started, over, end = threading.Event(), threading.Semaphore(0), threading.Event()
    maker = Maker(spec["file"])
    new = maker.hand_over if spec["maker"] else lambda: make_context(spec["file"])
    maker.start()

    def work():
        over.release()
        started.wait()
        for _ in range(spec["turns"]):
            with one_alive, alive:
                context = new()
                del context
        over.release()
        end.wait()

    threads = [threading.Thread(target=work) for _ in range(spec["threads"])]
    record = Look(library)
    make_context(spec["file"])
    for thread in threads:
        thread.start()
        over.acquire()
    record("before")
    started.set()
    for _ in threads:
        over.acquire()
    record("dropped")
    end.set()
    for thread in threads:
        thread.join()
    record("ended")
    if library:
        library.malloc_trim(0)
    record("trimmed")
    return {"openssl": openssl(), "peak": alive.peak, "steps": record.steps}


if __name__ == "__main__":
    answering.answer(run)
