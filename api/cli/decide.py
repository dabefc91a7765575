"""`gangplan decide`: a `Scheduler` behind JSON lines, for a program in any language."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated

from gangplan.instances import InstanceError

from ..doors.core import Core, answer_lines, encoded
from .output import closed
from .shadow import CLUSTER, fleet_of
from .whatif import LOG, Set, scheduler_with


def decide(
    cluster: Annotated[str | None, CLUSTER, "NxM|FILE"] = None,
    settings: Set = None,
    log: Annotated[str | None, LOG, "FILE"] = None,
    sync: Annotated[bool, "have each line of the log on disk before it is answered"] = False,
) -> int:
    """Answer events on stdin, a line of JSON each, by decisions on stdout, a line each.

    Lines are such as {"event": "submit", "now": 0, "job": "a", "gpus": 8, "seconds": 600}, then {"event": "decide"};
    each method of Scheduler is an event. A line that is wrong is answered by an error, and changes nothing.
    """
    fleet = None if cluster is None else fleet_of(cluster)
    scheduler = scheduler_with(settings or [], fleet, log, sync=sync)
    if fleet is not None and encoded(fleet) != encoded(scheduler._state.fleet):
        raise InstanceError("cluster", f"{cluster!r} is not that of the log: resize is an event", log)
    core = Core(scheduler, None if log is None else Path(log))
    if closed():
        raise InstanceError("stdout", "is closed")
    warnings.simplefilter("always", RuntimeWarning)  # each line that the log lacks
    signal.signal(signal.SIGTERM, end)
    answer_lines(core, sys.stdin.buffer, _write)
    return 0


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def end(*_: object) -> None:
    """End quietly, at a signal."""
    raise SystemExit(0)
