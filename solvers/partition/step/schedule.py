"""From a placement and the order of each device and link to a plan, all as early as it can; and HEFT's ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.graph import topological_order

from .model import Prepared

Sent = dict[tuple[int, int], float]
"""When each transfer starts, by (op, receiving device), seconds."""


def sent_of(plan: StepPlan) -> Sent:
    """Return when each transfer of a plan starts."""
    pairs = zip(plan.sent.tolist(), plan.receiver.tolist(), strict=True)
    return dict(zip(pairs, plan.sent_at.tolist(), strict=True))


def retime(p: Prepared, device: IntArray, start: FloatArray, sent_at: Sent | None = None) -> StepPlan:
    """Return the plan in which every device and every link keeps its order and all is as early as it can.

    The result holds to the last digit, and no time in it is later than the given one if those were feasible. What
    takes no time goes before what starts with it.

    Args:
        start: of each op, (n,); only the order matters.
        sent_at: of each transfer that takes time, by (op, receiver); one that is missing goes when its op ends.
            Without contention unused.
    """
    where, begin, rank, given = np.asarray(device), np.asarray(start).tolist(), p.rank.tolist(), sent_at or {}
    took = p.time[p.type_of[where], np.arange(p.n)].tolist()
    u, v = p.edges
    # the last row is for level -1, one device
    delays = np.concatenate([p.delay, np.zeros((1, p.n))])[p.level[where[u], where[v]], u].tolist()
    # by op and receiver of its output, or -1 for the op itself: given start, duration, rank, receiver, op
    tasks = {(w, -1): (begin[w], took[w], rank[w], -1, w) for w in range(p.n)}
    waits: dict[tuple[int, int], list[tuple[tuple[int, int], float]]] = {task: [] for task in tasks}
    for a, b, d, delay in zip(u.tolist(), v.tolist(), where[v].tolist(), delays, strict=True):
        if not p.contention or delay == 0:
            waits[b, -1].append(((a, -1), delay))
            continue
        # a consumer waits for the transfer in place of the op
        tasks[a, d] = (given.get((a, d), begin[a] + took[a]), delay, rank[a], d, a)
        waits[a, d] = [((a, -1), 0.0)]
        waits[b, -1].append(((a, d), 0.0))
    order = sorted(tasks, key=tasks.__getitem__)
    number = {task: i for i, task in enumerate(order)}
    ends = [(number[before], i) for i, task in enumerate(order) for before, _ in waits[task]]
    first, last = np.array(ends, dtype=np.int32).reshape(-1, 2).T
    at, end = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    free = [0.0] * (p.n_devices + (len(p.links.names) if p.contention else 0))
    # each comes after what it waits for, else the least
    for i in topological_order(len(order), first, last).tolist():
        w, d = task = order[i]
        early = max((end[before] + delay for before, delay in waits[task]), default=0.0)
        uses = [int(where[w])] if d < 0 else [p.n_devices + x for x in p.routes[int(where[w])][d]]
        at[task] = max(early, *(free[x] for x in uses))
        end[task] = at[task] + tasks[task][1]
        for x in uses:
            free[x] = end[task]
    made = sorted(task for task in at if task[1] >= 0)
    op, receiver = np.array(made, dtype=np.int32).reshape(-1, 2).T
    starts, sent = np.array([at[w, -1] for w in range(p.n)]), np.array([at[task] for task in made])
    return StepPlan(p.problem.graph.names, where.astype(np.int32), starts, op, receiver, sent)


def mean_rank(p: Prepared) -> list[float]:
    """Return HEFT's upward rank in seconds (Topcuoglu, Hariri, Wu, IEEE TPDS 2002, Eq. 3): mean times, mean delays."""
    able = p.time < float("inf")
    count = np.bincount(p.type_of, minlength=len(p.time)).astype(float)
    took = ((count @ np.where(able, p.time, 0.0)) / (count @ able).clip(min=1.0)).tolist()
    return _upward(p, took, _mean_delay(p).tolist())


def _mean_delay(p: Prepared) -> FloatArray:
    if not len(p.used_levels):
        return p.fastest * 0.0
    pairs = [(p.level == x).sum() for x in p.used_levels]
    total = sum(n * p.delay[x] for n, x in zip(pairs, p.used_levels.tolist(), strict=True))
    return total / p.n_devices**2  # type: ignore[no-any-return]


def _upward(p: Prepared, took: Sequence[float], delay: Sequence[float]) -> list[float]:
    rank = list(took)
    first, index = p.successors[0].tolist(), p.successors[1].tolist()
    for v in p.order[::-1].tolist():
        if first[v] < first[v + 1]:
            rank[v] += delay[v] + max([rank[w] for w in index[first[v] : first[v + 1]]])
    return rank
