"""Simulated annealing over the list and the degrees: a job goes elsewhere in the list, or changes its degree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ..run import Run
from .decode import data_of, decode, room_of, rows_of, whole
from .lists import best_list
from .prepare import EARLIEST, LEFT_OUT, Ints, Prepared

_CHUNK = 500
"""Lists of a round, divided by the square of a hundredth of the jobs."""
_STEPS, _MOST = 20_000_000, 400_000_000
"""Jobs times jobs times nodes of all lists between two looks at the clock, and of one list at most."""
_FIRST, _LAST = 0.02, 0.0002
"""Temperatures, as shares of the goal over the square root of the jobs."""
_ROUNDS = 48
"""Rounds of the first annealing; each one after has half as many again."""
_STALL = 3
"""Annealings without a better schedule after which a small problem is left."""


@njit(cache=True)
def _anneal(
    order: Any,
    wish: Any,
    cost: float,
    hot: Any,
    draws: Any,
    may_leave: Any,
    data: Any,
    room: Any,
    start: Any,
    option: Any,
    rows: Any,
    best: float,
    best_order: Any,
    best_wish: Any,
) -> Any:
    """Make a step a row of `draws`; return (cost now, best cost). `order`, `wish` and the best change in place."""
    n = len(order)
    first = data[0]
    trial = order.copy()
    for i in range(len(draws)):
        kind, a, b, c, accept = draws[i]
        x = int(a * n)
        j = order[x]
        old = wish[j]
        trial[:] = order
        moved = kind < 0.7 or first[j + 1] - first[j] < 2
        if moved and n > 1:
            # near or far
            reach = n if c < 0.25 else max(2, n // 8)
            y = x + int((2 * b - 1) * reach)
            y = min(n - 1, max(0, y))
            if kind < 0.3:
                trial[x], trial[y] = order[y], order[x]
            elif y > x:
                trial[x:y] = order[x + 1 : y + 1]
                trial[y] = j
            else:
                trial[y + 1 : x + 1] = order[y:x]
                trial[y] = j
        if kind > 0.6:
            count = first[j + 1] - first[j]
            k = int(c * (count + 1))
            if k < count:
                wish[j] = first[j] + k
            else:
                wish[j] = -1 if may_leave[j] and b < 0.5 else -2
        new, _ = whole(trial, wish, data, room, start, option, rows)
        if new <= cost or np.exp((cost - new) / hot[i]) > accept:
            cost = new
            order[:] = trial
            if cost < best:
                best = cost
                best_order[:] = order
                best_wish[:] = wish
        else:
            wish[j] = old
    return cost, best


def local_search(run: Run, p: Prepared) -> None:
    """Anneal from the best plan known, or the best list, again and again until nothing better is found."""
    value, order, wish = _begin(run, p)
    steps = p.n * p.n * p.cluster.nodes
    if run.stopped or not np.isfinite(value) or steps > _MOST:
        return
    rng = np.random.default_rng(run.seed)
    data, room, rows = data_of(p), room_of(p), rows_of(p)
    start, option = np.zeros(p.n), np.zeros(p.n, dtype=np.int64)
    chunk = max(20, int(_CHUNK / max(1.0, p.n / 100) ** 2))
    few = max(1, min(chunk, _STEPS // steps))
    best, rounds, stall = value - p.constant, _ROUNDS, 0
    best_order, best_wish = order.copy(), wish.copy()
    may_leave = np.isfinite(p.price)
    while not run.stopped and stall < _STALL:
        before = best
        order[:], wish[:], cost = best_order, best_wish, best
        unit = (best or 1.0) / np.sqrt(p.n)
        heat = unit * _FIRST * (_LAST / _FIRST) ** np.linspace(0, 1, rounds * chunk)
        for i in range(0, len(heat), few):
            if run.stopped:
                break
            hot = heat[i : i + few]
            draws = rng.random((len(hot), 5))
            cost, found = _anneal(
                *(order, wish, cost, hot, draws, may_leave, data, room, start, option, rows),
                *(best, best_order, best_wish),
            )
            if found < best - 1e-12 * abs(best):
                best = found
                _offer(run, p, best_order, best_wish)
        stall = 0 if best < before * (1 - 1e-9) else stall + 1
        rounds += rounds // 2


def _begin(run: Run, p: Prepared) -> tuple[float, Ints, Ints]:
    """Return (goal, order, wish) to start from: the best list, or the best plan known if that is better."""
    value, order, wish, name = best_list(run, p)
    order, wish = order.astype(np.int64), wish.astype(np.int64)
    if not run.stopped and np.isfinite(value):
        run.offer(p.plan(*decode(p, order, wish)[1:]), f"list: {name}")
    if run.plan is not None and run.objective is not None and run.objective < value:
        known = list_of(p, run.plan.degree, run.plan.start)
        value, order, wish = decode(p, *known)[0], *known
    return value, order, wish


def list_of(p: Prepared, degree: Ints, start: Any) -> tuple[Ints, Ints]:
    """Return the list of a plan: by start, those left out at the end."""
    wish = np.full(p.n, LEFT_OUT, dtype=np.int64)
    for j in np.flatnonzero(degree >= 0).tolist():
        wish[j] = next((o for o in p.options(j) if p.menu[o] == degree[j]), EARLIEST)
    return np.lexsort((np.arange(p.n), start, degree < 0)).astype(np.int64), wish


def _offer(run: Run, p: Prepared, order: Ints, wish: Ints) -> None:
    if run.stopped:
        return
    _, option, start, rows = decode(p, order, wish)
    run.offer(p.plan(option, start, rows), "local search")
