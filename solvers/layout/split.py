"""Split a chain of blocks into stages, exactly: least (m - w) slowest + w sum + end, within memory.

Of a micro-batch of all other stages a stage waits the share w, 1/v with v chunks a stage.

The recurrence goes from stage to stage over the blocks before it. For each limit on the slowest stage it finds the
least sum, so limits are tried from the least possible on until a longer slowest stage cannot pay any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.layout.costs import BlockCosts
from gangplan.instances.layout.flags import recomputed
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import handovers, stage_memory, stage_reduction, under_way
from gangplan.instances.verify import TOLERANCE

from .family import LayoutFamily, Segment
from .shapes import FEW, UNSPREAD, First, Shapes, chunks, column, interleaved, spread

if TYPE_CHECKING:
    from .space import Space

_SLACK = 1 - 1e-12
_SIZES = 4, 8, 16, 32, 64, 128
"""Blocks of a stage that shapes are kept for."""


class StageTable(NamedTuple):
    """What each shape costs as one stage, (n + 1,) each; the last is no stage, and infinite."""

    seconds: FloatArray
    end: FloatArray
    selective: IntArray
    full: IntArray


def stage_tables(
    problem: LayoutProblem,
    costs: BlockCosts,
    family: LayoutFamily,
    segment: Segment,
    stages: Sequence[int],
    counts: NDArray[np.int64],
    handed: Sequence[float],
    light: bool = True,
    given: IntArray | None = None,
) -> list[StageTable]:
    """Return the least seconds of each shape as each of some stages, computing again as little as memory allows.

    A micro-batch is exchanged with other stages in `handed` seconds. Norms and functions alone are computed again if
    that is `light`; so many layers as are `given` compute all again.
    """
    pool, degrees = problem.pools[segment.pool], family.degrees(segment)
    m = problem.batch // (family.data * family.micro_batch)
    own, experts = counts @ costs.weights, counts @ costs.expert_weights
    ends = stage_reduction(problem, pool, degrees, own, experts) + counts @ costs.update
    working = np.where(counts > 0, costs.working, 0.0).max(axis=1)
    static = sum(stage_memory(problem, degrees, own, experts, 0.0, working))
    depth = np.array([under_way(family.stages, stage, m, family.virtual) for stage in stages])
    room = pool.memory * (1 + TOLERANCE) - static
    excess = counts @ costs.kept[0] - room / depth[:, None]  # bytes of a micro-batch too many
    again, selective, full = np.zeros(excess.shape), *np.zeros((2, *excess.shape), dtype=np.int64)
    again[:, room < 0] = inf
    over = np.nonzero(((excess > 0) | (given is not None)) & (room >= 0))
    if len(over[0]):
        number = None if given is None else given[over[1]]
        again[over], selective[over], full[over] = _again(costs, counts[over[1]], excess[over], light, number)
    seconds = counts @ costs.seconds()[0] + again + np.array(handed)[:, None]
    finish = np.where(np.isfinite(seconds), ends, inf)
    filled = (seconds, inf), (finish, inf), (selective, 0), (full, 0)
    rows = (np.concatenate([x, np.full((len(x), 1), y)], axis=1, dtype=x.dtype) for x, y in filled)
    return [StageTable(*row) for row in zip(*rows, strict=True)]


def _again(
    costs: BlockCosts, counts: NDArray[np.int64], excess: FloatArray, light: bool, given: IntArray | None
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the least seconds that save so many bytes, and of how many layers: norms and functions, and all.

    For each number of layers that compute all again, first ones first, as few of those after them as suffice compute
    norms and functions again, if any may.
    """
    layers = counts.copy()
    layers[:, [0, -1]] = 0  # embedding and head
    before = np.cumsum(layers, axis=1) - layers
    number = np.arange(layers.sum(axis=1).max() + 1)[None] if given is None else given[:, None]
    whole = np.clip(number[..., None] - before[:, None], 0, layers[:, None])  # of each kind, (n, numbers, K)
    rest = excess[:, None] - whole @ (costs.kept[0] - costs.kept[2])
    seconds, lighter = whole @ costs.again[2], np.zeros_like(rest, dtype=np.int64)
    for kind, saved in enumerate((costs.kept[0] - costs.kept[1]).tolist()):
        if saved > 0 and light:
            left = layers[:, None, kind] - whole[:, :, kind]
            some = np.minimum(left, np.ceil(np.maximum(rest, 0.0) / saved * _SLACK).astype(np.int64))
            rest, lighter = rest - some * saved, lighter + some
            seconds = seconds + some * costs.again[1, kind]
    seconds = np.where(rest > 1e-9 * np.abs(excess[:, None]), inf, seconds)
    seconds[number > layers.sum(axis=1)[:, None]] = inf
    row, best = np.arange(len(counts)), seconds.argmin(axis=1)
    return seconds[row, best], lighter[row, best], np.broadcast_to(number, seconds.shape)[row, best]


