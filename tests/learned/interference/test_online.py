"""Speeds learned while jobs run."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.learned.interference.models import fit
from gangplan.learned.interference.online import OnlineModel
from gangplan.learned.interference.samples import Samples
from gangplan.simulator.interference.case import Case
from gangplan.simulator.interference.truths import HiddenTruth


def errors(model: OnlineModel, samples: Samples) -> np.ndarray:
    """Return the error of each job's speed, predicted before it is learned from."""
    found = []
    for i in range(len(samples.now)):
        part = samples.take(np.array([i]))
        found.append(np.abs(np.exp(model.predict(part.now)[0]) / part.speed - 1))
        model.update(part)
    return np.concatenate(found)


def test_it_learns_from_nothing(samples: Samples) -> None:
    """The more has been reported, the nearer it is, and the surer."""
    model, early = (OnlineModel(samples.setting) for _ in range(2))
    early.update(samples.take(np.arange(5)))
    off = errors(model, samples)
    assert off[-200:].mean() < 0.5 * off[:50].mean()
    assert model.predict(samples.now)[1].mean() < early.predict(samples.now)[1].mean()


def test_it_recovers(samples: Samples, case: Case) -> None:
    """After a link is at half speed, what forgets is nearer than what does not, and than what learns no more."""
    assert isinstance(case.truth, HiddenTruth)
    slow = case.truth.slower_link(2, 0.5)
    later = Samples.measured(samples.setting, samples.now, slow.speeds(samples.now))
    off = {}
    for forget in (1.0, 0.995):
        model = OnlineModel(samples.setting, forget=forget)
        for _ in range(4):
            model.update(samples)
        fixed = np.abs(np.exp(model.predict(later.now)[0]) / later.speed - 1)
        off[forget] = errors(model, later)
    last = len(later.speed) // 3
    assert off[0.995][-last:].mean() < 0.8 * off[1.0][-last:].mean()
    assert off[0.995][-last:].mean() < 0.6 * fixed[-last:].mean()


def test_it_corrects_a_model(samples: Samples) -> None:
    """With a fitted model below it, it begins with what that says, and ends nearer."""
    base = fit(samples.first(100), model="mean ratio")
    model = OnlineModel(samples.setting, base)
    asked = samples.take(np.arange(5))
    assert (model.predict(asked.now)[0] == base.predict(asked.now)[0]).all()
    off = errors(model, samples)
    alone = np.abs(np.exp(base.predict(samples.now)[0]) / samples.speed - 1)
    assert off[-300:].mean() < 0.5 * alone[-300:].mean()
    assert model.speeds(asked.now).shape == asked.speed.shape


def test_parts_make_no_difference(samples: Samples) -> None:
    """Samples that come one snapshot after the other teach the same as all at once."""
    some = samples.first(60)
    once, often = OnlineModel(samples.setting), OnlineModel(samples.setting)
    once.update(some)
    for i in range(len(some.now)):
        often.update(some.take(np.array([i])))
    assert np.allclose(once.predict(samples.now)[0], often.predict(samples.now)[0])


def test_refusals(samples: Samples) -> None:
    """A forgetting factor is above 0 and at most 1."""
    for forget in (0.0, 1.5):
        with pytest.raises(InstanceError, match="forget"):
            OnlineModel(samples.setting, forget=forget)
