"""Simulated annealing over plans, by the smooth maximum of the stages' loads (Kirkpatrick, Gelatt and Vecchi 1983).

With the maximum itself most moves would change nothing. Of loads x_s, in units of the best plan's, the energy is

    (log of the sum over s of exp(a (x_s - 1))) / a

which is at least the maximum, and falls too if the load of another stage does. A stage above its memory counts as if
its load were above the best plan's, so that the search can go through plans that do not fit; the best it keeps fit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import PartitionPlan, verify
from gangplan.instances.graph import topological_order

from ...run import Run
from .kernels import PipelineArrays, PipelineState, anneal
from .quotient import Quotient

Slots = NDArray[np.int64]
"""The stage of each group, or the device type of each stage."""

_HOT, _COLD = 1.0, 0.01
"""Temperatures, as shares of the best plan's maximum load for each group: what one group does to the energy."""
_CHUNK, _EACH = 5_000, 10
"""Moves between two looks at the clock, a few milliseconds: so many, or so many for each group if that is more."""
_FIRST, _MANY, _LONGER = 20, 500, (2, 4)
"""Moves of the first annealing for each group, and how much longer the next one is, of up to so many groups and more.

Of large graphs a long annealing is worth more than several shorter ones."""
_PAIR, _MOST = 20, 20_000
"""Moves of the longest annealing: so many for each pair of groups, at most so many for each group."""
_RATE = 1e6
"""Moves a second, until that is measured."""
_REST = 1.5
"""An annealing takes all of the time left where that is no more than so many times its own."""
_STALLED = 6
"""Annealings as long as they get without a better plan, after which this ends."""
_WORTH = 1e-3
"""A plan is offered at once if it is better by so much, else at the end of its annealing."""


def local_search(run: Run, q: Quotient) -> None:
    """Improve the best plan by simulated annealing; do nothing if there is none."""
    if run.plan is None or run.objective is None or run.stopped:
        return
    search, n = _GroupAnnealing(run, q), q.n_groups
    if not verify(run.problem, search.plan()).ok:
        return  # a plan that parts what is merged here, and has no like
    longest = n * min(_MOST, _PAIR * n)
    moves, stalled, rate = min(max(_CHUNK, _FIRST * n), longest), 0, _RATE
    with ThreadPoolExecutor(run.workers) if run.workers > 1 else nullcontext() as pool:
        while not run.stopped and stalled < _STALLED and search.peak > 0:
            # one that is cut short has not cooled down
            fitting, began = int(rate * run.remaining()), run.seconds()
            now = max(1, fitting) if fitting < _REST * moves else moves
            with run.phase("local_search"):
                better = search.cycle(now, pool)
            rate = now / max(run.seconds() - began, 1e-6)
            stalled = 0 if better else stalled + (moves >= longest)
            moves = min(longest, _LONGER[n > _MANY] * moves)


class _GroupAnnealing:
    def __init__(self, run: Run, q: Quotient) -> None:
        assert run.objective is not None
        self.run, self.q, self.data = run, q, PipelineArrays(q)
        self.rng = np.random.default_rng(run.seed)
        self.stage, self.kind = _slots(q, run)
        self.peak = run.objective

    def cycle(self, moves: int, pool: ThreadPoolExecutor | None) -> bool:
        """Anneal from the best plan, once for each worker, and offer what is better; return whether there was anything.

        Workers wait for one another at every look at the clock, so that a seed says what they find.
        """
        began = offered = self.peak
        starts = [self._start() for _ in range(self.run.workers)]
        bests = [stage.copy() for stage, _ in starts]
        plans = [PipelineState(self.data, stage, kind) for stage, kind in starts]
        n = self.q.n_groups
        chunks = max(1, moves // max(_CHUNK, _EACH * n))
        for hot, cold in pairwise(np.geomspace(_HOT / n, _COLD / n, chunks + 1)):
            if self.run.stopped:
                break
            seeds = self.rng.integers(2**31, size=len(plans)).tolist()

            def chunk(plan: PipelineState, best: Slots, seed: int, hot: float = hot, cold: float = cold) -> float:
                return anneal(self.data, plan, best, self.peak, hot, cold, moves // chunks, seed)

            peaks = list((map if pool is None else pool.map)(chunk, plans, bests, seeds))
            i = int(np.argmin(peaks))
            if peaks[i] < self.peak:
                self.peak, self.stage, self.kind = peaks[i], bests[i].copy(), starts[i][1]
                if self.peak < offered * (1 - _WORTH):
                    offered = self.peak
                    self._offer()
        self._offer()
        return self.peak < began

    def _start(self) -> tuple[Slots, Slots]:
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
        return stage, kind

    def plan(self) -> PartitionPlan:
        return self.q.plan((int(t), np.flatnonzero(self.stage == s).tolist()) for s, t in enumerate(self.kind))

    def _offer(self) -> None:
        run = self.run
        if run.objective is None or self.peak >= run.objective * (1 - 1e-12):
            return
        plan = self.plan()
        # a convex plan need not be a pipeline: then a move can break it
        if self.q.problem.variant != "convex" or verify(run.problem, plan).ok:
            run.offer(plan, "local_search")


def _slots(q: Quotient, run: Run) -> tuple[Slots, Slots]:
    first = np.unique(q.group_of, return_index=True)[1]
    device = run.plan.device[first]
    used, at = np.unique(device, return_index=True)
    used = used[np.argsort(run.plan.stage[first][at], kind="stable")]
    rank = np.zeros(int(used.max()) + 1, dtype=np.int64)
    rank[used] = np.arange(len(used))
    kind = q.problem.cluster.type_of[used].astype(np.int64)
    left = np.maximum(q.counts - np.bincount(kind, minlength=len(q.counts)), 0)
    stage = rank[device]
    if q.problem.variant == "contiguous" and (run.plan.device != device[q.group_of]).any():
        # groups of which the plan has parts in several stages follow those that they wait for
        ends = np.array(q.edges, dtype=np.int32).reshape(-1, 2)
        for g in topological_order(q.n_groups, ends[:, 0], ends[:, 1]).tolist():
            stage[g] = max([stage[g], *(stage[a] for a in q.neighbours[0][g])])
    return stage, np.concatenate([kind, np.repeat(np.arange(len(left)), left)])
