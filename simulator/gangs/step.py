"""One decision and one instant: a job starts on GPUs, or time passes until something ends or arrives."""

from __future__ import annotations

from dataclasses import replace

import cython
import numpy as np
from cython import bint, declare

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from .arrays import cluster_of, intensity_of

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Ints

    from .arrays import ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State

NEVER = declare(Float, float("inf"))


def at_best(workload: Workload, fleet: Fleet, proximity: Proximity) -> Workload:
    """Return the jobs with the least durations that they can have on an empty cluster."""
    cost = least_cost(cluster_of(fleet, proximity))[workload.gpus]
    return replace(workload, duration=workload.duration * (1 + intensity_of(workload, proximity) * cost))


def total(counts: Ints) -> Int:
    """Return the sum."""
    found: Int = 0
    for i in range(len(counts)):
        found += counts[i]
    return found


def communication(cluster: GpuRacks, take: Ints) -> Float:
    """Return the cost of a gang with `take` GPUs on each node: see `Proximity`."""
    gpus: Int = 0
    nodes: Int = 0
    racks: Int = 0
    last: Int = -1
    for node in range(min(len(take), len(cluster.rack))):
        if take[node] > 0:
            gpus += take[node]
            nodes += 1
            racks += cluster.rack[node] != last
            last = cluster.rack[node]
    near = (gpus - nodes) * cluster.weight[0] + (nodes - racks) * cluster.weight[1]
    return near + (racks - 1) * cluster.weight[2]


def least_cost(cluster: GpuRacks) -> FloatArray:
    """Return what gangs of 0, 1, 2... GPUs pay for communication at least, float64 (GPUs + 1,).

    On k nodes in r racks g GPUs cost (g - k) node + (k - r) rack + (r - 1) cluster, which grows with k and with r as
    links farther away weigh no less. k is at least the nodes that hold g GPUs if the largest are taken first, and r the
    racks likewise. Both need not be so few at once: on clusters of unequal nodes this may be less than any gang pays.
    """
    arrays, weight = cluster.arrays(), cluster.weight
    size = np.diff(arrays["first"])
    racks = np.add.reduceat(size, arrays["begin"][: len(cluster.begin) - 1])
    gpus = np.arange(len(cluster.node) + 1)
    k, r = (1 + np.searchsorted(np.cumsum(-np.sort(-x)), gpus) for x in (size, racks))
    cost = (gpus - k) * weight[0] + (k - r) * weight[1] + (r - 1) * weight[2]
    return np.asarray(np.where(gpus > 0, cost, 0.0))


def begin_job(jobs: Jobs, cluster: GpuRacks, state: State, at: Int, take: Ints) -> None:
    """Start the job at a place of the queue on `take` GPUs of each node, the first idle ones."""
    job = state.queue[at]
    state.count[WAITING] -= 1
    for i in range(at, state.count[WAITING]):
        state.queue[i] = state.queue[i + 1]
    row: Int = jobs.first[job]
    for node in range(len(cluster.rack)):
        left: Int = take[node]
        gpu: Int = cluster.first[node]
        while left > 0:
            if state.holder[gpu] < 0:
                state.holder[gpu] = job
                state.held[row] = gpu
                row += 1
                left -= 1
            gpu += 1
        state.free[node] -= take[node]
    state.cost[job], state.start[job] = communication(cluster, take), state.clock[NOW]
    state.finish[job] = state.clock[NOW] + jobs.work[job] / rate(jobs, state, job)  # as the engine has it, to the bit
    state.urgency[job] = -state.finish[job]
    state.push(job)


def rate(jobs: Jobs, state: State, job: Int) -> Float:
    """Return the seconds of its work that a job which has been started gets on in a second."""
    return 1.0 / (1.0 + jobs.intensity[job] * state.cost[job])


def remaining(jobs: Jobs, state: State, job: Int) -> Float:
    """Return for how many seconds more a job is expected to run; 0 if it takes longer than expected."""
    return max(state.start[job] + jobs.expected[job] / rate(jobs, state, job) - state.clock[NOW], 0.0)


def pass_time(jobs: Jobs, cluster: GpuRacks, state: State, until: Float) -> bool:
    """Go on to the next instant, if that is before `until`: who ends is freed, then who arrives joins; say whether."""
    n: Int = len(jobs.submit)
    now: Float = NEVER
    if state.count[RUNNING] > 0:
        now = state.finish[state.running[0]]
    if state.count[ARRIVED] < n:
        now = min(now, jobs.submit[state.count[ARRIVED]])
    if now >= until:
        return False
    state.clock[NOW] = now
    while state.count[RUNNING] > 0 and state.finish[state.running[0]] <= now:
        job = state.pop()
        for row in range(jobs.first[job], jobs.first[job + 1]):
            gpu = state.held[row]
            state.holder[gpu] = -1
            state.free[cluster.node[gpu]] += 1
    while state.count[ARRIVED] < n and jobs.submit[state.count[ARRIVED]] <= now:
        state.queue[state.count[WAITING]] = state.count[ARRIVED]
        state.count[WAITING] += 1
        state.count[ARRIVED] += 1
    return True


def start(jobs: Jobs, cluster: GpuRacks, state: State, at: Int, take: Ints) -> None:
    """Do what `begin_job` does, for Python."""
    state.require(jobs, cluster)
    if not 0 <= at < state.count[WAITING] or len(take) != len(cluster.rack):
        raise ValueError(f"{at} and {len(take)} are no place in the queue and GPUs of each node")
    job = state.queue[at]
    fits: bint = total(take) <= jobs.first[job + 1] - jobs.first[job]
    for node in range(len(take)):
        fits = fits and 0 <= take[node] <= state.free[node]
    if not fits:
        raise ValueError(f"{list(take)} are not the idle GPUs of job {job}")
    begin_job(jobs, cluster, state, at, take)


def advance(jobs: Jobs, cluster: GpuRacks, state: State) -> bool:
    """Do what `pass_time` does, for Python."""
    state.require(jobs, cluster)
    return pass_time(jobs, cluster, state, NEVER)


def restore(to: State, of: State) -> None:
    """Copy a state over another one of the same sizes."""
    to.clock[:], to.count[:], to.queue[:], to.running[:] = of.clock, of.count, of.queue, of.running
    to.free[:], to.holder[:], to.held[:] = of.free, of.holder, of.held
    to.start[:], to.finish[:], to.urgency[:], to.cost[:] = of.start, of.finish, of.urgency, of.cost


def total_jct(jobs: Jobs, state: State) -> Float:
    """Return the sum of finish minus submission over those of the jobs that have started, seconds."""
    total: Float = 0.0
    for job in range(min(len(jobs.submit), len(state.finish))):
        if state.finish[job] < NEVER:
            total += state.finish[job] - jobs.submit[job]
    return total
