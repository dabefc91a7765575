"""What the network sees of a candidate: numbers without a scale, so that lengths, sizes and queues may be others."""

from __future__ import annotations

import cython
from cython import bint, declare
from cython.cimports.libc.math import isnan, log, log1p, sqrt

if not cython.compiled:
    from gangplan.simulator.gangs.allocate import CLOSEST, choose
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, Cluster, Jobs, State
    from gangplan.simulator.gangs.formula import Formula, hope
    from gangplan.simulator.gangs.step import communication, total
    from gangplan.solvers.native import Float, Int, Ints

    from ..graph.compiled import Graph
    from .candidates import (
        AT_ONCE,
        DEARNESS,
        DEVIATION,
        GPUS,
        HELD_UP,
        LARGEST_NODE,
        LARGEST_RACK,
        LOAD,
        MEAN,
        SEEN,
        STATS,
        SURPRISE,
        TYPICAL,
        WAIT,
        WORK,
        CandidateScratch,
        remaining,
    )

    BY_RULE, FEATURES = 27, 31
    """The score that the network corrects, and how many features there are."""

CANDIDATE = (
    *("wait", "length", "gpus", "work", "slowdown", "over_ideal", "over_best", "over_least", "waited", "rank"),
    *("of_idle", "idle_after", "whole_taken", "node_after", "rack_after", "nodes", "racks", "left_over"),
    *("gain_by_waiting", "better_in", "fit_after", "over_blocked", "delays_blocked", "ends_apart", "submitted"),
    *("duration", "like_it", "by_rule", "of_typical", "age", "too_slow"),
)
"""Of a candidate: the job, what its GPUs cost, what they leave, what it would gain by waiting for others, and what the
rule says. To wait has those of the candidate with the least work that it keeps from starting."""
WINDOW = declare(Int, 256)
"""Jobs that arrived last, by which the others are judged."""
FAR = declare(Float, 3.0)
"""What is said at most of how much too slow a job is."""
LATE = declare(Float, 1.5)
"""What the rule's score of a job that is to wait is below that of the first."""
LONGEST = declare(Float, 10.0)
"""The most by which a score of the rule is below that of the first."""
FARTHEST = declare(Float, 20.0)
"""Mean lengths of a job from now, at most."""
SHORTEST = declare(Float, 1e-9)
"""Seconds that a job is expected to take at least."""
NEVER = declare(Float, float("inf"))
UNKNOWN = declare(Float, float("nan"))


