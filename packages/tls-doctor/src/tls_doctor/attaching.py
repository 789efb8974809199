"""Looking at a running process."""

from __future__ import division, print_function

import json
import linecache
import os
import sys
import time

from .advice import chapter
from .basis import DoctorError, clock
from .blocking import LOOP_FRAMES
from .heartbeat import is_resting
from .loads import LOADS
from .looks import (
    ENOUGH_LOOKS,
    Connections,
    advice_on_sights,
    answered_of,
    children_of,
    connections_of,
    fetches,
    is_answered,
    reason_untold,
)
from .report import advice_lines
from .wording import describe, readable, several, short, wrapped

#: Where the standard library waits for a reply or a handshake.
READS = ("read", "recv", "recv_into", "readinto", "do_handshake")
WAIT = "in urllib3's own wait for pyOpenSSL"
#: What a look at a running process can find: (what, chapter, in words).
SIGHTS = (
    ("blocked", 7, "a greenlet " + WAIT + ", and the loop with it: %d looks"),
    ("perhaps blocked", 7, "the main program " + WAIT + ": %d looks. If greenlets run beside it, "
     "they stand still"),
    ("not patched", 3, "a greenlet in a read of the standard library's, and the loop with it: %d "
     "looks"),
    ("kept", 2, "the thread of a loop in one and the same call, and the loop with it: %d looks"),
    ("loading", 10, "a load of certificates: %d looks"),
)  # fmt: skip


ALL = [sight for sight, _, _ in SIGHTS]
#: Where the thread of a loop is (the end of a file's name) while the loop is entered and runs.
LOOPS = tuple(path for frames in LOOP_FRAMES.values() for path, _ in frames)
#: Of the looks that found the process at work, this many percent in a load are too many. (A look is
#: no share of the CPU: a few looks can tell only a large share.)
LOADING_FROM = 20
#: If this many looks fail one after the other, the process cannot be looked at.
IN_A_ROW = 10


class Looks(object):
    """What looks at a process find."""

    def __init__(self, pid):
        self.pid, self.samples, self.busy, self.gevent = pid, [], 0, None
        self.is_seen, self.connections, self.previous = False, None, set()
        # Whether a connection was seen to come through. (Not one that was there before, which a
        # database may keep.)
        self.came_through, self.old, self.new = False, None, set()
        self.beside = Connections(pid).start()

    def add(self, threads):
        """Note what one look has found."""
        self.gevent = loop = self.gevent or has_gevent(self.pid)  # which may be imported later
        sample = dict((kind_of(thread, loop), thread["frames"]) for thread in threads)
        waiting = dict((stack_of(thread), thread) for thread in threads if keeps_loop(thread, loop))
        repeated = [stack for stack in waiting if stack in self.previous]
        sample.update(("kept", waiting[stack]["frames"]) for stack in repeated)
        self.previous = set(waiting)
        self.samples.append(sample)
        self.busy += any(thread.get("active") for thread in threads)
        number = connections_of(self.pid)
        if number is not None:
            self.connections = max(number, self.connections or 0)
        self.came_through = self.came_through or self.sees_answers(threads)
        # A loop that awaits is mostly seen at rest, whatever it fetches.
        has_loop = loop or any(in_loop(thread) for thread in threads)
        is_at_work = any(fetches(thread["frames"]) for thread in threads)
        self.is_seen = self.is_seen or is_at_work or bool(has_loop and self.connections != 0)

    def sees_answers(self, threads):
        """Return whether a look shows that a connection has come through.

        A thread reads over TLS; or two looks, one after the other, have met a connection; or more
        came over one when its handshake was over.
        """
        answered = answered_of(self.pid)
        self.old = answered if self.old is None else self.old
        previous, self.new = self.new, answered - self.old
        is_met = bool(previous & self.new or self.beside.through)
        return is_met or any(is_answered(it["frames"]) for it in threads)

    def evidence(self, *sights):
        """Return {what was seen: the first stack that shows it}, of some sights."""
        return dict(
            (sight, sample[sight])
            for sight in sights for sample in self.samples[::-1] if sight in sample
        )  # fmt: skip

    def judge(self, tool, share):
        """Return what `attach` returns."""
        self.beside.active = False
        number = len(self.samples)
        sightings = dict((sight, sum(sight in sample for sample in self.samples)) for sight in ALL)
        loading = 100.0 * sightings["loading"] / max(self.busy, sightings["loading"], 1)
        often = sightings["loading"] > ENOUGH_LOOKS and self.came_through
        # One look alone may have met a wait of a millisecond.
        waits = max(sightings[sight] for sight in ("blocked", "not patched", "kept"))
        is_ill = waits >= ENOUGH_LOOKS or (often and loading > max(share, LOADING_FROM))
        children = children_of(self.pid)
        facts = self.is_seen, self.came_through, children
        reason = None if is_ill else reason_untold(sightings, number, *facts)
        told = [sight for sight in ALL if sightings[sight] >= ENOUGH_LOOKS]
        evidence = self.evidence(*[sight for sight in told if sight != "loading" or often])
        first = self.evidence(*ALL)
        first = next((first[sight] for sight in ALL if sight in first), [])
        stack = ["%s:%d (%s)" % (short(it["filename"]), it["line"], it["name"]) for it in first]
        return dict(
            pid=self.pid, by=tool, gevent=self.gevent, looks=number, busy=self.busy,
            seen=sightings, share_stated=share, stack=stack[::-1], connections=self.connections,
            came_through=self.came_through, children=children,
            advice=advice_on_sights(evidence, number, sightings["loading"]),
            why=reason, exit_status=1 if is_ill else 2 if reason else 0,
        )  # fmt: skip


