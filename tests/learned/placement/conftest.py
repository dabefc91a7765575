"""Small batches and networks for the tests of the placement policy."""

from __future__ import annotations

import pytest
import torch

from gangplan.learned.placement.network import Network
from gangplan.learned.placement.policy import PlacementPolicy
from gangplan.learned.placement.settings import Settings


@pytest.fixture(scope="session")
def policy() -> PlacementPolicy:
    """Return a policy whose corrections are no zeros, with random weights."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    network = Network(16, 2)
    torch.nn.init.normal_(network.head[-1].weight, std=0.3)  # type: ignore[union-attr, arg-type]
    torch.nn.init.normal_(network.turn.weight, std=0.1)
    return PlacementPolicy(network, Settings(width=16))
