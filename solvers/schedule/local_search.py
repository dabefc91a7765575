"""Simulated annealing over the list and the degrees: a job goes elsewhere in the list, or changes its degree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..compiled.kernel import Bools, Floats, Floats2, Ints, by_reference, inner, kernel
from ..run import Run
from .decode import Schedule, best_list, data_of, decode, room_of, schedule_of, whole
from .prepare import EARLIEST, LEFT_OUT, Prepared
from .profile import Data, Room

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


class Lists(NamedTuple):
    """A list that is changed, of n jobs, and the best one so far.

    Attributes:
        order, wish: jobs, and what each is to have, see `decode.listed`, (n,).
        best_order, best_wish: the same.
        trial: room for one more order.
        may_leave: whether a job may be left out, (n,).
    """

    order: Ints
    wish: Ints
    best_order: Ints
    best_wish: Ints
    trial: Ints
    may_leave: Bools


@kernel
def _anneal(
    lists: Lists, cost: float, best: float, hot: Floats, draws: Floats2, problem: Data, profiles: Room, made: Schedule
) -> tuple[float, float]:
    """Make a step a row of `draws`; return (cost now, best cost). `lists` change in place."""
    data, room = by_reference(problem), by_reference(profiles)
    order, wish, trial, first = lists.order, lists.wish, lists.trial, data.first
    n = len(order)
    for i in range(len(draws)):
        kind, a, b, c, accept = draws[i, 0], draws[i, 1], draws[i, 2], draws[i, 3], draws[i, 4]
        x = int(a * n)
        j = order[x]
        old = wish[j]
        _copy(order, trial)
        moved = kind < 0.7 or first[j + 1] - first[j] < 2
        if moved and n > 1:
            # near or far
            reach = n if c < 0.25 else max(2, n // 8)
            y = x + int((2 * b - 1) * reach)
            y = min(n - 1, max(0, y))
            if kind < 0.3:
                trial[x], trial[y] = order[y], order[x]
            else:
                for z in range(x, y):
                    trial[z] = order[z + 1]
                for z in range(x, y, -1):
                    trial[z] = order[z - 1]
                trial[y] = j
        if kind > 0.6:
            count = first[j + 1] - first[j]
            k = int(c * (count + 1))
            if k < count:
                wish[j] = first[j] + k
            else:
                wish[j] = -1 if lists.may_leave[j] and b < 0.5 else -2
        new = whole(trial, wish, data, room, made)
        if new <= cost or np.exp((cost - new) / hot[i]) > accept:
            cost = new
            _copy(trial, order)
            if cost < best:
                best = cost
                _copy(order, lists.best_order)
                _copy(wish, lists.best_wish)
        else:
            wish[j] = old
    return cost, best


@inner
def _copy(source: Ints, target: Ints) -> None:
    for i in range(len(source)):
        target[i] = source[i]


def local_search(run: Run, p: Prepared) -> None:
    """Anneal from the best plan known, or the best list, again and again until nothing better is found."""
    value, order, wish = _begin(run, p)
    steps = p.n * p.n * p.cluster.nodes
    if run.stopped or not np.isfinite(value) or steps > _MOST:
        return
    rng = np.random.default_rng(run.seed)
    data, room, made = data_of(p), room_of(p), schedule_of(p)
    chunk = max(20, int(_CHUNK / max(1.0, p.n / 100) ** 2))
    few = max(1, min(chunk, _STEPS // steps))
    best, rounds, stall = value - p.constant, _ROUNDS, 0
    best_order, best_wish = order.copy(), wish.copy()
    lists = Lists(order, wish, best_order, best_wish, order.copy(), np.isfinite(p.price))
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
            cost, found = _anneal(lists, cost, best, hot, draws, data, room, made)
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


def list_of(p: Prepared, degree: Ints, start: FloatArray) -> tuple[Ints, Ints]:
    """Return the list of a plan: by start, those left out at the end."""
    wish = np.full(p.n, LEFT_OUT, dtype=np.int64)
    for j in np.flatnonzero(degree >= 0).tolist():
        wish[j] = next((o for o in p.options(j) if p.menu[o] == degree[j]), EARLIEST)
    return np.lexsort((np.arange(p.n), start, degree < 0)).astype(np.int64), wish


def _offer(run: Run, p: Prepared, order: Ints, wish: Ints) -> None:
    if run.stopped:
        return
    _, option, start, rows = decode(p, order, wish)
    run.offer(p.plan(option, start, rows), "local_search")
