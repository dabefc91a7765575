"""Problems, traces and clusters of extreme shapes: what is compiled writes within its arrays, and answers hold.

`./run test --all` runs all of them, and once more with the bounds of arrays checked (GANGPLAN_CHECKED).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gangplan.hybrid import solve
from gangplan.hybrid.table import named
from gangplan.instances import verify
from gangplan.instances.cluster import Cluster, DeviceType, Level, TreeTopology
from gangplan.instances.graph import OpGraph
from gangplan.instances.partition import LatencyProblem, PartitionProblem, StepProblem
from gangplan.instances.partition.stages import StagesProblem
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.instances.workload import Workload
from gangplan.scheduler import Scheduler
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.rounds import RoundJobs, RoundsCluster, simulate_rounds
from gangplan.simulator.trace import simulate
from gangplan.solvers import Run, Status
from gangplan.solvers.method import suite

Edges = list[tuple[int, int]]


def graph(ops: int, edges: Edges = [], types: int = 1, *, own: bool = False, classes: int = 0) -> OpGraph:  # noqa: B006
    """Return ops of a second each, which with `own` run on one type of device each, in `classes` of colocation."""
    time = np.ones((types, ops))
    if own:
        time[np.arange(types)[:, None] != np.arange(ops) % types] = np.inf
    source, target = np.array(edges, np.int32).reshape(-1, 2).T
    return OpGraph(
        tuple(f"o{i}" for i in range(ops)), tuple(f"t{i}" for i in range(types)), time, np.ones(ops), np.ones(ops),
        np.ones(ops), source.copy(), target.copy(), np.ones(len(source)),
        colocation=np.arange(ops, dtype=np.int32) % classes if classes else np.full(ops, -1, np.int32),
    )  # fmt: skip


def devices(count: int, types: int = 1) -> Cluster:
    """Return a flat cluster of so many devices of each type."""
    return Cluster.flat(*((DeviceType(f"t{i}"), count) for i in range(types)), bandwidth=1e3)


def chain(ops: int) -> Edges:
    """Return the edges of a chain."""
    return list(pairwise(range(ops)))


def star(ops: int) -> Edges:
    """Return edges from the first op to all others."""
    return [(0, i) for i in range(1, ops)]


GRAPHS: dict[str, Callable[[], tuple[OpGraph, Cluster]]] = {
    "one op, one device": lambda: (graph(1), devices(1)),
    "one op, many devices": lambda: (graph(1), devices(70)),
    "no edges": lambda: (graph(70), devices(3)),
    "star": lambda: (graph(70, star(70)), devices(2)),
    "70 types": lambda: (graph(70, chain(70), 70, own=True), devices(1, 70)),
    "large star": lambda: (graph(1_500, star(1_500)), devices(8)),
    "large star inwards": lambda: (graph(1_500, [(i, 1_499) for i in range(1_499)]), devices(8)),
    "long chain": lambda: (graph(3_000, chain(3_000)), devices(8)),
    "many without edges": lambda: (graph(3_000), devices(8)),
    "4,096 devices": lambda: (graph(40, chain(40)), devices(4_096)),
    "one class": lambda: (graph(300, chain(300), classes=1), devices(4)),
    "130 classes": lambda: (graph(300, classes=130), devices(4)),
    "dense": lambda: (graph(80, [(i, j) for j in range(80) for i in range(j)]), devices(5)),
}
FEW_GRAPHS = 5
"""Of these come first and are tried in CI."""


def batch(fleet: Fleet, *jobs: GangJob, goal: str = "slowdown", models: int = 1) -> PlacementProblem:
    """Return jobs to be placed, of so many models."""
    kinds = tuple(f"m{i}" for i in range(models))
    one, pairs = np.ones(models), np.full((models, models), 0.1)
    speeds = SpeedModel(kinds, fleet.gpu_types, np.ones((len(fleet.gpu_types), models)), one, 0.5 * one, pairs, pairs)
    return PlacementProblem(fleet, jobs, speeds, goal=goal)


def alike(count: int, need: Demand, *workers: int, **more: Any) -> list[GangJob]:
    """Return so many equal jobs."""
    return [GangJob(f"j{i}", "m0", workers or (1,), need, **more) for i in range(count)]


def mixed(kinds: int, gpus: int) -> Fleet:
    """Return a node of each of so many GPU types."""
    fleet = Fleet.regular(1, kinds, gpus)
    return replace(fleet, gpu_types=tuple(f"g{i}" for i in range(kinds)), gpu_type=np.arange(kinds, dtype=np.int32))


def labelled(nodes: int, labels: int) -> PlacementProblem:
    """Return jobs that ask for all labels, which each node has."""
    fleet, names = Fleet.regular(1, nodes, 8), tuple(f"l{i}" for i in range(labels))
    fleet = replace(fleet, labels=names, labelled=np.ones((labels, nodes), bool))
    return batch(fleet, *(replace(job, requires=names) for job in alike(10, Demand(1))))


TENTH, CORE = Demand(0.1), Demand(0, cpu=0.5)
PLACEMENTS: dict[str, Callable[[], PlacementProblem]] = {
    "one job, one GPU": lambda: batch(Fleet.regular(1, 1, 1), *alike(1, Demand(1))),
    "80 tenths of a GPU": lambda: batch(Fleet.regular(1, 1, 8), *alike(80, TENTH)),
    "130 jobs of half a core": lambda: batch(Fleet.regular(1, 1, 8), *alike(130, CORE)),
    "a rack of 72 as a node": lambda: batch(Fleet.regular(1, 1, 72), *alike(72, Demand(1)), goal="throughput"),
    "200 jobs on 3 nodes": lambda: batch(Fleet.regular(1, 3, 8), *alike(200, CORE)),
    "70 GPU types": lambda: batch(mixed(70, 1), *alike(70, Demand(1))),
    "tasks that share GPUs twice": lambda: batch(Fleet.regular(1, 1, 40), *alike(4, Demand(0.5), 20)),
    "10,000 jobs": lambda: batch(Fleet.regular(1, 1, 8), *alike(10_000, Demand(0, cpu=0.009))),
    "10,000 shares": lambda: batch(Fleet.regular(1, 1, 8), *alike(10_000, Demand(8 / 10_000))),
    "10,000 that need nothing": lambda: batch(Fleet.regular(1, 3, 8), *alike(10_000, Demand(0))),
    "1,000 fragments": lambda: batch(Fleet.regular(1, 2, 64), *alike(1_000, TENTH), goal="fragmentation"),
    "1,000 tenths apart": lambda: batch(Fleet.regular(1, 2, 64), *alike(1_000, TENTH), goal="communication"),
    "4,096 GPUs on a node": lambda: batch(Fleet.regular(1, 1, 4_096), *alike(3, Demand(1), 1_000)),
    "a gang of 600 nodes": lambda: batch(Fleet.regular(1, 600, 1), *alike(1, Demand(1), 600)),
    "100 parameter servers": lambda: batch(
        Fleet.regular(1, 4, 8), *alike(4, Demand(1), 8, servers=25, server=CORE, collective="ps")
    ),
    "300 labels": lambda: labelled(4, 300),
    "70 models": lambda: batch(
        Fleet.regular(1, 3, 64), *(replace(j, model=f"m{i % 70}") for i, j in enumerate(alike(180, Demand(1)))),
        models=70,
    ),
}  # fmt: skip
FEW_PLACEMENTS = 7


CROWDED = ("80 tenths of a GPU", "130 jobs of half a core", "a rack of 72 as a node", "10,000 jobs", "10,000 shares")
METHODS = ("auto", "first_fit", "best_fit", "pack", "topology", "local_search", "cpsat", "gnn", "milp", "plain_milp")


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", CROWDED)
def test_every_method_places_a_crowd(shape: str, method: str) -> None:
    """Whatever method is asked for, thousands of jobs on a node get a plan."""
    assert solve(PLACEMENTS[shape](), 10.0, method=method).status in (Status.FEASIBLE, Status.OPTIMAL)


def tasks(count: int, *degrees: int) -> tuple[MoldableJob, ...]:
    """Return jobs of a second for each GPU fewer than 4,097."""
    lasts = tuple(float(4_097 - d) for d in degrees)
    return tuple(MoldableJob(f"j{i}", degrees, lasts) for i in range(count))


SCHEDULES: dict[str, Callable[[], ScheduleProblem]] = {
    "one job, one GPU": lambda: ScheduleProblem(tasks(1, 1), Pool(1)),
    "130 jobs, one GPU": lambda: ScheduleProblem(tasks(130, 1), Pool(1)),
    "one node of 4,096": lambda: ScheduleProblem(tasks(5, 1, 4_096), NodePool(1, 4_096)),
    "300 degrees": lambda: ScheduleProblem(tasks(6, *range(1, 301)), NodePool(40, 8)),
    "2,000 jobs": lambda: ScheduleProblem(tasks(2_000, 1, 2), NodePool(10, 8), goal="makespan"),
    "the whole of 500 nodes": lambda: ScheduleProblem(tasks(5, 500, 4_000), NodePool(500, 8)),
}
FEW_SCHEDULES = 3


def of_graph(objective: str, shape: str) -> Any:
    """Return a problem of an objective, `None` where it takes no such shape."""
    made, cluster = GRAPHS[shape]()
    if objective == "stages":
        if len(cluster.device_types) > 1:
            return None
        level = TreeTopology((Level("server", 1e3),), np.zeros((1, cluster.n_devices), np.int32))
        return StagesProblem(made, replace(cluster, topology=level))
    if objective in ("contiguous", "free"):
        return PartitionProblem(made, cluster, variant=objective)
    return {"latency": LatencyProblem, "step": StepProblem}[objective](made, cluster)


def work_through(problem: Any, seconds: float) -> None:
    """Have each search search in this process for so long; what it offers holds."""
    tools = suite(problem.objective)
    for name, method in named(problem.objective).items():
        if method.exact or method.library:
            continue
        run = Run(problem, time_limit=60.0)
        prepared = tools.prepare(run)
        if run.infeasible or not method.suits(prepared):
            continue
        run.deadline = run.started + run.seconds() + seconds
        method.run(run, prepared)
        if run.plan is not None:
            assert not verify(problem, run.plan).violations, name


OBJECTIVES = ("contiguous", "free", "latency", "step", "stages")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_graphs(objective: str) -> None:
    """Graphs with one or none of something, and with more kinds of something than a word has bits."""
    for shape in list(GRAPHS)[:FEW_GRAPHS]:
        if (problem := of_graph(objective, shape)) is not None:
            work_through(problem, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("shape", GRAPHS)
def test_large_graphs(objective: str, shape: str) -> None:
    """Thousands of ops, of neighbours and of devices."""
    if (problem := of_graph(objective, shape)) is not None:
        work_through(problem, 3.0)


def test_placements() -> None:
    """More jobs on a node, and more kinds of things, than a word has bits."""
    for shape in list(PLACEMENTS)[:FEW_PLACEMENTS]:
        work_through(PLACEMENTS[shape](), 0.1)


@pytest.mark.long
@pytest.mark.parametrize("shape", PLACEMENTS)
def test_large_placements(shape: str) -> None:
    """Thousands of jobs and GPUs on a node."""
    work_through(PLACEMENTS[shape](), 5.0)


def test_schedules() -> None:
    """One of everything, more jobs than a word has bits, and one large node."""
    for shape in list(SCHEDULES)[:FEW_SCHEDULES]:
        work_through(SCHEDULES[shape](), 0.1)


@pytest.mark.long
@pytest.mark.parametrize("shape", SCHEDULES)
def test_large_schedules(shape: str) -> None:
    """Thousands of jobs and GPUs, and hundreds of degrees."""
    work_through(SCHEDULES[shape](), 4.0)


def trace(jobs: int, gpus: int) -> Workload:
    """Return equal jobs that come at once."""
    names = tuple(map(str, range(jobs)))
    return Workload(names, np.zeros(jobs), np.full(jobs, gpus), np.full(jobs, 10.0))


@pytest.mark.parametrize(("jobs", "gpus", "nodes", "each"), [
    (1, 1, 1, 1), (80, 1, 1, 4_096), (3, 4_096, 1, 4_096), (70, 8, 70, 1),
    pytest.param(10_000, 1, 1, 10_000, marks=pytest.mark.long),
    pytest.param(200, 4_096, 512, 8, marks=pytest.mark.long),
])  # fmt: skip
def test_traces(jobs: int, gpus: int, nodes: int, each: int) -> None:
    """The simulators run one job, thousands on a node, and gangs of all of a cluster."""
    work = trace(jobs, gpus)
    for discipline in ("head", "overtake", "easy"):
        for consolidate in (False, True):
            end = simulate(work, nodes, each, discipline=discipline, consolidate=consolidate)
            assert np.isfinite(end.finish).all()
    for policy in ("fifo", "srtf", "tiresias", "drf", "gandiva"):
        end = simulate_named(work, nodes, each, policy, discipline="conservative" if policy == "fifo" else "head")
        assert np.isfinite(end.finish).all()


@pytest.mark.parametrize(
    ("types", "each", "jobs"), [(1, 1, 1), (70, 1, 70), pytest.param(70, 64, 500, marks=pytest.mark.long)]
)
def test_rounds(types: int, each: int, jobs: int) -> None:
    """Leases on 70 types of GPUs."""
    cluster = RoundsCluster(tuple(f"t{i}" for i in range(types)), (each,) * types)
    work = RoundJobs(
        tuple(f"j{i}" for i in range(jobs)), np.full(jobs, each, np.int32), np.full(jobs, 100), np.ones((jobs, types)),
        np.ones(jobs), np.zeros(jobs),
    )  # fmt: skip
    for policy in ("fifo", "max_min_fairness"):
        assert np.isfinite(simulate_rounds(work, cluster, policy).finish).all()


CLUSTERS: dict[str, Callable[[], tuple[Fleet, list[GangJob]]]] = {
    "one of everything": lambda: (Fleet.regular(1, 1, 1), alike(1, Demand(1))),
    "75 tasks a node": lambda: (Fleet.regular(1, 2, 8), alike(150, Demand(0, cpu=0.1))),
    "4,096 GPUs a node": lambda: (Fleet.regular(1, 2, 4_096), alike(90, Demand(1), 64)),
    "70 GPU types": lambda: (mixed(70, 2), alike(90, Demand(1), 1, 2)),
    "1,000 tasks a node": lambda: (Fleet.regular(1, 1, 8), alike(1_000, Demand(0, cpu=0.05))),
    "1,000 nodes": lambda: (Fleet.regular(100, 10, 8), alike(300, Demand(1), 9)),
}
FEW_CLUSTERS = 4


def decide(shape: str, policy: str) -> None:
    """Start what fits, in two rounds between which half of it ends."""
    fleet, jobs = CLUSTERS[shape]()
    scheduler = Scheduler(fleet, policy)
    for job in jobs:
        scheduler.submit(job, 100.0)
    started = [start.job for start in scheduler.decide(20.0).starts]
    for name in started[::2]:
        scheduler.finish(name, now=50.0)
    assert started and scheduler.decide(20.0, now=51.0) is not None


@pytest.mark.parametrize("shape", list(CLUSTERS)[:FEW_CLUSTERS])
def test_clusters(shape: str) -> None:
    """The scheduler on many tasks of a node, large nodes, and many GPU types."""
    decide(shape, "hybrid")


@pytest.mark.long
@pytest.mark.parametrize("policy", ["hybrid", "gnn"])
@pytest.mark.parametrize("shape", CLUSTERS)
def test_large_clusters(shape: str, policy: str) -> None:
    """The same with thousands of them, and with the network, which places no tasks without GPUs."""
    if policy == "hybrid" or "tasks" not in shape:
        decide(shape, policy)
