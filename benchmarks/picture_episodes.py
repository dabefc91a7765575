"""Workloads that the network of 0.2 learned from, on which its teachers are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import MIXES, TRAINING, told_means

KINDS = ("small", "expensive", "mixed", "loaded", "uncertain", "heavy", "heavy", "heavy")
"""Of episodes, in turn; ``heavy`` is like traces: lengths lognormal, gangs of powers of two, each its own intensity."""
SHAPES = ((2, 4, 4), (2, 4, 8), (4, 4, 8), (1, 3, 8), (3, 5, 4), (4, 8, 8), (8, 16, 8))
"""Racks, nodes in a rack, GPUs in a node."""
SHARES = (0.52, 0.14, 0.1, 0.06, 0.04, 0.11, 0.03)
"""Of the episodes, on each of the shapes."""
POOL = 2000
"""Jobs that futures are drawn from."""
UNKNOWN, BURST = 0.3, 0.12
"""Shares of the heavy episodes in which durations are told with an error, and in which a part of the jobs are there at
the beginning."""
GROWTH, MOST = 64, 6
"""A cluster of so many times as many GPUs has as many times the jobs, at most so many times."""


class Episode(NamedTuple):
    """What is played: jobs, the cluster, and jobs like them that futures are drawn from."""

    jobs: Jobs
    cluster: GpuRacks
    pool: Jobs


def episode(number: int, jobs: int, first: int = TRAINING, shape: tuple[int, int, int] | None = None) -> Episode:
    """Return the episode of a number.

    Args:
        number: each draws kind, cluster and load anew.
        jobs: how many on a small cluster.
        first: `TRAINING`, `VALIDATION` or another seed to begin with.
        shape: of the cluster, by default drawn.
    """
    kind, seed = KINDS[number % len(KINDS)], first + 2 * number
    rng = np.random.default_rng(seed)
    drawn = SHAPES[int(rng.choice(len(SHAPES), p=SHARES))]
    fleet = Fleet.regular(*(shape or drawn))
    pace = float(rng.uniform(0.75, 1.2))
    proximity = Proximity(intensity={"": 4.0} if kind == "expensive" else {})
    jobs *= min(max(fleet.n_gpus // GROWTH, 1), MOST)
    own, pool = (_heavy if kind == "heavy" else _mixed)(kind, seed, pace, fleet, proximity, jobs)
    return Episode(own, cluster_of(fleet, proximity), pool)


def _mixed(kind: str, seed: int, pace: float, fleet: Fleet, proximity: Proximity, jobs: int) -> tuple[Jobs, Jobs]:
    scale, drawn = fleet.n_gpus / 32, []
    for own, n in ((seed, jobs), (seed + 1, POOL)):
        mix = replace(MIXES[kind], jobs=n, arrival=min(MIXES[kind].arrival * pace, 1.0))
        mix = replace(mix, gpus=min(mix.gpus, fleet.n_gpus) if kind != "mixed" else fleet.n_gpus)
        work, told = told_means(mix)(own) if kind == "uncertain" else (mix.draw(own), None)
        speed = 1.0 if kind == "mixed" else scale  # gangs of `mixed` grow with the cluster
        drawn.append(jobs_of(replace(work, submit=work.submit / speed), proximity, told))
    return drawn[0], drawn[1]


def _heavy(kind: str, seed: int, pace: float, fleet: Fleet, proximity: Proximity, jobs: int) -> tuple[Jobs, Jobs]:
    rng = np.random.default_rng([seed, 1])
    spread, few = float(rng.uniform(0.8, 2.4)), float(rng.uniform(0.35, 0.65))
    most = int(rng.integers(3, int(np.log2(fleet.n_gpus)) + 1))
    error = float(rng.uniform(0.2, 1.0)) if rng.random() < UNKNOWN else 0.0
    burst = int(jobs * rng.uniform(0.1, 0.6)) if rng.random() < BURST else 0
    drawn = []
    for own, n in ((seed, jobs), (seed + 1, POOL)):
        draw = np.random.default_rng([own, 2])
        gpus = 2 ** np.minimum(draw.geometric(few, n) - 1, most)
        expected = draw.lognormal(0.0, spread, n) * 100
        work = expected * draw.lognormal(-(error**2) / 2, error, n)
        intensity = draw.choice([0.2, 0.5, 1.0, 2.0, 4.0], n)
        mean = 100 * np.exp(spread**2 / 2) * float(np.mean(2 ** np.minimum(draw.geometric(few, 10_000) - 1, most)))
        submit = np.cumsum(draw.exponential(1.25 * mean / (pace * fleet.n_gpus), n))
        if own == seed:
            submit[:burst] = 0.0
        first = np.append(0, np.cumsum(gpus)).astype(np.int64)
        drawn.append(Jobs(submit, work, expected, gpus.astype(np.int64), intensity, first))
    return drawn[0], drawn[1]