def equal(space: Space, family: LayoutFamily, below: float) -> tuple[LayoutPlan | None, float]:
    """Return the best layout below some seconds that the framework runs, with its seconds: `split` by each number.

    Chunks of a stage are as even as can be.
    """
    best, p, v = None, family.stages, family.virtual
    numbers = range(1, -(-(space.count - v * (p - 1)) // v) + FEW)
    for number in (0, *(numbers if space.framework == "megatron" else reversed(numbers))):
        plan, below = split(space, family, below, number)
        best = best if plan is None else plan
    return best, below


def split(
    space: Space, family: LayoutFamily, below: float = inf, number: int | None = None
) -> tuple[LayoutPlan | None, float]:
    """Return the best layout of a family that takes less than some seconds, with its seconds.

    As little is computed again as memory allows: all of a layer only, if there is a framework, and in each stage what a
    number says, if there is one; see `recomputed`.
    """
    problem, kinds, count, framework = space.problem, space.kinds, space.count, space.framework
    every = [space.blocks(x.pool, family.degrees(x)) for x in family.segments]
    chains = [x for x in every if x is not None]
    m, v, p = problem.batch // (family.data * family.micro_batch), family.virtual, family.stages
    if len(chains) < len(every):
        return None, below
    # a stage may take what is left of `below` if all others take nothing
    least = float(np.min([x.seconds()[0] for x in chains], axis=0)[kinds].sum())
    share = family.waiting
    longest = ((below - least * share) / (m - share) if m > share else below) / _SLACK
    most = max(int(np.searchsorted(space.shortest(x), longest, side="right")) for x in chains)
    most = min(most, count - v * (p - 1))
    if most * p < count:
        return None, below
    of_stage = [(k, x) for k, x in enumerate(chains) for _ in range(family.segments[k].stages)]
    best, handed = None, handovers([x.handed for _, x in of_stage], v)
    tables: dict[tuple[Any, ...], tuple[dict[int, StageTable], Shapes]] = {}
    for first in spread(kinds, p, v) if v > 1 else (UNSPREAD,):
        rows, left = [], count
        for stage, (k, chain) in enumerate(of_stage):
            ends = stage == 0, stage == p - 1
            key = (k, *ends, *first.of(stage, p), stage == first.last % p) if v > 1 else (k,)
            if key not in tables:
                if v > 1:
                    at = interleaved(kinds, most, stage, p, v, first)
                else:
                    at = space.intervals(next((x for x in _SIZES if most <= x <= count), count))
                alike = [stage] if any(ends) and v > 1 else [s for s, pair in enumerate(of_stage) if pair[0] == k]
                given = None
                if number is not None:
                    layers = _layers(at.counts, stage, p, v, first)
                    given = recomputed(framework, layers, number, at.counts[:, kinds[1]])
                segment, hands = family.segments[k], handed[alike].tolist()
                made = stage_tables(problem, chain, family, segment, alike, at.counts, hands, not framework, given)
                tables[key] = dict(zip(alike, made, strict=True)), at
            of, at = tables[key]
            rows.append((of[stage], at))
            left -= int(at.counts.sum(axis=1).max(initial=0, where=of[stage].seconds[:-1] <= longest))
            if left > (p - 1 - stage) * most:  # no room for all blocks
                break
        if left <= 0 and (found := _best(rows, m - share, share, below)) is not None:
            sizes, ways, below = found
            pairs = [(int(x.selective[w]), int(x.full[w])) for (x, _), w in zip(rows, ways, strict=True)]
            best = family.plan(chunks(sizes, v, first), *zip(*pairs, strict=True))
    return best, below


def _layers(counts: NDArray[np.int64], stage: int, stages: int, virtual: int, first: First) -> NDArray[np.int64]:
    """Return the layers of each chunk of a stage by its shape, without embedding and head, int64 (n, virtual)."""
    sizes = counts.sum(axis=1)
    chunk = [column(n, stage, stages, virtual, first) if virtual > 1 else [n] for n in sizes.tolist()]
    layers = np.array(chunk, dtype=np.int64).reshape(-1, virtual)
    layers[:, 0] -= counts[:, 0]
    layers[:, -1] -= counts[:, -1]
    return layers


def _best(
    rows: list[tuple[StageTable, Shapes]], weight: float, share: float, below: float
) -> tuple[list[int], list[int], float] | None:
    """Return the sizes and shapes of the best stages and its seconds, `None` if these are not below what is asked for.

    Its seconds are `weight` times the slowest stage, `share` times all, and the largest end.
    """
    seconds = [table.seconds[at.of] for table, at in rows]
    ends = [table.end[at.of] for table, at in rows]
    shortest, first = _walk(seconds, np.maximum)[0], _walk(ends, np.maximum)[0]
    if not np.isfinite(shortest):
        return None
    total, found = _walk(seconds, np.add)[0], None
    for limit in np.unique(np.concatenate([x[(x >= shortest) & (x < inf)] for x in seconds])).tolist():
        if weight * limit + total * share + first >= below * _SLACK:
            break
        end = inf
        while True:
            allowed = [np.where((x <= limit) & (e < end), x, inf) for x, e in zip(seconds, ends, strict=True)]
            whole, sizes = _walk(allowed, np.add)
            if not np.isfinite(whole) or weight * shortest + whole * share + first >= below * _SLACK:
                break
            ways = [int(at.of[after, size]) for (_, at), after, size in zip(rows, np.cumsum(sizes), sizes, strict=True)]
            taken = [table.seconds[w] for (table, _), w in zip(rows, ways, strict=True)]
            end = max(float(table.end[w]) for (table, _), w in zip(rows, ways, strict=True))
            value = weight * max(taken) + sum(taken) * share + end
            if value < below:
                below, found = value, (sizes, ways, float(value))
    return found


def _walk(rows: list[FloatArray], join: np.ufunc) -> tuple[float, list[int]]:
    """Return the least sum, or maximum, of a way through all stages, and the blocks of each.

    A row has the seconds of a stage by the blocks up to its end and its own, float64 (L + 1, most + 1).
    """
    count = len(rows[0]) - 1
    reach, ends, taken = np.full(count + 1, inf), np.arange(count + 1), []
    reach[0] = 0.0
    for row in rows:
        before = ends[:, None] - np.arange(row.shape[1])
        ways = np.where(before >= 0, join(reach[before], row), inf)
        taken.append(ways.argmin(axis=1))
        reach = ways[ends, taken[-1]]
    after, found = count, []
    if np.isfinite(reach[count]):
        for sizes in reversed(taken):
            found.append(int(sizes[after]))
            after -= found[-1]
    return float(reach[count]), found[::-1]
