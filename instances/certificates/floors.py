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

        goal >= sum over jobs of min(value, least over workers w and slowest types of cost + w gpus min y) - sum n_k y_k

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
        of_length(self.prices, len(problem.fleet.gpu_types), "prices")
        not_negative(self.prices, "prices")
        gangs, room = options_of_gangs(problem)
        value = -sum((n * y for n, y in zip(room, self.prices, strict=True)), Fraction(0))
        for options in gangs:
            if not options:
                return inf
            value += min(
                cost + gpus * min((self.prices[k] for k in kinds), default=Fraction(0)) for cost, gpus, kinds in options
            )
        return value / (1 + SLACK) if value > 0 else Fraction(0)


Gang = list[tuple[Fraction, Fraction, tuple[int, ...]]]
"""What a job may do: (cost, GPUs, the types of GPU that they may be of, none for no GPU at all)."""


def options_of_gangs(problem: PlacementProblem) -> tuple[list[Gang], list[int]]:
    """Return the options of each job, and the usable GPUs of each type."""
    fleet, known = problem.fleet, dict[Any, dict[int, Fraction | float]]()
    usable = np.asarray(fleet.usable)
    room = [int(fleet.gpus[usable & (fleet.gpu_type == k)].sum(dtype=np.int64)) for k in range(len(fleet.gpu_types))]
    gangs: list[Gang] = []
    for j, (job, rate) in enumerate(zip(problem.jobs, as_fractions(best_rate(problem)[None])[0], strict=True)):
        kind = job.model, job.where, bool(job.worker.grants)
        if kind not in known:
            known[kind] = _seconds(problem, job, j)
        found: Gang = [] if job.value is None else [(Fraction(job.value), Fraction(0), ())]
        share = (1 - SLACK) * Fraction(job.worker.gpu)
        for step in {x for x in known[kind].values() if x != inf}:
            kinds = tuple(k for k, own in known[kind].items() if own <= step)
            for workers in job.workers:
                cost = _cost(problem, job, Fraction(rate) * Fraction(step) / workers)
                found.append((cost, workers * share, kinds if share else ()))
        gangs.append(found)
    return gangs, room


def _cost(problem: PlacementProblem, job: GangJob, slowdown: Fraction) -> Fraction:
    """Return what a gang of such a slowdown costs at least."""
    if problem.goal == "slowdown":
        return Fraction(job.weight) * slowdown
    if problem.goal == "throughput" and slowdown > 1:
        return Fraction(job.weight) * (1 - 1 / slowdown)
    return Fraction(0)


def _seconds(problem: PlacementProblem, job: GangJob, j: int) -> dict[int, Fraction | float]:
    """Return the seconds a worker computes on each GPU type of the nodes that the job may be on."""
    fleet = problem.fleet
    able = fleet.admits(job.requires, job.tolerates) & np.asarray(fleet.usable) & (fleet.gpus > 0)
    found = {}
    for k in np.unique(fleet.gpu_type[able]).tolist():
        node = np.flatnonzero(able & (fleet.gpu_type == k))[:1]
        found[k] = as_fractions(problem.compute_at(np.full(1, j), node)[None])[0][0]
    return found
