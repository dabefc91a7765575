"""A policy without learning: try each job and each place, play sampled futures to the end, take what went best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import Checked, FloatArray, limited
from gangplan.simulator.gangs.allocate import ALLOCATORS, allocate
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State, begin
from gangplan.simulator.gangs.step import advance, start

from .kernels import AS_THE_RULE, WAIT, try_each
from .rules import TopdrlPatient


def future(
    jobs: Jobs, cluster: GpuRacks, state: State, rng: np.random.Generator, *, ahead: int
) -> tuple[Jobs, State, Whole]:
    """Return the jobs that are present with `ahead` more, their state, and which jobs the present ones are.

    Nothing is read of jobs that have not arrived, nor of true durations.

    Args:
        jobs: all jobs; of the present ones the expected durations count.
        ahead: how many jobs arrive, a stretch of those that have arrived.
    """
    now, n = float(state.clock[NOW]), int(state.count[ARRIVED])
    present = np.sort(np.append(state.queue[: state.count[WAITING]], state.running[: state.count[RUNNING]]))
    come = (int(rng.integers(max(n, 1))) + np.arange(ahead if n > 1 else 0)) % max(n, 1)
    gaps = np.diff(jobs.submit[:n])
    gap = np.append(gaps.mean() if len(gaps) else 0.0, gaps)[come]
    every = np.append(present, come)
    expected, gpus, intensity = jobs.expected[every], jobs.gpus[every], jobs.intensity[every]
    submit = np.append(jobs.submit[present], now + np.cumsum(gap))
    table = Jobs(submit, expected, expected, gpus, intensity, np.append(0, np.cumsum(gpus)))
    then, runs = begin(table, cluster), np.isfinite(state.start[present])
    running, waiting = np.flatnonzero(runs), np.flatnonzero(~runs)
    then.start[running], then.cost[running] = state.start[present[running]], state.cost[present[running]]
    # who has run longer than expected is about to end
    seconds = expected[running] * (1 + intensity[running] * then.cost[running])
    then.finish[running] = np.maximum(now, then.start[running] + seconds)
    then.urgency[:], then.clock[:], then.free[:] = -then.finish, now, state.free
    then.count[:] = len(present), len(waiting), len(running)
    then.running[: len(running)] = running[np.argsort(then.finish[running], kind="stable")]
    then.queue[: len(waiting)] = waiting
    held = np.flatnonzero(state.holder >= 0)
    then.holder[held] = np.searchsorted(present, state.holder[held])
    then.held[np.repeat(np.isfinite(then.start), gpus)] = held[np.argsort(then.holder[held], kind="stable")]
    return table, then, present


Whole = NDArray[np.int64]


class Candidates(NamedTuple):
    """What may be decided at an instant, and how it went, for c candidates; the last one is to wait.

    Attributes:
        at: the place of the job in `State.queue`, `WAIT` for none, int64 (c,).
        allocator: one of `ALLOCATORS`, by its place, int64 (c,).
        take: GPUs of each node, int64 (c, m).
        value: the sum of the JCTs of all present and sampled jobs in each future, seconds; infinite for waiting where
            nothing runs, float64 (c, futures).
        base: what the base rule would decide, by its place here.
    """

    at: Whole
    allocator: Whole
    take: Whole
    value: FloatArray
    base: int


@dataclass(frozen=True, slots=True)
class Rollout(Checked):
    """Decide by playing every candidate to the end of sampled futures, the rest by a base rule (Bertsekas 1997).

    A policy knows what has arrived, not what will: jobs to come are a stretch of jobs that came.

    Attributes:
        base: who decides after the candidate.
        futures: how many are sampled; all candidates play the same ones.
        ahead: jobs that arrive in each.
        width: jobs of the queue that are tried, the first by the base rule that fit.
        seed: of the futures.
    """

    base: TopdrlPatient = field(default_factory=TopdrlPatient)
    futures: int = limited(32, positive=True)
    ahead: int = 10
    width: int = limited(20, positive=True)
    seed: int = 0

    def finish(self, jobs: Jobs, cluster: GpuRacks, state: State) -> None:
        """Run from a state to the end, where all jobs have a start and a finish."""
        rng = np.random.default_rng(self.seed)
        while True:
            found = self.values(jobs, cluster, state, rng)
            best = self.pick(found)
            if found.at[best] != WAIT:
                start(jobs, cluster, state, int(found.at[best]), found.take[best])
            elif not advance(jobs, cluster, state):
                return

    def pick(self, found: Candidates) -> int:
        """Return the best candidate, by its place: the base rule's own where no other is ahead."""
        if len(found.at) == 1:
            return 0
        with np.errstate(invalid="ignore"):
            gain = np.nan_to_num((found.value[[found.base]] - found.value).mean(axis=1), nan=-np.inf, neginf=-np.inf)
        gain[found.base] = 0.0
        best = int(gain.argmax())
        return best if gain[best] > 0 else found.base

    def values(self, jobs: Jobs, cluster: GpuRacks, state: State, rng: np.random.Generator) -> Candidates:
        """Return all candidates of an instant with their values; if there is none but to wait, that has value 0."""
        at, by, take = self._candidates(jobs, cluster, state)
        value = np.zeros((len(at) + 1, self.futures))
        if len(at) == 1:
            return Candidates(at, by, take, value[:1], 0)
        for f in range(self.futures):
            table, now, present = future(jobs, cluster, state, rng, ahead=self.ahead)
            job, found = np.append(np.searchsorted(present, state.queue[at]), [AS_THE_RULE]), np.zeros(len(at) + 1)
            job[-2] = WAIT
            try_each(table, cluster, now, now.copy(), self.base.listing(table, cluster), job, take, found)
            value[:, f] = found
        # the base rule does what goes as it goes by the base rule alone
        same = np.flatnonzero((value[:-1] == value[-1]).all(axis=1))
        return Candidates(at, by, take, value[:-1], int(same[0]) if len(same) else len(at) - 1)

    def _candidates(self, jobs: Jobs, cluster: GpuRacks, state: State) -> tuple[Whole, Whole, Whole]:
        """Return places in the queue, allocators, and GPUs of nodes."""
        waiting, idle = int(state.count[WAITING]), int(state.free.sum())
        order = np.argsort(self.base.listing(jobs, cluster).key[state.queue[:waiting]], kind="stable").tolist()
        own = ALLOCATORS.index(self.base.allocator)
        rules = sorted(range(len(ALLOCATORS)), key=lambda x: x != own)
        found = list[tuple[int, int, Whole]]()
        for place in [x for x in order if jobs.gpus[state.queue[x]] <= idle][: self.width]:
            seen = list[list[int]]()
            for allocator in rules:
                take = np.zeros_like(state.free)
                allocate(allocator, int(jobs.gpus[state.queue[place]]), cluster, state.free, take)
                if take.tolist() not in seen:
                    seen.append(take.tolist())
                    found.append((place, allocator, take))
        at, by, takes = zip(*found, (WAIT, own, np.zeros_like(state.free)), strict=True)
        return np.array(at), np.array(by), np.array(takes)
