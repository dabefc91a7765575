"""What the network sees of a candidate: numbers without a scale, so that lengths, sizes and queues may be others."""

from __future__ import annotations

from math import log, log1p

import numpy as np

from gangplan.simulator.gangs.allocate import CLOSEST, choose
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula import hope
from gangplan.simulator.gangs.step import communication, total
from gangplan.solvers.compiled.kernel import Floats, Ints, Singles, Singles2, lean

from .candidates import (
    AT_ONCE,
    CROWD,
    DEARNESS,
    DEVIATION,
    GPUS,
    HELD_UP,
    LARGEST_NODE,
    LARGEST_RACK,
    LOAD,
    MEAN,
    RUNS,
    SEEN,
    SURPRISE,
    TYPICAL,
    WAIT,
    WORK,
    CandidateScratch,
    remaining,
)

CANDIDATE = (
    *("wait", "length", "gpus", "work", "slowdown", "over_ideal", "over_best", "over_least", "waited", "rank"),
    *("of_idle", "idle_after", "whole_taken", "node_after", "rack_after", "nodes", "racks", "left_over"),
    *("gain_by_waiting", "better_in", "fit_after", "over_blocked", "delays_blocked", "ends_apart", "submitted"),
    *("duration", "like_it", "by_rule", "of_typical", "age", "too_slow"),
)
"""Of a candidate: the job, what its GPUs cost, what they leave, what it would gain by waiting for others, and what the
rule says. To wait has those of the candidate with the least work that it keeps from starting."""
BY_RULE = CANDIDATE.index("by_rule")
"""The score that the network corrects."""
WINDOW = 256
"""Jobs that arrived last, by which the others are judged."""
FAR = 3.0
"""What is said at most of how much too slow a job is."""
LATE, LONGEST = 1.5, 10.0
"""What the rule's score of a job that is to wait is below that of the first; the most by which one is below it."""


