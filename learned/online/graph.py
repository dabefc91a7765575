"""The graph of a decision: candidates, jobs that wait and run, nodes, racks and the cluster; equal ones are merged.

So that cost follows what differs: racks beyond `APART` are one node of the graph each kind, by how many of their nodes
and GPUs are idle, and so are cluster nodes beyond `APART` of a kind of rack with as many idle GPUs.
"""

from __future__ import annotations

import math

import cython
import numpy as np
from cython import bint, declare
from cython.cimports.libc.math import expm1, floor, log, log1p, log2

if not cython.compiled:
    from gangplan.simulator.gangs.arrays import NOW, RUNNING
    from gangplan.simulator.gangs.formula import Formula
    from gangplan.solvers.native import Float, Int

    from .candidates import APART, STEPS, WAIT, CandidateScratch, list_candidates, remaining
    from .features import count_idle, effective, look_ahead, soon, write_rows

    (
        STARTS, STARTED_BY, NODE_TAKEN, TAKES, RACK_TAKEN, HOLDS, IN_RACK, HAS_NODE, RACK_IN, RUN_IN, JOB_IN,
        CANDIDATE_IN, HAS_CANDIDATE, HAS_JOB, RELATIONS,
    ) = range(15)  # fmt: skip
    CANDIDATES, JOBS, RUNS, NODES, RACKS, WHOLE = range(6)

    def log1pf(x: float) -> float:
        """Return the logarithm of 1 + x, as numbers of 32 bits."""
        return float(np.log1p(np.float32(x)))


MOST_NODES = declare(Float, math.log1p(16) / 3)
MOST_RACKS = declare(Float, math.log1p(1) / 3)
"""Of equal nodes and racks, as the network sees them, at most: as many as in training."""
NEVER = declare(Float, float("inf"))


def write_graph(s: CandidateScratch, f: Formula) -> Int:
    """Write candidates and graph of a state, and return how many candidates there are."""
    k = list_candidates(s, f)
    if k == 0:
        return 0
    _tell_apart(s)
    look_ahead(s)
    s.kind[CANDIDATES], s.kind[JOBS], s.kind[RUNS] = 0, k, k + s.fit + s.not_fit
    s.kind[NODES] = s.kind[RUNS] + s.running
    s.kind[RACKS] = s.kind[NODES] + s.nodes
    s.kind[WHOLE] = s.kind[RACKS] + s.racks
    s.kind[WHOLE + 1] = s.kind[WHOLE] + 1
    s.x[: s.kind[WHOLE + 1], :] = 0.0
    write_rows(s, f, k)
    _write_jobs(s)
    _write_runs(s)
    _write_places(s)
    _write_cluster(s, f)
    _write_edges(s, k)
    for i in range(s.kind[NODES], s.kind[RACKS]):
        s.x[i, 2] = min(s.x[i, 2], MOST_NODES)
    for i in range(s.kind[RACKS], s.kind[WHOLE]):
        s.x[i, 3] = min(s.x[i, 3], MOST_RACKS)
    return k


def _tell_apart(s: CandidateScratch) -> None:
    """Write the kind of each rack and node, and how many of both there are; `known` is of use for that before ends."""
    racks: Int = len(s.cluster.begin) - 1
    m, most = len(s.cluster.rack), 1
    at: Int
    s.racks, s.nodes = racks, m
    for rack in range(racks):
        s.group[rack] = rack
    for node in range(m):
        s.group[racks + node] = node
        most = max(most, s.cluster.first[node + 1] - s.cluster.first[node] + 1)
    if racks > APART:
        s.known[: STEPS * STEPS] = -1.0
        s.racks = 0
        for rack in range(racks):
            whole, broken, size = 0.0, 0.0, 0.0
            for node in range(s.cluster.begin[rack], s.cluster.begin[rack + 1]):
                full: Int = s.cluster.first[node + 1] - s.cluster.first[node]
                size += full
                if s.state.free[node] == full:
                    whole += full
                else:
                    broken += s.state.free[node]
            at = _step(whole / max(size, 1.0)) * STEPS + _step(broken / max(size, 1.0))
            if s.known[at] < 0.0:
                s.known[at] = s.racks
                s.racks += 1
            s.group[rack] = int(s.known[at])
    if m > APART:
        s.known[: s.racks * most] = -1.0
        s.nodes = 0
        for node in range(m):
            at = s.group[s.cluster.rack[node]] * most + s.state.free[node]
            if s.known[at] < 0.0:
                s.known[at] = s.nodes
                s.nodes += 1
            s.group[racks + node] = int(s.known[at])


def _step(share: Float) -> Int:
    """Return the step of a share: 0 for none, then by powers of 2 from under 1/64 to all."""
    return int(max(1.0, STEPS - 1.0 + floor(log2(share)))) if share > 0.0 else 0


