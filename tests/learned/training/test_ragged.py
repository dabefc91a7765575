"""Ragged sets: softmax and losses are what their formulas say, in any order."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gangplan.learned.training.ragged import (
    expected_regret,
    segment_log_softmax,
    soft_cross_entropy,
)

SCORES = [0.5, -1.0, 2.0, 0.0, 3.0]
REGRET = [0.0, 0.2, math.inf, 0.3, 0.0]
INDEX = [0, 0, 1, 1, 1]


def ragged(order: list[int] | None = None) -> tuple[Any, Any, Any]:
    """Return scores, decisions and regrets of two and three actions, in an order of one's own."""
    order = order or list(range(5))
    rows = [[x[i] for i in order] for x in (SCORES, INDEX, REGRET)]
    return torch.tensor(rows[0], requires_grad=True), torch.tensor(rows[1]), torch.tensor(rows[2])


def test_segments() -> None:
    """Ragged softmax is torch's on each set, whatever the order; large scores do no harm; an empty set has none."""
    scores, index, _ = ragged([4, 0, 3, 1, 2])
    found = segment_log_softmax(scores, index, 3)
    assert torch.allclose(found[[1, 3]], torch.log_softmax(scores[[1, 3]], 0))
    assert torch.allclose(found[[4, 2, 0]], torch.log_softmax(scores[[4, 2, 0]], 0))
    large = segment_log_softmax(torch.tensor([1e4, 1e4, -math.inf]), torch.tensor([0, 0, 0]), 2).exp()
    assert large.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("order", [None, [4, 0, 3, 1, 2]])
def test_losses(order: list[int] | None) -> None:
    """The losses are what their formulas give by hand, in any order of the actions, with finite gradients."""
    scores, index, regret = ragged(order)
    p, q = torch.softmax(torch.tensor(SCORES[:2]), 0), torch.softmax(torch.tensor(SCORES[2:]), 0)
    t, u = torch.softmax(torch.tensor([0.0, -2.0]), 0), torch.softmax(torch.tensor([-math.inf, -3.0, 0.0]), 0)
    entropy = soft_cross_entropy(scores, index, regret, 2, temperature=0.1)
    assert entropy.item() == pytest.approx(float(-(t @ p.log()) / 2 - (u[1:] @ q[1:].log()) / 2), rel=1e-6)
    regrets = expected_regret(scores, index, regret, 2, cap=5.0)
    assert regrets.item() == pytest.approx(float((0.2 * p[1] + 5.0 * q[0] + 0.3 * q[1]) / 2), rel=1e-6)
    (entropy + regrets).backward()
    assert scores.grad is not None and bool(scores.grad.isfinite().all())


def test_optimal_actions_share_the_target() -> None:
    """Two optimal actions of equal score are a minimum of the soft cross-entropy; one label would not be."""
    scores = torch.tensor([1.0, 1.0, -30.0], requires_grad=True)
    index, regret = torch.zeros(3, dtype=torch.long), torch.tensor([0.0, 0.0, 9.0])
    soft_cross_entropy(scores, index, regret, 1, temperature=0.1).backward()
    assert scores.grad is not None and float(scores.grad.abs().max()) < 1e-6
