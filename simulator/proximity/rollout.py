"""Search without learning: try each job and each place, play sampled futures to the end, take what went best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.solvers.compiled.kernel import Floats, Ints, Ints2, by_reference, kernel

from .allocate import ALLOCATORS, allocate
from .arrays import RUNNING, WAITING, Cluster, Jobs, State, copy
from .decode import Listing, decode, listing, restore, sort_in
from .futures import future
from .rules import Rule, rule
from .step import advance, begin_job, pass_time, start, total_jct

WAIT = -1
"""Of `Candidates.at`."""


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

    A policy knows what has arrived, not what will: jobs to come are a stretch of jobs that came, or of `history`.

    Attributes:
        base: who decides after the candidate: a rule that is a list, see `listing`.
        futures: how many are sampled; all candidates play the same ones.
        ahead: jobs that arrive in each.
        width: jobs of the queue that are tried, the first by the base rule that fit.
        allocators: by which they are placed.
        doubt: a candidate must be ahead of what the base rule decides by so many standard errors.
        history: jobs to draw futures from, e.g. of training seeds; by default those that have arrived.
        spread: of the logarithm of a duration about the one expected; 0 if expected durations are true.
        seed: of the futures.
    """

    base: Rule = field(default_factory=lambda: rule("least_work", "head"))
    futures: int = 8
    ahead: int = 30
    width: int = 20
    allocators: tuple[str, ...] = ALLOCATORS
    doubt: float = 0.0
    history: Jobs | None = None
    spread: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("futures", "width"):
            require_number(getattr(self, name), name, positive=True, whole=True)
        require_number(self.ahead, "ahead", whole=True)
        require_number(self.doubt, "doubt")
        require_number(self.spread, "spread")
        for name in self.allocators:
            if name not in ALLOCATORS:
                raise InstanceError("allocators", f"{name!r} is not one of {', '.join(ALLOCATORS)}")
        if self.base.allocator not in self.allocators:
            raise InstanceError("allocators", f"lack {self.base.allocator!r} of the base rule")

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
        """Return the best candidate, by its place: the base rule's own where no other is ahead beyond `doubt`."""
        if len(found.at) == 1:
            return 0
        ahead = found.value[[found.base]] - found.value
        with np.errstate(invalid="ignore"):
            error = ahead.std(axis=1, ddof=1) / np.sqrt(self.futures) if self.futures > 1 else 0.0
            gain = np.nan_to_num(ahead.mean(axis=1) - self.doubt * error, nan=-np.inf, neginf=-np.inf)
        gain[found.base] = 0.0
        best = int(gain.argmax())
        return best if gain[best] > 0 else found.base

    def values(self, jobs: Jobs, cluster: Cluster, state: State, rng: np.random.Generator) -> Candidates:
        """Return all candidates of an instant with their values; if there is none but to wait, that has value 0."""
        at, by, take, base = self._candidates(jobs, cluster, state)
        found = Candidates(at, by, take, np.zeros((len(at), self.futures)), base)
        if len(at) == 1:
            return found
        for f in range(self.futures):
            table, now, present = future(
                jobs, state, rng, ahead=self.ahead, history=self.history, spread=self.spread
            )  # fmt: skip
            job = np.append(np.searchsorted(present, state.queue[at[:-1]]), WAIT)
            value = np.zeros(len(at))
            _play(table, cluster, now, copy(now), listing(self.base, table, cluster), job, take, value)
            found.value[:, f] = value
        return found

    def _candidates(self, jobs: Jobs, cluster: Cluster, state: State) -> tuple[Ints, Ints, Ints2, int]:
        """Return places in the queue, allocators, GPUs of nodes, and which of them is the base rule's."""
        waiting, idle = int(state.count[WAITING]), int(state.free.sum())
        order = np.argsort(listing(self.base, jobs, cluster).key[state.queue[:waiting]], kind="stable")
        first = self.base.discipline == "head"
        at: list[int] = []
        by, takes, base, tried = [], [], -1, 0
        own = ALLOCATORS.index(self.base.allocator)
        rest = [ALLOCATORS.index(name) for name in self.allocators]
        rest.remove(own)
        for rank, place in enumerate(order.tolist()):
            need = int(jobs.gpus[state.queue[place]])
            if need > idle or tried == self.width:
                continue
            tried += 1
            seen = []
            for allocator in (own, *rest):
                take = np.zeros_like(state.free)
                allocate(allocator, need, cluster, state.free, take)
                if take.tolist() in seen:
                    continue
                seen.append(take.tolist())
                if base < 0 and allocator == own and (rank == 0 or not first):
                    base = len(at)
                at.append(place)
                by.append(allocator)
                takes.append(take)
        at.append(WAIT)
        by.append(own)
        takes.append(np.zeros_like(state.free))
        return np.array(at), np.array(by), np.array(takes), base if base >= 0 else len(at) - 1


@kernel
def _play(
    jobs: Jobs, cluster: Cluster, state: State, scratch: State, of: Listing, job: Ints, take: Ints2, value: Floats
) -> None:
    """Write what becomes of each candidate: a job that starts on `take`, or `WAIT`."""
    table, on, now, rest = by_reference(jobs), by_reference(cluster), by_reference(scratch), by_reference(of)
    sort_in(by_reference(state), of.key, 0)
    room = np.zeros_like(state.free)
    for c in range(len(job)):
        restore(now, by_reference(state))
        if job[c] == WAIT:
            known = now.count[WAITING]
            if now.count[RUNNING] == 0:
                value[c] = np.inf
                continue
            pass_time(table, on, now)
            sort_in(now, of.key, known)
        else:
            at = 0
            while now.queue[at] != job[c]:
                at += 1
            begin_job(table, on, now, at, take[c])
        decode(table, on, now, rest, room, np.inf)
        value[c] = total_jct(table, now.finish)
