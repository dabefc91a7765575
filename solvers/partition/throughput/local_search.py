"""Local search on plans: annealing from the best one, again and again, longer where that finds nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from gangplan.instances import verify

from ...run import Run
from .anneal import anneal
from .moves import State, data_of, state_of
from .orders import Ints
from .quotient import Quotient

_HOT, _COLD = 0.01, 0.0001
"""Temperatures, as shares of the best plan's maximum load."""
_CHUNK = 5_000
"""Moves between two looks at the clock, a few milliseconds."""
_FIRST, _LONGER = 20_000, 1.3
"""Moves of the first annealing, and how much longer the next one is."""
_PAIR, _MOST = 20, 2_000
"""Moves of the longest annealing: so many for each pair of groups, at most so many for each group."""
_STALLED = 3
"""Annealings as long as they get without a better plan, after which this ends."""
_WORTH = 1e-3
"""A plan is offered at once if it is better by so much, else at the end of its annealing."""


def local_search(run: Run, q: Quotient) -> None:
    """Improve the best plan by simulated annealing; do nothing if there is none."""
    if run.plan is None or run.objective is None or run.stopped:
        return
    search = _Search(run, q)
    longest = q.n_groups * min(_MOST, _PAIR * q.n_groups)
    moves, stalled = min(_FIRST, longest), 0
    with ThreadPoolExecutor(run.workers) if run.workers > 1 else nullcontext() as pool:
        while not run.stopped and stalled < _STALLED and search.peak > 0:
            with run.phase("local_search"):
                better = search.cycle(moves, pool)
            stalled = 0 if better else stalled + (moves >= longest)
            moves = min(longest, int(_LONGER * moves))


def _call(task: Any) -> float:
    return float(anneal(*task))


class _Search:
    def __init__(self, run: Run, q: Quotient) -> None:
        self.run, self.q, self.data = run, q, data_of(q)
        self.rng = np.random.default_rng(run.seed)
        self.stage, self.kind = _slots(q, run)
        self.peak = float(state_of(self.data, self.stage, self.kind).load.max())

    def cycle(self, moves: int, pool: ThreadPoolExecutor | None) -> bool:
        """Anneal from the best plan, once for each worker, and offer what is better; return whether there was anything.

        Workers wait for one another at every look at the clock, so that a seed says what they find.
        """
        began = offered = self.peak
        plans = [self._start() for _ in range(self.run.workers)]
        bests = [plan.stage.copy() for plan in plans]
        chunks = max(1, moves // _CHUNK)
        for hot, cold in pairwise(np.geomspace(_HOT, _COLD, chunks + 1)):
            if self.run.stopped:
                break
            seeds = self.rng.integers(2**31, size=len(plans)).tolist()
            tasks = [
                (self.data, plan, best, self.peak, hot, cold, moves // chunks, seed)
                for plan, best, seed in zip(plans, bests, seeds, strict=True)
            ]
            peaks = list(pool.map(_call, tasks)) if pool is not None else [_call(task) for task in tasks]
            i = int(np.argmin(peaks))
            if peaks[i] < self.peak:
                self.peak, self.stage, self.kind = peaks[i], bests[i].copy(), plans[i].kind
                if self.peak < offered * (1 - _WORTH):
                    offered = self.peak
                    self._offer()
        self._offer()
        return self.peak < began

    def _start(self) -> State:
        """Return the best plan with idle devices elsewhere in the pipeline, and sometimes two types exchanged."""
        stage, kind = self.stage.copy(), self.kind.copy()
        used = np.unique(stage)
        if len(used) < len(kind):
            place = np.sort(self.rng.permutation(len(kind))[: len(used)])
            idle = self.rng.permutation(np.delete(kind, used))
            kind[np.delete(np.arange(len(kind)), place)] = idle
            kind[place] = self.kind[used]
            stage = place[np.searchsorted(used, stage)]
        if len(set(kind.tolist())) > 1 and self.rng.random() < 0.5:
            a, b = self.rng.integers(len(kind), size=2)
            kind[a], kind[b] = kind[b], kind[a]
            if not np.isfinite(self.q.time[kind[stage], np.arange(len(stage))]).all():
                kind[a], kind[b] = kind[b], kind[a]
        return state_of(self.data, stage, kind)

    def _offer(self) -> None:
        run = self.run
        if run.objective is None or self.peak >= run.objective * (1 - 1e-12):
            return
        stages = [(int(t), np.flatnonzero(self.stage == s).tolist()) for s, t in enumerate(self.kind)]
        plan = self.q.plan(stages)
        # a convex plan need not be a pipeline: then a move can break it
        if self.q.problem.variant != "convex" or verify(run.problem, plan).ok:
            run.offer(plan, "local_search")


def _slots(q: Quotient, run: Run) -> tuple[Ints, Ints]:
    """Return the stage of each group of the run's plan, and the device type of each stage, idle devices last."""
    first = np.unique(q.group_of, return_index=True)[1]
    device = run.plan.device[first]
    used, at = np.unique(device, return_index=True)
    used = used[np.argsort(run.plan.stage[first][at], kind="stable")]
    rank = np.zeros(int(used.max()) + 1, dtype=np.int64)
    rank[used] = np.arange(len(used))
    kind = q.problem.cluster.type_of[used].astype(np.int64)
    left = np.maximum(q.counts - np.bincount(kind, minlength=len(q.counts)), 0)
    return rank[device], np.concatenate([kind, np.repeat(np.arange(len(left)), left)])
