"""Bounds on the maximum load that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

import numpy as np

from gangplan.instances.verify import TOLERANCE

from .quotient import Quotient


def impossible(q: Quotient) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    present = q.counts > 0
    names = q.problem.graph.names
    homeless = ~np.isfinite(q.time[present]).any(axis=0)
    if homeless.any():
        op = names[int(np.argmax(q.group_of == np.argmax(homeless)))]
        return f"no device type of the cluster runs op {op} and all ops colocated with it"
    fits = np.isfinite(q.time[present]) & (q.memory <= q.capacity[present][:, None] * (1 + TOLERANCE))
    if not fits.any(axis=0).all():
        g = int(np.argmin(fits.any(axis=0)))
        op = names[int(np.argmax(q.group_of == g))]
        return f"memory: op {op} and its colocated ops need {q.memory[g]:.6g} bytes, more than any device that runs them has"
    total = float(q.capacity[present] @ q.counts[present])
    if q.memory.sum() > total * (1 + TOLERANCE):
        return f"memory: the ops need {q.memory.sum():.6g} bytes, all devices together have {total:.6g}"
    return None


def work_bound(q: Quotient) -> float:
    """Return max(W / sum(n[t] r[t]), max over g of w[g]), seconds: all devices share all work, and no group splits."""
    return max(float(q.work.sum() / (q.counts @ q.speed)) if q.work.any() else 0.0, float(q.work.max()))
