"""The problem as solvers see it: groups of ops that stay together, nets of outputs, types of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem, precedence
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray, row_sums, sums
from gangplan.instances.graph import grouped, strong_components, topological_order

from ...run import never, watched
from .. import both_ways, by_first, groups_of

_REDUCED = 20_000
"""More groups than that keep the edges that longer paths imply."""


@dataclass(frozen=True)
class Quotient:
    """An instance with the ops of a group merged; the letters are those of docs/formulation.md.

    Attributes:
        group_of: int32 (n,), the group g of each op; groups are in topological order if `contiguous`.
        time: p[t, g], seconds of group g on device type t, infinite where it cannot run, float64 (T, G).
        memory: m[g], bytes, float64 (G,).
        nets: (pins, cost) of each output that two or more groups touch: an accelerator that holds some of the
            pins and not all pays the cost c[e] once.
        edges: (a, b) of groups, a before b, transitively reduced where the order is acyclic.
        counts: n[t], devices of each type that a plan can use, int32 (T,): no more than there are groups.
    """

    problem: PartitionProblem
    group_of: IntArray
    time: FloatArray
    memory: FloatArray
    nets: tuple[tuple[frozenset[int], float], ...]
    edges: tuple[tuple[int, int], ...]
    counts: IntArray

    @property
    def n_groups(self) -> int:
        """How many groups there are, G."""
        return len(self.memory)

    @cached_property
    def host(self) -> BoolArray:
        """Which types pay no transfers, bool (T,)."""
        return np.array([kind.host for kind in self.problem.cluster.device_types])

    @cached_property
    def capacity(self) -> FloatArray:
        """Bytes of a device of each type, infinite if unlimited, float64 (T,)."""
        return np.array([np.inf if k.memory is None else k.memory for k in self.problem.cluster.device_types])

    @cached_property
    def memory_binds(self) -> bool:
        """Whether some device type could be too small for everything at once."""
        return bool((self.memory.sum() > self.capacity[self.counts > 0]).any())

    @cached_property
    def work(self) -> FloatArray:
        """w[g], the seconds of group g on the type that runs it fastest, float64 (G,)."""
        return np.asarray(self.time[self.counts > 0].min(axis=0))

    @cached_property
    def speed(self) -> FloatArray:
        """r[t], the most work a device of type t does in a second, at most 1, float64 (T,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.work > 0, self.work / self.time, 0.0)
        return np.asarray(np.nan_to_num(ratio.max(axis=1)))

    @cached_property
    def neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The predecessors and the successors of each group."""
        return both_ways(self.edges, self.n_groups)

    def plan(self, stages: Iterable[tuple[int, Iterable[int]]]) -> PartitionPlan:
        """Return the plan of stages [(t, groups), ...], each a device of type t; empty ones are left out."""
        return planned(self.problem, stages, self.group_of)


def planned(
    problem: PartitionProblem, stages: Iterable[tuple[int, Iterable[int]]], group_of: IntArray
) -> PartitionPlan:
    """Return the plan of stages [(t, groups), ...], each a device of type t; empty ones are left out."""
    cluster, count = problem.cluster, int(group_of.max()) + 1
    free = [np.flatnonzero(cluster.type_of == t).tolist() for t in range(len(cluster.device_types))]
    device, stage = np.full(count, -1, dtype=np.int32), np.full(count, -1, dtype=np.int32)
    filled = [(t, members) for t, groups in stages if (members := list(groups))]
    for s, (t, members) in enumerate(filled):
        device[members], stage[members] = free[t].pop(0), s
    return PartitionPlan(problem.graph.names, device[group_of], stage[group_of])


def quotient(problem: PartitionProblem, stopped: Callable[[], bool] = never) -> Quotient:
    """Merge the ops that must share a device: colocation classes and, for a pipeline, cycles among them."""
    graph = problem.graph
    earlier, later = precedence(graph)
    group = groups_of(graph.colocation)
    ends = _between(group, earlier, later)
    if problem.variant == "contiguous":
        group = _acyclic(group, ends)
        ends = _between(group, earlier, later)
        edges = tuple(_transitive_reduction(int(group.max()) + 1, ends, stopped))
    else:
        edges = tuple(watched(map(tuple, ends.tolist()), stopped))
    count = int(group.max()) + 1
    memory = sums(group, graph.memory, count)
    counts = np.minimum(problem.cluster.counts(), count).astype(np.int32)
    return Quotient(
        problem, group, row_sums(group, problem.time(), count), memory, _nets(problem, group, stopped), edges, counts
    )


def _between(group: IntArray, earlier: IntArray, later: IntArray) -> NDArray[np.int64]:
    a, b = group[earlier].astype(np.int64), group[later]
    count = int(group.max()) + 1
    key = np.sort((a * count + b)[a != b])
    return np.stack(np.divmod(key[np.diff(key, prepend=-1) > 0], count), axis=1)


def merged(q: Quotient, into: NDArray[np.integer[Any]]) -> Quotient:
    """Return `q` with group g of it now part of group `into[g]`."""
    group = np.unique(into, return_inverse=True)[1].astype(np.int32)
    count = int(group.max()) + 1
    of = group.tolist()
    edges = {(of[a], of[b]) for a, b in q.edges if of[a] != of[b]}
    nets = merge_nets((frozenset(group[list(pins)].tolist()), cost) for pins, cost in q.nets)
    memory = sums(group, q.memory, count)
    counts = np.minimum(q.counts, count).astype(np.int32)
    return Quotient(
        q.problem, group[q.group_of], row_sums(group, q.time, count), memory, nets, tuple(sorted(edges)), counts
    )


def merge_nets(nets: Iterable[tuple[frozenset[int], float]]) -> tuple[tuple[frozenset[int], float], ...]:
    """Add up nets with the same pins; drop those within one group and those that cost nothing."""
    total: dict[frozenset[int], float] = {}
    for pins, cost in nets:
        if len(pins) > 1 and cost > 0:
            total[pins] = total.get(pins, 0.0) + cost
    return tuple(total.items())


def _nets(
    problem: PartitionProblem, group: IntArray, stopped: Callable[[], bool]
) -> tuple[tuple[frozenset[int], float], ...]:
    graph = problem.graph
    cost = problem.transfer()
    paid = cost[graph.source] > 0
    source, target = graph.source[paid], group[graph.target[paid]]
    touched: dict[int, set[int]] = {}
    ends = zip(source.tolist(), group[source].tolist(), target.tolist(), strict=True)
    for u, g, v in watched(ends, stopped):
        touched.setdefault(u, {g}).add(v)
    return merge_nets((frozenset(pins), float(cost[u])) for u, pins in watched(touched.items(), stopped))


def _acyclic(group: IntArray, ends: NDArray[np.int64]) -> IntArray:
    if (ends[:, 0] < ends[:, 1]).all():
        return group
    count = int(group.max()) + 1
    try:
        order = _order(count, ends)
    except InstanceError:
        component = strong_components(ends[:, 0], ends[:, 1], count)
        renumbered = by_first(component)
        group, ends = renumbered[group], renumbered[ends].astype(np.int64)
        order = _order(int(group.max()) + 1, np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0))
    return np.argsort(order)[group].astype(np.int32)


def _order(count: int, ends: NDArray[np.int64]) -> IntArray:
    return topological_order(count, ends[:, 0].astype(np.int32), ends[:, 1].astype(np.int32))


def _transitive_reduction(
    count: int, ends: NDArray[np.int64], stopped: Callable[[], bool]
) -> Iterator[tuple[int, int]]:
    """Yield the edges that no longer path implies, sorted; groups are in topological order."""
    several = np.bincount(ends[:, 1], minlength=count)[ends[:, 1]] > 1
    if count > _REDUCED or not several.any():
        # sets of ancestors would be too large; edges that say nothing new do no harm
        yield from watched(map(tuple, ends.tolist()), stopped)
        return
    before = grouped(ends[:, ::-1].tolist(), count)
    ancestors = [0] * count
    kept = []
    for b in watched(range(count), stopped):
        # nearest first: a predecessor already reached through a nearer one is implied
        for a in reversed(before[b]):
            if not ancestors[b] >> a & 1:
                kept.append((a, b))
                ancestors[b] |= ancestors[a] | 1 << a
    yield from sorted(kept)