def attach(pid, seconds, share):
    """Return where a running process stands, read from outside.

    A dictionary: the looks, how many of them found a greenlet blocked or a load under way, the
    stack that shows it, what read it ("by"), what to change, why nothing can be told ("why"), and
    the exit status.
    """
    if is_gone(pid):
        raise DoctorError("there is no process %d" % pid)
    stacks, tool = reader(pid)
    looks, deadline, failed, last_trouble = Looks(pid), clock() + seconds, 0, None
    while clock() < deadline:
        started = clock()
        try:
            threads = stacks()
        except DoctorError as trouble:  # perhaps because the process ran on while it was read
            failed, last_trouble = failed + 1, trouble
            if failed == IN_A_ROW:
                raise
            time.sleep(0.1)
            continue
        if threads is None:
            break  # it has ended meanwhile
        failed = 0
        looks.add(threads)
        time.sleep(max(0, 0.1 - (clock() - started)))
    if not looks.samples:
        raise last_trouble or DoctorError("process %d ended before anything was seen of it" % pid)
    return looks.judge(tool, share)


def in_loop(thread):
    """Return whether a thread runs a loop of LOOP_FRAMES, or eventlet's hub."""
    files = [frame["filename"].replace("\\", "/") for frame in thread["frames"]]
    return any(file.endswith(LOOPS) or "/eventlet/hubs/" in file for file in files)


def is_gone(pid):
    """Return whether a process has ended, or is a zombie."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == 3
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(") ")[2].startswith(("Z", "X"))
    except EnvironmentError:  # another system, or it is gone by now
        return os.path.isdir("/proc/self") and not os.path.isdir("/proc/%d" % pid)


def reader(pid):
    """Return (a function that reads the threads of a process, what it reads them with).

    That is Python itself, from 3.14 on, if the process runs the same; else py-spy. The function
    returns each thread's "frames", innermost first, and whether it is "active"; None for a
    process that is gone. Nothing is executed in the process: what sys.remote_exec sends would
    have to wait until a thread that is blocked runs on.

    Raises DoctorError if there is no reader.
    """
    itself = own_reader(pid)
    if itself is not None:
        return (lambda: own_stacks_of(itself, pid)), "Python %d.%d" % sys.version_info[:2]
    program = find_py_spy()
    if program is not None:
        return (lambda: stacks_of(program, pid)), "py-spy"
    raise DoctorError(
        "py-spy is not here. `pip install py-spy`, then run this again, or look yourself: `py-spy "
        "dump --pid %d`, a few times. (From 3.14 on the doctor needs no py-spy, where it is run by "
        "the Python of the process, and may read it)" % pid
    )


def own_reader(pid):
    """Return what Python reads the stacks of a process with, tried; None if it cannot."""
    try:
        os.listdir("/proc/%d/task" % pid)  # which tells what is active
        from _remote_debugging import RemoteUnwinder

        unwinder = RemoteUnwinder(pid, all_threads=True)
        return unwinder if own_stacks_of(unwinder, pid) else None
    except Exception:  # another version, no permission, or not what it was in 3.14
        return None


def own_stacks_of(unwinder, pid):
    """Return the threads of a process, as Python itself reads them; None if it is gone."""
    for _ in range(5):
        try:
            traces = unwinder.get_stack_trace()
            break
        except (RuntimeError, OSError, UnicodeDecodeError) as error:  # it ran on while it was read
            if is_gone(pid):
                return None
            reason = describe(error)
    else:
        raise DoctorError("Python cannot read process %d (%s)" % (pid, reason))
    return [
        {
            "active": is_active(pid, trace.thread_id),
            "frames": [
                {"filename": frame.filename, "line": frame.lineno, "name": frame.funcname}
                for frame in trace.frame_info
            ],
        }
        for trace in traces
    ]


def is_active(pid, thread):
    """Return whether a thread runs, or would if it had a processor."""
    try:
        with open("/proc/%d/task/%d/stat" % (pid, thread)) as file:
            return file.read().rpartition(") ")[2].startswith("R")
    except EnvironmentError:  # it has ended
        return False


def find_py_spy():
    """Return the path of py-spy; None if it is not installed."""
    folders = [os.path.dirname(os.path.abspath(sys.executable or ""))]
    folders += os.environ.get("PATH", "").split(os.pathsep)
    paths = [os.path.join(folder, name) for folder in folders for name in ("py-spy", "py-spy.exe")]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def stacks_of(program, pid):
    """Return the threads of a process, as py-spy reads them; None if it is gone."""
    import subprocess

    command = [program, "dump", "--json", "--full-filenames", "--pid", str(pid)]
    pipe = subprocess.PIPE
    looking = subprocess.Popen(command, stdout=pipe, stderr=pipe)
    out, errors = looking.communicate()
    if looking.returncode == 0:
        return json.loads(out.decode("utf-8"))
    if is_gone(pid):
        return None
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if "rror:" in line]
    raise DoctorError(
        "py-spy cannot read process %d (%s). It may need root: `sudo %s dump --pid %d`"
        % (pid, "; ".join(lines)[:200] or "it gave no reason", program, pid)
    )


def has_gevent(pid):
    """Return whether a process has loaded gevent's compiled files; None if nobody can see."""
    try:
        with open("/proc/%d/maps" % pid) as maps:
            return "/gevent/" in maps.read()
    except (IOError, OSError):
        return None


