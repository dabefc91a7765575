"""Split every op of a training step over several devices: PAC-ML's partition rule, a graph transformation.

An op becomes k sub-ops with 1/k of its time and memory; each of its edges becomes k edges, or k x k' where the other
end is split too, and the k sub-ops of a backward op exchange gradients pair by pair (Parsonson et al., arXiv
2301.13799, with the details of the published code).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .arrays import AMOUNT, POSITIVE, Checked, FloatArray, IntArray, array, frozen, require, require_number
from .errors import InstanceError, unknown
from .graph import OpGraph

QUANTUM = 1e-5
"""Seconds of forward compute below which a sub-op is not cut further (0.01 ms in the published set-up)."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitGraph(Checked):
    """An op graph and into how many equal sub-ops each op is split; sub-ops are numbered op by op.

    Attributes:
        graph: the graph that is split, n ops and m edges.
        copies: int32 (n,), the sub-ops of each op.
        seconds: float64 (n,), compute time of one sub-op of each op.
        memory: float64 (n,), bytes that one sub-op occupies.
        edge_bytes: float64 (m,), bytes along each one of the copies[u] x copies[v] edges that replace edge (u, v).
        sync_bytes: float64 (n,), bytes that each sub-op of a backward op sends to each of its siblings; 0 elsewhere.
    """

    graph: OpGraph
    copies: IntArray = field(metadata=array(None, holds=POSITIVE))
    seconds: FloatArray = field(metadata=array("copies", holds=AMOUNT))
    memory: FloatArray = field(metadata=array("copies", holds=AMOUNT))
    edge_bytes: FloatArray = field(metadata=array(None, holds=AMOUNT))
    sync_bytes: FloatArray = field(metadata=array("copies", holds=AMOUNT))

    @property
    def first(self) -> IntArray:
        """Return the first sub-op of each op, and the number of sub-ops at the end: int32 (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.copies)]).astype(np.int32)

    @property
    def n_sub_ops(self) -> int:
        """How many sub-ops there are."""
        return int(self.copies.sum())

    @property
    def degree(self) -> int:
        """Into how many sub-ops the most split op is split."""
        return int(self.copies.max())


def leaders(graph: OpGraph) -> IntArray:
    """Return the op whose split each op follows, int32 (n,): the forward twin of a backward op, else the op itself."""
    follows = graph.backward & (graph.twin >= 0)
    return np.where(follows, graph.twin, np.arange(graph.n_ops)).astype(np.int32)


def split_copies(graph: OpGraph, degree: int, *, quantum: float = QUANTUM, device_type: str | None = None) -> IntArray:
    """Return into how many sub-ops each op is split, int32 (n,).

    An op with forward time t gives ``max(1, min(2 * ceil(ceil(t / quantum) / 2), degree))``; so does its backward twin.

    Args:
        graph: with times in seconds.
        degree: the most sub-ops of any op: 1 or an even number.
        quantum: seconds, see `QUANTUM`.
        device_type: whose times decide; by default the graph's first.
    """
    require_number(degree, "degree", positive=True, whole=True)
    if degree > 1 and degree % 2:
        raise InstanceError("degree", f"{degree!r} is neither 1 nor even")
    require_number(quantum, "quantum", positive=True)
    # rounded first, for 0.07 ms over 0.01 ms is 7.000000000000001 in floating point
    quanta = np.ceil(np.round(_times(graph, device_type)[leaders(graph)] / quantum, 6))
    copies: IntArray = np.clip(2 * np.ceil(quanta / 2), 1, degree).astype(np.int32)
    return copies


def split(
    graph: OpGraph,
    degree: int,
    *,
    quantum: float = QUANTUM,
    device_type: str | None = None,
    order: IntArray | None = None,
) -> SplitGraph:
    """Split every op of `graph` into at most `degree` sub-ops; see `split_copies` for the arguments it shares.

    An edge (u, v) whose ends have k and k' sub-ops carries, per replicated edge, mem(u) / k' where only v is split,
    mem(v) / k where only u is, mem(u) where none is, and mem(w) / (k k') where both are, w being the end that is
    split first: the published code cuts one op (and its twin) after the other and sizes an edge again at each cut.

    Args:
        order: ops in the order in which they are cut, twins with their forward op; an op that is not in it comes
            last. By default the order of the graph. Published figures use the order in which the profile lists
            its ops: `gangplan.instances.readers.pipedream.listed_order`.
    """
    copies = split_copies(graph, degree, quantum=quantum, device_type=device_type)
    leader = leaders(graph)
    turn = _turns(graph.n_ops, order)[leader]
    u, v = graph.source, graph.target
    cut_u, cut_v = copies[u] > 1, copies[v] > 1
    memory_of_v = cut_u & (~cut_v | (turn[v] < turn[u]))
    carried = np.where(memory_of_v, graph.memory[v], graph.memory[u])
    share = graph.memory / copies
    return SplitGraph(
        graph=graph,
        copies=copies,
        seconds=_times(graph, device_type) / copies,
        memory=share,
        edge_bytes=carried / (copies[u].astype(np.float64) * copies[v]),
        sync_bytes=np.where(graph.backward & (copies > 1), share, 0.0),
    )


def _times(graph: OpGraph, device_type: str | None) -> FloatArray:
    if device_type is not None and device_type not in graph.device_types:
        raise InstanceError("device_type", unknown(device_type, graph.device_types))
    row = 0 if device_type is None else graph.device_types.index(device_type)
    times: FloatArray = graph.time[row]
    require(np.isfinite(times), times, f"time[{row}]", "is not finite: the op runs on another device type only")
    return times


def _turns(n: int, order: IntArray | None) -> IntArray:
    turn = np.arange(n, dtype=np.int32)
    if order is None:
        return turn
    order = frozen(order, np.int32, "order", (None,))
    require((order >= 0) & (order < n), order, "order", f"is not one of the {n} ops")
    if len(np.unique(order)) < len(order):
        raise InstanceError("order", "an op occurs twice")
    turn += len(order)
    turn[order] = np.arange(len(order), dtype=np.int32)
    return turn
