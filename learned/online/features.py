"""What the network sees of a candidate: numbers without a scale, so that lengths, sizes and queues may be others."""

from __future__ import annotations

import cython
from cython import bint, declare
from cython.cimports.libc.math import isnan, log, log1p, sqrt

if not cython.compiled:
    from gangplan.simulator.gangs.allocate import CLOSEST, choose
    from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING
    from gangplan.simulator.gangs.formula import Formula, hope
    from gangplan.simulator.gangs.step import communication, total
    from gangplan.solvers.native import Float, Int, Ints

    from .candidates import WAIT, CandidateScratch, remaining, sort_in

    BY_RULE, FEATURES = 27, 31
    """The score that the network corrects, and how many features there are."""

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


def see(s: CandidateScratch) -> None:
    """Write what the jobs that arrived last are like."""
    n, done, square, off = min(s.state.count[ARRIVED], WINDOW), 0.0, 0.0, 0.0
    begin: Int = s.state.count[ARRIVED] - n
    s.mean = s.mean_work = s.mean_gpus = s.deviation = s.load = s.dearness = s.surprise = s.unseen = 0.0
    s.arrived, s.node_size, s.rack_size = n, 0.0, 0.0
    for node in range(len(s.cluster.rack)):
        s.node_size = max(s.node_size, s.cluster.first[node + 1] - s.cluster.first[node])
    for rack in range(len(s.cluster.begin) - 1):
        size: Float = s.cluster.first[s.cluster.begin[rack + 1]] - s.cluster.first[s.cluster.begin[rack]]
        s.rack_size = max(s.rack_size, size)
    if n == 0:
        return
    for job in range(begin, begin + n):
        length: Float = max(s.jobs.expected[job], SHORTEST)
        scale: Float = log(length)
        s.mean += length / n
        s.mean_work += length * s.jobs.gpus[job] / n
        s.mean_gpus += 1.0 * s.jobs.gpus[job] / n
        s.deviation += scale / n
        square += scale * scale / n
        s.dearness += log(1.0 + s.jobs.intensity[job] * s.ideal[s.jobs.gpus[job]]) / n
        if s.state.finish[job] <= s.state.clock[NOW]:
            done += 1.0
            scale = log(max(s.jobs.work[job], SHORTEST) / length)
            off += scale * scale
    s.deviation = sqrt(max(square - s.deviation * s.deviation, 0.0))
    s.surprise = sqrt(off / (done + 4.0))
    passed: Float = max(s.state.clock[NOW] - s.jobs.submit[begin], s.mean)
    s.load = s.mean_work * n / (passed * len(s.cluster.node))


def write_rows(s: CandidateScratch, f: Formula, k: Int) -> None:
    """Write the features of k candidates into the first nodes of the graph; `f`: the rule."""
    _hold_up(s)
    count_idle(s, s.state.free)
    s.now, s.whole_now = s.left, s.whole
    least, best = NEVER, -1
    for i in range(k):
        if s.place[i] != WAIT:
            s.work[i] = effective(s, s.queue[s.place[i]], s.cost[i])
            if best < 0 or s.work[i] < least:
                least, best = s.work[i], i
    for i in range(k):
        if s.place[i] != WAIT:
            _write_candidate(s, i, k, least)
    if s.place[0] == WAIT:
        s.x[0, :FEATURES] = s.x[best, :FEATURES]
        s.x[0, 0] = 1.0
    _write_rule(s, f, k)


