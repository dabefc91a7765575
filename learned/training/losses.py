"""Imitation: learn from all near-optimal actions and what each costs, not from one label.

Everywhere there are A actions of n decisions: scores (A,), the decision of each action, int64 (A,), and its regret
(A,), that is how much worse than the best plan the best plan with this action is: 0 if it is optimal, infinite if there
is no plan with it. Every decision has an action of finite regret.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .segments import segment_log_softmax, segment_softmax, segment_sum


def soft_cross_entropy(scores: Tensor, index: Tensor, regret: Tensor, n: int, *, temperature: float) -> Tensor:
    """Return the mean over decisions of the cross-entropy to the targets softmax(-regret / temperature).

    With a small temperature all optimal actions share the target evenly; with a larger one near-optimal ones join.
    """
    target = segment_softmax(-regret / temperature, index, n)
    log_probability = segment_log_softmax(scores, index, n)
    # 0 times minus infinity is not 0 to a computer
    return -torch.where(target > 0, target * log_probability, 0.0).sum() / n


def expected_regret(scores: Tensor, index: Tensor, regret: Tensor, n: int, *, cap: float) -> Tensor:
    """Return the mean over decisions of the regret of an action drawn from the policy, regrets cut off at `cap`."""
    return (segment_softmax(scores, index, n) * regret.clamp(max=cap)).sum() / n


def ranking(scores: Tensor, index: Tensor, regret: Tensor, n: int, *, tie: float = 0.0, cap: float = 1.0) -> Tensor:
    """Return the pairwise logistic loss: of two actions of a decision, the one of less regret is to score higher.

    A pair weighs what its regrets differ by, cut off at `cap`; pairs that differ by at most `tie` do not count. The
    pairs of a decision are averaged, then the decisions that have any. Time and memory are quadratic in the size of a
    decision (RankNet: Burges et al., ICML 2005).
    """
    a, b = _pairs(index, n)
    apart = regret[b].clamp(max=regret[a] + cap) - regret[a]
    counts = regret[a].isfinite() & (apart > tie)
    a, b, weight = a[counts], b[counts], apart[counts].clamp(max=cap)
    loss = segment_sum(weight * torch.nn.functional.softplus(scores[b] - scores[a]), index[a], n)
    total = segment_sum(weight, index[a], n)
    some = total > 0
    return (loss[some] / total[some]).sum() / some.sum().clamp(min=1)


def _pairs(index: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return all ordered pairs of actions of one decision, an action with itself included."""
    order = torch.argsort(index, stable=True)
    counts = torch.bincount(index, minlength=n)
    size = counts[index[order]]  # of the set that each action is in
    first = (counts.cumsum(0) - counts)[index[order]]
    a = torch.repeat_interleave(torch.arange(len(index), device=index.device), size)
    within = torch.arange(len(a), device=index.device) - torch.repeat_interleave(size.cumsum(0) - size, size)
    return order[a], order[first[a] + within]
