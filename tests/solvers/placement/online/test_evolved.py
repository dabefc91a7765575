"""The evolved rule by itself: its weights have names, and those that it cannot have are refused."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.simulator.gangs.formula import TERMS
from gangplan.solvers.placement.online.evolved import Evolved, Sight


def test_weights_are_those_of_the_search() -> None:
    """Each is one of the formula's, by its name; there and back they are the same."""
    rule = Evolved(gpus=0.5, age=-1.0)
    assert set(rule.weights) == set(TERMS) - {"order: log(1 + waited/seconds)", "hold"}
    assert Evolved.of(rule.weights) == rule
    assert Evolved.of({"wait: 1": -3}) == Evolved(0, 0, 0, -3, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"hold": 0.5}, "weights: 'hold' is not one of"),
        ({"order: log GPUs": -9.0}, "gpus: -9.0 is not from -8 to 8"),
        ({"wait: crowd": float("nan")}, "crowd: nan"),
        ({"wait: crowd": "1"}, "crowd: '1' is not a number"),
    ],
)
def test_wrong_weights(weights: dict[str, float], words: str) -> None:
    """They are named."""
    with pytest.raises(InstanceError, match=words):
        Evolved.of(weights)


def test_the_crowd_and_the_length_decide() -> None:
    """Wide gangs go first in a crowd; who takes long waits for closer GPUs than who has waited long."""
    rule, sight = Evolved(), Sight.of(waiting=30, running=10, logs=10 * np.log(600.0))
    assert sight.typical == pytest.approx(np.log(600.0)) and sight.crowd == pytest.approx(np.log(4.0))
    assert rule.order(sight) == pytest.approx(-0.929 * np.log(4.0)) and rule.order(Sight()) == 0.0
    most = rule.most(1.5, 8, np.array([600.0, 6000.0, 600.0]), np.array([0.0, 0.0, 6000.0]), sight)
    bound = -2.2 - 0.364 * np.log(8.0) - 0.223 * np.log(4.0)
    expected = [bound, bound - 1.11 * np.log(10.0), bound + 0.17 * np.log(11.0)]
    np.testing.assert_allclose(most, 1.5 * (1 + np.exp(expected)), rtol=1e-8)
    assert rule.most(1.5, 8, 6000.0, 0.0, sight) == pytest.approx(most[1])
