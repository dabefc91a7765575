"""Large clusters as pods: every block of a pod is the same set of servers as the cluster's block it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import RampTopology
from gangplan.simulator.ramp import Blocks

pytest.importorskip("numba")

from gangplan.learned.ramp.pods import SERVERS, WHOLE, pods


@pytest.mark.parametrize("size", [(8, 8, 2), (6, 5, 3), (9, 4, 2)])
def test_blocks_are_the_clusters(size: tuple[int, int, int]) -> None:
    """Pods share out the servers, and name for each of their blocks the cluster's block of these, and its shape."""
    blocks = Blocks(RampTopology(*size))
    parts = pods(blocks, choose=True)
    assert blocks.n_servers > WHOLE
    assert sorted(np.concatenate([pod.servers for pod in parts]).tolist()) == list(range(blocks.n_servers))
    for pod in parts:
        assert len(pod.servers) <= SERVERS
        for own in range(0, len(pod.block), 7):
            local = pod.tables.servers[own, : pod.tables.size[own]]
            assert sorted(pod.servers[local].tolist()) == blocks.members(int(pod.block[own])).tolist()
        assert np.array_equal(blocks.shape[pod.block], pod.shape[pod.tables.shape])


def test_small_clusters_are_whole() -> None:
    """Up to 64 servers there is one pod, and its blocks and shapes are the cluster's."""
    blocks = Blocks(RampTopology(4, 4, 4))
    (pod,) = pods(blocks, choose=True)
    assert np.array_equal(pod.block, np.arange(blocks.n_blocks))
    assert np.array_equal(pod.servers, np.arange(64))
