"""Jobs that arrive on a RAMP cluster and are accepted at once on some servers, or blocked: nobody waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.workload import Workload
from gangplan.simulator.asking import asking, converted
from gangplan.simulator.outcome import Outcome

from .arrivals import ArrivalCase
from .jobs import Blocks, JobType, Long, Placed

PUBLISHED = -1
"""Instead of a block: published first fit on all free servers."""


class Acceptance(NamedTuple):
    """What a policy does with a job that it does not reject.

    Attributes:
        degree: index into the degrees.
        block: one of that degree, in which the whole job is kept, or `PUBLISHED`.
    """

    degree: int
    block: int = PUBLISHED


class RampState:
    """What a policy may look at when a job arrives.

    Attributes:
        case: whose `submit`, `model` and `fraction` up to `index` are the past and the job itself.
        index: of the job.
        now: time.
        job: its type.
        fraction: beta.
        limit: the longest completion time its user accepts.
        ends: float64 (n,), when each server is free again; not after `now` if it is.
        free: bool (n,), which servers are.
        accepted: bool (jobs,), of those before.
    """

    def __init__(self, case: ArrivalCase, index: int, limit: float, ends: FloatArray, accepted: BoolArray) -> None:
        self.case, self.blocks = case, case.blocks
        self.index, self.now = index, float(case.submit[index])
        self.job: JobType = case.types[case.model[index]]
        self.fraction, self.limit = float(case.fraction[index]), limit
        self.ends, self.accepted = ends, accepted
        self.free: BoolArray = ends <= self.now

    @cached_property
    def fits(self) -> BoolArray:
        """Return which blocks are free, bool (blocks,)."""
        return self.blocks.fits(self.free)

    @property
    def acceptable(self) -> BoolArray:
        """Return which blocks are free and would have the job done in time, bool (blocks,)."""
        return np.asarray(self.fits & (self.job.jct[self.blocks.shape] <= self.limit))

    def published(self, degree: int) -> Placed | None:
        """Return the servers and the time that published first fit gives the job, None where it finds no place."""
        return self.job.published(degree, self.free)


class Decides(Protocol):
    """Decides on each job when it arrives."""

    def decide(self, state: RampState) -> Acceptance | None:
        """Return what to do with the job, or None to reject it.

        A job that then finds no place, or would take longer than its user accepts, is blocked.
        """


REASONS = ("accepted", "rejected", "no place", "too late")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RampOutcome(Outcome):
    """An `Outcome` of jobs that start as they arrive or never: each server is a node of one GPU.

    Durations are those on the servers held, 0 of jobs that are blocked; times are in the unit of the case.

    Attributes:
        case: the jobs.
        reason: int32 (n,), index into `REASONS`.
        degree: int32 (n,), index into the degrees, -1 where it is blocked.
        block: int32 (n,), in which the whole job was kept; -1 if first fit was free to spill, or it is blocked.
    """

    case: ArrivalCase
    reason: IntArray
    degree: IntArray
    block: IntArray

    @property
    def blocked(self) -> float:
        """Return the blocking rate: jobs that never ran, of all."""
        return 1 - float(self.admitted.mean())

    @property
    def blocked_or_running(self) -> float:
        """Return the published blocking rate: jobs that had not ended by the horizon count as blocked."""
        return 1 - float((self.finish <= self.case.horizon).mean())


def simulate(case: ArrivalCase, policy: Decides) -> RampOutcome:
    """Let the jobs arrive one by one; each is accepted at once or lost.

    Raises:
        InstanceError: if the policy names a degree or block there is not.
    """
    n, blocks, limit = case.n_jobs, case.blocks, case.limit.tolist()
    ends = np.full(blocks.n_servers, -np.inf)
    seen = ends.view()
    seen.setflags(write=False)
    accepted = np.zeros(n, dtype=bool)
    reason, degree, block = (np.full(n, value, dtype=np.int32) for value in (0, -1, -1))
    start, finish = np.full(n, np.inf), np.full(n, np.inf)
    rows: list[Long | IntArray] = []
    for i in range(n):
        state = RampState(case, i, limit[i], seen, accepted[:i])
        with asking():
            choice = policy.decide(state)
        if choice is None:
            reason[i] = 1
            continue
        choice = converted(choice, lambda answer: Acceptance(*map(int, Acceptance(*answer))), f"decisions[{i}]")
        placed = _place(state, choice, blocks)
        if placed is None or placed.jct > limit[i]:
            reason[i] = 2 if placed is None else 3
            continue
        accepted[i], degree[i], block[i] = True, choice[0], choice[1]
        start[i], finish[i] = state.now, state.now + placed.jct
        ends[placed.servers] = finish[i]
        rows.append(placed.servers)
    job, gpus, seconds = np.flatnonzero(accepted), np.ones(n, dtype=np.int32), np.zeros(n)
    gpus[job], seconds[job] = [len(servers) for servers in rows], finish[job] - start[job]
    work = Workload(tuple(map(str, range(n))), case.submit, gpus, seconds)
    room, server = np.ones(blocks.n_servers, dtype=np.int32), np.concatenate([*rows, np.zeros(0, np.int32)])
    told = {"case": case, "reason": reason, "degree": degree, "block": block}
    return RampOutcome.unbroken(work, room, start, finish, server, 1, np.repeat(job, gpus[job]), **told)


def _place(state: RampState, choice: Acceptance, blocks: Blocks) -> Placed | None:
    if not 0 <= choice.degree < len(blocks.degrees):
        raise InstanceError(f"decisions[{state.index}].degree", f"{choice.degree!r} is not the index of a degree")
    if choice.block == PUBLISHED:
        return state.published(choice.degree)
    if not blocks.first[choice.degree] <= choice.block < blocks.first[choice.degree + 1]:
        words = f"{choice.block!r} is not a block of degree {blocks.degrees[choice.degree]}"
        raise InstanceError(f"decisions[{state.index}].block", words)
    servers = blocks.members(choice.block)
    jct = state.job.kept(choice.block)
    return Placed(servers, jct) if state.free[servers].all() and jct < np.inf else None
