"""Jobs that arrive without end on a cluster: what policies learn from, are chosen by and are tested on.

A run begins where the first third of the jobs has loaded the cluster by the rule `Patient`, or empty, and goes on to
the end of the last. The tables below differ by ground, not by seed alone: 4,096 GPUs, the traces openb and Pollux, the
load .6 and the error .8 are in `TEST` only, and nothing may be chosen by those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.published import DATA
from gangplan.instances.workload import Workload

from .arrays import WAITING, GpuRacks, Jobs, State, begin, cluster_of, first_jobs, jobs_of
from .formula import PATIENT, finish
from .mixes import TRAINING, VALIDATION, Mix
from .step import at_best
from .traces import TRACES, pollux_seconds, read_jobs

DRAWN = ("powers", "mix")
"""Jobs that are of no trace."""
LOADING = 1 / 3
"""Share of the jobs that load the cluster, unless it begins empty."""
CYCLES = 3
"""Days of a run."""
LONGEST = 40.0
"""Times its median that a length is at most, where lengths are lognormal."""
SECONDS = 1200.0
"""Median of these."""
FEW = 0.35
"""Of the gangs of powers of two, the share of each size of those not smaller."""
INTENSITIES = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Of the jobs of the models ``m0``, ``m1``..., where there are models."""
MOST = (1 << 32) - 1
"""Largest seed; a pool's is this less the seed."""
ANY = range(1, 1 << 20)
"""GPUs of a cluster, whatever it has."""
PARTS = {"train": (0.0, 0.6), "validate": (0.6, 0.7), "test": (0.7, 1.0)}
"""Of a trace's jobs, by which table they are in."""


class Episode(NamedTuple):
    """What is played: jobs, the cluster, jobs like them to draw futures from, where it begins, and the ground."""

    jobs: Jobs
    cluster: GpuRacks
    pool: Jobs
    state: State
    ground: str = ""

    def begin(self) -> State:
        """Return the state where it begins, to be changed."""
        return self.state.copy()

    def by(self, formula: FloatArray) -> float:
        """Return the mean JCT by a formula from where it begins on, seconds."""
        state = self.begin()
        finish(self.jobs, self.cluster, state, formula)
        return self.mean_jct(state)

    def mean_jct(self, state: State) -> float:
        """Return the mean JCT of the jobs that had not started where it begins, seconds."""
        left = np.isinf(self.state.start)
        return float((state.finish[left] - self.jobs.submit[left]).mean())


Draw = Callable[[int, int, int], Episode]
"""From a number, how many jobs arrive (0 for the usual number), and the first seed, to an episode; see `episode`."""


def loaded(jobs: Jobs, cluster: GpuRacks, pool: Jobs, first: int, ground: str = "") -> Episode:
    """Return what is played from the arrival of a job on, as the rule `Patient` has loaded the cluster by then."""
    state = begin(jobs, cluster)
    finish(jobs, cluster, state, PATIENT, float(jobs.submit[first]))
    state.queue[: state.count[WAITING]].sort()  # a formula leaves it in the order of its keys
    return Episode(jobs, cluster, pool, state, ground)


