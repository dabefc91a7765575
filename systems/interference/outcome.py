"""What came of a case, and its check from the rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.snapshots import Snapshots, Truth

from .case import Case

_TOLERANCE = 1e-6
"""Of epochs, as a share of all."""


@dataclass(frozen=True, slots=True, eq=False)
class InterferenceOutcome:
    """When n jobs ran, and where, each from its start to its end.

    Attributes:
        case: what was simulated.
        start, finish: seconds, float64 (n,).
        where: all jobs, in one snapshot.
    """

    case: Case
    start: FloatArray
    finish: FloatArray
    where: Snapshots

    @property
    def jct(self) -> FloatArray:
        """Seconds from submission to end, float64 (n,)."""
        return np.asarray(self.finish - self.case.jobs.submit)

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end."""
        return float(self.finish.max() - self.case.jobs.submit[0])


def check(outcome: InterferenceOutcome, before: tuple[float, Truth] | None = None) -> list[str]:
    """Return what is wrong with an outcome, nothing if all is well.

    Every job is of its type and has the tasks it asked for, on one set of rows from start to end, which says that it
    was never moved; it starts with an interval and after its submission; no server holds more than it has; and the
    epochs that the truth gives to who is where, from event to event, add up to those of the job.

    Args:
        before: when an interval began with which the truth became that of the case, and what it was before.
    """
    case, jobs = outcome.case, outcome.case.jobs
    if faults := _shape(outcome):
        return faults
    where = outcome.where
    for name, tasks, asked in (("workers", where.workers, jobs.workers), ("ps", where.ps, jobs.servers)):
        wrong = np.flatnonzero(where.total(tasks) != asked)
        faults += [f"job {j} does not have the {name} it asked for" for j in wrong[:3].tolist()]
    beat = outcome.start / case.interval
    faults += [f"job {j} starts amid an interval" for j in np.flatnonzero(np.abs(beat - np.round(beat)) > 1e-9)[:3]]
    faults += [f"job {j} starts before it is there" for j in np.flatnonzero(outcome.start < jobs.submit)[:3]]
    return faults or _capacity(outcome) + _progress(outcome, before)


def _shape(outcome: InterferenceOutcome) -> list[str]:
    """Return what keeps the rows and times from being those of the jobs of the case."""
    where, jobs, m = outcome.where, outcome.case.jobs, outcome.case.fleet.n_nodes
    if len(where) != 1 or {len(x) for x in (where.kind, outcome.start, outcome.finish)} != {len(jobs)}:
        return [f"the outcome is not of the {len(jobs)} jobs of the case"]
    if not (np.isfinite(outcome.finish).all() and np.isfinite(outcome.start).all()):
        return ["a job did not run to its end"]
    bad = (where.server < 0) | (where.server >= m) | (np.minimum(where.workers, where.ps) < 0)
    bad |= where.workers + where.ps < 1
    faults = [f"job {j} is of another type" for j in np.flatnonzero(where.kind != jobs.kind)[:3].tolist()]
    faults += [f"job {j} has a row that is no server with tasks" for j in np.unique(where.job[bad])[:3].tolist()]
    twice = len(np.unique(where.job * m + where.server)) < len(where.server)
    return faults + ["a job has a server twice"] * (twice and not faults)


def _capacity(outcome: InterferenceOutcome) -> list[str]:
    where, jobs, case = outcome.where, outcome.case.jobs, outcome.case
    job = where.job
    need = where.workers[:, None] * jobs.worker[job] + where.ps[:, None] * jobs.server[job]
    faults = []
    for time in np.unique(outcome.start):
        there = (outcome.start[job] <= time) & (outcome.finish[job] > time)
        used = np.stack([np.bincount(where.server[there], need[there, x], case.fleet.n_nodes) for x in range(3)])
        over = (case.capacity < used.T / (1 + 1e-9)).any(axis=1)
        faults += [f"server {s} holds more than it has at {time:g} s" for s in np.flatnonzero(over)[:1].tolist()]
    return faults[:3]


def _progress(outcome: InterferenceOutcome, before: tuple[float, Truth] | None) -> list[str]:
    """Add up the epochs under the truth between all events."""
    until, early = (0.0, outcome.case.truth) if before is None else before
    jobs = outcome.case.jobs
    done = np.zeros(len(jobs))
    times = np.unique(np.concatenate([outcome.start, outcome.finish, [until]]))
    for begin, end in pairwise(times.tolist()):
        there = np.flatnonzero((outcome.start <= begin) & (outcome.finish > begin))
        if len(there):
            done[there] += (end - begin) * (early if begin < until else outcome.case.truth).speeds(
                outcome.where.keep(there)[0]
            )
    wrong = np.flatnonzero(np.abs(done / jobs.epochs - 1) > _TOLERANCE)
    return [f"job {j} did {done[j]:g} of {jobs.epochs[j]:g} epochs" for j in wrong[:3].tolist()]
