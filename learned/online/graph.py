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

from ..graph.compiled import Graph, room
from ..graph.schema import Schema
from .candidates import CandidateScratch
from .features import CANDIDATE

if not cython.compiled:
    from gangplan.simulator.gangs.arrays import NOW, RUNNING, Cluster, Jobs, State
    from gangplan.simulator.gangs.formula import Formula
    from gangplan.solvers.native import Float, Int

    from .candidates import (
        APART,
        CROWD,
        DEARNESS,
        DEVIATION,
        GPUS,
        HELD_UP,
        LARGEST_NODE,
        LARGEST_RACK,
        LISTED,
        LOAD,
        MEAN,
        SEEN,
        STEPS,
        SURPRISE,
        WAIT,
        WORK,
        list_candidates,
        remaining,
    )
    from .features import count_idle, effective, soon, write_rows

    (
        STARTS, STARTED_BY, NODE_TAKEN, TAKES, RACK_TAKEN, HOLDS, IN_RACK, HAS_NODE, RACK_IN, RUN_IN, JOB_IN,
        CANDIDATE_IN, HAS_CANDIDATE, HAS_JOB, RELATIONS,
    ) = range(15)  # fmt: skip
    CANDIDATES, JOBS, RUNS, NODES, RACKS, WHOLE = range(6)

    def log1pf(x: float) -> float:
        """Return the logarithm of 1 + x, as numbers of 32 bits."""
        return float(np.log1p(np.float32(x)))


SCHEMA = Schema(
    {
        "candidate": CANDIDATE,
        "job": ("fits", "length", "gpus", "work", "dearness", "waited", "key"),
        "run": ("left", "gpus", "nodes", "late"),
        "node": ("idle", "size", "count", "last", "whole"),
        "rack": ("idle", "whole", "largest", "count", "next"),
        "cluster": (
            *("waiting", "backlog", "idle", "whole", "largest", "rack", "broken", "next", "third", "load", "gpus"),
            *("seen", "dearness", "running", "left", "deviation", "surprise", "crowd"),
        ),
    },
    (
        ("candidate", "starts", "job"),
        ("job", "started_by", "candidate"),
        ("node", "taken_by", "candidate"),
        ("candidate", "takes", "node"),
        ("rack", "taken_by", "candidate"),
        ("run", "holds", "node"),
        ("node", "in", "rack"),
        ("rack", "has", "node"),
        ("rack", "in", "cluster"),
        ("run", "in", "cluster"),
        ("job", "in", "cluster"),
        ("candidate", "in", "cluster"),
        ("cluster", "has", "candidate"),
        ("cluster", "has", "job"),
    ),
    scored="candidate",
)
MOST_NODES = declare(Float, math.log1p(16) / 3)
MOST_RACKS = declare(Float, math.log1p(1) / 3)
"""Of equal nodes and racks, as the network sees them, at most: as many as in training."""
NEVER = declare(Float, float("inf"))


def graph_room(s: CandidateScratch) -> Graph:
    """Return room for the graph of a decision."""
    return room(SCHEMA, s.rows, s.edges)


def write_graph(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, f: Formula, g: Graph) -> Int:
    """Write candidates and graph of a state, and return how many candidates there are, none if there is no room."""
    k: Int = list_candidates(jobs, cluster, state, s, f) if s.waiting > 0 else 0
    if k == 0:
        return 0
    waiting: Int = s.most[LISTED] + s.most[HELD_UP]
    _tell_apart(cluster, state, s)
    _list_runs(jobs, state, s)
    g.kind[CANDIDATES], g.kind[JOBS], g.kind[RUNS] = 0, k, k + waiting
    g.kind[NODES] = g.kind[RUNS] + s.running
    g.kind[RACKS] = g.kind[NODES] + s.nodes
    g.kind[WHOLE] = g.kind[RACKS] + s.racks
    g.kind[WHOLE + 1] = g.kind[WHOLE] + 1
    for i in range(g.kind[WHOLE + 1]):
        for j in range(g.x.shape[1]):
            g.x[i, j] = 0.0
    write_rows(jobs, cluster, state, s, f, k, g)
    _write_jobs(jobs, state, s, g)
    _write_runs(jobs, cluster, state, s, g)
    _write_places(cluster, state, s, g)
    _write_cluster(jobs, cluster, state, s, g)
    _write_edges(jobs, cluster, state, s, k, g)
    for i in range(g.kind[NODES], g.kind[RACKS]):
        g.x[i, 2] = min(g.x[i, 2], MOST_NODES)
    for i in range(g.kind[RACKS], g.kind[WHOLE]):
        g.x[i, 3] = min(g.x[i, 3], MOST_RACKS)
    return k


