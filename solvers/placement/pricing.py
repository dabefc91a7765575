"""All patterns of a node that cost less than their jobs pay for: branch and bound over sets of options, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled.kernel import Bools, Bools2, Floats, Floats2, Ints, Ints2, by_reference, inner, kernel
from ..compiled.routines import argsort

DEEPEST = 32
"""Options of a pattern at most; a deeper search is not complete."""


class PricedKind(NamedTuple):
    """A kind of node, its n options, f families of jobs and K models.

    Attributes:
        table: cores, bytes, rate, compute, hidden, fixed, NIC of each option, see `Options`, (7, n).
        marks: family, GPUs, model, whether it is split, whether its two parts add up, whether it has workers, (6, n).
        host: what a model adds to another's compute, (K, K).
        many: jobs of each family, (f,).
        room: GPUs, cores and bytes, (3,).
    """

    table: Floats2
    marks: Ints2
    host: Floats2
    apart: Bools2
    many: Ints
    room: Floats


class PricingSearch(NamedTuple):
    """What a search works in: D depths.

    Attributes:
        following, gains, listed, next: options that may follow at each depth and what each gains a GPU, (D, n), how
            many they are, and which of them is next, (D,).
        meeting: no more than each of them and those behind it gain together, since they meet, (D, n).
        chosen, slower, gangs, value, left: the option of each depth, (D,), what slows each down, (D, D), gangs on the
            NIC, reduced cost, (D,), GPUs, cores and bytes left, (D, 3).
        option, gain, least: of those that fit, before they are in order, (n,).
        filled: GPUs of each family, (f,); more, suffers: of each model, (K,); harm: the least that an option adds to a
            model's compute, (K,).
    """

    following: Ints2
    gains: Floats2
    listed: Ints
    next: Ints
    meeting: Floats2
    chosen: Ints
    slower: Floats2
    gangs: Ints
    value: Floats
    left: Floats2
    option: Ints
    gain: Floats
    least: Floats
    filled: Floats
    more: Floats
    suffers: Floats
    harm: Floats


class FoundPatterns(NamedTuple):
    """Patterns: reduced costs, costs, (n,), and options, -1 behind the last, (n, D)."""

    reduced: Floats
    cost: Floats
    options: Ints2


def work_of(options: int, families: int, models: int) -> PricingSearch:
    """Return what a search works in."""
    depths = DEEPEST + 1
    return PricingSearch(
        following=np.zeros((depths, options), dtype=np.int64), gains=np.zeros((depths, options)),
        listed=np.zeros(depths, dtype=np.int64), next=np.zeros(depths, dtype=np.int64),
        meeting=np.zeros((depths, options)),
        chosen=np.zeros(depths, dtype=np.int64), slower=np.zeros((depths, depths)),
        gangs=np.zeros(depths, dtype=np.int64), value=np.zeros(depths), left=np.zeros((depths, 3)),
        option=np.zeros(options, dtype=np.int64), gain=np.zeros(options), least=np.zeros(options),
        filled=np.zeros(families), more=np.zeros(models), suffers=np.zeros(models), harm=np.zeros(models),
    )  # fmt: skip


@inner
def _cost(kind: PricedKind, option: int, slower: float, gangs: int) -> float:
    table = kind.table
    compute = table[3, option] * (1.0 + slower)
    crossing = table[6, option] * gangs
    sync = table[5, option] + crossing if kind.marks[4, option] else max(table[5, option], crossing)
    return float(table[2, option] * max(compute, table[4, option] * compute + sync))


@inner
def _meet(kind: PricedKind, work: PricingSearch, depth: int) -> None:
    """Write what the options listed at a depth, from each on, gain at most, since all that are taken meet.

    T GPUs are of at least m = T / u options, rounded up, with u those of the largest; each is slowed down by m - 1
    others, each time no less than by the model that harms it least. So they gain T times the most that one does a GPU.
    """
    table, marks, gains, bound = kind.table, kind.marks, work.gains, work.meeting
    size, room, largest = work.listed[depth], work.left[depth, 0], 0
    for k in range(size):
        bound[depth, k] = 0.0
        largest = max(largest, marks[1, work.following[depth, k]])
    if not largest:
        return
    for m in range(1, int(np.ceil(room / largest)) + 1):
        gpus, best = min(float(m * largest), room), 0.0
        for k in range(size - 1, -1, -1):
            x = work.following[depth, k]
            if marks[1, x]:
                compute = table[3, x] * (1.0 + work.suffers[marks[2, x]])
                full = not marks[3, x] and compute >= table[4, x] * compute + table[5, x]
                slope = table[2, x] * table[3, x] * (1.0 if full else table[4, x])
                best = min(best, gains[depth, k] + slope * work.harm[marks[2, x]] * (m - 1) / marks[1, x])
            bound[depth, k] = min(bound[depth, k], gpus * best)


@kernel
def search(  # noqa: PLR0912, PLR0915 -- one compiled loop
    kind_of: PricedKind,
    work: PricingSearch,
    found: FoundPatterns,
    pays: Floats,
    limit: float,
    keep_best: bool,
    steps: int,
    over: Bools,
) -> tuple[int, bool]:
    """Depth first; a list of options that may follow for each depth, those that gain most a GPU first.

    Another thread may set `over[0]`, which ends it.
    """
    kind = by_reference(kind_of)
    table, marks, host, apart, many = kind.table, kind.marks, kind.host, kind.apart, kind.many
    cand, dens, size, at = work.following, work.gains, work.listed, work.next
    chosen, slower, gangs, value, left = work.chosen, work.slower, work.gangs, work.value, work.left
    option, gained, least, filled = work.option, work.gain, work.least, work.filled
    more, suffers, reduced_of, costs, sets = work.more, work.suffers, found.reduced, found.cost, found.options
    n, models, most = len(pays), len(host), len(costs)
    for k in range(models):
        work.harm[k] = np.inf
        for x in range(n):
            work.harm[k] = min(work.harm[k], host[k, marks[2, x]])
    count, complete, worst = 0, True, 0
    for k in range(3):
        left[0, k] = kind.room[k]
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
                        before = _cost(kind, x, slower[depth, i], 1)
                        more[k] += _cost(kind, x, slower[depth, i] + h, 1) - before
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
                for k in range(depth):
                    y = chosen[k]
                    if marks[0, y] == family:
                        same += 1
                    if apart[marks[0, y], family]:
                        clash = True
                if clash or same >= many[family]:
                    continue
                k = marks[2, x]
                own = _cost(kind, x, suffers[k] if marks[5, x] else 0.0, gangs[depth] + marks[3, x]) - pays[x]
                own += more[k] if marks[5, x] else 0.0
                option[m] = x
                gained[m] = own / marks[1, x] if marks[1, x] else -1e300
                least[m] = own
                m += 1
            order = argsort(gained[:m], True)
            free, steepest = 0.0, 0.0
            for i in order:
                if gained[i] == -1e300:
                    free += min(0.0, least[i]) * many[marks[0, option[i]]]
                else:
                    steepest = min(steepest, gained[i])
            kept = 0
            for i in order:
                rest = max(0.0, left[depth, 0] - marks[1, option[i]])
                if value[depth] + least[i] + free + rest * steepest < limit:
                    cand[depth, kept] = option[i]
                    dens[depth, kept] = gained[i]
                    kept += 1
            size[depth] = kept
            at[depth] = 0
            _meet(kind, work, depth)
            # the free ones, first in the list, gain no more than this together
            slower[depth, DEEPEST] = free
        i = at[depth]
        if i >= size[depth] or depth >= DEEPEST:
            if depth >= DEEPEST:
                complete = False
            depth -= 1
            continue
        # the rest fills the GPUs left in order of gain; a family is taken at its largest, not twice
        for k in range(len(filled)):
            filled[k] = 0.0
        gain, space = 0.0, left[depth, 0]
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
        gain = max(gain, work.meeting[depth, i])
        if dens[depth, i] == -1e300:
            gain += slower[depth, DEEPEST]
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
            total += _cost(kind, y, slower[depth + 1, k], crossing)
            paid += pays[y]
        slower[depth + 1, depth] = own
        total += _cost(kind, x, own, crossing)
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
            reduced_of[slot], costs[slot] = reduced, total
            for k in range(DEEPEST):
                sets[slot, k] = chosen[k] if k <= depth else -1
            if keep_best and count == most:
                worst = 0
                for k in range(1, most):
                    if reduced_of[k] > reduced_of[worst]:
                        worst = k
                limit = min(limit, reduced_of[worst])
        gangs[depth + 1] = crossing
        value[depth + 1] = reduced
        left[depth + 1, 0] = left[depth, 0] - marks[1, x]
        left[depth + 1, 1] = left[depth, 1] - table[0, x]
        left[depth + 1, 2] = left[depth, 2] - table[1, x]
        depth += 1
        fresh = True
    return count, complete
