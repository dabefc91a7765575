"""Run a solver that is deaf even to its own clock in a process that can be killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

from .fork import Child

T = TypeVar("T")

_POLL, _GRACE = 0.05, 0.1
"""Seconds between looks at the clock, and that an answer may come late."""


def forked(work: Callable[[], T], stopped: Callable[[], bool]) -> T | None:
    """Return `work()`, done in a fork, or `None` if that is killed: by a crash, or soon after `stopped` turns true.

    Raises:
        KeyboardInterrupt: on Ctrl-C, at once.
        OSError: if the system has no process to give.
        Exception: what `work` raises.
    """
    inbox, outbox = Pipe(duplex=False)
    try:
        child = Child(lambda: _tell(work, outbox))
    finally:
        outbox.close()
    try:
        found: T | None = _answer(inbox, stopped)
    finally:
        child.kill()
        child.join(_GRACE)
        inbox.close()
    return found


def _answer(inbox: Connection, stopped: Callable[[], bool]) -> Any:
    late: float | None = None
    while not inbox.poll(_POLL):
        if stopped():
            late = time.perf_counter() if late is None else late
            if time.perf_counter() - late > _GRACE:
                return None
    try:
        done, value = inbox.recv()
    except EOFError:  # it crashed
        return None
    if not done:
        raise value
    return value


def _tell(work: Callable[[], Any], outbox: Connection) -> None:
    with suppress(OSError):  # nobody listens any more
        try:
            outbox.send((True, work()))
        except Exception as error:
            outbox.send((False, error))
