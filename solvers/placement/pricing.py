"""All patterns of a node that cost less than their jobs pay for: branch and bound over sets of options, compiled."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cast, cclass, cfunc, declare, final, nogil, void
from cython.cimports.libc.math import ceil
from numpy.typing import NDArray

from ..native import Sorting

if not cython.compiled:
    from ..native import Flags, Float, Floats, Int

DEEPEST = declare(Int, 32)
"""Options of a pattern at most; a deeper search is not complete."""
FREE = declare(Float, -1e300)
"""What an option is said to gain a GPU that takes none."""
NEVER = declare(Float, float("inf"))


@final
@cclass
class PricedKind:
    """A kind of node, its n options, f families of jobs and K models.

    Attributes:
        table: cores, bytes, rate, compute, hidden, fixed, NIC of each option, see `Options`, (7, n).
        marks: family, GPUs, model, whether it is split, whether its two parts add up, whether it has workers, (6, n).
        host: what a model adds to another's compute, (K, K).
        apart: whether families cannot meet, bool (f, f).
        many: jobs of each family, (f,).
        room: GPUs, cores and bytes, (3,).
    """

    def __init__(
        self,
        table: NDArray[np.float64],
        marks: NDArray[np.int64],
        host: NDArray[np.float64],
        apart: NDArray[np.bool_],
        many: NDArray[np.int64],
        room: NDArray[np.float64],
    ) -> None:
        n, families, models = table.shape[1], len(many), len(host)
        shapes = [x.shape for x in (table, marks, host, apart, room)]
        if shapes != [(7, n), (6, n), (models, models), (families, families), (3,)]:
            raise ValueError(f"{shapes} are not the shapes of {n} options, {families} families and {models} models")
        if n and (marks.min() < 0 or marks[0].max() >= families or marks[2].max() >= models):
            raise ValueError(f"options are not of {families} families and {models} models")
        self.table, self.marks, self.host = table, marks, host
        self.apart, self.many, self.room = apart.view(np.uint8), many, room


@final
@cclass
class PricingSearch:
    """What a search works in: D depths.

    Attributes:
        following, gains, listed, next: options that may follow at each depth and what each gains a GPU, (D, n), how
            many they are, and which of them is next, (D,).
        meeting: no more than each of them and those behind it gain together, since they meet, (D, n).
        free: no more than those of them gain together that take no GPU, (D,).
        chosen, slower, gangs, value, left: the option of each depth, (D,), what slows each down, (D, D), gangs on the
            NIC, reduced cost, (D,), GPUs, cores and bytes left, (D, 3).
        option, least: of those that fit, (n,), before they are in order; gain: what each gains a GPU, by which they
            are sorted.
        filled: GPUs of each family, (f,); more, suffers: of each model, (K,); harm: the least that an option adds to a
            model's compute, (K,).
    """

    def __init__(self, options: Int, families: Int, models: Int) -> None:
        depths = DEEPEST + 1
        self.following, self.option = np.zeros((depths, options), np.int64), np.zeros(options, np.int64)
        self.gains, self.meeting = np.zeros((2, depths, options))
        self.listed, self.next, self.chosen, self.gangs = np.zeros((4, depths), np.int64)
        self.free, self.value = np.zeros((2, depths))
        self.slower, self.left = np.zeros((depths, depths)), np.zeros((depths, 3))
        self.least, self.gain, self.filled = np.zeros(options), Sorting(options), np.zeros(families)
        self.more, self.suffers, self.harm = np.zeros((3, models))


@final
@cclass
class FoundPatterns:
    """Patterns, as many as there is room for: reduced costs, costs, (m,), and options, -1 behind the last, (m, D)."""

    def __init__(self, most: Int) -> None:
        self.count, self.options = 0, np.full((most, DEEPEST), -1)
        self.reduced, self.cost = np.empty((2, most))


@cfunc
@nogil
def _cost(kind: PricedKind, option: Int, slower: Float, gangs: Int) -> Float:
    compute = kind.table[3, option] * (1.0 + slower)
    crossing, fixed = kind.table[6, option] * gangs, kind.table[5, option]
    sync = fixed + crossing if kind.marks[4, option] else max(fixed, crossing)
    return kind.table[2, option] * max(compute, kind.table[4, option] * compute + sync)


@cfunc
@nogil
def _meet(kind: PricedKind, work: PricingSearch, depth: Int) -> void:
    """Write what the options listed at a depth, from each on, gain at most, since all that are taken meet.

    T GPUs are of at least m = T / u options, rounded up, with u those of the largest; each is slowed down by m - 1
    others, each time no less than by the model that harms it least. So they gain T times the most that one does a GPU.
    """
    size, room = work.listed[depth], work.left[depth, 0]
    largest: Int = 0
    for k in range(size):
        work.meeting[depth, k] = 0.0
        largest = max(largest, kind.marks[1, work.following[depth, k]])
    if largest == 0:
        return
    most = cast(Int, ceil(room / largest))
    for m in range(1, most + 1):
        gpus: Float = m * largest
        gpus = min(gpus, room)
        best: Float = 0.0
        for k in range(size - 1, -1, -1):
            x = work.following[depth, k]
            if kind.marks[1, x]:
                model = kind.marks[2, x]
                compute = kind.table[3, x] * (1.0 + work.suffers[model])
                slope: Float = kind.table[2, x] * kind.table[3, x]
                if kind.marks[3, x] or compute < kind.table[4, x] * compute + kind.table[5, x]:
                    slope *= kind.table[4, x]
                best = min(best, work.gains[depth, k] + slope * work.harm[model] * (m - 1) / kind.marks[1, x])
            work.meeting[depth, k] = min(work.meeting[depth, k], gpus * best)


@cfunc
@nogil
def _follow(kind: PricedKind, work: PricingSearch, pays: Floats, depth: Int, limit: Float) -> void:  # noqa: PLR0912, PLR0915
    """List the options that may follow those chosen, those that take no GPU and then those that gain most first."""
    for k in range(len(kind.host)):
        work.more[k] = work.suffers[k] = 0.0
    for i in range(depth):  # what the chosen lose at least, and do to others, by model
        x = work.chosen[i]
        if not kind.marks[5, x]:
            continue
        model, slower = kind.marks[2, x], work.slower[depth, i]
        for k in range(len(kind.host)):
            work.suffers[k] += kind.host[k, model]
            h = kind.host[model, k]
            if kind.marks[3, x]:
                work.more[k] += kind.table[2, x] * kind.table[4, x] * kind.table[3, x] * h
            else:
                work.more[k] += _cost(kind, x, slower + h, 1) - _cost(kind, x, slower, 1)
    start: Int = 0
    stop: Int = len(pays)
    if depth > 0:
        start, stop = work.next[depth - 1] - 1, work.listed[depth - 1]
    some: Int = 0
    for i in range(start, stop):
        x = work.following[depth - 1, i] if depth > 0 else i
        if kind.marks[1, x] > work.left[depth, 0] or kind.table[0, x] > work.left[depth, 1]:
            continue
        family = kind.marks[0, x]
        same: Int = 0
        clash: bint = kind.table[1, x] > work.left[depth, 2]
        for k in range(depth):
            other = kind.marks[0, work.chosen[k]]
            if other == family:
                same += 1
            if kind.apart[other, family]:
                clash = True
        if clash or same >= kind.many[family]:
            continue
        model, busy = kind.marks[2, x], kind.marks[5, x]
        suffers, gangs = work.suffers[model] if busy else 0.0, work.gangs[depth] + kind.marks[3, x]
        own: Float = _cost(kind, x, suffers, gangs) - pays[x]
        own += work.more[model] if busy else 0.0
        work.option[some], work.least[some] = x, own
        work.gain.keys[some] = own / kind.marks[1, x] if kind.marks[1, x] else FREE
        some += 1
    work.gain.sort(some, True)
    free: Float = 0.0
    steepest: Float = 0.0
    for k in range(some):
        i = work.gain.order[k]
        if work.gain.keys[i] == FREE:
            free += min(0.0, work.least[i]) * kind.many[kind.marks[0, work.option[i]]]
        else:
            steepest = min(steepest, work.gain.keys[i])
    kept: Int = 0
    for k in range(some):
        i = work.gain.order[k]
        rest = max(0.0, work.left[depth, 0] - kind.marks[1, work.option[i]])
        if work.value[depth] + work.least[i] + free + rest * steepest < limit:
            work.following[depth, kept], work.gains[depth, kept] = work.option[i], work.gain.keys[i]
            kept += 1
    work.listed[depth], work.next[depth], work.free[depth] = kept, 0, free
    _meet(kind, work, depth)


@cfunc
@nogil
def _more(kind: PricedKind, work: PricingSearch, depth: Int, i: Int) -> Float:
    """Return what the options listed at a depth from the one at i on gain together at most.

    The rest fills the GPUs left in order of gain; a family is taken at its largest, not twice.
    """
    for k in range(len(kind.many)):
        work.filled[k] = 0.0
    gain: Float = 0.0
    space: Float = work.left[depth, 0]
    for k in range(i, work.listed[depth]):
        slope = work.gains[depth, k]
        if slope == FREE:
            continue
        if slope >= 0 or space <= 0:
            break
        x = work.following[depth, k]
        family = kind.marks[0, x]
        amount: Float = kind.marks[1, x]
        if kind.many[family] == 1:
            amount = max(0.0, amount - work.filled[family])
            work.filled[family] += amount
        else:
            amount *= kind.many[family]
        amount = min(amount, space)
        gain += slope * amount
        space -= amount
    gain = max(gain, work.meeting[depth, i])
    return gain + work.free[depth] if work.gains[depth, i] == FREE else gain


@cfunc
@nogil
def _take(kind: PricedKind, work: PricingSearch, pays: Floats, depth: Int, x: Int) -> Float:
    """Put an option behind those chosen, at this depth; return what the pattern costs, before what is paid for it."""
    total: Float = 0.0
    paid: Float = 0.0
    own: Float = 0.0
    crossing = work.gangs[depth] + kind.marks[3, x]
    work.chosen[depth] = x
    for k in range(depth):
        y = work.chosen[k]
        work.slower[depth + 1, k] = work.slower[depth, k]
        if kind.marks[5, x] and kind.marks[5, y]:
            work.slower[depth + 1, k] += kind.host[kind.marks[2, y], kind.marks[2, x]]
            own += kind.host[kind.marks[2, x], kind.marks[2, y]]
        total += _cost(kind, y, work.slower[depth + 1, k], crossing)
        paid += pays[y]
    work.slower[depth + 1, depth] = own
    total += _cost(kind, x, own, crossing)
    paid += pays[x]
    work.gangs[depth + 1], work.value[depth + 1] = crossing, total - paid
    work.left[depth + 1, 0] = work.left[depth, 0] - kind.marks[1, x]
    work.left[depth + 1, 1] = work.left[depth, 1] - kind.table[0, x]
    work.left[depth + 1, 2] = work.left[depth, 2] - kind.table[1, x]
    return total


@cfunc
@nogil
def _worst(found: FoundPatterns) -> Int:
    worst: Int = 0
    for k in range(1, found.count):
        if found.reduced[k] > found.reduced[worst]:
            worst = k
    return worst


def search(
    kind: PricedKind,
    work: PricingSearch,
    pays: Floats,
    limit: Float,
    most: Int,
    keep_best: bint,
    steps: Int,
    over: Flags,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], bool]:
    """Return patterns below a reduced cost, `most` at most: these costs, costs, options, and if none can be missing.

    Depth first; a list of options that may follow for each depth, those that gain most a GPU first. Another thread may
    set `over[0]`, which ends it; see `options.Pricing.search`.
    """
    shapes = (len(pays), len(work.option), len(work.filled), len(work.harm))
    wanted = (kind.table.shape[1], max(kind.table.shape[1], len(work.option)), len(kind.many), len(kind.host))
    if shapes != wanted or most < 1 or len(over) < 1:
        raise ValueError(f"{most} patterns of {shapes}, not {wanted} options, room for them, families and models")
    found = FoundPatterns(most)
    with nogil:
        complete = _search(kind, work, found, pays, limit, keep_best, steps, over)
    reduced, cost, options = np.asarray(found.reduced), np.asarray(found.cost), np.asarray(found.options)
    return reduced[: found.count], cost[: found.count], options[: found.count], complete


@cfunc
@nogil
def _search(  # noqa: PLR0912 -- one compiled loop
    kind: PricedKind,
    work: PricingSearch,
    found: FoundPatterns,
    pays: Floats,
    limit: Float,
    keep_best: bint,
    steps: Int,
    over: Flags,
) -> bint:
    most = len(found.cost)
    complete: bint = True
    fresh: bint = True
    worst: Int = 0
    depth: Int = 0
    for k in range(len(kind.host)):
        work.harm[k] = NEVER
        for x in range(len(pays)):
            work.harm[k] = min(work.harm[k], kind.host[k, kind.marks[2, x]])
    for k in range(3):
        work.left[0, k] = kind.room[k]
    while depth >= 0:
        if fresh:
            _follow(kind, work, pays, depth, limit)
            fresh = False
        i = work.next[depth]
        if i >= work.listed[depth] or depth >= DEEPEST:
            if depth >= DEEPEST:
                complete = False
            depth -= 1
            continue
        if work.value[depth] + _more(kind, work, depth, i) >= limit:
            depth -= 1
            continue
        work.next[depth] = i + 1
        steps -= 1
        if steps < 0 or over[0]:
            return False
        total = _take(kind, work, pays, depth, work.following[depth, i])
        if work.value[depth + 1] < limit:
            slot = worst
            if found.count < most:
                slot = found.count
                found.count += 1
            elif not keep_best:
                return False
            found.reduced[slot], found.cost[slot] = work.value[depth + 1], total
            for k in range(DEEPEST):
                found.options[slot, k] = work.chosen[k] if k <= depth else -1
            if keep_best and found.count == most:
                worst = _worst(found)
                limit = min(limit, found.reduced[worst])
        depth += 1
        fresh = True
    return complete
