"""The graph of a decision: candidates, jobs that wait and run, nodes, racks and the cluster; equal ones are merged.

So that cost follows what differs: racks beyond `APART` are one node of the graph each kind, by how many of their nodes
and GPUs are idle, and so are cluster nodes beyond `APART` of a kind of rack with as many idle GPUs.
"""

from __future__ import annotations

from math import log, log1p

import numpy as np

from gangplan.simulator.gangs.arrays import NOW, RUNNING, WAITING, Cluster, Jobs, State
from gangplan.solvers.compiled.kernel import Floats, Ints, lean

from ..graph.compiled import Graph, room
from ..graph.schema import Schema
from .candidates import (
    BLOCKED,
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
    SURPRISE,
    WAIT,
    WORK,
    CandidateScratch,
    list_candidates,
    remaining,
)
from .features import CANDIDATE, effective, free_blocks, soon, write_rows

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
(
    STARTS, STARTED_BY, NODE_TAKEN, TAKES, RACK_TAKEN, HOLDS, IN_RACK, HAS_NODE, RACK_IN, RUN_IN, JOB_IN,
    CANDIDATE_IN, HAS_CANDIDATE, HAS_JOB,
) = range(14)  # fmt: skip
CANDIDATES, JOBS, RUNS, NODES, RACKS, WHOLE = range(6)

RUNS_SEEN = 64
"""Running jobs that are seen: the next to end."""
APART = 64
"""Racks up to which each is told apart, and nodes likewise."""
MANY_NODES, MANY_RACKS = 16, 1
"""Equal nodes and racks, as the network sees them, at most: as many as in training."""
STEPS = 8
"""Beyond `APART` racks are told apart by so many steps of their idle nodes, and of their idle GPUs elsewhere."""


def graph_room(cluster: Cluster, s: CandidateScratch) -> Graph:
    """Return room for the graph of a decision on a cluster."""
    a, jobs, m, racks = len(s.place), len(s.listed), len(cluster.rack), len(cluster.begin) - 1
    kinds = racks if racks <= APART else STEPS * STEPS
    nodes = m if m <= APART else min(m, kinds * (int(np.diff(cluster.first).max()) + 1))
    held = min(int(cluster.first[-1]), RUNS_SEEN * m)
    edges = 6 * a + 3 * (jobs + BLOCKED) + 2 * (nodes + kinds + RUNS_SEEN) + 3 * a * m + held
    return room(SCHEMA, a + jobs + BLOCKED + RUNS_SEEN + nodes + kinds + 1, edges)


@lean
def write_graph(
    jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, rule: Floats, runs: Ints, g: Graph
) -> int:
    """Write candidates and graph of a state, and return how many candidates there are.

    Args:
        rule: see `gangplan.learned.online.features.write_rows`.
        runs: room for `RUNS_SEEN` jobs, int64.
    """
    if state.count[WAITING] == 0:
        return 0
    k = list_candidates(jobs, cluster, state, s, rule)
    if k == 0:
        return 0
    g.x[:, :] = 0
    write_rows(jobs, cluster, state, s, rule, k, g.x)
    seen = min(state.count[RUNNING], len(runs))
    waiting = s.most[LISTED] + s.most[HELD_UP]
    racks, nodes = _tell_apart(cluster, state, s)
    g.kind[CANDIDATES] = 0
    g.kind[JOBS] = k
    g.kind[RUNS] = k + waiting
    g.kind[NODES] = g.kind[RUNS] + seen
    g.kind[RACKS] = g.kind[NODES] + nodes
    g.kind[WHOLE] = g.kind[RACKS] + racks
    g.kind[WHOLE + 1] = g.kind[WHOLE] + 1
    _next_to_end(jobs, state, runs[:seen])
    _jobs(jobs, state, s, g)
    _runs(jobs, cluster, state, s, runs[:seen], g)
    _places(cluster, state, s, nodes, racks, g)
    _cluster(jobs, cluster, state, s, g)
    _edges(jobs, cluster, state, s, k, runs[:seen], g)
    for i in range(g.kind[NODES], g.kind[RACKS]):
        g.x[i, 2] = min(g.x[i, 2], log1p(MANY_NODES) / 3)
    for i in range(g.kind[RACKS], g.kind[WHOLE]):
        g.x[i, 3] = min(g.x[i, 3], log1p(MANY_RACKS) / 3)
    return k


