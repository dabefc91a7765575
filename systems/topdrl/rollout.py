"""A policy without learning: try each job and each place, play sampled futures to the end, take what went best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import require_number
from gangplan.solvers.compiled.kernel import Floats, Ints, Ints2, by_reference, kernel

from .allocate import ALLOCATORS, allocate
from .arrays import RUNNING, WAITING, Cluster, Jobs, State, copy
from .decode import Listing, decode, restore, sort_in
from .futures import future
from .patient import Patient
from .step import advance, begin_job, pass_time, start, total_jct

WAIT, AS_THE_RULE = -1, -2
"""Of `Candidates.at`, and of what is played beside them."""


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

    at: Ints
    allocator: Ints
    take: Ints2
    value: Floats
    base: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """Decide by playing every candidate to the end of sampled futures, the rest by a base rule (Bertsekas 1997).

    A policy knows what has arrived, not what will: jobs to come are a stretch of jobs that came.

    Attributes:
        base: who decides after the candidate.
        futures: how many are sampled; all candidates play the same ones.
        ahead: jobs that arrive in each.
        width: jobs of the queue that are tried, the first by the base rule that fit.
        seed: of the futures.
    """

    base: Patient = field(default_factory=Patient)
    futures: int = 32
    ahead: int = 10
    width: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("futures", "width"):
            require_number(getattr(self, name), name, positive=True, whole=True)
        require_number(self.ahead, "ahead", whole=True)

    def finish(self, jobs: Jobs, cluster: Cluster, state: State) -> None:
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

    def values(self, jobs: Jobs, cluster: Cluster, state: State, rng: np.random.Generator) -> Candidates:
        """Return all candidates of an instant with their values; if there is none but to wait, that has value 0."""
        at, by, take = self._candidates(jobs, cluster, state)
        value = np.zeros((len(at) + 1, self.futures))
        if len(at) == 1:
            return Candidates(at, by, take, value[:1], 0)
        for f in range(self.futures):
            table, now, present = future(jobs, state, rng, ahead=self.ahead)
            job, found = np.append(np.searchsorted(present, state.queue[at]), [AS_THE_RULE]), np.zeros(len(at) + 1)
            job[-2] = WAIT
            _play(table, cluster, now, copy(now), self.base.listing(table, cluster), job, take, found)
            value[:, f] = found
        # the base rule does what goes as it goes by the base rule alone
        same = np.flatnonzero((value[:-1] == value[-1]).all(axis=1))
        return Candidates(at, by, take, value[:-1], int(same[0]) if len(same) else len(at) - 1)

    def _candidates(self, jobs: Jobs, cluster: Cluster, state: State) -> tuple[Ints, Ints, Ints2]:
        """Return places in the queue, allocators, and GPUs of nodes."""
        waiting, idle = int(state.count[WAITING]), int(state.free.sum())
        order = np.argsort(self.base.listing(jobs, cluster).key[state.queue[:waiting]], kind="stable")
        at: list[int] = []
        by, takes, tried = [], [], 0
        own = ALLOCATORS.index(self.base.allocator)
        others = [rule for rule in range(len(ALLOCATORS)) if rule != own]
        for place in order.tolist():
            need = int(jobs.gpus[state.queue[place]])
            if need > idle or tried == self.width:
                continue
            tried += 1
            seen = []
            for allocator in (own, *others):
                take = np.zeros_like(state.free)
                allocate(allocator, need, cluster, state.free, take)
                if take.tolist() in seen:
                    continue
                seen.append(take.tolist())
                at.append(place)
                by.append(allocator)
                takes.append(take)
        at.append(WAIT)
        by.append(own)
        takes.append(np.zeros_like(state.free))
        return np.array(at), np.array(by), np.array(takes)


@kernel
def _play(
    jobs: Jobs, cluster: Cluster, state: State, scratch: State, of: Listing, job: Ints, take: Ints2, value: Floats
) -> None:
    """Write the value of each candidate (a job that starts on `take`, `WAIT`, or `AS_THE_RULE`), then by the list."""
    table, on, now, rest = by_reference(jobs), by_reference(cluster), by_reference(scratch), by_reference(of)
    room = np.zeros_like(state.free)
    sort_in(by_reference(state), of.key, 0)
    for c in range(len(job)):
        restore(now, by_reference(state))
        if job[c] == WAIT:
            known = now.count[WAITING]
            if now.count[RUNNING] == 0:
                value[c] = np.inf
                continue
            pass_time(table, on, now)
            sort_in(now, of.key, known)
        elif job[c] != AS_THE_RULE:
            at = 0
            while now.queue[at] != job[c]:
                at += 1
            begin_job(table, on, now, at, take[c])
        decode(table, on, now, rest, room, np.inf)
        value[c] = total_jct(table, now.finish)
