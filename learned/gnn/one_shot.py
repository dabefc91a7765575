"""Policy gradient for one-shot scores: noise on the scores is the action, the decoded plan's objective the cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray

Example = TypeVar("Example")


def reinforce(
    scores: Tensor,
    first: Tensor,
    examples: Sequence[Example],
    cost: Callable[[Example, FloatArray], float],
    *,
    samples: int,
    noise: float,
    rng: np.random.Generator,
) -> Tensor:
    """Return the loss of a Gaussian policy around `scores`, whose gradient is that of the expected cost.

    Each example is decoded from `samples` noisy copies of its scores; the cost of a sample counts against the mean of
    the others (leave-one-out: Kool, van Hoof & Welling, 2019), in units of their spread. Samples come in pairs of
    opposite noise.

    Args:
        scores: of all elements of all examples, (A,).
        first: where those of each example begin, and A, int64 (B + 1,).
        examples: B of them.
        cost: from an example and scores of its elements, float64, to what the plan decoded from them costs.
        samples: an example; an even number.
        noise: standard deviation.
        rng: draws it.
    """
    loss = scores.new_zeros(())
    ends = first.tolist()
    for example, (a, b) in zip(examples, pairwise(ends), strict=True):
        mean = scores[a:b]
        half = rng.standard_normal((samples // 2, b - a)) * noise
        drawn = np.concatenate([half, -half])
        at = mean.detach().cpu().double().numpy()
        found = np.array([cost(example, at + row) for row in drawn])
        spread = found.std()
        if not spread > 0:
            continue
        advantage = (found - found.mean()) / spread
        # of log N(s; mean, noise) only this part depends on the mean, with the same gradient
        weight = torch.as_tensor(advantage @ drawn / (samples * noise**2), dtype=mean.dtype, device=mean.device)
        loss = loss + (weight * mean).sum()
    return loss / max(len(examples), 1)
