"""Tiny problems, and their optimum by looking at every list: slow, simple, a referee for everything that is clever."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.schedule import GOALS, Capacity, MoldableJob, NodePool, Pool, ScheduleProblem, ramp_blocks
from gangplan.instances.verify.schedule import goal, is_late

_KEPT = 64
"""Problems kept with their optimum, which is then looked for once and not once a method."""
MOST = 5
"""Jobs; of five, three nodes and three degrees there are some millions of lists."""
Place = tuple[tuple[int, int], ...]
"""(node, GPUs)."""


@lru_cache(maxsize=_KEPT)
def optimum(problem: ScheduleProblem) -> float | None:
    """Return the least goal of any schedule, `None` if there is none.

    Every order of the jobs, every degree, every place, each job as early as it fits there beside those before it: the
    goals never gain by a later completion, so one of these is best. It takes nothing from the solvers. More than `MOST`
    jobs are refused.
    """
    if len(problem.jobs) > MOST:
        raise InstanceError("instance", f"{len(problem.jobs)} jobs are more than {MOST}")
    best: list[float] = []
    _extend(problem, frozenset(range(len(problem.jobs))), [], np.full((2, len(problem.jobs)), np.nan), best)
    return min(best, default=None)


def _extend(
    problem: ScheduleProblem,
    left: frozenset[int],
    held: list[tuple[float, float, Place]],
    ends: np.ndarray,
    best: list[float],
) -> None:
    """Go on from a beginning, whose jobs end at ends[0] and run for ends[1] seconds, (2, n)."""
    if all(problem.price(j) is not None for j in left):
        best[:] = [min([*best, goal(problem, *ends)])]
    for j in left:
        job = problem.jobs[j]
        for degree, seconds in zip(job.degrees, job.durations, strict=True):
            for place in places(problem, degree):
                start = _earliest(problem, held, place, job.release, seconds)
                if job.deadline is not None and is_late(start + seconds, job.deadline, seconds):
                    continue
                ends[:, j] = start + seconds, seconds
                # all that has run so far can only be joined by more
                if not best or _so_far(problem, ends[0]) < best[0]:
                    _extend(problem, left - {j}, [*held, (start, start + seconds, place)], ends, best)
                ends[:, j] = np.nan


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


@lru_cache(maxsize=_KEPT)
def random_problem(seed: int, variant: str = "", *, jobs: int = 4) -> ScheduleProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    All goals and capacities in turn; menus of one to three degrees, some slower than a smaller one or too large;
    releases, deadlines, jobs that may be left out; whole and broken numbers of seconds. Some problems have no
    schedule. `jobs`: at most, one less where places count too.
    """
    rng = np.random.default_rng(seed)
    capacity: Capacity = Pool(int(rng.integers(2, 6)))
    kind = seed // len(GOALS) % 3
    if kind == 1:
        capacity = NodePool(int(rng.integers(2, 4)), int(rng.integers(1, 4)))
    elif kind == 2:
        capacity = RampTopology(2, int(rng.integers(1, 3)), 2 - int(rng.integers(2)))
    unit = float(rng.choice([1.0, 60.0, 0.1, 1 / 3, np.pi]))
    batch = tuple(_job(rng, i, unit) for i in range(int(rng.integers(1, jobs + (kind == 0)))))
    goal = GOALS[seed % len(GOALS)]
    horizon = unit * float(rng.integers(4, 14)) if goal == "throughput" else None
    return ScheduleProblem(batch, capacity, goal, horizon)


def _job(rng: np.random.Generator, i: int, unit: float) -> MoldableJob:
    degrees = sorted(rng.choice([1, 2, 2, 3, 4, 5], int(rng.integers(1, 4)), replace=False).tolist())
    degrees = sorted(set(degrees))
    work = float(rng.integers(2, 12))
    durations = [
        unit * (max(1.0, round(work / d + float(rng.choice([0, 0, 1])))) if rng.random() < 0.95 else 0.0)
        for d in degrees
    ]
    release = unit * float(rng.choice([0, 0, 1, 3, 6]))
    return MoldableJob(
        f"j{i}",
        tuple(degrees),
        tuple(durations),
        release,
        weight=float(rng.choice([0.0, 1.0, 2.0, 5.0, 0.7])),
        deadline=release + unit * float(rng.integers(3, 16)) if rng.random() < 0.4 else None,
        value=float(rng.choice([0.5, 3.0, 20.0])) * unit if rng.random() < 0.35 else None,
    )
