"""What an op graph refuses beyond single entries."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan import InstanceError, OpGraph


def graph(time: float = 1.0, memory: float = 0.0) -> OpGraph:
    """Return two ops without an edge."""
    none = np.zeros(0)
    same = {"colocation": [-1, -1], "twin": [-1, -1], "backward": [False, False]}
    ends = {"source": none.astype(int), "target": none.astype(int), "edge_bytes": none}
    sizes = {"memory": [memory, memory], "parameter_bytes": [0, 0], "activation_bytes": [0, 0]}
    return OpGraph(names=("a", "b"), device_types=("gpu",), time=[[time, time]], **sizes, **ends, **same)


@pytest.mark.parametrize("field", ["time", "memory"])
def test_sums_stay_within_floats(field: str) -> None:
    """Values that are finite one by one are refused where their sum would not be."""
    assert graph(**{field: 1e299}).n_ops == 2
    with pytest.raises(InstanceError, match=f"{field}: the values add up"):
        graph(**{field: 1e308})
