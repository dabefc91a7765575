"""Tiny random batches whose capacities just fit, or just do not, in units from 1e-9 to 1e9."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)


def just_fits(seed: int) -> PlacementProblem:
    """Make a batch of one to three gangs on one to three nodes."""
    return _Maker(seed).problem()


def labelled(seed: int) -> PlacementProblem:
    """Make a batch of `just_fits` of which some jobs need a label that some nodes carry, one in four of them."""
    problem, rng = just_fits(seed), np.random.default_rng([seed, 23])
    if rng.random() < 0.75:
        return problem
    fleet = replace(problem.fleet, labels=("fast",), labelled=rng.random((1, problem.fleet.n_nodes)) < 0.7)
    jobs = tuple(replace(x, requires=("fast",)) if rng.random() < 0.5 else x for x in problem.jobs)
    return replace(problem, fleet=fleet, jobs=jobs)


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([77, seed])
        self.seconds, _, self.cores, self.bytes, self.weight, self.speed = (
            self._ten() if self.rng.random() < 0.6 else 1.0 for _ in range(6)
        )

    def _ten(self) -> float:
        return 10.0 ** int(self.rng.integers(-9, 10))

    def _pick(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def problem(self) -> PlacementProblem:
        rng, pick = self.rng, self._pick
        m = int(rng.integers(1, 4))
        jobs = [self._job(i) for i in range(int(rng.integers(1, 4)))]
        if len(jobs) > 1 and rng.random() < 0.15:
            jobs[1] = replace(jobs[1], apart=("j0",))
        fleet, speeds = self._fleet(m, jobs), self._speeds()
        goal = pick("slowdown", "slowdown", "throughput", "communication", "fragmentation")
        unit = 1e9 / self.speed if goal == "communication" else 1.0
        jobs = [job if job.value is None else replace(job, value=job.value * unit) for job in jobs]
        running = []
        for job in jobs:
            if rng.random() < 0.2:
                movable, node = bool(rng.random() < 0.6), f"n{int(rng.integers(m))}"
                price = 0.5 * self.weight * unit if movable else 0.0
                running.append(Running(job.name, (node,), (job.workers[0],), (job.servers,), movable, price))
        mix: tuple[Expected, ...] = ()
        if rng.random() < 0.4:
            kinds = [Demand(pick(0.25, 0.5, 1.0, 2.0), pick(0.0, 0.1, 0.3) * self.cores) for _ in range(2)]
            mix = tuple(Expected(Task(kind), float(rng.uniform(0.1, 1))) for kind in kinds)
        return PlacementProblem(fleet, tuple(jobs), speeds, tuple(running), goal, mix)

    def _job(self, i: int) -> GangJob:
        pick, cores, size = self._pick, self.cores, self.bytes
        kind = pick("ring", "tree", "hierarchical", "ps")
        servers = int(self.rng.integers(1, 3)) if kind == "ps" else 0
        gpu = pick(0.0, 0.1, 0.3, 0.5, 1 / 3, 1.0, 1.0, 1.0, 2.0)
        nic = pick(0.0, 0.0, 0.0, 0.3, 0.5) * self.speed
        return GangJob(
            f"j{i}",
            pick("a", "b"),
            pick((1,), (2,), (2,), (1, 2), (3,)),
            Demand(gpu, pick(0.0, 0.1, 0.3) * cores, pick(0.0, 0.7, 0.1) * size, nic),
            kind,
            servers,
            Demand(0.0, pick(0.0, 0.1) * cores, pick(0.0, 0.2) * size) if servers else Demand(0.0),
            pick(0.5, 1.0, 3.0) * self.weight,
            pick(None, None, None, 0.5 * self.weight, 5.0 * self.weight),
            most_per_node=pick(None, None, None, None, 1),
            whole_nodes=bool(self.rng.random() < 0.08),
        )

    def _fleet(self, m: int, jobs: list[GangJob]) -> Fleet:
        rng, pick = self.rng, self._pick
        rack = np.sort(rng.integers(0, 2, m))
        nic = self.speed * pick(0.6, 0.5, 1.0, 1.0, 5.0)
        levels = Level("rack", float(nic)), Level("cluster", float(self.speed * pick(0.5, 2.0, 8.0)))
        return Fleet(
            tuple(f"n{i}" for i in range(m)),
            ("new", "old"),
            (rng.random(m) < 0.3).astype(int),
            rng.choice([0, 1, 2, 2, 3], m),
            np.array([self._room("cpu", self.cores, jobs) for _ in range(m)]),
            np.array([self._room("memory", self.bytes, jobs) for _ in range(m)]),
            self.speed * rng.choice([2.0, 10.0], m),
            TreeTopology(levels, np.stack([rack, np.zeros(m, dtype=int)])),
            usable=rng.random(m) < 0.95,
        )

    def _room(self, field: str, unit: float, jobs: list[GangJob]) -> float:
        """Return what some of the tasks need in sum, exactly or nearly, or plenty."""
        need = 0.0
        for job in jobs:
            need += int(self.rng.integers(0, 3)) * getattr(job.worker, field)
            need += int(self.rng.integers(0, 2)) * getattr(job.server, field)
        return need * float(self._pick(1.0, 1.0, 1.0, 1 - 1e-5, 1 + 1e-5)) if self.rng.random() < 0.6 else 10 * unit

    def _speeds(self) -> SpeedModel:
        rng, pick = self.rng, self._pick
        host = rng.choice([0.0, 0.2, 0.6], (2, 2))
        return SpeedModel(
            ("a", "b"),
            ("new", "old"),
            self.seconds * np.array([[1.0, 2.0], [pick(1.5, np.inf), 3.0]]),
            self.seconds * self.speed * rng.choice([0.0, 1.0, 6.0], 2),
            rng.choice([0.0, 0.5, 1.0], 2),
            host,
            host + rng.choice([0.0, 0.5], (2, 2)),
            duty=rng.choice([0.3, 1.0], 2) if rng.random() < 0.25 else np.zeros(0),
        )
