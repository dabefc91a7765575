"""What a solver or a submission leaves behind: the processes below this one, found and ended."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_SUBREAPER = 36
"""Linux's ``PR_SET_CHILD_SUBREAPER``: processes whose parent has ended become children of this one."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def subreaper(on: bool = True) -> None:
    """Have orphans among the descendants of this process become its children, where the system can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, int(on))


@contextmanager
def swept() -> Iterator[None]:
    """On leaving, end what has begun below this process meanwhile, in other sessions than its own."""
    before, own = set(descendants(os.getpid())), os.getsid(0)
    subreaper()
    try:
        yield
    finally:
        end(lambda: {p: m for p, m in descendants(os.getpid()).items() if p not in before and _session(p) != own})
        subreaper(False)


def end(left: Callable[[], dict[int, int]]) -> None:
    """Kill processes until none is left."""
    for _ in range(200):
        if not (family := left()):
            return
        for pid in family:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in family:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)


def descendants(root: int) -> dict[int, int]:
    """Return the processes below one with the bytes of memory of each but zombies; none without /proc."""
    parents: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", encoding="latin-1") as file:
                fields = file.read().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    parents[int(name)] = int(fields[1]), int(fields[21]) * _PAGE
    found: dict[int, int] = {}
    todo = [root]
    while todo:
        above = todo.pop()
        below = {pid: size for pid, (parent, size) in parents.items() if parent == above and pid not in found}
        found |= below
        todo += below
    return found


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended
        return os.getsid(0)
