"""Better a draft of a large graph by short annealing: the recurrence along few orders leaves more to gain there."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.partition.throughput.anneal import anneal
from gangplan.solvers.partition.throughput.moves import data_of, state_of
from gangplan.solvers.partition.throughput.polish import stage_of

from .decode import Decoder, Draft

SMALL = 100
"""Ops up to which a draft is left as it is."""
_ROUNDS, _ROUNDS_OF_SAMPLES, _DRY = 4, 8, 2
"""Annealings, each from the best plan so far, of one draft and of the best of samples, and after how many without a
better plan this ends."""
_EACH, _MOST = 100, 15_000
"""Moves of an annealing: so many for each op above `SMALL`, at most so many, about 8 ms."""
_HOT, _COLD = 0.002, 0.0002
"""Temperatures, as shares of the best plan's load: low, for there is no time to come back from far."""


def refined(made: Decoder, draft: Draft, *, samples: int = 1, seed: int = 0) -> Draft:
    """Return a plan that fits and is no worse; the draft itself up to `SMALL` ops, or if nothing better is found.

    Args:
        made: the decoder of the problem.
        draft: a plan of it.
        samples: of how many vectors of scores it is the best.
        seed: of their moves.
    """
    q = made.q
    moves = min(_EACH * (len(q.group_of) - SMALL), _MOST)
    if moves <= 0 or draft.load <= 0:
        return draft
    data, kind = data_of(q), np.array([t for t, _ in draft.stages], dtype=np.int64)
    left = np.maximum(q.counts - np.bincount(kind, minlength=len(q.counts)), 0)
    kind = np.concatenate([kind, np.repeat(np.arange(len(left)), left)])
    best, peak, dry = stage_of(draft.stages, q.n_groups), draft.load, 0
    for i in range(_ROUNDS if samples <= 1 else _ROUNDS_OF_SAMPLES):
        found = best.copy()
        reached = float(anneal(data, state_of(data, best.copy(), kind), found, peak, _HOT, _COLD, moves, seed + i))
        dry = 0 if reached < peak else dry + 1
        best, peak = found, min(peak, reached)
        if dry == _DRY:
            break
    if peak >= draft.load:
        return draft
    used = np.unique(best).tolist()
    # counted anew: sums of many changes drift
    load = float(state_of(data, best, kind).load.max())
    return Draft(load, [(int(kind[s]), np.flatnonzero(best == s)) for s in used]) if load < draft.load else draft
