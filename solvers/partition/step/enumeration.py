"""The optimum by looking at every placement and every order: slow, simple, and a referee for all that is clever."""

from __future__ import annotations

import numpy as np

from gangplan.instances import StepProblem
from gangplan.instances.arrays import IntArray
from gangplan.instances.partition import Links

from ..enumeration import assignments

MOST = 200_000
"""Placements worth looking at."""

_Task = tuple[float, tuple[int, ...], tuple[int, ...]]
"""Seconds, what it occupies, which tasks come before; an op that receives waits for its transfers."""


def optimum(problem: StepProblem) -> float | None:
    """Return the least makespan of any feasible plan in seconds, `None` if there is no feasible plan.

    Of each feasible placement all orders in which tasks start one after the other, each as early as devices and links
    allow: in the order of its starts, an optimal plan is one of them. It takes nothing from the solvers.

    Raises:
        InstanceError: if there are more than `MOST` placements.
    """
    best = np.inf
    for device in assignments(problem, MOST):
        best = _best_order(*_tasks(problem, device), best)
    return float(best) if np.isfinite(best) else None


def _tasks(problem: StepProblem, device: IntArray) -> tuple[list[_Task], list[dict[int, float]]]:
    """Return the tasks of a placement, ops first, and for each the delays after the tasks before it."""
    graph, cluster = problem.graph, problem.cluster
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    before: list[dict[int, float]] = [{} for _ in range(graph.n_ops)]
    uses: list[tuple[int, ...]] = [(int(d),) for d in device]
    took = seconds.tolist()
    links, transfer = Links(cluster), dict[tuple[int, int], int]()
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        delay = float(problem.delay(np.array([u]), device[[u]], device[[v]])[0])
        if not problem.contention or delay == 0:
            before[v][u] = delay
            continue
        pair = u, int(device[v])
        if pair not in transfer:
            transfer[pair] = len(took)
            took.append(delay)
            uses.append(tuple(cluster.n_devices + x for x in links.route(int(device[u]), int(device[v]))))
            before.append({u: 0.0})
        before[v][transfer[pair]] = 0.0
    return [(took[i], uses[i], tuple(before[i])) for i in range(len(took))], before


def _best_order(tasks: list[_Task], delays: list[dict[int, float]], best: float) -> float:
    """Return the least makespan of all orders, or `best` if none is below it."""
    end: dict[int, float] = {}
    free: dict[int, float] = {}

    def extend(now: float, last: float) -> None:
        nonlocal best
        if len(end) == len(tasks):
            best = min(best, last)
            return
        for i, (took, uses, before) in enumerate(tasks):
            if i in end or not all(j in end for j in before):
                continue
            ready = max((end[j] + delays[i][j] for j in before), default=0.0)
            at = max([ready, *(free.get(x, 0.0) for x in uses)])
            if at < now or at + took >= best:
                continue
            kept = {x: free.get(x, 0.0) for x in uses}
            end[i] = at + took
            free.update(dict.fromkeys(uses, at + took))
            extend(at, max(last, at + took))
            del end[i]
            free.update(kept)

    extend(0.0, 0.0)
    return best
