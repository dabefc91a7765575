"""Ask for workers: processes that have loaded what methods need, forks of one server that this process keeps.

The first call that needs a worker starts the server; it loads what is asked for while the caller makes its quick plan.
A fork of this process starts one of its own. Nothing is forked from this process, which may have threads.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from gangplan.solvers.method import OBJECTIVES
from gangplan.solvers.processes import can_fork
from gangplan.solvers.run import Run

from .table import libraries
from .worker import REQUEST, job

_MAIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from gangplan.hybrid.{} import main
main()
"""
_LEAVE = 0.1
"""Seconds that the server may take to end by itself."""
_MESSAGE = 1
"""Seconds without a byte after which whoever began a message does not end it any more."""
_TRIES = 3
"""Servers to start before a worker is given up."""
_ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Variables by which importing NumPy or pandas starts no thread: a fork has none of its parent's."""


def command(module: str, *arguments: str, path: Sequence[str] = ()) -> list[str]:
    """Return what runs ``main`` of a module of this folder in a fresh process, by default with ``sys.path`` of here.

    By ``-P`` no file of the folder that the user is in is taken for a module before ``sys.path`` is ours.
    """
    return [sys.executable, "-P", "-c", _MAIN.format(module), json.dumps([*map(str, path or sys.path)]), *arguments]


def connected() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a connection; here nobody waits longer than `_MESSAGE` for the rest of a message."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(True)  # whatever the program's own sockets are by default
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _MESSAGE, 0))
    return ours, theirs


class Worker:
    """A process that works on one job, as a `Child` is, but of the server's, which alone ends it.

    Attributes:
        inbox: what it says, first that it is ready; it waits for what to do then.
        exitcode: as `Child` has it; 0 if nobody knows.
    """

    def __init__(self, server: _ServerHandle, number: int, inbox: Connection) -> None:
        self.inbox, self.exitcode = inbox, 0
        self._server, self._number = server, number

    def alive(self) -> bool:
        """Return true: its connection ends when it does."""
        return True

    def join(self, seconds: float) -> None:
        """Ask with which code it ended."""
        self.exitcode = self._server.code(self._number, seconds)

    def interrupt(self) -> None:
        """Tell it that its solve is over."""
        self._server.send(b"I", self._number)

    def kill(self) -> None:
        """Have it ended, and all that it started."""
        self._server.send(b"E", self._number)


class _ServerHandle:
    """The server, as its caller has it.

    Raises:
        OSError: if it cannot be started.
    """

    def __init__(self) -> None:
        self._control, theirs = connected()
        self._lock = threading.Lock()
        self._count = self._owed = 0
        with theirs:
            try:
                self._process = subprocess.Popen(
                    command("server", str(theirs.fileno()), str(os.getpid())),
                    env=environment(),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is the caller's business
                )
            except BaseException:
                self._control.close()
                raise

    def alive(self) -> bool:
        """Return whether it can be asked."""
        return self._process.poll() is None

    def send(self, letter: bytes, number: int, *files: int) -> bool:
        """Send a request; return whether there was somebody to take it."""
        try:
            with self._lock:
                socket.send_fds(self._control, [REQUEST.pack(letter, number)], files)
        except OSError:
            return False
        return True

    def begin(self, run: Run) -> Worker | None:
        """Ask for a worker; return `None` if there is nobody to ask."""
        with self._lock:
            self._count += 1
            number = self._count
        ours, theirs = connected()
        with theirs, tempfile.TemporaryFile() as file:
            pickle.dump(job(run), file, pickle.HIGHEST_PROTOCOL)
            file.flush()
            sent = self.send(b"W", number, theirs.fileno(), file.fileno())
        inbox = Connection(ours.detach())
        if sent:
            return Worker(self, number, inbox)
        inbox.close()
        return None

    def code(self, number: int, seconds: float) -> int:
        """Return with which code a worker ended, 0 if the server does not say within so many seconds."""
        with suppress(OSError, struct.error), self._lock:
            self._control.sendall(REQUEST.pack(b"C", number))
            self._owed += 1
            while wait([self._control], seconds):
                code = REQUEST.unpack(self._control.recv(REQUEST.size, socket.MSG_WAITALL))[1]
                self._owed -= 1
                if not self._owed:  # the others came too late for who had asked
                    return int(code - 2**32 if code >= 2**31 else code)
        return 0

    def end(self) -> None:
        """End it, and with it all its workers."""
        self._control.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVE)
        finally:
            if self._process.poll() is None:  # it is loading something
                self._process.kill()
                self._process.wait()

    def forget(self) -> None:
        """Leave it to the process that this one is a fork of."""
        self._control.close()
        self._process.returncode = 0  # it is no child of this process


class _Keeper:
    """What this process keeps: its server, once it has one."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.server: _ServerHandle | None = None

    def running(self) -> _ServerHandle:
        """Return the server, started if need be."""
        with self.guard:
            if self.server is None or not self.server.alive():
                self.drop()
                self.server = _ServerHandle()
            return self.server

    def drop(self) -> None:
        """End the server, if there is one."""
        server, self.server = self.server, None
        if server is not None:
            server.end()

    def forget(self) -> None:
        """Begin anew in a fork, where another thread may have held the lock."""
        if self.server is not None:
            self.server.forget()
        self.__init__()  # type: ignore[misc]


_keeper = _Keeper()
atexit.register(_keeper.drop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keeper.forget)


_forks = threading.Event()


def fork_only() -> None:
    """Run methods in forks of this process, which has one thread, from now on, not in workers."""
    _forks.set()


def forks() -> bool:
    """Return whether this process does what `fork_only` says."""
    return _forks.is_set() and can_fork()


def environment() -> dict[str, str]:
    """Return the variables that the server has."""
    return {**_ONE_THREAD, **os.environ}


def can_serve() -> bool:
    """Return whether this system has what the server needs."""
    return hasattr(socket, "send_fds") and bool(sys.executable)


def load(*objectives: str) -> None:
    """Have the server load objectives, from now on and beside the caller.

    Raises:
        OSError: if there is no server to be had.
    """
    server = _keeper.running()
    for objective in objectives:
        server.send(b"L", OBJECTIVES.index(objective))


def begin(run: Run, *, library: str = "") -> Worker:
    """Return a worker that prepares for a solve.

    Args:
        run: the solve.
        library: what it is to find imported.

    Raises:
        OSError: if there is no process to be had.
    """
    for _ in range(_TRIES):
        load(run.problem.objective)
        server = _keeper.running()
        if library in libraries(run.problem.objective):
            at = libraries(run.problem.objective).index(library)
            server.send(b"M", at * len(OBJECTIVES) + OBJECTIVES.index(run.problem.objective))
        worker = server.begin(run)
        if worker is not None:
            break
        server.end()  # it has been killed a moment ago
    else:
        raise OSError("it ends at once")
    if not can_fork():  # the server becomes the worker; another one loads for the next
        with _keeper.guard:
            _keeper.server = None
        load(run.problem.objective)
    return worker


def close_workers() -> None:
    """End the processes that `solve` keeps for the next solve, and give their memory back; the next one starts anew."""
    with _keeper.guard:
        _keeper.drop()
