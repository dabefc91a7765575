"""Better a plan by single groups: off the busiest stage, to wherever both stages end below the maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .cuts import Stages
from .moves import data_of
from .orders import Ints
from .quotient import Quotient

MOVES = 400
"""At most so many, which large graphs do not get through: the recurrence has balanced them."""


class Polish:
    """Moves single groups while the maximum load falls.

    Args:
        q: the quotient.
    """

    def __init__(self, q: Quotient) -> None:
        self._data = data_of(q)

    def better(self, stages: Stages) -> tuple[float, Stages]:
        """Return the maximum load of a plan that is no worse, seconds, and its stages."""
        kinds, stage = np.array([t for t, _ in stages]), stage_of(stages, len(self._data.memory))
        load = _improve(stage, kinds, *self._data, MOVES)
        return float(load), [(int(t), np.flatnonzero(stage == s)) for s, t in enumerate(kinds)]


def stage_of(stages: Stages, n: int) -> Ints:
    """Return the stage of each group, int64 (G,)."""
    stage = np.empty(n, dtype=np.int64)
    for s, (_, groups) in enumerate(stages):
        stage[groups] = s
    return stage


@njit(cache=True)
def _toll(pins: Any, size: Any) -> Any:
    return 1.0 if 0 < pins < size else 0.0


@njit(cache=True)
def _change(g: Any, s: Any, step: Any, held: Any, net: Any, first: Any, size: Any, cost: Any) -> Any:
    """Return what group g that joins (step 1) or leaves (-1) stage s adds to what the stage pays for transfers."""
    seconds = 0.0
    for x in range(first[g], first[g + 1]):
        e = net[x]
        seconds += cost[e] * (_toll(held[s, e] + step, size[e]) - _toll(held[s, e], size[e]))
    return seconds


@njit(cache=True)
def _range(g: Any, stage: Any, before: Any, first_before: Any, after: Any, first_after: Any, stages: Any) -> Any:
    low, high = 0, stages - 1
    for a in before[first_before[g] : first_before[g + 1]]:
        low = max(low, stage[a])
    for b in after[first_after[g] : first_after[g + 1]]:
        high = min(high, stage[b])
    return low, high


@njit(cache=True)
def _improve(  # noqa: PLR0912
    stage: Any, kinds: Any, net: Any, first: Any, before: Any, first_before: Any, after: Any, first_after: Any,
    size: Any, cost: Any, time: Any, memory: Any, room: Any, host: Any, moves: Any,
) -> Any:  # fmt: skip
    n, stages = len(stage), len(kinds)
    held = np.zeros((stages, len(size)), dtype=np.int64)
    load, used = np.zeros(stages), np.zeros(stages)
    for g in range(n):
        s = stage[g]
        load[s] += time[kinds[s], g]
        used[s] += memory[g]
        for x in range(first[g], first[g + 1]):
            held[s, net[x]] += 1
    for s in range(stages):
        if not host[kinds[s]]:
            for e in range(len(size)):
                load[s] += cost[e] * _toll(held[s, e], size[e])
    for _ in range(moves):
        top = 0
        for s in range(stages):
            if load[s] > load[top]:
                top = s
        peak = load[top]
        limit = peak * (1 - 1e-9)
        best, who, where = limit, -1, -1
        for g in range(n):
            if stage[g] != top:
                continue
            rest = load[top] - time[kinds[top], g]
            if not host[kinds[top]]:
                rest += _change(g, top, -1, held, net, first, size, cost)
            if rest >= best:
                continue
            low, high = _range(g, stage, before, first_before, after, first_after, stages)
            for s in range(low, high + 1):
                t = kinds[s]
                if s == top or not np.isfinite(time[t, g]) or used[s] + memory[g] > room[t]:
                    continue
                new = load[s] + time[t, g]
                if not host[t]:
                    new += _change(g, s, 1, held, net, first, size, cost)
                worst = max(rest, new)
                if worst < best:
                    best, who, where = worst, g, s
        if who < 0:
            break
        t = kinds[where]
        load[top] -= time[kinds[top], who]
        load[where] += time[t, who]
        if not host[kinds[top]]:
            load[top] += _change(who, top, -1, held, net, first, size, cost)
        if not host[t]:
            load[where] += _change(who, where, 1, held, net, first, size, cost)
        for x in range(first[who], first[who + 1]):
            held[top, net[x]] -= 1
            held[where, net[x]] += 1
        used[top] -= memory[who]
        used[where] += memory[who]
        stage[who] = where
    return load.max()
