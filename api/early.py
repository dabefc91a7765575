"""Ctrl-C while the command is still being imported ends it quietly, with nothing done."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C while there is nothing to show yet; a solve gives its best plan."""


def begin_guard() -> None:
    """Have Ctrl-C end this process at once if it is the command; a program that imports gangplan is left alone.

    An exception would not do: some package is always half imported, and many turn it into one of their own.
    """
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, _leave)


def end_guard() -> None:
    """Have Ctrl-C be an exception again, if it was made to end the process."""
    with suppress(ValueError):  # not the main thread
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    module = sys.argv[:1] == ["-m"] and ("-m", "gangplan") in pairwise(sys.orig_argv)
    return module or Path(sys.argv[0] if sys.argv else "").stem == "gangplan"


def _leave(*_: Any) -> None:
    os._exit(INTERRUPTED)


begin_guard()
