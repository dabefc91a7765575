"""All patterns of a node that cost less than their jobs pay for: branch and bound over sets of options, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray, IntArray

from ..interrupt import interruptible
from ..run import Run
from .options import Kinship, Options
from .prepare import Batch

DEEPEST = 32
"""Options of a pattern at most; a deeper search is not complete."""


class Pricing:
    """Searches the patterns of a kind of node, many times at other prices."""

    def __init__(self, batch: Batch, kin: Kinship, options: Options) -> None:
        self.options = options
        speeds = batch.problem.speeds
        self.table = np.stack(
            [options.cpu, options.memory, options.rate, options.compute, options.hidden, options.fixed, options.nic]
        ).astype(np.float64)
        self.marks = np.stack(
            [options.family, options.gpus, options.model, options.split, options.adds, options.workers > 0]
        ).astype(np.int64)
        self.host = np.ascontiguousarray(speeds.host, dtype=np.float64)
        self.apart = np.ascontiguousarray(kin.apart)
        self.many = np.array([len(jobs) for jobs in kin.members], dtype=np.int64)
        self.room = np.array(options.room, dtype=np.float64)

    def search(
        self,
        run: Run,
        pays: FloatArray,
        limit: float,
        most: int,
        keep_best: bool,
        steps: int,
    ) -> tuple[FloatArray, FloatArray, IntArray, bool]:
        """Find the patterns whose cost less what their jobs pay is below `limit`.

        Args:
            run: the solve; once it has stopped the search gives up.
            pays: what is paid for each option.
            limit: the search is for what is below.
            most: keep so many.
            keep_best: whether of more the best are kept, and else the search ends there.
            steps: sets looked at before it gives up.

        Returns:
            Reduced costs (n,), costs (n,), options (n, d) with -1 behind the last, and whether none can be missing.
        """
        if not len(pays):
            return np.zeros(0), np.zeros(0), np.zeros((0, 1), dtype=np.int64), True
        tables = self.table, self.marks, self.host, self.apart, self.many, self.room
        over = np.zeros(1, dtype=np.bool_)
        count, complete, reduced, cost, chosen = interruptible(
            lambda: _search(*tables, pays, limit, most, keep_best, steps, over),
            lambda: over.fill(True),
            lambda: run.stopped,
        )
        order = np.argsort(reduced[:count], kind="stable")
        return reduced[order], cost[order], chosen[order], bool(complete)


@njit(cache=True)
def _cost(table: Any, marks: Any, x: int, slower: float, gangs: int) -> float:
    c = table[3, x] * (1.0 + slower)
    crossing = table[6, x] * gangs
    s = table[5, x] + crossing if marks[4, x] else max(table[5, x], crossing)
    return float(table[2, x] * max(c, table[4, x] * c + s))


@njit(cache=True, nogil=True)
def _search(  # noqa: PLR0912, PLR0915 -- one compiled loop
    table: Any,
    marks: Any,
    host: Any,
    apart: Any,
    many: Any,
    room: Any,
    pays: Any,
    limit: float,
    most: int,
    keep_best: bool,
    steps: int,
    over: Any,
) -> tuple[int, bool, Any, Any, Any]:
    """Depth first; a list of options that may follow for each depth, those that gain most a GPU first.

    Another thread may set `over[0]`, which ends it.
    """
    n, models = len(pays), len(host)
    found, costs = np.empty(most), np.empty(most)
    sets = np.full((most, DEEPEST), -1, dtype=np.int64)
    count, complete, worst = 0, True, 0
    cand = np.empty((DEEPEST + 1, n), dtype=np.int64)
    dens = np.empty((DEEPEST + 1, n))
    size = np.zeros(DEEPEST + 1, dtype=np.int64)
    at = np.zeros(DEEPEST + 1, dtype=np.int64)
    chosen = np.full(DEEPEST + 1, -1, dtype=np.int64)
    slower = np.zeros((DEEPEST + 1, DEEPEST + 1))
    gangs = np.zeros(DEEPEST + 1, dtype=np.int64)
    value = np.zeros(DEEPEST + 1)
    left = np.zeros((DEEPEST + 1, 3))
    left[0, :] = room
    filled = np.zeros(len(many))
    more = np.empty(models)
    suffers = np.empty(models)
    least = np.empty(n)
    depth = 0
    fresh = True
    while depth >= 0:
        if fresh:
            # what the chosen lose at least, and do to others, by model
            fresh = False
            for k in range(models):
                more[k] = 0.0
                suffers[k] = 0.0
            for i in range(depth):
                x = chosen[i]
                if not marks[5, x]:
                    continue
                for k in range(models):
                    suffers[k] += host[k, marks[2, x]]
                    h = host[marks[2, x], k]
                    if marks[3, x]:
                        more[k] += table[2, x] * table[4, x] * table[3, x] * h
                    else:
                        before = _cost(table, marks, x, slower[depth, i], 1)
                        more[k] += _cost(table, marks, x, slower[depth, i] + h, 1) - before
            start = at[depth - 1] - 1 if depth else 0
            stop = size[depth - 1] if depth else n
            m = 0
            for i in range(start, stop):
                x = cand[depth - 1, i] if depth else i
                if marks[1, x] > left[depth, 0] or table[0, x] > left[depth, 1] or table[1, x] > left[depth, 2]:
                    continue
                family = marks[0, x]
                same = 0
                clash = False
                for y in chosen[:depth]:
                    if marks[0, y] == family:
                        same += 1
                    if apart[marks[0, y], family]:
                        clash = True
                if clash or same >= many[family]:
                    continue
                k = marks[2, x]
                own = _cost(table, marks, x, suffers[k] if marks[5, x] else 0.0, gangs[depth] + marks[3, x]) - pays[x]
                own += more[k] if marks[5, x] else 0.0
                cand[depth, m] = x
                dens[depth, m] = own / marks[1, x] if marks[1, x] else -1e300
                least[m] = own
                m += 1
            order = np.argsort(dens[depth, :m], kind="mergesort")
            xs, ds, ls = cand[depth, :m][order], dens[depth, :m][order], least[:m][order]
            free, steepest = 0.0, 0.0
            for i in range(m):
                if ds[i] == -1e300:
                    free += min(0.0, ls[i])
                else:
                    steepest = min(steepest, ds[i])
            kept = 0
            for i in range(m):
                rest = max(0.0, left[depth, 0] - marks[1, xs[i]])
                if value[depth] + ls[i] + free + rest * steepest < limit:
                    cand[depth, kept] = xs[i]
                    dens[depth, kept] = ds[i] if ds[i] > -1e300 else -1e300
                    kept += 1
            size[depth] = kept
            at[depth] = 0
            # the free ones, first in the list, gain no more than this together
            value_free = free
            slower[depth, DEEPEST] = value_free
        i = at[depth]
        if i >= size[depth] or depth >= DEEPEST:
            if depth >= DEEPEST:
                complete = False
            depth -= 1
            continue
        # the rest fills the GPUs left in order of gain; a family is taken at its largest, not twice
        filled[:] = 0.0
        gain, space = 0.0, left[depth, 0]
        if dens[depth, i] == -1e300:
            gain = slower[depth, DEEPEST]
        for k in range(i, size[depth]):
            d = dens[depth, k]
            if d == -1e300:
                continue
            if d >= 0 or space <= 0:
                break
            x = cand[depth, k]
            family = marks[0, x]
            amount = float(marks[1, x])
            if many[family] == 1:
                amount = max(0.0, amount - filled[family])
                filled[family] += amount
            else:
                amount *= many[family]
            amount = min(amount, space)
            gain += d * amount
            space -= amount
        if value[depth] + gain >= limit:
            depth -= 1
            continue
        at[depth] = i + 1
        steps -= 1
        if steps < 0 or over[0]:
            complete = False
            break
        x = cand[depth, i]
        crossing = gangs[depth] + marks[3, x]
        chosen[depth] = x
        total, paid = 0.0, 0.0
        own = 0.0
        for k in range(depth):
            y = chosen[k]
            slower[depth + 1, k] = slower[depth, k]
            if marks[5, x] and marks[5, y]:
                slower[depth + 1, k] += host[marks[2, y], marks[2, x]]
                own += host[marks[2, x], marks[2, y]]
            total += _cost(table, marks, y, slower[depth + 1, k], crossing)
            paid += pays[y]
        slower[depth + 1, depth] = own
        total += _cost(table, marks, x, own, crossing)
        paid += pays[x]
        reduced = total - paid
        if reduced < limit:
            if count < most:
                slot = count
                count += 1
            elif keep_best:
                slot = worst
            else:
                complete = False
                break
            found[slot], costs[slot] = reduced, total
            sets[slot, :] = -1
            sets[slot, : depth + 1] = chosen[: depth + 1]
            if keep_best and count == most:
                worst = int(np.argmax(found))
                limit = min(limit, found[worst])
        gangs[depth + 1] = crossing
        value[depth + 1] = reduced
        left[depth + 1, 0] = left[depth, 0] - marks[1, x]
        left[depth + 1, 1] = left[depth, 1] - table[0, x]
        left[depth + 1, 2] = left[depth, 2] - table[1, x]
        depth += 1
        fresh = True
    return count, complete, found, costs, sets
