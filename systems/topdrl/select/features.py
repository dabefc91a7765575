"""What the network sees of a candidate: numbers without a scale, so that lengths, sizes and queues may be others."""

from __future__ import annotations

from math import log, log1p

import numpy as np

from gangplan.simulator.gangs.allocate import CLOSEST, choose
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.step import communication, node_of
from gangplan.solvers.compiled.kernel import Ints, lean

from .candidates import SOON, WAIT, Scratch, list_candidates, remaining

CONTEXT = (
    *("waiting", "backlog", "idle", "whole_nodes", "largest_node", "largest_rack", "broken", "next_end", "third_end"),
    *("load", "mean_gpus", "arrived", "singles", "wide", "least_waiting", "dearness", "running", "spread", "oldest"),
    *("longest_end", "fitting"),
)
"""Of the state: the queue, what is idle, when running jobs end, and what has arrived so far."""
CANDIDATE = (
    *("wait", "length", "gpus", "work", "slowdown", "over_ideal", "over_best", "over_least", "waited", "rank"),
    *("of_idle", "idle_after", "whole_taken", "node_after", "rack_after", "nodes", "racks", "left_over"),
    *("gain_by_waiting", "better_in", "fit_after", "over_blocked", "delays_blocked", "ends_apart", "submitted"),
    *("duration", "like_it"),
)
"""Of a candidate: the job, what its GPUs cost, what they leave, and what it would gain by waiting for others. To wait
has those of the candidate with the least work that it keeps from starting."""
WIDTH = len(CONTEXT) + len(CANDIDATE)

MEAN, WORK, GPUS, DEVIATION, LOAD, DEARNESS, LARGEST_NODE, LARGEST_RACK, SEEN = range(9)
"""Of `Scratch.stats`: mean expected length, s; mean work, GPU s; mean GPUs; deviation of the logarithm of the length;
work a second of all GPUs; mean logarithm of the slowdown on an empty cluster; GPUs of the largest node and
rack; how many arrived."""


