"""The command line: `gangplan`, or `python -m gangplan`."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..early import INTERRUPTED, end_guard  # first: it looks after Ctrl-C while the rest is imported

# ruff: isort: split
from gangplan.instances.errors import InstanceError

from .output import finish, lost, settle, terminal, wrapped

BAD_INPUT = 2
"""Exit code for input that cannot be used, or output that cannot be written; the line on stderr says why."""

_START = 60.0
"""Seconds that an interpreter waits, rather than computes, to begin."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: without the program's name; by default those of this process.
    """
    started = time.perf_counter()
    if arguments is not None:
        return _run(arguments, started)
    settle()
    try:
        return _run(None, started - _age())  # the limit is end to end
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        finish()


def _run(arguments: Sequence[str] | None, started: float) -> int:
    from .app import Abort, ClickError, app

    end_guard()
    try:
        code = app(arguments, prog_name="gangplan", standalone_mode=False, obj=started)
    except InstanceError as error:
        return complain(str(error))
    except Abort:
        return INTERRUPTED
    except ClickError as error:
        # with nothing asked the message is the whole help text
        message = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{message}\n" if message else "")
            return BAD_INPUT
        option = getattr(getattr(error, "param", None), "opts", None)
        if option and type(error).__name__ == "BadParameter":
            message = f"{max(option, key=len)}: {error.message}"
        return complain(message)
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EPIPE, errno.EBADF, errno.EIO):
            raise
        return complain(f"stdout: {lost(error)}")  # of the help, which is not printed by us
    return code if isinstance(code, int) else 0


def _age() -> float:
    """Return the seconds since this process began: by Linux's word, elsewhere what it has computed so far."""
    computed = time.process_time()
    try:
        begun = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - begun / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return computed
    # where clocks are those of another machine, e.g. in a container that was moved, it is not believed
    return age if computed <= age <= computed + _START else computed


def complain(message: str) -> int:
    """Say what is wrong with the input: in one line, which a terminal shows by words."""
    text = f"error: {' '.join(message.split())}"
    with suppress(OSError, ValueError):  # then nobody is told
        text = wrapped(text, terminal()) if sys.stderr.isatty() else text
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    return BAD_INPUT