def _tell_apart(cluster: Cluster, state: State, s: CandidateScratch) -> None:
    """Write the kind of each rack and node, and how many of both there are; `known` is of use for that before ends."""
    racks: Int = len(cluster.begin) - 1
    m: Int = len(cluster.rack)
    most: Int = 1
    at: Int
    s.racks, s.nodes = racks, m
    for rack in range(racks):
        s.group[rack] = rack
    for node in range(m):
        s.group[racks + node] = node
        most = max(most, cluster.first[node + 1] - cluster.first[node] + 1)
    if racks > APART:
        _forget(s, STEPS * STEPS)
        s.racks = 0
        for rack in range(racks):
            whole: Float = 0.0
            broken: Float = 0.0
            size: Float = 0.0
            for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
                full: Int = cluster.first[node + 1] - cluster.first[node]
                size += full
                if state.free[node] == full:
                    whole += full
                else:
                    broken += state.free[node]
            at = _step(whole / max(size, 1.0)) * STEPS + _step(broken / max(size, 1.0))
            if s.known[at] < 0.0:
                s.known[at] = s.racks
                s.racks += 1
            s.group[rack] = int(s.known[at])
    if m > APART:
        _forget(s, s.racks * most)
        s.nodes = 0
        for node in range(m):
            at = s.group[cluster.rack[node]] * most + state.free[node]
            if s.known[at] < 0.0:
                s.known[at] = s.nodes
                s.nodes += 1
            s.group[racks + node] = int(s.known[at])


def _forget(s: CandidateScratch, count: Int) -> None:
    for i in range(count):
        s.known[i] = -1.0


def _step(share: Float) -> Int:
    """Return the step of a share: 0 for none, then by powers of 2 from under 1/64 to all."""
    return int(max(1.0, STEPS - 1.0 + floor(log2(share)))) if share > 0.0 else 0


def _list_runs(jobs: Jobs, state: State, s: CandidateScratch) -> None:
    """Write the running jobs that end next."""
    most: Int = len(s.runs)
    s.running = 0
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        left: Float = remaining(jobs, state, job)
        place: Int = s.running
        if place == most and left >= remaining(jobs, state, s.runs[place - 1]):
            continue
        while place > 0 and left < remaining(jobs, state, s.runs[place - 1]):
            place -= 1
        s.running = min(s.running + 1, most)
        for at in range(s.running - 1, place, -1):
            s.runs[at] = s.runs[at - 1]
        s.runs[place] = job


def _write_jobs(jobs: Jobs, state: State, s: CandidateScratch, g: Graph) -> None:
    fit: Int = s.most[LISTED]
    unit: Float = s.stats[MEAN]
    first: Float = NEVER
    for i in range(fit + s.most[HELD_UP]):
        first = min(first, s.key[i] if i < fit else s.least[i - fit])
    for i in range(fit + s.most[HELD_UP]):
        job = s.queue[s.listed[i] if i < fit else s.blocked[i - fit]]
        row: Int = g.kind[JOBS] + i
        gpus = jobs.gpus[job]
        length: Float = max(jobs.expected[job], 1e-9)
        g.x[row, 0] = 1.0 if i < fit else 0.0
        g.x[row, 1] = log(length / unit)
        g.x[row, 2] = log(gpus / s.stats[LARGEST_NODE])
        g.x[row, 3] = log(length * gpus / s.stats[WORK])
        g.x[row, 4] = log(1.0 + jobs.intensity[job] * s.ideal[gpus])
        g.x[row, 5] = log1p((state.clock[NOW] - jobs.submit[job]) / unit)
        g.x[row, 6] = min((s.key[i] if i < fit else s.least[i - fit]) - first, 6.0)


def _write_runs(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph) -> None:
    for i in range(s.running):
        job = s.runs[i]
        row: Int = g.kind[RUNS] + i
        nodes: Float = 0.0
        last: Int = -1
        for at in range(jobs.first[job], jobs.first[job + 1]):
            if cluster.node[state.held[at]] != last:
                nodes += 1.0
            last = cluster.node[state.held[at]]
        due: Float = state.start[job] + jobs.expected[job] * (1.0 + jobs.intensity[job] * state.cost[job])
        g.x[row, 0] = soon(remaining(jobs, state, job), s.stats[MEAN])
        g.x[row, 1] = log(jobs.gpus[job] / s.stats[LARGEST_NODE])
        g.x[row, 2] = log(nodes)
        g.x[row, 3] = 1.0 if due <= state.clock[NOW] else 0.0


