"""`gangplan slurm`: decide for a cluster that Slurm runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.hybrid.online import Scheduler
from gangplan.instances import InstanceError

from ..doors.clusters import has_begun
from ..doors.core import Core
from ..doors.slurm.client import Away
from ..doors.slurm.rounds import Rounds
from ..doors.slurm.view import View, tracks_memory
from . import options
from .output import emit
from .whatif import Set, with_settings

_LOG = "append each event and decision to this file, and go on with it if it is there"
_MARK = "place jobs with this comment, and no others"


def slurm(
    log: Annotated[str, typer.Option(help=_LOG, metavar="FILE")] = "gangplan-slurm.jsonl",
    interval: Annotated[float, typer.Option(help="between rounds", metavar="SECONDS", parser=options.number)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="do one round and end")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show decisions, beside Slurm's; change nothing")] = False,
    mark: Annotated[str, typer.Option(help=_MARK, metavar="TEXT")] = "gangplan",
    settings: Set = None,
) -> int:
    """Place the jobs of Slurm that are submitted by `sbatch --hold --comment=gangplan`, and release them there."""
    if not interval > 0:
        raise InstanceError("interval", f"{interval!r} is not a positive number")
    view, memory = View.read(), tracks_memory()
    path = None if dry_run else Path(log)
    changed = with_settings({}, settings or [])
    if path and has_begun(path):
        scheduler = Scheduler.open(path)
    else:
        scheduler = Scheduler(view.fleet, **changed, log=path)
    rounds = Rounds(Core(scheduler, path), mark, _warn, memory, act=not dry_run)
    while True:
        try:
            for line in rounds.round(view):
                emit(line)
        except Away as error:
            _warn(str(error))
        if once or dry_run:
            return 0
        time.sleep(interval)
        view = View.read()


def _warn(text: Any) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
