"""Losses and figures of choosing from the book."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..gnn import collate
from .table import Example

DRAWS = (1, 8)
"""Of how many draws the best is to be good, each counting alike."""
SAMPLES = 16


def scores_and_regrets(network: nn.Module, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Return the scores of the book's settings and their regrets, (B, K) each."""
    scores = network(collate([x.encoding for x in examples]))
    regrets = torch.from_numpy(np.stack([x.regret for x in examples])).to(scores.dtype)
    return scores, regrets


def imitation_loss(network: nn.Module, examples: Sequence[Example], temperature: float) -> Tensor:
    """Return the cross-entropy to softmax(-regret / temperature): near-optimal settings share the target.

    Args:
        network: scores the settings.
        examples: a minibatch.
        temperature: 0 for the best setting as the only label.
    """
    scores, regrets = scores_and_regrets(network, examples)
    if temperature > 0:
        target = torch.softmax(-regrets / temperature, dim=1)
    else:
        target = nn.functional.one_hot(regrets.argmin(dim=1), regrets.shape[1]).to(scores.dtype)
    return -(target * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()


def expected_best(scores: Tensor, regrets: Tensor, draws: int) -> Tensor:
    """Return the expected regret of the best of some settings drawn by the policy, (B,).

    With S_i the probability of a setting no better than the i-th best, the best of k draws is the i-th with
    probability S_i^k - S_{i+1}^k. The gradient is that of REINFORCE, without its variance: the whole table is known.

    Args:
        scores: of the settings, (B, K).
        regrets: of the settings, (B, K).
        draws: k.
    """
    sorted_regrets, order = regrets.sort(dim=1)
    p = torch.softmax(scores, dim=1).gather(1, order)
    tail = p.flip(1).cumsum(1).flip(1).clamp(0, 1) ** draws
    chance = tail - nn.functional.pad(tail[:, 1:], (0, 1))
    return (chance * sorted_regrets).sum(dim=1)


def gradient_loss(network: nn.Module, examples: Sequence[Example]) -> Tensor:
    """Return the expected regret of the policy, of one draw and of the best of some, in percent."""
    scores, regrets = scores_and_regrets(network, examples)
    return 100 * torch.stack([expected_best(scores, regrets, k).mean() for k in DRAWS]).mean()


def figures(network: nn.Module, examples: Sequence[Example], minibatch: int = 16) -> dict[str, float]:
    """Return mean regrets in percent of the first choice and of the best of `SAMPLES`; ``score`` is their mean."""
    first, best = [], []
    for i in range(0, len(examples), minibatch):
        scores, regrets = scores_and_regrets(network, examples[i : i + minibatch])
        chosen = regrets.gather(1, scores.argsort(dim=1, descending=True, stable=True)[:, :SAMPLES])
        first += chosen[:, 0].tolist()
        best += chosen.min(dim=1).values.tolist()
    found = 100 * float(np.mean(first)), 100 * float(np.mean(best))
    return {"score": sum(found) / 2, "greedy": found[0], f"best_of_{SAMPLES}": found[1]}