@lean
def _tell_apart(cluster: Cluster, state: State, s: CandidateScratch) -> tuple[int, int]:
    """Write the kind of each rack and node, and return how many of both there are."""
    racks, m = len(cluster.begin) - 1, len(cluster.rack)
    most = int(s.stats[LARGEST_NODE])
    kinds = racks
    if racks > APART:
        s.known[: STEPS * STEPS] = -1.0  # of use here before ends are looked at
        kinds = 0
        for rack in range(racks):
            whole, broken, size = 0, 0, 0
            for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
                full = cluster.first[node + 1] - cluster.first[node]
                size += full
                if state.free[node] == full:
                    whole += full
                else:
                    broken += state.free[node]
            at = _step(whole / max(size, 1)) * STEPS + _step(broken / max(size, 1))
            if s.known[at] < 0:
                s.known[at] = kinds
                kinds += 1
            s.group[rack] = int(s.known[at])
    else:
        for rack in range(racks):
            s.group[rack] = rack
    if m <= APART:
        for node in range(m):
            s.group[racks + node] = node
        return kinds, m
    s.known[: kinds * (most + 1)] = -1.0
    found = 0
    for node in range(m):
        at = s.group[cluster.rack[node]] * (most + 1) + state.free[node]
        if s.known[at] < 0:
            s.known[at] = found
            found += 1
        s.group[racks + node] = int(s.known[at])
    return kinds, found


@lean
def _step(share: float) -> int:
    """Return the step of a share: 0 for none, then by powers of 2 from under 1/64 to all."""
    if share <= 0:
        return 0
    return int(max(1.0, STEPS - 1 + np.floor(np.log2(share))))


@lean
def _next_to_end(jobs: Jobs, state: State, runs: Ints) -> None:
    """Write the running jobs that end next."""
    found = 0
    for i in range(state.count[RUNNING]):
        job = state.running[i]
        left, place = remaining(jobs, state, job), found
        if found == len(runs) and left >= remaining(jobs, state, runs[found - 1]):
            continue
        while place > 0 and left < remaining(jobs, state, runs[place - 1]):
            place -= 1
        found = min(found + 1, len(runs))
        for at in range(found - 1, place, -1):
            runs[at] = runs[at - 1]
        runs[place] = job


@lean
def _jobs(jobs: Jobs, state: State, s: CandidateScratch, g: Graph) -> None:
    stats, fit = s.stats, s.most[LISTED]
    first = np.inf
    for i in range(fit + s.most[HELD_UP]):
        first = min(first, s.key[i] if i < fit else s.least[i - fit])
    for i in range(fit + s.most[HELD_UP]):
        job = state.queue[s.listed[i] if i < fit else s.blocked[i - fit]]
        out, length, gpus = g.x[g.kind[JOBS] + i], max(jobs.expected[job], 1e-9), jobs.gpus[job]
        out[0] = 1.0 if i < fit else 0.0
        out[1] = log(length / stats[MEAN])
        out[2] = log(gpus / stats[LARGEST_NODE])
        out[3] = log(length * gpus / stats[WORK])
        out[4] = log(1 + jobs.intensity[job] * s.ideal[gpus])
        out[5] = log1p((state.clock[NOW] - jobs.submit[job]) / stats[MEAN])
        out[6] = min((s.key[i] if i < fit else s.least[i - fit]) - first, 6.0)


@lean
def _runs(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, runs: Ints, g: Graph) -> None:
    for i in range(len(runs)):
        job, out, nodes, last = runs[i], g.x[g.kind[RUNS] + i], 0, -1
        for row in range(jobs.first[job], jobs.first[job + 1]):
            node = cluster.node[state.held[row]]
            nodes += node != last
            last = node
        due = state.start[job] + jobs.expected[job] * (1 + jobs.intensity[job] * state.cost[job])
        out[0] = soon(remaining(jobs, state, job), s.stats[MEAN])
        out[1] = log(jobs.gpus[job] / s.stats[LARGEST_NODE])
        out[2] = log(float(nodes))
        out[3] = 1.0 if due <= state.clock[NOW] else 0.0


