"""Learned slow-downs hold on servers that the fit never saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.learned.policy.weights import FOLDER
from gangplan.systems.harmony.colocate.policy import ColocatePolicy
from gangplan.systems.harmony.colocate.slowdowns import Slowdowns
from gangplan.systems.interference.baselines import Rule
from gangplan.systems.interference.cases import CENTRES, TRAINING
from gangplan.systems.interference.evaluate import alone
from gangplan.systems.interference.policies import BIDS
from gangplan.systems.interference.samples import log


@pytest.mark.parametrize("name", ["flat", "fat-tree-256"])
def test_slowdowns(name: str) -> None:
    """Jobs by themselves are as fast as alone; beside others the prediction is nearer to the truth than alone is."""
    case = CENTRES[name](TRAINING + 50, jobs=150)
    slow = Slowdowns(ColocatePolicy.load(FOLDER / f"{BIDS}.safetensors").fitted, alone(case.truth))
    now = log(case, Rule("lb", "shortest"), limit=600, noise=0.0, seed=0).now
    apart = replace(now, first=np.arange(len(now.kind) + 1))
    assert slow.speeds(apart) == pytest.approx(alone(case.truth).speeds(apart))
    truth, off = np.log(case.truth.speeds(now)), lambda said: np.abs(np.log(said.speeds(now)) - truth).mean()
    assert off(slow) < 0.7 * off(alone(case.truth))