def _write_places(cluster: Cluster, state: State, s: CandidateScratch, g: Graph) -> None:
    """Write the features of nodes and racks: sums over those that are merged, then means."""
    count: Int = len(cluster.begin) - 1
    at: Int
    for rack in range(count):
        idle: Float = 0.0
        whole: Float = 0.0
        size: Float = 0.0
        largest: Int = 0
        end: Float = NEVER
        for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
            full: Float = cluster.first[node + 1] - cluster.first[node]
            free = state.free[node]
            idle += free
            size += full
            largest = max(largest, free)
            at = g.kind[NODES] + s.group[count + node]
            if free < full:
                end = min(end, s.last[node])
            elif free == full:
                whole += 1.0
                g.x[at, 4] += 1.0
            g.x[at, 0] += free / max(full, 1.0)
            g.x[at, 1] += full / s.stats[LARGEST_NODE]
            g.x[at, 2] += 1.0
            g.x[at, 3] += soon(s.last[node], s.stats[MEAN])
        at = g.kind[RACKS] + s.group[rack]
        g.x[at, 0] += idle / max(size, 1.0)
        g.x[at, 1] += whole / (cluster.begin[rack + 1] - cluster.begin[rack])
        g.x[at, 2] += largest / s.stats[LARGEST_NODE]
        g.x[at, 3] += 1.0
        g.x[at, 4] += soon(end, s.stats[MEAN]) if end < NEVER else 0.0
    _average(g, NODES, 2)
    _average(g, RACKS, 3)


def _average(g: Graph, kind: Int, of: Int) -> None:
    """Divide by the number of those that are merged, and let its logarithm stand in its place."""
    for at in range(g.kind[kind], g.kind[kind + 1]):
        many = g.x[at, of]
        for j in range(5):
            g.x[at, j] /= many
        g.x[at, of] = log1pf(many) / 3.0


def _write_cluster(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph) -> None:
    at: Int = g.kind[WHOLE]
    gpus: Float = len(cluster.node)
    unit: Float = s.stats[MEAN]
    work: Float = 0.0
    left: Float = 0.0
    count_idle(cluster, state.free, s)
    for i in range(s.waiting):
        work += effective(jobs, s.queue[i], s.ideal[jobs.gpus[s.queue[i]]])
    for i in range(state.count[RUNNING]):
        left += remaining(jobs, state, state.running[i]) * jobs.gpus[state.running[i]]
    g.x[at, 0] = log1p(s.waiting) / 3.0
    g.x[at, 1] = log1p(work / (gpus * unit))
    g.x[at, 2] = s.left / gpus
    g.x[at, 3] = 1.0 * s.whole / len(cluster.rack)
    g.x[at, 4] = s.largest / s.stats[LARGEST_NODE]
    g.x[at, 5] = s.best / s.stats[LARGEST_RACK]
    g.x[at, 6] = 1.0 * s.broken / max(s.left, 1)
    g.x[at, 7] = soon(s.ends[0], unit)
    g.x[at, 8] = soon(s.ends[2], unit)
    g.x[at, 9] = min(s.stats[LOAD], 4.0)
    g.x[at, 10] = log(s.stats[GPUS] / s.stats[LARGEST_NODE])
    g.x[at, 11] = log1p(s.stats[SEEN]) / 5.0
    g.x[at, 12] = s.stats[DEARNESS]
    g.x[at, 13] = log1p(state.count[RUNNING]) / 3.0
    g.x[at, 14] = log1p(left / (gpus * unit))
    g.x[at, 15] = s.stats[DEVIATION]
    g.x[at, 16] = s.stats[SURPRISE]
    g.x[at, 17] = s.stats[CROWD]


def _edge(g: Graph, e: Int, source: Int, target: Int, weight: Float) -> Int:
    """Write an edge, if there is room, and return the number of edges."""
    if e == len(g.source):
        return e
    g.source[e], g.target[e], g.weight[e] = source, target, weight
    return e + 1


