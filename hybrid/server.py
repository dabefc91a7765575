"""A process that forks others, so that nothing is forked from the caller, which has threads; and how to ask it.

It is started fresh by the first call that needs it, so that no thread of the caller holds a lock in it, and has one
thread. Between requests it loads libraries of solvers. It ends with its caller, or when it has had nothing to do for
`IDLE` seconds. A request comes with a connection, where the process that is forked gets its job, and with a line on
which the server tells with which code it ended, interrupts it when a byte comes, and ends it when the line is closed.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait

from gangplan.solvers.method import suite
from gangplan.solvers.processes import Child, can_fork, connected, killed

from .table import installed, named
from .worker import work

IDLE = 300.0
"""Seconds without a request or a worker after which the server ends, and gives its memory back."""
_LOOK = 2.0
"""Seconds between looks at whether the caller still lives, whose end of the socket a fork of it may hold."""
_QUIET = 3.0
"""Seconds without a request after which solvers' libraries are loaded: an import cannot be interrupted."""
_CODE = struct.Struct("!i")
"""With which code a process ended."""
_LONGEST = 4096
"""Bytes of a request at most."""
_LEAVE = 0.1
"""Seconds that the server may take to end by itself."""
_TRIES = 3
"""Servers to start before a process is given up."""
_MAIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from gangplan.hybrid.{} import main
main()
"""
_ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Variables by which importing NumPy or pandas starts no thread: a fork has none of its parent's."""


