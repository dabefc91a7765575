"""Tiny problems in which every constraint may bind."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gangplan.instances import RampTopology
from gangplan.instances.schedule import GOALS, Capacity, MoldableJob, NodePool, Pool, ScheduleProblem

_KEPT = 64
"""Problems kept, with `enumeration.optimum`, which is then looked for once and not once a method."""


@lru_cache(maxsize=_KEPT)
def random_problem(seed: int, variant: str = "", *, jobs: int = 4) -> ScheduleProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    All goals and capacities in turn; menus of one to three degrees, some slower than a smaller one or too large;
    releases, deadlines, jobs that may be left out; whole and broken numbers of seconds. Some problems have no
    schedule.

    Args:
        seed: of the local random generator.
        variant: there is but one, ``""``.
        jobs: at most so many, one less where places count too; at least one.
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