def _write_rule(s: CandidateScratch, f: Formula, k: Int) -> None:
    """Write scores of which the best is what the rule does: 0 for that one.

    To wait makes no sense where that one is done before anything else ends, so that it takes nothing from those who
    wait; and where it has the best place that there is while everybody else who waits fits, too.
    """
    least, now = NEVER, s.state.clock[NOW]
    runs: bint = s.state.count[RUNNING] > 0
    for i in range(k):
        if _is_first(s, i) and not (runs and hope(s.jobs, s.queue[s.place[i]], s.cost[i], now, f) > 0.0):
            least = min(least, s.key[s.of[i]])
    late: bint = False
    s.at_once = 0
    for i in range(k):
        s.x[i, BY_RULE] = -1.0
        if s.place[i] == WAIT:
            continue
        job = s.queue[s.place[i]]
        over: Float = min(max(s.key[s.of[i]] - least, 0.0), LONGEST)
        slow: Float = hope(s.jobs, job, s.cost[i], now, f)
        length: Float = max(s.jobs.expected[job], SHORTEST)
        first: bint = _is_first(s, i)
        if first:
            late = runs and slow > 0.0
        s.x[i, BY_RULE + 1] = log(length) - f.typical
        s.x[i, BY_RULE + 2] = log1p((now - s.jobs.submit[job]) / length)
        s.x[i, BY_RULE + 3] = min(max(slow, -FAR), FAR)
        if late:
            s.x[i, BY_RULE] = -LATE - over
            continue
        s.x[i, BY_RULE] = -over - (0.0 if first else 0.5)
        ends: Float = s.jobs.expected[job] * (1.0 + s.jobs.intensity[job] * s.cost[i])
        best: bint = s.not_fit == 0 and s.cost[i] <= s.ideal[s.jobs.gpus[job]] + 1e-9
        if s.x[i, BY_RULE] == 0.0 and (best or ends <= s.ends[0]):
            s.at_once = 1


def _is_first(s: CandidateScratch, i: Int) -> bool:
    """Return whether a candidate has the closest GPUs: of the places of a job these come first."""
    return s.place[i] != WAIT and (i == 0 or s.place[i - 1] != s.place[i])


def effective(s: CandidateScratch, job: Int, cost: Float) -> Float:
    """Return the GPU seconds that a job would take, communication included."""
    return max(s.jobs.expected[job], SHORTEST) * s.jobs.gpus[job] * (1.0 + s.jobs.intensity[job] * cost)


def look_ahead(s: CandidateScratch) -> None:
    """Write which running jobs end soon, what is idle then, and when the last job of each node ends."""
    steps, nodes = s.soon, len(s.cluster.rack)
    s.running = 0
    for i in range(s.state.count[RUNNING]):
        job = s.state.running[i]
        s.running = sort_in(s, job, remaining(s.jobs, s.state, job), s.runs, s.ends, s.running, True)
    s.ends[s.running :], s.known[:] = NEVER, UNKNOWN
    for node in range(nodes):
        s.last[node], s.idle[0, node] = 0.0, s.state.free[node]
        for step in range(steps):
            s.idle[step + 1, node] = 0
    for i in range(s.state.count[RUNNING]):
        job = s.state.running[i]
        left: Float = remaining(s.jobs, s.state, job)
        after: Int = 0
        while after < steps and left > s.ends[after]:
            after += 1
        for row in range(s.jobs.first[job], s.jobs.first[job + 1]):
            node = s.cluster.node[s.state.held[row]]
            s.last[node] = max(s.last[node], left)
            if after < steps:
                s.idle[after + 1, node] += 1
    for step in range(steps):
        for node in range(nodes):
            s.idle[step + 1, node] += s.idle[step, node]


def _hold_up(s: CandidateScratch) -> None:
    """Note of the job with the least work that does not fit: its work, its GPUs, when it will, and what is spare."""
    s.held, s.need, s.shadow, s.spare = NEVER, 0, NEVER, 0
    for i in range(s.not_fit):
        job = s.queue[s.blocked[i]]
        work: Float = effective(s, job, s.ideal[s.jobs.gpus[job]])
        if i == 0 or work < s.held:
            s.held, s.need = work, s.jobs.gpus[job]
    for step in range(s.soon if s.not_fit else 0):
        then: Int = total(s.idle[step + 1])
        if then >= s.need:
            s.shadow, s.spare = s.ends[step], then - s.need
            return


def count_idle(s: CandidateScratch, free: Ints) -> None:
    """Note idle GPUs: all, wholly idle nodes, those of the best node and of the best rack, those of broken nodes."""
    s.left = s.whole = s.largest = s.best = s.broken = 0
    for rack in range(len(s.cluster.begin) - 1):
        there: Int = 0
        for node in range(s.cluster.begin[rack], s.cluster.begin[rack + 1]):
            there += free[node]
            s.largest = max(s.largest, free[node])
            if free[node] == s.cluster.first[node + 1] - s.cluster.first[node]:
                s.whole += 1
            else:
                s.broken += free[node]
        s.left += there
        s.best = max(s.best, there)


def soon(seconds: Float, unit: Float) -> Float:
    """Return the logarithm of a time from now, in mean lengths of a job, far ones cut."""
    return log1p(min(seconds / unit, FARTHEST))


