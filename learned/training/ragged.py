"""Ragged sets: a flat array of actions, and for each the decision it belongs to; softmax and losses over them.

Losses learn from all near-optimal actions and what each costs, not from one label: regret (A,) is how much worse than
the best plan the best plan with an action is, 0 if it is optimal, infinite if there is no plan with it. Every decision
has an action of finite regret.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import ranges


def segment_sum(values: Tensor, index: Tensor, n: int) -> Tensor:
    """Return the sum of each set, (n,); 0 for an empty one.

    Args:
        values: of the actions, (A,).
        index: the decision of each action, int64 (A,), in any order.
        n: how many decisions there are.
    """
    return values.new_zeros(n).index_add(0, index, values)


def segment_max(values: Tensor, index: Tensor, n: int) -> Tensor:
    """Return the largest of each set, (n,); minus infinity for an empty one."""
    lowest = values.new_full((n,), float("-inf"))
    return lowest.scatter_reduce(0, index, values, "amax")


def segment_log_softmax(scores: Tensor, index: Tensor, n: int) -> Tensor:
    """Return the logarithm of each action's probability in its set, (A,); scores of minus infinity stay so."""
    top = segment_max(scores.detach(), index, n)
    shifted = scores - torch.where(top.isfinite(), top, 0.0)[index]
    return shifted - segment_sum(shifted.exp(), index, n).log()[index]


def soft_cross_entropy(scores: Tensor, index: Tensor, regret: Tensor, n: int, *, temperature: float) -> Tensor:
    """Return the mean over decisions of the cross-entropy to the targets softmax(-regret / temperature).

    With a small temperature all optimal actions share the target evenly; with a larger one near-optimal ones join.
    """
    target = segment_log_softmax(-regret / temperature, index, n).exp()
    log_probability = segment_log_softmax(scores, index, n)
    # 0 times minus infinity is not 0 to a computer
    return -torch.where(target > 0, target * log_probability, 0.0).sum() / n


def expected_regret(scores: Tensor, index: Tensor, regret: Tensor, n: int, *, cap: float) -> Tensor:
    """Return the mean over decisions of the regret of an action drawn from the policy, regrets cut off at `cap`."""
    return (segment_log_softmax(scores, index, n).exp() * regret.clamp(max=cap)).sum() / n


def rows_of(first: Any, chosen: Any) -> tuple[Tensor, Tensor]:
    """Return the rows of some decisions, and which of these each row belongs to, int64 (A,) each.

    Args:
        first: the rows of decision d are those from ``first[d]`` to before ``first[d + 1]``, int64 (D + 1,).
        chosen: decisions, int64 (n,).
    """
    begin, end = first[chosen], first[chosen + 1]
    return torch.from_numpy(ranges(begin, end)), torch.from_numpy(np.repeat(np.arange(len(chosen)), end - begin))
