"""Simulated annealing over devices and orders, compiled and in steps, so that somebody can look at the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...compiled.kernel import by_reference, lean, lean_kernel
from ...compiled.routines import below, ints, normal, sow, uniform
from ...run import Run
from .. import ragged
from .arrays import Arrays, Workroom, workroom
from .model import Prepared
from .moves import Annealing, choose, find_critical, take_back
from .timing import forward, placed, ranks, slide

COLD = 1e-5
"""Temperature at the end of a round, as a share of the makespan."""
_NUDGED, _FORGOTTEN, _FAR = 0.15, 0.3, 0.1
"""Share of the moves that change an order, of those that forget a bias, and how far they go, in makespans."""


def begin(p: Prepared, room: Workroom, where: IntArray, start: FloatArray) -> Annealing:
    """Return a search that is at a plan: a device for each group, with room for it, and a start for each op."""
    n, k, groups = p.n, p.n_devices, p.n_groups
    member, member_first = ragged(p.group_of, np.arange(n), groups)

    s = Annealing(
        where.copy(), np.zeros(n), np.zeros(k), member_first, member, ints(groups), ints(groups), ints(groups),
        ints(groups), ints(3), ints(n), ints(n), ints(groups), ints(groups), ints(groups), where.copy(), np.zeros(n),
        ints(n), np.full(2, np.inf), np.zeros(n), room.topological.copy(), np.zeros(k), np.zeros(n), room,
    )  # fmt: skip
    s.room.key[:] = start
    anneal(p.arrays, s, 0, 0, COLD, 0, 0)  # a round of no steps
    return s


@lean_kernel
def anneal(arrays: Arrays, search: Annealing, i: int, size: int, hot: float, budget: int, seed: int) -> int:
    """Go on with a round, from step i on, until the budget is used up or the round is over; return the next step.

    Cooling is geometric (Kirkpatrick, Gelatt, Vecchi, Science 1983). How long a plan may be is drawn before it is made,
    so that most are given up early.

    Args:
        arrays, search: problem and search; at step 0 it goes back to its best plan.
        hot: temperature at the beginning, as a share of the makespan.
    """
    a, s = by_reference(arrays), by_reference(search)
    sow(seed)
    n = len(s.bias)
    if i == 0:
        _return(a, s)
    if s.length[1] == np.inf:
        _begin(a, s)
    while i < size and budget > 0:
        heat = hot * (COLD / hot) ** (i / size) * s.length[1]
        i += 1
        v, old = -1, 0.0
        if uniform() < _NUDGED or not choose(a, s):
            v = below(n)
            old = s.bias[v]
            if old != 0.0 and uniform() < _FORGOTTEN:
                s.bias[v] = 0.0
            else:
                s.bias[v] += normal() * _FAR * s.length[0]
        most = s.length[0] - heat * np.log(1.0 - uniform()) + 1e-12 * s.length[0]
        length, done = _evaluate(a, s, most)
        budget -= done
        if length < most:
            s.length[0] = length
            s.tally[0] = 0
            _keep(s)
            find_critical(a, s)
        else:
            take_back(a, s)
            if v >= 0:
                s.bias[v] = old
    return i


@lean
def _begin(a: Arrays, s: Annealing) -> None:
    """Keep the plan of a search that has none yet, by ranks or in its own order, whose starts are the room's keys."""
    s.length[0], _ = _evaluate(a, s, np.inf)
    _keep(s)
    # the order of the plan need not be that of its ranks: keep it as a bias
    for v in range(len(s.bias)):
        s.bias[v] = -s.room.key[v] - s.room.tail[v]
    s.length[0], _ = _evaluate(a, s, np.inf)
    _keep(s)
    find_critical(a, s)