@lean
def _places(cluster: Cluster, state: State, s: CandidateScratch, nodes: int, racks: int, g: Graph) -> None:
    """Write the features of nodes and racks: sums over those that are merged, then means."""
    x, n, r = g.x, g.kind[NODES], g.kind[RACKS]
    count = len(cluster.begin) - 1
    for rack in range(count):
        idle, whole, largest, size, end = 0, 0, 0, 0, np.inf
        for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
            full, free = cluster.first[node + 1] - cluster.first[node], state.free[node]
            idle += free
            size += full
            whole += free == full
            largest = max(largest, free)
            if free < full:
                end = min(end, s.last[node])
            at = n + s.group[count + node]
            x[at, 0] += free / max(full, 1)
            x[at, 1] += full / s.stats[LARGEST_NODE]
            x[at, 2] += 1.0
            x[at, 3] += soon(s.last[node], s.stats[MEAN])
            x[at, 4] += free == full
        at = r + s.group[rack]
        x[at, 0] += idle / max(size, 1)
        x[at, 1] += whole / (cluster.begin[rack + 1] - cluster.begin[rack])
        x[at, 2] += largest / s.stats[LARGEST_NODE]
        x[at, 3] += 1.0
        x[at, 4] += soon(end, s.stats[MEAN]) if end < np.inf else 0.0
    for at in range(n, n + nodes):
        many = x[at, 2]
        for j in range(5):
            x[at, j] /= many
        x[at, 2] = log1p(many) / 3
    for at in range(r, r + racks):
        many = x[at, 3]
        for j in range(5):
            x[at, j] /= many
        x[at, 3] = log1p(many) / 3


@lean
def _cluster(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, g: Graph) -> None:
    stats, out = s.stats, g.x[g.kind[WHOLE]]
    gpus, unit = float(cluster.first[-1]), stats[MEAN]
    idle, whole, largest, rack, broken = free_blocks(cluster, state.free)
    work, left = 0.0, 0.0
    for at in range(state.count[WAITING]):
        job = state.queue[at]
        work += effective(jobs, job, s.ideal[jobs.gpus[job]])
    for i in range(state.count[RUNNING]):
        left += remaining(jobs, state, state.running[i]) * jobs.gpus[state.running[i]]
    out[0] = log1p(state.count[WAITING]) / 3
    out[1] = log1p(work / (gpus * unit))
    out[2] = idle / gpus
    out[3] = whole / len(cluster.rack)
    out[4] = largest / stats[LARGEST_NODE]
    out[5] = rack / stats[LARGEST_RACK]
    out[6] = broken / max(idle, 1)
    out[7] = soon(s.ends[0], unit)
    out[8] = soon(s.ends[2], unit)
    out[9] = min(stats[LOAD], 4.0)
    out[10] = log(stats[GPUS] / stats[LARGEST_NODE])
    out[11] = log1p(stats[SEEN]) / 5
    out[12] = stats[DEARNESS]
    out[13] = log1p(state.count[RUNNING]) / 3
    out[14] = log1p(left / (gpus * unit))
    out[15] = stats[DEVIATION]
    out[16] = stats[SURPRISE]
    out[17] = stats[CROWD]


@lean
def _edge(g: Graph, e: int, source: int, target: int, weight: float) -> int:
    """Write an edge, if there is room, and return the number of edges."""
    if e == len(g.source):
        return e
    g.source[e], g.target[e], g.weight[e] = source, target, weight
    return e + 1


