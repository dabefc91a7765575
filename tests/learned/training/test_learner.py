"""A step down a gradient is as long as it may be."""

from __future__ import annotations

import pytest
import torch

from gangplan.learned.training.learner import clipped_step


@pytest.mark.parametrize("clip", [0.5, 1.0, 2.0, 10.0])
def test_clipped_step(clip: float) -> None:
    """The norm returned is that before; the step is down a gradient of at most the norm asked for."""
    network = torch.nn.Linear(2, 1, bias=False)
    before = network.weight.detach().clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    norm = clipped_step(optimizer, network(torch.tensor([3.0, 4.0])).sum(), network, clip)
    assert norm == pytest.approx(5.0)  # the gradient is (3, 4)
    step = before - network.weight.detach()
    assert step.norm().item() == pytest.approx(min(5.0, clip), rel=1e-5)
    assert (step[0, 0] / step[0, 1]).item() == pytest.approx(0.75, rel=1e-4)
