"""The life and death of a store: with its block, its owner, its terminal."""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from bookstore_asking import IDS, book, connection
from here import alive, eventually, last_words, run

from casebook import cli, places
from casebook.cases.bookstore import stock
from casebook.cases.bookstore.store import open_store
from casebook.errors import ServerFailed

OWN = """
import time
from casebook.cases.bookstore.store import open_store
store = open_store({!r})
print(store.pid, store.ca_file.parent, flush=True)
time.sleep(600)
"""


def test_it_ends_with_its_block_and_leaves_nothing(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_store(engine) as store:
        assert alive(store.pid)
        assert [store.ca_file.parent] == list(tmp_path.iterdir())
    assert not alive(store.pid)
    assert list(tmp_path.iterdir()) == []
    store.stop()  # again: harmless


def test_it_dies_with_an_owner_who_is_killed(engine):
    pid, folder = last_words(OWN.format(engine)).split()
    assert eventually(lambda: not alive(int(pid)) and not Path(folder).exists())


def test_a_killed_store_says_so(engine):
    with open_store(engine) as store:
        os.kill(store.pid, signal.SIGKILL)
        store.wait()
        with pytest.raises(ServerFailed, match="Start it again"):
            store.cpu_s()
    assert not store.ca_file.parent.exists()


def test_a_question_that_was_interrupted_does_not_shift_the_answers(engine):
    with open_store(engine) as store:
        store.process.stdin.write(b"cpu 999999\n")  # asked, and its answer never read
        time.sleep(0.2)
        assert set(store.counters()) == {"connections", "requests", "peak_streams", "protocols"}
        assert store.cpu_s() > 0


def test_a_store_whose_owner_is_killed_before_it_is_open_ends_too(engine, tmp_path):
    code = "import tempfile, time, threading, os\n"
    code += f"tempfile.tempdir = {str(tmp_path)!r}\n"
    code += "from casebook.cases.bookstore import store\n"
    code += "def killed(process, ca_file):\n    print(process.pid, flush=True)\n"
    code += "    os.kill(os.getpid(), 9)\n"
    code += f"store._port = killed\nstore.open_store({engine!r})"
    done = run(sys.executable, "-c", code)
    assert done.returncode == -signal.SIGKILL
    assert eventually(lambda: not alive(int(done.stdout)) and not list(tmp_path.iterdir()))


def test_a_port_in_use_is_said(engine):
    with open_store(engine) as store, pytest.raises(ServerFailed, match="in use"):
        open_store(engine, port=urlsplit(store.url).port)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_where_and_leaves_nothing(engine, number):
    arguments = ["serve", "--bookstore", "--engine", engine, "--http1-only", "--delay", "0.01"]
    with subprocess.Popen(
        [sys.executable, "-m", "casebook", *arguments], cwd=places.ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        ready = json.loads(process.stdout.readline())
        assert list(ready) == ["url", "ca_file", "pid"]
        context = ssl.create_default_context(cafile=ready["ca_file"])
        context.set_alpn_protocols(["h2", "http/1.1"])
        client = connection(SimpleNamespace(**ready), context)
        client.request("GET", book(IDS[0]))
        assert client.sock.selected_alpn_protocol() == "http/1.1"
        assert json.loads(client.getresponse().read()) == stock.books()[IDS[0]]
        client.close()
        process.send_signal(number)
        rest, noise = process.communicate(timeout=30)
    assert (process.returncode, rest, noise) == (0, "", "")
    assert not alive(ready["pid"])
    assert not Path(ready["ca_file"]).parent.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bookstore", "--plain"), "over TLS"),
        (("--bookstore", "--delay", "11"), "0 to 10"),
        (("--bookstore", "--port", "70000"), "choose 0 to 65,535"),
        (("--http1-only",), "--http1-only is for --bookstore"),
        (("--engine", "granian"), "--engine is for --bookstore"),
    ],
)
def test_serve_asked_wrongly_ends_with_one_line(arguments, said, capsys):
    assert cli.main(["serve", *arguments]) == 2
    out, error = capsys.readouterr()
    assert (out, len(error.splitlines())) == ("", 1) and said in error
