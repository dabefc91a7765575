"""Better a draft of a large graph by short annealing: the recurrence along few orders leaves more to gain there."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.partition.throughput.anneal import anneal
from gangplan.solvers.partition.throughput.moves import Data, data_of, state_of
from gangplan.solvers.partition.throughput.orders import Ints
from gangplan.solvers.partition.throughput.polish import stage_of

from .decode import Decoder, Draft

SMALL = 100
"""Ops up to which a draft is left as it is."""
_CHAINS, _CHAINS_OF_SAMPLES = 2, 4
"""Chains of annealings, each from the draft, for one draft and for the best of samples: what one cannot get away
from another may never come to."""
_ROUNDS = 2
"""Annealings of a chain, each from its best plan; it ends where one finds nothing better."""
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
    begin = stage_of(draft.stages, q.n_groups)
    chains = _CHAINS if samples <= 1 else _CHAINS_OF_SAMPLES
    found = [_chain(data, begin, kind, draft.load, moves, (seed + c * _ROUNDS) % 2**31) for c in range(chains)]
    best = min(found, key=lambda x: x[0])[1]
    # counted anew: sums of many changes drift
    load = float(state_of(data, best, kind).load.max())
    if load >= draft.load:
        return draft
    return Draft(load, [(int(kind[s]), np.flatnonzero(best == s)) for s in np.unique(best).tolist()])


def _chain(data: Data, begin: Ints, kind: Ints, peak: float, moves: int, seed: int) -> tuple[float, Ints]:
    """Return the maximum load of the best plan, seconds, and the stages of its groups, (G,)."""
    best = begin
    for i in range(_ROUNDS):
        found = best.copy()
        reached = float(anneal(data, state_of(data, best.copy(), kind), found, peak, _HOT, _COLD, moves, seed + i))
        if reached >= peak:
            break
        best, peak = found, reached
    return peak, best
