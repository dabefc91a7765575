"""Compiled: plans under change, what moves of groups do to their loads, and annealing."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, declare, final, nogil, void
from cython.cimports.libc.math import exp, isfinite, log
from numpy.typing import NDArray

from gangplan.instances.verify import TOLERANCE

from ...native import Random
from .. import ragged

if not cython.compiled:
    from ...native import Float, Int, Ints

MOST = declare(Int, 6)
"""Groups that move at once, what must go with one included."""
SOFT = declare(Float, 50.0)
"""The letter a of annealing.py."""
STRICT = declare(Float, 2.0)
"""A stage above its memory by 1% counts as one above the best plan's load by so many percent."""
BACK = declare(Float, 0.4)
"""How often a group is sent back in exchange, if there is one that may go."""
TRIES = declare(Int, 16)
"""Groups looked at for one that may go back."""
NEVER = declare(Float, float("inf"))


@final
@cclass
class PipelineArrays:
    """What does not change while plans do; G groups, E nets, T types of devices.

    Attributes:
        groups: G; states: how many numbers of devices in use there are, of all types.
        net, first: the nets of group g are `net[first[g]:first[g + 1]]`.
        before, first_before: its predecessors, in the same way; none if the variant is ``free``.
        after, first_after: its successors.
        size, cost: pins and seconds of each net.
        time: float64 (T, G); memory, work: float64 (G,).
        room: bytes of a device of each type, float64 (T,); host: (T,); speed: float64 (T,).
        counts: devices of each type, int64 (T,).
        stride: how far apart in tables the states are of which one has a device more, int64 (T + 1,).
    """

    def __init__(self, q: Any) -> None:
        """Copy the arrays of a quotient."""
        size = np.array([len(pins) for pins, _ in q.nets], dtype=np.int64)
        pins = np.array([g for pins, _ in q.nets for g in pins], dtype=np.int64)
        edges = np.array(() if q.problem.variant == "free" else q.edges, dtype=np.int64).reshape(-1, 2)
        self.groups = q.n_groups
        self.states = int(min(np.prod(q.counts + 1.0), 2.0**62))  # of many types, too many for any table
        self.net, self.first = ragged(pins, np.repeat(np.arange(len(size)), size), q.n_groups)
        self.before, self.first_before = ragged(edges[:, 1], edges[:, 0], q.n_groups)
        self.after, self.first_after = ragged(edges[:, 0], edges[:, 1], q.n_groups)
        self.size, self.cost = size, np.array([cost for _, cost in q.nets], dtype=np.float64)
        self.time, self.memory, self.work = np.array(q.time, order="C"), np.array(q.memory), np.array(q.work)
        room = q.capacity * (1 + TOLERANCE / 2)
        self.room = room if q.memory_binds else np.full(len(room), np.inf)
        self.host, self.speed = np.array(q.host).view(np.uint8), np.array(q.speed)
        self.counts = q.counts.astype(np.int64)
        self.stride = np.concatenate([[1], np.cumprod(q.counts.astype(np.int64) + 1)])


@final
@cclass
class PipelineState:
    """A plan under change, before its pins, loads and bytes are counted.

    Attributes:
        stages: S.
        stage: of each group, int64 (G,), and kind: the device type of each stage, int64 (S,); both are the caller's.
        held: how many pins of each net a stage holds, int32 (S, E).
        load: seconds, float64 (S,); used: bytes, float64 (S,).
        weight: of each stage as annealing counts, float64 (S,).
        who: groups that move at once, int64 (`MOST` + 1,); mark: the last move of which a group was one, int64 (G,).
    """

    def __init__(self, d: PipelineArrays, stage: NDArray[np.int64], kind: NDArray[np.int64]) -> None:
        self.stages, self.stage, self.kind = len(kind), stage, kind
        fits: bint = len(self.stage) == d.groups
        for g in range(len(self.stage)):
            if self.stage[g] < 0 or self.stage[g] >= self.stages:
                fits = False
        if not fits:
            raise ValueError(f"{len(stage)} groups in {len(kind)} stages are no plan of {d.groups}")
        self.held = np.empty((self.stages, len(d.size)), dtype=np.int32)
        self.load, self.used, self.weight = np.empty((3, self.stages))
        self.who, self.mark = np.empty(MOST + 1, np.int64), np.empty(d.groups, np.int64)


@cfunc
@nogil
def count(d: PipelineArrays, p: PipelineState) -> void:
    """Work out pins, loads and bytes of all stages anew: sums of many changes drift."""
    weigh(d, p)
    for s in range(p.stages):
        p.load[s] = 0.0
        for e in range(len(d.size)):
            p.held[s, e] = 0
    for g in range(d.groups):
        at = p.stage[g]
        p.load[at] += d.time[p.kind[at], g]
        for x in range(d.first[g], d.first[g + 1]):
            p.held[at, d.net[x]] += 1
    for s in range(p.stages):
        if not d.host[p.kind[s]]:
            for e in range(len(d.size)):
                if 0 < p.held[s, e] < d.size[e]:
                    p.load[s] += d.cost[e]


