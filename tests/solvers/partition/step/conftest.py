"""Problems small enough to argue about."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from types import SimpleNamespace
from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StepPlan, StepProblem, TreeTopology
from gangplan.instances.graph import with_backward
from gangplan.solvers import Run, native
from gangplan.solvers.partition.step import arrays, list_scheduler, moves, timing
from gangplan.solvers.partition.step.list_schedule import heft
from gangplan.solvers.partition.step.model import Prepared, prepare, rows
from gangplan.solvers.partition.step.timing import Workroom, placed

from ...uncompiled import uncompiled

_MODULES = [arrays], [arrays, timing], [arrays, timing, list_scheduler], [arrays, timing, moves]
COMPILED = SimpleNamespace(**{k: x for *_, module in _MODULES for k, x in vars(module).items()})
SOURCE = SimpleNamespace(**{k: x for some in _MODULES for k, x in vars(uncompiled(native, *some)).items()})
"""Kernels, and the same as plain Python, whose arrays and inner functions can be got at."""


def graph(
    seconds: list[float],
    edges: list[tuple[int, int]],
    output: float | list[float] = 0.0,
    memory: list[float] | None = None,
    colocation: list[int] | None = None,
) -> OpGraph:
    """Make a graph of ops a, b, c, ... for devices of type gpu."""
    n = len(seconds)
    size = np.full(n, output, dtype=float) if isinstance(output, int | float) else np.array(output)
    source: Any = np.array([u for u, _ in edges], dtype=np.int32)
    return OpGraph(
        names=tuple("abcdefghijklmnopqrstuvwxyz"[:n]),
        device_types=("gpu",),
        time=np.array([seconds]),
        memory=np.zeros(n) if memory is None else np.array(memory, dtype=float),
        parameter_bytes=np.zeros(n),
        activation_bytes=size,
        source=source,
        target=np.array([v for _, v in edges], dtype=np.int32),
        edge_bytes=size[source],
        colocation=np.full(n, -1) if colocation is None else np.array(colocation),
    )


def cluster(
    devices: int, servers: int = 1, near: float = 1.0, far: float = 0.25, memory: float | None = None
) -> Cluster:
    """Make servers of equal devices, bytes/s `near` within and `far` between them."""
    levels = (Level("server", near), Level("rack", far))
    topology = TreeTopology.regular(levels, (devices // servers, servers))
    return Cluster((DeviceType("gpu", memory=memory),), np.zeros(devices, dtype=np.int32), topology)


def training(seed: int) -> StepProblem:
    """Make a training step of two to four forward ops, a chain or a diamond, with memory that may force cuts."""
    rng = np.random.default_rng(seed)
    shape = [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)], [(0, 1), (0, 2), (1, 3), (2, 3)]][rng.integers(4)]
    n = max(v for _, v in shape) + 1
    memory = rng.integers(1, 5, n).astype(float)
    forward = graph(
        np.round(rng.random(n) * 5, 1).tolist(),
        shape,
        (rng.choice([0.3, 1.0, 3.0]) * rng.integers(0, 4, n)).tolist(),
        memory.tolist(),
    )
    whole = with_backward(forward, np.round(rng.random((1, n)) * 8, 1), np.zeros(n))
    k, servers = [(2, 1), (3, 1), (2, 2), (4, 2)][rng.integers(4 if n < 4 else 3)]
    limit = float(max(memory.max(), memory.sum() * rng.choice([0.4, 0.6, 2.0])))
    return StepProblem(
        whole, cluster(k, servers, far=float(rng.choice([0.25, 1.0])), memory=limit), bool(seed % 3 == 0)
    )


def order_of(p: Prepared, priority: Sequence[float]) -> list[int]:
    """Return the ops so that every edge points forward, of those that may come next always the lowest priority."""
    before, after = rows(p.predecessors), rows(p.successors)
    waiting = list(map(len, before))
    ready = [(priority[v], v) for v, w in enumerate(waiting) if not w]
    heapify(ready)
    found = []
    while ready:
        v = heappop(ready)[1]
        found.append(v)
        for w in after[v]:
            waiting[w] -= 1
            if not waiting[w]:
                heappush(ready, (priority[w], w))
    return found


def decode(p: Prepared, device: Any, priority: Any) -> StepPlan:
    """Return the plan that runs ops of low priority values first on the given devices."""
    where = np.asarray(device)[[ops[0] for ops in p.members]]
    return placed(p, Workroom(p), where, np.array(order_of(p, np.asarray(priority).tolist())))


def found_by_heft(problem: StepProblem) -> tuple[Prepared, Any, Any] | None:
    """Return a problem with arrays of the source, and HEFT's devices of groups and starts; `None` without a plan."""
    run, p = Run(problem, time_limit=60), prepare(problem)
    heft(run, p)
    p.__dict__["arrays"] = SOURCE.StepArrays(p)
    if run.plan is None:
        return None
    return p, run.plan.device[[ops[0] for ops in p.members]].astype(np.int64), run.plan.start
