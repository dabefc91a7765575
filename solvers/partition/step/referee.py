"""The optimum of tiny problems by looking at every assignment, and such problems in which every constraint may bind."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, Level, RampTopology, StepProblem, Topology, TreeTopology
from gangplan.instances.arrays import IntArray
from gangplan.instances.partition import Links

from ..referee import assignments, classes, graph_of, runnable

MOST = 200_000
"""Placements worth looking at."""

_Task = tuple[float, tuple[int, ...], tuple[int, ...]]
"""Seconds, what it occupies, which tasks come before; an op that receives waits for its transfers."""


def optimum(problem: StepProblem) -> float | None:
    """Return the least makespan of any feasible plan in seconds, `None` if there is no feasible plan.

    Of each feasible placement all orders in which tasks start one after the other, each as early as devices and links
    allow: in the order of its starts, an optimal plan is one of them. It takes nothing from the solvers. More than
    `MOST` placements are refused.
    """
    best = np.inf
    for device in assignments(problem, MOST):
        best = _best_order(*_tasks(problem, device), best)
    return float(best) if np.isfinite(best) else None


def _tasks(problem: StepProblem, device: IntArray) -> tuple[list[_Task], list[dict[int, float]]]:
    """Return the tasks of a placement, ops first, and for each the delays after the tasks before it."""
    graph, cluster = problem.graph, problem.cluster
    seconds = problem.time()[cluster.type_of[device], np.arange(graph.n_ops)]
    before: list[dict[int, float]] = [{} for _ in range(graph.n_ops)]
    uses: list[tuple[int, ...]] = [(int(d),) for d in device]
    took = seconds.tolist()
    links, transfer = Links(cluster), dict[tuple[int, int], int]()
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        delay = float(problem.delay(np.array([u]), device[[u]], device[[v]])[0])
        if not problem.contention or delay == 0:
            before[v][u] = delay
            continue
        pair = u, int(device[v])
        if pair not in transfer:
            transfer[pair] = len(took)
            took.append(delay)
            uses.append(tuple(cluster.n_devices + x for x in links.route(int(device[u]), int(device[v]))))
            before.append({u: 0.0})
        before[v][transfer[pair]] = 0.0
    return [(took[i], uses[i], tuple(before[i])) for i in range(len(took))], before


def _best_order(tasks: list[_Task], delays: list[dict[int, float]], best: float) -> float:
    end: dict[int, float] = {}
    free: dict[int, float] = {}

    def extend(now: float, last: float) -> None:
        nonlocal best
        if len(end) == len(tasks):
            best = min(best, last)
            return
        for i, (took, uses, before) in enumerate(tasks):
            if i in end or not all(j in end for j in before):
                continue
            ready = max((end[j] + delays[i][j] for j in before), default=0.0)
            at = max([ready, *(free.get(x, 0.0) for x in uses)])
            if at < now or at + took >= best:
                continue
            kept = {x: free.get(x, 0.0) for x in uses}
            end[i] = at + took
            free.update(dict.fromkeys(uses, at + took))
            extend(at, max(last, at + took))
            del end[i]
            free.update(kept)

    extend(0.0, 0.0)
    return best


def random_problem(seed: int, variant: str = "", *, ops: int = 6, devices: int = 3) -> StepProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Devices of one or two types on a flat switch, a tree of two levels or a mesh; a third of the problems with
    contention, and these one op smaller; times from zero and equal to very different; outputs empty, free or dear; ops
    that a type cannot run; colocated ops or twins of a backward pass; memory from ample to too small, so some problems
    have no plan. `ops`, `devices`: at most.
    """
    rng = np.random.default_rng(seed)
    contention = bool(rng.random() < 1 / 3)
    ops -= contention and ops > 1
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.15, 0.4, 0.8])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    limit = float(memory.sum() * rng.choice([0.4, 0.7, 1.0, 2.0]))
    types = ("gpu", "old")
    time = np.round(np.exp(rng.normal(0.0, rng.choice([0.0, 1.0, 2.0]), (2, n))) * 4, int(rng.choice([0, 3])))
    time[:, rng.random(n) < rng.choice([0.0, 0.2])] = 0.0
    time = runnable(time, rng)
    made = classes(rng, n)
    graph = graph_of(types, time, memory, output, (u[kept], v[kept]), rng.choice([0.5, 1.0], int(kept.sum())), made)
    kinds = (DeviceType("gpu", memory=limit or None), DeviceType("old", memory=2 * limit or None))
    type_of: Any = rng.integers(0, 2, k) if rng.random() < 0.4 else np.zeros(k, dtype=np.int32)
    return StepProblem(graph, Cluster(kinds, type_of, _topology(rng, k)), contention)


def _topology(rng: np.random.Generator, k: int) -> Topology:
    style = rng.choice(["flat", "tree", "mesh"])
    if style == "mesh":
        return RampTopology(1, k, 1, channel_bandwidth=2.0, propagation=float(rng.choice([0.0, 0.5])), io_latency=0.0)
    near = Level("server", 2.0, float(rng.choice([0.0, 0.5])))
    if style == "flat":
        return TreeTopology((near,), np.zeros((1, k), dtype=np.int32))
    # now and then the rack is no slower than the server: nobody promises that delays grow with distance
    far = Level("rack", float(rng.choice([0.5, 1.0, 4.0])), float(rng.choice([0.0, 1.0])))
    group: Any = np.zeros((2, k), dtype=np.int32)
    group[0] = rng.integers(0, 2, k)
    return TreeTopology((near, far), group)