@lean
def _edges(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, k: int, runs: Ints, g: Graph) -> None:
    """Write all edges, relation by relation."""
    e, job0, run0, rack0, whole = 0, g.kind[JOBS], g.kind[RUNS], g.kind[RACKS], g.kind[WHOLE]
    for relation in range(len(g.relation) - 1):
        g.relation[relation] = e
        if relation in (STARTS, STARTED_BY):
            for i in range(k):
                if s.place[i] != WAIT:
                    ends = (i, job0 + s.of[i]) if relation == STARTS else (job0 + s.of[i], i)
                    e = _edge(g, e, ends[0], ends[1], 0.5 if relation == STARTS else 1.0)
        elif relation in (NODE_TAKEN, TAKES, RACK_TAKEN):
            e = _taken(cluster, s, k, relation, g, e)
        elif relation == HOLDS:
            for i in range(len(runs)):
                e = _held(jobs, cluster, state, s, runs[i], run0 + i, g, e)
        elif relation in (IN_RACK, HAS_NODE):
            e = _inside(cluster, s, relation == IN_RACK, g, e)
        elif relation == RACK_IN:
            e = _joined(g, e, rack0, whole, True)
        elif relation == RUN_IN:
            e = _joined(g, e, run0, g.kind[NODES], True)
        elif relation in (JOB_IN, HAS_JOB):
            e = _joined(g, e, job0, run0, relation == JOB_IN)
        else:
            e = _joined(g, e, 0, k, relation == CANDIDATE_IN)
    g.relation[len(g.relation) - 1] = e


@lean
def _joined(g: Graph, e: int, low: int, high: int, up: bool) -> int:
    """Write the edges between nodes of the graph and the cluster, of which it hears the mean."""
    whole = g.kind[WHOLE]
    for i in range(low, high):
        e = _edge(g, e, i if up else whole, whole if up else i, 1.0 / (high - low) if up else 1.0)
    return e


@lean
def _taken(cluster: Cluster, s: CandidateScratch, k: int, relation: int, g: Graph, e: int) -> int:
    """Write the edges between candidates and the nodes, or racks, whose GPUs they take, by their shares."""
    racks, node0, rack0 = len(cluster.begin) - 1, g.kind[NODES], g.kind[RACKS]
    for i in range(k):
        gpus = 0
        for node in range(s.take.shape[1]):
            gpus += s.take[i, node]
        for rack in range(racks):
            there = 0
            for node in range(cluster.begin[rack], cluster.begin[rack + 1]):
                take = s.take[i, node]
                if take == 0:
                    continue
                there += take
                if relation == NODE_TAKEN:
                    e = _edge(g, e, node0 + s.group[racks + node], i, take / gpus)
                elif relation == TAKES:
                    full = cluster.first[node + 1] - cluster.first[node]
                    e = _edge(g, e, i, node0 + s.group[racks + node], take / (full * k))
            if relation == RACK_TAKEN and there > 0:
                e = _edge(g, e, rack0 + s.group[rack], i, there / gpus)
    return e


@lean
def _held(jobs: Jobs, cluster: Cluster, state: State, s: CandidateScratch, job: int, run: int, g: Graph, e: int) -> int:
    """Write the edges from a running job to its nodes, by the share of each that it holds."""
    racks, row, end = len(cluster.begin) - 1, jobs.first[job], jobs.first[job + 1]
    while row < end:
        node, held = cluster.node[state.held[row]], 0
        while row < end and cluster.node[state.held[row]] == node:
            held += 1
            row += 1
        at = g.kind[NODES] + s.group[racks + node]
        merged = max(np.expm1(3 * g.x[at, 2]), 1.0)
        e = _edge(g, e, run, at, held / ((cluster.first[node + 1] - cluster.first[node]) * merged))
    return e


@lean
def _inside(cluster: Cluster, s: CandidateScratch, up: bool, g: Graph, e: int) -> int:
    """Write the edges between nodes and racks, once for those that are merged."""
    racks, node0, rack0 = len(cluster.begin) - 1, g.kind[NODES], g.kind[RACKS]
    nodes = rack0 - node0
    s.known[:nodes] = -1.0
    for node in range(len(cluster.rack)):
        own = s.group[racks + node]
        if s.known[own] >= 0:
            continue
        rack = s.group[cluster.rack[node]]
        s.known[own] = rack
        if up:
            many = max(np.expm1(3 * g.x[rack0 + rack, 3]), 1.0)
            there = many * (cluster.begin[cluster.rack[node] + 1] - cluster.begin[cluster.rack[node]])
            e = _edge(g, e, node0 + own, rack0 + rack, np.expm1(3 * g.x[node0 + own, 2]) / there)
        else:
            e = _edge(g, e, rack0 + rack, node0 + own, 1.0)
    return e
