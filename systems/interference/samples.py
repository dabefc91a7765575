"""Logs that learned models of speed are made of: who was where, and how fast each job then ran.

case = poisson(TRAINING, jobs=200)
samples = log(case, Rule("lb"), limit=2000)
samples.now.kind, samples.now.rows, samples.speed    # ragged, see `Snapshots`

A sample is one running job in one interval: its type, its rows (workers and parameter servers on each server), all
other jobs of the same snapshot with theirs, and its speed. Which links two jobs share follows from the fleet's
topology (`truths.links`), which everybody knows. A model of speeds is a `Truth`: ``model.speeds(now)`` returns epochs a
second of each job, so that ``Greedy(model)`` and ``InterferenceCase(..., truth=model)`` take it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement import Fleet
from gangplan.learned.training.interference.measured import type_features
from gangplan.learned.training.interference.samples import KnownSetting, Samples
from gangplan.simulator.snapshots import Snapshots

from .baselines import Places
from .case import InterferenceCase
from .environment import Environment
from .truths import JobTypes, links


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Observed speeds of n jobs in s snapshots.

    Attributes:
        now: who was where.
        speed: epochs a second of each job as it reported them, float64 (n,).
    """

    now: Snapshots
    speed: FloatArray

    @classmethod
    def join(cls, parts: Iterable[Log]) -> Log:
        """Return the samples of all parts, one after the other."""
        parts = list(parts)
        return cls(Snapshots.join([x.now for x in parts]), np.concatenate([x.speed for x in parts]))


def log(case: InterferenceCase, policy: Places, limit: int = 1_000_000, noise: float = 0.0, seed: int = 0) -> Log:
    """Return the samples of a case under a policy, no more than `limit` but for the last snapshot.

    Args:
        noise: deviation of the logarithm of what is reported.
    """
    require_number(limit, "limit", positive=True, whole=True)
    require_number(noise, "noise")
    require_number(seed, "seed", whole=True)
    rng, env, parts, size = np.random.default_rng(seed), Environment(case), list[Log](), 0
    while not env.done and size < limit:
        policy.place(env)
        if env.running:
            now = env.snapshot()
            speed = case.truth.speeds(now)
            parts.append(Log(now, speed * np.exp(noise * rng.standard_normal(len(speed)))))
            size += len(speed)
        env.end_interval()
    return Log.join(parts)


def cluster_setting(fleet: Fleet, types: JobTypes) -> KnownSetting:
    """Return what everybody knows of a simulated cluster, speeds in epochs a second.

    Types that are one model with several batch sizes or gangs are alike by their names, too.
    """
    logs = np.log(np.stack([types.compute, types.gradient + 1.0, types.batch], axis=1))
    spread = logs.std(axis=0)
    features = (logs - logs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    parts = [re.fullmatch(r"(.*?)(?: \(\D*(\d+)\))?(?: x(\d+))?", name) for name in types.names]
    words = [part[1] if part else name for part, name in zip(parts, types.names, strict=True)]
    if len(set(words)) < len(words):
        numbers = [[float(x or 1) for x in part.groups()[1:]] if part else [] for part in parts]
        features = np.concatenate([features, type_features(words, numbers)], axis=1)
    return KnownSetting(features, 1 / (types.compute * types.batches), links(fleet))


def log_samples(case: InterferenceCase, made: Log) -> Samples:
    """Return a log of the cluster of a case."""
    return Samples.measured(cluster_setting(case.fleet, case.jobs.types), made.now, made.speed)