def kind_of(thread, loop):
    """Return what a thread is caught at, as in SIGHTS, by its stack; None if at nothing.

    A greenlet's stack begins with its own function. One that begins with a module is the main
    program, and no greenlet perhaps; one that begins in `threading` blocks its own thread only.
    """
    frames = thread["frames"]
    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files:
        return None
    line = readable(linecache.getline(frames[0]["filename"], frames[0]["line"]))
    if any(name in line for name in LOADS) or "load_default_certs" in line:
        return "loading"
    reads = (
        frames[0]["name"].rpartition(".")[2] in READS
        and is_standard(files[0])
        and not thread.get("active")
    )
    if reads and in_greenlet(frames, files, loop):
        return "not patched"
    waits = files[0].endswith("urllib3/util/wait.py")
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    below = any(name.endswith("urllib3/contrib/pyopenssl.py") for name in files)
    if not (waits and below) or in_thread or loop is False:
        return None
    return "blocked" if loop and frames[-1]["name"] != "<module>" else "perhaps blocked"


def stack_of(thread):
    """Return a thread's stack as a value that can be compared."""
    return tuple((frame["filename"], frame["line"], frame["name"]) for frame in thread["frames"])


def keeps_loop(thread, loop):
    """Return whether a thread waits, and has a loop of LOOP_FRAMES or of greenlets wait with it."""
    frames = thread["frames"]
    files = [frame["filename"].replace("\\", "/") for frame in frames]
    if not files or thread.get("active"):
        return False
    names = [frame["name"].rpartition(".")[2] for frame in frames]
    if is_resting(list(zip(files, names))) or files[0].endswith(LOOPS):
        return False
    return any(file.endswith(LOOPS) for file in files) or in_greenlet(frames, files, loop)


def in_greenlet(frames, files, loop):
    """Return whether a stack is that of a greenlet.

    Those of eventlet begin in its own files; those of gevent, whose files are compiled, with
    the function that was spawned.
    """
    if "/eventlet/" in files[-1]:
        return True
    in_thread = files[-1].endswith(("/threading.py", "gevent/threadpool.py"))
    is_main = frames[-1]["name"] == "<module>"
    return bool(loop) and not in_thread and not is_main


def is_standard(path):
    """Return whether a file is the standard library's ssl.py or socket.py."""
    packages = ("site-packages", "dist-packages", "/gevent/", "/eventlet/")
    ours = path.endswith(("/ssl.py", "/socket.py"))
    return ours and not any(package in path for package in packages)


def attach_text(results):
    """Return what `attach` found, as people read it."""
    loaded = {True: "loaded", False: "not loaded", None: "nobody can see whether it is loaded"}
    lines = ["process %(pid)d, %(looks)d looks, by %(by)s" % results]
    lines.append("  gevent: %s" % loaded[results["gevent"]])
    for sight, _, words in SIGHTS:
        if results["seen"][sight] or sight != "perhaps blocked":
            lines.append(wrapped(words % results["seen"][sight]))
    if results["stack"]:
        lines.append("  the stack that shows it, the innermost call last:")
        lines += ["    " + line for line in results["stack"]]
    numbers = set(number for sight, number, _ in SIGHTS if results["seen"][sight])
    if results["advice"]:
        lines += ["What to change"] + list(advice_lines(results["advice"]))
    else:
        lines += ["  " + chapter(number) for number in sorted(numbers)]
    if results["why"]:
        lines.append(wrapped("Cannot tell: %s." % results["why"], ""))
    elif not results["exit_status"]:
        number = results["connections"]
        text = (
            "an unknown number of connections" if number is None else several(number, "connection")
        )
        text = "None of this was caught while it was at work, with %s open." % text
        lines.append(wrapped(text, ""))
    return "\n".join(lines + ["exit status %d" % results["exit_status"]]) + "\n"
