"""Scores to keys and penalties: one unit moves a job by some places, or is worth some of its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.schedule.prepare import Prepared

from ..encode.encoding import Encoding
from .base import Base, base_of
from .decode import Decoder
from .graph import graph_of, slopes

PLACES, SHARE = 2.0, 0.2
"""What a score of 1 means: places in the list; the share of the mean duration that an option's penalty is."""


@dataclass(slots=True, eq=False)
class Instance:
    """A problem made ready to be scored and decoded.

    Attributes:
        p: the problem.
        decoder: of it.
        base: where scores start from.
        unit: of penalties, float64 (n,).
        graph: what the network sees.
    """

    p: Prepared
    decoder: Decoder
    base: Base
    unit: FloatArray
    graph: Encoding

    @classmethod
    def of(cls, p: Prepared) -> Instance:
        """Decode the base schedule and draw the graph."""
        decoder = Decoder(p)
        base = base_of(decoder)
        second = float(p.seconds.mean()) if len(p.seconds) else 1.0
        return cls(p, decoder, base, SHARE * slopes(p) * second, graph_of(p, base))

    def costs(self, moves: FloatArray, worth: FloatArray, outs: FloatArray) -> FloatArray:
        """Return the goals of k rows of scores: moves (k, n), worth (k, o), outs (k, n)."""
        return self.decoder.costs(*self._lists(moves, worth, outs))

    def decode(self, moves: FloatArray, worth: FloatArray, outs: FloatArray) -> float:
        """Return the goal of one row of scores; the decoder then has its schedule."""
        return float(self.costs(moves[None], worth[None], outs[None])[0])

    def _lists(
        self, moves: FloatArray, worth: FloatArray, outs: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        p, base = self.p, self.base
        return base.rank + PLACES * moves, base.penalty + self.unit[p.owner] * worth, self.unit * outs


def width_of(p: Prepared) -> int:
    """Return how many scores a problem has: a move and an out a job, and one an option."""
    return 2 * p.n + len(p.gpus)


def split(p: Prepared, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return moves, worth and outs of rows of scores (k, 2 n + o)."""
    n, o = p.n, len(p.gpus)
    return scores[:, :n], scores[:, n : n + o], scores[:, n + o :]


def noisy(scores: FloatArray, samples: int, noise: float, rng: np.random.Generator) -> FloatArray:
    """Return the scores and `samples` - 1 copies with noise, in pairs of opposite noise, (samples, a)."""
    half = rng.standard_normal((samples // 2, len(scores))) * noise
    return np.concatenate([scores[None], scores + half, scores - half])[:samples]
