"""What looks at a running process tell, and what to change by them."""

from __future__ import division, print_function

import os
import re
import time

from .advice import BEFORE_TO_THREAD, IN_A_THREAD, advise, keep_one, line_in_a_thread
from .basis import clock
from .blocking import LOOP_FRAMES, PATCHES
from .clients import PACKAGES, client_named
from .left_behind import is_package
from .own_calls import path_and_tree
from .processes import is_python, running_processes
from .wording import several, short

#: Files of the standard library, of whichever Python.
_STANDARD = re.compile(r"/lib(64)?/python\d+(\.\d+)?/|/(site|dist)-packages/")
#: What a thread that fetches goes through.
_FETCHING = ("/ssl.py", "/http/client.py", "/httplib.py")
#: What reads over TLS.
_TLS = ("/ssl.py", "/OpenSSL/SSL.py", "/urllib3/contrib/pyopenssl.py")
#: What a loop shows is a wait where at least this many looks found one.
ENOUGH_LOOKS = 2
LOOK_LONGER = "look longer (--seconds 30), while it fetches"


def file_of(frame):
    """Return the path of a frame's file, with the slashes of all systems but one."""
    return frame["filename"].replace("\\", "/")


def is_own(path):
    """Return whether a file is the program's own, whichever Python runs it."""
    is_script = not path.endswith(".py") and "/bin/" in path  # which pip writes
    return not (path.startswith("<") or is_script or _STANDARD.search(path) or is_package(path))


def fetches(frames):
    """Return whether a thread is in a call of a client that the doctor knows, or in TLS."""
    paths = [file_of(frame) for frame in frames]
    return any(path.endswith(_FETCHING) or package_of_path(path) in PACKAGES for path in paths)


def is_answered(frames):
    """Return whether a thread reads, or waits to, over a connection whose handshake is over."""
    paths, names = [file_of(frame) for frame in frames], [frame["name"] for frame in frames]
    names = [name.rpartition(".")[2] for name in names]
    if not paths or "do_handshake" in names:
        return False
    if paths[0].endswith("urllib3/util/wait.py"):
        return any(path.endswith("urllib3/contrib/pyopenssl.py") for path in paths)
    return names[0] in ("read", "recv", "recv_into") and paths[0].endswith(_TLS)


def package_of_path(path):
    """Return the package that a file belongs to; None for one that was not installed."""
    if not _STANDARD.search(path):
        return None
    return os.path.splitext(short(path).split("/")[0])[0]


def loop_of(frames):
    """Return the name of the loop of LOOP_FRAMES that a thread runs; None if it runs none."""
    for path in [file_of(frame) for frame in frames]:
        for name, ends in LOOP_FRAMES.items():
            if any(path.endswith(end) for end, _ in ends):
                return name
    return None


def made_of(packages, name):
    """Return the library that made a class of a client's; None if none did.

    Its method is called by one of the client's, and calls one. packages: of the frames.
    """
    if name not in PACKAGES:
        return None
    first = packages.index(name)
    others = [each for each in packages[first:] if each and PACKAGES.get(each) != PACKAGES[name]]
    return others[-1] if others else None


def function_of(library, frame):
    """Return what is known of a library's function that a frame runs, as `function_called`.

    None for a method, and where its file cannot be read.
    """
    import ast

    name = frame["name"].rpartition(".")[2]
    for node in path_and_tree("%s:1" % frame["filename"])[1].body:
        if isinstance(node, ast.ClassDef) or getattr(node, "name", None) != name:
            continue
        known = node.args.args + getattr(node.args, "kwonlyargs", [])
        parameters = [getattr(argument, "arg", None) for argument in known]
        parameters += ["**"] if node.args.kwarg else []
        return {"name": "%s.%s" % (library, name), "parameters": parameters, "keeps": None}
    return None