def see(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write what the jobs that arrived last are like."""
    begin: Int = max(state.count[ARRIVED] - WINDOW, 0)
    n: Int = state.count[ARRIVED] - begin
    done: Int = 0
    square: Float = 0.0
    off: Float = 0.0
    for i in range(STATS):
        s.stats[i] = 0.0
    _size_up(cluster, s)
    if n == 0:
        return
    for job in range(begin, begin + n):
        length: Float = max(jobs.expected[job], SHORTEST)
        gpus: Float = jobs.gpus[job]
        scale: Float = log(length)
        s.stats[MEAN] += length / n
        s.stats[WORK] += length * gpus / n
        s.stats[GPUS] += gpus / n
        s.stats[DEVIATION] += scale / n
        square += scale * scale / n
        s.stats[DEARNESS] += log(1.0 + jobs.intensity[job] * s.ideal[jobs.gpus[job]]) / n
        if state.finish[job] <= state.clock[NOW]:
            done += 1
            scale = log(max(jobs.work[job], SHORTEST) / length)
            off += scale * scale
    s.stats[DEVIATION] = sqrt(max(square - s.stats[DEVIATION] * s.stats[DEVIATION], 0.0))
    s.stats[SEEN] = n
    s.stats[SURPRISE] = sqrt(off / (done + 4.0))
    passed: Float = max(state.clock[NOW] - jobs.submit[begin], s.stats[MEAN])
    s.stats[LOAD] = s.stats[WORK] * n / (passed * len(cluster.node))


def _size_up(cluster: Cluster, s: CandidateScratch) -> None:
    """Write how large the largest node and rack are."""
    for node in range(len(cluster.rack)):
        s.stats[LARGEST_NODE] = max(s.stats[LARGEST_NODE], cluster.first[node + 1] - cluster.first[node])
    for rack in range(len(cluster.begin) - 1):
        size: Float = cluster.first[cluster.begin[rack + 1]] - cluster.first[cluster.begin[rack]]
        s.stats[LARGEST_RACK] = max(s.stats[LARGEST_RACK], size)


def write_rows(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, f: Formula, k: Int, g: Graph) -> None:
    """Write the features of k candidates into the first nodes of the graph; `f`: the rule."""
    _look_ahead(jobs, cluster, state, s)
    _hold_up(jobs, s)
    count_idle(cluster, state.free, s)
    s.now, s.whole_now = s.left, s.whole
    least: Float = NEVER
    best: Int = -1
    for i in range(k):
        if s.place[i] != WAIT:
            s.work[i] = effective(jobs, s.queue[s.place[i]], s.cost[i])
            if best < 0 or s.work[i] < least:
                least, best = s.work[i], i
    for i in range(k):
        if s.place[i] != WAIT:
            _write_candidate(jobs, cluster, state, s, i, k, least, g)
    if s.place[0] == WAIT:
        for j in range(FEATURES):
            g.x[0, j] = g.x[best, j]
        g.x[0, 0] = 1.0
    _write_rule(jobs, state, s, f, k, g)


def _write_rule(jobs: Jobs, state: State, s: CandidateScratch, f: Formula, k: Int, g: Graph) -> None:
    """Write scores of which the best is what the rule does: 0 for that one.

    To wait makes no sense where that one is done before anything else ends, so that it takes nothing from those who
    wait; and where it has the best place that there is while everybody else who waits fits, too.
    """
    least: Float = NEVER
    now = state.clock[NOW]
    runs: bint = state.count[RUNNING] > 0
    for i in range(k):
        if _is_first(s, i) and not (runs and hope(jobs, s.queue[s.place[i]], s.cost[i], now, f) > 0.0):
            least = min(least, s.key[s.of[i]])
    late: bint = False
    s.most[AT_ONCE] = 0
    for i in range(k):
        g.x[i, BY_RULE] = -1.0
        if s.place[i] == WAIT:
            continue
        job = s.queue[s.place[i]]
        over: Float = min(max(s.key[s.of[i]] - least, 0.0), LONGEST)
        slow: Float = hope(jobs, job, s.cost[i], now, f)
        length: Float = max(jobs.expected[job], SHORTEST)
        first: bint = _is_first(s, i)
        if first:
            late = runs and slow > 0.0
        g.x[i, BY_RULE + 1] = log(length) - s.stats[TYPICAL]
        g.x[i, BY_RULE + 2] = log1p((now - jobs.submit[job]) / length)
        g.x[i, BY_RULE + 3] = min(max(slow, -FAR), FAR)
        if late:
            g.x[i, BY_RULE] = -LATE - over
            continue
        g.x[i, BY_RULE] = -over - (0.0 if first else 0.5)
        ends: Float = jobs.expected[job] * (1.0 + jobs.intensity[job] * s.cost[i])
        best: bint = s.most[HELD_UP] == 0 and s.cost[i] <= s.ideal[jobs.gpus[job]] + 1e-9
        if g.x[i, BY_RULE] == 0.0 and (best or ends <= s.ends[0]):
            s.most[AT_ONCE] = 1


def _is_first(s: CandidateScratch, i: Int) -> bool:
    """Return whether a candidate has the closest GPUs: of the places of a job these come first."""
    return s.place[i] != WAIT and (i == 0 or s.place[i - 1] != s.place[i])


def effective(jobs: Jobs, job: Int, cost: Float) -> Float:
    """Return the GPU seconds that a job would take, communication included."""
    return max(jobs.expected[job], SHORTEST) * jobs.gpus[job] * (1.0 + jobs.intensity[job] * cost)


def _list_ends(jobs: Jobs, state: State, s: CandidateScratch) -> None:
    """Write when the next of the running jobs are expected to end."""
    steps: Int = len(s.ends)
    for step in range(steps):
        s.ends[step] = NEVER
    for i in range(state.count[RUNNING]):
        left: Float = remaining(jobs, state, state.running[i])
        place: Int = steps
        while place > 0 and left < s.ends[place - 1]:
            place -= 1
        for at in range(steps - 1, place, -1):
            s.ends[at] = s.ends[at - 1]
        if place < steps:
            s.ends[place] = left


def _look_ahead(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write which running jobs end soon, what is idle then, and when the last job of each node ends."""
    steps: Int = len(s.ends)
    nodes: Int = len(cluster.rack)
    _list_ends(jobs, state, s)
    for i in range(len(s.known)):
        s.known[i] = UNKNOWN
    for node in range(nodes):
        s.last[node], s.idle[0, node] = 0.0, state.free[node]
        for step in range(steps):
            s.idle[step + 1, node] = 0
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        left: Float = remaining(jobs, state, job)
        after: Int = 0
        while after < steps and left > s.ends[after]:
            after += 1
        for row in range(jobs.first[job], jobs.first[job + 1]):
            node = cluster.node[state.held[row]]
            s.last[node] = max(s.last[node], left)
            if after < steps:
                s.idle[after + 1, node] += 1
    for step in range(steps):
        for node in range(nodes):
            s.idle[step + 1, node] += s.idle[step, node]


def _cost_then(need: Int, step: Int, cluster: Cluster, s: CandidateScratch) -> Float:
    """Return the cost for so many GPUs placed closest after so many ends."""
    at: Int = step * len(s.ideal) + need
    if isnan(s.known[at]):
        fits: bint = choose(CLOSEST, need, cluster, s.idle[step], s.free)
        s.known[at] = communication(cluster, s.free) if fits else NEVER
    return s.known[at]


def _hold_up(jobs: Jobs, s: CandidateScratch) -> None:
    """Note of the job with the least work that does not fit: its work, its GPUs, when it will, and what is spare."""
    s.held, s.need, s.shadow, s.spare = NEVER, 0, NEVER, 0
    for i in range(s.most[HELD_UP]):
        job = s.queue[s.blocked[i]]
        work: Float = effective(jobs, job, s.ideal[jobs.gpus[job]])
        if i == 0 or work < s.held:
            s.held, s.need = work, jobs.gpus[job]
    for step in range(len(s.ends) if s.most[HELD_UP] else 0):
        then: Int = total(s.idle[step + 1])
        if then >= s.need:
            s.shadow, s.spare = s.ends[step], then - s.need
            return


def count_idle(cluster: Cluster, free: Ints, s: CandidateScratch) -> None:
    """Note idle GPUs: all, wholly idle nodes, those of the best node and of the best rack, those of broken nodes."""
    s.left = s.whole = s.largest = s.best = s.broken = 0
    for rack in range(len(cluster.begin) - 1):
        there: Int = 0
        for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
            there += free[node]
            s.largest = max(s.largest, free[node])
            if free[node] == cluster.first[node + 1] - cluster.first[node]:
                s.whole += 1
            else:
                s.broken += free[node]
        s.left += there
        s.best = max(s.best, there)


def soon(seconds: Float, unit: Float) -> Float:
    """Return the logarithm of a time from now, in mean lengths of a job, far ones cut."""
    return log1p(min(seconds / unit, FARTHEST))


def _write_candidate(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: Int, k: Int, least: Float, g: Graph
) -> None:
    """Write the features of one candidate that starts a job."""
    job = s.queue[s.place[i]]
    gpus = jobs.gpus[job]
    unit = s.stats[MEAN]
    length: Float = max(jobs.expected[job], SHORTEST)
    intensity = jobs.intensity[job]
    slower: Float = 1.0 + intensity * s.cost[i]
    duration: Float = length * slower
    rank: Float = 0.0
    cheapest: Float = s.cost[i]
    for other in range(k):
        if s.place[other] == WAIT:
            continue
        if s.work[other] < s.work[i]:
            rank += 1.0
        if s.place[other] == s.place[i]:
            cheapest = min(cheapest, s.cost[other])
    _find_gain(duration, length, intensity, gpus, cluster, s)
    g.x[i, 0] = 0.0
    g.x[i, 1] = log(length / unit)
    g.x[i, 2] = log(gpus / s.stats[LARGEST_NODE])
    g.x[i, 3] = log(length * gpus / s.stats[WORK])
    g.x[i, 4] = log(slower)
    g.x[i, 5] = log(slower / (1.0 + intensity * s.ideal[gpus]))
    g.x[i, 6] = log(slower / (1.0 + intensity * cheapest))
    g.x[i, 7] = log(s.work[i] / least)
    g.x[i, 8] = log1p((state.clock[NOW] - jobs.submit[job]) / unit)
    g.x[i, 9] = rank / k
    g.x[i, 18] = max(s.gain / duration, -2.0)
    g.x[i, 19] = soon(s.better_in, unit)
    g.x[i, 21] = min(max(log(s.work[i] / s.held), -4.0), 4.0) if s.need > 0 else 0.0
    g.x[i, 22] = soon(max(duration - s.shadow, 0.0) if s.need > 0 and gpus > s.spare else 0.0, unit)
    g.x[i, 24] = 1.0 * s.place[i] / s.waiting
    g.x[i, 25] = log(duration / unit)
    _write_place(jobs, cluster, state, s, i, duration, g)


def _find_gain(
    duration: Float, length: Float, intensity: Float, gpus: Int, cluster: Cluster, s: CandidateScratch
) -> None:
    """Note how much earlier a job would end that waits for the best of the next ends, and when that is; seconds."""
    s.gain = s.better_in = 0.0
    for step in range(len(s.ends)):
        after: Float = s.ends[step]
        if after == NEVER:
            return
        then: Float = after + length * (1.0 + intensity * _cost_then(gpus, step + 1, cluster, s))
        if s.gain == 0.0 or duration - then > s.gain:
            s.gain, s.better_in = duration - then, after


def _write_place(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, i: Int, duration: Float, g: Graph
) -> None:
    """Write the features of the GPUs that a candidate takes, and of what it leaves."""
    gpus = jobs.gpus[s.queue[s.place[i]]]
    nodes: Float = 0.0
    racks: Float = 0.0
    left: Float = 0.0
    apart: Float = 0.0
    fit: Float = 0.0
    same: Float = 0.0
    last: Int = -1
    for node in range(len(cluster.rack)):
        s.free[node] = state.free[node] - s.take[i, node]
        if s.take[i, node] > 0:
            nodes += 1.0
            if cluster.rack[node] != last:
                racks += 1.0
            last = cluster.rack[node]
            left += s.free[node]
            apart += (s.last[node] - duration) * s.take[i, node] / gpus
    count_idle(cluster, s.free, s)
    for at in range(s.waiting):
        if jobs.gpus[s.queue[at]] <= s.left:
            fit += 1.0
        if jobs.gpus[s.queue[at]] == gpus:
            same += 1.0
    g.x[i, 10] = 1.0 * gpus / s.now
    g.x[i, 11] = 1.0 * s.left / len(cluster.node)
    g.x[i, 12] = (s.whole_now - s.whole) / max(nodes, 1.0)
    g.x[i, 13] = s.largest / s.stats[LARGEST_NODE]
    g.x[i, 14] = s.best / s.stats[LARGEST_RACK]
    g.x[i, 15] = log(nodes)
    g.x[i, 16] = log(racks)
    g.x[i, 17] = left / (nodes * s.stats[LARGEST_NODE])
    g.x[i, 20] = fit / s.waiting
    g.x[i, 23] = min(max(apart / s.stats[MEAN], -3.0), 3.0)
    g.x[i, 26] = log1p(same) / 3.0
