"""A bound that needs no solver: the least time in which a path of the graph can be done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.verify import TOLERANCE

from ...run import Run, never
from .bounds import ceiling
from .call_cut import CallCut
from .chain import Chain, longest
from .reduced import ReducedLatency

_WORK = 2e9
"""Nets times pairs of places that a path may have."""
_NOTEWORTHY = 1e-3
"""Relative growth of a bound that is worth telling at once."""


def chains(r: ReducedLatency, stopped: Callable[[], bool] = never) -> list[Chain]:
    """Return paths worth bounding by: the longest on hosts, on accelerators with transfers, and in items."""
    cost = np.zeros(r.n_items)
    for a, _, c in r.nets:
        cost[a] += c
    finite = np.where(np.isfinite(r.time), r.time, 0.0)
    hosts = sorted({slot.kind for slot in r.slots if slot.host})
    calls = [*r.by_type]
    weights = [np.ones(r.n_items)]
    if calls:
        weights.insert(0, finite[calls].min(axis=0) + cost)
    if hosts:
        weights.insert(0, finite[hosts].min(axis=0))
    # of a path that would take too long every so manieth item: the bound holds for them too
    most = int((_WORK / (1 + len(r.nets))) ** 0.5)
    paths = (longest(r, weight).path for weight in weights)
    thinned = dict.fromkeys(path[:: -(-len(path) // most)] for path in paths)
    return [Chain(r, path, stopped) for path in thinned]


class ChainBound:
    """The least time in which one path can be done, by a recurrence on its intervals.

    With b(i, j) a bound on the seconds of a call on p[i..j], at first `Chain.loads` and then sharpened by minimum cuts
    where the recurrence would use it:

        f(c, j) = min(f(c, j - 1) + host(p[j-1]), min over i < j of f(c - 1, i) + b(i, j - 1))

    Calls on the path come one after the other, so f(k, m) is a bound on the latency.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.cut = CallCut(chain, ceiling(chain.r))
        self.types = sorted(chain.loads)
        m = len(chain.path)
        self.loads = [chain.loads[t].copy() for t in self.types]
        self.least = np.min(self.loads, axis=0) if self.loads else np.full((m, m), np.inf)
        self.sharp = np.zeros((m, m), dtype=bool)

    def run(self, run: Run, by: str = "chain") -> None:
        """Raise the bound of `run` until its intervals are all sharp or there is no time."""
        most = len(self.chain.r.callers)
        told, counted = 0.0, False
        while True:
            value, intervals = self._counted(most) if counted else self._free()
            if not np.isfinite(value):
                run.prove_infeasible(by)
                return
            dull = [interval for interval in intervals if not self.sharp[interval]]
            done = not dull and len(intervals) <= most
            if done or value > told * (1 + _NOTEWORTHY):
                run.raise_bound(value * (1 - TOLERANCE), by)
                told = value
            if done or run.stopped:
                run.raise_bound(value * (1 - TOLERANCE), by)
                return
            counted = counted or not dull
            for interval in dull:
                self._sharpen(*interval)

    def _sharpen(self, i: int, j: int) -> None:
        best = np.inf
        for t, loads in zip(self.types, self.loads, strict=True):
            if not np.isfinite(loads[i, j]) or loads[i, j] >= best:
                continue
            best = min(best, loads[i, j] + self.cut.least(i, j, t))
        self.least[i, j] = max(best, self.least[i, j])
        self.sharp[i, j] = True

    def _free(self) -> tuple[float, list[tuple[int, int]]]:
        host, m = self.chain.host, len(self.chain.path)
        f, start = np.zeros(m + 1), np.full(m + 1, -1)
        for j in range(1, m + 1):
            f[j], start[j] = _step(f, f, self.least, host, j)
        return float(f[-1]), _intervals([start] * m, m)

    def _counted(self, most: int) -> tuple[float, list[tuple[int, int]]]:
        host, m = self.chain.host, len(self.chain.path)
        f = np.concatenate([[0.0], np.cumsum(host)])
        starts: list[IntArray] = []
        for _ in range(most):
            fewer, f, start = f, np.zeros(m + 1), np.full(m + 1, -1, dtype=np.int32)
            for j in range(1, m + 1):
                f[j], start[j] = _step(fewer, f, self.least, host, j)
            starts.append(start)
        return float(f[-1]), _intervals(starts, m)


def _intervals(starts: list[IntArray], j: int) -> list[tuple[int, int]]:
    """Return the intervals before place j, the last first, of as many calls, each with the place where it starts."""
    found, waiting = list[tuple[int, int]](), list(starts)
    while j > 0 and waiting:
        i = int(waiting[-1][j])
        if i >= 0:
            waiting.pop()
            found.append((i, j - 1))
        j = i if i >= 0 else j - 1
    return found


def _step(before: FloatArray, f: FloatArray, least: FloatArray, host: FloatArray, j: int) -> tuple[float, int]:
    through = before[:j] + least[:j, j - 1]
    i = int(through.argmin())
    waited = float(f[j - 1] + host[j - 1])
    return (waited, -1) if waited <= through[i] else (float(through[i]), i)


def chain_bound(run: Run, r: ReducedLatency) -> None:
    """Raise the bound by paths."""
    for chain in chains(r, lambda: run.stopped):
        if run.stopped:
            return
        ChainBound(chain).run(run)
