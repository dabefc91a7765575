"""Simulated annealing over plans (Kirkpatrick, Gelatt and Vecchi, Science 1983)."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .kernels import LatencyArrays, LatencyState, anneal
from .reduced import ReducedLatency, offer

_HOT, _COLD = 0.03, 0.0003
"""Temperatures, as shares of the best plan's latency."""
_SECONDS, _FIRST, _LONGER = 0.003, 15, 2
"""Between two looks at the clock; moves of the first annealing for each group; how much longer the next one is."""
_MOST = 40_000
"""Moves of the longest annealing for each group."""
_STALLED = 6
"""Annealings as long as they get without a better plan, after which this ends."""


def local_search(run: Run, r: ReducedLatency) -> None:
    """Improve the best plan by simulated annealing; do nothing if there is none."""
    slots = None if run.plan is None or run.stopped else r.slots_of(run.plan)
    if slots is None or run.objective is None:
        return
    data, rng = LatencyArrays(r), np.random.default_rng(run.seed)
    best, least = np.array(slots, np.int64), run.objective
    longest = len(best) * _MOST
    moves, stalled, chunk = len(best) * _FIRST, 0, 200
    while not run.stopped and stalled < _STALLED and least > 0:
        plan, began, done = LatencyState(data, best.tolist()), least, 0
        while done < moves and not run.stopped:
            before, size = run.seconds(), min(chunk, moves - done)
            hot, cold = (_HOT * (_COLD / _HOT) ** ((done + x) / moves) for x in (0, size))
            least = anneal(data, plan, best, least, hot, cold, size, int(rng.integers(2**31)))
            done += size
            chunk = max(50, int(size * min(4.0, _SECONDS / max(run.seconds() - before, 1e-6))))
        if least < began:
            offer(run, r, best.tolist(), "local_search")
        stalled = 0 if least < began else stalled + (moves >= longest)
        moves = min(longest, _LONGER * moves)