@dataclass(frozen=True)
class Traffic:
    """A cluster and the jobs that arrive there.

    Attributes:
        name: of it.
        racks: nodes of each rack.
        gpus: of each node.
        load: GPU seconds that the jobs take where they run fastest, over those of the cluster until the last arrives.
        jobs: ``powers`` (gangs of powers of two, lognormal lengths), ``mix`` (see `Mix`), or a trace, see `read_jobs`.
        spread: deviation of the logarithm of lengths of ``powers``.
        error: the same of what policies are told of lengths.
        swing: of the arrivals within a day, from 0 to 1.
        models: whether jobs are of models that mind being apart more and less.
        wide: share of the cluster that the widest gang takes, if that is more than a node; of ``mix`` at most 64 GPUs.
        intensity: how much jobs without a model mind being apart.
        loading: share of the jobs that load the cluster before a run begins.
        part: of a trace, by name.
        data: folder of traces.
    """

    name: str
    racks: tuple[int, ...]
    gpus: int = 8
    load: float = 1.0
    jobs: str = "powers"
    spread: float = 1.2
    error: float = 0.0
    swing: float = 0.0
    models: bool = False
    wide: float = 1 / 8
    intensity: float = 1.0
    loading: float = LOADING
    part: str = "train"
    data: str = DATA

    @cached_property
    def fleet(self) -> Fleet:
        """The nodes."""
        most = max(self.racks)
        kept = [rack * most + node for rack, nodes in enumerate(self.racks) for node in range(nodes)]
        whole = Fleet.regular(len(self.racks), most, self.gpus)
        return whole if len(kept) == whole.n_nodes else whole.at(kept)

    @cached_property
    def proximity(self) -> Proximity:
        """What being apart costs."""
        if self.jobs not in DRAWN:
            return read_jobs(self.jobs, self.data)[1]
        kinds = {f"m{i}": x for i, x in enumerate(INTENSITIES)} if self.models else {}
        return Proximity(intensity=kinds if self.intensity == 1.0 else kinds | {"": self.intensity})

    @property
    def widest(self) -> int:
        """GPUs of the widest gang, see `wide`."""
        widest = max(int(self.fleet.n_gpus * self.wide), self.gpus)
        return min(widest, 64 if self.jobs == "mix" else self.fleet.n_gpus)

    def draw(self, seed: int, jobs: int = 0) -> tuple[Workload, FloatArray | None]:
        """Return the jobs of a seed and what policies are told of their seconds, None if it is the truth.

        Args:
            seed: of everything drawn.
            jobs: how many, by default four a GPU, from 800 to 4,000.
        """
        rng = np.random.default_rng([seed, *self.name.encode()])
        n = jobs or int(np.clip(4 * self.fleet.n_gpus, 800, 4000))
        work = self._jobs(n, rng)
        work = replace(work, submit=_arrivals(n, self.swing, rng), gpus=np.minimum(work.gpus, self.widest))
        work = fit(work, self.fleet, self.proximity, self.load)
        told = work.duration * rng.lognormal(-(self.error**2) / 2, self.error, n) if self.error else None
        return work, told

    def _jobs(self, n: int, rng: np.random.Generator) -> Workload:
        """Draw jobs, all submitted at 0."""
        names, at = tuple(map(str, range(n))), np.zeros(n)
        if self.jobs == "mix":
            return replace(Mix(n, gpus=self.widest).draw(int(rng.integers(1 << 62))), submit=at)
        if self.jobs == "powers":
            gpus = 2 ** np.minimum(rng.geometric(FEW, n) - 1, int(np.log2(self.widest)))
            seconds = np.minimum(SECONDS * rng.lognormal(0.0, self.spread, n), LONGEST * SECONDS)
            drawn = Workload(names, at, gpus.astype(np.int32), seconds)
            kinds = rng.integers(len(INTENSITIES), size=n).tolist()
            return replace(drawn, model=tuple(f"m{i}" for i in kinds)) if self.models else drawn
        trace, _ = read_jobs(self.jobs, self.data)
        low, high = (int(share * trace.n_jobs) for share in ((0.0, 1.0) if self.jobs == "pollux" else PARTS[self.part]))
        index = low + (rng.integers(high - low) + np.arange(n)) % (high - low)
        model = tuple(trace.model[i] for i in index.tolist())
        some = Workload(names, at, trace.gpus[index], trace.duration[index], model=model)
        return pollux_seconds(some, rng) if self.jobs == "pollux" else some

    def episode(self, seed: int, jobs: int = 0) -> Episode:
        """Return a run of a seed, in which so many jobs arrive once the cluster is loaded; 0: as many as there are."""
        ours, pool = (jobs_of(work, self.proximity, told) for work, told in (self.draw(seed), self.draw(~seed & MOST)))
        first = int(self.loading * len(ours.submit))
        ours = first_jobs(ours, first + jobs) if jobs else ours
        return loaded(ours, cluster_of(self.fleet, self.proximity), pool, first, self.name)


def grounds(table: Sequence[Traffic], data: str = DATA) -> tuple[Traffic, ...]:
    """Return a table with the traces of a folder; without the grounds whose trace is not there."""
    placed = [replace(x, data=data) for x in table]
    return tuple(x for x in placed if x.jobs in DRAWN or (Path(data) / TRACES[x.jobs]).exists())


def episode(number: int, jobs: int = 0, first: int = TRAINING, *, gpus: range = ANY) -> Episode:
    """Return the run of a number: of the grounds of `TRAIN` or, if that is the first seed, of `VALIDATE` in turn.

    Args:
        number: of the run.
        jobs: that arrive in it, 0 for the usual number.
        first: seed.
        gpus: only grounds that have so many count.
    """
    table = [x for x in grounds(VALIDATE if first == VALIDATION else TRAIN) if x.fleet.n_gpus in gpus]
    return table[number % len(table)].episode(first + number, jobs)


def load(workload: Workload, fleet: Fleet, proximity: Proximity) -> float:
    """Return the GPU seconds that jobs take at their fastest, over those of the cluster until the last is submitted."""
    span = float(workload.submit.max() - workload.submit.min())
    work = float(at_best(workload, fleet, proximity).duration @ workload.gpus)
    return work / (fleet.n_gpus * span) if span > 0 else float("inf")


def fit(workload: Workload, fleet: Fleet, proximity: Proximity, to: float = 1.0) -> Workload:
    """Return the jobs with gangs of at most all GPUs, submitted from 0 on and so fast that the load is as given."""
    capped = replace(
        workload, submit=workload.submit - workload.submit.min(), gpus=np.minimum(workload.gpus, fleet.n_gpus)
    )
    return replace(capped, submit=capped.submit * (load(capped, fleet, proximity) / to))


