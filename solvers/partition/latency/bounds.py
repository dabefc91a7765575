"""Bounds on the latency that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

import numpy as np

from gangplan.instances.graph import heaviest_paths

from ..sizes import why_impossible
from .reduced import ReducedLatency


def impossible(r: ReducedLatency) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    runs = np.array([np.isfinite(r.group_time[slot.kind]) for slot in r.slots])
    total = sum(slot.capacity for slot in r.slots)
    return why_impossible(
        r.problem.graph.names,
        lambda g: int(np.flatnonzero(np.isin(r.item_of, r.groups[g]))[0]),
        runs,
        r.fits.T,
        r.group_memory,
        total,
    )


def path_bound(r: ReducedLatency) -> float:
    """Return the longest path with each item as fast as any device runs it, seconds."""
    kinds = sorted({slot.kind for slot in r.slots})
    return max(heaviest_paths(range(r.n_items), r.neighbours[0], r.time[kinds].min(axis=0).tolist())[0])


def ceiling(r: ReducedLatency) -> float:
    """Return more seconds than everything takes one after the other, wherever it runs."""
    finite = np.where(np.isfinite(r.time), r.time, 0.0)
    calls = len(r.callers)
    paid = sum(cost * min(calls, 1 + len(consumers)) for _, consumers, cost in r.nets)
    return float(finite.max(axis=0).sum() + paid) * 1.01 + 1e-12
