"""A plan that knows all arrivals and durations: what a policy could win, were it to know them too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gangplan.instances.arrays import Checked, FloatArray
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.arrays import NOW, GpuRacks, Jobs, State, first_jobs
from gangplan.simulator.gangs.listing import Listing, run_list
from gangplan.simulator.gangs.step import least_cost, total_jct

from .kernels import anneal
from .rules import DISCIPLINES, SCORES, Rule, TopdrlPatient, rule
from .simulate import Finishes

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
        policies: to begin with, by default `grid` and `TopdrlPatient`.
        seed: of the search.
    """

    turns: int = 1500
    seconds: float = 60.0
    policies: Sequence[Finishes] = ()
    seed: int = 0

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        deadline = time.perf_counter() + self.seconds
        known, n = jobs.replace(expected=jobs.work), len(jobs.submit)
        ends, lists = [], [_closest(np.arange(float(n)))]
        for policy in self.policies or (*grid(), TopdrlPatient()):
            ends.append(state.copy())
            policy.finish(known, cluster, ends[-1])
            if isinstance(policy, Rule | TopdrlPatient) and (plan := policy.listing(known, cluster)) is not None:
                lists.append(plan)
        lists += [_closest(end.start) for end in ends]
        plan = min(lists, key=lambda of: total_jct(jobs, _decoded(jobs, cluster, state, of)))
        ends.append(_decoded(jobs, cluster, state, plan))
        self._improve(jobs, cluster, state, plan, deadline)
        ends.append(_decoded(jobs, cluster, state, plan))
        for name, x in min(ends, key=lambda end: total_jct(jobs, end)).arrays().items():
            state.arrays()[name][:] = x

    def _improve(self, jobs: Jobs, cluster: GpuRacks, state: State, plan: Listing, deadline: float) -> None:
        """Anneal a window after the other."""
        n, rng = len(jobs.submit), np.random.default_rng(self.seed)
        plan.key[:] = np.argsort(np.argsort(plan.key, kind="stable"), kind="stable")
        before, scratch, costs = state.copy(), state.copy(), _worth(cluster)
        heat = total_jct(jobs, _decoded(jobs, cluster, state, plan)) / n
        for low in range(0, n, STEP):
            if time.perf_counter() > deadline:
                break
            high, end = min(n, low + WINDOW), min(n, low + WINDOW + TAIL)
            some = first_jobs(jobs, end)
            if jobs.submit[low] > before.clock[NOW]:
                run_list(some, cluster, before, plan, float(jobs.submit[low]))
            anneal(
                some, cluster, before, scratch, plan.copy(), plan, costs, low, high, self.turns * STEP,
                HOT * heat, COLD * heat, int(rng.integers(1 << 31)),
            )  # fmt: skip


def _decoded(jobs: Jobs, cluster: GpuRacks, state: State, of: Listing) -> State:
    done = state.copy()
    run_list(jobs, cluster, done, of, np.inf)
    return done


def _closest(key: FloatArray) -> Listing:
    """Return a list in the order of `key` in which all wait for those before them."""
    n = len(key)
    by = np.full(n, ALLOCATORS.index("closest"))
    return Listing(key.copy(), by, np.full(n, np.inf), np.ones(n, dtype=np.int64))


def _worth(cluster: GpuRacks) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return communication costs that a gang may wait for: any, its least, and one node more; float64 (GPUs + 1, 4)."""
    least = least_cost(cluster) * (1 + 1e-9) + 1e-12
    more = least + cluster.weight[1] - cluster.weight[0]
    every = np.full(len(least), np.inf)
    return np.ascontiguousarray(np.stack([every, every, least, more], axis=1))
