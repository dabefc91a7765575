"""Split a chain of blocks into stages, exactly: least (m - 1/v) slowest + sum/v + end, within memory.

The recurrence goes from stage to stage over the blocks before it. For each limit on the slowest stage it finds the
least sum, so limits are tried from the least possible on until a longer slowest stage cannot pay any more.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import stage_finish, stage_memory, under_way
from gangplan.instances.verify import TOLERANCE

from .family import Chain, Costs, Family, Segment

_SLACK = 1 - 1e-12


class Split(NamedTuple):
    """What was found of a family.

    Attributes:
        bound: no layout of it takes less.
        value: seconds of the plan, infinite if there is none below what was asked for.
        plan: the best; `None` likewise.
    """

    bound: float
    value: float = inf
    plan: LayoutPlan | None = None


class Intervals:
    """The stages that a chain may have, by first block and number of blocks; those that cost the same are one.

    Args:
        kinds: of each block, int32 (L,).
        most: blocks of a stage.
    """

    def __init__(self, kinds: IntArray, most: int) -> None:
        count = len(kinds)
        self.most = most = min(most, count)
        sums = np.zeros((int(kinds.max()) + 1, count + 1), dtype=np.int64)
        sums[kinds, np.arange(1, count + 1)] = 1
        sums = sums.cumsum(axis=1)
        begin, size = np.divmod(np.arange(count * most), most)
        end = begin + size + 1
        inside = end <= count
        begin, end, size = begin[inside], end[inside], size[inside]
        _, first, which = np.unique(sums[:, end] - sums[:, begin], axis=1, return_index=True, return_inverse=True)
        self.begin, self.end = begin[first], end[first]
        self.of = np.full((count + 1, most + 1), len(first))  # by end and size; the last is no stage
        self.of[end, size + 1] = which.ravel()
        self.before = np.clip(np.arange(count + 1)[:, None] - np.arange(most + 1), 0, None)


class Stage(NamedTuple):
    """What each interval costs as one stage, float64 (n + 1,); the last is no stage, and infinite."""

    seconds: FloatArray
    end: FloatArray
    selective: IntArray
    full: IntArray


def stage_table(
    problem: LayoutProblem, chain: Chain, family: Family, segment: Segment, stage: int, at: Intervals
) -> Stage:
    """Return the least seconds of each interval as a stage, computing again as little as memory allows."""
    i, j = at.begin, at.end
    pool, degrees = problem.pools[segment.pool], family.degrees(segment)
    m = problem.batch // (family.data * family.micro_batch)
    own, experts = chain.own[j] - chain.own[i], chain.experts[j] - chain.experts[i]
    passes = chain.forward[j] - chain.forward[i], chain.backward[j] - chain.backward[i]
    ends = stage_finish(problem, pool, degrees, own, experts, chain.update[j] - chain.update[i], passes)
    gathered: FloatArray | float = 0.0
    if chain.gathered.any():
        gathered = np.array([chain.gathered[a:b].max() for a, b in zip(i, j, strict=True)])
    static = sum(stage_memory(problem, degrees, own, experts, 0.0, gathered))
    depth = under_way(family.stages, stage, m, family.virtual)
    # bytes a micro-batch too many
    excess = chain.kept[j] - chain.kept[i] - (pool.memory * (1 + TOLERANCE) - static) / depth
    again, full, selective = np.zeros(len(i)), np.zeros(len(i), dtype=np.int64), np.zeros(len(i), dtype=np.int64)
    again[static > pool.memory * (1 + TOLERANCE)] = inf
    if len(over := np.flatnonzero((excess > 0) & np.isfinite(again))):
        again[over], full[over], selective[over] = _again(chain, i[over], j[over], excess[over])
    seconds = chain.seconds[j] - chain.seconds[i] + again + family.virtual * chain.handed * (family.stages > 1)
    finish = np.asarray(ends.reduction + ends.update)
    none = np.zeros(1, dtype=np.int64)
    return Stage(
        np.append(seconds, inf),
        np.append(np.where(np.isfinite(seconds), finish, inf), inf),
        np.append(selective, none),
        np.append(full, none),
    )


def _again(chain: Chain, i: IntArray, j: IntArray, excess: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the least seconds that save so many bytes, and of how many layers: all, and norms and functions."""
    (light, whole), (little, much) = chain.again, chain.saved
    upto = np.minimum(i[:, None] + np.arange((j - i).max() + 1), j[:, None])  # all is computed again up to here
    rest = excess[:, None] - (much[upto] - much[i, None])
    end = np.searchsorted(little, little[upto] + np.maximum(rest, 0.0) * _SLACK)
    end = np.where(rest <= 0, upto, np.maximum(end, upto))
    seconds = whole[upto] - whole[i, None] + light[np.minimum(end, j[:, None])] - light[upto]
    seconds[end > j[:, None]] = inf
    best = seconds.argmin(axis=1)
    row = np.arange(len(i))
    a, b = upto[row, best], np.minimum(end[row, best], j)
    full = chain.layers[a] - chain.layers[i]
    return seconds[row, best], full.astype(np.int64), (chain.layers[b] - chain.layers[a]).astype(np.int64)


