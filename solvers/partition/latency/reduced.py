"""The problem as solvers see it: items that stay together, groups that share a device, slots to put them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gangplan.instances import LatencyPlan, LatencyProblem, verify
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray, row_sums, sums
from gangplan.instances.graph import grouped, topological_order
from gangplan.instances.verify import TOLERANCE

from ...run import Run, never, watched
from .. import both_ways, by_first, groups_of


@dataclass(frozen=True, slots=True)
class Slot:
    """Somewhere to put groups: an accelerator, a host with too little memory for everything, or all hosts of a type.

    Attributes:
        host: whether its items run one by one, not as a call.
        capacity: bytes, infinite if unlimited.
        device: the device that stands for it in a plan.
    """

    kind: int
    host: bool
    capacity: float
    device: int


@dataclass(frozen=True)
class ReducedLatency:
    """An instance with dominated ops merged; the letters are those of docs/latency.md.

    Attributes:
        item_of: int32 (n,), the item of each op, -1 for an op that waits on a host for nothing and costs nothing.
            Items are in topological order.
        group_of: int32 (I,), the group g of each item: groups share a device.
        time: p[t, v], seconds of item v on device type t, infinite where it cannot run, float64 (T, I).
        memory: m[v], bytes, float64 (I,).
        nets: (producer, consumers, cost): an accelerator that holds some of these items and not all pays `cost`.
        edges: (a, b) of items, a before b.
        slots: where groups can go; equal accelerators in a row, hosts last.
        idle: device of the ops without an item.
    """

    problem: LatencyProblem
    item_of: IntArray
    group_of: IntArray
    time: FloatArray
    memory: FloatArray
    nets: tuple[tuple[int, frozenset[int], float], ...]
    edges: tuple[tuple[int, int], ...]
    slots: tuple[Slot, ...]
    idle: int

    @property
    def n_items(self) -> int:
        """How many items there are, I."""
        return len(self.group_of)

    @cached_property
    def groups(self) -> list[list[int]]:
        """The items of each group, in topological order."""
        count = int(self.group_of.max(initial=-1)) + 1
        return grouped(zip(self.group_of.tolist(), range(self.n_items), strict=True), count)

    @cached_property
    def group_time(self) -> FloatArray:
        """Seconds of all items of each group on each device type, float64 (T, G)."""
        return row_sums(self.group_of, self.time, len(self.groups))

    @cached_property
    def group_memory(self) -> FloatArray:
        """Bytes of each group, float64 (G,)."""
        return sums(self.group_of, self.memory, len(self.groups))

    @cached_property
    def fits(self) -> BoolArray:
        """Whether a slot runs all of a group and has the memory for it alone, bool (G, S)."""
        runs = [np.isfinite(self.group_time[slot.kind]) for slot in self.slots]
        room = [self.group_memory <= slot.capacity * (1 + TOLERANCE) for slot in self.slots]
        return np.asarray(np.array(runs) & np.array(room)).T.reshape(len(self.groups), len(self.slots))

    @cached_property
    def callers(self) -> list[int]:
        """The slots that are accelerators."""
        return [s for s, slot in enumerate(self.slots) if not slot.host]

    @cached_property
    def by_type(self) -> dict[int, list[int]]:
        """The slots that are accelerators, by their type."""
        kinds = sorted({self.slots[s].kind for s in self.callers})
        return {t: [s for s in self.callers if self.slots[s].kind == t] for t in kinds}

    @cached_property
    def pools(self) -> list[int]:
        """The slots that are hosts and hold everything."""
        total = float(self.memory.sum())
        return [s for s, slot in enumerate(self.slots) if slot.host and total <= slot.capacity]

    @cached_property
    def pool_time(self) -> FloatArray:
        """Seconds of each item on the host with memory for all where its group is fastest; infinite if none, (I,)."""
        kinds = [self.slots[s].kind for s in self.pools]
        if not kinds:
            return np.full(self.n_items, np.inf)
        best = np.array(kinds)[self.group_time[kinds].argmin(axis=0)]
        return np.asarray(self.time[best[self.group_of], np.arange(self.n_items)])

    @cached_property
    def neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The predecessors and the successors of each item."""
        return both_ways(self.edges, self.n_items)

    def plan(self, slot: Sequence[int] | IntArray) -> LatencyPlan:
        """Return the plan that puts each group in the given slot."""
        device = np.array([s.device for s in self.slots], dtype=np.int32)[np.asarray(slot, dtype=np.int64)]
        ops = np.full(len(self.item_of), self.idle, dtype=np.int32)
        placed = self.item_of >= 0
        ops[placed] = device[self.group_of[self.item_of[placed]]]
        return LatencyPlan(self.problem.graph.names, ops)

    def slots_of(self, plan: LatencyPlan) -> list[int] | None:
        """Return the slot of each group in `plan`, `None` if it splits what is merged or uses what is left out.

        Accelerators of a type are renamed in the order of their first group, hosts of a type are one if they pool.
        """
        placed = np.flatnonzero(self.item_of >= 0)
        group = self.group_of[self.item_of[placed]]
        first = np.unique(group, return_index=True)[1]
        device = plan.device[placed][first]
        if (plan.device[placed] != device[group]).any():
            return None
        kind = self.problem.cluster.type_of[device].tolist()
        free: dict[int, list[int]] = {}
        for s, slot in enumerate(self.slots):
            free.setdefault(slot.kind, []).append(s)
        pooled = {self.slots[s].kind: s for s in self.pools}
        name: dict[int, int] = {}
        slots = []
        for t, d in zip(kind, device.tolist(), strict=True):
            if t in pooled:
                slots.append(pooled[t])
                continue
            if d not in name:
                if not free.get(t):
                    return None
                name[d] = free[t].pop(0)
            slots.append(name[d])
        return slots


