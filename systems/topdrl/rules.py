"""Rules, run to the end in compiled code: who goes first by a linear score, or a list that says who waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gangplan.instances.arrays import FloatArray, check_fields, limited, require_choice, require_number
from gangplan.simulator.gangs.allocate import ALLOCATORS, CLOSEST
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, State
from gangplan.simulator.gangs.listing import Listing, run_list
from gangplan.simulator.gangs.step import least_cost
from gangplan.solvers.placement.online.patient import Patient

from .kernels import LOG_SLOWDOWN, Scoring, run, write_keys

DISCIPLINES = ("head", "overtake", "easy")

FEATURES = ("submit", "length", "log_length", "gpus", "log_gpus", "noise", "log_slowdown")
"""What a score is made of: submission, s; expected duration, s, and its logarithm; GPUs, and their logarithm; a random
number of the job; the logarithm of how much slower it would run for the communication where it would go."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Start the job with the least score, the first submitted of equals.

    Attributes:
        weights: of `FEATURES`, by name; 0 for others.
        discipline: ``head`` (the first blocks the others), ``overtake`` (whoever fits starts) or ``easy`` (whoever fits
            starts unless that delays the first; Lifka 1995).
        allocator: one of `ALLOCATORS`.
        seed: of the random numbers.
    """

    weights: tuple[tuple[str, float], ...]
    discipline: str = limited("overtake", choices=DISCIPLINES)
    allocator: str = limited("closest", choices=ALLOCATORS)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in self.weights:
            require_choice(name, "weights", FEATURES)
            require_number(abs(value), f"weights[{name}]")
        check_fields(self)

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        of = DISCIPLINES.index(self.discipline), ALLOCATORS.index(self.allocator)
        run(jobs, cluster, state, self._scoring(len(jobs.submit), len(cluster.rack)), *of)

    def vector(self) -> FloatArray:
        """Return the weights in the order of `FEATURES`."""
        weights = dict(self.weights)
        return np.array([weights.get(name, 0.0) for name in FEATURES], dtype=np.float64)

    def _scoring(self, n: int, nodes: int) -> Scoring:
        """Return what compiled code scores n jobs by."""
        return Scoring(self.vector(), np.random.default_rng(self.seed).random(n), nodes)

    def listing(self, jobs: Jobs, cluster: GpuRacks) -> Listing | None:
        """Return the list that decodes to what it does; None if it backfills, or its score depends on the place."""
        n = len(jobs.submit)
        if self.discipline == "easy" or self.vector()[LOG_SLOWDOWN] != 0:
            return None
        key, allocator = np.empty(n), np.full(n, ALLOCATORS.index(self.allocator))
        write_keys(jobs, cluster, self._scoring(n, 0), key)
        return Listing(key, allocator, np.full(n, np.inf), np.full(n, int(self.discipline == "head")))


SCORES: dict[str, tuple[tuple[str, float], ...]] = {
    "fcfs": (("submit", 1.0),),
    "sjf": (("length", 1.0),),
    "ljf": (("length", -1.0),),
    "random": (("noise", 1.0),),
    "tetris": (("gpus", -1.0), ("length", 1.4)),
    "smallest": (("gpus", 1.0),),
    "least_work": (("log_length", 1.0), ("log_gpus", 1.0)),
    "linear": (("log_length", 1.0), ("log_gpus", 1.5), ("log_slowdown", 2.5)),
}
"""By name, the published selectors, least work and linear; ties go by submission. Tetris (Grandl et al., SIGCOMM 2014)
weighs the GPUs that a job would fill against its length: of 22 weights of these or their logarithms this one was best,
by the geometric mean of the mean JCTs of `SMALL` and `LARGE` on validation seeds, 400 and 40 from 1,000,000 on. Linear
is the best of 192 weights and disciplines on the same seeds: a job that does not fit is scored as if it were not slowed
down, so it may wait at the head until GPUs close to one another are idle."""

TUNED = {"least_work": "head", "linear": "head"}
"""Disciplines that were best on the same seeds, by the name of the selector; ``overtake`` for all others."""


def rule(name: str, discipline: str = "", allocator: str = "closest", seed: int = 0) -> Rule:
    """Return the rule of a name of `SCORES`, by default with the discipline that suits it best."""
    require_choice(name, "rule", SCORES)
    return Rule(SCORES[name], discipline or TUNED.get(name, "overtake"), allocator, seed)


@dataclass(frozen=True, slots=True)
class TopdrlPatient(Patient):
    """The rule that waits for close GPUs, on TopDRL's ground: a job gets the closest ones."""

    allocator: ClassVar[str] = "closest"

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        run_list(jobs, cluster, state, self.listing(jobs, cluster), np.inf)

    def listing(self, jobs: Jobs, cluster: GpuRacks) -> Listing:
        """Return the rule as a list of these jobs."""
        least = 1 + jobs.intensity * least_cost(cluster)[jobs.gpus]
        key = np.log(np.maximum(jobs.expected, 1e-9)) + self.gpus * np.log(jobs.gpus) + self.slowdown * np.log(least)
        with np.errstate(divide="ignore"):
            most = (self.most(least) - 1) / jobs.intensity
        return Listing(key, np.full(len(key), CLOSEST), most, np.zeros(len(key), dtype=np.int64))
