"""A process that forks others, so that nothing is forked from the caller, which has threads; and how to ask it.

It is started fresh by the first call that needs it, so that no thread of the caller holds a lock in it, and has one
thread. Between requests it loads libraries of solvers. It ends with its caller, or when it has had nothing to do for
`IDLE` seconds. A request to begin a process comes with a connection, where that gets its job, and where the server says
in the end with which code it has ended; requests to interrupt and to end it have the number that the caller gave it.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection, wait

from gangplan.solvers.processes import Child, can_serve, killed

from .table import libraries
from .worker import work

IDLE = 300.0
"""Seconds without a request or a worker after which the server ends, and gives its memory back."""
_LOOK = 2.0
"""Seconds between looks at whether the caller still lives, whose end of the socket a fork of it may hold."""
_QUIET = 3.0
"""Seconds without a request after which solvers' libraries are loaded: an import cannot be interrupted."""
_POLL = 0.02
"""Seconds between looks at whether a process has ended."""
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
        serve(control, int(sys.argv[3]))
    for child in killed():
        child.join(_QUIET)


def serve(control: socket.socket, caller: int) -> None:
    """Answer the requests of a process until it has gone, or has had nothing to ask for a long time."""
    children, wanted, since = dict[str, tuple[Child, Connection]](), list[str](), time.monotonic()
    try:
        while os.getppid() == caller and (children or time.monotonic() - since < IDLE):
            heard = wait([control], _POLL if children else _QUIET if wanted else _LOOK)
            if heard:
                request, files, *_ = socket.recv_fds(control, _LONGEST, 1)
                if not request:
                    return
                word, number, objective, library = request.decode().split(" ")
                if word == "begin":
                    _import(library)
                    wanted = libraries(objective)
                    connection = Connection(files[0])
                    begin_work = partial(_work, connection, control, *(other for _, other in children.values()))
                    try:
                        children[number] = Child(begin_work), connection
                    except OSError:  # no process to be had: the caller sees the connection end
                        connection.close()
                elif number in children:
                    child = children[number][0]
                    (child.interrupt if word == "interrupt" else child.kill)()
            elif wanted and not children:
                _import(wanted.pop())
            for number in [number for number, (child, _) in children.items() if not child.alive()]:
                child, connection = children.pop(number)
                with connection, suppress(OSError):
                    connection.send(("code", child.exitcode))
            if children or heard:
                since = time.monotonic()
    except ConnectionError:  # the caller has gone
        return
    finally:
        for child, _ in children.values():
            child.kill()


def _work(connection: Connection, *others: socket.socket | Connection) -> None:
    """Work on what comes by a connection, with no other in the hands of a method."""
    for other in others:
        other.close()
    work(connection)


def _import(name: str) -> None:
    """Import a library, if any; whoever needs it will say why it cannot be imported."""
    with suppress(Exception):
        import_module(name)


def command(module: str, *arguments: str, path: Sequence[str] = ()) -> list[str]:
    """Return what runs ``main`` of a module of this folder in a fresh process, by default with ``sys.path`` of here.

    By ``-P`` no file of the folder that the user is in is taken for a module before ``sys.path`` is ours.
    """
    return [sys.executable, "-P", "-c", _MAIN.format(module), json.dumps([*map(str, path or sys.path)]), *arguments]


class _ServerHandle:
    """The server, as this process has it: started when it is first asked, and again when it has gone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.forks = False
        self.process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket

    def ask(self, request: str, *files: int) -> None:
        """Send a request.

        Raises:
            OSError: if there is nobody to take it.
        """
        with self.lock:
            for _ in range(_TRIES):
                if self.process is None or self.process.poll() is not None:
                    self._end()
                    self._start()
                with suppress(OSError):  # it has been killed a moment ago
                    socket.send_fds(self._control, [request.encode()], files)
                    return
                self._end()
        raise OSError("it ends at once")

    def tell(self, request: str) -> None:
        """Send a request, if there is somebody to take it."""
        with self.lock, suppress(OSError):
            if self.process is not None:
                self._control.send(request.encode())

    def close(self) -> None:
        """End it, and with it all that it has forked."""
        with self.lock:
            self._end()

    def forget(self) -> None:
        """Leave it, in a fork, to the process that this one is a fork of; another thread may have held the lock."""
        self.lock = threading.Lock()
        if self.process is not None:
            self._control.close()
            self.process.returncode, self.process = 0, None  # it is no child of this process

    def _start(self) -> None:
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
            self._control = ours
            at_fault.pop_all()

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            self._control.close()
            try:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LEAVE)
            finally:  # it may be loading something
                process.kill()
                process.wait()


_server, _numbers = _ServerHandle(), count()
atexit.register(_server.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_server.forget)


def fork_only() -> None:
    """Have all processes be forks of this one, which has one thread, from now on."""
    _server.forks = can_serve()


def begin(theirs: socket.socket, objective: str, *, library: str = "") -> Callable[[str], None]:
    """Return what tells a process, which awaits a job, to ``interrupt`` its method or to ``end`` with all it started.

    Args:
        theirs: its end of the connection to the caller.
        objective: of the job.
        library: what it is to find imported.

    Raises:
        OSError: if there is no process to be had.
    """
    if _server.forks:
        child = Child(lambda: work(Connection(os.dup(theirs.fileno()))))
        return lambda word: child.kill() if word == "end" else child.interrupt()
    number = next(_numbers)
    _server.ask(f"begin {number} {objective} {library}", theirs.fileno())
    return lambda word: _server.tell(f"{word} {number}  ")


def close_workers() -> None:
    """End the processes that `solve` keeps for the next solve, and give their memory back; the next one starts anew."""
    _server.close()
