"""Bounds on the makespan that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .model import Prepared


def impossible(p: Prepared) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    names = p.problem.graph.names
    homeless = ~np.isfinite(p.group_time[p.types]).any(axis=0)
    if homeless.any():
        op = names[p.members[int(np.argmax(homeless))][0]]
        return f"no device type of the cluster runs op {op} and all ops colocated with it"
    fits = p.allowed.any(axis=1)
    if not fits.all():
        g = int(np.argmin(fits))
        op, need = names[p.members[g][0]], p.group_memory[g]
        return f"memory: op {op} and its colocated ops need {need:.6g} bytes; no device that runs them has that"
    total = float(p.capacity.sum())
    if p.group_memory.sum() > total * (1 + 1e-9):
        return f"memory: the ops need {p.group_memory.sum():.6g} bytes, all devices together have {total:.6g}"
    return None


def heads(p: Prepared) -> FloatArray:
    """Return the least time at which each op can start, whatever the devices, float64 (n,)."""
    head = [0.0] * p.n
    seconds, (first, index) = p.fastest.tolist(), p.predecessors
    for v in p.order.tolist():
        head[v] = max((head[u] + seconds[u] for u in index[first[v] : first[v + 1]].tolist()), default=0.0)
    return np.array(head)


def tails(p: Prepared) -> FloatArray:
    """Return the least time between the end of each op and the end of all, float64 (n,)."""
    tail = [0.0] * p.n
    seconds, (first, index) = p.fastest.tolist(), p.successors
    for v in p.order[::-1].tolist():
        tail[v] = max((seconds[w] + tail[w] for w in index[first[v] : first[v + 1]].tolist()), default=0.0)
    return np.array(tail)


def path_bound(p: Prepared) -> float:
    """Return the longest path of fastest times, seconds."""
    return float((heads(p) + p.fastest + tails(p)).max())
