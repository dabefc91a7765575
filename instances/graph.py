"""The job: a graph of ops, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import AMOUNT, NONE, TIMES, BoolArray, FloatArray, IntArray, array, check_fields, require
from .errors import InstanceError

T = TypeVar("T")

_MOST = 1e300
"""No sum of times or bytes may come near the end of floats."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class OpGraph:
    """A directed acyclic graph of n ops and m edges.

    Attributes:
        names: unique op ids, length n.
        device_types: the device types the times are for, length T.
        time: seconds, float64 (T, n); infinite where a type cannot run the op.
        memory: bytes an op occupies on its device while it is placed there, float64 (n,).
        parameter_bytes: bytes of weights, float64 (n,).
        activation_bytes: bytes of output, float64 (n,).
        source, target: int32 (m,), the ends of each edge.
        edge_bytes: bytes moved along each edge, float64 (m,).
        colocation: int32 (n,); ops of one class share a device, -1 is no class; by default there is none.
        twin: int32 (n,), the backward op of a forward op and the other way round, -1 for none, as by default.
        backward: bool (n,), true for the ops of the backward pass; by default there is none.
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    device_types: tuple[str, ...] = field(metadata={"unique": True})
    time: FloatArray = field(metadata=array("device_types", "names", holds=TIMES, null="infinite"))
    memory: FloatArray = field(metadata=array("names", holds=AMOUNT))
    parameter_bytes: FloatArray = field(metadata=array("names", holds=AMOUNT))
    activation_bytes: FloatArray = field(metadata=array("names", holds=AMOUNT))
    source: IntArray = field(metadata=array(None, of="names", what="ops"))
    target: IntArray = field(metadata=array("source", of="names", what="ops"))
    edge_bytes: FloatArray = field(metadata=array("source", holds=AMOUNT))
    colocation: IntArray = field(
        default=NONE, metadata=array("names", holds=((lambda x: x >= -1, "is negative"),), usual=-1)
    )
    twin: IntArray = field(default=NONE, metadata=array("names", usual=-1))
    backward: BoolArray = field(default=NONE, metadata=array("names", usual=False))

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.names:
            raise InstanceError("names", "the graph has no op")
        for name in ("time", "memory", "parameter_bytes", "activation_bytes", "edge_bytes"):
            values = getattr(self, name)
            if values[np.isfinite(values)].astype(np.longdouble).sum() > _MOST:
                raise InstanceError(name, f"the values add up to more than {_MOST:g}")
        runnable = np.isfinite(self.time).any(axis=0)
        if not runnable.all():
            raise InstanceError("time", f"op {self.names[int(np.argmin(runnable))]!r} runs on no device type")
        require((self.twin >= -1) & (self.twin < self.n_ops), self.twin, "twin", f"is not one of the {self.n_ops} ops")
        has_twin = np.flatnonzero(self.twin >= 0)
        mutual = self.twin[self.twin[has_twin]] == has_twin
        if not mutual.all():
            i = int(has_twin[np.argmin(mutual)])
            raise InstanceError(f"twin[{i}]", f"{self.twin[i]} does not have {i} as its twin")
        self.topological_order()

    def __repr__(self) -> str:
        return f"OpGraph({self.n_ops} ops, {self.n_edges} edges, times on {', '.join(self.device_types)})"

    @property
    def n_ops(self) -> int:
        """How many ops there are."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """How many edges there are."""
        return len(self.source)

    def output_bytes(self) -> FloatArray:
        """Return the bytes each op sends when a consumer is elsewhere, float64 (n,).

        An op sends its one output once, however many consumers: the largest of its edges.
        """
        out = np.zeros(self.n_ops)
        np.maximum.at(out, self.source, self.edge_bytes)
        return out

    def topological_order(self) -> IntArray:
        """Return the ops so that every edge points forward, int32 (n,); ties by index.

        Raises:
            InstanceError: if there is a cycle; it names one.
        """
        return topological_order(self.n_ops, self.source, self.target, self.names)


def grouped(pairs: Iterable[tuple[int, T]], count: int) -> list[list[T]]:
    """Return what is paired with each number below `count`, in the order of the pairs."""
    found: list[list[T]] = [[] for _ in range(count)]
    for at, value in pairs:
        found[at].append(value)
    return found


def heaviest_paths(
    order: Iterable[int], before: Sequence[Sequence[int]], weight: Iterable[float]
) -> tuple[list[float], list[int]]:
    """Return the greatest weight of a path that ends in each node, and the node before it there, -1 for none."""
    reach, last = list(weight), [-1] * len(before)
    for v in order:
        if before[v]:
            last[v] = max(before[v], key=reach.__getitem__)
            reach[v] += reach[last[v]]
    return reach, last


def heaviest_path(order: Iterable[int], before: Sequence[Sequence[int]], weight: Iterable[float]) -> tuple[int, ...]:
    """Return the nodes of a path of the greatest weight, from its first on."""
    reach, last = heaviest_paths(order, before, weight)
    path = [max(range(len(reach)), key=reach.__getitem__)]
    while last[path[-1]] >= 0:
        path.append(last[path[-1]])
    return tuple(reversed(path))


def connected(n: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the parts of n nodes that edges join, whatever their direction, each ascending, by their first nodes."""
    ends = np.array([*edges], dtype=np.int64).reshape(-1, 2)
    part = components(ends[:, 0], ends[:, 1], n).tolist()
    return grouped(zip(part, range(n), strict=True), max(part, default=-1) + 1)


