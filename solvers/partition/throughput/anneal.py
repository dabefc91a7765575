"""Simulated annealing over plans, by the smooth maximum of the stages' loads (Kirkpatrick, Gelatt and Vecchi 1983).

With the maximum itself most moves would change nothing. Of loads x_s, in units of the best plan's, the energy is

    (log of the sum over s of exp(a (x_s - 1))) / a

which is at least the maximum, and falls too if the load of another stage does. A stage above its memory counts as if
its load were above the best plan's, so that the search can go through plans that do not fit; the best it keeps fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .moves import along, count, loads, put, span

SOFT = 50.0
"""The letter a."""
STRICT = 2.0
"""A stage above its memory by 1% counts as one above the best plan's load by so many percent."""
BACK = 0.4
"""How often a group is sent back in exchange, if there is one that may go."""
_TRIES = 16
"""Groups looked at for one that may go back."""
MOST = 6
"""Groups that move at once, what must go with one included."""


@njit(cache=True, nogil=True)
def anneal(  # noqa: PLR0912
    d: Any, p: Any, best: Any, peak: float, hot: float, cold: float, moves: int, seed: int
) -> float:
    """Try moves from the plan p, which changes; return the maximum load of the best, seconds, and put that into `best`.

    Args:
        d, p: see `Data`, `State`.
        best: the stages of the best plan so far, int64 (G,).
        peak: its maximum load, seconds.
        hot, cold: the first and the last temperature, as shares of `peak`.
        moves: how many.
        seed: of all that is drawn.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    count(d, p)
    n, stages, unit = len(p.stage), len(p.kind), peak
    weight = np.empty(stages)
    for s in range(stages):
        weight[s] = _weight(d, p, s, p.load[s], p.used[s], unit)
    total = weight.sum()
    who, mark = np.empty(MOST + 1, np.int64), np.full(n, -1)
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for i in range(moves):
        heat *= step
        g = np.random.randint(n)  # noqa: NPY002
        s = p.stage[g]
        low, high = span(d, p, g)
        who[0], some = g, 1
        if low < high:
            to = low + np.random.randint(high - low)  # noqa: NPY002
            to += to >= s
            if not np.isfinite(d.time[p.kind[to], g]):
                continue
        else:
            to = s + (1 if np.random.random() < 0.5 else -1)  # noqa: NPY002
            if low > high or to < 0 or to >= stages:
                continue
            some = along(d, p, to, who[:MOST], mark, i)
            if some == 0:
                continue
        alone = some == 1 and np.random.random() >= BACK  # noqa: NPY002
        if alone:
            here, there = loads(d, p, g, to)
            bytes_here, bytes_there = p.used[s] - d.memory[g], p.used[to] + d.memory[g]
        else:
            for k in range(some):
                put(d, p, who[k], to)
            if np.random.random() < BACK or some == 1:  # noqa: NPY002
                some = _send_back(d, p, s, to, who, some)
            here, there, bytes_here, bytes_there = p.load[s], p.load[to], p.used[s], p.used[to]
        new_here, new_there = _weight(d, p, s, here, bytes_here, unit), _weight(d, p, to, there, bytes_there, unit)
        new = total - weight[s] - weight[to] + new_here + new_there
        if new <= total or np.log(new / total) < -SOFT * heat * np.log(np.random.random()):  # noqa: NPY002
            if alone:
                put(d, p, g, to)
            weight[s], weight[to] = new_here, new_there
            total = weight.sum()
            if max(here, there) < peak:
                top = _peak(d, p)
                if top < peak * (1 - 1e-9):
                    peak = top
                    best[:] = p.stage
        elif not alone:
            for k in range(some - 1, -1, -1):
                put(d, p, who[k], s if p.stage[who[k]] == to else to)
    return peak


@njit(cache=True)
def _weight(d: Any, p: Any, s: Any, load: Any, used: Any, unit: Any) -> Any:
    x, over = load / unit, used / d.room[p.kind[s]]
    if over > 1.0:
        x = max(x, 1.0 + STRICT * (over - 1.0))
    return np.exp(min(SOFT * (x - 1.0), 500.0))


@njit(cache=True)
def _peak(d: Any, p: Any) -> Any:
    """Return the maximum load, infinite if a stage is above its memory."""
    for s in range(len(p.kind)):
        if p.used[s] > d.room[p.kind[s]]:
            return np.inf
    return p.load.max()


@njit(cache=True)
def _send_back(d: Any, p: Any, s: Any, to: Any, who: Any, some: Any) -> Any:
    """Move one group from stage `to` to s if one of a few may; return the length of the list `who` with it."""
    for _ in range(_TRIES):
        h = np.random.randint(len(p.stage))  # noqa: NPY002
        if p.stage[h] == to and np.isfinite(d.time[p.kind[s], h]):
            low, high = span(d, p, h)
            if low <= s <= high:
                put(d, p, h, s)
                who[some] = h
                return some + 1
    return some
