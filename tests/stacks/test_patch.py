"""Stage 4's patch, inside the real environments, against a TLS server that ends in many ways."""

import contextlib
import json
import socket
import ssl
import struct
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from here import environment, python_in, serving
from trust_runs import site_packages

from casebook import places
from casebook.errors import EnvironmentFailed
from casebook.stacks import patches

PATCH = places.ENV / "patches" / "gevent-openssl-recv-into.patch"
STAGE_4 = ["stage-4-py27", "stage-4-py37", "stage-4-today"]
BODY = b"x" * 40_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\nConnection: close\r\n\r\n"


def serve(connection: ssl.SSLSocket, *_: object) -> None:
    """One connection: the first line says how it ends (the words alone, or as a GET)."""
    with connection, contextlib.suppress(OSError):  # the client left first
        asked = connection.recv(1000).split(b"\r\n")[0].strip()
        head, ending = b"", asked
        if asked.startswith(b"GET"):
            head, ending = HEAD, asked.split()[1].strip(b"/")
        if ending in (b"clean", b"peek"):
            connection.sendall(head + BODY)
            connection.unwrap()
        elif ending == b"cut":
            # Half of what was promised, and the connection is closed without close_notify.
            connection.sendall(head + BODY[:20_000])
        elif ending == b"reset":
            connection.sendall(BODY[:1000])
            time.sleep(0.05)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif ending == b"slow":
            connection.sendall(head)
            for start in range(0, 40_000, 10_000):
                time.sleep(0.1)
                connection.sendall(BODY[start : start + 10_000])
            connection.unwrap()
        elif ending == b"silent":
            time.sleep(2)


@pytest.fixture(scope="module")
def port(tls):
    with serving(serve, tls[0]) as url:
        yield urlsplit(url).port


def inside(name: str, port: int, what: str) -> dict:
    done = python_in(name, Path(__file__).with_name("patch_client.py"), port, what)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", STAGE_4)
def test_recv_into_gives_what_recv_gives(name, port):
    (with_recv, ticks_of_recv), (with_recv_into, ticks) = inside(name, port, "connection")
    assert with_recv_into == with_recv
    # Neither stopped the loop while it waited 0.4 s for a slow server.
    assert ticks_of_recv > 10 and ticks > 10

    whole = {"length": 40_000, "first": "x" * 12, "end": "end"}
    for row in (with_recv["clean"], with_recv["slow"]):
        assert row.items() >= whole.items()
    assert with_recv["cut"].items() >= (whole | {"length": 20_000}).items()
    assert with_recv["reset"]["end"].startswith("SysCallError(104")
    silence = {"length": 0, "first": "", "end": "timeout"}
    assert with_recv["silent"].items() >= silence.items()
    assert with_recv["peek"] == {"twice": True, "data": "x" * 10}


@pytest.mark.parametrize("name", STAGE_4)
def test_requests_ends_as_on_pyopenssl_itself(name, port):
    found = inside(name, port, "requests")
    assert found == inside(name, port, "requests on pyOpenSSL")
    assert found["clean"] == 40_000
    # The releases of 2019 did not compare a body with its Content-Length.
    assert found["cut"] == ("SSLError" if name == "stage-4-today" else 20_000)


@pytest.mark.parametrize("name", ["stage-3-py27", "stage-3-py37", "stage-3-today"])
def test_the_patch_is_in_stage_4_alone(name):
    patched = name.replace("3-", "4-", 1)
    assert environment(name).versions == environment(patched).versions
    assert "def recv_into" not in source(name)
    assert "def recv_into" in source(patched)


def source(name: str) -> str:
    return (site_packages(name) / "gevent_openssl" / "SSL.py").read_text()


@pytest.fixture
def target(tmp_path):
    """The file that the patch changes, in a folder of its own."""
    file = tmp_path / "gevent_openssl" / "SSL.py"
    file.parent.mkdir()
    file.write_text(source("stage-3-today"))
    return file


def test_a_patch_replaces_the_file_and_leaves_its_other_links_alone(tmp_path, target):
    cached = tmp_path / "cached.py"
    cached.hardlink_to(target)
    assert patches.apply(PATCH, tmp_path) == [target]
    assert "def recv_into" in target.read_text()
    assert "def recv_into" not in cached.read_text()


@pytest.mark.parametrize("change", [
    lambda text: text.replace("bufsiz, flags)", "size, flags)"),
    lambda text: "\n" + text,
    lambda text: text[:2000],
    lambda text: "",
    lambda _: source("stage-4-today"),
])  # fmt: skip
def test_a_patch_that_does_not_fit_changes_nothing_and_says_so(tmp_path, target, change):
    other = change(target.read_text())
    target.write_text(other)
    with pytest.raises(EnvironmentFailed, match=r"does not apply to SSL\.py"):
        patches.apply(PATCH, tmp_path)
    assert target.read_text() == other
    assert [path.name for path in target.parent.iterdir()] == ["SSL.py"]


@pytest.mark.parametrize(
    ("words", "said"), [(PATCH.read_text(), "does not apply"), ("Words only.\n", "holds no change")]
)
def test_a_patch_without_its_package_or_without_a_change_says_so(tmp_path, words, said):
    patch = tmp_path / "some.patch"
    patch.write_text(words)
    with pytest.raises(EnvironmentFailed, match=said):
        patches.apply(patch, tmp_path)
