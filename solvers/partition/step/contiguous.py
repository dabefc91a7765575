"""Cut the job into runs, one a device, where the least has to be sent: what to do when memory is scarce."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...run import Run, watched
from .heft import offer_placement
from .model import Prepared
from .repair import repair
from .schedule import mean_rank, ranked

_SLACK = (1.0, 1.03, 1.1, 1.2, 1.4)
"""How much more memory than there is, before the repair."""


def contiguous(run: Run, p: Prepared) -> None:
    """Offer the best plan that gives each device a run of groups, in topological order, as if nothing ran in parallel.

    A dynamic programme over (device, groups so far): the time of the runs, and for each boundary the longest delay of
    what crosses it, forward and backward. Memory is kept, or first a little more is allowed and then repaired: a better
    boundary may be just out of reach. Devices come in their own order, then fastest first; one may stay empty.
    """
    order = ranked(p, mean_rank(p))
    rank = np.empty(p.n, dtype=np.int32)
    rank[order] = np.arange(p.n, dtype=np.int32)
    # a group is where its first op is
    first = np.array([rank[list(ops)].min() for ops in p.members])
    sequence = np.argsort(first).astype(np.int32)
    speed = p.time.clip(max=1e6 * max(1e-12, float(p.fastest.sum()))).sum(axis=1)[p.type_of]
    own = np.arange(p.n_devices)
    for devices in [own] if len(p.types) == 1 else [own, np.argsort(speed, kind="stable")]:
        for slack in _SLACK if p.memory_binds else _SLACK[:1]:
            if run.stopped:
                return
            try:
                where = _cut(p, sequence, devices.astype(np.int32), p.room * slack, lambda: run.stopped)
            except TimeoutError:
                return
            fixed = None if where is None else repair(run, p, where.tolist())
            if fixed is not None and not run.stopped:
                offer_placement(run, p, fixed, order, "contiguous")


def _cut(
    p: Prepared, sequence: IntArray, devices: IntArray, room: FloatArray, stopped: Callable[[], bool]
) -> IntArray | None:
    """Return the device of each group so that all fit into `room`, but for rounding, or `None` if no cut does."""
    count = len(sequence)
    memory = _running(p.group_memory[sequence])
    crossing = _crossing(p, sequence, stopped)
    best = np.full(count + 1, np.inf)
    best[0] = 0.0
    # the device before a boundary, and for each device where its run begins that ends there, -1 for no run
    last, begin = np.full(count + 1, -1), np.full((len(devices), count + 1), -1)
    for i, d in enumerate(devices.tolist()):
        took = p.group_time[p.type_of[d]][sequence]
        seconds, unable = _running(np.where(np.isfinite(took), took, 0.0)), _running(~np.isfinite(took) * 1.0)
        entered = best + np.where(last >= 0, crossing[p.level[d, last], np.arange(count + 1)], 0.0)
        best, last = best.copy(), last.copy()
        for j in watched(range(1, count + 1), stopped):
            low = max(np.searchsorted(memory, memory[j] - room[d]), np.searchsorted(unable, unable[j]))
            if low >= j:
                continue
            total = entered[low:j] - seconds[low:j]
            b = int(low + total.argmin())
            if total[b - low] + seconds[j] < best[j]:
                best[j], last[j], begin[i, j] = total[b - low] + seconds[j], d, b
    if not np.isfinite(best[count]):
        return None
    where, j = np.empty(count, dtype=np.int32), count
    for i in reversed(range(len(devices))):
        if begin[i, j] >= 0:
            where[sequence[begin[i, j] : j]] = devices[i]
            j = begin[i, j]
    return where


def _running(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


def _crossing(p: Prepared, sequence: IntArray, stopped: Callable[[], bool]) -> FloatArray:
    """Return the longest delay of what goes forward over each boundary plus that of what comes back, (L + 1, G + 1).

    The last row, for level -1, is 0: one device.
    """
    place = np.empty(p.n_groups, dtype=np.int32)
    place[sequence] = np.arange(p.n_groups, dtype=np.int32)
    u, w = p.edges
    a, b = place[p.group_of[u]], place[p.group_of[w]]
    found = np.zeros((len(p.delay) + 1, p.n_groups + 1))
    for level, delay in enumerate(p.delay):
        for low, high in ((a, b), (b, a)):
            worst = np.zeros(p.n_groups + 1)
            # longer ones overwrite shorter ones
            for e in watched(np.argsort(delay[u], kind="stable").tolist(), stopped):
                if low[e] < high[e]:
                    worst[low[e] + 1 : high[e] + 1] = delay[u[e]]
            found[level] += worst
    return found
