"""Places of options, for models that choose among them, and the schedule of what a model has chosen."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import SchedulePlan

from .prepare import NODES, POOL, RAMP, Ints, Prepared

Place = list[tuple[int, int]]
"""(node, GPUs) of a job; empty for counted GPUs."""


def places(p: Prepared, o: int) -> list[Place]:
    """Return the places of option o: (node, GPUs) of each node it holds; a pool is one node."""
    c, degree = p.cluster, int(p.gpus[o])
    if c.kind == RAMP:
        return [
            [(server, 1) for server in c.server[c.first[b] : c.first[b + 1]].tolist()]
            for b in np.flatnonzero(c.size == degree)
        ]
    if c.kind != NODES:
        return [[(0, degree)]]
    full, rest = divmod(degree, c.gpus)
    found: list[Place] = []
    for nodes in combinations(range(c.nodes), full):
        held = [(v, c.gpus) for v in nodes]
        if rest:
            found += [[*held, (v, rest)] for v in range(c.nodes) if v not in nodes]
        else:
            found.append(held)
    return found


def places_of(p: Prepared, o: int) -> int:
    """Return how many places option o has."""
    c, degree = p.cluster, int(p.gpus[o])
    if c.kind == RAMP:
        return int((c.size == degree).sum())
    if c.kind != NODES:
        return 1
    full, rest = divmod(degree, c.gpus)
    return comb(c.nodes, full) * (c.nodes - full if rest else 1)


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
    from .profile import earliest, new, occupy

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
