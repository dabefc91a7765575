"""Published measurements as samples: jobs that shared a GPU or a host, and how much of its speed each kept."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.readers.measured import Pairs
from gangplan.instances.readers.together import Together
from gangplan.simulator.snapshots import Long, Snapshots

from .samples import KnownSetting, Samples


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
