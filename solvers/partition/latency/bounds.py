"""Bounds on the latency that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

import numpy as np

from gangplan.instances.verify import TOLERANCE

from .reduced import Reduced


def impossible(r: Reduced) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    names = r.problem.graph.names
    runs = np.array([np.isfinite(r.group_time[slot.kind]) for slot in r.slots])
    homeless = ~runs.any(axis=0)
    if homeless.any():
        op = names[_op(r, int(np.argmax(homeless)))]
        return f"no device type of the cluster runs op {op} and all ops colocated with it"
    if not r.fits.any(axis=1).all():
        g = int(np.argmin(r.fits.any(axis=1)))
        words = f"memory: op {names[_op(r, g)]} and its colocated ops need {r.group_memory[g]:.6g} bytes"
        return f"{words}; no device that runs them has that"
    total = sum(slot.capacity for slot in r.slots)
    if r.memory.sum() > total * (1 + TOLERANCE):
        return f"memory: the ops need {r.memory.sum():.6g} bytes, all devices together have {total:.6g}"
    return None


def _op(r: Reduced, g: int) -> int:
    return int(np.flatnonzero(np.isin(r.item_of, r.groups[g]))[0])


def path_bound(r: Reduced) -> float:
    """Return the longest path with each item as fast as any device runs it, seconds."""
    kinds = sorted({slot.kind for slot in r.slots})
    before, _ = r.neighbours
    least = r.time[kinds].min(axis=0).tolist()
    for v in range(r.n_items):
        least[v] += max((least[u] for u in before[v]), default=0.0)
    return float(max(least))


def ceiling(r: Reduced) -> float:
    """Return more seconds than everything takes one after the other, wherever it runs."""
    finite = np.where(np.isfinite(r.time), r.time, 0.0)
    calls = len(r.callers)
    paid = sum(cost * min(calls, 1 + len(consumers)) for _, consumers, cost in r.nets)
    return float(finite.max(axis=0).sum() + paid) * 1.01 + 1e-12
