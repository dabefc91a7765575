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

from gangplan.instances import PartitionPlan, verify
from gangplan.instances.graph import topological_order

from ...compiled.kernel import Floats, Ints, by_reference, lean, lean_kernel
from ...compiled.routines import below, sow, uniform
from ...run import Run
from .arrays import PipelineArrays, arrays_of
from .moves import PipelineState, along, count, highest, loads, put, span, state_of, weigh
from .quotient import Quotient

SOFT = 50.0
"""The letter a."""
STRICT = 2.0
"""A stage above its memory by 1% counts as one above the best plan's load by so many percent."""
BACK = 0.4
"""How often a group is sent back in exchange, if there is one that may go."""
_TRIES = 16
"""Groups looked at for one that may go back."""


@lean_kernel
def anneal(  # noqa: PLR0912
    data: PipelineArrays, plan: PipelineState, best: Ints, peak: float, hot: float, cold: float, moves: int, seed: int
) -> float:
    """Try moves from a plan, which changes; return the maximum load of the best, seconds, and put that into `best`.

    Args:
        best: the stages of the best plan so far, int64 (G,).
        peak: its maximum load, seconds.
        hot, cold: the first and the last temperature, as shares of `peak`.
    """
    d, p = by_reference(data), by_reference(plan)
    sow(seed)
    count(d, p)
    n, stages, unit, weight, who = len(p.stage), len(p.kind), peak, p.weight, p.who
    for s in range(stages):
        weight[s] = _weight(d, p, s, p.load[s], p.used[s], unit)
    total = _sum(weight)
    for g in range(n):
        p.mark[g] = -1
    heat, step = hot, (cold / hot) ** (1.0 / moves)
    for i in range(moves):
        heat *= step
        g = below(n)
        s = p.stage[g]
        low, high = span(d, p, g)
        who[0], some = g, 1
        if low < high:
            to = low + below(high - low)
            to += to >= s
            if not np.isfinite(d.time[p.kind[to], g]):
                continue
        else:
            to = s + (1 if uniform() < 0.5 else -1)
            if low > high or to < 0 or to >= stages:
                continue
            some = along(d, p, to, i)
            if some == 0:
                continue
        alone = some == 1 and uniform() >= BACK
        if alone:
            here, there = loads(d, p, g, to)
            bytes_here, bytes_there = p.used[s] - d.memory[g], p.used[to] + d.memory[g]
        else:
            for k in range(some):
                put(d, p, who[k], to)
            if uniform() < BACK or some == 1:
                some = _send_back(d, p, s, to, some)
            here, there, bytes_here, bytes_there = p.load[s], p.load[to], p.used[s], p.used[to]
        new_here, new_there = _weight(d, p, s, here, bytes_here, unit), _weight(d, p, to, there, bytes_there, unit)
        new = total - weight[s] - weight[to] + new_here + new_there
        if new <= total or np.log(new / total) < -SOFT * heat * np.log(uniform()):
            if alone:
                put(d, p, g, to)
            weight[s], weight[to] = new_here, new_there
            total = _sum(weight)
            if max(here, there) < peak:
                peak = _keep(d, p, best, peak)
        elif not alone:
            for k in range(some - 1, -1, -1):
                put(d, p, who[k], s if p.stage[who[k]] == to else to)
    return peak


@lean
def _sum(weight: Floats) -> float:
    total = 0.0
    for x in weight:
        total += x
    return total


@lean
def _weight(d: PipelineArrays, p: PipelineState, s: int, load: float, used: float, unit: float) -> float:
    x, over = load / unit, used / d.room[p.kind[s]]
    if over > 1.0:
        x = max(x, 1.0 + STRICT * (over - 1.0))
    return float(np.exp(min(SOFT * (x - 1.0), 500.0)))


@lean
def _peak(d: PipelineArrays, p: PipelineState) -> float:
    for s in range(len(p.kind)):
        if p.used[s] > d.room[p.kind[s]]:
            return np.inf
    return highest(p.load)


@lean
def _keep(d: PipelineArrays, p: PipelineState, best: Ints, peak: float) -> float:
    top = _peak(d, p)
    if top >= peak * (1 - 1e-9):
        return peak
    weigh(d, p)
    if _peak(d, p) > top:
        return peak
    for g in range(len(p.stage)):
        best[g] = p.stage[g]
    return top


@lean
def _send_back(d: PipelineArrays, p: PipelineState, s: int, to: int, some: int) -> int:
    """Move one group from stage `to` to s if one of a few may; return the length of the list `who` with it."""
    for _ in range(_TRIES):
        h = below(len(p.stage))
        if p.stage[h] == to and np.isfinite(d.time[p.kind[s], h]):
            low, high = span(d, p, h)
            if low <= s <= high:
                put(d, p, h, s)
                p.who[some] = h
                return some + 1
    return some


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
    search, n = _Search(run, q), q.n_groups
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


class _Search:
    def __init__(self, run: Run, q: Quotient) -> None:
        assert run.objective is not None
        self.run, self.q, self.data = run, q, arrays_of(q)
        self.rng = np.random.default_rng(run.seed)
        self.stage, self.kind = _slots(q, run)
        self.peak = run.objective

    def cycle(self, moves: int, pool: ThreadPoolExecutor | None) -> bool:
        """Anneal from the best plan, once for each worker, and offer what is better; return whether there was anything.

        Workers wait for one another at every look at the clock, so that a seed says what they find.
        """
        began = offered = self.peak
        plans = [self._start() for _ in range(self.run.workers)]
        bests = [plan.stage.copy() for plan in plans]
        n = self.q.n_groups
        chunks = max(1, moves // max(_CHUNK, _EACH * n))
        for hot, cold in pairwise(np.geomspace(_HOT / n, _COLD / n, chunks + 1)):
            if self.run.stopped:
                break
            seeds = self.rng.integers(2**31, size=len(plans)).tolist()

            def chunk(plan: PipelineState, best: Ints, seed: int, hot: float = hot, cold: float = cold) -> float:
                return float(anneal(self.data, plan, best, self.peak, hot, cold, moves // chunks, seed))

            peaks = list((map if pool is None else pool.map)(chunk, plans, bests, seeds))
            i = int(np.argmin(peaks))
            if peaks[i] < self.peak:
                self.peak, self.stage, self.kind = peaks[i], bests[i].copy(), plans[i].kind
                if self.peak < offered * (1 - _WORTH):
                    offered = self.peak
                    self._offer()
        self._offer()
        return self.peak < began

    def _start(self) -> PipelineState:
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


def _slots(q: Quotient, run: Run) -> tuple[Ints, Ints]:
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
