"""The standard streams of the command, whatever they were made of: closed, full, or read by nobody."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import suppress

_closed: list[bool] = []
"""Holds an entry if stdout was closed when the command began."""


def settle() -> None:
    """Put something in the place of streams that are closed; else the next file that is opened would be taken for one.

    What is logged to a stream that is full is lost, without a word on it.
    """
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free
    if sys.stdout is None:
        _closed.append(True)
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    logging.raiseExceptions = False


def closed() -> bool:
    """Return whether stdout was closed when the command began."""
    return bool(_closed)


def lost(error: OSError) -> str:
    """Give stdout up, so that the interpreter does not try once more as it ends; return what is wrong with it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return (error.strerror or str(error)).lower()


def finish() -> None:
    """End quietly: Ctrl-C has nothing left to interrupt, and what cannot be flushed is lost."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
