"""Imitation of what places are worth: labels of some batches, a loss over them, a score on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gangplan.solvers.placement.prepare import Batch

from ..encode.encoding import Encoding
from ..gnn import collate
from ..training.losses import soft_cross_entropy
from .batches import prepared, small
from .decode import Decoder
from .encoded import encode
from .network import Example, Network
from .policy import PlacementPolicy
from .settings import Settings
from .teacher import label


@dataclass(frozen=True, slots=True)
class Labelled:
    """One batch, and some of its decisions with what their places are worth."""

    encoding: Encoding
    decisions: tuple[Example, ...]


def labelled(settings: Settings, policy: PlacementPolicy | None, first: int, seed: int) -> list[Labelled]:
    """Label decisions of training batches from seed index `first` on, completed by `policy` or greedily."""
    rng = np.random.default_rng([seed, first])
    found = []
    for i in range(settings.instances):
        batch = prepared(small("train", first + i))
        if batch is None:
            continue
        decisions = label(Decoder(policy, batch), settings.decisions, settings.completions, rng)
        if decisions:
            found.append(Labelled(encode(batch.problem, settings.flat), tuple(decisions)))
    return found


def loss_of(network: Network, settings: Settings) -> Callable[[Sequence[Labelled], np.random.Generator], Tensor]:
    """Return the loss of a minibatch: cross-entropy to what the regrets say, or to the best place alone."""

    def loss(chosen: Sequence[Labelled], rng: np.random.Generator) -> Tensor:
        examples = [replace(e, encoding=i) for i, one in enumerate(chosen) for e in one.decisions]
        scores, of = network(collate([one.encoding for one in chosen]), examples)
        regret = np.concatenate([e.regret for e in examples])
        if settings.labels == "one":
            regret = np.concatenate(
                [np.where(np.arange(len(e.regret)) == e.regret.argmin(), 0.0, 1e3) for e in examples]
            )
        target = torch.from_numpy(regret).float()
        return soft_cross_entropy(scores, of, target, len(examples), temperature=settings.temperature)

    return loss


class Validation:
    """Judges a network on batches: its cost over that of the greedy heuristic.

    Args:
        batches: validation batches.
        settings: of the policy.
    """

    def __init__(self, batches: Sequence[Batch], settings: Settings) -> None:
        self.batches, self.settings = list(batches), settings
        self.greedy = [Decoder(None, batch).place() for batch in self.batches]

    def __call__(self, network: Network) -> dict[str, float]:
        """Return the mean ratio of costs as ``score``; a batch without placement counts double."""
        policy = PlacementPolicy(network, self.settings)
        found = []
        for batch, greedy in zip(self.batches, self.greedy, strict=True):
            cost = Decoder(policy, batch).place()
            if greedy is not None:
                found.append(2.0 if cost is None else cost / greedy)
        network.train()
        return {"score": float(np.mean(found)), "worse": float(np.mean(np.array(found) > 1 + 1e-9))}


def validation(settings: Settings) -> Validation:
    """Return the judge of imitation: small batches of validation seeds."""
    batches = [prepared(small("validation", 1000 + i)) for i in range(settings.validation)]
    return Validation([batch for batch in batches if batch is not None], settings)
