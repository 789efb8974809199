"""Two ends of a line: network namespaces with a device each, of which this process holds the cable.

    with Ends() as ends:
        server = ends.start("far", ["python3", "serve.py"], stdout=PIPE)
        ...                          # what ends.near and ends.far read and write are IP packets

The process that opens them changes into the namespaces for good: it has to be one of its own. They
live as long as it, and what it started there. Nothing has a name, so nothing can be left behind.

It needs no root where the kernel gives an ordinary user namespaces (as `unshare -Urn true` tries).
The devices are TUN, where /dev/net/tun opens; else a pair of veth at each end with a packet socket.
Standard library only.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

#: The address of each end.
ADDRESSES = {"near": "10.99.0.1", "far": "10.99.0.2"}

#: How the packets are had: TUN devices, or veth pairs and packet sockets.
DEVICES = TUN, VETH = "tun", "veth"

#: Bytes of an IP packet, as on Ethernet.
MTU = 1500

#: Which congestion control the connections have unless another is named: RFC 5681's, which every
#: kernel has and every namespace may use.
CONGESTION = "reno"

_NEWUSER, _NEWNET = 0x10000000, 0x40000000  # linux/sched.h
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x1, 0x1000  # linux/if_tun.h
_SETFLAGS, _SETADDR, _SETDSTADDR = 0x8914, 0x8916, 0x8918  # linux/sockios.h
_SETMTU, _SETTXQLEN, _ETHTOOL = 0x8922, 0x8943, 0x8946
_IFF_UP = 0x1
_OFF = (0x17, 0x1F, 0x24, 0x21, 0x25)  # linux/ethtool.h: checksums sent, TSO, GSO, UFO, GRO
_IPV4 = 0x0800

#: Packets that wait for this process, at most. No run has as many on their way.
_QUEUE = 10_000

_libc = ctypes.CDLL(None, use_errno=True)


class NoLineError(Exception):
    """This machine cannot have a line: what is missing, in words."""


class Ends:
    """The two ends, open from __enter__ on.

    way: TUN, VETH, or "" for the first that works. congestion: TCP's, at both ends. `way` says
    which it took; `near` and `far` have `read()`, an IP packet or None, `write(packet)`,
    `fileno()` and `dropped()`, the packets that the kernel had no room for.
    """

    def __init__(self, way="", congestion=CONGESTION):
        self.asked, self.congestion, self.way = way, congestion, ""
        self._spaces, self._undo = {}, contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            self._leave()
            for name in ADDRESSES:
                if self._spaces:
                    _unshare(_NEWNET)
                self._spaces[name] = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
                undo.callback(os.close, self._spaces[name])
                is_default = _settings(self.congestion)
                setattr(self, name, undo.enter_context(self._end(name)))
                if not is_default:
                    _by_route(name, self.congestion)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def start(self, end, command, dies=True, **options):
        """Start a subprocess.Popen at one end.

        dies: at once with this process; otherwise it ends by itself when its standard input does.
        """
        space = self._spaces[end]

        def enter():
            if _libc.setns(space, _NEWNET):
                os._exit(125)
            if dies:
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

        return subprocess.Popen(command, preexec_fn=enter, start_new_session=True, **options)

    def _leave(self):
        """Change into namespaces of our own, as root or as the root of a user namespace."""
        if os.geteuid() == 0 and not _libc.unshare(_NEWNET):
            return
        user, group = os.geteuid(), os.getegid()
        _unshare(_NEWUSER | _NEWNET)
        try:
            for file, line in (
                ("setgroups", "deny"),
                ("uid_map", f"0 {user} 1"),
                ("gid_map", f"0 {group} 1"),
            ):
                _write("/proc/self/" + file, line)
        except OSError as error:
            raise NoLineError(
                f"a user namespace gets no root of its own here ({error.strerror}): see the "
                "setting kernel.apparmor_restrict_unprivileged_userns"
            ) from None

    def _end(self, name):
        devices = {TUN: _Tun, VETH: _Veth}
        refusals = []
        for kind in [self.way or self.asked] if self.way or self.asked else devices:
            try:
                device = devices[kind](name)
            except NoLineError as error:
                refusals.append(str(error))
            else:
                self.way = kind
                return device
        raise NoLineError("; ".join(refusals))


class _Device:
    def __enter__(self):
        # Opened here, it shows this end's devices for ever.
        self._statistics = open("/proc/thread-self/net/dev")
        return self

    def __exit__(self, *_):
        os.close(self._fd)
        self._statistics.close()

    def fileno(self):
        return self._fd

    def dropped(self):
        self._statistics.seek(0)
        lines = (line.split() for line in self._statistics.read().splitlines()[2:])
        return sum(int(line[4]) + int(line[12]) for line in lines)


class _Tun(_Device):
    def __init__(self, name):
        try:
            self._fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NoLineError(f"/dev/net/tun does not open ({error.strerror})") from None
        try:
            request = struct.pack("16sH22x", b"line0", _IFF_TUN | _IFF_NO_PI)
            fcntl.ioctl(self._fd, _TUNSETIFF, request)
            _up("lo")
            (peer,) = set(ADDRESSES) - {name}
            _set("line0", _SETADDR, _address(ADDRESSES[name]))
            _set("line0", _SETDSTADDR, _address(ADDRESSES[peer]))
            _set("line0", _SETMTU, struct.pack("i", MTU))
            _set("line0", _SETTXQLEN, struct.pack("i", _QUEUE))
            _up("line0")
        except OSError as error:
            os.close(self._fd)
            raise NoLineError(f"a TUN device cannot be set up ({error.strerror})") from None

    def read(self):
        try:
            return os.read(self._fd, 65_536)
        except BlockingIOError:
            return None

    def write(self, packet):
        os.write(self._fd, packet)


class _Veth(_Device):
    """An end of a pair of veth devices.

    The end's own device has the address, and a neighbour that it need not look for; what it sends
    comes out at its twin, from which the packet socket takes it.
    """

    _OURS, _TWINS, _NOBODYS = (bytes([2, 0, 0, 0, 0, last]) for last in (1, 2, 3))

    def __init__(self, name):
        (peer,) = set(ADDRESSES) - {name}
        ours, twins, nobodys = (
            address.hex(":") for address in (self._OURS, self._TWINS, self._NOBODYS)
        )
        for command in (
            "link set lo up",
            f"link add line0 address {ours} type veth peer name twin0 address {twins}",
            f"address add {ADDRESSES[name]} peer {ADDRESSES[peer]} dev line0",
            f"link set line0 mtu {MTU} txqueuelen {_QUEUE} up",
            f"link set twin0 mtu {MTU} txqueuelen {_QUEUE} arp off up",
            f"neigh replace {ADDRESSES[peer]} lladdr {nobodys} dev line0",
        ):
            _ip(command)
        # Whole packets with whole checksums: what is passed on has to be as on a cable.
        for feature in _OFF:
            with contextlib.suppress(OSError):  # none that can be switched
                value = ctypes.create_string_buffer(struct.pack("II", feature, 0))
                _set("line0", _ETHTOOL, struct.pack("P", ctypes.addressof(value)))
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_IPV4))
        self._socket.bind(("twin0", _IPV4))
        self._socket.setblocking(False)
        for option in (socket.SO_RCVBUF, 33):  # as much as we may have; SO_RCVBUFFORCE: as root
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, option, 16 << 20)
        self._fd = self._socket.fileno()
        self._lost = 0

    def __exit__(self, *_):
        self._socket.close()
        self._statistics.close()

    def read(self):
        while True:
            try:
                frame, (_, _, kind, _, _) = self._socket.recvfrom(65_536)
            except BlockingIOError:
                return None
            if kind != socket.PACKET_OUTGOING:  # what we wrote ourselves
                return frame[14:]

    def write(self, packet):
        self._socket.send(self._OURS + self._TWINS + struct.pack("!H", _IPV4) + packet)

    def dropped(self):
        # PACKET_STATISTICS, which is set to zero when it is read.
        _, drops = struct.unpack("II", self._socket.getsockopt(263, 6, 8))
        self._lost += drops
        return super().dropped() + self._lost


def _settings(congestion):
    """Set up this namespace, so that a connection knows nothing of those before it.

    Returns whether the congestion control is its default now.
    """
    folder = "/proc/sys/net/ipv4/"
    with contextlib.suppress(OSError):  # a kernel without IPv6
        _write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")
    _write(folder + "tcp_no_metrics_save", "1")
    try:
        _write(folder + "tcp_congestion_control", congestion)
    except OSError as error:
        with open(folder + "tcp_available_congestion_control") as file:
            available = file.read().split()
        if congestion in available:
            return False
        raise NoLineError(
            f"this kernel does not let a namespace choose {congestion} ({error.strerror}): it has "
            + ", ".join(available)
        ) from None
    return True


def _by_route(name, congestion):
    """Choose the congestion control for the route to the other end.

    A namespace's default may only be one that is allowed to every user of the machine; a route may
    name any that the kernel has.
    """
    (peer,) = set(ADDRESSES) - {name}
    try:
        _ip(f"route replace {ADDRESSES[peer]} dev line0 congctl {congestion}")
    except NoLineError as error:
        raise NoLineError(
            f"this kernel does not let a namespace choose {congestion} ({error})"
        ) from None


def _ip(command):
    """Run the program ip."""
    ip = shutil.which("ip", path=os.pathsep.join((os.defpath, "/usr/sbin", "/sbin")))
    if ip is None:
        raise NoLineError("the program ip is missing (Debian: apt-get install iproute2)")
    completed = subprocess.run([ip, *command.split()], stderr=subprocess.PIPE)
    if completed.returncode:
        messages = completed.stderr.decode().strip().splitlines() or ["no further word"]
        raise NoLineError(f"ip {' '.join(command.split()[:2])}: {messages[-1]}")


def _unshare(flags):
    if _libc.unshare(flags):
        number = ctypes.get_errno()
        reason = os.strerror(number)
        if number == errno.ENOSPC:  # "No space left on device", which misleads
            reason = "user.max_user_namespaces or user.max_net_namespaces allows no more of them"
        raise NoLineError(
            f"this system gives a process no network of its own ({reason}): `unshare -Urn true` "
            "tries the same"
        )


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _address(text):
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))


def _up(device):
    _set(device, _SETFLAGS, struct.pack("h", _IFF_UP))


def _set(device, request, value):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, request, struct.pack("16s24s", device.encode(), value))


if __name__ == "__main__":  # whether there can be a line here, and how; or what is missing
    try:
        with Ends(*sys.argv[1:]) as tried:
            print(tried.way)
    except NoLineError as error:
        sys.exit(str(error))
