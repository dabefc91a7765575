"""Run a solver that is deaf even to its own clock in a process that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")

_POLL, _GRACE = 0.05, 0.1
"""Seconds between looks at the clock, and that an answer may come late."""


def can_fork() -> bool:
    """Return whether there may be a fork here: on Linux, and not in a process that must have no children."""
    return sys.platform.startswith("linux") and not multiprocessing.current_process().daemon


def forked(work: Callable[[], T], stopped: Callable[[], bool]) -> T | None:
    """Return `work()`, done in a fork, or `None` if that is killed: by a crash, or soon after `stopped` turns true.

    Raises:
        KeyboardInterrupt: on Ctrl-C, at once.
        Exception: what `work` raises.
    """
    context = multiprocessing.get_context("fork")
    inbox, outbox = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, outbox), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        process.start()
    outbox.close()
    try:
        found: T | None = _answer(inbox, stopped)
    finally:
        with suppress(OSError):
            process.kill()
        process.join()
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


def _child(work: Callable[[], Any], outbox: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the parent to hear
    try:
        try:
            outbox.send((True, work()))
        except Exception as error:
            outbox.send((False, error))
    finally:
        os._exit(0)
