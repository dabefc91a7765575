"""The command line: `gangplan`, or `python -m gangplan`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gangplan.instances import InstanceError

BAD_INPUT = 2
"""Exit code for input that cannot be used; the line on stderr says why."""

INTERRUPTED = 130
"""Exit code after Ctrl-C while there is nothing to show yet; a solve gives its best plan."""

_START = 60.0
"""Seconds that an interpreter waits, rather than computes, to begin."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: without the program's name; by default those of this process.
    """
    started = time.perf_counter()
    if arguments is None:
        started -= _age()  # the limit is end to end
    from .app import Abort, ClickError, app

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
    """Say in one line what is wrong with the input."""
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return BAD_INPUT
