"""Simulated annealing over devices and orders, compiled and in steps, so that somebody can look at the clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gangplan.instances.arrays import FloatArray, IntArray

from .balls import propose, take_back
from .links import forward_on_links
from .neighbour import workroom
from .polish import forward, ranks, slide

COLD = 1e-5
"""Temperature at the end of a round, as a share of the makespan."""
_NUDGED, _FORGOTTEN, _FAR = 0.15, 0.3, 0.1
"""Share of the moves that change an order, of those that forget a bias, and how far they go, in makespans."""


class Annealing(NamedTuple):
    """Where a search is, and the best that it has found; n ops, G groups, k devices.

    Attributes:
        where, bias: device of each group, int64 (G,), and what is added to the rank of each op, float64 (n,).
        left: bytes left on each device, float64 (k,).
        member_first, member: ops of each group, CSR, int64.
        moved, came: groups that have just moved, and from where, int64 (G,).
        tally: how many have, and how many balls there have been, int64 (2,).
        seen, edge, pull: in which ball a group was last, ball and what it may grow by, and how many neighbours a group
            has on the other side, int64 (G,).
        best_where, best_bias, best_order: the best plan, the last in which order its ops are scheduled, int64 (n,).
        length: makespan that it is at, and of the best plan, float64 (2,).
        key: rank and bias of each op, no less than of what follows, float64 (n,).
        room: where schedules are made, `Workroom`.
        links: of the cluster, `Links`; none where transfers do not wait for one another.
    """

    where: IntArray
    bias: FloatArray
    left: FloatArray
    member_first: IntArray
    member: IntArray
    moved: IntArray
    came: IntArray
    tally: IntArray
    seen: IntArray
    edge: IntArray
    pull: IntArray
    best_where: IntArray
    best_bias: FloatArray
    best_order: IntArray
    length: FloatArray
    key: FloatArray
    room: Any
    links: Any


@njit(cache=True)
def begin(a: Any, links: Any, where: Any, start: Any) -> Any:
    """Return a search that is at a plan.

    Args:
        a, links: the problem, `Arrays` and `Links`.
        where: device of each group, which has room for it.
        start: of each op.
    """
    n, k, groups = len(a.group), len(a.room), len(where)
    member: Any = np.argsort(a.group, kind="mergesort")
    member_first: Any = np.zeros(groups + 1, np.int64)
    for v in range(n):
        member_first[a.group[v] + 1] += 1
    for g in range(groups):
        member_first[g + 1] += member_first[g]
    s = Annealing(
        where.copy(), np.zeros(n), np.zeros(k), member_first, member,
        np.empty(groups, np.int64), np.empty(groups, np.int64), np.zeros(2, np.int64), np.zeros(groups, np.int64),
        np.empty(groups, np.int64), np.empty(groups, np.int64), where.copy(), np.zeros(n), np.empty(n, np.int64),
        np.full(2, np.inf), np.zeros(n), workroom(a), links,
    )  # fmt: skip
    _return(a, s)
    s.length[0], _ = evaluate(a, s, np.inf)
    _keep(s)
    # the order of the plan need not be that of its ranks: keep it as a bias
    for v in range(n):
        s.bias[v] = -start[v] - s.room.tail[v]
    s.length[0], _ = evaluate(a, s, np.inf)
    _keep(s)
    return s


@njit(cache=True)
def evaluate(a: Any, s: Any, limit: float) -> Any:
    """Schedule by falling rank and bias; return the makespan, infinite from `limit` on, and how many ops that took."""
    room, n = s.room, len(s.bias)
    ranks(a, room.device, room.topological, room.tail)
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
        length, done = forward(
            a, room.device, room.order, room.tail, limit, room.start, room.finish, room.low, room.high, room.busy
        )
    return length, n // 3 + done


@njit(cache=True)
def anneal(a: Any, s: Any, i: int, size: int, hot: float, budget: int, seed: int) -> int:
    """Go on with a round, from step i on, until the budget is used up or the round is over; return the next step.

    Cooling is geometric (Kirkpatrick, Gelatt, Vecchi, Science 1983). How long a plan may be is drawn before it is made,
    so that most are given up early.

    Args:
        a, s: problem and search; at step 0 it goes back to its best plan.
        i, size: step, and steps of the round.
        hot: temperature at the beginning, as a share of the makespan.
        budget: ops that may be scheduled.
        seed: of all that is drawn.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    n = len(s.bias)
    if i == 0:
        _return(a, s)
    while i < size and budget > 0:
        heat = hot * (COLD / hot) ** (i / size) * s.length[1]
        i += 1
        v, old = -1, 0.0
        if np.random.random() < _NUDGED or not propose(a, s):  # noqa: NPY002
            v = np.random.randint(n)  # noqa: NPY002
            old = s.bias[v]
            if old != 0.0 and np.random.random() < _FORGOTTEN:  # noqa: NPY002
                s.bias[v] = 0.0
            else:
                s.bias[v] += np.random.normal() * _FAR * s.length[0]  # noqa: NPY002
        most = s.length[0] - heat * np.log(1.0 - np.random.random()) + 1e-12 * s.length[0]  # noqa: NPY002
        length, done = evaluate(a, s, most)
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


@njit(cache=True)
def _keep(s: Any) -> None:
    """Keep the plan that the search is at if it is the best, by more than rounding."""
    if s.length[0] < s.length[1] * (1 - 1e-9):
        s.length[1] = s.length[0]
        s.best_where[:], s.best_bias[:], s.best_order[:] = s.where, s.bias, s.room.order


@njit(cache=True)
def _return(a: Any, s: Any) -> None:
    """Go back to the best plan, whose bytes are counted anew."""
    s.tally[0] = 0
    s.left[:] = a.room
    for g in range(len(s.where)):
        s.where[g] = s.best_where[g]
        s.left[s.where[g]] -= a.need[g]
    for v in range(len(s.bias)):
        s.room.device[v] = s.where[a.group[v]]
    s.bias[:] = s.best_bias
    s.length[0] = s.length[1]
