"""One process at a time writes to a folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gangplan.instances import InstanceError

LOCK = ".gangplan.lock"
"""The file that is locked. It stays: a lock is on the file as long as its process lives, and no longer."""


@contextmanager
def locked(folder: Path, field: str = "folder") -> Iterator[None]:
    """Hold a folder, so that no two processes write to it; the system lets go when a process ends, however it does.

    Args:
        folder: is made if it is not there.
        field: what errors call it.

    Raises:
        InstanceError: if another one holds it, naming that, or nothing can be written there.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        words = f"{str(folder)!r} is no folder that can be written to: {error.strerror}"
        raise InstanceError(field, words) from None
    with os.fdopen(file, "r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read(200).decode(errors="replace").strip() or "unknown"
            words = f"is in use by another process ({holder}); wait for it, or choose another folder"
            raise InstanceError(field, words, str(folder)) from None
        except OSError:  # a file system without locks
            yield
            return
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        lock.flush()
        yield
