"""Tiny problems at nasty scales: amounts that lie far apart or are equal, limits met to a hair, devices to spare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, LatencyProblem, OpGraph, PartitionProblem, RampTopology, StepProblem
from gangplan.instances.schedule import GOALS, MoldableJob, NodePool, Pool, ScheduleProblem

from . import graphs, just_fits, stages_draw
from .placement import placements

PLACEMENTS = {"throughput": 700, "latency": 700, "step": 81, "placement": 10_000}
"""Of ops on devices, or of jobs on nodes, of which all are looked at."""
HAIRS = (1.0, 1.0, 1 + 5e-10, 1 - 5e-10, 1 + 2e-9, 1 - 2e-9, 1 / (1 + 1e-9) + 1e-12, 1 / (1 + 1e-9) - 1e-12)
"""Limits over what is to fit: met exactly, within the billionth that is allowed, and just beyond it."""


def draw(seed: int, objective: str) -> Any:
    """Return a problem of an objective."""
    rng = np.random.default_rng([seed, 29])
    if objective == "schedule":
        return _schedule(rng, seed)
    if objective == "stages":
        problem = stages_draw.draw(seed)
        return replace(problem, cluster=_cut(problem.cluster, rng))
    if objective == "placement":
        problem = _placement(rng, seed)
        while placements(problem) > PLACEMENTS[objective]:
            problem = _placement(rng, seed := seed + 1_000_000)
        return problem
    variant = graphs.VARIANTS[seed % 3] if objective == "throughput" else ""
    return graphs.varied(_graph(rng, objective, variant), objective, rng)


def _hair(value: float, rng: Any) -> float:
    """Return a limit that `value` is at, or near by a hair."""
    if rng.random() < 0.2:
        return float(np.nextafter(value, rng.choice([0.0, np.inf])))
    return value * float(rng.choice(HAIRS))


def _cut(cluster: Cluster, rng: Any) -> Cluster:
    """Return a cluster whose limits are a hair off."""
    kinds = [x if x.memory is None else replace(x, memory=_hair(x.memory, rng)) for x in cluster.device_types]
    return replace(cluster, device_types=tuple(kinds))


def _amounts(rng: Any, n: int) -> Any:
    style = rng.integers(6)
    if style == 0:
        return np.full(n, float(10.0 ** rng.integers(-9, 10)))
    if style == 1:
        return np.zeros(n)
    if style == 2:
        return 10.0 ** rng.uniform(-9, 9, n) * (rng.random(n) < 0.8)
    return graphs._amounts(rng, n, rng.choice(graphs._STYLES))


def _graph(rng: Any, objective: str, variant: str) -> Any:
    n = int(rng.integers(1, {"throughput": 7, "latency": 6, "step": 5}[objective]))
    fitting = [k for k in range(1, 8) if k**n <= PLACEMENTS[objective]]
    k = int(rng.choice(fitting[-3:] if rng.random() < 0.5 else fitting))
    types, hosts = ("gpu", "old", "cpu", "arm"), 2
    present = rng.choice(4, k, p=[0.4, 0.2, 0.2, 0.2]) if rng.random() < 0.7 else np.full(k, rng.integers(4))
    time = np.array([_amounts(rng, n) for _ in types])
    time[rng.random((4, n)) < rng.choice([0, 0, 0.2])] = np.inf
    time[0, ~np.isfinite(time).any(axis=0)] = 1.0
    memory = _amounts(rng, n)
    output = _amounts(rng, n) * rng.choice([0.0, 1.0, 1.0])
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.0, 0.3, 0.6, 1.0])
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=types,
        time=time,
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=output,
        source=u[kept],
        target=v[kept],
        edge_bytes=output[u[kept]],
        colocation=rng.integers(-1, max(1, n // 2), n) if rng.random() < 0.2 else np.full(n, -1),
    )
    groups = []
    for t, name in enumerate(types):
        limit = _hair(float(memory[rng.random(n) < rng.choice([0.3, 0.6, 1])].sum()), rng)
        kind = DeviceType(name, memory=limit if limit > 0 and rng.random() < 0.8 else None, host=t >= hosts)
        groups.append((kind, int((present == t).sum())))
    bandwidth = float(10.0 ** rng.choice([-9, -3, 0, 0, 0, 6, 12]))
    cluster = Cluster.flat(*groups, bandwidth=bandwidth, latency=float(rng.choice([0, 0, 0, 1e-9, 1e3])))
    if objective == "throughput":
        return PartitionProblem(graph, cluster, variant)
    if objective == "latency":
        return LatencyProblem(graph, cluster)
    return StepProblem(graph, cluster, contention=bool(rng.random() < 0.4))


def _placement(rng: Any, seed: int) -> Any:
    """Return a batch of `just_fits`, its nodes a hair off what they have, and more of them for a job alone."""
    problem = just_fits.labelled(seed)
    fleet = problem.fleet
    if len(problem.jobs) == 1 and rng.random() < 0.5:
        order = [*range(fleet.n_nodes), 0, 0]
        columns = {x: getattr(fleet, x)[order] for x in ("gpu_type", "gpus", "cpu", "memory", "link", "usable")}
        topology = replace(fleet.topology, group=fleet.topology.group[:, order])
        fleet = replace(
            fleet,
            names=tuple(f"n{i}" for i in range(len(order))),
            labelled=fleet.labelled[:, order],
            topology=topology,
            **columns,
        )
    hair = np.array([[_hair(1.0, rng) for _ in range(fleet.n_nodes)] for _ in range(3)])
    if rng.random() < 0.6:
        fleet = replace(fleet, cpu=fleet.cpu * hair[0], memory=fleet.memory * hair[1])
    if rng.random() < 0.3:
        level = fleet.topology.levels
        fleet = replace(
            fleet,
            topology=replace(
                fleet.topology, levels=(replace(level[0], bandwidth=level[0].bandwidth * 1e9), *level[1:])
            ),
        )
    jobs = problem.jobs
    if len(jobs) > 1 and rng.random() < 0.2:
        jobs = tuple(replace(jobs[0], name=x.name, apart=()) for x in jobs)
        return replace(problem, fleet=fleet, jobs=jobs, running=())
    return replace(problem, fleet=fleet, jobs=jobs)


def _schedule(rng: Any, seed: int) -> ScheduleProblem:
    """Return jobs of seconds that lie far apart on a clock of any origin, with deadlines that are met to a hair."""
    goal = GOALS[seed % len(GOALS)]
    zero = float(rng.choice([0.0, 0.0, 1.7e9, 1e12]))
    low = {0.0: -9, 1.7e9: -2, 1e12: 1}[zero]
    unit = 10.0 ** float(rng.integers(low, 10))
    wide = rng.random() < 0.4
    kind = rng.random()
    capacity: Any = Pool(int(rng.integers(1, 5)))
    if kind < 0.3:
        capacity = NodePool(int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    elif kind < 0.5:
        capacity = RampTopology(*[(2, 2, 1), (2, 1, 2), (3, 1, 2), (1, 3, 2)][int(rng.integers(4))])
    price = 10.0 ** float(rng.integers(-9, 10))
    jobs: list[MoldableJob] = []
    for i in range(int(rng.integers(1, 5 if isinstance(capacity, Pool) else 4))):
        if jobs and rng.random() < 0.15:
            jobs.append(replace(jobs[-1], name=f"j{i}"))
            continue
        own = 10.0 ** float(rng.integers(low, 10)) if wide else unit
        degrees = sorted({int(d) for d in rng.integers(1, 5, int(rng.integers(1, 4)))})
        seconds = [own * float(rng.choice([0.0, 1.0, 1.0, 2.0, 3.0, 0.1, 1 / 3])) for _ in degrees]
        release = zero + unit * float(rng.choice([0.0, 0.0, 1.0, 0.3, 2.0]))
        deadline = value = None
        if rng.random() < 0.45:
            window = float(rng.choice(seconds)) * float(rng.choice([1.0, 1.0, 2.0]))
            window += float(rng.choice([0.0, 0.0, sum(x.durations[0] for x in jobs)]))
            deadline = max(0.0, _hair(release + window, rng) if not zero else release + _hair(window, rng))
            deadline = 1e9 * unit + zero if rng.random() < 0.1 else deadline
        if rng.random() < 0.4:
            value = price * float(rng.integers(0, 5)) + (0.0 if rng.random() < 0.5 else zero * price)
        weight = float(rng.choice([1.0, 1.0, 2.0, 0.7, 0.0])) * float(rng.choice([1.0, 1.0, price]))
        jobs.append(MoldableJob(f"j{i}", tuple(degrees), tuple(seconds), release, weight, deadline, value))
    horizon = zero + _hair(unit * float(rng.choice([1.0, 3.0, 2.1])), rng) if goal == "throughput" else None
    return ScheduleProblem(tuple(jobs), capacity, goal, horizon)
