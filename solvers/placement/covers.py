"""What room on each node costs at least, and what so much room on all of them costs at least.

Gangs pay for each part the share of their cost that the part has of what they hold, and parts may leave alone. So
nodes are independent but for the number of workers, and with f_n(y) the least cost of y workers on node n

    min sum_n f_n(y_n)  subject to  sum_n y_n >= w   is at least   L(p) = p w + sum_n min_y (f_n(y) - p y),  p >= 0,

which is no more than any set costs. Reduced costs: with r_n(y) = f_n(y) - p y - min_z (f_n(z) - p z) >= 0, a set that
has y workers on node n costs at least L(p) + r_n(y), as that is L(p) with the minimum of node n replaced by its term
of y. So where L(p) + r_n(y) is at least the cost of a known set, no cheaper set has y workers there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from ..nodes import Long, held

GRAIN = 64
"""Units of a resource up to which a node's knapsack is solved to the unit: GPUs of a node, and not bytes."""
SUBSETS = 10
"""Parts of a node up to which all their subsets are looked at, where several resources are asked for."""


class Covers:
    """The least cost of 0, 1, ... workers on each node.

    Args:
        free: of each resource that is asked for and each node, int64 (r, m).
        need: of a worker, above 0, int64 (r,).
        most: workers that a node may have at most, int64 (m,).
        node: of each part, ascending, int64 (p,).
        used: by each part, int64 (r, p).
        blocks: whether no worker may be beside a part, bool (p,).
        share: what a part costs, float64 (p,).
        whole: whether parts leave whole, where that is a dynamic programme; else a fraction of a part may leave.

    Attributes:
        least: no parts whose leaving makes room for y workers cost less, infinite if none do, float64 (m, most + 1).
        exact: whether some cost just that, bool (m,).
    """

    def __init__(
        self, free: Long, need: Long, most: Long, node: Long, used: Long, blocks: BoolArray, share: FloatArray,
        whole: bool = True,
    ) -> None:  # fmt: skip
        m, top = len(most), int(most.max(initial=0))
        self._need, self._node, self._used, self._share, self._blocks = need, node, used, share, blocks
        self._free = free.copy()  # once those have left who let nobody be there
        if blocks.any():
            self._free += held(node[blocks], used[:, blocks], m)
        self._first = firsts(node, m)
        workers = np.arange(top + 1)
        never = workers > most[:, None]
        self._lack = np.maximum(need[:, None, None] * workers - self._free[:, :, None], 0)
        self._lack[:, never] = 0
        self.least = np.zeros((m, top + 1))
        self._took: list[tuple[Long, BoolArray]] = []
        self._last: list[tuple[Long, Long, Long]] = []
        self._sets: dict[tuple[int, int], Long] = {}
        grains = [whole and int(lack.max(initial=0)) <= GRAIN for lack in self._lack]
        for row, grain in enumerate(grains):
            np.maximum(self.least, self._whole(row) if grain else self._fractional(row), out=self.least)
            if grain and len(grains) > 1:
                self._fractional(row)  # says who leaves
        if blocks.any():
            self.least[:, 1:] += np.bincount(node[blocks], share[blocks], m)[:, None]
        self.least[never] = np.inf
        self.exact = np.full(m, grains in ([], [True]))

    def _open(self, row: int) -> Long:
        return np.flatnonzero(~self._blocks & (self._used[row] > 0))

    def _whole(self, row: int) -> FloatArray:
        """Return the least cost of what is lacking of one resource, by a dynamic programme on all nodes at once."""
        lack, parts = self._lack[row], self._open(row)
        m, top = len(lack), int(lack.max(initial=0))
        best = np.full((m, top + 1), np.inf)
        best[:, 0] = 0.0
        node, grid = self._node[parts], np.arange(top + 1)
        rank = np.arange(len(parts)) - firsts(node, m)[node]
        self._took = []
        for k in range(int(rank.max(initial=-1)) + 1):
            i = parts[rank == k]  # of each node the k-th part
            n = self._node[i]
            before = best[n]
            rest = np.maximum(grid - self._used[row, i][:, None], 0)
            then = np.take_along_axis(before, rest, 1) + self._share[i][:, None]
            part, takes = np.full(m, -1), np.zeros((m, top + 1), bool)
            part[n], takes[n] = i, then < before
            best[n] = np.minimum(then, before)
            self._took.append((part, takes))
        return np.asarray(np.take_along_axis(best, lack, 1))

    def _fractional(self, row: int) -> FloatArray:
        """Return the least cost of what is lacking of one resource if parts of parts may leave."""
        parts, lack = self._open(row), self._lack[row]
        price = self._share[parts] / self._used[row, parts]
        order = np.argsort(price)
        order = order[grouped(self._node[parts[order]], len(lack))]
        parts, price = parts[order], np.append(price[order], 0.0)
        amount = np.append(0, np.cumsum(self._used[row, parts]))
        cost = np.append(0.0, np.cumsum(self._share[parts]))
        first = firsts(self._node[parts], len(lack))
        goal = amount[first[:-1]][:, None] + lack
        at = np.maximum(np.searchsorted(amount, goal), 1)  # so many parts leave, the last perhaps in part
        below = cost[at - 1] + (goal - amount[at - 1]) * price[at - 1] - cost[first[:-1]][:, None]
        below[lack == 0] = 0.0
        below[goal > amount[first[1:]][:, None]] = np.inf
        self._last.append((parts, first, np.where(lack > 0, at, first[:-1, None])))
        return np.asarray(np.maximum(below, 0.0))

    def sharpen(self, nodes: Long) -> None:
        """Have the least cost be exact on these nodes, where they have few parts: look at all subsets."""
        for n in nodes[~self.exact[nodes]].tolist():
            here = np.arange(*self._first[n : n + 2])
            out, here = here[self._blocks[here]], here[~self._blocks[here]]
            if len(here) > SUBSETS:
                continue
            chosen = np.arange(2 ** len(here))[:, None] >> np.arange(len(here)) & 1
            room = ((self._free[:, n, None] + self._used[:, here] @ chosen.T) // self._need[:, None]).min(axis=0)
            cost = chosen @ self._share[here] + self._share[out].sum()
            for y in range(1, self.least.shape[1]):
                if np.isfinite(self.least[n, y]):
                    enough = np.flatnonzero(room >= y)
                    i = int(enough[cost[enough].argmin()])
                    self.least[n, y] = max(cost[i], self.least[n, y])
                    self._sets[n, y] = np.append(out, here[chosen[i] > 0])
            self.exact[n] = True

    def parts(self, nodes: Long, workers: Long) -> Long:
        """Return parts that leave so that there is room for so many workers, at least 1, on each of these nodes.

        Of least cost where that is exact.
        """
        chosen = np.zeros(len(self._node), bool)
        if self._blocks.any():
            there = np.zeros(len(self.least), bool)
            there[nodes] = True
            chosen |= self._blocks & there[self._node]
        lack = self._lack[:, nodes, workers]
        if self._sets or not self.exact.all():
            for n, y in zip(nodes.tolist(), workers.tolist(), strict=True):
                if (n, y) in self._sets:
                    chosen[self._sets[n, y]] = True
            rest = ~self.exact[nodes]
            for parts, first, last in self._last:
                low, high = first[nodes[rest]], last[nodes[rest], workers[rest]]
                goes = np.zeros(len(parts) + 1, np.int64)
                np.add.at(goes, low, 1)
                np.add.at(goes, high, -1)
                chosen[parts[np.cumsum(goes)[:-1] > 0]] = True
        elif self._took:
            left = lack[0]
            for part, takes in reversed(self._took):
                i = part[nodes]
                goes = takes[nodes, left] & (i >= 0)
                left = np.where(goes, np.maximum(left - self._used[0, i], 0), left)
                chosen[i[goes]] = True
        return np.flatnonzero(chosen)


def grouped(label: Long, count: int) -> Long:
    """Return the order by label, from 0 to below `count`, equal ones as they are."""
    return np.argsort(
        label.astype(np.uint16) if count < 2**16 else label, kind="stable"
    )  # of 16 bits it is a radix sort


def firsts(label: Long, count: int) -> Long:
    """Return where each label begins in an ascending array, and where the last ends, int64 (count + 1,)."""
    return np.append(0, np.cumsum(np.bincount(label, minlength=count)))


def steps(least: FloatArray) -> FloatArray:
    """Return the slopes of the lower convex hull of each row, worker by worker, float64 (m, most), ascending.

    Minus infinity up to the first finite entry; infinite after the last.
    """
    finite, size = np.isfinite(least), least.shape[1]
    slope, at = np.full((len(least), size - 1), np.inf), finite.argmax(axis=1)
    np.subtract(least[:, 1:], least[:, :-1], out=slope, where=finite[:, 1:] & finite[:, :-1])
    hollow = (slope[:, 1:] < slope[:, :-1]).any(axis=1) | (finite[:, 1:] & ~finite[:, :-1]).any(axis=1)
    y, rows = np.arange(size), np.flatnonzero(hollow)
    slope[rows] = np.where(y[1:] <= at[rows][:, None], -np.inf, np.inf)
    while len(rows):
        ahead = y - at[rows][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(ahead > 0, (least[rows] - least[rows, at[rows]][:, None]) / ahead, np.inf)
        to = rise.argmin(axis=1)
        value = rise[np.arange(len(rows)), to]
        go = np.isfinite(value)
        rows, to, value = rows[go], to[go], value[go]
        within = (y[1:] > at[rows][:, None]) & (y[1:] <= to[:, None])
        slope[rows] = np.where(within, value[:, None], slope[rows])
        at[rows] = to
        rows = rows[to < size - 1]
    return slope


def fill(least: FloatArray, workers: int, slope: FloatArray | None = None) -> tuple[float, float, Long]:
    """Return L(p), the p for which it is largest, and how many workers each node has in a set of about that cost.

    Args:
        least: of each node and number of workers, float64 (m, most + 1).
        workers: in all; there is room for them.
        slope: its `steps`, if they are known.
    """
    slope = steps(least) if slope is None else slope
    flat = slope.ravel()
    price = max(0.0, float(np.partition(flat, workers - 1)[workers - 1]))
    y = np.arange(least.shape[1])
    bound = price * workers + float((least - price * y).min(axis=1).sum())
    counts = (slope < price).sum(axis=1)
    upto = (slope <= price).sum(axis=1)
    more = np.cumsum(upto - counts)
    missing = workers - int(counts.sum())
    whole = more <= missing
    counts = np.where(whole, upto, counts)
    rows = np.arange(len(least))
    for goal in (True, False):  # the cheapest change of a node that adds what is missing; the best that can be spared
        now, short = least[rows, counts], workers - int(counts.sum())
        if (short <= 0) == goal:
            continue
        change = np.where(y - counts[:, None] >= short, least - now[:, None], np.inf)
        n, to = np.unravel_index(int(change.argmin()), change.shape)
        if goal or change[n, to] < 0:
            counts[n] = to
    return bound, price, counts


def combine(least: FloatArray, workers: int, over: Callable[[], bool]) -> Long | None:
    """Return how many workers each node has where all together cost least, by a dynamic programme over nodes.

    Args:
        least: float64 (m, most + 1), infinite where a node may not have so many.
        workers: in all.
        over: called between nodes; if it returns true there is no answer.
    """
    counts = np.isfinite(least).argmax(axis=1)
    open_rows = np.flatnonzero(np.isfinite(least).sum(axis=1) > 1)
    counts[open_rows] = 0
    rest = max(workers - int(counts.sum()), 0)
    table = np.full(rest + 1, np.inf)  # of so many workers or more on the nodes so far
    table[0] = 0.0
    chosen = np.zeros((len(open_rows), rest + 1), np.int32)
    for i, costs in enumerate(least[open_rows]):
        if over():
            return None
        best = np.full(rest + 1, np.inf)
        for y in np.flatnonzero(np.isfinite(costs)).tolist():
            there = np.full(rest + 1, table[0] + costs[y])
            there[y:] = table[: max(rest + 1 - y, 0)] + costs[y]
            better = there < best
            best[better], chosen[i, better] = there[better], y
        table = best
    if not np.isfinite(table[rest]):
        return np.zeros(0, np.int64)
    for i in range(len(open_rows) - 1, -1, -1):
        counts[open_rows[i]] = chosen[i, rest]
        rest = max(rest - int(counts[open_rows[i]]), 0)
    return np.asarray(counts)
