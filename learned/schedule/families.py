"""Families of instances that the policy was never trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.generators.moldable import moldable
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem


def unseen(family: str, seed: int, jobs: int) -> ScheduleProblem:
    """Return an instance of ``bursts`` or of ``moldable, other ranges``, with half of so many jobs up to all.

    Bursts: campaigns of like jobs arrive together; sizes are Pareto, speed-ups Amdahl's with a serial part of 1 to 20%,
    menus have 1, 2, 3, 5, 8 and 12 GPUs or some of them; half of the goals are mean completion times.

    Moldable, other ranges: loads of 2 to 3 where training had 0.6 to 1.6, nodes of 6 or 16 GPUs instead of 4 or 8, a
    third of the jobs rigid, half of the jobs with deadlines that may be missed at a price.
    """
    rng = np.random.default_rng([*family.encode(), seed])
    n = int(rng.integers(max(2, jobs // 2), jobs + 1))
    return _bursts(rng, n) if family == "bursts" else _ranges(rng, n, seed)


def _ranges(rng: np.random.Generator, jobs: int, seed: int) -> ScheduleProblem:
    tight = bool(rng.integers(2))
    options: dict[str, Any] = {"fraction": 6.0, "optional": 1.0} if tight else {"optional": 0.15}
    return moldable(
        jobs, int(rng.integers(1, 4)), int(rng.choice([6, 16])), float(rng.uniform(2.0, 3.0)), seed,
        capacity=str(rng.choice(["pool", "nodes"])), rigid=0.33, **options,
    )  # fmt: skip


def _bursts(rng: np.random.Generator, jobs: int) -> ScheduleProblem:
    capacity = Pool(int(rng.integers(6, 49))) if rng.random() < 0.5 else NodePool(int(rng.integers(2, 6)), 8)
    gpus = capacity.gpus if isinstance(capacity, Pool) else capacity.nodes * capacity.gpus
    made: list[MoldableJob] = []
    now, goal = 0.0, str(rng.choice(["weighted_completion", "mean_jct"]))
    while len(made) < jobs:
        work, serial = 1800.0 * float(rng.pareto(1.5) + 1), float(rng.uniform(0.01, 0.2))
        burst = min(int(rng.geometric(0.35)), jobs - len(made))
        menu = [d for d in (1, 2, 3, 5, 8, 12) if d <= gpus and (d in (1, 12) or rng.random() < 0.7)]
        menu = [d for d in menu if d <= 8 or not isinstance(capacity, NodePool)]
        for _ in range(burst):
            mine = min(work, 3e5) * float(rng.uniform(0.8, 1.25))
            seconds = tuple(max(np.ceil(mine * (serial + (1 - serial) / d) / 60.0), 1.0) * 60.0 for d in menu)
            weight = float(rng.integers(1, 6)) if goal == "weighted_completion" else 1.0
            made.append(MoldableJob(f"job{len(made)}", tuple(menu), seconds, np.floor(now / 60.0) * 60.0, weight))
        now += float(rng.exponential(burst * min(work, 3e5) / gpus))
    return ScheduleProblem(tuple(made), capacity, goal)
