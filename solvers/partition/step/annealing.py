"""Simulated annealing over devices and orders, compiled and in steps, so that somebody can look at the clock."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...compiled.kernel import by_reference, lean, lean_kernel
from ...compiled.routines import below, normal, sow, uniform
from ...run import Run
from .arrays import Arrays, arrays_of, workroom
from .model import Prepared
from .moves import Annealing, propose, take_back
from .schedule import Decoder, as_plan
from .timing import Links, forward, forward_on_links, links_of, ranks, slide

COLD = 1e-5
"""Temperature at the end of a round, as a share of the makespan."""
_NUDGED, _FORGOTTEN, _FAR = 0.15, 0.3, 0.1
"""Share of the moves that change an order, of those that forget a bias, and how far they go, in makespans."""


def begin(a: Arrays, links: Links, where: IntArray, start: FloatArray) -> Annealing:
    """Return a search that is at a plan.

    Args:
        a, links: the problem.
        where: device of each group, which has room for it.
        start: of each op.
    """
    n, k, groups = len(a.group), len(a.room), len(where)
    member = np.argsort(a.group, kind="stable")
    member_first = np.concatenate([[0], np.cumsum(np.bincount(a.group, minlength=groups))])

    def ints(size: int) -> IntArray:
        return np.zeros(size, np.int64)

    s = Annealing(
        where.copy(), np.zeros(n), np.zeros(k), member_first, member, ints(groups), ints(groups), ints(2), ints(groups),
        ints(groups), ints(groups), where.copy(), np.zeros(n), ints(n), np.full(2, np.inf), np.zeros(n), workroom(a),
        links,
    )  # fmt: skip
    s.room.key[:] = start
    anneal(a, s, 0, 0, COLD, 0, 0)  # a round of no steps
    return s


@lean_kernel
def anneal(arrays: Arrays, search: Annealing, i: int, size: int, hot: float, budget: int, seed: int) -> int:
    """Go on with a round, from step i on, until the budget is used up or the round is over; return the next step.

    Cooling is geometric (Kirkpatrick, Gelatt, Vecchi, Science 1983). How long a plan may be is drawn before it is made,
    so that most are given up early.

    Args:
        arrays, search: problem and search; at step 0 it goes back to its best plan.
        i, size: step, and steps of the round.
        hot: temperature at the beginning, as a share of the makespan.
        budget: ops that may be scheduled.
        seed: of all that is drawn.
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
        if uniform() < _NUDGED or not propose(a, s):
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
    if len(s.links.busy):
        length, done = forward_on_links(a, s.links, room, limit)
    else:
        length, done = forward(a, room, room.order, limit)
    return length, n // 3 + done


@lean
def _keep(s: Annealing) -> None:
    """Keep the plan that the search is at if it is the best, by more than rounding."""
    if s.length[0] < s.length[1] * (1 - 1e-9):
        s.length[1] = s.length[0]
        for g in range(len(s.where)):
            s.best_where[g] = s.where[g]
        for v in range(len(s.bias)):
            s.best_bias[v], s.best_order[v] = s.bias[v], s.room.order[v]


@lean
def _return(a: Arrays, s: Annealing) -> None:
    """Go back to the best plan, whose bytes are counted anew."""
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


_HOT = (1e-2, 1e-2 / 4, 1e-2 / 30)
"""Temperature at the beginning of a round, relative to the makespan; rounds take them in turn."""
_STALE = 12
"""Rounds without a better plan after which the search ends."""
_STEPS, _LEAST, _MOST = 25, 100, 10_000
"""Steps of a round: for each group, at least, at most."""
_BUDGET, _BUDGET_ON_LINKS = 20_000, 5_000
"""Ops scheduled between two looks at the clock, without and with contention: some milliseconds."""


def local_search(run: Run, p: Prepared) -> None:
    """Improve the best plan by moves of groups and of priorities until rounds bring nothing; do nothing without a plan.

    Every placement is decoded in the order of its upward ranks, to which the search adds a bias of its own for single
    ops. A round cools down from the best plan on; rounds start less and less hot, then hot again. Moves keep memory
    and colocation.
    """
    if run.plan is None or p.n_devices == 1:
        return
    rng, decoder, a = np.random.default_rng(run.seed), Decoder(p), arrays_of(p)
    where = run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    s = begin(a, links_of(p), where, run.plan.start)
    budget = _BUDGET_ON_LINKS if p.contention else _BUDGET
    size = int(np.clip(_STEPS * p.n_groups, _LEAST, _MOST))
    best, stale, turn = np.inf, 0, 0
    while stale < _STALE and not run.stopped:
        before, i = s.length[1], 0
        while i < size and not run.stopped:
            i = anneal(a, s, i, size, _HOT[turn % len(_HOT)], budget, int(rng.integers(2**31)))
            if s.length[1] < best:
                best = s.length[1]
                device = s.best_where[a.group].tolist()
                start, _, sent = decoder.times(device, s.best_order.tolist())
                run.offer(as_plan(p, device, start, sent), "local_search")
        stale = 0 if s.length[1] < before else stale + 1
        turn += 1
