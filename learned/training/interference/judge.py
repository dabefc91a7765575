"""How well a model predicts combinations of jobs that it has never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray

from .models import SpeedPredictor
from .samples import Samples

SHARE = 0.2
"""Of the combinations, that is held out."""
LEVELS = {0.5: 0.67449, 0.8: 1.28155, 0.95: 1.95996}
"""Probabilities that intervals are stated for, and how many deviations these are wide to each side."""


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of one model on what was held out.

    Attributes:
        samples: known speeds that it was fitted to.
        held_out: speeds that it is judged on.
        mape: mean absolute error over the speed.
        median, p90: of the absolute error over the speed.
        rank: Spearman's correlation of predicted and measured speeds, 0 where one of them is constant.
        within: share of the speeds inside the intervals that are said to hold each of `LEVELS`.
    """

    samples: int
    held_out: int
    mape: float
    median: float
    p90: float
    rank: float
    within: tuple[float, ...]


def hold_out(samples: Samples, seed: int, share: float = SHARE) -> tuple[Samples, Samples]:
    """Return the samples without the speeds of some combinations of types, and with these alone.

    A job is held out if a combination of one of its servers is, whoever of the combination it is; it still stands
    beside others.
    """
    each = samples.combination()
    found = np.unique(each[each >= 0])
    if len(found) < 2:
        raise InstanceError("samples", f"{len(found)} combinations of jobs are too few to hold some out")
    np.random.default_rng(seed).shuffle(found)
    held = samples.touching(found[: max(1, round(share * len(found)))])
    return samples.only(~held), samples.only(held)


def judge(model: SpeedPredictor, fitted: Samples, held_out: Samples) -> Score:
    """Return the errors of a model fitted to some samples on the known speeds of others."""
    mean, deviation = (x[held_out.known] for x in model.predict(held_out.now))
    speed = held_out.speed[held_out.known]
    error = np.abs(np.exp(mean) - speed) / speed
    off = np.abs(np.log(speed) - mean) / deviation
    return Score(
        samples=int(fitted.known.sum()),
        held_out=len(speed),
        mape=float(error.mean()),
        median=float(np.median(error)),
        p90=float(np.quantile(error, 0.9)),
        rank=float(np.corrcoef(_ranks(mean), _ranks(speed))[0, 1]) if np.ptp(mean) and np.ptp(speed) else 0.0,
        within=tuple(float((off <= wide).mean()) for wide in LEVELS.values()),
    )


def _ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value, equal ones the mean of theirs."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[which]
