"""A small cluster and its log, made once."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.learned.training.interference.samples import Samples
from gangplan.systems.interference.baselines import ScoreRule
from gangplan.systems.interference.case import InterferenceCase
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.samples import log, log_samples


@pytest.fixture(scope="package")
def case() -> InterferenceCase:
    """Return eighty jobs on six servers."""
    return poisson(TRAINING + 7, jobs=80, load=0.6)


@pytest.fixture(scope="package")
def samples(case: InterferenceCase) -> Samples:
    """Return what its jobs report where tasks are put anywhere, in random order."""
    rng = np.random.default_rng(0)
    made = log(case, ScoreRule(lambda env, job, kind: rng.random(len(env.free))))
    found = log_samples(case, made)
    return found.take(rng.permutation(len(made.now)))
