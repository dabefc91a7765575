"""The rule that waits for close GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.systems.topdrl.patient import Patient
from gangplan.systems.topdrl.simulate import simulate


def _jobs(gpus: list[int], duration: list[float], submit: list[float]) -> Workload:
    return Workload(tuple(map(str, range(len(gpus)))), np.array(submit), np.array(gpus), np.array(duration))


@pytest.mark.parametrize(("patience", "start"), [(0.091, 105.0), (1.0, 1.0)])
def test_waits_for_close_gpus_or_not(patience: float, start: float) -> None:
    """One GPU is idle on each of two nodes: 1.25 / 1.025 as slow as on one is more than e^.091, less than e."""
    outcome = simulate(_jobs([3, 3, 2], [100, 100, 10], [0, 0, 1]), Fleet.regular(1, 2, 4), Patient(patience=patience))
    assert outcome.start[2] == pytest.approx(start)


def test_refuses_negative_patience() -> None:
    """Nobody is faster than at best, so patience is not negative."""
    with pytest.raises(InstanceError, match="patience"):
        Patient(patience=-0.1)