@lean
def _evaluate(a: Arrays, s: Annealing, limit: float) -> tuple[float, int]:
    """Schedule by falling rank and bias; return the makespan, infinite from `limit` on, and how many ops that took."""
    room, n = s.room, len(s.bias)
    ranks(a, room)
    for i in range(n - 1, -1, -1):
        v = room.topological[i]
        if room.tail[v] >= limit:
            return np.inf, n // 3
        most = room.tail[v] + s.bias[v]
        for j in range(a.after_first[v], a.after_first[v + 1]):
            most = max(most, s.key[a.after[j]])
        s.key[v] = most
    slide(s.key, a.topological, room.order)
    length, done = forward(a, room, limit)
    return length, n // 3 + done


@lean
def _keep(s: Annealing) -> None:
    if s.length[0] < s.length[1] * (1 - 1e-9):
        s.length[1] = s.length[0]
        for g in range(len(s.where)):
            s.best_where[g] = s.where[g]
        for v in range(len(s.bias)):
            s.best_bias[v], s.best_order[v] = s.bias[v], s.room.order[v]


@lean
def _return(a: Arrays, s: Annealing) -> None:
    s.tally[0] = 0
    for d in range(len(s.left)):
        s.left[d] = a.room[d]
    for g in range(len(s.where)):
        s.where[g] = s.best_where[g]
        s.left[s.where[g]] -= a.need[g]
    for v in range(len(s.bias)):
        s.room.device[v] = s.where[a.group[v]]
        s.bias[v] = s.best_bias[v]
    s.length[0] = s.length[1]


_BUDGET, _BUDGET_ON_LINKS = 20_000, 5_000
"""Ops scheduled between two looks at the clock, without and with contention: some milliseconds."""


def cool(
    p: Prepared, s: Annealing, size: int, hot: float, rng: np.random.Generator, stopped: Callable[[], bool]
) -> Iterator[None]:
    """Do a round of so many steps from the best plan on, from a temperature on; yield now and then."""
    budget, i = _BUDGET_ON_LINKS if p.contention else _BUDGET, 0
    while i < size and not stopped():
        i = anneal(p.arrays, s, i, size, hot, budget, int(rng.integers(2**31)))
        yield


_HOT = (1e-2 / 4, 1e-2 / 30, 1e-2)
"""Temperature at the beginning of a round, relative to the makespan; rounds take them in turn."""
_STALE = 12
"""Rounds without a better plan after which the search ends."""
_STEPS, _LEAST, _MOST = 25, 100, 10_000
"""Steps of a round: for each group, at least, at most."""
_SECONDS, _SECONDS_ON_LINKS, _PART = 4e-8, 2e-7, 3
"""About what a step takes for each op, without and with contention, and which part of the time a round may take."""


def local_search(run: Run, p: Prepared) -> None:
    """Improve the best plan by moves of groups and of priorities until rounds bring nothing; do nothing without a plan.

    Every placement is decoded in the order of its upward ranks, to which the search adds a bias of its own for single
    ops. A round cools down from the best plan on; rounds start less and less hot, then hot again. Moves keep memory
    and colocation.
    """
    # of many devices some are left out, which others' plans may use
    if run.plan is None or run.plan.device.max() >= p.n_devices or p.n_devices == 1:
        return
    where: Any = run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    rng, room = np.random.default_rng(run.seed), workroom(p)
    s = begin(p, room, where, run.plan.start)
    fitting = run.remaining() / _PART / p.n / (_SECONDS_ON_LINKS if p.contention else _SECONDS)
    # in powers of two, so that one seed gives one trace
    size = int(min(np.clip(_STEPS * p.n_groups, _LEAST, _MOST), 2.0 ** np.floor(np.log2(max(fitting, _LEAST)))))
    best, stale, turn = np.inf, 0, 0
    while stale < _STALE and not run.stopped:
        before = s.length[1]
        for _ in cool(p, s, size, _HOT[turn % len(_HOT)], rng, lambda: run.stopped):
            if s.length[1] < best:
                best = s.length[1]
                run.offer(placed(p, room, s.best_where, s.best_order), "local_search")
        stale = 0 if s.length[1] < before else stale + 1
        turn += 1