@lean
def see(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write what the jobs that arrived last are like."""
    arrived, stats = state.count[ARRIVED], s.stats
    begin = max(arrived - WINDOW, 0)
    n = arrived - begin
    stats[:] = 0.0
    square, done, off = 0.0, 0, 0.0
    for job in range(begin, arrived):
        length, gpus = max(jobs.expected[job], 1e-9), float(jobs.gpus[job])
        stats[MEAN] += length / n
        stats[WORK] += length * gpus / n
        stats[GPUS] += gpus / n
        stats[DEVIATION] += log(length) / n
        square += log(length) ** 2 / n
        stats[DEARNESS] += log(1 + jobs.intensity[job] * s.ideal[jobs.gpus[job]]) / n
        if state.finish[job] <= state.clock[NOW]:
            done += 1
            off += log(max(jobs.work[job], 1e-9) / length) ** 2
    stats[DEVIATION] = max(square - stats[DEVIATION] ** 2, 0.0) ** 0.5
    stats[SEEN] = n
    stats[SURPRISE] = (off / (done + 4)) ** 0.5
    passed = max(state.clock[NOW] - jobs.submit[begin], stats[MEAN])
    stats[LOAD] = stats[WORK] * n / (passed * cluster.first[-1])
    size_up(cluster, stats)


@lean
def size_up(cluster: Cluster, stats: Floats) -> None:
    """Write how large the largest node and rack are."""
    stats[LARGEST_NODE], stats[LARGEST_RACK] = 0.0, 0.0
    for node in range(len(cluster.rack)):
        stats[LARGEST_NODE] = max(stats[LARGEST_NODE], float(cluster.first[node + 1] - cluster.first[node]))
    for rack in range(len(cluster.begin) - 1):
        size = cluster.first[cluster.begin[rack + 1]] - cluster.first[cluster.begin[rack]]
        stats[LARGEST_RACK] = max(stats[LARGEST_RACK], float(size))


@lean
def write_rows(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, rule: Floats, k: int, rows: Singles2
) -> None:
    """Write the features of k candidates.

    Args:
        rule: weights of a formula, see `gangplan.simulator.gangs.formula`.
        rows: is written, float32 (k or more, len(CANDIDATE)).
    """
    look_ahead(jobs, cluster, state, s)
    blocked, need, shadow, spare = _blocked(jobs, cluster, state, s)
    least = np.inf
    for i in range(k):
        if s.place[i] != WAIT:
            least = min(least, effective(jobs, state.queue[s.place[i]], s.cost[i]))
    best = -1
    for i in range(k):
        if s.place[i] == WAIT:
            continue
        _candidate(jobs, cluster, state, s, i, k, least, blocked, need, shadow, spare, rows[i])
        if best < 0 and effective(jobs, state.queue[s.place[i]], s.cost[i]) == least:
            best = i
    if s.place[0] == WAIT:
        for j in range(len(CANDIDATE)):
            rows[0, j] = rows[best, j]
        rows[0, 0] = 1.0
    _by_rule(jobs, state, s, rule, k, rows)


@lean
def _by_rule(jobs: Jobs, state: State, s: CandidateScratch, rule: Floats, k: int, rows: Singles2) -> None:
    """Write scores of which the best is what the rule does: 0 for that one.

    To wait makes no sense where that one is done before anything else ends, so that it takes nothing from those who
    wait; and where it has the best place that there is while everybody else who waits fits, too.
    """
    least, s.most[AT_ONCE] = np.inf, 0
    for i in range(k):
        if _first(s, i) and not _hopes(jobs, state, s, rule, i):
            least = min(least, s.key[s.of[i]])
    late = False
    for i in range(k):
        rows[i, BY_RULE] = -1.0
        if s.place[i] == WAIT:
            continue
        job = state.queue[s.place[i]]
        over = min(max(s.key[s.of[i]] - least, 0.0), LONGEST)
        late = _hopes(jobs, state, s, rule, i) if _first(s, i) else late
        length = max(jobs.expected[job], 1e-9)
        rows[i, BY_RULE + 1] = log(length) - s.stats[TYPICAL]
        rows[i, BY_RULE + 2] = log1p((state.clock[NOW] - jobs.submit[job]) / length)
        rows[i, BY_RULE + 3] = min(max(_hope(jobs, state, s, rule, i), -FAR), FAR)
        if late:
            rows[i, BY_RULE] = -LATE - over
        else:
            rows[i, BY_RULE] = -over - (0.0 if _first(s, i) else 0.5)
            ends = jobs.expected[job] * (1 + jobs.intensity[job] * s.cost[i])
            best = s.most[HELD_UP] == 0 and s.cost[i] <= s.ideal[jobs.gpus[job]] + 1e-9
            if rows[i, BY_RULE] == 0 and (best or ends <= s.ends[0]):
                s.most[AT_ONCE] = 1


@lean
def _first(s: CandidateScratch, i: int) -> bool:
    """Return whether a candidate has the closest GPUs: of the places of a job these come first."""
    return bool(s.place[i] != WAIT and (i == 0 or s.place[i - 1] != s.place[i]))


@lean
def _hopes(jobs: Jobs, state: State, s: CandidateScratch, rule: Floats, i: int) -> bool:
    """Return whether the rule has a job wait for GPUs that are closer."""
    return bool(_hope(jobs, state, s, rule, i) > 0 and state.count[RUNNING] > 0)


@lean
def _hope(jobs: Jobs, state: State, s: CandidateScratch, rule: Floats, i: int) -> float:
    seen = s.stats[TYPICAL], s.stats[RUNS], s.stats[CROWD]
    return hope(jobs, state.queue[s.place[i]], s.cost[i], state.clock[NOW], seen, s.ideal, rule)


@lean
def effective(jobs: Jobs, job: int, cost: float) -> float:
    """Return the GPU seconds that a job would take, communication included."""
    return float(max(jobs.expected[job], 1e-9) * jobs.gpus[job] * (1 + jobs.intensity[job] * cost))


@lean
def look_ahead(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write which running jobs end soon, what is idle then, and when the last job of each node ends."""
    soon = len(s.ends)
    s.ends[:] = np.inf
    s.known[:] = np.nan
    s.last[:] = 0.0
    for i in range(state.count[RUNNING]):
        left, place = remaining(jobs, state, state.running[i]), soon
        while place > 0 and left < s.ends[place - 1]:
            place -= 1
        for at in range(soon - 1, place, -1):
            s.ends[at] = s.ends[at - 1]
        if place < soon:
            s.ends[place] = left
    s.idle[:, :] = 0
    for node in range(len(state.free)):
        s.idle[0, node] = state.free[node]
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        left, step = remaining(jobs, state, job), 0
        while step < soon and left > s.ends[step]:
            step += 1
        for row in range(jobs.first[job], jobs.first[job + 1]):
            node = cluster.node[state.held[row]]
            s.last[node] = max(s.last[node], left)
            if step < soon:
                s.idle[step + 1, node] += 1
    for step in range(soon):
        for node in range(len(state.free)):
            s.idle[step + 1, node] += s.idle[step, node]


@lean
def _cost_then(need: int, step: int, cluster: Cluster, s: CandidateScratch) -> float:
    """Return the cost for so many GPUs placed closest after so many ends."""
    at = step * len(s.ideal) + need
    if np.isnan(s.known[at]):
        fits = choose(CLOSEST, need, cluster, s.idle[step], s.free)
        s.known[at] = communication(cluster, s.free) if fits else np.inf
    return float(s.known[at])


@lean
def _blocked(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> tuple[float, int, float, int]:
    """Return of the job with the least work that does not fit: its work, its GPUs, when it will, and what is spare."""
    if s.most[HELD_UP] == 0:
        return np.inf, 0, np.inf, 0
    job = state.queue[s.blocked[0]]
    for i in range(1, s.most[HELD_UP]):
        other = state.queue[s.blocked[i]]
        if effective(jobs, other, s.ideal[jobs.gpus[other]]) < effective(jobs, job, s.ideal[jobs.gpus[job]]):
            job = other
    least, need = effective(jobs, job, s.ideal[jobs.gpus[job]]), jobs.gpus[job]
    for step in range(1, len(s.ends) + 1):
        then = total(s.idle[step])
        if then >= need:
            return least, need, s.ends[step - 1], then - need
    return least, need, np.inf, 0


@lean
def free_blocks(cluster: Cluster, free: Ints) -> tuple[int, int, int, int, int]:
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
def soon(seconds: float, unit: float) -> float:
    """Return the logarithm of a time from now, in mean lengths of a job, far ones cut."""
    return float(log1p(min(seconds / unit, 20.0)))


@lean
def _candidate(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: int, k: int,
    least: float, blocked: float, need: int, shadow: float, spare: int, out: Singles,
) -> None:  # fmt: skip
    """Write the features of one candidate that starts a job."""
    job, stats, unit = state.queue[s.place[i]], s.stats, s.stats[MEAN]
    gpus, length, intensity = jobs.gpus[job], max(jobs.expected[job], 1e-9), jobs.intensity[job]
    slower, own = 1 + intensity * s.cost[i], effective(jobs, job, s.cost[i])
    duration = length * slower
    gain, better_in = _gain(duration, length, intensity, gpus, cluster, s)
    rank, cheapest = 0, s.cost[i]
    for other in range(k):
        if s.place[other] == WAIT:
            continue
        rank += effective(jobs, state.queue[s.place[other]], s.cost[other]) < own
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
    out[19] = soon(better_in, unit)
    out[21] = min(max(log(own / blocked), -4.0), 4.0) if need > 0 else 0.0
    out[22] = soon(max(duration - shadow, 0.0) if need > 0 and gpus > spare else 0.0, unit)
    out[24] = s.place[i] / state.count[WAITING]
    out[25] = log(duration / unit)
    _place(jobs, cluster, state, s, i, duration, out)


@lean
def _gain(
    duration: float, length: float, intensity: float, gpus: int, cluster: Cluster, s: CandidateScratch
) -> tuple[float, float]:
    """Return how much earlier a job would end that waits for the best of the next ends, and when that is; seconds."""
    gain, better_in = 0.0, 0.0
    for step in range(1, len(s.ends) + 1):
        after = s.ends[step - 1]
        if after == np.inf:
            break
        then = after + length * (1 + intensity * _cost_then(gpus, step, cluster, s))
        if gain == 0.0 or duration - then > gain:
            gain, better_in = duration - then, after
    return gain, better_in


@lean
def _place(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: int, duration: float, out: Singles
) -> None:
    """Write the features of the GPUs that a candidate takes, and of what it leaves."""
    take, stats = s.take[i], s.stats
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
    idle_now, whole_now, _, _, _ = free_blocks(cluster, state.free)
    idle, whole, largest, rack, _ = free_blocks(cluster, s.free)
    fit, same = 0, 0
    for at in range(state.count[WAITING]):
        fit += jobs.gpus[state.queue[at]] <= idle
        same += jobs.gpus[state.queue[at]] == gpus
    out[10] = gpus / idle_now
    out[11] = idle / cluster.first[-1]
    out[12] = (whole_now - whole) / max(nodes, 1)
    out[13] = largest / stats[LARGEST_NODE]
    out[14] = rack / stats[LARGEST_RACK]
    out[15] = log(float(nodes))
    out[16] = log(float(racks))
    out[17] = left / (nodes * stats[LARGEST_NODE])
    out[20] = fit / state.count[WAITING]
    out[23] = min(max(apart / stats[MEAN], -3.0), 3.0)
    out[26] = log1p(same) / 3
