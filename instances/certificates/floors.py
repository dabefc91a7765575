"""Bounds of placements: each gang at its best, paying for the GPUs that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from ..placement.job import GangJob
from ..placement.problem import PlacementProblem
from ..placement.rate import best_rate
from .classes import as_fractions
from .document import Certificate
from .exact import SLACK, not_negative, of_length


@dataclass(frozen=True, slots=True)
class Floors(Certificate):
    """Each gang alone on the nodes that suit it best, at prices of the GPUs of each type.

    With a price y_k >= 0 of a GPU of type k, of which the usable nodes have n_k,

        goal >= sum over jobs of min(value, min over workers w and slowest GPU types of cost + w gpus min y) - sum n_k y_k

    A gang of w workers whose slowest GPU computes a step in c seconds takes no less than c a step, and is on GPUs that
    are no slower; synchronisation, company and migration count as nothing.

    Attributes:
        prices: y_k of each GPU type of the fleet, in the unit of the goal.
    """

    argument: ClassVar[str] = "floors"
    objectives: ClassVar[tuple[str, ...]] = ("placement",)

    prices: tuple[Fraction, ...]

    def bound(self, problem: PlacementProblem) -> Fraction | float:
        """Return the sum; `inf` if a gang must be placed and cannot."""
        fleet = problem.fleet
        of_length(self.prices, len(fleet.gpu_types), "prices")
        not_negative(self.prices, "prices")
        usable = np.asarray(fleet.usable)
        every = [
            int(fleet.gpus[usable & (fleet.gpu_type == k)].sum(dtype=np.int64)) for k in range(len(fleet.gpu_types))
        ]
        value = -sum((n * y for n, y in zip(every, self.prices, strict=True)), Fraction(0))
        best = as_fractions(best_rate(problem)[None])[0]
        known: dict[Any, dict[int, Fraction | float]] = {}
        for job, rate in zip(problem.jobs, best, strict=True):
            kind = job.model, job.where, bool(job.worker.grants)
            if kind not in known:
                known[kind] = _seconds(problem, job)
            costs = [inf] if job.value is None else [Fraction(job.value)]
            value += min([*costs, *self._costs(problem, job, Fraction(rate), known[kind])])
            if value == inf:
                return inf
        return value / (1 + SLACK) if value > 0 else Fraction(0)

    def _costs(self, problem: PlacementProblem, job: GangJob, rate: Fraction, seconds: Any) -> list[Fraction]:
        """Return what a gang costs with each number of workers and each slowest type, prices included."""
        share = (1 - SLACK) * Fraction(job.worker.gpu)
        found = []
        for step in {x for x in seconds.values() if x != inf}:
            price = min(self.prices[k] if k >= 0 else Fraction(0) for k, own in seconds.items() if own <= step)
            for workers in job.workers:
                slowdown = rate * step / workers
                cost = Fraction(0)
                if problem.goal == "slowdown":
                    cost = Fraction(job.weight) * slowdown
                elif problem.goal == "throughput" and slowdown > 1:
                    cost = Fraction(job.weight) * (1 - 1 / slowdown)
                found.append(cost + workers * share * price)
        return found


def _seconds(problem: PlacementProblem, job: GangJob) -> dict[int, Fraction | float]:
    """Return the seconds a worker computes on each GPU type of the nodes that the job may be on."""
    fleet, j = problem.fleet, problem.jobs.index(job)
    admitted = np.flatnonzero(fleet.admits(job.requires, job.tolerates) & np.asarray(fleet.usable))
    seconds = problem.compute_at(np.full(len(admitted), j), admitted)
    kinds = np.where(fleet.gpus[admitted] > 0, fleet.gpu_type[admitted], -1)
    return {int(k): as_fractions(seconds[kinds == k][:1][None])[0][0] for k in np.unique(kinds).tolist()}
