"""A schedule from who goes where and before whom: the starts of a model, made exact."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import SchedulePlan

from .prepare import POOL, Ints, Prepared
from .profile import earliest, new, occupy

Place = list[tuple[int, int]]
"""(node, GPUs) of a job; empty for counted GPUs."""


def seated(p: Prepared, option: Ints, start: FloatArray, places: list[Place]) -> SchedulePlan | None:
    """Start the jobs in the order of `start` on their places, each as early as it can.

    Args:
        p: the problem.
        option: int (n,), -1 for a job left out.
        start: float (n,), in any unit: only their order counts.
        places: of each job.

    Returns:
        The plan, `None` if a job is late in times as they are.
    """
    room = new(p.cluster.nodes, p.cluster.gpus, p.n)
    begin = np.zeros(p.n)
    rows: list[tuple[int, int, int]] = []
    for j in np.lexsort((np.arange(p.n), start)).tolist():
        o = int(option[j])
        if o < 0:
            continue
        seconds = float(p.seconds[o])
        parts = places[j] if p.cluster.kind != POOL else [(0, int(p.gpus[o]))]
        at, before = float(p.release[j]), -np.inf
        while at > before:
            before = at
            for v, amount in parts:
                at = max(at, earliest(room, v, at, amount, seconds))
        if not at + seconds <= p.deadline[j]:
            return None
        begin[j] = at
        for v, amount in parts:
            occupy(room, v, at, at + seconds, amount)
        if p.cluster.kind != POOL:
            rows += [(j, v, amount) for v, amount in parts]
    return p.plan(np.asarray(option), begin, np.array(rows, dtype=np.int64).reshape(-1, 3).T)
