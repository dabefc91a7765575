"""Fine-tuning on its own plans: policy gradient on the best of what the noisy scores of all heads decode to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gangplan.instances.arrays import FloatArray

from ..gnn import collate
from ..training.checkpoint import Tensors
from ..training.state import pack_optimizer, pack_random, prefixed, under, unpack_optimizer, unpack_random
from .examples import Example
from .settings import Settings

_NONE = 1.0
"""What no plan costs: as much as one that is e times as slow as PipeDream's."""


class OwnPlans:
    """Learns from plans that it draws of instances, see `gangplan.learned.training.Learner`.

    Args:
        network: is trained.
        pools: instances, a list a size; an update draws from one of them.
        settings: see there.
        validate: see `gangplan.learned.gnn.imitation.Imitation`.
        seed: of what is drawn.
    """

    def __init__(
        self,
        network: nn.Module,
        pools: Sequence[Sequence[Example]],
        settings: Settings,
        validate: Callable[[], dict[str, float]],
        seed: int,
    ) -> None:
        self.network, self.settings, self.judge = network, settings, validate
        self.pools = [list(pool) for pool in pools if pool]
        self._rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), settings.rl_rate)

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch."""
        s, rng = self.settings, self._rng
        self.optimizer.param_groups[0]["lr"] = s.rl_rate * max(1 - (step - 1) / s.rl_updates, 0.05)
        pool = self.pools[int(rng.integers(len(self.pools)))]
        examples = [pool[i] for i in rng.choice(len(pool), min(s.rl_minibatch, len(pool)), replace=False)]
        batch = collate([x.encoding for x in examples])
        scores = s.gain * self.network(batch)
        loss, cost = best_of_heads(
            scores, batch.first["groups"], examples, costs, samples=s.samples, noise=s.noise, rng=rng
        )
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return {"loss": float(loss.detach()), "drawn": cost, "gradient": float(norm)}

    def validate(self) -> dict[str, float]:
        """Return figures on the validation instances."""
        with torch.no_grad():
            return self.judge()

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that the next update depends on."""
        tensors, plain = pack_optimizer(self.optimizer)
        own = prefixed("policy", self.network.state_dict()) | prefixed("optimizer", tensors)
        return own, {"optimizer": plain, "random": pack_random(self._rng)}

    def load(self, tensors: Tensors, plain: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.network.load_state_dict(under("policy", tensors))
        unpack_optimizer(self.optimizer, under("optimizer", tensors), plain["optimizer"])
        unpack_random(self._rng, plain["random"])


def costs(one: Example, row: FloatArray) -> float:
    """Return the logarithm of the load that scores (G,) are decoded to over PipeDream's."""
    draft, base = one.decoder.decode(row), one.decoder.base
    return _NONE if draft is None or base is None else float(np.log(draft.load / base.load))


def best_of_heads(
    scores: Tensor,
    first: Tensor,
    examples: Sequence[Example],
    cost: Callable[[Example, FloatArray], float],
    *,
    samples: int,
    noise: float,
    rng: np.random.Generator,
) -> tuple[Tensor, float]:
    """Return the loss of Gaussian policies around each head's scores, and the mean cost of the best head.

    Its gradient is that of the expected cost of the best head: a head's sample counts by what it leaves to be the
    best with the other heads' samples, on average over these, and with scores of zero. So a head learns what the
    others cannot do. Samples come in pairs of opposite noise; they count against their mean, in units of the spread.

    Args:
        scores: of all groups of all examples, (A, H).
        first: where those of each example begin, and A, int64 (B + 1,).
        examples: B of them.
        cost: from an example and scores of its groups, float64, to what the plan decoded from them costs.
        samples: an example and head; an even number.
        noise: standard deviation.
        rng: draws it.
    """
    # of the graph even where no sample differs from another
    loss, found = 0.0 * scores.sum(), []
    for example, (a, b) in zip(examples, pairwise(first.tolist()), strict=True):
        mean = scores[a:b]
        half = rng.standard_normal((samples // 2, *mean.shape)) * noise
        drawn = np.concatenate([half, -half])
        at = mean.detach().double().numpy()
        paid = np.array([[cost(example, row) for row in (at + one).T] for one in drawn])
        paid = np.minimum(paid, cost(example, np.zeros(b - a)))
        found.append(paid.min(axis=1).mean())
        left = np.stack([_best_with_others(paid, h) for h in range(paid.shape[1])], axis=1)
        left -= left.mean(axis=0)
        if left.std() > 0:
            weight = np.einsum("sh,sgh->gh", left / left.std(), drawn) / (samples * noise**2)
            # of log N(s; mean, noise) only this part depends on the mean, with the same gradient
            loss = loss + (torch.as_tensor(weight, dtype=mean.dtype) * mean).sum() / mean.shape[0]
    return loss / len(examples), float(np.mean(found))


def _best_with_others(paid: FloatArray, head: int) -> FloatArray:
    """Return the mean cost of the best head for each sample of one, over the samples of the others, (S,)."""
    others = np.delete(paid, head, axis=1)
    if not others.shape[1]:
        return paid[:, head]
    best: FloatArray = np.minimum(paid[:, head, None], others.min(axis=1)).mean(axis=1)
    return best
