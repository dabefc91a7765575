"""Let nothing that a submission starts survive it: namespaces of Linux where they can be had, else it is swept up."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

from gangplan.solvers.processes import Child, can_fork

_USER = 0x10000000
_PIDS = 0x20000000
_NETWORK = 0x40000000
_MOUNTS = 0x00020000
"""Linux's ``CLONE_NEWUSER``, ``CLONE_NEWPID``, ``CLONE_NEWNET`` and ``CLONE_NEWNS``."""
_PRIVATE = 0x44000
"""``MS_REC | MS_PRIVATE``: mounts of this process are seen by its children alone."""
_READ_ONLY = 1
"""``MS_RDONLY``."""
_ENTERED = 7
"""Exit code of the process that tries; of one that fails it is 0."""


@cache
def namespaces() -> bool:
    """Return whether this system lets a process have namespaces of its own: Linux does unless it is told not to."""
    if not can_fork():
        return False
    child = Child(_try)
    child.join(5.0)
    child.kill()
    return child.exitcode == _ENTERED


def words() -> str:
    """Return a sentence for people: what becomes of what a submission starts."""
    if namespaces():
        return "Each call ran in namespaces of its own: what it started ended with it, and it had no network."
    return "This system gives no namespaces: processes that a call left behind were looked for and ended."


def enter(hidden: Iterable[str] = ()) -> None:
    """Give the children of this process namespaces: all end with the first, without network and the hidden folders.

    Raises:
        OSError: if the system does not allow it.
    """
    _unshare(_USER | _PIDS | _MOUNTS | _NETWORK)
    _mount("none", "/", None, _PRIVATE)
    for folder in hidden:
        with suppress(FileNotFoundError):
            _mount("none", folder, b"tmpfs", _READ_ONLY)


def settle() -> None:
    """As the first process of new namespaces, see its own processes alone, and keep hidden folders hidden."""
    with suppress(OSError):  # a container may have covered parts of /proc
        _call("unshare", _MOUNTS)  # whoever watches sees all processes
        _mount("none", "/proc", b"proc", 0)
    with suppress(OSError):  # there may be as many as are allowed
        _unshare(_USER | _MOUNTS)  # what was mounted before cannot be taken away from now on


def _try() -> None:
    enter()
    os._exit(_ENTERED)


def _unshare(kinds: int) -> None:
    """Leave namespaces for new ones, in which this user keeps its number."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", kinds)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _mount(source: str, target: str, kind: bytes | None, flags: int) -> None:
    _call("mount", source.encode(), os.fsencode(target), kind, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
