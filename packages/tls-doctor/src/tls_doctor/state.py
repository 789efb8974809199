"""What this process and its connections are doing."""

from __future__ import division, print_function

import os
import sys
import time
import types

from .wording import readable


def named(wrapper, function):
    """Return the wrapper, with the name and the text of what it stands for."""
    for name in ("__name__", "__doc__", "__qualname__", "__module__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    return wrapper


def in_globals_of(wrapper, function):
    """Return the wrapper as a function of the module that the other one is of.

    It has to find its own names in its closure. Code that asks whose the functions are that it
    depends on, as requests-shared-context does, finds what it finds without the doctor.
    """
    function = getattr(function, "__func__", function)  # a method, in Python 2
    if not isinstance(function, types.FunctionType):
        return named(wrapper, function)
    moved = types.FunctionType(
        wrapper.__code__, function.__globals__, wrapper.__name__, None, wrapper.__closure__
    )
    return named(moved, function)


def protocol_of(connection):
    """Return {"alpn", "host"} of a connection, as far as it tells."""
    try:
        host = getattr(connection, "server_hostname", None)
        peer = getattr(connection, "getpeername", lambda: None)()
        host = "%s:%d" % (host or peer[0], peer[1]) if peer else host
        return {"alpn": connection.selected_alpn_protocol(), "host": host and readable(host)}
    except Exception:  # pyOpenSSL's, or one that is closed
        return {"alpn": None, "host": None}


def is_server(connection):
    """Return whether a connection is a server's."""
    side = getattr(connection, "server_side", None)
    if side is None and hasattr(connection, "_sslobj"):
        side = getattr(connection._sslobj, "server_side", False)
    if side is None:  # pyOpenSSL tells by its state
        state = getattr(connection, "get_state_string", lambda: b"")()
        side = b"accept" in state.lower() or b"server" in state.lower()
    return bool(side)


def running_loop():
    """Return the loop of asyncio that runs in this thread, or trio's; None if there is none."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    trio = getattr(sys.modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
    return (running and running()) or getattr(trio, "runner", None)


def others_wait(loop):
    """Return whether anything else waits for a loop now, or it serves: then others will come.

    What waits is a callback, a timer that is due, or a socket (of trio, a task or a timer). Of
    a loop that does not tell: whether a socket that is watched waits, or there are other tasks
    than the one that runs and those that await it.
    """
    try:
        if hasattr(loop, "deadlines"):
            due = loop.deadlines.next_deadline() <= loop.clock.current_time()
            due = due or any(task._next_send_fn is not None for task in loop.tasks)
        else:
            present = loop.time()
            handles = [timer for timer in list(loop._scheduled) if timer.when() <= present]
            handles += list(loop._ready)
            # One that is cancelled is there until its turn, and waits for nothing.
            due = any(not handle._cancelled for handle in handles)
            due = due or bool(loop._selector.select(0))
        return due or "listening" in watched_sockets()
    except Exception:
        return bool(watched_sockets()) or bool(tasks_beside(loop))


def tasks_beside(loop):
    """Return the tasks of a loop of asyncio's that do not wait for the one that runs now."""
    asyncio = sys.modules["asyncio"]
    if not hasattr(asyncio, "all_tasks"):
        return set()
    current, tasks = asyncio.current_task(loop), asyncio.all_tasks(loop)
    while current in tasks:
        tasks.discard(current)
        for task in tasks:
            awaited = getattr(task, "_fut_waiter", None)
            if current is awaited or current in (getattr(awaited, "_children", None) or ()):
                current = task
                break
    return tasks


def reactor_waits(reactor):
    """Return whether anything else waits for a reactor of Twisted's now, or it serves.

    What waits is a call that is due or comes from another thread, or a socket.
    """
    timers, now = reactor._pendingTimedCalls + reactor._newTimedCalls, reactor.seconds()
    due = any(timer.getTime() <= now for timer in timers)
    return bool(due or reactor.threadCallQueue or watched_sockets())


def watched_sockets():
    """Return what the sockets do that this process's loops watch.

    A set of "listening" (they serve) and "waiting" (there is something to read). Linux tells;
    elsewhere it is empty.
    """
    states, kind, select = set(), sys.modules.get("_socket"), sys.modules.get("select")
    try:
        watched = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + name).endswith("[eventpoll]"):
                    with open("/proc/self/fdinfo/" + name) as lines:
                        rows = [line.split() for line in lines if line.startswith("tfd:")]
                    watched.update(int(row[1]) for row in rows if int(row[3], 16) & 1)
            except EnvironmentError:  # one that is closed meanwhile
                pass
        for number in watched:
            try:
                copy = kind.socket(fileno=os.dup(number))
            except EnvironmentError:  # no socket
                continue
            try:
                if copy.getsockopt(kind.SOL_SOCKET, kind.SO_ACCEPTCONN):
                    states.add("listening")
                elif copy.family != getattr(kind, "AF_UNIX", None):  # a loop's own pair
                    states.update(["waiting"] if select.select([copy], [], [], 0)[0] else [])
            except Exception:  # a number that is too large
                pass
            finally:
                copy.close()
    except Exception:  # another system
        pass
    return states


