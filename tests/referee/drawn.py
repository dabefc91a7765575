"""Plans that may break a rule: at random, and the plans of a solve with something changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances import LatencyPlan, PartitionPlan, StagesPlan

TIMES = 6


def throughput(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield placements with stages in the order of a permutation of the devices."""
    n, k = problem.graph.n_ops, problem.cluster.n_devices
    for _ in range(TIMES):
        device = rng.integers(0, k, n)
        rank = rng.permutation(np.unique(device))
        stage = np.array([int(np.flatnonzero(rank == d)[0]) for d in device])
        yield PartitionPlan(problem.graph.names, device, stage)
    if plan is not None and n > 1:
        yield replace(plan, stage=plan.stage + (plan.stage == plan.stage[0]))
        yield replace(plan, device=_moved(plan.device, k, rng))


def latency(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield placements."""
    for _ in range(TIMES):
        yield LatencyPlan(problem.graph.names, rng.integers(0, problem.cluster.n_devices, problem.graph.n_ops))


def step(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield plans with a start, a transfer or a device that is a little different."""
    if plan is None:
        return
    top = max(float(plan.start.max()), 1e-9)
    for share in (3e-10, 5e-9, 0.1):
        for sign in (-1, 1):
            v = rng.integers(len(plan.start))
            moved = plan.start.copy()
            moved[v] = max(0.0, moved[v] + sign * share * top)
            yield replace(plan, start=moved)
            if len(plan.sent_at):
                moved = plan.sent_at.copy()
                v = rng.integers(len(moved))
                moved[v] = max(0.0, moved[v] + sign * share * top)
                yield replace(plan, sent_at=moved)
    yield replace(plan, device=_moved(plan.device, problem.cluster.n_devices, rng))
    yield replace(plan, sent=plan.sent[1:], receiver=plan.receiver[1:], sent_at=plan.sent_at[1:])


def stages(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield stages, devices and degrees, at random and changed in one place."""
    n, k = problem.graph.n_ops, problem.cluster.n_devices
    degrees = [1] if problem.menu is None else problem.menu.degree.tolist()
    for i in range(2 * TIMES):
        count = int(rng.integers(1, 4))
        stage = np.minimum(np.sort(rng.integers(0, count, n)), count - 1)
        serves = np.sort(rng.integers(0, count, k)) if i % 2 else rng.integers(-1, count, k)
        yield StagesPlan(problem.graph.names, stage, serves, rng.choice(degrees, count))
    if plan is None:
        return
    count = len(plan.degree)
    for _ in range(TIMES):
        serves = plan.serves.copy()
        serves[rng.integers(k)] = rng.integers(-1, count)
        yield replace(plan, serves=serves)
        yield replace(plan, stage=_moved(plan.stage, count, rng))
        yield replace(plan, degree=rng.choice([*degrees, 2], count), serves=rng.permutation(serves))


def placement(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield plans with a row elsewhere, another GPU, or tasks more or less."""
    if plan is None or not len(plan.job):
        return
    for _ in range(TIMES):
        yield replace(plan, node=_moved(plan.node, problem.fleet.n_nodes, rng))
        if len(plan.grant_gpu):
            yield replace(plan, grant_gpu=_moved(plan.grant_gpu, int(problem.fleet.gpus.max()) + 1, rng))
    yield replace(plan, workers=_moved(plan.workers, 3, rng))
    yield replace(plan, servers=_moved(plan.servers, 2, rng))


def schedule(problem: Any, plan: Any, rng: Any) -> Iterator[Any]:
    """Yield plans with a start a little or much earlier or later, another degree, or another place."""
    if plan is None:
        return
    for share in (0.2, 5.0, 1e8):
        for sign in (-1, 1):
            j = int(rng.integers(len(plan.start)))
            if plan.degree[j] >= 0:
                job, start = problem.jobs[j], plan.start.copy()
                seconds = job.durations[plan.degree[j]]
                start[j] = max(0.0, start[j] + sign * share * (1e-9 * seconds + 4 * np.spacing(start[j] + seconds)))
                yield replace(plan, start=start)
    yield replace(plan, degree=_moved(plan.degree, len(problem.jobs[0].degrees), rng, -1))
    if len(plan.node):
        yield replace(plan, node=_moved(plan.node, int(plan.node.max()) + 2, rng))


def _moved(values: Any, most: int, rng: Any, least: int = 0) -> Any:
    changed = values.copy()
    changed[rng.integers(len(values))] = rng.integers(least, max(most, least + 1))
    return changed
