"""Placement as a MILP: what a gang's slowest worker computes beside the others on its node."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

import pulp

from .milp_tasks import Programme, Tasks

Term = tuple[float, Any]
"""A share of the compute alone, and whether it is added."""


def add_computes(programme: Programme, tasks: Tasks, tick: list[float], compute: list[Any]) -> None:
    """(I) The compute of j on n is at least c (1 + the sum of what those beside it add).

    Args:
        programme, tasks: the model.
        tick: of each job, a second in the unit of `compute`; 0 where it does not matter.
        compute: of each job, a variable.
    """
    batch = tasks.batch
    added = _added(programme, tasks, tick)
    for j, nodes in enumerate(tasks.busy):
        for n, busy in nodes.items() if tick[j] else ():
            alone = float(batch.alone[j, batch.kind[n]]) * tick[j]
            more = pulp.lpSum(alone * share * x for share, x in added[j, n])
            programme.lp += compute[j] >= alone * busy + more


def _added(programme: Programme, tasks: Tasks, tick: list[float]) -> defaultdict[tuple[int, int], list[Term]]:
    """(M) Return what is added to the compute of j on n: a term for each job beside it, one more for a common GPU."""
    batch, speeds = tasks.batch, tasks.batch.problem.speeds
    found: defaultdict[tuple[int, int], list[Term]] = defaultdict(list)
    for i, j in combinations(range(len(batch.jobs)), 2):
        pairs = [(one, batch.model[one], batch.model[other]) for one, other in ((i, j), (j, i)) if tick[one]]
        host = {one: float(speeds.host[a, b]) for one, a, b in pairs}
        more = {one: float(speeds.gpu[a, b]) - host[one] for one, a, b in pairs}
        for n in tasks.busy[i].keys() & tasks.busy[j].keys():
            if any(host.values()):
                both = programme.both(tasks.busy[i][n], tasks.busy[j][n])
                for one, share in host.items():
                    found[one, n].append((share, both))
            if any(more.values()) and n in tasks.card[i] and n in tasks.card[j]:
                shared = _on_one_card(programme, tasks, i, j, n)
                for one, share in more.items():
                    found[one, n].append((share, shared))
    return found


def _on_one_card(programme: Programme, tasks: Tasks, i: int, j: int, n: int) -> Any:
    """Return whether i and j have tasks on one GPU of n, exactly: sharing a GPU may even be better."""
    lp, found = programme.lp, []
    for x, y in zip(tasks.card[i][n], tasks.card[j][n], strict=True):
        held = []
        for count in (x, y):
            held.append(programme.binary())
            lp += count <= count.upBound * held[-1]
            lp += count >= held[-1]
        found.append(programme.both(*held))
        for one in held:
            lp += found[-1] <= one
    shared = programme.amount(1)
    lp += shared <= pulp.lpSum(found)
    for both in found:
        lp += shared >= both
    return shared