class Splitter:
    """Split families of layouts of one problem.

    Args:
        problem: what is split.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem, self.costs = problem, Costs(problem)
        self._intervals: dict[int, Intervals] = {}

    def split(self, family: Family, below: float = inf) -> Split:
        """Return the best layout of a family that takes less than `below`, and a bound of all of them."""
        interleaved = family.virtual > 1
        get = self.costs.flat if interleaved and self.costs.mixed else self.costs.chain
        chains = [get(x.pool, family.degrees(x)) for x in family.segments]
        if any(chain is None for chain in chains):
            return Split(inf)
        m, v, p = self.problem.batch // (family.data * family.micro_batch), family.virtual, family.stages
        least = [chain.seconds for chain in chains if chain is not None]
        count = len(self.costs.kinds)
        # a stage may take what is left of `below` if all others take nothing
        longest = (below - min(x[-1] for x in least) / v) / (m - 1 / v) if m * v > 1 else below
        most = max(int(np.searchsorted(_shortest(x), longest, side="right")) for x in least)
        if most * p < count:
            return Split(below)
        at = self._of(min(most, count - v * (p - 1)))
        rows, stage = [], 0
        for segment, chain in zip(family.segments, chains, strict=True):
            assert chain is not None
            for _ in range(segment.stages):
                table = stage_table(self.problem, chain, family, segment, stage, at)
                rows.append((table, _choices(at, stage, p, v)))
                stage += 1
        return self._best(family, rows, at, m, below)

    def _best(
        self, family: Family, rows: list[tuple[Stage, IntArray]], at: Intervals, m: int, below: float
    ) -> Split:
        v = family.virtual
        seconds = [table.seconds[which] for table, which in rows]
        ends = [table.end[which] for table, which in rows]
        shortest, first = _walk(seconds, at, np.maximum)[0], _walk(ends, at, np.maximum)[0]
        if not np.isfinite(shortest):
            return Split(inf)
        total = _walk(seconds, at, np.add)[0]
        weight = m - 1 / v
        bound = weight * shortest + total / v + first
        found = Split(bound)
        if bound >= below:
            return found
        limits = np.unique(np.concatenate([x[(x >= shortest) & (x < inf)] for x in seconds]))
        best = below
        for limit in limits.tolist():
            if weight * limit + total / v + first >= best * _SLACK:
                break
            end = inf
            while True:
                allowed = [np.where((x <= limit) & (e < end), x, inf) for x, e in zip(seconds, ends, strict=True)]
                sum_of, sizes = _walk(allowed, at, np.add)
                if not np.isfinite(sum_of) or weight * shortest + sum_of / v + first >= best * _SLACK:
                    break
                ways, value, end = self._value(rows, sizes, m, v)
                if value < best:
                    best, found = value, Split(bound, value, self._plan(family, rows, sizes, ways))
        if found.plan is None:
            return Split(max(bound, best))
        return found._replace(bound=found.value if not (v > 1 and self.costs.mixed) else bound)

    def _value(
        self, rows: list[tuple[Stage, IntArray]], sizes: list[int], m: int, v: int
    ) -> tuple[list[int], float, float]:
        """Return the interval of each stage, the seconds of a step, and the part at its end."""
        after, ways = 0, []
        for (_, which), size in zip(rows, sizes, strict=True):
            after += size
            ways.append(int(which[after, size]))
        taken = [table.seconds[w] for (table, _), w in zip(rows, ways, strict=True)]
        end = max(float(table.end[w]) for (table, _), w in zip(rows, ways, strict=True))
        return ways, (m - 1 / v) * max(taken) + sum(taken) / v + end, end

    def _plan(
        self, family: Family, rows: list[tuple[Stage, IntArray]], sizes: list[int], ways: list[int]
    ) -> LayoutPlan:
        v = family.virtual
        parts = [[size // v + (c < size % v) for size in sizes] for c in range(v)]
        if v > 1 and (extra := sizes[-1] % v):  # the head comes last
            for c in range(v):
                parts[c][-1] = sizes[-1] // v + (c >= v - extra)
        pairs = [(table.selective[w], table.full[w]) for (table, _), w in zip(rows, ways, strict=True)]
        selective, full = zip(*((int(a), int(b)) for a, b in pairs), strict=True)
        return family.plan(np.array([x for row in parts for x in row], dtype=np.int32), selective, full)

    def _of(self, most: int) -> Intervals:
        """Return the intervals of at most so many blocks, or a few more."""
        size = next(x for x in (4, 8, 16, 32, 64, 128, 1 << 30) if x >= most)
        if size not in self._intervals:
            self._intervals[size] = Intervals(self.costs.kinds, size)
        return self._intervals[size]


def _shortest(total: FloatArray) -> FloatArray:
    """Return the least seconds of so many blocks in a row, float64 (L + 1,), from one block on."""
    return np.array([(total[n:] - total[:-n]).min() for n in range(1, len(total))])


def _choices(at: Intervals, stage: int, stages: int, virtual: int) -> IntArray:
    """Return the interval of each end and size for a stage; interleaved, it may lie anywhere among the layers."""
    none = len(at.begin)
    if virtual == 1:
        return at.of
    count, most = at.of.shape[0] - 1, at.most
    which = np.full_like(at.of, none)
    for size in range(virtual, most + 1):
        if stage == 0:
            which[size, size] = at.of[size, size]
        elif stage == stages - 1:
            which[count, size] = at.of[count, size]
        elif size <= count - 2:
            which[size + 1 : count, size] = at.of[1 + size, size]
    return which


def _walk(rows: list[FloatArray], at: Intervals, join: np.ufunc) -> tuple[float, list[int]]:
    """Return the least sum, or maximum, of a way through all stages, and the blocks of each."""
    count = at.of.shape[0] - 1
    reach = np.full(count + 1, inf)
    reach[0] = 0.0
    taken = []
    ends = np.arange(count + 1)
    for row in rows:
        ways = join(reach[at.before], row)
        sizes = ways.argmin(axis=1)
        taken.append(sizes)
        reach = ways[ends, sizes]
    after, found = count, []
    if np.isfinite(reach[count]):
        for sizes in reversed(taken):
            found.append(int(sizes[after]))
            after -= found[-1]
    return float(reach[count]), found[::-1]