def descriptor(connection):
    """Return the number of a connection's socket; None if it has none."""
    try:
        return connection.fileno()
    except Exception:  # one without a socket of its own, or a closed one
        return None


def resident_kib():
    """Return the memory that this process holds, in KiB.

    If nobody tells at once, the most that it has held.
    """
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        finally:
            os.close(handle)
    except Exception:
        return most_kib()


def queued_ms():
    """Return the milliseconds through which this thread could run and had no processor.

    On a busy machine that is no wait for an answer. Linux tells; elsewhere it is 0.
    """
    try:
        handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        try:
            return int(os.read(handle, 100).split()[1]) / 1e6
        finally:
            os.close(handle)
    except Exception:
        return 0


def current_greenlet():
    """Return the greenlet that runs; None if greenlet is not imported."""
    get_current = getattr(sys.modules.get("greenlet"), "getcurrent", None)
    return get_current and get_current()


def port_of(args, place):
    """Return the port in the arguments of a function that connects; None if there is none.

    It stands in an address at a place, or there itself.
    """
    port = args[place] if len(args) > place else None
    if isinstance(port, tuple):
        port = port[1] if len(port) > 1 else None
    return port if isinstance(port, int) else None


def greenlets_wait():
    """Return 2 if a greenlet asks, 1 if the main program does while greenlets wait, else 0."""
    greenlet = current_greenlet()
    if getattr(greenlet, "parent", None) is not None:
        return 2
    hub_of = getattr(sys.modules.get("gevent._hub_local"), "get_hub_if_exists", None)
    hub = hub_of and hub_of()
    return int(hub is not None and hub.loop is not None and hub.loop.activecnt > 0)


def current():
    """Return what tells this greenlet, or this thread if there are none, from others."""
    return "wait", ident(), id(current_greenlet())


def make_lock():
    """Return a lock that no patch of the program's replaces.

    (To import threading would be too early.)
    """
    try:
        import _thread
    except ImportError:  # as Python 2.7 calls it
        import thread as _thread
    return _thread.allocate_lock()


def ident():
    """Return the number of this thread."""
    thread = sys.modules.get("_thread") or sys.modules.get("thread")
    return thread.get_ident()


def make_clocks():
    """Return (the most KiB held, processor milliseconds of the process, of this thread).

    Each is a function.
    """
    try:
        import resource
    except ImportError:
        resource = None

    def peak_kib():
        if resource is None:
            return 0
        return resource.getrusage(0).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

    def process():
        if resource is None:
            return 1000 * sum(os.times()[:2])
        used = resource.getrusage(0)
        return 1000 * (used.ru_utime + used.ru_stime)

    if hasattr(time, "thread_time"):
        return peak_kib, process, lambda: 1000 * time.thread_time()

    def thread():
        try:
            used = resource.getrusage(1)  # RUSAGE_THREAD, which has no name in old Pythons
        except Exception:
            return process()
        return 1000 * (used.ru_utime + used.ru_stime)

    return peak_kib, process, thread


most_kib, process_ms, thread_ms = make_clocks()
