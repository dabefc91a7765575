"""Load what methods need in a process of its own, and fork workers that have it.

The server is started fresh, so that no thread of the caller holds a lock in it, and has one thread. Between requests
it loads libraries of solvers. It ends with its caller, or when it has had nothing to do for `IDLE` seconds.

A request is a letter and a number. ``L``: load the objective of that number. ``M``: import a library of its methods.
``W``, with a connection and a file, which the worker works on: fork the worker of that number. ``C``: tell the code
with which that worker ended. ``I`` and ``E``: interrupt it, end it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait

from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.processes import Child, can_fork, killed

from .table import installed, libraries, named
from .worker import REQUEST, work

IDLE = 300.0
"""Seconds without a request or a worker after which the server ends, and gives its memory back."""
_LOOK = 2.0
"""Seconds between looks at whether the caller still lives, whose end of the socket a fork of it may hold."""
_QUIET = 3.0
"""Seconds without a request after which solvers' libraries are loaded: an import cannot be interrupted."""
_CODE = 1.0
"""Seconds to wait for a worker to end that has closed its connection."""


def main() -> None:
    """Serve the caller, whose socket and process are the arguments after ``sys.path``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's business
    with socket.socket(fileno=int(sys.argv[2])) as control:
        server = ForkServer(control, int(sys.argv[3]))
        server.serve()
    for worker in server.workers.values():
        worker.kill()
    for worker in killed():
        worker.join(_CODE)


class ForkServer:
    """A process that forks workers.

    Args:
        control: where requests come from.
        caller: the process that sends them.
    """

    def __init__(self, control: socket.socket, caller: int) -> None:
        self.control, self.caller = control, caller
        self.workers: dict[int, Child] = {}
        self.asked: set[str] = set()
        self.libraries: list[str] = []

    def serve(self) -> None:
        """Answer requests until the caller has gone, or has had nothing to ask for a long time."""
        since = time.monotonic()
        while os.getppid() == self.caller:
            patience = _QUIET if self.libraries else _LOOK
            if wait([self.control], patience):
                since = time.monotonic()
                try:
                    data, files, *_ = socket.recv_fds(self.control, REQUEST.size, 2)
                except OSError:  # the caller has gone with an answer unread
                    return
                if len(data) < REQUEST.size:
                    return
                self.answer(*REQUEST.unpack(data), *files)
            elif self.libraries:
                self.load_library(self.libraries.pop(0))
            elif self.workers:
                since = time.monotonic()
            elif time.monotonic() - since > IDLE:
                return

    def answer(self, letter: bytes, number: int, *files: int) -> None:
        """Do what a request asks for."""
        if letter == b"L":
            self.ask(OBJECTIVES[number])
        elif letter == b"M":
            at, objective = divmod(number, len(OBJECTIVES))
            self.load_library(libraries(OBJECTIVES[objective])[at])
        elif letter == b"W":
            self.fork(number, *files)
        elif letter == b"C":
            worker = self.workers.get(number)
            if worker is not None:
                worker.join(_CODE)
            self.control.sendall(REQUEST.pack(b"C", ((worker and worker.exitcode) or 0) % 2**32))
        elif letter == b"I" and number in self.workers and self.workers[number].alive():
            os.kill(self.workers[number].pid, signal.SIGINT)
        elif letter == b"E" and number in self.workers:
            self.workers.pop(number).kill()

    def ask(self, objective: str) -> None:
        """Have an objective loaded, once."""
        if objective not in self.asked:
            self.asked.add(objective)
            suite(objective)
            methods = [method for method in named(objective).values() if installed(method)]
            self.libraries += [x.library for x in methods if x.library not in ("", *sys.modules)]

    def load_library(self, name: str) -> None:
        """Import a library; whoever needs it will say why it cannot be imported."""
        with suppress(Exception):
            import_module(name)

    def fork(self, number: int, connection: int, file: int) -> None:
        """Begin a worker; where forks are not safe, be it."""

        def begin_work() -> None:
            self.control.close()
            work(Connection(connection), file)

        if not can_fork():
            begin_work()
            os._exit(0)
        gc.freeze()  # a collection in the worker would copy all memory that it shares with this process
        with suppress(OSError):  # no process to be had: the caller sees its connection end
            self.workers[number] = Child(begin_work)
        os.close(connection)
        os.close(file)