def one_machine(jobs: list[tuple[Any, Any, Any]]) -> Any:
    """Return the least time by which one machine ends (head, time, tail) jobs if it may interrupt them.

    Jackson's preemptive schedule: of the jobs that are there, always the one with the longest tail.
    """
    jobs, ready = sorted(jobs), list[tuple[Any, Any]]()
    now: Any = 0
    best, i = now, 0
    while i < len(jobs) or ready:
        now = now if ready else max(now, jobs[i][0])
        while i < len(jobs) and jobs[i][0] <= now:
            heappush(ready, (-jobs[i][2], jobs[i][1]))
            i += 1
        tail, left = ready[0]
        until = jobs[i][0] if i < len(jobs) else inf
        if now + left <= until:
            heappop(ready)
            now += left
            best = max(best, now - tail)
        else:
            ready[0] = (tail, left - (until - now))
            now = until
    return best


def topological_order(n: int, source: IntArray, target: IntArray, names: tuple[str, ...] | None = None) -> IntArray:
    """Return an order of n nodes in which every edge points forward, int32 (n,); ties by index.

    Raises:
        InstanceError: if there is a cycle; it names the ops on one.
    """
    if (source < target).all():
        return np.arange(n, dtype=np.int32)
    indegree = np.bincount(target, minlength=n).tolist()
    successors = grouped(zip(source.tolist(), target.tolist(), strict=True), n)
    ready = [v for v in range(n) if not indegree[v]]
    heapify(ready)
    order: list[int] = []
    while ready:
        v = heappop(ready)
        order.append(v)
        for w in successors[v]:
            indegree[w] -= 1
            if not indegree[w]:
                heappush(ready, w)
    if len(order) < n:
        import networkx as nx

        cycle = nx.find_cycle(nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True)))
        ops = [cycle[0][0], *(v for _, v in cycle)]
        words = " -> ".join(names[v] if names else str(v) for v in ops[:8])
        raise InstanceError("edges", f"there is a cycle: {words}{' ...' if len(ops) > 8 else ''}")
    return np.array(order, dtype=np.int32)


def components(a: NDArray[Any], b: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return the component of each of so many nodes that edges a - b join, numbered by their first nodes, int64."""
    root = list(range(size))

    def found(v: int) -> int:
        while root[v] != v:
            root[v] = v = root[root[v]]
        return v

    for u, v in zip(a.tolist(), b.tolist(), strict=True):
        u, v = found(u), found(v)  # noqa: PLW2901
        root[max(u, v)] = min(u, v)
    return np.unique([found(v) for v in range(size)], return_inverse=True)[1].astype(np.int64)


def strong_components(a: NDArray[Any], b: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return the strongly connected component of each of so many nodes with edges a -> b, by Tarjan (1972), int64.

    A component has a higher number than those that it reaches.
    """
    after, label, stack = grouped(zip(a.tolist(), b.tolist(), strict=True), size), [-1] * size, list[int]()
    index, low, numbers, labels = [-1] * size, [0] * size, count(), count()
    for start in range(size):
        path = [start] if index[start] < 0 else []
        while path:
            v = path[-1]
            if index[v] < 0:
                index[v] = low[v] = next(numbers)
                stack.append(v)
            if after[v]:
                w = after[v].pop()
                if index[w] < 0:
                    path.append(w)
                elif label[w] < 0:
                    low[v] = min(low[v], index[w])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[v])
            if low[v] == index[v]:
                number = next(labels)
                while label[v] < 0:
                    label[stack.pop()] = number
    return np.array(label, dtype=np.int64)


def with_backward(forward: OpGraph, time: FloatArray, memory: FloatArray) -> OpGraph:
    """Mirror every op of `forward` into a backward twin, ``<name>/backward``, on the same device.

    Op i of n gets the twin 2n-1-i, so that a graph in topological order stays in one. Backward edges are the
    forward edges reversed and carry the gradient of what those carry, as many bytes. One edge joins the last
    forward op (in topological order), where the loss is known, to its twin (Parsonson et al., arXiv 2301.13799).
    Weights are counted once, at the forward op; an op with no colocation class gets one for itself and its twin.

    Args:
        forward: a graph with no backward op.
        time: seconds of the twins, float64 (T, n), in the order of the forward ops.
        memory: bytes the twins occupy, float64 (n,), in the order of the forward ops.
    """
    n = forward.n_ops
    last = forward.topological_order()[-1]
    twin = np.arange(2 * n, dtype=np.int32)[::-1]
    lone = forward.colocation < 0
    colocation = forward.colocation.copy()
    colocation[lone] = np.arange(lone.sum(), dtype=np.int32) + colocation.max(initial=-1) + 1
    u, v = forward.source, forward.target
    return OpGraph(
        names=(*forward.names, *(f"{name}/backward" for name in reversed(forward.names))),
        device_types=forward.device_types,
        time=np.concatenate([forward.time, time[:, ::-1]], axis=1),
        memory=np.concatenate([forward.memory, memory[::-1]]),
        parameter_bytes=np.concatenate([forward.parameter_bytes, np.zeros(n)]),
        activation_bytes=np.concatenate([forward.activation_bytes, forward.activation_bytes[::-1]]),
        source=np.concatenate([u, twin[v], [last]]).astype(np.int32),
        target=np.concatenate([v, twin[u], [twin[last]]]).astype(np.int32),
        edge_bytes=np.concatenate([forward.edge_bytes, forward.edge_bytes, forward.activation_bytes[[last]]]),
        colocation=np.concatenate([colocation, colocation[::-1]]),
        twin=twin,
        backward=np.arange(2 * n) >= n,
    )
