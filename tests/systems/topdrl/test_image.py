"""The image state, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.systems.topdrl.batch import Batch
from gangplan.systems.topdrl.image import image


def test_blocks() -> None:
    """A job is a column of each of its GPUs for as long as it is told to run, and a block while it waits."""
    work = Workload(tuple("abcd"), np.zeros(4), np.array([2, 3, 1, 4]), np.array([6.0, 3.0, 50.0, 4.0]))
    told = np.array([4.0, 3.0, 50.0, 4.0])
    batch = Batch([(work, told)], Fleet.regular(1, 2, 4), Proximity(0, 0, 0), count=2, slots=2)
    batch.act(np.zeros(2, dtype=np.int64))
    seen = image(batch, rows=5, width=2, step=2.0, backlog=4)
    assert seen.cluster[0].tolist() == [[1, 1, 0, 0, 0, 0, 0, 0]] * 2 + [[0] * 8] * 3
    assert seen.queue[0].tolist() == [[[1, 1], [1, 1], [0, 0], [0, 0], [0, 0]], [[1, 0]] * 5]
    work_left = (3 * 3 + 50 + 4 * 4) / (8 * 5 * 2)
    assert seen.scalars[0].tolist() == pytest.approx([1 / 4, 6 / 8, 2 / 8, 1, work_left, 0])
    assert not seen.cluster[1].any() and not seen.queue[1].any()  # there is no second episode


def test_longer_than_told() -> None:
    """A job that runs for longer than was told is shown for one step more."""
    work = Workload(("a", "b"), np.array([0.0, 9.0]), np.array([1, 1]), np.array([20.0, 1.0]))
    batch = Batch([(work, np.array([3.0, 1.0]))], Fleet.regular(1, 2, 4), count=1)
    batch.act(np.array([0]))
    assert image(batch).cluster[0, :, 0].tolist() == [1] + [0] * 29


def test_bad_input() -> None:
    """An image without rows is refused."""
    batch = Batch([Workload(("a",), np.zeros(1), np.ones(1, dtype=int), np.ones(1))], Fleet.regular(1, 1, 1), count=1)
    with pytest.raises(InstanceError, match="rows"):
        image(batch, rows=0)
