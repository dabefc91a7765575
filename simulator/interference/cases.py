"""Cases by name and seed: what arrives on which servers, under which truth."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import require_choice, require_number

from .case import Case, testbed
from .job_types import TESTBED, Jobs
from .truths import contention

VALIDATION, TRAINING = 1_000_000, 2_000_000
"""Seeds of arrivals: those below the first are for tests, from it on for validation, from the second for training."""
SYNCHRONISATION = ("mixed", "ps", "ring")
_GANGS, _CHANCE = (1, 2, 3, 4), (0.3, 0.35, 0.15, 0.2)
_SHORTEST, _LONGEST = 1200.0, 10800.0
"""Seconds of a job by its profiled compute, evenly drawn on a logarithmic scale."""


def poisson(
    seed: int, jobs: int = 100, servers: int = 6, *, kind: str = "mixed", load: float = 0.45, cluster: int = 0
) -> Case:
    """Return a Poisson mix of the eight types on servers of two GPUs.

    Args:
        seed: of the jobs; see `VALIDATION`.
        jobs: how many.
        servers: how many, in racks of up to eight.
        kind: jobs with parameter servers (``ps``), with a ring all-reduce (``ring``), or half of each (``mixed``).
        load: profiled GPU seconds that arrive a second, over the GPUs. Synchronisation and interference come on top.
        cluster: seed of the truth.

    Raises:
        InstanceError: naming the argument and the value found.
    """
    require_number(seed, "seed", whole=True)
    require_number(jobs, "jobs", positive=True, whole=True)
    require_number(load, "load", positive=True)
    require_choice(kind, "kind", SYNCHRONISATION)
    fleet, rng = testbed(servers), np.random.default_rng([seed, 2021])
    types = rng.integers(len(TESTBED.names), size=jobs)
    workers = rng.choice(_GANGS, jobs, p=_CHANCE)
    seconds = np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST), jobs))
    serving = rng.integers(1, workers + 1)
    if kind == "ring":
        serving[:] = 0
    elif kind == "mixed":
        serving[rng.random(jobs) < 0.5] = 0
    mean = (_LONGEST - _SHORTEST) / np.log(_LONGEST / _SHORTEST) * float(np.dot(_GANGS, _CHANCE))
    submit = np.cumsum(rng.exponential(mean / (load * fleet.n_gpus), jobs))
    return Case(fleet, jobs_of(types, workers, serving, seconds, submit), contention(fleet, cluster))


def jobs_of(
    types: np.ndarray, workers: np.ndarray, servers: np.ndarray, seconds: np.ndarray, submit: np.ndarray
) -> Jobs:
    """Return jobs of the eight types, with the whole epochs that they are profiled to do in so many seconds."""
    epoch = (TESTBED.compute * TESTBED.batches)[types] / workers
    return Jobs(TESTBED, submit - submit[0], types, workers, servers, np.maximum(1.0, np.round(seconds / epoch)))
