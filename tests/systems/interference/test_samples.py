"""Logs hold who was where and how fast it ran."""

from __future__ import annotations

import numpy as np

from gangplan.systems.interference.baselines import ScoreRule
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.samples import Log, log


def test_speeds_are_those_of_the_snapshots() -> None:
    """Without noise a sample is what the truth says of its snapshot, however snapshots are picked and joined."""
    case = poisson(TRAINING, jobs=40)
    samples = log(case, ScoreRule("lb"))
    assert np.allclose(case.truth.speeds(samples.now), samples.speed, rtol=1e-9)
    now, jobs = samples.now.take(np.array([5, 2, 9]))
    some = Log(now, samples.speed[jobs])
    assert np.allclose(case.truth.speeds(some.now), some.speed, rtol=1e-9)
    twice = Log.join([some, some])
    assert np.allclose(case.truth.speeds(twice.now), twice.speed, rtol=1e-9) and len(twice.speed) == 2 * len(some.speed)


def test_limit_and_noise() -> None:
    """A log ends with the snapshot that fills it; noise is of the deviation that was asked for."""
    case = poisson(TRAINING + 1, jobs=200, load=0.6)
    plain, noisy = log(case, ScoreRule("lb"), limit=300), log(case, ScoreRule("lb"), limit=300, noise=0.1)
    assert 300 <= len(plain.speed) == len(noisy.speed) < 312
    assert 0.08 < np.log(noisy.speed / plain.speed).std() < 0.12