class Caller(object):
    """Who is at work in a stack: the program's own line, and the client that it calls there."""

    def __init__(self, frames):
        paths = [file_of(frame) for frame in frames]
        own = next((number for number, path in enumerate(paths) if is_own(path)), None)
        below = paths if own is None else paths[:own]
        packages = [package_of_path(path) for path in below]
        known = [PACKAGES.get(package, package) for package in packages]
        known = [name for name in known if client_named(name).keep]
        package = packages[-1] if packages else None
        self.client = known[-1] if known else None
        self.library = package if package not in (None, "ssl", "socket") else None
        self.library = made_of(packages, self.library) or self.library
        self.path = (
            None if own is None else "%s:%d" % (frames[own]["filename"], frames[own]["line"])
        )
        self.place = "in code that cannot be named"
        if own is not None:
            self.place = "%s:%d" % (short(frames[own]["filename"]), frames[own]["line"])
        self.name = self.client or self.library or "The program"
        outermost = frames[own - 1] if own and self.library == package else None
        self.call = outermost and function_of(self.library, outermost)

    def row(self, loop):
        """Return what a run's row of a client would say of it, as far as a stack tells."""
        awaits = bool(loop and client_named(self.client).awaits)
        at = [[self.path, 1]] if self.path else []
        return dict(
            client=self.client, through=self.library, at=at, loads=1, awaits=int(awaits), trusts=[],
            call=self.call,
        )  # fmt: skip


def python_of(frames):
    """Return the version of the Python whose files are in a stack, as (3, 11)."""
    for frame in frames:
        match = re.search(r"/python(\d+)\.(\d+)/", file_of(frame))
        if match:
            return tuple(map(int, match.groups()))
    return 3, 9


def advice_on_sights(evidence, looks, loading):
    """Return what to change.

    evidence: {what was seen: a stack that shows it}. loading: how many of the looks found a load.
    """
    advice = []
    files = [file_of(frame) for frames in evidence.values() for frame in frames]
    greenlets = "eventlet" if any("/eventlet/" in path for path in files) else "gevent"
    if "blocked" in evidence or "perhaps blocked" in evidence:
        caller = Caller(evidence.get("blocked") or evidence["perhaps blocked"])
        advice += [advise("through-pyopenssl", client=caller.name), advise("patch-select")]
    elif "not patched" in evidence:
        caller = Caller(evidence["not patched"])
        names = dict(client=caller.name, place=caller.place, loop=greenlets)
        advice.append(advise("unpatched-read", patch=PATCHES[greenlets], **names))
    elif "kept" in evidence:
        advice.append(advice_on_kept(evidence["kept"], greenlets))
    if "loading" in evidence:
        frames = evidence["loading"]
        caller = Caller(frames)
        line, sentence = keep_one(caller.row(loop_of(frames)))
        words = "certificates in %d of %s" % (loading, several(looks, "look"))
        names = dict(client=caller.name, where=", from %s" % caller.place, line=line)
        advice.append(advise("keep-one", sentence=sentence, loads=words, **names))
    return advice


def advice_on_kept(frames, greenlets):
    """Return the advice on a call that keeps a loop waiting."""
    caller, loop = Caller(frames), loop_of(frames) or greenlets
    names = dict(clients=caller.name, places="called at %s" % caller.place, by=loop)
    if loop in PATCHES:
        line = IN_A_THREAD[loop]
        return advise("in-a-thread", line=line, why="no patch has reached that wait", **names)
    line = IN_A_THREAD[loop]
    if loop == "asyncio" and python_of(frames) < (3, 9):
        line = BEFORE_TO_THREAD
    return advise("asyncio", line=line_in_a_thread(line, caller.path), **names)


