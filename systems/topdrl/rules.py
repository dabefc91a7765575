"""Rules, run to the end in compiled code: who goes first by a linear score, or a list that says who waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from gangplan.instances.arrays import FloatArray, check_fields, limited, require_choice, require_number
from gangplan.simulator.gangs.allocate import ALLOCATORS, CLOSEST, choose
from gangplan.simulator.gangs.arrays import NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.listing import Listing, run_list
from gangplan.simulator.gangs.step import begin_job, communication, least_cost, pass_time, remaining, total
from gangplan.solvers.compiled.kernel import Floats, Ints, by_reference, kernel, lean
from gangplan.solvers.placement.online.patient import Patient as Waiting

HEAD, OVERTAKE, EASY = range(3)
DISCIPLINES = ("head", "overtake", "easy")

SUBMIT, LENGTH, LOG_LENGTH, GPUS, LOG_GPUS, NOISE, LOG_SLOWDOWN = range(7)
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

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        of = DISCIPLINES.index(self.discipline), ALLOCATORS.index(self.allocator)
        run(jobs, cluster, state, self.vector(), self.noise(len(jobs.submit)), *of)

    def vector(self) -> FloatArray:
        """Return the weights in the order of `FEATURES`."""
        weights = dict(self.weights)
        return np.array([weights.get(name, 0.0) for name in FEATURES], dtype=np.float64)

    def noise(self, n: int) -> FloatArray:
        """Return the random numbers of n jobs."""
        return np.random.default_rng(self.seed).random(n)

    def listing(self, jobs: Jobs, cluster: Cluster) -> Listing | None:
        """Return the list that decodes to what it does; None if it backfills, or its score depends on the place."""
        weights, n = self.vector(), len(jobs.submit)
        if self.discipline == "easy" or weights[LOG_SLOWDOWN] != 0:
            return None
        key, allocator = np.empty(n), np.full(n, ALLOCATORS.index(self.allocator))
        _keys(jobs, cluster, weights, self.noise(n), key)
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


@lean
def score(jobs: Jobs, cluster: Cluster, job: int, weights: Floats, noise: Floats, take: Ints, fits: bool) -> float:
    """Return the score of a job that would get `take`, if it fits."""
    length, gpus = jobs.expected[job], float(jobs.gpus[job])
    total = weights[SUBMIT] * jobs.submit[job] + weights[LENGTH] * length + weights[GPUS] * gpus
    total += weights[LOG_LENGTH] * log(max(length, 1e-9)) + weights[LOG_GPUS] * log(gpus) + weights[NOISE] * noise[job]
    if fits and weights[LOG_SLOWDOWN] != 0:
        total += weights[LOG_SLOWDOWN] * log(1 + jobs.intensity[job] * communication(cluster, take))
    return float(total)


@kernel
def run(  # noqa: PLR0912, one loop read from top to bottom
    jobs: Jobs,
    cluster: Cluster,
    state: State,
    weights: Floats,
    noise: Floats,
    discipline: int,
    allocator: int,
) -> int:
    """Run from `state` to the end, see `Rule`; return how many jobs were started."""
    of, on, now = by_reference(jobs), by_reference(cluster), by_reference(state)
    take, best = np.zeros_like(now.free), np.zeros_like(now.free)
    left, started = np.zeros_like(now.running), 0
    while True:
        blocked, shadow, spare = -1, np.inf, 0
        while now.count[WAITING] > 0:
            found, least, idle = -1, np.inf, now.free.sum()
            for at in range(now.count[WAITING]):
                job = now.queue[at]
                if job == blocked:
                    continue
                fits = of.gpus[job] <= idle
                if not fits and (discipline == OVERTAKE or blocked >= 0):
                    continue
                if fits and (weights[LOG_SLOWDOWN] != 0 or blocked >= 0):
                    choose(allocator, of.gpus[job], on, now.free, take)
                if blocked >= 0 and of.gpus[job] > spare:
                    slower = 1 + of.intensity[job] * communication(on, take)
                    if now.clock[NOW] + of.expected[job] * slower > shadow:
                        continue
                value = score(of, on, job, weights, noise, take, fits)
                if value < least:
                    found, least = at, value
            if found < 0:
                break
            job = now.queue[found]
            if not choose(allocator, of.gpus[job], on, now.free, best):
                if discipline == HEAD:
                    break
                blocked = job
                shadow, spare = reserve(of, now, left, of.gpus[job])
                continue
            if blocked >= 0:
                slower = 1 + of.intensity[job] * communication(on, best)
                if now.clock[NOW] + of.expected[job] * slower > shadow:
                    spare -= of.gpus[job]
            begin_job(of, on, now, found, best)
            started += 1
        if not pass_time(of, on, now, np.inf):
            return started


@lean
def reserve(jobs: Jobs, state: State, left: Ints, need: int) -> tuple[float, int]:
    """Return when `need` GPUs will be idle by the durations expected, and how many more will be then."""
    size, idle = state.count[RUNNING], total(state.free)
    for i in range(size):
        left[i] = state.running[i]
    while idle < need and size > 0:
        soonest, least = 0, np.inf
        for i in range(size):
            seconds = remaining(jobs, state, left[i])
            if seconds < least or (seconds == least and left[i] < left[soonest]):
                soonest, least = i, seconds
        idle += jobs.gpus[left[soonest]]
        if idle >= need:
            return state.clock[NOW] + least, int(idle - need)
        size -= 1
        left[soonest] = left[size]
    return np.inf, 0


@kernel
def _keys(jobs: Jobs, cluster: Cluster, weights: Floats, noise: Floats, key: Floats) -> None:
    none = np.zeros(0, dtype=np.int64)
    for job in range(len(key)):
        key[job] = score(by_reference(jobs), by_reference(cluster), job, weights, noise, none, False)


@dataclass(frozen=True, slots=True)
class Patient(Waiting):
    """The rule that waits for close GPUs, on TopDRL's ground: a job gets the closest ones."""

    allocator: ClassVar[str] = "closest"

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        run_list(jobs, cluster, state, self.listing(jobs, cluster), np.inf)

    def listing(self, jobs: Jobs, cluster: Cluster) -> Listing:
        """Return the rule as a list of these jobs."""
        least = 1 + jobs.intensity * least_cost(cluster)[jobs.gpus]
        key = np.log(np.maximum(jobs.expected, 1e-9)) + self.gpus * np.log(jobs.gpus) + self.slowdown * np.log(least)
        with np.errstate(divide="ignore"):
            most = (self.most(least) - 1) / jobs.intensity
        return Listing(key, np.full(len(key), CLOSEST), most, np.zeros(len(key), dtype=np.int64))
