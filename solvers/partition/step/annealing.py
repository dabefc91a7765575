"""Simulated annealing over devices and orders in steps, so that somebody can look at the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...run import Run
from .model import Prepared
from .moves import Annealing, anneal
from .timing import Workroom, placed

_BUDGET, _BUDGET_ON_LINKS = 20_000, 5_000
"""Ops scheduled between two looks at the clock, without and with contention: some milliseconds."""


def cool(
    p: Prepared, s: Annealing, size: int, hot: float, rng: np.random.Generator, stopped: Callable[[], bool]
) -> Iterator[None]:
    """Do a round of so many steps from the best plan on, from a temperature on; yield now and then."""
    budget, i = _BUDGET_ON_LINKS if p.contention else _BUDGET, 0
    while i < size and not stopped():
        i = anneal(s, i, size, hot, budget, int(rng.integers(2**31)))
        yield


_HOT = (1e-2 / 4, 1e-2 / 30, 1e-2)
"""Temperature at the beginning of a round, relative to the makespan; rounds take them in turn."""
_STALE = 12
"""Rounds without a better plan after which the search ends."""
_STEPS, _LEAST, _MOST = 25, 100, 10_000
"""Steps of a round: for each group, at least, at most."""
_SECONDS, _SECONDS_ON_LINKS, _PART = 4e-8, 2e-7, 3
"""About what a step takes for each op, without and with contention, and which part of the time a round may take."""


def local_search(run: Run, p: Prepared) -> None:
    """Improve the best plan by moves of groups and of priorities until rounds bring nothing; do nothing without a plan.

    Every placement is decoded in the order of its upward ranks, to which the search adds a bias of its own for single
    ops. A round cools down from the best plan on; rounds start less and less hot, then hot again. Moves keep memory
    and colocation.
    """
    # of many devices some are left out, which others' plans may use
    if run.plan is None or run.plan.device.max() >= p.n_devices or p.n_devices == 1:
        return
    where: Any = run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    rng, room = np.random.default_rng(run.seed), Workroom(p)
    s = Annealing(room, where, run.plan.start)
    fitting = run.remaining() / _PART / p.n / (_SECONDS_ON_LINKS if p.contention else _SECONDS)
    # in powers of two, so that one seed gives one trace
    size = int(min(np.clip(_STEPS * p.n_groups, _LEAST, _MOST), 2.0 ** np.floor(np.log2(max(fitting, _LEAST)))))
    best, stale, turn = np.inf, 0, 0
    while stale < _STALE and not run.stopped:
        before = s.best
        for _ in cool(p, s, size, _HOT[turn % len(_HOT)], rng, lambda: run.stopped):
            if s.best < best:
                best = s.best
                run.offer(placed(p, room, s.best_where, s.best_order), "local_search")
        stale = 0 if s.best < before else stale + 1
        turn += 1
