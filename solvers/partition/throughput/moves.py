"""Plans under change as compiled code sees them: what a group's move does to the loads of two stages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiled.kernel import Floats, Halves2, Ints, by_reference, lean, lean_kernel
from .arrays import PipelineArrays, Stages

MOST = 6
"""Groups that move at once, what must go with one included."""


class PipelineState(NamedTuple):
    """A plan.

    Attributes:
        stage: of each group, int64 (G,).
        kind: the device type of each stage, int64 (S,).
        held: how many pins of each net a stage holds, int32 (S, E).
        load: seconds, float64 (S,); used: bytes, float64 (S,).
        weight: of each stage as annealing counts, float64 (S,).
        who: groups that move at once, int64 (`MOST` + 1,); mark: the last move of which a group was one, int64 (G,).
    """

    stage: Ints
    kind: Ints
    held: Halves2
    load: Floats
    used: Floats
    weight: Floats
    who: Ints
    mark: Ints


def state_of(d: PipelineArrays, stage: Ints, kind: Ints) -> PipelineState:
    """Return the state of a plan, which keeps `stage` and `kind`, before its pins, loads and bytes are counted."""
    n, stages = len(stage), len(kind)
    return PipelineState(
        stage, kind, np.zeros((stages, len(d.size)), dtype=np.int32), np.zeros(stages), np.zeros(stages),
        np.zeros(stages), np.zeros(MOST + 1, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip


@lean
def count(d: PipelineArrays, p: PipelineState) -> None:
    """Work out pins, loads and bytes of all stages anew: sums of many changes drift."""
    weigh(d, p)
    for s in range(len(p.kind)):
        p.load[s] = 0.0
        for e in range(len(d.size)):
            p.held[s, e] = 0
    for g in range(len(p.stage)):
        s = p.stage[g]
        p.load[s] += d.time[p.kind[s], g]
        for x in range(d.first[g], d.first[g + 1]):
            p.held[s, d.net[x]] += 1
    for s in range(len(p.kind)):
        if not d.host[p.kind[s]]:
            for e in range(len(d.size)):
                if 0 < p.held[s, e] < d.size[e]:
                    p.load[s] += d.cost[e]


@lean
def weigh(d: PipelineArrays, p: PipelineState) -> None:
    """Add up the bytes of all stages anew: once a large group has come and gone, small ones are lost to rounding."""
    for s in range(len(p.kind)):
        p.used[s] = 0.0
    for g in range(len(p.stage)):
        p.used[p.stage[g]] += d.memory[g]


@lean
def span(d: PipelineArrays, p: PipelineState, g: int) -> tuple[int, int]:
    """Return the first and the last stage that group g could be in with all others where they are."""
    low, high = 0, len(p.kind) - 1
    for x in range(d.first_before[g], d.first_before[g + 1]):
        low = max(low, p.stage[d.before[x]])
    for x in range(d.first_after[g], d.first_after[g + 1]):
        high = min(high, p.stage[d.after[x]])
    return low, high


@lean
def loads(d: PipelineArrays, p: PipelineState, g: int, to: int) -> tuple[float, float]:
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


@lean
def put(d: PipelineArrays, p: PipelineState, g: int, to: int) -> None:
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


@lean
def along(d: PipelineArrays, p: PipelineState, to: int, name: int) -> int:
    """Complete the list `who`, which begins with one group, by what must go with it to the stage `to` beside its own.

    That is what comes after it in its stage if the next stage is meant, what comes before it if the one before.
    `mark` has `name` for those that are in the list. Return how many they are, 0 if too many, or if the device there
    cannot run them.
    """
    who, mark = p.who, p.mark
    s = p.stage[who[0]]
    later = to > s
    near, first = (d.after, d.first_after) if later else (d.before, d.first_before)
    mark[who[0]] = name
    at, some = 0, 1
    while at < some:
        h = who[at]
        at += 1
        if not np.isfinite(d.time[p.kind[to], h]):
            return 0
        for x in range(first[h], first[h + 1]):
            b = near[x]
            if p.stage[b] == s and mark[b] != name:
                if some == MOST:
                    return 0
                mark[b] = name
                who[some] = b
                some += 1
    return some


@lean
def highest(load: Floats) -> float:
    """Return the highest of some loads."""
    most = -np.inf
    for x in load:
        most = max(most, x)
    return most


MOVES = 400
"""At most so many, which large graphs do not get through: the recurrence has balanced them."""


def polished(d: PipelineArrays, stages: Stages) -> tuple[float, Stages]:
    """Return the maximum load of a plan after single moves, seconds, and its stages."""
    kinds, stage = np.array([t for t, _ in stages]), stage_of(stages, len(d.memory))
    load = improve(d, state_of(d, stage, kinds), MOVES)
    return float(load), [(int(t), np.flatnonzero(stage == s)) for s, t in enumerate(kinds)]


def stage_of(stages: Stages, n: int) -> Ints:
    """Return the stage of each group, int64 (G,)."""
    stage = np.empty(n, dtype=np.int64)
    for s, (_, groups) in enumerate(stages):
        stage[groups] = s
    return stage


@lean_kernel
def improve(data: PipelineArrays, plan: PipelineState, moves: int) -> float:
    """Move single groups, so many at most, while the maximum load falls, and return it, seconds."""
    d, p = by_reference(data), by_reference(plan)
    count(d, p)
    load = p.load
    for _ in range(moves):
        top = 0
        for s in range(len(load)):
            if load[s] > load[top]:
                top = s
        best, who, where = load[top] * (1 - 1e-9), -1, -1
        for g in range(len(p.stage)):
            if p.stage[g] != top:
                continue
            low, high = span(d, p, g)
            for s in range(low, high + 1):
                t = p.kind[s]
                if s == top or not np.isfinite(d.time[t, g]) or p.used[s] + d.memory[g] > d.room[t]:
                    continue
                rest, new = loads(d, p, g, s)
                if rest >= best:
                    break
                if max(rest, new) < best:
                    best, who, where = max(rest, new), g, s
        if who < 0:
            break
        put(d, p, who, where)
        weigh(d, p)
    return highest(load)
