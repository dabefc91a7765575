"""From a problem to items, and from items to fewer items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import LatencyProblem
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray, sums
from gangplan.instances.graph import topological_order

from ...run import never, watched
from .reduced import Reduced, Slot


def reduce(problem: LatencyProblem, stopped: Callable[[], bool] = never) -> Reduced:
    """Return `problem` as items, one an op but for free ops, before anything is merged.

    Raises:
        TimeoutError: once `stopped` is true.
    """
    graph = problem.graph
    slots = _slots(problem, graph.n_ops)
    cost = problem.transfer()
    time = problem.time()
    idle = _idle(problem, slots)
    alone = _alone(graph.colocation)
    free = np.zeros(graph.n_ops, dtype=bool)
    before: list[list[int]] = [[] for _ in range(graph.n_ops)]
    for a, b in watched(zip(graph.source.tolist(), graph.target.tolist(), strict=True), stopped):
        before[b].append(a)
    order = topological_order(graph.n_ops, graph.source, graph.target)
    if idle is not None:
        kind = slots[idle].kind
        for v in watched(order.tolist(), stopped):
            free[v] = alone[v] and time[kind, v] == 0 and cost[v] == 0 and all(free[u] for u in before[v])
    if free.all():
        free[order[-1]] = False  # a problem without items is nobody's friend
    kept = order[~free[order]]
    item = np.full(graph.n_ops, -1, dtype=np.int32)
    item[kept] = np.arange(len(kept))
    label = np.where(
        graph.colocation >= 0, graph.colocation, graph.colocation.max(initial=-1) + 1 + np.arange(graph.n_ops)
    )
    _, first, label = np.unique(label[kept], return_index=True, return_inverse=True)
    group = _by_first(first, label)
    edges = {
        (int(item[a]), int(item[b]))
        for a, b in watched(zip(graph.source.tolist(), graph.target.tolist(), strict=True), stopped)
        if not free[a]
    }
    consumers: dict[int, set[int]] = {}
    for a, b in watched(edges, stopped):
        consumers.setdefault(a, set()).add(b)
    nets = tuple((a, frozenset(b), float(cost[kept[a]])) for a, b in sorted(consumers.items()) if cost[kept[a]] > 0)
    limit = int(group.max()) + 1
    slots = _slots(problem, limit)
    device = slots[idle].device if idle is not None and idle < len(slots) else slots[-1].device
    return Reduced(problem, item, group, time[:, kept], graph.memory[kept], nets, tuple(sorted(edges)), slots, device)


def _by_first(first: NDArray[np.integer[Any]], label: NDArray[np.integer[Any]]) -> IntArray:
    """Number labels by their first item, so that ties are broken as the user ordered the ops."""
    return np.asarray(np.argsort(np.argsort(first))[label].astype(np.int32))


def _slots(problem: LatencyProblem, most: int) -> tuple[Slot, ...]:
    """Return the slots: no more of a type than there are groups."""
    cluster = problem.cluster
    total = float(problem.graph.memory.sum())
    calls: list[Slot] = []
    hosts: list[Slot] = []
    for t, kind in enumerate(cluster.device_types):
        devices = np.flatnonzero(cluster.type_of == t)[:most].tolist()
        capacity = np.inf if kind.memory is None else float(kind.memory)
        if kind.host and total <= capacity:
            devices = devices[:1]
        into = hosts if kind.host else calls
        into += [Slot(t, kind.host, capacity, d) for d in devices]
    return (*calls, *hosts)


def _idle(problem: LatencyProblem, slots: tuple[Slot, ...]) -> int | None:
    total = float(problem.graph.memory.sum())
    pools = [s for s, slot in enumerate(slots) if slot.host and total <= slot.capacity]
    return pools[0] if pools else None


def _alone(colocation: IntArray) -> BoolArray:
    classes, count = np.unique(colocation, return_counts=True)
    single = dict(zip(classes.tolist(), (count == 1).tolist(), strict=True))
    return np.array([c < 0 or single[c] for c in colocation.tolist()])


def merged(r: Reduced, into: Iterable[int], total: FloatArray) -> Reduced:
    """Return `r` with item v now part of item `into[v]`, whose seconds become those of `total`, float64 (T, I)."""
    target = list(into)
    edges = {(target[a], target[b]) for a, b in r.edges if target[a] != target[b]}
    kept = sorted(set(target))
    number = {v: i for i, v in enumerate(kept)}
    ends = np.array([(number[a], number[b]) for a, b in sorted(edges)], dtype=np.int32).reshape(-1, 2)
    order = topological_order(len(kept), ends[:, 0], ends[:, 1])
    rank = np.argsort(order)
    new = np.array([rank[number[v]] for v in target], dtype=np.int32)
    pins: dict[tuple[int, frozenset[int]], float] = {}
    for a, consumers, cost in r.nets:
        others = frozenset(int(new[b]) for b in consumers) - {int(new[a])}
        if others:
            pins[int(new[a]), others] = pins.get((int(new[a]), others), 0.0) + cost
    old = np.array(kept)[order]
    _, first, label = np.unique(r.group_of[old], return_index=True, return_inverse=True)
    group = _by_first(first, label)
    item = np.where(r.item_of >= 0, new[r.item_of], -1).astype(np.int32)
    memory = sums(new, r.memory, len(kept))
    return Reduced(
        r.problem,
        item,
        group,
        total[:, old],
        memory,
        tuple((a, b, cost) for (a, b), cost in pins.items()),
        tuple(sorted({(int(new[a]), int(new[b])) for a, b in edges})),
        r.slots,
        r.idle,
    )
