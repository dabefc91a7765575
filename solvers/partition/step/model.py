"""The problem as solvers see it: ops in classes that share a device, delays by level, links by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import Cluster, StepProblem, TreeTopology
from gangplan.instances.arrays import BoolArray, FloatArray, IntArray, row_sums, sums
from gangplan.instances.graph import grouped
from gangplan.instances.partition import Links
from gangplan.instances.verify import TOLERANCE

from .. import groups_of, ragged, reached

if TYPE_CHECKING:
    from .arrays import StepArrays
    from .settings import Basis

_MOST_DEVICES = 2048
"""There are tables with a number for each pair of devices."""

Csr = tuple[IntArray, IntArray]
"""Rows of a sparse relation: row v is ``index[first[v]:first[v + 1]]``."""


def rows(csr: Csr) -> list[list[int]]:
    """Return the rows of a relation as lists."""
    first, index = csr[0].tolist(), csr[1].tolist()
    return [index[a:b] for a, b in pairwise(first)]


def csr(lists: Sequence[Sequence[int]]) -> Csr:
    """Return lists as the rows of a relation."""
    first = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    return first, np.array([u for row in lists for u in row], dtype=np.int32)


@dataclass(frozen=True)
class Prepared:
    """A step-time problem with everything looked up; n ops, k devices, T types, L levels, G groups.

    Attributes:
        order: a topological order of the ops, int32 (n,).
        predecessors, successors: of each op, each once, ascending.
        time: p[t, v], seconds of op v on type t, infinite where it cannot run, float64 (T, n).
        delay: c[l, v], seconds to send the output of op v over level l, 0 if it is empty, float64 (L, n).
        type_of: the type of each device, int32 (k,).
        level: which level joins two devices, -1 on the diagonal, int32 (k, k). A mesh has one level.
        capacity: bytes of each device, infinite if unlimited, float64 (k,).
        group_of: the group of each op, int32 (n,): its colocation class, or itself.
        group_time: seconds of all ops of a group on a type, infinite where one cannot run, float64 (T, G).
        group_memory: bytes of a group, float64 (G,).
        partial: whether devices of the cluster have been left out, so that nothing but plans may come of it.
    """

    problem: StepProblem
    order: IntArray
    predecessors: Csr
    successors: Csr
    time: FloatArray
    delay: FloatArray
    type_of: IntArray
    level: IntArray
    capacity: FloatArray
    group_of: IntArray
    group_time: FloatArray
    group_memory: FloatArray
    partial: bool = False

    @property
    def n(self) -> int:
        """How many ops there are."""
        return len(self.group_of)

    @property
    def n_devices(self) -> int:
        """How many devices there are, k."""
        return len(self.type_of)

    @property
    def n_groups(self) -> int:
        """How many groups there are, G."""
        return len(self.group_memory)

    @property
    def contention(self) -> bool:
        """Whether transfers wait for one another."""
        return self.problem.contention

    @cached_property
    def edges(self) -> tuple[IntArray, IntArray]:
        """The ends u and v of each edge, each edge once, sorted by u."""
        first, index = self.successors
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(first)), index

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The place of each op in the order, int64 (n,)."""
        return np.argsort(self.order)

    @cached_property
    def alone(self) -> int | None:
        """The device on which everything is fastest, `None` if none takes it."""
        fits = self.allowed.all(axis=0) & (self.group_memory.sum() <= self.room)
        seconds = np.where(fits, self.time.sum(axis=1)[self.type_of], np.inf)
        return int(seconds.argmin()) if fits.any() else None

    @cached_property
    def reach(self) -> tuple[list[int], list[int]]:
        """The ops before and the ops after each op, as bit sets."""
        order = self.order.tolist()
        return reached(order, rows(self.predecessors)), reached(order[::-1], rows(self.successors))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The ops of each group, ascending."""
        return tuple(map(tuple, grouped(zip(self.group_of.tolist(), range(self.n), strict=True), self.n_groups)))

    @cached_property
    def types(self) -> IntArray:
        """The types of which there is a device, ascending."""
        return np.unique(self.type_of)

    @cached_property
    def allowed(self) -> BoolArray:
        """Whether a group can run on a device and fits into it alone, bool (G, k)."""
        able = np.zeros((len(self.group_time), self.n_groups), dtype=bool)
        for t in self.types.tolist():
            limit = self.capacity[int(np.argmax(self.type_of == t))]
            able[t] = np.isfinite(self.group_time[t]) & (self.group_memory <= limit * (1 + TOLERANCE))
        return np.ascontiguousarray(able[self.type_of].T)

    @cached_property
    def room(self) -> FloatArray:
        """Bytes of each device with room for rounding, as the verifier sees it, float64 (k,)."""
        # half of the verifier's slack, for sums in another order
        return self.capacity * (1 + TOLERANCE / 2)

    @cached_property
    def memory_binds(self) -> bool:
        """Whether some device is too small for everything at once."""
        return bool((self.group_memory.sum() > self.room).any())

    @cached_property
    def fastest(self) -> FloatArray:
        """Seconds of each op on the type that runs it fastest, float64 (n,)."""
        return np.asarray(self.time[self.types].min(axis=0))

    @cached_property
    def used_levels(self) -> IntArray:
        """The levels that join some two devices, ascending."""
        return np.unique(self.level[self.level >= 0])

    @cached_property
    def least_delay(self) -> FloatArray:
        """Seconds to send each op's output to the nearest other device; infinite with one device, float64 (n,)."""
        if not len(self.used_levels):
            return np.full(self.n, np.inf)
        return np.asarray(self.delay[self.used_levels].min(axis=0))

    @cached_property
    def twins(self) -> IntArray:
        """The class of each device, int32 (k,): those of one class are of one type and as far from any other device.

        So they may be swapped in any plan. Equal servers may be swapped too; this says nothing of them.
        """
        # in a tree, those who are nearest to one another are as far from all others
        level = np.where(self.level < 0, len(self.delay), self.level)
        nearest = level.min(axis=1)
        circle = np.argmax((level <= nearest[:, None]) | (self.level < 0), axis=1)
        _, first, found = np.unique(
            np.stack([circle, nearest, self.type_of]), axis=1, return_index=True, return_inverse=True
        )
        return np.asarray(np.argsort(np.argsort(first))[found.ravel()], dtype=np.int32)

    @cached_property
    def arrays(self) -> StepArrays:
        """The problem as compiled code reads it."""
        from .arrays import StepArrays

        return StepArrays(self)

    @cached_property
    def basis(self) -> Basis:
        """What the settings of the list scheduler multiply."""
        from .settings import basis_of

        return basis_of(self)

    @cached_property
    def links(self) -> Links:
        """The links by number, which only contention needs."""
        return Links(self.problem.cluster)

    @cached_property
    def routes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The links that a transfer from device a to b occupies: ``routes[a][b]``."""
        every = range(self.n_devices)
        return tuple(tuple(self.links.route(a, b) for b in every) for a in every)


def prepare(problem: StepProblem) -> Prepared:
    """Look everything up once; of thousands of devices take the first ones only, see `Prepared.partial`."""
    if problem.cluster.n_devices > _MOST_DEVICES:
        return replace(prepare(replace(problem, cluster=_first(problem.cluster, _MOST_DEVICES))), partial=True)
    graph, topology = problem.graph, problem.cluster.topology
    n, k = graph.n_ops, problem.cluster.n_devices
    time = problem.time()
    group_of = groups_of(graph.colocation)
    count = int(group_of.max()) + 1
    # an edge list may repeat an edge
    pairs = np.stack(np.divmod(np.unique(graph.source.astype(np.int64) * n + graph.target), n))
    return Prepared(
        problem=problem,
        order=graph.topological_order(),
        predecessors=_csr(pairs[1], pairs[0], n),
        successors=_csr(pairs[0], pairs[1], n),
        time=time,
        delay=_delay(problem),
        type_of=problem.cluster.type_of,
        level=_levels(topology, k) if isinstance(topology, TreeTopology) else -np.eye(k, dtype=np.int32),
        capacity=problem.capacity(),
        group_of=group_of,
        group_time=row_sums(group_of, time, count),
        group_memory=sums(group_of, graph.memory, count),
    )


def _first(cluster: Cluster, count: int) -> Cluster:
    topology = cluster.topology
    if isinstance(topology, TreeTopology):
        topology = TreeTopology(topology.levels, topology.group[:, :count])
    else:
        # one hop joins any two
        topology = replace(topology, communication_groups=1, racks=1, servers=count)
    return Cluster(cluster.device_types, cluster.type_of[:count], topology)


def _levels(topology: TreeTopology, k: int) -> IntArray:
    every = np.arange(k)
    level = (topology.group[:, :, None] != topology.group[:, None, :]).sum(axis=0).astype(np.int32)
    level[every, every] = -1
    return np.asarray(level)


def _delay(problem: StepProblem) -> FloatArray:
    """Return c[l, v] with the very arithmetic of the topology: a plan is checked to the last digit."""
    topology, size = problem.cluster.topology, problem.graph.output_bytes()
    if isinstance(topology, TreeTopology):
        rows = [level.latency + size / level.bandwidth for level in topology.levels]
    else:
        bandwidth, latency = topology.slowest_link()
        rows = [latency + size / bandwidth]
    return np.where(size > 0, np.stack(rows), 0.0)


def _csr(rows: IntArray, columns: IntArray, n: int) -> Csr:
    index, first = ragged(rows, columns, n)
    return first.astype(np.int32), index.astype(np.int32)