def _arrivals(n: int, swing: float, rng: np.random.Generator) -> FloatArray:
    """Return when n jobs arrive between 0 and about 1, more often in the middle of each of `CYCLES` days."""
    at = np.cumsum(rng.exponential(1 / n, n))
    grid = np.linspace(0, at[-1], 100 * CYCLES)
    turn = 2 * np.pi * CYCLES / at[-1]
    return np.asarray(np.interp(at, grid + swing / turn * (np.cos(turn * grid) - 1), grid))


TRAIN = (
    Traffic("mix-32", (4, 4), 4, 1.0, "mix"),
    Traffic("mix-64", (4, 4), 8, 1.1, "mix", error=0.4),
    Traffic("powers-128", (3, 5, 8), 8, 0.9, models=True),
    Traffic("powers-256", (8,) * 4, 8, 1.1),
    Traffic("philly-256", (8,) * 4, 8, 1.0, "philly"),
    Traffic("days-512", (4, 8, 12, 16, 24), 8, 0.95, error=0.4, swing=0.8),
    Traffic("powers-1024", (16,) * 8, 8, 1.1),
    Traffic("tails-1024", (16,) * 8, 8, 1.05, spread=2.0, models=True),
    Traffic("powers-2048", (16,) * 16, 8, 0.95),
    Traffic("mix-2048", (16,) * 16, 8, 1.1, "mix"),
    Traffic("wide-32", (4, 4), 4, 1.0, "mix", wide=1 / 4),
    Traffic("dear-32", (4, 4), 4, 0.9, "mix", wide=1 / 4, intensity=4.0),
    Traffic("whole-32", (4, 4), 4, 1.0, "mix", wide=1.0),
    Traffic("rush-32", (4, 4), 4, 1.2, "mix", wide=1 / 4, error=0.4),
    Traffic("half-16", (2, 2), 4, 0.9, "mix", wide=1 / 2),
    Traffic("whole-24", (3, 3), 4, 0.8, "mix", wide=1.0),
    Traffic("vague-32", (4, 4), 4, 1.0, "mix", wide=1 / 4, error=0.6),
    Traffic("half-64", (4, 4), 8, 1.0, "mix", wide=1 / 2),
    Traffic("empty-32", (4, 4), 4, 1.0, "mix", wide=1 / 4, loading=0.0),
    Traffic("empty-dear-32", (4, 4), 4, 1.0, "mix", wide=1 / 4, intensity=4.0, loading=0.0),
    Traffic("empty-whole-32", (4, 4), 4, 1.0, "mix", wide=1.0, loading=0.0),
    Traffic("empty-rush-32", (4, 4), 4, 1.2, "mix", wide=1 / 4, loading=0.0),
    Traffic("empty-vague-32", (4, 4), 4, 1.0, "mix", wide=1 / 4, error=0.6, loading=0.0),
    Traffic("empty-whole-64", (4, 4), 8, 0.9, "mix", wide=1.0, loading=0.0),
)
"""What is learned from."""
VALIDATE = (
    Traffic("powers-48", (2, 4), 8, 1.0, models=True),
    Traffic("mix-384", (6, 10, 14, 18), 8, 1.05, "mix"),
    Traffic("philly-512", (16,) * 4, 8, 1.0, "philly", part="validate"),
    Traffic("days-768", (16, 16, 24, 40), 8, 0.8, swing=0.8),
    Traffic("error-1024", (32,) * 4, 8, 1.1, error=0.4),
    Traffic("tails-1536", (24,) * 8, 8, 1.3, spread=1.8),
    Traffic("powers-2048-rows", (32,) * 8, 8, 1.1),
    Traffic("wide-40", (4, 6), 4, 1.05, "mix", wide=1 / 4),
    Traffic("whole-40", (4, 6), 4, 0.9, "mix", wide=1.0),
    Traffic("empty-40", (4, 6), 4, 1.05, "mix", wide=1 / 4, loading=0.0),
    Traffic("empty-whole-40", (4, 6), 4, 1.0, "mix", wide=1.0, loading=0.0),
)
"""What is chosen by."""
TEST = (
    Traffic("small", (4, 4), 4, 1.0, "mix", part="test"),
    Traffic("error-256", (8,) * 4, 8, 1.1, error=0.8, part="test"),
    Traffic("pollux-256", (8,) * 4, 8, 1.0, "pollux", part="test"),
    Traffic("openb-512", (16,) * 4, 8, 1.0, "openb", part="test"),
    Traffic("philly-1024", (16,) * 8, 8, 1.0, "philly", part="test"),
    Traffic("deep-1024", (16,) * 8, 8, 1.1, part="test"),
    Traffic("light-2048", (16,) * 16, 8, 0.6, part="test"),
    Traffic("deep-2048", (16,) * 16, 8, 1.1, "mix", part="test"),
    Traffic("days-2048", (8, 16, 24, 32, 48, 64, 64), 8, 0.95, error=0.8, swing=0.8, part="test"),
    Traffic("deep-4096", (32,) * 16, 8, 1.1, spread=1.8, models=True, part="test"),
)
"""What is tested on: nothing is chosen by these."""
