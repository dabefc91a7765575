"""Jobs started one after the other, all promising beginnings side by side: exact while they are few, else a beam."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .decode import data_of
from .lp_bound import Prices
from .prepare import Ints, Prepared
from .prices import cheapest, grid_of
from .starts import Labels, at_least, dominated, extend

_POINTS = 4096
"""Times at which what is to come is tabled."""
_LOOKS = 60
_STEPS, _LABELS, _JOBS = 10_000_000, 20_000, 50
"""Between two looks at the clock: jobs times options of beginnings that are extended; beginnings compared; jobs whose
costs are tabled."""


class Sequence:
    """The search over starts for one set of prices.

    Attributes:
        best: the cheapest schedule found: option and start of each job, with -1 for one left out.
        value: what it costs.
    """

    def __init__(self, run: Run, p: Prepared, prices: Prices) -> None:
        self.run, self.p, self.prices = run, p, prices
        self.data = data_of(p)
        cost, at = np.zeros(len(p.gpus)), np.zeros(len(p.gpus))
        self.grid = grid_of(prices.pi, prices.zero, prices.step)
        cheapest(self.grid, self.data, p.cluster.total, cost, at)
        mine = [min((float(cost[o]) for o in p.options(j)), default=np.inf) for j in range(p.n)]
        self.least = np.minimum(mine, p.price)
        horizon = prices.step * len(prices.pi)
        self.fine = horizon / (_POINTS - 1) or 1.0
        points = prices.zero + self.fine * np.arange(_POINTS)
        self.rest = np.zeros((p.n, _POINTS))
        given = self.grid, self.data, self.least, p.price - self.least, points
        for j in range(0, p.n, _JOBS):
            if run.stopped:
                break
            at_least(*given, j, min(j + _JOBS, p.n), self.rest)
        self.wide = max(1, min(p.n, p.cluster.total))
        self.value = np.inf
        self.best: tuple[Ints, FloatArray] | None = None

    def search(self, width: int, known: float, step: float) -> float:
        """Keep `width` beginnings of each length; return what any schedule costs that was not looked at.

        It is inf if none that is cheaper than both `known` and `value` was left out.

        Args:
            width: see above.
            known: the cost of a schedule, or more than any costs.
            step: values that are cheaper by less than this are of no interest.
        """
        p = self.p
        proved = np.inf
        budget = known - step - self.prices.bound
        labels = self._root()
        history: list[tuple[Ints, Ints, FloatArray]] = []
        for _ in range(p.n):
            labels, parent, option, lost = self._layer(labels, width, budget)
            proved = min(proved, self.prices.bound + lost)
            if self.run.stopped:
                return self.prices.bound
            if not len(parent):
                break
            history.append((parent, option, labels[1]))
            self._close(labels, history)
            budget = min(budget, self.value - step - self.prices.bound)
        return float(proved)

    def _root(self) -> Any:
        labels = self._room(1)
        labels[0][:] = 0
        for column in labels[1:7]:
            column[:] = 0
        labels[1][:], labels[2][:] = self.prices.zero, -1
        labels[5][:] = self.rest[:, 0].sum()
        return labels

    def _room(self, count: int) -> Labels:
        words = (self.p.n + 63) // 64
        return Labels(
            started=np.empty((count, words), dtype=np.uint64),
            time=np.empty(count),
            last=np.empty(count, dtype=np.int64),
            true=np.empty(count),
            used=np.empty(count),
            bound=np.empty(count),
            running=np.empty(count, dtype=np.int64),
            ends=np.empty((count, self.wide)),
            held=np.empty((count, self.wide), dtype=np.int32),
        )

    def _layer(self, labels: Any, width: int, budget: float) -> Any:
        """Return (labels, parents, options, least bound of those left out) one job further."""
        p = self.p
        lost = np.inf
        room = 2 * width + 2 * len(p.gpus)
        new, parent, chosen = self._room(room), np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        kept: Any = None
        begin, few = 0, max(1, _STEPS // (p.n * max(1, len(p.gpus))))
        while begin < len(labels[1]) and not self.run.stopped:
            made, begin = extend(
                self.grid, self.data, p.cluster.total, self.least, self.rest, self.fine, budget,
                labels, new, parent, chosen, begin, min(begin + few, len(labels[1])),
            )  # fmt: skip
            part = (Labels(*(column[:made] for column in new)), parent[:made], chosen[:made])
            if kept is not None:
                part = (
                    Labels(*(np.concatenate([a, b]) for a, b in zip(kept[0], part[0], strict=True))),
                    np.concatenate([kept[1], part[1]]),
                    np.concatenate([kept[2], part[2]]),
                )
            kept, left = self._best_of(part, width)
            lost = min(lost, left)
        if kept is None:
            kept = (self._room(0), np.zeros(0, int), np.zeros(0, int))
        return (*kept, lost)

    def _best_of(self, part: Any, width: int) -> Any:
        labels, parent, chosen = part
        if not len(parent):
            return part, np.inf
        order = np.lexsort((labels[3], *labels[0].T))
        out, group = np.zeros(len(order), dtype=np.bool_), 0
        for begin in range(0, len(order), _LABELS):
            if self.run.stopped:
                break
            group = dominated(order, labels, _LOOKS, begin, min(begin + _LABELS, len(order)), group, out)
        keep = np.flatnonzero(~out)
        lost = np.inf
        if len(keep) > width:
            keep = keep[np.argpartition(labels[5][keep], width)]
            lost = float(labels[5][keep[width]])
            keep = keep[:width]
        return (Labels(*(column[keep] for column in labels)), parent[keep], chosen[keep]), lost

    def _close(self, labels: Any, history: Any) -> None:
        """Look at every beginning as if what has not started were left out."""
        p = self.p
        started, true = labels[0], labels[3]
        price = np.zeros(len(true))
        for j in range(p.n):
            inside = (started[:, j // 64] >> np.uint64(j % 64)) & np.uint64(1)
            price += np.where(inside.astype(bool), 0.0, p.price[j])
        value = true + price
        i = int(np.argmin(value))
        if value[i] + p.constant < self.value:
            self.value = float(value[i]) + p.constant
            option, start = np.full(p.n, -1), np.zeros(p.n)
            for parent, chosen, time in reversed(history):
                o = int(chosen[i])
                option[p.owner[o]], start[p.owner[o]] = o, time[i]
                i = int(parent[i])
            self.best = option, start