@cfunc
@nogil
def weigh(d: PipelineArrays, p: PipelineState) -> void:
    """Add up the bytes of all stages anew: once a large group has come and gone, small ones are lost to rounding."""
    for s in range(p.stages):
        p.used[s] = 0.0
    for g in range(d.groups):
        p.used[p.stage[g]] += d.memory[g]


@cfunc
@nogil
def span(d: PipelineArrays, p: PipelineState, g: Int) -> tuple[Int, Int]:
    """Return the first and the last stage that group g could be in with all others where they are."""
    low: Int = 0
    high: Int = p.stages - 1
    for x in range(d.first_before[g], d.first_before[g + 1]):
        low = max(low, p.stage[d.before[x]])
    for x in range(d.first_after[g], d.first_after[g + 1]):
        high = min(high, p.stage[d.after[x]])
    return low, high


@cfunc
@nogil
def loads(d: PipelineArrays, p: PipelineState, g: Int, to: Int) -> tuple[Float, Float]:
    """Return the loads of g's stage and of stage `to` if g moved there."""
    s = p.stage[g]
    out, come = 0.0, 0.0
    for x in range(d.first[g], d.first[g + 1]):
        e = d.net[x]
        here, there = p.held[s, e], p.held[to, e]
        if here == d.size[e]:
            out += d.cost[e]
        elif here == 1:
            out -= d.cost[e]
        if there == 0:
            come += d.cost[e]
        elif there == d.size[e] - 1:
            come -= d.cost[e]
    a, b = p.kind[s], p.kind[to]
    left = p.load[s] - d.time[a, g] + (0.0 if d.host[a] else out)
    return left, p.load[to] + d.time[b, g] + (0.0 if d.host[b] else come)


@cfunc
@nogil
def put(d: PipelineArrays, p: PipelineState, g: Int, to: Int) -> void:
    """Move group g to stage `to`."""
    s = p.stage[g]
    p.load[s], p.load[to] = loads(d, p, g, to)
    for x in range(d.first[g], d.first[g + 1]):
        e = d.net[x]
        p.held[s, e] -= 1
        p.held[to, e] += 1
    p.used[s] -= d.memory[g]
    p.used[to] += d.memory[g]
    p.stage[g] = to


@cfunc
@nogil
def along(d: PipelineArrays, p: PipelineState, to: Int, name: Int) -> Int:
    """Complete the list `who`, which begins with one group, by what must go with it to the stage `to` beside its own.

    That is what comes after it in its stage if the next stage is meant, what comes before it if the one before.
    `mark` has `name` for those that are in the list. Return how many they are, 0 if too many, or if the device there
    cannot run them.
    """
    s = p.stage[p.who[0]]
    p.mark[p.who[0]] = name
    at: Int = 0
    some: Int = 1
    while at < some:
        h = p.who[at]
        at += 1
        if not isfinite(d.time[p.kind[to], h]):
            return 0
        first, end = d.first_before[h], d.first_before[h + 1]
        if to > s:
            first, end = d.first_after[h], d.first_after[h + 1]
        for x in range(first, end):
            b = d.after[x] if to > s else d.before[x]
            if p.stage[b] == s and p.mark[b] != name:
                if some == MOST:
                    return 0
                p.mark[b] = name
                p.who[some] = b
                some += 1
    return some


@cfunc
@nogil
def highest(p: PipelineState) -> Float:
    """Return the highest load."""
    most = -NEVER
    for s in range(p.stages):
        most = max(most, p.load[s])
    return most


def improve(d: PipelineArrays, p: PipelineState, moves: Int) -> float:
    """Move single groups, so many at most, while the maximum load falls, and return it, seconds."""
    with nogil:
        _improve(d, p, moves)
        load = highest(p)
    return load


@cfunc
@nogil
def _improve(d: PipelineArrays, p: PipelineState, moves: Int) -> void:
    count(d, p)
    for _ in range(moves):
        top: Int = 0
        for s in range(p.stages):
            if p.load[s] > p.load[top]:
                top = s
        best = p.load[top] * (1 - 1e-9)
        who: Int = -1
        where: Int = -1
        for g in range(d.groups):
            if p.stage[g] != top:
                continue
            low, high = span(d, p, g)
            for to in range(low, high + 1):
                t = p.kind[to]
                if to == top or not isfinite(d.time[t, g]) or p.used[to] + d.memory[g] > d.room[t]:
                    continue
                rest, new = loads(d, p, g, to)
                if rest >= best:
                    break
                if max(rest, new) < best:
                    best, who, where = max(rest, new), g, to
        if who < 0:
            break
        put(d, p, who, where)
        weigh(d, p)


