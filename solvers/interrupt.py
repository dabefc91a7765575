"""Run a solver that is deaf to Ctrl-C so that Ctrl-C, and a deadline, still reach it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")


def interruptible(work: Callable[[], T], stop: Callable[[], None], stopped: Callable[[], bool]) -> T:
    """Return `work()`, run in a thread; call `stop` when `stopped` turns true or on Ctrl-C.

    Native solvers hold the main thread, where Python handles signals; here the main thread only waits.

    Raises:
        KeyboardInterrupt: after `work` has returned, so that what it found is kept.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    done = Event()  # not join: a KeyboardInterrupt there makes Python 3.11 take the thread for ended (bpo-45274)

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the caller below
            failure.append(error)
        finally:
            done.set()

    Thread(target=body, daemon=True).start()
    interrupt: KeyboardInterrupt | None = None
    while not done.is_set():
        try:
            done.wait(0.05)
        except KeyboardInterrupt as error:
            interrupt = error
        if interrupt or stopped():
            stop()
    if interrupt:
        raise interrupt
    if failure:
        raise failure[0]
    return outcome[0]
