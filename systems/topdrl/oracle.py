"""A plan that knows all arrivals and durations: what a policy could win, were it to know them too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np

from gangplan.instances.arrays import Checked, FloatArray
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.arrays import NOW, Cluster, Jobs, State, copy, first_jobs
from gangplan.simulator.gangs.listing import Listing, decode, restore, run_list, sort_in
from gangplan.simulator.gangs.step import least_cost, total_jct
from gangplan.solvers.compiled.kernel import Floats2, by_reference, kernel
from gangplan.solvers.compiled.routines import below, sow, uniform

from .rules import DISCIPLINES, SCORES, Patient, Rule, rule
from .simulate import Finishes

RULES = len(ALLOCATORS)


@kernel
def anneal(
    jobs: Jobs, cluster: Cluster, state: State, scratch: State, of: Listing, best: Listing, costs: Floats2,
    low: int, high: int, turns: int, hot: float, cold: float, seed: int,
) -> float:  # fmt: skip
    """Change what a list says of jobs `low` to `high`, and leave the best list in `best`; return its sum of JCTs.

    Args:
        state: before job `low` arrives.
        of, best: the list, twice; keys are places, so that 1 is the step from one to the next.
        costs: communication costs worth waiting for, by GPUs, float64 (GPUs + 1, k).
        low, high: the jobs whose entries change, by their places in `jobs`.
        turns: lists that are tried.
        hot, cold: temperatures at the begin and the end, seconds of summed JCT.
    """
    sow(seed)
    table, on, now, plan = by_reference(jobs), by_reference(cluster), by_reference(scratch), by_reference(of)
    first, take = by_reference(state), np.zeros_like(state.free)
    n, fade = high - low, log(cold / hot)
    current = least = np.inf
    for turn in range(turns + 1):
        j, k = low + below(n), low + below(n)
        kind = uniform()
        if turn == 0:
            kind = 2.0
        elif kind < 0.6:  # someone near
            k = max(low, min(high - 1, j + below(41) - 20))
        key, other, allocator, most, blocks = of.key[j], of.key[k], of.allocator[j], of.most[j], of.blocks[j]
        if kind < 0.35:
            of.key[j] = other + 2 * uniform() - 1
        elif kind < 0.55:
            of.key[j], of.key[k] = other, key
        elif kind < 0.7:
            of.allocator[j] = below(RULES)
        elif kind < 0.85:
            of.most[j] = costs[jobs.gpus[j], below(costs.shape[1])]
        elif kind < 1:
            of.blocks[j] = 1 - blocks
        restore(now, first)
        sort_in(now, of.key, 0)
        decode(table, on, now, plan, take, np.inf)
        value = total_jct(table, now.finish)
        heat = hot * np.exp(fade * turn / max(1, turns))
        if value < current - heat * log(1 - uniform()):
            current = value
            if value < least:
                least = value
                for i in range(low, high):
                    best.key[i], best.allocator[i] = of.key[i], of.allocator[i]
                    best.most[i], best.blocks[i] = of.most[i], of.blocks[i]
        elif turn > 0:
            of.key[k], of.key[j] = other, key
            of.allocator[j], of.most[j], of.blocks[j] = allocator, most, blocks
    return float(least)


WINDOW, STEP, TAIL = 40, 10, 20
"""Jobs that are improved at a time, how far the next window is, and how many jobs behind it their JCTs count with:
further ahead a change has any effect, and what is good for the window is lost among that."""
HOT, COLD = 0.5, 0.02
"""Temperatures at the begin and the end of a window, in mean JCTs of a job."""


def grid() -> list[Rule]:
    """Return every selector with every discipline and allocator."""
    return [rule(*which) for which in product(SCORES, DISCIPLINES, ALLOCATORS)]


@dataclass(frozen=True, slots=True)
class Oracle(Checked):
    """Search for the plan with the least mean JCT when everything is known beforehand.

    It begins with the best of some policies, and of the lists that they are or make. That list is improved by simulated
    annealing (see `anneal`), a window of jobs after the other: for the sum of JCTs of these and the next ones, as if
    nobody came after. The best of all is the plan. With `seconds` over, windows to come stay as they are.

    Attributes:
        turns: lists that are tried, for each job.
        seconds: of the search, at most.
        policies: to begin with, by default `grid` and `Patient`.
        seed: of the search.
    """

    turns: int = 1500
    seconds: float = 60.0
    policies: Sequence[Finishes] = ()
    seed: int = 0

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        deadline = time.perf_counter() + self.seconds
        known, n = jobs._replace(expected=jobs.work), len(jobs.submit)
        ends, lists = [], [_closest(np.arange(float(n)))]
        for policy in self.policies or (*grid(), Patient()):
            ends.append(copy(state))
            policy.finish(known, cluster, ends[-1])
            if isinstance(policy, Rule | Patient) and (plan := policy.listing(known, cluster)) is not None:
                lists.append(plan)
        lists += [_closest(end.start) for end in ends]
        plan = min(lists, key=lambda of: total_jct(jobs, _decoded(jobs, cluster, state, of).finish))
        ends.append(_decoded(jobs, cluster, state, plan))
        self._improve(jobs, cluster, state, plan, deadline)
        ends.append(_decoded(jobs, cluster, state, plan))
        restore(state, min(ends, key=lambda end: total_jct(jobs, end.finish)))

    def _improve(self, jobs: Jobs, cluster: Cluster, state: State, plan: Listing, deadline: float) -> None:
        """Anneal a window after the other."""
        n, rng = len(jobs.submit), np.random.default_rng(self.seed)
        plan.key[:] = np.argsort(np.argsort(plan.key, kind="stable"), kind="stable")
        before, scratch, costs = copy(state), copy(state), _worth(cluster)
        heat = total_jct(jobs, _decoded(jobs, cluster, state, plan).finish) / n
        for low in range(0, n, STEP):
            if time.perf_counter() > deadline:
                break
            high, end = min(n, low + WINDOW), min(n, low + WINDOW + TAIL)
            some = first_jobs(jobs, end)
            if jobs.submit[low] > before.clock[NOW]:
                run_list(some, cluster, before, plan, float(jobs.submit[low]))
            trial = Listing(*(x.copy() for x in plan))
            anneal(
                some, cluster, before, scratch, trial, plan, costs, low, high, self.turns * STEP,
                HOT * heat, COLD * heat, int(rng.integers(1 << 31)),
            )  # fmt: skip


def _decoded(jobs: Jobs, cluster: Cluster, state: State, of: Listing) -> State:
    done = copy(state)
    run_list(jobs, cluster, done, of, np.inf)
    return done


def _closest(key: FloatArray) -> Listing:
    """Return a list in the order of `key` in which all wait for those before them."""
    n = len(key)
    by = np.full(n, ALLOCATORS.index("closest"))
    return Listing(key.copy(), by, np.full(n, np.inf), np.ones(n, dtype=np.int64))


def _worth(cluster: Cluster) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return communication costs that a gang may wait for: any, its least, and one node more; float64 (GPUs + 1, 4)."""
    least = least_cost(cluster) * (1 + 1e-9) + 1e-12
    more = least + cluster.weight[1] - cluster.weight[0]
    every = np.full(len(least), np.inf)
    return np.ascontiguousarray(np.stack([every, every, least, more], axis=1))
