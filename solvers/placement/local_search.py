"""Local search: take some gangs off their nodes and put each back where the whole batch gains most."""

from __future__ import annotations

import time

import numpy as np

from ..run import Run
from .build import build, order_of, start
from .gpu_assignment import plan_of, rows_of
from .policies import Policy, best_fit, least_interference, nearest, topology
from .prepare import PreparedBatch, Rows
from .ruin_recreate.engine import RuinRecreate

NAME = "local_search"
SHORT, LONG, MOST = 4, 30, 2400
"""Rounds for each job, of the first search and of the second, and how many in all; longer ones follow in vain ones."""
_STALL = 6
"""Searches without a better placement that are the end."""
_TRIES = 12
"""Orders in which jobs are inserted, at most."""
RULES: tuple[Policy, ...] = (topology, best_fit, least_interference, nearest)
"""Where jobs go if insertion finds no place for some."""
_LAST = 1.2
"""Time kept for the last look at the plan by the verifier, in terms of the one before."""


def local_search(run: Run, batch: PreparedBatch, most: int | None = None) -> None:
    """Improve the best plan, or one made by insertion, by ruin and recreate; each search begins with the best so far.

    `most` rounds in all, by default until they gain nothing; see `gangplan.solvers.placement.ruin_recreate.search`.
    """
    search = _BatchSearch(run, batch)
    search.begin()
    jobs, left = len(batch.jobs), np.inf if most is None else most
    rounds, stall, seed = SHORT * jobs, 0, run.seed
    while search.rows and stall < _STALL and left > 0 and not search.over():
        gained = search.take(*search.engine.improve(search.rows, int(min(rounds, left)), seed))
        left -= rounds
        if seed == run.seed:
            rounds = max(SHORT * jobs, min(LONG * jobs, MOST))
        elif gained:
            stall = 0
        else:
            rounds, stall = rounds + rounds // 2, stall + 1
        seed += 1
    if not run.stopped and search.over():
        run.stop_reason = "time limit"


class _BatchSearch:
    def __init__(self, run: Run, batch: PreparedBatch) -> None:
        self.run, self.batch = run, batch
        self.rows: list[Rows] = []
        self.cost, self.look = float("inf"), 0.0
        self.engine = RuinRecreate(batch, self.over)

    def over(self) -> bool:
        """Return whether to end: told to, or what time is left a last look at the plan will take."""
        return self.run.stopped or self.run.remaining() < _LAST * self.look

    def begin(self) -> None:
        rows = [] if self.run.plan is None else rows_of(self.batch, self.run.plan)
        if rows and self.engine.holds(rows):
            self.rows, self.cost = self.engine.improve(rows, 0)
            if self.run.trace and self.run.trace[-1].by == NAME:
                return
        for stay in (True, False) if self.batch.standing else (True,):
            running = start(self.batch, stay).rows
            if not all(running[j] for j in self.batch.pinned):
                return
            queue = [j for j in order_of(self.batch) if not running[j]]
            for _ in range(_TRIES):
                rows, cost = self.engine.insert(running, queue, self.run.seed)
                self.take(rows, cost)
                failed = self.engine.failed
                if failed is None or queue[0] == failed:
                    break
                queue.remove(failed)
                queue.insert(0, failed)
            if self.rows:
                return
        known = self.run.plan is not None or self.over()
        state = None if known else build(self.run, self.batch, RULES, NAME)
        if state is not None and self.engine.holds(state.rows):
            self.rows, self.cost = self.engine.improve(state.snapshot(), 0)

    def take(self, rows: list[Rows], cost: float) -> bool:
        if not cost < self.cost * (1 - 1e-9):
            return False
        plan = plan_of(self.batch, rows)
        if plan is None:
            return False
        self.rows, self.cost = rows, cost
        before = time.perf_counter()
        self.run.offer(plan, NAME)
        self.look = time.perf_counter() - before
        return True
