"""Processes and threads for what cannot be stopped otherwise: forks that are watched and killed, deaf solvers.

`multiprocessing` does not do: it refuses in a worker of its own pools, which are daemons and must have no children.
These children need no such rule: they end with the thread that began them, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from multiprocessing.connection import Connection
from threading import Event, RLock, Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")

POLL = 0.05
"""Seconds between looks at the clock, at a process, or at a folder."""
_GRACE = 0.1
"""Seconds that an answer may come late."""
_DIES = 0.01
"""Seconds that a killed process is waited for."""
_PDEATHSIG = 1
"""Linux's ``PR_SET_PDEATHSIG``: the signal that a process gets when the thread that began it has ended."""
_IMPORTED, _IMPORTS = ("gangplan", "google", "highspy", "numpy", "ortools", "pandas", "scipy"), 5.0
"""Packages that other threads may be importing when a process forks, and seconds to wait for that at most."""
_left: list[Child] = []
"""Killed, and not yet collected."""
_forks = RLock()
"""Held by whoever forks: filters of warnings, changed by two threads at once, would stay changed."""
if hasattr(os, "register_at_fork"):  # no other fork finds it held
    os.register_at_fork(before=_forks.acquire, after_in_child=_forks.release, after_in_parent=_forks.release)
_home = os.getpid()
"""The process that has this module, and the threads of libraries, first-hand: forks have but copies."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_fork() -> bool:
    """Return whether this system has safe forks: Linux has, Windows none, and those of macOS break its libraries."""
    return sys.platform.startswith("linux")


def can_serve() -> bool:
    """Return whether this system can start a process that forks others."""
    return can_fork() and bool(sys.executable)


def begin_thread(work: Callable[[], object]) -> None:
    """Begin a thread that does not keep the program; `OSError` if there is none to be had."""
    try:
        Thread(target=work, daemon=True).start()
    except (RuntimeError, MemoryError):
        raise OSError("no thread to be had") from None


def can_thread(count: int) -> bool:
    """Return whether this process can start so many threads; solvers end the process where they cannot."""
    release = Event()
    try:
        for _ in range(count):
            begin_thread(release.wait)
    except OSError:
        return False
    finally:
        release.set()
    return True


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch, if it is loaded, use one thread: a small network gains nothing by more, and waits for busy cores."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def killed() -> list[Child]:
    """Return the processes that have been killed and not yet collected."""
    return [child for child in _left if child.alive()]


class Child:
    """A process that is a copy of this one, runs `work` and ends."""

    def __init__(self, work: Callable[[], None]) -> None:
        _left[:] = killed()
        _await_imports()
        self.exitcode: int | None = None
        parent = os.getpid()
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
            sys.stderr.flush()
        if parent == _home and (highs := getattr(sys.modules.get("highspy"), "Highs", None)) is not None:
            with suppress(AttributeError):  # an old one
                highs.resetThreadScheduler(True)  # its threads are not in a fork, which would crash without them
        with _forks, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
            self.pid = os.fork()
        if not self.pid:
            try:
                _settle(parent)
                work()
            finally:
                os._exit(0)

    def alive(self) -> bool:
        """Return whether it still runs; what it has started is killed, and the rest collected, once it does not."""
        if self.exitcode is None:
            try:
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return True
                with suppress(OSError):  # before its number can be another's
                    os.killpg(self.pid, signal.SIGKILL)
                self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # the user's program waits for children itself
                self.exitcode = 0
        return self.exitcode is None

    def join(self, seconds: float) -> None:
        """Wait until it has ended, no longer than so many seconds."""
        until = time.perf_counter() + seconds
        while self.alive() and time.perf_counter() < until:
            time.sleep(0.002)

    def interrupt(self) -> None:
        """Send it the signal of Ctrl-C."""
        if self.alive():
            os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """End it and all that it started; should that take longer, it is collected when the next one begins."""
        if self.alive():
            for kill in (os.killpg, os.kill):
                with suppress(OSError):
                    kill(self.pid, signal.SIGKILL)
            self.join(_DIES)
            _left.append(self)


def _await_imports() -> None:
    """Wait until no thread is amid an import of what children import: they would wait for that thread forever."""
    until = time.perf_counter() + _IMPORTS
    while time.perf_counter() < until:
        modules = [module for name, module in sys.modules.copy().items() if name.startswith(_IMPORTED)]
        if not any(getattr(getattr(x, "__spec__", None), "_initializing", False) for x in modules):
            break
        time.sleep(0.005)


def _settle(parent: int) -> None:
    """Have this process end with its parent, and leave the keyboard to that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (parent, 0):  # 0: the parent is in another namespace
        os._exit(0)
    with suppress(OSError):
        os.setpgid(0, 0)  # Ctrl-C is the caller's business, and what a method starts goes with it
    signal.set_wakeup_fd(-1)  # an event loop of the caller would hear of the signals of its children
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def connected() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a connection, neither in the place of a standard stream that the caller has closed.

    What a child writes to that must not get into the connection.
    """
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(True)  # whatever the program's own sockets are by default
    if min(end.fileno() for end in ends) > 2:
        return ends
    with ends[0], ends[1]:
        return connected()


def forked(work: Callable[[], T], stopped: Callable[[], bool]) -> T | None:
    """Return `work()`, done in a fork, or `None` if that is killed: by a crash, or soon after `stopped` turns true.

    It is for a solver that is deaf even to its own clock. In a thread it is done here: a fork would find the locks of
    other threads held.

    Raises:
        KeyboardInterrupt: on Ctrl-C, at once.
        OSError: if the system has no process to give.
        Exception: what `work` raises.
    """
    if current_thread() is not main_thread():
        return work()
    inbox, outbox = (Connection(end.detach()) for end in connected())

    def tell() -> None:
        with suppress(OSError):  # nobody listens any more
            try:
                outbox.send((True, work()))
            except Exception as error:
                outbox.send((False, error))

    with inbox:
        with outbox:
            child = Child(tell)
        late = inf
        try:
            while not inbox.poll(POLL):
                if stopped():
                    late = min(late, time.perf_counter() + _GRACE)
                if time.perf_counter() > late:
                    return None
            done, value = inbox.recv()
        except (EOFError, OSError):  # it crashed, before what it says or amid that
            return None
        finally:
            child.kill()
            child.join(_GRACE)
    if not done:
        raise value
    found: T = value
    return found


def interruptible(work: Callable[[], T], stop: Callable[[], None], stopped: Callable[[], bool]) -> T:
    """Return `work()`, run in a thread; call `stop` when `stopped` turns true or on Ctrl-C.

    Native solvers hold the main thread, where Python handles signals; here the main thread only waits.

    Raises:
        KeyboardInterrupt: after `work` has returned, so that what it found is kept.
    """
    outcome, failure = list[T](), list[BaseException]()
    done = Event()  # not join: a KeyboardInterrupt there makes Python 3.11 take the thread for ended (bpo-45274)

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the caller below
            failure.append(error)
        finally:
            done.set()

    begin_thread(body)
    while not done.is_set():
        try:
            done.wait(POLL)
        except KeyboardInterrupt as error:
            failure.insert(0, error)
        if failure or stopped():
            stop()
    if failure:
        raise failure[0]
    return outcome[0]
