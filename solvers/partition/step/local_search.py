"""Local search: simulated annealing over placements and priorities, compiled."""

from __future__ import annotations

import numpy as np

from ...run import Run
from .improve.annealing import anneal, begin
from .improve.arrays import arrays_of
from .improve.links import links_of
from .model import Prepared
from .schedule import Decoder, as_plan

_HOT = (1e-2, 1e-2 / 4, 1e-2 / 30)
"""Temperature at the beginning of a round, relative to the makespan; rounds take them in turn."""
_STALE = 12
"""Rounds without a better plan after which the search ends."""
_STEPS, _LEAST, _MOST = 25, 100, 10_000
"""Steps of a round: for each group, at least, at most."""
_BUDGET, _BUDGET_ON_LINKS = 20_000, 5_000
"""Ops scheduled between two looks at the clock, without and with contention: some milliseconds."""


def local_search(run: Run, p: Prepared) -> None:
    """Improve the best plan by moves of groups and of priorities until rounds bring nothing; do nothing without a plan.

    Every placement is decoded in the order of its upward ranks, to which the search adds a bias of its own for single
    ops. A round cools down from the best plan on; rounds start less and less hot, then hot again. Moves keep memory
    and colocation.
    """
    if run.plan is None or p.n_devices == 1:
        return
    rng, decoder, a = np.random.default_rng(run.seed), Decoder(p), arrays_of(p)
    where = run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    s = begin(a, links_of(p), where, run.plan.start)
    budget = _BUDGET_ON_LINKS if p.contention else _BUDGET
    size = int(np.clip(_STEPS * p.n_groups, _LEAST, _MOST))
    best, stale, turn = np.inf, 0, 0
    while stale < _STALE and not run.stopped:
        before, i = s.length[1], 0
        while i < size and not run.stopped:
            i = anneal(a, s, i, size, _HOT[turn % len(_HOT)], budget, int(rng.integers(2**31)))
            if s.length[1] < best:
                best = s.length[1]
                device = s.best_where[a.group].tolist()
                start, _, sent = decoder.times(device, s.best_order.tolist())
                run.offer(as_plan(p, device, start, sent), "local_search")
        stale = 0 if s.length[1] < before else stale + 1
        turn += 1
