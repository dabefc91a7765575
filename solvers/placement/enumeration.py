"""The optimum by looking at every placement: slow, simple, and a referee for everything that is clever."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import rates
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import goal

MOST = 300_000
"""Combinations of where each job may be that are worth looking at."""
Where = tuple[tuple[int, int], ...]
"""(workers, servers) on each node."""


@lru_cache(maxsize=64)
def optimum(problem: PlacementProblem) -> float | None:
    """Return the least goal of any feasible placement, `None` if there is none.

    It takes nothing from the solvers: every way to spread each gang over the nodes, every way to pack shares on
    GPUs, the goal by the cost model of the verifier.

    Raises:
        InstanceError: if there are more than `MOST` combinations of the jobs' places.
    """
    options = [_places(problem, j) for j in range(len(problem.jobs))]
    count = np.prod([float(len(x)) for x in options])
    if count > MOST:
        raise InstanceError("instance", f"{count:.3g} ways to place the jobs are more than {MOST}")
    best: float | None = None
    for places in product(*options):
        if not _together(problem, places):
            continue
        for plan in _plans(problem, places):
            value = goal(problem, plan, rates(problem, plan))
            best = value if best is None else min(best, value)
    return best


def _places(problem: PlacementProblem, j: int) -> list[Where]:
    """Return every place of job j that its own constraints allow; the empty one if it may be left out."""
    fleet, job = problem.fleet, problem.jobs[j]
    index = {name: i for i, name in enumerate(fleet.names)}
    for run in problem.running:
        if run.job == job.name and not run.movable:
            fixed = [(0, 0)] * fleet.n_nodes
            for node, w, p in zip(run.nodes, run.workers, run.servers, strict=True):
                fixed[index[node]] = (w, p)
            return [tuple(fixed)] if _own(problem, j, tuple(fixed)) else []
    found: list[Where] = [tuple([(0, 0)] * fleet.n_nodes)] if job.value is not None else []
    for degree in job.workers:
        for workers, servers in product(_shares(degree, fleet.n_nodes), _shares(job.servers, fleet.n_nodes)):
            where = tuple(zip(workers, servers, strict=True))
            if _own(problem, j, where):
                found.append(where)
    return found


def _shares(total: int, nodes: int) -> Iterator[tuple[int, ...]]:
    if nodes == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _shares(total - first, nodes - 1):
            yield (first, *rest)


def _own(problem: PlacementProblem, j: int, where: Where) -> bool:
    fleet, job = problem.fleet, problem.jobs[j]
    seconds = problem.compute()[j]
    labels = [fleet.labels.index(label) for label in job.requires]
    usable = np.asarray(fleet.usable)
    for node, (w, p) in enumerate(where):
        if not w and not p:
            continue
        if not usable[node] or (w and not np.isfinite(seconds[node])) or not fleet.labelled[labels, node].all():
            return False
        if job.most_per_node is not None and w > job.most_per_node:
            return False
        if job.worker.grants and w * job.worker.gpu > fleet.gpus[node] * (1 + TOLERANCE):
            return False
    return True


def _together(problem: PlacementProblem, places: tuple[Where, ...]) -> bool:
    fleet, jobs = problem.fleet, problem.jobs
    for node in range(fleet.n_nodes):
        here = [(job, *where[node]) for job, where in zip(jobs, places, strict=True) if any(where[node])]
        names = {job.name for job, _, _ in here}
        for job, _, _ in here:
            if (job.whole_nodes and len(here) > 1) or names & set(job.apart):
                return False
        for field in ("cpu", "memory", "nic"):
            need = sum(w * getattr(job.worker, field) + p * getattr(job.server, field) for job, w, p in here)
            if need > getattr(fleet, field)[node] * (1 + TOLERANCE):
                return False
        if sum(w * job.worker.gpu for job, w, _ in here) > fleet.gpus[node] * (1 + TOLERANCE):
            return False
    return True


def _plans(problem: PlacementProblem, places: tuple[Where, ...]) -> Iterator[PlacementPlan]:
    """Yield a plan for every choice of the pairs of jobs that share GPUs on each node."""
    rows = [(j, node, w, p) for j, where in enumerate(places) for node, (w, p) in enumerate(where) if w or p]
    by_node: dict[int, list[int]] = {}
    for r, (_, node, _, _) in enumerate(rows):
        by_node.setdefault(node, []).append(r)
    choices = [_grants(problem, rows, node, here) for node, here in by_node.items()]
    for chosen in product(*choices):
        grants = [grant for part in chosen for grant in part]
        columns: Any = [
            *(zip(*rows, strict=True) if rows else ((),) * 4),
            *(zip(*grants, strict=True) if grants else ((),) * 2),
        ]
        job, node, workers, servers, row, card = columns
        yield PlacementPlan(tuple(x.name for x in problem.jobs), job, node, workers, servers, row, card)


def _grants(
    problem: PlacementProblem, rows: list[tuple[int, int, int, int]], node: int, here: list[int]
) -> list[list[tuple[int, int]]]:
    """Return the grants (row, GPU) of a node, one choice for each set of pairs that share, and loads if they matter."""
    gpus = int(problem.fleet.gpus[node])
    whole: list[tuple[int, int]] = []
    tasks: list[int] = []
    for r in here:
        job, w = problem.jobs[rows[r][0]], rows[r][2]
        if 0 < job.worker.gpu < 1:
            tasks += [r] * w
        else:
            whole += [(r, len(whole) + i) for i in range(w * job.worker.grants)]
    found: dict[object, list[tuple[int, int]]] = {}
    for cards in product(range(len(whole), gpus), repeat=len(tasks)):
        used = [0.0] * gpus
        for r, card in zip(tasks, cards, strict=True):
            used[card] += problem.jobs[rows[r][0]].worker.gpu
        if max(used, default=0.0) <= 1 + TOLERANCE:
            held = list(zip(tasks, cards, strict=True))
            pairs = frozenset(frozenset((a, b)) for a, x in held for b, y in held if x == y and a != b)
            # what tasks to come can use depends on how full the GPUs are too
            loads = tuple(sorted(used)) if problem.goal == "fragmentation" else ()
            found.setdefault((pairs, loads), [*whole, *held])
    return list(found.values()) if len(whole) <= gpus else []
