"""Errors, ranks and intervals on hand-made predictions."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances.readers.measured import Pairs
from gangplan.learned.training.interference.judge import judge
from gangplan.learned.training.interference.measured import pair_samples
from gangplan.learned.training.interference.models import SpeedPredictor
from gangplan.learned.training.interference.samples import Samples


def test_score() -> None:
    """Two members that are 10% low and 10% high of 1 are right about 1, and an interval holds what is within it."""
    kept = np.array([[1.0, 0.5], [2.0, np.nan]])
    samples = pair_samples(Pairs("made", ("a", "b"), np.ones(2), kept))

    def member(by: float):  # type: ignore[no-untyped-def]
        return lambda asked: np.full(len(asked.speed), by)

    model = SpeedPredictor(samples.setting, (member(-0.1), member(0.1)), 0.3, 2.0)
    mean, deviation = model.predict(samples.now)
    spread = 0.1 * np.sqrt(2)
    assert np.allclose(mean, 0) and np.allclose(deviation, np.hypot(0.3, 2 * spread))
    score = judge(model, samples, samples)
    assert score.held_out == score.samples == 3  # the second job of the pair of a with itself is no measurement
    assert score.mape == pytest.approx((0 + 1.0 + 0.5) / 3) and score.median == pytest.approx(0.5)
    # off by 0, log 2 and log 2 with a deviation of 0.41: 0, 1.69 and 1.69 deviations
    assert score.within == pytest.approx((1 / 3, 1 / 3, 1.0)) and score.rank == 0.0


def test_ranks() -> None:
    """A prediction in the right order has a rank correlation of 1, one in the opposite order of -1."""
    samples = pair_samples(Pairs("made", ("a", "b", "c"), np.ones(3), np.array([[0.9, 0.8, 0.7]] * 3)))

    def follow(sign: float):  # type: ignore[no-untyped-def]
        return lambda asked: sign * np.log(samples.speed)

    for sign in (1.0, -1.0):
        model = SpeedPredictor(samples.setting, (follow(sign), follow(sign)), 0.1, 0.0)
        known = Samples(samples.setting, samples.now, samples.speed)
        assert judge(model, known, known).rank == pytest.approx(sign)
