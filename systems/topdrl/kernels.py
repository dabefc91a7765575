"""TopDRL's ground, compiled: rules that run to the end, lists that are annealed, futures, episodes and their images."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cast, cclass, declare, final, nogil
from cython.cimports.libc.math import ceil, exp, log
from numpy.typing import NDArray

from gangplan.solvers.native import Random

if not cython.compiled:
    from gangplan.simulator.gangs.allocate import choose
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State
    from gangplan.simulator.gangs.listing import Listing, decode, sort_in
    from gangplan.simulator.gangs.step import (
        begin_job,
        communication,
        pass_time,
        rate,
        remaining,
        restore,
        total,
        total_jct,
    )  # fmt: skip
    from gangplan.solvers.native import Flags, Flags2, Float, Floats, Floats2, Int, Ints, Ints2

    Singles2 = NDArray[np.float32]
    Singles3 = NDArray[np.float32]
    Singles4 = NDArray[np.float32]
    HEAD, OVERTAKE, EASY = range(3)
    """Disciplines."""
    SUBMIT, LENGTH, LOG_LENGTH, GPUS, LOG_GPUS, NOISE, LOG_SLOWDOWN = range(7)
    """Features of a score, see `gangplan.systems.topdrl.rules.FEATURES`."""
    JCT, THROUGHPUT = range(2)
    """See `gangplan.systems.topdrl.batch.REWARDS`."""
    BEHIND, FREE, BUSY, WANTED, WORK, ARRIVING = range(6)
    """See `gangplan.systems.topdrl.image.SCALARS`."""
    AS_THE_RULE, WAIT = -2, -1
    """Instead of a job that is tried."""
    GIVEN = -1
    """The allocator that takes the GPUs of each node that are given."""

ALLOCATORS = declare(Int, 4)
NEVER = declare(Float, float("inf"))
NEAR = declare(Int, 20)
"""Places in a list by which a job is moved that is exchanged with someone near."""


@final
@cclass
class Scoring:
    """What a rule scores n jobs by, and room for m nodes.

    Attributes:
        weights: of the features, float64 (7,).
        noise: the random number of each job, float64 (n,).
        take, best: GPUs of each node for the job looked at and the one chosen, int64 (m,).
        left: jobs that run, of use to `_reserve`, int64 (n,).
        shadow, spare: when the first job of the queue will fit, and how many GPUs more will be idle then.
    """

    def __init__(self, weights: Any, noise: Any, nodes: int) -> None:
        if len(weights) != LOG_SLOWDOWN + 1:
            raise ValueError(f"{len(weights)} weights are not those of the {LOG_SLOWDOWN + 1} features")
        self.weights, self.noise, self.left = weights, noise, np.zeros(len(noise), np.int64)
        self.take, self.best = np.zeros((2, nodes), np.int64)
        self.shadow, self.spare = NEVER, 0


def _score(jobs: Jobs, cluster: GpuRacks, job: Int, s: Scoring, fits: bint) -> Float:
    """Return the score of a job that would get `take`, if it fits."""
    length: Float = jobs.expected[job]
    gpus: Float = jobs.gpus[job]
    score: Float = s.weights[SUBMIT] * jobs.submit[job] + s.weights[LENGTH] * length + s.weights[GPUS] * gpus
    logs: Float = s.weights[LOG_LENGTH] * log(max(length, 1e-9)) + s.weights[LOG_GPUS] * log(gpus)
    score += logs + s.weights[NOISE] * s.noise[job]
    if fits and s.weights[LOG_SLOWDOWN] != 0.0:
        score += s.weights[LOG_SLOWDOWN] * log(1.0 + jobs.intensity[job] * communication(cluster, s.take))
    return score


def write_keys(jobs: Jobs, cluster: GpuRacks, s: Scoring, key: Floats) -> None:
    """Write the score of each job that does not depend on its place, float64 (n,)."""
    if len(key) != len(jobs.submit) or len(s.noise) != len(key):
        raise ValueError(f"{len(key)} keys and {len(s.noise)} numbers are not of {len(jobs.submit)} jobs")
    for job in range(len(key)):
        key[job] = _score(jobs, cluster, job, s, False)


def run(  # noqa: PLR0912, one loop read from top to bottom
    jobs: Jobs, cluster: GpuRacks, state: State, s: Scoring, discipline: Int, allocator: Int
) -> int:
    """Run from `state` to the end, see `gangplan.systems.topdrl.rules.Rule`; return how many jobs were started."""
    state.require(jobs, cluster)
    if len(s.noise) < len(jobs.submit) or len(s.take) != len(cluster.rack):
        raise ValueError(f"a rule for {len(s.noise)} jobs and {len(s.take)} nodes does not fit {len(jobs.submit)} jobs")
    started: Int = 0
    on: bint = True
    with nogil:
        while on:
            blocked: Int = -1
            s.shadow, s.spare = NEVER, 0
            while state.count[WAITING] > 0:
                found: Int = -1
                least: Float = NEVER
                idle: Int = total(state.free)
                for at in range(state.count[WAITING]):
                    job = state.queue[at]
                    if job == blocked:
                        continue
                    fits: bint = jobs.gpus[job] <= idle
                    if not fits and (discipline == OVERTAKE or blocked >= 0):
                        continue
                    if fits and (s.weights[LOG_SLOWDOWN] != 0.0 or blocked >= 0):
                        choose(allocator, jobs.gpus[job], cluster, state.free, s.take)
                    if blocked >= 0 and jobs.gpus[job] > s.spare:
                        slower: Float = 1.0 + jobs.intensity[job] * communication(cluster, s.take)
                        if state.clock[NOW] + jobs.expected[job] * slower > s.shadow:
                            continue
                    value = _score(jobs, cluster, job, s, fits)
                    if value < least:
                        found, least = at, value
                if found < 0:
                    break
                job = state.queue[found]
                if not choose(allocator, jobs.gpus[job], cluster, state.free, s.best):
                    if discipline == HEAD:
                        break
                    blocked = job
                    _reserve(jobs, state, s, jobs.gpus[job])
                    continue
                if blocked >= 0:
                    slower = 1.0 + jobs.intensity[job] * communication(cluster, s.best)
                    if state.clock[NOW] + jobs.expected[job] * slower > s.shadow:
                        s.spare -= jobs.gpus[job]
                begin_job(jobs, cluster, state, found, s.best)
                started += 1
            on = pass_time(jobs, cluster, state, NEVER)
    return started


def _reserve(jobs: Jobs, state: State, s: Scoring, need: Int) -> None:
    """Note when `need` GPUs will be idle by the durations expected, and how many more will be then."""
    size: Int = state.count[RUNNING]
    idle: Int = total(state.free)
    s.left[:size] = state.running[:size]
    while idle < need and size > 0:
        soonest: Int = 0
        least: Float = NEVER
        for i in range(size):
            seconds = remaining(jobs, state, s.left[i])
            if seconds < least or (seconds == least and s.left[i] < s.left[soonest]):
                soonest, least = i, seconds
        idle += jobs.gpus[s.left[soonest]]
        if idle >= need:
            s.shadow, s.spare = state.clock[NOW] + least, idle - need
            return
        size -= 1
        s.left[soonest] = s.left[size]
    s.shadow, s.spare = NEVER, 0


def anneal(  # noqa: PLR0912, a change after the other
    jobs: Jobs, cluster: GpuRacks, state: State, scratch: State, of: Listing, best: Listing, costs: Floats2,
    low: Int, high: Int, turns: Int, hot: Float, cold: Float, seed: Int,
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
    _require(jobs, cluster, state, scratch, of)
    if not 0 <= low < high <= len(jobs.submit) or len(best.key) < high:
        raise ValueError(f"jobs {low} to {high} are not some of {len(jobs.submit)}")
    if len(costs) != len(cluster.node) + 1 or costs.shape[1] == 0:
        raise ValueError(f"costs of {len(costs) - 1} GPUs are not those of {len(cluster.node)}")
    random = Random(seed)
    take: Ints = np.zeros(len(cluster.rack), np.int64)
    fade: Float = log(cold / hot)
    current: Float = NEVER
    least: Float = NEVER
    with nogil:
        for turn in range(turns + 1):
            j: Int = low + random.below(high - low)
            k: Int = low + random.below(high - low)
            kind: Float = random.uniform()
            if turn == 0:
                kind = 2.0
            elif kind < 0.6:  # someone near
                k = max(low, min(high - 1, j + random.below(2 * NEAR + 1) - NEAR))
            key, other = of.key[j], of.key[k]
            allocator, most, blocks = of.allocator[j], of.most[j], of.blocks[j]
            if kind < 0.35:
                of.key[j] = other + 2.0 * random.uniform() - 1.0
            elif kind < 0.55:
                of.key[j], of.key[k] = other, key
            elif kind < 0.7:
                of.allocator[j] = random.below(ALLOCATORS)
            elif kind < 0.85:
                of.most[j] = costs[jobs.gpus[j], random.below(costs.shape[1])]
            elif kind < 1.0:
                of.blocks[j] = 1 - blocks
            restore(scratch, state)
            sort_in(scratch, of.key, 0)
            decode(jobs, cluster, scratch, of, take, NEVER)
            value = total_jct(jobs, scratch)
            heat: Float = hot * exp(fade * turn / max(1, turns))
            if value < current - heat * log(1.0 - random.uniform()):
                current = value
                if value < least:
                    least = value
                    for i in range(low, high):
                        best.key[i], best.allocator[i] = of.key[i], of.allocator[i]
                        best.most[i], best.blocks[i] = of.most[i], of.blocks[i]
            elif turn > 0:
                of.key[k], of.key[j] = other, key
                of.allocator[j], of.most[j], of.blocks[j] = allocator, most, blocks
    return least


def try_each(
    jobs: Jobs, cluster: GpuRacks, state: State, scratch: State, of: Listing, job: Ints, take: Ints2, value: Floats
) -> None:
    """Write the value of each candidate (a job that starts on `take`, `WAIT`, or `AS_THE_RULE`), then by the list."""
    _require(jobs, cluster, state, scratch, of)
    if not len(job) == len(value) == len(take) + 1 or take.shape[1] != len(cluster.rack):
        raise ValueError(f"{len(job)} jobs, {len(value)} values and {len(take)} places are not of as many candidates")
    room: Ints = np.zeros(len(cluster.rack), np.int64)
    with nogil:
        sort_in(state, of.key, 0)
        for c in range(len(job)):
            restore(scratch, state)
            if job[c] == WAIT:
                known = scratch.count[WAITING]
                if scratch.count[RUNNING] == 0:
                    value[c] = NEVER
                    continue
                pass_time(jobs, cluster, scratch, NEVER)
                sort_in(scratch, of.key, known)
            elif job[c] != AS_THE_RULE and scratch.count[WAITING] > 0:
                at: Int = 0
                while scratch.queue[at] != job[c] and at < scratch.count[WAITING] - 1:
                    at += 1
                begin_job(jobs, cluster, scratch, at, take[c])
            decode(jobs, cluster, scratch, of, room, NEVER)
            value[c] = total_jct(jobs, scratch)


def _require(jobs: Jobs, cluster: GpuRacks, state: State, scratch: State, of: Listing) -> None:
    """Raise `ValueError` if a list or a state, or room for another, is not of these jobs and this cluster."""
    state.require(jobs, cluster)
    sizes = len(state.start), len(state.free), len(state.holder), len(state.held)
    if sizes != (len(scratch.start), len(scratch.free), len(scratch.holder), len(scratch.held)):
        raise ValueError(f"no room for a state of {sizes[0]} jobs on {sizes[1]} nodes")
    if len(of.key) < len(jobs.submit):
        raise ValueError(f"the list says nothing of {len(jobs.submit) - len(of.key)} jobs")


def play(
    episodes: list[tuple[Jobs, State]], cluster: GpuRacks, choice: Ints, allocator: Ints, take: Ints2, hold: Float,
    mask: Flags2, paid: Floats2,
) -> None:  # fmt: skip
    """Do in each episode what was chosen, nothing where that is -1, and go on to the next decision."""
    count, shapes = len(episodes), (take.shape[1], paid.shape[1])
    if not len(choice) == len(allocator) == len(take) == len(mask) == len(paid) == count or not mask.shape[1]:
        raise ValueError(f"{len(choice)} actions are not those of {count} episodes")
    if shapes != (len(cluster.rack), THROUGHPUT + 1):
        raise ValueError(f"{shapes} are not {len(cluster.rack)} nodes and {THROUGHPUT + 1} rewards")
    for b in range(count):
        jobs: Jobs = episodes[b][0]
        state: State = episodes[b][1]
        state.require(jobs, cluster)
        if choice[b] >= state.count[WAITING] and choice[b] != mask.shape[1] - 1:
            raise ValueError(f"no job waits at {choice[b]}")
        _go_on(jobs, cluster, state, choice[b], allocator[b], take[b], hold, mask[b], paid[b])


def _go_on(
    jobs: Jobs, cluster: GpuRacks, state: State, choice: Int, allocator: Int, take: Ints, hold: Float, mask: Flags,
    paid: Floats,
) -> None:  # fmt: skip
    """Act in an episode, and pass time until a job in a slot fits or all is over."""
    on: bint = True
    if choice == len(mask) - 1:
        on = _wait(jobs, cluster, state, hold, paid)
    elif choice >= 0:
        if allocator != GIVEN:
            choose(allocator, jobs.gpus[state.queue[choice]], cluster, state.free, take)
        begin_job(jobs, cluster, state, choice, take)
    while on and not _offer(jobs, state, mask):
        on = _wait(jobs, cluster, state, hold, paid)
    if not on:
        mask[:] = False


def _offer(jobs: Jobs, state: State, mask: Flags) -> bool:
    """Write which jobs in slots fit, and last whether waiting is possible; return whether any fits."""
    found: bint = False
    idle: Int = total(state.free)
    slots: Int = len(mask) - 1
    for at in range(slots):
        mask[at] = at < state.count[WAITING] and jobs.gpus[state.queue[at]] <= idle
        found = found or mask[at]
    mask[slots] = state.count[RUNNING] > 0 or state.count[ARRIVED] < len(jobs.submit)
    return found


def _wait(jobs: Jobs, cluster: GpuRacks, state: State, hold: Float, paid: Floats) -> bool:
    """Go on to the next instant, and pay for the time by each of `REWARDS`; return whether there is one."""
    before: Float = state.clock[NOW]
    waiting: Int = state.count[WAITING]
    running: Int = state.count[RUNNING]
    rates: Float = 0.0
    for i in range(running):
        rates += rate(jobs, state, state.running[i])
    on: bint = pass_time(jobs, cluster, state, NEVER)
    seconds: Float = state.clock[NOW] - before
    paid[JCT] -= seconds * (waiting + running)
    paid[THROUGHPUT] += seconds * (rates - hold * waiting)
    return on


def draw(
    episodes: list[tuple[Jobs, State]], step: Float, backlog: Int, cluster: Singles3, queue: Singles4,
    scalars: Singles2,
) -> None:  # fmt: skip
    """Draw each episode, see `gangplan.systems.topdrl.image.Image`, on arrays of 0."""
    rows, gpus, slots, width = cluster.shape[1], cluster.shape[2], queue.shape[1], queue.shape[3]
    b: Int
    if not len(cluster) == len(queue) == len(scalars) == len(episodes) or queue.shape[2] != rows:
        raise ValueError(f"{len(cluster)} images of {rows} rows are not those of {len(episodes)} episodes")
    if scalars.shape[1] != ARRIVING + 1 or backlog <= 0 or step <= 0.0:
        raise ValueError(f"{scalars.shape[1]} numbers, a backlog of {backlog} and steps of {step} s make no image")
    for b in range(len(episodes)):
        jobs: Jobs = episodes[b][0]
        state: State = episodes[b][1]
        if len(state.holder) != gpus or state.count[WAITING] > len(state.queue):
            raise ValueError(f"{gpus} GPUs are not the {len(state.holder)} of an episode")
        busy: Int = 0
        wanted: Int = 0
        work: Float = 0.0
        for gpu in range(gpus):
            job: Int = state.holder[gpu]
            if job >= 0:
                busy += 1
                for t in range(_steps(remaining(jobs, state, job), step, rows)):
                    cluster[b, t, gpu] = 1.0
        waiting: Int = state.count[WAITING]
        for at in range(waiting):
            job = state.queue[at]
            wanted += jobs.gpus[job]
            work += jobs.gpus[job] * jobs.expected[job]
            if at < slots:
                for t in range(_steps(jobs.expected[job], step, rows)):
                    for x in range(min(jobs.gpus[job], width)):
                        queue[b, at, t, x] = 1.0
        scalars[b, BEHIND] = min(1.0 * max(waiting - slots, 0) / backlog, 1.0)
        scalars[b, FREE], scalars[b, BUSY] = 1.0 * (gpus - busy) / gpus, 1.0 * busy / gpus
        scalars[b, WANTED], scalars[b, WORK] = 1.0 * wanted / gpus, work / (gpus * rows * step)
        scalars[b, ARRIVING] = state.count[ARRIVED] < len(jobs.submit)


def _steps(seconds: Float, step: Float, most: Int) -> Int:
    """Return over how many rows a time extends, at least 1."""
    return cast(Int, min(max(ceil(seconds / step - 1e-9), 1.0), 1.0 * most))