def _write_edges(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, k: Int, g: Graph) -> None:
    """Write all edges, relation by relation."""
    e: Int = 0
    for relation in range(RELATIONS):
        g.relation[relation] = e
        if relation in (STARTS, STARTED_BY):
            for i in range(k):
                job: Int = g.kind[JOBS] + s.of[i]
                if s.place[i] != WAIT:
                    e = _edge(g, e, i, job, 0.5) if relation == STARTS else _edge(g, e, job, i, 1.0)
        elif relation in (NODE_TAKEN, TAKES, RACK_TAKEN):
            e = _join_taken(cluster, s, k, relation, g, e)
        elif relation == HOLDS:
            for i in range(s.running):
                e = _join_held(jobs, cluster, state, s, i, g, e)
        elif relation in (IN_RACK, HAS_NODE):
            e = _join_racks(cluster, s, relation == IN_RACK, g, e)
        elif relation == RACK_IN:
            e = _join_whole(g, e, RACKS, True)
        elif relation == RUN_IN:
            e = _join_whole(g, e, RUNS, True)
        elif relation in (JOB_IN, HAS_JOB):
            e = _join_whole(g, e, JOBS, relation == JOB_IN)
        else:
            e = _join_whole(g, e, CANDIDATES, relation == CANDIDATE_IN)
    g.relation[RELATIONS] = e


def _join_whole(g: Graph, e: Int, kind: Int, up: bint) -> Int:
    """Write the edges between the nodes of a kind and the cluster, of which it hears the mean."""
    whole: Int = g.kind[WHOLE]
    low: Int = g.kind[kind]
    high: Int = g.kind[kind + 1]
    for i in range(low, high):
        e = _edge(g, e, i, whole, 1.0 / (high - low)) if up else _edge(g, e, whole, i, 1.0)
    return e


def _join_taken(cluster: Cluster, s: CandidateScratch, k: Int, relation: Int, g: Graph, e: Int) -> Int:
    """Write the edges between candidates and the nodes, or racks, whose GPUs they take, by their shares."""
    racks: Int = len(cluster.begin) - 1
    for i in range(k):
        gpus: Float = 0.0
        for node in range(len(cluster.rack)):
            gpus += s.take[i, node]
        for rack in range(racks):
            there: Float = 0.0
            for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
                take: Float = s.take[i, node]
                if take == 0.0:
                    continue
                there += take
                at: Int = g.kind[NODES] + s.group[racks + node]
                if relation == NODE_TAKEN:
                    e = _edge(g, e, at, i, take / gpus)
                elif relation == TAKES:
                    e = _edge(g, e, i, at, take / ((cluster.first[node + 1] - cluster.first[node]) * k))
            if relation == RACK_TAKEN and there > 0.0:
                e = _edge(g, e, g.kind[RACKS] + s.group[rack], i, there / gpus)
    return e


def _join_held(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, run: Int, g: Graph, e: Int) -> Int:
    """Write the edges from a running job to its nodes, by the share of each that it holds."""
    racks: Int = len(cluster.begin) - 1
    row: Int = jobs.first[s.runs[run]]
    end: Int = jobs.first[s.runs[run] + 1]
    while row < end:
        node = cluster.node[state.held[row]]
        held: Float = 0.0
        while row < end and cluster.node[state.held[row]] == node:
            held += 1.0
            row += 1
        at: Int = g.kind[NODES] + s.group[racks + node]
        merged: Float = max(expm1(3.0 * g.x[at, 2]), 1.0)
        full: Float = cluster.first[node + 1] - cluster.first[node]
        e = _edge(g, e, g.kind[RUNS] + run, at, held / (full * merged))
    return e


def _join_racks(cluster: Cluster, s: CandidateScratch, up: bint, g: Graph, e: Int) -> Int:
    """Write the edges between nodes and racks, once for those that are merged."""
    racks: Int = len(cluster.begin) - 1
    _forget(s, s.nodes)
    for node in range(len(cluster.rack)):
        own = s.group[racks + node]
        if s.known[own] >= 0.0:
            continue
        rack = cluster.rack[node]
        s.known[own] = s.group[rack]
        at: Int = g.kind[RACKS] + s.group[rack]
        if up:
            many: Float = max(expm1(3.0 * g.x[at, 3]), 1.0)
            there: Float = many * (cluster.begin[rack + 1] - cluster.begin[rack])
            e = _edge(g, e, g.kind[NODES] + own, at, expm1(3.0 * g.x[g.kind[NODES] + own, 2]) / there)
        else:
            e = _edge(g, e, at, g.kind[NODES] + own, 1.0)
    return e
