"""The teacher: it knows what jobs are like, looks ahead, and says what each candidate of a decision comes to."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, declare, nogil
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import GpuRacks, Jobs, State, empty
from gangplan.simulator.gangs.formula import Formula
from gangplan.solvers.native import Random

from .candidates import CandidateScratch

if not cython.compiled:
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING
    from gangplan.simulator.gangs.formula import run_formula
    from gangplan.simulator.gangs.step import begin_job, pass_time, restore, total, total_jct
    from gangplan.solvers.native import Float, Floats2, Int, Ints

    from .candidates import WAIT, remaining

NEVER = declare(Float, float("inf"))


def _room(jobs: Jobs, cluster: GpuRacks, state: State, pool: Jobs, ahead: int) -> tuple[NDArray[np.int64], Jobs, State]:
    """Return the jobs that wait and run, in the order of arrival, and room for these with `ahead` more to come."""
    state.require(jobs, cluster)
    waits, runs = state.queue[: state.count[WAITING]], state.running[: state.count[RUNNING]]
    live, known = np.sort(np.concatenate([waits, runs])), len(pool.submit)
    if not live.min(initial=0) >= 0 or live.max(initial=-1) >= len(jobs.submit) or ahead < 0 or (ahead and not known):
        raise ValueError(f"{ahead} jobs to come like {known}, and {len(live)} that wait and run, are no future")
    gangs = np.concatenate([np.asarray(jobs.gpus)[live], np.asarray(pool.gpus)])
    if not 0 <= gangs.min(initial=0) <= gangs.max(initial=0) <= len(cluster.node):
        raise ValueError(f"gangs of {gangs.max()} GPUs are not of 0 to {len(cluster.node)}")
    n, held = len(live) + ahead, int(gangs[: len(live)].sum() + ahead * gangs[len(live) :].max(initial=0))
    (submit, work, intensity), first = np.zeros((3, n)), np.full(n + 1, held)
    ours = Jobs(submit, work, work, np.zeros(n, np.int64), intensity, first)
    then = empty(ours, cluster)
    first[0] = 0
    return live, ours, then


def _imagine(
    jobs: Jobs, state: State, pool: Jobs, live: Ints, ahead: Int, random: Random, ours: Jobs, then: State
) -> None:
    """Write who waits and runs, with others to come that are drawn from a pool, and the state with the first."""
    n, known = len(live), len(pool.submit)
    job: Int
    for at in range(n):
        job = live[at]
        ours.submit[at], ours.work[at] = jobs.submit[job], jobs.expected[job]
        ours.gpus[at], ours.intensity[at] = jobs.gpus[job], jobs.intensity[job]
    time: Float = state.clock[NOW]
    for at in range(n, n + ahead):
        job = random.below(known)
        gap: Int = random.below(max(known - 1, 1)) + 1
        time += pool.submit[gap] - pool.submit[gap - 1] if known > 1 else max(pool.expected[0], 1e-9)
        ours.submit[at], ours.work[at] = time, pool.expected[job]
        ours.gpus[at], ours.intensity[at] = pool.gpus[job], pool.intensity[job]
    for at in range(n + ahead):
        ours.first[at + 1] = ours.first[at] + ours.gpus[at]
        then.start[at], then.finish[at], then.urgency[at], then.cost[at] = NEVER, NEVER, -NEVER, 0.0
    then.free[:], then.holder[:] = state.free, -1
    then.clock[NOW], then.count[ARRIVED], then.count[WAITING], then.count[RUNNING] = state.clock[NOW], n, 0, 0
    for at in range(n):
        job = live[at]
        if state.start[job] == NEVER:
            then.queue[then.count[WAITING]] = at
            then.count[WAITING] += 1
            continue
        then.start[at], then.cost[at] = state.start[job], state.cost[job]
        then.finish[at] = state.clock[NOW] + remaining(jobs, state, job)
        then.urgency[at] = -then.finish[at]
        for row in range(ours.gpus[at]):
            gpu = state.held[jobs.first[job] + row]
            then.held[ours.first[at] + row], then.holder[gpu] = gpu, at
        then.push(at)


def imagined(
    jobs: Jobs, cluster: GpuRacks, state: State, pool: Jobs, ahead: Int, seed: Int, future: Int
) -> tuple[Jobs, State]:
    """Return one of the futures of `weigh`."""
    live, ours, then = _room(jobs, cluster, state, pool, ahead)
    random = Random(seed)
    for _ in range(future + 1):
        _imagine(jobs, state, pool, live, ahead, random, ours, then)
    return ours, then.replace(held=np.asarray(then.held)[: ours.first[len(ours.submit)]])


def weigh(
    jobs: Jobs, cluster: GpuRacks, state: State, pool: Jobs, s: CandidateScratch, rule: FloatArray, tried: Ints,
    ahead: Int, seed: Int, value: Floats2,
) -> None:  # fmt: skip
    """Write what the JCTs sum up to with each candidate tried, in each of some futures, which the rule plays.

    Args:
        pool, ahead, seed: jobs like those to come, how many of them arrive in a future, and what these are drawn by.
        s, tried: the decision, and which of its candidates, int64 (c,).
        rule: weights of a formula, see `gangplan.simulator.gangs.formula`.
        value: is written, seconds, float64 (c, futures).
    """
    s.enter(jobs, cluster, state)
    for i in tried:
        if not _is_candidate(s, i):
            raise ValueError(f"candidate {i} is none of this state")
    if len(value) != len(tried):
        raise ValueError(f"{len(value)} values are not for {len(tried)} candidates")
    live: Ints
    ours: Jobs
    root: State
    live, ours, root = _room(jobs, cluster, state, pool, ahead)
    then: State = root.copy()
    random, f = Random(seed), Formula(rule, s.ideal, len(cluster.rack), len(ours.submit))
    with nogil:
        for future in range(value.shape[1]):
            _imagine(jobs, state, pool, live, ahead, random, ours, root)
            for c in range(len(tried)):
                restore(then, root)
                _try(ours, cluster, then, s, tried[c])
                run_formula(ours, cluster, then, f, NEVER)
                value[c, future] = total_jct(ours, then)


def _is_candidate(s: CandidateScratch, i: Int) -> bool:
    """Return whether a candidate is to wait, or starts a job that waits on as many idle GPUs as it needs."""
    if not 0 <= i < len(s.place) or not WAIT <= s.place[i] < s.state.count[WAITING]:
        return False
    fits: bint = s.place[i] == WAIT or total(s.take[i]) == s.jobs.gpus[s.state.queue[s.place[i]]]
    for node in range(len(s.cluster.rack)):
        fits = fits and 0 <= s.take[i, node] <= s.state.free[node]
    return fits


def _try(jobs: Jobs, cluster: GpuRacks, state: State, s: CandidateScratch, i: Int) -> None:
    """Do what a candidate says; to wait is for an end, since arrivals alone make no better place."""
    running: Int = state.count[RUNNING]
    if s.place[i] == WAIT:
        while state.count[RUNNING] == running and pass_time(jobs, cluster, state, NEVER):
            pass
    else:
        begin_job(jobs, cluster, state, s.place[i], s.take[i])
