"""Arrays of many episodes, an episode a row, and the kernel that takes each to its next decision."""

from __future__ import annotations

from typing import NamedTuple

from gangplan.solvers.compiled.kernel import (
    Bools,
    Bools2,
    Floats,
    Floats2,
    Ints,
    Ints2,
    by_reference,
    lean,
    lean_kernel,
)

from .allocate import choose
from .arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State
from .step import begin_job, pass_time, rate

JCT, THROUGHPUT = range(2)
REWARDS = ("jct", "throughput")
"""What is paid for seconds that pass: minus the increase of the sum of JCT; the sum of the rates of the jobs that run
less a penalty for each that waits (Ayadi et al., JPDC 204, 2025)."""
GIVEN = -1
"""The allocator that takes the GPUs of each node that are given."""


class JobRows(NamedTuple):
    """The `Jobs` of B episodes, an episode a row; rows are as long as the longest needs."""

    submit: Floats2
    work: Floats2
    expected: Floats2
    gpus: Ints2
    intensity: Floats2
    first: Ints2


class StateRows(NamedTuple):
    """The `State`s of B episodes, an episode a row; rows are as long as the longest needs."""

    clock: Floats2
    count: Ints2
    queue: Ints2
    running: Ints2
    free: Ints2
    holder: Ints2
    held: Ints2
    start: Floats2
    finish: Floats2
    urgency: Floats2
    cost: Floats2


@lean_kernel
def play(
    jobs: JobRows,
    cluster: Cluster,
    state: StateRows,
    size: Ints,
    choice: Ints,
    allocator: Ints,
    take: Ints2,
    hold: float,
    mask: Bools2,
    paid: Floats2,
) -> None:
    """Do in each episode what was chosen, nothing where that is -1, and go on to the next decision."""
    on = by_reference(cluster)
    for b in range(len(choice)):
        of, now = by_reference(jobs_at(jobs, size[b], b)), by_reference(state_at(state, size[b], b))
        _go_on(of, on, now, choice[b], allocator[b], take[b], hold, mask[b], paid[b])


@lean
def jobs_at(jobs: JobRows, n: int, b: int) -> Jobs:
    """Return the n jobs of an episode."""
    return Jobs(
        jobs.submit[b, :n], jobs.work[b, :n], jobs.expected[b, :n], jobs.gpus[b, :n], jobs.intensity[b, :n],
        jobs.first[b, : n + 1],
    )  # fmt: skip


@lean
def state_at(state: StateRows, n: int, b: int) -> State:
    """Return the state of an episode of n jobs."""
    return State(
        state.clock[b], state.count[b], state.queue[b, :n], state.running[b, :n], state.free[b], state.holder[b],
        state.held[b], state.start[b, :n], state.finish[b, :n], state.urgency[b, :n], state.cost[b, :n],
    )  # fmt: skip


@lean
def _go_on(
    jobs: Jobs,
    cluster: Cluster,
    state: State,
    choice: int,
    allocator: int,
    take: Ints,
    hold: float,
    mask: Bools,
    paid: Floats,
) -> None:
    """Act in an episode, and pass time until a job in a slot fits or all is over."""
    on = True
    if choice == len(mask) - 1:
        on = _wait(jobs, cluster, state, hold, paid)
    elif choice >= 0:
        if allocator >= 0:
            choose(allocator, jobs.gpus[state.queue[choice]], cluster, state.free, take)
        begin_job(jobs, cluster, state, choice, take)
    while on and not offer(jobs, state, mask):
        on = _wait(jobs, cluster, state, hold, paid)
    if not on:
        mask[:] = False


@lean
def offer(jobs: Jobs, state: State, mask: Bools) -> bool:
    """Write which jobs in slots fit, and last whether waiting is possible; return whether any fits."""
    idle, found, slots = 0, False, len(mask) - 1
    for node in range(len(state.free)):
        idle += state.free[node]
    for at in range(slots):
        mask[at] = at < state.count[WAITING] and jobs.gpus[state.queue[at]] <= idle
        found = found or mask[at]
    mask[slots] = state.count[RUNNING] > 0 or state.count[ARRIVED] < len(jobs.submit)
    return found


@lean
def _wait(jobs: Jobs, cluster: Cluster, state: State, hold: float, paid: Floats) -> bool:
    """Go on to the next instant, and pay for the time by each of `REWARDS`; return whether there is one."""
    before, waiting, running, rates = state.clock[NOW], state.count[WAITING], state.count[RUNNING], 0.0
    for i in range(running):
        rates += rate(jobs, state, state.running[i])
    on = pass_time(jobs, cluster, state)
    seconds = state.clock[NOW] - before
    paid[JCT] -= seconds * (waiting + running)
    paid[THROUGHPUT] += seconds * (rates - hold * waiting)
    return on