def _write_candidate(s: CandidateScratch, i: Int, k: Int, least: Float) -> None:
    """Write the features of one candidate that starts a job."""
    job = s.queue[s.place[i]]
    gpus, intensity, unit = s.jobs.gpus[job], s.jobs.intensity[job], s.mean
    length: Float = max(s.jobs.expected[job], SHORTEST)
    slower: Float = 1.0 + intensity * s.cost[i]
    duration: Float = length * slower
    rank, cheapest = 0.0, s.cost[i]
    for other in range(k):
        if s.place[other] == WAIT:
            continue
        if s.work[other] < s.work[i]:
            rank += 1.0
        if s.place[other] == s.place[i]:
            cheapest = min(cheapest, s.cost[other])
    _find_gain(s, duration, length, intensity, gpus)
    s.x[i, 0] = 0.0
    s.x[i, 1] = log(length / unit)
    s.x[i, 2] = log(gpus / s.node_size)
    s.x[i, 3] = log(length * gpus / s.mean_work)
    s.x[i, 4] = log(slower)
    s.x[i, 5] = log(slower / (1.0 + intensity * s.ideal[gpus]))
    s.x[i, 6] = log(slower / (1.0 + intensity * cheapest))
    s.x[i, 7] = log(s.work[i] / least)
    s.x[i, 8] = log1p((s.state.clock[NOW] - s.jobs.submit[job]) / unit)
    s.x[i, 9] = rank / k
    s.x[i, 18] = max(s.gain / duration, -2.0)
    s.x[i, 19] = soon(s.better_in, unit)
    s.x[i, 21] = min(max(log(s.work[i] / s.held), -4.0), 4.0) if s.need > 0 else 0.0
    s.x[i, 22] = soon(max(duration - s.shadow, 0.0) if s.need > 0 and gpus > s.spare else 0.0, unit)
    s.x[i, 24] = 1.0 * s.place[i] / s.waiting
    s.x[i, 25] = log(duration / unit)
    _write_place(s, i, duration)


def _find_gain(s: CandidateScratch, duration: Float, length: Float, intensity: Float, gpus: Int) -> None:
    """Note how much earlier a job would end that waits for the best of the next ends, and when that is; seconds."""
    s.gain = s.better_in = 0.0
    for step in range(min(s.soon, s.running)):
        after: Float = s.ends[step]
        at: Int = (step + 1) * len(s.ideal) + gpus
        if isnan(s.known[at]):
            fits: bint = choose(CLOSEST, gpus, s.cluster, s.idle[step + 1], s.free)
            s.known[at] = communication(s.cluster, s.free) if fits else NEVER
        then: Float = after + length * (1.0 + intensity * s.known[at])
        if s.gain == 0.0 or duration - then > s.gain:
            s.gain, s.better_in = duration - then, after


def _write_place(s: CandidateScratch, i: Int, duration: Float) -> None:
    """Write the features of the GPUs that a candidate takes, and of what it leaves."""
    gpus = s.jobs.gpus[s.queue[s.place[i]]]
    nodes, racks, left, fit, same, last = 0.0, 0.0, 0.0, 0.0, 0.0, -1
    apart: Float = 0.0
    for node in range(len(s.cluster.rack)):
        s.free[node] = s.state.free[node] - s.take[i, node]
        if s.take[i, node] > 0:
            nodes += 1.0
            if s.cluster.rack[node] != last:
                racks += 1.0
            last = s.cluster.rack[node]
            left += s.free[node]
            apart += (s.last[node] - duration) * s.take[i, node] / gpus
    count_idle(s, s.free)
    for at in range(s.waiting):
        if s.jobs.gpus[s.queue[at]] <= s.left:
            fit += 1.0
        if s.jobs.gpus[s.queue[at]] == gpus:
            same += 1.0
    s.x[i, 10] = 1.0 * gpus / s.now
    s.x[i, 11] = 1.0 * s.left / len(s.cluster.node)
    s.x[i, 12] = (s.whole_now - s.whole) / max(nodes, 1.0)
    s.x[i, 13] = s.largest / s.node_size
    s.x[i, 14] = s.best / s.rack_size
    s.x[i, 15] = log(nodes)
    s.x[i, 16] = log(racks)
    s.x[i, 17] = left / (nodes * s.node_size)
    s.x[i, 20] = fit / s.waiting
    s.x[i, 23] = min(max(apart / s.mean, -3.0), 3.0)
    s.x[i, 26] = log1p(same) / 3.0