@lean
def see(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> None:
    """Write what the jobs that have arrived so far are like."""
    n, stats = state.count[ARRIVED], s.stats
    stats[:] = 0.0
    square = 0.0
    for job in range(n):
        length, gpus = max(jobs.expected[job], 1e-9), float(jobs.gpus[job])
        stats[MEAN] += length / n
        stats[WORK] += length * gpus / n
        stats[GPUS] += gpus / n
        stats[DEVIATION] += log(length) / n
        square += log(length) ** 2 / n
        stats[DEARNESS] += log(1 + jobs.intensity[job] * s.ideal[jobs.gpus[job]]) / n
    stats[DEVIATION] = max(square - stats[DEVIATION] ** 2, 0.0) ** 0.5
    stats[SEEN] = n
    passed = max(state.clock[NOW] - jobs.submit[0], stats[MEAN])
    stats[LOAD] = stats[WORK] * n / (passed * cluster.first[-1])
    for node in range(len(cluster.rack)):
        stats[LARGEST_NODE] = max(stats[LARGEST_NODE], float(cluster.first[node + 1] - cluster.first[node]))
    for rack in range(len(cluster.begin) - 1):
        size = cluster.first[cluster.begin[rack + 1]] - cluster.first[cluster.begin[rack]]
        stats[LARGEST_RACK] = max(stats[LARGEST_RACK], float(size))


@lean
def write_rows(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> int:
    """Write the candidates and their features, and return how many there are."""
    if state.count[WAITING] == 0:
        return 0
    see(jobs, cluster, state, s)
    k = list_candidates(jobs, cluster, state, s)
    if k == 0:
        return 0
    _look_ahead(jobs, cluster, state, s)
    _context(jobs, cluster, state, s)
    width = len(CONTEXT)
    blocked, need, shadow, spare = _blocked(jobs, cluster, state, s)
    least = np.inf
    for i in range(k):
        if i > 0:
            for j in range(width):
                s.row[i, j] = s.row[0, j]
        if s.place[i] != WAIT:
            job = state.queue[s.place[i]]
            least = min(least, _effective(jobs, job, s.cost[i]))
    best = -1
    for i in range(k):
        if s.place[i] == WAIT:
            continue
        _candidate(jobs, cluster, state, s, i, k, least, blocked, need, shadow, spare)
        if best < 0 and _effective(jobs, state.queue[s.place[i]], s.cost[i]) == least:
            best = i
    if s.place[0] == WAIT:
        for j in range(width, WIDTH):
            s.row[0, j] = s.row[best, j]
        s.row[0, width] = 1.0
    return k


@lean
def _effective(jobs: Jobs, job: int, cost: float) -> float:
    """Return the GPU seconds that a job would take, communication included."""
    return float(max(jobs.expected[job], 1e-9) * jobs.gpus[job] * (1 + jobs.intensity[job] * cost))


@lean
def _look_ahead(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> None:
    """Write which running jobs end soon, what is idle then, and when the last job of each node ends."""
    s.ends[:] = np.inf
    s.known[:] = np.nan
    s.last[:] = 0.0
    for node in range(len(state.free)):
        s.idle[:, node] = state.free[node]
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        left = remaining(jobs, state, job)
        for row in range(jobs.first[job], jobs.first[job + 1]):
            node = node_of(cluster, state.held[row])
            s.last[node] = max(s.last[node], left)
        place = SOON
        while place > 0 and left < s.ends[place - 1]:
            place -= 1
        for at in range(SOON - 1, place, -1):
            s.ends[at] = s.ends[at - 1]
        if place < SOON:
            s.ends[place] = left
    for step in range(SOON):
        for i in range(state.count[RUNNING]):
            job = state.running[i]
            if remaining(jobs, state, job) <= s.ends[step]:
                for row in range(jobs.first[job], jobs.first[job + 1]):
                    s.idle[step + 1, node_of(cluster, state.held[row])] += 1


@lean
def _cost_then(need: int, step: int, cluster: Cluster, s: Scratch) -> float:
    """Return the cost for so many GPUs placed closest after so many ends."""
    if np.isnan(s.known[step, need]):
        fits = choose(CLOSEST, need, cluster, s.idle[step], s.free)
        s.known[step, need] = communication(cluster, s.free) if fits else np.inf
    return float(s.known[step, need])


@lean
def _blocked(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> tuple[float, int, float, int]:
    """Return of the job with the least work that does not fit: its work, its GPUs, when it will, and what is spare."""
    idle, least, need = total(state.free), np.inf, 0
    for at in range(state.count[WAITING]):
        job = state.queue[at]
        if jobs.gpus[job] > idle:
            work = _effective(jobs, job, s.ideal[jobs.gpus[job]])
            if work < least:
                least, need = work, jobs.gpus[job]
    for step in range(1, SOON + 1):
        then = total(s.idle[step])
        if then >= need:
            return least, need, s.ends[step - 1], then - need
    return least, need, np.inf, 0


@lean
def total(counts: Ints) -> int:
    """Return the sum."""
    found = 0
    for x in counts:
        found += x
    return found


@lean
def _context(jobs: Jobs, cluster: Cluster, state: State, s: Scratch) -> None:
    """Write the features of the state into the first row."""
    stats, out, now = s.stats, s.row[0], state.clock[NOW]
    gpus, unit, waiting = float(cluster.first[-1]), stats[MEAN], state.count[WAITING]
    idle, whole, largest, rack, broken = _free_blocks(cluster, state.free)
    work, singles, wide, least, fitting = 0.0, 0, 0, np.inf, 0
    for at in range(waiting):
        job = state.queue[at]
        need = jobs.gpus[job]
        own = _effective(jobs, job, s.ideal[need])
        work += own
        least = min(least, own)
        singles += need == 1
        wide += need > stats[LARGEST_NODE]
        fitting += need <= idle
    left, longest = 0.0, 0.0
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        own = remaining(jobs, state, job)
        left += own * jobs.gpus[job]
        longest = max(longest, own)
    out[0] = log1p(waiting) / 3
    out[1] = log1p(work / (gpus * unit))
    out[2] = idle / gpus
    out[3] = whole / len(cluster.rack)
    out[4] = largest / stats[LARGEST_NODE]
    out[5] = rack / stats[LARGEST_RACK]
    out[6] = broken / max(idle, 1)
    out[7] = _soon(s.ends[0], unit)
    out[8] = _soon(s.ends[2], unit)
    out[9] = min(stats[LOAD], 4.0)
    out[10] = log(stats[GPUS] / stats[LARGEST_NODE])
    out[11] = log1p(stats[SEEN]) / 5
    out[12] = singles / waiting
    out[13] = wide / waiting
    out[14] = log(least / stats[WORK]) / 2
    out[15] = stats[DEARNESS]
    out[16] = log1p(left / (gpus * unit))
    out[17] = stats[DEVIATION]
    out[18] = log1p((now - jobs.submit[state.queue[0]]) / unit)
    out[19] = _soon(longest, unit)
    out[20] = fitting / waiting


@lean
def _free_blocks(cluster: Cluster, free: Ints) -> tuple[int, int, int, int, int]:
    """Return idle GPUs: all, wholly idle nodes, those of the best node and of the best rack, those of broken nodes."""
    idle, whole, largest, best, broken = 0, 0, 0, 0, 0
    for rack in range(len(cluster.begin) - 1):
        there = 0
        for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
            there += free[node]
            largest = max(largest, free[node])
            if free[node] == cluster.first[node + 1] - cluster.first[node]:
                whole += 1
            else:
                broken += free[node]
        idle += there
        best = max(best, there)
    return idle, whole, largest, best, broken


@lean
def _soon(seconds: float, unit: float) -> float:
    return float(log1p(min(seconds / unit, 20.0)))


@lean
def _candidate(
    jobs: Jobs, cluster: Cluster, state: State, s: Scratch, i: int, k: int,
    least: float, blocked: float, need: int, shadow: float, spare: int,
) -> None:  # fmt: skip
    """Write the features of one candidate that starts a job."""
    job, stats, unit, out = state.queue[s.place[i]], s.stats, s.stats[MEAN], s.row[i, len(CONTEXT) :]
    gpus, length, intensity = jobs.gpus[job], max(jobs.expected[job], 1e-9), jobs.intensity[job]
    slower, own = 1 + intensity * s.cost[i], _effective(jobs, job, s.cost[i])
    duration = length * slower
    gain, better_in = _gain(duration, length, intensity, gpus, cluster, s)
    rank, cheapest = 0, s.cost[i]
    for other in range(k):
        if s.place[other] == WAIT:
            continue
        rank += _effective(jobs, state.queue[s.place[other]], s.cost[other]) < own
        if s.place[other] == s.place[i]:
            cheapest = min(cheapest, s.cost[other])
    out[0] = 0.0
    out[1] = log(length / unit)
    out[2] = log(gpus / stats[LARGEST_NODE])
    out[3] = log(length * gpus / stats[WORK])
    out[4] = log(slower)
    out[5] = log(slower / (1 + intensity * s.ideal[gpus]))
    out[6] = log(slower / (1 + intensity * cheapest))
    out[7] = log(own / least)
    out[8] = log1p((state.clock[NOW] - jobs.submit[job]) / unit)
    out[9] = rank / k
    out[18] = max(gain / duration, -2.0)
    out[19] = _soon(better_in, unit)
    out[21] = min(max(log(own / blocked), -4.0), 4.0) if need > 0 else 0.0
    out[22] = _soon(max(duration - shadow, 0.0) if need > 0 and gpus > spare else 0.0, unit)
    out[24] = s.place[i] / state.count[WAITING]
    out[25] = log(duration / unit)
    _place(jobs, cluster, state, s, i, duration)


@lean
def _gain(
    duration: float, length: float, intensity: float, gpus: int, cluster: Cluster, s: Scratch
) -> tuple[float, float]:
    """Return how much earlier a job would end that waits for the best of the next ends, and when that is; seconds."""
    gain, better_in = 0.0, 0.0
    for step in range(1, SOON + 1):
        after = s.ends[step - 1]
        if after == np.inf:
            break
        then = after + length * (1 + intensity * _cost_then(gpus, step, cluster, s))
        if gain == 0.0 or duration - then > gain:
            gain, better_in = duration - then, after
    return gain, better_in


@lean
def _place(jobs: Jobs, cluster: Cluster, state: State, s: Scratch, i: int, duration: float) -> None:
    """Write the features of the GPUs that a candidate takes, and of what it leaves."""
    take, stats, out = s.take[i], s.stats, s.row[i, len(CONTEXT) :]
    gpus = jobs.gpus[state.queue[s.place[i]]]
    nodes, racks, left, apart, last = 0, 0, 0, 0.0, -1
    for node in range(len(take)):
        s.free[node] = state.free[node] - take[node]
        if take[node] > 0:
            nodes += 1
            racks += cluster.rack[node] != last
            last = cluster.rack[node]
            left += s.free[node]
            apart += (s.last[node] - duration) * take[node] / gpus
    idle_now, whole_now, _, _, _ = _free_blocks(cluster, state.free)
    idle, whole, largest, rack, _ = _free_blocks(cluster, s.free)
    fit, same = 0, 0
    for at in range(state.count[WAITING]):
        fit += jobs.gpus[state.queue[at]] <= idle
        same += jobs.gpus[state.queue[at]] == gpus
    out[10] = gpus / idle_now
    out[11] = idle / cluster.first[-1]
    out[12] = (whole_now - whole) / len(cluster.rack)
    out[13] = largest / stats[LARGEST_NODE]
    out[14] = rack / stats[LARGEST_RACK]
    out[15] = log(float(nodes))
    out[16] = log(float(racks))
    out[17] = left / (nodes * stats[LARGEST_NODE])
    out[20] = fit / state.count[WAITING]
    out[23] = min(max(apart / stats[MEAN], -3.0), 3.0)
    out[26] = log1p(same) / 3