def main() -> None:
    """Serve the caller, whose socket and process are the arguments after ``sys.path``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's business
    with socket.socket(fileno=int(sys.argv[2])) as control:
        ForkServer(control, int(sys.argv[3])).serve()
    for child in killed():
        child.join(1.0)


class ForkServer:
    """The server.

    Args:
        control: where requests come from.
        caller: the process that sends them.
    """

    def __init__(self, control: socket.socket, caller: int) -> None:
        self.control, self.caller = control, caller
        self.children: list[tuple[Child, socket.socket]] = []
        self.libraries: list[str] = []
        self.asked = set[str]()

    def serve(self) -> None:
        """Answer requests until the caller has gone, or has had nothing to ask for a long time."""
        woken, wakes = socket.socketpair()
        wakes.setblocking(False)
        before = signal.signal(signal.SIGCHLD, lambda *_: None), signal.set_wakeup_fd(wakes.fileno())
        try:
            self._serve(woken)
        finally:
            signal.signal(signal.SIGCHLD, before[0])
            signal.set_wakeup_fd(before[1])
            for child, _ in self.children:
                child.kill()

    def _serve(self, woken: socket.socket) -> None:
        since = time.monotonic()
        while os.getppid() == self.caller:
            lines: list[socket.socket] = [line for _, line in self.children]
            heard = wait([self.control, woken, *lines], _QUIET if self.libraries else _LOOK)
            if woken in heard:
                woken.recv(_LONGEST)
            self._look_after(heard)
            if self.control in heard:
                since = time.monotonic()
                try:
                    data, files, *_ = socket.recv_fds(self.control, _LONGEST, 2)
                except OSError:  # the caller has gone
                    return
                if not data:
                    return
                objective, library = data.decode().split(" ")
                self.answer(objective, library, *files)
            elif self.libraries and not heard:
                self._import(self.libraries.pop(0))
            elif self.children:
                since = time.monotonic()
            elif time.monotonic() - since > IDLE:
                return

    def _look_after(self, heard: Sequence[object]) -> None:
        """Interrupt or end those whose caller wants it, and tell how others have ended."""
        for child, line in [*self.children]:
            if line in heard:
                with suppress(OSError):
                    if line.recv(1):
                        os.kill(child.pid, signal.SIGINT)
                    else:
                        child.kill()
            if not child.alive():
                with suppress(OSError):
                    line.sendall(_CODE.pack(child.exitcode or 0))
                line.close()
                self.children.remove((child, line))

    def answer(self, objective: str, library: str, connection: int, line: int) -> None:
        """Load what is asked for, now what a method needs by name, else some time; then fork a process."""
        if library:
            self._import(library)
        if objective not in self.asked:
            self.asked.add(objective)
            suite(objective)
            methods = [method for method in named(objective).values() if installed(method)]
            self.libraries += [x.library for x in methods if x.library not in ("", *self.libraries, *sys.modules)]

        def begin_work() -> None:
            self.control.close()
            for _, other in self.children:
                other.close()
            os.close(line)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work(Connection(connection))

        gc.freeze()  # a collection in the process would copy all memory that it shares with this one
        with suppress(OSError):  # no process to be had: the caller sees the connection end
            self.children.append((Child(begin_work), socket.socket(fileno=line)))
        os.close(connection)

    def _import(self, name: str) -> None:
        """Import a library; whoever needs it will say why it cannot be imported."""
        with suppress(Exception):
            import_module(name)


def command(module: str, *arguments: str, path: Sequence[str] = ()) -> list[str]:
    """Return what runs ``main`` of a module of this folder in a fresh process, by default with ``sys.path`` of here.

    By ``-P`` no file of the folder that the user is in is taken for a module before ``sys.path`` is ours.
    """
    return [sys.executable, "-P", "-c", _MAIN.format(module), json.dumps([*map(str, path or sys.path)]), *arguments]


class Worker:
    """A process that works on a job, as a `Child` is, but of the server's.

    Attributes:
        exitcode: with which code it ended, `None` if nobody knows.
    """

    def __init__(self, line: socket.socket) -> None:
        self.exitcode: int | None = None
        self._line = line

    def join(self, seconds: float) -> None:
        """Wait until it has ended, no longer than so many seconds."""
        with suppress(OSError, struct.error):
            self._line.settimeout(max(seconds, 1e-3))
            (self.exitcode,) = _CODE.unpack(self._line.recv(_CODE.size))

    def interrupt(self) -> None:
        """Tell it that its solve is over."""
        with suppress(OSError):
            self._line.send(b"I")

    def kill(self) -> None:
        """Have it ended, and all that it started."""
        self._line.close()


class _ServerHandle:
    """The server, as this process has it: started when it is first asked, and again when it has gone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.forks = False
        self.process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def ask(self, request: str, *files: int) -> None:
        """Send a request.

        Raises:
            OSError: if there is nobody to take it.
        """
        with self.lock:
            for _ in range(_TRIES):
                if self.process is None or self.process.poll() is not None:
                    self._end()
                    self._control = self._start()
                with suppress(OSError):  # it has been killed a moment ago
                    assert self._control is not None
                    socket.send_fds(self._control, [request.encode()], files)
                    return
                self._end()
        raise OSError("it ends at once")

    def close(self) -> None:
        """End it, and with it all that it has forked."""
        with self.lock:
            self._end()

    def forget(self) -> None:
        """Leave it, in a fork, to the process that this one is a fork of; another thread may have held the lock."""
        self.lock = threading.Lock()
        if self.process is not None and self._control is not None:
            self._control.close()
            self.process.returncode, self.process = 0, None  # it is no child of this process

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(True)  # whatever the program's own sockets are by default
        with theirs, ExitStack() as at_fault:
            at_fault.enter_context(ours)
            self.process = subprocess.Popen(
                command("server", str(theirs.fileno()), str(os.getpid())),
                env={**_ONE_THREAD, **os.environ},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the caller's business
            )
            at_fault.pop_all()
        return ours

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is None or self._control is None:
            return
        self._control.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE)
        finally:
            if process.poll() is None:  # it is loading something
                process.kill()
                process.wait()


_server = _ServerHandle()
atexit.register(_server.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_server.forget)


def fork_only() -> None:
    """Have all processes be forks of this one, which has one thread, from now on."""
    _server.forks = True


def forks() -> bool:
    """Return whether this process does what `fork_only` says."""
    return _server.forks and can_fork()


def can_serve() -> bool:
    """Return whether this system has what the server needs."""
    return can_fork() and bool(sys.executable)


def begin(theirs: socket.socket, objective: str, *, library: str = "") -> Worker:
    """Return a process that awaits a job.

    Args:
        theirs: its end of the connection to the caller.
        objective: of the job.
        library: what it is to find imported.

    Raises:
        OSError: if there is no process to be had.
    """
    line, end = connected()
    with ExitStack() as at_fault, end:
        at_fault.enter_context(line)
        _server.ask(f"{objective} {library}", theirs.fileno(), end.fileno())
        at_fault.pop_all()
    return Worker(line)


def close_workers() -> None:
    """End the processes that `solve` keeps for the next solve, and give their memory back; the next one starts anew."""
    _server.close()