def reason_untold(sightings, looks, is_seen, came_through, children):
    """Return why looks give neither an illness nor an all-clear; None if they give one.

    sightings: how many of the looks found what. is_seen: something was at work that they could
    have found it in. came_through: as `Looks` has it. children: Pythons that the process has
    started.
    """
    if sightings["loading"] > ENOUGH_LOOKS and not came_through:
        text = "loads of certificates were caught in %d of %s, and no connection was seen to come "
        text += "through. If none does, its loads are no fault: `doctor.py run` tells what "
        return (text + "connections end with") % (sightings["loading"], several(looks, "look"))
    if sightings["loading"] > ENOUGH_LOOKS:
        text = "loads of certificates were caught in %d of %s; how much of its CPU time they take, "
        return (text + "`doctor.py run` counts") % (
            sightings["loading"], several(looks, "look"))  # fmt: skip
    few = [sightings[sight] for sight in ("blocked", "not patched", "kept", "perhaps blocked")]
    if any(few):
        return "a sight or two may be of waits that ended at once: " + LOOK_LONGER
    if is_seen:
        return None
    if children:
        numbers = " or ".join("attach %d" % pid for pid in children[:8])
        text = "nothing of TLS was seen in this process, which has started %s: %s"
        return text % (several(len(children), "other Python"), numbers)
    text = "no client that the doctor knows, and no loop with a connection, was seen at work in "
    return text + "it, so there is nothing to tell: " + LOOK_LONGER


def children_of(pid):
    """Return the Pythons that a process has started, and that run; [] if nobody tells.

    Without those that only tidy up behind multiprocessing.
    """
    running = running_processes()
    children = [child for child in running if running[child][0] == pid and is_python(child)]
    return sorted(child for child in children if not is_tracker(child))


def is_tracker(pid):
    """Return whether a process is what multiprocessing has tidy up; False if nobody tells."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except EnvironmentError:
        return False


def connections_of(pid):
    """Return how many TCP connections of a process are established; None if nobody tells."""
    connections = established(pid)
    return None if connections is None else len(connections)


def answered_of(pid):
    """Return those connections of a process, made by itself, over which something has come.

    A set of what tells them from others. (Without what came, if nobody tells that.)
    """
    connections = established(pid) or {}
    counted = received() if is_beside(pid) else {}
    return set(
        number
        for number, is_accepted in connections.items()
        if not is_accepted and counted.get(number, (1,))[0]
    )


def established(pid):
    """Return {a TCP connection of a process: whether it accepted it}; None if nobody tells."""
    try:
        numbers, rows = sockets_of(pid), table_of(pid)
        listening = listening_in(rows)
        return dict(
            (row[9], row[1].rpartition(":")[2] in listening)
            for row in rows
            if row[3] == "01" and row[9] in numbers
        )
    except (EnvironmentError, AttributeError, IndexError):
        return None


def sockets_of(pid):
    """Return the numbers of a process' sockets, as text."""
    folder, numbers = "/proc/%d/fd" % pid, set()
    for name in os.listdir(folder):
        try:
            match = re.match(r"socket:\[(\d+)\]$", os.readlink(os.path.join(folder, name)))
        except OSError:  # it was closed meanwhile
            continue
        numbers |= set([match.group(1)] if match else [])
    return numbers


def table_of(pid):
    """Return the rows of the TCP connections in the network of a process."""
    rows = []
    for table in ("tcp", "tcp6"):
        path = "/proc/%d/net/%s" % (pid, table)
        if os.path.exists(path):
            with open(path) as file:
                rows += [line.split() for line in file.readlines()[1:]]
    return rows


def listening_in(rows):
    """Return the ports, as they are written there, at which rows of connections listen."""
    return set(row[1].rpartition(":")[2] for row in rows if row[3] == "0A")


def is_beside(pid):
    """Return whether a process has the network of this one; a container may have its own."""
    try:
        return os.readlink("/proc/%d/ns/net" % pid) == os.readlink("/proc/self/ns/net")
    except (EnvironmentError, AttributeError):
        return False


