"""Better a plan by single groups: off the busiest stage, to wherever both stages end below the maximum."""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import by_reference, lean, lean_kernel
from .cuts import Stages
from .moves import Data, State, count_all, data_of, highest, span, uncounted, weigh
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
        load = improve(self._data, uncounted(self._data, stage, kinds), MOVES)
        return float(load), [(int(t), np.flatnonzero(stage == s)) for s, t in enumerate(kinds)]


def stage_of(stages: Stages, n: int) -> Ints:
    """Return the stage of each group, int64 (G,)."""
    stage = np.empty(n, dtype=np.int64)
    for s, (_, groups) in enumerate(stages):
        stage[groups] = s
    return stage


@lean
def _toll(pins: int, size: int) -> float:
    return 1.0 if 0 < pins < size else 0.0


@lean
def _change(d: Data, p: State, g: int, s: int, step: int) -> float:
    """Return what group g that joins (step 1) or leaves (-1) stage s adds to what the stage pays for transfers."""
    seconds = 0.0
    for x in range(d.first[g], d.first[g + 1]):
        e = d.net[x]
        pins, size = p.held[s, e] + step, d.size[e]
        seconds += d.cost[e] * (_toll(pins, size) - _toll(pins - step, size))
    return seconds


@lean_kernel
def improve(data: Data, plan: State, moves: int) -> float:  # noqa: PLR0912
    """Move single groups, so many at most, while the maximum load falls, and return it, seconds."""
    d, p = by_reference(data), by_reference(plan)
    count_all(d, p)
    stage, kinds, time, host, load, used, stages = p.stage, p.kind, d.time, d.host, p.load, p.used, len(p.kind)
    for _ in range(moves):
        top = 0
        for s in range(stages):
            if load[s] > load[top]:
                top = s
        peak = load[top]
        limit = peak * (1 - 1e-9)
        best, who, where = limit, -1, -1
        for g in range(len(stage)):
            if stage[g] != top:
                continue
            rest = load[top] - time[kinds[top], g]
            if not host[kinds[top]]:
                rest += _change(d, p, g, top, -1)
            if rest >= best:
                continue
            low, high = span(d, p, g)
            for s in range(low, high + 1):
                t = kinds[s]
                if s == top or not np.isfinite(time[t, g]) or used[s] + d.memory[g] > d.room[t]:
                    continue
                new = load[s] + time[t, g]
                if not host[t]:
                    new += _change(d, p, g, s, 1)
                worst = max(rest, new)
                if worst < best:
                    best, who, where = worst, g, s
        if who < 0:
            break
        t = kinds[where]
        load[top] -= time[kinds[top], who]
        load[where] += time[t, who]
        if not host[kinds[top]]:
            load[top] += _change(d, p, who, top, -1)
        if not host[t]:
            load[where] += _change(d, p, who, where, 1)
        for x in range(d.first[who], d.first[who + 1]):
            p.held[top, d.net[x]] -= 1
            p.held[where, d.net[x]] += 1
        stage[who] = where
        weigh(d, p)
    return highest(load)
