"""Features of types by their names."""

from __future__ import annotations

import numpy as np

from gangplan.learned.training.interference.measured import named_features, type_features


def test_features() -> None:
    """Types of one name have its column, and logarithms that are centred within it."""
    found = named_features(["A (batch size 2)", "A (batch size 8)", "B3"])
    half = np.log(2)
    assert np.allclose(found, [[1, 0, -half, -half, 0], [1, 0, half, half, 0], [0, 1, 0, 0, 0]])
    assert np.allclose(type_features(["A", "A", "B3"], [[2], [8], []])[:2], found[:2])
