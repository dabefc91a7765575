"""The optimum by looking at every list: slow, simple, and a referee for everything that is clever."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.schedule import NodePool, Pool, ScheduleProblem
from gangplan.instances.schedule.capacity import ramp_blocks
from gangplan.instances.verify.schedule import goal, is_late

MOST = 5
"""Jobs; of five, three nodes and three degrees there are some millions of lists."""
Place = tuple[tuple[int, int], ...]
"""(node, GPUs)."""


@lru_cache(maxsize=64)
def optimum(problem: ScheduleProblem) -> float | None:
    """Return the least goal of any schedule, `None` if there is none.

    Every order of the jobs, every degree, every place, each job as early as it fits there beside those before it: the
    goals never gain by a later completion, so one of these is best. It takes nothing from the solvers.

    Raises:
        InstanceError: if there are more than `MOST` jobs.
    """
    if len(problem.jobs) > MOST:
        raise InstanceError("instance", f"{len(problem.jobs)} jobs are more than {MOST}")
    best: list[float] = []
    _extend(problem, frozenset(range(len(problem.jobs))), [], np.full(len(problem.jobs), np.nan), best)
    return min(best, default=None)


def _extend(
    problem: ScheduleProblem,
    left: frozenset[int],
    held: list[tuple[float, float, Place]],
    finish: np.ndarray,
    best: list[float],
) -> None:
    if all(problem.price(j) is not None for j in left):
        best[:] = [min([*best, goal(problem, finish)])]
    for j in left:
        job = problem.jobs[j]
        for degree, seconds in zip(job.degrees, job.durations, strict=True):
            for place in places(problem, degree):
                start = _earliest(problem, held, place, job.release, seconds)
                if job.deadline is not None and is_late(job, job.deadline, start + seconds):
                    continue
                finish[j] = start + seconds
                # all that has run so far can only be joined by more
                if not best or _so_far(problem, finish) < best[0]:
                    _extend(problem, left - {j}, [*held, (start, start + seconds, place)], finish, best)
                finish[j] = np.nan


def _so_far(problem: ScheduleProblem, finish: np.ndarray) -> float:
    if problem.goal == "makespan":
        return float(np.nanmax(finish))
    if problem.goal == "weighted_completion":
        return float(sum(job.weight * f for job, f in zip(problem.jobs, finish, strict=True) if not np.isnan(f)))
    return -np.inf


def places(problem: ScheduleProblem, degree: int) -> list[Place]:
    """Return every way to hold so many GPUs."""
    capacity = problem.capacity
    if isinstance(capacity, Pool):
        return [((0, degree),)] if degree <= capacity.gpus else []
    if isinstance(capacity, RampTopology):
        return [tuple((int(v), 1) for v in block) for block in ramp_blocks(capacity, degree)]
    full, rest = divmod(degree, capacity.gpus)
    found: list[Place] = []
    for nodes in combinations(range(capacity.nodes), full):
        whole = tuple((v, capacity.gpus) for v in nodes)
        found += [(*whole, (v, rest)) for v in range(capacity.nodes) if v not in nodes] if rest else [whole]
    return found


def _earliest(
    problem: ScheduleProblem, held: list[tuple[float, float, Place]], place: Place, release: float, seconds: float
) -> float:
    capacity = problem.capacity
    room = capacity.gpus if isinstance(capacity, Pool | NodePool) else 1
    times = sorted({release, *(end for _, end, _ in held if end > release)})
    return next(t for t in times if all(_fits(held, v, amount, room, t, t + seconds) for v, amount in place))


def _fits(held: list[tuple[float, float, Place]], v: int, amount: int, room: int, start: float, end: float) -> bool:
    here = [
        (s, e, used) for s, e, place in held for node, used in place if node == v and s < end and e > start and e > s
    ]
    if end <= start:
        return True
    return all(
        amount + sum(used for s, e, used in here if s <= t < e) <= room
        for t in (start, *(s for s, _, _ in here if s > start))
    )
