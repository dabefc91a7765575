"""Priority lists: who is placed first, and on how many GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .decode import decode, decoding
from .prepare import EARLIEST, Ints, Prepared

_ROOM = 50_000_000
"""Jobs times nodes."""
Order = Callable[[Prepared, FloatArray, FloatArray], FloatArray]
"""Makes keys (ascending is first) of (prepared, seconds and GPU-seconds of each job's option), all float64 (n,)."""


def _urgent(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    # with equal deadlines, or none, the shorter first
    return np.asarray(np.where(np.isfinite(p.deadline), p.deadline, p.release + p.seconds.sum() + seconds))


def _smith(p: Prepared, seconds: FloatArray, work: FloatArray) -> FloatArray:
    gain = np.where(np.isfinite(p.price) & (p.slope == 0), p.price, p.slope)
    return np.asarray(p.release + work / np.maximum(gain, 1e-12 * gain.max() or 1.0) * gain.mean() / p.cluster.total)


Listed = tuple[float, Ints, Ints, str]
ORDERS: dict[str, Order] = {
    "fifo": lambda p, seconds, work: p.release,
    "shortest": lambda p, seconds, work: p.release + seconds,
    "smith": _smith,
    "smith_now": lambda p, seconds, work: work / np.maximum(p.slope, 1e-12 * p.slope.max() or 1.0),
    "urgent": _urgent,
    "largest": lambda p, seconds, work: -work,
}
"""First come first served, shortest, least work a weight (Smith 1956) with and without regard to releases, earliest
deadline, most work."""


def wishes(p: Prepared) -> dict[str, Ints]:
    """Return ways to choose the degrees: options, or `EARLIEST`, int64 (n,)."""
    work = p.gpus * p.seconds
    # as if every job before it had to wait for the cluster: one more second costs as many GPUs
    fair = max(1.0, p.cluster.total / 8)
    return {
        "earliest finish": np.full(p.n, EARLIEST),
        "least work": p.first_least(work, EARLIEST),
        "balanced": p.first_least(work + fair * p.seconds, EARLIEST),
    }


class Lists:
    """Every order with every choice of degrees, decoded one after the other: as far as there is time.

    Attributes:
        best: (goal, order, wish, name) of the best so far; the goal is inf if there is none.
    """

    def __init__(self, p: Prepared) -> None:
        self.p = p
        self.best: Listed = (np.inf, np.arange(p.n), np.full(p.n, EARLIEST), "")
        self._left = self._all()

    def _all(self) -> Iterator[Listed]:
        p = self.p
        if p.n * p.cluster.nodes > _ROOM:
            return  # profiles of all nodes would not fit into memory
        for how, wish in wishes(p).items():
            typical = np.where(wish >= 0, wish, p.first[:-1])
            typical = np.minimum(typical, max(0, len(p.gpus) - 1))
            seconds = p.seconds[typical] if len(p.gpus) else np.zeros(p.n)
            work = seconds * p.gpus[typical] if len(p.gpus) else np.zeros(p.n)
            for name, keys in ORDERS.items():
                order = np.argsort(keys(p, seconds, work), kind="stable")
                for value in decoding(p, order, wish):
                    yield value, order, wish, f"{name}, {how}"

    def __iter__(self) -> Iterator[Listed]:
        """Go on with what has not been decoded; the goal is inf of a list that is not decoded to its end."""
        for found in self._left:
            if found[0] < self.best[0]:
                self.best = found
            yield found


@lru_cache(maxsize=1)
def lists_of(p: Prepared) -> Lists:
    """Return the lists of a problem, which several methods of a solve ask for."""
    return Lists(p)


def start_lists(p: Prepared) -> list[Listed]:
    """Return (goal, order, wish, name) of every order with every choice of degrees, best first."""
    return sorted((found for found in Lists(p) if found[0] < np.inf), key=lambda x: x[0])


def best_list(run: Run, p: Prepared) -> Listed:
    """Return the best list, or the best of those decoded until the run has stopped."""
    known = lists_of(p)
    for _ in known:
        if run.stopped:
            break
    return known.best


def lists(run: Run, p: Prepared) -> None:
    """Offer the best schedule of all priority lists."""
    if run.stopped:
        return
    value, order, wish, name = best_list(run, p)
    if np.isfinite(value):
        _, option, start, rows = decode(p, order, wish)
        run.offer(p.plan(option, start, rows), f"list: {name}")
