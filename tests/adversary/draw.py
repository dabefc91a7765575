"""Tiny problems as an adversary likes them: badly scaled, degenerate, with memory and deadlines that just fit or do not."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from gangplan import Cluster, DeviceType
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.graph import OpGraph
from gangplan.instances.partition import LatencyProblem, PartitionProblem, StagesProblem, StepProblem, megatron
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.placement.job import COLLECTIVES
from gangplan.instances.placement.problem import GOALS as PLACED
from gangplan.instances.schedule import GOALS, MoldableJob, NodePool, Pool, ScheduleProblem

CASES = (
    *(("throughput", variant) for variant in ("contiguous", "convex", "free")),
    *(("latency", ""), ("step", ""), ("step", "contention"), ("stages", "")),
    *(("schedule", goal) for goal in GOALS),
    *(("placement", goal) for goal in PLACED),
)
"""Objectives, and what else tells their problems apart."""
EDGE = (1.0, 1 - 0.5e-9, 1 - 1e-9, 1 - 2e-9, 1 + 1e-9, 1 - 1e-6, 0.9)
"""Shares of what is needed that there is."""


def problem(objective: str, variant: str, seed: int) -> Any:
    """Draw a problem; one seed, one problem."""
    rng = np.random.default_rng([seed, CASES.index((objective, variant))])
    if objective == "schedule":
        return schedule(rng, variant)
    if objective == "placement":
        return placement(rng, variant)
    if objective == "stages":
        return stages(rng)
    graph = ops(rng, 3 if variant == "contention" else int(rng.integers(1, 5)), objective == "throughput")
    where = cluster(rng, graph, 2 if variant == "contention" else 3)
    if objective == "throughput":
        return PartitionProblem(graph, where, variant)
    if objective == "latency":
        return LatencyProblem(graph, where)
    return StepProblem(graph, where, contention=variant == "contention")


def amounts(rng: np.random.Generator, count: int, low: int = -12, high: int = 12) -> Any:
    """Return numbers of one size, of all sizes, all the same, or with zeros between."""
    style, size = rng.integers(6), 10.0 ** rng.integers(low, high + 1)
    if style == 0:
        return np.full(count, size)
    if style == 1:
        return rng.integers(0, 4, count) * size
    if style == 2:
        return rng.random(count) * 10.0 ** rng.integers(low, high + 1, count)
    if style == 3:
        return rng.choice([0.0, size, size * (1 + 2e-16), size * (1 + 1e-9), 10.0**high], count)
    return rng.uniform(0.1, 1.0, count) * size


def ops(rng: np.random.Generator, n: int, backward: bool = False) -> OpGraph:
    """Return a graph on types a, b and c; each op runs on one of them at least."""
    seconds = np.stack([amounts(rng, n) for _ in range(3)]) if rng.random() < 0.5 else np.tile(amounts(rng, n), (3, 1))
    if rng.random() < 0.3:
        seconds[rng.integers(3), rng.integers(n)] = np.inf
    pairs = [(u, v) for u, v in combinations(range(n), 2) if rng.random() < 0.5]
    source, target = zip(*pairs, strict=True) if pairs else ((), ())
    classes = rng.integers(-1, 2, n) if rng.random() < 0.3 else np.full(n, -1)
    back = np.arange(n) >= n - (int(rng.integers(0, 2)) if backward else 0)
    return OpGraph(
        tuple(f"o{i}" for i in range(n)), ("a", "b", "c"), seconds, amounts(rng, n, 0, 15), amounts(rng, n, 0, 12),
        amounts(rng, n, 0, 12), source, target, amounts(rng, len(pairs), -3, 15), classes, np.full(n, -1), back,
    )  # fmt: skip


def cluster(rng: np.random.Generator, graph: OpGraph, most: int) -> Cluster:
    """Return up to `most` devices of types of which one may have none and one be a host."""
    counts = [0, 0, 0]
    for _ in range(int(rng.integers(1, most + 1))):
        counts[int(rng.choice([0, 0, 1, 2]))] += 1
    needs = [float(graph.memory[list(some)].sum()) for k in range(1, graph.n_ops + 1)
             for some in combinations(range(graph.n_ops), k)]  # fmt: skip
    kinds = []
    for name in "abc":
        room = float(rng.choice(needs)) * float(rng.choice(EDGE)) - float(rng.choice([0.0, 0.0, 1.0]))
        limited = rng.random() < 0.5 and room > 0
        kinds.append(DeviceType(name, memory=room if limited else None, host=name == "c" and bool(rng.random() < 0.5)))
    bandwidth, latency = float(10.0 ** rng.choice([-3, 0, 9, 15, 300])), float(rng.choice([0.0, 0.0, 1e-12, 1e-6, 1e6]))
    used = [(kind, count) for kind, count in zip(kinds, counts, strict=True) if count or rng.random() < 0.5]
    return Cluster.flat(*used, bandwidth=bandwidth, latency=latency)


def stages(rng: np.random.Generator) -> StagesProblem:
    """Return a problem of two or three ops on one or two levels of two members."""
    graph = ops(rng, int(rng.integers(2, 4)), True)
    graph = OpGraph(**{f: getattr(graph, f) for f in graph.__slots__ if f not in ("time", "__weakref__")},
                    time=np.where(np.isfinite(graph.time), graph.time, 1.0))  # fmt: skip
    one = cluster(rng, graph, 1)
    deep = rng.random() < 0.4
    levels = tuple(Level(f"l{i}", float(10.0 ** rng.choice([-3, 0, 9, 300])), float(rng.choice([0, 1e-6])))
                   for i in range(1 + deep))  # fmt: skip
    fanout = (2, 2) if deep else (int(rng.integers(1, 4)),)
    tree = TreeTopology.regular(levels, fanout)
    kind = DeviceType("a", memory=one.device_types[0].memory)
    where = Cluster((kind,), np.zeros(tree.n_devices, dtype=int), tree)
    back = bool(graph.backward.any())
    return StagesProblem(
        graph, where, activations=bool(rng.random() < 0.8), recompute=back and bool(rng.random() < 0.3),
        stashing=bool(rng.random() < 0.5), memory_model=str(rng.choice(["1f1b", "pipedream", "none"])),
        menu=megatron(graph, "a", (1, 2)) if rng.random() < 0.4 and not deep else None,
    )  # fmt: skip


def schedule(rng: np.random.Generator, goal: str) -> ScheduleProblem:
    """Return up to three jobs on few GPUs, perhaps on Unix time, with deadlines that just hold or do not."""
    n, gpus = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    nodes = int(rng.integers(1, 3))
    capacity = Pool(gpus) if rng.random() < 0.7 else NodePool(nodes, max(1, gpus // nodes))
    base = float(rng.choice([0.0, 0.0, 1.7e9, 1.7e9 + 0.1, 1e-9]))
    low, high = (-9, 6) if base > 1 else (-12, 12)
    durations, value = amounts(rng, 2 * n, low, high).reshape(n, 2), amounts(rng, n)
    releases = base + rng.choice([0.0, 1.0], n) * amounts(rng, n, low, high)
    jobs = []
    for j in range(n):
        degrees = (int(rng.integers(1, gpus + 1)),) if rng.random() < 0.6 else (1, max(2, gpus))
        times = tuple(sorted(durations[j].tolist(), reverse=True))[: len(degrees)]
        ends = float(releases[j]) + float(np.sum(rng.choice(durations.ravel(), int(rng.integers(1, 3))))) + times[0]
        due = float(releases[j]) + (ends - float(releases[j])) * float(rng.choice(EDGE))
        optional = rng.random() < 0.4
        jobs.append(MoldableJob(
            f"j{j}", degrees, times, float(releases[j]), float(amounts(rng, 1)[0]),
            due if rng.random() < 0.4 else None, float(value[j]) if optional else None,
        ))  # fmt: skip
    horizon = base + float(durations.sum()) * float(rng.choice([0.5, 1 - 1e-9, 1.0])) if goal == "throughput" else None
    return ScheduleProblem(tuple(jobs), capacity, goal, horizon)


def placement(rng: np.random.Generator, goal: str) -> PlacementProblem:
    """Return up to three gangs on two nodes of two GPUs."""
    room = float(10.0 ** rng.integers(0, 13))
    fleet = Fleet.regular(
        racks=int(rng.integers(1, 3)), nodes=1, gpus=int(rng.integers(1, 3)), gpu_type="a", cpu=room * float(rng.choice(EDGE)),
        memory=room, link=float(10.0 ** rng.integers(-3, 13)), nic=float(10.0 ** rng.integers(-3, 13)),
    )  # fmt: skip
    grow = (lambda *shape: amounts(rng, int(np.prod(shape)), -6, 6).reshape(shape))
    speeds = SpeedModel(
        ("m", "n"), ("a",), grow(1, 2) + 1e-9, amounts(rng, 2, 0, 12), rng.choice([0.0, 0.5, 1.0], 2), grow(2, 2), grow(2, 2),
    )  # fmt: skip
    jobs = []
    for j in range(int(rng.integers(1, 4))):
        collective = str(rng.choice(COLLECTIVES)) if rng.random() < 0.5 else "ring"
        jobs.append(GangJob(
            f"j{j}", str(rng.choice(["m", "n"])), (1,) if rng.random() < 0.5 else (1, 2),
            Demand(float(rng.choice([0.5, 1.0, 1 / 3])), cpu=room * float(rng.choice([0.0, 1.0, 0.5, 1 / 3]))),
            collective, int(collective == "ps"), weight=float(amounts(rng, 1)[0]),
            value=float(amounts(rng, 1)[0]) if rng.random() < 0.5 else None,
            most_per_node=1 if rng.random() < 0.2 else None, whole_nodes=bool(rng.random() < 0.1),
        ))  # fmt: skip
    return PlacementProblem(fleet, tuple(jobs), speeds, goal=goal)
