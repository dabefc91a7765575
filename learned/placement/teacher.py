"""What places are worth in the end: the best of some completions of the batch from each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangplan.instances.arrays import FloatArray

from .build import Builder, Decision
from .decode import Decoder
from .network import Example
from .pairs import pairs

PLACES = 10
"""Of a decision that are completed: the best by score."""


def label(decoder: Decoder, decisions: int, completions: int, rng: np.random.Generator) -> list[Example]:
    """Return some decisions on the way of the policy to a placement, with the regret of each place.

    A placement is built with noise; at some of its decisions each place is taken in turn, and the batch completed by
    the policy, greedily and with noise: the same for all places. The least cost counts.
    """
    builder, found = decoder.builder, []
    builder.back(0)
    order = decoder.order(rng, 0.6)
    chosen = set(rng.permutation(len(order))[:decisions].tolist())
    for i, j in enumerate(order):
        decision = builder.decide(j)
        if decision is None:
            break
        scores = decoder.scores(decision)
        if i in chosen and len(scores) > 1:
            example = _labelled(decoder, decision, scores, order[i + 1 :], completions, rng)
            if example is not None:
                found.append(example)
        builder.place(j, decision.rows[int(np.argmax(scores + 0.7 * rng.gumbel(size=len(scores))))])
    builder.back(0)
    return found


def _labelled(
    decoder: Decoder,
    decision: Decision,
    scores: FloatArray,
    rest: Sequence[int],
    completions: int,
    rng: np.random.Generator,
) -> Example | None:
    kept = np.sort(np.argsort(-scores, kind="stable")[:PLACES])
    seed = int(rng.integers(2**31))
    worth = np.array([_worth(decoder, decision, int(c), rest, completions, seed) for c in kept])
    if not np.isfinite(worth).any():
        return None
    regret = np.minimum((worth - worth.min()) / decoder.builder.unit, 10.0)
    place, node = pairs(decision)
    inside = np.isin(place, kept)
    return Example(
        0, decision.job, decision.x[kept], np.searchsorted(kept, place[inside]).astype(np.int32), node[inside],
        regret,
    )  # fmt: skip


def _worth(decoder: Decoder, decision: Decision, c: int, rest: Sequence[int], completions: int, seed: int) -> float:
    """Return the least cost of some completions once place c is taken; inf if none is found."""
    builder = decoder.builder
    depth = len(builder.done) - builder.pinned
    builder.place(decision.job, decision.rows[c])
    least = np.inf
    for k in range(completions):
        rng = np.random.default_rng([seed, k])
        key = decoder.turns + (0.6 * rng.standard_normal(len(decoder.turns)) if k else 0.0)
        if _complete(builder, decoder, sorted(rest, key=lambda j: -key[j]), rng if k else None):
            least = min(least, builder.total())
        builder.back(depth + 1)
    builder.back(depth)
    return least


def _complete(builder: Builder, decoder: Decoder, order: list[int], rng: np.random.Generator | None) -> bool:
    for j in order:
        decision = builder.decide(j)
        if decision is None:
            return False
        scores = decoder.scores(decision)
        if rng is not None:
            scores = scores + 0.5 * rng.gumbel(size=len(scores))
        builder.place(j, decision.rows[int(np.argmax(scores))])
    return True
