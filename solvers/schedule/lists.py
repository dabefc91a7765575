"""Priority lists: who is placed first, and on how many GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .decode import decode
from .prepare import EARLIEST, Ints, Prepared

Order = Callable[[Prepared, FloatArray, FloatArray], FloatArray]
"""Makes keys (ascending is first) of (prepared, seconds and GPU-seconds of each job's option), all float64 (n,)."""


def _urgent(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    # with equal deadlines, or none, the shorter first
    return np.asarray(np.where(np.isfinite(p.deadline), p.deadline, p.release + p.seconds.sum() + seconds))


def _smith(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    gain = np.where(np.isfinite(p.price) & (p.slope == 0), p.price, p.slope)
    return np.asarray(p.release + work / np.maximum(gain, 1e-12) * gain.mean() / p.cluster.total)


ORDERS: dict[str, Order] = {
    "fifo": lambda p, seconds, work: p.release,
    "shortest": lambda p, seconds, work: p.release + seconds,
    "smith": _smith,
    "smith_now": lambda p, seconds, work: work / np.maximum(p.slope, 1e-12),
    "urgent": _urgent,
    "largest": lambda p, seconds, work: -work,
}
"""First come first served, shortest, least work a weight (Smith 1956) with and without regard to releases, earliest
deadline, most work."""


def wishes(p: Prepared) -> dict[str, Ints]:
    """Return ways to choose the degrees: options, or `EARLIEST`, int64 (n,)."""
    none = np.full(p.n, EARLIEST)
    least, even = none.copy(), none.copy()
    for j in range(p.n):
        mine = p.options(j)
        if len(mine):
            work = [p.gpus[o] * p.seconds[o] for o in mine]
            least[j] = mine[int(np.argmin(work))]
            # as if every job before it had to wait for the cluster: one more second costs as many GPUs
            fair = max(1.0, p.cluster.total / 8)
            even[j] = mine[int(np.argmin([w + fair * p.seconds[o] for w, o in zip(work, mine, strict=True)]))]
    return {"earliest finish": none, "least work": least, "balanced": even}


def start_lists(p: Prepared) -> list[tuple[float, Ints, Ints, str]]:
    """Return (goal, order, wish, name) of every order with every choice of degrees, best first."""
    found = []
    for how, wish in wishes(p).items():
        typical = np.where(wish >= 0, wish, p.first[:-1])
        typical = np.minimum(typical, max(0, len(p.gpus) - 1))
        seconds = p.seconds[typical] if len(p.gpus) else np.zeros(p.n)
        work = seconds * p.gpus[typical] if len(p.gpus) else np.zeros(p.n)
        for name, keys in ORDERS.items():
            order = np.argsort(keys(p, seconds, work), kind="stable")
            found.append((decode(p, order, wish)[0], order, wish, f"{name}, {how}"))
    return sorted(found, key=lambda x: x[0])


@lru_cache(maxsize=1)
def best_list(p: Prepared) -> tuple[float, Ints, Ints, str]:
    """Return the first of `start_lists`, which several methods of a solve ask for."""
    return start_lists(p)[0]


def lists(run: Run, p: Prepared) -> None:
    """Offer the best schedule of all priority lists."""
    if run.stopped:
        return
    value, order, wish, name = best_list(p)
    if np.isfinite(value):
        _, option, start, rows = decode(p, order, wish)
        run.offer(p.plan(option, start, rows), f"list: {name}")