def _write_jobs(s: CandidateScratch) -> None:
    fit, unit, first = s.fit, s.mean, NEVER
    for i in range(fit + s.not_fit):
        first = min(first, s.key[i] if i < fit else s.least[i - fit])
    for i in range(fit + s.not_fit):
        job = s.queue[s.listed[i] if i < fit else s.blocked[i - fit]]
        row, gpus = s.kind[JOBS] + i, s.jobs.gpus[job]
        length: Float = max(s.jobs.expected[job], 1e-9)
        s.x[row, 0] = 1.0 if i < fit else 0.0
        s.x[row, 1] = log(length / unit)
        s.x[row, 2] = log(gpus / s.node_size)
        s.x[row, 3] = log(length * gpus / s.mean_work)
        s.x[row, 4] = log(1.0 + s.jobs.intensity[job] * s.ideal[gpus])
        s.x[row, 5] = log1p((s.state.clock[NOW] - s.jobs.submit[job]) / unit)
        s.x[row, 6] = min((s.key[i] if i < fit else s.least[i - fit]) - first, 6.0)


def _write_runs(s: CandidateScratch) -> None:
    for i in range(s.running):
        job = s.runs[i]
        row, nodes, last = s.kind[RUNS] + i, 0.0, -1
        for at in range(s.jobs.first[job], s.jobs.first[job + 1]):
            if s.cluster.node[s.state.held[at]] != last:
                nodes += 1.0
            last = s.cluster.node[s.state.held[at]]
        due: Float = s.state.start[job] + s.jobs.expected[job] * (1.0 + s.jobs.intensity[job] * s.state.cost[job])
        s.x[row, 0] = soon(remaining(s.jobs, s.state, job), s.mean)
        s.x[row, 1] = log(s.jobs.gpus[job] / s.node_size)
        s.x[row, 2] = log(nodes)
        s.x[row, 3] = 1.0 if due <= s.state.clock[NOW] else 0.0


def _write_places(s: CandidateScratch) -> None:
    """Write the features of nodes and racks: sums over those that are merged, then means."""
    count: Int = len(s.cluster.begin) - 1
    at: Int
    for rack in range(count):
        idle, whole, size, end, largest = 0.0, 0.0, 0.0, NEVER, 0
        for node in range(s.cluster.begin[rack], s.cluster.begin[rack + 1]):
            full: Float = s.cluster.first[node + 1] - s.cluster.first[node]
            free = s.state.free[node]
            idle += free
            size += full
            largest = max(largest, free)
            at = s.kind[NODES] + s.group[count + node]
            if free < full:
                end = min(end, s.last[node])
            elif free == full:
                whole += 1.0
                s.x[at, 4] += 1.0
            s.x[at, 0] += free / max(full, 1.0)
            s.x[at, 1] += full / s.node_size
            s.x[at, 2] += 1.0
            s.x[at, 3] += soon(s.last[node], s.mean)
        at = s.kind[RACKS] + s.group[rack]
        s.x[at, 0] += idle / max(size, 1.0)
        s.x[at, 1] += whole / (s.cluster.begin[rack + 1] - s.cluster.begin[rack])
        s.x[at, 2] += largest / s.node_size
        s.x[at, 3] += 1.0
        s.x[at, 4] += soon(end, s.mean) if end < NEVER else 0.0
    _average(s, NODES, 2)
    _average(s, RACKS, 3)


def _average(s: CandidateScratch, kind: Int, of: Int) -> None:
    """Divide by the number of those that are merged, and let its logarithm stand in its place."""
    for at in range(s.kind[kind], s.kind[kind + 1]):
        many = s.x[at, of]
        for j in range(5):
            s.x[at, j] /= many
        s.x[at, of] = log1pf(many) / 3.0


def _write_cluster(s: CandidateScratch, f: Formula) -> None:
    at, unit, work, left = s.kind[WHOLE], s.mean, 0.0, 0.0
    gpus: Float = len(s.cluster.node)
    count_idle(s, s.state.free)
    for i in range(s.waiting):
        work += effective(s, s.queue[i], s.ideal[s.jobs.gpus[s.queue[i]]])
    for i in range(s.state.count[RUNNING]):
        left += remaining(s.jobs, s.state, s.state.running[i]) * s.jobs.gpus[s.state.running[i]]
    s.x[at, 0] = log1p(s.waiting) / 3.0
    s.x[at, 1] = log1p(work / (gpus * unit))
    s.x[at, 2] = s.left / gpus
    s.x[at, 3] = 1.0 * s.whole / len(s.cluster.rack)
    s.x[at, 4] = s.largest / s.node_size
    s.x[at, 5] = s.best / s.rack_size
    s.x[at, 6] = 1.0 * s.broken / max(s.left, 1)
    s.x[at, 7] = soon(s.ends[0], unit)
    s.x[at, 8] = soon(s.ends[2], unit)
    s.x[at, 9] = min(s.load, 4.0)
    s.x[at, 10] = log(s.mean_gpus / s.node_size)
    s.x[at, 11] = log1p(s.arrived) / 5.0
    s.x[at, 12] = s.dearness
    s.x[at, 13] = log1p(s.state.count[RUNNING]) / 3.0
    s.x[at, 14] = log1p(left / (gpus * unit))
    s.x[at, 15] = s.deviation
    s.x[at, 16] = s.surprise
    s.x[at, 17] = f.crowd


