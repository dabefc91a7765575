"""Ruin and recreate, compiled: gangs that cost too much are taken off and put back where the batch gains."""

from __future__ import annotations

from ..run import Run
from .local_search import first
from .mend import LONG, Mender
from .prepare import Batch

_STALL = 6
"""Searches without a better placement that are the end."""


def ruin_recreate(run: Run, batch: Batch) -> None:
    """Improve the best plan, or the best that the policies build, by searches that each begin with the best so far.

    See `gangplan.solvers.placement.mend`. The first has `LONG` rounds a job; one that brings nothing is followed by one
    with half as many again.
    """
    state = first(run, batch)
    if state is None or run.stopped or not state.complete():
        return
    mender, best, rows = Mender(batch), state.exact(), state.snapshot()
    rounds, stall, seed = LONG, 0, run.seed
    while stall < _STALL and not run.stopped:
        found = mender(rows, rounds, seed, lambda: run.stopped, most=rounds * len(rows))
        seed += 1
        if found < best * (1 - 1e-9):
            best, rows, stall = found, mender.state.snapshot(), 0
            run.offer(mender.state.plan(), "ruin_recreate")
        else:
            rounds, stall = rounds + rounds // 2, stall + 1
