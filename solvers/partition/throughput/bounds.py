"""Bounds on the maximum load that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import TOLERANCE

from ...run import never
from ..sizes import why_impossible
from .quotient import Quotient


def impossible(q: Quotient) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    present = q.counts > 0
    runs = np.isfinite(q.time[present])
    fits = runs & (q.memory <= q.capacity[present][:, None] * (1 + TOLERANCE))
    return why_impossible(
        q.problem.graph.names, lambda g: int(np.argmax(q.group_of == g)), runs, fits, q.memory,
        float(q.capacity[present] @ q.counts[present]),
    )  # fmt: skip


def work_bound(q: Quotient) -> float:
    """Return max(W / sum(n[t] r[t]), max over g of w[g]), seconds: all devices share all work, and no group splits."""
    return max(float(q.work.sum() / (q.counts @ q.speed)) if q.work.any() else 0.0, float(q.work.max()))


def counting_bound(q: Quotient, stopped: Callable[[], bool] = never) -> float:
    """Return the pigeonhole bound, seconds: of the j largest groups some device must take its share, for every j.

    Within a load T a device of type t takes at most as many of the j largest groups as its smallest p[t, g] among
    them add up to T; if all devices together take fewer than j, T is too small (the classic bound of P||Cmax,
    Graham 1969, for unrelated device types).
    """
    types = [int(t) for t in np.flatnonzero(q.counts)]
    order = np.argsort(-q.work, kind="stable")
    low, high = work_bound(q), float(q.work.sum()) * 2 + 1e-300
    sizes = sorted({*range(1, min(len(order), 257)), *np.geomspace(1, len(order), 64).astype(int).tolist()})
    for j in sizes:
        if stopped():
            break
        # cumulative: the least time of c of the j largest groups on type t
        sums = [np.cumsum(np.sort(q.time[t][order[:j]])) for t in types]
        if _takes(q, types, sums, low) >= j:
            continue
        a, b = low, high
        for _ in range(50):
            middle = (a + b) / 2
            a, b = (a, middle) if _takes(q, types, sums, middle) >= j else (middle, b)
        low = a
    return low


def _takes(q: Quotient, types: list[int], sums: list[FloatArray], limit: float) -> int:
    return sum(
        int(q.counts[t] * np.searchsorted(s, limit * (1 + TOLERANCE), "right"))
        for t, s in zip(types, sums, strict=True)
    )


def load_ceiling(q: Quotient) -> float:
    """Return a load that no device can exceed, seconds."""
    finite = np.where(np.isfinite(q.time), q.time, 0.0)
    return float(finite.max(axis=0).sum() + sum(cost for _, cost in q.nets)) * 1.01 + 1e-12