def host_slots(r: ReducedLatency) -> list[int]:
    """Return for each group the host with memory for all where it is fastest, -1 if none runs it."""
    if not r.pools:
        return [-1] * len(r.groups)
    time = np.stack([r.group_time[r.slots[s].kind] for s in r.pools])
    best = time.argmin(axis=0)
    runs = np.isfinite(time.min(axis=0))
    return [r.pools[b] if able else -1 for b, able in zip(best.tolist(), runs.tolist(), strict=True)]


def offer(run: Run, r: ReducedLatency, slots: list[int], by: str) -> bool:
    """Offer the plan with group g in slot `slots[g]` if it is one; return whether it is the best."""
    plan = r.plan(slots)
    return verify(run.problem, plan).ok and run.offer(plan, by)


def reduce(problem: LatencyProblem, stopped: Callable[[], bool] = never) -> ReducedLatency:
    """Return `problem` as items, one an op but for free ops, before anything is merged."""
    graph = problem.graph
    cost, time = problem.transfer(), problem.time()
    idle = next((s for s in _slots(problem, graph.n_ops) if s.host and graph.memory.sum() <= s.capacity), None)
    group = groups_of(graph.colocation)
    alone = np.bincount(group)[group] == 1
    free = np.zeros(graph.n_ops, dtype=bool)
    before = grouped(watched(zip(graph.target.tolist(), graph.source.tolist(), strict=True), stopped), graph.n_ops)
    order = topological_order(graph.n_ops, graph.source, graph.target)
    if idle is not None:
        able = alone & (time[idle.kind] == 0) & (cost == 0)
        for v in watched(order.tolist(), stopped):
            free[v] = able[v] and all(free[u] for u in before[v])
    if free.all():
        free[order[-1]] = False  # a problem without items is nobody's friend
    kept = order[~free[order]]
    item = np.full(graph.n_ops, -1, dtype=np.int32)
    item[kept] = np.arange(len(kept))
    group = by_first(group[kept])
    edges = {
        (int(item[a]), int(item[b]))
        for a, b in watched(zip(graph.source.tolist(), graph.target.tolist(), strict=True), stopped)
        if not free[a]
    }
    consumers: dict[int, set[int]] = {}
    for a, b in watched(edges, stopped):
        consumers.setdefault(a, set()).add(b)
    nets = tuple((a, frozenset(b), float(cost[kept[a]])) for a, b in sorted(consumers.items()) if cost[kept[a]] > 0)
    slots = _slots(problem, int(group.max()) + 1)
    # the slots have other numbers than those above, the device of a host for everything has not
    device = slots[-1].device if idle is None else idle.device
    return ReducedLatency(
        problem, item, group, time[:, kept], graph.memory[kept], nets, tuple(sorted(edges)), slots, device
    )


def _slots(problem: LatencyProblem, most: int) -> tuple[Slot, ...]:
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


def merged(r: ReducedLatency, into: Iterable[int], total: FloatArray) -> ReducedLatency:
    """Return `r` with item v now part of item `into[v]`, whose seconds become those of `total`, float64 (T, I)."""
    kept, label = np.unique(list(into), return_inverse=True)
    ends = np.unique(label[np.array(r.edges, dtype=np.int64).reshape(-1, 2)], axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]].astype(np.int32)
    order = topological_order(len(kept), ends[:, 0], ends[:, 1])
    rank, old = np.argsort(order), kept[order]
    new = rank[label].astype(np.int32)
    of = new.tolist()
    pins: dict[tuple[int, frozenset[int]], float] = {}
    for a, consumers, cost in r.nets:
        key = of[a], frozenset(of[b] for b in consumers) - {of[a]}
        if key[1]:
            pins[key] = pins.get(key, 0.0) + cost
    return replace(
        r,
        item_of=np.where(r.item_of >= 0, new[r.item_of], -1).astype(np.int32),
        group_of=by_first(r.group_of[old]),
        time=total[:, old],
        memory=sums(new, r.memory, len(kept)),
        nets=tuple((*key, cost) for key, cost in pins.items()),
        edges=tuple(sorted(map(tuple, rank[ends].tolist()))),
    )