def anneal(
    d: PipelineArrays, p: PipelineState, best: Ints, peak: Float, hot: Float, cold: Float, moves: Int, seed: Int
) -> float:
    """Try moves from a plan, which changes; return the maximum load of the best, seconds, and put that into `best`.

    Args:
        best: the stages of the best plan so far, int64 (G,).
        peak: its maximum load, seconds.
        hot, cold: the first and the last temperature, as shares of `peak`.
    """
    if len(best) != d.groups:
        raise ValueError(f"{len(best)} groups are no plan of {d.groups}")
    random = Random(seed)
    with nogil:
        peak = _anneal(d, p, best, peak, hot, cold, moves, random)
    return peak


@cfunc
@nogil
def _anneal(  # noqa: PLR0912
    d: PipelineArrays, p: PipelineState, best: Ints, peak: Float, hot: Float, cold: Float, moves: Int, random: Random
) -> Float:
    count(d, p)
    n, unit = d.groups, peak
    for s in range(p.stages):
        p.weight[s] = _weight(d, p, s, p.load[s], p.used[s], unit)
    total = _sum(p)
    for g in range(n):
        p.mark[g] = -1
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for i in range(moves):
        heat *= step
        g = random.below(n)
        s = p.stage[g]
        low, high = span(d, p, g)
        p.who[0] = g
        some: Int = 1
        to: Int
        if low < high:
            to = low + random.below(high - low)
            if to >= s:
                to += 1
            if not isfinite(d.time[p.kind[to], g]):
                continue
        else:
            to = s + 1 if random.uniform() < 0.5 else s - 1
            if low > high or to < 0 or to >= p.stages:
                continue
            some = along(d, p, to, i)
            if some == 0:
                continue
        alone: bint = some == 1 and random.uniform() >= BACK
        if alone:
            here, there = loads(d, p, g, to)
            bytes_here, bytes_there = p.used[s] - d.memory[g], p.used[to] + d.memory[g]
        else:
            for k in range(some):
                put(d, p, p.who[k], to)
            if random.uniform() < BACK or some == 1:
                some = _send_back(d, p, s, to, some, random)
            here, there, bytes_here, bytes_there = p.load[s], p.load[to], p.used[s], p.used[to]
        new_here, new_there = _weight(d, p, s, here, bytes_here, unit), _weight(d, p, to, there, bytes_there, unit)
        new = total - p.weight[s] - p.weight[to] + new_here + new_there
        if new <= total or log(new / total) < -SOFT * heat * log(random.uniform()):
            if alone:
                put(d, p, g, to)
            p.weight[s], p.weight[to] = new_here, new_there
            total = _sum(p)
            if max(here, there) < peak:
                peak = _keep(d, p, best, peak)
        elif not alone:
            for k in range(some - 1, -1, -1):
                h = p.who[k]
                put(d, p, h, s if p.stage[h] == to else to)
    return peak


@cfunc
@nogil
def _sum(p: PipelineState) -> Float:
    total = 0.0
    for s in range(p.stages):
        total += p.weight[s]
    return total


@cfunc
@nogil
def _weight(d: PipelineArrays, p: PipelineState, s: Int, load: Float, used: Float, unit: Float) -> Float:
    x, over = load / unit, used / d.room[p.kind[s]]
    if over > 1.0:
        x = max(x, 1.0 + STRICT * (over - 1.0))
    return exp(min(SOFT * (x - 1.0), 500.0))


@cfunc
@nogil
def _peak(d: PipelineArrays, p: PipelineState) -> Float:
    for s in range(p.stages):
        if p.used[s] > d.room[p.kind[s]]:
            return NEVER
    return highest(p)


@cfunc
@nogil
def _keep(d: PipelineArrays, p: PipelineState, best: Ints, peak: Float) -> Float:
    top = _peak(d, p)
    if top >= peak * (1 - 1e-9):
        return peak
    weigh(d, p)
    if _peak(d, p) > top:
        return peak
    for g in range(d.groups):
        best[g] = p.stage[g]
    return top


@cfunc
@nogil
def _send_back(d: PipelineArrays, p: PipelineState, s: Int, to: Int, some: Int, random: Random) -> Int:
    """Move one group from stage `to` to s if one of a few may; return the length of the list `who` with it."""
    for _ in range(TRIES):
        h = random.below(d.groups)
        if p.stage[h] == to and isfinite(d.time[p.kind[s], h]):
            low, high = span(d, p, h)
            if low <= s <= high:
                put(d, p, h, s)
                p.who[some] = h
                return some + 1
    return some