#: Linux's sock_diag: the header of a question and of an answer, and where in an answer stand the
#: port here, the number of the connection, its further parts, and in that of TCP the bytes that
#: have arrived at the other end, and those that came.
_HEADER, _PORT_AT, _NUMBER_AT, _PARTS_AT, _BYTES_AT = "=IHHII", 20, 84, 88, 120
#: A server's part of a handshake has its certificate, and is longer than the answer of a proxy.
HANDSHAKE_FROM_BYTES = 500
#: From one look at the connections to the next, at least; and how much of the time they may take.
CONNECTIONS_EACH_S, CONNECTIONS_SHARE = 0.002, 0.2


class Connections(object):
    """Looks at the connections of a process beside the looks at its stacks, and more often.

    One that comes through may live for some milliseconds. `through` are those that a server has
    sent more over when it had its client's answer to the certificate: a client that trusts it
    goes on, and one that does not closes the connection.
    """

    def __init__(self, pid):
        self.pid, self.through, self.active = pid, set(), True
        # By its number: whether the process itself has made it, and the bytes of its handshake.
        self.own, self.first = dict.fromkeys(received(), False), {}
        try:
            self.listening = listening_in(table_of(pid))
        except (EnvironmentError, IndexError):
            self.listening = set()

    def start(self):
        """Look in a thread of its own, until `active` is false."""
        import threading

        if is_beside(self.pid):
            thread = threading.Thread(target=self.run)
            thread.daemon = True
            thread.start()
        return self

    def run(self):
        """Look again and again."""
        while self.active:
            started = clock()
            self.update()
            time.sleep(max(CONNECTIONS_EACH_S, (clock() - started) / CONNECTIONS_SHARE))

    def update(self):
        """Look once."""
        counted = received()
        unknown = set(counted) - set(self.own)
        try:
            sockets = sockets_of(self.pid) if unknown else ()
        except EnvironmentError:  # it has ended
            sockets = ()
        for number in unknown:
            self.own[number] = number in sockets and counted[number][2] not in self.listening
        for number in set(self.own) - set(counted):
            del self.own[number]
            self.first.pop(number, None)
        for number, (came, arrived, _) in counted.items():
            if self.own[number] and came >= HANDSHAKE_FROM_BYTES:
                first = self.first.setdefault(number, (came, arrived))
                if came > first[0] and arrived > first[1]:
                    self.through.add(number)


def received():
    """Return {a TCP connection that is established: what is known of it}, of this network.

    That is (bytes that came, bytes that have arrived at the other end, the port here).

    {} if this system does not tell.
    """
    import socket
    import struct

    counted = {}
    try:
        link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
    except (EnvironmentError, AttributeError):
        return counted
    try:
        link.settimeout(1)
        for family in (socket.AF_INET, socket.AF_INET6):
            asked = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 2, 0, 1 << 1)
            link.send(struct.pack(_HEADER, 16 + len(asked), 20, 0x301, 0, 0) + asked)
            is_last = False
            while not is_last:
                data = link.recv(1 << 17)
                while len(data) >= 16:
                    length, kind = struct.unpack_from(_HEADER, data)[:2]
                    is_last = is_last or kind in (2, 3)  # an error, or the end
                    if kind == 20:
                        counted.update(received_by(data[:length]))
                    data = data[max(16, (length + 3) & ~3) :]
    except (EnvironmentError, struct.error):
        pass
    finally:
        link.close()
    return counted


def received_by(answer):
    """Return {a connection: what is known of it}, of an answer of sock_diag's."""
    import struct

    (number,), at = struct.unpack_from("=I", answer, _NUMBER_AT), _PARTS_AT
    while at + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == 2 and length >= 4 + _BYTES_AT + 16:
            arrived, came = struct.unpack_from("=QQ", answer, at + 4 + _BYTES_AT)
            port = "%04X" % struct.unpack_from("!H", answer, _PORT_AT)
            return {str(number): (came, arrived, port)}
        at += max(4, (length + 3) & ~3)
    return {}
