"""A first plan from a few sums, for when nothing else has one: all on one device, or ops in order, cut by memory.

It asks for no preparation, so that there is a plan at limits in which a large graph cannot even be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import (
    GraphProblem,
    LatencyPlan,
    LatencyProblem,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    verify,
)
from gangplan.instances.arrays import FloatArray, IntArray, sums
from gangplan.instances.verify import TOLERANCE
from gangplan.instances.verify.verdict import needed

from ..run import Run

_BALANCED = 256
"""Devices that a pipeline's draft is spread over at most: each takes a search."""


def draft(run: Run, prepared: object = None) -> None:
    """Offer the first of a few plain plans that the verifier accepts, if there is one."""
    problem = run.problem
    if isinstance(problem, StagesProblem):
        plans: Iterable[Any] = _stages(problem)
    else:
        plans = (_plan(problem, device) for device in _placements(problem))
    plan = next((plan for plan in plans if verify(problem, plan).ok), None)
    if plan is not None:
        run.offer(plan, "draft")


def _stages(problem: StagesProblem) -> Iterator[StagesPlan]:
    """Yield plans: all ops on all devices as replicas, or a chain of stages with a device each."""
    devices = np.arange(problem.cluster.n_devices, dtype=np.int32)
    for share in (0.0, 1.1, 2.0, np.inf):
        stage = _chain(problem, share) if share else np.zeros(problem.graph.n_ops, np.int32)
        if stage is not None:
            count = int(stage.max()) + 1
            serves = np.where(devices < count, devices, -1) if share else np.zeros_like(devices)
            yield StagesPlan(problem.graph.names, stage, serves, np.ones(count, np.int32))


def _chain(problem: StagesProblem, share: float) -> IntArray | None:
    """Return stages filled from the last on, each to its memory and `share` of an even load; `None` if too many."""
    ops, rank = problem.graph.n_ops, _ranks(problem.graph)
    rows = (problem.seconds()[0], *(row[0] for row in problem.need()))
    # from the last place on
    seconds, once, kept = (_upto(ops - 1 - rank, row) for row in rows)
    limit, even = float(problem.capacity()[0]), share * seconds[-1] / problem.cluster.n_devices
    at, ends = 0, list[int]()
    while at < ops and len(ends) < problem.cluster.n_devices:
        later = len(ends) if problem.training else 0
        full = int(np.searchsorted(once + later * kept, once[at] + later * kept[at] + limit, side="right")) - 1
        at = max(at, min(full, max(at + 1, int(np.searchsorted(seconds, seconds[at] + even, side="right")) - 1)))
        ends.append(at)
        if len(ends) > 1 and ends[-1] == ends[-2]:
            return None
    if at < ops:
        return None
    piece = np.searchsorted(ends, ops - 1 - rank, side="right")
    return np.asarray(np.unique(-piece, return_inverse=True)[1], dtype=np.int32)


def _placements(problem: GraphProblem) -> Iterator[IntArray]:
    """Yield devices of the ops, int32 (n,): equal pieces for a pipeline, one device, as few as memory allows."""
    graph, cluster = problem.graph, problem.cluster
    time, limit, present = problem.time(), problem.capacity(), np.unique(cluster.type_of)
    total = time.sum(axis=1)
    blocks = _RankedBlocks(problem, time)
    if isinstance(problem, PartitionProblem):
        fastest = float(time[present].min(axis=0).sum())
        for share in (1.1, 1.5, 2.0):
            found = blocks.cut(share * fastest / min(cluster.n_devices, _BALANCED))
            if found is not None:
                yield found
    memory = float(graph.memory.sum())
    for t in sorted(present.tolist(), key=lambda t: float(total[t])):
        d = int(np.argmax(cluster.type_of == t))
        if np.isfinite(total[t]) and memory <= limit[d] * (1 + TOLERANCE):
            yield np.full(graph.n_ops, d, dtype=np.int32)
    found = blocks.cut(np.inf)
    if found is not None:
        yield found


def _ranks(graph: OpGraph) -> NDArray[np.int64]:
    """Return places in topological order, int64 (n,): the ops of a class where its first one is."""
    n, rank = graph.n_ops, np.argsort(graph.topological_order())
    if (graph.colocation >= 0).any():
        first = np.full(int(graph.colocation.max()) + 1, n)
        member = graph.colocation >= 0
        np.minimum.at(first, graph.colocation[member], rank[member])
        rank = np.where(member, first[graph.colocation], rank)
    return rank


def _upto(rank: NDArray[np.int64], amount: NDArray[Any]) -> FloatArray:
    """Return what the ops before each place have, and all, float64 (n + 1,)."""
    return np.concatenate([[0.0], np.cumsum(sums(rank, amount, len(rank)))])


class _RankedBlocks:
    def __init__(self, problem: GraphProblem, time: FloatArray) -> None:
        graph, self.problem = problem.graph, problem
        self.rank = rank = _ranks(graph)
        self.runs = [_upto(rank, ~np.isfinite(row)) for row in time]
        self.seconds = [_upto(rank, np.where(np.isfinite(row), row, 0.0)) for row in time]
        self.memory = _upto(rank, graph.memory)

    def cut(self, seconds: float) -> IntArray | None:
        """Return devices filled one after the other within `seconds` and their memory, `None` if that leaves ops."""
        n, at = len(self.rank), 0
        kinds, limits = self.problem.cluster.type_of.tolist(), self.problem.capacity().tolist()
        where, ends = [], []
        for d, (t, limit) in enumerate(zip(kinds, limits, strict=True)):
            end = min(
                int(np.searchsorted(self.memory, self.memory[at] + limit, side="right")),
                int(np.searchsorted(self.runs[t], self.runs[t][at], side="right")),
                int(np.searchsorted(self.seconds[t], self.seconds[t][at] + seconds, side="right")),
            )
            if end - 1 > at:
                at = end - 1
                where.append(d)
                ends.append(at)
            if at == n:
                return np.array(where, dtype=np.int32)[np.searchsorted(ends, self.rank, side="right")]
        return None


def _plan(problem: Any, device: IntArray) -> Any:
    if isinstance(problem, LatencyProblem):
        return LatencyPlan(problem.graph.names, device)
    if isinstance(problem, StepProblem):
        return _one_by_one(problem, device)
    stages = np.unique(device)
    return PartitionPlan(problem.graph.names, device, np.searchsorted(stages, device).astype(np.int32))


def _one_by_one(problem: StepProblem, device: IntArray) -> StepPlan:
    """Return the plan in which no two ops run at once, and an op's transfers go before the next op runs."""
    graph = problem.graph
    order = graph.topological_order()
    op, to = needed(problem, device)
    took = problem.delay(op, device[op], to)
    op, to, took = op[took > 0], to[took > 0], took[took > 0]
    seconds = problem.time()[problem.cluster.type_of[device], np.arange(graph.n_ops)]
    seconds = np.where(np.isfinite(seconds), seconds, 0.0)
    whole = seconds + sums(op, took, graph.n_ops)
    start = np.empty(graph.n_ops)
    start[order] = np.concatenate([[0.0], np.cumsum(whole[order])[:-1]])
    if not problem.contention:
        return StepPlan(graph.names, device, start)
    # transfers are sorted by op
    before = np.concatenate([[0.0], np.cumsum(took)])[:-1]
    first = np.concatenate([[True], op[1:] != op[:-1]]) if len(op) else np.zeros(0, dtype=bool)
    wait = before - before[np.maximum.accumulate(np.where(first, np.arange(len(op)), 0))]
    return StepPlan(graph.names, device, start, op, to, start[op] + seconds[op] + wait)
