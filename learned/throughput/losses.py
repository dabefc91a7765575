"""Imitation of plans: groups of earlier stages are to come earlier, by that head which is nearest to the plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from gangplan.solvers.partition.throughput.orders import Ints

from .examples import Example

_SHARP = 20.0
"""How much of a soft minimum is a minimum: losses of two heads differ by a few hundredths."""


def plan_loss(
    scores: Tensor,
    first: Tensor,
    examples: Sequence[Example],
    rng: np.random.Generator,
    *,
    pairs: int,
    steep: float,
    regret: float,
) -> Tensor:
    """Return the mean over examples, and over their plans by regret, of the soft minimum over heads of ranking losses.

    With d the distance of two groups in the order that a head's scores give, u of an earlier stage than v, the loss is
    the mean of log(1 + exp(-steep d)) over `pairs` pairs drawn anew. Plans that contradict each other are not averaged:
    each teaches the head that is nearest (multiple choice learning, Guzmán-Rivera et al., NIPS 2012).

    Args:
        scores: of all groups of all examples, (A, heads).
        first: where those of each example begin, and A, int64 (B + 1,).
        examples: with plans; those without are left out.
        rng: draws pairs.
        pairs, steep, regret: see `Settings`.
    """
    total, count = scores.new_zeros(()), 0
    for one, (a, b) in zip(examples, pairwise(first.tolist()), strict=True):
        if not len(one.stages):
            continue
        u, v = (torch.as_tensor(x, device=scores.device) for x in _apart(one.stages, pairs, rng))
        place = torch.as_tensor(one.decoder.place, dtype=scores.dtype, device=scores.device)
        at = place[:, None] + scores[a:b]
        losses = torch.nn.functional.softplus(-steep * (at[v] - at[u])).mean(dim=1)  # (P, heads)
        nearest = -torch.logsumexp(-_SHARP * losses, dim=1) / _SHARP
        weight = torch.softmax(torch.as_tensor(-one.regrets / regret, dtype=scores.dtype, device=scores.device), dim=0)
        total, count = total + (weight * nearest).sum(), count + 1
    return total / max(count, 1)


def _apart(stages: Ints, pairs: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw pairs (u, v) of groups, in each plan u in an earlier stage than v, int64 (P, pairs)."""
    plans, n = stages.shape
    row = np.arange(plans)[:, None]
    u, v = rng.integers(0, n, (plans, 4 * pairs)), rng.integers(0, n, (plans, 4 * pairs))
    # pairs of one stage go last; a plan with few others has some of them among its own, where they weigh little
    last = np.argsort(stages[row, u] == stages[row, v], axis=1, kind="stable")[:, :pairs]
    u, v = u[row, last], v[row, last]
    flip = stages[row, u] > stages[row, v]
    return np.where(flip, v, u), np.where(flip, u, v)
