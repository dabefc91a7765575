"""Simulated annealing over plans, by the smooth maximum of the stages' loads (Kirkpatrick, Gelatt and Vecchi 1983).

With the maximum itself most moves would change nothing. Of loads x_s, in units of the best plan's, the energy is

    (log of the sum over s of exp(a (x_s - 1))) / a

which is at least the maximum, and falls too if the load of another stage does. A stage above its memory counts as if
its load were above the best plan's, so that the search can go through plans that do not fit; the best it keeps fit.
"""

from __future__ import annotations

import numpy as np

from ...compiled.kernel import Floats, Ints, by_reference, lean, lean_kernel
from ...compiled.routines import below, sow, uniform
from .moves import Data, State, along, count_all, highest, loads, put, span, weigh

SOFT = 50.0
"""The letter a."""
STRICT = 2.0
"""A stage above its memory by 1% counts as one above the best plan's load by so many percent."""
BACK = 0.4
"""How often a group is sent back in exchange, if there is one that may go."""
_TRIES = 16
"""Groups looked at for one that may go back."""


@lean_kernel
def anneal(  # noqa: PLR0912
    data: Data, plan: State, best: Ints, peak: float, hot: float, cold: float, moves: int, seed: int
) -> float:
    """Try moves from a plan, which changes; return the maximum load of the best, seconds, and put that into `best`.

    Args:
        data, plan: the problem, and where the search is.
        best: the stages of the best plan so far, int64 (G,).
        peak: its maximum load, seconds.
        hot, cold: the first and the last temperature, as shares of `peak`.
        moves: how many.
        seed: of all that is drawn.
    """
    d, p = by_reference(data), by_reference(plan)
    sow(seed)
    count_all(d, p)
    n, stages, unit, weight, who = len(p.stage), len(p.kind), peak, p.weight, p.who
    for s in range(stages):
        weight[s] = _weight(d, p, s, p.load[s], p.used[s], unit)
    total = _sum(weight)
    for g in range(n):
        p.mark[g] = -1
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for i in range(moves):
        heat *= step
        g = below(n)
        s = p.stage[g]
        low, high = span(d, p, g)
        who[0], some = g, 1
        if low < high:
            to = low + below(high - low)
            to += to >= s
            if not np.isfinite(d.time[p.kind[to], g]):
                continue
        else:
            to = s + (1 if uniform() < 0.5 else -1)
            if low > high or to < 0 or to >= stages:
                continue
            some = along(d, p, to, i)
            if some == 0:
                continue
        alone = some == 1 and uniform() >= BACK
        if alone:
            here, there = loads(d, p, g, to)
            bytes_here, bytes_there = p.used[s] - d.memory[g], p.used[to] + d.memory[g]
        else:
            for k in range(some):
                put(d, p, who[k], to)
            if uniform() < BACK or some == 1:
                some = _send_back(d, p, s, to, some)
            here, there, bytes_here, bytes_there = p.load[s], p.load[to], p.used[s], p.used[to]
        new_here, new_there = _weight(d, p, s, here, bytes_here, unit), _weight(d, p, to, there, bytes_there, unit)
        new = total - weight[s] - weight[to] + new_here + new_there
        if new <= total or np.log(new / total) < -SOFT * heat * np.log(uniform()):
            if alone:
                put(d, p, g, to)
            weight[s], weight[to] = new_here, new_there
            total = _sum(weight)
            if max(here, there) < peak:
                peak = _keep(d, p, best, peak)
        elif not alone:
            for k in range(some - 1, -1, -1):
                put(d, p, who[k], s if p.stage[who[k]] == to else to)
    return peak


@lean
def _sum(weight: Floats) -> float:
    total = 0.0
    for x in weight:
        total += x
    return total


@lean
def _weight(d: Data, p: State, s: int, load: float, used: float, unit: float) -> float:
    x, over = load / unit, used / d.room[p.kind[s]]
    if over > 1.0:
        x = max(x, 1.0 + STRICT * (over - 1.0))
    return float(np.exp(min(SOFT * (x - 1.0), 500.0)))


@lean
def _peak(d: Data, p: State) -> float:
    """Return the maximum load, infinite if a stage is above its memory."""
    for s in range(len(p.kind)):
        if p.used[s] > d.room[p.kind[s]]:
            return np.inf
    return highest(p.load)


@lean
def _keep(d: Data, p: State, best: Ints, peak: float) -> float:
    """Put the plan into `best` if it fits and its maximum load is below `peak`; return the lower of the two."""
    top = _peak(d, p)
    if top >= peak * (1 - 1e-9):
        return peak
    weigh(d, p)
    if _peak(d, p) > top:
        return peak
    for g in range(len(p.stage)):
        best[g] = p.stage[g]
    return top


@lean
def _send_back(d: Data, p: State, s: int, to: int, some: int) -> int:
    """Move one group from stage `to` to s if one of a few may; return the length of the list `who` with it."""
    for _ in range(_TRIES):
        h = below(len(p.stage))
        if p.stage[h] == to and np.isfinite(d.time[p.kind[s], h]):
            low, high = span(d, p, h)
            if low <= s <= high:
                put(d, p, h, s)
                p.who[some] = h
                return some + 1
    return some