def _edge(s: CandidateScratch, e: Int, source: Int, target: Int, weight: Float) -> Int:
    """Write an edge, if there is room, and return the number of edges."""
    if e == len(s.source):
        return e
    s.source[e], s.target[e], s.weight[e] = source, target, weight
    return e + 1


def _write_edges(s: CandidateScratch, k: Int) -> None:
    """Write all edges, relation by relation."""
    e: Int = 0
    for relation in range(RELATIONS):
        s.relation[relation] = e
        if relation in (STARTS, STARTED_BY):
            for i in range(k):
                job: Int = s.kind[JOBS] + s.of[i]
                if s.place[i] != WAIT:
                    e = _edge(s, e, i, job, 0.5) if relation == STARTS else _edge(s, e, job, i, 1.0)
        elif relation in (NODE_TAKEN, TAKES, RACK_TAKEN):
            e = _join_taken(s, k, relation, e)
        elif relation == HOLDS:
            for i in range(s.running):
                e = _join_held(s, i, e)
        elif relation in (IN_RACK, HAS_NODE):
            e = _join_racks(s, relation == IN_RACK, e)
        elif relation == RACK_IN:
            e = _join_whole(s, e, RACKS, True)
        elif relation == RUN_IN:
            e = _join_whole(s, e, RUNS, True)
        elif relation in (JOB_IN, HAS_JOB):
            e = _join_whole(s, e, JOBS, relation == JOB_IN)
        else:
            e = _join_whole(s, e, CANDIDATES, relation == CANDIDATE_IN)
    s.relation[RELATIONS] = e


def _join_whole(s: CandidateScratch, e: Int, kind: Int, up: bint) -> Int:
    """Write the edges between the nodes of a kind and the cluster, of which it hears the mean."""
    low, high, whole = s.kind[kind], s.kind[kind + 1], s.kind[WHOLE]
    for i in range(low, high):
        e = _edge(s, e, i, whole, 1.0 / (high - low)) if up else _edge(s, e, whole, i, 1.0)
    return e


def _join_taken(s: CandidateScratch, k: Int, relation: Int, e: Int) -> Int:
    """Write the edges between candidates and the nodes, or racks, whose GPUs they take, by their shares."""
    racks: Int = len(s.cluster.begin) - 1
    for i in range(k):
        gpus: Float = 0.0
        for node in range(len(s.cluster.rack)):
            gpus += s.take[i, node]
        for rack in range(racks):
            there: Float = 0.0
            for node in range(s.cluster.begin[rack], s.cluster.begin[rack + 1]):
                take: Float = s.take[i, node]
                if take == 0.0:
                    continue
                there += take
                at: Int = s.kind[NODES] + s.group[racks + node]
                if relation == NODE_TAKEN:
                    e = _edge(s, e, at, i, take / gpus)
                elif relation == TAKES:
                    e = _edge(s, e, i, at, take / ((s.cluster.first[node + 1] - s.cluster.first[node]) * k))
            if relation == RACK_TAKEN and there > 0.0:
                e = _edge(s, e, s.kind[RACKS] + s.group[rack], i, there / gpus)
    return e


def _join_held(s: CandidateScratch, run: Int, e: Int) -> Int:
    """Write the edges from a running job to its nodes, by the share of each that it holds."""
    racks: Int = len(s.cluster.begin) - 1
    row, end = s.jobs.first[s.runs[run]], s.jobs.first[s.runs[run] + 1]
    while row < end:
        node = s.cluster.node[s.state.held[row]]
        held: Float = 0.0
        while row < end and s.cluster.node[s.state.held[row]] == node:
            held += 1.0
            row += 1
        at: Int = s.kind[NODES] + s.group[racks + node]
        merged: Float = max(expm1(3.0 * s.x[at, 2]), 1.0)
        full: Float = s.cluster.first[node + 1] - s.cluster.first[node]
        e = _edge(s, e, s.kind[RUNS] + run, at, held / (full * merged))
    return e


def _join_racks(s: CandidateScratch, up: bint, e: Int) -> Int:
    """Write the edges between nodes and racks, once for those that are merged."""
    racks: Int = len(s.cluster.begin) - 1
    s.known[: s.nodes] = -1.0
    for node in range(len(s.cluster.rack)):
        own = s.group[racks + node]
        if s.known[own] >= 0.0:
            continue
        rack, s.known[own] = s.cluster.rack[node], 0.0
        at: Int = s.kind[RACKS] + s.group[rack]
        if up:
            many: Float = max(expm1(3.0 * s.x[at, 3]), 1.0)
            there: Float = many * (s.cluster.begin[rack + 1] - s.cluster.begin[rack])
            e = _edge(s, e, s.kind[NODES] + own, at, expm1(3.0 * s.x[s.kind[NODES] + own, 2]) / there)
        else:
            e = _edge(s, e, at, s.kind[NODES] + own, 1.0)
    return e
