"""From the network's scores to drafts: one plan of all heads, or the best of more, noise upon the heads."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .decode import Decoder, Draft

SPREADS = (1.0, 2.0)
"""Of the noise on scores, in turn: shares of the whole order."""


def rows(heads: FloatArray, samples: int = 1, seed: int = 0, spreads: tuple[float, ...] = SPREADS) -> FloatArray:
    """Return what is decoded, vectors of scores (K, G): zeros, the heads, and noise upon the heads up to `samples`.

    Zeros stand for PipeDream's order, so that no plan is worse than its plan.

    Args:
        heads: (G, heads).
        samples: K at least; 1 for zeros and heads alone.
        seed: of the noise.
        spreads: of the noise, in turn.
    """
    own = np.concatenate([np.zeros((1, len(heads))), heads.T])
    more = max(samples - len(own), 0)
    rng = np.random.default_rng(seed)
    spread = np.resize(spreads, more)[:, None]
    around = np.resize(np.arange(heads.shape[1]), more)
    return np.concatenate([own, heads.T[around] + spread * rng.standard_normal((more, len(heads)))])


def greedy(made: Decoder, heads: FloatArray) -> Draft | None:
    """Return the plan of the heads, no noise; None if no order of them can be cut."""
    return made.sample(rows(heads))


def best_of(made: Decoder, heads: FloatArray, samples: int, seed: int = 0) -> Draft | None:
    """Return the plan of so many vectors of scores, zeros and heads among them."""
    return made.sample(rows(heads, samples, seed))
