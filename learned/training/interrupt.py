"""Ctrl-C asks a loop to stop after what it is doing, so that what it saves is whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """A context in which the first Ctrl-C only sets `asked`, and the second one interrupts as ever."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        # only the main thread may say what a signal does; elsewhere none arrives
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before: Any = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
