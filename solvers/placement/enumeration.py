"""Tiny problems, and their optimum by looking at every placement: slow, simple, a referee for all that is clever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from gangplan.instances import InstanceError, Level, TreeTopology
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementPlan,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.placement.rate import GIGABYTE, rates
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.placement import goal

MOST = 300_000
"""Combinations of where each job may be that are worth looking at."""
Where = tuple[tuple[int, int], ...]
"""(workers, servers) on each node."""


@lru_cache(maxsize=64)
def optimum(problem: PlacementProblem) -> float | None:
    """Return the least goal of any feasible placement, `None` if there is none.

    It takes nothing from the solvers: every way to spread each gang over the nodes, every way to pack shares on
    GPUs, the goal by the cost model of the verifier. More than `MOST` combinations are refused.
    """
    options = [_places(problem, j) for j in range(len(problem.jobs))]
    count = np.prod([float(len(x)) for x in options])
    if count > MOST:
        raise InstanceError("instance", f"{count:.3g} ways to place the jobs are more than {MOST}")
    best: float | None = None
    for places in product(*options):
        if not _together(problem, places):
            continue
        for plan in _plans(problem, places):
            value = goal(problem, plan, rates(problem, plan))
            best = value if best is None else min(best, value)
    return best


def _places(problem: PlacementProblem, j: int) -> list[Where]:
    fleet, job = problem.fleet, problem.jobs[j]
    index = {name: i for i, name in enumerate(fleet.names)}
    for run in problem.running:
        if run.job == job.name and not run.movable:
            fixed = [(0, 0)] * fleet.n_nodes
            for node, w, p in zip(run.nodes, run.workers, run.servers, strict=True):
                fixed[index[node]] = (w, p)
            return [tuple(fixed)] if _own(problem, j, tuple(fixed)) else []
    found: list[Where] = [tuple([(0, 0)] * fleet.n_nodes)] if job.value is not None else []
    for degree in job.workers:
        for workers, servers in product(_shares(degree, fleet.n_nodes), _shares(job.servers, fleet.n_nodes)):
            where = tuple(zip(workers, servers, strict=True))
            if _own(problem, j, where):
                found.append(where)
    return found


def _shares(total: int, nodes: int) -> Iterator[tuple[int, ...]]:
    if nodes == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _shares(total - first, nodes - 1):
            yield (first, *rest)


def _own(problem: PlacementProblem, j: int, where: Where) -> bool:
    fleet, job = problem.fleet, problem.jobs[j]
    seconds = problem.compute()[j]
    labels = [fleet.labels.index(label) for label in job.requires]
    taints = [i for i, taint in enumerate(fleet.taints) if taint not in job.tolerates]
    usable = np.asarray(fleet.usable)
    for node, (w, p) in enumerate(where):
        if not w and not p:
            continue
        if not usable[node] or (w and not np.isfinite(seconds[node])) or not fleet.labelled[labels, node].all():
            return False
        if fleet.tainted[taints, node].any():
            return False
        if job.most_per_node is not None and w > job.most_per_node:
            return False
        if job.worker.grants and w * job.worker.gpu > fleet.gpus[node] * (1 + TOLERANCE):
            return False
    return True


def _together(problem: PlacementProblem, places: tuple[Where, ...]) -> bool:
    fleet, jobs = problem.fleet, problem.jobs
    for node in range(fleet.n_nodes):
        here = [(job, *where[node]) for job, where in zip(jobs, places, strict=True) if any(where[node])]
        names = {job.name for job, _, _ in here}
        for job, _, _ in here:
            if (job.whole_nodes and len(here) > 1) or names & set(job.apart):
                return False
        for field in ("cpu", "memory", "nic"):
            need = sum(w * getattr(job.worker, field) + p * getattr(job.server, field) for job, w, p in here)
            if need > getattr(fleet, field)[node] * (1 + TOLERANCE):
                return False
        if sum(w * job.worker.gpu for job, w, _ in here) > fleet.gpus[node] * (1 + TOLERANCE):
            return False
    return True


def _plans(problem: PlacementProblem, places: tuple[Where, ...]) -> Iterator[PlacementPlan]:
    rows = [(j, node, w, p) for j, where in enumerate(places) for node, (w, p) in enumerate(where) if w or p]
    by_node: dict[int, list[int]] = {}
    for r, (_, node, _, _) in enumerate(rows):
        by_node.setdefault(node, []).append(r)
    choices = [_grants(problem, rows, node, here) for node, here in by_node.items()]
    for chosen in product(*choices):
        grants = [grant for part in chosen for grant in part]
        columns: Any = [
            *(zip(*rows, strict=True) if rows else ((),) * 4),
            *(zip(*grants, strict=True) if grants else ((),) * 2),
        ]
        job, node, workers, servers, row, card = columns
        yield PlacementPlan(tuple(x.name for x in problem.jobs), job, node, workers, servers, row, card)


def _grants(
    problem: PlacementProblem, rows: list[tuple[int, int, int, int]], node: int, here: list[int]
) -> list[list[tuple[int, int]]]:
    """Return the grants (row, GPU) of a node, one choice for each set of pairs that share, and loads if they matter."""
    gpus = int(problem.fleet.gpus[node])
    whole: list[tuple[int, int]] = []
    tasks: list[int] = []
    for r in here:
        job, w = problem.jobs[rows[r][0]], rows[r][2]
        if 0 < job.worker.gpu < 1:
            tasks += [r] * w
        else:
            whole += [(r, len(whole) + i) for i in range(w * job.worker.grants)]
    found: dict[object, list[tuple[int, int]]] = {}
    for cards in product(range(len(whole), gpus), repeat=len(tasks)):
        used = [0.0] * gpus
        for r, card in zip(tasks, cards, strict=True):
            used[card] += problem.jobs[rows[r][0]].worker.gpu
        if max(used, default=0.0) <= 1 + TOLERANCE:
            held = list(zip(tasks, cards, strict=True))
            pairs = frozenset(frozenset((a, b)) for a, x in held for b, y in held if x == y and a != b)
            # what tasks to come can use depends on how full the GPUs are too
            loads = tuple(sorted(used)) if problem.goal == "fragmentation" else ()
            found.setdefault((pairs, loads), [*whole, *held])
    return list(found.values()) if len(whole) <= gpus else []


_GOALS = 0.4, 0.2, 0.2, 0.2
_KEPT = 64
"""Problems kept, with `enumeration.optimum`, which is then looked for once and not once a method."""


@lru_cache(maxsize=_KEPT)
def random_problem(seed: int, variant: str = "", *, jobs: int = 3, nodes: int = 3) -> PlacementProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Two racks or one, GPUs of two types that some models cannot run on, nodes without GPUs or not usable, cores and
    memory from ample to scarce, NICs set aside in part; gangs of one to three workers or a choice, whole GPUs and
    shares, with all collectives, selectors, jobs apart, spread, whole nodes; optional jobs, jobs that run and stay or
    may move. Some problems have no plan. `jobs`, `nodes`: at most.
    """
    rng = np.random.default_rng(seed)
    m, count = int(rng.integers((nodes + 1) // 2, nodes + 1)), int(rng.integers(1, jobs + 1))
    fleet = _fleet(rng, m)
    batch: list[GangJob] = [_job(rng, i) for i in range(count)]
    if count > 1 and rng.random() < 0.2:
        batch[1] = replace(batch[1], apart=(batch[0].name,))
    speeds, running, goal = _speeds(rng), _running(rng, fleet, batch), str(rng.choice(GOALS, p=_GOALS))
    if rng.random() < 0.15:
        batch = [_reserving(rng, job, fleet.topology.levels[0].bandwidth) for job in batch]
    if goal == "communication":  # links of bytes/s: pairs of GPUs take long
        batch = [job if job.value is None else replace(job, value=job.value * GIGABYTE) for job in batch]
        running = tuple(replace(run, migration=run.migration * GIGABYTE) for run in running)
    mix = _mix(rng) if rng.random() < 0.5 else ()
    return PlacementProblem(fleet, tuple(batch), speeds, running, goal, mix)


def _mix(rng: np.random.Generator) -> tuple[Expected, ...]:
    """Return tasks to come: shares and whole GPUs, some for one GPU type only, some with more cores than nodes have."""
    gpus, cores = rng.choice([0.0, 0.25, 0.4, 0.5, 1.0, 2.0, 3.0], 3), rng.choice([0.0, 1.0, 3.0, 8.0], 3)
    types = [str(x) for x in rng.choice(["", "new", "old"], 3, p=[0.6, 0.2, 0.2])]
    return tuple(
        Expected(Task(Demand(float(g), float(c)), (kind,) if kind else ()), float(rng.uniform(0.1, 1.0)))
        for g, c, kind in zip(gpus, cores, types, strict=True)
    )


def _fleet(rng: np.random.Generator, m: int) -> Fleet:
    rack = np.sort(rng.integers(0, 2, m))
    levels = Level("rack", float(rng.choice([1.0, 4.0]))), Level("cluster", float(rng.choice([0.5, 2.0, 8.0])))
    usable = rng.random(m) < 0.95
    return Fleet(
        names=tuple(f"n{i}" for i in range(m)),
        gpu_types=("new", "old"),
        gpu_type=(rng.random(m) < rng.choice([0.0, 0.5])).astype(int),
        gpus=rng.choice([0, 1, 2, 2, 3, 4, 4], m),
        cpu=rng.choice([3.0, 6.0, 12.0], m),
        memory=np.full(m, float(rng.choice([3.0, 50.0]))),
        link=np.full(m, float(rng.choice([2.0, 10.0]))),
        topology=TreeTopology(levels, np.stack([rack, np.zeros(m, dtype=int)])),
        labels=("ssd",),
        labelled=(rng.random(m) < 0.7)[None],
        usable=usable,
    )


def _job(rng: np.random.Generator, i: int) -> GangJob:
    kind = str(rng.choice(["ring", "tree", "hierarchical", "ps"]))
    servers = int(rng.integers(1, 3)) if kind == "ps" else 0
    share = rng.random() < 0.35
    gpu = float(rng.choice([0.25, 0.5, 0.6])) if share else float(rng.choice([0, 1, 1, 1, 1, 2]))
    worker = Demand(gpu, float(rng.choice([0.0, 0.0, 1.0, 2.0])), float(rng.choice([0.0, 1.0])))
    options: dict[str, Any] = {}
    if rng.random() < 0.15:
        options["most_per_node"] = 1
    if rng.random() < 0.15:
        options["requires"] = ("ssd",)
    if rng.random() < 0.3:
        options["value"] = float(rng.choice([0.5, 2.0, 6.0]))
    return GangJob(
        name=f"j{i}",
        model=str(rng.choice(["a", "b"])),
        workers=((1,), (1,), (2,), (2,), (1, 2), (3,))[int(rng.integers(6))],
        worker=worker,
        collective=kind,
        servers=servers,
        server=Demand(0.0, float(rng.choice([0.0, 1.0])), 1.0) if servers else Demand(0.0),
        weight=float(rng.choice([0.5, 1.0, 3.0])),
        whole_nodes=bool(rng.random() < 0.1),
        **options,
    )


def _reserving(rng: np.random.Generator, job: GangJob, nic: float) -> GangJob:
    worker, server = (float(rng.choice([0.0, 0.25, 0.4, 0.6])) * nic for _ in range(2))
    return replace(
        job, worker=replace(job.worker, nic=worker), server=replace(job.server, nic=server if job.servers else 0.0)
    )


def _speeds(rng: np.random.Generator) -> SpeedModel:
    host = rng.choice([0.0, 0.2, 0.6], (2, 2))
    compute = np.array([[1.0, 2.0], [rng.choice([1.5, 1.5, np.inf]), 3.0]])
    return SpeedModel(
        models=("a", "b"),
        gpu_types=("new", "old"),
        compute=compute,
        gradient=rng.choice([0.0, 1.0, 6.0], 2),
        overlap=rng.choice([0.0, 0.5, 1.0], 2),
        host=host,
        gpu=host + rng.choice([0.0, 0.5, 1.0], (2, 2)),
    )


def _running(rng: np.random.Generator, fleet: Fleet, batch: list[GangJob]) -> tuple[Running, ...]:
    """Return where some jobs are already; it may be where they could not go now."""
    found = []
    for job in batch:
        if rng.random() < 0.2:
            need = job.workers[0] * job.worker.gpu
            able = np.flatnonzero((fleet.gpus >= need * rng.choice([0, 1, 1])) & (fleet.gpus > 0))
            node = fleet.names[int(rng.choice(able))] if len(able) else fleet.names[0]
            movable = bool(rng.random() < 0.6)
            found.append(Running(job.name, (node,), (job.workers[0],), (job.servers,), movable, float(movable) / 2))
    return tuple(found)
