"""Sequences that hypothesis makes up.

Of mounting, installing, replacing files, links, threads, forks and proxies. After each change a
stock and a cured session ask the same; they must come to the same, and the servers and the proxy
must have received the same. test_shared_context_sequences.py asks.
"""

# ruff: noqa: UP031
import contextlib
import json
import os
import shutil
import tempfile
import threading

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from trust_ears import Ear, server_context
from trust_received import ASKED, CERTS, PATHS, SERVERS, outcome, requests, shared_context

ASKS = st.tuples(
    st.sampled_from(["root", "root", "other"]),  # whose certificate the server has
    st.sampled_from(["bundle", "bundle", "link", "True", "False"]),
    st.sampled_from(["direct", "direct", "http proxy", "https proxy"]),
    st.sampled_from([None, None, "mine", "alice", "bob"]),
    st.sampled_from(["alone", "alone", "threads", "child"]),
)
CHANGES = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(["file", "other", "corrupt"])),
    st.tuples(st.just("rename"), st.sampled_from(["file", "other", "certifi"])),
    st.tuples(st.just("link"), st.sampled_from(["file", "other", "missing"])),
    st.tuples(st.just("certificate"), st.sampled_from(["alice", "bob", "a stranger"])),
    st.tuples(st.just("install"), st.booleans()),
)


class World:
    """Files that change, and what is installed."""

    def __init__(self, folder):
        self.folder = folder
        self.bundle, self.link, self.mine = (
            os.path.join(folder, name) for name in ("bundle", "link", "mine.pem")
        )
        shutil.copyfile(PATHS["file"], self.bundle)
        os.symlink(PATHS["file"], self.link)
        shutil.copyfile(CERTS["alice"], self.mine)
        self.installed = False

    def change(self, what, to):
        if what == "write":
            shutil.copyfile(PATHS[to], self.bundle)
        elif what == "rename":
            shutil.copyfile(PATHS[to], self.bundle + ".new")
            os.replace(self.bundle + ".new", self.bundle)
        elif what == "link":
            os.symlink(PATHS[to], self.link + ".new")
            os.replace(self.link + ".new", self.link)
        elif what == "certificate":
            shutil.copyfile(CERTS[to], self.mine)
        else:
            self.installed = to

    def session(self, kind):
        if kind == "stock":
            shared_context.uninstall()
        elif self.installed:
            shared_context.install()
        made = requests.Session()
        made.trust_env = False
        if kind == "cured" and not self.installed:
            made.mount("https://", shared_context.SharedContextAdapter())
        return made

    def ask(self, kind, server, trust, route, cert, how):
        ways = {"bundle": self.bundle, "link": self.link, "True": True, "False": False}
        options = {"verify": ways[trust]}
        if cert:
            options["cert"] = self.mine if cert == "mine" else CERTS[cert]
        demands = PATHS["file"] if cert else None
        secure = server_context(SERVERS["root"]) if route == "https proxy" else None
        with Ear(server_context(SERVERS[server], demands)) as there:
            with Ear(secure, forges=True) as proxy:
                url = "https://127.0.0.1:%d/" % there.port

                def once():
                    with self.session(kind) as made:
                        if route != "direct":
                            scheme = "https" if secure else "http"
                            made.proxies = {"https": "%s://127.0.0.1:%d" % (scheme, proxy.port)}
                        return outcome(made, url, **options)

                came = {"alone": alone, "threads": in_threads, "child": in_child}[how](once)
        if cert:  # a server refuses a stranger's with an alert, which races its close
            came = [each if each[0] == 200 else "refused" for each in came]
        # In threads, who comes first is chance.
        heard = sorted(json.dumps(each) for ear in (there, proxy) for each in ear.heard)
        text = json.dumps([came, heard])
        return text.replace(":%d" % there.port, ":PORT").replace(":%d" % proxy.port, ":PROXY")


def alone(once):
    return [once()]


def in_threads(once):
    came = []
    threads = [threading.Thread(target=lambda: came.append(once())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(came) == 4
    return sorted(came, key=str)


def in_child(once):
    """In a forked child; the servers are threads of this process, and answer it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, json.dumps(once()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        came = pipe.read()
    os.waitpid(child, 0)
    return [json.loads(came)]


ASKED_AT_ALL = [0]


@seed(ASKED["seed"])
@settings(
    max_examples=ASKED["examples"], deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(
    st.lists(ASKS, min_size=1, max_size=2, unique=True), st.lists(CHANGES, min_size=1, max_size=5)
)
def never_otherwise(asks, changes):
    """The same questions, before the first change and after each."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            for step in (None, *changes):
                if step:
                    world.change(*step)
                for ask in asks:
                    stock, cured = world.ask("stock", *ask), world.ask("cured", *ask)
                    assert stock == cured, (asks, changes, step, stock, cured)
                    ASKED_AT_ALL[0] += 1
        finally:
            shared_context.uninstall()


if __name__ == "__main__":
    never_otherwise()
    print(json.dumps({"asked": ASKED_AT_ALL[0], **shared_context.stats()}))
