"""The policy: weights that turn a problem into a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem
from gangplan.instances.arrays import FloatArray

from ..encode.encoding import Encoding
from ..gnn import collate
from ..policy.restore import restore
from ..policy.weights import Card, save
from .decode import Decoder, Draft, decoder
from .drafts import best_of, greedy
from .encode import encode
from .network import Scorer
from .refine import refined
from .settings import Settings


class ThroughputPolicy:
    """Plans pipelines, on one core.

    Args:
        network: gives scores.
        card: says where it comes from.
        gain: stretches scores, see `Settings`.
    """

    def __init__(self, network: Scorer, card: Card, gain: float = 1.0) -> None:
        self.network, self.card, self.gain = network.eval(), card, gain

    def scores(self, made: Decoder) -> FloatArray:
        """Return the scores of each group by each head, float64 (G, heads).

        Raises:
            InstanceError: if one is not finite.
        """
        with torch.no_grad():
            found = self.gain * self.network(collate([encode(made, messages=self.network.messages)])).double().numpy()
        if not np.isfinite(found).all():
            raise InstanceError("scores", "are not all finite: the weights are broken")
        return np.asarray(found)

    def draft(self, made: Decoder, samples: int = 1, seed: int = 0) -> Draft | None:
        """Return the plan of the groups; with more than one sample, the best of so many vectors of scores.

        Of a graph that is not small it is annealed; training and its validation judge what the scores are decoded to.
        """
        heads = self.scores(made)
        found = greedy(made, heads) if samples <= 1 else best_of(made, heads, samples, seed)
        return None if found is None else refined(made, found, samples=samples, seed=seed)

    def plan(self, problem: PartitionProblem, samples: int = 1, seed: int = 0) -> PartitionPlan | None:
        """Return a plan of a problem of any variant, contiguous, and so feasible in all; None if it finds none.

        Args:
            problem: the problem.
            samples: 1 is deterministic; of more, the seed says which.
            seed: of the samples.
        """
        made = decoder(problem)
        found = None if made is None else self.draft(made, samples, seed)
        return None if made is None or found is None else made.plan(found)

    def save(self, path: str | Path) -> None:
        """Write weights and card."""
        save(path, self.network.state_dict(), self.card)

    @classmethod
    def load(cls, path: str | Path) -> ThroughputPolicy:
        """Read weights.

        Raises:
            InstanceError: naming the file and what is wrong.
        """
        network, settings, card = restore(
            path,
            "throughput",
            Settings,
            lambda known: Scorer(small(known.rounds > 0), known.width, known.rounds, known.heads),
        )
        return cls(network, card, settings.gain)


def small(messages: bool) -> Encoding:
    """Return the encoding of a small problem, which has the columns of all others; see `encode`."""
    from gangplan.instances.generators import generate

    problem: Any = generate("layered", ops=6, layers=3, devices=2, seed=0)
    made = decoder(problem)
    assert made is not None
    return encode(made, messages=messages)
