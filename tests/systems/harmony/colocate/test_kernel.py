"""The compiled ensemble predicts what the torch one does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gangplan.learned.training.interference.networks import batch_of
from gangplan.systems.harmony.colocate.learners import Ensemble, arrays, log_of
from gangplan.systems.harmony.colocate.policy import Speeds
from gangplan.systems.harmony.colocate.recipe import ColocateSettings


@pytest.mark.parametrize("case", ["shared", "ps"])
def test_speeds_are_those_of_torch(case: str, one_thread: None) -> None:
    """On a log of shared servers and crossed links both agree to the precision of single floats, member by member."""
    settings = ColocateSettings(case=case, samples=200, members=3, kinds=3)
    samples = log_of(settings, 1)
    torch.manual_seed(5)
    network = Ensemble(samples.setting, settings)
    for x in network.parameters():
        torch.nn.init.normal_(x, -0.5, 0.5)
    fitted = arrays(network)
    with torch.inference_mode():
        logs = network(batch_of(samples)).double().numpy()
    unit = np.log(samples.setting.unit[samples.now.kind] * samples.now.total(samples.now.workers))
    assert np.allclose(np.log(Speeds(fitted).speeds(samples.now)), logs.mean(axis=0) + unit, atol=2e-5)
    low = logs.mean(axis=0) - 1.5 * logs.std(axis=0, ddof=1)
    assert np.allclose(np.log(Speeds(fitted, 1.5).speeds(samples.now)), low + unit, atol=5e-5)
    assert logs.std(axis=0).min() > 1e-4
