"""One decision and one instant: a job starts on GPUs, or time passes until something ends or arrives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.solvers.compiled.kernel import Floats, Ints, lean, lean_kernel
from gangplan.solvers.compiled.routines import pop, push

from .arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State, cluster_of, intensity_of


def at_best(workload: Workload, fleet: Fleet, proximity: Proximity) -> Workload:
    """Return the jobs with the least durations that they can have on an empty cluster."""
    cost = least_cost(cluster_of(fleet, proximity))[workload.gpus]
    return replace(workload, duration=workload.duration * (1 + intensity_of(workload, proximity) * cost))


@lean
def total(counts: Ints) -> int:
    """Return the sum."""
    found = 0
    for x in counts:
        found += x
    return found


@lean
def communication(cluster: Cluster, take: Ints) -> float:
    """Return the cost of a gang with `take` GPUs on each node: see `Proximity`."""
    gpus, nodes, racks, last = 0, 0, 0, -1
    for node in range(len(take)):
        if take[node] > 0:
            gpus += take[node]
            nodes += 1
            racks += cluster.rack[node] != last
            last = cluster.rack[node]
    weight = cluster.weight
    return float((gpus - nodes) * weight[0] + (nodes - racks) * weight[1] + (racks - 1) * weight[2])


def least_cost(cluster: Cluster) -> FloatArray:
    """Return what gangs of 0, 1, 2... GPUs pay for communication at least, float64 (GPUs + 1,).

    On k nodes in r racks g GPUs cost (g - k) node + (k - r) rack + (r - 1) cluster, which grows with k and with r as
    links farther away weigh no less. k is at least the nodes that hold g GPUs if the largest are taken first, and r the
    racks likewise. Both need not be so few at once: on clusters of unequal nodes this may be less than any gang pays.
    """
    size = np.diff(cluster.first)
    racks = np.add.reduceat(size, cluster.begin[:-1])
    gpus = np.arange(cluster.first[-1] + 1)
    k, r = (1 + np.searchsorted(np.cumsum(-np.sort(-x)), gpus) for x in (size, racks))
    node, rack, between = cluster.weight
    cost = (gpus - k) * node + (k - r) * rack + (r - 1) * between
    return np.asarray(np.where(gpus > 0, cost, 0.0))


@lean
def begin_job(jobs: Jobs, cluster: Cluster, state: State, at: int, take: Ints) -> None:
    """Start the job at a place of the queue on `take` GPUs of each node, the first idle ones."""
    job = state.queue[at]
    state.count[WAITING] -= 1
    for i in range(at, state.count[WAITING]):
        state.queue[i] = state.queue[i + 1]
    row = jobs.first[job]
    for node in range(len(take)):
        left = take[node]
        gpu = cluster.first[node]
        while left > 0:
            if state.holder[gpu] < 0:
                state.holder[gpu] = job
                state.held[row] = gpu
                row += 1
                left -= 1
            gpu += 1
        state.free[node] -= take[node]
    cost = communication(cluster, take)
    state.cost[job], state.start[job] = cost, state.clock[NOW]
    state.finish[job] = state.clock[NOW] + jobs.work[job] / rate(jobs, state, job)  # as the engine has it, to the bit
    state.urgency[job] = -state.finish[job]
    # of jobs that end at one time the first submitted is freed first: `count` would do for a place, jobs are in order
    state.count[RUNNING] = push(state.running, state.count[RUNNING], job, state.urgency, jobs.first)


@lean
def rate(jobs: Jobs, state: State, job: int) -> float:
    """Return the seconds of its work that a job which has been started gets on in a second."""
    return float(1 / (1 + jobs.intensity[job] * state.cost[job]))


@lean
def remaining(jobs: Jobs, state: State, job: int) -> float:
    """Return for how many seconds more a job is expected to run; 0 if it takes longer than expected."""
    end = state.start[job] + jobs.expected[job] / rate(jobs, state, job)
    return float(max(end - state.clock[NOW], 0.0))


@lean
def pass_time(jobs: Jobs, cluster: Cluster, state: State, until: float) -> bool:
    """Go on to the next instant, if that is before `until`: who ends is freed, then who arrives joins; say whether."""
    n = len(jobs.submit)
    now = np.inf
    if state.count[RUNNING] > 0:
        now = state.finish[state.running[0]]
    if state.count[ARRIVED] < n:
        now = min(now, jobs.submit[state.count[ARRIVED]])
    if now >= until:
        return False
    state.clock[NOW] = now
    while state.count[RUNNING] > 0 and state.finish[state.running[0]] <= now:
        job = state.running[0]
        for row in range(jobs.first[job], jobs.first[job + 1]):
            gpu = state.held[row]
            state.holder[gpu] = -1
            state.free[cluster.node[gpu]] += 1
        state.count[RUNNING] = pop(state.running, state.count[RUNNING], state.urgency, jobs.first)
    while state.count[ARRIVED] < n and jobs.submit[state.count[ARRIVED]] <= now:
        state.queue[state.count[WAITING]] = state.count[ARRIVED]
        state.count[WAITING] += 1
        state.count[ARRIVED] += 1
    return True


@lean_kernel
def start(jobs: Jobs, cluster: Cluster, state: State, at: int, take: Ints) -> None:
    """Do what `begin_job` does, for Python."""
    begin_job(jobs, cluster, state, at, take)


@lean_kernel
def advance(jobs: Jobs, cluster: Cluster, state: State) -> bool:
    """Do what `pass_time` does, for Python."""
    return pass_time(jobs, cluster, state, np.inf)


@lean
def total_jct(jobs: Jobs, finish: Floats) -> float:
    """Return the sum of finish minus submission over those of the jobs that have started, seconds."""
    total = 0.0
    for job in range(len(jobs.submit)):
        if finish[job] < np.inf:
            total += finish[job] - jobs.submit[job]
    return total
