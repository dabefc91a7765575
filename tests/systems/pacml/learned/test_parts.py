"""Large clusters as parts: every block of a part is the same set of servers as the cluster's block it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import RampTopology
from gangplan.systems.pacml.jobs import Blocks
from gangplan.systems.pacml.learned.parts import SERVERS, WHOLE, parts


@pytest.mark.parametrize("size", [(8, 8, 2), (6, 5, 3), (9, 4, 2)])
def test_blocks_are_the_clusters(size: tuple[int, int, int]) -> None:
    """Parts share out the servers, and name for each of their blocks the cluster's block of these, and its shape."""
    blocks = Blocks(RampTopology(*size))
    found = parts(blocks, choose=True)
    assert blocks.n_servers > WHOLE
    assert sorted(np.concatenate([part.servers for part in found]).tolist()) == list(range(blocks.n_servers))
    for part in found:
        assert len(part.servers) <= SERVERS
        tables = part.decision.tables
        for own in range(0, len(part.block), 7):
            local = tables.servers[own, : tables.size[own]]
            assert sorted(part.servers[local].tolist()) == blocks.members(int(part.block[own])).tolist()
        assert np.array_equal(blocks.shape[part.block], tables.shape)


def test_small_clusters_are_whole() -> None:
    """Up to 64 servers there is one part, and its blocks and shapes are the cluster's."""
    blocks = Blocks(RampTopology(4, 4, 4))
    (part,) = parts(blocks, choose=True)
    assert np.array_equal(part.block, np.arange(blocks.n_blocks))
    assert np.array_equal(part.servers, np.arange(64))
