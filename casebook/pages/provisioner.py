"""Starts kernels by forking one process that has imported what every chapter imports.

A kernel begun anew computes for two seconds before its first cell is done: for seven, where nothing
has been compiled yet. The fork server is the one of multiprocessing; it ends with the build.
"""

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.context import ForkServerProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

#: What the process imports that kernels are forked from. Nothing of this starts a thread.
PRELOADED = [
    "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib_inline.backend_inline",
    "casebook.pages.statements", "casebook.charts", __name__,
]  # fmt: skip

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class ForkProvisioner(LocalProvisioner):
    """A provisioner of Jupyter whose kernels are forks.

    It takes the command that would begin the same kernel anew: python -m ipykernel_launcher, and
    arguments.
    """

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel that runs in the folder `cwd`, with the variables `env`."""
        process = _context.Process(target=_begin, args=(cmd[3:], kwargs["env"], kwargs["cwd"]))
        process.start()
        self.process = _Popen(process)
        # It leads a group of its own as soon as it runs; until then, signals go to it alone.
        self.pid = self.pgid = process.pid
        self.cwd = kwargs["cwd"]
        return self.connection_info


class _Popen:
    """A forked process with the methods of subprocess.Popen that a LocalProvisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, process: ForkServerProcess):
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self.pid
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def _begin(arguments: list[str], environ: dict[str, str], folder: str) -> None:
    """Be a kernel, in a fork, until it is told to end."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # so that an interrupt at the terminal is the build's alone
    signal.signal(signal.SIGINT, signal.default_int_handler)
    multiprocessing.set_start_method(None, force=True)  # a cell's own processes begin as usual
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.path[:0] = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["ipykernel_launcher", *arguments]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Jupyter's own poller would watch the fork server, which a kernel keeps alive: 1 leaves it out.
    IPKernelApp.launch_instance([*arguments, "--IPKernelApp.parent_handle=1"])


def _end_with_parent() -> None:
    """End this kernel when the build has ended, in whatever way."""
    if build := multiprocessing.parent_process():
        build.join()
        os._exit(1)
