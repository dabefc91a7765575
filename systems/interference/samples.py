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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.measured import Pairs
from gangplan.instances.readers.together import Together
from gangplan.learned.training.interference.samples import KnownSetting, Samples
from gangplan.simulator.snapshots import Long, Snapshots

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


def pair_samples(pairs: Pairs) -> Samples:
    """Return each measured pair as two jobs at one place; what a type keeps beside its like is there once."""
    known = np.isfinite(pairs.kept)
    first, second = np.nonzero(np.triu(known | known.T))
    speed = np.stack([pairs.kept[first, second], pairs.kept[second, first]], axis=1)
    speed[first == second, 1] = np.nan
    kind, group = np.stack([first, second], axis=1).ravel(), np.arange(len(first)).repeat(2)
    return _at_one_place(named_features(pairs.jobs), kind, group, speed.ravel())


def table_samples(table: Together) -> Samples:
    """Return the jobs of each group as tasks at one place."""
    return _at_one_place(type_features(table.words, table.numbers), table.kind, table.group, table.kept)


def _at_one_place(features: FloatArray, kind: Long, group: Long, speed: FloatArray) -> Samples:
    """Return jobs as samples of which those of a group shared one place, and nothing else is known.

    Args:
        features: of the types, float64 (T, F).
        kind, group: of each job, int64 (n,), sorted by group.
        speed: relative to that alone, float64 (n,).
    """
    n = len(kind)
    setting = KnownSetting(features, np.ones(len(features)), np.zeros((1, 1), dtype=np.int64))
    first = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [n]]).astype(np.int64)
    one, none = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return Samples(setting, Snapshots(first, kind.astype(np.int64), np.arange(n + 1), none, one, none), speed)


def named_features(names: Sequence[str]) -> FloatArray:
    """Return the features of types by what they are called, see `type_features`.

    ``ResNet-18 (batch size 16)`` is a ResNet-18 of 16, ``MoE,8,2`` a MoE of 8 and 2.
    """
    parts = [re.fullmatch(r"(.*?)\s*[(,]\D*([\d.,]+)\)?", name) for name in names]
    words = [name if part is None else part[1] for name, part in zip(names, parts, strict=True)]
    numbers = [[] if part is None else [float(x) for x in part[2].split(",")] for part in parts]
    return type_features(words, numbers)


def type_features(words: Sequence[str], numbers: Sequence[Sequence[float]]) -> FloatArray:
    """Return a column for each word, one for the logarithm of each number, and their products, float64 (T, F).

    Types of one word are alike, the more so the closer their numbers are. Logarithms are centred within a word.
    """
    known = {word: i for i, word in enumerate(dict.fromkeys(words))}
    one = np.eye(len(known))[[known[word] for word in words]]
    logs = np.zeros((len(words), max((len(x) for x in numbers), default=0)))
    for i, values in enumerate(numbers):
        logs[i, : len(values)] = np.log(np.maximum(values, 1e-12))
    logs -= one @ ((one.T @ logs) / one.sum(axis=0)[:, None])
    return np.concatenate([one, logs, (one[:, :, None] * logs[:, None]).reshape(len(words), -1)], axis=1)
