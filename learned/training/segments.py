"""Softmax, maximum and sum over ragged sets: a flat array of actions, and for each the decision it belongs to."""

from __future__ import annotations

import torch
from torch import Tensor


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


def segment_softmax(scores: Tensor, index: Tensor, n: int) -> Tensor:
    """Return each action's probability in its set, (A,)."""
    return segment_log_softmax(scores, index, n).exp()


def positions(index: Tensor, n: int) -> Tensor:
    """Return the place of each action in its set, int64 (A,); `index` ascends."""
    counts = torch.bincount(index, minlength=n)
    return torch.arange(len(index), device=index.device) - (counts.cumsum(0) - counts)[index]


def padded(scores: Tensor, index: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return scores and mask as rectangles, (n, width) each, the width being that of the largest set.

    Args:
        scores: of the actions, (A,).
        index: the decision of each action, int64 (A,), ascending.
        n: how many decisions there are.
    """
    place = positions(index, n)
    width = int(place.max()) + 1 if len(place) else 0
    mask = torch.zeros((n, width), dtype=torch.bool, device=scores.device).index_put((index, place), _true(scores))
    return scores.new_zeros((n, width)).index_put((index, place), scores), mask


def _true(like: Tensor) -> Tensor:
    return torch.ones((), dtype=torch.bool, device=like.device)
