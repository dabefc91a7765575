"""`gangplan slurm`: decide for a cluster that Slurm runs."""

from __future__ import annotations

import signal
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

from gangplan.instances import InstanceError

from ..doors.core import Core
from ..doors.slurm.client import AwayError, run
from ..doors.slurm.reasons import reasons
from ..doors.slurm.rounds import Rounds
from ..doors.slurm.view import View, tracks_memory
from .decide import end
from .options import require_positive
from .output import emit
from .whatif import LOG, Set, scheduler_with, with_settings

_DRY_RUN = "show what it would decide on all jobs that wait, beside Slurm's estimate; change nothing"


def slurm(
    log: Annotated[str, LOG, "FILE"] = "gangplan-slurm.jsonl",
    interval: Annotated[float, "between rounds", "SECONDS"] = 2.0,
    once: Annotated[bool, "do one round and end"] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    spread: Annotated[bool, "let jobs that a rack could hold have nodes of several, rather than wait for one"] = False,
    mark: Annotated[str, "place jobs with this word in their comment, and no others", "WORD"] = "gangplan",
    settings: Set = None,
) -> int:
    """Place the jobs of Slurm that are submitted by sbatch --hold --comment=gangplan, and release them there.

    It needs the rights of an operator of Slurm, and goes on after kill -9 of itself or of slurmctld.
    """
    require_positive(interval=interval)
    if len(mark.split()) != 1:
        raise InstanceError("mark", f"{mark!r} is not one word")
    with_settings({}, settings or [])  # before Slurm is asked
    signal.signal(signal.SIGTERM, end)
    view, path = View.read(), None if dry_run else log
    core = Core(scheduler_with(settings or [], view.fleet, path), None if path is None else Path(path))
    rounds = Rounds(core, None if dry_run else mark, _warn, memory=tracks_memory(), spread=spread)
    if dry_run:
        rounds.round(view)
        _compare(rounds, view)
        return 0
    if not once:
        _warn(f"{view.fleet.n_nodes} nodes, {len(view.jobs)} jobs; Ctrl-C ends")
    away = ""
    while True:
        try:
            view = View.read(view)
            for line in rounds.round(view):
                emit(line)
            if once:
                return 0
            away = ""
        except AwayError as error:
            if once:
                raise
            if away != str(error):
                _warn(f"{error}; trying again")
            away = str(error)
        time.sleep(interval)


def _compare(rounds: Rounds, view: View) -> None:
    """Print each job that waits: when and where it starts by gangplan, or why not, and by Slurm."""
    scheduler, why = rounds.core.scheduler, reasons(rounds.core.scheduler, view)
    lines = run("squeue", "--start", "--noheader", "--array", "--format=%i|%S|%Y").splitlines()
    theirs = dict(line.split("|", 1) for line in lines if "|" in line)
    emit(f"{'job':12} {'user':12} {'gangplan':34} Slurm")
    for name, job in view.jobs.items():
        if job.waits:
            ours = why.get(name) or rounds.said(job)
            if name in scheduler.running:
                ours = f"now on {','.join(rounds.places(name))}"
            if name in scheduler.waiting:
                start = scheduler.explain(name).earliest  # type: ignore[union-attr]
                when = "" if start is None else datetime.fromtimestamp(start).isoformat("T", "seconds")
                ours = ", ".join(filter(None, (when, why[name])))
            start, _, nodes = theirs.get(name, "N/A").partition("|")
            slurm = "not known" if start == "N/A" else f"{start} on {nodes}"
            emit(f"{name:12} {job.user:12} {ours:34} {slurm}")


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
