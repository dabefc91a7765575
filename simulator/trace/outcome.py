"""What came of a trace, and the check that no GPU was held twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """When each job ran, and where.

    Attributes:
        workload: the jobs, n of them.
        nodes, gpus: the cluster: how many nodes, and GPUs of each.
        start, finish: seconds, float64 (n,).
        row_job, row_node, row_gpus: int32 (r,), GPUs that a job held on a node; empty if GPUs were only counted.
    """

    workload: Workload
    nodes: int
    gpus: int
    start: FloatArray
    finish: FloatArray
    row_job: IntArray
    row_node: IntArray
    row_gpus: IntArray


def check(outcome: Outcome) -> list[str]:
    """Return what is wrong with a schedule, in words: from the outcome alone, whoever made it."""
    work = outcome.workload
    words = [f"job {work.names[i]} starts before it is submitted" for i in np.flatnonzero(outcome.start < work.submit)]
    wrong = np.abs(outcome.finish - outcome.start - work.duration) > 1e-9 * np.maximum(outcome.finish, 1.0)
    words += [f"job {work.names[i]} does not run for its duration" for i in np.flatnonzero(wrong)]
    if len(outcome.row_job):
        held = np.bincount(outcome.row_job, weights=outcome.row_gpus, minlength=work.n_jobs)
        words += [
            f"job {work.names[i]} holds {held[i]:.0f} GPUs, it needs {work.gpus[i]}"
            for i in np.flatnonzero(held != work.gpus)
        ]
        machine, who, amount = outcome.row_node, outcome.row_job, outcome.row_gpus
        room = outcome.gpus
    else:
        machine, who, amount = np.zeros(work.n_jobs, dtype=np.int32), np.arange(work.n_jobs, dtype=np.int32), work.gpus
        room = outcome.nodes * outcome.gpus
    return words + _overfull(outcome, machine, who, amount, room)


def _overfull(
    outcome: Outcome,
    machine: IntArray,
    who: IntArray,
    amount: IntArray,
    room: int,
) -> list[str]:
    """Sweep over the starts and ends on each machine, ends first."""
    time = np.concatenate([outcome.start[who], outcome.finish[who]])
    change = np.concatenate([amount, -amount])
    where = np.concatenate([machine, machine])
    idle = np.concatenate([outcome.start[who] == outcome.finish[who]] * 2)  # holds GPUs for no time
    order = np.lexsort((change, time, where))
    order = order[~idle[order]]
    if not len(order):
        return []
    used = np.cumsum(change[order])  # what a machine holds comes back to 0 before the next one's turn
    return [
        f"node {where[order[i]]} holds {used[i]} GPUs at {time[order[i]]:.6g} s, it has {room}"
        for i in np.flatnonzero(used > room)[:5]
    ]
