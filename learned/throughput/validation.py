"""How good the network's plans are beside PipeDream's, on instances kept for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import nn

from ..gnn import collate
from .drafts import best_of, greedy
from .examples import Example

SAMPLES = 16


def validation(network: nn.Module, examples: Sequence[Example], gain: float) -> Callable[[], dict[str, float]]:
    """Return a function that gives the mean logarithm of the load over PipeDream's: ``greedy``, ``sampled``, ``score``.

    Scores are stretched by `gain`, as the policy does it. ``score`` is their mean in percent; below 0 is better than
    PipeDream.
    """

    def judge() -> dict[str, float]:
        found = []
        for i, one in enumerate(examples):
            batch = collate([one.encoding])
            heads = gain * network(batch).double().numpy()
            base = one.decoder.base
            plans = greedy(one.decoder, heads), best_of(one.decoder, heads, SAMPLES, seed=i)
            if base is not None:
                found.append([0.0 if x is None else float(np.log(x.load / base.load)) for x in plans])
        own, sampled = 100 * np.mean(found, axis=0)
        return {"score": float(own + sampled) / 2, "greedy": float(own), "sampled": float(sampled)}

    return judge
