"""The fit: a log, members that have each not seen some combinations, and a way that the fitted speeds choose."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.learned.training.interference.samples import Samples
from gangplan.learned.training.trainer import start
from gangplan.systems.harmony.colocate.learners import ColocateTraining, EnsembleFit, log_of, unseen
from gangplan.systems.harmony.colocate.policy import WAYS
from gangplan.systems.harmony.colocate.recipe import ColocateSettings

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = ColocateSettings(samples=300, members=3, kinds=3, updates=30, validation_seeds=1)


@pytest.fixture
def training() -> ColocateTraining:
    """Return what fits to a log of 300 speeds."""
    return ColocateTraining(SETTINGS, 0)


@pytest.fixture
def samples(training: ColocateTraining) -> Samples:
    """Return the log."""
    return training.samples


def learner(training: ColocateTraining) -> EnsembleFit:
    """Return what trains first weights."""
    return training.fit(start(training.network, 0, None))


def test_log(samples: Samples) -> None:
    """The log has as many speeds as were asked for, or few more, is the same for a seed, and another for another."""
    again, other = log_of(SETTINGS, 0), log_of(SETTINGS, 1)
    assert 300 <= len(samples.speed) < 330
    assert (samples.speed == again.speed).all() and (samples.now.server == again.now.server).all()
    assert len(other.speed) != len(samples.speed) or (other.speed != samples.speed).any()
    assert 0 < np.median(samples.speed) <= 1.1  # of workers alone; noise is 2%


def test_each_member_misses_its_own(samples: Samples) -> None:
    """A combination that a member has not seen is seen by the others, and every combination is missed by one."""
    seen = np.stack(unseen(samples, 3, 0))
    each = samples.combination()
    for key in np.unique(each[each >= 0]):
        missed = [e for e in range(3) if not seen[e, samples.touching(np.array([key]))].any()]
        assert missed
    shared = np.isin(np.arange(len(samples.speed)), samples.now.job[each >= 0])
    assert seen[:, ~shared].all() and not seen[:, shared].all(axis=0).any()


def test_fit(training: ColocateTraining) -> None:
    """The loss falls to a third at least, and what was saved goes on to the same losses."""
    first, second = (learner(training) for _ in range(2))
    assert first.validate() == {"score": 1.0}  # not fitted: a rule places
    losses = [first.update(step)["loss"] for step in range(1, 28)]
    tensors, plain = first.state()
    second.load({name: x.clone() for name, x in tensors.items()}, plain)
    for step in (28, 29, 30):
        assert first.update(step) == second.update(step)
    assert losses[-1] < losses[0] / 3


def test_the_best_way_is_entered(training: ColocateTraining) -> None:
    """The way in the weights has the least mean ratio of JCTs, and the first way is its own measure."""
    fit = learner(training)
    for step in range(1, 31):
        fit.update(step)
    found = fit.validate()
    assert list(found) == ["score", *WAYS] and found[next(iter(WAYS))] == 1.0
    assert found["score"] == min(found[way] for way in WAYS) == found[list(WAYS)[int(fit.network.way)]]
